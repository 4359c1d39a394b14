//! A walk over the instants of a group: where each member stands between two of its points.
//!
//! What a member is worth between two points is worked out when it reaches the first, so that an instant costs a pass over
//! short rows of memory, whatever lies in the spans. Members that have not begun or have ended are not looked at.

use super::coming::{Coming, NEVER};
use super::{INSTANTS_PER_CHECK, Member};
use crate::Result;
use crate::aggregate::{Deciding, Interpolation, to_double, truncate};
use crate::answer::Number;
use crate::span::Span;

/// The members of a group at one instant after the other.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    /// Each with how many of its points were reached.
    members: Vec<(&'a Span, usize)>,
    coming: Coming,
    stretches: Vec<Stretch>,
    /// Those with a point at this instant, in their order.
    here: Vec<usize>,
    /// Those that were live when somebody last asked, in their order.
    live: Vec<usize>,
    /// Those that have begun since.
    arrived: Vec<usize>,
    /// How many are live.
    live_len: usize,
    /// How many of these have their last point at this instant.
    ending: usize,
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
    /// A walk whose first instant is the first one from `from_ms` on.
    ///
    /// *Cost*: a look into every member.
    pub(super) fn new(members: &[Member<'a>], from_ms: i64) -> Self {
        let mut stretches = Vec::with_capacity(members.len());
        let (members, coming): (Vec<_>, _) = members
            .iter()
            .map(|member| {
                let times = member.span.times();
                let reached = times.partition_point(|time_ms| *time_ms < from_ms);
                let mut stretch = Stretch::before_first(member);
                if let Some(latest) = reached.checked_sub(1) {
                    stretch.begin(member.span, latest);
                }
                stretches.push(stretch);
                ((member.span, reached), times.get(reached).copied().unwrap_or(NEVER))
            })
            .unzip();
        let has_ended = |(span, reached): &(&Span, usize)| *reached > 0 && *reached == span.len();
        let doubles =
            members.iter().zip(&stretches).filter(|(member, stretch)| stretch.has_double && !has_ended(member));
        let live: Vec<usize> = (0..).zip(&stretches).filter(|(_, s)| s.until_ms == NEVER).map(|(at, _)| at).collect();
        Self {
            doubles: doubles.count(),
            members,
            coming: Coming::new(coming),
            here: Vec::new(),
            live_len: live.len(),
            live,
            arrived: Vec::new(),
            ending: 0,
            doubles_ending: 0,
            stretches,
            instants: 0,
        }
    }

    /// Goes on to the next instant at which a member has a point, if there is one up to `end_ms`.
    ///
    /// *Cost*: by the members with a point there.
    ///
    /// # Errors
    /// Whatever `stop` says; it is asked every few instants.
    pub(super) fn advance(&mut self, end_ms: i64, stop: &dyn Fn() -> Result<()>) -> Result<Option<i64>> {
        let now_ms = self.coming.next_ms();
        if now_ms == NEVER || now_ms > end_ms {
            return Ok(None);
        }
        if self.instants.is_multiple_of(INSTANTS_PER_CHECK) {
            stop()?;
        }
        self.instants += 1;
        self.doubles -= std::mem::take(&mut self.doubles_ending);
        self.live_len -= std::mem::take(&mut self.ending);
        self.here.clear();
        self.coming.advance(&mut |at| {
            let (Some(stretch), Some((span, reached))) = (self.stretches.get_mut(at), self.members.get_mut(at)) else {
                return NEVER;
            };
            if stretch.until_ms < now_ms {
                self.arrived.push(at);
                self.live_len += 1;
            }
            let had_double = stretch.has_double;
            let coming_ms = stretch.begin(span, *reached);
            *reached += 1;
            self.here.push(at);
            // Branches that are seldom taken: a count that is always written makes each member wait for the one before.
            if stretch.has_double != had_double {
                self.doubles = self.doubles + usize::from(stretch.has_double) - usize::from(had_double);
            }
            if coming_ms == NEVER {
                self.ending += 1;
                self.doubles_ending += usize::from(stretch.has_double);
            }
            coming_ms
        });
        Ok(Some(now_ms))
    }

    /// Whether a member's latest or coming value is a double, also of one that has not begun.
    pub(super) const fn sees_double(&self) -> bool {
        self.doubles > 0
    }

    /// How many live members have no point at this instant.
    pub(super) const fn between_len(&self) -> usize {
        self.live_len - self.here.len()
    }

    /// The values of the live members at `now_ms` that are `deciding`, where no double is in play.
    pub(super) fn integers(&mut self, now_ms: i64, method: Interpolation, deciding: Deciding, into: &mut Vec<i64>) {
        self.collect(now_ms, deciding, |stretch| stretch.integer_at(now_ms, method), into);
        into.extend(method.integer().filter(|_| self.has_stand_in(deciding)));
    }

    /// The same as doubles. Those that are `held` are not interpolated, so that [`Deciding::WithPoint`] does not go with it.
    pub(super) fn doubles(
        &mut self,
        now_ms: i64,
        (method, held): (Interpolation, bool),
        deciding: Deciding,
        into: &mut Vec<f64>,
    ) {
        self.collect(now_ms, deciding, |stretch| stretch.double_at(now_ms, method, held), into);
        into.extend(method.double().filter(|_| self.has_stand_in(deciding)));
    }

    #[inline]
    fn collect<T: Default>(
        &mut self,
        now_ms: i64,
        deciding: Deciding,
        value: impl Fn(&Stretch) -> T,
        into: &mut Vec<T>,
    ) {
        into.clear();
        // Fast path: there is nothing to choose.
        if deciding == Deciding::All && self.live_len == self.stretches.len() {
            into.extend(self.stretches.iter().map(value));
            return;
        }
        if deciding != Deciding::WithPoint {
            self.settle(now_ms);
        }
        let chosen = match deciding {
            Deciding::All => self.live.as_slice(),
            Deciding::First => self.live.get(..1).unwrap_or_default(),
            Deciding::Last => self.live.last().map(std::slice::from_ref).unwrap_or_default(),
            Deciding::WithPoint => &self.here,
        };
        // Of a length that is known, which is filled without a look at the room for each.
        into.extend(chosen.iter().map(|at| self.stretches.get(*at).map(&value).unwrap_or_default()));
    }

    /// Brings the list of the live members up to this instant.
    fn settle(&mut self, now_ms: i64) {
        if self.live.len() + self.arrived.len() != self.live_len {
            let is_live = |at: &usize| self.stretches.get(*at).is_some_and(|stretch| now_ms <= stretch.until_ms);
            self.live.retain(is_live);
            self.arrived.retain(is_live);
        }
        if let [one] = *self.arrived {
            self.live.insert(self.live.partition_point(|at| *at < one), one);
            self.arrived.clear();
        } else if !self.arrived.is_empty() {
            self.live.append(&mut self.arrived);
            self.sort_live();
        }
        debug_assert_eq!(self.live.len(), self.live_len, "BUG: a member is live twice or not at all");
    }

    #[expect(clippy::stable_sort_primitive, reason = "it merges what is in order already, as the two parts are")]
    fn sort_live(&mut self) {
        self.live.sort();
    }

    /// Whether one value more stands for the members between two points.
    fn has_stand_in(&self, deciding: Deciding) -> bool {
        deciding == Deciding::WithPoint && self.between_len() > 0
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
        // In this order, so that what wraps and what is cut are the same as in OpenTSDB.
        let linear = || {
            let part = (now_ms - self.from_ms).wrapping_mul(change);
            value.wrapping_add(divide(part, self.length_ms))
        };
        method.integer().unwrap_or_else(|| if method == Interpolation::Linear { linear() } else { value })
    }

    fn double_at(&self, now_ms: i64, method: Interpolation, held: bool) -> f64 {
        let Line { value, change } = self.doubles;
        if self.from_ms == now_ms || held {
            return value;
        }
        let linear = || value + to_double(now_ms - self.from_ms) * change / to_double(self.length_ms);
        method.double().unwrap_or_else(|| if method == Interpolation::Linear { linear() } else { value })
    }
}

/// A part of a change, cut toward zero; 0 where the length is.
fn divide(part: i64, length_ms: i64) -> i64 {
    // Fast path: a processor divides doubles several times as fast. Up to 2^53 both are exact, and a quotient that is no integer is
    // further from the next one than it is rounded.
    if part.unsigned_abs() | length_ms.unsigned_abs() < 1 << 53 && length_ms != 0 {
        return truncate(to_double(part) / to_double(length_ms));
    }
    part.checked_div(length_ms).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// `Q-INTERP-LERP`: as integers are divided, at and around the bounds of the fast path too.
        #[test]
        fn parts_of_changes_are_cut_as_integers_are(
            part in any::<i64>(), near in -3_i64..4, length_ms in 1_i64..1 << 40, shift in 0_u32..64,
        ) {
            let length_ms = (length_ms >> (shift % 40)).max(1);
            let multiple = (part >> shift) / length_ms * length_ms;
            for part in [part >> shift, multiple.saturating_add(near), (1 << 53) + near, -(1 << 53) + near] {
                prop_assert_eq!(divide(part, length_ms), part / length_ms, "{} / {}", part, length_ms);
            }
        }
    }

    #[test]
    fn a_part_of_no_length_is_nothing() {
        assert_eq!(divide(i64::MAX, 0), 0);
        assert_eq!(divide(0, 0), 0);
    }

    #[test]
    fn those_that_have_ended_or_not_begun_are_not_looked_at() {
        let row = |times: [i64; 2]| {
            let mut span = Span::default();
            for time_ms in times {
                span.push(time_ms, Number::Integer(1));
            }
            span
        };
        // Each is live over ten instants, and the last of them begin first.
        let spans: Vec<Span> = (0..500).rev().map(|at| row([at, at + 9])).collect();
        let members: Vec<Member<'_>> = spans.iter().map(|span| Member { span, before_first: None }).collect();
        let mut walk = Walk::new(&members, i64::MIN);
        let mut values = Vec::new();
        while let Some(now_ms) = walk.advance(i64::MAX, &|| Ok(())).unwrap() {
            let live = (0..500).rev().zip(0..).filter(|(from_ms, _)| (*from_ms..from_ms + 10).contains(&now_ms));
            let live: Vec<usize> = live.map(|(_, at)| at).collect();
            // Who looks at the points alone leaves the list of the live members behind.
            walk.integers(now_ms, Interpolation::Zero, Deciding::WithPoint, &mut values);
            assert_eq!(values.iter().sum::<i64>(), i64::try_from(walk.here.len()).unwrap());
            assert_eq!(walk.here.len() + walk.between_len(), live.len());
            if now_ms % 3 == 0 {
                walk.integers(now_ms, Interpolation::Linear, Deciding::All, &mut values);
                assert_eq!(walk.live, live, "{now_ms}");
                assert_eq!(values.len(), live.len());
            }
        }
    }
}
