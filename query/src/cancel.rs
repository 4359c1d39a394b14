//! How a query is told to stop, and how it notices by itself that it takes too much.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::request::Query;
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

/// What one request may take. Zero means no bound, but for `series_max` and `scans_at_once_max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Points read.
    pub points_max: u64,
    /// Bytes of keys, qualifiers and values read.
    pub bytes_max: u64,
    /// Milliseconds until the answer is computed.
    pub deadline_ms: u64,
    /// Series that take part, or are made up by a fill policy.
    pub series_max: usize,
    /// Scans under way at one time.
    pub scans_at_once_max: usize,
    /// Whether a request may lift the budgets of points and bytes (`tsd.query.limits.*.allow_override`).
    pub allow_override: bool,
}

impl Default for Limits {
    /// No bound of points, bytes and time, as in OpenTSDB; a million series; sixteen scans.
    fn default() -> Self {
        Self {
            points_max: 0,
            bytes_max: 0,
            deadline_ms: 0,
            series_max: 1_000_000,
            scans_at_once_max: 16,
            allow_override: false,
        }
    }
}

impl Limits {
    /// The limits of a request that may lift some of them.
    pub(crate) fn lifted(mut self, query: &Query) -> Self {
        if self.allow_override && query.override_points {
            self.points_max = 0;
        }
        if self.allow_override && query.override_bytes {
            self.bytes_max = 0;
        }
        self
    }
}

/// A request's account against its limits, shared by all of its workers.
#[derive(Debug)]
pub(crate) struct Budget {
    limits: Limits,
    cancel: Cancel,
    started: std::time::Instant,
    /// Set by the first worker that fails, so that the others stop. Relaxed: a lone flag.
    failed: AtomicBool,
    /// Relaxed: counters that order nothing.
    points: AtomicU64,
    bytes: AtomicU64,
}

impl Budget {
    pub(crate) fn new(limits: Limits, cancel: &Cancel) -> Self {
        Self {
            limits,
            cancel: cancel.clone(),
            started: std::time::Instant::now(),
            failed: AtomicBool::new(false),
            points: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
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
        let budget = Budget::new(limits, &Cancel::new());
        assert!(budget.spend(10, 100).is_ok());
        assert!(matches!(budget.spend(1, 0), Err(Error::TooManyPoints { limit: 10 })));
        let budget = Budget::new(limits, &Cancel::new());
        assert!(matches!(budget.spend(0, 101), Err(Error::TooManyBytes { limit_bytes: 100 })));
    }

    #[test]
    fn q_timeout_a_cancelled_query_stops() {
        let cancel = Cancel::new();
        let budget = Budget::new(Limits::default(), &cancel);
        assert!(budget.check().is_ok());
        cancel.cancel();
        assert!(matches!(budget.check(), Err(Error::Cancelled)));
    }
}
