//! Who is answered when a change is: many batches that were one change, one batch that was many, or a single value.

use std::sync::{Arc, Mutex, PoisonError};

use basalt_store::{Applied, Completer};

use crate::error::{Error, Result};
use crate::wal::Answer;

/// Answers a batch when the last of its rows is answered.
#[derive(Default)]
pub(super) struct Joined {
    /// Leaf lock.
    state: Mutex<JoinState>,
}

#[derive(Default)]
struct JoinState {
    /// Rows that are not answered yet.
    open: usize,
    failure: Option<Error>,
    /// Set when all rows are under way.
    rest: Option<(Applied, Completer<Applied>)>,
}

impl Joined {
    /// The answer of one more row.
    pub(super) fn one_more(self: &Arc<Self>) -> Answer {
        self.change(|state| state.open += 1);
        let joined = Arc::clone(self);
        Box::new(move |result| {
            joined.change(|state| {
                state.open -= 1;
                state.failure = state.failure.take().or(result.err());
            });
        })
    }

    /// All rows are under way.
    pub(super) fn finish(&self, applied: Applied, completer: Completer<Applied>) {
        self.change(|state| state.rest = Some((applied, completer)));
    }

    fn change(&self, change: impl FnOnce(&mut JoinState)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        if state.open == 0
            && let Some((applied, completer)) = state.rest.take()
        {
            completer.complete(state.failure.take().map_or(Ok(applied), |error| Err(error.into())));
        }
    }
}

/// Answers batches that were one change, each for itself.
pub(super) fn answer_each(completers: Vec<Completer<Applied>>, applied: Vec<Applied>) -> Answer {
    Box::new(move |result| {
        let result = result.map_err(basalt_store::Error::from);
        for (completer, applied) in completers.into_iter().zip(applied) {
            completer.complete(result.clone().map(|()| applied));
        }
    })
}

/// Adapts an answer for one value to the WAL's.
pub(super) fn tell<T: Send + 'static>(completer: Completer<T>, value: T) -> Answer {
    Box::new(move |result: Result<(), Error>| completer.complete(result.map(|()| value).map_err(Into::into)))
}
