//! The write-ahead log: one log for all tables. Many writers append to it, and one sync makes many records durable.
//!
//! ```text
//! writers ─► queue ─► whoever holds the writer: append what was gathered, stamp, write, fdatasync ─► answers, read points
//!             └ bounded: full means Throttled
//!
//! whoever holds it: the log's own thread, or a thread of puts that waits for its records
//! ```
//!
//! Bytes on disk: `docs/formats/wal.md`.
//!
//! Invariants:
//! - Sequence numbers are given and records are queued under one lock, so records lie in the log
//!   in the order of their numbers.
//! - A failed sync or a failed write poisons the engine: nothing after it is answered with success,
//!   and nothing is tried again. Only want of room does not poison, on the disk or among open files: queued
//!   records wait in order, new ones are refused, and the log goes on when there is room.
//! - The writer enters a segment only when the one before it is on disk to its end.
//! - Segments follow one another without a gap, and the oldest that the manifest names is there, also where an open found no
//!   room for the next one.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use basalt_store::Durability;

use crate::error::{Error, Result};
use crate::health::Condition;
use crate::reserve::Reserve;

mod commit;
mod group;
mod open;
mod replay;
mod segment;
#[cfg(test)]
mod tests;
mod thread;
mod unmade;
mod writer;

use commit::Commits;
use writer::{Queued, Writer};

pub(crate) use commit::{Answer, ReadPoint};
pub(crate) use replay::{Replay, Replayed, replay, too_large};
pub(crate) use segment::{LogPos, MARK, SEGMENT_HEADER_BYTES, SegmentId, header as segment_header, header_id};

/// Bounds and times of the log.
#[derive(Debug, Clone)]
pub(crate) struct WalOptions {
    pub(crate) dir: PathBuf,
    /// Length of a segment; a larger record gets a segment of its own.
    pub(crate) segment_bytes: u64,
    /// Bytes that may wait to be written before writers are throttled.
    pub(crate) queue_bytes_max: u64,
    /// A write below level `Fsync` is on disk after this time.
    pub(crate) sync_interval: Duration,
    /// Time between two tries while the disk is full, or too full for the next segment.
    pub(crate) retry_interval: Duration,
}

/// The writer thread does not wait for more bytes than this to share a sync.
const GATHERED_BYTES_MAX: u64 = 64 << 10;

/// Counters of the log, for the metrics page.
#[derive(Debug, Default)]
pub(crate) struct WalStats {
    /// All relaxed: each is read by itself.
    pub(crate) syncs: AtomicU64,
    pub(crate) sync_nanos: AtomicU64,
    pub(crate) sync_nanos_max: AtomicU64,
    pub(crate) records: AtomicU64,
    pub(crate) bytes: AtomicU64,
    /// Of these, in segments that nothing is written to any more: what a flush can free.
    pub(crate) sealed_bytes: AtomicU64,
}

impl WalStats {
    /// Those of a log that was just opened.
    fn of(writer: &Writer) -> Self {
        let stats = Self::default();
        stats.measure(writer);
        stats
    }

    /// Takes down how much log there is.
    fn measure(&self, writer: &Writer) {
        self.bytes.store(writer.bytes(), Ordering::Relaxed);
        self.sealed_bytes.store(writer.sealed_bytes(), Ordering::Relaxed);
    }
}

/// A write that is to be opened: given its numbers, and queued.
#[derive(Debug)]
pub(crate) struct Write {
    /// Its closed record; not used at level `Skip`.
    pub(crate) record: Vec<u8>,
    /// How many sequence numbers it takes: one a row.
    pub(crate) numbers: u64,
    pub(crate) level: Durability,
    /// The caller follows with [`Wal::push`], so the writer thread is not woken.
    pub(crate) held: bool,
    /// The read points of the regions that it changes.
    pub(crate) regions: Vec<Arc<ReadPoint>>,
}

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a wish of its own")]
struct State {
    commits: Commits,
    queue: Vec<Queued>,
    queued_bytes: u64,
    /// The writer thread is woken when the queue has this many records.
    wake_at: usize,
    /// A queued write waits for the operating system.
    wants_write: bool,
    /// A queued write, or an explicit sync, waits for the disk.
    wants_sync: bool,
    /// A queued write is not held: no push follows, so the writer thread must write it.
    has_unheld: bool,
    /// Records that were written since the last sync: they share the next one.
    unsynced_records: usize,
    /// The writer thread was called.
    is_called: bool,
    /// When the oldest record, queued or written, began to wait for a sync that no write asked for.
    unsynced_since: Option<Instant>,
    /// When the last sync ended, if no mark says so yet.
    unmarked_since: Option<Instant>,
    closed: bool,
    /// The writer thread has done all it will: who waits is answered by nobody else.
    has_ended: bool,
}

#[derive(Debug)]
pub(crate) struct Wal {
    options: WalOptions,
    condition: Arc<Condition>,
    reserve: Arc<Reserve>,
    /// Guards numbers, queue and open writes. Rank: above read points, below `writer`.
    state: Mutex<State>,
    /// Signals the writer thread: something is queued, or the log closes.
    work: Condvar,
    /// Guards the files. It is held over I/O, and never taken while `state` is held.
    writer: Mutex<Writer>,
    /// The number of the last record on disk. Release after the sync, acquire in [`crate::side_log`].
    logged: Arc<AtomicU64>,
    pub(crate) stats: WalStats,
}

impl State {
    /// The records to be written, in order.
    fn take_queue(&mut self) -> Vec<Queued> {
        (self.queued_bytes, self.wants_write, self.has_unheld) = (0, false, false);
        std::mem::take(&mut self.queue)
    }
}

impl Wal {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a write and queues its record; answers the last of its numbers.
    ///
    /// The caller puts the write into the memtables under that number, and must then call
    /// [`Wal::applied`]: without it the read points of the write's regions never move again.
    ///
    /// # Errors
    /// `Poisoned`, `DiskFull`, `NoDescriptors`, `Throttled`, `Closed`: the write was not taken.
    pub(crate) fn append(&self, write: Write) -> Result<u64> {
        let Write { record, numbers, level, held, regions } = write;
        self.condition.check()?;
        let mut state = self.state();
        if state.closed {
            return Err(Error::Closed);
        }
        let (queued_bytes, limit_bytes) = (state.queued_bytes, self.options.queue_bytes_max);
        if queued_bytes > 0 && queued_bytes + record.len() as u64 > limit_bytes {
            return Err(Error::Throttled { queued_bytes, limit_bytes });
        }
        let sequence = state.commits.open(numbers, level, regions);
        if level != Durability::Skip {
            state.queued_bytes += record.len() as u64;
            state.wants_sync |= level == Durability::Fsync;
            state.wants_write |= level == Durability::Os;
            state.queue.push(Queued { sequence, record });
            // Only a write that waits for the disk is pushed.
            let is_pushed = held && level == Durability::Fsync;
            state.has_unheld |= !is_pushed;
            // Nobody waits for an async write: the first one wakes the writer thread, which then counts the time.
            let is_waited = level != Durability::Async;
            let is_due = if is_waited { state.queue.len() >= state.wake_at } else { state.unsynced_since.is_none() };
            state.unsynced_since = state.unsynced_since.or_else(|| (!is_waited).then(Instant::now));
            if (is_due || state.queued_bytes > GATHERED_BYTES_MAX) && !is_pushed {
                self.work.notify_one();
            }
        }
        Ok(sequence)
    }

    /// Notes that the write is in the memtables. `answer` is called when it is due, perhaps by this call.
    pub(crate) fn applied(&self, sequence: u64, answer: Answer) {
        let (due, has_ended) = {
            let mut state = self.state();
            (state.commits.applied(sequence, answer), state.has_ended)
        };
        answer_all(due);
        // Since the append the engine may have been poisoned, or closed while the disk was full.
        if has_ended || self.condition.check_alive().is_err() {
            self.fail_all();
        }
    }

    /// Calls `answer` when every write taken so far is on disk.
    pub(crate) fn sync(&self, answer: Answer) {
        let taken = {
            let mut state = self.state();
            if state.closed {
                Err(Error::Closed)
            } else {
                self.condition.check_alive().map(|()| {
                    state.wants_sync = true;
                    state.commits.open(1, Durability::Fsync, Vec::new())
                })
            }
        };
        match taken {
            Ok(sequence) => {
                self.applied(sequence, answer);
                self.work.notify_one();
            }
            Err(error) => answer(Err(error)),
        }
    }

    /// Wakes the writer thread: it runs `before` (see [`Wal::run`]), then writes.
    pub(crate) fn call(&self) {
        if !std::mem::replace(&mut self.state().is_called, true) {
            self.work.notify_one();
        }
    }

    /// Writes and syncs what waits for the disk, on the caller's thread. A caller that has nothing else to do saves the cost of
    /// waking the writer thread. Making segments, and trying again on a full disk, stay the writer thread's work.
    pub(crate) fn push(&self) {
        // What waits for room is written again by the writer thread, once an interval.
        let waits_for_room = || self.condition.lack().is_some() && self.writer().has_backlog();
        if !self.state().wants_sync || waits_for_room() {
            return;
        }
        self.write_group(false);
        if self.writer().may_prepare(self.options.retry_interval) || self.condition.lack().is_some() {
            self.call();
        }
    }

    /// Puts everything up to `sequence` on disk, on the caller's thread.
    ///
    /// # Errors
    /// `DiskFull`, `NoDescriptors`: not all of it is on disk; a later call may succeed. `Poisoned`.
    pub(crate) fn sync_to(&self, sequence: u64) -> Result<()> {
        if self.state().commits.synced() < sequence {
            self.write_group(true);
        }
        self.condition.check_alive()?;
        if self.state().commits.synced() >= sequence {
            return Ok(());
        }
        Err(self.condition.check().err().unwrap_or(Error::DiskFull))
    }

    /// The number of the last record on disk; the value grows as records are synced.
    pub(crate) fn logged(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.logged)
    }

    /// The last number that was given.
    pub(crate) fn last_sequence(&self) -> u64 {
        self.state().commits.last_sequence()
    }

    /// Every write up to here is in the memtables.
    pub(crate) fn applied_to(&self) -> u64 {
        self.state().commits.applied_to()
    }

    /// Answers all open writes with the error of the engine's condition.
    pub(crate) fn fail_all(&self) {
        let owed = self.state().commits.take_answers();
        self.refuse(owed);
    }

    fn refuse(&self, answers: Vec<Answer>) {
        for answer in answers {
            answer(Err(self.condition.check().err().unwrap_or(Error::Closed)));
        }
    }

    /// The oldest segment that a replay of all records after `sequence` needs.
    pub(crate) fn first_needed(&self, sequence: u64) -> SegmentId {
        self.writer().first_needed(sequence)
    }

    /// Deletes the segments before `first`, or keeps a few of them for reuse.
    ///
    /// # Errors
    /// Any I/O error. It is harmless: the next open deletes them.
    pub(crate) fn remove_before(&self, first: SegmentId) -> Result<()> {
        let mut writer = self.writer();
        let removed = writer.remove_before(first);
        self.stats.measure(&writer);
        removed
    }

    /// Wakes the writer thread, so that it looks at the engine's condition, and waits for what it is writing: a segment that the disk
    /// is too small for has all the room there is until it is given up.
    pub(crate) fn wake(&self) {
        // The condition is not guarded by `state`. After this lock and release, the writer thread either has not looked at the
        // condition yet, or is waiting and gets the notification.
        drop(self.state());
        self.work.notify_one();
        drop(self.writer());
    }

    /// Refuses further writes and lets the writer thread finish what is queued.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.work.notify_all();
    }

    /// Cuts a closed log to the length of its records.
    ///
    /// # Errors
    /// Any I/O error; no record is lost by it.
    pub(crate) fn trim(&self) -> Result<()> {
        self.writer().trim()
    }
}

/// Tells writers that theirs is done.
fn answer_all(due: Vec<Answer>) {
    for answer in due {
        answer(Ok(()));
    }
}
