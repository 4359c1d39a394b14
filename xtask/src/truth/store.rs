//! The contract over the pipe. Test equipment: simple, one call a call, whole scans held in memory.

use basalt_store::{
    Append, Applied, CheckAndMutate, Compaction, Error, ErrorKind, Get, Increment, MutationBatch, NamespaceDescriptor,
    Pending, RegionInfo, Result, RowBatch, RowBatchBuilder, RowFailure, Scan, Scanner, SnapshotInfo, SplitAt, Store,
    TableDescriptor, TableName, Timestamp, TruncatedRegions,
};
use bytes::Bytes;

use super::cells::{apply, changes, get, scan, told_rows};
use super::driver::Driver;
use super::filter::code;
use super::tables::{namespace, table, told_namespace, told_regions, told_snapshot, told_table};
use super::wire::{Ask, Told};

/// HBase as a store.
#[derive(Debug)]
pub(super) struct HBase(pub(super) Driver);

impl HBase {
    /// Asks, and reads the answer.
    fn ask<T>(&self, call: u8, ask: &Ask, read: impl FnOnce(&mut Told<'_>) -> anyhow::Result<T>) -> Result<T> {
        let told = self.0.call(call, ask)?;
        read(&mut Told(&told))
            .map_err(|error| Error::backend(ErrorKind::Bug, std::io::Error::other(format!("{error:#}"))))
    }

    fn tell(&self, call: u8, ask: &Ask) -> Result<()> {
        self.0.call(call, ask).map(drop)
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
}

fn name(table: &TableName) -> Ask {
    Ask::default().bytes(table.to_string())
}

impl Store for HBase {
    fn create_namespace(&self, made: NamespaceDescriptor) -> Result<()> {
        self.tell(10, &namespace(&made))
    }

    fn alter_namespace(&self, altered: NamespaceDescriptor) -> Result<()> {
        self.tell(11, &namespace(&altered))
    }

    fn drop_namespace(&self, namespace: &str) -> Result<()> {
        self.tell(12, &Ask::default().bytes(namespace))
    }

    fn describe_namespace(&self, namespace: &str) -> Result<NamespaceDescriptor> {
        self.ask(13, &Ask::default().bytes(namespace), told_namespace)
    }

    fn list_namespaces(&self) -> Result<Vec<NamespaceDescriptor>> {
        self.ask(14, &Ask::default(), |told| told.list(told_namespace))
    }

    fn create_table(&self, made: TableDescriptor, splits: &[Bytes]) -> Result<()> {
        self.tell(15, &table(&made).list(splits.iter(), Ask::bytes))
    }

    fn alter_table(&self, altered: TableDescriptor) -> Result<()> {
        self.tell(16, &table(&altered))
    }

    fn truncate_table(&self, table: &TableName, regions: TruncatedRegions) -> Result<()> {
        self.tell(17, &name(table).flag(regions == TruncatedRegions::Kept))
    }

    fn enable_table(&self, table: &TableName) -> Result<()> {
        self.tell(18, &name(table))
    }

    fn disable_table(&self, table: &TableName) -> Result<()> {
        self.tell(19, &name(table))
    }

    fn is_table_enabled(&self, table: &TableName) -> Result<bool> {
        self.ask(20, &name(table), flag)
    }

    fn drop_table(&self, table: &TableName) -> Result<()> {
        self.tell(21, &name(table))
    }

    fn describe_table(&self, table: &TableName) -> Result<TableDescriptor> {
        self.ask(22, &name(table), told_table)
    }

    fn list_tables(&self) -> Result<Vec<TableName>> {
        let names = self.ask(23, &Ask::default(), |told| told.list(Told::text))?;
        let mut names = names.iter().map(|name| name.parse()).collect::<Result<Vec<TableName>>>()?;
        names.sort();
        Ok(names)
    }

    fn regions(&self, table: &TableName) -> Result<Vec<RegionInfo>> {
        self.ask(24, &name(table), told_regions)
    }

    fn split_region(&self, table: &TableName, at: &SplitAt) -> Result<Bytes> {
        let ask = match at {
            SplitAt::MiddleOf(key) => name(table).flag(true).bytes(key),
            SplitAt::Key(key) => name(table).flag(false).bytes(key),
        };
        self.ask(25, &ask, |told| Ok(Bytes::copy_from_slice(told.bytes()?)))
    }

    fn snapshot(&self, table: &TableName, snapshot: &str) -> Result<()> {
        self.tell(30, &Ask::default().bytes(snapshot).bytes(table.to_string()))
    }

    fn list_snapshots(&self) -> Result<Vec<SnapshotInfo>> {
        let mut snapshots = self.ask(31, &Ask::default(), |told| told.list(told_snapshot))?;
        // HBase lists them as its folder does.
        snapshots.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(snapshots)
    }

    fn restore_snapshot(&self, snapshot: &str) -> Result<()> {
        self.tell(33, &Ask::default().bytes(snapshot))
    }

    fn clone_snapshot(&self, snapshot: &str, table: &TableName) -> Result<()> {
        self.tell(34, &Ask::default().bytes(snapshot).bytes(table.to_string()))
    }

    fn delete_snapshot(&self, snapshot: &str) -> Result<()> {
        self.tell(32, &Ask::default().bytes(snapshot))
    }

    fn apply(&self, table: &TableName, batch: MutationBatch) -> Pending<Applied> {
        let read = |told: &mut Told<'_>| {
            let failed = told.list(|told| {
                let row = told.u32()? as usize;
                let (kind, words) = (told.u8()?, told.text()?);
                Ok(RowFailure { row, error: super::driver::error(kind, &words) })
            })?;
            Ok(Applied { failed })
        };
        Pending::ready(self.ask(40, &apply(name(table), &batch), read))
    }

    fn get(&self, table: &TableName, asked: Get) -> Pending<RowBatch> {
        Pending::ready(get(name(table), &asked).and_then(|ask| self.ask(41, &ask, |told| whole(told_rows(told)?))))
    }

    fn scan(&self, table: &TableName, asked: Scan) -> Result<Scanner> {
        let rows = self.ask(42, &scan(name(table), &asked)?, told_rows)?;
        let mut rows = rows.into_iter().peekable();
        Ok(Scanner::lazy(move || {
            rows.peek()?;
            let mut builder = RowBatchBuilder::new();
            while builder.is_empty() || builder.data_bytes() < asked.batch_bytes {
                let Some(row) = rows.next() else { break };
                if let Err(error) = row.push(&mut builder) {
                    return Some(Err(error));
                }
            }
            Some(Ok(builder.finish()))
        }))
    }

    fn increment(&self, table: &TableName, asked: Increment) -> Pending<i64> {
        let ask = name(table).bytes(&asked.row).bytes(&asked.family).bytes(&asked.qualifier);
        let ask = ask.u64(asked.amount.cast_unsigned()).u8(asked.durability as u8);
        Pending::ready(self.ask(43, &ask, |told| Ok(i64::from_be_bytes(told.bytes()?.try_into()?))))
    }

    fn append(&self, table: &TableName, asked: Append) -> Pending<Bytes> {
        let ask = name(table).bytes(&asked.row).bytes(&asked.family).bytes(&asked.qualifier);
        let ask = ask.bytes(&asked.value).u8(asked.durability as u8);
        Pending::ready(self.ask(44, &ask, |told| Ok(Bytes::copy_from_slice(told.bytes()?))))
    }

    fn check_and_mutate(&self, table: &TableName, asked: CheckAndMutate) -> Pending<bool> {
        let ask = name(table).bytes(&asked.row).bytes(&asked.family).bytes(&asked.qualifier);
        let ask = ask.u8(code(asked.comparison)).option(asked.expected.as_ref(), Ask::bytes);
        Pending::ready(self.ask(45, &changes(ask, &asked.mutation), flag))
    }

    fn sync(&self) -> Pending<()> {
        Pending::ready(Ok(()))
    }

    fn flush(&self, table: &TableName) -> Result<()> {
        self.tell(26, &name(table))
    }

    fn compact(&self, table: &TableName, compaction: Compaction) -> Result<()> {
        self.tell(27, &name(table).flag(compaction == Compaction::Major))
    }
}

/// The rows of one answer.
fn whole(rows: Vec<super::cells::Row>) -> anyhow::Result<RowBatch> {
    let mut builder = RowBatchBuilder::new();
    for row in rows {
        row.push(&mut builder)?;
    }
    Ok(builder.finish())
}

/// A function, since the method's lifetime is too narrow to be handed over.
fn flag(told: &mut Told<'_>) -> anyhow::Result<bool> {
    told.flag()
}
