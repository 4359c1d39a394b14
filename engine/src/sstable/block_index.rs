//! The block index as an open file has it in memory: all of it, or the root that tells where its leaves lie.

use std::sync::Arc;

use basalt_store::TimeRange;

use super::format::HEADER_BYTES;
use super::index::IndexBlock;

/// What is in memory of the index while the file is open.
#[derive(Debug)]
pub(super) enum BlockIndex {
    /// All of it.
    Leaf(Arc<IndexBlock>),
    Root(IndexBlock),
}

impl BlockIndex {
    /// What is in memory, whichever it is.
    pub(super) fn held(&self) -> &IndexBlock {
        match self {
            Self::Leaf(leaf) => leaf,
            Self::Root(root) => root,
        }
    }

    /// Data blocks of the file.
    pub(super) fn blocks_count(&self) -> u64 {
        match self {
            Self::Leaf(leaf) => leaf.len() as u64,
            Self::Root(root) => root.total(),
        }
    }

    /// Where the block before one of those in memory ends; for the first one, where blocks of the file begin.
    pub(super) fn end_before(&self, block: usize) -> u64 {
        block.checked_sub(1).map_or(HEADER_BYTES as u64, |before| self.held().entry(before).end())
    }

    /// Bytes from there to the end of this one: of a leaf, with the data blocks that it tells of.
    pub(super) fn extent(&self, block: usize) -> u64 {
        self.held().entry(block).end() - self.end_before(block) // they ascend
    }

    /// The leaf in which [`IndexBlock::find`] finds a column.
    pub(super) fn find(&self, row: &[u8], qualifier: &[u8]) -> usize {
        match self {
            Self::Leaf(_) => 0,
            Self::Root(root) => root.find(row, qualifier),
        }
    }

    /// The leaf in which [`IndexBlock::find_reverse`] finds a row.
    pub(super) fn find_reverse(&self, row: &[u8]) -> Option<usize> {
        match self {
            Self::Leaf(_) => Some(0),
            Self::Root(root) => root.find_reverse(row),
        }
    }

    /// The first leaf from one on that a time range cannot leave out.
    pub(super) fn next_within(&self, from: usize, range: TimeRange) -> Option<usize> {
        match self {
            Self::Leaf(_) => (from == 0).then_some(0),
            Self::Root(root) => root.next_within(from, range),
        }
    }

    /// The last one before `end`, likewise.
    pub(super) fn previous_within(&self, end: usize, range: TimeRange) -> Option<usize> {
        match self {
            Self::Leaf(_) => (end > 0).then_some(0),
            Self::Root(root) => root.previous_within(end, range),
        }
    }
}
