//! Stores over a store: they do some of its calls themselves, and hand over the others.

use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;

use crate::{
    Append, Applied, CheckAndMutate, Compaction, FamilyDescriptor, Get, Increment, Lane, MutationBatch,
    NamespaceDescriptor, Pending, RegionInfo, Result, RowBatch, Scan, Scanner, SideLog, SnapshotInfo, SplitAt, Store,
    TableDescriptor, TableName, TruncatedRegions,
};

macro_rules! forward {
    ($($name:ident($($argument:ident: $type:ty),*) $(-> $answer:ty)?;)*) => {
        /// A store over another one, to which each call goes that is not written anew. Named by its path where it is implemented:
        /// imported beside [`Store`], its methods are as those.
        pub trait Forward: Send + Sync + Debug {
            /// The other store.
            fn inner(&self) -> &dyn Store;

            $(
                #[doc = concat!("As [`Store::", stringify!($name), "`].")]
                ///
                /// # Errors
                /// The other store's.
                fn $name(&self, $($argument: $type),*) $(-> $answer)? {
                    self.inner().$name($($argument),*)
                }
            )*
        }

        impl<T: Forward> Store for T {
            $(fn $name(&self, $($argument: $type),*) $(-> $answer)? {
                Forward::$name(self, $($argument),*)
            })*
        }
    };
}

forward! {
    create_namespace(namespace: NamespaceDescriptor) -> Result<()>;
    alter_namespace(namespace: NamespaceDescriptor) -> Result<()>;
    drop_namespace(namespace: &str) -> Result<()>;
    describe_namespace(namespace: &str) -> Result<NamespaceDescriptor>;
    list_namespaces() -> Result<Vec<NamespaceDescriptor>>;
    list_namespace_tables(namespace: &str) -> Result<Vec<TableName>>;
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
    push(lane: Lane);
    get(table: &TableName, get: Get) -> Pending<RowBatch>;
    scan(table: &TableName, scan: Scan) -> Result<Scanner>;
    increment(table: &TableName, increment: Increment) -> Pending<i64>;
    append(table: &TableName, append: Append) -> Pending<Bytes>;
    check_and_mutate(table: &TableName, check: CheckAndMutate) -> Pending<bool>;
    sync() -> Pending<()>;
    flush(table: &TableName) -> Result<()>;
    compact(table: &TableName, compaction: Compaction) -> Result<()>;
    side_log(name: &str) -> Option<Arc<dyn SideLog>>;
}
