//! The index read back from the row keys of the data table.

use basalt_store::{Columns, Filter, ListOperator, RowBatch, Scan, SeqNo, Store, TableName};
use bytes::Bytes;
use roaring::RoaringBitmap;

use super::SeriesIndex;
use crate::tables::DATA_FAMILY;
use crate::{KeyLayout, Result};

/// What became of the log at open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogRead {
    /// The store keeps none: all row keys were read.
    #[default]
    None,
    /// There was none yet, or it said nothing that can be used: all row keys were read.
    Absent,
    /// It was damaged; what came before that was used, and rows after it were read.
    Cut,
    /// It is from a later state than the store: all row keys were read.
    Ahead,
    /// It was whole.
    Whole,
}

/// What was read to fill an index.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RebuildReport {
    /// Rows of points.
    pub rows_count: u64,
    /// Rows whose key is none of a series: global annotations, or foreign keys.
    pub rows_skipped: u64,
    /// Series that the index's log told.
    pub series_kept: u64,
    /// What became of that log.
    pub log: LogRead,
}

/// The same, and which series have rows.
#[derive(Debug, Default)]
pub(super) struct ReadRows {
    pub(super) report: RebuildReport,
    pub(super) series: RoaringBitmap,
}

/// A part of a table's row keys.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) start: Bytes,
    /// Of rows changed after it alone.
    pub(super) after: Option<SeqNo>,
    /// About as many rows are looked at.
    pub(super) rows_max: u64,
}

impl SeriesIndex {
    /// Adds every series that has a row. What is in the index stays.
    ///
    /// *Cost*: one scan of all row keys (first cell of each row, without its value). *Bounds*: memory by the number of
    /// series, not of rows.
    ///
    /// # Errors
    /// `Throttled`: the index is full. The store's own.
    pub fn rebuild(&self, store: &dyn Store, table: &TableName, layout: KeyLayout) -> Result<RebuildReport> {
        let mut read = ReadRows::default();
        self.add_rows_of(store, table, layout, None, &mut read)?;
        Ok(read.report)
    }

    /// Adds every series that has a row changed after a number.
    pub(super) fn add_rows_of(
        &self,
        store: &dyn Store,
        table: &TableName,
        layout: KeyLayout,
        after: Option<SeqNo>,
        read: &mut ReadRows,
    ) -> Result<()> {
        let part = Part { start: Bytes::new(), after, rows_max: u64::MAX };
        self.add_part(store, table, layout, part, read).map(drop)
    }

    /// The same of a part of a table; gives where the next begins, where there may be one.
    pub(super) fn add_part(
        &self,
        store: &dyn Store,
        table: &TableName,
        layout: KeyLayout,
        Part { start, after, rows_max }: Part,
        read: &mut ReadRows,
    ) -> Result<Option<Bytes>> {
        let keys_only = Filter::List(ListOperator::All, vec![Filter::FirstKeyOnly, Filter::KeyOnly]);
        let mut scan =
            Scan::range(start, Bytes::new()).with_columns(Columns::family(DATA_FAMILY)).with_filter(keys_only);
        (scan.cache_blocks, scan.after) = (false, after);
        let mut scanner = store.scan(table, scan)?;
        let mut rows = 0;
        while let Some(batch) = scanner.next_wait() {
            let batch = batch?;
            self.add_rows(&batch, layout, read)?;
            rows += batch.len() as u64;
            let last = batch.len().checked_sub(1).and_then(|last| batch.row(last));
            if let (true, Some(last)) = (rows >= rows_max, last) {
                return Ok(Some([last.key(), &[0]].concat().into()));
            }
        }
        Ok(None)
    }

    fn add_rows(&self, batch: &RowBatch, layout: KeyLayout, read: &mut ReadRows) -> Result<()> {
        for row in batch.rows() {
            match layout.decode(row.key()) {
                Ok(key) if !key.is_global_annotations() => {
                    read.series.insert(self.add(&key.tsuid())?.0);
                    read.report.rows_count += 1;
                }
                _ => read.report.rows_skipped += 1,
            }
        }
        Ok(())
    }
}
