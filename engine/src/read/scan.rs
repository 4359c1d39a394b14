//! Scans: region by region, row by row, batch by batch.
//!
//! A scan of cells is read on a thread of its own, a few batches ahead of its reader. One of few rows is read where it is asked for, and
//! one that packs its rows, as queries do, on the threads that take its batches.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use basalt_store::{
    Cost, Filter, Packing, RowBatch, RowBatchBuilder, RowReader, RowVerdict, Scan, ScanSender, Scanner,
};

use super::cost;
use super::rows::{Rows, open_families};
use crate::block_count::BlockCount;
use crate::core::Core;
use crate::error::{Error, Result};
use crate::key_range::KeyRange;
use crate::merge::Direction;
use crate::region::Region;
use crate::sstable::{BlockCodecs, Caching};
use crate::table::{Shape, Table};

/// A scan that has looked at so many rows hands on what it has, be it nothing: whoever reads it may give up then.
const ROWS_A_LOOK: u64 = 1 << 16;

/// A scan of newest points begins with room for so many rows: it is asked for many series, and grows in steps otherwise.
const NEWEST_ROOM_ROWS: usize = 64;

impl Core {
    /// Begins a scan: a short one is read here, as a get, one that packs by its reader, any other on a thread of its own.
    pub(crate) fn scan(self: &Arc<Self>, table: Arc<Table>, scan: Scan) -> Result<Scanner> {
        let shape = table.shape();
        let reader = RowReader::for_scan(&shape.descriptor, &scan, self.clock.now())?;
        let rows_max = scan.limit_rows.filter(|rows| *rows <= Scan::SHORT_ROWS).unwrap_or(0);
        let out = match reader.packing() {
            Packing::Newest => RowBatchBuilder::with_packed_room(NEWEST_ROOM_ROWS),
            _ => RowBatchBuilder::with_room(usize::try_from(rows_max).unwrap_or(0)),
        };
        let count = Arc::new(BlockCount::default());
        let codecs = self.codecs.clone();
        let mut walk = ScanWalk { codecs, table, shape, scan, reader, out, count, begun: false, under_way: None };
        if walk.is_short()
            && let Some(batch) = walk.whole()
        {
            let mut batch = Some(batch);
            return Ok(Scanner::lazy(move || Some(batch.take()?.map_err(Into::into))));
        }
        if walk.reader.packing() != Packing::Cells {
            return Ok(walk.by_the_reader());
        }
        let (sender, scanner) = Scanner::channel(self.limits.scan_batches_ahead);
        if self.scan_threads.run(Box::new(move || walk.run(&sender))) {
            Ok(scanner)
        } else {
            Err(Error::NoScan { scans_max: self.limits.scans_max })
        }
    }
}

/// A scan, and how far it is.
struct ScanWalk {
    codecs: BlockCodecs,
    table: Arc<Table>,
    shape: Arc<Shape>,
    scan: Scan,
    reader: RowReader,
    out: RowBatchBuilder,
    count: Arc<BlockCount>,
    begun: bool,
    /// The region that is being read, and where in it; `None` before the first and behind the last.
    under_way: Option<(Arc<Region>, Rows)>,
}

/// Whether a scan goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Walk {
    On,
    Over,
}

impl ScanWalk {
    /// Whether it asks for so few rows that waking a thread would take longer. A filter may pass over any number of rows, and a row in
    /// pieces is of any length.
    fn is_short(&self) -> bool {
        self.scan.filter.is_none()
            && self.scan.batch_cells.is_none()
            && self.scan.limit_rows.is_some_and(|rows| rows <= Scan::SHORT_ROWS)
    }

    /// The only batch of a scan, or its failure; `None` when it takes more than one, or passes over many deleted rows.
    fn whole(&mut self) -> Option<Result<RowBatch>> {
        match self.fill(Scan::SHORT_ROWS + 1, None) {
            Ok(Walk::On) => None,
            Ok(Walk::Over) => {
                self.set_cost();
                Some(Ok(std::mem::take(&mut self.out).finish()))
            }
            Err(error) => Some(Err(error)),
        }
    }

    /// Makes each batch where it is asked for: columns are so little work that handing them over would be most of it.
    fn by_the_reader(self) -> Scanner {
        let mut walk = Some(self);
        Scanner::lazy(move || {
            let under_way = walk.as_mut()?;
            let filled = under_way.fill(ROWS_A_LOOK, None);
            under_way.set_cost();
            match filled {
                Ok(Walk::On) => Some(Ok(under_way.out.take())),
                Ok(Walk::Over) => Some(Ok(std::mem::take(&mut walk.take()?.out).finish())),
                Err(error) => {
                    walk = None;
                    Some(Err(error.into()))
                }
            }
        })
    }

    /// Hands over batch after batch, on a thread of its own.
    fn run(mut self, sender: &ScanSender) {
        // A reader must not take a scan that died for one that ended.
        let walked = catch_unwind(AssertUnwindSafe(|| self.walk(sender)));
        match walked.unwrap_or(Err(Error::WorkerDied { worker: "scan" })) {
            // The reader is gone: nobody is told.
            Ok(()) | Err(Error::Store(basalt_store::Error::Cancelled)) => {}
            Err(error) => drop(sender.send(Err(error.into()))),
        }
    }

    fn walk(&mut self, sender: &ScanSender) -> Result<()> {
        self.reader.hand_on_pieces(sender.clone(), self.scan.batch_bytes);
        while self.fill(ROWS_A_LOOK, Some(sender))? == Walk::On {
            self.set_cost();
            let batch = self.out.take();
            sender.send(Ok(batch))?;
        }
        // The last may have no rows, and tells what the scan looked at behind the one before.
        self.set_cost();
        let batch = std::mem::take(&mut self.out).finish();
        if !batch.is_empty() || batch.cost() != Cost::default() {
            sender.send(Ok(batch))?;
        }
        Ok(())
    }

    /// Reads on until the batch is full behind a row, as many rows were looked at, the reader is gone, or all is read. A batch that is full
    /// within a row of several pieces is handed on by the reader.
    fn fill(&mut self, mut rows_left: u64, sender: Option<&ScanSender>) -> Result<Walk> {
        if !std::mem::replace(&mut self.begun, true) {
            self.under_way = self.first_region().map(|region| self.open(region)).transpose()?;
        }
        while let Some((region, mut rows)) = self.under_way.take() {
            while rows.find() {
                if rows_left == 0 || self.out.data_bytes() >= self.scan.batch_bytes.max(1) {
                    self.under_way = Some((region, rows));
                    return Ok(Walk::On);
                }
                rows_left -= 1;
                let is_cancelled = sender.is_some_and(ScanSender::is_cancelled);
                if is_cancelled || self.is_behind(&rows.row) || self.reader.is_full() {
                    return Ok(Walk::Over);
                }
                if !self.scan.start_inclusive && rows.row == self.scan.start {
                    rows.skip(&mut self.reader)?;
                } else if self.row(&mut rows)? == Walk::Over {
                    return Ok(Walk::Over);
                }
            }
            self.under_way = self.region_behind(&region).map(|next| self.open(next)).transpose()?;
        }
        Ok(Walk::Over)
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

    /// Goes to where the scan begins in a region.
    fn open(&self, region: Arc<Region>) -> Result<(Arc<Region>, Rows)> {
        region.count_read();
        let (view, read_point) = region.snapshot();
        self.table.check_there()?;
        let direction = if self.scan.reversed { Direction::Reverse } else { Direction::Forward };
        let families = open_families(&self.shape, &self.reader, &self.codecs, |mut family, _| {
            family.direction = direction;
            family.read_point = read_point;
            family.set_time_range(self.scan.time_range);
            family.after = self.scan.after.map_or(0, |after| after.0);
            if !self.scan.cache_blocks {
                family.caching = Caching::IndexOnly;
            }
            if self.scan.reversed {
                family.packing = Packing::Cells;
            }
            family.first_cells = self.scan.filter.as_ref().is_some_and(Filter::is_first_key_only);
            family.count = Some(Arc::clone(&self.count));
            family.open(&view)
        });
        let mut rows = Rows::new(families, direction);
        if self.scan.start.is_empty() {
            rows.rewind()?;
        } else {
            rows.seek(&self.scan.start)?;
        }
        Ok((region, rows))
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
}
