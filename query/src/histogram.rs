//! Queries of histograms (rule Q-HISTO): what was measured at one instant is summed bucket by bucket over the series of a
//! group, and each percentile and bucket becomes an output series.
//!
//! ```text
//! web.latency{percentiles[50,99.9]}     web.latency_pct_50.0, web.latency_pct_99.9
//! show-histogram-buckets                web.latency_UNDERFLOW, web.latency_0.0_1.75, …, web.latency_OVERFLOW: the
//!                                       buckets of the group's first instant; OpenTSDB takes the first group's for all
//! ```
//!
//! Histograms are not interpolated, rated or filled. *Source*: OpenTSDB 2.4 `HistogramSpanGroup`,
//! `HistogramAggregationIterator`, `HistogramDownsampler`.

use std::collections::BTreeMap;

use basalt_schema::{Histogram, Schema};

use crate::answer::{Number, Point};
use crate::cancel::Budget;
use crate::dataset::Dataset;
use crate::downsample::{Interval, buckets};
use crate::float_text::float_text;
use crate::group::{Group, describe};
use crate::plan::Plan;
use crate::request::SubQueryPlan;
use crate::series_data::{SeriesData, histogram_bytes};
use crate::{Compat, Result};

/// The output series of every group, those of a group side by side: percentiles ascending, then buckets.
///
/// # Errors
/// A budget.
pub(crate) fn compute(
    schema: &Schema,
    groups: &[Group],
    plan: &Plan,
    sub: &SubQueryPlan,
    data: &[SeriesData],
    (budget, compat): (&Budget, Compat),
) -> Result<Vec<Dataset>> {
    let mut datasets = Vec::new();
    let Some(asked) = &sub.histogram else { return Ok(datasets) };
    let mut first_groups: Option<Vec<_>> = None;
    for group in groups {
        budget.check()?;
        let sums = summed(group, plan, sub, data, (budget, compat))?;
        let described = describe(schema, group, plan, data, Vec::new(), compat.strict);
        let mut push = |suffix: String, of: &dyn Fn(&Histogram) -> Number| -> Result<()> {
            // Percentiles and buckets are many, and each has all that the group is described by.
            budget.check()?;
            let points_bytes = (sums.len() * size_of::<Point>()) as u64;
            budget.reserve(described.description_bytes() + suffix.capacity() as u64 + points_bytes)?;
            let mut points = Vec::with_capacity(sums.len());
            let answered = sums.iter().filter(|(time_ms, _)| plan.answered.contains(*time_ms));
            points.extend(answered.map(|(time_ms, sum)| Point { time_ms: *time_ms, number: of(sum) }));
            datasets.push(Dataset { suffix, points, ..described.clone() });
            Ok(())
        };
        for percentile in &asked.percentiles {
            let suffix = format!("_pct_{}", float_text(*percentile));
            push(suffix, &|sum| Number::Double(sum.percentile(f64::from(*percentile))))?;
        }
        let Some(first) = sums.values().next().filter(|_| asked.buckets) else { continue };
        push("_UNDERFLOW".to_owned(), &|sum| Number::Integer(sum.underflow))?;
        let own = || first.buckets().map(|(bounds, _)| bounds).collect::<Vec<_>>();
        let shown = if compat.strict { first_groups.get_or_insert_with(own).clone() } else { own() };
        for bounds in shown {
            let suffix = format!("_{}_{}", float_text(bounds.lower), float_text(bounds.upper));
            push(suffix, &|sum| Number::Integer(sum.count(bounds)))?;
        }
        push("_OVERFLOW".to_owned(), &|sum| Number::Integer(sum.overflow))?;
    }
    Ok(datasets)
}

/// The sums of a group by time.
fn summed(
    group: &Group,
    plan: &Plan,
    sub: &SubQueryPlan,
    data: &[SeriesData],
    (budget, compat): (&Budget, Compat),
) -> Result<BTreeMap<i64, Histogram>> {
    let mut sums: BTreeMap<i64, Histogram> = BTreeMap::new();
    let mut charged = 0;
    for member in group.members().iter().filter_map(|slot| data.get(*slot)) {
        let mut add = |time_ms: i64, histograms: &[(i64, Histogram)]| {
            let sum = sums.entry(time_ms).or_default();
            for (_, histogram) in histograms {
                charged += histogram_bytes(histogram);
                sum.add(histogram);
            }
        };
        let Some(downsample) = &sub.downsample else {
            for one in &member.histograms {
                add(one.0, std::slice::from_ref(one));
            }
            continue;
        };
        let times: Vec<i64> = member.histograms.iter().map(|(time_ms, _)| *time_ms).collect();
        buckets(&times, downsample, &plan.window, |stamp_ms, range| {
            // OpenTSDB stamps the one bucket of the whole range with its end here, and with its start elsewhere.
            let whole = compat.strict && downsample.interval == Interval::All;
            let stamp_ms = if whole { plan.window.end_ms } else { stamp_ms };
            add(stamp_ms, member.histograms.get(range).unwrap_or_default());
        });
    }
    budget.reserve(charged)?;
    Ok(sums)
}
