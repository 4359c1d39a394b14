//! A region: a range of a table's rows, their memtables and files.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use bytes::Bytes;

use crate::failed_merges::FailedMerges;
use crate::id::{FamilyId, RegionId};
use crate::key_range::KeyRange;
use crate::memtable::Memtable;
use crate::sstable::Sstable;
use crate::wal::ReadPoint;

/// A file of a region, open.
#[derive(Debug, Clone)]
pub(crate) struct RegionFile {
    pub(crate) family: FamilyId,
    pub(crate) table: Arc<Sstable>,
    /// The region's range, where the file holds rows beyond it: a split left it to both halves.
    pub(crate) part: Option<Arc<KeyRange>>,
    /// Bytes of the file that are the region's, roughly.
    pub(crate) bytes: u64,
}

impl RegionFile {
    /// A file as the region of `range` sees it.
    pub(crate) fn new(family: FamilyId, table: Arc<Sstable>, range: &Arc<KeyRange>) -> RegionFile {
        let metadata = table.metadata();
        let is_within = range.contains(&metadata.first_row) && range.contains(&metadata.last_row);
        let bytes = if is_within { table.file_bytes() } else { table.bytes_within(range) };
        RegionFile { family, table, part: (!is_within).then(|| Arc::clone(range)), bytes }
    }
}

/// A memtable that takes no more writes.
#[derive(Debug, Clone)]
pub(crate) struct Frozen {
    pub(crate) memtable: Arc<Memtable>,
    /// The region's range, where the memtable holds rows beyond it, as with files.
    pub(crate) part: Option<Arc<KeyRange>>,
}

/// What a region consisted of at one moment. Readers keep theirs; what is
/// replaced meanwhile lives on until they let go.
#[derive(Debug, Clone)]
pub(crate) struct View {
    /// Takes the writes.
    pub(crate) active: Arc<Memtable>,
    /// Being flushed, oldest first.
    pub(crate) frozen: Vec<Frozen>,
    /// Oldest first, all families.
    pub(crate) files: Vec<RegionFile>,
}

impl View {
    /// Memtables, oldest first.
    pub(crate) fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        self.frozen.iter().map(|frozen| &frozen.memtable).chain(std::iter::once(&self.active))
    }

    /// False when the row is certainly nowhere. No I/O.
    pub(crate) fn may_contain_row(&self, row: &[u8]) -> bool {
        self.memtables().any(|memtable| !memtable.is_empty())
            || self.files.iter().any(|file| file.table.may_contain_row(row))
    }

    /// Whether the files are those of another view: nothing was flushed or merged between the two.
    pub(crate) fn has_files_of(&self, other: &View) -> bool {
        let same = |(one, two): (&RegionFile, &RegionFile)| Arc::ptr_eq(&one.table, &two.table);
        self.files.len() == other.files.len() && self.files.iter().zip(&other.files).all(same)
    }
}

#[derive(Debug)]
pub(crate) struct Region {
    pub(crate) id: RegionId,
    /// Its rows; no end for the table's last region.
    pub(crate) range: Arc<KeyRange>,
    pub(crate) read_point: Arc<ReadPoint>,
    /// Bytes of all memtables of the store.
    gauge: Arc<AtomicU64>,
    /// Guards which view is the present one. Rank: below `updates`.
    view: RwLock<Arc<View>>,
    /// Shared by writers from taking a number until the memtable has the cells;
    /// taken whole to freeze it, so that a frozen memtable holds every number up
    /// to the freeze, and to split the region. Rank: below the table's row locks, by region in key order.
    updates: RwLock<()>,
    /// Shared by writers that delete, from before they take a number until the memtable has the tombstones; taken whole while a
    /// folded file takes its place. Rank: above `updates` and the manifest, below `flushing`.
    deletes: RwLock<()>,
    /// One flush at a time. Rank: above `updates` and the manifest, below `compacting`; of several by region in key order.
    flushing: Mutex<()>,
    /// One compaction at a time; a split holds it too. Guards what compactions failed for.
    compacting: Mutex<FailedMerges>,
    /// Others have taken its place. Relaxed: written and read under `updates`, or under `flushing` and `compacting`.
    retired: AtomicBool,
    /// Relaxed, both: told to operators, ordered with nothing.
    pub(crate) reads: AtomicU64,
    pub(crate) writes: AtomicU64,
}

impl Region {
    pub(crate) fn new(id: RegionId, range: Arc<KeyRange>, files: Vec<RegionFile>, gauge: Arc<AtomicU64>) -> Region {
        let view = View { active: Arc::new(Memtable::new(Arc::clone(&gauge))), frozen: Vec::new(), files };
        Region {
            id,
            range,
            read_point: Arc::new(ReadPoint::new(0)),
            gauge,
            view: RwLock::new(Arc::new(view)),
            updates: RwLock::new(()),
            deletes: RwLock::new(()),
            flushing: Mutex::new(()),
            compacting: Mutex::default(),
            retired: AtomicBool::new(false),
            reads: AtomicU64::new(0),
            writes: AtomicU64::new(0),
        }
    }

    pub(crate) fn start(&self) -> &Bytes {
        &self.range.start
    }

    /// What there is, and up to which number a reader of it sees the memtables.
    ///
    /// Files are seen whole: what is in them is on disk.
    pub(crate) fn snapshot(&self) -> (Arc<View>, u64) {
        let view = self.view.read().unwrap_or_else(PoisonError::into_inner);
        (Arc::clone(&view), self.read_point.visible())
    }

    pub(crate) fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts another view in place of the present one.
    pub(crate) fn change(&self, change: impl FnOnce(&mut View)) {
        let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = View::clone(&view);
        change(&mut next);
        *view = Arc::new(next);
    }

    /// Held by a writer while a number it took is not in the memtable yet.
    pub(crate) fn begin_update(&self) -> RwLockReadGuard<'_, ()> {
        self.updates.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no write is half done, and lets none begin.
    pub(crate) fn stop_updates(&self) -> RwLockWriteGuard<'_, ()> {
        self.updates.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Held by a writer that deletes, until the memtable has its tombstones.
    pub(crate) fn begin_delete(&self) -> RwLockReadGuard<'_, ()> {
        self.deletes.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until no delete is half done, and lets none begin.
    pub(crate) fn stop_deletes(&self) -> RwLockWriteGuard<'_, ()> {
        self.deletes.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Freezes the active memtable; answers what `last` says while no write is
    /// half done: every number up to it is in what is now frozen, or in files.
    pub(crate) fn freeze(&self, last: impl FnOnce() -> u64) -> u64 {
        let _whole = self.stop_updates();
        self.freeze_stopped();
        last()
    }

    /// Freezes the active memtable; the caller stopped the updates.
    pub(crate) fn freeze_stopped(&self) {
        self.change(|view| {
            if !view.active.is_empty() {
                let fresh = Arc::new(Memtable::new(Arc::clone(&self.gauge)));
                let memtable = std::mem::replace(&mut view.active, fresh);
                view.frozen.push(Frozen { memtable, part: None });
            }
        });
    }

    /// Takes its files and memtables away, after it was dropped with its table.
    pub(crate) fn clear(&self) -> Vec<RegionFile> {
        let _whole = self.stop_updates();
        let mut files = Vec::new();
        self.change(|view| {
            view.memtables().for_each(|memtable| memtable.release());
            files = std::mem::take(&mut view.files);
        });
        files
    }

    pub(crate) fn lock_flushing(&self) -> MutexGuard<'_, ()> {
        self.flushing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lock_compacting(&self) -> MutexGuard<'_, FailedMerges> {
        self.compacting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same; `None` while somebody compacts or splits it.
    pub(crate) fn try_lock_compacting(&self) -> Option<MutexGuard<'_, FailedMerges>> {
        match self.compacting.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Whether others have taken its place: nothing is to be written to it, or for it.
    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Relaxed)
    }

    /// Called by a split, which holds all of its locks.
    pub(crate) fn retire(&self) {
        self.retired.store(true, Ordering::Relaxed);
    }

    pub(crate) fn memtable_bytes(&self) -> u64 {
        self.view().memtables().map(|memtable| memtable.bytes()).sum()
    }

    /// Bytes of its files, its part of shared ones only.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.view().files.iter().map(|file| file.bytes).sum()
    }

    /// The oldest write that is in no file.
    pub(crate) fn first_unflushed(&self) -> Option<u64> {
        self.view().memtables().filter_map(|memtable| memtable.first_sequence()).min()
    }

    pub(crate) fn count_write(&self, rows: u64) {
        self.writes.fetch_add(rows, Ordering::Relaxed);
    }

    pub(crate) fn count_read(&self) {
        self.reads.fetch_add(1, Ordering::Relaxed);
    }
}
