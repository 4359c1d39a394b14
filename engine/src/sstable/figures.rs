//! What a file's index tells of its data blocks.

use bytes::Bytes;

use super::Sstable;
use super::leaves::BlockAt;
use crate::error::Result;

/// A data block, as the file's index has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockFigures {
    /// Where it begins in the file.
    pub offset: u64,
    /// Its length there.
    pub bytes: u64,
    /// Cells.
    pub cells_count: u64,
    /// The first row.
    pub first_row: Bytes,
    /// The last row.
    pub last_row: Bytes,
}

impl BlockFigures {
    /// Those of a block.
    pub(super) fn of(block: &BlockAt) -> BlockFigures {
        let entry = block.entry();
        BlockFigures {
            offset: entry.offset,
            bytes: entry.frame_bytes.into(),
            cells_count: entry.count.into(),
            first_row: Bytes::copy_from_slice(block.first_row()),
            last_row: Bytes::copy_from_slice(block.last_row()),
        }
    }
}

impl Sstable {
    /// The data blocks as the index has them.
    ///
    /// # Errors
    /// `Corrupt` and `Io`, of the index.
    pub(crate) fn block_figures(&self) -> Result<Vec<BlockFigures>> {
        let mut figures = Vec::new();
        for leaf in 0..self.leaves_count() {
            figures.extend(self.blocks_of_leaf(leaf)?.map(|block| BlockFigures::of(&block)));
        }
        Ok(figures)
    }
}
