//! Members of the same instants as columns of values, and the functions that take one value after the other.
//!
//! These go over whole columns in turn: as a processor reads memory best, and several instants at once. At each instant the
//! values come in the members' order, so that sums have the same last bits.

use crate::aggregate::{Aggregator, count, to_double};
use crate::span::Span;

/// The values of one member at the instants answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column<'a> {
    words: &'a [u64],
    pub(super) is_double: bool,
}

impl<'a> Column<'a> {
    pub(super) fn of(span: &'a Span, from: usize, to: usize) -> Option<Self> {
        Some(Self { words: span.words().get(from..to)?, is_double: span.uniform()? })
    }

    /// The words at `len` instants from `at` on.
    pub(super) fn part(&self, at: usize, len: usize) -> &'a [u64] {
        self.words.get(at..at + len).unwrap_or_default()
    }

    pub(super) fn integer(&self, at: usize) -> i64 {
        self.words.get(at).copied().unwrap_or_default().cast_signed()
    }

    pub(super) fn double(&self, at: usize) -> f64 {
        let word = self.words.get(at).copied().unwrap_or_default();
        if self.is_double { f64::from_bits(word) } else { to_double(word.cast_signed()) }
    }
}

/// A function of whole columns.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fold {
    Sum,
    Avg,
    Min,
    Max,
}

impl Fold {
    pub(super) const fn of(function: Aggregator) -> Option<Self> {
        match function {
            Aggregator::Sum | Aggregator::ZimSum | Aggregator::PfSum => Some(Self::Sum),
            Aggregator::Avg => Some(Self::Avg),
            Aggregator::Min | Aggregator::MimMin => Some(Self::Min),
            Aggregator::Max | Aggregator::MimMax => Some(Self::Max),
            Aggregator::SquareSum
            | Aggregator::Count
            | Aggregator::Dev
            | Aggregator::Median
            | Aggregator::Mult
            | Aggregator::Diff
            | Aggregator::First
            | Aggregator::Last
            | Aggregator::None
            | Aggregator::Percentile(_) => None,
        }
    }

    /// [`Aggregator::of_integers`] at `len` instants from `at` on.
    pub(super) fn integers(self, columns: &[Column<'_>], at: usize, len: usize) -> Vec<i64> {
        match self {
            Self::Sum => folded(columns, at, len, i64::wrapping_add),
            Self::Min => folded(columns, at, len, i64::min),
            Self::Max => folded(columns, at, len, i64::max),
            Self::Avg => {
                let (sums, members) = (folded(columns, at, len, i64::wrapping_add), count(columns.len()));
                sums.into_iter().map(|sum| sum.checked_div(members).unwrap_or_default()).collect()
            }
        }
    }

    /// [`Aggregator::of_doubles`] at `len` instants from `at` on.
    pub(super) fn doubles(self, columns: &[Column<'_>], at: usize, len: usize) -> Vec<f64> {
        match self {
            Self::Sum | Self::Avg => {
                // -0.0 is what changes no sum, not even one of itself.
                let mut sums = vec![(-0.0, 0.0); len];
                let add = |(sum, n), value: f64| if value.is_nan() { (sum, n) } else { (sum + value, n + 1.0) };
                each(columns, at, &mut sums, add);
                let value = |(sum, n): (f64, f64)| {
                    let value = if matches!(self, Self::Avg) { (0.0 + sum) / n } else { 0.0 + sum };
                    if n > 0.0 { value } else { f64::NAN }
                };
                sums.into_iter().map(value).collect()
            }
            Self::Min => {
                let mut values = vec![f64::NAN; len];
                each(columns, at, &mut values, |min, value| if value < min || min.is_nan() { value } else { min });
                values.into_iter().map(|min| if min < f64::INFINITY { min } else { f64::NAN }).collect()
            }
            Self::Max => {
                let mut values = vec![f64::NAN; len];
                each(columns, at, &mut values, |max, value| if value > max || max.is_nan() { value } else { max });
                values.into_iter().map(|max| if max > f64::NEG_INFINITY { max } else { f64::NAN }).collect()
            }
        }
    }
}

#[inline]
fn folded(columns: &[Column<'_>], at: usize, len: usize, take: impl Fn(i64, i64) -> i64) -> Vec<i64> {
    let Some((first, others)) = columns.split_first() else {
        return Vec::new();
    };
    let mut values: Vec<i64> = first.part(at, len).iter().map(|word| word.cast_signed()).collect();
    for column in others {
        for (value, word) in values.iter_mut().zip(column.part(at, len)) {
            *value = take(*value, word.cast_signed());
        }
    }
    values
}

#[inline]
fn each<T: Copy>(columns: &[Column<'_>], at: usize, values: &mut [T], take: impl Fn(T, f64) -> T) {
    for column in columns {
        let words = column.part(at, values.len());
        if column.is_double {
            values.iter_mut().zip(words).for_each(|(value, word)| *value = take(*value, f64::from_bits(*word)));
        } else {
            let take = |value, word: &u64| take(value, to_double(word.cast_signed()));
            values.iter_mut().zip(words).for_each(|(value, word)| *value = take(*value, word));
        }
    }
}
