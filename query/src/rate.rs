//! Rates: the change of a series a second.
//!
//! Each rate bears the stamp of the later of its two points. *Source*: OpenTSDB 2.4 `RateSpan`.

use crate::aggregate::to_double;
use crate::answer::Number;
use crate::request::RateOptions;
use crate::span::Span;

/// The rates of a series.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Rates {
    /// The first point against zero at the epoch: no rate of anybody's. OpenTSDB lets it take part as the value before
    /// the series' first real rate.
    pub(crate) before_first: Option<f64>,
    /// The rates proper.
    pub(crate) span: Span,
}

/// The rates of a series; one point alone has none. Rates before `from_ms` do not count, and the first after it is
/// held back as [`Rates::before_first`].
///
/// *Cost*: linear.
pub(crate) fn rates(points: &Span, options: &RateOptions, from_ms: i64) -> Rates {
    let first = points.times().partition_point(|time_ms| *time_ms < from_ms);
    // Fast path: none is dropped, and all are of one kind.
    let rates = match points.uniform().filter(|_| !(options.counter && options.drop_resets)) {
        Some(true) => whole(points, first, |word| Number::Double(f64::from_bits(word)), options),
        Some(false) => whole(points, first, |word| Number::Integer(word.cast_signed()), options),
        None => None,
    };
    rates.unwrap_or_else(|| one_by_one(points, options, from_ms))
}

/// The rates of points of one kind, of which the one at `first` is the first that counts; `None` where none does.
#[inline]
fn whole(points: &Span, first: usize, number: impl Fn(u64) -> Number, options: &RateOptions) -> Option<Rates> {
    let earlier = first.checked_sub(1);
    let point = |at: usize| Some((*points.times().get(at)?, number(*points.words().get(at)?)));
    let (last_ms, last) = earlier.and_then(point).unwrap_or((0, Number::Integer(0)));
    let (first_ms, first_number) = point(first)?;
    let before_first = rate(last, first_number, seconds(last_ms, first_ms), options);
    let (times, words) = (points.times().get(first..)?, points.words().get(first..)?);
    let rates = times.windows(2).zip(words.windows(2)).map(|(times, words)| match (times, words) {
        ([last_ms, time_ms], [last, next]) => {
            rate(number(*last), number(*next), seconds(*last_ms, *time_ms), options).unwrap_or_default()
        }
        _ => 0.0,
    });
    Some(Rates { before_first, span: Span::of_doubles(times.get(1..)?, rates) })
}

/// Slow path: points of both kinds, and resets that are dropped.
fn one_by_one(points: &Span, options: &RateOptions, from_ms: i64) -> Rates {
    let mut rates = Rates::default();
    let (mut last_ms, mut last) = (0, Number::Integer(0));
    for (at, time_ms) in points.times().iter().copied().enumerate() {
        let number = points.number(at);
        let rate = rate(last, number, seconds(last_ms, time_ms), options);
        (last_ms, last) = (time_ms, number);
        let Some(rate) = rate.filter(|_| time_ms >= from_ms) else {
            continue;
        };
        if rates.before_first.is_none() {
            rates.before_first = Some(rate);
        } else {
            rates.span.push_double(time_ms, rate);
        }
    }
    rates
}

fn seconds(from_ms: i64, to_ms: i64) -> f64 {
    to_double(to_ms - from_ms) / 1000.0
}

/// The rate between two values; `None` for a reset that is to be dropped. Integers subtract as integers and wrap.
#[inline]
fn rate(last: Number, next: Number, seconds: f64, options: &RateOptions) -> Option<f64> {
    let difference = match (last, next) {
        (Number::Integer(last), Number::Integer(next)) => to_double(next.wrapping_sub(last)),
        _ => next.as_double() - last.as_double(),
    };
    if !options.counter || difference.is_nan() || difference >= 0.0 {
        return Some(difference / seconds);
    }
    if options.drop_resets {
        return None;
    }
    let rolled_over = match (last, next) {
        (Number::Integer(last), Number::Integer(next)) => {
            to_double(options.counter_max.wrapping_sub(last).wrapping_add(next))
        }
        _ => to_double(options.counter_max) - last.as_double() + next.as_double(),
    };
    let rate = rolled_over / seconds;
    let is_reset = options.reset_value > 0 && rate > to_double(options.reset_value);
    Some(if is_reset { 0.0 } else { rate })
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// `Q-RATE-BASIC` and its kin: points of one kind are rated as those of both are, to the last bit.
        #[test]
        fn whole_spans_are_rated_as_point_by_point(
            steps in vec((1_i64..5_000, prop_oneof![-9_i64..9, any::<i64>()]), 0..30),
            are_doubles: bool,
            (counter, counter_max, reset_value) in (any::<bool>(), prop_oneof![Just(i64::MAX), 0_i64..20], 0_i64..9),
            from_ms in -1_i64..30_000,
        ) {
            let mut span = Span::default();
            let mut time_ms = 0;
            for (step, value) in steps {
                time_ms += step;
                let double = if value == 0 { f64::NAN } else { f64::from_bits(value.cast_unsigned()) };
                span.push(time_ms, if are_doubles { Number::Double(double) } else { Number::Integer(value) });
            }
            let options = RateOptions { counter, counter_max, reset_value, drop_resets: false };
            let [whole, slow] = [rates(&span, &options, from_ms), one_by_one(&span, &options, from_ms)];
            prop_assert_eq!(format!("{whole:?}"), format!("{slow:?}"));
        }
    }

    fn check(points: &[(i64, i64)], options: RateOptions, expected: &[(i64, f64)]) {
        let mut span = Span::default();
        for (seconds, value) in points {
            span.push(seconds * 1000, Number::Integer(*value));
        }
        let rates = rates(&span, &options, 0);
        let found: Vec<(i64, f64)> =
            (0..rates.span.len()).map(|at| (rates.span.times()[at] / 1000, rates.span.double(at))).collect();
        assert_eq!(found, expected);
    }

    fn counter(counter_max: i64, reset_value: i64) -> RateOptions {
        RateOptions { counter: true, counter_max, reset_value, drop_resets: false }
    }

    #[test]
    fn q_rate_basic() {
        let plain = RateOptions::default();
        check(&[(1000, 10), (1010, 30), (1020, 25)], plain, &[(1010, 2.0), (1020, -0.5)]);
        check(&[(1000, 10)], plain, &[]);
        check(&[], plain, &[]);
        check(&[(1000, i64::MIN), (1001, 1)], plain, &[(1001, to_double(i64::MIN + 1))]);
    }

    #[test]
    fn q_rate_basic_doubles() {
        let mut span = Span::default();
        span.push(1000, Number::Integer(1));
        span.push_double(1500, 2.5);
        let rates = rates(&span, &RateOptions::default(), 0);
        assert_eq!(rates.span.number(0), Number::Double(3.0));
        assert_eq!(rates.before_first, Some(1.0));
    }

    #[test]
    fn q_rate_counter() {
        check(&[(1000, 65_530), (1010, 5), (1020, 15)], counter(65_535, 0), &[(1010, 1.0), (1020, 1.0)]);
        check(&[(1000, 10), (1010, 0)], counter(i64::MAX, 0), &[(1010, to_double(i64::MAX - 10) / 10.0)]);
    }

    #[test]
    fn q_rate_reset() {
        check(&[(1000, 1000), (1010, 0)], counter(65_535, 100), &[(1010, 0.0)]);
        // A jump up is no reset, however steep.
        check(&[(1000, 0), (1010, 60_000)], counter(65_535, 100), &[(1010, 6000.0)]);
        check(&[(1000, 65_000), (1010, 0)], counter(65_535, 100), &[(1010, 53.5)]);
    }

    #[test]
    fn q_rate_drop() {
        let options = RateOptions { drop_resets: true, ..counter(65_535, 0) };
        check(&[(1000, 100), (1010, 20), (1020, 30)], options, &[(1020, 1.0)]);
    }

    #[test]
    fn what_lies_before_the_window_is_not_rated() {
        let mut span = Span::default();
        for (time_ms, value) in [(0, 0.0), (60_000, 6.0), (120_000, 18.0)] {
            span.push_double(time_ms + 1000, value);
        }
        let rates = rates(&span, &RateOptions::default(), 60_000);
        assert_eq!(rates.before_first, Some(0.1));
        assert_eq!((rates.span.len(), rates.span.number(0)), (1, Number::Double(0.2)));
    }
}
