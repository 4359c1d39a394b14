//! A group cut by time, so that several threads aggregate it: what a member is worth at an instant depends on its points around
//! it, and on no instant before.

use super::{Member, Merge};
use crate::aggregate::Deciding;

/// Values that a part has at least: below, a hand-over takes longer than the work.
const VALUES_MIN: u64 = 1 << 16;
/// Points that a part has at least for each member, on the average: it begins with a look into every member, and keeps a walk.
const POINTS_PER_MEMBER_MIN: u64 = 8;
/// Times looked at to find where each part ends.
const SAMPLES_PER_PART: u64 = 64;

impl Merge {
    /// How many parts are worth their threads, at least one.
    pub(super) fn parts_len(&self, members: &[Member<'_>], is_aligned: bool) -> u64 {
        let points = points_len(members);
        let members_len = (members.len() as u64).max(1);
        let walks_all = !is_aligned && self.deciding() == Deciding::All;
        let values = if walks_all { points.saturating_mul(members_len) } else { points };
        let threads = rayon::current_num_threads() as u64;
        threads.min(values / VALUES_MIN).min(points / (members_len * POINTS_PER_MEMBER_MIN)).max(1)
    }

    /// So many parts of about as many points, in order; fewer where the points are of few instants.
    pub(super) fn parts(&self, members: &[Member<'_>], parts_len: u64) -> Vec<Self> {
        let mut starts = vec![self.start_ms];
        starts.extend(self.cuts(members, parts_len));
        let ends: Vec<i64> = starts.iter().skip(1).map(|start_ms| start_ms - 1).chain([self.end_ms]).collect();
        starts.into_iter().zip(ends).map(|(start_ms, end_ms)| Self { start_ms, end_ms, ..*self }).collect()
    }

    /// Where a part ends and the next one begins, ascending, within the range.
    fn cuts(&self, members: &[Member<'_>], parts_len: u64) -> Vec<i64> {
        let step = usize::try_from(points_len(members) / (parts_len * SAMPLES_PER_PART)).unwrap_or(usize::MAX).max(1);
        let mut samples: Vec<i64> =
            members.iter().flat_map(|member| member.span.times()).step_by(step).copied().collect();
        samples.retain(|time_ms| (self.start_ms..=self.end_ms).contains(time_ms));
        samples.sort_unstable();
        let cut = |part: u64| {
            let at = part.checked_mul(samples.len() as u64)?.checked_div(parts_len)?;
            samples.get(usize::try_from(at).ok()?).copied()
        };
        let mut cuts: Vec<i64> = (1..parts_len).filter_map(cut).filter(|cut_ms| *cut_ms > self.start_ms).collect();
        cuts.dedup();
        cuts
    }
}

fn points_len(members: &[Member<'_>]) -> u64 {
    members.iter().map(|member| member.span.len() as u64).sum()
}
