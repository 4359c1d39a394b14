//! Gets, scans, and the rows that both read: what the rules let a reader see.

use std::sync::Arc;

use basalt_store::{Cost, Get, RowBatch, RowBatchBuilder, RowReader, RowVerdict, TimeRange};
use bytes::Bytes;

use crate::block_count::BlockCount;
use crate::core::Core;
use crate::error::Result;
use crate::merge::{Direction, Merge};
use crate::region::View;
use crate::source::FamilyRead;
use crate::sstable::BlockCodecs;
use crate::table::{Shape, Table};

mod rows;
mod scan;

use rows::{Rows, open_families};

/// An answer to a get begins with room for up to as many rows.
const ROOM_ROWS: usize = 256;

impl Core {
    /// Answers a get on the caller's thread.
    pub(crate) fn get(&self, table: &Table, get: &Get) -> Result<RowBatch> {
        if get.rows.iter().any(Bytes::is_empty) {
            let reason = "it is empty".into();
            return Err(basalt_store::Error::InvalidArgument { what: "row key", reason }.into());
        }
        if get.rows.len() > self.limits.get_rows_max {
            let (size, limit) = (get.rows.len() as u64, self.limits.get_rows_max as u64);
            return Err(basalt_store::Error::TooLarge { what: "list of rows", size, limit }.into());
        }
        let shape = table.shape();
        RowReader::check_get(&shape.descriptor, get)?;
        let regions = table.regions();
        let mut reading = None;
        for row in &get.rows {
            let Some(region) = regions.of(row) else { continue };
            region.count_read();
            let (view, read_point) = region.snapshot();
            table.check_there()?;
            // Fast path: nothing is made ready for rows that are nowhere.
            if !view.may_contain_row(row) {
                continue;
            }
            let (reader, count, out) = match &mut reading {
                Some(reading) => reading,
                None => reading.insert(self.begin_get(&shape, get)?),
            };
            let (time_range, codecs) = (get.time_range, &self.codecs);
            let wanted = RowWanted { row, read_point, time_range, count: Some(count), codecs };
            read_row(&shape, &view, &wanted, reader, out)?;
        }
        let Some((mut reader, count, mut out)) = reading else { return Ok(RowBatch::default()) };
        out.set_cost(cost(&mut reader, &count));
        Ok(out.finish())
    }

    fn begin_get(&self, shape: &Shape, get: &Get) -> Result<(RowReader, Arc<BlockCount>, RowBatchBuilder)> {
        let reader = RowReader::for_get(&shape.descriptor, get, self.clock.now())?;
        Ok((reader, Arc::default(), RowBatchBuilder::with_room(get.rows.len().min(ROOM_ROWS))))
    }
}

/// What was examined since this was asked last.
fn cost(reader: &mut RowReader, count: &BlockCount) -> Cost {
    let mut cost = reader.take_cost();
    cost += count.take();
    cost
}

/// One row of a view.
#[derive(Debug)]
pub(crate) struct RowWanted<'a> {
    pub(crate) row: &'a [u8],
    pub(crate) read_point: u64,
    pub(crate) time_range: TimeRange,
    /// Where blocks are counted, if anywhere.
    pub(crate) count: Option<&'a Arc<BlockCount>>,
    /// Those that families may name.
    pub(crate) codecs: &'a BlockCodecs,
}

/// Reads one row into `out`.
pub(crate) fn read_row<'a>(
    shape: &'a Shape,
    view: &View,
    wanted: &RowWanted<'a>,
    reader: &mut RowReader,
    out: &mut RowBatchBuilder,
) -> Result<()> {
    let families = open_families(shape, reader, wanted.codecs, |mut family, qualifiers| {
        family.read_point = wanted.read_point;
        family.set_time_range(wanted.time_range);
        family.row = Some(wanted.row);
        family.count = wanted.count.map(Arc::clone);
        if let [one] = qualifiers {
            FamilyRead { qualifier: Some(one), ..family }.open(view)
        } else {
            family.open(view)
        }
    });
    // Fast path: no memtable and no file has the row.
    if families.iter().all(Merge::is_void) {
        return Ok(());
    }
    let mut rows = Rows::new(families, Direction::Forward);
    // A row without a cell is no row: no filter is asked about it.
    if rows.go_to(wanted.row)? && reader.begin_row(wanted.row, out)? == RowVerdict::Pass {
        rows.read(reader, out)?;
        reader.end_row(out);
    }
    Ok(())
}
