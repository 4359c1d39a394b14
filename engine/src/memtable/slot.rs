//! A row's cells of one family: sorted runs of bounded length.

use std::cmp::Ordering;

use basalt_store::{CellKind, SeqNo, Timestamp};

use super::cell_ref;

/// A run that grows past this is split: an insert moves half of it at most.
const RUN_CELLS_MAX: usize = 512;

/// A cell whose bytes lie in a chunk, qualifier first, value behind it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) timestamp: Timestamp,
    pub(super) sequence: SeqNo,
    pub(super) chunk: u32,
    pub(super) offset: u32,
    pub(super) qualifier_len: u32,
    pub(super) value_len: u32,
    pub(super) kind: CellKind,
}

impl Entry {
    pub(super) fn bytes<'a>(&self, chunks: &'a [Vec<u8>]) -> (&'a [u8], &'a [u8]) {
        let start = self.offset as usize;
        let middle = start + self.qualifier_len as usize;
        let end = middle + self.value_len as usize;
        let chunk = chunks.get(self.chunk as usize).map_or(&[][..], |chunk| chunk);
        (chunk.get(start..middle).unwrap_or_default(), chunk.get(middle..end).unwrap_or_default())
    }

    fn order(&self, other: &Entry, chunks: &[Vec<u8>]) -> Ordering {
        cell_ref(self, chunks).order_in_family(&cell_ref(other, chunks))
    }
}

/// A count or offset within a memtable, which is bounded far below 4 GiB.
pub(super) fn width(number: usize) -> u32 {
    assert!(u32::try_from(number).is_ok(), "BUG: {number} in a memtable");
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The runs, each sorted and not empty, all before the next.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// Most rows have one run; it lies here without a list around it.
    first: Vec<Entry>,
    more: Vec<Vec<Entry>>,
}

impl Slot {
    /// Puts a cell where it belongs; replaces the one of the same address and number.
    pub(super) fn insert(&mut self, entry: Entry, chunks: &[Vec<u8>]) {
        let index = self.run_of(&entry, chunks);
        let run = self.run_mut(index);
        // Fast path: the cell after all others, as points of a series come.
        if run.last().is_none_or(|last| last.order(&entry, chunks) == Ordering::Less) {
            run.push(entry);
        } else {
            match run.binary_search_by(|probe| probe.order(&entry, chunks)) {
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

    /// The cells in order, from the first that is not before `from` on.
    pub(super) fn cells_from<F: Fn(&Entry) -> Ordering>(&self, from: F) -> impl Iterator<Item = &Entry> + use<'_, F> {
        let is_before = |entry: &Entry| from(entry) == Ordering::Less;
        let index = self.more.partition_point(|run| run.first().is_some_and(&is_before));
        let run = self.run(index);
        let start = run.partition_point(&is_before);
        let rest = run.get(start..).unwrap_or_default();
        rest.iter().chain(self.more.get(index..).unwrap_or_default().iter().flatten())
    }

    /// The last run that begins at or before the cell.
    fn run_of(&self, entry: &Entry, chunks: &[Vec<u8>]) -> usize {
        self.more
            .partition_point(|run| run.first().is_some_and(|first| first.order(entry, chunks) != Ordering::Greater))
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
