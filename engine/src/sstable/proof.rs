//! Cells of a block that may be damaged, each proved before it is handed on.

use std::cmp::Ordering;
use std::ops::RangeInclusive;

use basalt_store::CellRef;

use super::block::{Block, BlockCursor, Next};
use super::metadata::Metadata;
use super::place::Place;
use super::writer::{LastCell, check_bounds};
use crate::error::Result;
use crate::loss::Loss;

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
