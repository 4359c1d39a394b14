//! A region: a range of a table's rows, their memtables and files.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use bytes::Bytes;

use crate::id::{FamilyId, RegionId};
use crate::memtable::Memtable;
use crate::sstable::Sstable;
use crate::wal::ReadPoint;

/// A file of a region, open.
#[derive(Debug, Clone)]
pub(crate) struct RegionFile {
    pub(crate) family: FamilyId,
    pub(crate) table: Arc<Sstable>,
}

/// What a region consisted of at one moment. Readers keep theirs; what is
/// replaced meanwhile lives on until they let go.
#[derive(Debug, Clone)]
pub(crate) struct View {
    /// Takes the writes.
    pub(crate) active: Arc<Memtable>,
    /// Being flushed, oldest first.
    pub(crate) frozen: Vec<Arc<Memtable>>,
    /// Oldest first, all families.
    pub(crate) files: Vec<RegionFile>,
}

impl View {
    /// Memtables, oldest first.
    pub(crate) fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        self.frozen.iter().chain(std::iter::once(&self.active))
    }
}

#[derive(Debug)]
pub(crate) struct Region {
    pub(crate) id: RegionId,
    pub(crate) start: Bytes,
    /// Empty for the table's last region.
    pub(crate) end: Bytes,
    pub(crate) read_point: Arc<ReadPoint>,
    /// Guards which view is the present one. Rank: below `updates`.
    view: RwLock<Arc<View>>,
    /// Shared by writers from taking a number until the memtable has the cells;
    /// taken whole to freeze it, so that a frozen memtable holds every number up
    /// to the freeze. Rank: below the table's row locks, by region in key order.
    updates: RwLock<()>,
    /// One flush at a time. Rank: above `updates` and the manifest.
    flushing: Mutex<()>,
    /// One compaction at a time. Rank: as `flushing`; neither is taken within the other.
    compacting: Mutex<()>,
    /// Relaxed, both: told to operators, ordered with nothing.
    pub(crate) reads: AtomicU64,
    pub(crate) writes: AtomicU64,
}

impl Region {
    pub(crate) fn new(id: RegionId, start: Bytes, end: Bytes, files: Vec<RegionFile>) -> Region {
        let view = View { active: Arc::new(Memtable::new()), frozen: Vec::new(), files };
        Region {
            id,
            start,
            end,
            read_point: Arc::new(ReadPoint::new(0)),
            view: RwLock::new(Arc::new(view)),
            updates: RwLock::new(()),
            flushing: Mutex::new(()),
            compacting: Mutex::new(()),
            reads: AtomicU64::new(0),
            writes: AtomicU64::new(0),
        }
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

    /// Freezes the active memtable; answers what `last` says while no write is
    /// half done: every number up to it is in what is now frozen, or in files.
    pub(crate) fn freeze(&self, last: impl FnOnce() -> u64) -> u64 {
        let _whole = self.updates.write().unwrap_or_else(PoisonError::into_inner);
        self.change(|view| {
            if !view.active.is_empty() {
                let active = std::mem::replace(&mut view.active, Arc::new(Memtable::new()));
                view.frozen.push(active);
            }
        });
        last()
    }

    pub(crate) fn lock_flushing(&self) -> MutexGuard<'_, ()> {
        self.flushing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lock_compacting(&self) -> MutexGuard<'_, ()> {
        self.compacting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn memtable_bytes(&self) -> u64 {
        self.view().memtables().map(|memtable| memtable.bytes()).sum()
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
