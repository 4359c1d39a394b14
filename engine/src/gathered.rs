//! Batches that wait to be applied: together they are one change, with one record of the log and one visit to each memtable.
//!
//! ```text
//! writers ─► left to the log's thread ─► one change ─ write, fdatasync ─► answers
//!        └─► held, in the lane of a thread ─► its push: the same, on that thread
//! ```
//!
//! What a change costs besides its rows is paid once for all that came during the sync before. A thread that pushes applies what it has
//! read itself, which is in its processor's cache, while others apply theirs (`docs/decisions/0015-the-log-applies.md`,
//! `docs/decisions/0023-threads-of-puts-apply.md`). How they are applied is told in `write::turns`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use basalt_store::{Applied, Completer, Lane, MutationBatch};

use crate::table::Table;

/// As many bytes of keys and cells are enough for one change.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// A batch of so many cells, or bytes of keys and cells, does not wait for the log's thread: to apply it takes longer than a sync,
/// which goes on meanwhile.
const ALONE_CELLS_MIN: usize = 2048;
const ALONE_BYTES_MIN: usize = 128 << 10;

/// Lanes of held batches. Threads beyond that number share them.
const LANES: usize = 16;

/// Batches and who waits for them.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// What is left to the log's thread.
    left: Waiters,
    /// What is held, by lane.
    held: [Waiters; LANES],
    /// The log's thread applies what waits and is not held. Relaxed: it is set before the engine is anyone's.
    served: AtomicBool,
}

/// Batches that are applied in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    /// Held while some are applied. The first lock that a writer takes, and of one lane only.
    turn: Mutex<()>,
    /// Guards them. Leaf lock.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// In the order in which they came.
    waiting: Vec<Waiting>,
    /// Of all of them.
    bytes: usize,
    /// No more wait: nobody may come for them.
    closed: bool,
}

/// A batch, and who waits for it.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) table: Arc<Table>,
    pub(crate) batch: MutationBatch,
    pub(crate) completer: Completer<Applied>,
}

impl Gathered {
    /// From here on the log's thread applies what waits.
    pub(crate) fn serve(&self) {
        self.served.store(true, Ordering::Relaxed);
    }

    /// Whether a batch that need not be applied at once waits for others.
    pub(crate) fn is_for(&self, batch: &MutationBatch) -> bool {
        let is_small = batch.cells_count() < ALONE_CELLS_MIN && batch.data_bytes() < ALONE_BYTES_MIN;
        batch.held().is_some() || (is_small && self.served.load(Ordering::Relaxed))
    }

    /// Keeps one more; says whether it is enough in its lane, and to be applied now.
    pub(crate) fn add(&self, one: Waiting) -> bool {
        let mut state = one.batch.held().map_or(&self.left, |lane| self.lane(lane)).state();
        state.bytes += one.batch.data_bytes();
        state.waiting.push(one);
        state.closed || state.bytes > KEPT_BYTES_MAX
    }

    /// Those that are left to the log's thread.
    pub(crate) fn left(&self) -> &Waiters {
        &self.left
    }

    /// Those that are held in a lane.
    pub(crate) fn lane(&self, Lane(lane): Lane) -> &Waiters {
        let [first, ..] = &self.held;
        self.held.get(usize::from(lane) % LANES).unwrap_or(first)
    }

    /// All of them, by where they wait.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Waiters> {
        std::iter::once(&self.left).chain(&self.held)
    }
}

impl Waiters {
    /// Hands all that wait to `apply`, in the order in which they came, and after those that another thread has taken.
    pub(crate) fn take_turn(&self, apply: impl FnOnce(Vec<Waiting>)) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // More may come while they are applied: `state` is not held.
        let waiting = self.state().take();
        apply(waiting);
    }

    /// From here on each is to be applied as it comes.
    pub(crate) fn close(&self) {
        self.state().closed = true;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take(&mut self) -> Vec<Waiting> {
        self.bytes = 0;
        std::mem::take(&mut self.waiting)
    }
}
