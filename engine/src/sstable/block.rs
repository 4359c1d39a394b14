//! The row-wise image of a data block: cells of whole rows or pieces of them, in cell order.
//!
//! The layout's only telling is `docs/formats/sstable.md`. In short: a row is stored once, as the bytes it does not
//! share with the block's first row; a cell says in one byte which parts repeat the cell before it, and the first cell
//! of a row those that repeat the block's first cell; a table at the end tells where each row begins, so that a row is
//! found by bisection and rows can be walked backwards.
//!
//! Invariant: no byte sequence panics; what cannot be read is [`Malformed`].

mod builder;

use std::cmp::Ordering;

use basalt_store::{CellKind, CellRef, SeqNo, Timestamp};
use bytes::Bytes;

use super::format::Layout;
use super::input::{Input, Malformed, Parsed};

pub(super) use builder::BlockBuilder;

/// Base time and base sequence number, from which the first cell of each row counts.
const BASE_TIMESTAMP: usize = 0;
const BASE_SEQ: usize = BASE_TIMESTAMP + 8;
const HEAD_BYTES: usize = BASE_SEQ + 8;

/// One entry of the row table, where all rows begin below 64 KiB, and elsewhere.
const ROW_ENTRY_BYTES: usize = 2;
const WIDE_ROW_ENTRY_BYTES: usize = 4;
/// Set in the number of rows where entries are wide. In version 1 they all are, and nothing tells it.
const WIDE_ROW_ENTRIES: u32 = 1 << 31;
/// Number of rows and number of cells, the image's end.
const TRAILER_BYTES: usize = 4 + 4;

const SAME_QUALIFIER: u8 = 1;
const SAME_TIMESTAMP: u8 = 1 << 1;
const SAME_SEQ: u8 = 1 << 2;
const SAME_VALUE_BYTES: u8 = 1 << 3;
/// The kind's code, halved (all are even), sits above the flags; the top bit stays zero.
const KIND_SHIFT: u32 = 4;
const KIND_MASK: u8 = 7;

/// A decoded block, shared with the block cache. Cloning counts a reference.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    image: Bytes,
    cells_end: usize,
    rows_count: usize,
    /// Whether entries of the row table are wide.
    wide_entries: bool,
    cells_count: u32,
    /// Where the first row's key lies.
    first_key: (usize, usize),
    /// What the first cell of every row but the first may repeat.
    base: CellParts,
}

impl Block {
    /// Reads the trailer and checks the row table.
    ///
    /// Cost: one pass over the row table; cells are read as a cursor meets them.
    pub(super) fn parse(image: Bytes, layout: Layout) -> Parsed<Self> {
        let trailer_at = image.len().checked_sub(TRAILER_BYTES).ok_or(Malformed { position: image.len() })?;
        let mut trailer = Input::new(&image, trailer_at);
        let rows = trailer.u32()?;
        let cells_count = trailer.u32()?;
        let (rows_count, wide_entries) = match layout {
            Layout::V1 => (rows as usize, true),
            Layout::V2 => ((rows & !WIDE_ROW_ENTRIES) as usize, rows & WIDE_ROW_ENTRIES != 0),
        };
        let cells_end = rows_count
            .checked_mul(row_entry_bytes(wide_entries))
            .and_then(|table_bytes| trailer_at.checked_sub(table_bytes))
            .filter(|end| rows_count > 0 && *end > HEAD_BYTES)
            .ok_or(Malformed { position: trailer_at })?;
        let base = CellParts { qualifier: (0, 0), value: (0, 0), timestamp: 0, seq: 0, kind: CellKind::Put };
        let mut block = Self { image, cells_end, rows_count, wide_entries, cells_count, first_key: (0, 0), base };
        block.check_row_table()?;
        let first = block.row_record(0)?;
        if first.shared != 0 {
            return Err(Malformed { position: HEAD_BYTES });
        }
        block.first_key = first.suffix;
        let before = block.before_first()?;
        block.base = match layout {
            Layout::V1 => before,
            Layout::V2 => block.read_cell(first.suffix.1, &before)?.0,
        };
        Ok(block)
    }

    /// Bytes of memory that it keeps.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.image.len() + size_of::<Self>()
    }

    /// Rows of which it holds a cell, at least one.
    pub(super) fn rows_count(&self) -> usize {
        self.rows_count
    }

    /// Cells in it.
    pub(super) fn cells_count(&self) -> u32 {
        self.cells_count
    }

    /// Where the cells end: the position that a full walk reaches.
    #[cfg(test)]
    pub(super) fn cells_end(&self) -> usize {
        self.cells_end
    }

    /// The first row at or after `target`; [`Block::rows_count`] when there is none.
    ///
    /// Cost: log₂ of the rows in comparisons, no key is put together.
    pub(super) fn find_row(&self, target: &[u8]) -> Parsed<usize> {
        let first = self.slice(self.first_key);
        let common = shared_bytes(first, target);
        let first_order = first.cmp(target);
        let (mut low, mut high) = (0, self.rows_count);
        while low < high {
            let middle = low + (high - low) / 2;
            let record = self.row_record(middle)?;
            // A row that shares more with the first row than the target does compares with it as the first row does.
            let order = match target.get(record.shared..) {
                Some(tail) if record.shared <= common => self.slice(record.suffix).cmp(tail),
                _ => first_order,
            };
            if order == Ordering::Less { low = middle + 1 } else { high = middle }
        }
        Ok(low)
    }

    /// Compares a row's key with `target`.
    pub(super) fn compare_row(&self, row: usize, target: &[u8]) -> Parsed<Ordering> {
        let record = self.row_record(row)?;
        let (head, tail) = target.split_at(record.shared.min(target.len()));
        let shared = self.slice((self.first_key.0, self.first_key.0 + record.shared));
        Ok(shared.cmp(head).then_with(|| self.slice(record.suffix).cmp(tail)))
    }

    /// Checks that the offsets of rows ascend from the first cell on and end before the last.
    fn check_row_table(&self) -> Parsed<()> {
        let table = self.image.get(self.cells_end..).unwrap_or_default();
        let ends = if self.wide_entries {
            ends_of(table, self.rows_count, |entry: &[u8; WIDE_ROW_ENTRY_BYTES]| u32::from_le_bytes(*entry) as usize)
        } else {
            ends_of(table, self.rows_count, |entry: &[u8; ROW_ENTRY_BYTES]| u16::from_le_bytes(*entry).into())
        };
        match ends {
            Some((HEAD_BYTES, last)) if last < self.cells_end => Ok(()),
            _ => Err(Malformed { position: self.cells_end }),
        }
    }

    /// What stands before the block's first cell: nothing, at the base time and the base sequence number.
    fn before_first(&self) -> Parsed<CellParts> {
        let mut head = Input::new(&self.image, BASE_TIMESTAMP);
        let (timestamp, seq) = (head.u64()?, head.u64()?);
        Ok(CellParts { qualifier: (0, 0), value: (0, 0), timestamp, seq, kind: CellKind::Put })
    }

    /// Reads the cell at a position; answers where the next one begins, too.
    #[inline]
    fn read_cell(&self, position: usize, before: &CellParts) -> Parsed<(CellParts, usize)> {
        let mut input = self.cells_input(position);
        let flags = input.u8()?;
        let code = (flags >> KIND_SHIFT) << 1;
        let Ok(kind) = CellKind::from_code(code) else { return Err(Malformed { position }) };
        let qualifier = if flags & SAME_QUALIFIER == 0 { part(&mut input)? } else { before.qualifier };
        let timestamp = if flags & SAME_TIMESTAMP == 0 { input.step_from(before.timestamp)? } else { before.timestamp };
        let seq = if flags & SAME_SEQ == 0 { input.step_from(before.seq)? } else { before.seq };
        let value_bytes = if flags & SAME_VALUE_BYTES == 0 { input.length()? } else { before.value.1 - before.value.0 };
        let value_start = input.position();
        input.bytes(value_bytes)?;
        let end = input.position();
        Ok((CellParts { qualifier, value: (value_start, end), timestamp, seq, kind }, end))
    }

    #[inline]
    fn row_offset(&self, row: usize) -> Parsed<usize> {
        let mut table = Input::new(&self.image, self.cells_end + row * row_entry_bytes(self.wide_entries));
        Ok(if self.wide_entries { table.u32()? as usize } else { table.u16()?.into() })
    }

    /// The end of a row's cells.
    #[inline]
    fn row_end(&self, row: usize) -> Parsed<usize> {
        if row + 1 < self.rows_count { self.row_offset(row + 1) } else { Ok(self.cells_end) }
    }

    #[inline]
    fn row_record(&self, row: usize) -> Parsed<RowRecord> {
        self.row_record_at(row, self.row_offset(row)?)
    }

    /// The same, where its place is known.
    #[inline]
    fn row_record_at(&self, row: usize, start: usize) -> Parsed<RowRecord> {
        let mut input = self.cells_input(start);
        let (shared, suffix_bytes, cells) = input.lengths()?;
        let suffix_start = input.position();
        input.bytes(suffix_bytes)?;
        let first_key_bytes = self.first_key.1 - self.first_key.0;
        // The first row is read before its key is known; it shares nothing, as `parse` checks.
        if cells == 0 || (row > 0 && shared > first_key_bytes) {
            return Err(Malformed { position: start });
        }
        Ok(RowRecord { shared, suffix: (suffix_start, input.position()), cells })
    }

    /// Reads the cells, never the table after them.
    #[inline]
    fn cells_input(&self, position: usize) -> Input<'_> {
        Input::new(self.image.get(..self.cells_end).unwrap_or_default(), position)
    }

    #[inline]
    fn slice(&self, (start, end): (usize, usize)) -> &[u8] {
        self.image.get(start..end).unwrap_or_default()
    }
}

/// The head of a row in a block.
#[derive(Debug, Clone, Copy)]
struct RowRecord {
    /// Bytes shared with the block's first row.
    shared: usize,
    /// Where the other bytes of the key lie.
    suffix: (usize, usize),
    /// Cells of the row in this block, at least one.
    cells: usize,
}

/// A cell of a block: where its parts lie.
#[derive(Debug, Clone, Copy)]
struct CellParts {
    qualifier: (usize, usize),
    value: (usize, usize),
    timestamp: u64,
    seq: u64,
    kind: CellKind,
}

/// Where a step within a block led.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// To a cell of the same row.
    InRow,
    /// To the first cell of the next row.
    NewRow,
    /// Nowhere.
    End,
}

/// Stands on one cell of a block. Moving on allocates nothing once the row buffer is warm.
#[derive(Debug, Clone)]
pub(super) struct BlockCursor {
    block: Block,
    /// The row it stands in.
    row_index: usize,
    /// That row's key, put together.
    row: Vec<u8>,
    /// How many of its first bytes are the block's first key's.
    row_shared: usize,
    /// Where the next cell begins.
    position: usize,
    /// Cells of the row after this one.
    cells_left: usize,
    parts: CellParts,
}

impl BlockCursor {
    /// Stands on the first cell of a row; `row_buffer` is reused.
    pub(super) fn at_row(block: Block, row: usize, row_buffer: Vec<u8>) -> Parsed<Self> {
        let parts = block.base;
        let mut cursor =
            Self { block, row_index: row, row: row_buffer, row_shared: 0, position: 0, cells_left: 0, parts };
        cursor.enter_row(row)?;
        Ok(cursor)
    }

    /// The block.
    pub(super) fn block(&self) -> &Block {
        &self.block
    }

    /// Which row of the block it stands in.
    pub(super) fn row_index(&self) -> usize {
        self.row_index
    }

    /// The key of the row it stands in.
    #[inline]
    pub(super) fn row(&self) -> &[u8] {
        &self.row
    }

    /// Gives the row buffer back for the next block.
    pub(super) fn into_row_buffer(self) -> Vec<u8> {
        self.row
    }

    /// The cell it stands on.
    #[inline]
    pub(super) fn cell<'a>(&'a self, family: &'a [u8]) -> CellRef<'a> {
        CellRef {
            row: &self.row,
            family,
            qualifier: self.block.slice(self.parts.qualifier),
            timestamp: Timestamp(self.parts.timestamp),
            kind: self.parts.kind,
            seq: SeqNo(self.parts.seq),
            value: self.block.slice(self.parts.value),
        }
    }

    /// Goes to the first cell of a row, which must be below [`Block::rows_count`].
    pub(super) fn enter_row(&mut self, row: usize) -> Parsed<()> {
        assert!(row < self.block.rows_count, "BUG: row {row} of a block of {} rows", self.block.rows_count);
        let start = self.block.row_offset(row)?;
        self.enter_row_at(row, start)
    }

    fn enter_row_at(&mut self, row: usize, start: usize) -> Parsed<()> {
        let record = self.block.row_record_at(row, start)?;
        // What the row before shared as well stands there already: neighbours share about the same.
        let kept = self.row_shared.min(record.shared);
        let first_key = self.block.first_key.0;
        self.row.truncate(kept);
        if kept < record.shared {
            self.row.extend_from_slice(self.block.slice((first_key + kept, first_key + record.shared)));
        }
        self.row.extend_from_slice(self.block.slice(record.suffix));
        self.row_shared = record.shared;
        self.parts = if row == 0 { self.block.before_first()? } else { self.block.base };
        self.row_index = row;
        self.position = record.suffix.1;
        self.cells_left = record.cells - 1;
        self.read_cell()
    }

    /// Goes to the row's next cell in this block; false, standing still, when there is none.
    #[inline]
    pub(super) fn next_in_row(&mut self) -> Parsed<bool> {
        if self.cells_left == 0 {
            let end = self.block.row_end(self.row_index)?;
            return if self.position == end { Ok(false) } else { Err(Malformed { position: self.position }) };
        }
        self.read_cell()?;
        self.cells_left -= 1;
        Ok(true)
    }

    /// Goes to the block's next cell; stands still at the end.
    #[inline]
    pub(super) fn next(&mut self) -> Parsed<Next> {
        if self.next_in_row()? {
            return Ok(Next::InRow);
        }
        if self.row_index + 1 == self.block.rows_count {
            return Ok(Next::End);
        }
        // The row ended where the table says that the next one begins.
        self.enter_row_at(self.row_index + 1, self.position)?;
        Ok(Next::NewRow)
    }

    #[inline]
    fn read_cell(&mut self) -> Parsed<()> {
        (self.parts, self.position) = self.block.read_cell(self.position, &self.parts)?;
        Ok(())
    }
}

/// How many first bytes two keys have in common.
fn shared_bytes(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// Bytes of an entry of the row table.
fn row_entry_bytes(wide: bool) -> usize {
    if wide { WIDE_ROW_ENTRY_BYTES } else { ROW_ENTRY_BYTES }
}

/// The first and the last offset of a row table, if all ascend.
fn ends_of<const N: usize>(
    table: &[u8],
    rows_count: usize,
    offset: impl Fn(&[u8; N]) -> usize,
) -> Option<(usize, usize)> {
    let table = table.as_chunks::<N>().0.get(..rows_count)?;
    // No early end, so that several are compared at once.
    let out_of_order = table.windows(2).filter(|pair| matches!(pair, [a, b] if offset(a) >= offset(b))).count();
    let ends = (offset(table.first()?), offset(table.last()?));
    (out_of_order == 0).then_some(ends)
}

/// A length and as many bytes: where the bytes lie.
fn part(input: &mut Input<'_>) -> Parsed<(usize, usize)> {
    let length = input.length()?;
    let start = input.position();
    input.bytes(length)?;
    Ok((start, start + length))
}

#[cfg(test)]
impl Block {
    /// The cells of an image of version 1 whose rows are one put each, for codecs of tests.
    pub(crate) fn lone_puts(image: &[u8]) -> Option<Vec<super::tests::OwnedCell>> {
        let block = Self::parse(Bytes::copy_from_slice(image), Layout::V1).unwrap();
        let mut cells = Vec::new();
        for row in 0..block.rows_count() {
            let cursor = BlockCursor::at_row(block.clone(), row, Vec::new()).unwrap();
            let cell = cursor.cell(b"t");
            if cursor.cells_left > 0 || cell.kind != CellKind::Put {
                return None;
            }
            cells.push(super::tests::OwnedCell::of(&cell));
        }
        Some(cells)
    }

    /// A block of one cell, for tests of those who only keep blocks.
    pub(crate) fn of_one_row(row: &[u8], value_bytes: usize) -> Self {
        let value = vec![0; value_bytes];
        let cell = CellRef {
            row,
            family: b"f",
            qualifier: b"q",
            timestamp: Timestamp(1),
            kind: CellKind::Put,
            seq: SeqNo(1),
            value: &value,
        };
        let mut builder = BlockBuilder::new(Layout::V2);
        builder.push(&cell, true);
        builder.finish(|image| Self::parse(Bytes::copy_from_slice(image), Layout::V2)).unwrap()
    }
}

const _: () = assert!((CellKind::DeleteFamily as u8) >> 1 <= KIND_MASK);
