use std::sync::Arc;

use super::*;
use crate::conformance::Fixture;
use crate::conformance::history::run_history;
use crate::{Columns, FamilyDescriptor, Filter, ManualClock, Timestamp};

fn store() -> (Arc<ManualClock>, MemoryStore, TableName) {
    let clock = Arc::new(ManualClock::new(Timestamp(1000)));
    let store = MemoryStore::new(Arc::<ManualClock>::clone(&clock));
    let table: TableName = "t".parse().unwrap();
    let families = vec![FamilyDescriptor::new("f").with_versions(3), FamilyDescriptor::new("g")];
    store.create_table(TableDescriptor::new(table.clone(), families), &["m".into()]).unwrap();
    (clock, store, table)
}

fn put(store: &MemoryStore, table: &TableName, row: &str, qualifier: &str, time: Option<u64>, value: &str) {
    let mut batch = MutationBatch::default();
    let (qualifier, time) = (qualifier.as_bytes(), time.map(Timestamp));
    batch.row(row.as_bytes()).unwrap().put(b"f", qualifier, time, value.as_bytes()).unwrap();
    assert!(store.apply(table, batch).wait().unwrap().failed.is_empty());
}

#[test]
fn a_scan_comes_in_bounded_batches_and_sees_writes_between_them() {
    let (_, store, table) = store();
    for i in 0..100 {
        put(&store, &table, &format!("row{i:03}"), "q", None, "0123456789");
    }
    let scan = Scan { batch_bytes: 64, ..Scan::all() };
    let mut scanner = store.scan(&table, scan).unwrap();
    let first = scanner.next_wait().unwrap().unwrap();
    assert!(first.len() < 10, "{} rows", first.len());
    put(&store, &table, "row100", "q", None, "late");
    let mut rows = first.len();
    while let Some(batch) = scanner.next_wait() {
        rows += batch.unwrap().len();
    }
    assert_eq!(rows, 101);
    assert!(scanner.next_wait().is_none());
}

#[test]
fn a_wide_row_is_sought_through() {
    let (_, store, table) = store();
    for i in 0..1000 {
        put(&store, &table, "r", &format!("q{i:04}"), None, "v");
    }
    let mut columns = Columns::column("f", "q0500");
    columns.0[0].qualifiers.extend(["q0502".into(), "nothing".into(), "".into()]);
    let got = store.get(&table, Get::row("r").with_columns(columns)).wait().unwrap();
    let told: Vec<_> = got.row(0).unwrap().cells().map(|c| c.qualifier).collect();
    assert_eq!(told, [b"q0500", b"q0502"]);
}

#[test]
fn filters_seek_across_locks() {
    let (_, store, table) = store();
    for row in ["a1", "a2", "b1", "c1", "c2"] {
        put(&store, &table, row, "q", None, "v");
    }
    let ranges =
        [("c", "d"), ("a2", "b")].map(|(start, stop)| crate::RowRange { start: start.into(), stop: stop.into() });
    for (reversed, expected) in [(false, ["a2", "c1", "c2"]), (true, ["c2", "c1", "a2"])] {
        let scan = Scan { reversed, ..Scan::all().with_filter(Filter::MultiRowRange(ranges.to_vec())) };
        let batch = store.scan(&table, scan).unwrap().next_wait().unwrap().unwrap();
        let keys: Vec<_> = batch.rows().map(|row| row.key()).collect();
        assert_eq!(keys, expected.map(str::as_bytes));
    }
}

fn raw_cells(store: &MemoryStore, table: &TableName) -> usize {
    let scan = Scan { raw: true, versions: u32::MAX, ..Scan::all() };
    let mut scanner = store.scan(table, scan).unwrap();
    std::iter::from_fn(|| scanner.next_wait()).map(|batch| batch.unwrap().cells_count()).sum()
}

/// A server that runs on it for days, as one whose counters are changed all the time.
#[test]
fn versions_and_tombstones_do_not_grow_without_bound() {
    let (clock, store, table) = store();
    for change in 0..200_000 {
        clock.set(Timestamp(1000 + change));
        let mut batch = MutationBatch::default();
        let mut row = batch.row(format!("r{}", change % 10).as_bytes()).unwrap();
        if change % 2 == 0 {
            row.delete_column(b"f", b"q", None).unwrap();
        } else {
            row.put(b"f", b"q", None, b"v").unwrap();
        }
        assert!(store.apply(&table, batch).wait().unwrap().failed.is_empty());
    }
    let raw = raw_cells(&store, &table);
    assert!(raw < 70_000, "{raw}");
    assert_eq!(store.scan(&table, Scan::all()).unwrap().next_wait().unwrap().unwrap().len(), 5);
}

#[test]
fn a_minor_compaction_drops_versions_in_excess() {
    let (_, store, table) = store();
    for time in 1..=5 {
        put(&store, &table, "r", "q", Some(time), "v");
    }
    let mut batch = MutationBatch::default();
    batch.row(b"r").unwrap().delete_column(b"f", b"p", Some(Timestamp(1))).unwrap();
    assert!(store.apply(&table, batch).wait().unwrap().failed.is_empty());
    store.compact(&table, Compaction::Minor).unwrap();
    assert_eq!(raw_cells(&store, &table), 3 + 1);
    store.compact(&table, Compaction::Major).unwrap();
    assert_eq!(raw_cells(&store, &table), 3);
}

#[test]
fn values_over_the_bound_are_refused_alone() {
    let (_, store, table) = store();
    let store = store.with_value_bytes_max(4);
    let mut batch = MutationBatch::default();
    batch.row(b"a").unwrap().put(b"f", b"q", None, b"12345").unwrap();
    batch.row(b"b").unwrap().put(b"f", b"q", None, b"1234").unwrap();
    let applied = store.apply(&table, batch).wait().unwrap();
    assert_eq!(applied.failed.iter().map(|f| f.row).collect::<Vec<_>>(), [0]);
    assert_eq!(store.get(&table, Get::rows(vec!["a".into(), "b".into()])).wait().unwrap().len(), 1);
}

#[test]
fn regions_count_what_touches_them() {
    let (_, store, table) = store();
    put(&store, &table, "a", "q", None, "v");
    put(&store, &table, "z", "q", None, "v");
    put(&store, &table, "z", "q", None, "v");
    for scan in [
        Scan::range("a", "m"),
        Scan::all(),
        Scan { reversed: true, ..Scan::range("b", "") },
        Scan { reversed: true, ..Scan::range("m", "b") },
    ] {
        drop(store.scan(&table, scan).unwrap());
    }
    let told: Vec<_> =
        store.regions(&table).unwrap().iter().map(|r| (r.reads_count, r.writes_count, r.memtable_bytes)).collect();
    assert_eq!(told, [(4, 1, 3), (2, 2, 3)]);
}

/// The store, or one that on reopening drops at once all that a flush may drop.
struct Histories {
    clock: Arc<ManualClock>,
    store: Arc<MemoryStore>,
    eager: bool,
}

impl Histories {
    fn new(eager: bool) -> Self {
        let clock = Arc::new(ManualClock::default());
        Self { store: Arc::new(MemoryStore::new(Arc::<ManualClock>::clone(&clock))), clock, eager }
    }
}

impl Fixture for Histories {
    fn store(&self) -> Arc<dyn Store> {
        Arc::<MemoryStore>::clone(&self.store)
    }

    fn clock(&self) -> &ManualClock {
        &self.clock
    }

    fn reopen(&mut self) {
        if self.eager {
            let table = self.store.table(&"history".parse().unwrap()).unwrap();
            table.compact(Compaction::Minor, self.clock.now(), 0);
        }
    }
}

#[test]
fn what_a_flush_may_drop_is_missed_by_no_history() {
    for seed in 0..16 {
        run_history(seed, 600, &mut Histories::new(false), &mut Histories::new(true)).unwrap();
    }
}
