//! The memory that all queries of a daemon hold together: a bound over points read, made and not yet written.
//!
//! Every request reserves before it fills memory and gives back when it is done with it; an answer keeps its part until
//! it is dropped, that is read. What a store's scan has under way is bounded elsewhere and not counted; what a get gave is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Error, Result};

/// What all queries may hold. Shared by all clones of an engine.
#[derive(Debug)]
pub(crate) struct MemoryPool {
    /// Bytes; zero for no bound.
    max_bytes: u64,
    /// Relaxed, as all counters here: a sum that publishes nothing else.
    used_bytes: AtomicU64,
}

impl MemoryPool {
    /// A pool of so many bytes; zero for no bound.
    pub(crate) fn new(max_bytes: u64) -> Arc<Self> {
        Arc::new(Self { max_bytes, used_bytes: AtomicU64::new(0) })
    }

    /// Bytes reserved now.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// Whether so many bytes are free.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        self.max_bytes == 0 || self.used_bytes().saturating_add(bytes) <= self.max_bytes
    }

    /// A part of the pool that holds nothing yet.
    pub(crate) fn part(self: &Arc<Self>) -> Reservation {
        Reservation { pool: Arc::clone(self), bytes: AtomicU64::new(0) }
    }
}

/// A request's part of the pool. Given back when dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    pool: Arc<MemoryPool>,
    bytes: AtomicU64,
}

impl Reservation {
    /// Takes more.
    ///
    /// # Errors
    /// [`Error::TooMuchMemory`] if it would not fit into the whole pool, [`Error::MemoryTaken`] if not beside the others.
    pub(crate) fn take(&self, bytes: u64) -> Result<()> {
        let max = self.pool.max_bytes;
        let grow = |used: u64| used.checked_add(bytes).filter(|sum| max == 0 || *sum <= max);
        if self.pool.used_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grow).is_ok() {
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
            return Ok(());
        }
        let own = self.bytes.load(Ordering::Relaxed).saturating_add(bytes);
        Err(if own > max {
            Error::TooMuchMemory { limit_bytes: max }
        } else {
            Error::MemoryTaken { limit_bytes: max, wanted_bytes: own }
        })
    }

    /// Gives back so many of the bytes taken.
    pub(crate) fn give_back(&self, bytes: u64) {
        let before = self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        assert!(before >= bytes, "BUG: a query gives back more memory than it took");
        self.pool.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Holds so many bytes from now on, whether that is more or fewer.
    ///
    /// # Errors
    /// As [`Reservation::take`].
    pub(crate) fn resize(&self, bytes: u64) -> Result<()> {
        let before = self.bytes.load(Ordering::Relaxed);
        if bytes > before {
            return self.take(bytes - before);
        }
        self.give_back(before - bytes);
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.give_back(self.bytes.load(Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `Q-LIMIT`.
    #[test]
    fn queries_share_a_pool_and_give_back_what_they_took() {
        let pool = MemoryPool::new(100);
        let (first, second) = (pool.part(), pool.part());
        first.take(60).unwrap();
        second.take(40).unwrap();
        assert!(matches!(second.take(1), Err(Error::MemoryTaken { limit_bytes: 100, wanted_bytes: 41 })));
        assert!(matches!(second.take(61), Err(Error::TooMuchMemory { limit_bytes: 100 })));
        first.give_back(20);
        second.take(20).unwrap();
        first.resize(10).unwrap();
        assert_eq!(pool.used_bytes(), 70);
        first.resize(40).unwrap();
        assert!(matches!(first.resize(41), Err(Error::MemoryTaken { limit_bytes: 100, .. })));
        assert!(pool.has_room(0) && !pool.has_room(1));
        assert_eq!(pool.used_bytes(), 100);
        drop((first, second));
        assert_eq!(pool.used_bytes(), 0);
        let free = MemoryPool::new(0).part();
        free.take(u64::MAX / 2).unwrap();
    }
}
