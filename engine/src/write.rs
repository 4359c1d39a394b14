//! Changes: checked and resolved first, then numbered, logged and applied.
//!
//! ```text
//! check ─► row locks ─► encode, sum ─► number + queue (WAL) ─► memtables ─► unlock ─► answer when synced and seen
//! ```
//!
//! What waits for the disk is held for its sender's push, or left to the log's thread ([`gathered`](crate::gathered)): either does all
//! of this for many at once ([`turns`]).
//!
//! A row that the rules refuse is told apart and leaves no trace. Plain writes
//! share their rows' locks; a read-modify-write owns its row's, sees what is not
//! synced yet, lets go, and is answered when all it saw is as durable as asked.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use basalt_store::{
    Applied, CellKind, Columns, Completer, Durability, Get, Guards, MutationBatch, Pending, RowBatch, RowBatchBuilder,
    RowChange, RowFailure, RowHandle, RowMutation, RowReader, Scan, TimeRange, Timestamp,
};
use bytes::Bytes;

use crate::core::Core;
use crate::error::{Error, Result};
use crate::gathered::Waiting;
use crate::id::FamilyId;
use crate::jobs::Work;
use crate::memtable::MemRow;
use crate::mutation::{LoggedCell, MutationWriter};
use crate::read::{RowWanted, read_row};
use crate::region::Region;
use crate::sstable::CELL_BYTES_MAX;
use crate::table::{Regions, Shape, Starts, Table};
use crate::wal::{Answer, Write};

mod inline;
mod modify;
mod placed;
#[cfg(test)]
mod tests;
mod turns;

use inline::InlineChange;
use placed::Placed;

/// What a record holds beside the bytes of its cells, roughly, for each of them.
const CELL_OVERHEAD_BYTES: usize = 16;

/// Rows whose times and families are resolved.
#[derive(Debug, Default)]
struct Resolved<'a> {
    rows: Vec<ResolvedRow<'a>>,
    cells: Vec<LoggedCell<'a>>,
    /// Whoever applies them is about to write the log.
    writes_log: bool,
    /// The region whose deletes the caller has begun.
    deletes_held: Option<Arc<Region>>,
}

#[derive(Debug)]
struct ResolvedRow<'a> {
    key: &'a [u8],
    handle: Option<RowHandle>,
    cells: Range<usize>,
}

/// The record of a change, on its way into the log.
struct Logged {
    record: Vec<u8>,
    /// How many sequence numbers it takes.
    numbers: u64,
    level: Durability,
    /// Whoever applies it is about to write the log.
    writes_log: bool,
    /// It has tombstones.
    deletes: bool,
    /// The region whose deletes the caller has begun.
    deletes_held: Option<Arc<Region>>,
}

impl<'a> Resolved<'a> {
    fn cells_of(&self, row: &ResolvedRow<'a>) -> &[LoggedCell<'a>] {
        self.cells.get(row.cells.clone()).unwrap_or_default()
    }
}

impl Core {
    /// Applies a batch, or leaves it to the log's thread, or to a push if one follows. Batches are applied in the order in which they
    /// come here, but for those that wait in different lanes.
    pub(crate) fn apply(&self, table: &Arc<Table>, batch: MutationBatch) -> Pending<Applied> {
        let (completer, pending) = Pending::channel();
        if let Err(error) = self.check_batch(&batch) {
            completer.complete(Err(error.into()));
            return pending;
        }
        let has_tombstones = batch.has_tombstones();
        // Such a tombstone takes its time from what is there: row by row, each owned.
        let is_any_of_newest =
            || batch.rows().any(|row| row.cells().any(|cell| is_of_newest(cell.kind, cell.timestamp)));
        let reads_rows = has_tombstones && is_any_of_newest();
        // Triggers may read the row too.
        let is_guarded = !Guards::of(&table.shape().descriptor, &self.triggers).is_ok_and(|guards| guards.is_empty());
        let is_plain = !reads_rows && !is_guarded;
        // What becomes one change bears one time: a tombstone would cover what was put after it.
        if is_plain && !has_tombstones && batch.durability() == Durability::Fsync && self.gathered.is_for(&batch) {
            let held = batch.held();
            let is_enough = self.gathered.add(Waiting { table: Arc::clone(table), batch, completer });
            match held {
                Some(lane) if is_enough => self.apply_held(lane),
                Some(_) => {}
                None if is_enough => self.apply_gathered(),
                None => self.wal.call(),
            }
            return pending;
        }
        self.apply_gathered();
        if is_plain {
            self.apply_at_once(table, &[batch], vec![completer], false);
        } else {
            self.apply_row_by_row(table, &batch, completer);
        }
        pending
    }

    fn check_batch(&self, batch: &MutationBatch) -> Result<()> {
        self.condition.check()?;
        self.check_memory()?;
        let (size, limit) = (batch.data_bytes() as u64, self.limits.batch_bytes_max as u64);
        if size > limit {
            return Err(basalt_store::Error::TooLarge { what: "batch", size, limit }.into());
        }
        Ok(())
    }

    /// Applies batches of one level as one change, and answers each for itself.
    fn apply_at_once(
        &self,
        table: &Table,
        batches: &[MutationBatch],
        completers: Vec<Completer<Applied>>,
        writes_log: bool,
    ) {
        let Some(first) = batches.first() else { return };
        let level = first.durability();
        assert!(batches.iter().all(|batch| batch.durability() == level), "BUG: a change of two levels");
        let shape = table.shape();
        let rows = || batches.iter().flat_map(MutationBatch::rows);
        let rows_count = batches.iter().map(|batch| batch.rows().len()).sum();
        let _rows = table.row_locks().share(rows_count, rows().map(|row| row.key()));
        let _changing = self.begin_change();
        let stamp = self.stamp();
        // Fast path: points of known series.
        if let Some(change) = InlineChange::of(table, &shape, batches, stamp, self.limits.value_bytes_max) {
            let answer = answer_each(completers, batches.iter().map(|_| Applied::default()).collect());
            return self.commit_inline(table, change, level, writes_log, answer);
        }
        let mut resolved = Resolved { writes_log, ..Resolved::default() };
        resolved.cells.reserve(batches.iter().map(MutationBatch::cells_count).sum());
        resolved.rows.reserve(rows_count);
        let mut applied = Vec::with_capacity(batches.len());
        for batch in batches {
            let families = family_ids(&shape, batch);
            let mut failed = Vec::new();
            for (index, row) in batch.rows().enumerate() {
                if let Err(error) = self.resolve_row(row, &families, stamp, &mut resolved) {
                    failed.push(RowFailure { row: index, error });
                }
            }
            applied.push(Applied { failed });
        }
        self.commit(table, &resolved, level, stamp, answer_each(completers, applied));
    }

    fn apply_row_by_row(&self, table: &Table, batch: &MutationBatch, completer: Completer<Applied>) {
        let joined = Arc::new(Joined::default());
        let mut applied = Applied::default();
        for (index, row) in batch.rows().enumerate() {
            let _row = table.row_locks().own(row.key());
            let shape = table.shape();
            // Files are read below with this held, and freezes wait for that. A trigger is told the change's time, which must be
            // taken with it held; and what a tombstone over the newest version is over must be in its column until the change is
            // in the memtables, where a freeze could begin a fold of the row. Neither is on the road of points.
            let _changing = self.begin_change();
            // Nor does a pass that has folded the row take its place between the look and the change.
            let region = table.regions().of(row.key()).filter(|_| batch.has_tombstones()).map(Arc::clone);
            let _deletes = region.as_ref().map(|region| region.begin_delete());
            let stamp = self.stamp();
            let mut more = MutationBatch::new(batch.durability());
            match self.resolve_guarded(table, &shape, (batch, row), stamp, &mut more) {
                Ok(mut resolved) => {
                    resolved.deletes_held.clone_from(&region);
                    self.commit(table, &resolved, batch.durability(), stamp, joined.one_more());
                }
                Err(error) => applied.failed.push(RowFailure { row: index, error }),
            }
        }
        joined.finish(applied, completer);
    }

    /// A row's changes, held against the table's constraints, and what its triggers add, which is kept in `more` and goes into the
    /// same record: nobody locks these rows. The caller owns the row's lock.
    fn resolve_guarded<'a>(
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

    /// Checks a row's changes and adds them to `resolved`, whole or not at all.
    fn resolve_row<'a>(
        &self,
        row: RowMutation<'a>,
        families: &[basalt_store::Result<FamilyId>],
        stamp: Timestamp,
        resolved: &mut Resolved<'a>,
    ) -> basalt_store::Result<()> {
        let start = resolved.cells.len();
        // Values that follow from a cell ahead of the clock go over it; tombstones keep to the clock, as in HBase.
        let time_of = |kind| if kind == CellKind::Put { stamp } else { stamp.min(self.last_stamp()) };
        for cell in row.cells() {
            let family = match families.get(cell.family_index) {
                Some(Ok(family)) => *family,
                Some(Err(error)) => {
                    resolved.cells.truncate(start);
                    return Err(error.clone());
                }
                None => continue,
            };
            // What no file can hold would keep its region from being flushed, for ever.
            let cell_bytes = row.key().len().saturating_add(cell.qualifier.len()).saturating_add(cell.value.len());
            if cell_bytes > CELL_BYTES_MAX {
                resolved.cells.truncate(start);
                let (size, limit) = (cell_bytes as u64, CELL_BYTES_MAX as u64);
                return Err(basalt_store::Error::TooLarge { what: "cell", size, limit });
            }
            if cell.value.len() > self.limits.value_bytes_max {
                resolved.cells.truncate(start);
                let (size, limit) = (cell.value.len() as u64, self.limits.value_bytes_max as u64);
                return Err(basalt_store::Error::TooLarge { what: "value", size, limit });
            }
            resolved.cells.push(LoggedCell {
                family,
                kind: cell.kind,
                timestamp: cell.timestamp.unwrap_or_else(|| time_of(cell.kind)),
                qualifier: cell.qualifier,
                value: cell.value,
            });
        }
        if resolved.cells.len() > start {
            let (key, handle) = (row.key(), row.handle());
            resolved.rows.push(ResolvedRow { key, handle, cells: start..resolved.cells.len() });
        }
        Ok(())
    }

    /// Numbers, logs and applies resolved rows; the caller holds their locks.
    fn commit(&self, table: &Table, resolved: &Resolved<'_>, level: Durability, stamp: Timestamp, answer: Answer) {
        if resolved.rows.is_empty() {
            return answer(Ok(()));
        }
        let deletes = resolved.cells.iter().any(|cell| cell.kind.is_tombstone());
        // The clock of the next start goes on from here: a value that follows from a cell ahead of the clock must not move it.
        let given = stamp.min(self.last_stamp());
        if deletes {
            self.note_tombstone(given);
        }
        let (record, numbers) = encode(table, resolved, if deletes { self.pass(given) } else { given });
        let deletes_held = resolved.deletes_held.clone();
        let logged = Logged { record, numbers, level, writes_log: resolved.writes_log, deletes, deletes_held };
        let place = |regions: &Regions| {
            let starts = Starts::of(regions);
            let of_rows: Vec<_> = resolved.rows.iter().map(|row| starts.index_of(regions, row.key)).collect();
            Placed::new(regions, &of_rows)
        };
        self.commit_logged(table, logged, place, |placed, first| insert(placed, resolved, first), answer);
    }

    /// Numbers, logs and applies what a record has. `place` says which regions take which of its rows, `insert` puts these into
    /// the memtables, under numbers that ascend from the one it is told; the caller holds the rows' locks.
    fn commit_logged(
        &self,
        table: &Table,
        Logged { record, numbers, level, writes_log, deletes, deletes_held }: Logged,
        place: impl Fn(&Regions) -> Placed,
        insert: impl FnOnce(&Placed, u64),
        answer: Answer,
    ) {
        loop {
            let placed = place(&table.regions());
            let is_held = |region: &Arc<Region>| deletes_held.as_ref().is_some_and(|held| Arc::ptr_eq(held, region));
            let to_begin = placed.regions.iter().filter(|(region, _)| deletes && !is_held(region));
            let deletes: Vec<_> = to_begin.map(|(region, _)| region.begin_delete()).collect();
            let updates: Vec<_> = placed.regions.iter().map(|(region, _)| region.begin_update()).collect();
            if placed.regions.iter().any(|(region, _)| region.is_retired()) {
                // Split meanwhile: its halves take the rows.
                continue;
            }
            let points = placed.regions.iter().map(|(region, _)| Arc::clone(&region.read_point)).collect();
            let last = match self.wal.append(Write { record, numbers, level, held: writes_log, regions: points }) {
                Ok(last) => last,
                Err(error) => return answer(Err(error)),
            };
            let half_done = HalfDone(self);
            if writes_log {
                self.wal.write_ahead();
            }
            insert(&placed, last + 1 - numbers);
            drop((half_done, updates, deletes));
            self.wal.applied(last, answer);
            if self.is_flush_due(placed.regions.iter().map(|(region, _)| region)) {
                self.jobs.wake(Work::Flush);
            }
            return;
        }
    }

    /// The versions of a column, newest first, synced or not; the caller owns the row's lock.
    fn read_versions(&self, table: &Table, shape: &Shape, column: &Column<'_>, versions: u32) -> Result<RowBatch> {
        let columns = Columns::column(Bytes::copy_from_slice(column.family), Bytes::copy_from_slice(column.qualifier));
        let get = Get { versions, ..Get::row(Bytes::copy_from_slice(column.row)).with_columns(columns) };
        let reader = RowReader::for_get(&shape.descriptor, &get, self.clock.now())?;
        self.read_unsynced(table, shape, column.row, TimeRange::ALL, reader)
    }

    /// The newest tombstone of these times over a column, synced or not; the caller owns the row's lock.
    fn tombstone_over(
        &self,
        table: &Table,
        shape: &Shape,
        column: &Column<'_>,
        time_range: TimeRange,
    ) -> Result<Option<Timestamp>> {
        let columns = Columns::family(Bytes::copy_from_slice(column.family));
        let scan = Scan { raw: true, versions: u32::MAX, time_range, columns, ..Scan::all() };
        let reader = RowReader::for_scan(&shape.descriptor, &scan, self.clock.now())?;
        let found = self.read_unsynced(table, shape, column.row, time_range, reader)?;
        let cells = found.rows().flat_map(|row| row.cells());
        let over = cells.filter(|cell| cell.kind.is_tombstone_over(cell.qualifier, column.qualifier));
        Ok(over.map(|cell| cell.timestamp).max())
    }

    fn read_unsynced(
        &self,
        table: &Table,
        shape: &Shape,
        row: &[u8],
        time_range: TimeRange,
        mut reader: RowReader,
    ) -> Result<RowBatch> {
        let mut out = RowBatchBuilder::new();
        if let Some(region) = table.regions().of(row) {
            let view = region.view();
            let wanted = RowWanted { row, read_point: u64::MAX, time_range, count: None, codecs: &self.codecs };
            read_row(shape, &view, &wanted, &mut reader, &mut out)?;
        }
        Ok(out.finish())
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
            let same = |other: &basalt_store::CellMutation<'_>| {
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

/// Held while a change has its number and is not in the memtables yet. Where it dies there, it never settles, and nothing that comes
/// after it in its regions would: nothing more may be promised then.
struct HalfDone<'a>(&'a Core);

impl Drop for HalfDone<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.condition.poison(&Error::WorkerDied { worker: "apply" });
            self.0.wal.fail_all();
        }
    }
}

/// Puts rows into the memtables, region by region.
fn insert(placed: &Placed, resolved: &Resolved<'_>, first: u64) {
    let mut together = Vec::with_capacity(resolved.rows.len());
    for (region, rows) in &placed.regions {
        let rows = placed.rows(rows);
        let active = Arc::clone(&region.view().active);
        let mut memtable = active.insert();
        let of_row = |index: &usize| {
            let row = resolved.rows.get(*index)?;
            let sequence = basalt_store::SeqNo(first + *index as u64);
            Some(MemRow { key: row.key, handle: row.handle, sequence, cells: resolved.cells_of(row) })
        };
        together.clear();
        together.extend(rows.iter().filter_map(of_row));
        memtable.rows(&together);
        memtable.finish();
        region.count_write(rows.len() as u64);
    }
}

/// Answers a batch when the last of its rows is answered.
#[derive(Default)]
struct Joined {
    /// Leaf lock.
    state: Mutex<JoinState>,
}

#[derive(Default)]
struct JoinState {
    /// Rows that are not answered yet.
    open: usize,
    failure: Option<Error>,
    /// Set when all rows are under way.
    rest: Option<(Applied, Completer<Applied>)>,
}

impl Joined {
    /// The answer of one more row.
    fn one_more(self: &Arc<Self>) -> Answer {
        self.change(|state| state.open += 1);
        let joined = Arc::clone(self);
        Box::new(move |result| {
            joined.change(|state| {
                state.open -= 1;
                state.failure = state.failure.take().or(result.err());
            });
        })
    }

    /// All rows are under way.
    fn finish(&self, applied: Applied, completer: Completer<Applied>) {
        self.change(|state| state.rest = Some((applied, completer)));
    }

    fn change(&self, change: impl FnOnce(&mut JoinState)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        if state.open == 0
            && let Some((applied, completer)) = state.rest.take()
        {
            completer.complete(state.failure.take().map_or(Ok(applied), |error| Err(error.into())));
        }
    }
}

/// A column of a row.
#[derive(Debug)]
struct Column<'a> {
    row: &'a [u8],
    family: &'a [u8],
    qualifier: &'a [u8],
}

/// Whether a change is a tombstone over whatever version is the newest.
fn is_of_newest(kind: CellKind, time: Option<Timestamp>) -> bool {
    kind == CellKind::Delete && time.is_none()
}

fn family_ids(shape: &Shape, batch: &MutationBatch) -> Vec<basalt_store::Result<FamilyId>> {
    batch.families().iter().map(|name| family_id(shape, name)).collect()
}

fn family_id(shape: &Shape, name: &[u8]) -> basalt_store::Result<FamilyId> {
    let index = shape.descriptor.family(name).map(|(index, _)| index);
    index.and_then(|index| shape.family_id(index)).ok_or_else(|| basalt_store::Error::UnknownFamily {
        table: shape.descriptor.name.to_string().into(),
        family: String::from_utf8_lossy(name).into(),
    })
}

/// The closed record of the rows, and how many numbers it takes.
fn encode(table: &Table, resolved: &Resolved<'_>, server_time: Timestamp) -> (Vec<u8>, u64) {
    let cell_bytes: usize =
        resolved.cells.iter().map(|cell| cell.qualifier.len() + cell.value.len() + CELL_OVERHEAD_BYTES).sum();
    let key_bytes: usize = resolved.rows.iter().map(|row| row.key.len() + CELL_OVERHEAD_BYTES).sum();
    let mut writer = MutationWriter::begin(table.id, server_time, cell_bytes + key_bytes);
    for row in &resolved.rows {
        writer.row(row.key, row.cells.len());
        for cell in resolved.cells_of(row) {
            writer.cell(cell);
        }
    }
    let numbers = writer.rows();
    (writer.finish(), numbers)
}

/// Answers batches that were one change, each for itself.
fn answer_each(completers: Vec<Completer<Applied>>, applied: Vec<Applied>) -> Answer {
    Box::new(move |result| {
        let result = result.map_err(basalt_store::Error::from);
        for (completer, applied) in completers.into_iter().zip(applied) {
            completer.complete(result.clone().map(|()| applied));
        }
    })
}

/// Adapts an answer for one value to the WAL's.
fn tell<T: Send + 'static>(completer: Completer<T>, value: T) -> Answer {
    Box::new(move |result: Result<(), Error>| completer.complete(result.map(|()| value).map_err(Into::into)))
}
