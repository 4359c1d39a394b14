//! The facade as a [`Store`]: each call finds its table, and whether it may be done, and hands on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};

use basalt_store::{
    Append, Applied, CheckAndMutate, Compaction, FamilyDescriptor, Get, Increment, Lane, MutationBatch,
    NamespaceDescriptor, Pending, RegionInfo, RowBatch, Scan, Scanner, SideLog, SnapshotInfo, SplitAt, Store,
    TableDescriptor, TableName, TruncatedRegions,
};
use bytes::Bytes;

use super::Engine;
use crate::core::Core;
use crate::error::Error;

impl Store for Engine {
    fn new_family(&self, name: &[u8]) -> FamilyDescriptor {
        FamilyDescriptor::new(Bytes::copy_from_slice(name)).with_versions(self.core.limits.versions_default)
    }

    fn create_namespace(&self, namespace: NamespaceDescriptor) -> basalt_store::Result<()> {
        self.work(|core| core.create_namespace(namespace))
    }

    fn alter_namespace(&self, namespace: NamespaceDescriptor) -> basalt_store::Result<()> {
        self.work(|core| core.alter_namespace(&namespace))
    }

    fn drop_namespace(&self, namespace: &str) -> basalt_store::Result<()> {
        self.work(|core| core.drop_namespace(namespace))
    }

    fn describe_namespace(&self, namespace: &str) -> basalt_store::Result<NamespaceDescriptor> {
        self.core.manifest().catalog().namespaces.get(namespace).cloned()
    }

    fn list_namespaces(&self) -> basalt_store::Result<Vec<NamespaceDescriptor>> {
        Ok(self.core.manifest().catalog().namespaces.iter().cloned().collect())
    }

    fn create_table(&self, table: TableDescriptor, splits: &[Bytes]) -> basalt_store::Result<()> {
        self.work(|core| core.create_table(table, splits))
    }

    fn alter_table(&self, table: TableDescriptor) -> basalt_store::Result<()> {
        self.work(|core| core.alter_table(table))
    }

    fn truncate_table(&self, table: &TableName, regions: TruncatedRegions) -> basalt_store::Result<()> {
        self.work(|core| core.truncate_table(table, regions))
    }

    fn enable_table(&self, table: &TableName) -> basalt_store::Result<()> {
        self.work(|core| core.switch_table(table, true))
    }

    fn disable_table(&self, table: &TableName) -> basalt_store::Result<()> {
        self.work(|core| core.switch_table(table, false))
    }

    fn is_table_enabled(&self, table: &TableName) -> basalt_store::Result<bool> {
        Ok(!self.table(table)?.shape().state.disabled)
    }

    fn drop_table(&self, table: &TableName) -> basalt_store::Result<()> {
        self.work(|core| core.drop_table(table))
    }

    fn describe_table(&self, table: &TableName) -> basalt_store::Result<TableDescriptor> {
        Ok(self.table(table)?.shape().descriptor.clone())
    }

    fn list_tables(&self) -> basalt_store::Result<Vec<TableName>> {
        Ok(self.core.tables.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect())
    }

    fn regions(&self, table: &TableName) -> basalt_store::Result<Vec<RegionInfo>> {
        let table = self.table(table)?;
        Ok(Core::region_infos(&table))
    }

    fn split_region(&self, table: &TableName, at: &SplitAt) -> basalt_store::Result<Bytes> {
        self.work(|core| core.table(table).and_then(|table| core.split_region(&table, at)))
    }

    fn snapshot(&self, table: &TableName, name: &str) -> basalt_store::Result<()> {
        self.work(|core| core.snapshot(table, name))
    }

    fn list_snapshots(&self) -> basalt_store::Result<Vec<SnapshotInfo>> {
        self.check_open()?;
        Ok(self.core.list_snapshots())
    }

    fn restore_snapshot(&self, name: &str) -> basalt_store::Result<()> {
        self.work(|core| core.restore_snapshot(name))
    }

    fn clone_snapshot(&self, name: &str, table: &TableName) -> basalt_store::Result<()> {
        self.work(|core| core.clone_snapshot(name, table))
    }

    fn delete_snapshot(&self, name: &str) -> basalt_store::Result<()> {
        self.work(|core| core.delete_snapshot(name))
    }

    fn apply(&self, table: &TableName, batch: MutationBatch) -> Pending<Applied> {
        self.change(table, |table| self.core.apply(table, batch))
    }

    fn push(&self, lane: Lane) {
        // As on the log's own thread: what died half-way leaves nothing that may be promised.
        let push = || {
            self.core.apply_held(lane);
            self.core.wal.push();
        };
        if catch_unwind(AssertUnwindSafe(push)).is_err() {
            self.core.condition.poison(&Error::WorkerDied { worker: "push" });
            self.core.wal.fail_all();
        }
    }

    fn get(&self, table: &TableName, get: Get) -> Pending<RowBatch> {
        let got = self.readable(table).and_then(|table| self.core.get(&table, &get));
        Pending::ready(got.map_err(Into::into))
    }

    fn scan(&self, table: &TableName, scan: Scan) -> basalt_store::Result<Scanner> {
        Ok(self.core.scan(self.readable(table)?, scan)?)
    }

    fn increment(&self, table: &TableName, increment: Increment) -> Pending<i64> {
        self.change(table, |table| self.core.increment(table, &increment))
    }

    fn append(&self, table: &TableName, append: Append) -> Pending<Bytes> {
        self.change(table, |table| self.core.append(table, &append))
    }

    fn check_and_mutate(&self, table: &TableName, check: CheckAndMutate) -> Pending<bool> {
        self.change(table, |table| self.core.check_and_mutate(table, &check))
    }

    fn sync(&self) -> Pending<()> {
        let (completer, pending) = Pending::channel();
        self.core.apply_gathered();
        self.core.wal.sync(Box::new(move |result| completer.complete(result.map_err(Into::into))));
        pending
    }

    fn flush(&self, table: &TableName) -> basalt_store::Result<()> {
        self.work(|core| core.table(table).and_then(|table| core.flush_table(&table)))
    }

    fn compact(&self, table: &TableName, compaction: Compaction) -> basalt_store::Result<()> {
        self.work(|core| core.table(table).and_then(|table| core.compact_table(&table, compaction)))
    }

    fn side_log(&self, name: &str) -> Option<Arc<dyn SideLog>> {
        Some(self.core.side_logs.get(name))
    }
}
