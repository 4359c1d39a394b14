//! The series index: which series there are, and which of them have a tag.
//!
//! ```text
//! metric ─┬─ every series            bitmap            SeriesId ─ TSUID
//!         ├─ tag key                 bitmap
//!         ├─ tag key = tag value     bitmap
//!         └─ TSUID → SeriesId        in TSUID order
//! ```
//!
//! Derived: everything in it is told by the row keys of the data table, and [`SeriesIndex::rebuild`] reads them again. Between two
//! runs it is kept in a log beside the tables (`keeping`). Series are added when ingest first meets them, and leave some time after
//! their last row (`departures`), so an answer may hold series whose rows are gone, and never lacks one that has rows.
//!
//! Invariants: a `SeriesId` found in a bitmap has a TSUID until the series leaves; ids are given in order of arrival, of this process
//! only, and none twice: a series that comes again has another.

mod ascending;
mod block;
mod departures;
mod gate;
mod handles;
mod id_table;
mod keeping;
mod pieces;
mod postings;
mod rebuild;
mod series_table;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use roaring::RoaringBitmap;

#[cfg(any(test, fuzzing))]
pub(crate) use self::block::law as series_block;
use self::block::{Scope, TaggedMetrics};
pub(crate) use self::departures::Departures;
pub use self::departures::{Departed, Forget};
use self::gate::Gate;
pub use self::gate::Writing;
pub use self::handles::RowHandles;
pub use self::id_table::IdTable;
pub(crate) use self::keeping::{Keeping, Rows};
use self::postings::MetricSeries;
pub use self::rebuild::{LogRead, RebuildReport};
use self::series_table::SeriesTable;
use crate::tsuid::tag_pairs;
use crate::{Error, Result, TagPair, Tsuid, Uid, UidWidths};

/// TSUIDs looked up before the index is free for who adds to it.
const TSUIDS_AT_ONCE: usize = 4_096;
/// Series that leave before the index is free for others.
const LEAVING_AT_ONCE: usize = 512;

/// A series, by the order in which this process met it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesId(pub u32);

/// Every series of the data table, by metric and by tag.
///
/// *Cost*: at most 110 bytes a series where ten metrics share their eight tags, of which one is a host's own; 190 where no two
/// series share theirs (tested from 100,000 series on; `benches/README.md` has what is resident).
///
/// ```
/// use basalt_schema::{SeriesIndex, TagPair, Tsuid, Uid, UidWidths};
/// let index = SeriesIndex::new(UidWidths::default(), 1000);
/// let pair = |key, value| TagPair { key: Uid::new(key), value: Uid::new(value) };
/// let id = index.add(&Tsuid::new(Uid::new(1), &[pair(1, 1), pair(2, 5)], UidWidths::default()))?;
/// assert!(index.with_tag(Uid::new(1), pair(2, 5)).contains(id.0));
/// assert!(index.with_tag(Uid::new(1), pair(2, 6)).is_empty());
/// # Ok::<(), basalt_schema::Error>(())
/// ```
#[derive(Debug)]
pub struct SeriesIndex {
    widths: UidWidths,
    series_max: u32,
    handles: RowHandles,
    /// Guards which metrics there are. Rank 1.
    metrics: RwLock<BTreeMap<Uid, Arc<MetricIndex>>>,
    /// Guards which series each id stands for. Rank 3: taken with a metric's lock held.
    table: RwLock<SeriesTable>,
    gate: Gate,
}

/// The series of one metric.
#[derive(Debug)]
struct MetricIndex {
    /// The metric's number in the table.
    number: u32,
    /// Guards all of a metric, so that a reader sees a series in all of its bitmaps or in none, and knows its id only
    /// when it is in all of them. Rank 2.
    series: RwLock<MetricSeries>,
}

impl SeriesIndex {
    /// An empty index of at most `series_max` series.
    pub fn new(widths: UidWidths, series_max: u32) -> Self {
        let handles = RowHandles::new();
        Self {
            widths,
            series_max,
            handles,
            metrics: RwLock::default(),
            table: RwLock::default(),
            gate: Gate::default(),
        }
    }

    /// Whoever writes a row of a series holds this from before the series is looked up, here or in what was kept of an earlier look,
    /// until the store has the row: so the series does not leave in between.
    pub fn writing(&self) -> Writing<'_> {
        self.gate.enter()
    }

    /// Adds a series, or finds it; one that was about to leave stays. *Cost*: for a known series three shared locks and three look-ups.
    ///
    /// # Errors
    /// `Throttled`: the index is full. A known series is found all the same.
    pub fn add(&self, tsuid: &Tsuid) -> Result<SeriesId> {
        let (metric, tags) = tsuid.parts(self.widths);
        self.add_parts(metric, tags)
    }

    /// Adds the series of a metric and the bytes of its tag pairs, or finds it.
    fn add_parts(&self, metric: Uid, tags: &[u8]) -> Result<SeriesId> {
        let metric = self.metric_or_new(metric);
        let known_set = {
            let (_held, table) = (read(&metric.series), read(&self.table));
            let set = table.set(tags);
            let known = set.and_then(|set| table.find_in(metric.number, set));
            if let Some(id) = known.filter(|id| !table.leaving().contains(*id)) {
                return Ok(SeriesId(id));
            }
            set
        };
        let mut series = write(&metric.series);
        let id = {
            let mut table = write(&self.table);
            // A set keeps its number, and may have gone meanwhile; one that was not known may have come.
            let set = known_set.filter(|set| table.has_set(*set)).or_else(|| table.set(tags));
            if let Some(id) = set.and_then(|set| table.find_in(metric.number, set)) {
                table.stay(id);
                return Ok(SeriesId(id));
            }
            if table.len() >= self.series_max as usize || table.end() >= u32::MAX as usize {
                return Err(Error::IndexFull { max: self.series_max });
            }
            let set = set.unwrap_or_else(|| table.add_set(tags));
            table.push(metric.number, set)
        };
        series.push(id, tag_pairs(tags, self.widths));
        Ok(SeriesId(id))
    }

    /// The ids that stand for series, of those up to this one.
    fn ids_before(&self, end: u32) -> RoaringBitmap {
        const AT_ONCE: u32 = 64 * 1024;
        let mut ids = RoaringBitmap::new();
        for start in (0..end).step_by(AT_ONCE as usize) {
            let table = read(&self.table);
            ids.extend(table.numbers(start..end.min(start.saturating_add(AT_ONCE))));
        }
        ids
    }

    /// Says which series are about to leave, in the place of those said before: those that are added again until then stay.
    fn set_leaving(&self, ids: RoaringBitmap) {
        write(&self.table).set_leaving(ids);
    }

    /// Those that are about to leave.
    fn leaving(&self) -> RoaringBitmap {
        read(&self.table).leaving().clone()
    }

    /// Has those leave that are about to; how many. *Cost*: a microsecond for each of its tags; others wait for 512 series at a time.
    fn let_leave(&self) -> u64 {
        let leaving: Vec<u32> = self.leaving().into_iter().collect();
        let mut gone = 0;
        for some in leaving.chunks(LEAVING_AT_ONCE) {
            let mut of_metrics = BTreeMap::<Uid, Vec<u32>>::new();
            for id in some {
                let metric = read(&self.table).get(*id).map(|(metric, _)| metric);
                if let Some(metric) = metric {
                    of_metrics.entry(metric).or_default().push(*id);
                }
            }
            for (metric, ids) in of_metrics {
                let metric = read(&self.metrics).get(&metric).map(Arc::clone);
                gone += metric.map_or(0, |metric| self.remove(&metric, &ids));
            }
            write(&self.table).shrink_near(some);
        }
        let metrics: Vec<_> = read(&self.metrics).values().map(Arc::clone).collect();
        for metric in &metrics {
            write(&metric.series).shrink();
        }
        while write(&self.table).pack_tags() {}
        write(&self.table).shrink();
        gone
    }

    /// Takes those of a metric's series out that are about to leave still.
    fn remove(&self, metric: &MetricIndex, ids: &[u32]) -> u64 {
        let (mut series, mut table, mut gone) = (write(&metric.series), write(&self.table), 0);
        for id in ids.iter().filter(|id| table.leaving().contains(**id)).copied().collect::<Vec<_>>() {
            table.get(id).into_iter().for_each(|(_, tags)| series.remove(id, tag_pairs(tags, self.widths)));
            table.remove(id);
            gone += 1;
        }
        gone
    }

    /// Adds what a block says.
    fn add_sets(&self, sets: &[TaggedMetrics]) -> Result<()> {
        let mut series = sets.iter().flat_map(|set| set.metrics.iter().map(|metric| (*metric, &set.tags)));
        series.try_for_each(|(metric, tags)| self.add_parts(metric, tags).map(drop))
    }

    /// Where the ids end of a block that begins with `start`, which is to hold none from `end` on: as many as it has room for the tags of.
    fn block_end(&self, start: usize, end: usize) -> usize {
        let (table, mut bytes) = (read(&self.table), 0);
        let fits = |id: &usize| {
            let tags = u32::try_from(*id).ok().and_then(|id| table.tags(id));
            bytes += tags.map_or(0, |(_, tags)| tags.len());
            bytes <= block::COUNT_MAX
        };
        start + (start..end).take_while(fits).count().max(1).min(end - start)
    }

    /// A block of the series of some ids.
    fn block(&self, scope: Scope, ids: Range<usize>) -> Vec<u8> {
        let [start, end] = [ids.start, ids.end].map(|id| u32::try_from(id).unwrap_or(u32::MAX));
        let sets = read(&self.table).sets(start..end);
        block::encode(scope, &sets)
    }

    /// The id of a metric's series; the metric's lock is held, so that it is in all bitmaps.
    fn find(&self, metric: &MetricIndex, _held: &MetricSeries, tags: &[u8]) -> Option<SeriesId> {
        read(&self.table).find(metric.number, tags).map(SeriesId)
    }

    /// The id of a series, if it is known.
    pub fn id(&self, tsuid: &Tsuid) -> Option<SeriesId> {
        let (metric, tags) = tsuid.parts(self.widths);
        let metric = read(&self.metrics).get(&metric).map(Arc::clone)?;
        self.find(&metric, &read(&metric.series), tags)
    }

    /// The TSUID of an id.
    pub fn tsuid(&self, id: SeriesId) -> Option<Tsuid> {
        read(&self.table).get(id.0).map(|(metric, tags)| Tsuid::from_parts(metric, tags, self.widths))
    }

    /// The TSUIDs of a set of ids, in TSUID order: the order of their rows within a bucket.
    pub fn tsuids(&self, ids: &RoaringBitmap) -> Vec<(SeriesId, Tsuid)> {
        let mut found: Vec<(SeriesId, Tsuid)> = {
            let table = read(&self.table);
            let tsuid = |id| table.get(id).map(|(metric, tags)| Tsuid::from_parts(metric, tags, self.widths));
            ids.iter().filter_map(|id| Some((SeriesId(id), tsuid(id)?))).collect()
        };
        found.sort_unstable_by(|(_, a), (_, b)| a.cmp(b));
        found
    }

    /// The first `count` TSUIDs of a set of ids, in TSUID order.
    ///
    /// *Cost*: memory for twice as many, and for 4,096 more; new series are added meanwhile.
    pub fn first_tsuids(&self, ids: &RoaringBitmap, count: usize) -> Vec<Tsuid> {
        let room = count.saturating_mul(2).max(TSUIDS_AT_ONCE);
        let (mut found, mut ids) = (Vec::new(), ids.iter().peekable());
        while ids.peek().is_some() {
            let some = ids.by_ref().take(TSUIDS_AT_ONCE.min(room - found.len()));
            let table = read(&self.table);
            let tsuids = some.filter_map(|id| table.get(id));
            found.extend(tsuids.map(|(metric, tags)| Tsuid::from_parts(metric, tags, self.widths)));
            drop(table);
            if found.len() == room {
                found.select_nth_unstable(count);
                found.truncate(count);
            }
        }
        found.sort_unstable();
        found.truncate(count);
        found
    }

    /// Tells the tags of each of a set of ids, in the order of ids: the number of the set of tags, and the bytes of its
    /// pairs. Series have the same number where they have the same tags, for as long as the index lives.
    ///
    /// *Cost*: no allocation. The index is locked meanwhile: `tell` must not ask it.
    pub fn each_tags(&self, ids: &RoaringBitmap, mut tell: impl FnMut(u32, &[u8])) {
        let table = read(&self.table);
        ids.iter().filter_map(|id| table.tags(id)).for_each(|(set, tags)| tell(set, tags));
    }

    /// Every series of a metric.
    pub fn series(&self, metric: Uid) -> RoaringBitmap {
        self.of_metric(metric, MetricSeries::all)
    }

    /// How many series a metric has.
    pub fn series_count(&self, metric: Uid) -> u64 {
        self.of_metric(metric, MetricSeries::len)
    }

    /// The series of a metric that have this tag.
    pub fn with_tag(&self, metric: Uid, pair: TagPair) -> RoaringBitmap {
        self.with_any_value(metric, pair.key, [pair.value])
    }

    /// The series of a metric that have one of these values of a tag.
    pub fn with_any_value(&self, metric: Uid, tagk: Uid, values: impl IntoIterator<Item = Uid>) -> RoaringBitmap {
        self.of_metric(metric, |series| series.with_any_value(tagk, values))
    }

    /// The series of a metric that have a tag of this key.
    pub fn with_key(&self, metric: Uid, tagk: Uid) -> RoaringBitmap {
        self.of_metric(metric, |series| series.with_key(tagk))
    }

    /// The values that a tag of a metric has, ascending by UID.
    pub fn tag_values(&self, metric: Uid, tagk: Uid) -> Vec<Uid> {
        self.of_metric(metric, |series| series.values(tagk))
    }

    /// The tag keys that a metric has, ascending by UID.
    pub fn tag_keys(&self, metric: Uid) -> Vec<Uid> {
        self.of_metric(metric, MetricSeries::keys)
    }

    /// The metrics that have series, ascending by UID.
    pub fn metrics(&self) -> Vec<Uid> {
        let metrics = read(&self.metrics);
        let with_series = metrics.iter().filter(|(_, metric)| read(&metric.series).len() > 0);
        with_series.map(|(uid, _)| *uid).collect()
    }

    /// How many series.
    pub fn len(&self) -> usize {
        read(&self.table).len()
    }

    /// The id of the next series; above that of every one before.
    fn ids_end(&self) -> usize {
        read(&self.table).end()
    }

    /// Bytes of memory that it takes, about. *Cost*: a look at every bitmap.
    pub fn memory_bytes(&self) -> u64 {
        let metrics: Vec<_> = read(&self.metrics).values().map(Arc::clone).collect();
        let of_metric = |metric: &Arc<MetricIndex>| size_of::<MetricIndex>() + read(&metric.series).memory_bytes();
        (read(&self.table).memory_bytes() + metrics.iter().map(of_metric).sum::<usize>()) as u64
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What stands for the rows of its series.
    pub const fn row_handles(&self) -> RowHandles {
        self.handles
    }

    /// The widths of its UIDs.
    pub const fn widths(&self) -> UidWidths {
        self.widths
    }

    fn metric_or_new(&self, metric: Uid) -> Arc<MetricIndex> {
        if let Some(found) = read(&self.metrics).get(&metric) {
            return Arc::clone(found);
        }
        let mut metrics = write(&self.metrics);
        let new = || {
            let number = write(&self.table).add_metric(metric);
            Arc::new(MetricIndex { number, series: RwLock::default() })
        };
        Arc::clone(metrics.entry(metric).or_insert_with(new))
    }

    fn of_metric<T: Default>(&self, metric: Uid, ask: impl FnOnce(&MetricSeries) -> T) -> T {
        let found = read(&self.metrics).get(&metric).map(Arc::clone);
        found.map(|metric| ask(&read(&metric.series))).unwrap_or_default()
    }
}

/// A poisoned lock is taken all the same: nothing under these locks panics half-way through a change.
fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
