//! How much of a file lies in a range of rows, and where it may be parted. The block index knows.

use bytes::Bytes;

use crate::error::Result;
use crate::key_range::KeyRange;

use super::Sstable;
use super::block_cache::Caching;
use super::block_index::BlockIndex;
use super::index::IndexBlock;

/// A file of more leaves in the range is parted between leaves.
const LEAVES_READ_MAX: usize = 32;

impl Sstable {
    /// Bytes of the blocks that may hold rows of a range.
    ///
    /// Cost: reads the leaves of the index in which the range begins and ends; one that does not read is counted whole.
    pub(crate) fn bytes_within(&self, range: &KeyRange) -> u64 {
        let held = self.index.held();
        let bytes = |leaf: usize| match &self.index {
            BlockIndex::Root(root) if !range.contains(root.first_row(leaf)) || !range.contains(root.last_row(leaf)) => {
                let read = self.leaf(leaf, Caching::Normal);
                read.map_or_else(|_| self.index.extent(leaf), |leaf| bytes_of(&leaf, range))
            }
            _ => self.index.extent(leaf),
        };
        held.within(range).map(bytes).sum()
    }

    /// The rows that blocks begin with, of those that may hold rows of a range, each with its block's bytes; where there are many, those
    /// that leaves begin with.
    ///
    /// The first one may lie before the range.
    ///
    /// Cost: at most [`LEAVES_READ_MAX`] reads.
    ///
    /// # Errors
    /// `Corrupt` and `Io`, of a leaf.
    pub(crate) fn borders_within(&self, range: &KeyRange) -> Result<Vec<(Bytes, u64)>> {
        let held = self.index.held();
        let of = |index: &IndexBlock, block: usize, bytes: u64| (Bytes::copy_from_slice(index.first_row(block)), bytes);
        if matches!(self.index, BlockIndex::Root(_)) && held.within(range).count() <= LEAVES_READ_MAX {
            let mut borders = Vec::new();
            for leaf in held.within(range) {
                let leaf = self.leaf(leaf, Caching::Normal)?;
                borders.extend(leaf.within(range).map(|block| of(&leaf, block, leaf.entry(block).frame_bytes.into())));
            }
            return Ok(borders);
        }
        Ok(held.within(range).map(|block| of(held, block, self.index.extent(block))).collect())
    }
}

fn bytes_of(leaf: &IndexBlock, range: &KeyRange) -> u64 {
    leaf.within(range).map(|block| u64::from(leaf.entry(block).frame_bytes)).sum()
}
