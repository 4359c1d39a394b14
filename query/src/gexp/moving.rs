//! The moving average: at every point the mean of the points just before it and of itself, 0 until there are enough.
//!
//! A window is a number of points (`3`) or a time in quotes (`'10min'`). Points before the range take no part. *Source*:
//! OpenTSDB 2.4 `MovingAverage`.

use super::call::{Call, Flow, digits_and_rest, fault};
use crate::answer::{Number, Point};
use crate::dataset::Dataset;
use crate::error::FormulaFault;
use crate::{Result, aggregate::to_double};

/// Additions between two looks at the budget.
const ADDITIONS_PER_CHECK: usize = 1 << 16;

/// Doubles hold every whole number up to this one, and so each sum of such whose magnitudes together are no more.
const EXACT_MAX: u128 = 1 << 53;

/// How far a window reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Points(i64),
    Millis(i64),
}

/// Averages every series.
///
/// *Cost*: points, where a window holds whole numbers alone, whose sum is the same in any order as long as a double holds
/// them all together; otherwise points × points of a window, as the order of the additions is that of OpenTSDB, newest
/// first, so that the last bit is the same.
///
/// # Errors
/// `Invalid`: no window, or one that cannot be read. A budget.
pub(super) fn moving_average(flows: Vec<Flow>, window: Option<&str>, call: &Call<'_>) -> Result<Vec<Flow>> {
    let Some(text) = window else {
        return fault(FormulaFault::MissingParameter("Missing moving average window size"));
    };
    let reach = reach(text)?;
    let averaged = flows.into_iter().map(|flow| {
        let mut points = flow.data.points;
        points.retain(|point| call.range.contains(&point.time_ms));
        let points = averages(&points, reach, &|| call.budget.check())?;
        Ok(Flow { data: Dataset { points, ..flow.data }, ..flow })
    });
    averaged.collect()
}

fn reach(text: &str) -> Result<Reach> {
    let reach = match text.strip_prefix('\'').filter(|_| text.ends_with('\'')) {
        Some(inner) => Reach::Millis(window_ms(text, inner)?),
        None if text.bytes().all(|letter| letter.is_ascii_digit()) => {
            Reach::Points(text.parse::<i32>().or(fault(FormulaFault::Number { fraction: false }))?.into())
        }
        None => return fault(FormulaFault::Window(text.into())),
    };
    match reach {
        Reach::Points(0) | Reach::Millis(0) => fault(FormulaFault::EmptyWindow),
        reach => Ok(reach),
    }
}

fn window_ms(text: &str, inner: &str) -> Result<i64> {
    let (digits, unit) = digits_and_rest(inner);
    let unit = unit.strip_suffix('\'').unwrap_or_default();
    let Ok(count) = digits.parse::<i32>() else {
        return fault(FormulaFault::WindowTime(text.into()));
    };
    let unit_ms = match unit {
        "sec" | "s" => 1_000,
        "min" | "m" => 60_000,
        "hr" | "hour" | "h" => 3_600_000,
        "day" | "d" => 86_400_000,
        _ => return fault(FormulaFault::WindowUnit { unit: unit.into(), window: text.into() }),
    };
    Ok(i64::from(count) * unit_ms)
}

fn averages(points: &[Point], reach: Reach, stop: &dyn Fn() -> Result<()>) -> Result<Vec<Point>> {
    let mut averaged = Vec::with_capacity(points.len());
    let mut sliding = Sliding::default();
    let mut additions = 0;
    for (place, point) in points.iter().enumerate() {
        let window = points.get(..=place).unwrap_or_default();
        let slid = sliding.slide(window, reach).map(|mean| (mean, 1));
        let (mean, added) = slid.unwrap_or_else(|| mean(window, reach));
        averaged.push(Point { time_ms: point.time_ms, number: Number::Double(mean) });
        additions += added;
        if additions >= ADDITIONS_PER_CHECK {
            additions = 0;
            stop()?;
        }
    }
    Ok(averaged)
}

/// What is known of a window that slides over points, ascending by time.
#[derive(Debug, Default)]
struct Sliding {
    /// The place of its oldest point.
    oldest: usize,
    /// Its numbers: all points but not-a-numbers.
    count: i64,
    /// How many of its numbers are not whole, or more than a double holds exactly.
    others: i64,
    /// The sum of its whole numbers, and that of their magnitudes.
    sum: i128,
    magnitude: u128,
}

impl Sliding {
    /// Moves on to the newest of `points`, which are one more than before: the mean, if it is the same however the numbers
    /// are added.
    fn slide(&mut self, points: &[Point], reach: Reach) -> Option<f64> {
        let newest = points.last()?;
        self.enter(newest.number);
        while let Some(oldest) = points.get(self.oldest) {
            let leaves = match reach {
                Reach::Points(length) => self.count > length,
                Reach::Millis(millis) => newest.time_ms - oldest.time_ms >= millis,
            };
            if !leaves {
                break;
            }
            self.leave(oldest.number);
            self.oldest += 1;
        }
        let is_full = match reach {
            Reach::Points(length) => self.count == length,
            Reach::Millis(_) => self.oldest > 0,
        };
        if !is_full || self.count == 0 {
            return Some(0.0);
        }
        let sum = i64::try_from(self.sum).ok().filter(|_| self.others == 0 && self.magnitude <= EXACT_MAX)?;
        Some(to_double(sum) / to_double(self.count))
    }

    fn enter(&mut self, number: Number) {
        if number.as_double().is_nan() {
            return;
        }
        self.count += 1;
        match whole(number) {
            Some(whole) => {
                self.sum += i128::from(whole);
                self.magnitude += u128::from(whole.unsigned_abs());
            }
            None => self.others += 1,
        }
    }

    fn leave(&mut self, number: Number) {
        if number.as_double().is_nan() {
            return;
        }
        self.count -= 1;
        match whole(number) {
            Some(whole) => {
                self.sum -= i128::from(whole);
                self.magnitude -= u128::from(whole.unsigned_abs());
            }
            None => self.others -= 1,
        }
    }
}

/// The whole number that a value is, if a double holds it and all below it exactly.
#[expect(clippy::cast_possible_truncation, reason = "what would be cut off is no whole number within the bound")]
fn whole(number: Number) -> Option<i64> {
    let value = match number {
        Number::Integer(value) => value,
        Number::Double(value) if value.fract().abs() <= 0.0 => value as i64,
        Number::Double(_) => return None,
    };
    (u128::from(value.unsigned_abs()) <= EXACT_MAX).then_some(value)
}

/// The mean of the newest of `points`, and how many were looked at. Not-a-numbers are passed over.
fn mean(points: &[Point], reach: Reach) -> (f64, usize) {
    let newest_ms = points.last().map_or(0, |point| point.time_ms);
    let (mut sum, mut count) = (0.0, 0);
    for (looked_at, point) in points.iter().rev().enumerate() {
        // A time is full when a point lies that far back, which takes no part itself.
        if matches!(reach, Reach::Millis(millis) if newest_ms - point.time_ms >= millis) {
            return (if count > 0 { sum / to_double(count) } else { 0.0 }, looked_at + 1);
        }
        let value = point.number.as_double();
        if !value.is_nan() {
            sum += value;
            count += 1;
        }
        if reach == Reach::Points(count) {
            return (sum / to_double(count), looked_at + 1);
        }
    }
    (0.0, points.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(window: &str, values: &[(i64, f64)], expected: &[f64]) {
        let points: Vec<Point> = values
            .iter()
            .map(|(minute, value)| Point { time_ms: minute * 60_000, number: Number::Double(*value) })
            .collect();
        let averaged = averages(&points, reach(window).unwrap(), &|| Ok(())).unwrap();
        let found: Vec<f64> = averaged.iter().map(|point| point.number.as_double()).collect();
        assert_eq!(found, expected, "{window}");
    }

    /// `E-GEXP-MA`: zeros until the window is full, and values as the real OpenTSDB gave them.
    #[test]
    fn e_gexp_ma_the_mean_of_the_window() {
        let values = [(0, 11.0), (1, 22.5), (2, -36.0)];
        check("2", &values, &[0.0, 16.75, -6.75]);
        check("1", &values, &[11.0, 22.5, -36.0]);
        check("'2min'", &values, &[0.0, 0.0, -6.75]);
        check("'1min'", &values, &[0.0, 22.5, -36.0]);
        check("2", &[(0, 1.0), (1, f64::NAN), (2, 3.0)], &[0.0, 0.0, 2.0]);
        check("'1d'", &values, &[0.0, 0.0, 0.0]);
    }

    /// As many additions as numbers, which is less than between two looks at the budget.
    #[test]
    fn e_gexp_ma_a_long_window_of_whole_numbers_costs_no_more_than_a_short_one() {
        let number = |at: i64| if at % 2 == 0 { Number::Integer(at) } else { Number::Double(to_double(-at)) };
        let points: Vec<Point> = (0..4_000).map(|at| Point { time_ms: at * 1_000, number: number(at) }).collect();
        for window in ["2000", "'2000s'", "5000"] {
            let stop = || panic!("more than {ADDITIONS_PER_CHECK} additions for {window}");
            assert_eq!(averages(&points, reach(window).unwrap(), &stop).unwrap().len(), points.len());
        }
    }

    fn numbers() -> impl Strategy<Value = Number> {
        let whole = prop_oneof![-9i64..9, -(1i64 << 53)..(1 << 53), any::<i64>()];
        prop_oneof![
            4 => whole.clone().prop_map(Number::Integer),
            4 => whole.prop_map(|value| Number::Double(to_double(value))),
            1 => any::<f64>().prop_map(Number::Double),
            1 => prop_oneof![Just(f64::NAN), Just(-0.0), Just(0.5), Just(f64::INFINITY)].prop_map(Number::Double),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        /// `E-GEXP-MA`: a mean is the same to its last bit whether the window slid or was added anew.
        #[test]
        fn e_gexp_ma_sliding_gives_what_adding_anew_gives(
            steps in proptest::collection::vec((1i64..4, numbers()), 0..60),
            small in any::<bool>(),
            length in 1i64..9,
        ) {
            let mut time_ms = 0;
            let points: Vec<Point> = steps
                .into_iter()
                .map(|(step, number)| {
                    time_ms += step;
                    // Long runs of small numbers, which slide.
                    let is_small = number.as_double().abs() < 10.0;
                    Point { time_ms, number: if small && !is_small { Number::Integer(step) } else { number } }
                })
                .collect();
            for reach in [Reach::Points(length), Reach::Millis(length)] {
                let slid = averages(&points, reach, &|| Ok(())).unwrap();
                for (place, point) in slid.iter().enumerate() {
                    let (anew, _) = mean(&points[..=place], reach);
                    prop_assert_eq!(point.number.as_double().to_bits(), anew.to_bits(), "{:?} {}", reach, place);
                }
            }
        }
    }

    #[test]
    fn e_gexp_ma_a_window_that_is_none_is_refused() {
        for (window, message) in [
            ("0", "Moving average window must be an integer greater than zero"),
            ("x", "Unparseable window size: x"),
            ("'5x'", "Unknown time unit=x in window='5x'"),
            ("'x'", "Invalid moving window parameter: 'x'"),
            ("'", "Invalid moving window parameter: '"),
            ("99999999999", "Invalid parameter, must be an integer"),
        ] {
            assert_eq!(reach(window).unwrap_err().to_string(), message);
        }
    }
}
