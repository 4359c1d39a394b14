//! What can be had of a file: its blocks for an inspection, its undamaged cells for a repair.

use basalt_store::CellRef;
use bytes::Bytes;

use crate::error::{Error, Result};
use crate::inspect::BlockFigures;

use super::Sstable;
use super::block::{BlockCursor, Next};

impl Sstable {
    /// The data blocks as the index has them. No I/O.
    pub(crate) fn block_figures(&self) -> Vec<BlockFigures> {
        (0..self.index.len()).map(|block| self.figures_of(block)).collect()
    }

    fn figures_of(&self, block: usize) -> BlockFigures {
        let entry = self.index.entry(block);
        BlockFigures {
            offset: entry.offset,
            bytes: entry.frame_bytes.into(),
            cells_count: entry.cells_count.into(),
            first_row: Bytes::copy_from_slice(self.index.first_row(block)),
            last_row: Bytes::copy_from_slice(self.index.last_row(block)),
        }
    }

    /// Hands over every cell of the blocks that prove whole, in order; answers the blocks that do not, with why.
    ///
    /// # Errors
    /// What `take` answers; I/O errors.
    pub(crate) fn salvage(
        &self,
        take: &mut dyn FnMut(&CellRef<'_>) -> Result<()>,
    ) -> Result<Vec<(BlockFigures, Error)>> {
        let mut lost = Vec::new();
        for block in 0..self.index.len() {
            let read = match self.read_block_from_file(block) {
                Ok(read) => read,
                Err(error @ Error::Corrupt { .. }) => {
                    lost.push((self.figures_of(block), error));
                    continue;
                }
                Err(error) => return Err(error),
            };
            let malformed = |malformed| self.malformed(block, malformed);
            let mut cursor = BlockCursor::at_row(read, 0, Vec::new()).map_err(malformed)?;
            loop {
                take(&cursor.cell(&self.metadata.family))?;
                if cursor.next().map_err(malformed)? == Next::End {
                    break;
                }
            }
        }
        Ok(lost)
    }
}
