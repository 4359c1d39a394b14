//! Large queries take turns, so that they neither keep all others waiting nor take each other's memory.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Result;

/// A request that reads more rows is large: with an hour at ten-second steps in each these are 36 million points.
const LARGE_ROWS: u64 = 100_000;
/// A row of which the summary is enough is so many times as quickly read.
pub(crate) const SUMMARIES_PER_ROW: u64 = 8;

/// Whoever lets large queries pass, few at a time. It waits on the calling thread, and its errors are the query's.
pub trait Gate: Debug + Send + Sync {
    /// Returns when one more large query may run. Meanwhile `check` tells whether to wait on.
    ///
    /// # Errors
    /// Those of `check`; [`Error::NoTurn`](crate::Error::NoTurn).
    fn pass(&self, check: &dyn Fn() -> Result<()>) -> Result<()>;

    /// Returns when no other large query runs and `is_ready`, which tells as well whether to wait on.
    ///
    /// # Errors
    /// As [`Gate::pass`].
    fn pass_alone(&self, is_ready: &dyn Fn() -> Result<bool>) -> Result<()>;
}

/// A request on its way to its gate: how much it reads, sub query after sub query.
#[derive(Debug, Default)]
pub(crate) struct Passage {
    gate: Option<Arc<dyn Gate>>,
    /// Relaxed: a sum that publishes nothing else.
    rows: AtomicU64,
}

impl Passage {
    /// To this gate; `None`: there is none.
    pub(crate) fn new(gate: Option<Arc<dyn Gate>>) -> Self {
        Self { gate, rows: AtomicU64::new(0) }
    }

    /// Announces that so many more rows are to be read, and waits if that makes the request a large one.
    ///
    /// # Errors
    /// As [`Gate::pass`].
    pub(crate) fn announce(&self, rows: u64, check: &dyn Fn() -> Result<()>) -> Result<()> {
        let before = self.rows.fetch_add(rows.min(LARGE_ROWS + 1), Ordering::Relaxed);
        match &self.gate {
            Some(gate) if before <= LARGE_ROWS && before.saturating_add(rows) > LARGE_ROWS => gate.pass(check),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
