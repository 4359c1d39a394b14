//! The index read back from the row keys of the data table.

use basalt_store::{Columns, Filter, ListOperator, RowBatch, Scan, SeqNo, Store, TableName};
use bytes::Bytes;
use roaring::RoaringBitmap;

use super::{LogRead, SeriesIndex};
use crate::tables::DATA_FAMILY;
use crate::{KeyLayout, Result};

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
        let keys_only = Filter::List(ListOperator::All, vec![Filter::FirstKeyOnly, Filter::KeyOnly]);
        let mut scan =
            Scan::range(Bytes::new(), Bytes::new()).with_columns(Columns::family(DATA_FAMILY)).with_filter(keys_only);
        (scan.cache_blocks, scan.after) = (false, after);
        let mut scanner = store.scan(table, scan)?;
        while let Some(batch) = scanner.next_wait() {
            self.add_rows(&batch?, layout, read)?;
        }
        Ok(())
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
