//! One value of a bucket's many.

use basalt_store::RowSummary;

use crate::aggregate::{Aggregator, PercentileRule, to_double};

/// Of so many integers of 32 bits every sum is a whole number that a double holds exactly, in whatever order they are
/// added.
const EXACT_LEN_MAX: usize = 1 << EXACT_LEN_BITS;
pub(super) const EXACT_LEN_BITS: u32 = 21;
const _: () = assert!((EXACT_LEN_MAX as u64) << 31 <= 1 << f64::MANTISSA_DIGITS);

/// A function applied to bucket after bucket; always to doubles, as OpenTSDB downsamples.
#[derive(Debug)]
pub(super) struct BucketValue {
    function: Aggregator,
    rule: PercentileRule,
    scratch: Vec<f64>,
}

impl BucketValue {
    pub(super) const fn new(function: Aggregator, rule: PercentileRule) -> Self {
        Self { function, rule, scratch: Vec::new() }
    }

    /// Whether [`BucketValue::of_summary`] knows the function.
    pub(super) fn takes_summaries(&self) -> bool {
        let summary =
            RowSummary { count: 1, first_ms: 0, last_ms: 0, is_float: false, min: 0, max: 0, last: 0, sum: 0.0 };
        self.of_summary(&summary).is_some()
    }

    /// The value of points that are summed up: that of the points, to the last bit. `None`: it takes them all.
    pub(super) fn of_summary(&self, points: &RowSummary) -> Option<f64> {
        let double = |word: u64| if points.is_float { f64::from_bits(word) } else { to_double(word.cast_signed()) };
        match self.function {
            // Sums run in the order of time, and so does that of the summary.
            Aggregator::Sum | Aggregator::ZimSum | Aggregator::PfSum => Some(points.sum),
            Aggregator::Avg => Some(points.sum / f64::from(points.count)),
            Aggregator::Min | Aggregator::MimMin => Some(double(points.min)),
            Aggregator::Max | Aggregator::MimMax => Some(double(points.max)),
            Aggregator::Count => Some(f64::from(points.count)),
            Aggregator::Last => Some(double(points.last)),
            _ => None,
        }
    }

    /// The value of words that are all doubles or none, as `uniform` says, or each as `is_double` says of its place.
    ///
    /// *Cost*: linear; medians and percentiles sort. No allocation once warm.
    pub(super) fn of(&mut self, words: &[u64], uniform: Option<bool>, is_double: impl Fn(usize) -> bool) -> f64 {
        // Fast path: integers whose value as doubles is known to be the same to the last bit.
        if uniform == Some(false)
            && let Some(value) = exactly(self.function, words)
        {
            return value;
        }
        let integer = |word: &u64| to_double(word.cast_signed());
        let double = |word: &u64| f64::from_bits(*word);
        self.scratch.clear();
        match uniform {
            Some(false) => self.scratch.extend(words.iter().map(integer)),
            Some(true) => self.scratch.extend(words.iter().map(double)),
            None => {
                let of = |(at, word)| if is_double(at) { double(word) } else { integer(word) };
                self.scratch.extend(words.iter().enumerate().map(of));
            }
        }
        self.function.of_doubles(&mut self.scratch, self.rule)
    }
}

/// What a function makes of integers as doubles, without a double a point; `None` if that could be another number.
fn exactly(function: Aggregator, words: &[u64]) -> Option<f64> {
    let integers = || words.iter().map(|word| word.cast_signed());
    match function {
        Aggregator::Sum | Aggregator::ZimSum | Aggregator::PfSum => exact_sum(words).map(to_double),
        Aggregator::Avg => Some(to_double(exact_sum(words)?) / to_double(i64::try_from(words.len()).ok()?)),
        // Widening keeps the order, so the extreme of the doubles is the double of the extreme.
        Aggregator::Min | Aggregator::MimMin => integers().min().map(to_double),
        Aggregator::Max | Aggregator::MimMax => integers().max().map(to_double),
        Aggregator::Count if !words.is_empty() => i64::try_from(words.len()).ok().map(to_double),
        Aggregator::First => integers().next().map(to_double),
        Aggregator::Last => integers().next_back().map(to_double),
        _ => None,
    }
}

/// The sum, if all fit into 32 bits and there are few enough.
pub(super) fn exact_sum(words: &[u64]) -> Option<i64> {
    if words.is_empty() || words.len() > EXACT_LEN_MAX {
        return None;
    }
    let add = |(sum, wide): (u64, u64), word: &u64| (sum.wrapping_add(*word), wide | word.wrapping_add(1 << 31) >> 32);
    let (sum, wide) = words.iter().fold((0, 0), add);
    (wide == 0).then_some(sum.cast_signed())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FUNCTIONS: [&str; 14] = [
        "sum", "zimsum", "pfsum", "avg", "min", "max", "mimmin", "mimmax", "count", "first", "last", "dev", "mult",
        "median",
    ];

    proptest! {
        /// The fast path gives the bits of the slow one.
        #[test]
        fn integers_give_what_their_doubles_give(
            integers in proptest::collection::vec(any::<i64>(), 1..40), shift in 0u32..64, which in 0..FUNCTIONS.len(),
        ) {
            let words: Vec<u64> = integers.iter().map(|integer| (integer >> shift).cast_unsigned()).collect();
            let function = Aggregator::by_name(FUNCTIONS[which]).unwrap();
            let mut value = BucketValue::new(function, PercentileRule::AsNamed);
            let fast = value.of(&words, Some(false), |_| false);
            let slow = value.of(&words, None, |_| false);
            prop_assert_eq!(fast.to_bits(), slow.to_bits());
        }
    }

    proptest! {
        /// What points are together gives the bits that they give.
        #[test]
        fn summaries_give_what_their_points_give(
            integers in proptest::collection::vec(-100_000_i64..100_000, 1..60), shift in 0_u32..40, is_float: bool,
            which in 0..FUNCTIONS.len(),
        ) {
            let float = |integer: &i64| to_double(*integer) / 100.0;
            let word = |integer: &i64| {
                if is_float { float(integer).to_bits() } else { (integer << shift).cast_unsigned() }
            };
            let words: Vec<u64> = integers.iter().map(word).collect();
            let double = |word: &u64| if is_float { f64::from_bits(*word) } else { to_double(word.cast_signed()) };
            let summary = RowSummary {
                count: u32::try_from(words.len()).unwrap(),
                first_ms: 0,
                last_ms: 1,
                is_float,
                min: integers.iter().min().map(word).unwrap(),
                max: integers.iter().max().map(word).unwrap(),
                last: words.last().copied().unwrap(),
                sum: words.iter().fold(0.0, |sum, word| sum + double(word)),
            };
            let function = Aggregator::by_name(FUNCTIONS[which]).unwrap();
            let mut value = BucketValue::new(function, PercentileRule::AsNamed);
            let of_points = value.of(&words, Some(is_float), |_| is_float);
            prop_assert!(value.of_summary(&summary).is_none_or(|value| value.to_bits() == of_points.to_bits()));
            prop_assert_eq!(value.of_summary(&summary).is_some(), value.takes_summaries());
        }
    }

    #[test]
    fn sums_that_a_double_cannot_hold_are_not_made_of_integers() {
        let word = |value: i64| value.cast_unsigned();
        assert_eq!(exact_sum(&[word(i64::from(i32::MIN)), word(i64::from(i32::MAX))]), Some(-1));
        assert_eq!(exact_sum(&[word(1 << 31)]), None);
        assert_eq!(exact_sum(&[word(-(1 << 31) - 1), word(1)]), None);
        assert_eq!(exact_sum(&vec![word(1); EXACT_LEN_MAX + 1]), None);
    }
}
