//! Predictors of a row's numbers: what is left once the best of five has guessed them. All arithmetic wraps in 64 bits.

use super::number::{fold_sign, unfold_sign};

/// How the numbers of a row are guessed. The codes are the format's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub(super) enum Predictor {
    /// All are the base.
    #[default]
    Constant = 0,
    /// Each is the base and a residual.
    Level = 1,
    /// The first is the base; each step is the centre and a residual.
    Slope = 2,
    /// The first is the base, the first step the centre; each further step is the one before and a residual.
    Bend = 3,
    /// The first is the base, each step the centre.
    Line = 4,
    /// There is no guess: the residuals are the points' words.
    Words = 5,
}

/// A row's numbers but for the residuals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Guess {
    pub(super) predictor: Predictor,
    pub(super) base: i64,
    pub(super) centre: i64,
}

impl Predictor {
    pub(super) fn of_code(code: u8) -> Option<Self> {
        let all = [Self::Constant, Self::Level, Self::Slope, Self::Bend, Self::Line, Self::Words];
        all.get(usize::from(code)).copied()
    }

    /// Residuals of a row of `count` points, at least one.
    pub(super) fn residuals_count(self, count: usize) -> usize {
        match self {
            Self::Constant | Self::Line => 0,
            Self::Level | Self::Words => count,
            Self::Slope => count.saturating_sub(1),
            Self::Bend => count.saturating_sub(2),
        }
    }
}

/// The guess with the smallest residuals in sum, which go to `residuals`.
pub(super) fn guess(numbers: &[i64], residuals: &mut Vec<u64>) -> Guess {
    residuals.clear();
    let (Some(base), Some(last)) = (numbers.first().copied(), numbers.last().copied()) else { return Guess::default() };
    let (low, high) = numbers.iter().fold((base, base), |(low, high), number| (low.min(*number), high.max(*number)));
    if low == high {
        return Guess { predictor: Predictor::Constant, base, centre: 0 };
    }
    let steps = i64::try_from(numbers.len() - 1).unwrap_or(i64::MAX);
    let slope = last.wrapping_sub(base) / steps;
    let level = base.wrapping_add(mean_above(base, numbers, low, high));
    // Fast path: no sum overflows, as a row has at most 2²² points.
    let is_narrow = high.wrapping_sub(low).cast_unsigned() < 1 << 40;
    let costs = if is_narrow {
        costs(numbers, level, slope, u64::wrapping_add)
    } else {
        costs(numbers, level, slope, u64::saturating_add)
    };
    if costs.slope == 0 {
        return Guess { predictor: Predictor::Line, base, centre: slope };
    }
    if costs.slope <= costs.level && costs.slope <= costs.bend {
        residuals.extend(pairs(numbers).map(|step| fold_sign(step.wrapping_sub(slope))));
        return Guess { predictor: Predictor::Slope, base, centre: slope };
    }
    if costs.level <= costs.bend {
        residuals.extend(numbers.iter().map(|number| fold_sign(number.wrapping_sub(level))));
        return Guess { predictor: Predictor::Level, base: level, centre: 0 };
    }
    let centre = pairs(numbers).next().unwrap_or(0);
    residuals.extend(pairs(numbers).zip(pairs(numbers).skip(1)).map(|(a, b)| fold_sign(b.wrapping_sub(a))));
    Guess { predictor: Predictor::Bend, base, centre }
}

/// Sums of what each predictor leaves, saturating.
struct Costs {
    level: u64,
    slope: u64,
    bend: u64,
}

#[inline]
fn costs(numbers: &[i64], level: i64, slope: i64, add: impl Fn(u64, u64) -> u64) -> Costs {
    let away = |number: i64, from: i64| number.wrapping_sub(from).unsigned_abs();
    Costs {
        level: numbers.iter().fold(0, |sum, number| add(sum, away(*number, level))),
        slope: pairs(numbers).fold(0, |sum, step| add(sum, away(step, slope))),
        bend: pairs(numbers).zip(pairs(numbers).skip(1)).fold(0, |sum, (a, b)| add(sum, away(b, a))),
    }
}

/// The steps from number to number.
fn pairs(numbers: &[i64]) -> impl Iterator<Item = i64> {
    numbers.iter().zip(numbers.iter().skip(1)).map(|(a, b)| b.wrapping_sub(*a))
}

/// The mean of the numbers, less `base`.
fn mean_above(base: i64, numbers: &[i64], low: i64, high: i64) -> i64 {
    let count = i64::try_from(numbers.len()).unwrap_or(i64::MAX);
    // Fast path: the sum of differences fits, as a row has at most 2²² points.
    if high.wrapping_sub(low).unsigned_abs() < 1 << 40 && low.unsigned_abs() < 1 << 60 {
        return numbers.iter().map(|number| number - base).sum::<i64>() / count;
    }
    let sum: i128 = numbers.iter().map(|number| i128::from(*number) - i128::from(base)).sum();
    i64::try_from(sum / i128::from(count)).unwrap_or(0)
}

/// Puts the numbers back into `words`, which has the row's length. The residuals are as many as the predictor has.
///
/// What no point needs of the one before is done for all first: that loop a compiler makes wide.
#[inline(always)]
#[expect(clippy::inline_always, reason = "compiled for the processor's features that its caller found")]
pub(super) fn restore(guess: Guess, residuals: impl Iterator<Item = u64>, words: &mut [u64]) {
    let (base, centre) = (guess.base.cast_unsigned(), guess.centre.cast_unsigned());
    let step_of = |residual: u64| unfold_sign(residual).cast_unsigned();
    let mut number = base;
    match guess.predictor {
        Predictor::Constant => words.fill(base),
        Predictor::Level => {
            for (out, residual) in words.iter_mut().zip(residuals) {
                *out = base.wrapping_add(step_of(residual));
            }
        }
        Predictor::Words => {
            for (out, residual) in words.iter_mut().zip(residuals) {
                *out = residual;
            }
        }
        Predictor::Line => {
            for out in words {
                *out = number;
                number = number.wrapping_add(centre);
            }
        }
        Predictor::Slope => {
            let Some((first, rest)) = words.split_first_mut() else { return };
            *first = number;
            for (out, residual) in rest.iter_mut().zip(residuals) {
                *out = centre.wrapping_add(step_of(residual));
            }
            for out in rest {
                number = number.wrapping_add(*out);
                *out = number;
            }
        }
        Predictor::Bend => {
            let Some((first, rest)) = words.split_first_mut() else { return };
            *first = number;
            let Some((second, rest)) = rest.split_first_mut() else { return };
            let mut step = centre;
            number = number.wrapping_add(step);
            *second = number;
            for (out, residual) in rest.iter_mut().zip(residuals) {
                *out = step_of(residual);
            }
            for out in rest {
                step = step.wrapping_add(*out);
                number = number.wrapping_add(step);
                *out = number;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(numbers: &[i64]) -> Predictor {
        let mut residuals = Vec::new();
        let found = guess(numbers, &mut residuals);
        assert_eq!(residuals.len(), found.predictor.residuals_count(numbers.len()));
        let mut again = vec![7; numbers.len()];
        restore(found, residuals.iter().copied(), &mut again);
        assert!(again.iter().map(|word| word.cast_signed()).eq(numbers.iter().copied()), "{again:?}");
        found.predictor
    }

    #[test]
    fn each_shape_of_numbers_has_its_predictor() {
        assert_eq!(check(&[5]), Predictor::Constant);
        assert_eq!(check(&[5, 9]), Predictor::Line);
        assert_eq!(check(&[5, 9, 13, 17]), Predictor::Line);
        assert_eq!(check(&[50, 10, 49, 11, 50, 12]), Predictor::Level);
        assert_eq!(check(&[50, 51, 53, 54, 54, 56, 58, 70]), Predictor::Slope);
        assert_eq!(check(&[0, 1, 4, 9, 16, 25, 36, 49, 64, 81]), Predictor::Bend);
        check(&[i64::MIN, i64::MAX, i64::MIN, 0, -1]);
        // What each leaves adds up to more than a word holds.
        assert_eq!(check(&[0, 1 << 62, 0, 1 << 62, 0, 1 << 62, 0, 1 << 62]), Predictor::Slope);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn any_numbers_come_back(numbers in proptest::collection::vec(any::<i64>(), 1..40)) {
            check(&numbers);
        }
    }
}
