//! A row's cells of one family: sorted runs of bounded length.

use std::cmp::Ordering;

use basalt_store::{CellKind, SeqNo, Timestamp};

use super::arena::{Arena, Place};
use super::cell_ref;

/// A run that grows past this is split: an insert moves half of it at most.
const RUN_CELLS_MAX: usize = 512;

/// A cell whose bytes lie in the arena, qualifier first, value behind it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) timestamp: Timestamp,
    pub(super) sequence: SeqNo,
    pub(super) place: Place,
    pub(super) qualifier_len: u32,
    pub(super) value_len: u32,
    pub(super) kind: CellKind,
}

impl Entry {
    /// Qualifier and value.
    pub(super) fn bytes<'a>(&self, arena: &'a Arena) -> (&'a [u8], &'a [u8]) {
        let qualifier = arena.bytes(self.place, 0, self.qualifier_len);
        (qualifier, arena.bytes(self.place, self.qualifier_len, self.value_len))
    }

    fn order(&self, other: &Entry, arena: &Arena) -> Ordering {
        cell_ref(self, arena).order_in_family(&cell_ref(other, arena))
    }
}

/// A row's cells.
#[derive(Debug)]
pub(super) enum Slot {
    /// Many rows have one cell; it lies here without a list around it.
    One(Entry),
    /// More than one.
    Many(Box<Runs>),
}

/// The runs, each sorted and not empty, all before the next.
#[derive(Debug)]
pub(super) struct Runs {
    first: Vec<Entry>,
    more: Vec<Vec<Entry>>,
}

impl Slot {
    /// Puts a cell where it belongs; replaces the one of the same address and number.
    pub(super) fn insert(&mut self, entry: Entry, arena: &Arena) {
        match self {
            Slot::One(one) if one.order(&entry, arena) == Ordering::Equal => *one = entry,
            Slot::One(one) => {
                let mut runs = Runs { first: vec![*one], more: Vec::new() };
                runs.insert(entry, arena);
                *self = Slot::Many(Box::new(runs));
            }
            Slot::Many(runs) => runs.insert(entry, arena),
        }
    }

    /// The cells in order, from the first that is not before `from` on.
    pub(super) fn cells_from<F: Fn(&Entry) -> Ordering>(&self, from: F) -> impl Iterator<Item = &Entry> + use<'_, F> {
        let is_before = |entry: &Entry| from(entry) == Ordering::Less;
        let (run, behind) = match self {
            Slot::One(one) => (std::slice::from_ref(one), &[][..]),
            Slot::Many(runs) => {
                let index = runs.more.partition_point(|run| run.first().is_some_and(&is_before));
                (runs.run(index), runs.more.get(index..).unwrap_or_default())
            }
        };
        let start = run.partition_point(&is_before);
        run.get(start..).unwrap_or_default().iter().chain(behind.iter().flatten())
    }
}

impl Runs {
    fn insert(&mut self, entry: Entry, arena: &Arena) {
        let index = self.run_of(&entry, arena);
        let run = self.run_mut(index);
        // Fast path: the cell after all others, as points of a series come.
        if run.last().is_none_or(|last| last.order(&entry, arena) == Ordering::Less) {
            run.push(entry);
        } else {
            match run.binary_search_by(|probe| probe.order(&entry, arena)) {
                Ok(same) => {
                    if let Some(place) = run.get_mut(same) {
                        *place = entry;
                    }
                }
                Err(place) => run.insert(place, entry),
            }
        }
        if run.len() > RUN_CELLS_MAX {
            let upper = run.split_off(RUN_CELLS_MAX / 2);
            self.more.insert(index, upper);
        }
    }

    /// The last run that begins at or before the cell.
    fn run_of(&self, entry: &Entry, arena: &Arena) -> usize {
        self.more.partition_point(|run| run.first().is_some_and(|first| first.order(entry, arena) != Ordering::Greater))
    }

    fn run(&self, index: usize) -> &[Entry] {
        match index.checked_sub(1) {
            None => &self.first,
            Some(more) => self.more.get(more).map_or(&[], |run| run),
        }
    }

    fn run_mut(&mut self, index: usize) -> &mut Vec<Entry> {
        match index.checked_sub(1).and_then(|more| self.more.get_mut(more)) {
            None => &mut self.first,
            Some(run) => run,
        }
    }
}
