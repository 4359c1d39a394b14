//! The tombstones of one row and family that have been met so far, and what they mask.
//!
//! A family's tombstones hold for all of the row; a column's are forgotten when the column is left. Cells come newest
//! first, so of a column's tombstones one of each kind says it all.

use crate::{CellKind, CellRef, Timestamp};

/// What tombstones say of a put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mask {
    /// Nothing.
    None,
    /// It is deleted.
    ThisVersion,
    /// It is deleted, and so are all older ones of its column.
    AndAllOlder,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Tombstones {
    /// Newest tombstone over the family.
    family: Option<Timestamp>,
    /// Exact times deleted over the family, newest first.
    family_versions: Vec<Timestamp>,
    /// Newest tombstone over the column.
    column: Option<Timestamp>,
    /// The exact time that the column's last version tombstone deletes.
    version: Option<Timestamp>,
}

impl Tombstones {
    /// Forgets a row.
    pub(super) fn clear(&mut self) {
        self.family = None;
        self.family_versions.clear();
        self.leave_column();
    }

    /// Whether none was noted.
    pub(super) fn are_none(&self) -> bool {
        let Self { family, family_versions, column, version } = self;
        family.is_none() && family_versions.is_empty() && column.is_none() && version.is_none()
    }

    /// Forgets a column.
    pub(super) fn leave_column(&mut self) {
        self.column = None;
        self.version = None;
    }

    /// Notes a tombstone of the column the walk is in, or of the family.
    pub(super) fn add(&mut self, cell: &CellRef<'_>) {
        match cell.kind {
            CellKind::Put => debug_assert!(false, "BUG: a put is no tombstone"),
            CellKind::Delete => self.version = Some(cell.timestamp),
            CellKind::DeleteColumn => self.column = self.column.max(Some(cell.timestamp)),
            CellKind::DeleteFamily => self.family = self.family.max(Some(cell.timestamp)),
            CellKind::DeleteFamilyVersion => {
                if self.family_versions.last() != Some(&cell.timestamp) {
                    self.family_versions.push(cell.timestamp);
                }
            }
        }
    }

    /// What they say of a put of this time in the column the walk is in.
    pub(super) fn mask(&self, time: Timestamp) -> Mask {
        if self.family >= Some(time) || self.column >= Some(time) {
            return Mask::AndAllOlder;
        }
        let exact =
            self.version == Some(time) || self.family_versions.binary_search_by(|deleted| time.cmp(deleted)).is_ok();
        if exact { Mask::ThisVersion } else { Mask::None }
    }
}
