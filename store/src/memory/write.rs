//! Changes: validated and resolved first, made after, under the table's one lock, so that a refused row leaves no trace.

use std::sync::{Arc, RwLockWriteGuard};

use bytes::Bytes;

use super::counters::Counters;
use super::lock::write;
use super::rows::{self, CellData, CellKey, FamilyCells};
use super::table::{State, Table};
use crate::{
    Append, Applied, CellKind, CellMutation, CheckAndMutate, Columns, Durability, Error, Get, Guards, Increment,
    MutationBatch, Result, RowBatch, RowBatchBuilder, RowChange, RowFailure, RowMutation, RowReader, RowVerdict,
    Timestamp, Trigger,
};

/// One batch or one read-modify-write under way; it holds the table's lock.
pub(super) struct Writer<'a> {
    table: &'a Table,
    state: RwLockWriteGuard<'a, State>,
    counters: &'a Counters,
    /// What the clock says: TTL is reckoned by it.
    now: Timestamp,
    /// What tombstones without a time get.
    begun: Timestamp,
    /// What values without a time get: never below `begun`.
    stamp: Timestamp,
    settings: Settings<'a>,
}

/// What the store is set to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings<'a> {
    pub(super) value_bytes_max: usize,
    pub(super) triggers: &'a [Arc<dyn Trigger>],
}

/// A cell as found.
struct Found {
    timestamp: Timestamp,
    value: Bytes,
}

impl<'a> Writer<'a> {
    pub(super) fn begin(
        table: &'a Table,
        counters: &'a Counters,
        now: Timestamp,
        settings: Settings<'a>,
    ) -> Result<Self> {
        let state = write(&table.state);
        state.serves.check_write(&state.descriptor)?;
        let begun = counters.stamp(now);
        Ok(Self { table, state, counters, now, begun, stamp: begun, settings })
    }

    pub(super) fn apply(mut self, batch: &MutationBatch) -> Applied {
        let mut applied = Applied::default();
        for (index, row) in batch.rows().enumerate() {
            if let Err(error) = self.apply_row(row) {
                applied.failed.push(RowFailure { row: index, error });
            }
        }
        self.pass(batch);
        applied
    }

    pub(super) fn increment(mut self, increment: &Increment) -> Result<i64> {
        let Increment { row, family, qualifier, .. } = increment;
        let found = self.newest(row, family, qualifier)?;
        let after = increment.applied_to(found.as_ref().map(|cell| &cell.value[..]))?;
        self.stamp_after(row, family, qualifier, found.as_ref());
        self.put(row, family, qualifier, &after.to_be_bytes())?;
        Ok(after)
    }

    pub(super) fn append(mut self, append: &Append) -> Result<Bytes> {
        let Append { row, family, qualifier, .. } = append;
        let found = self.newest(row, family, qualifier)?;
        let after = append.applied_to(found.as_ref().map(|cell| &cell.value[..]));
        self.stamp_after(row, family, qualifier, found.as_ref());
        self.put(row, family, qualifier, &after)?;
        Ok(after)
    }

    pub(super) fn check_and_mutate(mut self, check: &CheckAndMutate) -> Result<bool> {
        let row = check.changes()?;
        let found = self.newest(&check.row, &check.family, &check.qualifier)?;
        let matches = check.holds(found.as_ref().map(|cell| &cell.value[..]));
        if matches {
            self.stamp_over(found.as_ref());
            self.apply_row(row)?;
            self.pass(&check.mutation);
        }
        Ok(matches)
    }

    /// Lets no change of later have the time of a tombstone, however long the clock stands behind it.
    fn pass(&self, done: &MutationBatch) {
        if done.has_tombstones() {
            self.counters.pass(self.begun, self.now);
        }
    }

    /// A value that follows from a cell must not sort below it, though the clock may say so.
    fn stamp_over(&mut self, found: Option<&Found>) {
        self.stamp = found.map_or(self.stamp, |cell| self.stamp.max(cell.timestamp));
    }

    /// As in HBase, an increment or append is a version of its own even within the millisecond of the one before. Otherwise than there,
    /// no tombstone of that millisecond hides it.
    fn stamp_after(&mut self, row: &[u8], family: &[u8], qualifier: &[u8], found: Option<&Found>) {
        let stamp = found.map_or(self.stamp, |cell| self.stamp.max(cell.timestamp.after()));
        let times = stamp..=self.counters.last_tombstone();
        let cells = self.state.rows.get(row).and_then(|cells| cells.get(family));
        let over = cells.and_then(|cells| cells.tombstone_over(qualifier, &times));
        self.stamp = over.map_or(stamp, Timestamp::after);
    }

    fn put(&mut self, row: &[u8], family: &[u8], qualifier: &[u8], value: &[u8]) -> Result<()> {
        let mut batch = MutationBatch::new(Durability::Skip);
        batch.row(row)?.put(family, qualifier, None, value)?;
        batch.rows().try_for_each(|row| self.apply_row(row))
    }

    fn apply_row(&mut self, row: RowMutation<'_>) -> Result<()> {
        let mut more = MutationBatch::new(Durability::Skip);
        let guards = Guards::of(&self.state.descriptor, self.settings.triggers)?;
        if !guards.is_empty() {
            let newest = |family: &[u8], qualifier: &[u8]| {
                Ok(self.newest(row.key(), family, qualifier)?.map(|cell| (cell.timestamp, cell.value)))
            };
            guards.before(&RowChange::new(row, self.stamp, &newest), &mut more)?;
        }
        let changes = self.resolve(row)?;
        let added = more.rows().map(|row| Ok((row, self.resolve(row)?))).collect::<Result<Vec<_>>>()?;
        self.store_row(row.key(), changes);
        for (row, changes) in added {
            self.store_row(row.key(), changes);
        }
        Ok(())
    }

    fn store_row(&mut self, row: &[u8], changes: Vec<(Bytes, CellKey, CellKind, Bytes)>) {
        if changes.is_empty() {
            return;
        }
        if changes.iter().any(|(.., kind, _)| kind.is_tombstone()) {
            self.counters.note_tombstone(self.begun);
        }
        let seq = self.counters.next_seq();
        self.table.count_write(row, changes.len());
        let State { descriptor, rows, .. } = &mut *self.state;
        let cells = rows.entry(Bytes::copy_from_slice(row)).or_default();
        for (name, key, kind, value) in changes {
            let tells_apart = descriptor.family(&name).is_some_and(|(_, family)| family.new_version_behavior);
            let key = if tells_apart { key.written_as(seq) } else { key };
            let family: &mut FamilyCells = cells.entry(name).or_default();
            family.insert(key, CellData { kind, seq, value });
        }
    }

    /// The row's changes as cells, or the first reason to refuse them all.
    fn resolve(&self, row: RowMutation<'_>) -> Result<Vec<(Bytes, CellKey, CellKind, Bytes)>> {
        let mut changes = Vec::with_capacity(row.cells().len());
        for (index, cell) in row.cells().enumerate() {
            let (_, family) = self
                .state
                .descriptor
                .family(cell.family)
                .ok_or_else(|| self.state.descriptor.unknown_family(cell.family))?;
            if cell.value.len() > self.settings.value_bytes_max {
                let (size, limit) = (cell.value.len() as u64, self.settings.value_bytes_max as u64);
                return Err(Error::TooLarge { what: "value", size, limit });
            }
            let (kind, time) = match (cell.kind, cell.timestamp) {
                (CellKind::Delete, None) => {
                    let same = |other: &CellMutation<'_>| {
                        other.kind == CellKind::Delete
                            && other.timestamp.is_none()
                            && (other.family, other.qualifier) == (cell.family, cell.qualifier)
                    };
                    let nth = row.cells().take(index).filter(same).count();
                    let newest = self.nth_newest(row.key(), &cell, nth)?;
                    let time = newest.unwrap_or(self.begun);
                    self.counters.note_tombstone(time);
                    // One version kept means one version there ever was: no older one may come back (U-10).
                    let is_of_all = newest.is_some() && family.versions == 1;
                    (if is_of_all { CellKind::DeleteColumn } else { CellKind::Delete }, time)
                }
                (CellKind::Put, time) => (CellKind::Put, time.unwrap_or(self.stamp)),
                (kind, time) => (kind, time.unwrap_or(self.begun)),
            };
            let key = CellKey::new(cell.qualifier, time, kind);
            changes.push((family.name.clone(), key, kind, Bytes::copy_from_slice(cell.value)));
        }
        Ok(changes)
    }

    /// The time of a column's `nth` newest version before this change, counted from 0.
    fn nth_newest(&self, row: &[u8], cell: &CellMutation<'_>, nth: usize) -> Result<Option<Timestamp>> {
        let versions = u32::try_from(nth + 1).unwrap_or(u32::MAX);
        let got = self.read_column(row, cell.family, cell.qualifier, versions)?;
        Ok(got.row(0).and_then(|row| row.cells().nth(nth)).map(|cell| cell.timestamp))
    }

    fn newest(&self, row: &[u8], family: &[u8], qualifier: &[u8]) -> Result<Option<Found>> {
        let got = self.read_column(row, family, qualifier, 1)?;
        Ok(got
            .row(0)
            .and_then(|row| row.cells().next())
            .map(|cell| Found { timestamp: cell.timestamp, value: Bytes::copy_from_slice(cell.value) }))
    }

    fn read_column(&self, row: &[u8], family: &[u8], qualifier: &[u8], versions: u32) -> Result<RowBatch> {
        let columns = Columns::column(Bytes::copy_from_slice(family), Bytes::copy_from_slice(qualifier));
        let get = Get { versions, ..Get::row(Bytes::copy_from_slice(row)).with_columns(columns) };
        let mut reader = RowReader::for_get(&self.state.descriptor, &get, self.now)?;
        let mut out = RowBatchBuilder::new();
        if let Some(cells) = self.state.rows.get(row)
            && reader.begin_row(row, &mut out)? == RowVerdict::Pass
        {
            rows::read_row(row, cells, &[Bytes::copy_from_slice(family)], &mut reader, &mut out)?;
        }
        Ok(out.finish())
    }
}
