//! Which hours of a long range, or of one of many series, hold anything of a metric, and about how many rows, so that hours of
//! nothing are not asked for series by series, and little is read by a scan instead.
//!
//! In each bucket the keys of some rows tell which hours there are from an hour on. If rows lie close, as many hours after
//! them are taken for occupied without a look, twice as many each time; what lies between rows far apart costs nothing.
//! An hour is here what a row holds: of rollups as well a day, a month, a year.

use std::collections::BTreeMap;
use std::ops::Range;

use basalt_schema::{BaseTime, DATA_FAMILY, Rollup, RowSpan, Salt, Schema};
use basalt_store::{Columns, Filter, ListOperator, Scan};

use crate::Result;
use crate::cancel::Budget;
use crate::hours::{Hours, bases};
use crate::plan::{FEW_SERIES_PART, Plan};
use crate::workers::{Start, run_all};

/// A range of fewer hours is not looked into where its series have fewer than [`ROWS_MIN`]: gets of all its rows are quick.
const HOURS_MIN: u32 = 1_000;
/// Rows that series of short lives could have and do not: a thousand pods of an hour each could have 720,000 in a month.
const ROWS_MIN: u64 = 50_000;
/// Rows whose keys are read at once.
const KEYS_AT_ONCE: u64 = 256;
/// Hours that are taken for occupied where rows lie close, at first and at most.
const RUN_HOURS: u32 = 128;
const RUN_HOURS_MAX: u32 = 4_096;

/// The hours of each bucket of the wanted series.
#[derive(Debug)]
pub(super) struct Occupied {
    buckets: BTreeMap<u32, Bucket>,
    steps: Steps,
}

/// From hour to hour.
#[derive(Debug, Clone, Copy)]
struct Steps(RowSpan);

#[derive(Debug, Default)]
struct Bucket {
    /// How many series are wanted.
    series: u64,
    /// Ascending, apart from each other; each begins with an hour and ends before its end.
    ranges: Vec<Range<BaseTime>>,
    /// About how many rows there are.
    rows: u64,
}

impl Occupied {
    /// Looks which hours a plan's series can have rows in; `None` where the range is short and has few series.
    ///
    /// *Cost*: in each bucket a short scan of keys for each stretch of rows, and for each doubling of its hours.
    ///
    /// # Errors
    /// The store's own, `Corrupt` keys, a budget.
    pub(super) fn find(
        schema: &Schema,
        plan: &Plan,
        hours: Hours<'_>,
        start: Start,
        budget: &Budget,
    ) -> Result<Option<Self>> {
        let rows = (plan.series.len() as u64).saturating_mul(hours.count.into());
        if hours.count < HOURS_MIN && rows < ROWS_MIN {
            return Ok(None);
        }
        let mut series: BTreeMap<u32, u64> = BTreeMap::new();
        for tsuid in &plan.series {
            *series.entry(schema.layout().salt_of(tsuid).0).or_default() += 1;
        }
        let buckets: Vec<(u32, u64)> = series.into_iter().collect();
        let rows = buckets.len() as u64 * KEYS_AT_ONCE;
        let steps = Steps(hours.rollup.map_or(RowSpan::Hours(1), Rollup::span));
        let finder = Finder { schema, plan, hours, steps, budget };
        let find = |(salt, series): &(u32, u64)| Ok((*salt, finder.bucket(Salt(*salt), *series)?));
        let buckets = run_all(&buckets, start, rows, budget, find)?.into_iter().collect();
        Ok(Some(Self { buckets, steps }))
    }

    /// About how many rows gets would ask for.
    pub(super) fn gets(&self) -> u64 {
        let hours = |bucket: &Bucket| bucket.ranges.iter().map(|range| self.steps.count(range)).sum::<u64>();
        self.buckets.values().map(|bucket| bucket.series * hours(bucket)).sum()
    }

    /// About how many rows a scan would read.
    pub(super) fn rows(&self) -> u64 {
        self.buckets.values().fold(0, |rows, bucket| rows.saturating_add(bucket.rows))
    }

    /// Whether a scan reads so few rows that gets would take longer.
    pub(super) fn is_worth_scanning(&self) -> bool {
        self.rows() < self.gets().saturating_mul(FEW_SERIES_PART)
    }

    /// The hours of a bucket, ascending.
    pub(super) fn bases(&self, salt: Salt) -> Box<dyn Iterator<Item = BaseTime> + '_> {
        let ranges = self.buckets.get(&salt.0).into_iter().flat_map(|bucket| &bucket.ranges);
        Box::new(ranges.flat_map(|range| bases(self.steps.0, range.start, range.end)))
    }
}

struct Finder<'a> {
    schema: &'a Schema,
    plan: &'a Plan,
    hours: Hours<'a>,
    steps: Steps,
    budget: &'a Budget,
}

impl Finder<'_> {
    fn bucket(&self, salt: Salt, series: u64) -> Result<Bucket> {
        let steps = self.steps;
        let mut bucket = Bucket { series, ..Bucket::default() };
        let (mut at, mut run) = (self.hours.from, RUN_HOURS);
        while at < self.hours.to {
            let mut hours = self.hours_of_rows(salt, at)?;
            let (Some(&first), Some(&last)) = (hours.first(), hours.last()) else { break };
            let rows = hours.len() as u64;
            let rows_before_last = hours.partition_point(|hour| *hour < last) as u64;
            hours.dedup();
            for hour in &hours {
                bucket.push(*hour..steps.after(*hour));
            }
            if rows < KEYS_AT_ONCE {
                bucket.rows = bucket.rows.saturating_add(rows);
                break;
            }
            // The last hour may have more rows than were read.
            let hours_before_last = steps.count(&(first..last));
            let rows_an_hour = match hours_before_last {
                0 => self.series_of_bucket().max(rows),
                before => rows_before_last / before,
            };
            run = if first == at { run } else { RUN_HOURS };
            at = steps.after(last);
            if hours.len() as u64 * 2 > hours_before_last && hours_before_last < run.into() {
                at = steps.later(first, run).min(self.hours.to);
                bucket.push(steps.after(last)..at);
                run = (run * 2).min(RUN_HOURS_MAX);
            }
            let guessed = rows_an_hour.saturating_mul(steps.count(&(last..at)));
            bucket.rows = bucket.rows.saturating_add(rows_before_last).saturating_add(guessed);
        }
        Ok(bucket)
    }

    /// How many series of the metric a bucket has on average: as many rows as an hour can have.
    fn series_of_bucket(&self) -> u64 {
        self.plan.metric_series / (self.schema.layout().salts().len() as u64).max(1)
    }

    /// The hours of the next rows, ascending.
    fn hours_of_rows(&self, salt: Salt, from: BaseTime) -> Result<Vec<BaseTime>> {
        let layout = self.schema.layout();
        let bound = |base| layout.range_start(salt, self.plan.metric, base);
        let mut scan = Scan::range(bound(from), bound(self.hours.to)).with_columns(Columns::family(DATA_FAMILY));
        scan.filter = Some(Filter::List(ListOperator::All, vec![Filter::FirstKeyOnly, Filter::KeyOnly]));
        scan.limit_rows = Some(KEYS_AT_ONCE);
        let mut scanner = self.schema.store().scan(&self.plan.table, scan)?;
        let mut hours = Vec::new();
        while let Some(batch) = scanner.step_wait() {
            let batch = batch?;
            for row in batch.rows() {
                hours.push(self.steps.holding(layout.decode(row.key())?.base()));
            }
            self.budget.spend(0, batch.data_bytes() as u64)?;
        }
        Ok(hours)
    }
}

impl Bucket {
    /// Adds hours behind the last ones, or that begin with it.
    fn push(&mut self, hours: Range<BaseTime>) {
        if hours.is_empty() {
            return;
        }
        match self.ranges.last_mut() {
            Some(last) if hours.start <= last.end => last.end = last.end.max(hours.end),
            _ => self.ranges.push(hours),
        }
    }
}

impl Steps {
    /// The hour that a row of a base time is taken for, which foreign writers may have set between two.
    fn holding(self, base: BaseTime) -> BaseTime {
        BaseTime::from_be_bytes(self.0.base(base.seconds()).to_be_bytes())
    }

    /// So many hours later, months and years counted long; where there are no more, the end of time.
    fn later(self, base: BaseTime, hours: u32) -> BaseTime {
        let seconds = base.seconds().checked_add(self.0.seconds_max().saturating_mul(hours));
        BaseTime::from_be_bytes(seconds.map_or(u32::MAX, |seconds| self.0.base(seconds)).to_be_bytes())
    }

    fn after(self, base: BaseTime) -> BaseTime {
        self.later(base, 1)
    }

    /// How many there are; of months and years about so many.
    fn count(self, range: &Range<BaseTime>) -> u64 {
        range.end.seconds().saturating_sub(range.start.seconds()).div_ceil(self.0.seconds_max()).into()
    }
}

#[cfg(test)]
mod tests;
