//! What a table holds, in one number that does not depend on the order of its rows, nor on whether a store has folded them.

use basalt_schema::{ColumnKind, Duplicates, RowCell, RowFold, RowPoints};
use basalt_store::{CellView, RowView};
use serde::{Deserialize, Serialize};

/// FNV-1a of 128 bits.
const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

/// Rows and the sum of their hashes. A row's hash takes in its key, and family, qualifier, time and value of each cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Digest {
    pub(super) rows: u64,
    /// Both halves of the sum.
    sum: (u64, u64),
}

/// Makes digests; reused from row to row.
#[derive(Debug)]
pub(super) struct Digester {
    joiner: Joiner,
    lasting_from: u64,
}

/// Joins the points of a row as a store may; reused from row to row.
#[derive(Debug)]
pub(super) struct Joiner {
    fold: RowFold,
    /// Scratch: the points of several cells, and of one of them.
    points: (RowPoints, RowPoints),
    duplicates: Duplicates,
    is_folded: bool,
}

impl Joiner {
    /// For tables whose rows a store may fold, or not.
    pub(super) fn new(is_folded: bool, duplicates: Duplicates) -> Self {
        Self { fold: RowFold::default(), points: Default::default(), duplicates, is_folded }
    }

    /// The cells of a row that are copied. Beside an append cell points are not joined: of those written in one millisecond for one instant
    /// the lone ones that readers do not take stay behind, as the order of such writes is not in the cells.
    pub(super) fn copied<'r>(&mut self, mut cells: Vec<CellView<'r>>) -> Vec<CellView<'r>> {
        let is_appended = |cell: &CellView<'_>| ColumnKind::of(cell.qualifier) == ColumnKind::Appended;
        if !self.is_folded || !cells.iter().any(is_appended) {
            return cells;
        }
        let mut by_time: Vec<RowCell<'r>> = cells.iter().map(|cell| RowCell::from(*cell)).collect();
        by_time.sort_by_key(|cell| cell.timestamp);
        for together in by_time.chunk_by(|a, b| a.timestamp == b.timestamp) {
            let [first, _, ..] = together else { continue };
            // A damaged cell is copied with all beside it.
            if self.points.0.decode(together.iter().copied(), self.duplicates).is_ok() {
                cells.retain(|cell| first.timestamp != cell.timestamp || self.is_taken(cell));
            }
        }
        cells
    }

    /// Whether a cell is no lone point, or one that is among the points that were decoded last.
    fn is_taken(&mut self, cell: &CellView<'_>) -> bool {
        let (points, alone) = &mut self.points;
        if ColumnKind::of(cell.qualifier) != ColumnKind::Point
            || alone.decode([RowCell::from(*cell)], self.duplicates).is_err()
        {
            return true;
        }
        let point = |points: &RowPoints, at: usize| Some((*points.values().get(at)?, *points.kinds().get(at)?));
        let at = alone.offsets_ms().first().and_then(|offset| points.offsets_ms().binary_search(offset).ok());
        at.is_none_or(|at| point(points, at) == point(alone, 0))
    }

    /// The cell that stands for all of points among `cells`, which are of one row.
    fn join(&mut self, cells: &[CellView<'_>]) -> Option<RowCell<'_>> {
        let has_versions = cells.iter().zip(cells.iter().skip(1)).any(|(a, b)| a.qualifier == b.qualifier);
        if !self.is_folded || has_versions {
            return None;
        }
        let parts: Vec<RowCell<'_>> = cells.iter().map(|cell| RowCell::from(*cell)).collect();
        // Damaged rows are folded by nobody.
        self.fold.fold(&parts, self.duplicates).ok().flatten()
    }

    /// The same where several points have one instant: which of them readers take, the order of writes within a millisecond may
    /// tell, and that is not in the cells.
    pub(super) fn join_duplicates(&mut self, cells: &[CellView<'_>]) -> Option<RowCell<'_>> {
        // A point has a part of its own in the names of cells.
        let names = |cell: &CellView<'_>| if RowFold::joins(cell.qualifier) { cell.qualifier.len() } else { 0 };
        let before: usize = cells.iter().map(names).sum();
        self.join(cells).filter(|joined| joined.qualifier.len() < before)
    }
}

impl Digester {
    /// For tables whose rows a store may fold, or not; of cells from a time on, in milliseconds.
    pub(super) fn new(is_folded: bool, duplicates: Duplicates, lasting_from: u64) -> Self {
        Self { joiner: Joiner::new(is_folded, duplicates), lasting_from }
    }

    /// Takes a row in, under a key that both ends have.
    ///
    /// Rows that may be folded are taken in as a fold leaves them, which gives the same cells at whatever time and in
    /// however many steps it is done.
    pub(super) fn add(&mut self, key: &[u8], row: &RowView<'_>, into: &mut Digest) {
        let cells = self.joiner.copied(row.cells().collect());
        let cells = self.lasting(cells);
        if cells.is_empty() {
            return;
        }
        let mut hash = Hash::default();
        hash.bytes(key);
        // What is no point comes first: it may lie behind the points of a row, and before the one cell that they are folded into.
        let joins = |cell: &&CellView<'_>| self.joiner.is_folded && RowFold::joins(cell.qualifier);
        let (points, others): (Vec<_>, Vec<_>) = cells.iter().partition(joins);
        let mut take = |cell: &CellView<'_>| hash.cell(cell.family, cell.qualifier, cell.timestamp.0, cell.value);
        others.into_iter().for_each(&mut take);
        match (self.joiner.join(&cells), cells.first()) {
            (Some(joined), Some(first)) => hash.cell(first.family, joined.qualifier, joined.timestamp.0, joined.value),
            _ => points.into_iter().for_each(take),
        }
        into.rows += 1;
        into.set_sum(into.sum().wrapping_add(hash.0));
    }

    /// The cells of a row that are there until it is compared. Points that may be folded into one cell, whose time is that
    /// of the newest, go by it together.
    fn lasting<'r>(&self, mut cells: Vec<CellView<'r>>) -> Vec<CellView<'r>> {
        let joins = |cell: &CellView<'_>| self.joiner.is_folded && RowFold::joins(cell.qualifier);
        let newest = cells.iter().filter(|cell| joins(cell)).map(|cell| cell.timestamp.0).max().unwrap_or_default();
        let time = |cell: &CellView<'_>| if joins(cell) { newest } else { cell.timestamp.0 };
        cells.retain(|cell| time(cell) >= self.lasting_from);
        cells
    }
}

impl Digest {
    fn sum(self) -> u128 {
        u128::from(self.sum.0) << 64 | u128::from(self.sum.1)
    }

    fn set_sum(&mut self, sum: u128) {
        #[expect(clippy::cast_possible_truncation, reason = "the halves")]
        let halves = ((sum >> 64) as u64, sum as u64);
        self.sum = halves;
    }
}

struct Hash(u128);

impl Default for Hash {
    fn default() -> Self {
        Self(OFFSET)
    }
}

impl Hash {
    fn bytes(&mut self, bytes: &[u8]) {
        self.raw(&(bytes.len() as u64).to_be_bytes());
        self.raw(bytes);
    }

    fn raw(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME));
    }

    fn cell(&mut self, family: &[u8], qualifier: &[u8], time: u64, value: &[u8]) {
        self.bytes(family);
        self.bytes(qualifier);
        self.raw(&time.to_be_bytes());
        self.bytes(value);
    }
}
