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
use crate::io::FileSystem;
use crate::reserve::Reserve;

mod commit;
mod replay;
mod segment;
#[cfg(test)]
mod tests;
mod unmade;
mod writer;

use commit::Commits;
use segment::Segment;
use unmade::unmade;
use writer::{Progress, Queued, Writer};

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

/// Longest wait for records that may share a sync.
const GATHER_MAX: Duration = Duration::from_millis(1);

/// The writer thread does not wait for more records than this to share a sync.
const GATHERED_RECORDS_MAX: usize = 8;

/// The same bound in bytes.
const GATHERED_BYTES_MAX: u64 = 64 << 10;

/// A log that rests for so long gets a mark behind its end.
const MARK_AFTER: Duration = Duration::from_millis(20);

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
    /// Opens the log after what [`replay`] found; new records go into a new segment.
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
        let segment = Segment::make(&*fs, &options.dir, replayed.next, options.segment_bytes)?;
        Ok(Wal::begin(fs, options, condition, reserve, (replayed, segment)))
    }

    /// As [`Wal::open`]; but where there is no room for a segment writes are refused until there is, and the segment is made then.
    ///
    /// # Errors
    /// Any I/O error but want of room.
    pub(crate) fn open_in_any_room(
        fs: Arc<dyn FileSystem>,
        options: WalOptions,
        condition: Arc<Condition>,
        reserve: Arc<Reserve>,
        replayed: Replayed,
    ) -> Result<Wal> {
        let segment = match Segment::make(&*fs, &options.dir, replayed.next, options.segment_bytes) {
            Err(error) if error.is_want_of_room() => {
                condition.set_no_room(&error);
                unmade(replayed.next)
            }
            made => made?,
        };
        Ok(Wal::begin(fs, options, condition, reserve, (replayed, segment)))
    }

    fn begin(
        fs: Arc<dyn FileSystem>,
        options: WalOptions,
        condition: Arc<Condition>,
        reserve: Arc<Reserve>,
        (replayed, segment): (Replayed, Segment),
    ) -> Wal {
        let dir = options.dir.clone();
        let writer = Writer::new(fs, dir, options.segment_bytes, segment, replayed.sealed, replayed.end);
        writer.mark_begun();
        Wal {
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
                unsynced_since: None,
                unmarked_since: None,
                closed: false,
                has_ended: false,
            }),
            work: Condvar::new(),
            logged: Arc::new(AtomicU64::new(replayed.last_sequence)),
            stats: WalStats::of(&writer),
            writer: Mutex::new(writer),
            options,
        }
    }

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
        call(due);
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

    /// The writer thread's loop until [`Wal::close`]. `before` runs before each write, and may append records to it.
    pub(crate) fn run(&self, before: impl Fn()) {
        while let Some(is_due) = self.wait_for_work() {
            before();
            let began = Instant::now();
            let answered = self.write_group(is_due);
            let took = began.elapsed();
            self.make_ready();
            self.mark_if_resting();
            self.gather(answered, took);
        }
        self.write_group(true);
        self.state().has_ended = true;
        self.fail_all();
    }

    /// Waits a moment for the writers that were just answered, as they are likely to write again. Their records then share one
    /// sync with those that were queued during the last one, instead of waiting for the sync after it.
    ///
    /// The wait is at most half of what the last sync took. It ends when the queue holds as many records as were queued and
    /// answered together before it, or when enough of them share the sync.
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

    /// Marks the end of a log that nothing was written to for a while.
    fn mark_if_resting(&self) {
        let mut state = self.state();
        if state.unmarked_since.take_if(|since| since.elapsed() >= MARK_AFTER).is_some() {
            drop(state);
            self.writer().mark();
        }
    }

    /// Sleeps until there is something to do, and says whether the sync of the interval is due; `None` when the log closes.
    fn wait_for_work(&self) -> Option<bool> {
        let mut state = self.state();
        loop {
            if state.closed {
                return None;
            }
            if self.condition.lack().is_some() {
                let retry = self.options.retry_interval;
                let (woken, _) = self.work.wait_timeout(state, retry).unwrap_or_else(PoisonError::into_inner);
                return (!woken.closed).then_some(false);
            }
            if std::mem::take(&mut state.is_called) {
                return Some(false);
            }
            let left = |since: Option<Instant>, time: Duration| since.map(|since| time.saturating_sub(since.elapsed()));
            let to_sync = left(state.unsynced_since, self.options.sync_interval);
            let to_mark = left(state.unmarked_since, MARK_AFTER);
            let [is_due, is_resting] = [to_sync, to_mark].map(|left| left.is_some_and(|left| left.is_zero()));
            if state.wants_write || state.wants_sync || is_due || is_resting || state.queued_bytes > GATHERED_BYTES_MAX
            {
                // The sync is due even while more is queued: a steady stream of writes must not put it off.
                return Some(is_due);
            }
            state = match to_sync.into_iter().chain(to_mark).min() {
                None => self.work.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(left) => self.work.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
    }

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
        call(due);
        result
    }

    /// Syncs, then settles every write up to `up_to`: the last number given before the group was taken.
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
        call(due);
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

    /// Makes the next segment before it is needed; where there was no room for it, not again before the interval is over, as each
    /// try writes the disk full. After a full disk, writes are taken again only when both that segment and the reserve fit.
    pub(crate) fn make_ready(&self) {
        let prepared = {
            let mut writer = self.writer();
            if self.condition.check_alive().is_err() {
                return;
            }
            let lacks_room = self.condition.lack().is_some();
            if !lacks_room && !writer.is_prepared() && !writer.may_prepare(self.options.retry_interval) {
                return;
            }
            // A lent reserve is for what makes room, such as flushes: a segment must not take that space, unless records wait
            // for one.
            let is_lent = lacks_room && self.reserve.is_lent();
            let prepared = if is_lent && !writer.has_backlog() { Ok(()) } else { writer.prepare() };
            // So is the space of the old segments that are kept for reuse.
            let given_back = if lacks_room { writer.remove_retired() } else { Ok(()) };
            prepared.and(given_back).map(|()| writer.is_made() && !writer.has_backlog())
        };
        let ready = prepared.and_then(|is_up| if is_up { self.reserve.fill().map(|()| true) } else { Ok(false) });
        match ready {
            Ok(true) => self.condition.set_lack(None),
            Ok(false) => {}
            // No room for the next segment is not a failure yet: the current one still takes records.
            Err(error) if error.is_want_of_room() => {}
            Err(error) => {
                self.condition.poison(&error);
                self.fail_all();
            }
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

fn call(due: Vec<Answer>) {
    for answer in due {
        answer(Ok(()));
    }
}
