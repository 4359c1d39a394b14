//! How a query is told to stop, and how it notices by itself that it takes too much.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::answer::Held;
use crate::gate::{Gate, Passage};
use crate::limits::Limits;
use crate::memory::{MemoryPool, Reservation};
use crate::{Error, Result};

/// A switch shared by whoever asks a query and the query: once cancelled it stays so.
///
/// ```
/// let cancel = basalt_query::Cancel::new();
/// let of_the_query = cancel.clone();
/// cancel.cancel();
/// assert!(of_the_query.is_cancelled());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// One that is not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells the query to stop; it does at its next batch of rows.
    pub fn cancel(&self) {
        // A lone flag that publishes nothing else: relaxed suffices, here and in `is_cancelled`.
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was told to stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// A request's account against its limits, or a sub query's, shared by all of its workers.
#[derive(Debug)]
pub(crate) struct Budget {
    limits: Limits,
    cancel: Cancel,
    started: std::time::Instant,
    /// Memory held; one for all sub queries of a request.
    held: Arc<Reservation>,
    /// One for all sub queries, too.
    passage: Arc<Passage>,
    /// What this account took of it and did not give back. Relaxed: a counter that orders nothing.
    reserved: AtomicU64,
    /// Set by the first worker that fails, so that the others stop. Relaxed: a lone flag.
    failed: AtomicBool,
    /// Relaxed: counters that order nothing.
    points: AtomicU64,
    bytes: AtomicU64,
}

impl Budget {
    pub(crate) fn new(limits: Limits, cancel: &Cancel, pool: &Arc<MemoryPool>) -> Self {
        Self {
            limits,
            cancel: cancel.clone(),
            started: std::time::Instant::now(),
            held: Arc::new(pool.part()),
            passage: Arc::default(),
            reserved: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            points: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    /// The account of a request that waits at a gate if it turns out to be large.
    pub(crate) fn behind(self, gate: Option<Arc<dyn Gate>>) -> Self {
        Self { passage: Arc::new(Passage::new(gate)), ..self }
    }

    /// The account of the same request once more: what it held is given back, its time goes on.
    pub(crate) fn again(self, pool: &Arc<MemoryPool>) -> Self {
        let Self { limits, cancel, started, passage, .. } = self;
        Self { started, passage, ..Self::new(limits, &cancel, pool) }
    }

    /// Announces that so many rows are to be read; a large request waits for its turn here. Ask before memory is taken for them: what
    /// earlier sub queries gave is held meanwhile.
    ///
    /// # Errors
    /// Those of [`Budget::check`]; [`Error::NoTurn`].
    pub(crate) fn announce(&self, rows: u64) -> Result<()> {
        self.passage.announce(rows, &|| self.check())
    }

    /// The account of a sub query with limits of its own: time and memory are the request's.
    pub(crate) fn of_sub(&self, limits: Limits) -> Self {
        Self {
            limits,
            cancel: self.cancel.clone(),
            started: self.started,
            held: Arc::clone(&self.held),
            passage: Arc::clone(&self.passage),
            reserved: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            points: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    /// The answers keep these bytes until they are dropped: gives back what only computing took, or takes what is missing.
    ///
    /// # Errors
    /// As [`Budget::reserve`].
    pub(crate) fn keep(&self, bytes: u64) -> Result<Held> {
        self.held.resize(bytes)?;
        Ok((&self.held).into())
    }

    /// Takes memory for as long as the request lasts, or until it is given back.
    ///
    /// # Errors
    /// [`Error::TooMuchMemory`], [`Error::MemoryTaken`].
    pub(crate) fn reserve(&self, bytes: u64) -> Result<()> {
        self.held.take(bytes)?;
        self.reserved.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Looks at what a store answered, which is so many bytes of memory until then.
    ///
    /// # Errors
    /// As [`Budget::reserve`], and those of `look`.
    pub(crate) fn while_held(&self, bytes: u64, look: impl FnOnce() -> Result<()>) -> Result<()> {
        self.reserve(bytes)?;
        let looked = look();
        self.give_back(bytes);
        looked
    }

    /// Gives back so many of the bytes that this account took.
    pub(crate) fn give_back(&self, bytes: u64) {
        self.reserved.fetch_sub(bytes, Ordering::Relaxed);
        self.held.give_back(bytes);
    }

    /// Keeps `kept` bytes where it took `taken`: gives back the rest, or takes what is missing.
    ///
    /// # Errors
    /// As [`Budget::reserve`].
    pub(crate) fn exchange(&self, taken: u64, kept: u64) -> Result<()> {
        if kept > taken {
            return self.reserve(kept - taken);
        }
        self.give_back(taken - kept);
        Ok(())
    }

    /// Bytes that this account took and did not give back.
    pub(crate) fn reserved(&self) -> u64 {
        self.reserved.load(Ordering::Relaxed)
    }

    /// Gives back all that this account took but `bytes`.
    pub(crate) fn settle(&self, bytes: u64) {
        self.give_back(self.reserved().saturating_sub(bytes));
    }

    /// The bounds.
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Time since the request began.
    pub(crate) fn elapsed(&self) -> std::time::Duration {
        self.started.elapsed()
    }

    /// Tells the other workers to stop.
    pub(crate) fn fail(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    /// Whether to go on.
    ///
    /// # Errors
    /// [`Error::Cancelled`], [`Error::DeadlineExceeded`].
    pub(crate) fn check(&self) -> Result<()> {
        if self.cancel.is_cancelled() || self.failed.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        let limit_ms = self.limits.deadline_ms;
        if limit_ms > 0 && self.started.elapsed().as_millis() > u128::from(limit_ms) {
            return Err(Error::DeadlineExceeded { limit_ms });
        }
        Ok(())
    }

    /// Takes back what was noted of reading that is done once more.
    pub(crate) fn forget(&self, points: u64, bytes: u64) {
        self.points.fetch_sub(points, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Notes what was read.
    ///
    /// # Errors
    /// [`Error::TooManyPoints`], [`Error::TooManyBytes`], and those of [`Budget::check`].
    pub(crate) fn spend(&self, points: u64, bytes: u64) -> Result<()> {
        let points = self.points.fetch_add(points, Ordering::Relaxed).saturating_add(points);
        let bytes = self.bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if self.limits.points_max > 0 && points > self.limits.points_max {
            return Err(Error::TooManyPoints { limit: self.limits.points_max });
        }
        if self.limits.bytes_max > 0 && bytes > self.limits.bytes_max {
            return Err(Error::TooManyBytes { limit_bytes: self.limits.bytes_max });
        }
        self.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q_limit_the_first_point_too_many_is_refused() {
        let limits = Limits { points_max: 10, bytes_max: 100, ..Limits::default() };
        let budget = Budget::new(limits, &Cancel::new(), &MemoryPool::new(0));
        assert!(budget.spend(10, 100).is_ok());
        assert!(matches!(budget.spend(1, 0), Err(Error::TooManyPoints { limit: 10 })));
        let budget = budget.of_sub(limits);
        assert!(matches!(budget.spend(0, 101), Err(Error::TooManyBytes { limit_bytes: 100 })));
    }

    #[test]
    fn q_timeout_a_cancelled_query_stops() {
        let cancel = Cancel::new();
        let budget = Budget::new(Limits::default(), &cancel, &MemoryPool::new(0));
        assert!(budget.check().is_ok());
        cancel.cancel();
        assert!(matches!(budget.check(), Err(Error::Cancelled)));
    }
}
