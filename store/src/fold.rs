//! The row rewrite hook: by it a store lets a schema rewrite one row's cells while it flushes or compacts.

use crate::{CellKind, CellRef, SeqNo, Timestamp};

/// Rewrites a row's cells of one family into fewer that mean the same. Registered with a store by name; a family
/// names it in its descriptor (HBase would say a region observer).
///
/// The store calls it only with puts that retention lets a reader see, of a family with VERSIONS = 1, and never
/// where a tombstone lies beside them in the same pass.
pub trait Fold: Send + Sync + std::fmt::Debug {
    /// The name that descriptors carry.
    fn name(&self) -> &str;

    /// Folds `puts` — all of one row and family, in cell order — into `out`, which comes empty. Returns false, with
    /// `out` as it likes, when the puts are to be kept as they are. It must be a pure function of the puts, and
    /// folding its own output must change nothing.
    ///
    /// Cost: no allocation once `out` is warm.
    fn fold(&self, puts: &[RowPut<'_>], out: &mut FoldedRow) -> bool;

    /// Whether it is called only with rows of which nothing lies elsewhere. A folded put bears another column than those it stands
    /// for: what these were put over, in a file that takes no part in the pass, is seen beside it. A fold by whose rules the
    /// newest wins needs nothing of that; one that cannot tell which is newer brings back what was put over.
    fn needs_whole_rows(&self) -> bool {
        false
    }
}

/// A put of a row and family that are told elsewhere, before a fold or after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowPut<'a> {
    /// Its qualifier.
    pub qualifier: &'a [u8],
    /// Its time; of a folded one the newest of what it holds.
    pub timestamp: Timestamp,
    /// Its sequence number; of a folded one the largest of what it holds.
    pub seq: SeqNo,
    /// Its value.
    pub value: &'a [u8],
}

impl<'a> RowPut<'a> {
    /// The put of a row and family.
    pub fn of_row(self, row: &'a [u8], family: &'a [u8]) -> CellRef<'a> {
        let Self { qualifier, timestamp, seq, value } = self;
        CellRef { row, family, qualifier, timestamp, kind: CellKind::Put, seq, value }
    }
}

impl<'a> From<CellRef<'a>> for RowPut<'a> {
    fn from(cell: CellRef<'a>) -> Self {
        Self { qualifier: cell.qualifier, timestamp: cell.timestamp, seq: cell.seq, value: cell.value }
    }
}

/// The cells a fold gives back, in cell order, in one reusable buffer.
#[derive(Debug, Default)]
pub struct FoldedRow {
    data: Vec<u8>,
    cells: Vec<Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    start: usize,
    middle: usize,
    end: usize,
    timestamp: Timestamp,
    seq: SeqNo,
}

impl FoldedRow {
    /// Empties it and keeps its memory.
    pub fn clear(&mut self) {
        self.data.clear();
        self.cells.clear();
    }

    /// Adds a cell; cells are added in cell order.
    pub fn push(&mut self, cell: RowPut<'_>) {
        let start = self.data.len();
        self.data.extend_from_slice(cell.qualifier);
        let middle = self.data.len();
        self.data.extend_from_slice(cell.value);
        self.cells.push(Entry { start, middle, end: self.data.len(), timestamp: cell.timestamp, seq: cell.seq });
    }

    /// The cells in the order they were added.
    pub fn cells(&self) -> impl ExactSizeIterator<Item = RowPut<'_>> {
        self.cells.iter().map(|e| RowPut {
            qualifier: self.data.get(e.start..e.middle).unwrap_or_default(),
            timestamp: e.timestamp,
            seq: e.seq,
            value: self.data.get(e.middle..e.end).unwrap_or_default(),
        })
    }
}
