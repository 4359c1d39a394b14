//! The life of the log's own thread: what it waits for, writes, and makes ready.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use super::{GATHERED_BYTES_MAX, Wal};

/// Longest wait for records that may share a sync.
const GATHER_MAX: Duration = Duration::from_millis(1);

/// The writer thread does not wait for more records than this to share a sync.
const GATHERED_RECORDS_MAX: usize = 8;

/// A log that rests for so long gets a mark behind its end.
pub(super) const MARK_AFTER: Duration = Duration::from_millis(20);

impl Wal {
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
    pub(super) fn mark_if_resting(&self) {
        let mut state = self.state();
        if state.unmarked_since.take_if(|since| since.elapsed() >= MARK_AFTER).is_some() {
            drop(state);
            self.writer().mark();
        }
    }

    /// Sleeps until there is something to do, and says whether the sync of the interval is due; `None` when the log closes.
    pub(super) fn wait_for_work(&self) -> Option<bool> {
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
}
