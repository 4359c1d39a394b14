//! Rows looked up backwards in time, for many series at once.
//!
//! The series of one metric in one bucket share a stretch of keys, hour after hour. So before rows are got by key, one
//! row is scanned backwards: it tells the newest hour that holds anything of them, and what lies between costs nothing,
//! be it a minute or years. Where many of them are wanted, their rows from that hour on are then scanned; and since a
//! metric's series mostly end together, the next bucket is scanned from there at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use basalt_schema::{BaseTime, COUNTER_QUALIFIER, DATA_FAMILY, RowCell, RowPoints, Salt, Schema, UID_NAME_FAMILY, Uid};
use basalt_store::{Columns, Get, Packed, Packing, RowView, Scan};
use bytes::Bytes;
use foldhash::fast::RandomState;

use super::series::{MetSets, TagSets, Wanted};
use crate::answer::{Number, Point};
use crate::cancel::Budget;
use crate::get_size::GetSize;
use crate::workers::{Start, run_all};
use crate::{Error, Result};

/// Rows of one get at most, and the most hours of one series in it.
const GET_ROWS: usize = 128;
const GET_HOURS: u32 = 128;
/// Rows that one request may look for. Only series that ended long ago need many, where others of their metric go on.
const ROWS_MAX: u64 = 1 << 24;
/// A bucket's rows are scanned where at least this part of its series are looked for, and so many.
const SCAN_SERIES_PART: u64 = 4;
const SCAN_SERIES_MIN: usize = 8;

/// Adds when the meta table says that series were written last; seconds.
///
/// *Cost*: a get for [`GET_ROWS`] series.
pub(super) fn add_counted(schema: &Schema, sets: &MetSets, series: &mut [Wanted], budget: &Budget) -> Result<()> {
    let width = schema.layout().widths.metric;
    let tsuid = |of: &Wanted| Bytes::from([&*of.metric.encode(width), sets.get(of.tags)].concat());
    for chunk in series.chunks_mut(GET_ROWS) {
        budget.check()?;
        let tsuids: Vec<Bytes> = chunk.iter().map(tsuid).collect();
        let get = Get::rows(tsuids.clone()).with_columns(Columns::column(UID_NAME_FAMILY, COUNTER_QUALIFIER));
        let batch = schema.store().get(&schema.tables().meta, get).wait()?;
        let counted = batch.rows().filter_map(|row| {
            let written_s = row.cells().next()?.timestamp.0 / 1000;
            Some((row.key(), u32::try_from(written_s).ok()?))
        });
        let counted: HashMap<&[u8], u32, RandomState> = counted.collect();
        for (of, tsuid) in chunk.iter_mut().zip(&tsuids) {
            of.counted_s = counted.get(&**tsuid).copied();
        }
    }
    Ok(())
}

#[derive(Debug)]
pub(super) struct Lookup<'a> {
    pub(super) schema: &'a Schema,
    pub(super) now_ms: i64,
    /// How many hours before the first to look into.
    pub(super) hours: u64,
    pub(super) budget: &'a Budget,
    pub(super) sets: &'a TagSets,
    /// Rows that may still be looked for. Relaxed: the number alone is shared.
    pub(super) rows_left: AtomicU64,
    /// Of all gets of rows: those that come as cells may be large. Nothing is locked while it is held.
    pub(super) size: Mutex<GetSize>,
}

/// Where a metric's rows of a bucket are looked into: the next hour, and the last.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    salt: Salt,
    metric: Uid,
    next: BaseTime,
    last: BaseTime,
}

/// Series whose rows share a stretch of keys: their places among all that are wanted.
#[derive(Debug)]
struct Group {
    first: BaseTime,
    metric: Uid,
    salt: Salt,
    places: Vec<usize>,
    /// An hour to begin a scan with; any will do, one that others of the metric end in spares looking for it.
    likely: Option<BaseTime>,
}

impl Group {
    fn stretch(&self, hours: u64) -> Stretch {
        let back_s = hours.saturating_mul(BaseTime::SPAN_S.into());
        let last_s = u64::from(self.first.seconds()).saturating_sub(back_s);
        let last = BaseTime::of_seconds(u32::try_from(last_s).unwrap_or_default());
        Stretch { salt: self.salt, metric: self.metric, next: self.first, last }
    }
}

impl<'a> Lookup<'a> {
    pub(super) fn new(schema: &'a Schema, now_ms: i64, hours: u64, budget: &'a Budget, sets: &'a TagSets) -> Self {
        let (rows_left, size) = (AtomicU64::new(ROWS_MAX), Mutex::new(GetSize::new(schema)));
        Self { schema, now_ms, hours, budget, sets, rows_left, size }
    }

    /// The newest point of each, in their order.
    ///
    /// *Cost*: a row a series and hour, from the newest hour in which any series of the same metric and bucket has one
    /// until the first with a point; the hours of a get double, since who was not seen for long is not likely to be in
    /// the next hour. Buckets are looked into by several threads, where that takes long.
    ///
    /// # Errors
    /// `Invalid`: more than [`ROWS_MAX`] rows. A budget, the store's own.
    pub(super) fn run(&self, wanted: &[Wanted]) -> Result<Vec<Option<Point>>> {
        let mut groups = self.groups(wanted);
        if self.hours == 0 {
            return self.one_hour_each(groups, wanted);
        }
        self.find_likely(&mut groups)?;
        let rows = wanted.len() as u64;
        let look = |group| Ok((group, self.group(group, wanted)?));
        let answers = run_all(&groups, Start::of(self.schema), rows, self.budget, look)?;
        let mut found: Vec<Option<Point>> = vec![None; wanted.len()];
        for (Group { places, .. }, points) in answers {
            for (place, point) in places.iter().zip(points) {
                if let Some(of_place) = found.get_mut(*place) {
                    *of_place = point;
                }
            }
        }
        Ok(found)
    }

    /// Series by the hour to begin with, metric and bucket; those of a group by their tags, as their rows lie.
    fn groups(&self, wanted: &[Wanted]) -> Vec<Group> {
        let now_s = u32::try_from(self.now_ms / 1000).unwrap_or(u32::MAX);
        let layout = self.schema.layout();
        let mut groups: Vec<Group> = Vec::new();
        let mut known: HashMap<(BaseTime, Uid, Salt), usize, RandomState> = HashMap::default();
        let (mut metric, mut salting) = (Uid::ZERO, layout.salting.of_metric(&[]));
        // The groups of this metric and hour by their buckets.
        let mut of_salts: Vec<Option<usize>> = vec![None; layout.salts().len()];
        let mut first = BaseTime::of_seconds(now_s);
        for (place, series) in wanted.iter().enumerate() {
            let begins = series.counted_s.map_or(BaseTime::of_seconds(now_s), BaseTime::of_seconds);
            // Series come metric by metric.
            if series.metric != metric || begins != first {
                (metric, first) = (series.metric, begins);
                salting = layout.salting.of_metric(&metric.encode(layout.widths.metric));
                of_salts.fill(None);
            }
            let salt = self.sets.salt_in(salting, series.tags);
            let mut find = || {
                *known.entry((first, metric, salt)).or_insert_with(|| {
                    groups.push(Group { first, metric, salt, places: Vec::new(), likely: None });
                    groups.len() - 1
                })
            };
            let group = match of_salts.get_mut(salt.0 as usize) {
                Some(known) => *known.get_or_insert_with(find),
                None => find(),
            };
            if let Some(group) = groups.get_mut(group) {
                group.places.push(place);
            }
        }
        for group in &mut groups {
            group.places.sort_by_key(|place| wanted.get(*place).map(|series| series.tags));
        }
        groups
    }

    /// Looks where one group of each metric ends, and has all others begin there.
    fn find_likely(&self, groups: &mut [Group]) -> Result<()> {
        let mut hours: HashMap<Uid, Option<BaseTime>, RandomState> = HashMap::default();
        for group in groups {
            if !self.is_worth_scanning(group.metric, group.places.len()) {
                continue;
            }
            let stretch = group.stretch(self.hours);
            let known = hours.get(&group.metric).copied().flatten();
            let hour = match known.filter(|hour| (stretch.last..=group.first).contains(hour)) {
                Some(hour) => Some(hour),
                None => self.newest_hour(stretch)?,
            };
            hours.insert(group.metric, hour);
            group.likely = hour;
        }
        Ok(())
    }

    /// The newest point of each series of a group.
    fn group(&self, group: &Group, wanted: &[Wanted]) -> Result<Vec<Option<Point>>> {
        let mut series: Vec<Wanted> = Vec::with_capacity(group.places.len());
        series.extend(group.places.iter().filter_map(|place| wanted.get(*place)));
        let mut found: Vec<Option<Point>> = vec![None; series.len()];
        let mut open: Vec<usize> = (0..series.len()).collect();
        let mut stretch = group.stretch(self.hours);
        if self.is_worth_scanning(group.metric, open.len()) {
            let Some(hour) = group.likely else { return Ok(found) };
            self.scan(stretch, hour, &series, &mut found)?;
            open.retain(|place| found.get(*place).is_some_and(Option::is_none));
            if open.is_empty() || hour <= stretch.last {
                return Ok(found);
            }
            stretch.next = BaseTime::of_seconds(hour.seconds() - BaseTime::SPAN_S);
        }
        self.walk(stretch, &mut open, &series, &mut found)?;
        Ok(found)
    }

    /// Whether so many of a metric's series in one bucket are better found by a scan than one by one.
    fn is_worth_scanning(&self, metric: Uid, open: usize) -> bool {
        let buckets = self.schema.layout().salts().len() as u64;
        let series = self.schema.index().series_count(metric).div_ceil(buckets.max(1));
        open >= SCAN_SERIES_MIN && open as u64 * SCAN_SERIES_PART >= series
    }

    /// Looks into all rows of a stretch from an hour on, for series in the order of their tags.
    fn scan(&self, stretch: Stretch, from: BaseTime, series: &[Wanted], found: &mut [Option<Point>]) -> Result<()> {
        let layout = self.schema.layout();
        let scan = Scan::range(
            layout.range_start(stretch.salt, stretch.metric, from),
            layout.range_start(stretch.salt, stretch.metric, after(stretch.next)),
        );
        let scan = scan.with_columns(Columns::family(DATA_FAMILY)).with_packing(Packing::Newest);
        let set_at = |place: usize| series.get(place).map(|series| series.tags);
        let mut at = 0;
        let mut scratch = RowPoints::default();
        let mut scanner = self.schema.store().scan(&self.schema.tables().data, scan)?;
        while let Some(batch) = scanner.step_wait() {
            let batch = batch?;
            self.charge(batch.len())?;
            let mut decoded = 0;
            for row in batch.rows() {
                let key = layout.decode(row.key())?;
                let is_row_of = |set: &u32| self.sets.get(*set) == key.tags_bytes();
                // Fast path: the rows of an hour lie in the order of the series.
                let set = set_at(at).filter(is_row_of).or_else(|| {
                    at = series.partition_point(|series| self.sets.get(series.tags) < key.tags_bytes());
                    set_at(at).filter(is_row_of)
                });
                let Some(set) = set else { continue };
                let base_ms = i64::from(key.base().seconds()) * 1000;
                let newest = self.newest_of(&row, base_ms, &mut scratch)?;
                decoded += newest.map_or(0, |(_, count)| count);
                // Who is asked for twice is twice among the series.
                while set_at(at) == Some(set) {
                    keep_newest(found, at, newest.map(|(point, _)| point));
                    at += 1;
                }
            }
            self.budget.spend(decoded, batch.data_bytes() as u64)?;
        }
        Ok(())
    }

    /// Counts rows that are looked for.
    fn charge(&self, rows: usize) -> Result<()> {
        let less = |left: u64| left.checked_sub(rows as u64);
        let taken = self.rows_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        taken.map(drop).map_err(|_| Error::TooManyLookUps { limit: ROWS_MAX })
    }

    /// Looks into one hour of each series, wherever they lie.
    fn one_hour_each(&self, groups: Vec<Group>, wanted: &[Wanted]) -> Result<Vec<Option<Point>>> {
        let mut found: Vec<Option<Point>> = vec![None; wanted.len()];
        let mut rows = Vec::new();
        for Group { first, places, .. } in groups {
            rows.extend(places.into_iter().map(|place| (place, first)));
        }
        self.look(&rows, wanted, &mut found)?;
        Ok(found)
    }

    /// Looks for these series, from the newest hour that holds any of their kind backwards.
    fn walk(
        &self,
        mut stretch: Stretch,
        open: &mut Vec<usize>,
        series: &[Wanted],
        found: &mut [Option<Point>],
    ) -> Result<()> {
        let mut hours = 1;
        while !open.is_empty() {
            let Some(newest) = self.newest_hour(stretch)? else {
                return Ok(());
            };
            let before = newest.seconds().saturating_sub(stretch.last.seconds()) / BaseTime::SPAN_S;
            let hours_now = hours.min(before + 1);
            let bases: Vec<BaseTime> =
                (0..hours_now).map(|back| BaseTime::of_seconds(newest.seconds() - back * BaseTime::SPAN_S)).collect();
            let rows_of = |place: &usize| bases.iter().map(|base| (*place, *base)).collect::<Vec<_>>();
            for chunk in open.chunks((GET_ROWS / bases.len()).max(1)) {
                self.look(&chunk.iter().flat_map(rows_of).collect::<Vec<_>>(), series, found)?;
            }
            open.retain(|place| found.get(*place).is_some_and(Option::is_none));
            if before < hours_now {
                return Ok(());
            }
            stretch.next = BaseTime::of_seconds(newest.seconds() - hours_now * BaseTime::SPAN_S);
            hours = (hours * 2).min(GET_HOURS);
        }
        Ok(())
    }

    /// The newest hour of a stretch that has a row; `None` if there is none.
    fn newest_hour(&self, stretch: Stretch) -> Result<Option<BaseTime>> {
        let layout = self.schema.layout();
        let mut scan = Scan::range(
            layout.range_start(stretch.salt, stretch.metric, after(stretch.next)),
            layout.range_start(stretch.salt, stretch.metric, stretch.last),
        );
        scan = scan.with_columns(Columns::family(DATA_FAMILY));
        (scan.reversed, scan.start_inclusive, scan.stop_inclusive, scan.limit_rows) = (true, false, true, Some(1));
        let mut scanner = self.schema.store().scan(&self.schema.tables().data, scan)?;
        let mut newest = None;
        while let Some(batch) = scanner.step_wait() {
            let batch = batch?;
            self.budget.spend(0, batch.data_bytes() as u64)?;
            if let Some(row) = batch.row(0) {
                newest = Some(BaseTime::of_seconds(layout.decode(row.key())?.base().seconds()));
            }
        }
        self.budget.check()?;
        Ok(newest)
    }

    /// Looks into rows: the place of a series, and an hour.
    fn look(&self, mut rows: &[(usize, BaseTime)], series: &[Wanted], found: &mut [Option<Point>]) -> Result<()> {
        while !rows.is_empty() {
            let at_once = self.size.lock().unwrap_or_else(PoisonError::into_inner).rows();
            let (now, later) = rows.split_at(at_once.min(rows.len()));
            self.look_at_once(now, series, found)?;
            rows = later;
        }
        Ok(())
    }

    /// The same by one get.
    fn look_at_once(&self, rows: &[(usize, BaseTime)], series: &[Wanted], found: &mut [Option<Point>]) -> Result<()> {
        self.charge(rows.len())?;
        let mut keys = Vec::with_capacity(rows.len());
        let layout = self.schema.layout();
        let mut places: HashMap<(Uid, &[u8]), Vec<usize>, RandomState> = HashMap::default();
        for (place, base) in rows {
            let Some(wanted) = series.get(*place) else { continue };
            let tags = self.sets.get(wanted.tags);
            let of_series = places.entry((wanted.metric, tags)).or_default();
            if of_series.last() != Some(place) {
                of_series.push(*place);
            }
            let mut key = layout.range_start(self.sets.salt_of(wanted, layout), wanted.metric, *base);
            key.extend_from_slice(tags);
            keys.push(Bytes::from(key));
        }
        let get = Get::rows(keys).with_columns(Columns::family(DATA_FAMILY)).with_packing(Packing::Newest);
        let batch = self.schema.store().get(&self.schema.tables().data, get).wait()?;
        self.size.lock().unwrap_or_else(PoisonError::into_inner).learn(&batch);
        self.budget.while_held(batch.memory_bytes() as u64, || {
            let mut scratch = RowPoints::default();
            let mut decoded = 0;
            for row in batch.rows() {
                let key = layout.decode(row.key())?;
                let base_ms = i64::from(key.base().seconds()) * 1000;
                let Some((point, count)) = self.newest_of(&row, base_ms, &mut scratch)? else {
                    continue;
                };
                decoded += count;
                for place in places.get(&(key.metric(), key.tags_bytes())).into_iter().flatten() {
                    keep_newest(found, *place, Some(point));
                }
            }
            self.budget.spend(decoded, batch.data_bytes() as u64)
        })
    }

    /// A row's newest point, and how many points were decoded; a row may hold annotations alone.
    fn newest_of(&self, row: &RowView<'_>, base_ms: i64, scratch: &mut RowPoints) -> Result<Option<(Point, u64)>> {
        let at = |offset_ms, number| Point { time_ms: base_ms + i64::from(offset_ms), number };
        if let Some(packed) = row.packed() {
            let count = if let Packed::Points(row) = packed { row.words.len() as u64 } else { 1 };
            return Ok(packed
                .newest()
                .map(|last| (at(last.offset_ms, Number::of_word(last.word, last.is_float)), count)));
        }
        scratch.decode(row.cells().map(RowCell::from), self.schema.config().duplicates())?;
        let number = scratch.value(scratch.len().saturating_sub(1)).map(Number::from);
        let newest = scratch.offsets_ms().last().copied().zip(number);
        Ok(newest.map(|(offset_ms, number)| (at(offset_ms, number), scratch.len() as u64)))
    }
}

/// The hour after one; at the end of time there is none.
pub(super) fn after(hour: BaseTime) -> BaseTime {
    hour.next().unwrap_or(BaseTime::from_be_bytes([u8::MAX; BaseTime::BYTES]))
}

/// Keeps a point of the series at `place`, if there is one, unless a newer one is kept.
fn keep_newest(found: &mut [Option<Point>], place: usize, point: Option<Point>) {
    let Some(kept) = found.get_mut(place) else { return };
    let is_newer = |point: &Point| kept.is_none_or(|kept| kept.time_ms < point.time_ms);
    *kept = point.filter(is_newer).or(*kept);
}
