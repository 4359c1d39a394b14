//! One table of the store under test, and short words for what the rules do to it.

use std::sync::Arc;

use bytes::Bytes;

use super::Fixture;
use crate::{
    Append, CellKind, CheckAndMutate, Compaction, Comparison, Durability, FamilyDescriptor, Get, Increment,
    MutationBatch, Result, RowBatch, Scan, Store, TableDescriptor, TableName, Timestamp,
};

/// Where the clock stands when a rule begins.
pub(super) const NOW: u64 = 1_000_000_000;

/// Cells are told as `family:qualifier@time=value`, tombstones as `family:qualifier@time kind`; in scans with the row
/// key and a blank before.
pub(super) struct Scene<'a> {
    fixture: &'a mut dyn Fixture,
    pub(super) table: TableName,
}

impl<'a> Scene<'a> {
    /// A new table `t` of these families.
    pub(super) fn new(fixture: &'a mut dyn Fixture, families: impl IntoIterator<Item = FamilyDescriptor>) -> Self {
        fixture.clock().set(Timestamp(NOW));
        let table: TableName = "t".parse().unwrap();
        let descriptor = TableDescriptor::new(table.clone(), families.into_iter().collect());
        fixture.store().create_table(descriptor, &[]).unwrap();
        Self { fixture, table }
    }

    /// A new table with one family `f` that keeps so many versions.
    pub(super) fn versions(fixture: &'a mut dyn Fixture, versions: u32) -> Self {
        Self::new(fixture, [FamilyDescriptor::new("f").with_versions(versions)])
    }

    pub(super) fn store(&self) -> Arc<dyn Store> {
        self.fixture.store()
    }

    pub(super) fn set_clock(&self, ms: u64) {
        self.fixture.clock().set(Timestamp(ms));
    }

    /// Applies a batch that nothing in may be refused.
    pub(super) fn apply(&self, batch: MutationBatch) {
        let applied = self.store().apply(&self.table, batch).wait().unwrap();
        assert!(applied.failed.is_empty(), "{:?}", applied.failed);
    }

    pub(super) fn put(&self, row: impl AsRef<[u8]>, column: &str, time: impl Into<Option<u64>>, value: &str) {
        self.change(CellKind::Put, row.as_ref(), column, time.into(), value.as_bytes());
    }

    /// Puts one version of each of these times into a column; the value is the time.
    pub(super) fn put_at(&self, row: &str, column: &str, times: &[u64]) {
        for &time in times {
            self.put(row, column, time, &time.to_string());
        }
    }

    pub(super) fn delete(&self, row: &str, column: &str, time: impl Into<Option<u64>>) {
        self.change(CellKind::Delete, row.as_bytes(), column, time.into(), b"");
    }

    pub(super) fn delete_column(&self, row: &str, column: &str, time: impl Into<Option<u64>>) {
        self.change(CellKind::DeleteColumn, row.as_bytes(), column, time.into(), b"");
    }

    pub(super) fn delete_family(&self, row: &str, family: &str, time: impl Into<Option<u64>>) {
        self.change(CellKind::DeleteFamily, row.as_bytes(), family, time.into(), b"");
    }

    pub(super) fn delete_family_version(&self, row: &str, family: &str, time: u64) {
        self.change(CellKind::DeleteFamilyVersion, row.as_bytes(), family, Some(time), b"");
    }

    fn change(&self, kind: CellKind, row: &[u8], column: &str, time: Option<u64>, value: &[u8]) {
        let mut batch = MutationBatch::new(Durability::Os);
        change(&mut batch, kind, row, column, time, value).unwrap();
        self.apply(batch);
    }

    pub(super) fn increment(&self, row: &str, column: &str, amount: i64) -> Result<i64> {
        let (family, qualifier) = split(column);
        let (row, durability) = (Bytes::copy_from_slice(row.as_bytes()), Durability::Os);
        self.store().increment(&self.table, Increment { row, family, qualifier, amount, durability }).wait()
    }

    pub(super) fn append(&self, row: &str, column: &str, value: &str) -> Result<Bytes> {
        let (family, qualifier) = split(column);
        let [row, value] = [row, value].map(|s| Bytes::copy_from_slice(s.as_bytes()));
        let durability = Durability::Os;
        self.store().append(&self.table, Append { row, family, qualifier, value, durability }).wait()
    }

    /// Puts `value` into the column where `<stored> <comparison> <expected>`.
    pub(super) fn check_and_put(
        &self,
        row: &str,
        column: &str,
        expected: Option<(Comparison, &str)>,
        value: &str,
    ) -> bool {
        self.try_check_and_put(row, column, expected, value).unwrap()
    }

    pub(super) fn try_check_and_put(
        &self,
        row: &str,
        column: &str,
        expected: Option<(Comparison, &str)>,
        value: &str,
    ) -> Result<bool> {
        let mut mutation = MutationBatch::new(Durability::Os);
        change(&mut mutation, CellKind::Put, row.as_bytes(), column, None, value.as_bytes()).unwrap();
        let (family, qualifier) = split(column);
        let check = CheckAndMutate {
            row: Bytes::copy_from_slice(row.as_bytes()),
            family,
            qualifier,
            comparison: expected.map_or(Comparison::Equal, |(comparison, _)| comparison),
            expected: expected.map(|(_, value)| Bytes::copy_from_slice(value.as_bytes())),
            mutation,
        };
        self.store().check_and_mutate(&self.table, check).wait()
    }

    pub(super) fn get(&self, get: Get) -> Vec<String> {
        told(&self.store().get(&self.table, get).wait().unwrap(), false)
    }

    /// A row's cells with all versions that a reader sees.
    pub(super) fn row(&self, row: &str) -> Vec<String> {
        self.get(Get { versions: u32::MAX, ..Get::row(Bytes::copy_from_slice(row.as_bytes())) })
    }

    pub(super) fn scan(&self, scan: Scan) -> Vec<String> {
        self.batches(scan).iter().flat_map(|batch| told(batch, true)).collect()
    }

    /// The keys of a scan's rows.
    pub(super) fn keys(&self, scan: Scan) -> Vec<String> {
        let batches = self.batches(scan);
        batches.iter().flat_map(RowBatch::rows).map(|row| row.key().escape_ascii().to_string()).collect()
    }

    pub(super) fn batches(&self, scan: Scan) -> Vec<RowBatch> {
        let mut scanner = self.store().scan(&self.table, scan).unwrap();
        std::iter::from_fn(|| scanner.next_wait()).map(Result::unwrap).collect()
    }

    /// Everything stored, without the row keys.
    pub(super) fn raw(&self) -> Vec<String> {
        let scan = Scan { raw: true, versions: u32::MAX, ..Scan::all() };
        self.batches(scan).iter().flat_map(|batch| told(batch, false)).collect()
    }

    pub(super) fn flush(&self) {
        self.store().flush(&self.table).unwrap();
    }

    /// A major compaction of everything, memtables too.
    pub(super) fn major(&self) {
        self.flush();
        self.store().compact(&self.table, Compaction::Major).unwrap();
    }

    pub(super) fn reopen(&mut self) {
        self.fixture.reopen();
    }

    /// Holds what must be true from memtable to compacted file.
    pub(super) fn at_every_stage(&mut self, check: impl Fn(&Self)) {
        self.until_major(&check);
        self.major();
        check(self);
    }

    /// Holds what must be true until a major compaction.
    pub(super) fn until_major(&mut self, check: impl Fn(&Self)) {
        check(self);
        self.reopen();
        check(self);
        self.flush();
        check(self);
        self.store().compact(&self.table, Compaction::Minor).unwrap();
        check(self);
        self.reopen();
        check(self);
    }
}

/// Adds one change to a batch; `column` is `family:qualifier`, or a family alone.
pub(super) fn change(
    batch: &mut MutationBatch,
    kind: CellKind,
    row: &[u8],
    column: &str,
    time: Option<u64>,
    value: &[u8],
) -> Result<()> {
    let (family, qualifier) = split(column);
    let time = time.map(Timestamp);
    let mut row = batch.row(row)?;
    match kind {
        CellKind::Put => row.put(&family, &qualifier, time, value),
        CellKind::Delete => row.delete(&family, &qualifier, time),
        CellKind::DeleteColumn => row.delete_column(&family, &qualifier, time),
        CellKind::DeleteFamily => row.delete_family(&family, time),
        CellKind::DeleteFamilyVersion => row.delete_family_version(&family, time.unwrap_or_default()),
    }
    .map(drop)
}

fn split(column: &str) -> (Bytes, Bytes) {
    let (family, qualifier) = column.split_once(':').unwrap_or((column, ""));
    (Bytes::copy_from_slice(family.as_bytes()), Bytes::copy_from_slice(qualifier.as_bytes()))
}

/// A batch's cells as words.
pub(super) fn told(batch: &RowBatch, with_keys: bool) -> Vec<String> {
    let mut words = Vec::with_capacity(batch.cells_count());
    for row in batch.rows() {
        let key = if with_keys { format!("{} ", row.key().escape_ascii()) } else { String::new() };
        words.extend(row.cells().map(|cell| {
            let (family, qualifier) = (cell.family.escape_ascii(), cell.qualifier.escape_ascii());
            let rest = match cell.kind {
                CellKind::Put => format!("={}", cell.value.escape_ascii()),
                kind => format!(" {kind:?}"),
            };
            format!("{key}{family}:{qualifier}@{}{rest}", cell.timestamp.0)
        }));
    }
    words
}
