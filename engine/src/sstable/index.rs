//! The block index: key and time range of every data block, held in memory while the file is open.
//!
//! Layout: `docs/formats/sstable.md`, "Block index". A block's offset is not stored: blocks follow each other without a
//! gap, so it is the sum of the lengths before it.

use std::cmp::Ordering;

use basalt_store::{CellRef, TimeRange};
use bytes::Bytes;

use crate::heads::Heads;

use super::format::width_u32;
use super::input::{Input, Malformed, Parsed};
use super::span::TimeSpan;

/// The index keeps this much of a block's first qualifier: enough to find a column in a row of many blocks, little
/// enough that long qualifiers do not fill memory.
const QUALIFIER_BYTES_MAX: usize = 128;

/// What the index knows of one data block.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockEntry {
    /// Where its frame begins in the file.
    pub(super) offset: u64,
    /// Length of its frame.
    pub(super) frame_bytes: u32,
    /// Cells in it.
    pub(super) cells_count: u32,
    /// Times that its cells have or, as tombstones, reach.
    pub(super) times: TimeSpan,
    first_row: (u32, u32),
    last_row: (u32, u32),
    first_qualifier: (u32, u32),
}

/// The index of a file, read.
#[derive(Debug)]
pub(super) struct BlockIndex {
    image: Bytes,
    entries: Vec<BlockEntry>,
    /// Of the rows that blocks begin with.
    heads: Heads,
}

impl BlockIndex {
    /// Reads an index whose first block begins at `blocks_start`.
    ///
    /// Checks that keys ascend from block to block and that nothing is left over.
    pub(super) fn decode(image: Bytes, blocks_start: u64) -> Parsed<Self> {
        let mut input = Input::new(&image, 0);
        let count = input.u32()?;
        let mut entries = Vec::new();
        let mut offset = blocks_start;
        for _ in 0..count {
            let entry = decode_entry(&mut input, offset)?;
            offset += u64::from(entry.frame_bytes);
            entries.push(entry);
        }
        if input.position() != image.len() || entries.is_empty() {
            return Err(input.malformed());
        }
        let mut index = Self { image, entries, heads: Heads::default() };
        let ordered = |(a, b): (&BlockEntry, &BlockEntry)| index.last_row_of(a) <= index.first_row_of(b);
        let pairs_ordered = index.entries.iter().zip(index.entries.iter().skip(1)).all(ordered);
        let each_ordered = index.entries.iter().all(|e| index.first_row_of(e) <= index.last_row_of(e));
        if !(pairs_ordered && each_ordered) {
            return Err(Malformed { position: index.image.len() });
        }
        index.heads = Heads::of(index.entries.iter().map(|entry| index.first_row_of(entry)));
        Ok(index)
    }

    /// Number of blocks, at least one.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of memory that it keeps.
    pub(super) fn memory_bytes(&self) -> usize {
        self.image.len() + self.entries.len() * size_of::<BlockEntry>() + self.heads.memory_bytes()
    }

    /// Where the last block ends.
    pub(super) fn blocks_end(&self) -> u64 {
        self.entries.last().map_or(0, |entry| entry.offset + u64::from(entry.frame_bytes))
    }

    /// A block, by its number.
    #[expect(clippy::indexing_slicing, reason = "block numbers come from this index and are below its length")]
    pub(super) fn entry(&self, block: usize) -> &BlockEntry {
        &self.entries[block]
    }

    /// The row that a block begins with.
    pub(super) fn first_row(&self, block: usize) -> &[u8] {
        self.first_row_of(self.entry(block))
    }

    /// The row that a block ends with.
    pub(super) fn last_row(&self, block: usize) -> &[u8] {
        self.last_row_of(self.entry(block))
    }

    /// The block in which the first cell at or after a column may lie: the last one that begins before the column,
    /// else the first one. An empty qualifier asks for the row's beginning.
    pub(super) fn find(&self, row: &[u8], qualifier: &[u8]) -> usize {
        let qualifier = cut(qualifier);
        let before = |entry: &BlockEntry| {
            self.first_row_of(entry).cmp(row).then_with(|| self.slice(entry.first_qualifier).cmp(qualifier))
                == Ordering::Less
        };
        self.count_until(row, before).saturating_sub(1)
    }

    /// The last block that begins at or before a row; `None` when the file begins after it.
    pub(super) fn find_reverse(&self, row: &[u8]) -> Option<usize> {
        self.count_until(row, |entry| self.first_row_of(entry) <= row).checked_sub(1)
    }

    /// How many blocks come before a place in or around a row, as `before` says of those that begin like it.
    fn count_until(&self, row: &[u8], before: impl Fn(&BlockEntry) -> bool) -> usize {
        let candidates = self.heads.candidates(row);
        let alike = self.entries.get(candidates.clone()).unwrap_or_default();
        candidates.start + alike.partition_point(before)
    }

    /// The first block from `from` on that a time range cannot leave out.
    pub(super) fn next_within(&self, from: usize, range: TimeRange) -> Option<usize> {
        (from..self.entries.len()).find(|block| self.entry(*block).times.overlaps(range))
    }

    /// The last block before `end` that a time range cannot leave out.
    pub(super) fn previous_within(&self, end: usize, range: TimeRange) -> Option<usize> {
        (0..end.min(self.entries.len())).rev().find(|block| self.entry(*block).times.overlaps(range))
    }

    fn first_row_of(&self, entry: &BlockEntry) -> &[u8] {
        self.slice(entry.first_row)
    }

    fn last_row_of(&self, entry: &BlockEntry) -> &[u8] {
        self.slice(entry.last_row)
    }

    fn slice(&self, (start, end): (u32, u32)) -> &[u8] {
        self.image.get(start as usize..end as usize).unwrap_or_default()
    }
}

fn decode_entry(input: &mut Input<'_>, offset: u64) -> Parsed<BlockEntry> {
    let frame_bytes = input.u32()?;
    let cells_count = input.u32()?;
    let times = TimeSpan { min: input.u64()?, max: input.u64()? };
    let row_bytes = [input.u16()?, input.u16()?];
    let qualifier_bytes = input.u16()?;
    let mut part = |length: u16| {
        let start = input.position();
        input.bytes(length.into())?;
        Ok((width_u32(start), width_u32(input.position())))
    };
    let [first_row_bytes, last_row_bytes] = row_bytes;
    Ok(BlockEntry {
        offset,
        frame_bytes,
        cells_count,
        times,
        first_row: part(first_row_bytes)?,
        last_row: part(last_row_bytes)?,
        first_qualifier: part(qualifier_bytes)?,
    })
}

/// Both sides of a comparison are cut alike, so that a cut qualifier that compares less is less.
fn cut(qualifier: &[u8]) -> &[u8] {
    qualifier.get(..QUALIFIER_BYTES_MAX).unwrap_or(qualifier)
}

/// Collects the index while blocks are written.
///
/// Memory: some 40 bytes a block and its keys.
#[derive(Debug, Default)]
pub(super) struct IndexBuilder {
    entries: Vec<u8>,
    blocks_count: u32,
    first_row: Vec<u8>,
    first_qualifier: Vec<u8>,
    times: TimeSpan,
}

impl IndexBuilder {
    /// Notes a cell of the open block; `first` tells that it opens it.
    pub(super) fn push_cell(&mut self, cell: &CellRef<'_>, first: bool) {
        if first {
            self.first_row.clear();
            self.first_row.extend_from_slice(cell.row);
            self.first_qualifier.clear();
            self.first_qualifier.extend_from_slice(cut(cell.qualifier));
            self.times = TimeSpan::default();
        }
        self.times.include(cell);
    }

    /// Ends the open block, which is written in `frame_bytes` and ends with `last_row`.
    pub(super) fn push_block(&mut self, frame_bytes: u32, cells_count: u32, last_row: &[u8]) {
        let out = &mut self.entries;
        out.extend_from_slice(&frame_bytes.to_le_bytes());
        out.extend_from_slice(&cells_count.to_le_bytes());
        out.extend_from_slice(&self.times.min.to_le_bytes());
        out.extend_from_slice(&self.times.max.to_le_bytes());
        for part in [&self.first_row, last_row, &self.first_qualifier] {
            out.extend_from_slice(&width_u16(part.len()).to_le_bytes());
        }
        for part in [&self.first_row, last_row, &self.first_qualifier] {
            out.extend_from_slice(part);
        }
        self.blocks_count += 1;
    }

    /// Bytes of the image so far.
    pub(super) fn image_bytes(&self) -> usize {
        self.entries.len() + size_of::<u32>()
    }

    /// Blocks so far.
    pub(super) fn blocks_count(&self) -> u32 {
        self.blocks_count
    }

    /// The image.
    pub(super) fn finish(self) -> Vec<u8> {
        let mut image = self.blocks_count.to_le_bytes().to_vec();
        image.extend_from_slice(&self.entries);
        image
    }
}

/// A length that the file keeps in two bytes.
pub(super) fn width_u16(length: usize) -> u16 {
    let narrow = u16::try_from(length);
    assert!(narrow.is_ok(), "BUG: a length of {length} bytes has no place in 16 bits");
    narrow.unwrap_or(u16::MAX)
}
