//! A span: the points of one series in time order, as a struct of arrays.
//!
//! Invariants: times strictly ascending; the three arrays of one length. A value is a 64-bit word, two's complement or
//! the bits of a double; which, is kept once for the whole span while all agree, and a flag a point once they differ.

use basalt_schema::{PointKind, RowPoints};
use basalt_store::PackedRow;

use crate::answer::Number;

/// The points of one series.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Span {
    times_ms: Vec<i64>,
    words: Vec<u64>,
    kinds: Kinds,
}

/// Which words are doubles.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Kinds {
    /// None.
    #[default]
    Integers,
    /// All.
    Doubles,
    /// Those flagged.
    Mixed(Vec<bool>),
}

impl Span {
    /// Doubles at these times; as many as there are of both.
    pub(crate) fn of_doubles(times_ms: &[i64], values: impl Iterator<Item = f64>) -> Self {
        let words: Vec<u64> = values.map(f64::to_bits).take(times_ms.len()).collect();
        let times_ms = times_ms.get(..words.len()).unwrap_or_default().to_vec();
        let kinds = if words.is_empty() { Kinds::default() } else { Kinds::Doubles };
        Self { times_ms, words, kinds }
    }

    /// How many points.
    pub(crate) fn len(&self) -> usize {
        self.times_ms.len()
    }

    /// Whether there is no point.
    pub(crate) fn is_empty(&self) -> bool {
        self.times_ms.is_empty()
    }

    /// Times in ms, strictly ascending.
    pub(crate) fn times(&self) -> &[i64] {
        &self.times_ms
    }

    /// Whether the value at `at` is a double.
    pub(crate) fn is_double(&self, at: usize) -> bool {
        match &self.kinds {
            Kinds::Integers => false,
            Kinds::Doubles => true,
            Kinds::Mixed(flags) => flags.get(at).copied().unwrap_or(false),
        }
    }

    /// The value at `at`, which is below the length.
    pub(crate) fn number(&self, at: usize) -> Number {
        let word = self.words.get(at).copied().unwrap_or_default();
        Number::of_word(word, self.is_double(at))
    }

    /// The value at `at` as a double.
    pub(crate) fn double(&self, at: usize) -> f64 {
        self.number(at).as_double()
    }

    /// Adds a point after all others.
    pub(crate) fn push(&mut self, time_ms: i64, number: Number) {
        debug_assert!(self.times_ms.last().is_none_or(|last| *last < time_ms), "BUG: a span goes back in time");
        let (word, is_double) = match number {
            Number::Integer(value) => (value.cast_unsigned(), false),
            Number::Double(value) => (value.to_bits(), true),
        };
        self.mark(is_double);
        self.times_ms.push(time_ms);
        self.words.push(word);
    }

    /// Makes room for so many points where there is none yet.
    pub(crate) fn reserve_first(&mut self, points: usize) {
        if self.is_empty() {
            self.times_ms.reserve(points);
            self.words.reserve(points);
        }
    }

    /// Adds a double after all others.
    pub(crate) fn push_double(&mut self, time_ms: i64, value: f64) {
        self.push(time_ms, Number::Double(value));
    }

    /// Puts a double in place of the last value, which is one too.
    pub(crate) fn replace_last(&mut self, value: f64) {
        debug_assert!(self.uniform() == Some(true), "BUG: an integer among buckets");
        if let Some(last) = self.words.last_mut() {
            *last = value.to_bits();
        }
    }

    /// Makes other doubles of all, which are doubles, each with its number among `with`.
    pub(crate) fn map_doubles(&mut self, with: &[i64], of: impl Fn(f64, i64) -> f64) {
        debug_assert!(self.is_empty() || self.uniform() == Some(true), "BUG: an integer among buckets");
        for (word, with) in self.words.iter_mut().zip(with) {
            *word = of(f64::from_bits(*word), *with).to_bits();
        }
    }

    /// Adds a row's points after all others. Points at or before the latest, which no writer makes, are dropped.
    /// Gives how many the row has.
    pub(crate) fn extend_row(&mut self, base_ms: i64, row: &RowPoints) -> usize {
        let are_doubles = row.kinds().iter().map(|kind| kind.is_float());
        self.extend(base_ms, (row.offsets_ms(), row.values()), uniform(row.kinds()), are_doubles)
    }

    /// The same of a row by columns.
    pub(crate) fn extend_packed(&mut self, base_ms: i64, row: &PackedRow<'_>) -> usize {
        let are_doubles = std::iter::repeat(row.is_float);
        self.extend(base_ms, (row.offsets_ms, row.words), Some(row.is_float), are_doubles)
    }

    /// The same of offsets and words, whose kinds are all as `kinds` says, or each as `are_doubles` says.
    fn extend(
        &mut self,
        base_ms: i64,
        (offsets_ms, words): (&[u32], &[u64]),
        kinds: Option<bool>,
        are_doubles: impl Iterator<Item = bool>,
    ) -> usize {
        let Some(first) = offsets_ms.first() else {
            return 0;
        };
        let follows = self.times_ms.last().is_none_or(|last| *last < base_ms + i64::from(*first));
        // Fast path: whole slices, where no point is dropped and all are of the span's kind.
        if follows && self.takes_all(kinds) {
            self.times_ms.extend(offsets_ms.iter().map(|offset_ms| base_ms + i64::from(*offset_ms)));
            self.words.extend_from_slice(words);
            return words.len();
        }
        self.times_ms.reserve(words.len());
        self.words.reserve(words.len());
        for ((offset_ms, word), is_double) in offsets_ms.iter().zip(words).zip(are_doubles) {
            let time_ms = base_ms + i64::from(*offset_ms);
            if self.times_ms.last().is_some_and(|last| *last >= time_ms) {
                continue;
            }
            self.mark(is_double);
            self.times_ms.push(time_ms);
            self.words.push(*word);
        }
        words.len()
    }

    /// Whether a row's points and the span's are all integers or all doubles, which is noted then.
    fn takes_all(&mut self, kinds: Option<bool>) -> bool {
        let Some(is_double) = kinds else {
            return false;
        };
        if self.is_empty() {
            self.kinds = if is_double { Kinds::Doubles } else { Kinds::Integers };
        }
        self.uniform() == Some(is_double)
    }

    /// Whether all points are doubles, or none; `None` where they differ.
    pub(crate) fn uniform(&self) -> Option<bool> {
        match self.kinds {
            Kinds::Integers => Some(false),
            Kinds::Doubles => Some(true),
            Kinds::Mixed(_) => None,
        }
    }

    /// The words of all values.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Notes the kind of the point about to be added.
    fn mark(&mut self, is_double: bool) {
        let count = self.times_ms.len();
        match &mut self.kinds {
            Kinds::Mixed(flags) => flags.push(is_double),
            kinds if count == 0 => *kinds = if is_double { Kinds::Doubles } else { Kinds::Integers },
            Kinds::Doubles if is_double => {}
            Kinds::Integers if !is_double => {}
            kinds => {
                let mut flags = vec![*kinds == Kinds::Doubles; count];
                flags.push(is_double);
                *kinds = Kinds::Mixed(flags);
            }
        }
    }

    /// Forgets the points below `time_ms`.
    pub(crate) fn drop_before(&mut self, time_ms: i64) {
        let from = self.times_ms.partition_point(|time| *time < time_ms);
        self.times_ms.drain(..from);
        self.words.drain(..from);
        if let Kinds::Mixed(flags) = &mut self.kinds {
            flags.drain(..from);
        }
    }
}

/// Whether all points of these kinds are doubles, or none; `None` where they differ.
pub(crate) fn uniform(kinds: &[PointKind]) -> Option<bool> {
    let (any, all) =
        kinds.iter().fold((false, true), |(any, all), kind| (any | kind.is_float(), all & kind.is_float()));
    (any == all).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_kept_a_point() {
        let mut span = Span::default();
        span.push(1, Number::Integer(-1));
        span.push(2, Number::Integer(2));
        span.push(3, Number::Double(0.5));
        span.push(4, Number::Integer(i64::MIN));
        let kinds: Vec<bool> = (0..4).map(|at| span.is_double(at)).collect();
        assert_eq!(kinds, [false, false, true, false]);
        assert_eq!(span.number(0), Number::Integer(-1));
        assert_eq!(span.number(2), Number::Double(0.5));
        assert_eq!(span.number(3), Number::Integer(i64::MIN));
        span.drop_before(3);
        assert_eq!((span.len(), span.number(0)), (2, Number::Double(0.5)));
    }
}
