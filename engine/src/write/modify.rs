//! Read-modify-writes: increment, append, check-and-mutate.

use std::sync::Arc;

use basalt_store::{Append, CheckAndMutate, Durability, Increment, MutationBatch, Pending, TimeRange, Timestamp};
use bytes::Bytes;

use super::answers::tell;
use super::unsynced::Column;
use crate::core::Core;
use crate::error::Result;
use crate::region::Region;
use crate::table::{Shape, Table};
use crate::wal::Answer;

/// A cell as found.
struct Found {
    timestamp: Timestamp,
    value: Bytes,
}

impl Core {
    /// Adds to a counter.
    pub(crate) fn increment(&self, table: &Table, increment: &Increment) -> Pending<i64> {
        let Increment { row, family, qualifier, durability, .. } = increment;
        let column = Column { row, family, qualifier };
        self.change_cell(table, &column, *durability, |before| {
            let after = increment.applied_to(before)?;
            Ok((Bytes::copy_from_slice(&after.to_be_bytes()), after))
        })
    }

    /// Appends to a value.
    pub(crate) fn append(&self, table: &Table, append: &Append) -> Pending<Bytes> {
        let Append { row, family, qualifier, durability, .. } = append;
        let column = Column { row, family, qualifier };
        self.change_cell(table, &column, *durability, |before| {
            let after = append.applied_to(before);
            Ok((after.clone(), after))
        })
    }

    /// Puts a value that follows from the newest one.
    fn change_cell<T: Send + 'static>(
        &self,
        table: &Table,
        column: &Column<'_>,
        durability: Durability,
        change: impl FnOnce(Option<&[u8]>) -> basalt_store::Result<(Bytes, T)>,
    ) -> Pending<T> {
        let (completer, pending) = Pending::channel();
        self.apply_gathered();
        let _row = table.row_locks().own(column.row);
        let changed = self.check_batch(&MutationBatch::default()).and_then(|()| {
            let shape = table.shape();
            let found = self.newest(table, &shape, column)?;
            let (value, answer) = change(found.as_ref().map(|cell| &cell.value[..]))?;
            let mut batch = MutationBatch::new(durability);
            batch.row(column.row)?.put(column.family, column.qualifier, None, &value)?;
            let changing = self.begin_change();
            let stamp = self.stamp_after(table, &shape, column, found.as_ref())?;
            Ok((shape, batch, (changing, stamp), answer))
        });
        match changed {
            Ok((shape, batch, (_changing, stamp), value)) => {
                self.commit_row(table, &shape, &batch, (stamp, None), tell(completer, value));
            }
            Err(error) => completer.complete(Err(error.into())),
        }
        pending
    }

    /// Applies a row's changes if a cell is as expected.
    pub(crate) fn check_and_mutate(&self, table: &Table, check: &CheckAndMutate) -> Pending<bool> {
        let (completer, pending) = Pending::channel();
        self.apply_gathered();
        let _row = table.row_locks().own(&check.row);
        let has_tombstones = check.mutation.has_tombstones();
        loop {
            let seen = table.regions().of(&check.row).map(|region| region.view());
            let (shape, found) = match self.check(table, check) {
                Ok(Some(checked)) => checked,
                // What the answer rests on may not be synced yet.
                Ok(None) if check.mutation.durability() >= Durability::Os => {
                    self.wal.sync(tell(completer, false));
                    return pending;
                }
                Ok(None) => {
                    completer.complete(Ok(false));
                    return pending;
                }
                Err(error) => {
                    completer.complete(Err(error.into()));
                    return pending;
                }
            };
            let _changing = self.begin_change();
            let region = table.regions().of(&check.row).filter(|_| has_tombstones).map(Arc::clone);
            let _deletes = region.as_ref().map(|region| region.begin_delete());
            // A file with the folded row may have come since: its column is not the one that was checked, and the tombstones would
            // miss it.
            if region.as_ref().is_some_and(|region| !seen.is_some_and(|seen| seen.has_files_of(&region.view()))) {
                continue;
            }
            let stamp = self.stamp_over(found.as_ref());
            self.commit_row(table, &shape, &check.mutation, (stamp, region.as_ref()), tell(completer, true));
            return pending;
        }
    }

    /// The newest version of the cell, where the changes are to be applied.
    fn check(&self, table: &Table, check: &CheckAndMutate) -> Result<Option<(Arc<Shape>, Option<Found>)>> {
        self.check_batch(&check.mutation)?;
        let row = check.changes()?;
        let shape = table.shape();
        let column = Column { row: row.key(), family: &check.family, qualifier: &check.qualifier };
        let found = self.newest(table, &shape, &column)?;
        let matches = check.holds(found.as_ref().map(|cell| &cell.value[..]));
        Ok(matches.then_some((shape, found)))
    }

    /// Applies the one row of a batch whose lock the caller owns, at a time; the caller may hold the deletes of a region.
    fn commit_row(
        &self,
        table: &Table,
        shape: &Shape,
        batch: &MutationBatch,
        (stamp, held): (Timestamp, Option<&Arc<Region>>),
        answer: Answer,
    ) {
        let Some(row) = batch.rows().next() else { return answer(Ok(())) };
        let mut more = MutationBatch::new(batch.durability());
        match self.resolve_guarded(table, shape, (batch, row), stamp, &mut more) {
            Ok(mut resolved) => {
                resolved.deletes_held = held.map(Arc::clone);
                self.commit(table, &resolved, batch.durability(), stamp, answer);
            }
            Err(error) => answer(Err(error.into())),
        }
    }

    fn newest(&self, table: &Table, shape: &Shape, column: &Column<'_>) -> Result<Option<Found>> {
        let got = self.read_versions(table, shape, column, 1)?;
        let cell = got.row(0).and_then(|row| row.cells().next());
        Ok(cell.map(|cell| Found { timestamp: cell.timestamp, value: Bytes::copy_from_slice(cell.value) }))
    }

    /// A value that follows from a cell must not sort below it, though the clock may say so.
    fn stamp_over(&self, found: Option<&Found>) -> Timestamp {
        let stamp = self.stamp();
        found.map_or(stamp, |cell| stamp.max(cell.timestamp))
    }

    /// As in HBase, an increment or append is a version of its own even within the millisecond of the one before. Otherwise than there,
    /// no tombstone of that millisecond hides it.
    fn stamp_after(
        &self,
        table: &Table,
        shape: &Shape,
        column: &Column<'_>,
        found: Option<&Found>,
    ) -> Result<Timestamp> {
        let stamp = self.stamp();
        let stamp = match found.map(|cell| cell.timestamp) {
            Some(time) if time == stamp => self.follow(time),
            Some(time) => stamp.max(time.after()),
            None => stamp,
        };
        // Fast path: no tombstone is of this millisecond.
        let last = self.last_tombstone();
        if last < stamp {
            return Ok(stamp);
        }
        let times = TimeRange { min: stamp, max: TimeRange::as_of(last).max };
        Ok(self.tombstone_over(table, shape, column, times)?.map_or(stamp, Timestamp::after))
    }
}
