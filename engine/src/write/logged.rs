//! A change on its way: numbered, logged, put into the memtables, and then answered by the log.

use std::sync::Arc;

use basalt_store::Durability;

use super::placed::Placed;
use crate::core::Core;
use crate::error::Error;
use crate::jobs::Work;
use crate::region::Region;
use crate::table::{Regions, Table};
use crate::wal::{Answer, Write};

#[cfg(test)]
mod tests;

/// The record of a change, on its way into the log.
pub(super) struct Logged {
    pub(super) record: Vec<u8>,
    /// How many sequence numbers it takes.
    pub(super) numbers: u64,
    pub(super) level: Durability,
    /// Whoever applies it is about to write the log.
    pub(super) writes_log: bool,
    /// It has tombstones.
    pub(super) deletes: bool,
    /// The region whose deletes the caller has begun.
    pub(super) deletes_held: Option<Arc<Region>>,
}

impl Core {
    /// Numbers, logs and applies what a record has. `place` says which regions take which of its rows, `insert` puts these into
    /// the memtables, under numbers that ascend from the one it is told; the caller holds the rows' locks.
    pub(super) fn commit_logged(
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
