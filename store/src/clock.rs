//! Time as an argument: cell times and TTL read one clock, which tests own.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::Timestamp;

/// A wall clock. Implementations may jump either way; stores keep server-assigned times from going back.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// The time now, in milliseconds since the epoch UTC.
    fn now(&self) -> Timestamp;
}

/// A clock that stands still until it is told otherwise.
#[derive(Debug, Default)]
pub struct ManualClock {
    // Relaxed: a lone value, read for itself and ordered with nothing.
    ms: AtomicU64,
}

impl ManualClock {
    /// A clock that shows `now`.
    pub fn new(now: Timestamp) -> Self {
        Self { ms: AtomicU64::new(now.0) }
    }

    /// Shows `now` from here on; back is allowed.
    pub fn set(&self, now: Timestamp) {
        self.ms.store(now.0, Ordering::Relaxed);
    }

    /// Moves on by `ms` milliseconds.
    pub fn advance(&self, ms: u64) {
        self.ms.fetch_add(ms, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.ms.load(Ordering::Relaxed))
    }
}
