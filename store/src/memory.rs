//! The reference store: sorted maps in memory, simple enough to be seen to be right. Every other store is measured
//! against it, and `serve --store memory` runs on it. Nothing survives the process.
//!
//! One lock a table, so each row change is atomic and each batch of a scan is of one moment. What a reader sees is
//! decided by [`RowReader`](crate::RowReader), not here. The fold hook is not run.

mod read;
mod rows;
mod table;
mod write;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::Bytes;

use self::table::Table;
use crate::{
    Append, Applied, CheckAndMutate, Clock, Compaction, Error, Get, Increment, MutationBatch, Pending, RegionInfo,
    Result, RowBatch, Scan, Scanner, Store, TableDescriptor, TableName, Timestamp,
};

/// Longest value in bytes by default, 10 MiB (HBase: `hbase.client.keyvalue.maxsize`).
const VALUE_BYTES_MAX_DEFAULT: usize = 10 * 1024 * 1024;

/// The reference store: sorted maps in memory. Cheap to make, gone with the process.
///
/// ```
/// # use std::sync::Arc;
/// # use basalt_store::*;
/// let store = MemoryStore::new(Arc::new(ManualClock::new(Timestamp(1000))));
/// let table: TableName = "t".parse()?;
/// store.create_table(TableDescriptor::new(table.clone(), vec![FamilyDescriptor::new("f")]), &[])?;
/// let mut batch = MutationBatch::default();
/// batch.row(b"r")?.put(b"f", b"q", None, b"v")?;
/// assert!(store.apply(&table, batch).wait()?.failed.is_empty());
/// assert_eq!(store.get(&table, Get::row("r")).wait()?.cells_count(), 1);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    /// Guards which tables there are; rank 1, taken before a table's own lock and never while one is held.
    tables: RwLock<BTreeMap<TableName, Arc<Table>>>,
    counters: Counters,
    value_bytes_max: usize,
}

/// What grows with every change, over all tables.
#[derive(Debug, Default)]
struct Counters {
    // Relaxed: taken under a table's write lock, which orders the changes that must be ordered.
    seq: AtomicU64,
    // Relaxed, as above.
    stamp_ms: AtomicU64,
}

impl Counters {
    /// The next change's sequence number.
    fn next_seq(&self) -> crate::SeqNo {
        crate::SeqNo(self.seq.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// The server's time for a change: `now`, or the largest given so far when the clock went back.
    fn stamp(&self, now: Timestamp) -> Timestamp {
        Timestamp(self.stamp_ms.fetch_max(now.0, Ordering::Relaxed).max(now.0))
    }
}

impl MemoryStore {
    /// An empty store on this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            tables: RwLock::default(),
            counters: Counters::default(),
            value_bytes_max: VALUE_BYTES_MAX_DEFAULT,
        }
    }

    /// The same with another bound on a value's bytes (10 MiB by default).
    #[must_use]
    pub fn with_value_bytes_max(mut self, bytes: usize) -> Self {
        self.value_bytes_max = bytes;
        self
    }

    fn table(&self, name: &TableName) -> Result<Arc<Table>> {
        read(&self.tables).get(name).map(Arc::clone).ok_or_else(|| unknown(name))
    }

    fn writer<'a>(&'a self, table: &'a Table) -> write::Writer<'a> {
        write::Writer::begin(table, &self.counters, self.clock.now(), self.value_bytes_max)
    }
}

impl Store for MemoryStore {
    fn create_table(&self, table: TableDescriptor, splits: &[Bytes]) -> Result<()> {
        table.validate()?;
        match write(&self.tables).entry(table.name.clone()) {
            Entry::Occupied(there) => Err(Error::TableExists { table: there.key().to_string().into() }),
            Entry::Vacant(place) => {
                place.insert(Arc::new(Table::new(table, splits)?));
                Ok(())
            }
        }
    }

    fn alter_table(&self, table: TableDescriptor) -> Result<()> {
        self.table(&table.name)?.alter(table)
    }

    fn truncate_table(&self, table: &TableName) -> Result<()> {
        self.table(table)?.truncate();
        Ok(())
    }

    fn drop_table(&self, table: &TableName) -> Result<()> {
        write(&self.tables).remove(table).map(drop).ok_or_else(|| unknown(table))
    }

    fn describe_table(&self, table: &TableName) -> Result<TableDescriptor> {
        Ok(self.table(table)?.descriptor())
    }

    fn list_tables(&self) -> Result<Vec<TableName>> {
        Ok(read(&self.tables).keys().cloned().collect())
    }

    fn regions(&self, table: &TableName) -> Result<Vec<RegionInfo>> {
        Ok(self.table(table)?.regions())
    }

    fn apply(&self, table: &TableName, batch: MutationBatch) -> Pending<Applied> {
        Pending::ready(self.table(table).map(|table| self.writer(&table).apply(&batch)))
    }

    fn get(&self, table: &TableName, get: Get) -> Pending<RowBatch> {
        Pending::ready(self.table(table).and_then(|table| read::get(&table, &get, self.clock.now())))
    }

    fn scan(&self, table: &TableName, scan: Scan) -> Result<Scanner> {
        read::scan(self.table(table)?, &scan, self.clock.now())
    }

    fn increment(&self, table: &TableName, increment: Increment) -> Pending<i64> {
        Pending::ready(self.table(table).and_then(|table| self.writer(&table).increment(&increment)))
    }

    fn append(&self, table: &TableName, append: Append) -> Pending<Bytes> {
        Pending::ready(self.table(table).and_then(|table| self.writer(&table).append(&append)))
    }

    fn check_and_mutate(&self, table: &TableName, check: CheckAndMutate) -> Pending<bool> {
        Pending::ready(self.table(table).and_then(|table| self.writer(&table).check_and_mutate(&check)))
    }

    fn sync(&self) -> Pending<()> {
        Pending::ready(Ok(()))
    }

    fn flush(&self, table: &TableName) -> Result<()> {
        self.table(table).map(drop)
    }

    fn compact(&self, table: &TableName, compaction: Compaction) -> Result<()> {
        let table = self.table(table)?;
        // A minor one may drop what no reader sees, and need not: kept, it is there for raw reads.
        if compaction == Compaction::Major {
            table.compact(compaction, self.clock.now());
        }
        Ok(())
    }
}

fn unknown(table: &TableName) -> Error {
    Error::UnknownTable { table: table.to_string().into() }
}

/// Locks for reading. A lock poisoned by a panic elsewhere still guards whole rows: each is changed after every check.
fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

/// Locks for writing; see [`read`].
fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
