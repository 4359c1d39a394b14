//! Downsampling rows into buckets of whole hours, each of many rows: what a row's points are together is joined to the rows
//! before, and no point is kept.
//!
//! Invariant: what comes out is, to the last bit, what downsampling all points gives. So sums are joined only of integers of 32
//! bits, which doubles add without a rest in any order, and nothing is joined that may be not-a-number or −0.

use basalt_schema::BaseTime;
use basalt_store::RowSummary;
use chrono_tz::Tz;

use super::Interval;
use super::bucket_value::{BucketValue, EXACT_LEN_BITS, exact_sum};
use super::calendar::Bucket;
use crate::aggregate::{Aggregator, PercentileRule};
use crate::duration::Duration;
use crate::span::Span;

/// Milliseconds of a row.
const ROW_MS: i64 = BaseTime::SPAN_MS as i64;
/// The most points of a bucket: so many integers of 32 bits have a sum that a double holds.
const COUNT_MAX: i64 = 1 << EXACT_LEN_BITS;

/// Makes buckets of rows.
#[derive(Debug)]
pub(super) struct HoursDownsample {
    buckets: Buckets,
    join: Join,
    /// Makes the value of a row.
    of_row: BucketValue,
}

/// Where buckets begin and end.
#[derive(Debug)]
enum Buckets {
    /// Every so many milliseconds from the epoch on, whole hours.
    Fixed(i64),
    /// As a calendar has them; the one that was found last, since rows come by time.
    Calendar { duration: Duration, zone: Tz, found: (i64, i64) },
}

/// How the values of two rows become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Join {
    Sum,
    /// Sums, divided in the end.
    Average,
    Least,
    Greatest,
    Count,
    Last,
}

/// What a row adds to a bucket.
#[derive(Debug, Clone, Copy)]
struct Piece {
    value: f64,
    /// Of how many points.
    count: i64,
}

impl HoursDownsample {
    /// `None` where buckets are no whole hours, or by a function that takes all points.
    pub(super) fn new(interval: Interval, function: Aggregator, rule: PercentileRule) -> Option<Self> {
        let buckets = match interval {
            Interval::Fixed(millis) if millis > ROW_MS && millis % ROW_MS == 0 => Buckets::Fixed(millis),
            // Buckets of several units are stepped to from the first, which need not be the way to the next one's.
            Interval::Calendar { duration, zone, .. } if duration.count == 1 && duration.millis > ROW_MS => {
                Buckets::Calendar { duration, zone, found: (0, 0) }
            }
            Interval::Fixed(_) | Interval::Calendar { .. } | Interval::All => return None,
        };
        let (join, of_row) = match function {
            Aggregator::Sum | Aggregator::ZimSum | Aggregator::PfSum => (Join::Sum, Aggregator::Sum),
            Aggregator::Avg => (Join::Average, Aggregator::Sum),
            Aggregator::Min | Aggregator::MimMin => (Join::Least, Aggregator::Min),
            Aggregator::Max | Aggregator::MimMax => (Join::Greatest, Aggregator::Max),
            Aggregator::Count => (Join::Count, Aggregator::Count),
            Aggregator::Last => (Join::Last, Aggregator::Last),
            _ => return None,
        };
        Some(Self { buckets, join, of_row: BucketValue::new(of_row, rule) })
    }

    /// Adds a row that is summed up; gives how many buckets are new. `None`, and nothing is added, where the row and the rows
    /// before it may give another value together than their points do.
    pub(super) fn take_summary(
        &mut self,
        base: BaseTime,
        row: &RowSummary,
        (span, counts): (&mut Span, &mut Vec<i64>),
    ) -> Option<usize> {
        let fits = |word: u64| i32::try_from(word.cast_signed()).is_ok();
        let is_exact = !row.is_float && fits(row.min) && fits(row.max);
        if self.sums() && !is_exact || i64::from(row.last_ms) >= ROW_MS {
            return None;
        }
        let piece = Piece { value: self.of_row.of_summary(row)?, count: row.count.into() };
        self.join(base, piece, span, counts)
    }

    /// The same of points: their offsets and words, whose kinds are all as `kinds` says, or each as `is_double` says.
    pub(super) fn take_points(
        &mut self,
        base: BaseTime,
        (offsets_ms, words): (&[u32], &[u64]),
        kinds: Option<bool>,
        is_double: impl Fn(usize) -> bool,
        (span, counts): (&mut Span, &mut Vec<i64>),
    ) -> Option<usize> {
        let Some(last_ms) = offsets_ms.last() else { return Some(0) };
        let is_plain = |double: f64| double.is_finite() && double.to_bits() != (-0.0_f64).to_bits();
        let is_exact = if self.sums() {
            kinds == Some(false) && exact_sum(words).is_some()
        } else {
            words.iter().enumerate().all(|(at, word)| !is_double(at) || is_plain(f64::from_bits(*word)))
        };
        if !is_exact || i64::from(*last_ms) >= ROW_MS {
            return None;
        }
        let count = i64::try_from(words.len()).ok()?;
        let piece = Piece { value: self.of_row.of(words, kinds, is_double), count };
        self.join(base, piece, span, counts)
    }

    /// Makes averages of sums.
    pub(super) fn finish(&self, span: &mut Span, counts: &mut Vec<i64>) {
        if self.join == Join::Average {
            span.map_doubles(counts, |sum, count| sum / crate::aggregate::to_double(count));
        }
        counts.clear();
    }

    fn sums(&self) -> bool {
        matches!(self.join, Join::Sum | Join::Average)
    }

    fn join(&mut self, base: BaseTime, piece: Piece, span: &mut Span, counts: &mut Vec<i64>) -> Option<usize> {
        let base_ms = i64::from(base.seconds()) * 1000;
        let (start_ms, end_ms) = self.bucket(base_ms);
        if base_ms % ROW_MS != 0 || base_ms < start_ms || base_ms + ROW_MS > end_ms {
            return None;
        }
        let last_ms = span.times().last().copied();
        if last_ms != Some(start_ms) {
            let follows = last_ms.is_none_or(|last_ms| last_ms < start_ms) && piece.count <= COUNT_MAX;
            return follows.then(|| {
                span.push_double(start_ms, piece.value);
                counts.push(piece.count);
                1
            });
        }
        let of_bucket = counts.last_mut()?;
        let count = *of_bucket + piece.count;
        if count > COUNT_MAX {
            return None;
        }
        *of_bucket = count;
        let before = span.double(span.len() - 1);
        span.replace_last(match self.join {
            Join::Sum | Join::Average | Join::Count => before + piece.value,
            Join::Least => before.min(piece.value),
            Join::Greatest => before.max(piece.value),
            Join::Last => piece.value,
        });
        Some(0)
    }

    /// The bucket that holds an instant: its start and its end.
    fn bucket(&mut self, time_ms: i64) -> (i64, i64) {
        match &mut self.buckets {
            Buckets::Fixed(millis) => {
                let start_ms = time_ms - time_ms.rem_euclid(*millis);
                (start_ms, start_ms.saturating_add(*millis))
            }
            Buckets::Calendar { duration, zone, found } => {
                if !(found.0..found.1).contains(&time_ms) {
                    let bucket = Bucket::holding(time_ms, *duration, *zone);
                    *found = (bucket.start_ms(), bucket.next().start_ms());
                }
                *found
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use basalt_store::PackedRow;
    use proptest::prelude::*;

    use super::super::{Downsample, RowDownsample, downsample};
    use crate::Compat;
    use crate::aggregate::{PercentileRule, to_double};
    use crate::answer::Number;
    use crate::span::Span;
    use crate::window::Window;
    use crate::zone::parse_zone;

    use super::*;

    const START: i64 = 1_332_000_000 / 3600 * 3600;

    /// A row: its hour, whether it is of floats, its words, and whether it comes summed up.
    type Row = (i64, bool, Vec<u64>, bool);

    /// The words of a row that may be summed up: no float is not-a-number, infinite or −0.
    fn row() -> impl Strategy<Value = (bool, Vec<u64>, bool)> {
        let words = proptest::collection::vec((-40_000_i64..40_000, 0_u32..3), 1..20);
        (prop_oneof![3 => Just(false), 1 => Just(true)], words, any::<bool>()).prop_map(
            |(is_float, words, is_summed)| {
                let float = |value: i64| (to_double(value) / 10.0 + 0.0).to_bits();
                let integer = |value: i64, shift: u32| (value << (shift * 6)).cast_unsigned();
                let word = |(value, shift)| if is_float { float(value) } else { integer(value, shift) };
                (is_float, words.into_iter().map(word).collect(), is_summed)
            },
        )
    }

    fn summary(is_float: bool, words: &[u64]) -> RowSummary {
        let double = |word: &u64| if is_float { f64::from_bits(*word) } else { to_double(word.cast_signed()) };
        let by = |a: &&u64, b: &&u64| double(a).total_cmp(&double(b));
        RowSummary {
            count: u32::try_from(words.len()).unwrap(),
            first_ms: 0,
            last_ms: u32::try_from(words.len() - 1).unwrap() * 1000,
            is_float,
            min: *words.iter().min_by(by).unwrap(),
            max: *words.iter().max_by(by).unwrap(),
            last: *words.last().unwrap(),
            sum: words.iter().fold(0.0, |sum, word| sum + double(word)),
        }
    }

    /// Takes rows one by one; `None` where one does not fit.
    fn joined(spec: &Downsample, rows: &[Row]) -> Option<Span> {
        let mut of_rows = RowDownsample::new(spec, PercentileRule::AsNamed).unwrap();
        assert!(of_rows.joins_rows() && of_rows.takes_summaries());
        let (mut span, mut counts) = (Span::default(), Vec::new());
        for (hour, is_float, words, is_summed) in rows {
            let base = BaseTime::of_seconds(u32::try_from(START + hour * 3600).unwrap());
            let offsets_ms: Vec<u32> = (0..words.len()).map(|n| u32::try_from(n * 1000).unwrap()).collect();
            let (before, out) = (span.len(), (&mut span, &mut counts));
            let taken = if *is_summed {
                of_rows.take_summary(base, &summary(*is_float, words), out)
            } else {
                of_rows.take_packed(base, &PackedRow { offsets_ms: &offsets_ms, words, is_float: *is_float }, out)
            };
            assert_eq!(taken?, span.len() - before);
        }
        of_rows.finish((&mut span, &mut counts));
        assert!(counts.is_empty());
        Some(span)
    }

    fn all_points(rows: &[Row]) -> Span {
        let mut span = Span::default();
        for (hour, is_float, words, _) in rows {
            for (second, word) in (0..).zip(words) {
                let number =
                    if *is_float { Number::Double(f64::from_bits(*word)) } else { Number::Integer(word.cast_signed()) };
                span.push((START + hour * 3600 + second) * 1000, number);
            }
        }
        span
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        /// Rows that are joined give the bits of all their points, whatever of them comes summed up; and where they are
        /// integers, or no sum is asked for, they are joined in every zone of whole hours, also over a change of its clocks.
        #[test]
        fn rows_joined_give_the_buckets_of_all_points(
            rows in proptest::collection::btree_map(0_i64..24 * 20, row(), 1..60),
            interval in prop_oneof![
                Just("2h"), Just("6h"), Just("7h"), Just("1d"), Just("1w"), Just("1dc"), Just("1wc"), Just("1nc"),
            ],
            function in prop_oneof![
                Just("sum"), Just("zimsum"), Just("avg"), Just("min"), Just("mimmax"), Just("max"), Just("count"), Just("last"),
            ],
            zone in prop_oneof![Just("UTC"), Just("Europe/Berlin"), Just("America/New_York"), Just("Asia/Kolkata")],
            first in 0_i64..40,
        ) {
            let rows: Vec<Row> = rows.into_iter().map(|(hour, (is_float, words, is_summed))| (hour, is_float, words, is_summed)).collect();
            let spec = Downsample::parse(&format!("{interval}-{function}"), parse_zone(zone).unwrap(), false, Compat::default()).unwrap();
            let window = Window::new((START + first * 3600) * 1000, (START + 86_400 * 20) * 1000, spec.fixed_ms());
            let is_read = |(hour, ..): &&Row| (window.scan_start_ms..window.scan_end_ms).contains(&((START + hour * 3600) * 1000));
            let rows: Vec<Row> = rows.iter().filter(is_read).cloned().collect();
            let expected = downsample(&all_points(&rows), &spec, &window, PercentileRule::AsNamed);
            let sums = ["sum", "zimsum", "avg"].contains(&function);
            let is_odd = zone == "Asia/Kolkata" && interval.ends_with('c');
            match joined(&spec, &rows) {
                None => {
                    let is_wide = |word: &u64| i32::try_from(word.cast_signed()).is_err();
                    let is_inexact = rows.iter().any(|(_, is_float, words, _)| *is_float || words.iter().any(is_wide));
                    prop_assert!(is_odd || sums && is_inexact);
                }
                Some(mut found) => {
                    found.drop_before(window.scan_start_ms);
                    prop_assert_eq!(found.times(), expected.times());
                    prop_assert_eq!(found.words(), expected.words());
                }
            }
        }
    }

    #[test]
    fn what_may_give_other_bits_is_not_joined() {
        let spec = |text: &str| Downsample::parse(text, parse_zone("UTC").unwrap(), false, Compat::default()).unwrap();
        let row = |hour, is_float, words: &[u64], is_summed| (hour, is_float, words.to_vec(), is_summed);
        let half = 0.5_f64.to_bits();
        for is_summed in [true, false] {
            assert!(joined(&spec("2h-sum"), &[row(0, true, &[half], is_summed)]).is_none());
            assert!(joined(&spec("2h-avg"), &[row(0, false, &[1 << 31], is_summed)]).is_none());
            assert!(joined(&spec("2h-max"), &[row(0, true, &[half], is_summed)]).is_some());
        }
        for odd in [f64::NAN, -0.0, f64::INFINITY] {
            assert!(joined(&spec("2h-min"), &[row(0, true, &[half, odd.to_bits()], false)]).is_none());
        }
        // More integers than are surely exact together.
        let many = RowSummary { count: 1 << 21, ..summary(false, &[1]) };
        let mut of_rows = RowDownsample::new(&spec("1d-sum"), PercentileRule::AsNamed).unwrap();
        let (mut span, mut counts) = (Span::default(), Vec::new());
        let base = BaseTime::of_seconds(1_332_028_800);
        assert_eq!(of_rows.take_summary(base, &many, (&mut span, &mut counts)), Some(1));
        assert_eq!(of_rows.take_summary(base.next().unwrap(), &many, (&mut span, &mut counts)), None);
    }
}
