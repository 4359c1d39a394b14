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
use crate::merge::{CellSource, Direction, Merge, Step};
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
    let mut rows = Rows::new(families, Direction::Forward);
    rows.row.extend_from_slice(wanted.row);
    rows.seek(wanted.row)?;
    // A row without a cell is no row: no filter is asked about it.
    if rows.families.iter().any(|family| family.on_row) && reader.begin_row(wanted.row, out)? == RowVerdict::Pass {
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
    families: Vec<FamilyWalk>,
    direction: Direction,
    /// The row that is being read.
    row: Vec<u8>,
}

impl Rows {
    fn new(families: Vec<Merge<Source>>, direction: Direction) -> Rows {
        let walk = |cells| FamilyWalk { cells, on_row: false, direction, left: Vec::new() };
        Rows { families: families.into_iter().map(walk).collect(), direction, row: Vec::new() }
    }

    fn rewind(&mut self) -> Result<()> {
        self.families.iter_mut().try_for_each(|family| family.cells.rewind())
    }

    fn seek(&mut self, target: &[u8]) -> Result<()> {
        let Rows { families, row, .. } = self;
        families.iter_mut().try_for_each(|family| family.seek(row, target, &[]))
    }

    /// Finds the next row that any family stands on; false at the end.
    fn find(&mut self) -> bool {
        let rows = self.families.iter().filter_map(|family| family.cells.cell().map(|cell| cell.row));
        let next = match self.direction {
            Direction::Forward => rows.min(),
            Direction::Reverse => rows.max(),
        };
        let Some(next) = next else { return false };
        self.row.clear();
        self.row.extend_from_slice(next);
        match &mut self.families[..] {
            [only] => only.on_row = true,
            several => several.iter_mut().for_each(|family| family.look(&self.row)),
        }
        true
    }

    /// Feeds the row's cells to the reader.
    fn read(&mut self, reader: &mut RowReader, out: &mut RowBatchBuilder) -> Result<()> {
        for (position, family) in self.families.iter_mut().enumerate() {
            if !family.on_row {
                continue;
            }
            reader.begin_family(position);
            if family.read(&self.row, reader, out)? == Advance::NextRow {
                break;
            }
        }
        Ok(())
    }

    /// Goes behind the row, wherever in it the families stand.
    fn skip(&mut self, reader: &mut RowReader) -> Result<()> {
        for family in &mut self.families {
            reader.count_passed(family.skip_row(&self.row)?);
        }
        Ok(())
    }
}

/// A family's cells, and whether they are still those of the row that is being read.
#[derive(Debug)]
struct FamilyWalk {
    cells: Merge<Source>,
    /// Kept by every step, so that keys are compared only where a step cannot tell.
    on_row: bool,
    direction: Direction,
    /// The qualifier of the column that was left last; kept for its memory.
    left: Vec<u8>,
}

impl FamilyWalk {
    fn look(&mut self, row: &[u8]) {
        self.on_row = self.cells.cell().is_some_and(|cell| cell.row == row);
    }

    fn advance(&mut self, row: &[u8]) -> Result<()> {
        match self.cells.advance()? {
            Step::SameRow => {}
            Step::OtherRow => self.on_row = false,
            Step::Untold => self.look(row),
        }
        Ok(())
    }

    fn seek(&mut self, row: &[u8], target: &[u8], qualifier: &[u8]) -> Result<()> {
        self.cells.seek(target, qualifier)?;
        self.look(row);
        Ok(())
    }

    /// Feeds the row's cells to the reader; answers how it wants to go on.
    fn read(&mut self, row: &[u8], reader: &mut RowReader, out: &mut RowBatchBuilder) -> Result<Advance> {
        while self.on_row {
            let Some(cell) = self.cells.cell() else { break };
            match reader.feed(&cell, out)? {
                Advance::NextCell => self.advance(row)?,
                Advance::NextColumn => {
                    let passed = self.next_column(row, reader.wanted())?;
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
    fn next_column(&mut self, row: &[u8], wanted: Option<&[u8]>) -> Result<u64> {
        let Some(cell) = self.cells.cell() else { return Ok(0) };
        self.left.clear();
        self.left.extend_from_slice(cell.qualifier);
        self.advance(row)?;
        let mut passed = 0;
        while self.on_row && self.cells.cell().is_some_and(|cell| !self.is_next(cell.qualifier, wanted)) {
            // In reverse a seek knows no columns: step on.
            if passed + 1 >= STEPS_BEFORE_SEEK && self.direction == Direction::Forward {
                // The smallest qualifier behind the one left.
                let behind = [&self.left[..], &[0]].concat();
                let target = wanted.filter(|wanted| *wanted > &behind[..]).unwrap_or(&behind);
                self.seek(row, row, target)?;
                break;
            }
            self.advance(row)?;
            passed += 1;
        }
        Ok(passed)
    }

    fn is_next(&self, qualifier: &[u8], wanted: Option<&[u8]>) -> bool {
        qualifier != self.left && wanted.is_none_or(|wanted| qualifier >= wanted)
    }

    /// Goes behind the row; answers how many cells it passed over one by one.
    fn skip_row(&mut self, row: &[u8]) -> Result<u64> {
        let mut steps = 0;
        while self.on_row {
            if steps >= STEPS_BEFORE_SEEK && self.direction == Direction::Forward {
                // The smallest key behind the row.
                self.seek(row, &[row, &[0]].concat(), &[])?;
                break;
            }
            self.advance(row)?;
            steps += 1;
        }
        Ok(steps)
    }
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
        let walked = catch_unwind(AssertUnwindSafe(|| self.walk().and_then(|_| self.send_last())));
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
        let mut rows = Rows::new(families, direction);
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
            self.set_cost();
            let batch = self.out.take();
            self.sender.send(Ok(batch))?;
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

    /// Tells in the batch what was examined for it.
    fn set_cost(&mut self) {
        let cost = cost(&mut self.reader, &self.count);
        self.out.set_cost(cost);
    }

    /// Hands over the last batch. It may have no rows, and tells what the scan looked at behind the one before.
    fn send_last(&mut self) -> Result<()> {
        self.set_cost();
        let batch = std::mem::take(&mut self.out).finish();
        if !batch.is_empty() || batch.cost() != Cost::default() {
            self.sender.send(Ok(batch))?;
        }
        Ok(())
    }
}
