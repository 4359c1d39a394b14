//! The reference store: sorted maps in memory, simple enough to be seen to be right. Every other store is measured
//! against it, and `serve --store memory`, which is for trying things out, runs on it. Nothing survives the process, and memory
//! is the only bound: nothing is refused as there is too much.
//!
//! A table is compacted as a whole by the change after which as many cells were put as the compaction before left, so that
//! versions in excess, tombstones and what TTL took are at most about as much as what is read. A minor compaction keeps
//! tombstones. There are no files: a flush does nothing.
//!
//! One lock a table, so each row change is atomic and each batch of a scan is of one moment. What a reader sees is
//! decided by [`RowReader`](crate::RowReader), not here. The fold hook is not run.

mod counters;
mod lock;
mod read;
mod rows;
mod snapshot;
mod table;
mod write;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, RwLock};

use bytes::Bytes;

use self::counters::Counters;
use self::lock::{read, write};
use self::rows::Rows;
use self::snapshot::{Image, Snapshot};
use self::table::Table;
use crate::{
    Append, Applied, CheckAndMutate, Clock, Compaction, Error, FamilyDescriptor, Get, Guards, Increment, MutationBatch,
    NamespaceDescriptor, NamespaceLoad, Namespaces, Pending, RegionInfo, Result, RowBatch, Scan, Scanner, SnapshotInfo,
    SplitAt, Store, TableDescriptor, TableName, TableState, Trigger, TruncatedRegions, check_snapshot_name,
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
    /// Guards which namespaces and tables there are; rank 1, taken before a table's own lock and never while one is held.
    catalog: RwLock<Catalog>,
    counters: Counters,
    value_bytes_max: usize,
    purge_delay_ms: u64,
    triggers: Vec<Arc<dyn Trigger>>,
}

/// Namespaces, tables and snapshots.
#[derive(Debug, Default)]
struct Catalog {
    namespaces: Namespaces,
    tables: BTreeMap<TableName, Arc<Table>>,
    snapshots: BTreeMap<Box<str>, Snapshot>,
}

impl Catalog {
    fn table(&self, name: &TableName) -> Result<&Arc<Table>> {
        self.tables.get(name).ok_or_else(|| Error::UnknownTable { table: name.to_string().into() })
    }

    fn snapshot(&self, name: &str) -> Result<&Snapshot> {
        self.snapshots.get(name).ok_or_else(|| Error::UnknownSnapshot { snapshot: name.into() })
    }

    /// Puts a table where there is none.
    fn add_table(&mut self, image: Image, next_region: &AtomicU64) -> Result<()> {
        let name = image.descriptor.name.clone();
        let namespace = self.namespaces.get(name.namespace())?;
        if self.tables.contains_key(&name) {
            return Err(Error::TableExists { table: name.to_string().into() });
        }
        let there = self.tables_of(&namespace.name).map(|table| table.regions_count());
        self.namespaces.check_table(&name, image.splits.len() as u64 + 1, NamespaceLoad::of(there))?;
        let state = TableState { disabled: false, namespace_read_only: namespace.is_read_only() };
        let made = Table::of_image(image, state, next_region)?;
        self.tables.insert(name, Arc::new(made));
        Ok(())
    }

    fn tables_of(&self, namespace: &str) -> impl Iterator<Item = &Arc<Table>> {
        self.tables.iter().filter(move |(name, _)| name.namespace() == namespace).map(|(_, table)| table)
    }
}

impl MemoryStore {
    /// An empty store on this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            catalog: RwLock::default(),
            counters: Counters::default(),
            value_bytes_max: VALUE_BYTES_MAX_DEFAULT,
            purge_delay_ms: 0,
            triggers: Vec::new(),
        }
    }

    /// The same with triggers that tables may name.
    #[must_use]
    pub fn with_triggers(mut self, triggers: Vec<Arc<dyn Trigger>>) -> Self {
        self.triggers = triggers;
        self
    }

    /// The same with tombstones that outlive major compactions for so long after their time (HBase:
    /// `hbase.hstore.time.to.purge.deletes`, 0 by default; a table's attribute of that name goes before it).
    #[must_use]
    pub fn with_purge_delay(mut self, milliseconds: u64) -> Self {
        self.purge_delay_ms = milliseconds;
        self
    }

    /// The same with another bound on a value's bytes (10 MiB by default).
    #[must_use]
    pub fn with_value_bytes_max(mut self, bytes: usize) -> Self {
        self.value_bytes_max = bytes;
        self
    }

    fn table(&self, name: &TableName) -> Result<Arc<Table>> {
        read(&self.catalog).table(name).map(Arc::clone)
    }

    fn with_writer<T>(&self, table: &TableName, write: impl FnOnce(write::Writer<'_>) -> Result<T>) -> Pending<T> {
        let written = self.table(table).and_then(|table| {
            let now = self.clock.now();
            let settings = write::Settings { value_bytes_max: self.value_bytes_max, triggers: &self.triggers };
            let written = write(write::Writer::begin(&table, &self.counters, now, settings)?);
            if table.is_compaction_due() {
                table.compact(Compaction::Major, now, self.purge_delay_ms);
            }
            written
        });
        Pending::ready(written)
    }

    fn switch_table(&self, table: &TableName, enable: bool) -> Result<()> {
        self.table(table)?.set_serves(|state| {
            state.check_switch(table, enable)?;
            state.disabled = !enable;
            Ok(())
        })
    }
}

impl Store for MemoryStore {
    fn new_family(&self, name: &[u8]) -> FamilyDescriptor {
        FamilyDescriptor::new(Bytes::copy_from_slice(name))
    }

    fn create_namespace(&self, namespace: NamespaceDescriptor) -> Result<()> {
        let mut catalog = write(&self.catalog);
        catalog.namespaces.check_create(&namespace)?;
        catalog.namespaces.set(namespace);
        Ok(())
    }

    fn alter_namespace(&self, namespace: NamespaceDescriptor) -> Result<()> {
        let mut catalog = write(&self.catalog);
        catalog.namespaces.check_alter(&namespace)?;
        for table in catalog.tables_of(&namespace.name) {
            table.set_serves(|state| {
                state.namespace_read_only = namespace.is_read_only();
                Ok(())
            })?;
        }
        catalog.namespaces.set(namespace);
        Ok(())
    }

    fn drop_namespace(&self, namespace: &str) -> Result<()> {
        let mut catalog = write(&self.catalog);
        let tables_count = catalog.tables_of(namespace).count() as u64;
        catalog.namespaces.check_drop(namespace, tables_count)?;
        catalog.namespaces.remove(namespace);
        Ok(())
    }

    fn describe_namespace(&self, namespace: &str) -> Result<NamespaceDescriptor> {
        read(&self.catalog).namespaces.get(namespace).cloned()
    }

    fn list_namespaces(&self) -> Result<Vec<NamespaceDescriptor>> {
        Ok(read(&self.catalog).namespaces.iter().cloned().collect())
    }

    fn create_table(&self, table: TableDescriptor, splits: &[Bytes]) -> Result<()> {
        table.validate_change(None)?;
        Guards::of(&table, &self.triggers)?;
        let image = Image { descriptor: table, splits: splits.to_vec(), rows: Rows::new() };
        write(&self.catalog).add_table(image, &self.counters.regions)
    }

    fn alter_table(&self, table: TableDescriptor) -> Result<()> {
        Guards::of(&table, &self.triggers)?;
        self.table(&table.name)?.alter(table)
    }

    fn truncate_table(&self, table: &TableName, regions: TruncatedRegions) -> Result<()> {
        let mut catalog = write(&self.catalog);
        let emptied = catalog.table(table)?.emptied(regions, &self.counters.regions)?;
        catalog.tables.insert(table.clone(), Arc::new(emptied));
        Ok(())
    }

    fn enable_table(&self, table: &TableName) -> Result<()> {
        self.switch_table(table, true)
    }

    fn disable_table(&self, table: &TableName) -> Result<()> {
        self.switch_table(table, false)
    }

    fn is_table_enabled(&self, table: &TableName) -> Result<bool> {
        Ok(!self.table(table)?.serves().disabled)
    }

    fn drop_table(&self, table: &TableName) -> Result<()> {
        let mut catalog = write(&self.catalog);
        catalog.table(table)?;
        catalog.tables.remove(table);
        Ok(())
    }

    fn describe_table(&self, table: &TableName) -> Result<TableDescriptor> {
        Ok(self.table(table)?.descriptor())
    }

    fn list_tables(&self) -> Result<Vec<TableName>> {
        Ok(read(&self.catalog).tables.keys().cloned().collect())
    }

    fn regions(&self, table: &TableName) -> Result<Vec<RegionInfo>> {
        Ok(self.table(table)?.regions())
    }

    fn split_region(&self, table: &TableName, at: &SplitAt) -> Result<Bytes> {
        let catalog = read(&self.catalog);
        let namespace = catalog.namespaces.get(table.namespace())?;
        let there: usize = catalog.tables_of(&namespace.name).map(|table| table.regions_count()).sum();
        catalog.table(table)?.split(at, &self.counters.regions, || namespace.check_regions(there as u64, 1))
    }

    fn snapshot(&self, table: &TableName, name: &str) -> Result<()> {
        check_snapshot_name(name)?;
        let mut catalog = write(&self.catalog);
        let image = catalog.table(table)?.image();
        if catalog.snapshots.contains_key(name) {
            return Err(Error::SnapshotExists { snapshot: name.into() });
        }
        let info = SnapshotInfo {
            name: name.into(),
            table: table.clone(),
            created: self.clock.now(),
            regions_count: image.splits.len() as u64 + 1,
            files_count: 0,
            file_bytes: 0,
        };
        catalog.snapshots.insert(name.into(), Snapshot { info, image });
        Ok(())
    }

    fn list_snapshots(&self) -> Result<Vec<SnapshotInfo>> {
        Ok(read(&self.catalog).snapshots.values().map(|snapshot| snapshot.info.clone()).collect())
    }

    fn restore_snapshot(&self, name: &str) -> Result<()> {
        let mut catalog = write(&self.catalog);
        let image = catalog.snapshot(name)?.image.clone();
        let table = image.descriptor.name.clone();
        let Some(there) = catalog.tables.get(&table) else {
            return catalog.add_table(image, &self.counters.regions);
        };
        let state = there.serves();
        if !state.disabled {
            return Err(Error::TableEnabled { table: table.to_string().into() });
        }
        let others = catalog.tables_of(table.namespace()).map(|other| other.regions_count()).sum::<usize>();
        let others = (others - there.regions_count()) as u64;
        catalog.namespaces.get(table.namespace())?.check_regions(others, image.splits.len() as u64 + 1)?;
        let restored = Table::of_image(image, state, &self.counters.regions)?;
        catalog.tables.insert(table, Arc::new(restored));
        Ok(())
    }

    fn clone_snapshot(&self, name: &str, table: &TableName) -> Result<()> {
        let mut catalog = write(&self.catalog);
        let mut image = catalog.snapshot(name)?.image.clone();
        image.descriptor.name = table.clone();
        image.descriptor.validate()?;
        catalog.add_table(image, &self.counters.regions)
    }

    fn delete_snapshot(&self, name: &str) -> Result<()> {
        let forgotten = write(&self.catalog).snapshots.remove(name);
        forgotten.map(drop).ok_or_else(|| Error::UnknownSnapshot { snapshot: name.into() })
    }

    fn apply(&self, table: &TableName, batch: MutationBatch) -> Pending<Applied> {
        self.with_writer(table, |writer| Ok(writer.apply(&batch)))
    }

    fn get(&self, table: &TableName, get: Get) -> Pending<RowBatch> {
        Pending::ready(self.table(table).and_then(|table| read::get(&table, &get, self.clock.now())))
    }

    fn scan(&self, table: &TableName, scan: Scan) -> Result<Scanner> {
        read::scan(self.table(table)?, &scan, self.clock.now())
    }

    fn increment(&self, table: &TableName, increment: Increment) -> Pending<i64> {
        self.with_writer(table, |writer| writer.increment(&increment))
    }

    fn append(&self, table: &TableName, append: Append) -> Pending<Bytes> {
        self.with_writer(table, |writer| writer.append(&append))
    }

    fn check_and_mutate(&self, table: &TableName, check: CheckAndMutate) -> Pending<bool> {
        self.with_writer(table, |writer| writer.check_and_mutate(&check))
    }

    fn sync(&self) -> Pending<()> {
        Pending::ready(Ok(()))
    }

    fn flush(&self, table: &TableName) -> Result<()> {
        self.table(table).map(drop)
    }

    fn compact(&self, table: &TableName, compaction: Compaction) -> Result<()> {
        self.table(table)?.compact(compaction, self.clock.now(), self.purge_delay_ms);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
