//! Aggregation across series: at every instant where one of them has a point, one value of them all.
//!
//! Between two of its points a series takes part by interpolation, before its first and after its last not at all. At
//! each instant the values are integers when the latest and the coming value of every live series are, doubles
//! otherwise; that is decided anew at each instant. Rates are not interpolated: the latest one is held. *Source*:
//! OpenTSDB 2.4 `AggregationIterator`.

mod aligned;

use crate::aggregate::{Aggregator, Interpolation, PercentileRule, to_double};
use crate::answer::{Number, Point};
use crate::span::Span;
use crate::{Error, Result};

/// Instants between two looks at whether to stop.
pub(crate) const INSTANTS_PER_CHECK: usize = 1024;

/// A member of a group.
#[derive(Debug)]
pub(crate) struct Member<'a> {
    /// Its points.
    pub(crate) span: &'a Span,
    /// A value that is held before the first point.
    pub(crate) before_first: Option<f64>,
}

/// What to make of a group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Merge {
    /// The function.
    pub(crate) aggregator: Aggregator,
    /// Whether the values are rates.
    pub(crate) rate: bool,
    /// Which percentiles.
    pub(crate) rule: PercentileRule,
    /// First stamp given.
    pub(crate) start_ms: i64,
    /// Last stamp given.
    pub(crate) end_ms: i64,
}

impl Merge {
    /// Aggregates the members; stamps of `start_ms..=end_ms` only.
    ///
    /// *Cost*: members × instants, several times less where all members have points at the same instants; two scratch
    /// buffers.
    ///
    /// # Errors
    /// `Invalid`: a value that is infinite. `stop` says otherwise why to give up; it is asked every few instants.
    pub(crate) fn run(&self, members: &[Member<'_>], stop: &dyn Fn() -> Result<()>) -> Result<Vec<Point>> {
        match aligned::spans(members) {
            Some(spans) => self.run_aligned(&spans, stop),
            None => self.run_any(members, stop),
        }
    }

    /// Slow path: members of whatever instants.
    fn run_any(&self, members: &[Member<'_>], stop: &dyn Fn() -> Result<()>) -> Result<Vec<Point>> {
        let mut cursors: Vec<Cursor<'_>> = members.iter().map(Cursor::new).collect();
        let mut points = Vec::new();
        let mut scratch = Scratch::default();
        let mut instants = 0_usize;
        while let Some(now_ms) = cursors.iter().filter_map(Cursor::next_ms).min() {
            if now_ms > self.end_ms {
                break;
            }
            for cursor in &mut cursors {
                cursor.advance_to(now_ms);
            }
            if instants.is_multiple_of(INSTANTS_PER_CHECK) {
                stop()?;
            }
            instants += 1;
            if now_ms >= self.start_ms {
                points.push(Point { time_ms: now_ms, number: self.value(&cursors, now_ms, &mut scratch)? });
            }
        }
        Ok(points)
    }

    /// The value of all live series at `now_ms`.
    fn value(&self, cursors: &[Cursor<'_>], now_ms: i64, scratch: &mut Scratch) -> Result<Number> {
        let method = self.aggregator.interpolation();
        if !self.rate && !cursors.iter().any(Cursor::sees_double) {
            scratch.integers.clear();
            scratch.integers.extend(cursors.iter().filter_map(|cursor| cursor.integer_at(now_ms, method)));
            return Ok(Number::Integer(self.aggregator.of_integers(&mut scratch.integers)));
        }
        scratch.doubles.clear();
        let held = self.rate;
        scratch.doubles.extend(cursors.iter().filter_map(|cursor| cursor.double_at(now_ms, method, held)));
        let value = self.aggregator.of_doubles(&mut scratch.doubles, self.rule);
        if value.is_infinite() { Err(Error::Infinite { time_ms: now_ms }) } else { Ok(Number::Double(value)) }
    }
}

/// Hands `each` the interpolated values of the live members at every instant up to `end_ms`, in the members' order:
/// integers where all in play are, else doubles.
///
/// # Errors
/// Whatever `stop` says; it is asked every few instants.
pub(crate) fn live_values(
    members: &[Member<'_>],
    end_ms: i64,
    stop: &dyn Fn() -> Result<()>,
    mut each: impl FnMut(Option<&[i64]>, &[f64]),
) -> Result<()> {
    let mut cursors: Vec<Cursor<'_>> = members.iter().map(Cursor::new).collect();
    let mut scratch = Scratch::default();
    let method = Interpolation::Linear;
    let mut instants = 0_usize;
    while let Some(now_ms) = cursors.iter().filter_map(Cursor::next_ms).min().filter(|now_ms| *now_ms <= end_ms) {
        for cursor in &mut cursors {
            cursor.advance_to(now_ms);
        }
        if instants.is_multiple_of(INSTANTS_PER_CHECK) {
            stop()?;
        }
        instants += 1;
        if cursors.iter().any(Cursor::sees_double) {
            scratch.doubles.clear();
            scratch.doubles.extend(cursors.iter().filter_map(|cursor| cursor.double_at(now_ms, method, false)));
            each(None, &scratch.doubles);
        } else {
            scratch.integers.clear();
            scratch.integers.extend(cursors.iter().filter_map(|cursor| cursor.integer_at(now_ms, method)));
            each(Some(&scratch.integers), &[]);
        }
    }
    Ok(())
}

#[derive(Default)]
struct Scratch {
    integers: Vec<i64>,
    doubles: Vec<f64>,
}

/// Where a series stands: its latest point at or before the instant, and the coming one.
#[derive(Debug)]
struct Cursor<'a> {
    span: &'a Span,
    /// Index of the coming point.
    next: usize,
    /// The latest value and its time; `None` before the first point and after the last.
    latest: Option<(i64, Number)>,
}

impl<'a> Cursor<'a> {
    fn new(member: &Member<'a>) -> Self {
        // Held from before any instant on; gone when the series ends, and a series without a point never begins.
        let before_first = member.before_first.filter(|_| !member.span.is_empty());
        Self { span: member.span, next: 0, latest: before_first.map(|rate| (i64::MIN, Number::Double(rate))) }
    }

    /// Time of the coming point.
    fn next_ms(&self) -> Option<i64> {
        self.span.times().get(self.next).copied()
    }

    /// Goes on to `now_ms`, which is at or before the coming point.
    fn advance_to(&mut self, now_ms: i64) {
        match self.next_ms() {
            Some(next_ms) if next_ms == now_ms => {
                self.latest = Some((now_ms, self.span.number(self.next)));
                self.next += 1;
            }
            Some(_) => {}
            None => self.latest = None,
        }
    }

    /// Whether the latest or the coming value is a double.
    fn sees_double(&self) -> bool {
        matches!(self.latest, Some((_, Number::Double(_))))
            || self.next < self.span.len() && self.span.is_double(self.next)
    }

    /// The series' value at `now_ms` when no value in play is a double.
    fn integer_at(&self, now_ms: i64, method: Interpolation) -> Option<i64> {
        let (x0, Number::Integer(y0)) = self.latest? else {
            return None;
        };
        if x0 == now_ms {
            return Some(y0);
        }
        let (x1, Number::Integer(y1)) = (self.next_ms()?, self.span.number(self.next)) else {
            return None;
        };
        Some(match method {
            // In this order, so that what wraps and what is cut are the same as in OpenTSDB.
            Interpolation::Linear => {
                y0.wrapping_add((now_ms - x0).wrapping_mul(y1.wrapping_sub(y0)).wrapping_div(x1 - x0))
            }
            Interpolation::Zero => 0,
            Interpolation::Max => i64::MAX,
            Interpolation::Min => i64::MIN,
            Interpolation::Previous => y0,
        })
    }

    /// The series' value at `now_ms` as a double.
    fn double_at(&self, now_ms: i64, method: Interpolation, held: bool) -> Option<f64> {
        let (x0, y0) = self.latest?;
        let y0 = y0.as_double();
        if x0 == now_ms || held {
            return Some(y0);
        }
        let (x1, y1) = (self.next_ms()?, self.span.double(self.next));
        Some(match method {
            Interpolation::Linear => y0 + to_double(now_ms - x0) * (y1 - y0) / to_double(x1 - x0),
            Interpolation::Zero => 0.0,
            Interpolation::Max => f64::MAX,
            Interpolation::Min => -f64::MAX,
            Interpolation::Previous => y0,
        })
    }
}

#[cfg(test)]
mod tests;
