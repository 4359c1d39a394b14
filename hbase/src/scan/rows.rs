//! What of a scan has come: rows put together or cut into pieces, and the place to go on from.

use basalt_store::{CellRef, Result, RowBatch, RowBatchBuilder, Scan};
use bytes::Bytes;

use crate::cells::{self, Cell};
use crate::error::{Error, Result as OwnResult};
use crate::pb::client::ScanResponse;

/// The rows of a scan as they come.
#[derive(Debug)]
pub(super) struct Rows {
    builder: RowBatchBuilder,
    ready: Vec<RowBatch>,
    /// Where a scanner is to be opened, and whether that row is in.
    start: Bytes,
    start_inclusive: bool,
    /// The row that is not known to be whole.
    row: Option<Row>,
    /// Rows that may still come.
    left: Option<u64>,
    /// Rows that were whole, and pieces of rows.
    passed: u64,
    batch_bytes: usize,
    /// Cells of a piece; `None` for whole rows.
    piece_cells: Option<usize>,
}

#[derive(Debug)]
struct Row {
    key: Bytes,
    /// Cells in its last piece.
    cells: usize,
    /// Its last cell, where it comes in pieces; everything up to it is passed over when the row is read anew.
    last: Option<Cell>,
    is_read_anew: bool,
}

impl Rows {
    pub(super) fn new(scan: &Scan) -> Self {
        let page = scan.filter.as_ref().and_then(crate::filter::page);
        Self {
            builder: RowBatchBuilder::new(),
            ready: Vec::new(),
            start: scan.start.clone(),
            start_inclusive: scan.start_inclusive,
            row: None,
            left: [scan.limit_rows, page].into_iter().flatten().min(),
            passed: 0,
            batch_bytes: scan.batch_bytes,
            piece_cells: scan.batch_cells.filter(|&cells| cells > 0).map(|cells| cells as usize),
        }
    }

    /// Whether no row may come any more.
    pub(super) fn is_full(&self) -> bool {
        self.left == Some(0) && self.row.is_none()
    }

    /// How many rows and pieces of rows were taken whole: what a reader gets, and what is not read anew.
    pub(super) fn passed(&self) -> u64 {
        self.passed
    }

    /// The bound for the server, as its message has it.
    pub(super) fn limit(&self) -> Option<u32> {
        self.left.map(|left| u32::try_from(left).unwrap_or(u32::MAX).clamp(1, i32::MAX.unsigned_abs()))
    }

    /// Where to open a scanner, and whether that row is in.
    pub(super) fn position(&self) -> (&Bytes, bool) {
        (&self.start, self.start_inclusive)
    }

    pub(super) fn set_position(&mut self, start: Bytes, is_inclusive: bool) {
        (self.start, self.start_inclusive) = (start, is_inclusive);
    }

    /// Takes an answer's cells.
    ///
    /// # Errors
    /// `Corrupt`: cells that cannot be read.
    pub(super) fn take(&mut self, told: ScanResponse, mut cells: &[u8]) -> Result<()> {
        for (at, &count) in told.cells_per_result.iter().enumerate() {
            let is_partial = told.partial_flag_per_result.get(at) == Some(&true);
            for _ in 0..count {
                let cell = cells::next(&mut cells)?;
                self.push(cell.ok_or_else(|| Error::malformed("a scan's answer", "cells are missing"))?)?;
            }
            if !is_partial {
                self.end_row();
            }
        }
        for result in told.results {
            let is_partial = result.partial == Some(true);
            let read: OwnResult<Vec<Cell>> = result.cell.into_iter().map(Cell::of_message).collect();
            for cell in read? {
                self.push(cell.view())?;
            }
            if !is_partial {
                self.end_row();
            }
        }
        // What is at hand goes out, so that a slow scan's reader sees it.
        if self.row.is_none() {
            self.cut();
        }
        Ok(())
    }

    fn push(&mut self, cell: CellRef<'_>) -> Result<()> {
        if self.row.as_ref().is_some_and(|row| row.key != cell.row) {
            self.end_row();
        }
        let Some(row) = &mut self.row else { return self.begin(cell) };
        if let Some(piece_cells) = self.piece_cells {
            if row.is_read_anew && row.last.as_ref().is_some_and(|last| order(&cell, &last.view()).is_le()) {
                return Ok(());
            }
            row.is_read_anew = false;
            if piece_cells == row.cells {
                row.cells = 0;
                self.passed += 1;
                let key = row.key.clone();
                self.builder.mark_partial();
                if self.builder.data_bytes() >= self.batch_bytes {
                    self.ready.push(self.builder.take());
                }
                self.builder.begin_row(&key)?;
            }
            row.cells += 1;
            row.last = Some(Cell::copy_of(&cell));
        }
        self.builder.push(cell)
    }

    fn begin(&mut self, cell: CellRef<'_>) -> Result<()> {
        if self.left == Some(0) {
            return Ok(());
        }
        self.builder.begin_row(cell.row)?;
        self.builder.push(cell)?;
        let last = self.piece_cells.map(|_| Cell::copy_of(&cell));
        self.row = Some(Row { key: Bytes::copy_from_slice(cell.row), cells: 1, last, is_read_anew: false });
        Ok(())
    }

    /// The row under way is whole.
    pub(super) fn end_row(&mut self) {
        let Some(row) = self.row.take() else { return };
        self.passed += 1;
        self.left = self.left.map(|left| left.saturating_sub(1));
        self.set_position(row.key, false);
        if self.builder.data_bytes() >= self.batch_bytes {
            self.cut();
        }
    }

    /// Everything is here.
    pub(super) fn end(&mut self) {
        self.end_row();
        self.cut();
    }

    fn cut(&mut self) {
        if !self.builder.is_empty() {
            self.ready.push(self.builder.take());
        }
    }

    pub(super) fn take_ready(&mut self) -> Vec<RowBatch> {
        std::mem::take(&mut self.ready)
    }

    /// The scanner is gone: a row that has begun is read anew, so that it is of one moment; one in pieces goes on after
    /// its last cell, as pieces may be with the reader already.
    pub(super) fn rewind(&mut self) {
        let Some(mut row) = self.row.take() else { return };
        self.set_position(row.key.clone(), true);
        if self.piece_cells.is_some() {
            row.is_read_anew = true;
            self.row = Some(row);
        } else {
            self.builder.drop_row();
        }
    }
}

fn order(cell: &CellRef<'_>, last: &CellRef<'_>) -> std::cmp::Ordering {
    cell.family.cmp(last.family).then_with(|| cell.order_in_family(last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use basalt_store::{CellKind, CellMutation, Timestamp};
    use bytes::BytesMut;

    /// An answer of rows with so many columns each, and whether each goes on.
    fn answer(rows: &[(&str, std::ops::Range<u8>, bool)]) -> (ScanResponse, Bytes) {
        let (mut told, mut block) = (ScanResponse::default(), BytesMut::new());
        for (key, columns, is_partial) in rows {
            told.cells_per_result.push(columns.len().try_into().unwrap());
            told.partial_flag_per_result.push(*is_partial);
            for column in columns.clone() {
                let qualifier = [column];
                let cell = CellMutation {
                    family: b"f",
                    family_index: 0,
                    qualifier: &qualifier,
                    timestamp: Some(Timestamp(1)),
                    kind: CellKind::Put,
                    value: b"v",
                };
                cells::encode(key.as_bytes(), &cell, &mut block).unwrap();
            }
        }
        (told, block.freeze())
    }

    fn take(rows: &mut Rows, of: &[(&str, std::ops::Range<u8>, bool)]) {
        let (told, block) = answer(of);
        rows.take(told, &block).unwrap();
    }

    fn told(rows: &mut Rows) -> Vec<(String, usize, bool)> {
        let ready = rows.take_ready();
        let views = ready.iter().flat_map(RowBatch::rows);
        views
            .map(|row| (String::from_utf8(row.key().to_vec()).unwrap(), row.cells().len(), row.is_last_piece()))
            .collect()
    }

    fn of(key: &str, cells: usize, is_last: bool) -> (String, usize, bool) {
        (key.to_owned(), cells, is_last)
    }

    #[test]
    fn a_row_in_parts_is_handed_over_whole() {
        let mut rows = Rows::new(&Scan::all());
        take(&mut rows, &[("a", 0..2, false), ("b", 0..2, true)]);
        assert!(told(&mut rows).is_empty(), "b is not whole yet");
        take(&mut rows, &[("b", 2..5, false)]);
        assert_eq!(told(&mut rows), [of("a", 2, true), of("b", 5, true)]);
        assert_eq!(rows.position(), (&Bytes::from_static(b"b"), false));
    }

    #[test]
    fn a_part_is_read_anew_when_its_scanner_is_gone() {
        let mut rows = Rows::new(&Scan::all());
        take(&mut rows, &[("a", 0..2, false), ("b", 0..2, true)]);
        rows.rewind();
        assert_eq!(rows.position(), (&Bytes::from_static(b"b"), true));
        take(&mut rows, &[("b", 0..5, false)]);
        rows.end();
        assert_eq!(told(&mut rows), [of("a", 2, true), of("b", 5, true)]);
    }

    #[test]
    fn s_scan_10_pieces_have_the_size_asked_for_whatever_came_together() {
        let mut rows = Rows::new(&Scan { batch_cells: Some(2), ..Scan::all() });
        take(&mut rows, &[("a", 0..1, true)]);
        take(&mut rows, &[("a", 1..3, true)]);
        // Passed over: what is told already, when the row is read anew.
        rows.rewind();
        take(&mut rows, &[("a", 0..2, true), ("a", 2..4, true), ("b", 0..1, false)]);
        rows.end();
        assert_eq!(told(&mut rows), [of("a", 2, false), of("a", 2, true), of("b", 1, true)]);
    }

    #[test]
    fn s_scan_11_a_limit_counts_rows_whatever_the_server_sends() {
        let mut rows = Rows::new(&Scan { limit_rows: Some(2), ..Scan::all() });
        assert_eq!(rows.limit(), Some(2));
        take(&mut rows, &[("a", 0..1, false)]);
        assert_eq!(rows.limit(), Some(1));
        take(&mut rows, &[("b", 0..1, false), ("c", 0..1, false)]);
        assert!(rows.is_full());
        assert_eq!(told(&mut rows), [of("a", 1, true), of("b", 1, true)]);
    }

    #[test]
    fn missing_cells_are_corrupt() {
        let mut rows = Rows::new(&Scan::all());
        let (mut lying, block) = answer(&[("a", 0..1, false)]);
        lying.cells_per_result = vec![2];
        assert_eq!(rows.take(lying, &block).unwrap_err().kind(), basalt_store::ErrorKind::Corrupt);
    }
}
