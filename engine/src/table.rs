//! A table at work: its settings, its row locks, and its [`regions`].

use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use basalt_store::{FamilyDescriptor, TableDescriptor, TableState};

use crate::error::{Error, Result};
use crate::id::{FamilyId, TableId};
use crate::region::Region;

mod regions;

#[cfg(test)]
pub(crate) use regions::tests::regions as regions_of;
pub(crate) use regions::{Regions, Starts};

/// How many row locks a table has: rows share them by hash. Few, since a batch of some hundred rows takes nearly all of them.
const ROW_LOCKS: usize = 64;
/// Rows of a batch among which nearly every lock has one: all are taken then, without a look at the rows.
const MANY_ROWS: usize = 4 * ROW_LOCKS;

/// A table's settings at one moment, and whether it serves.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    pub(crate) descriptor: TableDescriptor,
    pub(crate) state: TableState,
    /// One a family, in the descriptor's order.
    pub(crate) families: Vec<FamilyId>,
}

impl Shape {
    pub(crate) fn family_id(&self, index: usize) -> Option<FamilyId> {
        self.families.get(index).copied()
    }

    /// The family of a name.
    ///
    /// # Errors
    /// `UnknownFamily`.
    pub(crate) fn family_named(&self, name: &[u8]) -> basalt_store::Result<FamilyId> {
        let index = self.descriptor.family(name).map(|(index, _)| index);
        index.and_then(|index| self.family_id(index)).ok_or_else(|| basalt_store::Error::UnknownFamily {
            table: self.descriptor.name.to_string().into(),
            family: String::from_utf8_lossy(name).into(),
        })
    }

    /// The settings of a family; `None` when it was dropped.
    pub(crate) fn family(&self, id: FamilyId) -> Option<&FamilyDescriptor> {
        let index = self.families.iter().position(|family| *family == id)?;
        self.descriptor.families.get(index)
    }
}

#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) id: TableId,
    /// Guards which settings hold. Leaf lock, held for a moment.
    shape: RwLock<Arc<Shape>>,
    /// Shared by compactions, taken whole to alter or drop the table: no file of a family is made while the family goes. Apart
    /// from `reshaping`, as who waits for the end of a long merge lets none in behind. Rank: below a region's `compacting`.
    merging: RwLock<()>,
    /// The same for flushes and splits, which are short: those that all writes may come to wait for. Rank: below `merging` and a
    /// region's `flushing`, above `Core::changing`.
    reshaping: RwLock<()>,
    /// Guards which regions there are. Leaf lock, held for a moment.
    regions: RwLock<Regions>,
    row_locks: RowLocks,
    /// Relaxed: written under `merging` and `reshaping`, and read under one of them, or behind a look at a region's view, which its
    /// lock orders.
    dropped: AtomicBool,
}

impl Table {
    pub(crate) fn new(id: TableId, shape: Shape, regions: Vec<Arc<Region>>) -> Table {
        Table {
            id,
            shape: RwLock::new(Arc::new(shape)),
            merging: RwLock::new(()),
            reshaping: RwLock::new(()),
            regions: RwLock::new(Regions::new(regions)),
            row_locks: RowLocks::new(),
            dropped: AtomicBool::new(false),
        }
    }

    pub(crate) fn shape(&self) -> Arc<Shape> {
        Arc::clone(&self.shape.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn set_shape(&self, shape: Shape) {
        *self.shape.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(shape);
    }

    /// Keeps the table from being altered or dropped, for a moment; `None` when it is dropped.
    pub(crate) fn keep_shape(&self) -> Option<RwLockReadGuard<'_, ()>> {
        self.unless_dropped(&self.reshaping)
    }

    /// The same for as long as a merge takes.
    pub(crate) fn keep_shape_to_merge(&self) -> Option<RwLockReadGuard<'_, ()>> {
        self.unless_dropped(&self.merging)
    }

    fn unless_dropped<'a>(&self, lock: &'a RwLock<()>) -> Option<RwLockReadGuard<'a, ()>> {
        let guard = lock.read().unwrap_or_else(PoisonError::into_inner);
        (!self.dropped.load(Ordering::Relaxed)).then_some(guard)
    }

    /// Waits for compactions to end, while flushes go on, then for flushes.
    pub(crate) fn lock_shape(&self) -> [RwLockWriteGuard<'_, ()>; 2] {
        [&self.merging, &self.reshaping].map(|lock| lock.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Lets no more files be made; called under [`Table::lock_shape`].
    pub(crate) fn mark_dropped(&self) {
        self.dropped.store(true, Ordering::Relaxed);
    }

    /// Whether what was read of a region's view is all that it had: views are emptied once their table is dropped.
    ///
    /// # Errors
    /// `TableReplaced`: it was dropped, emptied or restored meanwhile.
    pub(crate) fn check_there(&self) -> Result<()> {
        if self.dropped.load(Ordering::Relaxed) {
            let table = self.shape().descriptor.name.to_string().into();
            return Err(Error::TableReplaced { table });
        }
        Ok(())
    }

    /// The regions now. One of them may be split at any moment: it is retired then.
    pub(crate) fn regions(&self) -> Regions {
        self.regions.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts regions in the place of one that they tile.
    pub(crate) fn replace_region(&self, old: &Arc<Region>, new: impl IntoIterator<Item = Arc<Region>>) {
        let mut regions = self.regions.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = regions.to_vec();
        let place = next.iter().position(|region| Arc::ptr_eq(region, old));
        assert!(place.is_some(), "BUG: a region that the table does not have is replaced");
        if let Some(place) = place {
            next.splice(place..=place, new);
        }
        *regions = Regions::new(next);
    }

    pub(crate) fn row_locks(&self) -> &RowLocks {
        &self.row_locks
    }
}

/// Locks over rows: shared by plain writes, whole for a read-modify-write.
///
/// Rank: the first lock a writer takes; several are taken in ascending order.
#[derive(Debug)]
pub(crate) struct RowLocks {
    locks: Vec<RwLock<()>>,
}

impl RowLocks {
    fn new() -> RowLocks {
        RowLocks { locks: (0..ROW_LOCKS).map(|_| RwLock::new(())).collect() }
    }

    /// Locks so many rows for plain writes.
    pub(crate) fn share<'a>(&self, count: usize, rows: impl Iterator<Item = &'a [u8]>) -> Vec<RwLockReadGuard<'_, ()>> {
        let is_many = count >= MANY_ROWS;
        let mut wanted = [is_many; ROW_LOCKS];
        if !is_many {
            for row in rows {
                if let Some(place) = wanted.get_mut(lock_of(row)) {
                    *place = true;
                }
            }
        }
        let locks = self.locks.iter().zip(wanted).filter(|(_, wanted)| *wanted);
        locks.map(|(lock, _)| lock.read().unwrap_or_else(PoisonError::into_inner)).collect()
    }

    /// Locks a row for a read-modify-write.
    pub(crate) fn own(&self, row: &[u8]) -> Option<RwLockWriteGuard<'_, ()>> {
        self.locks.get(lock_of(row)).map(|lock| lock.write().unwrap_or_else(PoisonError::into_inner))
    }
}

fn lock_of(row: &[u8]) -> usize {
    // A fixed seed: which rows share a lock costs time only, and simulations repeat.
    let mut hasher = foldhash::fast::FixedState::default().build_hasher();
    hasher.write(row);
    usize::try_from(hasher.finish() % ROW_LOCKS as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_rows_take_every_lock_and_few_their_own() {
        let (locks, row) = (RowLocks::new(), b"r".as_slice());
        let share = |count| locks.share(count, std::iter::repeat_n(row, count)).len();
        assert_eq!([0, 1, MANY_ROWS - 1, MANY_ROWS].map(share), [0, 1, 1, ROW_LOCKS]);
    }
}
