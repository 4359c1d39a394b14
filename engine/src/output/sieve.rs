//! What of a pass's cells goes into its file: they are judged by the rules, and their rows folded.

use std::sync::Arc;

use basalt_store::{CellKind, CellRef, Fold, FoldedRow, Retention, RowPut, SeqNo, Timestamp};
use bytes::Bytes;

use crate::beside::Beside;
use crate::error::Result;
use crate::merge::{CellSource, Step};
use crate::sstable::SstableWriter;

/// Judges cells, folds rows, writes what is left.
pub(super) struct Sieve<'a, 'b> {
    family: Bytes,
    writer: SstableWriter,
    retention: Retention,
    fold: Option<(Arc<dyn Fold>, &'a mut Beside<'b>)>,
    row: KeptRow,
    folded: FoldedRow,
}

impl<'a, 'b> Sieve<'a, 'b> {
    /// Of a family's cells, for the file that `writer` writes. Rows are folded where there is a `fold`, as far as what lies beside them
    /// allows it.
    pub(super) fn new(
        family: Bytes,
        writer: SstableWriter,
        retention: Retention,
        fold: Option<(Arc<dyn Fold>, &'a mut Beside<'b>)>,
    ) -> Self {
        Sieve { family, writer, retention, fold, row: KeptRow::default(), folded: FoldedRow::default() }
    }

    /// Takes the next cell, to which `step` led.
    pub(super) fn take(&mut self, cell: &CellRef<'_>, step: Step) -> Result<()> {
        let same_row = match step {
            Step::SameRow => true,
            Step::OtherRow => false,
            Step::Untold => self.row.key == cell.row,
        };
        if !same_row {
            self.end_row()?;
            self.row.begin(cell.row);
            self.retention.begin_row();
        }
        // A tombstone that goes in this pass has still masked something in it.
        self.row.stays |= cell.kind.is_tombstone();
        if !self.retention.judge(cell).keeps() {
            return Ok(());
        }
        if self.fold.is_some() {
            self.row.keep(cell.kind, RowPut::from(*cell));
            return Ok(());
        }
        self.writer.push(cell)
    }

    /// Takes the row that a source stands on as a whole; false where its cells are to be taken one by one.
    pub(super) fn take_row(&mut self, cells: &dyn CellSource) -> Result<bool> {
        self.end_row()?;
        let Sieve { fold: Some((fold, beside)), retention, row, folded, .. } = self else { return Ok(false) };
        let until = cells.row().and_then(|row| beside.unfolded_until(row));
        retention.begin_row();
        let mut is_folded = false;
        let is_taken = cells.lend_row(&mut |key, puts| {
            let times = || puts.iter().map(|put| put.timestamp);
            let Some((oldest, newest)) = times().min().zip(times().max()) else { return false };
            if !retention.keeps_lone_puts(oldest, newest) {
                return false;
            }
            row.begin(key);
            folded.clear();
            is_folded = until < Some(oldest) && fold.fold(puts, folded);
            if !is_folded {
                row.stays = true;
                for put in puts {
                    row.keep(CellKind::Put, *put);
                }
            }
            true
        });
        if is_folded {
            self.write_folded()?;
        }
        Ok(is_taken)
    }

    /// Ends the file, all of whose cells were taken; answers its bytes, `None` where it has no cell.
    pub(super) fn finish(mut self) -> Result<Option<u64>> {
        self.end_row()?;
        if self.writer.cells_count() == 0 {
            return Ok(None);
        }
        self.writer.finish().map(Some)
    }

    /// Writes the row that was kept for the fold.
    fn end_row(&mut self) -> Result<()> {
        let Sieve { fold: Some((fold, beside)), row, folded, .. } = self else { return Ok(()) };
        let Some(oldest) = row.cells.iter().map(|cell| cell.timestamp).min() else { return Ok(()) };
        folded.clear();
        let puts = || row.cells().map(|(_, put)| put);
        let may_fold = !row.stays && beside.unfolded_until(&row.key) < Some(oldest);
        if may_fold && fold.fold(&puts().collect::<Vec<_>>(), folded) {
            self.write_folded()?;
        } else {
            for (kind, put) in self.row.cells() {
                self.writer.push(&CellRef { kind, ..put.of_row(&self.row.key, &self.family) })?;
            }
        }
        self.row.cells.clear();
        Ok(())
    }

    /// Writes what the fold made of the row.
    fn write_folded(&mut self) -> Result<()> {
        let Sieve { folded, writer, row, family, .. } = self;
        folded.cells().try_for_each(|put| writer.push(&put.of_row(&row.key, family)))
    }
}

/// A row's cells, copied.
#[derive(Debug, Default)]
struct KeptRow {
    /// It is not folded: it has a tombstone in this pass, or the fold wants it as it is.
    stays: bool,
    key: Vec<u8>,
    data: Vec<u8>,
    cells: Vec<KeptCell>,
}

#[derive(Debug, Clone, Copy)]
struct KeptCell {
    start: usize,
    middle: usize,
    end: usize,
    timestamp: Timestamp,
    seq: SeqNo,
    kind: CellKind,
}

impl KeptRow {
    fn begin(&mut self, key: &[u8]) {
        self.stays = false;
        self.key.clear();
        self.key.extend_from_slice(key);
        self.data.clear();
        self.cells.clear();
    }

    fn keep(&mut self, kind: CellKind, put: RowPut<'_>) {
        let RowPut { qualifier, timestamp, seq, value } = put;
        let start = self.data.len();
        self.data.extend_from_slice(qualifier);
        let middle = self.data.len();
        self.data.extend_from_slice(value);
        let end = self.data.len();
        self.cells.push(KeptCell { start, middle, end, timestamp, seq, kind });
    }

    fn cells(&self) -> impl Iterator<Item = (CellKind, RowPut<'_>)> {
        self.cells.iter().map(|cell| {
            let KeptCell { start, middle, end, timestamp, seq, kind } = *cell;
            let qualifier = self.data.get(start..middle).unwrap_or_default();
            (kind, RowPut { qualifier, timestamp, seq, value: self.data.get(middle..end).unwrap_or_default() })
        })
    }
}
