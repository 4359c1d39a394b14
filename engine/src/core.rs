//! What all parts of the engine share: the open store and its counters.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use basalt_store::{Clock, Fold, TableName, Timestamp, Trigger};

use crate::error::{Error, Result};
use crate::gathered::Gathered;
use crate::health::Condition;
use crate::held_files::HeldFiles;
use crate::id::FileId;
use crate::io::{FileSystem, IoOp};
use crate::jobs::Jobs;
use crate::manifest::{Edit, Manifest};
use crate::options::Limits;
use crate::region::Region;
use crate::reserve::Reserve;
use crate::scan_threads::ScanThreads;
use crate::side_log::{SideLogs, forget_all};
use crate::sstable::{BlockCache, BlockCodecs};
use crate::stats::Counters;
use crate::table::Table;
use crate::wal::Wal;

/// From here on a start says how far the clock is behind: less is what clocks are corrected by.
const CLOCK_BEHIND_TOLD: Duration = Duration::from_secs(10);

/// The open store.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) fs: Arc<dyn FileSystem>,
    pub(crate) dir: PathBuf,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) limits: Limits,
    pub(crate) folds: Vec<Arc<dyn Fold>>,
    pub(crate) triggers: Vec<Arc<dyn Trigger>>,
    pub(crate) codecs: BlockCodecs,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) condition: Arc<Condition>,
    pub(crate) reserve: Arc<Reserve>,
    pub(crate) wal: Wal,
    /// What is applied with the next push.
    pub(crate) gathered: Gathered,
    /// Guards the manifest. Held over its I/O; rank: below all locks of tables and regions but `view`.
    manifest: Mutex<Manifest>,
    /// Guards which tables there are. Held for a moment.
    pub(crate) tables: RwLock<BTreeMap<TableName, Arc<Table>>>,
    /// One backup at a time. Held over all of it; rank: the first of all.
    pub(crate) backing_up: Mutex<()>,
    /// One change of the list of tables at a time. Rank: above all but `backing_up`.
    pub(crate) reshaping: Mutex<()>,
    /// The last time given by the server. Relaxed: a number that only grows.
    stamp_ms: AtomicU64,
    /// The largest time given to a change with tombstones, or to one of these after the version that it is over. Relaxed: it only grows,
    /// and is set and asked for under the lock of the tombstone's row.
    tombstone_ms: AtomicU64,
    /// Shared by a change from before it takes its time until it is in the memtables; taken whole to freeze one. So what is frozen is no
    /// younger, by time and by number, than any change behind it, as folds need that join what was frozen: points of a row that
    /// came at different times are one cell then. Rank: below row locks and `flushing`, above `updates`.
    changing: RwLock<()>,
    /// The next file's id. Relaxed, as above.
    next_file: AtomicU64,
    /// Bytes in memtables. Relaxed: by it writers are throttled, roughly.
    pub(crate) memtable_bytes: Arc<AtomicU64>,
    pub(crate) held_files: HeldFiles,
    pub(crate) counters: Counters,
    pub(crate) jobs: Jobs,
    pub(crate) scan_threads: ScanThreads,
    pub(crate) side_logs: SideLogs,
}

/// What recovery hands over.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) manifest: Manifest,
    pub(crate) tables: BTreeMap<TableName, Arc<Table>>,
    pub(crate) wal: Wal,
    pub(crate) clock: Timestamp,
    pub(crate) next_file: u64,
}

/// What recovery is handed.
#[derive(Debug, Clone)]
pub(crate) struct Surroundings {
    pub(crate) fs: Arc<dyn FileSystem>,
    pub(crate) dir: PathBuf,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) limits: Limits,
    pub(crate) folds: Vec<Arc<dyn Fold>>,
    pub(crate) triggers: Vec<Arc<dyn Trigger>>,
    pub(crate) codecs: BlockCodecs,
    pub(crate) cache: Arc<BlockCache>,
    pub(crate) condition: Arc<Condition>,
    pub(crate) reserve: Arc<Reserve>,
    pub(crate) memtable_bytes: Arc<AtomicU64>,
}

impl Core {
    pub(crate) fn new(around: Surroundings, recovered: Recovered) -> Core {
        let scan_threads = ScanThreads::new(around.limits.scans_max);
        let side_logs = SideLogs::new(Arc::clone(&around.fs), &around.dir, recovered.wal.logged());
        Core {
            fs: around.fs,
            dir: around.dir,
            clock: around.clock,
            limits: around.limits,
            folds: around.folds,
            triggers: around.triggers,
            codecs: around.codecs,
            cache: around.cache,
            condition: around.condition,
            reserve: around.reserve,
            wal: recovered.wal,
            gathered: Gathered::default(),
            manifest: Mutex::new(recovered.manifest),
            tables: RwLock::new(recovered.tables),
            backing_up: Mutex::new(()),
            reshaping: Mutex::new(()),
            stamp_ms: AtomicU64::new(recovered.clock.0),
            tombstone_ms: AtomicU64::new(recovered.clock.0),
            changing: RwLock::default(),
            next_file: AtomicU64::new(recovered.next_file),
            memtable_bytes: around.memtable_bytes,
            held_files: HeldFiles::default(),
            counters: Counters::default(),
            jobs: Jobs::default(),
            scan_threads,
            side_logs,
        }
    }

    pub(crate) fn table(&self, name: &TableName) -> Result<Arc<Table>> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        let unknown = || basalt_store::Error::UnknownTable { table: name.to_string().into() };
        Ok(tables.get(name).map(Arc::clone).ok_or_else(unknown)?)
    }

    /// Every table, in the order of their names.
    pub(crate) fn all_tables(&self) -> Vec<Arc<Table>> {
        self.tables.read().unwrap_or_else(PoisonError::into_inner).values().map(Arc::clone).collect()
    }

    /// Every region, with its table.
    pub(crate) fn all_regions(&self) -> Vec<(Arc<Table>, Arc<Region>)> {
        let of =
            |table: Arc<Table>| table.regions().to_vec().into_iter().map(move |region| (Arc::clone(&table), region));
        self.all_tables().into_iter().flat_map(of).collect()
    }

    /// The time for a change: the clock's, or the last one given when the clock went back.
    pub(crate) fn stamp(&self) -> Timestamp {
        let now = self.clock.now().0;
        let last = self.stamp_ms.fetch_max(now, Ordering::Relaxed);
        // The clock went back after a delete, maybe of before this start: it would mask what is put until the clock is there again.
        if now < last && self.last_tombstone() == Timestamp(last) {
            return self.follow(Timestamp(last));
        }
        Timestamp(last.max(now))
    }

    /// Before a change with tombstones at `stamp` is answered: while the clock is behind it, all changes would have that time, and be
    /// masked. Gives the time from which the clock of the next start is to go on.
    pub(crate) fn pass(&self, stamp: Timestamp) -> Timestamp {
        if self.clock.now() >= stamp {
            return stamp;
        }
        let after = stamp.after();
        self.stamp_ms.fetch_max(after.0, Ordering::Relaxed);
        after
    }

    /// Before a value is in the memtables that goes over a cell of the time `last`, the last one given: while the clock is behind, what
    /// is written next is no older than it.
    pub(crate) fn follow(&self, last: Timestamp) -> Timestamp {
        let after = last.after();
        if self.clock.now() < last {
            self.stamp_ms.fetch_max(after.0, Ordering::Relaxed);
        }
        after
    }

    /// Before a tombstone is in the memtables that was made at this time, or got it after the version that it is over.
    pub(crate) fn note_tombstone(&self, time: Timestamp) {
        self.tombstone_ms.fetch_max(time.0, Ordering::Relaxed);
    }

    /// No tombstone has a time behind this one, but for such as were told to.
    pub(crate) fn last_tombstone(&self) -> Timestamp {
        Timestamp(self.tombstone_ms.load(Ordering::Relaxed))
    }

    /// Held by a change from before its [`Core::stamp`] until it is in the memtables.
    pub(crate) fn begin_change(&self) -> RwLockReadGuard<'_, ()> {
        self.changing.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no change has a time and is not in the memtables, and lets none begin: held to freeze memtables.
    pub(crate) fn stop_changes(&self) -> RwLockWriteGuard<'_, ()> {
        self.changing.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far the clock is behind the last time given, as it was set back or stood too late before: all changes have that time until
    /// it is there.
    pub(crate) fn clock_behind(&self) -> Duration {
        Duration::from_millis(self.last_stamp().0.saturating_sub(self.clock.now().0))
    }

    /// Tells of a clock that is far behind at a start. It moves nothing, but TTLs count from the times that changes have. Rows that were too
    /// old by the clock of before may be seen again, which no number tells: logs beside the tables go.
    ///
    /// # Errors
    /// Any I/O error of theirs.
    pub(crate) fn meet_clock(&self) -> Result<()> {
        let behind = self.clock_behind();
        if behind >= CLOCK_BEHIND_TOLD {
            forget_all(&*self.fs, &self.dir)?;
            tracing::warn!(
                seconds = behind.as_secs(),
                "the clock is behind the times of what was written before: until it is there, all that is written gets the last of \
                 these, a TTL counts from that, and rows that are deleted by a query have to wait"
            );
        }
        Ok(())
    }

    /// The last time given.
    pub(crate) fn last_stamp(&self) -> Timestamp {
        Timestamp(self.stamp_ms.load(Ordering::Relaxed))
    }

    pub(crate) fn new_file_id(&self) -> FileId {
        FileId(self.next_file.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn next_file(&self) -> u64 {
        self.next_file.load(Ordering::Relaxed)
    }

    /// Deletes a file that something let go of, unless the manifest names it still; readers that have it open go on.
    ///
    /// Once unnamed it is never named again.
    pub(crate) fn delete_file(&self, id: FileId) {
        if self.manifest().catalog().names_file(id) || self.held_files.defer(id) {
            return;
        }
        let path = id.path(&self.dir);
        match self.fs.remove(&path) {
            // Two regions may have let go at once.
            Err(source) if source.kind() == ErrorKind::NotFound => {}
            removed => {
                if let Err(error) = removed.map_err(Error::io(IoOp::Remove, &path)) {
                    tracing::warn!(%error, "a dropped file stays until the next start");
                }
            }
        }
    }

    /// Has files that go from the manifest stay on the disk.
    pub(crate) fn hold_files(&self) -> Hold<'_> {
        self.held_files.hold();
        Hold(self)
    }

    pub(crate) fn manifest(&self) -> MutexGuard<'_, Manifest> {
        self.manifest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets go of all but the manifest.
    pub(crate) fn into_manifest(self) -> Manifest {
        self.manifest.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes edits durable; any failure but want of room poisons.
    pub(crate) fn edit(&self, manifest: &mut Manifest, edits: &[Edit]) -> Result<()> {
        self.condition.check_alive()?;
        self.guard(manifest.append(edits))
    }

    /// Poisons after a failure that leaves unknown what is on disk: a failed sync, a failed write.
    pub(crate) fn guard<T>(&self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result
            && matches!(error, Error::Io { .. })
            && !error.is_want_of_room()
        {
            self.condition.poison(error);
            self.wal.fail_all();
        }
        result
    }

    pub(crate) fn fold(&self, name: Option<&str>) -> Option<&Arc<dyn Fold>> {
        let name = name?;
        self.folds.iter().find(|fold| fold.name() == name)
    }
}

/// Keeps files from being deleted until it is dropped.
pub(crate) struct Hold<'a>(&'a Core);

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        for id in self.0.held_files.end_hold() {
            self.0.delete_file(id);
        }
    }
}
