//! The head of a row of points: all that is told of it once a row, and how its points come out of it and its planes.

use super::decimal::{self, Exception};
use super::number::low_half;
use super::predict::{self, Guess, Predictor};
use super::section::{Streams, id};
use super::times::{self, Pace, Times};

/// The form of a row that is kept as it is.
pub(super) const VERBATIM: u8 = 0xFF;

pub(super) const FORM_PACE: u8 = 3;
pub(super) const FORM_MILLIS: u8 = 1 << 2;
pub(super) const FORM_KINDS_SHIFT: u32 = 3;
pub(super) const FORM_RESERVED: u8 = 0xC0;

pub(super) const MODE_EXPONENT: u8 = 0xF;
pub(super) const MODE_PREDICTOR_SHIFT: u32 = 4;
pub(super) const MODE_PREDICTOR: u8 = 7;
pub(super) const MODE_EXCEPTIONS: u8 = 1 << 7;

pub(super) const WIDTH_VALUES: u8 = 0xF;
pub(super) const WIDTH_TIMES_SHIFT: u32 = 4;
pub(super) const VALUE_PLANES_MAX: u8 = 8;
pub(super) const TIME_PLANES_MAX: u8 = 4;

/// How the kinds of a row's points are told. The codes are the format's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub(super) enum Kinds {
    /// Integers, each on the fewest bytes.
    #[default]
    Ints = 0,
    /// Floats on 8 bytes.
    Doubles = 1,
    /// Floats on 4 bytes.
    Singles = 2,
    /// Floats on 4 bytes where they are the same there, else on 8.
    Shortest = 3,
    /// Each on its own, in the stream of kinds.
    Told = 4,
}

/// What the streams of one byte or number a row say of a row of points.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    pub(super) kinds: Kinds,
    pub(super) is_millis: bool,
    pub(super) count: usize,
    pub(super) times: Times,
    pub(super) exponent: u8,
    pub(super) guess: Guess,
    pub(super) has_exceptions: bool,
    /// Planes of its offsets' residuals and of its values'; none where it has no residuals.
    pub(super) time_width: u8,
    pub(super) value_width: u8,
}

/// The bytes of a row in the streams that have one a point: planes from the lowest, as many as the head has widths of
/// values or times, each of as many bytes as there are residuals.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowPlanes<'a> {
    pub(super) times: &'a [&'a [u8]],
    pub(super) values: &'a [&'a [u8]],
    pub(super) told: &'a [u8],
}

impl Head {
    /// Reads a head; `form` is read already. `None` for one that makes no sense or has more than `points_max` points.
    pub(super) fn read(form: u8, points_max: usize, streams: &mut Streams) -> Option<Self> {
        let kinds =
            Kinds::of_code((form & !FORM_RESERVED) >> FORM_KINDS_SHIFT).filter(|_| form & FORM_RESERVED == 0)?;
        let pace = Pace::of_code(form & FORM_PACE)?;
        let count = usize::try_from(streams.number(id::COUNTS)?).ok().filter(|n| (1..=points_max).contains(n))?;
        let first = streams.number(id::FIRSTS)?;
        let step = if count > 1 { streams.number(id::STEPS)?.cast_signed() } else { 0 };
        let mode = streams.byte(id::MODES);
        let predictor = Predictor::of_code((mode >> MODE_PREDICTOR_SHIFT) & MODE_PREDICTOR)?;
        let widths = streams.byte(id::WIDTHS);
        let (time_width, value_width) = (widths >> WIDTH_TIMES_SHIFT, widths & WIDTH_VALUES);
        let fits = |width: u8, most: u8, residuals: usize| width <= most && (width == 0) == (residuals == 0);
        if !fits(time_width, TIME_PLANES_MAX, pace.residuals_count(count))
            || !fits(value_width, VALUE_PLANES_MAX, predictor.residuals_count(count))
        {
            return None;
        }
        let base = if has_base(predictor) { streams.number(id::BASES)?.cast_signed() } else { 0 };
        let centre = if has_centre(predictor) { streams.number(id::CENTRES)?.cast_signed() } else { 0 };
        Some(Self {
            kinds,
            is_millis: form & FORM_MILLIS != 0,
            count,
            times: Times { pace, first, step },
            exponent: mode & MODE_EXPONENT,
            guess: Guess { predictor, base, centre },
            has_exceptions: mode & MODE_EXCEPTIONS != 0,
            time_width,
            value_width,
        })
    }

    /// Residuals of its offsets.
    pub(super) fn times_count(&self) -> usize {
        self.times.pace.residuals_count(self.count)
    }

    /// Residuals of its values.
    pub(super) fn values_count(&self) -> usize {
        self.guess.predictor.residuals_count(self.count)
    }

    /// Whether each point has a kind of its own.
    pub(super) fn is_told(&self) -> bool {
        self.kinds == Kinds::Told
    }

    /// Whether all points are floats; `None` where some may be.
    pub(super) fn is_float(&self) -> Option<bool> {
        (!self.is_told()).then_some(self.kinds != Kinds::Ints)
    }

    /// Whether its values' residuals are one plane, to be read from it in place.
    pub(super) fn is_narrow(&self) -> bool {
        self.guess.predictor != Predictor::Words && self.value_width == 1
    }

    /// Fills offsets in milliseconds and words, both of the row's count. False where offsets do not ascend strictly, or
    /// kinds are told: then the cell alone says what the row is.
    ///
    /// The loops are compiled twice, for AVX2 and without, and the processor says which runs. Both give the same.
    pub(super) fn points_into(
        &self,
        planes: &RowPlanes<'_>,
        exceptions: &[Exception],
        offsets_ms: &mut [u32],
        words: &mut [u64],
    ) -> bool {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has the feature that the function is compiled for, as was asked just now.
            #[expect(unsafe_code, reason = "the function's one demand is its feature, which is there")]
            return unsafe { self.points_by_avx2(planes, exceptions, offsets_ms, words) };
        }
        self.points(planes, exceptions, offsets_ms, words)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn points_by_avx2(
        &self,
        planes: &RowPlanes<'_>,
        exceptions: &[Exception],
        offsets_ms: &mut [u32],
        words: &mut [u64],
    ) -> bool {
        self.points(planes, exceptions, offsets_ms, words)
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled for the features of each caller")]
    fn points(
        &self,
        planes: &RowPlanes<'_>,
        exceptions: &[Exception],
        offsets_ms: &mut [u32],
        words: &mut [u64],
    ) -> bool {
        let is_whole = |planes: &[&[u8]], count: usize| planes.iter().all(|plane| plane.len() == count);
        if self.is_told()
            || !is_whole(planes.times, self.times_count())
            || !is_whole(planes.values, self.values_count())
            || !times::restore_ascending(self.times, planes.times, self.is_millis, offsets_ms)
        {
            return false;
        }
        match planes.values {
            [] => predict::restore(self.guess, std::iter::empty(), words),
            // Fast path: nearly every row.
            [one] => predict::restore(self.guess, one.iter().map(|byte| u64::from(*byte)), words),
            [low, high] => {
                let residuals = low.iter().zip(*high).map(|(low, high)| u64::from(*low) | u64::from(*high) << 8);
                predict::restore(self.guess, residuals, words);
            }
            planes => predict::restore(self.guess, residuals_of(planes), words),
        }
        self.finish_words(words);
        for (at, word) in exceptions {
            let Some(place) = words.get_mut(*at) else { return false };
            *place = *word;
        }
        true
    }

    /// Makes words of the numbers, or residuals, that they hold.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled for the features of each caller")]
    fn finish_words(&self, words: &mut [u64]) {
        match (self.guess.predictor, self.kinds) {
            (Predictor::Words, Kinds::Singles) => {
                for word in words {
                    *word = f64::from(f32::from_bits(low_half(*word))).to_bits();
                }
            }
            (Predictor::Words, _) | (_, Kinds::Ints | Kinds::Told) => {}
            (_, kinds) => kinds.words_of_decimals(words, self.exponent),
        }
    }

    /// The last offset less the first, in the row's unit, where the head alone tells it; the inner `None`: it makes no
    /// sense.
    #[expect(clippy::option_option, reason = "the outer says that residuals tell it, the inner that nobody does")]
    pub(super) fn regular_span(&self) -> Option<Option<u64>> {
        let steps = self.count.saturating_sub(1) as u64;
        let span = u64::try_from(self.times.step).ok().and_then(|step| step.checked_mul(steps));
        (self.times.pace == Pace::Regular).then_some(span)
    }
}

/// The bits of the double that a float on 4 bytes is read as, of those of the double it was made of.
pub(super) fn widened(word: u64) -> u64 {
    f64::from(decimal::narrowed(f64::from_bits(word))).to_bits()
}

/// Residuals of several planes, which are of one length.
fn residuals_of<'a>(planes: &'a [&'a [u8]]) -> impl Iterator<Item = u64> + 'a {
    let count = planes.first().map_or(0, |plane| plane.len());
    (0..count).map(move |at| {
        let byte = |plane: &&[u8]| plane.get(at).map_or(0, |byte| u64::from(*byte));
        planes.iter().rev().fold(0, |residual, plane| residual << 8 | byte(plane))
    })
}

/// Residuals of several planes of `count` bytes each.
pub(super) fn gather_planes(planes: &[&[u8]], count: usize, residuals: &mut Vec<u64>) -> Option<()> {
    residuals.clear();
    residuals.extend(residuals_of(planes));
    (residuals.len() == if planes.is_empty() { 0 } else { count }).then_some(())
}

/// Adds the exceptions of a row of `count` points.
pub(super) fn read_exceptions(count: usize, streams: &mut Streams, exceptions: &mut Vec<Exception>) -> Option<()> {
    let exceptions_count = streams.varint(id::EXCEPTION_GAPS)?;
    let mut next = 0_usize;
    for _ in 0..exceptions_count {
        let gap = usize::try_from(streams.varint(id::EXCEPTION_GAPS)?).ok()?;
        let at = next.checked_add(gap).filter(|at| *at < count)?;
        let word = streams.bytes(id::EXCEPTION_WORDS, 8)?.first_chunk().copied()?;
        exceptions.push((at, u64::from_le_bytes(word)));
        next = at + 1;
    }
    Some(())
}

impl Kinds {
    /// Makes words of floats of decimals: those that decoding the row's cell gives.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "compiled for the features of each caller")]
    pub(super) fn words_of_decimals(self, words: &mut [u64], exponent: u8) {
        decimal::divide(words, exponent);
        if self == Self::Singles {
            for word in words {
                *word = widened(*word);
            }
        }
    }

    pub(super) fn of_code(code: u8) -> Option<Self> {
        let all = [Self::Ints, Self::Doubles, Self::Singles, Self::Shortest, Self::Told];
        all.get(usize::from(code)).copied()
    }
}

pub(super) fn has_base(predictor: Predictor) -> bool {
    predictor != Predictor::Words
}

pub(super) fn has_centre(predictor: Predictor) -> bool {
    matches!(predictor, Predictor::Slope | Predictor::Bend | Predictor::Line)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        /// What runs on this processor gives what the loops compiled for any give.
        #[test]
        fn loops_for_avx2_and_their_scalar_twin_give_the_same(
            (predictor, kinds, pace) in (0_u8..6, 0_u8..4, 0_u8..3),
            (value_width, time_width, exponent) in (1_u8..5, 1_u8..3, 0_u8..16),
            (base, centre, step) in (any::<i64>(), -1000_i64..1000, 0_i64..20),
            count in 1_usize..70,
            bytes in proptest::collection::vec(any::<u8>(), 500),
        ) {
            let guess = Guess { predictor: Predictor::of_code(predictor).unwrap(), base, centre };
            let times = Times { pace: Pace::of_code(pace).unwrap(), first: 0, step };
            let kinds = Kinds::of_code(kinds).unwrap();
            let (is_millis, has_exceptions) = (false, false);
            let head = Head { kinds, is_millis, count, times, exponent, guess, has_exceptions, time_width, value_width };
            let planes = |width: u8, residuals: usize| -> Vec<&[u8]> {
                let used = if residuals == 0 { 0 } else { usize::from(width) };
                bytes.windows(residuals.max(1)).step_by(7).take(used).collect()
            };
            let (times_planes, values) =
                (planes(time_width, head.times_count()), planes(value_width, head.values_count()));
            let planes = RowPlanes { times: &times_planes, values: &values, told: &[] };
            let exceptions = [(count - 1, 7)];
            let (mut chosen, mut any) = ((vec![0; count], vec![0; count]), (vec![0; count], vec![0; count]));
            let given = head.points_into(&planes, &exceptions, &mut chosen.0, &mut chosen.1);
            prop_assert_eq!(given, head.points(&planes, &exceptions, &mut any.0, &mut any.1));
            prop_assert_eq!(chosen, any);
        }
    }
}
