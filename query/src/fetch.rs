//! Fan-out: the rows of a plan read in parallel and decoded into one span a series.
//!
//! A series lies in one bucket, so each worker owns the spans it fills and no lock is needed. Few series are got by key,
//! many are scanned: one scan a bucket. The first error wins and stops the other workers at their next batch. *Bounds*:
//! workers by [`Limits::scans_at_once_max`](crate::Limits), rows under way by the store's channels, points and bytes by
//! the budget.

mod mend;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use basalt_schema::{
    BaseTime, DATA_FAMILY, Histogram, Rollup, RowCell, RowPoints, Salt, Schema, Tsuid, Uid, annotation_offset_ms,
};
use basalt_store::{CellView, Columns, Filter, Get, ListOperator, RowBatch, RowView, Scan};
use bytes::Bytes;

use mend::mend_appends;

use crate::answer::{ScanStats, SeriesAnnotation, Steps};
use crate::cancel::Budget;
use crate::histogram;
use crate::plan::Plan;
use crate::rollup::{self, Attempt, RollupRead, bases};
use crate::span::Span;
use crate::window::Window;
use crate::{Error, Result};

/// Memory charged for a point that was read: two words, vectors that grow by doubling, a flag.
const POINT_BYTES: u64 = 33;
/// Memory charged for a series that takes part: its id, its place, its empty vectors.
const SERIES_BYTES: u64 = 320;
/// Rows of one get.
const GET_ROWS: usize = 128;
/// Series that are at most this part of their metric's are got by key instead of scanned.
const GET_SERIES_PART: u64 = 4;

/// What was read of one series.
#[derive(Debug, Default)]
pub(crate) struct SeriesData {
    /// Its points within the window.
    pub(crate) span: Span,
    /// Its annotations within the window.
    pub(crate) annotations: Vec<SeriesAnnotation>,
    /// Its histograms within the window by time, where these are asked.
    pub(crate) histograms: Vec<(i64, Histogram)>,
    /// How many points each value of `span` stands for, where that is read.
    pub(crate) counts: Vec<i64>,
    /// Whether rollups were there, even if none gave a value: sums without counts are no averages.
    pub(crate) has_rollups: bool,
}

impl SeriesData {
    /// Whether nothing was measured.
    pub(crate) fn is_empty(&self) -> bool {
        self.span.is_empty() && self.histograms.is_empty()
    }
}

/// What was read of a plan: data in the order of [`Plan::series`], and what it took.
#[derive(Debug, Default)]
pub(crate) struct Fetched {
    pub(crate) series: Vec<SeriesData>,
    pub(crate) stats: ScanStats,
    /// Scans and joining are filled in.
    pub(crate) steps: Steps,
}

/// One worker's piece of work.
#[derive(Debug)]
enum Task {
    /// A scan of one bucket, for these series (indexes into the plan's).
    Scan { salt: Salt, slots: Vec<usize> },
    /// Gets of all rows of these series.
    Get { slots: Range<usize> },
}

/// What one task read.
#[derive(Debug, Default)]
struct TaskAnswer {
    /// What it read, in words.
    name: String,
    series: Vec<(usize, SeriesData)>,
    stats: ScanStats,
}

/// Reads the rows of a plan.
///
/// # Errors
/// The first of any worker: the store's own, `Corrupt` cells, a budget.
pub(crate) fn fetch(schema: &Schema, plan: &Plan, annotations: bool, budget: &Budget) -> Result<Fetched> {
    let hours = match Hours::of(&plan.window, plan.read.as_ref()) {
        Some(hours) if !plan.series.is_empty() => hours,
        _ => {
            return Ok(Fetched {
                series: plan.series.iter().map(|_| SeriesData::default()).collect(),
                ..Fetched::default()
            });
        }
    };
    budget.reserve((plan.series.len() as u64).saturating_mul(SERIES_BYTES))?;
    let reader = Reader { schema, plan, hours, annotations, budget };
    let tasks = reader.tasks();
    let began = Instant::now();
    let answers = run_all(&tasks, budget, |task| reader.run(task))?;
    let mut fetched = Fetched::default();
    fetched.steps.scan_time = began.elapsed();
    let began = Instant::now();
    fetched.series.resize_with(plan.series.len(), SeriesData::default);
    for answer in answers {
        fetched.stats.add(&answer.stats);
        fetched.steps.scans.push((answer.name, answer.stats));
        for (slot, data) in answer.series {
            if let Some(place) = fetched.series.get_mut(slot) {
                *place = data;
            }
        }
    }
    fetched.steps.merge_time = began.elapsed();
    Ok(fetched)
}

/// Runs every task on a bounded number of threads; the answers come in any order.
fn run_all<T: Send>(tasks: &[Task], budget: &Budget, run: impl Fn(&Task) -> Result<T> + Sync) -> Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        // Relaxed: the number alone is shared.
        while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
            match run(task) {
                Ok(answer) => done.push(answer),
                Err(error) => {
                    budget.fail();
                    return Err(error);
                }
            }
        }
        Ok(done)
    };
    let workers = tasks.len().min(budget.limits().scans_at_once_max.max(1));
    if workers <= 1 {
        return work();
    }
    let outcomes: Vec<Result<Vec<T>>> = std::thread::scope(|scope| {
        let mut threads = Vec::with_capacity(workers - 1);
        for _ in 1..workers {
            // Too few threads make it slower, not wrong.
            let Ok(thread) = std::thread::Builder::new().name("query-fetch".to_owned()).spawn_scoped(scope, work)
            else {
                break;
            };
            threads.push(thread);
        }
        let mut outcomes = vec![work()];
        outcomes.extend(threads.into_iter().map(|thread| thread.join().unwrap_or(Err(Error::WorkerPanicked))));
        outcomes
    });
    let mut answers = Vec::new();
    let mut stopped = None;
    for outcome in outcomes {
        match outcome {
            Ok(done) => answers.extend(done),
            // Workers that were stopped say "cancelled"; the reason is another's.
            Err(error @ Error::Cancelled) => stopped = stopped.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    stopped.map_or(Ok(answers), Err)
}

/// The hours of a window: from the first to before the last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hours<'a> {
    from: BaseTime,
    count: u32,
    /// Where a scan stops.
    to: BaseTime,
    /// Rows of rollups hold more than an hour.
    rollup: Option<&'a Rollup>,
}

impl<'a> Hours<'a> {
    /// `None` when there is none.
    pub(crate) fn of(window: &Window, read: Option<&'a RollupRead>) -> Option<Self> {
        let seconds = |time_ms: i64| u32::try_from(time_ms / 1000).unwrap_or(u32::MAX);
        let rollup = read.map(|read| &read.rollup);
        let base = |time_ms: i64| BaseTime::from_be_bytes(seconds(time_ms).to_be_bytes());
        if let Some(rollup) = rollup {
            let (from, to) = (base(window.scan_start_ms), base(window.read_end_ms));
            let count = u32::try_from(bases(rollup, from, to).count()).ok()?;
            return (count > 0).then_some(Self { from, count, to, rollup: Some(rollup) });
        }
        let from = BaseTime::of_seconds(seconds(window.scan_start_ms));
        // The last hour that a row key holds does not end within 32 bits; no base time is at their end.
        let to = BaseTime::from_be_bytes(seconds(window.read_end_ms).to_be_bytes());
        let count = to.seconds().checked_sub(from.seconds())?.div_ceil(BaseTime::SPAN_S);
        (count > 0).then_some(Self { from, count, to, rollup: None })
    }

    pub(crate) fn iter(self) -> Box<dyn Iterator<Item = BaseTime> + 'a> {
        if let Some(rollup) = self.rollup {
            return Box::new(bases(rollup, self.from, self.to));
        }
        let hours = std::iter::successors(Some(self.from), |base| base.next());
        Box::new(hours.take(usize::try_from(self.count).unwrap_or(usize::MAX)))
    }
}

#[derive(Debug)]
struct Reader<'a> {
    schema: &'a Schema,
    plan: &'a Plan,
    hours: Hours<'a>,
    annotations: bool,
    budget: &'a Budget,
}

impl Reader<'_> {
    fn tasks(&self) -> Vec<Task> {
        let count = self.plan.series.len() as u64;
        if count.saturating_mul(GET_SERIES_PART) <= self.plan.metric_series || self.plan.metric_series == 0 {
            return self.get_tasks();
        }
        let mut buckets: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (slot, tsuid) in self.plan.series.iter().enumerate() {
            buckets.entry(self.salt(tsuid).0).or_default().push(slot);
        }
        buckets.into_iter().map(|(salt, slots)| Task::Scan { salt: Salt(salt), slots }).collect()
    }

    /// Gets split by series into as many tasks as there may be workers, none smaller than a get.
    fn get_tasks(&self) -> Vec<Task> {
        let hours = usize::try_from(self.hours.count).unwrap_or(usize::MAX);
        let series_per_get = (GET_ROWS / hours.min(GET_ROWS)).max(1);
        let count = self.plan.series.len();
        let step = count.div_ceil(self.budget.limits().scans_at_once_max.max(1)).max(series_per_get);
        (0..count).step_by(step).map(|from| Task::Get { slots: from..(from + step).min(count) }).collect()
    }

    fn salt(&self, tsuid: &Tsuid) -> Salt {
        self.schema.layout().series_key(tsuid).salt()
    }

    fn run(&self, task: &Task) -> Result<TaskAnswer> {
        self.budget.check()?;
        match task {
            Task::Scan { salt, slots } => self.scan(*salt, slots),
            Task::Get { slots } => self.get(slots.clone()),
        }
    }

    fn scan(&self, salt: Salt, slots: &[usize]) -> Result<TaskAnswer> {
        let layout = self.schema.layout();
        let range = Scan::range(
            layout.range_start(salt, self.plan.metric, self.hours.from),
            layout.range_start(salt, self.plan.metric, self.hours.to),
        );
        let mut sink = Sink::new(self, slots.iter().copied());
        let scan = range.with_columns(Columns::family(DATA_FAMILY));
        let mut scanner = self.schema.store().scan(&self.plan.table, scan)?;
        while let Some(batch) = scanner.next_wait() {
            sink.take(&batch?)?;
        }
        Ok(sink.finish(format!("scan of {} series in salt bucket {}", slots.len(), salt.0)))
    }

    fn get(&self, slots: Range<usize>) -> Result<TaskAnswer> {
        let series = self.plan.series.get(slots.clone()).unwrap_or_default();
        let name = format!("gets of {} series from place {}", slots.len(), slots.start);
        let mut sink = Sink::new(self, slots);
        let mut keys = Vec::with_capacity(GET_ROWS);
        for tsuid in series {
            let series_key = self.schema.layout().series_key(tsuid);
            for base in self.hours.iter() {
                keys.push(Bytes::from(series_key.row_key(base)));
                if keys.len() == GET_ROWS {
                    self.get_rows(std::mem::take(&mut keys), &mut sink)?;
                }
            }
        }
        if !keys.is_empty() {
            self.get_rows(keys, &mut sink)?;
        }
        Ok(sink.finish(name))
    }

    fn get_rows(&self, keys: Vec<Bytes>, sink: &mut Sink<'_>) -> Result<()> {
        let get = Get::rows(keys).with_columns(Columns::family(DATA_FAMILY));
        let batch = self.schema.store().get(&self.plan.table, get).wait()?;
        sink.take(&batch)
    }
}

/// Adds to the series index every series of a metric that has a row in the window.
///
/// *Cost*: a scan of the row keys of every bucket, one after the other.
///
/// # Errors
/// `Throttled`: the index is full. The store's own, a budget.
pub(crate) fn discover(schema: &Schema, metric: Uid, attempt: &Attempt, budget: &Budget) -> Result<()> {
    let Some(hours) = Hours::of(&attempt.window, attempt.read.as_ref()) else {
        return Ok(());
    };
    let layout = schema.layout();
    for salt in layout.salts() {
        let range =
            Scan::range(layout.range_start(salt, metric, hours.from), layout.range_start(salt, metric, hours.to));
        let keys_only = Filter::List(ListOperator::All, vec![Filter::FirstKeyOnly, Filter::KeyOnly]);
        let scan = range.with_columns(Columns::family(DATA_FAMILY)).with_filter(keys_only);
        let mut scanner = schema.store().scan(&attempt.table, scan)?;
        while let Some(batch) = scanner.next_wait() {
            let batch = batch?;
            for row in batch.rows() {
                schema.index().add(&layout.decode(row.key())?.tsuid())?;
            }
            budget.spend(0, batch.data_bytes() as u64)?;
        }
    }
    Ok(())
}

/// Where a task's rows go.
#[derive(Debug)]
struct Sink<'a> {
    reader: &'a Reader<'a>,
    /// Tag bytes of a series → its place in `series`.
    places: HashMap<&'a [u8], usize>,
    series: Vec<(usize, SeriesData)>,
    scratch: RowPoints,
    stats: ScanStats,
    began: Instant,
}

impl<'a> Sink<'a> {
    fn new(reader: &'a Reader<'a>, slots: impl Iterator<Item = usize>) -> Self {
        let metric_bytes = reader.schema.layout().widths.metric.bytes();
        let mut places = HashMap::new();
        let mut series = Vec::new();
        for slot in slots {
            let tsuid = reader.plan.series.get(slot);
            if let Some(tags) = tsuid.and_then(|tsuid| tsuid.as_bytes().get(metric_bytes..)) {
                places.insert(tags, series.len());
                series.push((slot, SeriesData::default()));
            }
        }
        let (scratch, stats) = (RowPoints::default(), ScanStats::default());
        Self { reader, places, series, scratch, stats, began: Instant::now() }
    }

    /// Decodes a batch's rows of wanted series, and charges for it.
    fn take(&mut self, batch: &RowBatch) -> Result<()> {
        let began = Instant::now();
        let before = self.stats.points;
        for row in batch.rows() {
            self.take_row(&row)?;
        }
        self.stats.rows += batch.len() as u64;
        self.stats.cells += batch.cells_count() as u64;
        self.stats.bytes += batch.data_bytes() as u64;
        self.stats.decode_time += began.elapsed();
        let points = self.stats.points - before;
        self.reader.budget.reserve(points.saturating_mul(POINT_BYTES))?;
        self.reader.budget.spend(points, batch.data_bytes() as u64)
    }

    fn take_row(&mut self, row: &RowView<'_>) -> Result<()> {
        let key = self.reader.schema.layout().decode(row.key())?;
        let Some((_, data)) = self.places.get(key.tags_bytes()).and_then(|place| self.series.get_mut(*place)) else {
            self.stats.cells_left_out += row.cells().count() as u64;
            return Ok(());
        };
        self.stats.rows_kept += 1;
        let base_ms = i64::from(key.base().seconds()) * 1000;
        if let Some(read) = &self.reader.plan.read {
            self.stats.points += rollup::take_row(read, key.base(), row, data) as u64;
            return Ok(());
        }
        if self.reader.plan.histograms {
            let read = row.cells().filter_map(|cell| histogram::decode(self.reader.schema, &RowCell::from(cell)));
            let mut read: Vec<_> = read.map(|(offset_ms, one)| (base_ms + i64::from(offset_ms), one)).collect();
            read.sort_by_key(|(time_ms, _)| *time_ms);
            // A second and its millisecond are one instant; the first cell is kept.
            read.dedup_by_key(|(time_ms, _)| *time_ms);
            self.stats.points += read.len() as u64;
            self.reader.budget.reserve(read.iter().map(|(_, one)| histogram::bytes_of(one)).sum())?;
            data.histograms.extend(read);
        } else {
            self.scratch.decode(row.cells().map(RowCell::from), self.reader.schema.config().duplicates())?;
            if self.reader.plan.mend_before_ms.is_some_and(|before_ms| base_ms < before_ms) {
                mend_appends(self.reader.schema, row);
            }
            data.span.extend_row(base_ms, &self.scratch);
            self.stats.points += self.scratch.len() as u64;
        }
        if self.reader.annotations {
            for cell in row.cells() {
                if let Some(note) = annotation(base_ms, &cell)? {
                    self.reader.budget.reserve((size_of::<SeriesAnnotation>() * 2 + note.json.len()) as u64)?;
                    data.annotations.push(note);
                }
            }
        }
        Ok(())
    }

    fn finish(mut self, name: String) -> TaskAnswer {
        self.stats.store_time = self.began.elapsed().saturating_sub(self.stats.decode_time);
        TaskAnswer { name, series: self.series, stats: self.stats }
    }
}

/// The annotation of a cell, if it holds one. Its text is written into answers as it is, so it must be JSON.
fn annotation(base_ms: i64, cell: &CellView<'_>) -> Result<Option<SeriesAnnotation>> {
    let Some(offset_ms) = annotation_offset_ms(cell.qualifier) else {
        return Ok(None);
    };
    let start_ms = base_ms + i64::from(offset_ms);
    let _: serde::de::IgnoredAny = serde_json::from_slice(cell.value)
        .map_err(|error| Error::CorruptAnnotation { start_ms, reason: error.to_string().into() })?;
    Ok(Some(SeriesAnnotation { start_ms, json: cell.value.into() }))
}

/// The global annotations from `start_ms` to `end_ms`, by time.
///
/// # Errors
/// The store's own, `Corrupt` keys, a budget.
pub(crate) fn global_annotations(
    schema: &Schema,
    start_ms: i64,
    end_ms: i64,
    budget: &Budget,
) -> Result<Vec<SeriesAnnotation>> {
    let layout = schema.layout();
    let base = |time_ms: i64| BaseTime::of_seconds(u32::try_from(time_ms.max(0) / 1000).unwrap_or(u32::MAX));
    let mut scan =
        Scan::range(layout.global_annotations_key(base(start_ms)), layout.global_annotations_key(base(end_ms)));
    scan.stop_inclusive = true;
    let mut scanner = schema.store().scan(&schema.tables().data, scan.with_columns(Columns::family(DATA_FAMILY)))?;
    let mut found = Vec::new();
    while let Some(batch) = scanner.next_wait() {
        let batch = batch?;
        for row in batch.rows() {
            let base_ms = i64::from(layout.decode(row.key())?.base().seconds()) * 1000;
            for cell in row.cells() {
                let note = annotation(base_ms, &cell)?;
                found.extend(note.filter(|note| (start_ms..=end_ms).contains(&note.start_ms)));
            }
        }
        budget.spend(0, batch.data_bytes() as u64)?;
    }
    Ok(found)
}
