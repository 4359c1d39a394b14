//! What the background threads wait for.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Tells background threads that there may be work, and when to end.
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
}

/// Which work a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    Flush,
    Compact,
}

impl Jobs {
    /// There may be something to do.
    pub(crate) fn wake(&self, work: Work) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state.flag(work) = true;
        drop(state);
        self.changed.notify_all();
    }

    pub(crate) fn stop(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).stopped = true;
        self.changed.notify_all();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).stopped
    }

    /// Sleeps until there may be work, or `at_most` so long; false when the engine closes.
    pub(crate) fn wait(&self, work: Work, at_most: Duration) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
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
