//! Gets and scans over the maps.

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;

use super::lock::read;
use super::rows::{self, Rows};
use super::table::Table;
use crate::{
    Cost, Error, Get, Result, RowBatch, RowBatchBuilder, RowReader, RowVerdict, Scan, Scanner, TableDescriptor,
    Timestamp,
};

/// How many rows a scan looks at before it lets writers in between.
const ROWS_A_LOCK_MAX: usize = 4096;

pub(super) fn get(table: &Table, get: &Get, now: Timestamp) -> Result<RowBatch> {
    if get.rows.iter().any(Bytes::is_empty) {
        return Err(Error::InvalidArgument { what: "row key", reason: "it is empty".into() });
    }
    let state = read(&table.state);
    state.serves.check_read(&state.descriptor)?;
    let mut reader = RowReader::for_get(&state.descriptor, get, now)?;
    let families = family_names(&state.descriptor, &reader);
    let mut out = RowBatchBuilder::new();
    for key in &get.rows {
        table.count_read(key, key, true);
        if let Some(row) = state.rows.get(key)
            && reader.begin_row(key, &mut out)? == RowVerdict::Pass
        {
            rows::read_row(key, row, &families, &mut reader, &mut out)?;
        }
    }
    out.set_cost(reader.take_cost());
    Ok(out.finish())
}

pub(super) fn scan(table: Arc<Table>, scan: &Scan, now: Timestamp) -> Result<Scanner> {
    let descriptor = table.descriptor();
    table.serves().check_read(&descriptor)?;
    let reader = RowReader::for_scan(&descriptor, scan, now)?;
    if scan.reversed {
        table.count_read(&scan.stop, &scan.start, scan.start_inclusive);
    } else {
        table.count_read(&scan.start, &scan.stop, scan.stop_inclusive);
    }
    let bound = |key: &Bytes, inclusive| match (key.is_empty(), inclusive) {
        (true, _) => Bound::Unbounded,
        (false, true) => Bound::Included(key.clone()),
        (false, false) => Bound::Excluded(key.clone()),
    };
    let mut cursor = Cursor {
        families: family_names(&descriptor, &reader),
        reader,
        from: bound(&scan.start, scan.start_inclusive),
        to: bound(&scan.stop, scan.stop_inclusive),
        reversed: scan.reversed,
        batch_bytes: scan.batch_bytes,
        done: false,
    };
    Ok(Scanner::lazy(move || cursor.next(&table).transpose()))
}

fn family_names(table: &TableDescriptor, reader: &RowReader) -> Vec<Bytes> {
    reader.selection().families().filter_map(|index| table.families.get(index)).map(|f| f.name.clone()).collect()
}

/// Where a scan is. Between two batches it holds no lock and no reference into the rows.
struct Cursor {
    reader: RowReader,
    families: Vec<Bytes>,
    /// Where it goes on.
    from: Bound<Bytes>,
    /// Where it ends.
    to: Bound<Bytes>,
    reversed: bool,
    batch_bytes: usize,
    done: bool,
}

impl Cursor {
    /// The next batch; `None` at the end.
    fn next(&mut self, table: &Table) -> Result<Option<RowBatch>> {
        let mut out = RowBatchBuilder::new();
        while !self.done && (out.is_empty() || out.data_bytes() < self.batch_bytes) {
            let state = read(&table.state);
            // The table may have lost a family meanwhile; its cells are gone, and the rest is read on.
            self.fill(&state.rows, &mut out).inspect_err(|_| self.done = true)?;
        }
        let cost = self.reader.take_cost();
        out.set_cost(cost);
        // The last may have no rows, and tells what the scan looked at behind the one before.
        Ok(Some(out.finish()).filter(|batch| !batch.is_empty() || cost != Cost::default()))
    }

    /// Reads on under one lock, until the batch is full, the scan over, or a filter tells to seek.
    fn fill(&mut self, rows: &Rows, out: &mut RowBatchBuilder) -> Result<()> {
        if self.reader.is_full() || self.is_range_empty() {
            self.done = true;
            return Ok(());
        }
        let (low, high) = if self.reversed { (&self.to, &self.from) } else { (&self.from, &self.to) };
        let mut range = rows.range((low.clone(), high.clone()));
        for _ in 0..ROWS_A_LOCK_MAX {
            let Some((key, row)) = (if self.reversed { range.next_back() } else { range.next() }) else {
                self.done = true;
                return Ok(());
            };
            self.from = Bound::Excluded(key.clone());
            match self.reader.begin_row(key, out)? {
                RowVerdict::Pass => {
                    rows::read_row(key, row, &self.families, &mut self.reader, out)?;
                }
                RowVerdict::Skip => {}
                RowVerdict::SeekTo(hint) => {
                    self.from = Bound::Included(hint);
                    return Ok(());
                }
                RowVerdict::Done => self.done = true,
            }
            self.done |= self.reader.is_full();
            if self.done || out.data_bytes() >= self.batch_bytes {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Whether no key can lie between; a map refuses such a range.
    fn is_range_empty(&self) -> bool {
        let (low, high) = if self.reversed { (&self.to, &self.from) } else { (&self.from, &self.to) };
        match (low, high) {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Included(low), Bound::Included(high)) => low > high,
            (Bound::Included(low) | Bound::Excluded(low), Bound::Included(high) | Bound::Excluded(high)) => low >= high,
        }
    }
}
