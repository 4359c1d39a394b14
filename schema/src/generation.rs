//! The counter that tells others when to forget what they resolved.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the changes that make an earlier name → UID answer stale.
///
/// Release on raise, acquire on read: who reads the new number sees the maps after the change.
#[derive(Debug, Default)]
pub(crate) struct Generation(AtomicU64);

impl Generation {
    pub(crate) fn raise(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn read(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}
