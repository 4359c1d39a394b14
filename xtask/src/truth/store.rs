//! The program's own client of HBase, on the driver's cluster. What no client of HBase's can ask for goes to the driver:
//! a compaction of chosen files, sizes to the byte, the regions of a snapshot.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use basalt_hbase::{HBaseOptions, HBaseStore};
use basalt_store::{
    Append, Applied, CheckAndMutate, Compaction, Error, ErrorKind, Get, Increment, MutationBatch, NamespaceDescriptor,
    Pending, RegionInfo, Result, RowBatch, Scan, Scanner, SnapshotInfo, SplitAt, Store, TableDescriptor, TableName,
    Timestamp, TruncatedRegions,
};
use bytes::Bytes;

use super::driver::{Driver, NO_ANSWER};
use super::wire::{Ask, Told};

/// Longest that the client waits for one call, and tries in all.
const CALL_MAX: Duration = Duration::from_secs(30);
const OPERATION_MAX: Duration = Duration::from_secs(50);
/// The cluster is on this machine: nothing is gained by waiting.
const PAUSE: Duration = Duration::from_millis(5);

/// HBase as a store.
#[derive(Debug)]
pub(super) struct HBase {
    driver: Driver,
    store: HBaseStore,
    /// Once it let a question go unanswered it is asked no more. Relaxed: whoever misses it waits once more.
    is_stuck: AtomicBool,
}

impl HBase {
    /// A client of the driver's cluster.
    pub(super) fn of(driver: Driver) -> anyhow::Result<Self> {
        let mut options = HBaseOptions::of_masters([format!("localhost:{}", driver.master_port)]);
        (options.call_timeout, options.operation_timeout) = (CALL_MAX, OPERATION_MAX);
        (options.pause, options.busy_pause) = (PAUSE, PAUSE);
        options.fsync_wal = true;
        let store = HBaseStore::open(options)?;
        Ok(Self { driver, store, is_stuck: AtomicBool::new(false) })
    }

    /// HBase's own version, as it says.
    pub(super) fn version(&self) -> &str {
        &self.driver.version
    }

    /// Where its master listens.
    pub(super) fn master_port(&self) -> u16 {
        self.driver.master_port
    }

    /// Whether it let a question go unanswered, or ended.
    pub(super) fn is_stuck(&self) -> bool {
        self.driver.is_stuck() || self.is_stuck.load(Ordering::Relaxed)
    }

    /// Asks the driver, and reads the answer.
    fn ask<T>(&self, call: u8, ask: &Ask, read: impl FnOnce(&mut Told<'_>) -> anyhow::Result<T>) -> Result<T> {
        let told = self.driver.call(call, ask)?;
        read(&mut Told(&told))
            .map_err(|error| Error::backend(ErrorKind::Bug, std::io::Error::other(format!("{error:#}"))))
    }

    fn tell(&self, call: u8, ask: &Ask) -> Result<()> {
        self.driver.call(call, ask).map(drop)
    }

    /// Tells HBase's regions what time it is.
    pub(super) fn set_clock(&self, now: Timestamp) -> Result<()> {
        self.tell(1, &Ask::default().u64(now.0))
    }

    /// Closes every region and opens it again.
    pub(super) fn reopen(&self) -> Result<()> {
        self.tell(2, &Ask::default())
    }

    /// Drops all tables and namespaces that users made.
    pub(super) fn empty(&self) -> Result<()> {
        self.tell(28, &Ask::default())
    }

    /// The client's answer; silence is told as such.
    fn heard<T>(&self, answer: Result<T>) -> Result<T> {
        if self.is_stuck() {
            return Err(unanswered("it did not before"));
        }
        answer.map_err(|error| {
            if is_silence(&error) {
                self.is_stuck.store(true, Ordering::Relaxed);
                return unanswered(&error.to_string());
            }
            error
        })
    }

    fn now<T: Unpin>(&self, pending: Pending<T>) -> Pending<T> {
        Pending::ready(self.heard(pending.wait()))
    }
}

/// Whether nothing came back, as the client tells it.
fn is_silence(error: &Error) -> bool {
    error.kind() == ErrorKind::Unavailable && error.to_string().contains("in time")
}

fn unanswered(why: &str) -> Error {
    Error::backend(NO_ANSWER, std::io::Error::other(format!("HBase did not answer: {why}")))
}

fn name(table: &TableName) -> Ask {
    Ask::default().bytes(table.to_string())
}

/// A region's bytes of files and of memtable, to the byte.
fn told_sizes(told: &mut Told<'_>) -> anyhow::Result<HashMap<u64, (u64, u64)>> {
    Ok(told.list(|told| Ok((told.u64()?, (told.u64()?, told.u64()?))))?.into_iter().collect())
}

fn told_counts(told: &mut Told<'_>) -> anyhow::Result<HashMap<String, u64>> {
    Ok(told.list(|told| Ok((told.text()?, told.u64()?)))?.into_iter().collect())
}

impl Store for HBase {
    fn create_namespace(&self, made: NamespaceDescriptor) -> Result<()> {
        self.heard(self.store.create_namespace(made))
    }

    fn alter_namespace(&self, altered: NamespaceDescriptor) -> Result<()> {
        self.heard(self.store.alter_namespace(altered))
    }

    fn drop_namespace(&self, namespace: &str) -> Result<()> {
        self.heard(self.store.drop_namespace(namespace))
    }

    fn describe_namespace(&self, namespace: &str) -> Result<NamespaceDescriptor> {
        self.heard(self.store.describe_namespace(namespace))
    }

    fn list_namespaces(&self) -> Result<Vec<NamespaceDescriptor>> {
        self.heard(self.store.list_namespaces())
    }

    fn create_table(&self, made: TableDescriptor, splits: &[Bytes]) -> Result<()> {
        self.heard(self.store.create_table(made, splits))
    }

    fn alter_table(&self, altered: TableDescriptor) -> Result<()> {
        self.heard(self.store.alter_table(altered))
    }

    fn truncate_table(&self, table: &TableName, regions: TruncatedRegions) -> Result<()> {
        self.heard(self.store.truncate_table(table, regions))
    }

    fn enable_table(&self, table: &TableName) -> Result<()> {
        self.heard(self.store.enable_table(table))
    }

    fn disable_table(&self, table: &TableName) -> Result<()> {
        self.heard(self.store.disable_table(table))
    }

    fn is_table_enabled(&self, table: &TableName) -> Result<bool> {
        self.heard(self.store.is_table_enabled(table))
    }

    fn drop_table(&self, table: &TableName) -> Result<()> {
        self.heard(self.store.drop_table(table))
    }

    fn describe_table(&self, table: &TableName) -> Result<TableDescriptor> {
        self.heard(self.store.describe_table(table))
    }

    fn list_tables(&self) -> Result<Vec<TableName>> {
        self.heard(self.store.list_tables())
    }

    /// Sizes as the driver tells them: HBase's clients are told MiB.
    fn regions(&self, table: &TableName) -> Result<Vec<RegionInfo>> {
        let mut regions = self.heard(self.store.regions(table))?;
        let sizes = self.ask(24, &name(table), told_sizes)?;
        for region in &mut regions {
            (region.file_bytes, region.memtable_bytes) = sizes.get(&region.id).copied().unwrap_or_default();
        }
        Ok(regions)
    }

    fn split_region(&self, table: &TableName, at: &SplitAt) -> Result<Bytes> {
        self.heard(self.store.split_region(table, at))
    }

    fn snapshot(&self, table: &TableName, snapshot: &str) -> Result<()> {
        self.heard(self.store.snapshot(table, snapshot))
    }

    /// Regions as the driver counts them: HBase's clients are not told.
    fn list_snapshots(&self) -> Result<Vec<SnapshotInfo>> {
        let mut snapshots = self.heard(self.store.list_snapshots())?;
        let counts = self.ask(31, &Ask::default(), told_counts)?;
        for snapshot in &mut snapshots {
            snapshot.regions_count = counts.get(&*snapshot.name).copied().unwrap_or_default();
        }
        Ok(snapshots)
    }

    fn restore_snapshot(&self, snapshot: &str) -> Result<()> {
        self.heard(self.store.restore_snapshot(snapshot))
    }

    fn clone_snapshot(&self, snapshot: &str, table: &TableName) -> Result<()> {
        self.heard(self.store.clone_snapshot(snapshot, table))
    }

    fn delete_snapshot(&self, snapshot: &str) -> Result<()> {
        self.heard(self.store.delete_snapshot(snapshot))
    }

    fn apply(&self, table: &TableName, batch: MutationBatch) -> Pending<Applied> {
        self.now(self.store.apply(table, batch))
    }

    fn get(&self, table: &TableName, asked: Get) -> Pending<RowBatch> {
        self.now(self.store.get(table, asked))
    }

    /// Read to its end at once, so that a scan that never ends is known for one here.
    fn scan(&self, table: &TableName, asked: Scan) -> Result<Scanner> {
        let mut scanner = self.heard(self.store.scan(table, asked))?;
        let mut batches = Vec::new();
        while let Some(batch) = scanner.next_wait() {
            batches.push(self.heard(batch));
        }
        let mut batches = batches.into_iter();
        Ok(Scanner::lazy(move || batches.next()))
    }

    fn increment(&self, table: &TableName, asked: Increment) -> Pending<i64> {
        self.now(self.store.increment(table, asked))
    }

    fn append(&self, table: &TableName, asked: Append) -> Pending<Bytes> {
        self.now(self.store.append(table, asked))
    }

    fn check_and_mutate(&self, table: &TableName, asked: CheckAndMutate) -> Pending<bool> {
        self.now(self.store.check_and_mutate(table, asked))
    }

    fn sync(&self) -> Pending<()> {
        self.store.sync()
    }

    fn flush(&self, table: &TableName) -> Result<()> {
        self.heard(self.store.flush(table))
    }

    /// By the driver, which leaves the oldest file out of a minor one: HBase's own choice depends on sizes.
    fn compact(&self, table: &TableName, compaction: Compaction) -> Result<()> {
        self.store.describe_table(table)?;
        self.tell(27, &name(table).flag(compaction == Compaction::Major))
    }
}
