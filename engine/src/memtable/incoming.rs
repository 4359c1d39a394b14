//! Rows and cells on their way into a memtable.

use std::ops::Range;

use basalt_store::{RowHandle, SeqNo, Timestamp};

use super::entry::Inline;
use crate::id::FamilyId;
use crate::mutation::LoggedCell;

/// This many rows are looked up together, before the first of them is changed.
pub(super) const ROWS_AT_ONCE: usize = 32;

/// A row to insert.
#[derive(Debug)]
pub(crate) struct MemRow<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) handle: Option<RowHandle>,
    pub(crate) sequence: SeqNo,
    pub(crate) cells: &'a [LoggedCell<'a>],
}

/// A small cell of a row that has a handle.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InlineCell {
    pub(crate) handle: RowHandle,
    /// The place of its row in the change.
    pub(crate) row: u32,
    pub(crate) inline: Inline,
}

/// A row of one small cell, with what its key is among the bytes of the keys of many.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SmallRow {
    key_start: u32,
    key_bytes: u32,
    pub(super) family: FamilyId,
    pub(super) inline: Inline,
    pub(super) timestamp: Timestamp,
    pub(super) sequence: SeqNo,
}

impl SmallRow {
    /// `None` for a cell that is no small value, and where the key begins too far behind.
    #[inline]
    pub(crate) fn of(key: Range<usize>, sequence: SeqNo, cell: &LoggedCell<'_>) -> Option<SmallRow> {
        Some(SmallRow {
            key_start: u32::try_from(key.start).ok()?,
            key_bytes: u32::try_from(key.len()).ok()?,
            family: cell.family,
            inline: Inline::of(cell.kind, cell.qualifier, cell.value).filter(|_| !cell.kind.is_tombstone())?,
            timestamp: cell.timestamp,
            sequence,
        })
    }

    /// Its key.
    #[inline]
    pub(super) fn key<'k>(&self, keys: &'k [u8]) -> &'k [u8] {
        let start = self.key_start as usize;
        keys.get(start..start + self.key_bytes as usize).unwrap_or_default()
    }
}

/// Small cells of a change.
#[derive(Debug)]
pub(crate) struct InlineCells<'a> {
    pub(crate) family: FamilyId,
    /// Their time, and the number of the change's first row.
    pub(crate) stamp: (Timestamp, u64),
    /// Rows ascend.
    pub(crate) cells: &'a [InlineCell],
}
