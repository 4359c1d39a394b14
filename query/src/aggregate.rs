//! Aggregators: the functions that make one value of many, over 64-bit integers or doubles.
//!
//! The same function serves across series at one instant and over time within a downsampling bucket (always doubles
//! there). Integers stay integers: sums wrap, quotients truncate toward zero. NaN means "no value here" and is left
//! out unless a function says otherwise. Every slice given holds at least one value. *Source*: OpenTSDB 2.4
//! `Aggregators`.

mod percentile;

use percentile::{Estimation, percentile};

/// How a series between two of its points takes part at an instant where it has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Interpolation {
    /// On the line between the two points.
    Linear,
    /// As zero.
    Zero,
    /// As the largest number there is.
    Max,
    /// As the smallest number there is.
    Min,
    /// As the earlier point's value.
    Previous,
}

impl Interpolation {
    /// The integer that stands for every series, where it does not depend on the series.
    pub(crate) const fn integer(self) -> Option<i64> {
        match self {
            Self::Zero => Some(0),
            Self::Max => Some(i64::MAX),
            Self::Min => Some(i64::MIN),
            Self::Linear | Self::Previous => None,
        }
    }

    /// The double that stands for every series, where it does not depend on the series.
    pub(crate) const fn double(self) -> Option<f64> {
        match self {
            Self::Zero => Some(0.0),
            Self::Max => Some(f64::MAX),
            Self::Min => Some(-f64::MAX),
            Self::Linear | Self::Previous => None,
        }
    }
}

/// Which of the live series of a group an aggregator looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deciding {
    /// Every one.
    All,
    /// The first in order.
    First,
    /// The last in order.
    Last,
    /// Those that have a point at the instant. Of the others one is as good as many, in whatever place; `count` counts them.
    WithPoint,
}

/// A function of many values, by OpenTSDB's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Aggregator {
    /// Sum, linear.
    Sum,
    /// Sum, missing values as zero.
    ZimSum,
    /// Sum, missing values as the previous one.
    PfSum,
    /// Sum of squares, missing values as zero.
    SquareSum,
    /// Smallest.
    Min,
    /// Largest.
    Max,
    /// Smallest, missing values as the largest number.
    MimMin,
    /// Largest, missing values as the smallest number.
    MimMax,
    /// Mean.
    Avg,
    /// How many.
    Count,
    /// Population standard deviation.
    Dev,
    /// The upper median.
    Median,
    /// Product.
    Mult,
    /// Last less first.
    Diff,
    /// First in order.
    First,
    /// Last in order.
    Last,
    /// No aggregation: each series for itself.
    None,
    /// A percentile.
    Percentile(Percentile),
}

/// A percentile in tenths of a percent, and how it is estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Percentile {
    per_mille: u16,
    estimation: Estimation,
}

impl Percentile {
    const fn new(per_mille: u16, estimation: Estimation) -> Self {
        Self { per_mille, estimation }
    }
}

/// Every aggregator by name, sorted as `/api/aggregators` may list them.
const NAMES: &[(&str, Aggregator)] = &[
    ("avg", Aggregator::Avg),
    ("count", Aggregator::Count),
    ("dev", Aggregator::Dev),
    ("diff", Aggregator::Diff),
    ("ep50r3", Aggregator::Percentile(Percentile::new(500, Estimation::R3))),
    ("ep50r7", Aggregator::Percentile(Percentile::new(500, Estimation::R7))),
    ("ep75r3", Aggregator::Percentile(Percentile::new(750, Estimation::R3))),
    ("ep75r7", Aggregator::Percentile(Percentile::new(750, Estimation::R7))),
    ("ep90r3", Aggregator::Percentile(Percentile::new(900, Estimation::R3))),
    ("ep90r7", Aggregator::Percentile(Percentile::new(900, Estimation::R7))),
    ("ep95r3", Aggregator::Percentile(Percentile::new(950, Estimation::R3))),
    ("ep95r7", Aggregator::Percentile(Percentile::new(950, Estimation::R7))),
    ("ep999r3", Aggregator::Percentile(Percentile::new(999, Estimation::R3))),
    ("ep999r7", Aggregator::Percentile(Percentile::new(999, Estimation::R7))),
    ("ep99r3", Aggregator::Percentile(Percentile::new(990, Estimation::R3))),
    ("ep99r7", Aggregator::Percentile(Percentile::new(990, Estimation::R7))),
    ("first", Aggregator::First),
    ("last", Aggregator::Last),
    ("max", Aggregator::Max),
    ("median", Aggregator::Median),
    ("mimmax", Aggregator::MimMax),
    ("mimmin", Aggregator::MimMin),
    ("min", Aggregator::Min),
    ("mult", Aggregator::Mult),
    ("none", Aggregator::None),
    ("p50", Aggregator::Percentile(Percentile::new(500, Estimation::Plain))),
    ("p75", Aggregator::Percentile(Percentile::new(750, Estimation::Plain))),
    ("p90", Aggregator::Percentile(Percentile::new(900, Estimation::Plain))),
    ("p95", Aggregator::Percentile(Percentile::new(950, Estimation::Plain))),
    ("p99", Aggregator::Percentile(Percentile::new(990, Estimation::Plain))),
    ("p999", Aggregator::Percentile(Percentile::new(999, Estimation::Plain))),
    ("pfsum", Aggregator::PfSum),
    ("squareSum", Aggregator::SquareSum),
    ("sum", Aggregator::Sum),
    ("zimsum", Aggregator::ZimSum),
];

impl Aggregator {
    /// The aggregator of this name, case and all.
    pub fn by_name(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, aggregator)| *aggregator)
    }

    /// Its name.
    pub(crate) fn name(self) -> &'static str {
        NAMES.iter().find(|(_, known)| *known == self).map_or("", |(name, _)| *name)
    }

    /// Every name, sorted.
    pub fn names() -> impl ExactSizeIterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name)
    }

    /// How it fills in a series between two points.
    pub const fn interpolation(self) -> Interpolation {
        match self {
            Self::ZimSum | Self::SquareSum | Self::Count | Self::First | Self::Last | Self::None => Interpolation::Zero,
            Self::PfSum => Interpolation::Previous,
            Self::MimMin => Interpolation::Max,
            Self::MimMax => Interpolation::Min,
            Self::Sum
            | Self::Min
            | Self::Max
            | Self::Avg
            | Self::Dev
            | Self::Median
            | Self::Mult
            | Self::Diff
            | Self::Percentile(_) => Interpolation::Linear,
        }
    }

    /// Which series it looks at.
    pub(crate) const fn deciding(self) -> Deciding {
        match (self, self.interpolation()) {
            (Self::First | Self::None, _) => Deciding::First,
            (Self::Last, _) => Deciding::Last,
            // The same value of each stands in: more zeros change no sum, nor its last bit; that of -0.0 alone is 0.0 as well.
            (_, Interpolation::Zero | Interpolation::Max | Interpolation::Min) => Deciding::WithPoint,
            (_, Interpolation::Linear | Interpolation::Previous) => Deciding::All,
        }
    }

    /// Applies it to integers. `values` is left in any order. The empty slice gives 0.
    ///
    /// *Cost*: linear; medians and percentiles sort or copy.
    pub fn of_integers(self, values: &mut [i64]) -> i64 {
        let (Some(&first), Some(&last)) = (values.first(), values.last()) else {
            return 0;
        };
        match self {
            Self::Sum | Self::ZimSum | Self::PfSum => wrapping_sum(values),
            Self::SquareSum => values.iter().fold(0, |sum: i64, v| sum.wrapping_add(v.wrapping_mul(*v))),
            Self::Min | Self::MimMin => values.iter().copied().min().unwrap_or(first),
            Self::Max | Self::MimMax => values.iter().copied().max().unwrap_or(first),
            Self::Avg => wrapping_sum(values).wrapping_div(count(values.len())),
            Self::Count => count(values.len()),
            Self::Dev => truncate(deviation(values.iter().map(|v| to_double(*v)))),
            Self::Median => *values.select_nth_unstable(values.len() / 2).1,
            Self::Mult => values.iter().fold(1, |product: i64, v| product.wrapping_mul(*v)),
            Self::Diff => {
                if values.len() == 1 {
                    0
                } else {
                    last.wrapping_sub(first)
                }
            }
            Self::First | Self::None => first,
            Self::Last => last,
            Self::Percentile(p) => {
                let mut doubles: Vec<f64> = values.iter().map(|v| to_double(*v)).collect();
                truncate(percentile(&mut doubles, f64::from(p.per_mille) / 10.0, p.estimation))
            }
        }
    }

    /// Applies it to doubles; NaN is "no value" unless said otherwise. `values` is left in any order. The empty slice
    /// gives NaN, but 0 for `count`.
    ///
    /// *Cost*: linear; medians and percentiles sort.
    pub fn of_doubles(self, values: &mut [f64], estimation: PercentileRule) -> f64 {
        let numbers = || values.iter().copied().filter(|v| !v.is_nan());
        match self {
            Self::Sum | Self::ZimSum | Self::PfSum => {
                numbers().reduce(|sum, v| sum + v).map_or(f64::NAN, |sum| 0.0 + sum)
            }
            Self::SquareSum => numbers().map(|v| v * v).reduce(|sum, v| sum + v).unwrap_or(f64::NAN),
            Self::Min | Self::MimMin => smallest(numbers()),
            Self::Max | Self::MimMax => largest(numbers()),
            Self::Avg => {
                let (sum, n) = numbers().fold((0.0, 0_i32), |(sum, n), v| (sum + v, n + 1));
                if n == 0 { f64::NAN } else { sum / f64::from(n) }
            }
            Self::Count => to_double(count(numbers().count())),
            Self::Dev => deviation(numbers()),
            // NaN poisons a product.
            Self::Mult => values.iter().copied().reduce(|product, v| product * v).unwrap_or(f64::NAN),
            Self::Diff => difference(values),
            Self::First | Self::None => values.first().copied().unwrap_or(f64::NAN),
            Self::Last => values.last().copied().unwrap_or(f64::NAN),
            Self::Median => {
                let numbers = drop_nan(values);
                if numbers.is_empty() {
                    return f64::NAN;
                }
                *numbers.select_nth_unstable_by(numbers.len() / 2, f64::total_cmp).1
            }
            Self::Percentile(p) => {
                let estimation = match estimation {
                    PercentileRule::AsNamed => p.estimation,
                    PercentileRule::Plain => Estimation::Plain,
                };
                percentile(drop_nan(values), f64::from(p.per_mille) / 10.0, estimation)
            }
        }
    }
}

/// Which estimation the percentiles `ep…r3` and `ep…r7` use on doubles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PercentileRule {
    /// The one they are named after.
    #[default]
    AsNamed,
    /// The plain one: OpenTSDB forgets the suffix on doubles.
    Plain,
}

fn wrapping_sum(values: &[i64]) -> i64 {
    values.iter().fold(0, |sum: i64, v| sum.wrapping_add(*v))
}

/// A number of values, as `count` gives it.
pub(crate) fn count(len: usize) -> i64 {
    i64::try_from(len).unwrap_or(i64::MAX)
}

/// As Java widens a long: to the nearest double.
#[expect(clippy::cast_precision_loss, reason = "the nearest double is what is asked for")]
pub(crate) fn to_double(value: i64) -> f64 {
    value as f64
}

/// As Java narrows a double: toward zero, NaN to 0, beyond the range to its ends.
#[expect(clippy::cast_possible_truncation, reason = "truncation is what is asked for")]
pub(crate) fn truncate(value: f64) -> i64 {
    value as i64
}

fn smallest(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.reduce(|min, v| if v < min { v } else { min }).filter(|min| *min < f64::INFINITY).unwrap_or(f64::NAN)
}

fn largest(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.reduce(|max, v| if v > max { v } else { max }).filter(|max| *max > f64::NEG_INFINITY).unwrap_or(f64::NAN)
}

/// Population standard deviation by Welford's running mean, as OpenTSDB does it, so that the last bits agree. NaN for
/// no number, 0 for one.
fn deviation(mut numbers: impl Iterator<Item = f64>) -> f64 {
    let Some(mut mean) = numbers.next() else {
        return f64::NAN;
    };
    let (mut n, mut squares) = (1.0, 0.0);
    for x in numbers {
        n += 1.0;
        let next_mean = mean + (x - mean) / n;
        squares += (x - mean) * (x - next_mean);
        mean = next_mean;
    }
    if n < 2.0 { 0.0 } else { (squares / n).sqrt() }
}

/// Last less the first that is a number. The last counts even when it is NaN; a number with nothing after it gives 0.
fn difference(values: &[f64]) -> f64 {
    let Some(at) = values.iter().position(|v| !v.is_nan()) else {
        return f64::NAN;
    };
    match values.get(at..) {
        Some([first, .., last]) => last - first,
        _ => 0.0,
    }
}

/// Moves the numbers to the front, in their order, and gives them.
fn drop_nan(values: &mut [f64]) -> &mut [f64] {
    let mut kept = 0;
    for at in 0..values.len() {
        if values.get(at).is_some_and(|v| !v.is_nan()) {
            values.swap(kept, at);
            kept += 1;
        }
    }
    values.get_mut(..kept).unwrap_or_default()
}

#[cfg(test)]
mod tests;
