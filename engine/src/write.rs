//! Changes: checked and resolved first, then numbered, logged and applied.
//!
//! ```text
//! check ─► row locks ─► encode, sum ─► number + queue (WAL) ─► memtables ─► unlock ─► answer when synced and seen
//!                       │              └ logged                                       └ answers
//!                       └ inline: small cells; resolved: others
//! ```
//!
//! What waits for the disk is held for its sender's push, or left to the log's thread ([`gathered`](crate::gathered)): either does all
//! of this for many at once ([`turns`]).
//!
//! A row that the rules refuse is told apart and leaves no trace. Plain writes
//! share their rows' locks; a read-modify-write owns its row's, sees what is not
//! synced yet, lets go, and is answered when all it saw is as durable as asked.

use std::sync::Arc;

use basalt_store::{Applied, Completer, Durability, Guards, MutationBatch, Pending, RowFailure};

use crate::core::Core;
use crate::error::Result;
use crate::gathered::Waiting;
use crate::table::Table;

mod answers;
mod guarded;
mod inline;
mod logged;
mod modify;
mod placed;
mod resolved;
mod turns;
mod unsynced;

use answers::{Joined, answer_each};
use guarded::is_of_newest;
use inline::InlineChange;
use resolved::{Resolved, family_ids};

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
}
