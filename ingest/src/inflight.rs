//! The bound of what is under way: points and bytes of text that were taken in and are not answered yet.
//!
//! When it is full, the answer is [`Error::Throttled`](crate::Error::Throttled), and nobody waits: the daemon tells the sender
//! to try again later, and memory does not grow.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Error, IngestLimits, Result};

/// The two budgets of a process.
#[derive(Debug)]
pub(crate) struct Inflight {
    // Relaxed: the counters order nothing else; a permit is passed on by moving it.
    points: AtomicU64,
    bytes: AtomicU64,
    points_max: u64,
    bytes_max: u64,
}

/// A share of what may be under way, for some points; given back when dropped.
#[derive(Debug)]
pub struct Permit {
    from: Arc<Inflight>,
    points: u64,
    bytes: u64,
}

impl Inflight {
    pub(crate) fn new(limits: &IngestLimits) -> Arc<Self> {
        Arc::new(Self {
            points: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            points_max: limits.inflight_points_max,
            bytes_max: limits.inflight_bytes_max,
        })
    }

    /// Takes a share, at once or not at all. A batch larger than the whole budget is taken when nothing else is under way, as
    /// the bound of a body already limits it.
    ///
    /// # Errors
    /// `Throttled`: no room.
    pub(crate) fn take(self: &Arc<Self>, points: u64, bytes: u64) -> Result<Permit> {
        if !take(&self.points, points, self.points_max) {
            return Err(Error::Throttled { what: "points", limit: self.points_max });
        }
        if !take(&self.bytes, bytes, self.bytes_max) {
            self.points.fetch_sub(points, Ordering::Relaxed);
            return Err(Error::Throttled { what: "bytes", limit: self.bytes_max });
        }
        Ok(Permit { from: Arc::clone(self), points, bytes })
    }

    /// Points and bytes under way.
    pub(crate) fn level(&self) -> (u64, u64) {
        (self.points.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }
}

fn take(level: &AtomicU64, amount: u64, max: u64) -> bool {
    let grown = |level: u64| level.checked_add(amount).filter(|grown| *grown <= max || level == 0);
    level.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown).is_ok()
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.from.points.fetch_sub(self.points, Ordering::Relaxed);
        self.from.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inflight(points: u64, bytes: u64) -> Arc<Inflight> {
        Inflight::new(&IngestLimits {
            inflight_points_max: points,
            inflight_bytes_max: bytes,
            ..IngestLimits::default()
        })
    }

    #[test]
    fn w_put_throttle_a_full_budget_says_so_and_a_permit_gives_back() {
        let inflight = inflight(10, 100);
        let first = inflight.take(6, 60).unwrap();
        assert!(matches!(inflight.take(5, 1), Err(Error::Throttled { what: "points", limit: 10 })));
        assert!(matches!(inflight.take(1, 41), Err(Error::Throttled { what: "bytes", limit: 100 })));
        let second = inflight.take(4, 40).unwrap();
        assert_eq!(inflight.level(), (10, 100));
        drop((first, second));
        assert_eq!(inflight.level(), (0, 0));
    }

    #[test]
    fn a_batch_over_the_budget_goes_alone() {
        let inflight = inflight(10, 100);
        let large = inflight.take(1000, 1).unwrap();
        assert!(inflight.take(1, 1).is_err());
        drop(large);
        let small = inflight.take(1, 1).unwrap();
        assert!(inflight.take(1000, 1).is_err());
        drop(small);
    }
}
