//! The newest cells of a region, in memory, sorted by row.
//!
//! A writer finds an existing row by a hash of its handle or key. Each family has one ordered list of leaves, by which its
//! rows are walked. A row's cells lie in sorted runs of bounded length: a cell that comes in order (a time series' next
//! point) is a push, and one that does not goes beside the last such cell and moves few others. An entry holds the
//! qualifier and value of a point itself. An arena holds keys, longer bytes, and the stamps (time and number) that cells
//! written together share. So no row or cell needs an allocation.
//!
//! A writer puts a cell of an existing row at the end of the family's tail, one list for all rows. The tail's cells move to
//! their rows when it is full, and before anybody reads. The end of a row lies in memory that no cache holds: this way the
//! processor waits for it once for several cells, and not once for each while a put waits.
//!
//! Readers copy out one piece at a time under a read lock. Their read point fixes what they see, and a cell in the
//! memtable never changes, so the pieces of one row agree although writers come in between.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use basalt_store::Timestamp;

use crate::id::FamilyId;
use crate::mutation::LoggedCell;

mod arena;
mod cursor;
mod entry;
mod family;
mod incoming;
mod row_cursor;
mod rows;
mod runs;
mod slab;
mod slot;
mod stamps;
#[cfg(test)]
mod tests;

pub(crate) use cursor::{LonePuts, MemtableCursor};
pub(crate) use entry::Inline;
use family::FamilyCells;
use incoming::ROWS_AT_ONCE;
pub(crate) use incoming::{InlineCell, InlineCells, MemRow, SmallRow};
pub(crate) use row_cursor::MemtableRowCursor;

/// A region's memtable, with all families.
#[derive(Debug)]
pub(crate) struct Memtable {
    /// Guards the cells; rank: below the region's state, above nothing.
    families: RwLock<Vec<FamilyCells>>,
    /// Bytes of all memtables of the store that a flush could free. Relaxed: it throttles writers, roughly.
    gauge: Arc<AtomicU64>,
    /// How many regions hold it: two after a split. At 0 its bytes are no longer in the gauge. Written under the lock.
    holders: AtomicU32,
    /// Relaxed: it serves to plan flushes, roughly.
    bytes: AtomicU64,
    /// The smallest sequence number held; `u64::MAX` when empty. Written under the lock.
    first_sequence: AtomicU64,
}

impl Memtable {
    /// An empty memtable of one region; what is inserted is added to the gauge.
    pub(crate) fn new(gauge: Arc<AtomicU64>) -> Memtable {
        Memtable {
            families: RwLock::default(),
            gauge,
            holders: AtomicU32::new(1),
            bytes: AtomicU64::new(0),
            first_sequence: AtomicU64::new(u64::MAX),
        }
    }

    /// Counts one more region that holds it.
    pub(crate) fn share(&self) {
        let _cells = self.write();
        self.holders.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one region less: it has flushed the memtable, or was dropped. Readers may keep the memtable. When no region holds it,
    /// its bytes no longer throttle writers.
    pub(crate) fn release(&self) {
        let _cells = self.write();
        let holders = self.holders.fetch_sub(1, Ordering::Relaxed);
        assert!(holders > 0, "BUG: a memtable is released more often than it is held");
        if holders == 1 {
            self.gauge.fetch_sub(self.bytes(), Ordering::Relaxed);
        }
    }

    /// Begins to insert; all rows of the writer go in under one lock.
    pub(crate) fn insert(&self) -> MemtableWriter<'_> {
        MemtableWriter { memtable: self, families: self.write(), added_bytes: 0 }
    }

    fn write(&self) -> RwLockWriteGuard<'_, Vec<FamilyCells>> {
        self.families.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// For readers: all that they may see is in its rows.
    fn read(&self) -> RwLockReadGuard<'_, Vec<FamilyCells>> {
        let families = self.read_unsettled();
        if families.iter().all(|cells| cells.tail.is_empty()) {
            return families;
        }
        drop(families);
        self.write().iter_mut().for_each(FamilyCells::settle);
        // What came to the tail since is younger than the read point of whoever is here, or of a row that they do not own.
        self.read_unsettled()
    }

    fn read_unsettled(&self) -> RwLockReadGuard<'_, Vec<FamilyCells>> {
        self.families.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// About how much memory the cells take.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The number of the oldest write in it; `None` when empty.
    pub(crate) fn first_sequence(&self) -> Option<u64> {
        // Under the lock, so that a write which has its number and is being inserted is seen.
        let families = self.read_unsettled();
        let first = self.first_sequence.load(Ordering::Relaxed);
        drop(families);
        (first != u64::MAX).then_some(first)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first_sequence().is_none()
    }

    /// Whether it has cells of a row of a family.
    pub(crate) fn has_row(&self, family: FamilyId, row: &[u8]) -> bool {
        let families = self.read_unsettled();
        families.iter().any(|cells| cells.id == family && cells.rows.has(row, &cells.arena))
    }

    /// Tells the rows of a family that have tombstones, and the time of each of these.
    pub(crate) fn deleted_rows(&self, family: FamilyId, mut tell: impl FnMut(&[u8], Timestamp)) {
        let families = self.read_unsettled();
        for cells in families.iter().filter(|cells| cells.id == family) {
            for (row, until) in &cells.deleted {
                if let Some((key, _)) = cells.rows.row(*row, &cells.arena) {
                    tell(key, *until);
                }
            }
        }
    }
}

/// Inserts rows; holds the memtable's lock.
#[derive(Debug)]
pub(crate) struct MemtableWriter<'a> {
    memtable: &'a Memtable,
    families: RwLockWriteGuard<'a, Vec<FamilyCells>>,
    added_bytes: u64,
}

impl MemtableWriter<'_> {
    /// Inserts rows. Of two cells with the same address and number the later one stays.
    ///
    /// Cost: one look-up of the row for each run of cells of one family; a copy of the bytes.
    pub(crate) fn rows(&mut self, rows: &[MemRow<'_>]) {
        let first = rows.iter().map(|row| row.sequence.0).min();
        self.memtable.first_sequence.fetch_min(first.unwrap_or(u64::MAX), Ordering::Relaxed);
        let family_of = |row: &MemRow<'_>| row.cells.first().map(|cell| cell.family);
        for rows in rows.chunks(ROWS_AT_ONCE) {
            for alike in rows.chunk_by(|a, b| family_of(a) == family_of(b)) {
                let Some(family) = alike.first().and_then(family_of) else { continue };
                self.rows_of(family, alike);
            }
        }
    }

    /// As [`MemtableWriter::rows`]; `key_of` tells the key of a row, for those that are not there: once for each of their cells.
    pub(crate) fn inline_cells<'k>(&mut self, cells: &InlineCells<'_>, key_of: impl Fn(u32) -> &'k [u8]) {
        let first = cells.cells.first().map_or(u64::MAX, |cell| cells.stamp.1 + u64::from(cell.row));
        self.memtable.first_sequence.fetch_min(first, Ordering::Relaxed);
        let index = self.family_index(cells.family);
        if let Some(family) = self.families.get_mut(index) {
            self.added_bytes += family.insert_inline(cells, key_of);
        }
    }

    /// As [`MemtableWriter::rows`], of rows whose keys lie among `keys`.
    pub(crate) fn small_rows(&mut self, rows: &[SmallRow], keys: &[u8]) {
        let first = rows.iter().map(|row| row.sequence.0).min();
        self.memtable.first_sequence.fetch_min(first.unwrap_or(u64::MAX), Ordering::Relaxed);
        for rows in rows.chunks(ROWS_AT_ONCE) {
            for alike in rows.chunk_by(|a, b| a.family == b.family) {
                let Some(row) = alike.first() else { continue };
                let index = self.family_index(row.family);
                if let Some(cells) = self.families.get_mut(index) {
                    self.added_bytes += cells.insert_small(alike, keys);
                }
            }
        }
    }

    /// Inserts rows whose first cells are of one family.
    fn rows_of(&mut self, family: FamilyId, rows: &[MemRow<'_>]) {
        let index = self.family_index(family);
        let mut found = [None; ROWS_AT_ONCE];
        if let Some(cells) = self.families.get_mut(index)
            && let Some(found) = found.get_mut(..rows.len())
        {
            cells.rows.look_up(rows, found, &cells.arena);
        }
        for (row, found) in rows.iter().zip(found) {
            let count = row.cells.iter().take_while(|cell| cell.family == family).count();
            let (own, others) = row.cells.split_at(count);
            if let Some(cells) = self.families.get_mut(index) {
                self.added_bytes += cells.insert(row, found, own);
            }
            if !others.is_empty() {
                self.put(row, others);
            }
        }
    }

    /// Inserts cells of a row.
    fn put(&mut self, row: &MemRow<'_>, cells: &[LoggedCell<'_>]) {
        for run in cells.chunk_by(|a, b| a.family == b.family) {
            let Some(family) = run.first().map(|cell| cell.family) else { continue };
            let index = self.family_index(family);
            if let Some(cells) = self.families.get_mut(index) {
                self.added_bytes += cells.insert(row, None, run);
            }
        }
    }

    /// The index of a family's cells; adds the family if it has none yet.
    fn family_index(&mut self, family: FamilyId) -> usize {
        self.families.iter().position(|cells| cells.id == family).unwrap_or_else(|| {
            self.families.push(FamilyCells::new(family));
            self.families.len() - 1
        })
    }

    /// Ends the insert: counts its bytes and releases the lock.
    pub(crate) fn finish(self) {
        self.memtable.bytes.fetch_add(self.added_bytes, Ordering::Relaxed);
        // A write may come after its table was dropped. Nothing would then take its bytes off the gauge again.
        if self.memtable.holders.load(Ordering::Relaxed) > 0 {
            self.memtable.gauge.fetch_add(self.added_bytes, Ordering::Relaxed);
        }
    }
}
