//! Floats as decimal integers, exactly: `value = number / 10^exponent` by one division, bit for bit.
//!
//! Below 2⁵¹ both sides of that division are exact, so every decimal of up to 15 digits comes back; a multiplication by
//! 10^−exponent would not give it back. Values that are no such decimal (NaN, infinities, −0.0, full doubles) are exceptions.

/// The largest exponent.
const EXPONENT_MAX: u8 = 15;
const POWERS: [f64; 16] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
/// Numbers stay below this.
const NUMBER_LIMIT: f64 = 2_251_799_813_685_248.0;
/// 1.5 × 2⁵²: a number plus this has its integer in the lowest bits, rounded to even.
const ROUNDER: f64 = 6_755_399_441_055_744.0;
/// How many values are looked at before all are.
const SAMPLES: usize = 32;

/// What a point's word is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordKind {
    /// A signed integer.
    Int,
    /// The bits of a float that is stored on 4 bytes, widened.
    Single,
    /// The bits of a float.
    Double,
}

impl WordKind {
    /// The word as a decimal of that exponent.
    #[inline]
    fn number(self, word: u64, exponent: u8) -> Option<i64> {
        if self == Self::Int {
            return word.cast_signed().checked_mul(10_i64.checked_pow(exponent.into())?);
        }
        let value = f64::from_bits(word);
        let power = power(exponent);
        let scaled = value * power;
        if scaled.abs() >= NUMBER_LIMIT || scaled.is_nan() {
            return None;
        }
        let shifted = scaled + ROUNDER;
        let quotient = (shifted - ROUNDER) / power;
        let is_exact = if self == Self::Single {
            narrowed(quotient).to_bits() == narrowed(value).to_bits()
        } else {
            quotient.to_bits() == word
        };
        is_exact.then(|| shifted.to_bits().wrapping_sub(ROUNDER.to_bits()).cast_signed())
    }

    /// The word that a decimal gives. An integer is cut off where the division leaves a rest.
    #[inline]
    #[expect(clippy::cast_precision_loss, reason = "the encoder takes no number of a float above 2⁵¹")]
    pub(super) fn word(self, number: i64, exponent: u8) -> u64 {
        match self {
            Self::Int if exponent == 0 => number.cast_unsigned(),
            Self::Int => (number / 10_i64.pow(exponent.min(EXPONENT_MAX).into())).cast_unsigned(),
            Self::Single | Self::Double => (number as f64 / power(exponent)).to_bits(),
        }
    }

    fn least_exponent(self, word: u64, from: u8) -> Option<u8> {
        (from..=EXPONENT_MAX).find(|exponent| self.number(word, *exponent).is_some())
    }
}

/// Makes the bits of floats of decimals, as [`WordKind::word`] does.
#[inline(always)]
#[expect(clippy::inline_always, reason = "compiled for the processor's features that its caller found")]
#[expect(clippy::cast_precision_loss, reason = "the encoder takes no number of a float above 2⁵¹")]
pub(super) fn divide(words: &mut [u64], exponent: u8) {
    let power = power(exponent);
    for word in words {
        *word = (word.cast_signed() as f64 / power).to_bits();
    }
}

/// Ten to that.
#[inline]
pub(super) fn power(exponent: u8) -> f64 {
    POWERS.get(usize::from(exponent)).copied().unwrap_or(1.0)
}

/// The float on 4 bytes.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the rounding is what is asked for")]
pub(super) fn narrowed(value: f64) -> f32 {
    value as f32
}

/// A value that is no decimal of its row: where, and its word.
pub(super) type Exception = (usize, u64);

/// Turns a row's words into decimals of one exponent; few may be exceptions, at which `numbers` goes on as it was.
/// `None`: too many are no decimals.
pub(super) fn scale(
    words: &[u64],
    kind_of: impl Fn(usize) -> WordKind,
    numbers: &mut Vec<i64>,
    exceptions: &mut Vec<Exception>,
) -> Option<u8> {
    let mut exponent = likely_exponent(words, &kind_of)?;
    loop {
        numbers.clear();
        exceptions.clear();
        let mut last = 0;
        for (at, word) in words.iter().enumerate() {
            match kind_of(at).number(*word, exponent) {
                Some(number) => last = number,
                None => exceptions.push((at, *word)),
            }
            numbers.push(last);
        }
        // A digit more costs all points 3 bits, an exception costs 9 bytes.
        if exceptions.len() * 24 <= words.len() {
            break;
        }
        let larger = exceptions.iter().filter_map(|(at, word)| kind_of(*at).least_exponent(*word, exponent + 1)).min();
        match larger {
            Some(larger) => exponent = larger,
            None if exceptions.len() * 6 <= words.len() => break,
            None => return None,
        }
    }
    // Exceptions at the start go on from the first number that there is.
    let leading = exceptions.iter().enumerate().take_while(|(number, (at, _))| number == at).count();
    let first = numbers.get(leading).copied()?;
    numbers.iter_mut().take(leading).for_each(|number| *number = first);
    Some(exponent)
}

/// The least exponent at which most of a sample are decimals.
fn likely_exponent(words: &[u64], kind_of: &impl Fn(usize) -> WordKind) -> Option<u8> {
    let mut found = [0_usize; EXPONENT_MAX as usize + 1];
    let mut samples = 0;
    for (at, word) in words.iter().enumerate().step_by((words.len() / SAMPLES).max(1)) {
        samples += 1;
        let least = kind_of(at).least_exponent(*word, 0);
        if let Some(counter) = least.and_then(|exponent| found.get_mut(usize::from(exponent))) {
            *counter += 1;
        }
    }
    let mut covered = 0;
    (0..=EXPONENT_MAX).zip(found).find_map(|(exponent, count)| {
        covered += count;
        (covered * 100 >= samples * 85).then_some(exponent)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[f64]) -> Option<(u8, usize)> {
        let words: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
        let (mut numbers, mut exceptions) = (Vec::new(), Vec::new());
        let exponent = scale(&words, |_| WordKind::Double, &mut numbers, &mut exceptions)?;
        let mut again: Vec<u64> = numbers.iter().map(|number| WordKind::Double.word(*number, exponent)).collect();
        for (at, word) in &exceptions {
            again[*at] = *word;
        }
        assert_eq!(again, words, "{values:?}");
        Some((exponent, exceptions.len()))
    }

    #[test]
    fn decimals_come_back_bit_for_bit() {
        assert_eq!(check(&[42.1, 0.3, 99.99, -7.0]), Some((2, 0)));
        assert_eq!(check(&[1.0, 2.0]), Some((0, 0)));
        assert_eq!(check(&[123_456_789.012_345; 30]), Some((6, 0)));
        let mut values = vec![20.5; 100];
        values[0] = f64::NAN;
        values[50] = -0.0;
        values[99] = f64::INFINITY;
        assert_eq!(check(&values), Some((1, 3)));
        assert_eq!(check(&[std::f64::consts::PI, 0.1 + 0.2, 1e300]), None);
        assert_eq!(check(&[f64::NAN]), None);
    }

    #[test]
    fn a_float_on_four_bytes_is_the_decimal_it_was_rounded_from() {
        let words = [0.1_f32, 85.7, -3.3].map(|value| f64::from(value).to_bits());
        let (mut numbers, mut exceptions) = (Vec::new(), Vec::new());
        assert_eq!(scale(&words, |_| WordKind::Single, &mut numbers, &mut exceptions), Some(1));
        assert_eq!(numbers, [1, 857, -33]);
    }
}
