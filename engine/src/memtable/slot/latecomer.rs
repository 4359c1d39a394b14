//! Cells that do not belong behind all others of their row: such as come again, out of order, or behind newer ones.
//!
//! They seldom come alone. A collector that sends a buffer again and a backfill both go through a row in order, so a cell is looked
//! for beside the one that came late before it, and only then in the whole row. Marks are compared as numbers: times and numbers of
//! changes lie in other memory, and only cells of one qualifier have to ask for theirs.

use std::cmp::Ordering;

use super::super::arena::Arena;
use super::super::entry::{Entry, Mark, MarkBytes};
use super::super::runs::{RUN_CELLS_MAX, Runs};
use super::{APPENDED_CELLS_MAX, FIRST_CELLS, RowRuns};

#[cfg(test)]
mod tests;

/// A run that late cells make full is split when it has as many cells as are appended at most, in rows of up to so many runs: few
/// cells have to move for one more. In a longer row they are longer, as its list of runs has to move too.
const SHORT_RUNS_MAX: usize = 1024;

/// So many cells to a side of the last late one are looked at one by one: a column of as many versions, and its neighbours.
const NEAR_CELLS: usize = 8;

/// Where a cell lies in a row, or where it belongs.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    run: usize,
    place: usize,
}

/// Where the last late cell went, in what a row has to spare. Others may have moved it since, and large numbers are cut off: it is
/// a guess, and whoever uses it looks at the cells.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Near {
    run: u16,
    place: u16,
}

impl Near {
    fn of(at: At) -> Near {
        let [run, place] = [at.run, at.place].map(|number| u16::try_from(number).unwrap_or(u16::MAX));
        Near { run, place }
    }
}

/// A cell that does not belong behind all others.
#[derive(Debug)]
pub(super) struct Latecomer<'a> {
    pub(super) entry: Entry,
    pub(super) mark: Mark,
    pub(super) arena: &'a Arena,
}

impl Latecomer<'_> {
    /// How another cell stands to it.
    #[inline]
    fn order_of(&self, probe: &Entry) -> Ordering {
        // Fast path: two numbers tell.
        let mark = probe.mark();
        if mark.bytes == self.mark.bytes && mark.bytes != MarkBytes::None && mark.qualifier != self.mark.qualifier {
            return mark.qualifier.cmp(&self.mark.qualifier);
        }
        probe.order(&self.entry, self.arena)
    }

    /// Whether it comes after another cell.
    pub(super) fn is_behind(&self, probe: &Entry) -> bool {
        self.order_of(probe) == Ordering::Less
    }

    /// As of a binary search, where it belongs among cells; `None` if all come before it.
    fn place_among(&self, cells: &[Entry]) -> Option<Result<usize, usize>> {
        for (place, probe) in cells.iter().enumerate().take(NEAR_CELLS) {
            match self.order_of(probe) {
                Ordering::Less => {}
                Ordering::Equal => return Some(Ok(place)),
                Ordering::Greater => return Some(Err(place)),
            }
        }
        let is_among = cells.len() > NEAR_CELLS && !self.is_behind(cells.last()?);
        is_among.then(|| cells.binary_search_by(|probe| self.order_of(probe)))
    }
}

impl RowRuns {
    /// Puts a cell that does not belong behind all others where it does; replaces the one of the same address and number.
    pub(super) fn insert_late(&mut self, late: &Latecomer<'_>, runs: &mut Runs) {
        let at = match self.find_near(late, runs).unwrap_or_else(|| self.find(late, runs)) {
            Ok(same) => {
                runs.set(self.run(same.run), same.place, late.entry);
                same
            }
            Err(at) => {
                self.is_plain = self.is_plain && late.entry.is_put() && self.is_apart(late.mark, at, runs);
                self.insert_at(at, late.entry, runs)
            }
        };
        self.near = Near::of(at);
    }

    /// Where a late cell lies or belongs; `None` if that is not near the one that came late before it.
    fn find_near(&self, late: &Latecomer<'_>, runs: &Runs) -> Option<Result<At, At>> {
        let (run, near) = (usize::from(self.near.run), usize::from(self.near.place));
        let cells = runs.cells(self.run(run));
        let (before, from) = cells.split_at_checked(near)?;
        if late.order_of(from.first()?) == Ordering::Greater {
            return self.find_before(late, run, before, runs);
        }
        let at = |place| At { run, place };
        if let Some(found) = late.place_among(from) {
            return Some(found.map(|place| at(near + place)).map_err(|place| at(near + place)));
        }
        // All of the run come before it: it belongs to its end, or into the next one.
        let next = (run < self.before().len()).then(|| runs.cells(self.run(run + 1)))?;
        Some(match late.place_among(next)? {
            Ok(place) => Ok(At { run: run + 1, place }),
            Err(0) => Err(at(cells.len())),
            Err(place) => Err(At { run: run + 1, place }),
        })
    }

    /// The same among the last of these cells, with which a run begins and all behind which come after the late one.
    fn find_before(&self, late: &Latecomer<'_>, run: usize, before: &[Entry], runs: &Runs) -> Option<Result<At, At>> {
        for (place, probe) in before.iter().enumerate().rev().take(NEAR_CELLS) {
            match late.order_of(probe) {
                Ordering::Less => return Some(Err(At { run, place: place + 1 })),
                Ordering::Equal => return Some(Ok(At { run, place })),
                Ordering::Greater => {}
            }
        }
        if before.len() > NEAR_CELLS {
            return None;
        }
        let Some(previous) = run.checked_sub(1) else { return Some(Err(At { run: 0, place: 0 })) };
        let cells = runs.cells(self.run(previous));
        late.is_behind(cells.last()?).then_some(Err(At { run: previous, place: cells.len() }))
    }

    /// Where a late cell lies or belongs.
    fn find(&self, late: &Latecomer<'_>, runs: &Runs) -> Result<At, At> {
        let begins = |run| runs.cells(run).first().is_some_and(|first| late.order_of(first) != Ordering::Greater);
        let before = self.before();
        // The last run that begins at or before the cell, or the first.
        let is_last = begins(self.last);
        let run = if is_last { before.len() } else { before.partition_point(|run| begins(*run)).saturating_sub(1) };
        let found = runs.cells(self.run(run)).binary_search_by(|probe| late.order_of(probe));
        found.map(|place| At { run, place }).map_err(|place| At { run, place })
    }

    /// Whether the neighbours of a cell that goes there are clearly before and behind it.
    fn is_apart(&self, mark: Mark, at: At, runs: &Runs) -> bool {
        let cells = runs.cells(self.run(at.run));
        let before = at.place.checked_sub(1).and_then(|before| cells.get(before));
        let next = || runs.cells(self.before().get(at.run + 1).copied().unwrap_or(self.last)).first();
        let behind = cells.get(at.place).or_else(next);
        before.is_none_or(|before| before.mark().is_clearly_before(mark))
            && behind.is_none_or(|behind| mark.is_clearly_before(behind.mark()))
    }

    /// Puts a cell there; answers where it lies then. Not behind all others.
    fn insert_at(&mut self, at: At, entry: Entry, runs: &mut Runs) -> At {
        let is_short = self.before().len() < SHORT_RUNS_MAX;
        let cells_max = if is_short { APPENDED_CELLS_MAX } else { RUN_CELLS_MAX };
        let run = self.run_mut(at.run);
        if run.len() < cells_max {
            runs.insert(run, at.place, entry);
            return at;
        }
        if at.place == 0 || at.place == run.len() {
            // Between two runs: the cells of a gap that is filled in order follow each other into runs of their own.
            let at = At { run: at.run + usize::from(at.place > 0), place: 0 };
            let next = self.run_mut(at.run);
            if next.len() < cells_max {
                runs.insert(next, 0, entry);
            } else {
                let mut own = runs.begin(FIRST_CELLS);
                runs.push(&mut own, entry);
                assert!(at.run <= self.before().len(), "BUG: a late cell behind all others");
                self.insert_run(at.run, own);
            }
            return at;
        }
        // Behind or before the last late cell more of them are to come, and few of the others are to move for them.
        let near = self.near;
        let run = self.run_mut(at.run);
        let is_near = usize::from(near.run) == at.run && [at.place, at.place - 1].contains(&near.place.into());
        let split = if is_near { at.place } else { run.len() / 2 };
        let mut upper = runs.split_off(run, split);
        let at_upper = at.place.checked_sub(split).filter(|place| *place > 0);
        let (target, place) = at_upper.map_or((run, at.place), |place| (&mut upper, place));
        runs.insert(target, place, entry);
        self.insert_run(at.run + 1, upper);
        At { run: at.run + usize::from(at_upper.is_some()), place }
    }
}
