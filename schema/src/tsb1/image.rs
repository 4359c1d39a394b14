//! The row-wise image of a block, as `docs/formats/sstable.md` tells it ("Data block"): what the encoding lies under.
//!
//! Only what is needed to take the cells of a row out of an image and to put them back; that the image is in the one form
//! that its writer gives it is not checked here, but by comparing what comes back.

use super::number::{Input, fold_sign, put_varint};

/// Base time, base sequence number.
const HEAD_BYTES: usize = 16;
/// Number of rows, number of cells.
const TRAILER_BYTES: usize = 8;
const ROW_ENTRY_BYTES: usize = 4;
/// The fewest bytes of a row: its three lengths, a cell's flags, its entry in the table.
pub(super) const ROW_BYTES_MIN: usize = 3 + 1 + ROW_ENTRY_BYTES;

/// Flags of a put.
const PUT: u8 = (4 / 2) << 4;
const SAME_TIMESTAMP: u8 = 1 << 1;
const SAME_SEQ: u8 = 1 << 2;

/// What the cells of a block count their times and sequence numbers from: those of its first cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Base {
    pub(super) timestamp: u64,
    pub(super) seq: u64,
}

/// An image that is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows<'a> {
    /// The image up to the row table.
    cells: &'a [u8],
    table: &'a [[u8; ROW_ENTRY_BYTES]],
    pub(super) base: Base,
}

/// One row of an image.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'a> {
    /// Bytes in common with the first row's key.
    pub(super) shared: usize,
    /// The other bytes of the key.
    pub(super) suffix: &'a [u8],
    pub(super) cells_count: u64,
    /// The cells as they lie there.
    pub(super) cells: &'a [u8],
}

/// A put that is the only cell of its row in the block.
#[derive(Debug, Clone, Copy)]
pub(super) struct LoneCell<'a> {
    pub(super) at: Base,
    pub(super) qualifier: &'a [u8],
    pub(super) value: &'a [u8],
}

impl<'a> Rows<'a> {
    pub(super) fn of(image: &'a [u8]) -> Option<Self> {
        let mut head = Input::new(image);
        let base = Base { timestamp: u64::from_le_bytes(head.array()?), seq: u64::from_le_bytes(head.array()?) };
        let (body, trailer) = image.split_at_checked(image.len().checked_sub(TRAILER_BYTES)?)?;
        let rows = u32::from_le_bytes(Input::new(trailer).array()?) as usize;
        let table_bytes = rows.checked_mul(ROW_ENTRY_BYTES)?;
        let (cells, table) = body.split_at_checked(body.len().checked_sub(table_bytes)?)?;
        Some(Self { cells, table: table.as_chunks().0, base })
    }

    pub(super) fn count(&self) -> usize {
        self.table.len()
    }

    /// The rows; `None` for one that makes no sense.
    pub(super) fn iter(self) -> impl Iterator<Item = Option<Row<'a>>> {
        (0..self.table.len()).map(move |row| self.row(row))
    }

    fn row(&self, row: usize) -> Option<Row<'a>> {
        let offset = |row: usize| self.table.get(row).map(|entry| u32::from_le_bytes(*entry) as usize);
        let end = offset(row + 1).unwrap_or(self.cells.len());
        let mut input = Input::new(self.cells.get(offset(row)?..end)?);
        let (shared, suffix_bytes, cells_count) = (input.length()?, input.length()?, input.varint()?);
        let suffix = input.bytes(suffix_bytes)?;
        Some(Row { shared, suffix, cells_count, cells: input.rest() })
    }
}

impl<'a> Row<'a> {
    /// The row's cell, if it has one alone and that is a put.
    pub(super) fn lone_cell(&self, base: Base) -> Option<LoneCell<'a>> {
        let mut input = Input::new(self.cells);
        let flags = input.u8()?;
        if self.cells_count != 1 || flags & !(SAME_TIMESTAMP | SAME_SEQ) != PUT {
            return None;
        }
        let qualifier_bytes = input.length()?;
        let qualifier = input.bytes(qualifier_bytes)?;
        let timestamp = if flags & SAME_TIMESTAMP == 0 { input.step_from(base.timestamp)? } else { base.timestamp };
        let seq = if flags & SAME_SEQ == 0 { input.step_from(base.seq)? } else { base.seq };
        let value_bytes = input.length()?;
        let value = input.bytes(value_bytes)?;
        input.rest().is_empty().then_some(LoneCell { at: Base { timestamp, seq }, qualifier, value })
    }
}

/// An image that is written into its final place.
#[derive(Debug)]
pub(super) struct ImageWriter<'a, 'b> {
    image: &'a mut [u8],
    at: usize,
    base: Base,
    /// Working memory: where rows begin.
    offsets: &'b mut Vec<u32>,
    cells_count: u64,
}

impl<'a, 'b> ImageWriter<'a, 'b> {
    pub(super) fn start(image: &'a mut [u8], base: Base, offsets: &'b mut Vec<u32>) -> Option<Self> {
        offsets.clear();
        let mut writer = Self { image, at: 0, base, offsets, cells_count: 0 };
        writer.put(&base.timestamp.to_le_bytes())?;
        writer.put(&base.seq.to_le_bytes())?;
        Some(writer)
    }

    /// Bytes that have their place yet to find.
    pub(super) fn bytes_left(&self) -> usize {
        self.image.len() - self.at
    }

    /// Begins a row. Its cells follow by [`ImageWriter::cell`] or [`ImageWriter::put`].
    pub(super) fn row(&mut self, (shared, suffix): (usize, &[u8]), cells_count: u64) -> Option<()> {
        self.offsets.push(u32::try_from(self.at).ok()?);
        self.cells_count = self.cells_count.checked_add(cells_count)?;
        self.put_varint(shared as u64)?;
        self.put_varint(suffix.len() as u64)?;
        self.put_varint(cells_count)?;
        self.put(suffix)
    }

    /// A row's only cell.
    pub(super) fn cell(&mut self, cell: LoneCell<'_>) -> Option<()> {
        let step = |from: u64, to: u64| to.wrapping_sub(from).cast_signed();
        let by_time = step(self.base.timestamp, cell.at.timestamp);
        let by_seq = step(self.base.seq, cell.at.seq);
        let repeats = |step: i64, flag: u8| if step == 0 { flag } else { 0 };
        self.put(&[PUT | repeats(by_time, SAME_TIMESTAMP) | repeats(by_seq, SAME_SEQ)])?;
        self.put_varint(cell.qualifier.len() as u64)?;
        self.put(cell.qualifier)?;
        for step in [by_time, by_seq].into_iter().filter(|step| *step != 0) {
            self.put_varint(fold_sign(step))?;
        }
        self.put_varint(cell.value.len() as u64)?;
        self.put(cell.value)
    }

    pub(super) fn put(&mut self, bytes: &[u8]) -> Option<()> {
        let end = self.at + bytes.len(); // both are lengths of what is in memory
        self.image.get_mut(self.at..end)?.copy_from_slice(bytes);
        self.at = end;
        Some(())
    }

    fn put_varint(&mut self, value: u64) -> Option<()> {
        if value < 0x80 {
            return self.put(&[super::number::low_byte(value)]);
        }
        let mut bytes = Vec::with_capacity(10);
        put_varint(&mut bytes, value);
        self.put(&bytes)
    }

    /// Writes table and trailer; `None` unless the image is full to its last byte.
    pub(super) fn finish(mut self) -> Option<()> {
        let rows = u32::try_from(self.offsets.len()).ok()?;
        let offsets = std::mem::take(self.offsets);
        for offset in &offsets {
            self.put(&offset.to_le_bytes())?;
        }
        *self.offsets = offsets;
        self.put(&rows.to_le_bytes())?;
        self.put(&u32::try_from(self.cells_count).ok()?.to_le_bytes())?;
        (self.bytes_left() == 0).then_some(())
    }
}

const _: () = assert!(HEAD_BYTES == size_of::<Base>());
