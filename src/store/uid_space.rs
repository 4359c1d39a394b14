//! How many UIDs are left of each kind, told in the log before there are none.

use basalt_schema::{Schema, UidKind, UidUsage};

/// How much of a kind's UIDs is given out, as far as it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Mark {
    /// Enough are left.
    #[default]
    Room,
    /// Four fifths are given out.
    Most,
    /// 19 of 20.
    Nearly,
    /// All.
    All,
}

impl Mark {
    fn of(usage: UidUsage) -> Self {
        let (used, all) = (u128::from(usage.used), u128::from(usage.used) + u128::from(usage.available));
        match (used * 20).checked_div(all) {
            Some(20) => Self::All,
            Some(19) => Self::Nearly,
            Some(16..=18) => Self::Most,
            _ => Self::Room,
        }
    }
}

/// What was told so far, of each kind.
#[derive(Debug, Default)]
pub(super) struct UidSpace([Mark; 3]);

impl UidSpace {
    /// Asks the tables how much is given out, and tells it as [`UidSpace::tell`] does. Where they do not answer, what is given out from here
    /// on tells it.
    pub(super) fn asked(schema: &Schema) -> Self {
        let mut space = Self::default();
        for kind in UidKind::ALL {
            drop(schema.uids().of(kind).usage());
        }
        space.tell(schema);
        space
    }

    /// Tells in the log of each kind of which more is given out than when it was last told. Asks nobody.
    pub(super) fn tell(&mut self, schema: &Schema) {
        for (kind, told) in UidKind::ALL.into_iter().zip(&mut self.0) {
            let usage = schema.uids().of(kind).usage_seen();
            let Some(mark) = risen(told, usage) else { continue };
            let (line, noun, todo) = (line(kind, usage), noun(kind), way_out(kind));
            if mark == Mark::All {
                tracing::error!("{line}: points with a new {noun} are refused from here on, all others stored; {todo}");
            } else {
                tracing::warn!("{line}: when none is left points with a new {noun} are refused; {todo}");
            }
        }
    }
}

/// The mark of a usage, if it is above what was told, and then told. One that fell, as where the table was emptied, is told again
/// when it rises.
fn risen(told: &mut Mark, usage: UidUsage) -> Option<Mark> {
    let mark = Mark::of(usage);
    let before = std::mem::replace(told, mark);
    (mark > before).then_some(mark)
}

fn line(kind: UidKind, UidUsage { used, available }: UidUsage) -> String {
    format!("{used} of {} UIDs of {kind} are given out", u128::from(used) + u128::from(available))
}

const fn noun(kind: UidKind) -> &'static str {
    match kind {
        UidKind::Metric => "metric",
        UidKind::Tagk => "tag name",
        UidKind::Tagv => "tag value",
    }
}

/// What a person does where UIDs of a kind run out.
pub(crate) fn way_out(kind: UidKind) -> String {
    let setting = match kind {
        UidKind::Metric => "metric",
        UidKind::Tagk => "tagk",
        UidKind::Tagv => "tagv",
    };
    format!(
        "find who sends ever new ones (`basalt uid grep`), and move to a new folder with a larger \
         `schema.uid_width_{setting}`: docs/operations.md, \"When UIDs run out\""
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mark_is_told_once_and_again_when_it_fell() {
        let mut told = Mark::default();
        let mut check = |used: u64, expected: Option<Mark>| {
            assert_eq!(risen(&mut told, UidUsage { used, available: 255 - used }), expected, "{used}");
        };
        for used in [0, 1, 203] {
            check(used, None);
        }
        check(204, Some(Mark::Most));
        check(205, None);
        check(242, None);
        check(243, Some(Mark::Nearly));
        check(254, None);
        check(255, Some(Mark::All));
        check(255, None);
        check(3, None);
        check(255, Some(Mark::All));
    }

    /// Of numbers that no product of them has room for.
    #[test]
    fn the_widest_uids_have_marks_too() {
        let of = |used| Mark::of(UidUsage { used, available: u64::MAX - used });
        assert_eq!(
            [of(0), of(1 << 63), of(u64::MAX / 10 * 9), of(u64::MAX)],
            [Mark::Room, Mark::Room, Mark::Most, Mark::All]
        );
    }
}
