//! A walk over the instants of a group: where each member stands between two of its points.
//!
//! What is looked at for every member at every instant lies side by side and was worked out when the member reached its last
//! point, so that an instant costs two passes over short rows of memory, whatever lies in the spans.

use super::{INSTANTS_PER_CHECK, Member};
use crate::Result;
use crate::aggregate::{Interpolation, to_double};
use crate::answer::Number;
use crate::span::Span;

/// The coming time of a member that has no point left.
const NEVER: i64 = i64::MAX;

/// The members of a group at one instant after the other.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    /// Each with how many of its points were reached.
    members: Vec<(&'a Span, usize)>,
    /// The time of each member's coming point, or [`NEVER`].
    coming_ms: Vec<i64>,
    stretches: Vec<Stretch>,
    /// The least of `coming_ms`.
    next_ms: i64,
    /// How many members have a double in play: as their latest value, or as the coming one.
    doubles: usize,
    /// How many of these have their last point at this instant.
    doubles_ending: usize,
    instants: usize,
}

/// What a member is worth from its latest point to the coming one. As long as a line of the processor's cache.
#[derive(Debug, Default)]
struct Stretch {
    from_ms: i64,
    /// It is silent after this.
    until_ms: i64,
    /// To the coming point, which is 0 where there is none: it is silent before that matters.
    length_ms: i64,
    has_double: bool,
    integers: Line<i64>,
    doubles: Line<f64>,
}

/// The latest value, and the change to the coming one.
#[derive(Debug, Default)]
struct Line<T> {
    value: T,
    change: T,
}

const _: () = assert!(size_of::<Stretch>() == 64);

impl<'a> Walk<'a> {
    pub(super) fn new(members: &[Member<'a>]) -> Self {
        let of_member = |member: &Member<'a>| (Stretch::before_first(member), (member.span, 0));
        let (stretches, members): (Vec<_>, Vec<_>) = members.iter().map(of_member).unzip();
        let first_ms = |(span, _): &(&Span, usize)| span.times().first().copied().unwrap_or(NEVER);
        let coming_ms: Vec<i64> = members.iter().map(first_ms).collect();
        let next_ms = coming_ms.iter().copied().min().unwrap_or(NEVER);
        let doubles = stretches.iter().filter(|stretch| stretch.has_double).count();
        Self { members, coming_ms, stretches, next_ms, doubles, doubles_ending: 0, instants: 0 }
    }

    /// Goes on to the next instant at which a member has a point, if there is one up to `end_ms`.
    ///
    /// *Cost*: a look at each member's coming time.
    ///
    /// # Errors
    /// Whatever `stop` says; it is asked every few instants.
    pub(super) fn advance(&mut self, end_ms: i64, stop: &dyn Fn() -> Result<()>) -> Result<Option<i64>> {
        let now_ms = self.next_ms;
        if now_ms == NEVER || now_ms > end_ms {
            return Ok(None);
        }
        if self.instants.is_multiple_of(INSTANTS_PER_CHECK) {
            stop()?;
        }
        self.instants += 1;
        self.doubles -= std::mem::take(&mut self.doubles_ending);
        let mut next_ms = NEVER;
        let of_all = self.coming_ms.iter_mut().zip(&mut self.stretches).zip(&mut self.members);
        for ((coming_ms, stretch), (span, reached)) in of_all {
            if *coming_ms == now_ms {
                let had_double = stretch.has_double;
                *coming_ms = stretch.begin(span, *reached);
                *reached += 1;
                self.doubles = self.doubles + usize::from(stretch.has_double) - usize::from(had_double);
                self.doubles_ending += usize::from(stretch.has_double && *coming_ms == NEVER);
            }
            next_ms = next_ms.min(*coming_ms);
        }
        self.next_ms = next_ms;
        Ok(Some(now_ms))
    }

    /// Whether a member's latest or coming value is a double, also of one that has not begun.
    pub(super) const fn sees_double(&self) -> bool {
        self.doubles > 0
    }

    /// The values of the live members at `now_ms`, where no double is in play.
    pub(super) fn integers(&self, now_ms: i64, method: Interpolation, into: &mut Vec<i64>) {
        into.clear();
        into.extend(self.live(now_ms).map(|stretch| stretch.integer_at(now_ms, method)));
    }

    /// The values of the live members at `now_ms` as doubles. Those that are `held` are not interpolated.
    pub(super) fn doubles(&self, now_ms: i64, method: Interpolation, held: bool, into: &mut Vec<f64>) {
        into.clear();
        into.extend(self.live(now_ms).map(|stretch| stretch.double_at(now_ms, method, held)));
    }

    fn live(&self, now_ms: i64) -> impl Iterator<Item = &Stretch> {
        self.stretches.iter().filter(move |stretch| now_ms <= stretch.until_ms)
    }
}

impl Stretch {
    /// That of a member whose first point is still to come: silent, unless a value is held from before any instant on. A member
    /// without a point never begins.
    fn before_first(member: &Member<'_>) -> Self {
        let silent = Self { until_ms: i64::MIN, ..Self::default() };
        if member.span.is_empty() {
            return silent;
        }
        let Some(value) = member.before_first else {
            return Self { has_double: member.span.is_double(0), ..silent };
        };
        let doubles = Line { value, ..Line::default() };
        Self { from_ms: i64::MIN, until_ms: NEVER, has_double: true, doubles, ..Self::default() }
    }

    /// Begins at the point `at` of the span; gives the time of the one behind it.
    fn begin(&mut self, span: &Span, at: usize) -> i64 {
        let time_ms = |at: usize| span.times().get(at).copied();
        let now_ms = time_ms(at).unwrap_or(NEVER);
        let Some(coming_ms) = time_ms(at + 1) else {
            *self = Self::between((now_ms, span.number(at)), (now_ms, span.number(at)));
            self.until_ms = now_ms;
            return NEVER;
        };
        *self = Self::between((now_ms, span.number(at)), (coming_ms, span.number(at + 1)));
        coming_ms
    }

    fn between((from_ms, from): (i64, Number), (to_ms, to): (i64, Number)) -> Self {
        let has_double = [from, to].iter().any(|number| matches!(number, Number::Double(_)));
        let integers = match (from, to) {
            (Number::Integer(from), Number::Integer(to)) => Line { value: from, change: to.wrapping_sub(from) },
            _ => Line::default(),
        };
        let (value, to) = (from.as_double(), to.as_double());
        let doubles = Line { value, change: to - value };
        Self { from_ms, until_ms: NEVER, length_ms: to_ms - from_ms, has_double, integers, doubles }
    }

    fn integer_at(&self, now_ms: i64, method: Interpolation) -> i64 {
        let Line { value, change } = self.integers;
        if self.from_ms == now_ms {
            return value;
        }
        match method {
            // In this order, so that what wraps and what is cut are the same as in OpenTSDB.
            Interpolation::Linear => {
                let part = (now_ms - self.from_ms).wrapping_mul(change);
                value.wrapping_add(part.checked_div(self.length_ms).unwrap_or_default())
            }
            Interpolation::Zero => 0,
            Interpolation::Max => i64::MAX,
            Interpolation::Min => i64::MIN,
            Interpolation::Previous => value,
        }
    }

    fn double_at(&self, now_ms: i64, method: Interpolation, held: bool) -> f64 {
        let Line { value, change } = self.doubles;
        if self.from_ms == now_ms || held {
            return value;
        }
        match method {
            Interpolation::Linear => value + to_double(now_ms - self.from_ms) * change / to_double(self.length_ms),
            Interpolation::Zero => 0.0,
            Interpolation::Max => f64::MAX,
            Interpolation::Min => -f64::MAX,
            Interpolation::Previous => value,
        }
    }
}
