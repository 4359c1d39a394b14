//! Downsampling a row while it is decoded, where no bucket reaches beyond an hour or buckets are whole hours: its points are
//! never kept.

use basalt_schema::{BaseTime, RowPoints};
use basalt_store::{PackedRow, RowSummary};

use super::bucket_value::BucketValue;
use super::hours::HoursDownsample;
use super::kernel::bucket_end;
use super::{Downsample, Interval};
use crate::aggregate::PercentileRule;
use crate::span::{Span, uniform};

/// Milliseconds of a row.
const ROW_MS: u32 = BaseTime::SPAN_MS;

/// Buckets that a series has room for when it gets its first.
const BUCKETS_AT_FIRST: usize = 16;

/// Makes a row's buckets.
#[derive(Debug)]
pub(crate) struct RowDownsample {
    /// Milliseconds of a bucket; an hour is a whole number of them.
    interval_ms: u32,
    value: BucketValue,
    /// In place of both, where a bucket is of many rows.
    hours: Option<HoursDownsample>,
}

/// Where the buckets of a series go: their values, and of how many points each is while rows are joined.
pub(crate) type SeriesBuckets<'a> = (&'a mut Span, &'a mut Vec<i64>);

impl RowDownsample {
    /// `None` where a bucket may hold points of two rows, but for whole hours of what can be joined.
    pub(crate) fn new(spec: &Downsample, rule: PercentileRule) -> Option<Self> {
        let value = BucketValue::new(spec.function, rule);
        let within = match spec.interval {
            Interval::Fixed(millis) => u32::try_from(millis).ok(),
            Interval::All | Interval::Calendar { .. } => None,
        };
        if let Some(interval_ms) = within.filter(|millis| *millis > 0 && ROW_MS.is_multiple_of(*millis)) {
            return Some(Self { interval_ms, value, hours: None });
        }
        let hours = HoursDownsample::new(spec.interval, spec.function, rule)?;
        Some(Self { interval_ms: ROW_MS, value, hours: Some(hours) })
    }

    /// Whether a bucket is of many rows. If a row comes that cannot be joined, all was read for nothing.
    pub(crate) fn joins_rows(&self) -> bool {
        self.hours.is_some()
    }

    /// Ends a series whose rows have all been taken.
    pub(crate) fn finish(&self, (span, counts): SeriesBuckets<'_>) {
        if let Some(hours) = &self.hours {
            hours.finish(span, counts);
        }
    }

    /// Adds the buckets of a row to those of the rows before it; gives how many. `None`, and nothing is added, where the
    /// row does not begin on the hour and after the last, or reaches beyond its hour: no writer of ours makes such rows.
    ///
    /// *Cost*: linear in the points, mostly far less than decoding them.
    pub(crate) fn take(&mut self, base: BaseTime, row: &RowPoints, out: SeriesBuckets<'_>) -> Option<usize> {
        let is_double = |at: usize| row.kinds().get(at).is_some_and(|kind| kind.is_float());
        self.take_points(base, (row.offsets_ms(), row.values()), uniform(row.kinds()), is_double, out)
    }

    /// The same of a row by columns.
    pub(crate) fn take_packed(&mut self, base: BaseTime, row: &PackedRow<'_>, out: SeriesBuckets<'_>) -> Option<usize> {
        self.take_points(base, (row.offsets_ms, row.words), Some(row.is_float), |_| row.is_float, out)
    }

    /// Whether a whole row's bucket can be made of its summary: a row is then one bucket, by a function that needs no
    /// point.
    pub(crate) fn takes_summaries(&self) -> bool {
        self.interval_ms == ROW_MS && self.value.takes_summaries()
    }

    /// The same of a row that is summed up, where that will do.
    ///
    /// A row lies in its bucket as a whole: the window is read by whole hours, and what is not asked for is cut off from
    /// the buckets.
    pub(crate) fn take_summary(&mut self, base: BaseTime, row: &RowSummary, out: SeriesBuckets<'_>) -> Option<usize> {
        if let Some(hours) = &mut self.hours {
            return hours.take_summary(base, row, out);
        }
        let (span, _) = out;
        let base_ms = i64::from(base.seconds()) * 1000;
        let on_the_hour = base.seconds().is_multiple_of(BaseTime::SPAN_S);
        let after_the_last = span.times().last().is_none_or(|last| *last < base_ms);
        if !on_the_hour || !after_the_last || row.last_ms >= ROW_MS || !self.takes_summaries() {
            return None;
        }
        let value = self.value.of_summary(row)?;
        span.reserve_first(BUCKETS_AT_FIRST);
        span.push_double(base_ms, value);
        Some(1)
    }

    /// The same of offsets and words, whose kinds are all as `kinds` says, or each as `is_double` says.
    fn take_points(
        &mut self,
        base: BaseTime,
        (offsets_ms, words): (&[u32], &[u64]),
        kinds: Option<bool>,
        is_double: impl Fn(usize) -> bool,
        out: SeriesBuckets<'_>,
    ) -> Option<usize> {
        if let Some(hours) = &mut self.hours {
            return hours.take_points(base, (offsets_ms, words), kinds, is_double, out);
        }
        let (span, _) = out;
        let base_ms = i64::from(base.seconds()) * 1000;
        let on_the_hour = base.seconds().is_multiple_of(BaseTime::SPAN_S);
        let after_the_last = span.times().last().is_none_or(|last| *last < base_ms);
        if !on_the_hour || !after_the_last || offsets_ms.last().is_some_and(|last| *last >= ROW_MS) {
            return None;
        }
        let (mut at, mut made) = (0, 0);
        span.reserve_first(BUCKETS_AT_FIRST);
        while let Some(offset_ms) = offsets_ms.get(at) {
            let bucket_ms = offset_ms - offset_ms % self.interval_ms;
            let end = bucket_end(offsets_ms, at, bucket_ms + self.interval_ms);
            let words = words.get(at..end).unwrap_or_default();
            let value = self.value.of(words, kinds, |of_bucket| is_double(at + of_bucket));
            span.push_double(base_ms + i64::from(bucket_ms), value);
            assert!(end > at, "BUG: a bucket without a point");
            (at, made) = (end, made + 1);
        }
        Some(made)
    }
}
