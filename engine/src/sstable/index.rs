//! The block index: key and time range of every data block, in leaves, and of every leaf, in the root.
//!
//! Layout: `docs/formats/sstable.md`, "Block index". A block's offset is not stored: those of a leaf follow each other without
//! a gap, and the leaf follows them.

use std::cmp::Ordering;

use basalt_store::{CellRef, TimeRange};
use bytes::Bytes;

use crate::heads::Heads;
use crate::key_range::KeyRange;

use super::format::{HEADER_BYTES, width_u32};
use super::input::{Input, Malformed, Parsed};
use super::span::TimeSpan;

/// The index keeps this much of a block's first qualifier: enough to find a column in a row of many blocks, little
/// enough that long qualifiers do not fill memory.
const QUALIFIER_BYTES_MAX: usize = 128;

/// What an index block knows of one block: a leaf of a data block, the root of a leaf.
#[derive(Debug, Clone, Copy)]
pub(super) struct IndexEntry {
    /// Where its frame begins in the file.
    pub(super) offset: u64,
    /// Length of its frame.
    pub(super) frame_bytes: u32,
    /// Cells in a data block, data blocks in a leaf.
    pub(super) count: u32,
    /// Times that its cells have or, as tombstones, reach.
    pub(super) times: TimeSpan,
    first_row: (u32, u32),
    last_row: (u32, u32),
    first_qualifier: (u32, u32),
}

impl IndexEntry {
    /// Where its frame ends.
    pub(super) fn end(&self) -> u64 {
        self.offset + u64::from(self.frame_bytes) // as decoding checks
    }
}

/// A leaf, or the root, read. It has an entry at least.
#[derive(Debug)]
pub(crate) struct IndexBlock {
    image: Bytes,
    entries: Vec<IndexEntry>,
    /// Of the rows that blocks begin with.
    heads: Heads,
}

impl IndexBlock {
    /// Reads a leaf whose first data block begins at `start`.
    ///
    /// Checks that keys ascend from block to block and that nothing is left over.
    pub(super) fn decode_leaf(image: Bytes, start: u64) -> Parsed<Self> {
        Self::decode(image, |_, end| Ok(end.unwrap_or(start)))
    }

    /// Reads a root. Checks the same, and that leaves ascend in the file.
    pub(super) fn decode_root(image: Bytes) -> Parsed<Self> {
        Self::decode(image, |input, end| {
            let refusal = input.malformed();
            let offset = input.u64()?;
            if offset > end.unwrap_or(HEADER_BYTES as u64) { Ok(offset) } else { Err(refusal) }
        })
    }

    /// `offset` is told where the block before ends, if there is one.
    fn decode(image: Bytes, offset: impl Fn(&mut Input<'_>, Option<u64>) -> Parsed<u64>) -> Parsed<Self> {
        let mut input = Input::new(&image, 0);
        let count = input.u32()?;
        let mut entries: Vec<IndexEntry> = Vec::new();
        for _ in 0..count {
            let offset = offset(&mut input, entries.last().map(IndexEntry::end))?;
            entries.push(decode_entry(&mut input, offset)?);
        }
        if input.position() != image.len() || entries.is_empty() {
            return Err(input.malformed());
        }
        entries.shrink_to_fit();
        let mut index = Self { image, entries, heads: Heads::default() };
        let ordered = |(a, b): (&IndexEntry, &IndexEntry)| index.last_row_of(a) <= index.first_row_of(b);
        let pairs_ordered = index.entries.iter().zip(index.entries.iter().skip(1)).all(ordered);
        let each_ordered = index.entries.iter().all(|e| index.first_row_of(e) <= index.last_row_of(e));
        if !(pairs_ordered && each_ordered) {
            return Err(Malformed { position: index.image.len() });
        }
        index.heads = Heads::of(index.entries.iter().map(|entry| index.first_row_of(entry)));
        Ok(index)
    }

    /// Number of its blocks, at least one.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of memory that it keeps.
    pub(super) fn memory_bytes(&self) -> usize {
        self.image.len() + self.entries.len() * size_of::<IndexEntry>() + self.heads.memory_bytes()
    }

    /// Where the last block ends.
    pub(super) fn end(&self) -> u64 {
        self.entries.last().map_or(0, IndexEntry::end)
    }

    /// What its entries count, together.
    pub(super) fn total(&self) -> u64 {
        self.entries.iter().map(|entry| u64::from(entry.count)).sum()
    }

    /// A block, by its number.
    #[expect(clippy::indexing_slicing, reason = "block numbers come from this index and are below its length")]
    pub(super) fn entry(&self, block: usize) -> &IndexEntry {
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

    /// Whether it is what an entry of a root tells of it.
    pub(super) fn is_told_by(&self, root: &IndexBlock, leaf: usize) -> bool {
        let entry = root.entry(leaf);
        let (Some(first), Some(last)) = (self.entries.first(), self.entries.last()) else { return false };
        self.first_row_of(first) == root.first_row_of(entry)
            && self.slice(first.first_qualifier) == root.slice(entry.first_qualifier)
            && self.last_row_of(last) == root.last_row_of(entry)
            && self.entries.iter().fold(TimeSpan::default(), |span, entry| span.with(entry.times)) == entry.times
            && self.len() as u64 == u64::from(entry.count)
    }

    /// The block in which the first cell at or after a column may lie: the last one that begins before the column,
    /// else the first one. An empty qualifier asks for the row's beginning.
    pub(super) fn find(&self, row: &[u8], qualifier: &[u8]) -> usize {
        let qualifier = cut(qualifier);
        let before = |entry: &IndexEntry| {
            self.first_row_of(entry).cmp(row).then_with(|| self.slice(entry.first_qualifier).cmp(qualifier))
                == Ordering::Less
        };
        self.count_until(row, before).saturating_sub(1)
    }

    /// The last block that begins at or before a row; `None` when all begin after it.
    pub(super) fn find_reverse(&self, row: &[u8]) -> Option<usize> {
        self.count_until(row, |entry| self.first_row_of(entry) <= row).checked_sub(1)
    }

    /// How many blocks come before a place in or around a row, as `before` says of those that begin like it.
    fn count_until(&self, row: &[u8], before: impl Fn(&IndexEntry) -> bool) -> usize {
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

    /// The blocks that may hold rows of a range.
    pub(super) fn within<'a>(&'a self, range: &'a KeyRange) -> impl Iterator<Item = usize> + 'a {
        // In reverse the index finds the last block that begins at or before a row.
        (self.find(&range.start, &[])..self.len())
            .skip_while(|block| self.last_row(*block) < &range.start[..])
            .take_while(|block| range.is_before_end(self.first_row(*block)))
    }

    fn first_row_of(&self, entry: &IndexEntry) -> &[u8] {
        self.slice(entry.first_row)
    }

    fn last_row_of(&self, entry: &IndexEntry) -> &[u8] {
        self.slice(entry.last_row)
    }

    fn slice(&self, (start, end): (u32, u32)) -> &[u8] {
        self.image.get(start as usize..end as usize).unwrap_or_default()
    }
}

fn decode_entry(input: &mut Input<'_>, offset: u64) -> Parsed<IndexEntry> {
    let refusal = input.malformed();
    let (frame_bytes, count) = (input.u32()?, input.u32()?);
    offset.checked_add(frame_bytes.into()).ok_or(refusal)?;
    let times = TimeSpan { min: input.u64()?, max: input.u64()? };
    let row_bytes = [input.u16()?, input.u16()?];
    let qualifier_bytes = input.u16()?;
    let mut part = |length: u16| {
        let start = input.position();
        input.bytes(length.into())?;
        Ok((width_u32(start), width_u32(input.position())))
    };
    let [first_row_bytes, last_row_bytes] = row_bytes;
    Ok(IndexEntry {
        offset,
        frame_bytes,
        count,
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

/// Collects a leaf, or the root.
#[derive(Debug, Default)]
struct Entries {
    image: Vec<u8>,
    count: u32,
    /// Where the first of them begins.
    begin: Begin,
    /// With what the last of them ends.
    last_row: Vec<u8>,
    times: TimeSpan,
}

/// Where a block begins.
#[derive(Debug, Default, Clone)]
struct Begin {
    row: Vec<u8>,
    qualifier: Vec<u8>,
}

impl Entries {
    fn push(&mut self, (frame_bytes, count): (u32, u32), begin: &Begin, last_row: &[u8], times: TimeSpan) {
        if self.count == 0 {
            self.begin.clone_from(begin);
        }
        last_row.clone_into(&mut self.last_row);
        self.times = self.times.with(times);
        self.count += 1;
        let out = &mut self.image;
        out.extend_from_slice(&frame_bytes.to_le_bytes());
        out.extend_from_slice(&count.to_le_bytes());
        out.extend_from_slice(&times.min.to_le_bytes());
        out.extend_from_slice(&times.max.to_le_bytes());
        let parts = [&begin.row[..], last_row, &begin.qualifier];
        for part in parts {
            out.extend_from_slice(&width_u16(part.len()).to_le_bytes());
        }
        for part in parts {
            out.extend_from_slice(part);
        }
    }

    fn image(&self) -> Vec<u8> {
        [&self.count.to_le_bytes(), &self.image[..]].concat()
    }
}

/// Collects the index while blocks are written.
///
/// Memory: a leaf, and some 50 bytes and two row keys for each leaf.
#[derive(Debug, Default)]
pub(super) struct IndexBuilder {
    root: Entries,
    leaf: Entries,
    blocks_count: u32,
    /// Of the open block.
    begin: Begin,
    times: TimeSpan,
}

impl IndexBuilder {
    /// Notes a cell of the open block; `first` tells that it opens it.
    pub(super) fn push_cell(&mut self, cell: &CellRef<'_>, first: bool) {
        if first {
            self.begin.row.clear();
            self.begin.row.extend_from_slice(cell.row);
            self.begin.qualifier.clear();
            self.begin.qualifier.extend_from_slice(cut(cell.qualifier));
            self.times = TimeSpan::default();
        }
        self.times.include(cell);
    }

    /// Ends the open block, which is written in `frame_bytes` and ends with `last_row`.
    pub(super) fn push_block(&mut self, frame_bytes: u32, cells_count: u32, last_row: &[u8]) {
        self.leaf.push((frame_bytes, cells_count), &self.begin, last_row, self.times);
        self.blocks_count += 1;
    }

    /// The open leaf's image. It has a block, if one was pushed since the leaf before.
    pub(super) fn leaf(&self) -> Vec<u8> {
        self.leaf.image()
    }

    /// Ends the open leaf, which is written at `offset` in `frame_bytes`.
    pub(super) fn push_leaf(&mut self, offset: u64, frame_bytes: u32) {
        let leaf = std::mem::take(&mut self.leaf);
        self.root.image.extend_from_slice(&offset.to_le_bytes());
        self.root.push((frame_bytes, leaf.count), &leaf.begin, &leaf.last_row, leaf.times);
    }

    /// Bytes of the open leaf so far.
    pub(super) fn leaf_bytes(&self) -> usize {
        self.leaf.image.len()
    }

    /// Whether a leaf was ended: one is not all of the index.
    pub(super) fn has_root(&self) -> bool {
        self.root.count > 0
    }

    /// Bytes of the root so far.
    pub(super) fn root_bytes(&self) -> usize {
        self.root.image.len() + size_of_val(&self.root.count)
    }

    /// Blocks so far.
    pub(super) fn blocks_count(&self) -> u32 {
        self.blocks_count
    }

    /// The root's image. It has the leaves that were ended.
    pub(super) fn root(&self) -> Vec<u8> {
        self.root.image()
    }
}

/// A length that the file keeps in two bytes.
pub(super) fn width_u16(length: usize) -> u16 {
    let narrow = u16::try_from(length);
    assert!(narrow.is_ok(), "BUG: a length of {length} bytes has no place in 16 bits");
    narrow.unwrap_or(u16::MAX)
}
