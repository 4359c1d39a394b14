//! What the facade promises: here the plain road and what all its tests share, a file each for the rest.

use std::path::Path;

use basalt_store::{
    Append, Applied, CellKind, Columns, Compaction, Durability, ErrorKind, FamilyDescriptor, Get, Increment,
    ManualClock, MutationBatch, NamespaceDescriptor, Pending, RowBatch, Scan, SideLog, SplitAt, Store, TableDescriptor,
    TableName, Timestamp, TruncatedRegions,
};
use bytes::Bytes;

use super::*;
use crate::io::{FileSystem, OsFs, SimFs};
use crate::options::Limits;

mod backups;
mod clocks;
mod closes;
mod columns;
mod conformance;
mod copies;
mod counts;
mod folds;
mod full_disks;
mod gathered;
mod inlines;
mod losses;
mod outputs;
mod put_off;
mod refills;
mod repairs;
mod reshapes;
mod rules;
mod side_logs;
mod snapshots;
mod spills;
mod splits;

/// Bounds at which everything happens with few bytes.
pub(crate) fn small_limits() -> Limits {
    Limits {
        wal_segment_bytes: 16 << 10,
        wal_bytes_max: 128 << 10,
        reserve_bytes: 8 << 10,
        memtable_bytes: 16 << 10,
        memtables_bytes: 64 << 10,
        block_cache_bytes: 64 << 10,
        compaction_threads: 0,
        ..Limits::default()
    }
}

pub(crate) fn options(fs: Arc<dyn FileSystem>, dir: &Path, workers: Workers) -> EngineOptions {
    EngineOptions {
        fs,
        clock: Arc::new(ManualClock::new(Timestamp(1000))),
        limits: small_limits(),
        workers,
        ..EngineOptions::new(dir)
    }
}

pub(crate) fn name() -> TableName {
    "t".parse().unwrap()
}

pub(crate) fn table() -> TableDescriptor {
    TableDescriptor::new(name(), vec![FamilyDescriptor::new("f"), FamilyDescriptor::new("g")])
}

pub(crate) fn put(engine: &Engine, row: &str, value: &str) -> Pending<Applied> {
    let mut batch = MutationBatch::new(Durability::Fsync);
    let mut changes = batch.row(row.as_bytes()).unwrap();
    changes.put(b"f", b"q", None, value.as_bytes()).unwrap().put(b"g", b"q", None, value.as_bytes()).unwrap();
    engine.apply(&name(), batch)
}

pub(crate) type Row = (String, Vec<String>);

pub(crate) fn rows(batch: &RowBatch) -> Vec<Row> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    batch.rows().map(|row| (text(row.key()), row.cells().map(|cell| text(cell.value)).collect())).collect()
}

pub(crate) fn scan(engine: &Engine, scan: Scan) -> Vec<Row> {
    let mut scanner = engine.scan(&name(), scan).unwrap();
    let mut all = Vec::new();
    while let Some(batch) = scanner.next_wait() {
        all.extend(rows(&batch.unwrap()));
    }
    all
}

pub(crate) fn expected(range: std::ops::Range<u32>) -> Vec<Row> {
    range.map(|row| (format!("row{row:04}"), vec![format!("v{row}"), format!("v{row}")])).collect()
}

#[test]
fn what_is_written_is_read_through_flush_compaction_and_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Engine::open(options(Arc::new(OsFs), dir.path(), Workers::Threads)).unwrap();
    let engine = open();
    engine.create_table(table(), &["row0100".into(), "row0250".into()]).unwrap();
    for row in 0..400 {
        put(&engine, &format!("row{row:04}"), &format!("v{row}")).wait().unwrap();
        if row % 90 == 89 {
            engine.flush(&name()).unwrap();
        }
    }
    assert_eq!(scan(&engine, Scan::all()), expected(0..400));
    drop(engine);
    let engine = open();
    assert_eq!(scan(&engine, Scan::all()), expected(0..400));
    let reversed = Scan { reversed: true, ..Scan::all() };
    assert_eq!(scan(&engine, reversed), expected(0..400).into_iter().rev().collect::<Vec<_>>());
    engine.compact(&name(), Compaction::Major).unwrap();
    assert_eq!(engine.stats().files_count, 6, "one file a region and family");
    assert_eq!(scan(&engine, Scan::range("row0090", "row0300")), expected(90..300));
    assert!(engine.verify().unwrap().bytes > 0);
    let got = engine.get(&name(), Get::rows(vec!["row0399".into(), "none".into(), "row0000".into()])).wait().unwrap();
    assert_eq!(rows(&got), [expected(399..400), expected(0..1)].concat());
    assert_eq!(engine.regions(&name()).unwrap().len(), 3);
    engine.close().unwrap();
    assert!(matches!(put(&engine, "row", "late").wait(), Err(basalt_store::Error::Closed)));
}

/// A row in pieces may be longer than memory.
#[test]
fn s_scan_2_pieces_of_a_row_come_in_batches_of_the_size_asked_for() {
    const CELLS: usize = 2_000;
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::open(options(Arc::new(OsFs), dir.path(), Workers::Threads)).unwrap();
    engine.create_table(table(), &[]).unwrap();
    for (row, cells) in [("a", 3), ("b", CELLS), ("c", 7)] {
        let mut batch = MutationBatch::new(Durability::Fsync);
        let mut changes = batch.row(row.as_bytes()).unwrap();
        for cell in 0..cells {
            changes.put(b"f", format!("{cell:04}").as_bytes(), None, &[7; 16]).unwrap();
        }
        engine.apply(&name(), batch).wait().unwrap();
    }
    for limit_rows in [None, Some(3)] {
        let scan = Scan { batch_cells: Some(10), batch_bytes: 1_000, limit_rows, ..Scan::all() };
        let mut scanner = engine.scan(&name(), scan).unwrap();
        let mut pieces: Vec<(String, usize, bool)> = Vec::new();
        while let Some(batch) = scanner.next_wait().transpose().unwrap() {
            assert!(batch.data_bytes() < 1_000 + 10 * 21, "{}", batch.data_bytes());
            let piece = |row: basalt_store::RowView<'_>| {
                (String::from_utf8_lossy(row.key()).into_owned(), row.cells().len(), row.is_last_piece())
            };
            pieces.extend(batch.rows().map(piece));
        }
        let mut expected = vec![("b".to_owned(), 10, false); CELLS / 10];
        expected.last_mut().unwrap().2 = true;
        expected.insert(0, ("a".to_owned(), 3, true));
        expected.push(("c".to_owned(), 7, true));
        assert_eq!(pieces, expected);
        assert_eq!(scanner.cost().cells, 3 + 7 + CELLS as u64, "what was looked at is told once");
    }
}

/// A short scan is read where it is asked for; one that turns out long goes on elsewhere, and answers the same.
#[test]
fn s_scan_5_a_scan_of_few_rows_answers_as_a_long_one() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::open(options(Arc::new(OsFs), dir.path(), Workers::Threads)).unwrap();
    engine.create_table(table(), &["row0350".into()]).unwrap();
    let mut batch = MutationBatch::new(Durability::Fsync);
    for row in 0..700 {
        let (key, value) = (format!("row{row:04}"), format!("v{row}"));
        let mut changes = batch.row(key.as_bytes()).unwrap();
        for family in [b"f", b"g"] {
            changes.put(family, b"q", None, value.as_bytes()).unwrap();
            if row < 400 {
                changes.delete_family(family, None).unwrap();
            }
        }
    }
    engine.apply(&name(), batch).wait().unwrap();
    let few = |limit_rows| Scan { limit_rows: Some(limit_rows), ..Scan::all() };
    assert_eq!(scan(&engine, few(5)), expected(400..405), "behind more deleted rows than are passed over here");
    let from = |row: &'static str| Scan { start: row.into(), ..few(5) };
    assert_eq!(scan(&engine, from("row0450")), expected(450..455));
    assert_eq!(scan(&engine, from("row0698")), expected(698..700));
    assert_eq!(scan(&engine, from("x")), []);
    let in_pieces = Scan { batch_bytes: 1, ..from("row0450") };
    assert_eq!(scan(&engine, in_pieces), expected(450..455), "more than one batch");
    let unknown = Scan { columns: Columns::family("nope"), ..few(5) };
    assert!(engine.scan(&name(), unknown).is_err());
}

/// Who scans was told that the write queue is full.
#[test]
fn a_scan_too_many_is_told_as_such() {
    let around = options(Arc::new(SimFs::new(1)), Path::new("/d"), Workers::Manual);
    let engine = Engine::open(EngineOptions { limits: Limits { scans_max: 0, ..small_limits() }, ..around }).unwrap();
    engine.create_table(table(), &[]).unwrap();
    let refused = engine.scan(&name(), Scan::all()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Throttled);
    assert_eq!(refused.to_string(), "too many scans at once (0 at most), or no thread for one more; try again");
}

#[test]
fn a_folder_is_one_processs() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Engine::open(options(Arc::new(OsFs), dir.path(), Workers::Threads));
    let engine = open().unwrap();
    assert!(matches!(open(), Err(Error::Locked { .. })));
    engine.close().unwrap();
    open().unwrap();
}

#[test]
fn counters_and_checks_see_what_is_not_synced() {
    let fs = SimFs::new(1);
    let engine = Engine::open(options(Arc::new(fs), Path::new("/d"), Workers::Manual)).unwrap();
    engine.create_table(table(), &[]).unwrap();
    let increment = |durability| {
        let (family, qualifier) = ("f".into(), "n".into());
        engine.increment(&name(), Increment { row: "r".into(), family, qualifier, amount: 2, durability })
    };
    assert_eq!(increment(Durability::Async).wait().unwrap(), 2);
    assert_eq!(increment(Durability::Async).wait().unwrap(), 4);
    let synced = increment(Durability::Fsync);
    engine.pump().unwrap();
    assert_eq!(synced.wait().unwrap(), 6);
    let get = Get::row("r").with_columns(Columns::column("f", "n"));
    let got = engine.get(&name(), get).wait().unwrap();
    assert_eq!(got.row(0).unwrap().cells().next().unwrap().value, 6_u64.to_be_bytes());
}

#[test]
fn unsynced_writes_are_not_seen() {
    let fs = SimFs::new(1);
    let engine = Engine::open(options(Arc::new(fs), Path::new("/d"), Workers::Manual)).unwrap();
    engine.create_table(table(), &[]).unwrap();
    let pending = put(&engine, "r", "v");
    assert!(scan(&engine, Scan::all()).is_empty());
    engine.pump().unwrap();
    pending.wait().unwrap();
    assert_eq!(scan(&engine, Scan::all()).len(), 1);
}

#[test]
fn the_newest_version_is_deleted_row_by_row() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::open(options(Arc::new(OsFs), dir.path(), Workers::Threads)).unwrap();
    engine.create_table(table(), &[]).unwrap();
    put(&engine, "a", "1").wait().unwrap();
    put(&engine, "b", "1").wait().unwrap();
    let mut batch = MutationBatch::new(Durability::Fsync);
    batch.row(b"a").unwrap().delete(b"f", b"q", None).unwrap();
    batch.row(b"b").unwrap().delete(b"nope", b"q", None).unwrap();
    let applied = engine.apply(&name(), batch).wait().unwrap();
    assert_eq!(applied.failed.iter().map(|failure| failure.row).collect::<Vec<_>>(), [1]);
    assert_eq!(scan(&engine, Scan::all()), [("a".into(), vec!["1".into()]), ("b".into(), vec!["1".into(); 2])]);
    let raw = Scan { raw: true, versions: u32::MAX, ..Scan::all() };
    let mut scanner = engine.scan(&name(), raw).unwrap();
    let batch = scanner.next_wait().unwrap().unwrap();
    assert_eq!(batch.row(0).unwrap().cells().next().unwrap().kind, CellKind::DeleteColumn);
}

#[test]
fn tables_are_altered_emptied_and_dropped_for_good() {
    let dir = tempfile::tempdir().unwrap();
    let open = || Engine::open(options(Arc::new(OsFs), dir.path(), Workers::Threads)).unwrap();
    let engine = open();
    engine.create_table(table(), &["m".into()]).unwrap();
    put(&engine, "a", "1").wait().unwrap();
    engine.flush(&name()).unwrap();
    put(&engine, "z", "1").wait().unwrap();
    let without = TableDescriptor::new(name(), vec![FamilyDescriptor::new("f")]);
    engine.alter_table(without).unwrap();
    engine.alter_table(table()).unwrap();
    let one = |row: &str| (String::from(row), vec![String::from("1")]);
    assert_eq!(scan(&engine, Scan::all()), [one("a"), one("z")], "a family made anew is empty");
    drop(engine);
    let engine = open();
    assert_eq!(scan(&engine, Scan::all()), [one("a"), one("z")]);
    engine.truncate_table(&name(), TruncatedRegions::Kept).unwrap();
    assert!(scan(&engine, Scan::all()).is_empty());
    put(&engine, "z", "2").wait().unwrap();
    drop(engine);
    let engine = open();
    assert_eq!(scan(&engine, Scan::all()).len(), 1);
    engine.drop_table(&name()).unwrap();
    assert!(engine.list_tables().unwrap().is_empty());
    drop(engine);
    assert!(open().list_tables().unwrap().is_empty());
}

#[test]
fn the_log_is_cut_behind_flushes() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(Arc::new(OsFs), dir.path(), Workers::Threads);
    options.limits.memtables_bytes = 8 << 20;
    let engine = Engine::open(options).unwrap();
    engine.create_table(table(), &["row0500".into()]).unwrap();
    let value = "v".repeat(1000);
    // What waits at the same time is one record, and a log is cut between records only.
    for rows in (0..1000).collect::<Vec<_>>().chunks(20) {
        let pending: Vec<_> = rows.iter().map(|row| put(&engine, &format!("row{row:04}"), &value)).collect();
        assert!(pending.into_iter().all(|pending| pending.wait().unwrap().failed.is_empty()));
    }
    engine.flush(&name()).unwrap();
    let stats = engine.stats();
    assert!(stats.wal_bytes < 64 << 10, "{stats:?}");
    assert_eq!((stats.memtable_bytes, scan(&engine, Scan::all()).len()), (0, 1000));
}

/// A flush can free no segment that is still written to: a bound below one is no reason to flush at every write.
#[test]
fn a_log_bound_below_a_segment_asks_for_no_flush_until_a_segment_is_full() {
    let mut options = options(Arc::new(SimFs::new(1)), Path::new("/d"), Workers::Manual);
    options.limits.wal_bytes_max = 0;
    (options.limits.memtable_bytes, options.limits.memtables_bytes) = (1 << 20, 1 << 20);
    let engine = Engine::open(options).unwrap();
    engine.create_table(table(), &["m".into()]).unwrap();
    let log = |row: &str, value: &str| {
        drop(put(&engine, row, value));
        engine.core.wal.write_group(false);
        engine.core.pick_flush(&[]).is_some()
    };
    assert!(!log("a", "1") && !log("z", "1") && engine.stats().wal_bytes > 0);
    // Twice a segment, with both families.
    assert!((0..16).any(|_| log("a", &"v".repeat(1000))));
}

/// Rules S-ACID-1, S-CNT-1 with everything going on at once: writers, counters, flushes, compactions, scans.
#[test]
fn rows_stay_whole_and_counters_exact_under_load() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(Arc::new(OsFs), dir.path(), Workers::Threads);
    options.limits.memtables_bytes = 32 << 20;
    options.limits.compaction_threads = 1;
    options.limits.compaction_files_min = 2;
    let engine = Engine::open(options).unwrap();
    engine.create_table(table(), &["row0050".into(), "row0100".into()]).unwrap();
    let write = |writer: u32| {
        for round in 0..60 {
            let mut batch = MutationBatch::new(Durability::Fsync);
            for row in 0..40 {
                let value = format!("{writer} {round} {}", "x".repeat(60));
                let mut changes = batch.row(format!("row{:04}", row * 4).as_bytes()).unwrap();
                changes.put(b"f", b"q", None, value.as_bytes()).unwrap();
                changes.put(b"g", b"q", None, value.as_bytes()).unwrap();
            }
            assert!(engine.apply(&name(), batch).wait().unwrap().failed.is_empty());
            let (row, family, qualifier) = ("row0001".into(), "f".into(), "n".into());
            let increment = Increment { row, family, qualifier, amount: 1, durability: Durability::Async };
            engine.increment(&name(), increment).wait().unwrap();
        }
    };
    let look = || {
        for _ in 0..30 {
            for (row, values) in scan(&engine, Scan::all()) {
                assert!(row == "row0001" || (values.len() == 2 && values[0] == values[1]), "{row}: {values:?}");
            }
        }
    };
    std::thread::scope(|scope| {
        for writer in 0..4 {
            scope.spawn(move || write(writer));
        }
        scope.spawn(look);
        scope.spawn(|| {
            for turn in 0..10 {
                // Not all of them before there is anything; the writers take 9,840 numbers.
                let is_early = |_: &u32| engine.core.wal.last_sequence() < turn * 900;
                (0..60_000)
                    .take_while(is_early)
                    .for_each(|_| std::thread::park_timeout(std::time::Duration::from_millis(1)));
                engine.compact(&name(), Compaction::Major).unwrap();
            }
        });
    });
    let get = Get::row("row0001").with_columns(Columns::column("f", "n"));
    let got = engine.get(&name(), get).wait().unwrap();
    assert_eq!(got.row(0).unwrap().cells().next().unwrap().value, 240_u64.to_be_bytes());
    let stats = engine.stats();
    assert!(stats.flushes > 3 && stats.compactions > 3, "{stats:?}");
    assert_eq!(engine.health(), Health::Ok);
    engine.verify().unwrap();
}

/// The hook is called, every waiting writer is told, nothing more is taken, reads go on.
#[test]
fn a_failed_sync_is_told_to_everyone() {
    let fs = SimFs::new(1);
    let told = Arc::new(Mutex::new(Vec::new()));
    let mut options = options(Arc::new(fs.clone()), Path::new("/d"), Workers::Threads);
    let hook_told = Arc::clone(&told);
    options.on_poison = Some(Arc::new(move |reason: &str| hook_told.lock().unwrap().push(reason.to_owned())));
    let engine = Engine::open(options).unwrap();
    engine.create_table(table(), &[]).unwrap();
    put(&engine, "a", "1").wait().unwrap();
    let fault =
        crate::io::Fault { after_calls: 0, kind: crate::io::FaultKind::Eio, span: crate::io::FaultSpan::FromThenOn };
    fs.set_fault(Some(fault));
    assert!(put(&engine, "b", "1").wait().is_err());
    assert!(matches!(engine.health(), Health::Poisoned { .. }));
    let refused = put(&engine, "c", "1").wait().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ReadOnly);
    assert_eq!(scan(&engine, Scan::all()).len(), 1);
    // Who writes may be refused before the hook is called.
    let begun = std::time::Instant::now();
    while told.lock().unwrap().is_empty() && begun.elapsed() < std::time::Duration::from_mins(1) {
        std::thread::yield_now();
    }
    assert_eq!(told.lock().unwrap().len(), 1);
    assert!(engine.close().is_err());
}

/// A file that could not be made changed nothing; of a sync nobody knows.
#[test]
fn want_of_descriptors_poisons_no_engine() {
    let fs = SimFs::new(1);
    let engine = Engine::open(options(Arc::new(fs), Path::new("/d"), Workers::Manual)).unwrap();
    let fail = |op| engine.core.guard::<()>(Err(Error::io(op, Path::new("/d"))(std::io::Error::from_raw_os_error(24))));
    assert!(fail(crate::io::IoOp::Create).is_err() && fail(crate::io::IoOp::Open).is_err());
    assert_eq!(engine.health(), Health::Ok);
    assert!(fail(crate::io::IoOp::SyncDir).is_err());
    assert!(matches!(engine.health(), Health::Poisoned { .. }));
}

/// A full disk refuses writes, serves reads, and takes writes again when there is space.
#[test]
fn a_full_disk_is_a_state() {
    let fs = SimFs::new(1);
    let mut options = options(Arc::new(fs.clone()), Path::new("/d"), Workers::Threads);
    options.limits.full_disk_retry_interval = std::time::Duration::from_millis(2);
    let engine = Engine::open(options).unwrap();
    engine.create_table(table(), &[]).unwrap();
    fs.set_capacity(fs.used_bytes() + (48 << 10));
    let value = "v".repeat(500);
    let mut taken = 0;
    let refused = loop {
        match put(&engine, &format!("row{taken:04}"), &value).wait() {
            Ok(_) => taken += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(refused.kind(), ErrorKind::ReadOnly, "{refused}");
    assert!(taken > 10 && scan(&engine, Scan::all()).len() >= taken);
    fs.set_capacity(u64::MAX);
    let mut tries = 0_u64;
    while put(&engine, "after", "1").wait().is_err() {
        tries += 1;
        assert!(tries < 1_000_000, "writes are not taken again: {:?}", engine.health());
        std::thread::yield_now();
    }
    drop(engine);
    let engine = Engine::open(EngineOptions { fs: Arc::new(fs), ..EngineOptions::new("/d") }).unwrap();
    assert!(scan(&engine, Scan::all()).len() > taken);
}

/// Joins a row's puts into one cell: the qualifiers' first bytes, the values behind one another.
#[derive(Debug)]
pub(crate) struct Joining;

impl basalt_store::Fold for Joining {
    fn name(&self) -> &'static str {
        "joining"
    }

    fn fold(&self, cells: &[basalt_store::RowPut<'_>], out: &mut basalt_store::FoldedRow) -> bool {
        if cells.len() < 2 {
            return false;
        }
        let qualifier: Vec<u8> = cells.iter().flat_map(|cell| cell.qualifier).copied().collect();
        let value: Vec<u8> = cells.iter().flat_map(|cell| cell.value).copied().collect();
        out.push(basalt_store::RowPut {
            qualifier: &qualifier,
            timestamp: cells.iter().map(|cell| cell.timestamp).max().unwrap(),
            seq: cells.iter().map(|cell| cell.seq).max().unwrap(),
            value: &value,
        });
        true
    }
}

#[test]
fn flush_and_compaction_fold_rows_but_not_beside_tombstones() {
    let fs = SimFs::new(1);
    let mut options = options(Arc::new(fs), Path::new("/d"), Workers::Threads);
    options.folds = vec![Arc::new(Joining)];
    let engine = Engine::open(options).unwrap();
    let family = FamilyDescriptor { fold: Some("joining".into()), ..FamilyDescriptor::new("f") };
    engine.create_table(TableDescriptor::new(name(), vec![family]), &[]).unwrap();
    let write = |row: &str, columns: &str| {
        let mut batch = MutationBatch::new(Durability::Os);
        for column in columns.split(' ') {
            batch.row(row.as_bytes()).unwrap().put(b"f", column.as_bytes(), None, column.as_bytes()).unwrap();
        }
        engine.apply(&name(), batch).wait().unwrap();
    };
    let told = || scan(&engine, Scan::all());
    let row = |name: &str, cells: &[&str]| (name.to_owned(), cells.iter().map(|cell| (*cell).to_owned()).collect());
    write("a", "1 2 3");
    write("b", "1 2");
    let mut batch = MutationBatch::new(Durability::Os);
    batch.row(b"b").unwrap().delete_column(b"f", b"1", None).unwrap();
    engine.apply(&name(), batch).wait().unwrap();
    write("b", "3");
    engine.flush(&name()).unwrap();
    assert_eq!(told(), [row("a", &["123"]), row("b", &["2", "3"])]);
    write("a", "4");
    engine.compact(&name(), Compaction::Major).unwrap();
    assert_eq!(told(), [row("a", &["1234"]), row("b", &["2", "3"])]);
    engine.compact(&name(), Compaction::Major).unwrap();
    assert_eq!(told(), [row("a", &["1234"]), row("b", &["23"])], "the tombstone went, the row folds");
}

/// A row's UIDs are logged before it and not awaited: no file may keep the row when the log loses them.
#[test]
fn a_file_does_not_outlive_what_was_logged_before_it() {
    let other: TableName = "u".parse().unwrap();
    for seed in 0..20 {
        let fs = SimFs::new(seed);
        let open = |fs: SimFs| Engine::open(options(Arc::new(fs), Path::new("/d"), Workers::Manual)).unwrap();
        let engine = open(fs.clone());
        engine.create_table(table(), &[]).unwrap();
        engine.create_table(TableDescriptor { name: other.clone(), ..table() }, &[]).unwrap();
        for name in [&other, &name()] {
            let mut batch = MutationBatch::new(Durability::Async);
            batch.row(b"r").unwrap().put(b"f", b"q", None, b"v").unwrap();
            engine.apply(name, batch).wait().unwrap();
        }
        engine.flush(&name()).unwrap();
        let engine = open(fs.power_loss(crate::io::LossMode::Hostile));
        assert_eq!(scan(&engine, Scan::all()).len(), 1, "seed {seed}");
        let logged = engine.get(&other, Get::row("r")).wait().unwrap();
        assert_eq!(logged.len(), 1, "seed {seed}: the earlier write is gone");
    }
}

/// What no file could hold is refused before it is logged: it would keep its region from being flushed.
#[test]
fn a_cell_that_no_file_can_hold_is_refused() {
    let engine = Engine::open(options(Arc::new(SimFs::new(1)), Path::new("/d"), Workers::Manual)).unwrap();
    engine.create_table(table(), &[]).unwrap();
    let mut batch = MutationBatch::new(Durability::Async);
    let qualifier = vec![b'q'; crate::sstable::CELL_BYTES_MAX];
    batch.row(b"a").unwrap().put(b"f", &qualifier, None, b"").unwrap();
    batch.row(b"b").unwrap().put(b"f", &qualifier[1..], None, b"").unwrap();
    let applied = engine.apply(&name(), batch).wait().unwrap();
    let refused: Vec<_> = applied.failed.iter().map(|failed| (failed.row, failed.error.to_string())).collect();
    assert!(matches!(&refused[..], [(0, told)] if told.contains("cell")), "{refused:?}");
    engine.flush(&name()).unwrap();
    assert_eq!(engine.stats().files_count, 1);
}

/// And a table that has a family of a longer name since before that was refused is opened, written and altered.
#[test]
fn a_new_family_has_a_name_of_at_most_127_bytes() {
    let fs = SimFs::new(1);
    let open = || Engine::open(options(Arc::new(fs.clone()), Path::new("/d"), Workers::Manual)).unwrap();
    let of = |bytes| TableDescriptor::new(name(), vec![FamilyDescriptor::new("f".repeat(bytes))]);
    let put = |engine: &Engine, bytes| {
        let mut batch = MutationBatch::new(Durability::Async);
        batch.row(b"a").unwrap().put("f".repeat(bytes).as_bytes(), b"q", None, b"1").unwrap();
        engine.apply(&name(), batch).wait().unwrap();
        engine.flush(&name()).unwrap();
    };
    let told = "column family name of 128 bytes is over the limit of 127 bytes";
    let engine = open();
    assert_eq!(engine.create_table(of(128), &[]).unwrap_err().to_string(), told);
    engine.create_table(of(127), &[]).unwrap();
    assert_eq!(engine.alter_table(of(128)).unwrap_err().to_string(), told);
    put(&engine, 127);
    drop(engine);
    let engine = open();
    assert_eq!(scan(&engine, Scan::all()).len(), 1);
    let edit = crate::manifest::Edit::AlterTable {
        id: engine.core.table(&name()).unwrap().id,
        descriptor: of(200),
        families: vec![crate::id::FamilyId(7)],
    };
    engine.core.edit(&mut engine.core.manifest(), &[edit]).unwrap();
    drop(engine);
    let engine = open();
    put(&engine, 200);
    drop(engine);
    let engine = open();
    assert_eq!(scan(&engine, Scan::all()).len(), 1);
    let mut altered = of(200);
    altered.families[0].ttl_seconds = Some(100);
    engine.alter_table(altered).unwrap();
}

/// A region with a damaged file says so at every try, and the others are compacted all the same.
#[test]
fn a_region_that_cannot_be_compacted_stops_no_other() {
    let (fs, clock) = (SimFs::new(1), Arc::new(ManualClock::new(Timestamp(1000))));
    let mut options = options(Arc::new(fs.clone()), Path::new("/d"), Workers::Manual);
    options.limits.compaction_files_min = 3;
    options.clock = Arc::clone(&clock) as Arc<dyn basalt_store::Clock>;
    let engine = Engine::open(options).unwrap();
    engine.create_table(table(), &["m".into()]).unwrap();
    for round in 0..3 {
        for key in ["a", "z"] {
            drop(put(&engine, key, &round.to_string()));
        }
        engine.pump().unwrap();
        engine.flush(&name()).unwrap();
    }
    assert_eq!(engine.stats().files_count, 12, "two families in two regions, three times");
    let first = fs.list(Path::new("/d")).unwrap().into_iter().filter(|name| name.starts_with("sst-")).min().unwrap();
    fs.flip_bit(&Path::new("/d").join(first), 60, 1).unwrap();
    assert!(matches!(engine.core.compact_due(), Err(Error::Corrupt { .. })));
    assert_eq!(engine.stats().files_count, 8, "those of the damaged region, and one of each family in the other");
    engine.core.compact_due().unwrap();
    assert_eq!(engine.stats().files_count, 6, "nor is the other family of the region kept from it");
    clock.advance(10_000);
    assert!(matches!(engine.core.compact_due(), Err(Error::Corrupt { .. })));
}
