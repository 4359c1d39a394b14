//! The functions of formulas.
//!
//! Where OpenTSDB's own way is a mistake ours differs, unless strict: an alias takes no absolute values, series are
//! summed by their times and not by their places, and the highest are those with the highest values. Its time shift
//! refuses every unit; ours shifts, and is given what lies earlier by as much.

use std::ops::RangeInclusive;

use super::call::{Call, Flow, digits_and_rest, fault};
use super::{highest, moving};
use crate::answer::Number;
use crate::dataset::Dataset;
use crate::error::FormulaFault;
use crate::expression::{Column, Combine, Joined, Program, Rule, join, order_of};
use crate::{Options, Result};

/// How many lists of series a function of several takes.
const SERIES_COUNT: RangeInclusive<usize> = 2..=26;
/// The names of its variables.
const LETTERS: &str = "abcdefghijklmnopqrstuvwxyz";

/// A function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Absolute,
    Alias,
    FirstDifference,
    HighestCurrent,
    HighestMax,
    MovingAverage,
    Scale,
    TimeShift,
    /// Series by series, with this sign between them.
    Combine(char),
}

impl Function {
    /// The function of this name; letters' case matters. `firstDiff` came after OpenTSDB 2.4.
    pub(super) fn by_name(name: &str, options: Options) -> Result<Self> {
        Ok(match name {
            "absolute" => Self::Absolute,
            "alias" => Self::Alias,
            "firstDiff" if !options.compat.strict => Self::FirstDifference,
            "highestCurrent" => Self::HighestCurrent,
            "highestMax" => Self::HighestMax,
            "movingAverage" => Self::MovingAverage,
            "scale" => Self::Scale,
            "shift" | "timeShift" => Self::TimeShift,
            "divide" | "divideSeries" => Self::Combine('/'),
            "sum" | "sumSeries" => Self::Combine('+'),
            "difference" | "diffSeries" => Self::Combine('-'),
            "multiply" | "multiplySeries" => Self::Combine('*'),
            _ => return fault(FormulaFault::UnknownFunction(name.into())),
        })
    }

    /// Refuses what it is not applied to, before any of it is read: too few or too many lists of series.
    ///
    /// # Errors
    /// `Invalid`: their number.
    pub(super) fn check_inputs(self, count: usize) -> Result<()> {
        let is_counted = matches!(self, Self::Combine(_)) && count > 0;
        if is_counted && !SERIES_COUNT.contains(&count) { fault(FormulaFault::SeriesCount(count)) } else { Ok(()) }
    }

    /// By how much it shifts what it is applied to: 0 for all but the time shift.
    ///
    /// # Errors
    /// `Invalid`: no time in quotes.
    pub(super) fn shift_ms(self, texts: &[String], strict: bool) -> Result<i64> {
        if self == Self::TimeShift { shift_ms(texts.first().map(String::as_str), strict) } else { Ok(0) }
    }

    /// Applies it to lists of series; nothing to apply it to is nothing, whatever the parameters.
    ///
    /// # Errors
    /// `Invalid`: parameters that make no sense. A budget.
    pub(super) fn apply(self, inputs: Vec<Vec<Flow>>, texts: &[String], call: &Call<'_>) -> Result<Vec<Flow>> {
        if inputs.is_empty() {
            return Ok(Vec::new());
        }
        if let Self::Combine(sign) = self {
            return combine(inputs, sign, call);
        }
        let first = texts.first().map(String::as_str);
        if self == Self::TimeShift {
            let by_ms = self.shift_ms(texts, call.strict)?;
            return Ok(inputs
                .into_iter()
                .next()
                .unwrap_or_default()
                .into_iter()
                .map(|flow| shift(flow, by_ms))
                .collect());
        }
        let flows: Vec<Flow> = inputs.into_iter().flatten().collect();
        let each = |flows: Vec<Flow>, of: &dyn Fn(Dataset) -> Dataset| {
            Ok(flows.into_iter().map(|flow| Flow { data: of(flow.data), ..flow }).collect())
        };
        match self {
            Self::Absolute => each(flows, &|data| data.map(absolute)),
            Self::Alias => {
                if texts.is_empty() {
                    return fault(FormulaFault::MissingParameter("Missing the alias"));
                }
                let alias = texts.join(",");
                call.budget.reserve((alias.len() * flows.len()) as u64)?;
                each(flows, &|data| {
                    let data = if call.strict { data.map(absolute) } else { data };
                    Dataset { alias: Some(alias.clone()), ..data }
                })
            }
            Self::Scale => {
                let factor = factor(first)?;
                each(flows, &|data| data.map(|number| scaled(number, factor)))
            }
            Self::FirstDifference => each(flows, &first_difference),
            Self::HighestCurrent => highest::highest(flows, highest::Which::Current, first, call),
            Self::HighestMax => highest::highest(flows, highest::Which::Max, first, call),
            Self::MovingAverage => moving::moving_average(flows, first, call),
            Self::TimeShift | Self::Combine(_) => Ok(flows),
        }
    }
}

fn absolute(number: Number) -> Number {
    match number {
        Number::Integer(value) => Number::Integer(value.wrapping_abs()),
        Number::Double(value) => Number::Double(value.abs()),
    }
}

/// Integers stay integers where the factor is whole.
#[expect(clippy::cast_possible_truncation, reason = "a whole factor beyond 64 bits is cut to them, as Java does")]
fn scaled(number: Number, factor: f64) -> Number {
    match number {
        Number::Integer(value) if factor.fract().abs() <= 0.0 => Number::Integer((factor as i64).wrapping_mul(value)),
        number => Number::Double(factor * number.as_double()),
    }
}

fn factor(text: Option<&str>) -> Result<f64> {
    let Some(text) = text else {
        return fault(FormulaFault::MissingParameter("Missing scaling factor"));
    };
    if !text.chars().all(|letter| letter.is_ascii_digit() || matches!(letter, '-' | '.')) {
        return fault(FormulaFault::Factor);
    }
    text.parse().or(fault(FormulaFault::Number { fraction: true }))
}

/// The change since the point before; 0 at the first.
fn first_difference(mut data: Dataset) -> Dataset {
    let mut before = None;
    for point in &mut data.points {
        let value = point.number.as_double();
        point.number = Number::Double(before.map_or(0.0, |before| value - before));
        before = Some(value);
    }
    data
}

/// Annotations are left out: they speak of the time before the shift.
fn shift(mut flow: Flow, by_ms: i64) -> Flow {
    flow.data.annotations.clear();
    for point in &mut flow.data.points {
        point.time_ms = point.time_ms.saturating_add(by_ms);
    }
    flow
}

/// `'10min'` and its like. Strictly the closing quote is part of the unit, and so every unit is unknown.
fn shift_ms(text: Option<&str>, strict: bool) -> Result<i64> {
    let Some(text) = text else {
        return fault(FormulaFault::MissingParameter("Need amount of timeshift to perform timeshift"));
    };
    let Some(inner) = text.strip_prefix('\'').filter(|_| text.ends_with('\'')) else {
        return fault(FormulaFault::Shift);
    };
    let (digits, unit) = digits_and_rest(inner);
    if digits.is_empty() {
        return fault(FormulaFault::ShiftTime(text.into()));
    }
    let count: i64 = digits.parse::<i32>().or(fault(FormulaFault::ShiftTime(text.into())))?.into();
    let unit = if strict { unit } else { unit.trim_end_matches('\'').trim() };
    let unit_ms = match unit {
        "sec" => 1_000,
        "min" => 60_000,
        "hr" => 3_600_000,
        "day" | "days" => 86_400_000,
        "week" | "weeks" => 7 * 86_400_000,
        _ => return fault(FormulaFault::ShiftUnit(unit.into())),
    };
    if count == 0 { fault(FormulaFault::EmptyShift) } else { Ok(count * unit_ms) }
}

/// Series of the same tags, point by point; one that is missing is zero. The number of inputs was checked.
fn combine(inputs: Vec<Vec<Flow>>, sign: char, call: &Call<'_>) -> Result<Vec<Flow>> {
    let names: Vec<&str> = LETTERS.split("").filter(|name| !name.is_empty()).take(inputs.len()).collect();
    let datasets: Vec<Vec<Dataset>> = inputs
        .into_iter()
        .map(|flows| flows.into_iter().map(|flow| flow.data).filter(|data| !data.points.is_empty()).collect())
        .collect();
    let program = Program::parse(&names.join(&sign.to_string()), false)?;
    let columns: Vec<Column<'_>> = datasets.iter().map(|series| Column { series, filtered: None, fill: 0.0 }).collect();
    let rule = Rule { intersect: false, filtered_tags: false, aggregated_keys: false };
    let Joined { rows, bytes } = join(&columns, rule, call.budget)?;
    let order = order_of(&names);
    let combine =
        Combine { columns: &columns, order: &order, program: &program, strict: call.strict, budget: call.budget };
    let mut made = if call.strict { combine.by_place(&rows)? } else { combine.by_time_of_each(&rows)? };
    drop(rows);
    call.budget.give_back(bytes);
    if call.strict {
        for data in &mut made {
            data.tsuids.clear();
        }
    }
    Ok(made.into_iter().map(|data| Flow { query: 0, data }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_shift(text: &str, strict: bool, expected: std::result::Result<i64, &str>) {
        let found = shift_ms(Some(text), strict).map_err(|error| error.to_string());
        assert_eq!(found.as_ref().map_err(String::as_str).copied(), expected, "{text}");
    }

    #[test]
    fn e_gexp_a_shift_is_a_time_in_quotes() {
        check_shift("'10min'", false, Ok(600_000));
        check_shift("'2weeks'", false, Ok(14 * 86_400_000));
        check_shift("'1day'", true, Err("unknown time unit=day'"));
        check_shift("'1year'", false, Err("unknown time unit=year"));
        check_shift("10min", false, Err("Invalid timeshift parameter: eg '10min'"));
        check_shift("'min'", false, Err("Invalid Parameter: 'min'"));
        check_shift("'0sec'", false, Err("timeshift <= 0"));
        check_shift("'", false, Err("Invalid Parameter: '"));
    }

    #[test]
    fn e_gexp_whole_factors_keep_integers() {
        assert_eq!(scaled(Number::Integer(3), -2.0), Number::Integer(-6));
        assert_eq!(scaled(Number::Integer(3), 0.5), Number::Double(1.5));
        assert_eq!(scaled(Number::Double(1.5), 2.0), Number::Double(3.0));
        assert_eq!(scaled(Number::Integer(i64::MAX), 2.0), Number::Integer(-2));
    }
}
