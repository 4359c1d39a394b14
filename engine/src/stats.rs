//! What the engine counts, for the metrics page.

use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

/// Whole milliseconds since `began`, for lines of the log.
pub(crate) fn millis(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Counters of flush, compaction and scrub. All relaxed: each is read for itself.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) splits: AtomicU64,
    pub(crate) flushes: AtomicU64,
    pub(crate) flushed_bytes: AtomicU64,
    pub(crate) compactions: AtomicU64,
    pub(crate) compacted_bytes: AtomicU64,
    pub(crate) flush_failures: AtomicU64,
    pub(crate) compaction_failures: AtomicU64,
    pub(crate) scrubbed_bytes: AtomicU64,
    pub(crate) scrub_damages: AtomicU64,
    pub(crate) refused_for_memory: AtomicU64,
}

/// The engine's figures at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Bytes of log that hold records.
    pub wal_bytes: u64,
    /// Records written to the log since the engine was opened.
    pub wal_records: u64,
    /// Syncs of the log since then.
    pub wal_syncs: u64,
    /// Time spent in them, in all.
    pub wal_sync_time: Duration,
    /// The longest of them.
    pub wal_sync_time_max: Duration,
    /// Bytes in memtables.
    pub memtable_bytes: u64,
    /// Regions split since the store was opened.
    pub splits: u64,
    /// Files.
    pub files_count: u64,
    /// Bytes in files.
    pub file_bytes: u64,
    /// Memory of block indexes and bloom filters.
    pub file_index_bytes: u64,
    /// Files whose bloom filter is not in memory, for want of room or as it is damaged.
    pub files_without_filter: u64,
    /// Regions.
    pub regions_count: u64,
    /// Flushes since the engine was opened.
    pub flushes: u64,
    /// Bytes of files they wrote.
    pub flushed_bytes: u64,
    /// Compactions since then.
    pub compactions: u64,
    /// Bytes of files they wrote.
    pub compacted_bytes: u64,
    /// Bytes of decoded blocks in memory.
    pub block_cache_bytes: u64,
    /// Blocks that were read and found in memory.
    pub block_cache_hits: u64,
    /// Blocks that were read and had to come from files.
    pub block_cache_misses: u64,
    /// Flushes that failed, each tried again later.
    pub flush_failures: u64,
    /// Compactions, and splits of regions that grew too large, that failed; those nobody asked for are tried again.
    pub compaction_failures: u64,
    /// Bytes of files that were read and proved since the engine was opened, each as often as it was.
    pub scrubbed_bytes: u64,
    /// Damaged files that were met doing so, each as often as it was.
    pub scrub_damages: u64,
    /// Batches refused because memtables held too much.
    pub refused_for_memory: u64,
    /// How far the clock is behind the last time that the store gave, which goes on until the clock is there.
    pub clock_behind: Duration,
}
