//! What can be had of a file: its blocks for an inspection, its undamaged cells for a repair.

use std::cmp::Ordering;
use std::ops::RangeInclusive;

use basalt_store::CellRef;
use bytes::Bytes;

use crate::error::Result;
use crate::inspect::BlockFigures;
use crate::repair::Loss;

use super::block::{Block, BlockCursor, Next};
use super::format::Place;
use super::writer::{LastCell, check_bounds};
use super::{Sstable, layout_damage};

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

    /// Hands over every cell of the blocks that prove whole, in cell order; answers what is lost: the blocks that do not, also those that the
    /// disk does not give. A block proves whole whose checksum fits, that reads to its end, and whose cells are in order, behind those handed
    /// over so far, within the rows that the index tells.
    ///
    /// Cost: the whole file is read, and decoded twice.
    ///
    /// # Errors
    /// What `take` answers.
    pub(crate) fn salvage(&self, take: &mut dyn FnMut(&CellRef<'_>) -> Result<()>) -> Result<Vec<Loss>> {
        let mut lost = Vec::new();
        let mut last = LastCell::default();
        for block in 0..self.index.len() {
            match self.prove(block, &last) {
                Ok((read, its_last)) => {
                    walk_cells(&self.place(self.index.entry(block).offset), read, &self.metadata.family, take)?;
                    last = its_last;
                }
                Err(damage) if damage.is_unreadable() => {
                    let block = self.figures_of(block);
                    lost.push(Loss {
                        cells_count: Some(block.cells_count),
                        rows: (block.first_row, block.last_row),
                        ..Loss::of(damage, block.offset, block.bytes)
                    });
                }
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
        let last = prove_cells(&place, &read, (&self.metadata.family, last), Some(&rows))?;
        Ok((read, last))
    }
}

/// Proves every cell of a block, of which the first comes behind `last`, within `rows` where these are known; answers its last one.
///
/// # Errors
/// `Corrupt`.
pub(super) fn prove_cells(
    place: &Place<'_>,
    block: &Block,
    (family, last): (&[u8], &LastCell),
    rows: Option<&RangeInclusive<&[u8]>>,
) -> Result<LastCell> {
    let mut last = last.clone();
    walk_cells(place, block.clone(), family, &mut |cell| {
        let (row, column, version) = last.order(cell);
        let in_order = row.then(column).then(version) == Ordering::Less;
        place.require("cell order", 1, in_order.into())?;
        let is_within = rows.is_none_or(|rows| rows.contains(&cell.row));
        place.require("keys in the block index", 1, is_within.into())?;
        // What cannot be written again is none of ours.
        place.require("bounds of a cell", 1, check_bounds(cell).is_ok().into())?;
        let new_row = row != Ordering::Equal;
        last.set(cell, new_row, new_row || column != Ordering::Equal);
        Ok(())
    })?;
    Ok(last)
}

/// Hands over every cell of a block, as one of a family.
///
/// # Errors
/// `Corrupt` where it does not read; what `take` answers.
pub(super) fn walk_cells(
    place: &Place<'_>,
    block: Block,
    family: &[u8],
    take: &mut dyn FnMut(&CellRef<'_>) -> Result<()>,
) -> Result<()> {
    let malformed = |malformed| layout_damage(place, malformed);
    let mut cursor = BlockCursor::at_row(block, 0, Vec::new()).map_err(malformed)?;
    loop {
        take(&cursor.cell(family))?;
        if cursor.next().map_err(malformed)? == Next::End {
            return Ok(());
        }
    }
}
