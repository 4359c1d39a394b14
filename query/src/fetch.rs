//! Fan-out: reads the rows of a plan in parallel and decodes them into one span a series.
//!
//! All rows of a series lie in one salt bucket, so each worker owns the spans that it fills, and no lock is needed. Few series
//! are read by gets of their keys, where these are many only those of times in which their metric has rows; many by scans, one a
//! bucket. The first error wins and stops the other workers at their next batch. *Bounds*: workers by
//! [`Limits::scans_at_once_max`](crate::Limits), rows under way by the store's channels and the size of gets, points and bytes by
//! the budget.

mod mend;
mod notes;
mod occupied;
mod rollup_row;
mod sink;

pub(crate) use notes::global_annotations;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use basalt_schema::{DATA_FAMILY, Salt, Schema};
use basalt_store::{Columns, Get, Packing, Scan};
use bytes::Bytes;

use occupied::Occupied;
use sink::Sink;

use crate::aggregate::PercentileRule;
use crate::answer::{ScanStats, Steps};
use crate::cancel::Budget;
use crate::downsample::RowDownsample;
use crate::gate::SUMMARIES_PER_ROW;
use crate::get_size::{GET_ROWS, GetSize};
use crate::hours::Hours;
use crate::plan::Plan;
use crate::series_data::{SERIES_BYTES, SeriesData};
use crate::workers::{Start, run_all};
use crate::{Options, Result};

/// Bytes of the points of a batch by columns: few enough to stay in a core's own cache.
const PACKED_BATCH_BYTES: usize = 96 * 1024;

/// What was read for a plan: data in the order of [`Plan::series`], and what reading it took.
#[derive(Debug, Default)]
pub(crate) struct Fetched {
    pub(crate) series: Vec<SeriesData>,
    pub(crate) stats: ScanStats,
    /// Only the times of scans and of joining are filled in.
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
    /// What it read, in words for the statistics.
    name: String,
    series: Vec<(usize, SeriesData)>,
    stats: ScanStats,
}

/// Reads the rows of a plan. Where no downsampling bucket holds points of two rows, each row is downsampled as it is read.
///
/// # Errors
/// The first error of any worker: the store's own, `Corrupt` cells, a budget.
pub(crate) fn fetch(
    schema: &Schema,
    plan: &Plan,
    annotations: bool,
    options: Options,
    budget: &Budget,
) -> Result<Fetched> {
    let hours = match Hours::of(&plan.window, plan.rollup()) {
        Some(hours) if !plan.series.is_empty() => hours,
        _ => {
            return Ok(Fetched {
                series: plan.series.iter().map(|_| SeriesData::default()).collect(),
                ..Fetched::default()
            });
        }
    };
    let rule = Some(options.percentile_rule());
    let is_near = !schema.config().is_shared;
    let misfit = AtomicBool::new(false);
    let strict = options.compat.strict;
    let start = Start::of(schema);
    let way = Way::choose(schema, plan, hours, start, budget)?;
    let mut reader = Reader { schema, plan, hours, way, annotations, strict, budget, is_near, start, rule, misfit };
    budget.announce(reader.announced_rows())?;
    budget.reserve((plan.series.len() as u64).saturating_mul(SERIES_BYTES))?;
    let reserved = budget.reserved();
    let fetched = reader.read()?;
    if !*reader.misfit.get_mut() {
        return Ok(fetched);
    }
    // Slow path, for rows that none of our writers makes: read all again, keep all points, and downsample at the end.
    budget.forget(fetched.stats.points_read(), fetched.stats.bytes);
    drop(fetched);
    budget.settle(reserved);
    reader.rule = None;
    reader.read()
}

/// How the rows of a plan are read.
#[derive(Debug)]
enum Way {
    /// By their keys: those of the occupied hours, or `None`: of all hours.
    Gets(Option<Occupied>),
    /// With those of all series of the metric: about so many, if that is known.
    Scans(Option<u64>),
}

impl Way {
    fn choose(schema: &Schema, plan: &Plan, hours: Hours<'_>, start: Start, budget: &Budget) -> Result<Self> {
        if plan.held.is_some() || !plan.is_of_few_series() {
            return Ok(Self::Scans(None));
        }
        let occupied = Occupied::find(schema, plan, hours, start, budget)?;
        Ok(match occupied {
            Some(occupied) if occupied.is_worth_scanning() => Self::Scans(Some(occupied.rows())),
            occupied => Self::Gets(occupied),
        })
    }
}

/// Whether the rows of a plan's series are sooner found by their keys than among those of all series of the metric.
///
/// # Errors
/// The store's own, `Corrupt` keys, a budget.
pub(crate) fn is_sooner_by_keys(schema: &Schema, plan: &Plan, hours: Hours<'_>, budget: &Budget) -> Result<bool> {
    Ok(matches!(Way::choose(schema, plan, hours, Start::of(schema), budget)?, Way::Gets(_)))
}

#[derive(Debug)]
struct Reader<'a> {
    schema: &'a Schema,
    plan: &'a Plan,
    hours: Hours<'a>,
    way: Way,
    annotations: bool,
    /// Whether every point counts against the bounds, also those that a summary stands for: OpenTSDB reads them all.
    strict: bool,
    budget: &'a Budget,
    /// Whether the store is in this process: reading is then work, and across a network mostly waiting.
    is_near: bool,
    start: Start,
    /// How percentiles are estimated; `None` where rows must not be downsampled as they are read.
    rule: Option<PercentileRule>,
    /// Set when a row cannot be downsampled by itself. Relaxed: what counts is read when all workers have ended.
    misfit: AtomicBool,
}

impl Reader<'_> {
    fn read(&self) -> Result<Fetched> {
        let tasks = self.tasks();
        let began = Instant::now();
        // Across a network each task gets a thread: those mostly wait.
        let rows = if self.is_near { self.rows() } else { u64::MAX };
        let answers = run_all(&tasks, self.start, rows, self.budget, |task| self.run(task))?;
        let mut fetched = Fetched::default();
        fetched.steps.scan_time = began.elapsed();
        let began = Instant::now();
        fetched.series.resize_with(self.plan.series.len(), SeriesData::default);
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

    /// What downsamples each row by itself, where that gives the same as downsampling all rows together.
    fn row_downsample(&self) -> Option<RowDownsample> {
        let Plan { window, downsample, read, histograms, .. } = self.plan;
        // Where the read goes on behind the end of the scan, a series that begins only there is recognised by its first point.
        let is_plain = read.is_none() && !histograms && window.read_end_ms == window.scan_end_ms;
        let made = RowDownsample::new(downsample.as_ref().filter(|_| is_plain)?, self.rule?)?;
        // A misfit makes all rows be read twice. Across a network that costs more than it saves, as reading is mostly waiting.
        (self.is_near || !made.joins_rows()).then_some(made)
    }

    /// How the store packs rows: points by columns, or as summaries where those are enough; rollups and histograms as cells.
    fn packing(&self) -> Packing {
        if self.plan.read.is_some() || self.plan.histograms {
            return Packing::Cells;
        }
        let takes_summaries = self.row_downsample().is_some_and(|downsample| downsample.takes_summaries());
        if takes_summaries { Packing::Summaries } else { Packing::Points }
    }

    /// Notes that a row cannot be downsampled by itself; gives 0, the number of points kept of it.
    fn note_misfit(&self) -> usize {
        self.misfit.store(true, Ordering::Relaxed);
        0
    }

    fn has_misfit(&self) -> bool {
        self.misfit.load(Ordering::Relaxed)
    }

    /// About how many rows there are to read.
    fn rows(&self) -> u64 {
        let series = match &self.way {
            Way::Gets(Some(occupied)) => return occupied.gets(),
            Way::Scans(Some(rows)) => return *rows,
            Way::Gets(None) => self.plan.series.len() as u64,
            Way::Scans(None) => self.plan.metric_series,
        };
        series.saturating_mul(self.hours.count.into())
    }

    /// The rows as a gate counts them.
    fn announced_rows(&self) -> u64 {
        if self.packing() == Packing::Summaries { self.rows() / SUMMARIES_PER_ROW } else { self.rows() }
    }

    fn tasks(&self) -> Vec<Task> {
        if let Way::Gets(_) = self.way {
            return self.get_tasks();
        }
        let mut buckets: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (slot, tsuid) in self.plan.series.iter().enumerate() {
            buckets.entry(self.schema.layout().salt_of(tsuid).0).or_default().push(slot);
        }
        buckets.into_iter().map(|(salt, slots)| Task::Scan { salt: Salt(salt), slots }).collect()
    }

    /// Splits the series into as many tasks of gets as there may be workers; none has fewer rows than a get may ask for.
    fn get_tasks(&self) -> Vec<Task> {
        let hours = usize::try_from(self.hours.count).unwrap_or(usize::MAX);
        let series_per_get = (GET_ROWS / hours.min(GET_ROWS)).max(1);
        let count = self.plan.series.len();
        let step = count.div_ceil(self.budget.limits().scans_at_once_max.max(1)).max(series_per_get);
        (0..count).step_by(step).map(|from| Task::Get { slots: from..(from + step).min(count) }).collect()
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
        if let Some(held) = &self.plan.held {
            held.of(salt).try_for_each(|batch| sink.take(batch))?;
            return Ok(sink.finish(format!(
                "{} series in salt bucket {}, read while they were looked for",
                slots.len(),
                salt.0
            )));
        }
        let mut scan = range.with_columns(Columns::family(DATA_FAMILY)).with_packing(self.packing());
        scan.filter.clone_from(&self.plan.row_filter);
        if scan.packing != Packing::Cells {
            scan.batch_bytes = PACKED_BATCH_BYTES;
        }
        // The limit is at least twice the rows that a bucket has on average. If it has more, a second scan reads on behind them.
        let buckets = layout.salts().len() as u64;
        let rows = self.plan.metric_series.saturating_mul(self.hours.count.into()) / buckets.max(1);
        scan.limit_rows = (rows <= Scan::SHORT_ROWS / 2).then_some(Scan::SHORT_ROWS);
        while let Some(last) = self.scan_into(scan.clone(), &mut sink)? {
            (scan.start, scan.start_inclusive, scan.limit_rows) = (last, false, None);
        }
        Ok(sink.finish(format!("scan of {} series in salt bucket {}", slots.len(), salt.0)))
    }

    /// Reads a scan to its end; gives the last row if the scan ended at its limit of rows.
    fn scan_into(&self, scan: Scan, sink: &mut Sink<'_>) -> Result<Option<Bytes>> {
        let limit = scan.limit_rows;
        let (mut rows, mut last) = (0, None);
        let mut scanner = self.schema.store().scan(&self.plan.table, scan)?;
        while let Some(batch) = scanner.step_wait() {
            let batch = batch?;
            sink.take(&batch)?;
            if self.rule.is_some() && self.has_misfit() {
                return Ok(None);
            }
            rows += batch.len() as u64;
            last = batch
                .len()
                .checked_sub(1)
                .and_then(|at| batch.row(at))
                .map(|row| Bytes::copy_from_slice(row.key()))
                .or(last);
        }
        Ok(last.filter(|_| limit.is_some_and(|limit| rows >= limit)))
    }

    fn get(&self, slots: Range<usize>) -> Result<TaskAnswer> {
        let series = self.plan.series.get(slots.clone()).unwrap_or_default();
        let name = format!("gets of {} series from place {}", slots.len(), slots.start);
        let mut sink = Sink::new(self, slots);
        let mut size = GetSize::new(self.schema);
        let mut keys = Vec::with_capacity(size.rows());
        let rows = series.iter().flat_map(|tsuid| {
            let series_key = self.schema.layout().series_key(tsuid);
            let bases = match &self.way {
                Way::Gets(Some(occupied)) => occupied.bases(series_key.salt()),
                _ => self.hours.iter(),
            };
            bases.map(move |base| Bytes::from(series_key.row_key(base)))
        });
        for key in rows {
            keys.push(key);
            if keys.len() == size.rows() {
                self.get_rows(std::mem::take(&mut keys), &mut size, &mut sink)?;
                // All rows will be read again, without this downsampling.
                if self.rule.is_some() && self.has_misfit() {
                    return Ok(sink.finish(name));
                }
            }
        }
        if !keys.is_empty() {
            self.get_rows(keys, &mut size, &mut sink)?;
        }
        Ok(sink.finish(name))
    }

    fn get_rows(&self, keys: Vec<Bytes>, size: &mut GetSize, sink: &mut Sink<'_>) -> Result<()> {
        let get = Get::rows(keys).with_columns(Columns::family(DATA_FAMILY)).with_packing(self.packing());
        let batch = self.schema.store().get(&self.plan.table, get).wait()?;
        size.learn(&batch);
        self.budget.while_held(batch.memory_bytes() as u64, || sink.take(&batch))
    }
}

#[cfg(test)]
mod tests;
