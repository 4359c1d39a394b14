//! The series with the highest latest value, or the highest value of all.
//!
//! Strictly the values are OpenTSDB's: of an instant at which not every series is live it takes those of the live ones
//! for the first series, and 0 for the others. *Source*: OpenTSDB 2.4 `HighestCurrent`, `HighestMax`.

use std::ops::RangeInclusive;

use super::call::{Call, Flow, digits_and_rest, fault};
use crate::Result;
use crate::aggregate::to_double;
use crate::answer::Point;
use crate::dataset::Dataset;
use crate::error::FormulaFault;
use crate::merge::{Member, live_values};
use crate::span::Span;

/// By which value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    Current,
    Max,
}

/// The `count` highest, highest first.
///
/// # Errors
/// `Invalid`: no count, or one that is no number above zero. A budget.
pub(super) fn highest(mut flows: Vec<Flow>, which: Which, count: Option<&str>, call: &Call<'_>) -> Result<Vec<Flow>> {
    let count = count_of(count)?;
    if call.strict && which == Which::Current {
        // Of these OpenTSDB leaves out what has no points.
        flows.retain(|flow| !flow.data.points.is_empty());
    }
    let values = if call.strict {
        values_by_place(&flows, which, call)?
    } else {
        flows.iter().map(|flow| value_of(&flow.data, which, &call.range)).collect()
    };
    let mut ranked: Vec<(f64, Flow)> = values.into_iter().zip(flows).collect();
    // In the total order not-a-number is above all, as for Java; ours never is one. Equals stay in their order.
    ranked.sort_by(|(left, _), (right, _)| right.total_cmp(left));
    ranked.truncate(count);
    Ok(ranked.into_iter().map(|(_, flow)| flow).collect())
}

fn count_of(text: Option<&str>) -> Result<usize> {
    let Some(text) = text else {
        // The words are OpenTSDB's.
        return fault(FormulaFault::MissingParameter("Need aggregation window for moving average"));
    };
    if !digits_and_rest(text).1.is_empty() {
        return fault(FormulaFault::Top(text.into()));
    }
    match text.parse::<u32>() {
        Ok(0) => fault(FormulaFault::EmptyTop),
        Ok(count) => Ok(usize::try_from(count).unwrap_or(usize::MAX)),
        Err(_) => fault(FormulaFault::Number { fraction: false }),
    }
}

/// The latest or the highest number of the range; a series without one is below all.
fn value_of(data: &Dataset, which: Which, range: &RangeInclusive<i64>) -> f64 {
    let in_range = data.points.iter().filter(|point| range.contains(&point.time_ms));
    let mut numbers = in_range.map(|point: &Point| point.number.as_double()).filter(|value| !value.is_nan());
    match which {
        Which::Current => numbers.next_back(),
        Which::Max => numbers.max_by(f64::total_cmp),
    }
    .unwrap_or(f64::NEG_INFINITY)
}

/// What OpenTSDB ranks by: one list of values for instants of integers and one for those of doubles.
fn values_by_place(flows: &[Flow], which: Which, call: &Call<'_>) -> Result<Vec<f64>> {
    let spans: Vec<Span> = flows.iter().map(|flow| span_from(&flow.data, *call.range.start())).collect();
    let members: Vec<Member<'_>> = spans.iter().map(|span| Member { span, before_first: None }).collect();
    let mut integers: Option<Vec<i64>> = None;
    let mut doubles: Option<Vec<f64>> = None;
    live_values(&members, *call.range.end(), &|| call.budget.check(), |live_integers, live_doubles| {
        let count = flows.len();
        if let Some(live) = live_integers {
            let values = (0..count).map(|place| live.get(place).copied().unwrap_or(0));
            keep(&mut integers, values, i64::MIN, |old, new| if which == Which::Max { old.max(new) } else { new });
        } else {
            let values = (0..count).map(|place| live_doubles.get(place).copied().unwrap_or(0.0));
            let max = |old: f64, new: f64| if old.is_nan() || new.is_nan() { f64::NAN } else { old.max(new) };
            keep(&mut doubles, values, LEAST, |old, new| if which == Which::Max { max(old, new) } else { new });
        }
    })?;
    let value = |place: usize| {
        let integer = integers.as_ref().and_then(|values| values.get(place)).map(|value| to_double(*value));
        let double = doubles.as_ref().and_then(|values| values.get(place)).copied();
        match (integer, double) {
            (Some(integer), Some(double)) if double.is_nan() || double > integer => double,
            (Some(integer), _) => integer,
            (None, double) => double.unwrap_or(f64::NEG_INFINITY),
        }
    };
    Ok((0..flows.len()).map(value).collect())
}

/// Where OpenTSDB's maximum of doubles begins: the least above zero, not the least of all.
const LEAST: f64 = f64::from_bits(1);

fn keep<T: Copy>(kept: &mut Option<Vec<T>>, new: impl Iterator<Item = T>, least: T, of: impl Fn(T, T) -> T) {
    let old = kept.take();
    let before = |place: usize| old.as_ref().and_then(|old| old.get(place).copied()).unwrap_or(least);
    *kept = Some(new.enumerate().map(|(place, new)| of(before(place), new)).collect());
}

/// What lies after the range's end is interpolated towards.
fn span_from(data: &Dataset, start_ms: i64) -> Span {
    let mut span = Span::default();
    for point in data.points.iter().filter(|point| point.time_ms >= start_ms) {
        span.push(point.time_ms, point.number);
    }
    span
}
