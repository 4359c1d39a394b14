//! Offsets of a row's points: regular, near a grid, or step by step.

use super::number::{fold_sign, low_half, unfold_sign};

/// Offsets stay below it, in milliseconds: no qualifier of that unit holds more.
pub(super) const fn offset_ms_limit(is_millis: bool) -> u64 {
    if is_millis { 1 << 22 } else { (1 << 12) * 1000 }
}

/// How offsets are told. The codes are the format's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub(super) enum Pace {
    /// `first + i × step`.
    #[default]
    Regular = 0,
    /// The same, each but the first with a residual.
    Grid = 1,
    /// Each step is `step` and a residual.
    Steps = 2,
}

impl Pace {
    pub(super) fn of_code(code: u8) -> Option<Self> {
        [Self::Regular, Self::Grid, Self::Steps].get(usize::from(code)).copied()
    }

    /// Residuals of a row of `count` points.
    pub(super) fn residuals_count(self, count: usize) -> usize {
        if self == Self::Regular { 0 } else { count.saturating_sub(1) }
    }
}

/// A row's offsets but for the residuals; the step wraps, so that it may be negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Times {
    pub(super) pace: Pace,
    pub(super) first: u64,
    pub(super) step: i64,
}

/// The shortest telling of offsets below 2²², of which there is one at least; `steps` is working memory.
pub(super) fn tell(offsets: &[u32], residuals: &mut Vec<u64>, steps: &mut Vec<i64>) -> Times {
    residuals.clear();
    steps.clear();
    steps.extend(offsets.iter().zip(offsets.iter().skip(1)).map(|(a, b)| i64::from(*b) - i64::from(*a)));
    let first = offsets.first().copied().unwrap_or(0);
    let Some(step) = steps.first().copied() else {
        return Times { pace: Pace::Regular, first: first.into(), step: 0 };
    };
    let times = |pace, step| Times { pace, first: first.into(), step };
    if steps.iter().all(|other| *other == step) {
        return times(Pace::Regular, step);
    }
    let span = steps.iter().sum::<i64>();
    let count = i64::try_from(steps.len()).unwrap_or(i64::MAX);
    let mean = (2 * span + count).div_euclid(2 * count);
    let grid = |(offset, number): (&u32, i64)| fold_sign(i64::from(*offset) - i64::from(first) - number * mean);
    residuals.extend(offsets.iter().skip(1).zip(1_i64..).map(grid));
    let grid_cost: u64 = residuals.iter().sum();
    let middle = steps.len() / 2;
    let median = *steps.select_nth_unstable(middle).1;
    let all_steps = || offsets.iter().zip(offsets.iter().skip(1)).map(|(a, b)| i64::from(*b) - i64::from(*a) - median);
    if grid_cost < all_steps().map(fold_sign).sum() {
        return times(Pace::Grid, mean);
    }
    residuals.clear();
    residuals.extend(all_steps().map(fold_sign));
    times(Pace::Steps, median)
}

/// Whether qualifiers hold the offsets in seconds of `count` points that are a step apart.
pub(super) fn fits_regular(times: Times, count: usize) -> bool {
    let steps = i128::try_from(count.saturating_sub(1)).unwrap_or(i128::MAX);
    let last = i128::from(times.step).checked_mul(steps).map(|span| i128::from(times.first) + span);
    [Some(i128::from(times.first)), last].into_iter().all(|end| end.is_some_and(|end| (0..1 << 12).contains(&end)))
}

/// Whether qualifiers hold these offsets, in milliseconds or in seconds.
pub(super) fn fit(offsets: &[u32], is_millis: bool) -> bool {
    let limit = offset_ms_limit(is_millis) / if is_millis { 1 } else { 1000 };
    offsets.iter().all(|offset| u64::from(*offset) < limit)
}

/// Puts `count` offsets back; the residuals are as many as the pace has. Offsets that nobody told wrap.
pub(super) fn restore(times: Times, residuals: &[u64], count: usize, offsets: &mut Vec<u32>) {
    offsets.clear();
    let first = times.first.cast_signed();
    match times.pace {
        Pace::Regular => {
            let (mut offset, step) = (low_half(times.first), low_half(times.step.cast_unsigned()));
            offsets.resize(count, 0);
            for out in offsets {
                *out = offset;
                offset = offset.wrapping_add(step);
            }
        }
        Pace::Grid => {
            offsets.push(low_half(times.first));
            offsets.extend(residuals.iter().zip(1_i64..).map(|(residual, number)| {
                let at = first.wrapping_add(number.wrapping_mul(times.step)).wrapping_add(unfold_sign(*residual));
                low_half(at.cast_unsigned())
            }));
        }
        Pace::Steps => {
            let mut at = first;
            offsets.push(low_half(times.first));
            offsets.extend(residuals.iter().map(|residual| {
                at = at.wrapping_add(times.step).wrapping_add(unfold_sign(*residual));
                low_half(at.cast_unsigned())
            }));
        }
    }
}

/// Fills offsets in milliseconds, as many as the row has points; false where they do not ascend strictly or overflow.
/// The residuals come as planes, from the lowest byte.
#[inline(always)]
#[expect(clippy::inline_always, reason = "compiled for the processor's features that its caller found")]
pub(super) fn restore_ascending(times: Times, planes: &[&[u8]], is_millis: bool, offsets_ms: &mut [u32]) -> bool {
    let unit = if is_millis { 1 } else { 1000 };
    let limit = offset_ms_limit(is_millis);
    let Some(step) = times.step.checked_mul(unit).filter(|step| step.unsigned_abs() < limit) else {
        return false;
    };
    let Some(first) = times.first.checked_mul(unit.unsigned_abs()).filter(|first| *first < limit) else {
        return false;
    };
    let steps = (offsets_ms.len() as u64).saturating_sub(1);
    if times.pace == Pace::Regular {
        // Fast path: nearly every hour of a collector.
        let step = step.unsigned_abs();
        let ascends = steps == 0 || (times.step > 0 && first.saturating_add(step.saturating_mul(steps)) < limit);
        let mut offset = low_half(first);
        for out in offsets_ms {
            *out = offset;
            offset = offset.wrapping_add(low_half(step));
        }
        return ascends;
    }
    let residual = |at: usize| {
        let byte = |plane: &&[u8]| plane.get(at).map_or(0, |byte| u64::from(*byte));
        unfold_sign(planes.iter().rev().fold(0, |residual, plane| residual << 8 | byte(plane))).wrapping_mul(unit)
    };
    let Some((out, rest)) = offsets_ms.split_first_mut() else { return true };
    *out = low_half(first);
    let (mut last, mut grid) = (first.cast_signed(), first.cast_signed());
    for (at, out) in rest.iter_mut().enumerate() {
        grid = grid.wrapping_add(step);
        let from = if times.pace == Pace::Grid { grid } else { last.wrapping_add(step) };
        let offset = from.wrapping_add(residual(at));
        if offset <= last || offset.unsigned_abs() >= limit {
            return false;
        }
        *out = low_half(offset.cast_unsigned());
        last = offset;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(offsets: &[u32]) -> Pace {
        let (mut residuals, mut again) = (Vec::new(), Vec::new());
        let times = tell(offsets, &mut residuals, &mut Vec::new());
        assert_eq!(residuals.len(), times.pace.residuals_count(offsets.len()));
        restore(times, &residuals, offsets.len(), &mut again);
        assert_eq!(again, offsets);
        times.pace
    }

    #[test]
    fn each_shape_of_offsets_has_its_telling() {
        assert_eq!(check(&[7]), Pace::Regular);
        assert_eq!(check(&[0, 10, 20, 30]), Pace::Regular);
        assert_eq!(check(&[30, 20, 10]), Pace::Regular);
        assert_eq!(check(&[0, 11, 19, 31, 39, 51, 60]), Pace::Grid);
        assert_eq!(check(&[0, 10, 20, 50, 60, 70, 80]), Pace::Steps);
        check(&[5, 5, 5, 5, 0, 4_194_303]);
    }

    #[test]
    fn regular_offsets_fit_if_both_ends_do() {
        let check = |first, step, count, expected: bool| {
            let times = Times { pace: Pace::Regular, first, step };
            assert_eq!(fits_regular(times, count), expected, "{times:?} of {count}");
            let mut offsets = Vec::new();
            restore(times, &[], count, &mut offsets);
            assert!(!expected || fit(&offsets, false), "{offsets:?}");
        };
        check(0, 0, 1, true);
        check(4095, i64::MIN, 1, true);
        check(4096, 0, 1, false);
        check(0, 1, 4096, true);
        check(0, 1, 4097, false);
        check(4095, -1, 4096, true);
        check(4095, -1, 4097, false);
        check(1 << 32, 0, 1, false);
        check(0, 1 << 32, 2, false);
        check(u64::MAX, 1, 2, false);
        check(0, i64::MAX, 1 << 20, false);
    }

    /// A qualifier has 12 bits for seconds and 22 for milliseconds.
    #[test]
    fn offsets_that_no_qualifier_holds_are_refused() {
        let check = |(pace, first, step), planes: &[&[u8]], is_millis, fits| {
            let mut offsets = [0; 2];
            let times = Times { pace, first, step };
            assert_eq!(restore_ascending(times, planes, is_millis, &mut offsets), fits, "{times:?}");
        };
        let plane: &[&[u8]] = &[&[0]];
        for (is_millis, last) in [(false, 4095), (true, 4_194_303)] {
            for (pace, planes) in [(Pace::Regular, &[][..]), (Pace::Grid, plane), (Pace::Steps, plane)] {
                check((pace, last - 1, 1), planes, is_millis, true);
                check((pace, last, 1), planes, is_millis, false);
                check((pace, last + 1, 1), planes, is_millis, false);
            }
        }
    }
}
