//! Blocks whose codec lends a row by columns, and a position in one.
//!
//! A cursor that is asked for columns stands on rows without taking them apart; a row becomes a cell only where somebody
//! needs one: where another source has cells of it, or its neighbour block.

use std::fmt;
use std::sync::Arc;

use basalt_store::{CellKind, CellRef, Packed, PackedRows, Packing, SeqNo, Timestamp};

use super::Block;
use super::marks::RowMarks;

/// A block of rows that are one put each, kept by columns. Row numbers are below [`PackedBlock::rows_count`].
pub trait PackedBlock: Send + Sync + fmt::Debug {
    /// How many rows, at least one; their keys ascend.
    fn rows_count(&self) -> usize;

    /// A row's key.
    fn row_key(&self, row: usize) -> &[u8];

    /// Time and sequence number of a row's cell.
    fn written(&self, row: usize) -> (Timestamp, SeqNo);

    /// Bytes of memory that it keeps, at most.
    fn memory_bytes(&self) -> usize;

    /// Adds a row to packed ones; false, with nothing added, where only its cell will do.
    fn pack(&self, row: usize, packing: Packing, out: &mut PackedRows) -> bool;

    /// Writes qualifier and value of a row's cell, which replace what the two hold; false for bytes that make no sense.
    fn cell(&self, row: usize, qualifier: &mut Vec<u8>, value: &mut Vec<u8>) -> bool;
}

/// The first row that is told to be together what its points are not, or that has no points to be so.
pub(super) fn wrong_summary(block: &dyn PackedBlock) -> Option<usize> {
    let mut rows = PackedRows::default();
    let mut is_wrong = |row: &usize| {
        rows.truncate(0);
        let told = block.pack(*row, Packing::Summaries, &mut rows).then(|| rows.row(0)).flatten();
        let Some(Packed::Summary(summary)) = told else { return false };
        rows.truncate(0);
        let points = block.pack(*row, Packing::Points, &mut rows).then(|| rows.row(0)).flatten();
        !matches!(points, Some(Packed::Points(points)) if summary.is_of(&points))
    };
    (0..block.rows_count()).find(|row| is_wrong(row))
}

/// A block by columns, and what finds a row of it.
#[derive(Debug)]
pub(crate) struct Columns {
    block: Arc<dyn PackedBlock>,
    marks: RowMarks,
}

impl Columns {
    /// *Cost*: a hash a row.
    pub(super) fn new(block: Arc<dyn PackedBlock>) -> Self {
        let marks = RowMarks::of((0..block.rows_count()).map(|row| block.row_key(row)));
        Self { block, marks }
    }

    /// Bytes of memory that it keeps.
    pub(super) fn memory_bytes(&self) -> usize {
        self.block.memory_bytes() + self.marks.memory_bytes()
    }

    /// The first row at or after `target`; the number of rows where all come before it.
    fn find(&self, target: &[u8]) -> usize {
        // Fast path: a row has the key, as where one is asked for.
        if let Some(row) = self.marks.candidates(target).find(|row| self.block.row_key(*row) == target) {
            return row;
        }
        let (mut low, mut high) = (0, self.block.rows_count());
        while low < high {
            let middle = low.midpoint(high);
            if self.block.row_key(middle) < target { low = middle + 1 } else { high = middle }
        }
        low
    }
}

/// A data block as it is read.
#[derive(Debug, Clone)]
pub(crate) enum Loaded {
    /// By rows.
    Image(Block),
    /// By columns.
    Packed(Arc<Columns>),
}

/// Stands on one row of a block.
#[derive(Debug)]
pub(super) struct PackedCursor {
    columns: Arc<Columns>,
    row: usize,
    /// Whether `parts` are the row's.
    is_unpacked: bool,
    parts: Parts,
}

/// A cell's qualifier and value; kept for their memory.
#[derive(Debug, Default)]
pub(super) struct Parts {
    qualifier: Vec<u8>,
    value: Vec<u8>,
}

impl PackedCursor {
    /// Stands on the first row at or after `target`, or on the first of all; `None`, with the parts, past the last.
    pub(super) fn at(columns: Arc<Columns>, target: Option<&[u8]>, parts: Parts) -> Result<Self, Parts> {
        let row = target.map_or(0, |target| columns.find(target));
        if row < columns.block.rows_count() { Ok(Self { columns, row, is_unpacked: false, parts }) } else { Err(parts) }
    }

    pub(super) fn columns(&self) -> &Arc<Columns> {
        &self.columns
    }

    pub(super) fn block(&self) -> &dyn PackedBlock {
        &*self.columns.block
    }

    pub(super) fn row_index(&self) -> usize {
        self.row
    }

    pub(super) fn row(&self) -> &[u8] {
        self.block().row_key(self.row)
    }

    /// Whether it stands on the block's last row.
    pub(super) fn is_last(&self) -> bool {
        self.row + 1 == self.block().rows_count()
    }

    pub(super) fn is_unpacked(&self) -> bool {
        self.is_unpacked
    }

    /// Goes to the block's next row; false, standing still, at the end.
    pub(super) fn advance(&mut self) -> bool {
        if self.is_last() {
            return false;
        }
        self.row += 1;
        self.is_unpacked = false;
        true
    }

    /// Makes a cell of the row; false for bytes that make no sense.
    pub(super) fn unpack(&mut self) -> bool {
        if !self.is_unpacked {
            self.is_unpacked = self.columns.block.cell(self.row, &mut self.parts.qualifier, &mut self.parts.value);
        }
        self.is_unpacked
    }

    /// The row's cell, once it is unpacked.
    pub(super) fn cell<'a>(&'a self, family: &'a [u8]) -> Option<CellRef<'a>> {
        let (timestamp, seq) = self.block().written(self.row);
        let Parts { qualifier, value } = &self.parts;
        let cell = CellRef { row: self.row(), family, qualifier, timestamp, kind: CellKind::Put, seq, value };
        self.is_unpacked.then_some(cell)
    }

    pub(super) fn into_parts(self) -> Parts {
        self.parts
    }
}
