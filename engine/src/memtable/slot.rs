//! A row's cells of one family: sorted runs of bounded length.

use std::cmp::Ordering;

use basalt_store::CellKind;

use super::arena::Arena;
use super::entry::{Entry, Mark, NewEntry};
use super::runs::{Run, Runs};

mod latecomer;

use latecomer::{Latecomer, Near};

/// Room of a row's first run.
const FIRST_CELLS: usize = 4;
/// Runs that are begun behind others have twice the room of the one before, up to this: what is appended is never moved, little
/// memory is touched that holds nothing, and for a cell that comes late few have to move.
const APPENDED_CELLS_MAX: usize = 32;

/// A row's cells.
#[derive(Debug)]
pub(super) enum Slot {
    /// Many rows have one cell; it lies here without a list around it.
    One(Entry),
    /// More than one.
    Many(RowRuns),
}

const _: () = assert!(size_of::<Slot>() == size_of::<RowRuns>() && size_of::<Slot>() == 32);

/// The runs of a row, each sorted and not empty, all before the next.
///
/// In this order an entry has room before the last byte of the mark, which has values to spare: they tell it from a lone one.
#[derive(Debug)]
#[repr(C)]
pub(super) struct RowRuns {
    /// Points of a series go behind its end: from the row to there it is one step.
    last: Run,
    /// Few rows have more: a word is spared where there are none.
    before: Option<Box<Before>>,
    /// Of the last cell of all. It is written down here so that a point goes behind it without a look at it.
    mark: Mark,
    /// Whether all are puts, the mark of each clearly before the next one's.
    is_plain: bool,
    /// Where the next late cell is looked for first.
    near: Near,
}

/// In order.
#[derive(Debug, Default)]
struct Before(Vec<Run>);

/// Cells of a row: the first, the one before the last if there are two, and the last.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends<'a> {
    pub(super) first: &'a Entry,
    pub(super) before_last: Option<&'a Entry>,
    pub(super) last: &'a Entry,
}

/// All methods take what holds the runs.
impl Slot {
    /// Puts a cell where it belongs; replaces the one of the same address and number.
    #[inline]
    pub(super) fn insert(&mut self, new: NewEntry, runs: &mut Runs, arena: &Arena) {
        match self {
            Slot::Many(row) => row.insert(new, runs, arena),
            Slot::One(one) if one.order(&new.entry(), arena) == Ordering::Equal => *one = new.entry(),
            Slot::One(one) => {
                let (mark, is_plain, near) = (one.mark(), one.is_put(), Near::default());
                let mut row = RowRuns { last: runs.begin(FIRST_CELLS), before: None, mark, is_plain, near };
                runs.push(&mut row.last, *one);
                row.insert(new, runs, arena);
                *self = Slot::Many(row);
            }
        }
    }

    /// What lies where the next cell of a series goes: whoever is about to put cells into many rows has the memory of all of them
    /// come at the same time.
    #[inline]
    pub(super) fn behind(&self, runs: &Runs) -> u64 {
        match self {
            Slot::Many(row) => runs.behind(row.last).map_or(0, |entry| entry.touch().into()),
            Slot::One(_) => 0,
        }
    }

    /// How many cells.
    pub(super) fn len(&self) -> usize {
        match self {
            Slot::One(_) => 1,
            Slot::Many(row) => row.before().iter().map(|run| run.len()).sum::<usize>() + row.last.len(),
        }
    }

    /// Whether there is such a cell.
    pub(super) fn has_any(&self, runs: &Runs, is_it: impl Fn(&Entry) -> bool) -> bool {
        match self {
            Slot::One(one) => is_it(one),
            Slot::Many(row) => row.runs().any(|run| runs.cells(run).iter().any(&is_it)),
        }
    }

    /// Whether all are puts whose qualifiers ascend, as long as each other and of one to four bytes, or it is a single one.
    pub(super) fn is_plain(&self) -> bool {
        match self {
            Slot::One(one) => one.is_put(),
            Slot::Many(row) => row.is_plain,
        }
    }

    /// The cells at the ends, if all are puts whose qualifiers ascend, as long as each other and of one to four bytes.
    pub(super) fn ends_if_plain<'a>(&'a self, runs: &'a Runs) -> Option<Ends<'a>> {
        let row = match self {
            Slot::One(one) => {
                return one.is_put().then_some(Ends { first: one, before_last: None, last: one });
            }
            Slot::Many(row) => row,
        };
        let first = runs.cells(row.runs().next()?).first()?;
        let (last, others) = runs.cells(row.last).split_last()?;
        let before_last = others.last().or_else(|| runs.last(*row.before().last()?));
        row.is_plain.then_some(Ends { first, before_last, last })
    }

    /// The cells in order, from the first that is not before `from` on.
    pub(super) fn cells_from<'a, F: Fn(&Entry) -> Ordering>(
        &'a self,
        runs: &'a Runs,
        from: F,
    ) -> impl Iterator<Item = &'a Entry> + use<'a, F> {
        let is_before = |entry: &Entry| from(entry) == Ordering::Less;
        let (before, last) = match self {
            Slot::One(one) => (&[][..], std::slice::from_ref(one)),
            Slot::Many(row) => (row.before(), runs.cells(row.last)),
        };
        // The last run that begins before it, or the first.
        let begins_before = |run: &[Entry]| run.first().is_some_and(is_before);
        let (run, between, last) = if before.is_empty() || begins_before(last) {
            (last, &[][..], &[][..])
        } else {
            let index = before.partition_point(|run| begins_before(runs.cells(*run))).saturating_sub(1);
            let (run, between) = before.get(index..).and_then(<[_]>::split_first).unzip();
            (run.map_or(&[][..], |run| runs.cells(*run)), between.unwrap_or_default(), last)
        };
        let start = run.partition_point(is_before);
        let run = touched(run.get(start..).unwrap_or_default());
        let between = between.iter().flat_map(|run| touched(runs.cells(*run)));
        run.iter().chain(between).chain(touched(last))
    }
}

/// Cells that are about to be read: the memory of those that are appended at most comes at the same time. Of longer runs the
/// first may be all that is read, as a counter's newest value is.
fn touched(run: &[Entry]) -> &[Entry] {
    // Three lie in a line of memory. Nobody wants what is read here; it is asked for so that the compiler leaves the loads.
    let lines = run.iter().take(APPENDED_CELLS_MAX).step_by(3);
    std::hint::black_box(lines.fold(0, |sum, entry| sum ^ entry.touch()));
    run
}

impl RowRuns {
    #[inline]
    fn insert(&mut self, new: NewEntry, runs: &mut Runs, arena: &Arena) {
        // Fast path: the cell after all others, as points of a series come.
        let mark = new.mark();
        if self.mark.is_clearly_before(mark) && self.last.has_room() {
            runs.push(&mut self.last, new.entry());
            self.mark = mark;
            self.is_plain &= new.kind == CellKind::Put;
        } else {
            self.insert_slowly(new.entry(), runs, arena);
        }
    }

    /// The same where only a look at the cells tells where it belongs, or where there is no room.
    #[cold]
    #[inline(never)]
    fn insert_slowly(&mut self, entry: Entry, runs: &mut Runs, arena: &Arena) {
        let late = Latecomer { entry, mark: entry.mark(), arena };
        // Most are told by their marks, without a look at the last cell.
        if late.mark.is_clearly_before(self.mark) || runs.last(self.last).is_some_and(|last| !late.is_behind(last)) {
            return self.insert_late(&late, runs);
        }
        self.is_plain &= self.mark.is_clearly_before(late.mark) && entry.is_put();
        if !self.last.has_room() {
            let next = runs.begin((self.last.room() * 2).min(APPENDED_CELLS_MAX));
            self.before.get_or_insert_default().0.push(std::mem::replace(&mut self.last, next));
        }
        runs.push(&mut self.last, entry);
        self.mark = late.mark;
    }

    /// All of them, in order.
    fn runs(&self) -> impl Iterator<Item = Run> {
        self.before().iter().copied().chain(std::iter::once(self.last))
    }

    fn before(&self) -> &[Run] {
        self.before.as_ref().map_or(&[], |before| &before.0)
    }

    /// The one of this number; the last of all where there is none.
    fn run(&self, index: usize) -> Run {
        self.before().get(index).copied().unwrap_or(self.last)
    }

    fn run_mut(&mut self, index: usize) -> &mut Run {
        let before = self.before.as_mut().and_then(|before| before.0.get_mut(index));
        before.unwrap_or(&mut self.last)
    }

    /// Adds one before that of this number, or behind all.
    fn insert_run(&mut self, index: usize, run: Run) {
        let Self { last, before, .. } = self;
        let before = &mut before.get_or_insert_default().0;
        if index <= before.len() {
            before.insert(index, run);
        } else {
            before.push(std::mem::replace(last, run));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use basalt_store::{SeqNo, Timestamp};

    use super::super::entry::tests::entry;
    use super::*;
    use crate::id::FamilyId;
    use crate::io::{Rng, SplitMix};
    use crate::mutation::LoggedCell;

    /// Cells that come in order for a while and then do not, of short and long qualifiers, are in their order.
    #[test]
    fn cells_of_a_row_are_sorted_however_they_come() {
        for seed in 0..100 {
            let (mut rng, lengths, count) = (SplitMix::new(seed), seed % 7 + 1, if seed < 7 { 2000 } else { 20 });
            let (mut runs, mut arena, mut expected) = (Runs::default(), Arena::default(), BTreeSet::new());
            let mut slot: Option<Slot> = None;
            let mut number = 2000_u32;
            for _ in 0..count {
                number = if rng.chance(9, 10) { number + 1 } else { u32::try_from(rng.below(3000)).unwrap() };
                let length = if rng.chance(1, 2) { 2 } else { 1 + usize::try_from(rng.below(lengths)).unwrap() };
                let bytes = [&number.to_be_bytes()[2..], &[7; 6]].concat();
                let cell = entry(&bytes[..length], &mut arena);
                expected.insert(bytes[..length].to_vec());
                match &mut slot {
                    Some(slot) => slot.insert(cell, &mut runs, &arena),
                    None => slot = Some(Slot::One(cell.entry())),
                }
            }
            let slot = slot.unwrap();
            let found = slot.cells_from(&runs, |_| Ordering::Greater).map(|entry| entry.bytes(&arena).0.to_vec());
            assert_eq!(found.collect::<Vec<_>>(), expected.into_iter().collect::<Vec<_>>());
        }
    }

    /// Whether a row is plain is told of all of its cells, in whatever order they came.
    #[test]
    fn plain_rows_are_told_with_their_ends() {
        let (mut plain, mut other) = (0, 0);
        for seed in 0..2000_u64 {
            let (mut rng, mut runs, mut arena) = (SplitMix::new(seed), Runs::default(), Arena::default());
            let (count, mut cells) = (1 + rng.below(if seed % 9 == 0 { 700 } else { 20 }), Vec::new());
            let mut slot: Option<Slot> = None;
            for number in 0..count {
                // Mostly one behind the other; now and then another place, length, version or kind.
                let number = if rng.chance(1, 5) { rng.below(4 * count) } else { number * 4 };
                let length = if rng.chance(1, 60) { 1 + usize::try_from(rng.below(5)).unwrap() } else { 2 };
                let qualifier =
                    [&u16::try_from(number).unwrap().to_be_bytes()[..], &[1; 3]].concat()[..length].to_vec();
                let timestamp = Timestamp(if rng.chance(1, 60) { 8 } else { 7 });
                let kind = if rng.chance(1, 200) { CellKind::DeleteColumn } else { CellKind::Put };
                let cell = LoggedCell { family: FamilyId(1), kind, timestamp, qualifier: &qualifier, value: b"" };
                let new = NewEntry::keep(&cell, SeqNo(9), &mut arena).0;
                match &mut slot {
                    Some(slot) => slot.insert(new, &mut runs, &arena),
                    None => slot = Some(Slot::One(new.entry())),
                }
                cells.push((qualifier, timestamp, kind));
            }
            let slot = slot.unwrap();
            let all: BTreeSet<_> = cells.iter().map(|(qualifier, ..)| qualifier.clone()).collect();
            let are_puts = cells.iter().all(|(_, _, kind)| *kind == CellKind::Put);
            let are_alike = all.iter().all(|one| one.len() == cells[0].0.len() && one.len() <= 4);
            let versions: BTreeSet<_> =
                cells.iter().map(|(qualifier, timestamp, _)| (qualifier, timestamp.0)).collect();
            let is_plain = are_puts && versions.len() == all.len() && (are_alike || all.len() == 1);
            let ends = slot.ends_if_plain(&runs).map(|Ends { first, before_last, last }| {
                [Some(first), before_last, Some(last)].map(|end| end.map(|end| end.bytes(&arena).0.to_vec()))
            });
            let expected = [all.first(), all.iter().nth_back(1), all.last()].map(Option::<&Vec<u8>>::cloned);
            assert_eq!(ends, is_plain.then_some(expected), "seed {seed}: {cells:?}");
            *(if is_plain { &mut plain } else { &mut other }) += 1;
        }
        assert!(plain > 500 && other > 500, "{plain} and {other}");
    }
}
