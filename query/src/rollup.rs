//! Queries of rollups (rules Q-ROLLUP, Q-PREAGG): by its downsampling a sub query chooses the table it reads.
//!
//! The longest kept interval that divides that of the downsampling is read, and its own values are downsampled again; an
//! average is the sum of sums by the sum of counts. Where nothing is found, `rollupUsage` says whether shorter intervals or
//! the points themselves are tried. *Source*: OpenTSDB 2.4 `TsdbQuery`, `RollupQuery`, `RollupSeq`, `Downsampler`.

use basalt_schema::{Rollup, RollupAggregate, Rollups};
use basalt_store::TableName;

use crate::downsample::{Downsample, Interval, begins_at_multiples};
use crate::filter::FilterKind;
use crate::request::{Query, RollupUsage, SubQueryPlan};
use crate::window::Window;
use crate::{Aggregator, Error, Result};

/// What is read in place of points.
#[derive(Debug, Clone)]
pub(crate) struct RollupRead {
    pub(crate) rollup: Rollup,
    /// The values.
    pub(crate) aggregate: RollupAggregate,
    /// How many points each stands for; for averages alone.
    pub(crate) counts: Option<RollupAggregate>,
}

/// What a sub query reads first, and then, as long as it finds nothing.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    pub(crate) table: TableName,
    /// `None`: points.
    pub(crate) read: Option<RollupRead>,
    pub(crate) window: Window,
    /// The downsampling of it.
    pub(crate) downsample: Option<Downsample>,
}

/// Everything that a sub query may read, in order; never empty.
///
/// # Errors
/// `Invalid`: pre-aggregates without tables of them, an aggregate of which no rollups are kept.
pub(crate) fn attempts(
    rollups: Option<&Rollups>,
    data: &TableName,
    sub: &SubQueryPlan,
    window: Window,
    strict: bool,
) -> Result<Vec<Attempt>> {
    let pre_aggregate = sub.pre_aggregate || rollups.is_some_and(|rollups| asks_pre_aggregate(rollups, sub));
    let points_table = match rollups.and_then(Rollups::default_rollup) {
        _ if !pre_aggregate => data,
        Some(default) => default.preaggregate_table(),
        None => return Err(Error::NoRollups),
    };
    let points = |window, downsample| Attempt { table: points_table.clone(), read: None, window, downsample };
    let best = rollups
        .map(|rollups| (rollups, fitting(rollups, sub, window, strict)))
        .filter(|(_, fitting)| fitting.first().is_some_and(|(first, _)| !first.is_default()));
    let Some((rollups, fitting)) = best else { return Ok(vec![points(window, sub.downsample)]) };
    let mut attempts = Vec::new();
    for (rollup, window) in &fitting {
        if rollup.is_default() {
            break;
        }
        let table = if pre_aggregate { rollup.preaggregate_table() } else { rollup.table() };
        let read = read_of(rollups, rollup, sub)?;
        attempts.push(Attempt { table: table.clone(), read: Some(read), window: *window, downsample: sub.downsample });
    }
    // OpenTSDB reads and downsamples the points by the interval of the rollup that it gave up, not by the one asked for.
    let points_after = |rollup: &Rollup| match sub.downsample {
        Some(asked) if strict => {
            let interval_ms = i64::from(rollup.interval_s()) * 1000;
            let downsample = Downsample { interval: Interval::Fixed(interval_ms), ..asked };
            points(window.downsampled_by(interval_ms), Some(downsample))
        }
        asked => points(window, asked),
    };
    match sub.rollups {
        RollupUsage::Raw | RollupUsage::NoFallback => attempts.truncate(1),
        RollupUsage::Fallback => {
            let last = fitting.get(attempts.len().saturating_sub(1)).filter(|_| attempts.len() < fitting.len());
            attempts.extend(last.map(|(last, _)| points_after(last)));
        }
        RollupUsage::FallbackRaw => {
            attempts.truncate(1);
            attempts.extend(fitting.first().map(|(first, _)| points_after(first)));
        }
    }
    Ok(attempts)
}

/// The newest instant, ms, that the rollups read answer for, where a query reaches beyond it and is to be split.
/// *Source*: OpenTSDB 2.4 `TsdbQuery.needsSplitting`.
pub(crate) fn split_ms(rollups: Option<&Rollups>, read: Option<&Rollup>, query: &Query) -> Option<i64> {
    let delay_s = read?.delay_s();
    let splits = rollups.is_some_and(Rollups::split_queries) && delay_s > 0;
    let last_ms = (query.now_ms / 1000 - i64::from(delay_s)) * 1000;
    (splits && query.end_ms > last_ms).then_some(last_ms)
}

/// The kept intervals that a sub query's downsampling can be made of, longest first, and what is read of each. OpenTSDB takes
/// those that divide it also where a zone's days begin in the middle of theirs.
fn fitting<'r>(rollups: &'r Rollups, sub: &SubQueryPlan, window: Window, strict: bool) -> Vec<(&'r Rollup, Window)> {
    let Some(downsample) = sub.downsample.filter(|_| sub.histogram.is_none() && sub.rollups != RollupUsage::Raw) else {
        return Vec::new();
    };
    let Ok(seconds @ 1..) = u32::try_from(downsample.fixed_ms() / 1000) else { return Vec::new() };
    let begins_with_buckets = |(rollup, window): &(&Rollup, Window)| {
        let interval_ms = i64::from(rollup.interval_s()) * 1000;
        strict || rollup.is_default() || begins_at_multiples(&downsample, window, interval_ms)
    };
    let read = rollups.fitting(seconds).into_iter().map(|rollup| (rollup, window_of(rollup, sub, window, strict)));
    read.filter(begins_with_buckets).collect()
}

/// Whether a filter names how series were joined.
fn asks_pre_aggregate(rollups: &Rollups, sub: &SubQueryPlan) -> bool {
    sub.filters.iter().any(|filter| {
        filter.kind() == FilterKind::LiteralOr
            && filter.tagk() == rollups.tag_key()
            && filter.text() != rollups.raw_tag_value()
    })
}

fn read_of(rollups: &Rollups, rollup: &Rollup, sub: &SubQueryPlan) -> Result<RollupRead> {
    let function = sub.downsample.map_or(Aggregator::Sum, |downsample| downsample.function);
    let (name, counted) = match function {
        Aggregator::Avg => ("sum", true),
        Aggregator::Dev if rollups.aggregate("dev").is_some() => return Err(Error::RollupDeviation),
        Aggregator::ZimSum => ("sum", false),
        Aggregator::MimMax => ("max", false),
        Aggregator::MimMin => ("min", false),
        // As OpenTSDB calls it inside; the name of requests is another's spelling.
        Aggregator::Mult => ("multiply", false),
        other => (other.name(), false),
    };
    let aggregate = |name: &str| {
        let found = rollups.aggregate(name).cloned();
        found.ok_or_else(|| Error::NoRollupAggregate { name: name.into() })
    };
    let counts = if counted { Some(aggregate("count")?) } else { None };
    Ok(RollupRead { rollup: rollup.clone(), aggregate: aggregate(name)?, counts })
}

/// The window of whole rows. With rates the row before is read too. *Source*: `TsdbQuery.getScanStartTimeSeconds`.
fn window_of(rollup: &Rollup, sub: &SubQueryPlan, window: Window, strict: bool) -> Window {
    let seconds = |time_ms: i64| u32::try_from(time_ms / 1000).unwrap_or(u32::MAX);
    let span = rollup.span();
    let mut start = span.base(seconds(window.start_ms));
    if sub.rate.is_some() {
        start = span.base(start.saturating_sub(1));
    }
    // OpenTSDB counts a row's whole intervals: 12 of 30 days make no year, and the row that holds the end is not read.
    let past = if strict { rollup.interval_s().saturating_mul(rollup.slots_count()) } else { span.seconds_max() };
    let end = span.base(seconds(window.end_ms).saturating_add(past));
    let [scan_start_ms, scan_end_ms] = [start, end].map(|seconds| i64::from(seconds) * 1000);
    Window { scan_start_ms, scan_end_ms, read_end_ms: scan_end_ms, ..window }
}

#[cfg(test)]
mod tests;
