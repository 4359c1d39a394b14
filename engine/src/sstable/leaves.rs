//! Walks over the data blocks of an open file, by its index, leaf by leaf.
//!
//! What a file of years has of index would fill memory: its leaves are read when they are needed, through the block cache.

use std::ops::Range;
use std::sync::Arc;

use basalt_store::TimeRange;

use crate::error::Result;

use super::block_cache::{Cached, Caching};
use super::block_index::BlockIndex;
use super::format::{Frame, SectionKind};
use super::index::{IndexBlock, IndexEntry};
use super::{Sstable, codec};

/// A leaf is refused above this size, decoded or stored. The writer's have 64 KiB and one entry, of 66 kB at most.
const LEAF_BYTES_MAX: usize = 1024 * 1024;

/// A data block by its place in the index; keeps the leaf that tells of it.
#[derive(Debug, Clone)]
pub(super) struct BlockAt {
    leaf: usize,
    block: usize,
    entries: Arc<IndexBlock>,
}

/// Of one file.
impl PartialEq for BlockAt {
    fn eq(&self, other: &BlockAt) -> bool {
        (self.leaf, self.block) == (other.leaf, other.block)
    }
}

impl BlockAt {
    pub(super) fn entry(&self) -> &IndexEntry {
        self.entries.entry(self.block)
    }

    /// The row that it begins with.
    pub(super) fn first_row(&self) -> &[u8] {
        self.entries.first_row(self.block)
    }

    /// The row that it ends with.
    pub(super) fn last_row(&self) -> &[u8] {
        self.entries.last_row(self.block)
    }

    /// The row that the block before it ends with. No I/O.
    pub(super) fn last_row_before<'a>(&'a self, table: &'a Sstable) -> Option<&'a [u8]> {
        match (self.block.checked_sub(1), &table.index) {
            (Some(before), _) => Some(self.entries.last_row(before)),
            (None, BlockIndex::Leaf(_)) => None,
            (None, BlockIndex::Root(root)) => Some(root.last_row(self.leaf.checked_sub(1)?)),
        }
    }

    /// The row that the block after it begins with. No I/O.
    pub(super) fn first_row_after<'a>(&'a self, table: &'a Sstable) -> Option<&'a [u8]> {
        let (after, leaf_after) = (self.block + 1, self.leaf + 1);
        match &table.index {
            _ if after < self.entries.len() => Some(self.entries.first_row(after)),
            BlockIndex::Root(root) if leaf_after < root.len() => Some(root.first_row(leaf_after)),
            _ => None,
        }
    }
}

/// Walks the data blocks of a file, past most of those that a time range leaves out.
///
/// Cost: a read of the leaf where neither the place that is gone from nor the cache has it. Errors: `Corrupt` and `Io`, of a leaf.
#[derive(Debug, Clone, Copy)]
pub(super) struct Blocks<'a> {
    table: &'a Sstable,
    caching: Caching,
    range: TimeRange,
}

impl Blocks<'_> {
    pub(super) fn first(&self) -> Result<Option<BlockAt>> {
        let Some(leaf) = self.table.index.next_within(0, self.range) else { return Ok(None) };
        self.onward(self.leaf(leaf, None)?, leaf, 0)
    }

    pub(super) fn last(&self) -> Result<Option<BlockAt>> {
        let Some(leaf) = self.table.index.previous_within(usize::MAX, self.range) else { return Ok(None) };
        self.backward(self.leaf(leaf, None)?, leaf, usize::MAX)
    }

    pub(super) fn after(&self, at: &BlockAt) -> Result<Option<BlockAt>> {
        self.onward(Arc::clone(&at.entries), at.leaf, at.block + 1)
    }

    pub(super) fn before(&self, at: &BlockAt) -> Result<Option<BlockAt>> {
        self.backward(Arc::clone(&at.entries), at.leaf, at.block)
    }

    /// The first one in which a cell at or after a column may lie; gone to from `from`.
    pub(super) fn find(&self, row: &[u8], qualifier: &[u8], from: Option<&BlockAt>) -> Result<Option<BlockAt>> {
        let found = self.table.index.find(row, qualifier);
        let Some(leaf) = self.table.index.next_within(found, self.range) else { return Ok(None) };
        let entries = self.leaf(leaf, from)?;
        let block = if leaf == found { entries.find(row, qualifier) } else { 0 };
        self.onward(entries, leaf, block)
    }

    /// The last one that begins at or before a row; gone to from `from`.
    pub(super) fn find_reverse(&self, row: &[u8], from: Option<&BlockAt>) -> Result<Option<BlockAt>> {
        let Some(found) = self.table.index.find_reverse(row) else { return Ok(None) };
        let Some(leaf) = self.table.index.previous_within(found + 1, self.range) else { return Ok(None) };
        let entries = self.leaf(leaf, from)?;
        let end = if leaf == found { entries.find_reverse(row).map_or(0, |block| block + 1) } else { usize::MAX };
        self.backward(entries, leaf, end)
    }

    /// From a block of a leaf on. Of the next leaf it is the first one, whatever its times: the reader, which knows how far it goes, may
    /// need no more of that leaf, nor of those behind it.
    fn onward(&self, entries: Arc<IndexBlock>, leaf: usize, from: usize) -> Result<Option<BlockAt>> {
        if let Some(block) = entries.next_within(from, self.range) {
            return Ok(Some(BlockAt { leaf, block, entries }));
        }
        let Some(leaf) = self.table.index.next_within(leaf + 1, self.range) else { return Ok(None) };
        Ok(Some(BlockAt { leaf, block: 0, entries: self.leaf(leaf, None)? }))
    }

    /// From before a block of a leaf on; of the leaf before it is the last one.
    fn backward(&self, entries: Arc<IndexBlock>, leaf: usize, end: usize) -> Result<Option<BlockAt>> {
        if let Some(block) = entries.previous_within(end, self.range) {
            return Ok(Some(BlockAt { leaf, block, entries }));
        }
        let Some(leaf) = self.table.index.previous_within(leaf, self.range) else { return Ok(None) };
        let entries = self.leaf(leaf, None)?;
        Ok(Some(BlockAt { leaf, block: entries.len() - 1, entries }))
    }

    fn leaf(&self, leaf: usize, from: Option<&BlockAt>) -> Result<Arc<IndexBlock>> {
        match from {
            Some(at) if at.leaf == leaf => Ok(Arc::clone(&at.entries)),
            _ => self.table.leaf(leaf, self.caching),
        }
    }
}

impl Sstable {
    /// The data blocks that a time range cannot leave out.
    pub(super) fn blocks_of(&self, caching: Caching, range: TimeRange) -> Blocks<'_> {
        Blocks { table: self, caching, range }
    }

    /// Reads every leaf of the index past the cache.
    ///
    /// # Errors
    /// `Corrupt` for the first one that is not what the root tells; `Io`.
    pub(crate) fn check_index(&self) -> Result<()> {
        let BlockIndex::Root(root) = &self.index else { return Ok(()) };
        (0..root.len()).try_for_each(|leaf| self.read_leaf(root, leaf).map(drop))
    }

    /// How many leaves its index has.
    pub(super) fn leaves_count(&self) -> usize {
        match &self.index {
            BlockIndex::Leaf(_) => 1,
            BlockIndex::Root(root) => root.len(),
        }
    }

    /// The data blocks of a leaf.
    ///
    /// # Errors
    /// `Corrupt` and `Io`, of the leaf.
    pub(super) fn blocks_of_leaf(&self, leaf: usize) -> Result<impl Iterator<Item = BlockAt> + use<>> {
        let entries = self.leaf(leaf, Caching::Bypass)?;
        Ok((0..entries.len()).map(move |block| BlockAt { leaf, block, entries: Arc::clone(&entries) }))
    }

    /// From where to where the data blocks of a leaf lie, and between which rows.
    pub(super) fn told_of_leaf(&self, leaf: usize) -> (Range<u64>, [&[u8]; 2]) {
        let held = self.index.held();
        let offset = held.entry(leaf).offset;
        (self.index.end_before(leaf)..offset, [held.first_row(leaf), held.last_row(leaf)])
    }

    /// A leaf, from memory, the cache or the file.
    pub(super) fn leaf(&self, leaf: usize, caching: Caching) -> Result<Arc<IndexBlock>> {
        let root = match &self.index {
            BlockIndex::Leaf(leaf) => return Ok(Arc::clone(leaf)),
            BlockIndex::Root(root) => root,
        };
        let offset = root.entry(leaf).offset;
        if let Some(Cached::Leaf(cached)) = self.cache.get(self.file_id, offset) {
            return Ok(cached);
        }
        let read = Arc::new(self.read_leaf(root, leaf)?);
        self.cache.insert(self.file_id, offset, Cached::Leaf(Arc::clone(&read)), caching.of_leaf());
        Ok(read)
    }

    fn read_leaf(&self, root: &IndexBlock, leaf: usize) -> Result<IndexBlock> {
        let entry = root.entry(leaf);
        let place = self.place(entry.offset);
        let within = |bytes: usize| {
            let most = LEAF_BYTES_MAX as u64;
            if bytes <= LEAF_BYTES_MAX { Ok(bytes) } else { Err(place.corrupt("length of a leaf", most, bytes as u64)) }
        };
        let bytes = place.read_vec(&*self.file, within(entry.frame_bytes as usize)?)?;
        let frame = Frame::open(&place, SectionKind::IndexLeaf, &bytes)?;
        within(frame.raw_bytes)?;
        let image = codec::decode(&place, &frame, None)?;
        let read = IndexBlock::decode_leaf(image.into(), self.index.end_before(leaf))
            .map_err(|malformed| place.malformed(malformed))?;
        place.require("end of blocks", entry.offset, read.end())?;
        place.require("leaf of the block index", 1, read.is_told_by(root, leaf).into())?;
        Ok(read)
    }
}
