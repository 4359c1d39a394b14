//! Which hours of a long range, or of one of many series, hold anything of a metric, and about how many rows, so that hours of
//! nothing are not asked for series by series, and little is read by a scan instead.
//!
//! In each bucket the keys of some rows tell which hours there are from an hour on. If rows lie close, as many hours after
//! them are taken for occupied without a look, twice as many each time; what lies between rows far apart costs nothing.

use std::collections::BTreeMap;
use std::ops::Range;

use basalt_schema::{BaseTime, DATA_FAMILY, Salt, Schema};
use basalt_store::{Columns, Filter, ListOperator, Scan};

use super::Hours;
use super::workers::{Start, run_all};
use crate::Result;
use crate::cancel::Budget;
use crate::plan::{FEW_SERIES_PART, Plan};

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
pub(super) struct Occupied(BTreeMap<u32, Bucket>);

#[derive(Debug, Default)]
struct Bucket {
    /// How many series are wanted.
    series: u64,
    /// Ascending, apart from each other; each ends before its end.
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
        if hours.rollup.is_some() || hours.count < HOURS_MIN && rows < ROWS_MIN {
            return Ok(None);
        }
        let mut series: BTreeMap<u32, u64> = BTreeMap::new();
        for tsuid in &plan.series {
            *series.entry(schema.layout().salt_of(tsuid).0).or_default() += 1;
        }
        let buckets: Vec<(u32, u64)> = series.into_iter().collect();
        let rows = buckets.len() as u64 * KEYS_AT_ONCE;
        let finder = Finder { schema, plan, hours, budget };
        let find = |(salt, series): &(u32, u64)| Ok((*salt, finder.bucket(Salt(*salt), *series)?));
        Ok(Some(Self(run_all(&buckets, start, rows, budget, find)?.into_iter().collect())))
    }

    /// How many rows gets would ask for.
    pub(super) fn gets(&self) -> u64 {
        let of_bucket =
            |bucket: &Bucket| bucket.series * bucket.ranges.iter().map(hours_of).map(u64::from).sum::<u64>();
        self.0.values().map(of_bucket).sum()
    }

    /// About how many rows a scan would read.
    pub(super) fn rows(&self) -> u64 {
        self.0.values().fold(0, |rows, bucket| rows.saturating_add(bucket.rows))
    }

    /// Whether a scan reads so few rows that gets would take longer.
    pub(super) fn is_worth_scanning(&self) -> bool {
        self.rows() < self.gets().saturating_mul(FEW_SERIES_PART)
    }

    /// The hours of a bucket, ascending.
    pub(super) fn bases(&self, salt: Salt) -> Box<dyn Iterator<Item = BaseTime> + '_> {
        let ranges = self.0.get(&salt.0).into_iter().flat_map(|bucket| &bucket.ranges);
        Box::new(ranges.flat_map(|range| {
            let hours = std::iter::successors(Some(range.start), |base| base.next());
            hours.take_while(|base| *base < range.end)
        }))
    }
}

struct Finder<'a> {
    schema: &'a Schema,
    plan: &'a Plan,
    hours: Hours<'a>,
    budget: &'a Budget,
}

impl Finder<'_> {
    fn bucket(&self, salt: Salt, series: u64) -> Result<Bucket> {
        let mut bucket = Bucket { series, ..Bucket::default() };
        let (mut at, mut run) = (self.hours.from, RUN_HOURS);
        while at < self.hours.to {
            let mut hours = self.hours_of_rows(salt, at)?;
            let (Some(&first), Some(&last)) = (hours.first(), hours.last()) else { break };
            let rows = hours.len() as u64;
            let rows_before_last = hours.partition_point(|hour| *hour < last) as u64;
            hours.dedup();
            for hour in &hours {
                bucket.push(*hour..after(*hour));
            }
            if rows < KEYS_AT_ONCE {
                bucket.rows = bucket.rows.saturating_add(rows);
                break;
            }
            // The last hour may have more rows than were read.
            let hours_before_last = hours_of(&(first..last));
            let rows_an_hour = match hours_before_last {
                0 => self.series_of_bucket().max(rows),
                before => rows_before_last / u64::from(before),
            };
            run = if first == at { run } else { RUN_HOURS };
            at = after(last);
            if hours.len() as u64 * 2 > u64::from(hours_before_last) && hours_before_last < run {
                at = later(first, run).min(self.hours.to);
                bucket.push(after(last)..at);
                run = (run * 2).min(RUN_HOURS_MAX);
            }
            let guessed = rows_an_hour.saturating_mul(hours_of(&(last..at)).into());
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
                hours.push(BaseTime::of_seconds(layout.decode(row.key())?.base().seconds()));
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

fn hours_of(range: &Range<BaseTime>) -> u32 {
    range.end.seconds().saturating_sub(range.start.seconds()).div_ceil(BaseTime::SPAN_S)
}

/// So many hours later; where there are no more, the end of time.
fn later(base: BaseTime, hours: u32) -> BaseTime {
    BaseTime::from_be_bytes(base.seconds().saturating_add(hours.saturating_mul(BaseTime::SPAN_S)).to_be_bytes())
}

fn after(base: BaseTime) -> BaseTime {
    later(base, 1)
}
