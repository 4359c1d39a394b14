//! Threads for scans of cells: each but the shortest runs on one of its own, so that one whose reader is slow holds up no other. Idle
//! threads are kept for the next scan.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How long an idle thread is kept.
const IDLE: Duration = Duration::from_secs(10);

type Scan = Box<dyn FnOnce() + Send>;

/// Runs scans, up to a number at once.
#[derive(Debug)]
pub(crate) struct ScanThreads {
    shared: Arc<Shared>,
    threads_max: usize,
}

#[derive(Debug, Default)]
struct Shared {
    /// Leaf lock.
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Scan>,
    threads: usize,
    idle: usize,
    stopped: bool,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("threads", &self.threads).field("idle", &self.idle).finish_non_exhaustive()
    }
}

impl ScanThreads {
    pub(crate) fn new(threads_max: usize) -> ScanThreads {
        ScanThreads { shared: Arc::default(), threads_max }
    }

    /// Runs `scan` at once; false when too many run already, or no thread can be made.
    pub(crate) fn run(&self, scan: Scan) -> bool {
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.stopped {
            return false;
        }
        if state.idle > state.waiting.len() {
            state.waiting.push_back(scan);
            self.shared.changed.notify_one();
            return true;
        }
        if state.threads >= self.threads_max {
            return false;
        }
        let shared = Arc::clone(&self.shared);
        let spawned = std::thread::Builder::new().name("scan".into()).spawn(move || {
            let thread = Thread(shared);
            scan();
            thread.0.serve();
        });
        state.threads += usize::from(spawned.is_ok());
        spawned.is_ok()
    }

    /// Lets idle threads end; running scans end with their readers.
    pub(crate) fn stop(&self) {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner).stopped = true;
        self.shared.changed.notify_all();
    }
}

/// A thread that is counted; of one that a scan's panic ends this takes it back.
struct Thread(Arc<Shared>);

impl Drop for Thread {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.state.lock().unwrap_or_else(PoisonError::into_inner).threads -= 1;
        }
    }
}

impl Shared {
    fn serve(&self) {
        while let Some(scan) = self.next() {
            scan();
        }
    }

    fn next(&self) -> Option<Scan> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.idle += 1;
        let idle = |state: &mut State| state.waiting.is_empty() && !state.stopped;
        let (mut state, _) = self.changed.wait_timeout_while(state, IDLE, idle).unwrap_or_else(PoisonError::into_inner);
        state.idle -= 1;
        let next = state.waiting.pop_front();
        if next.is_none() {
            state.threads -= 1;
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_scan_that_panics_takes_no_thread_away() {
        let threads = ScanThreads::new(1);
        let begun = Instant::now();
        // The first, and one that a thread takes after another.
        for _ in 0..2 {
            let panics = || threads.run(Box::new(|| panic!("a scan panics, as this test wants")));
            while !panics() {
                assert!(begun.elapsed() < Duration::from_secs(30), "no thread is left");
                std::thread::yield_now();
            }
        }
        while !threads.run(Box::new(|| {})) {
            assert!(begun.elapsed() < Duration::from_secs(30), "no thread is left");
            std::thread::yield_now();
        }
        threads.stop();
    }
}
