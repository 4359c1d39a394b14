//! Memory of sorted runs of cells, without an allocation a run: each has room for a power of two of cells in a large piece.

use super::entry::Entry;
use super::slab::width;

/// Cells of a piece: 160 KiB.
const PIECE_CELLS: usize = 8192;

/// Room of the largest run.
pub(super) const RUN_CELLS_MAX: usize = 1 << (ROOMS - 1);

/// Rooms of 1, 2, 4 and so on.
const ROOMS: usize = 10;

const _: () = assert!(RUN_CELLS_MAX <= PIECE_CELLS && RUN_CELLS_MAX < u16::MAX as usize);

/// Where a run lies. Its memory stays where it is while it has room.
///
/// One number: what is written in part and then read as a whole, as at a row's second cell of a batch, waits for all that was
/// written before it.
///
/// ```text
/// [0: 8 bits][room, a power of two: 8][cells: 16][start, of all cells of all pieces: 32]
/// ```
#[derive(Debug, Clone, Copy)]
pub(super) struct Run(u64);

impl Run {
    const LEN_BITS: u32 = 32;
    const ROOM_BITS: u32 = 48;

    /// An empty one.
    fn new(start: u32, power: u32) -> Self {
        Self(u64::from(start) | u64::from(power) << Self::ROOM_BITS)
    }

    #[inline]
    fn set_len(&mut self, len: usize) {
        self.0 = self.0 & !(0xFFFF << Self::LEN_BITS) | (len as u64) << Self::LEN_BITS;
    }

    #[inline]
    const fn start(self) -> u32 {
        let [a, b, c, d, ..] = self.0.to_le_bytes();
        u32::from_le_bytes([a, b, c, d])
    }

    #[inline]
    pub(super) const fn len(self) -> usize {
        let [_, _, _, _, low, high, ..] = self.0.to_le_bytes();
        u16::from_le_bytes([low, high]) as usize
    }

    #[inline]
    pub(super) const fn has_room(self) -> bool {
        self.len() < self.room()
    }

    /// For how many cells it has room.
    #[inline]
    pub(super) const fn room(self) -> usize {
        1 << (self.0 >> Self::ROOM_BITS)
    }
}

/// The runs of all rows of a family.
#[derive(Debug, Default)]
pub(super) struct Runs {
    pieces: Vec<Vec<Entry>>,
    /// Where memory begins that nobody has any more, by its room.
    free: [Vec<u32>; ROOMS],
}

impl Runs {
    /// An empty run with room for so many cells, a power of two up to [`RUN_CELLS_MAX`].
    pub(super) fn begin(&mut self, room: usize) -> Run {
        assert!(room.is_power_of_two() && room <= RUN_CELLS_MAX, "BUG: a run of {room} cells");
        let power = room.ilog2();
        let freed = self.free.get_mut(power as usize).and_then(Vec::pop);
        let start = freed.unwrap_or_else(|| self.reserve(room));
        Run::new(start, power)
    }

    fn reserve(&mut self, room: usize) -> u32 {
        if self.pieces.last().is_none_or(|last| last.len() + room > PIECE_CELLS) {
            // The first piece grows: a small memtable is not to cost a whole one.
            self.pieces.push(Vec::with_capacity(if self.pieces.is_empty() { 0 } else { PIECE_CELLS }));
        }
        let before = (self.pieces.len() - 1) * PIECE_CELLS;
        let mut start = 0;
        if let Some(last) = self.pieces.last_mut() {
            start = last.len();
            last.resize(start + room, Entry::EMPTY);
        }
        width(before + start)
    }

    /// Its cells.
    #[inline]
    pub(super) fn cells(&self, run: Run) -> &[Entry] {
        let start = run.start() as usize;
        let piece = self.pieces.get(start / PIECE_CELLS);
        let cells = piece.and_then(|piece| piece.get(start % PIECE_CELLS..start % PIECE_CELLS + run.len()));
        cells.unwrap_or_default()
    }

    /// Its cells and the room behind them.
    #[inline]
    fn room_mut(&mut self, run: Run) -> &mut [Entry] {
        let start = run.start() as usize;
        let piece = self.pieces.get_mut(start / PIECE_CELLS);
        let room = piece.and_then(|piece| piece.get_mut(start % PIECE_CELLS..start % PIECE_CELLS + run.room()));
        room.unwrap_or_default()
    }

    /// The room behind its last cell, if there is any.
    #[inline]
    pub(super) fn behind(&self, run: Run) -> Option<&Entry> {
        let place = run.start() as usize + run.len();
        self.pieces.get(place / PIECE_CELLS)?.get(place % PIECE_CELLS).filter(|_| run.has_room())
    }

    pub(super) fn last(&self, run: Run) -> Option<&Entry> {
        self.cells(run).last()
    }

    /// Replaces a cell.
    #[inline]
    pub(super) fn set(&mut self, run: Run, at: usize, entry: Entry) {
        if let Some(place) = self.room_mut(run).get_mut(at) {
            *place = entry;
        }
    }

    /// Adds a cell behind the others; the run has room for it.
    #[inline]
    pub(super) fn push(&mut self, run: &mut Run, entry: Entry) {
        assert!(run.has_room(), "BUG: a run of more cells than it has room for");
        self.set(*run, run.len(), entry);
        run.set_len(run.len() + 1);
    }

    /// Adds a cell before others. A run without room is moved to where there is more; one of [`RUN_CELLS_MAX`] cells is for the
    /// caller to split.
    pub(super) fn insert(&mut self, run: &mut Run, at: usize, entry: Entry) {
        if !run.has_room() {
            let mut larger = self.begin(run.room() * 2);
            self.copy(*run, 0, &mut larger);
            self.end(*run);
            *run = larger;
        }
        let len = run.len();
        let room = self.room_mut(*run);
        assert!(at <= len && len < room.len(), "BUG: a cell at {at} of {len}");
        room.copy_within(at..len, at + 1);
        if let Some(place) = room.get_mut(at) {
            *place = entry;
        }
        run.set_len(len + 1);
    }

    /// Takes the cells from `at` on off into a run of their own.
    pub(super) fn split_off(&mut self, run: &mut Run, at: usize) -> Run {
        let mut upper = self.begin(run.room());
        self.copy(*run, at, &mut upper);
        run.set_len(run.len() - upper.len());
        upper
    }

    /// Puts the cells from `at` on behind those of another run, which has room for them.
    fn copy(&mut self, run: Run, at: usize, to: &mut Run) {
        let (len, count) = (to.len(), run.len() - at);
        assert!(len + count <= to.room(), "BUG: {count} cells more for {to:?}");
        let (start, end) = (run.start() as usize + at, to.start() as usize + len);
        let (from, into) = (start % PIECE_CELLS, end % PIECE_CELLS);
        let (from, into) = (from..from + count, into..into + count);
        if let Ok([piece, other]) = self.pieces.get_disjoint_mut([start / PIECE_CELLS, end / PIECE_CELLS]) {
            if let Some((cells, room)) = piece.get(from).zip(other.get_mut(into)) {
                room.copy_from_slice(cells);
            }
        } else if let Some(piece) = self.pieces.get_mut(start / PIECE_CELLS) {
            piece.copy_within(from, into.start);
        }
        to.set_len(len + count);
    }

    /// Gives a run's memory to those that begin later.
    fn end(&mut self, run: Run) {
        if let Some(free) = self.free.get_mut(run.room().ilog2() as usize) {
            free.push(run.start());
        }
    }
}

#[cfg(test)]
mod tests {
    use basalt_store::{CellKind, SeqNo, Timestamp};

    use super::super::arena::Arena;
    use super::super::entry::NewEntry;
    use super::*;
    use crate::id::FamilyId;
    use crate::io::{Rng, SplitMix};
    use crate::mutation::LoggedCell;

    fn entry(number: u64) -> Entry {
        let (family, kind, timestamp) = (FamilyId(1), CellKind::Put, Timestamp(7));
        let cell = LoggedCell { family, kind, timestamp, qualifier: b"q", value: &number.to_be_bytes() };
        NewEntry::keep(&cell, SeqNo(9), &mut Arena::default()).0.entry()
    }

    fn number(entry: &Entry) -> u64 {
        u64::from_be_bytes(entry.bytes(&Arena::default()).1.try_into().unwrap())
    }

    /// Many runs that grow, split and leave memory to each other hold what lists of their own would.
    #[test]
    fn runs_keep_to_themselves() {
        let mut rng = SplitMix::new(5);
        let (mut runs, mut held) = (Runs::default(), Vec::<(Run, Vec<u64>)>::new());
        for number in 0..60_000 {
            if rng.chance(1, 100) {
                held.push((runs.begin(1 << rng.below(6)), Vec::new()));
            }
            let Some(chosen) = rng.below(held.len() as u64 + 1).checked_sub(1) else { continue };
            let chosen = usize::try_from(chosen).unwrap();
            let (run, expected) = &mut held[chosen];
            let at = usize::try_from(rng.below(expected.len() as u64 + 1)).unwrap();
            if expected.len() == RUN_CELLS_MAX || rng.chance(1, 200) {
                let upper = (runs.split_off(run, at), expected.split_off(at));
                held.push(upper);
            } else if run.len() < run.room() && rng.chance(1, 2) {
                runs.push(run, entry(number));
                expected.push(number);
            } else if at < expected.len() && rng.chance(1, 9) {
                runs.set(*run, at, entry(number));
                expected[at] = number;
            } else {
                runs.insert(run, at, entry(number));
                expected.insert(at, number);
            }
        }
        for (run, expected) in &held {
            assert_eq!(runs.cells(*run).iter().map(number).collect::<Vec<_>>(), *expected);
            assert_eq!(runs.last(*run).map(number), expected.last().copied());
        }
        assert!(held.iter().any(|(run, _)| run.room() == RUN_CELLS_MAX) && runs.pieces.len() > 2);
    }
}
