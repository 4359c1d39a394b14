//! Writes the image that [`Block`](super::Block) reads.

use basalt_store::CellRef;

use crate::field::put_varint;
use crate::sstable::format::{Layout, width_u32};
use crate::sstable::index::width_u16;
use crate::sstable::input::put_step;

use super::{
    HEAD_BYTES, KIND_SHIFT, SAME_QUALIFIER, SAME_SEQ, SAME_TIMESTAMP, SAME_VALUE_BYTES, TRAILER_BYTES,
    WIDE_ROW_ENTRIES, row_entry_bytes, shared_bytes,
};

/// Collects cells, which come in cell order, into one image. Its buffers are kept from block to block.
///
/// Memory: the image, and the open row's cells once more (their count precedes them).
#[derive(Debug)]
pub(in crate::sstable) struct BlockBuilder {
    layout: Layout,
    image: Vec<u8>,
    row_offsets: Vec<u32>,
    cells_count: u32,
    first_row: Vec<u8>,
    row: Vec<u8>,
    row_cells: Vec<u8>,
    row_cells_count: u64,
    /// Of the block's first cell, which the first cell of every later row counts from.
    first_qualifier: Vec<u8>,
    first: Last,
    last_qualifier: Vec<u8>,
    last: Last,
}

/// What the next cell may repeat.
#[derive(Debug, Clone, Copy, Default)]
struct Last {
    timestamp: u64,
    seq: u64,
    value_bytes: usize,
}

impl BlockBuilder {
    /// Builds images of a layout.
    pub(in crate::sstable) fn new(layout: Layout) -> Self {
        Self {
            layout,
            image: Vec::new(),
            row_offsets: Vec::new(),
            cells_count: 0,
            first_row: Vec::new(),
            row: Vec::new(),
            row_cells: Vec::new(),
            row_cells_count: 0,
            first_qualifier: Vec::new(),
            first: Last::default(),
            last_qualifier: Vec::new(),
            last: Last::default(),
        }
    }

    /// Whether it holds no cell.
    pub(in crate::sstable) fn is_empty(&self) -> bool {
        self.cells_count == 0
    }

    /// Cells in it.
    pub(in crate::sstable) fn cells_count(&self) -> u32 {
        self.cells_count
    }

    /// Bytes of the image so far.
    pub(in crate::sstable) fn image_bytes(&self) -> usize {
        let row_table_bytes = self.row_offsets.len() * row_entry_bytes(self.has_wide_entries());
        self.image.len() + self.row_cells.len() + row_table_bytes + TRAILER_BYTES
    }

    /// Adds a cell; `new_row` tells whether the cell before it was of another row.
    pub(in crate::sstable) fn push(&mut self, cell: &CellRef<'_>, new_row: bool) {
        if self.is_empty() {
            self.image.extend_from_slice(&cell.timestamp.0.to_le_bytes());
            self.image.extend_from_slice(&cell.seq.0.to_le_bytes());
            self.first_row.extend_from_slice(cell.row);
            self.first_qualifier.clear();
            self.first_qualifier.extend_from_slice(cell.qualifier);
            self.first = Last { timestamp: cell.timestamp.0, seq: cell.seq.0, value_bytes: cell.value.len() };
        }
        if self.row_cells_count == 0 || new_row {
            self.close_row();
            self.open_row(cell);
        }
        self.push_in_row(cell);
        self.cells_count += 1;
    }

    /// Ends the image and hands it to `take`; the builder is empty afterwards.
    pub(in crate::sstable) fn finish<T>(&mut self, take: impl FnOnce(&[u8]) -> T) -> T {
        assert!(!self.is_empty(), "BUG: a block without a cell");
        self.close_row();
        let mut rows = width_u32(self.row_offsets.len());
        assert!(rows < WIDE_ROW_ENTRIES, "BUG: {rows} rows in a block");
        if self.has_wide_entries() {
            self.image.extend(self.row_offsets.iter().flat_map(|offset| offset.to_le_bytes()));
            rows |= if self.layout == Layout::V1 { 0 } else { WIDE_ROW_ENTRIES };
        } else {
            // The last offset is the largest, and below 64 KiB.
            self.image.extend(self.row_offsets.iter().flat_map(|offset| width_u16(*offset as usize).to_le_bytes()));
        }
        self.image.extend_from_slice(&rows.to_le_bytes());
        self.image.extend_from_slice(&self.cells_count.to_le_bytes());
        let taken = take(&self.image);
        self.image.clear();
        self.row_offsets.clear();
        self.cells_count = 0;
        self.first_row.clear();
        taken
    }

    fn open_row(&mut self, cell: &CellRef<'_>) {
        self.row.clear();
        self.row.extend_from_slice(cell.row);
        self.last_qualifier.clear();
        self.last = self.first;
        if self.image.len() == HEAD_BYTES || self.layout == Layout::V1 {
            self.last.value_bytes = 0;
        } else {
            self.last_qualifier.extend_from_slice(&self.first_qualifier);
        }
    }

    /// Whether a row begins where two bytes do not reach, or may not be told by two.
    fn has_wide_entries(&self) -> bool {
        self.layout == Layout::V1 || self.row_offsets.last().is_some_and(|last| *last > u16::MAX.into())
    }

    fn push_in_row(&mut self, cell: &CellRef<'_>) {
        let last = self.last;
        let repeats = |same: bool, flag: u8| if same { flag } else { 0 };
        // In the first row an empty qualifier repeats the empty one that it begins with; likewise an empty value.
        let flags = repeats(self.last_qualifier == cell.qualifier, SAME_QUALIFIER)
            | repeats(last.timestamp == cell.timestamp.0, SAME_TIMESTAMP)
            | repeats(last.seq == cell.seq.0, SAME_SEQ)
            | repeats(last.value_bytes == cell.value.len(), SAME_VALUE_BYTES);
        let out = &mut self.row_cells;
        out.push(flags | (cell.kind.code() >> 1) << KIND_SHIFT);
        if flags & SAME_QUALIFIER == 0 {
            put_varint(out, cell.qualifier.len() as u64);
            out.extend_from_slice(cell.qualifier);
            self.last_qualifier.clear();
            self.last_qualifier.extend_from_slice(cell.qualifier);
        }
        if flags & SAME_TIMESTAMP == 0 {
            put_step(out, last.timestamp, cell.timestamp.0);
        }
        if flags & SAME_SEQ == 0 {
            put_step(out, last.seq, cell.seq.0);
        }
        if flags & SAME_VALUE_BYTES == 0 {
            put_varint(out, cell.value.len() as u64);
        }
        out.extend_from_slice(cell.value);
        self.last = Last { timestamp: cell.timestamp.0, seq: cell.seq.0, value_bytes: cell.value.len() };
        self.row_cells_count += 1;
    }

    fn close_row(&mut self) {
        if self.row_cells_count == 0 {
            return;
        }
        self.row_offsets.push(width_u32(self.image.len()));
        let is_first = self.image.len() == HEAD_BYTES;
        let shared = if is_first { 0 } else { shared_bytes(&self.first_row, &self.row) };
        let (_, suffix) = self.row.split_at(shared);
        put_varint(&mut self.image, shared as u64);
        put_varint(&mut self.image, suffix.len() as u64);
        put_varint(&mut self.image, self.row_cells_count);
        self.image.extend_from_slice(suffix);
        self.image.extend_from_slice(&self.row_cells);
        self.row_cells.clear();
        self.row_cells_count = 0;
    }
}
