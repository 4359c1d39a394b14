//! The contract that every store keeps: memory, the embedded engine, a real HBase.

use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;

use crate::{
    Append, CheckAndMutate, Error, FamilyDescriptor, Get, Increment, Lane, MutationBatch, NamespaceDescriptor, Pending,
    Result, RowBatch, Scan, Scanner, SideLog, SnapshotInfo, SplitAt, TableDescriptor, TableName,
};

/// A wide-column store. Calls are batch-sized: one dynamic dispatch a batch, never one a cell.
///
/// **Atomicity** is by row: all changes of one row entry of a batch are seen together or not at all, across families.
/// **Visibility**: a reader never sees a change that a crash could still take back, but for changes written below
/// [`Durability::Fsync`](crate::Durability::Fsync), which are seen at once; whoever was answered reads what they wrote.
/// **Read-modify-write** ([`Store::increment`], [`Store::append`],
/// [`Store::check_and_mutate`]) sees earlier changes of the row even before they are synced, and its answer waits for
/// all of them. **Log order**: a change answered at level `Fsync` makes every change that this store took before it
/// durable too, so that steps may be written `Async` and the last one synced.
///
/// Every method may fail with `Unavailable` (closed, or a table that is disabled), and every write with `ReadOnly` or
/// `Throttled`.
pub trait Store: Send + Sync + Debug {
    /// Makes a namespace (rules S-NS-1, S-NS-2).
    ///
    /// # Errors
    /// `Invalid`: a name or property that the rules refuse. `Conflict`: it exists.
    fn create_namespace(&self, namespace: NamespaceDescriptor) -> Result<()>;

    /// Gives a namespace other properties.
    ///
    /// # Errors
    /// `NotFound`: no such namespace. `Invalid`: a property that the rules refuse.
    fn alter_namespace(&self, namespace: NamespaceDescriptor) -> Result<()>;

    /// Removes a namespace that holds no table.
    ///
    /// # Errors
    /// `NotFound`: no such namespace. `Conflict`: it holds tables. `Invalid`: `default` and `hbase` stay (rule S-NS-3).
    fn drop_namespace(&self, namespace: &str) -> Result<()>;

    /// A namespace's properties.
    ///
    /// # Errors
    /// `NotFound`: no such namespace.
    fn describe_namespace(&self, namespace: &str) -> Result<NamespaceDescriptor>;

    /// Every namespace, sorted by name.
    ///
    /// # Errors
    /// `Unavailable`.
    fn list_namespaces(&self) -> Result<Vec<NamespaceDescriptor>>;

    /// The names of a namespace's tables, sorted.
    ///
    /// # Errors
    /// `NotFound`: no such namespace.
    fn list_namespace_tables(&self, namespace: &str) -> Result<Vec<TableName>> {
        let namespace = self.describe_namespace(namespace)?;
        let tables = self.list_tables()?;
        Ok(tables.into_iter().filter(|table| table.namespace() == &*namespace.name).collect())
    }

    /// A column family as this store makes it where nothing is said: HBase's defaults, but for what the store is set to
    /// (rule S-VERS-10).
    fn new_family(&self, name: &[u8]) -> FamilyDescriptor {
        FamilyDescriptor::new(Bytes::copy_from_slice(name))
    }

    /// Makes a table, tiled into regions at `splits`: sorted keys, none empty, no two equal (rules S-MAP-3, S-PRE-*).
    ///
    /// # Errors
    /// `Invalid`: a descriptor or splits that the rules refuse; a full quota of the namespace (rule S-NS-4). `Conflict`:
    /// the table exists. `NotFound`: no such namespace.
    fn create_table(&self, table: TableDescriptor, splits: &[Bytes]) -> Result<()>;

    /// Changes a table's settings while it serves: families added, removed with their data, or set anew.
    ///
    /// # Errors
    /// `NotFound`: no such table. `Invalid`: a descriptor that the rules refuse.
    fn alter_table(&self, table: TableDescriptor) -> Result<()>;

    /// Empties a table and keeps its settings; with its regions too, or as one region (HBase's `truncate_preserve` and
    /// `truncate`). It is enabled after it.
    ///
    /// # Errors
    /// `NotFound`: no such table.
    fn truncate_table(&self, table: &TableName, regions: TruncatedRegions) -> Result<()>;

    /// Lets a disabled table serve again.
    ///
    /// # Errors
    /// `NotFound`: no such table. `Conflict`: it is enabled.
    fn enable_table(&self, table: &TableName) -> Result<()>;

    /// Takes a table out of service: reads and changes of its cells fail with `Unavailable` until it is enabled, over
    /// reopening too. Its settings may still be altered; scans that have begun go on (rule S-ADMIN-2).
    ///
    /// # Errors
    /// `NotFound`: no such table. `Conflict`: it is disabled.
    fn disable_table(&self, table: &TableName) -> Result<()>;

    /// Whether a table serves.
    ///
    /// # Errors
    /// `NotFound`: no such table.
    fn is_table_enabled(&self, table: &TableName) -> Result<bool>;

    /// Removes a table with its data, enabled or not.
    ///
    /// # Errors
    /// `NotFound`: no such table.
    fn drop_table(&self, table: &TableName) -> Result<()>;

    /// A table's settings.
    ///
    /// # Errors
    /// `NotFound`: no such table.
    fn describe_table(&self, table: &TableName) -> Result<TableDescriptor>;

    /// Every table's name, sorted.
    ///
    /// # Errors
    /// `Unavailable`.
    fn list_tables(&self) -> Result<Vec<TableName>>;

    /// A table's regions in key order; they tile the key space without gap or overlap.
    ///
    /// # Errors
    /// `NotFound`: no such table.
    fn regions(&self, table: &TableName) -> Result<Vec<RegionInfo>>;

    /// Splits a region of a table in two, while it serves; answers the key that the second one begins with (rules
    /// S-SPLIT-1, S-PERF-2). The data stays where it is: compactions part it later.
    ///
    /// # Errors
    /// `NotFound`: no such table. `Invalid`: a region begins at that key already, a region has no row to be split at,
    /// or the table forbids it ([`SplitPolicy`](crate::SplitPolicy)). `ReadOnly`: no room.
    fn split_region(&self, table: &TableName, at: &SplitAt) -> Result<Bytes>;

    /// Keeps a table as it is now under a name, while it serves: it holds every change that was answered before, and no
    /// part of a row's change. What becomes of the table does not touch it, not even that the table is dropped.
    ///
    /// # Errors
    /// `NotFound`: no such table. `Conflict`: a snapshot of that name. `Invalid`: a name that the rules refuse.
    /// `ReadOnly`: no room.
    fn snapshot(&self, table: &TableName, name: &str) -> Result<()>;

    /// Every snapshot, by name.
    ///
    /// # Errors
    /// `Unavailable`.
    fn list_snapshots(&self) -> Result<Vec<SnapshotInfo>>;

    /// Puts the table of a snapshot back as it was, settings and regions too; what it is now is gone. The table must be
    /// disabled, and stays so; when it is gone it is made anew.
    ///
    /// # Errors
    /// `NotFound`: no such snapshot. `Conflict`: the table is enabled. `Invalid`: over a namespace's quota.
    /// `Corrupt`: a file of the snapshot is damaged; the table stays as it is.
    fn restore_snapshot(&self, name: &str) -> Result<()>;

    /// Makes a new table of what a snapshot keeps.
    ///
    /// # Errors
    /// As [`Store::restore_snapshot`]; `Conflict`: the table exists. `NotFound`: no such namespace.
    fn clone_snapshot(&self, name: &str, table: &TableName) -> Result<()>;

    /// Forgets a snapshot. Tables that were made of it stay.
    ///
    /// # Errors
    /// `NotFound`: no such snapshot.
    fn delete_snapshot(&self, name: &str) -> Result<()>;

    /// Applies a batch. The answer comes when every row in it is stored as durably as the batch asks; rows that
    /// the rules refuse are told apart and harm no other. Server-assigned times never go back, and one row entry's
    /// changes share one time.
    ///
    /// # Errors
    /// `NotFound`: no such table. `Unavailable`: the outcome of each row is unknown.
    fn apply(&self, table: &TableName, batch: MutationBatch) -> Pending<Applied>;

    /// Makes what was applied as [held](MutationBatch::hold) in a lane durable, on this thread where the store can; their answers say
    /// how it went. A store that does not wait for it does nothing.
    ///
    /// *Cost*: blocks for a write to disk, which batches of all callers share.
    fn push(&self, lane: Lane) {
        let _ = lane;
    }

    /// Reads rows by key (rule S-GET-1).
    ///
    /// # Errors
    /// `NotFound`: no such table or family. `Corrupt`: damaged bytes; never a wrong answer.
    fn get(&self, table: &TableName, get: Get) -> Pending<RowBatch>;

    /// Begins a scan over the table's regions in key order.
    ///
    /// # Errors
    /// `NotFound`: no such table or family. `Invalid`: a request that makes no sense. Later ones come by the scanner.
    fn scan(&self, table: &TableName, scan: Scan) -> Result<Scanner>;

    /// Adds to an 8-byte big-endian counter, absent meaning 0, wrapping; answers the new value (rule S-CNT-1).
    /// The new cell's time is the server's own, or the millisecond after the old cell's where that is later, so that each
    /// is a version of its own.
    ///
    /// # Errors
    /// `Invalid`: the cell holds something else, which stays (rule S-CNT-3).
    fn increment(&self, table: &TableName, increment: Increment) -> Pending<i64>;

    /// Appends bytes to a cell's value, absent meaning empty; answers the new value. Its time is as an increment's.
    ///
    /// # Errors
    /// `Invalid`: the value would pass the store's bound.
    fn append(&self, table: &TableName, append: Append) -> Pending<Bytes>;

    /// Applies a row's changes if a cell of that row is as expected; answers whether it did. Changes without a time
    /// get the server's own, or the checked cell's where that is later.
    ///
    /// # Errors
    /// `Invalid`: the changes are none, or not of exactly the row that is checked.
    fn check_and_mutate(&self, table: &TableName, check: CheckAndMutate) -> Pending<bool>;

    /// Makes everything taken so far durable.
    fn sync(&self) -> Pending<()>;

    /// Moves a table's memtables into files, and returns when they are there. A store without files does nothing.
    ///
    /// # Errors
    /// `NotFound`: no such table. `ReadOnly`: no room.
    fn flush(&self, table: &TableName) -> Result<()>;

    /// Compacts a table, and returns when it is done. A store without files applies what the rules say a compaction does.
    ///
    /// # Errors
    /// `NotFound`: no such table. `ReadOnly`: no room.
    fn compact(&self, table: &TableName, compaction: Compaction) -> Result<()>;

    /// The log of this name beside the tables; one and the same as long as the store is open. `None`: the store keeps none, as it
    /// is not alone in writing its rows, or keeps nothing.
    fn side_log(&self, _name: &str) -> Option<Arc<dyn SideLog>> {
        None
    }
}

/// How a batch went.
#[derive(Debug, Clone, Default)]
pub struct Applied {
    /// The rows that were refused, by index into the batch's rows, ascending. All others are stored.
    pub failed: Vec<RowFailure>,
}

impl Applied {
    /// For a caller that needs every row: the first that was refused is the error.
    ///
    /// ```
    /// use basalt_store::{Applied, Error, RowFailure};
    ///
    /// assert!(Applied::default().all_stored().is_ok());
    /// let failed = vec![RowFailure { row: 1, error: Error::Throttled { what: "memtable" } }];
    /// assert!(Applied { failed }.all_stored().is_err());
    /// ```
    ///
    /// # Errors
    /// The row's own; the others are stored.
    pub fn all_stored(self) -> Result<()> {
        self.failed.into_iter().next().map_or(Ok(()), |failure| Err(failure.error))
    }
}

/// A row that was refused.
#[derive(Debug, Clone)]
pub struct RowFailure {
    /// Index of the row entry in the batch.
    pub row: usize,
    /// Why.
    pub error: Error,
}

/// What becomes of a table's regions when it is emptied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TruncatedRegions {
    /// They stay, each empty.
    Kept,
    /// One is left, of all keys.
    Merged,
}

/// Which compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compaction {
    /// Merges some files; tombstones stay.
    Minor,
    /// Merges all files of each region and family; what no reader may see goes (rule S-DEL-1).
    Major,
}

/// A region of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionInfo {
    /// Names the region in its store; never used twice.
    pub id: u64,
    /// First key; empty for the table's first region.
    pub start: Bytes,
    /// Key after the last; empty for the table's last region.
    pub end: Bytes,
    /// Bytes in files.
    pub file_bytes: u64,
    /// Bytes in memtables.
    pub memtable_bytes: u64,
    /// Files.
    pub files_count: u64,
    /// Reads answered since the store was opened, one a get or scan that touched the region.
    pub reads_count: u64,
    /// Row changes taken since the store was opened.
    pub writes_count: u64,
}
