//! Batches that waited together ([`gathered`](crate::gathered)), applied: neighbours of one table are one change.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use basalt_store::Lane;

use crate::core::Core;
use crate::error::Error;
use crate::gathered::{Waiters, Waiting};

impl Core {
    /// Applies all batches that wait, and waits for those that somebody is applying.
    pub(crate) fn apply_gathered(&self) {
        for waiters in self.gathered.all() {
            self.apply_of(waiters, false);
        }
    }

    /// The same for those that are left to the log's thread, which is about to write the log.
    pub(crate) fn apply_left(&self) {
        self.apply_of(self.gathered.left(), true);
    }

    /// The same for those of a lane, on the thread that is about to push them.
    pub(crate) fn apply_held(&self, lane: Lane) {
        self.apply_of(self.gathered.lane(lane), true);
    }

    /// The same for all, and from here on each is applied as it comes.
    pub(crate) fn close_gathered(&self) {
        for waiters in self.gathered.all() {
            waiters.close();
        }
        self.apply_gathered();
    }

    /// The log's thread is not woken for them if the caller is about to write the log.
    fn apply_of(&self, waiters: &Waiters, writes_log: bool) {
        let apply = || waiters.take_turn(|waiting| self.apply_waiting(waiting, writes_log));
        // They are many senders': what died half-way leaves nothing that may be promised, whosever thread it was on.
        if catch_unwind(AssertUnwindSafe(apply)).is_err() {
            self.condition.poison(&Error::WorkerDied { worker: "apply" });
            self.wal.fail_all();
        }
    }

    /// Applies neighbours of one table at once.
    fn apply_waiting(&self, waiting: Vec<Waiting>, writes_log: bool) {
        let mut waiting = waiting.into_iter().peekable();
        while let Some(Waiting { table, batch, completer }) = waiting.next() {
            let (mut batches, mut completers) = (vec![batch], vec![completer]);
            while let Some(one) = waiting.next_if(|next| Arc::ptr_eq(&next.table, &table)) {
                batches.push(one.batch);
                completers.push(one.completer);
            }
            self.apply_at_once(&table, &batches, completers, writes_log);
        }
    }
}
