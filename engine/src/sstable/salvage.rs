//! What can be had of a file that opens: its undamaged cells, for a repair.

use basalt_store::CellRef;
use bytes::Bytes;

use crate::error::{Error, Result};
use crate::loss::Loss;

use super::Sstable;
use super::block::Block;
use super::figures::BlockFigures;
use super::leaves::BlockAt;
use super::proof::{prove_cells, tell_missing, walk_cells};
use super::remains::Remains;
use super::writer::LastCell;

impl Sstable {
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
    let block = BlockFigures::of(block);
    Loss {
        cells_count: Some(block.cells_count),
        rows: (block.first_row, block.last_row),
        ..Loss::of(damage, block.offset, block.bytes)
    }
}
