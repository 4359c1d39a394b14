//! The cells of one family of a memtable: its rows, and the tail of cells that are not in theirs yet.

use basalt_store::{SeqNo, Timestamp};

use super::arena::Arena;
use super::entry::{Entry, NewEntry};
use super::incoming::{InlineCell, InlineCells, MemRow, ROWS_AT_ONCE, SmallRow};
use super::rows::{ROW_BYTES, Rows};
use super::stamps::{STAMP_BYTES, Stamped};
use crate::id::FamilyId;
use crate::mutation::LoggedCell;

/// Cells of a tail, at most: some 100 KiB. Where a family has fewer rows than that, several of a row's cells go to it together.
pub(super) const TAIL_CELLS_MAX: usize = 4096;

/// The cells of one family.
#[derive(Debug)]
pub(super) struct FamilyCells {
    pub(super) id: FamilyId,
    pub(super) rows: Rows,
    pub(super) arena: Arena,
    /// Cells that are not in their rows yet, in the order in which they came, with the numbers of these rows.
    pub(super) tail: Vec<(u32, Entry)>,
    /// The row and the time of each tombstone.
    pub(super) deleted: Vec<(u32, Timestamp)>,
}

impl FamilyCells {
    /// An empty one.
    pub(super) fn new(id: FamilyId) -> FamilyCells {
        let (rows, arena) = (Rows::default(), Arena::default());
        FamilyCells { id, rows, arena, tail: Vec::new(), deleted: Vec::new() }
    }

    /// Inserts a row's cells of this family; answers the bytes added. `found` is the row's number, where a look-up gave one.
    pub(super) fn insert(&mut self, row: &MemRow<'_>, found: Option<u32>, cells: &[LoggedCell<'_>]) -> u64 {
        let MemRow { key, handle, sequence, .. } = *row;
        let FamilyCells { rows, arena, tail, deleted, .. } = self;
        let (mut added, mut at) = (0, found.or_else(|| rows.get(key, handle, arena)));
        let stamps = arena.stamps_count();
        for cell in cells {
            let (new, kept) = NewEntry::keep(cell, sequence, arena);
            added += kept as u64;
            if let Some(at) = at {
                added += size_of::<Entry>() as u64;
                wait((at, new.entry()), tail, rows, arena);
            } else {
                added += ROW_BYTES + key.len() as u64;
                at = Some(rows.insert((key, handle), new, arena));
            }
            if let Some(at) = at.filter(|_| cell.kind.is_tombstone()) {
                deleted.push((at, cell.timestamp));
                added += size_of::<(u32, Timestamp)>() as u64;
            }
        }
        added += u64::from(arena.stamps_count() - stamps) * STAMP_BYTES;
        added
    }

    /// The same with small cells.
    pub(super) fn insert_inline<'k>(&mut self, cells: &InlineCells<'_>, key_of: impl Fn(u32) -> &'k [u8]) -> u64 {
        let FamilyCells { rows, arena, tail, .. } = self;
        let ((timestamp, first), stamps, mut added) = (cells.stamp, arena.stamps_count(), 0);
        let mut before: Option<(u32, Stamped)> = None;
        for InlineCell { handle, row, inline } in cells.cells {
            // Fast path: rows that follow share a stamp, as far as it reaches.
            let shared = before.and_then(|(before, (stamp, behind))| {
                let behind = u16::try_from(row - before).ok().and_then(|more| behind.checked_add(more))?;
                Some((stamp, behind))
            });
            let stamped = shared.unwrap_or_else(|| arena.stamp(timestamp, SeqNo(first + u64::from(*row))));
            before = Some((*row, stamped));
            let entry = inline.entry(stamped);
            let at = if let Some(at) = rows.look_up_handle(*handle) {
                debug_assert!(
                    rows.row(at, arena).is_some_and(|(key, _)| key == key_of(*row)),
                    "BUG: a handle of two keys"
                );
                at
            } else {
                let key = key_of(*row);
                if let Some(at) = rows.get_by_key(key, Some(*handle), arena) {
                    at
                } else {
                    added += ROW_BYTES + key.len() as u64;
                    rows.insert((key, Some(*handle)), entry.again(), arena);
                    continue;
                }
            };
            added += size_of::<Entry>() as u64;
            wait((at, entry), tail, rows, arena);
        }
        added += u64::from(arena.stamps_count() - stamps) * STAMP_BYTES;
        added
    }

    /// The same with rows of one small cell, [`ROWS_AT_ONCE`] at most.
    pub(super) fn insert_small(&mut self, small: &[SmallRow], keys: &[u8]) -> u64 {
        let FamilyCells { rows, arena, tail, .. } = self;
        let (mut places, stamps, mut added) = ([None; ROWS_AT_ONCE], arena.stamps_count(), 0);
        if let Some(found) = places.get_mut(..small.len()) {
            rows.look_up_keys(small, |row| row.key(keys), found, arena);
        }
        let mut before: Option<(&SmallRow, Stamped)> = None;
        for (row, found) in small.iter().zip(places) {
            // Fast path: as in `insert_inline`.
            let shared = before.filter(|(before, _)| before.timestamp == row.timestamp);
            let shared = shared.and_then(|(before, (stamp, behind))| {
                let more = u16::try_from(row.sequence.0.checked_sub(before.sequence.0)?).ok()?;
                Some((stamp, behind.checked_add(more)?))
            });
            let stamped = shared.unwrap_or_else(|| arena.stamp(row.timestamp, row.sequence));
            before = Some((row, stamped));
            let entry = row.inline.entry(stamped);
            // One that is not found may have come with these.
            if let Some(at) = found.or_else(|| rows.get(row.key(keys), None, arena)) {
                added += size_of::<Entry>() as u64;
                wait((at, entry), tail, rows, arena);
            } else {
                let key = row.key(keys);
                added += ROW_BYTES + key.len() as u64;
                rows.insert((key, None), entry.again(), arena);
            }
        }
        added += u64::from(arena.stamps_count() - stamps) * STAMP_BYTES;
        added
    }

    /// Puts the cells of the tail into their rows.
    pub(super) fn settle(&mut self) {
        settle(&mut self.tail, &mut self.rows, &self.arena);
    }
}

/// Puts a cell at the end of a tail; a full one is settled at once, so that a large change makes no longer one.
#[inline]
fn wait(cell: (u32, Entry), tail: &mut Vec<(u32, Entry)>, rows: &mut Rows, arena: &Arena) {
    tail.push(cell);
    if tail.len() == TAIL_CELLS_MAX {
        settle(tail, rows, arena);
    }
}

#[inline(never)]
fn settle(tail: &mut Vec<(u32, Entry)>, rows: &mut Rows, arena: &Arena) {
    rows.put(tail, arena);
    tail.clear();
}
