//! Series that others wrote: where tables are shared, the index knows what was seen and no more, so whoever needs all
//! series of a metric reads row keys first.
//!
//! A query needs the rows too, of most of these series. So it reads them whole, and keeps them for the fan-out as long as they are
//! not too large; beyond that keys alone are read, and the rows once more.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use basalt_schema::{BaseTime, DATA_FAMILY, RowPoints, Schema, Tsuid, UID_NAME_FAMILY, Uid};
use basalt_store::{Columns, Filter, ListOperator, RowBatch, Scan, TableName};
use bytes::Bytes;

use crate::Result;
use crate::cancel::Budget;
use crate::held::{Held, Keep, by_columns};
use crate::hours::Hours;
use crate::piece::{Piece, pieces};
use crate::rollup::Attempt;
use crate::row_filter::RowFilter;
use crate::row_range::RowRanges;
use crate::workers::{Start, run_all};

/// Bytes of rows that are kept.
const HELD_BYTES_MAX: u64 = 32 << 20;

/// Adds every series of a metric that has a row in the window and passes the filter; gives those rows where they are not too
/// large and `keep` says so.
///
/// *Cost*: a scan of every piece of every bucket, as many at once as a fan-out may have.
///
/// # Errors
/// `Throttled`: the index is full. The store's own, a budget.
pub(crate) fn of_attempt(
    schema: &Schema,
    metric: Uid,
    attempt: &Attempt,
    (filter, keep): (Option<&RowFilter>, Keep),
    budget: &Budget,
) -> Result<Option<Held>> {
    let Some(hours) = Hours::of(&attempt.window, attempt.read.as_ref().map(|read| &read.rollup)) else {
        return Ok(None);
    };
    let listed = filter.and_then(|filter| filter.listed.as_ref());
    let reader = Reader {
        schema,
        table: &attempt.table,
        metric,
        times: hours.from..hours.to,
        filter: filter.map(|filter| &filter.pattern),
        ranges: listed.and_then(|listed| RowRanges::new(schema, metric, hours.iter(), listed)),
        budget,
        held_bytes_max: if keep == Keep::Nothing { 0 } else { HELD_BYTES_MAX },
        is_kept: AtomicBool::new(keep != Keep::Nothing),
        has_points: keep == Keep::Points && attempt.read.is_none(),
        held_bytes: AtomicU64::new(0),
    };
    reader.read()
}

/// Adds every series of a metric that has a row of these base times.
///
/// # Errors
/// As [`of_attempt`].
pub(crate) fn within(schema: &Schema, metric: Uid, times: Range<BaseTime>, budget: &Budget) -> Result<()> {
    Reader {
        schema,
        table: &schema.tables().data,
        metric,
        times,
        filter: None,
        ranges: None,
        budget,
        held_bytes_max: 0,
        is_kept: AtomicBool::default(),
        has_points: false,
        held_bytes: AtomicU64::default(),
    }
    .read()
    .map(drop)
}

/// Adds every series of a metric that the meta table tells of.
///
/// *Cost*: a scan of the metric's keys there.
///
/// # Errors
/// As [`of_attempt`].
pub(crate) fn in_meta(schema: &Schema, metric: Uid, budget: &Budget) -> Result<()> {
    let widths = schema.layout().widths;
    let scan = Scan::prefix(&metric.encode(widths.metric)).with_columns(Columns::family(UID_NAME_FAMILY));
    let mut scanner = schema.store().scan(&schema.tables().meta, scan.with_filter(keys_only()))?;
    while let Some(batch) = scanner.step_wait() {
        let batch = batch?;
        for row in batch.rows() {
            schema.index().add(&Tsuid::from_bytes(row.key(), widths)?)?;
        }
        budget.spend(0, batch.data_bytes() as u64)?;
    }
    Ok(())
}

fn keys_only() -> Filter {
    Filter::List(ListOperator::All, vec![Filter::FirstKeyOnly, Filter::KeyOnly])
}

/// Reads the pieces.
struct Reader<'a> {
    schema: &'a Schema,
    table: &'a TableName,
    metric: Uid,
    times: Range<BaseTime>,
    filter: Option<&'a Filter>,
    /// Where the rows are that the filter takes; `None`: anywhere.
    ranges: Option<RowRanges<'a>>,
    budget: &'a Budget,
    held_bytes_max: u64,
    /// Whether rows are kept, until they are too large. Relaxed, as is the count: who sees it late keeps a batch more.
    is_kept: AtomicBool,
    held_bytes: AtomicU64,
    /// Whether rows of plain points are kept by columns.
    has_points: bool,
}

impl Reader<'_> {
    fn read(&self) -> Result<Option<Held>> {
        let pieces: Vec<(usize, Piece)> =
            pieces(self.schema, self.metric, &self.times).into_iter().enumerate().collect();
        let read = |(place, piece): &(usize, Piece)| Ok((*place, piece.salt, self.piece(piece)?));
        let rows = run_all(&pieces, Start::TOGETHER, u64::MAX, self.budget, read)?;
        if self.is_kept.load(Ordering::Relaxed) {
            // They are charged for when they are taken apart.
            self.budget.forget(0, self.held_bytes.load(Ordering::Relaxed));
            return Ok(Some(Held::of_pieces(rows)));
        }
        self.budget.give_back(self.held_bytes.load(Ordering::Relaxed));
        Ok(None)
    }

    fn piece(&self, piece: &Piece) -> Result<Vec<RowBatch>> {
        let Some(mut scan) = self.scan(piece) else { return Ok(Vec::new()) };
        let mut held = Vec::new();
        if self.is_kept.load(Ordering::Relaxed) {
            let Some(last) = self.rows(scan.clone(), &mut held)? else { return Ok(held) };
            (scan.start, scan.start_inclusive) = (last, false);
        }
        let keys_only = keys_only();
        scan.filter = Some(match scan.filter {
            Some(filter) => Filter::List(ListOperator::All, vec![filter, keys_only]),
            None => keys_only,
        });
        let mut scanner = self.schema.store().scan(self.table, scan)?;
        while let Some(batch) = scanner.step_wait() {
            let batch = batch?;
            self.add(&batch)?;
            self.budget.spend(0, batch.data_bytes() as u64)?;
        }
        Ok(Vec::new())
    }

    /// The scan of a piece's rows; `None` where none of them can be wanted.
    fn scan(&self, piece: &Piece) -> Option<Scan> {
        let mut scan = Scan::range(piece.start.clone(), piece.stop.clone());
        scan.columns = Columns::family(DATA_FAMILY);
        scan.filter = self.filter.cloned();
        let Some(ranges) = &self.ranges else { return Some(scan) };
        let ranges = ranges.within(piece);
        (scan.start, scan.stop) = (ranges.first()?.start.clone(), ranges.last()?.stop.clone());
        if ranges.len() > 1 {
            let filters = [Filter::MultiRowRange(ranges)].into_iter().chain(scan.filter);
            scan.filter = Some(Filter::List(ListOperator::All, filters.collect()));
        }
        Some(scan)
    }

    /// Keeps rows up to the bound; gives the last one that was read where there is no room for more.
    fn rows(&self, scan: Scan, held: &mut Vec<RowBatch>) -> Result<Option<Bytes>> {
        let mut scanner = self.schema.store().scan(self.table, scan)?;
        let mut points = RowPoints::default();
        while let Some(batch) = scanner.step_wait() {
            let mut batch = batch?;
            if batch.is_empty() {
                self.budget.check()?;
                continue;
            }
            self.add(&batch)?;
            if self.has_points {
                batch = by_columns(&batch, self.schema.config().duplicates(), &mut points)?;
            }
            let bytes = batch.data_bytes() as u64;
            self.budget.reserve(bytes)?;
            let before = self.held_bytes.fetch_add(bytes, Ordering::Relaxed);
            self.budget.spend(0, bytes)?;
            let last = batch.len().checked_sub(1).and_then(|at| batch.row(at));
            let last = last.map(|row| Bytes::copy_from_slice(row.key()));
            held.push(batch);
            if before + bytes > self.held_bytes_max || !self.is_kept.load(Ordering::Relaxed) {
                self.is_kept.store(false, Ordering::Relaxed);
                held.clear();
                return Ok(last);
            }
        }
        Ok(None)
    }

    fn add(&self, batch: &RowBatch) -> Result<()> {
        let layout = self.schema.layout();
        for row in batch.rows() {
            self.schema.index().add(&layout.decode(row.key())?.tsuid())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;
    use crate::memory::MemoryPool;
    use crate::{Cancel, Limits};
    use basalt_schema::{Salt, Salting};

    /// Rows of three hosts, some of whose series are not known yet.
    fn read(held_bytes_max: u64) -> (usize, Option<usize>, u64) {
        let fixture = Fixture::with(&[]);
        for (host, value) in [("a", 1), ("b", 2), ("c", 3)] {
            fixture.put_unseen("m", ("host", host), 1_700_000_000, value);
        }
        let schema = fixture.another(true);
        let (held, charged) = read_hours(&schema, 1, held_bytes_max);
        let rows = held.map(|held| held.all().iter().flat_map(|(_, rows)| rows).map(RowBatch::len).sum());
        (schema.index().len(), rows, charged)
    }

    /// What is held of so many hours of `m`, and what was charged for it.
    fn read_hours(schema: &Schema, hours: u32, held_bytes_max: u64) -> (Option<Held>, u64) {
        let metric = schema.uids().of(basalt_schema::UidKind::Metric).uid("m").unwrap();
        let pool = MemoryPool::new(0);
        let budget = Budget::new(Limits::default(), &Cancel::new(), &pool);
        let start = 1_699_999_200;
        let times = BaseTime::of_seconds(start)..BaseTime::of_seconds(start + hours * BaseTime::SPAN_S);
        let (table, filter, held_bytes) = (&schema.tables().data, None, AtomicU64::new(0));
        let is_kept = AtomicBool::new(held_bytes_max > 0);
        let ranges = None;
        let reader = Reader {
            schema,
            table,
            metric,
            times,
            filter,
            ranges,
            budget: &budget,
            held_bytes_max,
            is_kept,
            held_bytes,
            has_points: false,
        };
        let held = reader.read().unwrap();
        let charged = reader.held_bytes.load(Ordering::Relaxed);
        budget.settle(0);
        (held, charged)
    }

    #[test]
    fn rows_read_in_pieces_are_held_in_the_order_of_their_keys() {
        let fixture = Fixture::new(Salting::NONE);
        for hour in 0..40 {
            fixture.put_unseen("m", ("host", "a"), 1_700_000_000 + hour * 3600, hour);
        }
        let (held, _) = read_hours(&fixture.another(true), 40, HELD_BYTES_MAX);
        let held = held.unwrap();
        assert_eq!(held.all().len(), 4, "scanned at once");
        let scrambled = [2, 0, 3, 1].map(|place| (place, Salt(0), held.all()[place].1.clone()));
        let held = Held::of_pieces(scrambled.into());
        let keys: Vec<&[u8]> = held.of(Salt(0)).flat_map(RowBatch::rows).map(|row| row.key()).collect();
        assert_eq!(keys.len(), 40);
        assert!(keys.is_sorted());
    }

    #[test]
    fn rows_are_kept_up_to_a_bound_and_series_found_in_any_case() {
        let (series, rows, charged) = read(HELD_BYTES_MAX);
        assert_eq!((series, rows), (3, Some(3)));
        assert!(charged > 0);
        assert_eq!(read(1).0, 3);
        assert_eq!(read(1).1, None);
        assert_eq!(read(0), (3, None, 0));
    }
}
