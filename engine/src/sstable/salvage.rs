//! What can be had of a file: its blocks for an inspection, its undamaged cells for a repair.

use std::cmp::Ordering;

use basalt_store::CellRef;
use bytes::Bytes;

use crate::error::{Error, Result};
use crate::inspect::BlockFigures;

use super::Sstable;
use super::block::{Block, BlockCursor, Next};
use super::writer::{LastCell, check_bounds};

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

    /// Hands over every cell of the blocks that prove whole, in cell order; answers the blocks that do not, with why. A block proves
    /// whole whose checksum fits, that reads to its end, and whose cells are in order, behind those handed over so far, within the rows
    /// that the index tells.
    ///
    /// Cost: the whole file is read, and decoded twice.
    ///
    /// # Errors
    /// What `take` answers; I/O errors.
    pub(crate) fn salvage(
        &self,
        take: &mut dyn FnMut(&CellRef<'_>) -> Result<()>,
    ) -> Result<Vec<(BlockFigures, Error)>> {
        let mut lost = Vec::new();
        let mut last = LastCell::default();
        for block in 0..self.index.len() {
            match self.prove(block, &last) {
                Ok((read, its_last)) => {
                    self.walk_block(block, read, take)?;
                    last = its_last;
                }
                Err(error @ Error::Corrupt { .. }) => lost.push((self.figures_of(block), error)),
                Err(error) => return Err(error),
            }
        }
        Ok(lost)
    }

    /// Reads a block and proves every cell of it, of which the first comes behind `last`; answers its last one too.
    fn prove(&self, block: usize, last: &LastCell) -> Result<(Block, LastCell)> {
        let read = self.read_block_from_file(block)?;
        let place = self.place(self.index.entry(block).offset);
        let rows = self.index.first_row(block)..=self.index.last_row(block);
        let mut last = last.clone();
        self.walk_block(block, read.clone(), &mut |cell| {
            let (row, column, version) = last.order(cell);
            let in_order = row.then(column).then(version) == Ordering::Less;
            place.require("cell order", 1, in_order.into())?;
            place.require("keys in the block index", 1, rows.contains(&cell.row).into())?;
            // What cannot be written again is none of ours.
            place.require("bounds of a cell", 1, check_bounds(cell).is_ok().into())?;
            let new_row = row != Ordering::Equal;
            last.set(cell, new_row, new_row || column != Ordering::Equal);
            Ok(())
        })?;
        Ok((read, last))
    }

    /// Hands over every cell of a block.
    ///
    /// # Errors
    /// `Corrupt` where it does not read; what `take` answers.
    fn walk_block(&self, block: usize, read: Block, take: &mut dyn FnMut(&CellRef<'_>) -> Result<()>) -> Result<()> {
        let malformed = |malformed| self.malformed(block, malformed);
        let mut cursor = BlockCursor::at_row(read, 0, Vec::new()).map_err(malformed)?;
        loop {
            take(&cursor.cell(&self.metadata.family))?;
            if cursor.next().map_err(malformed)? == Next::End {
                return Ok(());
            }
        }
    }
}
