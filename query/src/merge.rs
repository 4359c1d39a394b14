//! Aggregation across series: at every instant where one of them has a point, one value of them all.
//!
//! Between two of its points a series takes part by interpolation, before its first and after its last not at all. At
//! each instant the values are integers when the latest and the coming value of every live series are, doubles
//! otherwise; that is decided anew at each instant. Rates are not interpolated: the latest one is held. *Source*:
//! OpenTSDB 2.4 `AggregationIterator`.

mod aligned;
mod columns;
mod coming;
mod parts;
mod walk;

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use crate::aggregate::{Aggregator, Deciding, Interpolation, PercentileRule, count, to_double};
use crate::answer::{Number, Point};
use crate::span::Span;
use crate::{Error, Result};
use walk::Walk;

/// Instants between two looks at whether to stop.
pub(crate) const INSTANTS_PER_CHECK: usize = 1024;
/// Memory of the instants between two looks, with room to grow.
const OUTPUT_BYTES: u64 = (INSTANTS_PER_CHECK * 2 * size_of::<Point>()) as u64;
/// Memory of a walk for each member.
const WALK_BYTES: u64 = 120;

/// Says whether to go on, and takes so many bytes of memory for it.
pub(crate) type Take<'a> = &'a (dyn Fn(u64) -> Result<()> + Sync);

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
    /// Aggregates the members; stamps of `start_ms..=end_ms` only. Several threads share what is much, each with a part of the
    /// range.
    ///
    /// *Cost*: points, with a look at every live member at each instant unless the function has less to look at
    /// ([`Deciding`]); several times less where all members have points at the same instants. A scratch buffer, and else
    /// some 120 bytes a member for each part.
    ///
    /// # Errors
    /// `Invalid`: a value that is infinite. `take` says otherwise why to give up; it is asked every few instants, for the bytes
    /// that these take and that stay taken.
    pub(crate) fn run(&self, members: &[Member<'_>], take: Take<'_>) -> Result<Vec<Point>> {
        let spans = aligned::spans(members);
        let run = |part: &Self| match &spans {
            Some(spans) => part.run_aligned(spans, take),
            None => part.run_any(members, take),
        };
        let parts_len = self.parts_len(members, spans.is_some());
        if parts_len == 1 {
            return run(self);
        }
        let parts = self.parts(members, parts_len);
        if spans.is_none() {
            // One walk is charged with the members themselves.
            take(WALK_BYTES * (members.len() * (parts.len() - 1)) as u64)?;
        }
        // All of them, so that the first error is told whichever thread was first.
        let parts: Vec<Result<Vec<Point>>> = parts.par_iter().map(run).collect();
        let mut points = Vec::new();
        for part in parts {
            points.append(&mut part?);
        }
        Ok(points)
    }

    /// Slow path: members of whatever instants.
    fn run_any(&self, members: &[Member<'_>], take: Take<'_>) -> Result<Vec<Point>> {
        let mut walk = Walk::new(members, self.start_ms);
        let mut points = Vec::new();
        let mut scratch = Scratch::default();
        while let Some(now_ms) = walk.advance(self.end_ms, &|| take(OUTPUT_BYTES))? {
            points.push(Point { time_ms: now_ms, number: self.value(&mut walk, now_ms, &mut scratch)? });
        }
        Ok(points)
    }

    /// Which members decide the value at an instant.
    fn deciding(&self) -> Deciding {
        match self.aggregator.deciding() {
            // One that is held is not like another.
            Deciding::WithPoint if self.rate => Deciding::All,
            deciding => deciding,
        }
    }

    /// The value of all live series at `now_ms`.
    fn value(&self, walk: &mut Walk<'_>, now_ms: i64, scratch: &mut Scratch) -> Result<Number> {
        let method = self.aggregator.interpolation();
        let deciding = self.deciding();
        // One of those between two points is among the values.
        let not_counted = match (self.aggregator, deciding) {
            (Aggregator::Count, Deciding::WithPoint) => count(walk.between_len().saturating_sub(1)),
            _ => 0,
        };
        if !self.rate && !walk.sees_double() {
            walk.integers(now_ms, method, deciding, &mut scratch.integers);
            return Ok(Number::Integer(self.aggregator.of_integers(&mut scratch.integers) + not_counted));
        }
        walk.doubles(now_ms, (method, self.rate), deciding, &mut scratch.doubles);
        let value = self.aggregator.of_doubles(&mut scratch.doubles, self.rule);
        if value.is_infinite() {
            return Err(Error::Infinite { time_ms: now_ms });
        }
        Ok(Number::Double(if not_counted == 0 { value } else { value + to_double(not_counted) }))
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
    let mut walk = Walk::new(members, i64::MIN);
    let mut scratch = Scratch::default();
    let method = Interpolation::Linear;
    while let Some(now_ms) = walk.advance(end_ms, stop)? {
        if walk.sees_double() {
            walk.doubles(now_ms, (method, false), Deciding::All, &mut scratch.doubles);
            each(None, &scratch.doubles);
        } else {
            walk.integers(now_ms, method, Deciding::All, &mut scratch.integers);
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

#[cfg(test)]
mod tests;
