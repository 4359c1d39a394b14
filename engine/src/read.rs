//! Gets and scans: region by region, row by row, what the rules let a reader see.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use basalt_store::{
    Advance, Cost, Get, RowBatch, RowBatchBuilder, RowReader, RowVerdict, Scan, ScanSender, Scanner, TimeRange,
};
use bytes::Bytes;

use crate::block_cache::Caching;
use crate::block_count::BlockCount;
use crate::core::Core;
use crate::error::{Error, Result};
use crate::key_range::KeyRange;
use crate::merge::{CellSource, Direction, Merge};
use crate::region::{Region, View};
use crate::source::{FamilyRead, Source};
use crate::table::{Shape, Table};

/// Cells that are stepped over before a seek is tried instead.
const STEPS_BEFORE_SEEK: u64 = 8;

impl Core {
    /// Answers a get on the caller's thread.
    pub(crate) fn get(&self, table: &Table, get: &Get) -> Result<RowBatch> {
        if get.rows.iter().any(Bytes::is_empty) {
            return Err(invalid("row key", "it is empty").into());
        }
        if get.rows.len() > self.limits.get_rows_max {
            let (size, limit) = (get.rows.len() as u64, self.limits.get_rows_max as u64);
            return Err(basalt_store::Error::TooLarge { what: "list of rows", size, limit }.into());
        }
        let shape = table.shape();
        let mut reader = RowReader::for_get(&shape.descriptor, get, self.clock.now())?;
        let regions = table.regions();
        let mut out = RowBatchBuilder::new();
        let count = Arc::new(BlockCount::default());
        for row in &get.rows {
            let Some(region) = regions.of(row) else { continue };
            region.count_read();
            let (view, read_point) = region.snapshot();
            let wanted = RowWanted { row, read_point, time_range: get.time_range, count: Some(&count) };
            read_row(&shape, &view, &wanted, &mut reader, &mut out)?;
        }
        out.set_cost(cost(&mut reader, &count));
        Ok(out.finish())
    }

    /// Begins a scan on a thread of its own.
    pub(crate) fn scan(self: &Arc<Self>, table: Arc<Table>, scan: Scan) -> Result<Scanner> {
        let shape = table.shape();
        let reader = RowReader::for_scan(&shape.descriptor, &scan, self.clock.now())?;
        let (sender, scanner) = Scanner::channel(self.limits.scan_batches_ahead);
        let (out, count) = (RowBatchBuilder::new(), Arc::new(BlockCount::default()));
        let walk = ScanWalk { table, shape, scan, reader, out, count, sender };
        if self.scan_threads.run(Box::new(move || walk.run())) {
            Ok(scanner)
        } else {
            let limit_bytes = self.limits.scans_max as u64;
            Err(Error::Throttled { queued_bytes: limit_bytes, limit_bytes })
        }
    }
}

/// What was examined since this was asked last.
fn cost(reader: &mut RowReader, count: &BlockCount) -> Cost {
    let mut cost = reader.take_cost();
    cost += count.take();
    cost
}

fn invalid(what: &'static str, reason: &str) -> basalt_store::Error {
    basalt_store::Error::InvalidArgument { what, reason: reason.into() }
}

/// One row of a view.
#[derive(Debug)]
pub(crate) struct RowWanted<'a> {
    pub(crate) row: &'a [u8],
    pub(crate) read_point: u64,
    pub(crate) time_range: TimeRange,
    /// Where blocks are counted, if anywhere.
    pub(crate) count: Option<&'a Arc<BlockCount>>,
}

/// Reads one row into `out`.
pub(crate) fn read_row<'a>(
    shape: &'a Shape,
    view: &View,
    wanted: &RowWanted<'a>,
    reader: &mut RowReader,
    out: &mut RowBatchBuilder,
) -> Result<()> {
    let families = open_families(shape, reader, |mut family, qualifiers| {
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
    let mut rows = Rows { families, direction: Direction::Forward, row: wanted.row.to_vec() };
    rows.seek(wanted.row)?;
    // A row without a cell is no row: no filter is asked about it.
    if rows.families.iter().any(|family| family.cell().is_some_and(|cell| cell.row == wanted.row))
        && reader.begin_row(wanted.row, out)? == RowVerdict::Pass
    {
        rows.read(reader, out)?;
        reader.end_row(out);
    }
    Ok(())
}

/// A merge for each family that a reader selected, made by `open` from the family's defaults.
fn open_families<'a>(
    shape: &'a Shape,
    reader: &RowReader,
    open: impl Fn(FamilyRead<'a>, &[Bytes]) -> Merge<Source>,
) -> Vec<Merge<Source>> {
    let selected = reader.selection().families().enumerate();
    let families = selected.filter_map(|(position, index)| {
        Some((position, shape.family_id(index)?, shape.descriptor.families.get(index)?))
    });
    families
        .map(|(position, id, family)| {
            let read = FamilyRead {
                id,
                name: &family.name,
                direction: Direction::Forward,
                read_point: u64::MAX,
                time_range: TimeRange::ALL,
                needs_all_times: family.new_version_behavior,
                caching: Caching::of(family),
                row: None,
                qualifier: None,
                count: None,
            };
            open(read, reader.selection().qualifiers(position))
        })
        .collect()
}

/// The selected families of a region, walked row by row.
#[derive(Debug)]
struct Rows {
    /// In the order of the selection, which is that of cells.
    families: Vec<Merge<Source>>,
    direction: Direction,
    /// The row that is being read.
    row: Vec<u8>,
}

impl Rows {
    fn rewind(&mut self) -> Result<()> {
        self.families.iter_mut().try_for_each(Merge::rewind)
    }

    fn seek(&mut self, row: &[u8]) -> Result<()> {
        self.families.iter_mut().try_for_each(|family| family.seek(row, &[]))
    }

    /// Finds the next row that any family stands on; false at the end.
    fn find(&mut self) -> bool {
        let rows = self.families.iter().filter_map(|family| family.cell().map(|cell| cell.row));
        let next = match self.direction {
            Direction::Forward => rows.min(),
            Direction::Reverse => rows.max(),
        };
        let Some(next) = next else { return false };
        self.row.clear();
        self.row.extend_from_slice(next);
        true
    }

    /// Feeds the row's cells to the reader.
    fn read(&mut self, reader: &mut RowReader, out: &mut RowBatchBuilder) -> Result<()> {
        for (position, family) in self.families.iter_mut().enumerate() {
            if !stands_on(family, &self.row) {
                continue;
            }
            reader.begin_family(position);
            if read_family(family, &self.row, self.direction, reader, out)? == Advance::NextRow {
                break;
            }
        }
        Ok(())
    }

    /// Goes behind the row, wherever in it the families stand.
    fn skip(&mut self, reader: &mut RowReader) -> Result<()> {
        for family in &mut self.families {
            reader.count_passed(skip_row(family, &self.row, self.direction)?);
        }
        Ok(())
    }
}

fn stands_on(family: &Merge<Source>, row: &[u8]) -> bool {
    family.cell().is_some_and(|cell| cell.row == row)
}

/// Feeds a family's cells of the row; answers how the reader wants to go on.
fn read_family(
    family: &mut Merge<Source>,
    row: &[u8],
    direction: Direction,
    reader: &mut RowReader,
    out: &mut RowBatchBuilder,
) -> Result<Advance> {
    while let Some(cell) = family.cell().filter(|cell| cell.row == row) {
        match reader.feed(&cell, out)? {
            Advance::NextCell => family.advance()?,
            Advance::NextColumn => {
                let passed = next_column(family, row, direction, reader.wanted())?;
                reader.count_passed(passed);
            }
            advance => return Ok(advance),
        }
    }
    Ok(Advance::NextFamily)
}

/// Goes to the next column of the row, or to the one that is wanted if that is further on.
///
/// Answers how many cells it passed over one by one, besides the one it stood on.
fn next_column(family: &mut Merge<Source>, row: &[u8], direction: Direction, wanted: Option<&[u8]>) -> Result<u64> {
    let Some(cell) = family.cell() else { return Ok(0) };
    let left = cell.qualifier.to_vec();
    let is_there = |cell: &basalt_store::CellRef<'_>| {
        cell.row != row || (cell.qualifier != left && wanted.is_none_or(|wanted| cell.qualifier >= wanted))
    };
    let mut steps = 0;
    while family.cell().is_some_and(|cell| !is_there(&cell)) {
        // In reverse a seek knows no columns: step on.
        if steps >= STEPS_BEFORE_SEEK && direction == Direction::Forward {
            // The smallest qualifier behind the one left.
            let behind = [&left[..], &[0]].concat();
            let target = wanted.filter(|wanted| *wanted > &behind[..]).unwrap_or(&behind);
            family.seek(row, target)?;
            break;
        }
        family.advance()?;
        steps += 1;
    }
    Ok(steps.saturating_sub(1))
}

/// Goes behind the row; answers how many cells it passed over one by one.
fn skip_row(family: &mut Merge<Source>, row: &[u8], direction: Direction) -> Result<u64> {
    let mut steps = 0;
    while stands_on(family, row) {
        if steps >= STEPS_BEFORE_SEEK && direction == Direction::Forward {
            // The smallest key behind the row.
            family.seek(&[row, &[0]].concat(), &[])?;
            break;
        }
        family.advance()?;
        steps += 1;
    }
    Ok(steps)
}

/// A scan under way on its thread.
struct ScanWalk {
    table: Arc<Table>,
    shape: Arc<Shape>,
    scan: Scan,
    reader: RowReader,
    out: RowBatchBuilder,
    count: Arc<BlockCount>,
    sender: ScanSender,
}

/// Whether a scan goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Walk {
    On,
    Over,
}

impl ScanWalk {
    fn run(mut self) {
        // A reader must not take a scan that died for one that ended.
        let walked = catch_unwind(AssertUnwindSafe(|| self.walk().and_then(|_| self.send())));
        match walked.unwrap_or(Err(Error::WorkerDied { worker: "scan" })) {
            // The reader is gone: nobody is told.
            Ok(()) | Err(Error::Store(basalt_store::Error::Cancelled)) => {}
            Err(error) => drop(self.sender.send(Err(error.into()))),
        }
    }

    fn walk(&mut self) -> Result<Walk> {
        let mut next = self.first_region();
        while let Some(region) = next {
            region.count_read();
            if self.region(&region)? == Walk::Over {
                return Ok(Walk::Over);
            }
            next = self.region_behind(&region);
        }
        Ok(Walk::On)
    }

    fn first_region(&self) -> Option<Arc<Region>> {
        let (regions, Scan { start, reversed, .. }) = (self.table.regions(), &self.scan);
        let first = if *reversed && start.is_empty() { regions.last() } else { regions.of(start) };
        first.cloned()
    }

    /// The region that goes on where one ends, as regions are now: no row is in two, whatever was split meanwhile.
    fn region_behind(&self, region: &Region) -> Option<Arc<Region>> {
        let (regions, Scan { stop, reversed, .. }) = (self.table.regions(), &self.scan);
        let KeyRange { start, end } = &*region.range;
        let next = if *reversed {
            let is_over = start.is_empty() || (!stop.is_empty() && start <= stop);
            if is_over { None } else { regions.before(start) }
        } else {
            let is_over = end.is_empty() || (!stop.is_empty() && end > stop);
            if is_over { None } else { regions.of(end) }
        };
        next.cloned()
    }

    fn region(&mut self, region: &Region) -> Result<Walk> {
        let (view, read_point) = region.snapshot();
        let direction = if self.scan.reversed { Direction::Reverse } else { Direction::Forward };
        let families = open_families(&self.shape, &self.reader, |mut family, _| {
            family.direction = direction;
            family.read_point = read_point;
            family.set_time_range(self.scan.time_range);
            if !self.scan.cache_blocks {
                family.caching = Caching::Bypass;
            }
            family.count = Some(Arc::clone(&self.count));
            family.open(&view)
        });
        let mut rows = Rows { families, direction, row: Vec::new() };
        if self.scan.start.is_empty() {
            rows.rewind()?;
        } else {
            rows.seek(&self.scan.start)?;
        }
        while rows.find() {
            if self.sender.is_cancelled() || self.is_behind(&rows.row) || self.reader.is_full() {
                return Ok(Walk::Over);
            }
            if !self.scan.start_inclusive && rows.row == self.scan.start {
                rows.skip(&mut self.reader)?;
            } else if self.row(&mut rows)? == Walk::Over {
                return Ok(Walk::Over);
            }
        }
        Ok(Walk::On)
    }

    fn row(&mut self, rows: &mut Rows) -> Result<Walk> {
        match self.reader.begin_row(&rows.row, &mut self.out)? {
            RowVerdict::Pass => {
                rows.read(&mut self.reader, &mut self.out)?;
                self.reader.end_row(&mut self.out);
                rows.skip(&mut self.reader)?;
            }
            RowVerdict::Skip => rows.skip(&mut self.reader)?,
            RowVerdict::SeekTo(key) => rows.seek(&key)?,
            RowVerdict::Done => return Ok(Walk::Over),
        }
        if self.out.data_bytes() >= self.scan.batch_bytes {
            self.send()?;
        }
        Ok(Walk::On)
    }

    /// Whether a row lies past the scan's end.
    fn is_behind(&self, row: &[u8]) -> bool {
        let Scan { stop, stop_inclusive, reversed, .. } = &self.scan;
        if stop.is_empty() {
            return false;
        }
        let order = if *reversed { stop[..].cmp(row) } else { row.cmp(stop) };
        order.is_gt() || (order.is_eq() && !stop_inclusive)
    }

    /// Hands over what there is; waits while the reader is behind.
    fn send(&mut self) -> Result<()> {
        let cost = cost(&mut self.reader, &self.count);
        self.out.set_cost(cost);
        let batch = std::mem::take(&mut self.out).finish();
        // The last may have no rows, and tells what the scan looked at behind the one before.
        if !batch.is_empty() || cost != Cost::default() {
            self.sender.send(Ok(batch))?;
        }
        Ok(())
    }
}
