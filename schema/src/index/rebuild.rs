//! The index read back from the row keys of the data table.

use basalt_store::{Columns, Filter, ListOperator, RowBatch, Scan, Store, TableName};
use bytes::Bytes;

use super::SeriesIndex;
use crate::tables::DATA_FAMILY;
use crate::{KeyLayout, Result};

/// What a rebuild read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RebuildReport {
    /// Rows of points.
    pub rows_count: u64,
    /// Rows whose key is none of a series: global annotations, or foreign keys.
    pub rows_skipped: u64,
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
        let keys_only = Filter::List(ListOperator::All, vec![Filter::FirstKeyOnly, Filter::KeyOnly]);
        let mut scan =
            Scan::range(Bytes::new(), Bytes::new()).with_columns(Columns::family(DATA_FAMILY)).with_filter(keys_only);
        scan.cache_blocks = false;
        let mut scanner = store.scan(table, scan)?;
        let mut report = RebuildReport::default();
        while let Some(batch) = scanner.next_wait() {
            self.add_rows(&batch?, layout, &mut report)?;
        }
        Ok(report)
    }

    fn add_rows(&self, batch: &RowBatch, layout: KeyLayout, report: &mut RebuildReport) -> Result<()> {
        for row in batch.rows() {
            match layout.decode(row.key()) {
                Ok(key) if !key.is_global_annotations() => {
                    self.add(&key.tsuid())?;
                    report.rows_count += 1;
                }
                _ => report.rows_skipped += 1,
            }
        }
        Ok(())
    }
}
