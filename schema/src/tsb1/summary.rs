//! What a row's points are together, beside its columns: least, greatest, last and sum, so that who wants no more decodes no
//! point.
//!
//! Invariant: a summary is made of the words that the row gives back, and tells theirs to the last bit.

use basalt_store::RowSummary;

use super::decimal;
use super::head::{Head, Kinds, widened};
use super::number::{fold_sign, unfold_sign};
use super::section::{Streams, id};
use super::times;

/// Rows of fewer points have none: to decode them is as little work.
pub(super) const POINTS_MIN: usize = 32;

/// So many integers below this add up to doubles that are exact.
const EXACT_MAX: u64 = 1 << 30;
const EXACT_POINTS_MAX: usize = 1 << 22;

/// What is kept of a row's numbers. The numbers are those that words are made of: integers, or decimals without their point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Summary {
    /// Offset of the last point less that of the first, in the row's unit.
    span: u64,
    low: i64,
    /// Greatest, and last, less the least.
    height: u64,
    last: u64,
    /// The sum of all, each less the least.
    above: u64,
    /// Bits of the running sum of doubles, less those of the sum of the numbers.
    error: i64,
}

/// What a summary is made of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Points<'a> {
    pub(super) kinds: Kinds,
    pub(super) exponent: u8,
    /// In the row's unit.
    pub(super) offsets: &'a [u32],
    pub(super) numbers: &'a [i64],
    /// As the row gives them back, but for the width of floats on 4 bytes.
    pub(super) words: &'a [u64],
}

impl Summary {
    /// The summary of a row without exceptions; `None` of one that has none: offsets do not ascend, kinds are told, sums
    /// are too large, or there are few points.
    pub(super) fn of(points: &Points<'_>) -> Option<Self> {
        let Points { kinds, exponent, offsets, numbers, words } = *points;
        let ascends = offsets.iter().zip(offsets.iter().skip(1)).all(|(a, b)| a < b);
        if !ascends || kinds == Kinds::Told || numbers.len() < POINTS_MIN || numbers.len() != words.len() {
            return None;
        }
        let span = offsets.last()?.checked_sub(*offsets.first()?)?.into();
        let (low, high) = (numbers.iter().copied().min()?, numbers.iter().copied().max()?);
        let above = |number: i64| number.checked_sub(low).map(i64::cast_unsigned);
        let mut sum = 0_u64;
        for number in numbers {
            sum = sum.checked_add(above(*number)?)?;
        }
        let mut summary =
            Self { span, low, height: above(high)?, last: above(*numbers.last()?)?, above: sum, error: 0 };
        let exact = summary.sum_of_numbers(numbers.len(), kinds, exponent)?;
        // Fast path: each sum on the way is a double too.
        let is_exact = kinds == Kinds::Ints && high.unsigned_abs().max(low.unsigned_abs()) < EXACT_MAX;
        if is_exact && numbers.len() <= EXACT_POINTS_MAX {
            return Some(summary);
        }
        let running = words.iter().fold(0.0, |sum, word| sum + double(kinds, *word));
        summary.error = running.to_bits().wrapping_sub(exact.to_bits()).cast_signed();
        Some(summary)
    }

    /// The double nearest to the sum of the numbers, or near it.
    fn sum_of_numbers(&self, count: usize, kinds: Kinds, exponent: u8) -> Option<f64> {
        let base = self.low.checked_mul(i64::try_from(count).ok()?)?;
        let sum = base.checked_add_unsigned(self.above)?;
        let mut word = [sum.cast_unsigned()];
        decimal::divide(&mut word, if kinds == Kinds::Ints { 0 } else { exponent });
        word.first().copied().map(f64::from_bits)
    }

    /// Writes it, or that there is none.
    pub(super) fn put(summary: Option<Self>, base: i64, is_regular: bool, streams: &mut Streams) {
        streams.put_byte(id::SUMMARIES, summary.is_some().into());
        let Some(Self { span, low, height, last, above, error }) = summary else { return };
        if !is_regular {
            streams.put_varint(id::SUMMARY_SPANS, span);
        }
        streams.put_varint(id::SUMMARY_LOWS, fold_sign(low.wrapping_sub(base)));
        streams.put_varint(id::SUMMARY_HEIGHTS, height);
        streams.put_varint(id::SUMMARY_LASTS, last);
        streams.put_varint(id::SUMMARY_SUMS, above);
        streams.put_varint(id::SUMMARY_ERRORS, fold_sign(error));
    }

    /// Reads the summary of a row, if it has one. The outer `None`: it makes no sense.
    #[expect(clippy::option_option, reason = "the outer says that the bytes are wrong, the inner that there is none")]
    pub(super) fn read(head: &Head, streams: &mut Streams) -> Option<Option<Self>> {
        match streams.byte(id::SUMMARIES) {
            0 => return Some(None),
            1 if !head.has_exceptions && !head.is_told() => {}
            _ => return None,
        }
        let span = match head.regular_span() {
            Some(span) => span?,
            None => streams.varint(id::SUMMARY_SPANS)?,
        };
        let low = head.guess.base.wrapping_add(unfold_sign(streams.varint(id::SUMMARY_LOWS)?));
        let height = streams.varint(id::SUMMARY_HEIGHTS)?;
        let last = streams.varint(id::SUMMARY_LASTS)?;
        let above = streams.varint(id::SUMMARY_SUMS)?;
        let error = unfold_sign(streams.varint(id::SUMMARY_ERRORS)?);
        Some(Some(Self { span, low, height, last, above, error }))
    }

    /// What it tells; `None` where it makes no sense.
    pub(super) fn told(&self, head: &Head) -> Option<RowSummary> {
        let number = |above: u64| self.low.checked_add_unsigned(above).map(i64::cast_unsigned);
        let mut words = [self.low.cast_unsigned(), number(self.height)?, number(self.last)?];
        if head.kinds != Kinds::Ints {
            head.kinds.words_of_decimals(&mut words, head.exponent);
        }
        let [min, max, last] = words;
        let unit = if head.is_millis { 1 } else { 1000 };
        let limit = times::offset_ms_limit(head.is_millis);
        let ms = |offset: u64| u32::try_from(offset.checked_mul(unit).filter(|ms| *ms < limit)?).ok();
        let sum = self.sum_of_numbers(head.count, head.kinds, head.exponent)?;
        Some(RowSummary {
            count: u32::try_from(head.count).ok()?,
            first_ms: ms(head.times.first)?,
            last_ms: ms(head.times.first.checked_add(self.span)?)?,
            is_float: head.kinds != Kinds::Ints,
            min,
            max,
            last,
            sum: f64::from_bits(sum.to_bits().wrapping_add(self.error.cast_unsigned())),
        })
    }
}

/// A word as a double.
#[expect(clippy::cast_precision_loss, reason = "the nearest double is what is asked for")]
fn double(kinds: Kinds, word: u64) -> f64 {
    match kinds {
        Kinds::Ints => word.cast_signed() as f64,
        Kinds::Singles => f64::from_bits(widened(word)),
        _ => f64::from_bits(word),
    }
}
