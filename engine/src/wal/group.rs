//! Records that were queued, written as one group and synced by whoever holds the writer.

use std::sync::atomic::Ordering;
use std::time::Instant;

use super::writer::{Progress, Queued, Writer};
use super::{Wal, answer_all};
use crate::error::{Error, Result};

impl Wal {
    /// Writes everything queued as one group. Syncs if `wants_sync` or a queued write asks for it.
    ///
    /// This is one step of the writer thread; simulations call it in the thread's place. Answers how many records share the sync.
    pub(crate) fn write_group(&self, wants_sync: bool) -> usize {
        let mut writer = self.writer();
        // Checked with the writer's lock held: the thread that held it before may have failed to sync. A second sync would
        // succeed although the data of the first is lost.
        if self.condition.check_alive().is_err() {
            drop(writer);
            self.give_up();
            return 0;
        }
        let (group, wants_sync, up_to) = {
            let mut state = self.state();
            let wants_sync = std::mem::take(&mut state.wants_sync) || wants_sync;
            (state.take_queue(), wants_sync, state.commits.last_sequence())
        };
        match self.write_taken(&mut writer, group, Writer::write) {
            Ok(()) if wants_sync => {
                let count = std::mem::take(&mut self.state().unsynced_records);
                self.sync_group(&mut writer, up_to);
                count
            }
            Ok(()) => 0,
            Err(error) => {
                self.failed(&error, wants_sync);
                0
            }
        }
    }

    /// Writes what is queued and has it set out for the disk, so that the sync that follows finds it there or on its way. For a
    /// thread that is about to put the change into memtables, and to sync then: both go on at the same time.
    ///
    /// Nothing is written while another thread has the files; the sync writes it then. A full disk is the sync's to meet, too.
    pub(crate) fn write_ahead(&self) {
        let Ok(mut writer) = self.writer.try_lock() else { return };
        // As in `write_group`.
        if self.condition.check().is_err() {
            return;
        }
        let group = self.state().take_queue();
        match self.write_taken(&mut writer, group, Writer::write_ahead) {
            Err(error) if !error.is_want_of_room() => self.failed(&error, true),
            Ok(()) | Err(_) => {}
        }
    }

    /// Writes records that were taken from the queue, and settles what is as durable then as it asked to be.
    fn write_taken(
        &self,
        writer: &mut Writer,
        group: Vec<Queued>,
        write: impl FnOnce(&mut Writer, Vec<Queued>) -> (Progress, Result<()>),
    ) -> Result<()> {
        let count = group.len();
        let (progress, result) = write(writer, group);
        self.stats.measure(writer);
        self.stats.records.fetch_add(count as u64, Ordering::Relaxed);
        let due = {
            let mut state = self.state();
            state.unsynced_records += count;
            if count > 0 {
                state.unsynced_since.get_or_insert_with(Instant::now);
            }
            let mut due = progress.synced.map_or_else(Vec::new, |synced| state.commits.synced_to(synced));
            due.extend(state.commits.written(progress.written));
            due
        };
        answer_all(due);
        result
    }

    /// Syncs, then settles every write up to `up_to`: the last number given before the group was taken.
    pub(super) fn sync_group(&self, writer: &mut Writer, up_to: u64) {
        let started = Instant::now();
        match writer.sync() {
            Ok(last) => self.logged.fetch_max(last, Ordering::Release),
            Err(error) => return self.failed(&error, true),
        };
        let nanos = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.stats.syncs.fetch_add(1, Ordering::Relaxed);
        self.stats.sync_nanos.fetch_add(nanos, Ordering::Relaxed);
        self.stats.sync_nanos_max.fetch_max(nanos, Ordering::Relaxed);
        let due = {
            let mut state = self.state();
            // A record queued during the sync found `unsynced_since` set, and so woke nobody: wake the writer thread for it.
            // Held records need no wake-up, as their push follows.
            state.unsynced_since = state.has_unheld.then(Instant::now);
            // Once a rest: from then on the writer thread looks at the time by itself.
            let was_marked = state.unmarked_since.replace(Instant::now()).is_none();
            if state.has_unheld || was_marked {
                self.work.notify_one();
            }
            state.commits.synced_to(up_to)
        };
        answer_all(due);
    }

    /// On a full disk, and where no segment can be opened, the log waits for room. After any other failure it does nothing more.
    fn failed(&self, error: &Error, wants_sync: bool) {
        if error.is_want_of_room() {
            self.condition.set_no_room(error);
            let mut state = self.state();
            state.wants_sync |= wants_sync;
            let owed = state.commits.take_answers();
            // A push may have met the full disk on another thread: the writer thread must know of it.
            self.work.notify_one();
            drop(state);
            self.refuse(owed);
        } else {
            self.condition.poison(error);
            self.fail_all();
        }
    }

    /// Drops what is queued, as it will not be written, and answers all open writes.
    fn give_up(&self) {
        {
            let mut state = self.state();
            state.queue.clear();
            (state.queued_bytes, state.unsynced_since) = (0, None);
            (state.wants_write, state.wants_sync, state.has_unheld) = (false, false, false);
        }
        self.fail_all();
    }
}
