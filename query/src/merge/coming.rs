//! When each member of a group has its coming point, and which of them come next.
//!
//! A tree of minima, sixteen to a node: what comes at an instant is found without a look at those that come later, in the
//! members' order, and members that come together cost little more than a pass over them.

/// The coming time of a member that has no point left.
pub(super) const NEVER: i64 = i64::MAX;

/// Children of a node: two lines of the processor's cache.
const WIDTH: usize = 16;

/// The members' coming times.
#[derive(Debug)]
pub(super) struct Coming {
    /// The members' own at first; behind each level the least of every node of it. The last level is one node.
    levels: Vec<Vec<i64>>,
    /// The least of all.
    next_ms: i64,
}

impl Coming {
    pub(super) fn new(members_ms: Vec<i64>) -> Self {
        let least = |node: &[i64]| node.iter().copied().min().unwrap_or(NEVER);
        let mut levels = vec![members_ms];
        while let Some(level) = levels.last().filter(|level| level.len() > WIDTH) {
            levels.push(level.chunks(WIDTH).map(least).collect());
        }
        let next_ms = levels.last().map_or(NEVER, |root| least(root));
        Self { levels, next_ms }
    }

    /// The time of the point that comes next, or [`NEVER`].
    pub(super) const fn next_ms(&self) -> i64 {
        self.next_ms
    }

    /// Hands `reach` the members that come next, in their order; it gives the time of the point behind.
    ///
    /// *Cost*: a look at each child of the nodes above these members.
    pub(super) fn advance(&mut self, reach: &mut impl FnMut(usize) -> i64) {
        self.next_ms = advance_node(&mut self.levels, 0, self.next_ms, reach);
    }
}

/// Goes on with the members below node `at` of the last level whose point is at `now_ms`; gives the node's new least.
fn advance_node(levels: &mut [Vec<i64>], at: usize, now_ms: i64, reach: &mut impl FnMut(usize) -> i64) -> i64 {
    let Some((level, below)) = levels.split_last_mut() else {
        return NEVER;
    };
    let first = at * WIDTH;
    let end = level.len().min(first + WIDTH);
    let mut least_ms = NEVER;
    for (child, time_ms) in (first..).zip(level.get_mut(first..end).unwrap_or_default()) {
        if *time_ms == now_ms {
            *time_ms = if below.is_empty() { reach(child) } else { advance_node(below, child, now_ms, reach) };
        }
        least_ms = least_ms.min(*time_ms);
    }
    least_ms
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn members_come_by_time_and_together_in_their_order(rows in vec(vec(1_i64..20, 0..4), 0..600)) {
            let points: Vec<Vec<i64>> = rows.iter().map(|steps| {
                steps.iter().scan(0, |time_ms, step| { *time_ms += step; Some(*time_ms) }).collect()
            }).collect();
            let mut expected: Vec<(i64, usize)> =
                points.iter().zip(0..).flat_map(|(row, at)| row.iter().map(move |time_ms| (*time_ms, at))).collect();
            expected.sort_unstable();
            let mut reached = vec![0; points.len()];
            let mut coming = Coming::new(points.iter().map(|row| row.first().copied().unwrap_or(NEVER)).collect());
            let mut found = Vec::new();
            while coming.next_ms() != NEVER {
                let now_ms = coming.next_ms();
                coming.advance(&mut |at| {
                    found.push((now_ms, at));
                    reached[at] += 1;
                    points[at].get(reached[at]).copied().unwrap_or(NEVER)
                });
            }
            prop_assert_eq!(found, expected);
        }
    }
}
