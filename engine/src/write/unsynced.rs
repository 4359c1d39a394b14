//! What a change reads of the row whose lock it owns: all that is in the memtables and files, synced or not.

use basalt_store::{Columns, Get, RowBatch, RowBatchBuilder, RowReader, Scan, TimeRange, Timestamp};
use bytes::Bytes;

use crate::core::Core;
use crate::error::Result;
use crate::read::{RowWanted, read_row};
use crate::table::{Shape, Table};

/// A column of a row.
#[derive(Debug)]
pub(super) struct Column<'a> {
    pub(super) row: &'a [u8],
    pub(super) family: &'a [u8],
    pub(super) qualifier: &'a [u8],
}

impl Core {
    /// The versions of a column, newest first, synced or not; the caller owns the row's lock.
    pub(super) fn read_versions(
        &self,
        table: &Table,
        shape: &Shape,
        column: &Column<'_>,
        versions: u32,
    ) -> Result<RowBatch> {
        let columns = Columns::column(Bytes::copy_from_slice(column.family), Bytes::copy_from_slice(column.qualifier));
        let get = Get { versions, ..Get::row(Bytes::copy_from_slice(column.row)).with_columns(columns) };
        let reader = RowReader::for_get(&shape.descriptor, &get, self.clock.now())?;
        self.read_unsynced(table, shape, column.row, TimeRange::ALL, reader)
    }

    /// The newest tombstone of these times over a column, synced or not; the caller owns the row's lock.
    pub(super) fn tombstone_over(
        &self,
        table: &Table,
        shape: &Shape,
        column: &Column<'_>,
        time_range: TimeRange,
    ) -> Result<Option<Timestamp>> {
        let columns = Columns::family(Bytes::copy_from_slice(column.family));
        let scan = Scan { raw: true, versions: u32::MAX, time_range, columns, ..Scan::all() };
        let reader = RowReader::for_scan(&shape.descriptor, &scan, self.clock.now())?;
        let found = self.read_unsynced(table, shape, column.row, time_range, reader)?;
        let cells = found.rows().flat_map(|row| row.cells());
        let over = cells.filter(|cell| cell.kind.is_tombstone_over(cell.qualifier, column.qualifier));
        Ok(over.map(|cell| cell.timestamp).max())
    }

    fn read_unsynced(
        &self,
        table: &Table,
        shape: &Shape,
        row: &[u8],
        time_range: TimeRange,
        mut reader: RowReader,
    ) -> Result<RowBatch> {
        let mut out = RowBatchBuilder::new();
        if let Some(region) = table.regions().of(row) {
            let view = region.view();
            let wanted = RowWanted { row, read_point: u64::MAX, time_range, count: None, codecs: &self.codecs };
            read_row(shape, &view, &wanted, &mut reader, &mut out)?;
        }
        Ok(out.finish())
    }
}
