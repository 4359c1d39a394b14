//! What the background threads wait for, and whom the end of the engine waits for.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::error::{Error, Result};

/// After so many cells a long work looks whether the engine closes.
const LOOK_CELLS: u64 = 4096;

/// Tells background threads that there may be work, and when to end; counts the works of requests.
#[derive(Debug, Default)]
pub(crate) struct Jobs {
    /// Leaf lock.
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    flush: bool,
    compact: bool,
    stopped: bool,
    /// Works of requests that are under way.
    asked: usize,
}

/// A work that a request asked for, on a thread of its own: the engine does not close before this is dropped.
#[derive(Debug)]
pub(crate) struct Asked<'a>(&'a Jobs);

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.0.state().asked -= 1;
        self.0.changed.notify_all();
    }
}

/// Which work a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    Flush,
    Compact,
}

impl Jobs {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// There may be something to do.
    pub(crate) fn wake(&self, work: Work) {
        *self.state().flag(work) = true;
        self.changed.notify_all();
    }

    /// Begins a work that a request asks for.
    ///
    /// # Errors
    /// `Closed`: the engine closes.
    pub(crate) fn begin(&self) -> Result<Asked<'_>> {
        let mut state = self.state();
        if state.stopped {
            return Err(Error::Closed);
        }
        state.asked += 1;
        Ok(Asked(self))
    }

    /// Lets no work begin, and waits for those of requests. The threads end by themselves.
    pub(crate) fn stop(&self) {
        let mut state = self.state();
        state.stopped = true;
        self.changed.notify_all();
        drop(self.changed.wait_while(state, |state| state.asked > 0));
    }

    /// Whether a long work goes on, which has come so many cells far.
    ///
    /// # Errors
    /// `Closed`: the engine closes.
    pub(crate) fn check_goes_on(&self, cells_count: u64) -> Result<()> {
        if cells_count.is_multiple_of(LOOK_CELLS) && self.is_stopped() { Err(Error::Closed) } else { Ok(()) }
    }

    /// Sleeps so long.
    ///
    /// # Errors
    /// `Closed`: the engine closes, at once.
    pub(crate) fn sleep(&self, time: Duration) -> Result<()> {
        let state = self.changed.wait_timeout_while(self.state(), time, |state| !state.stopped);
        if state.unwrap_or_else(PoisonError::into_inner).0.stopped { Err(Error::Closed) } else { Ok(()) }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.state().stopped
    }

    /// Sleeps until there may be work, or `at_most` so long; false when the engine closes.
    pub(crate) fn wait(&self, work: Work, at_most: Duration) -> bool {
        let state = self.state();
        let idle = |state: &mut State| !state.stopped && !*state.flag(work);
        let (mut state, _) =
            self.changed.wait_timeout_while(state, at_most, idle).unwrap_or_else(PoisonError::into_inner);
        *state.flag(work) = false;
        !state.stopped
    }
}

impl State {
    fn flag(&mut self, work: Work) -> &mut bool {
        match work {
            Work::Flush => &mut self.flush,
            Work::Compact => &mut self.compact,
        }
    }
}
