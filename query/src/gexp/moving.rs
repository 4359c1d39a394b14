//! The moving average: at every point the mean of the points just before it and of itself, 0 until there are enough.
//!
//! A window is a number of points (`3`) or a time in quotes (`'10min'`). Points before the range take no part. *Source*:
//! OpenTSDB 2.4 `MovingAverage`.

use super::Flow;
use super::fault::FormulaFault;
use super::function::{Call, digits_and_rest, fault};
use crate::answer::{Number, Point};
use crate::dataset::Dataset;
use crate::{Result, aggregate::to_double};

/// Additions between two looks at the budget.
const ADDITIONS_PER_CHECK: usize = 1 << 16;

/// How far a window reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    Points(i64),
    Millis(i64),
}

/// Averages every series.
///
/// *Cost*: points × points of a window; the order of the additions is that of OpenTSDB, newest first, so that the last
/// bit is the same.
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
    let mut additions = 0;
    for (place, point) in points.iter().enumerate() {
        let window = points.get(..=place).unwrap_or_default();
        let (mean, added) = mean(window, reach);
        averaged.push(Point { time_ms: point.time_ms, number: Number::Double(mean) });
        additions += added;
        if additions >= ADDITIONS_PER_CHECK {
            additions = 0;
            stop()?;
        }
    }
    Ok(averaged)
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
