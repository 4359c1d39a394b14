//! The memory that the bodies of all requests hold together: a bound over those that are not small.
//!
//! A small body takes no share: there is one a connection at most, and connections have a bound of their own. It is one below
//! [`SMALL_BYTES_MAX`], or below less where memory is scarce.
//! One that grows beyond takes its share in pieces, and keeps it until its memory is given back, that is until its request is answered.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::metrics::Count;

/// A body of so many bytes is not small, however much memory there is. Shares are taken in pieces of as many while a body grows.
pub(crate) const SMALL_BYTES_MAX: usize = 1 << 20;

/// What all bodies may hold.
#[derive(Debug)]
pub(crate) struct BodyPool {
    bytes_max: usize,
    /// A body of so many bytes is not small.
    small_bytes: usize,
    /// Relaxed: a sum that publishes nothing else.
    used_bytes: AtomicUsize,
    /// Requests that were refused for it.
    pub(crate) refused: Count,
}

impl BodyPool {
    /// A pool of so many bytes, where there is memory for small bodies.
    #[cfg(test)]
    pub(crate) fn new(bytes_max: usize) -> Arc<Self> {
        Self::of(bytes_max, SMALL_BYTES_MAX)
    }

    /// A pool of so many bytes, of which bodies have shares that are not below `small_bytes`.
    pub(crate) fn of(bytes_max: usize, small_bytes: usize) -> Arc<Self> {
        let small_bytes = small_bytes.clamp(1, SMALL_BYTES_MAX);
        Arc::new(Self { bytes_max, small_bytes, used_bytes: AtomicUsize::new(0), refused: Count::default() })
    }

    /// Bytes from which a body has a share.
    pub(crate) fn small_bytes(&self) -> usize {
        self.small_bytes
    }

    /// Bytes that all bodies may hold.
    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Bytes reserved now.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed) as u64
    }

    /// A share of the pool that holds nothing yet.
    pub(crate) fn share(self: &Arc<Self>) -> Share {
        Share { pool: Arc::clone(self), bytes: 0 }
    }
}

/// A body's share of the pool. Given back when dropped.
#[derive(Debug)]
pub(crate) struct Share {
    pool: Arc<BodyPool>,
    bytes: usize,
}

impl Share {
    /// Takes what is missing for a body that has grown to `bytes`, of `bytes_max` at most; nothing while it is small.
    ///
    /// # Errors
    ///
    /// `QuotaExceeded` if that does not fit beside the others; what was taken before stays.
    pub(crate) fn cover(&mut self, bytes: usize, bytes_max: usize) -> io::Result<()> {
        assert!(bytes <= bytes_max, "BUG: a body of {bytes} bytes passed its bound of {bytes_max}");
        let small_bytes = self.pool.small_bytes;
        if bytes < small_bytes || bytes <= self.bytes {
            return Ok(());
        }
        let wanted = bytes.next_multiple_of(small_bytes).min(bytes_max);
        let more = wanted - self.bytes;
        let grow = |used: usize| used.checked_add(more).filter(|sum| *sum <= self.pool.bytes_max);
        if self.pool.used_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grow).is_err() {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        self.bytes = wanted;
        Ok(())
    }

    /// Where memory is scarce, takes all that a body of an announced length will hold; else nothing. For whoever receives what has
    /// come, which may be all of it, before [`Share::cover`] is asked.
    ///
    /// # Errors
    ///
    /// As [`Share::cover`].
    pub(crate) fn announce(&mut self, bytes: usize) -> io::Result<()> {
        if self.pool.small_bytes < SMALL_BYTES_MAX { self.cover(bytes, bytes) } else { Ok(()) }
    }

    /// Gives all of it back.
    pub(crate) fn give_back(&mut self) {
        // Fast path: small bodies have none.
        if self.bytes > 0 {
            let before = self.pool.used_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
            assert!(before >= self.bytes, "BUG: a body gives back more memory than all of them took");
            self.bytes = 0;
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    /// Takes for `bytes` of at most `bytes_max`: whether it fits, and what all hold then.
    fn check(share: &mut Share, (bytes, bytes_max): (usize, usize), expected: (bool, usize)) {
        let fits = share.cover(bytes, bytes_max).is_ok();
        assert_eq!((fits, share.pool.used_bytes()), (expected.0, expected.1 as u64), "{bytes} of {bytes_max}");
    }

    #[test]
    fn a_body_takes_its_share_in_pieces_once_it_is_large_and_never_over_its_bound() {
        let pool = BodyPool::new(9 * MIB);
        let mut share = pool.share();
        check(&mut share, (0, 4 * MIB + 5), (true, 0));
        check(&mut share, (MIB - 1, 4 * MIB + 5), (true, 0));
        check(&mut share, (MIB, 4 * MIB + 5), (true, MIB));
        check(&mut share, (MIB + 1, 4 * MIB + 5), (true, 2 * MIB));
        check(&mut share, (2 * MIB, 4 * MIB + 5), (true, 2 * MIB));
        check(&mut share, (4 * MIB + 1, 4 * MIB + 5), (true, 4 * MIB + 5));
        check(&mut share, (4 * MIB + 5, 4 * MIB + 5), (true, 4 * MIB + 5));
        drop(share);
        assert_eq!(pool.used_bytes(), 0);
    }

    /// As many bodies that are nearly a mebibyte as there are connections would be more than a small machine has.
    #[test]
    fn a_smaller_body_has_a_share_where_memory_is_scarce() {
        let pool = BodyPool::of(3 * MIB, MIB / 16);
        let mut shares = [(); 4].map(|()| pool.share());
        check(&mut shares[0], (MIB / 16 - 1, MIB), (true, 0));
        check(&mut shares[0], (MIB / 16, MIB), (true, MIB / 16));
        check(&mut shares[0], (MIB - 9, MIB), (true, MIB));
        check(&mut shares[1], (MIB - 9, MIB - 9), (true, 2 * MIB - 9));
        check(&mut shares[2], (MIB, MIB), (true, 3 * MIB - 9));
        check(&mut shares[3], (MIB / 16, MIB), (false, 3 * MIB - 9));
        check(&mut shares[3], (MIB / 16 - 1, MIB), (true, 3 * MIB - 9));
        // Who receives all at once asks before.
        drop(shares);
        let announced = |pool: &Arc<BodyPool>| {
            let mut share = pool.share();
            (share.announce(2 * MIB).is_ok(), pool.used_bytes(), share.announce(4 * MIB).is_ok())
        };
        assert_eq!(announced(&pool), (true, 2 << 20, false));
        assert_eq!(announced(&BodyPool::of(3 * MIB, 2 * MIB)), (true, 0, true), "there is memory enough");
    }

    #[test]
    fn a_pool_is_used_to_its_last_byte_and_what_does_not_fit_takes_nothing() {
        let pool = BodyPool::new(3 * MIB + 7);
        let (mut first, mut second, mut third) = (pool.share(), pool.share(), pool.share());
        check(&mut first, (2 * MIB, 9 * MIB), (true, 2 * MIB));
        check(&mut second, (MIB, 9 * MIB), (true, 3 * MIB));
        check(&mut third, (MIB, 9 * MIB), (false, 3 * MIB));
        check(&mut second, (MIB + 1, 9 * MIB), (false, 3 * MIB));
        check(&mut second, (MIB + 7, MIB + 7), (true, 3 * MIB + 7));
        check(&mut third, (MIB - 1, 9 * MIB), (true, 3 * MIB + 7));
        first.give_back();
        check(&mut third, (2 * MIB, 9 * MIB), (true, 3 * MIB + 7));
        check(&mut first, (MIB, 9 * MIB), (false, 3 * MIB + 7));
        drop((first, second, third));
        assert_eq!(pool.used_bytes(), 0);
    }
}
