//! What an engine is opened with.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use basalt_store::{Clock, Fold, Trigger};

use crate::health::PoisonHook;
use crate::io::{FileSystem, OsFs, SystemClock};
use crate::sstable::BlockCodecs;

/// Who does the engine's background work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Workers {
    /// Threads of the engine's own.
    #[default]
    Threads,
    /// Nobody: the caller calls [`Engine::pump`](crate::Engine::pump). Scans keep their threads.
    ///
    /// For simulations, where one seed must be one history.
    Manual,
}

/// The engine's bounds, each with a default that fits a small server.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Length of a log segment in bytes, at most [`Limits::WAL_SEGMENT_BYTES_MAX`].
    pub wal_segment_bytes: u64,
    /// Log bytes in full segments at which the oldest memtable is flushed: what is in the open one no flush can free.
    pub wal_bytes_max: u64,
    /// Bytes that may wait for the log before writers are throttled.
    pub wal_queue_bytes_max: u64,
    /// Writes below level `fsync` are on disk after this long.
    pub sync_interval: Duration,
    /// How often a full disk is tried again.
    pub full_disk_retry_interval: Duration,
    /// Bytes held back on disk, by which a full disk is flushed and closed.
    pub reserve_bytes: u64,
    /// Bytes of one region's memtable at which it is flushed.
    pub memtable_bytes: u64,
    /// Bytes of all memtables at which the largest is flushed; at twice that, writers are throttled.
    pub memtables_bytes: u64,
    /// Bytes of decoded blocks kept in memory.
    pub block_cache_bytes: u64,
    /// Bytes of bloom filters of files kept in memory, of which one may have an eighth.
    pub bloom_filters_bytes: u64,
    /// Threads that compact.
    pub compaction_threads: usize,
    /// Neighbouring files of about one size at which they are merged.
    pub compaction_files_min: usize,
    /// Files merged at once, at most.
    pub compaction_files_max: usize,
    /// How long after its last proof a file is read and proved anew, unasked; zero for never (HDFS: `dfs.datanode.scan.period.hours`).
    pub scrub_interval: Duration,
    /// Bytes of files at which a region is split, unless its table says otherwise.
    pub region_bytes_max: u64,
    /// For how long after their time tombstones outlive major compactions (HBase: `hbase.hstore.time.to.purge.deletes`);
    /// a table's attribute of that name goes before it.
    pub purge_delay: Duration,
    /// VERSIONS of families that are made by [`new_family`](basalt_store::Store::new_family) (HBase:
    /// `hbase.column.max.version`).
    pub versions_default: u32,
    /// Largest value in bytes (HBase: `hbase.client.keyvalue.maxsize`).
    pub value_bytes_max: usize,
    /// Largest batch in bytes.
    pub batch_bytes_max: usize,
    /// Rows a get may ask for.
    pub get_rows_max: usize,
    /// Scans at once.
    pub scans_max: usize,
    /// Batches that a scan makes ahead of its reader.
    pub scan_batches_ahead: usize,
}

impl Limits {
    /// The longest log segment. One with a record behind its end is still read, and a place in it has four bytes.
    pub const WAL_SEGMENT_BYTES_MAX: u64 = 1 << 30;

    /// What must be free on a full disk, at most, before writes are taken again: the reserve, and two segments of the log, as after a
    /// start that found room for neither.
    pub const fn room_bytes(&self) -> u64 {
        self.wal_segment_bytes.saturating_mul(2).saturating_add(self.reserve_bytes)
    }

    /// Bytes of all memtables beyond which no write is taken.
    pub(crate) fn memtables_bytes_max(&self) -> u64 {
        self.memtables_bytes.saturating_mul(2)
    }

    /// Bytes of all memtables beyond which writers had better wait: what is left is for those that are on their way.
    pub(crate) fn memtables_bytes_pressed(&self) -> u64 {
        self.memtables_bytes.saturating_add(self.memtables_bytes / 2)
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            wal_segment_bytes: 16 << 20,
            wal_bytes_max: 256 << 20,
            wal_queue_bytes_max: 64 << 20,
            sync_interval: Duration::from_secs(1),
            full_disk_retry_interval: Duration::from_millis(500),
            reserve_bytes: 32 << 20,
            memtable_bytes: 64 << 20,
            memtables_bytes: 256 << 20,
            block_cache_bytes: 256 << 20,
            bloom_filters_bytes: 256 << 20,
            compaction_threads: 1,
            compaction_files_min: 4,
            compaction_files_max: 10,
            scrub_interval: Duration::from_hours(21 * 24),
            region_bytes_max: basalt_store::REGION_BYTES_MAX_DEFAULT,
            purge_delay: Duration::ZERO,
            versions_default: 1,
            value_bytes_max: 10 << 20,
            batch_bytes_max: 256 << 20,
            get_rows_max: 100_000,
            scans_max: 512,
            scan_batches_ahead: 4,
        }
    }
}

/// What an engine is opened with.
#[derive(Clone)]
pub struct EngineOptions {
    /// The data folder; made if absent.
    pub dir: PathBuf,
    /// Where files are.
    pub fs: Arc<dyn FileSystem>,
    /// The time that cells get and TTL is reckoned by.
    pub clock: Arc<dyn Clock>,
    /// Bounds.
    pub limits: Limits,
    /// Folds that families may name.
    pub folds: Vec<Arc<dyn Fold>>,
    /// Triggers that tables may name.
    pub triggers: Vec<Arc<dyn Trigger>>,
    /// Block codecs that families may name.
    pub codecs: BlockCodecs,
    /// Called once when the engine is poisoned: the daemon then ends itself.
    pub on_poison: Option<PoisonHook>,
    /// Who does the background work.
    pub workers: Workers,
}

impl EngineOptions {
    /// Real files in `dir`, the system's clock, default bounds.
    pub fn new(dir: impl Into<PathBuf>) -> EngineOptions {
        EngineOptions {
            dir: dir.into(),
            fs: Arc::new(OsFs),
            clock: Arc::new(SystemClock),
            limits: Limits::default(),
            folds: Vec::new(),
            triggers: Vec::new(),
            codecs: BlockCodecs::default(),
            on_poison: None,
            workers: Workers::Threads,
        }
    }
}

impl fmt::Debug for EngineOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineOptions")
            .field("dir", &self.dir)
            .field("limits", &self.limits)
            .field("workers", &self.workers)
            .finish_non_exhaustive()
    }
}
