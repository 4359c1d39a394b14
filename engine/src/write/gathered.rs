//! Batches that wait for a push: together they are one change, with one record of the log and one visit to each memtable.
//!
//! Senders of small batches come many at a time. What a batch costs besides its rows is then paid once for all of them, and
//! their rows are looked up together.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use basalt_store::{Applied, Completer, MutationBatch};

use crate::core::Core;
use crate::table::Table;

/// As many bytes of keys and cells are enough for one change.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// Batches and who waits for them.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// Guards them. Leaf lock.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// In the order in which they came.
    waiting: Vec<Waiting>,
    /// Of all of them.
    bytes: usize,
    /// No more are taken: no push may follow.
    closed: bool,
}

#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) table: Arc<Table>,
    pub(super) batch: MutationBatch,
    pub(super) completer: Completer<Applied>,
}

impl Gathered {
    /// Keeps one more; answers those that are to be applied now.
    pub(super) fn add(&self, one: Waiting) -> Vec<Waiting> {
        let mut state = self.state();
        state.bytes += one.batch.data_bytes();
        state.waiting.push(one);
        if state.closed || state.bytes > KEPT_BYTES_MAX { state.take() } else { Vec::new() }
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

impl Core {
    /// Applies the batches that wait for a push.
    pub(crate) fn apply_gathered(&self) {
        let waiting = self.gathered.state().take();
        self.apply_waiting(waiting);
    }

    /// The same, and from here on each is applied as it comes.
    pub(crate) fn close_gathered(&self) {
        let waiting = {
            let mut state = self.gathered.state();
            state.closed = true;
            state.take()
        };
        self.apply_waiting(waiting);
    }

    /// Applies neighbours of one table at once.
    pub(super) fn apply_waiting(&self, waiting: Vec<Waiting>) {
        let mut waiting = waiting.into_iter().peekable();
        while let Some(Waiting { table, batch, completer }) = waiting.next() {
            let (mut batches, mut completers) = (vec![batch], vec![completer]);
            while let Some(one) = waiting.next_if(|next| Arc::ptr_eq(&next.table, &table)) {
                batches.push(one.batch);
                completers.push(one.completer);
            }
            self.apply_at_once(&table, &batches, completers);
        }
    }
}
