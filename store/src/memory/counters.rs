//! Numbers and times that are given to changes, over all tables.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::{SeqNo, Timestamp};

/// What grows with every change, over all tables.
#[derive(Debug, Default)]
pub(super) struct Counters {
    // Relaxed: taken under a table's write lock, which orders the changes that must be ordered.
    seq: AtomicU64,
    // Relaxed, as above.
    stamp_ms: AtomicU64,
    /// The largest time given to a change with tombstones, or to one of these after the version that it is over. Relaxed, as above.
    tombstone_ms: AtomicU64,
    /// The last number given to a region. Relaxed: it only grows.
    pub(super) regions: AtomicU64,
}

impl Counters {
    /// The next change's sequence number.
    pub(super) fn next_seq(&self) -> SeqNo {
        SeqNo(self.seq.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// The server's time for a change: `now`, or the largest given so far when the clock went back.
    pub(super) fn stamp(&self, now: Timestamp) -> Timestamp {
        Timestamp(self.stamp_ms.fetch_max(now.0, Ordering::Relaxed).max(now.0))
    }

    /// A tombstone is made at this time, or gets it after the version that it is over.
    pub(super) fn note_tombstone(&self, time: Timestamp) {
        self.tombstone_ms.fetch_max(time.0, Ordering::Relaxed);
    }

    /// No tombstone has a time behind this one, but for such as were told to.
    pub(super) fn last_tombstone(&self) -> Timestamp {
        Timestamp(self.tombstone_ms.load(Ordering::Relaxed))
    }

    /// After a change at `stamp` with tombstones: while the clock is behind it, all changes would have that time, and be masked.
    pub(super) fn pass(&self, stamp: Timestamp, now: Timestamp) {
        if now < stamp {
            self.stamp_ms.fetch_max(stamp.after().0, Ordering::Relaxed);
        }
    }
}
