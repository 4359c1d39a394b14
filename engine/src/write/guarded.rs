//! Changes that read before they write: those that constraints and triggers are asked about, and tombstones over the newest version.

use basalt_store::{CellKind, CellMutation, Guards, MutationBatch, RowChange, RowMutation, Timestamp};
use bytes::Bytes;

use super::resolved::{Resolved, family_ids};
use super::unsynced::Column;
use crate::core::Core;
use crate::table::{Shape, Table};

impl Core {
    /// A row's changes, held against the table's constraints, and what its triggers add, which is kept in `more` and goes into the
    /// same record: nobody locks these rows. The caller owns the row's lock.
    pub(super) fn resolve_guarded<'a>(
        &self,
        table: &Table,
        shape: &Shape,
        (batch, row): (&'a MutationBatch, RowMutation<'a>),
        stamp: Timestamp,
        more: &'a mut MutationBatch,
    ) -> basalt_store::Result<Resolved<'a>> {
        self.run_guards(table, shape, row, stamp, more)?;
        let mut resolved = Resolved::default();
        self.resolve_row(row, &family_ids(shape, batch), stamp, &mut resolved)?;
        self.resolve_newest(table, shape, row, &mut resolved)?;
        let families = family_ids(shape, more);
        more.rows().try_for_each(|row| self.resolve_row(row, &families, stamp, &mut resolved))?;
        Ok(resolved)
    }

    fn run_guards(
        &self,
        table: &Table,
        shape: &Shape,
        row: RowMutation<'_>,
        stamp: Timestamp,
        more: &mut MutationBatch,
    ) -> basalt_store::Result<()> {
        let guards = Guards::of(&shape.descriptor, &self.triggers)?;
        if guards.is_empty() {
            return Ok(());
        }
        let newest = |family: &[u8], qualifier: &[u8]| {
            let found = self.read_versions(table, shape, &Column { row: row.key(), family, qualifier }, 1)?;
            let cell = found.row(0).and_then(|row| row.cells().next());
            Ok(cell.map(|cell| (cell.timestamp, Bytes::copy_from_slice(cell.value))))
        };
        guards.before(&RowChange::new(row, stamp, &newest), more)
    }

    /// Gives each tombstone over "the newest version" the time of the version it is over (rule S-DEL-2).
    fn resolve_newest(
        &self,
        table: &Table,
        shape: &Shape,
        row: RowMutation<'_>,
        resolved: &mut Resolved<'_>,
    ) -> basalt_store::Result<()> {
        for (index, cell) in row.cells().enumerate() {
            if !is_of_newest(cell.kind, cell.timestamp) {
                continue;
            }
            let same = |other: &CellMutation<'_>| {
                is_of_newest(other.kind, other.timestamp)
                    && (other.family, other.qualifier) == (cell.family, cell.qualifier)
            };
            let nth = row.cells().take(index).filter(same).count();
            let column = Column { row: row.key(), family: cell.family, qualifier: cell.qualifier };
            let versions = u32::try_from(nth + 1).unwrap_or(u32::MAX);
            let found = self.read_versions(table, shape, &column, versions)?;
            let newest = found.row(0).and_then(|row| row.cells().nth(nth)).map(|cell| cell.timestamp);
            let one_version = shape.descriptor.family(cell.family).is_some_and(|(_, family)| family.versions == 1);
            if let (Some(logged), Some(newest)) = (resolved.cells.get_mut(index), newest) {
                self.note_tombstone(newest);
                logged.timestamp = newest;
                // One version kept means one version there ever was: no older one may come back (U-10). Where there is none, puts
                // of an older time that come later are to be seen.
                logged.kind = if one_version { CellKind::DeleteColumn } else { CellKind::Delete };
            }
        }
        Ok(())
    }
}

/// Whether a change is a tombstone over whatever version is the newest.
pub(super) fn is_of_newest(kind: CellKind, time: Option<Timestamp>) -> bool {
    kind == CellKind::Delete && time.is_none()
}
