//! What can be had of a file: its blocks for an inspection, its undamaged cells for a repair.

use std::cmp::Ordering;
use std::ops::RangeInclusive;

use basalt_store::CellRef;
use bytes::Bytes;

use crate::error::{Error, Result};
use crate::inspect::BlockFigures;
use crate::repair::Loss;

use super::Sstable;
use super::block::{Block, BlockCursor, Next};
use super::leaves::BlockAt;
use super::metadata::Metadata;
use super::place::Place;
use super::remains::Remains;
use super::writer::{LastCell, check_bounds};

impl Sstable {
    /// The data blocks as the index has them.
    ///
    /// # Errors
    /// `Corrupt` and `Io`, of the index.
    pub(crate) fn block_figures(&self) -> Result<Vec<BlockFigures>> {
        let mut figures = Vec::new();
        for leaf in 0..self.leaves_count() {
            figures.extend(self.blocks_of_leaf(leaf)?.map(|block| figures_of(&block)));
        }
        Ok(figures)
    }

    /// Hands over every cell of the blocks that prove whole, in cell order; answers what is lost: the blocks that do not, also those that the
    /// disk does not give. A block proves whole whose checksum fits, that reads to its end, and whose cells are in order, behind those handed
    /// over so far, within the rows that the index tells. Where a leaf of that does not read, its blocks are found by their frames.
    ///
    /// Cost: the whole file is read, and decoded twice.
    ///
    /// # Errors
    /// `UnknownCodec` for a block of a later program; what `take` answers.
    pub(crate) fn salvage(&self, take: &mut dyn FnMut(&CellRef<'_>) -> Result<()>) -> Result<Vec<Loss>> {
        let (mut lost, mut last, mut taken) = (Vec::new(), LastCell::default(), 0);
        for leaf in 0..self.leaves_count() {
            let Ok(blocks) = self.blocks_of_leaf(leaf) else {
                let (range, rows) = self.told_of_leaf(leaf);
                let mut gaps = Remains::within(self, range).take_cells((&mut last, &mut taken), take)?;
                for gap in &mut gaps {
                    gap.rows = rows.map(Bytes::copy_from_slice).into();
                }
                lost.append(&mut gaps);
                continue;
            };
            for block in blocks {
                match self.prove(&block, &last) {
                    Ok((read, its_last)) => {
                        taken += u64::from(read.cells_count());
                        walk_cells(&self.place(block.entry().offset), read, &self.metadata.family, take)?;
                        last = its_last;
                    }
                    Err(damage) if damage.is_unreadable() => lost.push(loss_of(damage, &block)),
                    Err(error) => return Err(error),
                }
            }
        }
        tell_missing(&mut lost, &self.metadata, taken);
        Ok(lost)
    }

    /// Reads a block and proves every cell of it, of which the first comes behind `last`; answers its last one too.
    fn prove(&self, block: &BlockAt, last: &LastCell) -> Result<(Block, LastCell)> {
        let read = self.read_block_from_file(block.entry())?;
        let place = self.place(block.entry().offset);
        let rows = block.first_row()..=block.last_row();
        let last = prove_cells(&place, &read, (&self.metadata.family, last), Some(&rows))?;
        Ok((read, last))
    }
}

fn loss_of(damage: Error, block: &BlockAt) -> Loss {
    let block = figures_of(block);
    Loss {
        cells_count: Some(block.cells_count),
        rows: (block.first_row, block.last_row),
        ..Loss::of(damage, block.offset, block.bytes)
    }
}

/// What of a file does not prove held no cell where none is missing, and all that are where it is one place.
pub(super) fn tell_missing(lost: &mut Vec<Loss>, metadata: &Metadata, taken: u64) {
    let told: u64 = lost.iter().filter_map(|loss| loss.cells_count).sum();
    let missing = metadata.cells_count.checked_sub(taken + told);
    if missing == Some(0) {
        lost.retain(|loss| loss.cells_count.is_some());
    }
    let mut untold = lost.iter_mut().filter(|loss| loss.cells_count.is_none());
    if let (Some(one), None) = (untold.next(), untold.next()) {
        one.cells_count = missing;
    }
}

fn figures_of(block: &BlockAt) -> BlockFigures {
    let entry = block.entry();
    BlockFigures {
        offset: entry.offset,
        bytes: entry.frame_bytes.into(),
        cells_count: entry.count.into(),
        first_row: Bytes::copy_from_slice(block.first_row()),
        last_row: Bytes::copy_from_slice(block.last_row()),
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
    let malformed = |malformed| place.malformed(malformed);
    let mut cursor = BlockCursor::at_row(block, 0, Vec::new()).map_err(malformed)?;
    loop {
        take(&cursor.cell(family))?;
        if cursor.next().map_err(malformed)? == Next::End {
            return Ok(());
        }
    }
}
