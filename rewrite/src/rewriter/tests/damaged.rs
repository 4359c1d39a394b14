//! A store one row of which cannot be read: a get of it and of others fails as a whole.

use std::sync::Mutex;

use basalt_store::{
    Append, Applied, CheckAndMutate, Compaction, FamilyDescriptor, Get, Increment, MemoryStore, MutationBatch,
    NamespaceDescriptor, Pending, RegionInfo, Result, RowBatch, Scan, Scanner, SnapshotInfo, SplitAt, Store,
    TableDescriptor, TableName, TruncatedRegions,
};
use bytes::Bytes;

#[derive(Debug)]
pub(super) struct DamagedStore {
    pub(super) store: MemoryStore,
    /// The row, and why; guards nothing else.
    pub(super) row: Mutex<Option<(Vec<u8>, basalt_store::Error)>>,
}

/// Hands calls over as they are.
macro_rules! as_they_are {
    ($($name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        $(fn $name(&self, $($argument: $type),*) -> $answer {
            self.store.$name($($argument),*)
        })*
    };
}

impl Store for DamagedStore {
    as_they_are! {
        create_namespace(namespace: NamespaceDescriptor) -> Result<()>;
        alter_namespace(namespace: NamespaceDescriptor) -> Result<()>;
        drop_namespace(namespace: &str) -> Result<()>;
        describe_namespace(namespace: &str) -> Result<NamespaceDescriptor>;
        list_namespaces() -> Result<Vec<NamespaceDescriptor>>;
        new_family(name: &[u8]) -> FamilyDescriptor;
        create_table(table: TableDescriptor, splits: &[Bytes]) -> Result<()>;
        alter_table(table: TableDescriptor) -> Result<()>;
        truncate_table(table: &TableName, regions: TruncatedRegions) -> Result<()>;
        enable_table(table: &TableName) -> Result<()>;
        disable_table(table: &TableName) -> Result<()>;
        is_table_enabled(table: &TableName) -> Result<bool>;
        drop_table(table: &TableName) -> Result<()>;
        describe_table(table: &TableName) -> Result<TableDescriptor>;
        list_tables() -> Result<Vec<TableName>>;
        regions(table: &TableName) -> Result<Vec<RegionInfo>>;
        split_region(table: &TableName, at: &SplitAt) -> Result<Bytes>;
        snapshot(table: &TableName, name: &str) -> Result<()>;
        list_snapshots() -> Result<Vec<SnapshotInfo>>;
        restore_snapshot(name: &str) -> Result<()>;
        clone_snapshot(name: &str, table: &TableName) -> Result<()>;
        delete_snapshot(name: &str) -> Result<()>;
        apply(table: &TableName, batch: MutationBatch) -> Pending<Applied>;
        scan(table: &TableName, scan: Scan) -> Result<Scanner>;
        increment(table: &TableName, increment: Increment) -> Pending<i64>;
        append(table: &TableName, append: Append) -> Pending<Bytes>;
        check_and_mutate(table: &TableName, check: CheckAndMutate) -> Pending<bool>;
        sync() -> Pending<()>;
        flush(table: &TableName) -> Result<()>;
        compact(table: &TableName, compaction: Compaction) -> Result<()>;
    }

    fn get(&self, table: &TableName, get: Get) -> Pending<RowBatch> {
        match &*self.row.lock().unwrap() {
            Some((row, error)) if get.rows.iter().any(|asked| asked == row) => Pending::ready(Err(error.clone())),
            _ => self.store.get(table, get),
        }
    }
}
