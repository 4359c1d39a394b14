//! Percentiles of a handful of numbers, by the three estimations that OpenTSDB names.
//!
//! The p-th percentile of n numbers lies at a position among them, sorted and counted from 1; between two numbers it is
//! interpolated. Plain: `p/100 · (n+1)`. R-3: `n · p/100` rounded half to even. R-7: `1 + (n−1) · p/100`. The names are
//! those of R's `quantile`; Hyndman and Fan, "Sample Quantiles in Statistical Packages", 1996.

/// Where among the numbers a percentile lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Estimation {
    /// `p · (n+1)`, interpolated.
    Plain,
    /// The nearest number.
    R3,
    /// `1 + (n−1)·p`, interpolated.
    R7,
}

/// The `percent`-th percentile (0 to 100) of numbers without NaN; NaN for none. Sorts them in part.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a position lies within 1 and the count, which is far below 2^52"
)]
pub(crate) fn percentile(numbers: &mut [f64], percent: f64, estimation: Estimation) -> f64 {
    let count = numbers.len();
    if count <= 1 {
        return numbers.first().copied().unwrap_or(f64::NAN);
    }
    let (p, n) = (percent / 100.0, count as f64);
    let position = match estimation {
        Estimation::Plain => p * (n + 1.0),
        Estimation::R3 if p <= 0.5 / n => 0.0,
        Estimation::R3 => (n * p).round_ties_even(),
        Estimation::R7 => 1.0 + (n - 1.0) * p,
    };
    if position < 1.0 {
        return nth(numbers, 0);
    }
    if position >= n {
        return nth(numbers, count - 1);
    }
    let whole = position.floor();
    let lower = nth(numbers, whole as usize - 1);
    let upper = nth(numbers, whole as usize);
    lower + (position - whole) * (upper - lower)
}

/// The number at `index` of the sorted numbers; `index` is below the count.
fn nth(numbers: &mut [f64], index: usize) -> f64 {
    *numbers.select_nth_unstable_by(index, f64::total_cmp).1
}
