//! Downsampling itself: slices in, slices out.

use super::bucket_value::BucketValue;
use super::calendar::Bucket;
use super::{Downsample, Fill, Interval};
use crate::aggregate::PercentileRule;
use crate::duration::Unit;
use crate::span::Span;
use crate::window::Window;

/// Downsamples one series. Points of buckets that begin before the scan do not count.
///
/// *Cost*: linear in the points and, when filled, in [`grid_len`]; one scratch buffer.
pub(crate) fn downsample(points: &Span, spec: &Downsample, window: &Window, rule: PercentileRule) -> Span {
    downsample_by(points.times(), spec, window, of_doubles(points, spec, rule))
}

/// What makes one value of a bucket's points, given by their indexes.
pub(crate) fn of_doubles<'a>(
    points: &'a Span,
    spec: &'a Downsample,
    rule: PercentileRule,
) -> impl FnMut(std::ops::Range<usize>) -> f64 + 'a {
    let mut value = BucketValue::new(spec.function, rule);
    move |range| {
        let words = points.words().get(range.clone()).unwrap_or_default();
        value.of(words, points.uniform(), |at| points.is_double(range.start + at))
    }
}

/// Downsamples by what `value` makes of the indexes of a bucket's times, and fills what is to be filled.
pub(crate) fn downsample_by(
    times: &[i64],
    spec: &Downsample,
    window: &Window,
    mut value: impl FnMut(std::ops::Range<usize>) -> f64,
) -> Span {
    let mut out = Span::default();
    buckets(times, spec, window, |stamp_ms, range| out.push_double(stamp_ms, value(range)));
    match (spec.interval, spec.fill) {
        (Interval::All, _) | (_, Fill::None) => out,
        (_, Fill::Nan | Fill::Null | Fill::Zero) => filled(&out, spec, window),
    }
}

/// Buckets that are made already, laid onto their grid.
pub(crate) fn filled(buckets: &Span, spec: &Downsample, window: &Window) -> Span {
    let value = if spec.fill == Fill::Zero { 0.0 } else { f64::NAN };
    fill(buckets, grid(spec, window), value)
}

/// Calls `each` with every bucket that holds a time, in order: its stamp and the indexes in `times`, which ascend. Times
/// of buckets that begin before the scan do not count.
pub(crate) fn buckets(
    times: &[i64],
    spec: &Downsample,
    window: &Window,
    mut each: impl FnMut(i64, std::ops::Range<usize>),
) {
    match spec.interval {
        Interval::All => {
            let from = times.partition_point(|time| *time < window.start_ms);
            let to = times.partition_point(|time| *time < window.end_ms);
            if from < to {
                each(window.start_ms, from..to);
            }
        }
        Interval::Fixed(millis) => {
            let first_ms = align_up(window.scan_start_ms, millis);
            let mut at = times.partition_point(|time| *time < first_ms);
            while let Some(time) = times.get(at) {
                let bucket_ms = time - time.rem_euclid(millis);
                let end = bucket_end(times, at, bucket_ms.saturating_add(millis));
                each(bucket_ms, at..end);
                at = end;
            }
        }
        Interval::Calendar { duration, zone, is_strict } => {
            let holding = |time_ms| Bucket::counted(window.buckets_from_ms, time_ms, duration, zone);
            let holding_start = holding(window.scan_start_ms);
            let first_ms = if holding_start.start_ms() < window.scan_start_ms {
                holding_start.next().start_ms()
            } else {
                holding_start.start_ms()
            };
            let mut at = times.partition_point(|time| *time < first_ms);
            // Days and longer that come one by one are the same wherever they are stepped from.
            let is_its_own = duration.count == 1 && !is_of_fixed_length(duration.unit);
            let holding_first = |time: &i64| if is_strict || is_its_own { holding(*time) } else { holding_start };
            let mut bucket = times.get(at).map(holding_first);
            while let (Some(time), Some(before)) = (times.get(at), bucket) {
                let (holding, next) = before.onto(*time);
                let end = bucket_end(times, at, next.start_ms());
                each(holding.start_ms(), at..end);
                at = end;
                bucket = Some(holding);
            }
        }
    }
}

/// The index after the last time below `end`; after `at`, since a bucket that was found holds a point. Looks in steps that
/// double, then between the last two.
pub(super) fn bucket_end<T: Copy + PartialOrd>(times: &[T], at: usize, end: T) -> usize {
    let rest = times.get(at..).unwrap_or_default();
    let mut step = 1;
    while rest.get(step).is_some_and(|time| *time < end) {
        step *= 2;
    }
    let from = step / 2;
    let between = rest.get(from..rest.len().min(step)).unwrap_or_default();
    at + (from + between.partition_point(|time| *time < end)).max(1)
}

/// How many buckets a filled series has; to be checked against the budget before anything is filled.
pub(crate) fn grid_len(spec: &Downsample, window: &Window) -> u64 {
    match (spec.fill, spec.interval) {
        (Fill::None, _) | (_, Interval::All) => 0,
        (_, Interval::Fixed(_) | Interval::Calendar { .. }) => buckets_len(spec, window),
    }
}

/// How many buckets there are at most.
pub(crate) fn buckets_len(spec: &Downsample, window: &Window) -> u64 {
    match spec.interval {
        Interval::All => 1,
        // Days of 23 hours and months of 28 days are shorter than their fixed lengths.
        Interval::Fixed(_) | Interval::Calendar { .. } => {
            let span_ms = window.scan_end_ms.saturating_sub(window.scan_start_ms).max(0);
            (span_ms / spec.fixed_ms()).unsigned_abs().saturating_mul(10) / 9 + 2
        }
    }
}

/// Whether all buckets begin at multiples of a length that divides theirs: those of a calendar may not.
///
/// *Cost*: a step for each of a calendar's days, weeks, months or years.
pub(crate) fn begins_at_multiples(spec: &Downsample, window: &Window, millis: i64) -> bool {
    let Interval::Calendar { duration, .. } = spec.interval else { return true };
    let looked_at = if is_of_fixed_length(duration.unit) { 1 } else { usize::MAX };
    grid(spec, window).take(looked_at).all(|stamp| stamp.rem_euclid(millis) == 0)
}

/// Whether buckets of a calendar's unit come at equal distances.
const fn is_of_fixed_length(unit: Unit) -> bool {
    matches!(unit, Unit::Millisecond | Unit::Second | Unit::Minute | Unit::Hour)
}

/// The stamps of all buckets from that of the scan's start until before that of its end.
fn grid(spec: &Downsample, window: &Window) -> Box<dyn Iterator<Item = i64>> {
    let Window { scan_start_ms, scan_end_ms, buckets_from_ms, .. } = *window;
    match spec.interval {
        Interval::All => Box::new(std::iter::empty()),
        Interval::Fixed(millis) => {
            let end_ms = scan_end_ms - scan_end_ms.rem_euclid(millis);
            let first_ms = scan_start_ms - scan_start_ms.rem_euclid(millis);
            Box::new(
                std::iter::successors(Some(first_ms), move |at| at.checked_add(millis))
                    .take_while(move |at| *at < end_ms),
            )
        }
        Interval::Calendar { duration, zone, is_strict } => {
            let holding = |time_ms| Bucket::counted(buckets_from_ms, time_ms, duration, zone);
            let first = holding(scan_start_ms);
            let end_ms = if is_strict {
                let last = holding(scan_end_ms);
                let end = if last.start_ms() == first.start_ms() { last.next() } else { last };
                end.start_ms()
            } else {
                // Where the scan ends is counted in units of fixed length.
                let (last, behind) = first.onto(window.end_ms.clamp(scan_start_ms, scan_end_ms));
                if last.start_ms() < scan_end_ms { behind.start_ms() } else { last.start_ms() }
            };
            let stamps =
                std::iter::successors(Some(first), |bucket| Some(bucket.next())).map(|bucket| bucket.start_ms());
            let mut last = None;
            // A day that the zone skipped begins when the next does.
            Box::new(stamps.take_while(move |at| *at < end_ms).filter(move |at| last.replace(*at) != Some(*at)))
        }
    }
}

/// Lays buckets onto a grid; a stamp without a bucket gets `value`, a bucket off the grid is dropped.
fn fill(buckets: &Span, grid: impl Iterator<Item = i64>, value: f64) -> Span {
    let mut out = Span::default();
    let times = buckets.times();
    let mut at = 0;
    for stamp in grid {
        while times.get(at).is_some_and(|time| *time < stamp) {
            at += 1;
        }
        let here = times.get(at) == Some(&stamp);
        out.push_double(stamp, if here { buckets.double(at) } else { value });
        at += usize::from(here);
    }
    out
}

fn align_up(time_ms: i64, millis: i64) -> i64 {
    match time_ms.rem_euclid(millis) {
        0 => time_ms,
        past => time_ms.saturating_add(millis - past),
    }
}
