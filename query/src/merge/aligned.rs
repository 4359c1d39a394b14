//! The fast path of aggregation: members that all have points at the same instants, such as a single one, or those of one
//! collector, or buckets. Nobody is interpolated, and what is an integer at one instant is one at all.

use super::columns::{Column, Fold};
use super::{INSTANTS_PER_CHECK, Member, Merge, OUTPUT_BYTES, Take};
use crate::aggregate::Aggregator;
use crate::answer::{Number, Point};
use crate::span::Span;
use crate::{Error, Result};

/// The spans of all members with a point, if they share their instants, each is of integers or of doubles alone, and none
/// is held before its first point.
pub(super) fn spans<'a>(members: &[Member<'a>]) -> Option<Vec<&'a Span>> {
    let mut spans: Vec<&Span> = Vec::with_capacity(members.len());
    for member in members.iter().filter(|member| !member.span.is_empty()) {
        let span = member.span;
        let alike = spans.first().is_none_or(|first| first.times() == span.times());
        if !alike || span.uniform().is_none() || member.before_first.is_some() {
            return None;
        }
        spans.push(span);
    }
    Some(spans)
}

impl Merge {
    /// Aggregates spans that [`spans`] gave.
    pub(super) fn run_aligned(&self, spans: &[&Span], take: Take<'_>) -> Result<Vec<Point>> {
        let times = spans.first().map(|span| span.times()).unwrap_or_default();
        let from = times.partition_point(|time_ms| *time_ms < self.start_ms);
        let to = times.partition_point(|time_ms| *time_ms <= self.end_ms).max(from);
        let answered = times.get(from..to).unwrap_or_default();
        let columns: Vec<Column<'_>> = spans.iter().filter_map(|span| Column::of(span, from, to)).collect();
        assert_eq!(columns.len(), spans.len(), "BUG: spans that share their instants differ in length");
        let has_doubles = self.rate || columns.iter().any(|column| column.is_double);
        let mut points = Vec::with_capacity(answered.len());
        for (place, times) in answered.chunks(INSTANTS_PER_CHECK).enumerate() {
            take(OUTPUT_BYTES)?;
            let at = place * INSTANTS_PER_CHECK;
            match columns.as_slice() {
                [one] if !has_doubles && keeps_one(self.aggregator) => {
                    let words = one.part(at, times.len());
                    let point = |(time_ms, word): (&i64, &u64)| Point {
                        time_ms: *time_ms,
                        number: Number::Integer(word.cast_signed()),
                    };
                    points.extend(times.iter().zip(words).map(point));
                }
                columns if has_doubles => self.doubles(columns, at, times, &mut points)?,
                columns => self.integers(columns, at, times, &mut points),
            }
        }
        Ok(points)
    }

    fn integers(&self, columns: &[Column<'_>], from: usize, times: &[i64], points: &mut Vec<Point>) {
        let mut give = |time_ms: &i64, value| points.push(Point { time_ms: *time_ms, number: Number::Integer(value) });
        if let Some(fold) = Fold::of(self.aggregator) {
            let values = fold.integers(columns, from, times.len());
            times.iter().zip(values).for_each(|(time_ms, value)| give(time_ms, value));
            return;
        }
        let mut scratch = Vec::with_capacity(columns.len());
        for (at, time_ms) in (from..).zip(times) {
            scratch.clear();
            scratch.extend(columns.iter().map(|column| column.integer(at)));
            give(time_ms, self.aggregator.of_integers(&mut scratch));
        }
    }

    fn doubles(&self, columns: &[Column<'_>], from: usize, times: &[i64], points: &mut Vec<Point>) -> Result<()> {
        let mut give = |time_ms: i64, value: f64| {
            points.push(Point { time_ms, number: Number::Double(value) });
            if value.is_infinite() { Err(Error::Infinite { time_ms }) } else { Ok(()) }
        };
        if let Some(fold) = Fold::of(self.aggregator) {
            let values = fold.doubles(columns, from, times.len());
            return times.iter().zip(values).try_for_each(|(time_ms, value)| give(*time_ms, value));
        }
        let mut scratch = Vec::with_capacity(columns.len());
        (from..).zip(times).try_for_each(|(at, time_ms)| {
            scratch.clear();
            scratch.extend(columns.iter().map(|column| column.double(at)));
            give(*time_ms, self.aggregator.of_doubles(&mut scratch, self.rule))
        })
    }
}

/// Whether a function of one integer is that integer.
const fn keeps_one(function: Aggregator) -> bool {
    match function {
        Aggregator::Sum
        | Aggregator::ZimSum
        | Aggregator::PfSum
        | Aggregator::Min
        | Aggregator::Max
        | Aggregator::MimMin
        | Aggregator::MimMax
        | Aggregator::Avg
        | Aggregator::Median
        | Aggregator::Mult
        | Aggregator::First
        | Aggregator::Last
        | Aggregator::None => true,
        Aggregator::SquareSum | Aggregator::Count | Aggregator::Dev | Aggregator::Diff | Aggregator::Percentile(_) => {
            false
        }
    }
}
