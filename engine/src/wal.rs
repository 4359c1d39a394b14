//! The write-ahead log: one log for all tables, many writers, one sync for many.
//!
//! ```text
//! writers ─► queue ─► one writer thread: append for those who called, stamp, write, fdatasync ─► answers, read points
//!             └ bounded: full means Throttled
//! ```
//!
//! Bytes on disk: `docs/formats/wal.md`.
//!
//! Invariants:
//! - Sequence numbers are given and records queued under one lock, so the log's
//!   order is the order of the numbers.
//! - A failed sync or a failed write poisons: nothing after it is answered with
//!   success and nothing is tried again. A full disk alone is no such failure:
//!   records wait in order, new ones are refused, and the log goes on with space.
//! - A segment is entered only when the one before is on disk to its end.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use basalt_store::Durability;

use crate::error::{Error, Result};
use crate::health::Condition;
use crate::io::FileSystem;
use crate::reserve::Reserve;

mod commit;
mod replay;
mod segment;
#[cfg(test)]
mod tests;
mod writer;

use commit::Commits;
use writer::{Progress, Queued, Writer};

pub(crate) use commit::{Answer, ReadPoint};
pub(crate) use replay::{Replay, Replayed, replay};
pub(crate) use segment::{LogPos, SEGMENT_HEADER_BYTES, SegmentId, header as segment_header};

/// Bounds and times of the log.
#[derive(Debug, Clone)]
pub(crate) struct WalOptions {
    pub(crate) dir: PathBuf,
    /// Length of a segment; a larger record gets one of its own.
    pub(crate) segment_bytes: u64,
    /// Bytes that may wait to be written before writers are throttled.
    pub(crate) queue_bytes_max: u64,
    /// Writes below level `Fsync` are on disk after this long.
    pub(crate) sync_interval: Duration,
    /// How often a full disk is tried again.
    pub(crate) retry_interval: Duration,
}

/// Longest wait for records that may share a sync.
const GATHER_MAX: Duration = Duration::from_millis(1);

/// As many records share a sync well enough: more are not waited for.
const GATHERED_RECORDS_MAX: usize = 8;

/// Nor are more bytes.
const GATHERED_BYTES_MAX: u64 = 64 << 10;

/// Counters of the log, for the metrics page.
#[derive(Debug, Default)]
pub(crate) struct WalStats {
    /// All relaxed: each is read for itself.
    pub(crate) syncs: AtomicU64,
    pub(crate) sync_nanos: AtomicU64,
    pub(crate) sync_nanos_max: AtomicU64,
    pub(crate) records: AtomicU64,
    pub(crate) bytes: AtomicU64,
}

/// A write to open.
#[derive(Debug)]
pub(crate) struct Write {
    /// Its closed record; unused at level `Skip`.
    pub(crate) record: Vec<u8>,
    /// How many sequence numbers it takes: one a row.
    pub(crate) numbers: u64,
    pub(crate) level: Durability,
    /// A [`Wal::push`] follows: the writer thread is not woken for it.
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
    /// So many records in the queue wake the writer thread.
    wake_at: usize,
    /// A queued write waits for the operating system.
    wants_write: bool,
    /// A queued write, or an explicit sync, waits for the disk.
    wants_sync: bool,
    /// A queued write is not held: nobody pushes it.
    has_unheld: bool,
    /// Records that were written since the last sync: they share the next one.
    unsynced_records: usize,
    /// The writer thread was called.
    is_called: bool,
    /// The next segment is to be made.
    is_unprepared: bool,
    /// Since when records wait for a sync that no write asked for, queued or written.
    unsynced_since: Option<Instant>,
    closed: bool,
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
    /// Guards the files. Held over I/O; never taken with `state` held.
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
    /// Goes on after what [`replay`] found, in a segment of its own.
    ///
    /// # Errors
    /// Any I/O error; `DiskFull` when there is no room for a segment.
    pub(crate) fn open(
        fs: Arc<dyn FileSystem>,
        options: WalOptions,
        condition: Arc<Condition>,
        reserve: Arc<Reserve>,
        replayed: Replayed,
    ) -> Result<Wal> {
        let segment = segment::Segment::make(&*fs, &options.dir, replayed.next, options.segment_bytes)?;
        let dir = options.dir.clone();
        let writer = Writer::new(fs, dir, options.segment_bytes, segment, replayed.sealed, replayed.end);
        Ok(Wal {
            condition,
            reserve,
            state: Mutex::new(State {
                commits: Commits::after(replayed.last_sequence),
                queue: Vec::new(),
                queued_bytes: 0,
                wake_at: 1,
                wants_write: false,
                wants_sync: false,
                has_unheld: false,
                unsynced_records: 0,
                is_called: false,
                is_unprepared: false,
                unsynced_since: None,
                closed: false,
            }),
            work: Condvar::new(),
            logged: Arc::new(AtomicU64::new(replayed.last_sequence)),
            stats: WalStats { bytes: AtomicU64::new(writer.bytes()), ..WalStats::default() },
            writer: Mutex::new(writer),
            options,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a write and queues its record; answers the last of its numbers.
    ///
    /// The caller puts it into the memtables under the number it gets, then calls
    /// [`Wal::applied`]: always, or the regions' readers stand still.
    ///
    /// # Errors
    /// `Poisoned`, `DiskFull`, `Throttled`, `Closed`: nothing was taken.
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
            // A push is for what waits for the disk.
            let is_pushed = held && level == Durability::Fsync;
            state.has_unheld |= !is_pushed;
            // For what nobody waits the writer thread is woken once, to count the time.
            let is_waited = level != Durability::Async;
            let is_due = if is_waited { state.queue.len() >= state.wake_at } else { state.unsynced_since.is_none() };
            state.unsynced_since = state.unsynced_since.or_else(|| (!is_waited).then(Instant::now));
            if (is_due || state.queued_bytes > GATHERED_BYTES_MAX) && !is_pushed {
                self.work.notify_one();
            }
        }
        Ok(sequence)
    }

    /// The write is in the memtables; `answer` is called when it is due, perhaps here.
    pub(crate) fn applied(&self, sequence: u64, answer: Answer) {
        let due = self.state().commits.applied(sequence, answer);
        call(due);
        // A poisoning may have come between the append and now.
        if self.condition.check_alive().is_err() {
            self.fail_all();
        }
    }

    /// Calls `answer` when everything taken so far is on disk.
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

    /// Lets the writer thread do what it does before it writes, then write.
    pub(crate) fn call(&self) {
        if !std::mem::replace(&mut self.state().is_called, true) {
            self.work.notify_one();
        }
    }

    /// Writes and syncs what waits for the disk, on this thread: whoever has something to be synced and nothing else to do spares
    /// the writer thread's waking. The writer thread makes segments and tries full disks again all the same.
    pub(crate) fn push(&self) {
        if !self.state().wants_sync {
            return;
        }
        self.write_group(false);
        if !self.writer().is_prepared() || self.condition.is_disk_full() {
            self.state().is_unprepared = true;
            self.work.notify_one();
        }
    }

    /// Puts everything up to `sequence` on disk, on this thread.
    ///
    /// # Errors
    /// `DiskFull`: not all of it is; later it may be. `Poisoned`.
    pub(crate) fn sync_to(&self, sequence: u64) -> Result<()> {
        if self.state().commits.synced() < sequence {
            self.write_group(true);
        }
        self.condition.check_alive()?;
        if self.state().commits.synced() < sequence { Err(Error::DiskFull) } else { Ok(()) }
    }

    /// The number of the last record on disk, as it grows.
    pub(crate) fn logged(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.logged)
    }

    /// The last number given.
    pub(crate) fn last_sequence(&self) -> u64 {
        self.state().commits.last_sequence()
    }

    /// Every write up to here is in the memtables.
    pub(crate) fn applied_to(&self) -> u64 {
        self.state().commits.applied_to()
    }

    /// The writer thread's work until [`Wal::close`]; `before` is done before each write, and may append to it.
    pub(crate) fn run(&self, before: impl Fn()) {
        while let Some(wants_sync) = self.wait_for_work() {
            before();
            let began = Instant::now();
            let answered = self.write_group(wants_sync);
            let took = began.elapsed();
            self.make_ready();
            self.gather(answered, took);
        }
        self.write_group(true);
        self.fail_all();
    }

    /// Waits a moment for those who were just answered, who are likely to write again: their records then share one sync
    /// with those that came meanwhile, instead of waiting for the next.
    ///
    /// It is never waited for longer than half of what the last sync took, for no more writers than were there, and not
    /// where enough share the sync already.
    fn gather(&self, answered: usize, took: Duration) {
        let mut state = self.state();
        let expected = (state.queue.len() + answered).min(GATHERED_RECORDS_MAX);
        if answered == 0 || expected < 2 || self.condition.check().is_err() {
            return;
        }
        let end = Instant::now() + (took / 2).min(GATHER_MAX);
        state.wake_at = expected;
        while !state.closed
            && !state.is_called
            && state.queue.len() < expected
            && state.queued_bytes <= GATHERED_BYTES_MAX
        {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.work.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.wake_at = 1;
    }

    /// Sleeps until there is something to do; `None` when the log closes.
    fn wait_for_work(&self) -> Option<bool> {
        let mut state = self.state();
        loop {
            if state.closed {
                return None;
            }
            if self.condition.is_disk_full() {
                let retry = self.options.retry_interval;
                let (woken, _) = self.work.wait_timeout(state, retry).unwrap_or_else(PoisonError::into_inner);
                return (!woken.closed).then_some(woken.wants_sync);
            }
            if std::mem::take(&mut state.is_unprepared) {
                return Some(false);
            }
            if std::mem::take(&mut state.is_called) {
                return Some(state.wants_sync);
            }
            let left = state.unsynced_since.map(|since| self.options.sync_interval.saturating_sub(since.elapsed()));
            let is_due = left.is_some_and(|left| left.is_zero());
            if state.wants_write || state.wants_sync || is_due || state.queued_bytes > GATHERED_BYTES_MAX {
                // Due also while ever more is queued: steady writes must not put it off.
                return Some(state.wants_sync || is_due);
            }
            state = match left {
                None => self.work.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(left) => self.work.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
    }

    /// Writes everything queued as one group and syncs if asked, or if a queued write asks.
    ///
    /// One step of the writer thread; simulations call it in its place. Answers how many records share its sync.
    pub(crate) fn write_group(&self, wants_sync: bool) -> usize {
        let mut writer = self.writer();
        // Asked with the files in hand: whoever had them before may have failed to sync them, and a second sync would
        // succeed over what is lost.
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
            Err(error) if !error.is_disk_full() || error.is_sync_failure() => self.failed(&error, true),
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
        self.stats.bytes.store(writer.bytes(), Ordering::Relaxed);
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
        call(due);
        result
    }

    /// Syncs, then settles everything up to `up_to`, the last number given before the group was taken.
    fn sync_group(&self, writer: &mut Writer, up_to: u64) {
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
            // What was queued during the sync found the time counted already, and woke nobody; what is held is pushed.
            state.unsynced_since = state.has_unheld.then(Instant::now);
            if state.has_unheld {
                self.work.notify_one();
            }
            state.commits.synced_to(up_to)
        };
        call(due);
    }

    /// A full disk is waited for; any other failure is the last thing the log does.
    fn failed(&self, error: &Error, wants_sync: bool) {
        if error.is_disk_full() && !error.is_sync_failure() {
            self.condition.set_disk_full(true);
            let mut state = self.state();
            state.wants_sync |= wants_sync;
            let owed = state.commits.take_answers();
            // It may be another thread that met it.
            self.work.notify_one();
            drop(state);
            self.refuse(owed);
        } else {
            self.condition.poison(error);
            self.fail_all();
        }
    }

    /// Forgets what is queued, which is not written any more, and answers everything open.
    fn give_up(&self) {
        {
            let mut state = self.state();
            state.queue.clear();
            (state.queued_bytes, state.unsynced_since) = (0, None);
            (state.wants_write, state.wants_sync, state.has_unheld) = (false, false, false);
        }
        self.fail_all();
    }

    /// Answers everything open with what the engine's condition is.
    pub(crate) fn fail_all(&self) {
        let owed = self.state().commits.take_answers();
        self.refuse(owed);
    }

    fn refuse(&self, answers: Vec<Answer>) {
        for answer in answers {
            answer(Err(self.condition.check().err().unwrap_or(Error::Closed)));
        }
    }

    /// Makes the next segment before it is needed; on a full disk, writes are
    /// taken again only when that and the reserve fit.
    pub(crate) fn make_ready(&self) {
        let prepared = {
            let mut writer = self.writer();
            if self.condition.check_alive().is_err() {
                return;
            }
            // What is lent is for whoever makes room, and records that wait for a segment come before that.
            let is_lent = self.condition.is_disk_full() && self.reserve.is_lent();
            let prepared = if is_lent && !writer.has_backlog() { Ok(()) } else { writer.prepare() };
            // What is kept to be used again is space for whoever makes room.
            let given_back = if self.condition.is_disk_full() { writer.remove_retired() } else { Ok(()) };
            prepared.and(given_back).map(|()| !writer.has_backlog())
        };
        let ready = prepared.and_then(|empty| if empty { self.reserve.fill().map(|()| true) } else { Ok(false) });
        match ready {
            Ok(true) => self.condition.set_disk_full(false),
            Ok(false) => {}
            // No room for the next segment is no failure yet: this one may last.
            Err(error) if error.is_disk_full() && !error.is_sync_failure() => {}
            Err(error) => {
                self.condition.poison(&error);
                self.fail_all();
            }
        }
    }

    /// The oldest segment that a replay of everything after `sequence` needs.
    pub(crate) fn first_needed(&self, sequence: u64) -> SegmentId {
        self.writer().first_needed(sequence)
    }

    /// Deletes the segments before `first`, or keeps a few of them to be used again.
    ///
    /// # Errors
    /// Any I/O error: harmless, the next open deletes them.
    pub(crate) fn remove_before(&self, first: SegmentId) -> Result<()> {
        let mut writer = self.writer();
        let removed = writer.remove_before(first);
        self.stats.bytes.store(writer.bytes(), Ordering::Relaxed);
        removed
    }

    /// Lets the writer thread look at the engine's condition.
    pub(crate) fn wake(&self) {
        // The condition is no part of the state: taken between, the thread has not looked yet, or waits and hears this.
        drop(self.state());
        self.work.notify_one();
    }

    /// Takes no more writes and lets the writer thread finish what it has.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.work.notify_all();
    }

    /// Leaves a closed log no longer than its records.
    ///
    /// # Errors
    /// Any I/O error; nothing is lost by it.
    pub(crate) fn trim(&self) -> Result<()> {
        self.writer().trim()
    }
}

fn call(due: Vec<Answer>) {
    for answer in due {
        answer(Ok(()));
    }
}
