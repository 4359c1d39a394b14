//! Snapshots under load, beside folds and compactions, and at every step of a crash.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use basalt_store::{Durability, FamilyDescriptor, MutationBatch};

use super::*;
use crate::io::{Fault, FaultKind, FaultSpan, LossMode, OsFs, SimFs};

fn copy() -> TableName {
    "copy".parse().unwrap()
}

fn scan_of(engine: &Engine, table: &TableName) -> Vec<Row> {
    let mut scanner = engine.scan(table, Scan::all()).unwrap();
    std::iter::from_fn(|| scanner.next_wait()).flat_map(|batch| rows(&batch.unwrap())).collect()
}

fn sstables(fs: &SimFs) -> usize {
    fs.list(Path::new("/d")).unwrap().iter().filter(|name| name.starts_with("sst-")).count()
}

/// A snapshot is the log up to one number, across regions: batches over two of them are in it whole or not.
#[test]
fn a_snapshot_is_one_moment_across_regions() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(Arc::new(OsFs), dir.path(), Workers::Threads);
    options.limits.memtables_bytes = 64 << 20;
    options.limits.wal_bytes_max = 64 << 20;
    options.limits.compaction_threads = 1;
    options.limits.compaction_files_min = 2;
    let engine = Engine::open(options).unwrap();
    engine.create_table(table(), &["m".into()]).unwrap();
    let done = AtomicBool::new(false);
    let write = || {
        for round in 0.. {
            let mut batch = MutationBatch::new(Durability::Os);
            for row in ["a", "z"] {
                let value = format!("{round} {}", "x".repeat(100));
                batch.row(row.as_bytes()).unwrap().put(b"f", b"q", None, value.as_bytes()).unwrap();
            }
            assert!(engine.apply(&name(), batch).wait().unwrap().failed.is_empty());
            if done.load(Ordering::Relaxed) {
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(write);
        for taken in 0..20 {
            engine.snapshot(&name(), &format!("s{taken}")).unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    let mut last = None;
    for taken in 0..20 {
        engine.clone_snapshot(&format!("s{taken}"), &copy()).unwrap();
        let found = scan_of(&engine, &copy());
        let rounds: Vec<u64> =
            found.iter().map(|(_, cells)| cells[0].split(' ').next().unwrap().parse().unwrap()).collect();
        assert!(rounds.is_empty() || (rounds.len() == 2 && rounds[0] == rounds[1]), "s{taken}: {rounds:?}");
        assert!(rounds.first() >= last.as_ref(), "s{taken}: {rounds:?} after {last:?}");
        last = rounds.first().copied();
        engine.drop_table(&copy()).unwrap();
    }
    assert!(last.is_some());
    engine.verify().unwrap();
}

/// Storage format, fold safety, rule 5: a fold after a snapshot joins cells that the snapshot has apart, and the
/// snapshot has them apart still.
#[test]
fn a_fold_does_not_change_a_snapshot() {
    let fs = SimFs::new(1);
    let mut options = options(Arc::new(fs), Path::new("/d"), Workers::Threads);
    options.folds = vec![Arc::new(Joining)];
    let engine = Engine::open(options).unwrap();
    let family = FamilyDescriptor { fold: Some("joining".into()), ..FamilyDescriptor::new("f") };
    engine.create_table(TableDescriptor::new(name(), vec![family]), &[]).unwrap();
    let write = |column: &str| {
        let mut batch = MutationBatch::new(Durability::Os);
        batch.row(b"a").unwrap().put(b"f", column.as_bytes(), None, column.as_bytes()).unwrap();
        engine.apply(&name(), batch).wait().unwrap();
    };
    let cells = |table: &TableName| scan_of(&engine, table).pop().unwrap().1;
    write("1");
    engine.flush(&name()).unwrap();
    write("2");
    engine.snapshot(&name(), "s").unwrap();
    write("3");
    engine.compact(&name(), Compaction::Major).unwrap();
    assert_eq!(cells(&name()), ["123"]);
    engine.clone_snapshot("s", &copy()).unwrap();
    assert_eq!(cells(&copy()), ["1", "2"]);
    engine.compact(&copy(), Compaction::Major).unwrap();
    assert_eq!((cells(&copy()), cells(&name())), (vec!["12".to_owned()], vec!["123".to_owned()]));
    engine.disable_table(&name()).unwrap();
    engine.restore_snapshot("s").unwrap();
    engine.enable_table(&name()).unwrap();
    write("4");
    engine.compact(&name(), Compaction::Major).unwrap();
    assert_eq!(cells(&name()), ["124"]);
}

/// Compaction, a split, a dropped family and a dropped table leave the files of a snapshot; they go with it.
#[test]
fn files_of_a_snapshot_stay_until_it_is_deleted() {
    let fs = SimFs::new(1);
    let open = || Engine::open(options(Arc::new(fs.clone()), Path::new("/d"), Workers::Manual)).unwrap();
    let engine = open();
    engine.create_table(table(), &[]).unwrap();
    let fill = |engine: &Engine| {
        for row in 0..20 {
            drop(put(engine, &format!("row{row:04}"), &format!("v{row}")));
        }
        engine.pump().unwrap();
    };
    fill(&engine);
    engine.snapshot(&name(), "s").unwrap();
    assert_eq!(engine.list_snapshots().unwrap()[0].files_count, 2);
    fill(&engine);
    engine.split_region(&name(), &SplitAt::Key("row0010".into())).unwrap();
    engine.compact(&name(), Compaction::Major).unwrap();
    assert_eq!(sstables(&fs), 4 + 2);
    let one_family = TableDescriptor::new(name(), vec![FamilyDescriptor::new("f")]);
    engine.alter_table(one_family).unwrap();
    assert_eq!(sstables(&fs), 2 + 2);
    engine.drop_table(&name()).unwrap();
    assert_eq!(sstables(&fs), 2);
    drop(engine);
    let engine = open();
    assert_eq!(sstables(&fs), 2, "nor does the next start delete them");
    engine.clone_snapshot("s", &copy()).unwrap();
    engine.delete_snapshot("s").unwrap();
    assert_eq!((sstables(&fs), scan_of(&engine, &copy())), (2, expected(0..20)));
    engine.drop_table(&copy()).unwrap();
    assert_eq!(sstables(&fs), 0);
}

/// Takes a snapshot on a disk that has no room at one step; answers whether that was told, is so, and whether the log was trimmed; and
/// how many steps it took.
fn take_snapshot(full_at: u64) -> (bool, bool, bool, u64) {
    let fs = SimFs::new(1);
    let mut options = options(Arc::new(fs.clone()), Path::new("/d"), Workers::Manual);
    (options.limits.wal_segment_bytes, options.limits.reserve_bytes) = (2 << 10, 0);
    (options.limits.memtable_bytes, options.limits.memtables_bytes) = (1 << 20, 1 << 20);
    let engine = Engine::open(options).unwrap();
    engine.create_table(table(), &[]).unwrap();
    for row in 0..40 {
        drop(put(&engine, &format!("row{row:04}"), &"v".repeat(100)));
        engine.pump().unwrap();
    }
    let log_start = || engine.core.manifest().catalog().marks.log_start;
    let (start, calls) = (log_start(), fs.calls());
    fs.set_fault(Some(Fault { after_calls: full_at, kind: FaultKind::Enospc, span: FaultSpan::Once }));
    let taken = engine.snapshot(&name(), "s");
    fs.set_fault(None);
    let is_there = !engine.list_snapshots().unwrap().is_empty();
    (taken.is_ok(), is_there, log_start() > start, fs.calls() - calls)
}

/// That the log keeps what it no longer needs makes no failure of a snapshot that is durable.
#[test]
fn a_snapshot_is_told_as_taken_where_it_is() {
    let (is_told, is_there, is_trimmed, steps) = take_snapshot(u64::MAX);
    assert!(is_told && is_there && is_trimmed && steps > 5);
    let mut untrimmed = 0;
    for step in 0..steps {
        let (is_told, is_there, is_trimmed, _) = take_snapshot(step);
        assert_eq!(is_told, is_there, "step {step}");
        untrimmed += u32::from(is_there && !is_trimmed);
    }
    assert!(untrimmed > 0);
}

/// Each of them is one edit.
fn steps(engine: &Engine, fill: impl Fn(&str)) -> basalt_store::Result<()> {
    fill("old");
    engine.snapshot(&name(), "s")?;
    fill("new");
    engine.clone_snapshot("s", &copy())?;
    engine.disable_table(&name())?;
    engine.restore_snapshot("s")?;
    engine.enable_table(&name())?;
    engine.delete_snapshot("s")
}

/// A crash at each step of taking, cloning, restoring and deleting a snapshot leaves the step before or after it.
#[test]
fn snapshots_are_whole_or_absent_at_every_crash() {
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..3 {
        for after_calls in 0.. {
            let fs = SimFs::new(seed);
            let engine = Engine::open(options(Arc::new(fs.clone()), Path::new("/d"), Workers::Manual)).unwrap();
            engine.create_table(table(), &["row0010".into()]).unwrap();
            let fill = |value: &str| {
                for row in 0..20 {
                    drop(put(&engine, &format!("row{row:04}"), value));
                }
                drop(engine.pump());
            };
            fill("first");
            fs.set_fault(Some(Fault { after_calls, kind: FaultKind::Crash, span: FaultSpan::FromThenOn }));
            let done = steps(&engine, fill).is_ok();
            drop(engine);
            let fs = fs.power_loss(LossMode::Hostile);
            let at = format!("seed {seed}, step {after_calls}");
            seen.insert(check_steps(&fs, &at));
            if done {
                break;
            }
        }
    }
    for outcome in [("first", "", 0), ("old", "", 1), ("new", "", 1), ("new", "old", 1), ("old", "old", 1)] {
        let outcome = (outcome.0.to_owned(), outcome.1.to_owned(), outcome.2);
        assert!(seen.contains(&outcome), "{outcome:?} is not in {seen:?}");
    }
}

/// What a crash left: one value in all rows of the table, one in those of the copy, and the snapshot's rows whole.
fn check_steps(fs: &SimFs, at: &str) -> (String, String, usize) {
    let engine = Engine::open(options(Arc::new(fs.clone()), Path::new("/d"), Workers::Manual));
    let engine = engine.unwrap_or_else(|error| panic!("{at}: {error}"));
    engine.verify().unwrap();
    if !engine.is_table_enabled(&name()).unwrap() {
        engine.enable_table(&name()).unwrap();
    }
    let value_of = |table: &TableName| {
        let found = scan_of(&engine, table);
        let mut values: Vec<_> = found.iter().flat_map(|(_, cells)| cells.clone()).collect();
        values.dedup();
        assert!(found.len() == 20 || found.is_empty(), "{at}: {table} has {} rows", found.len());
        values
    };
    let there = engine.list_snapshots().unwrap();
    let has_copy = engine.describe_table(&copy()).is_ok();
    if has_copy {
        assert_eq!(value_of(&copy()), ["old"], "{at}");
    }
    if !there.is_empty() {
        let again: TableName = "again".parse().unwrap();
        engine.clone_snapshot("s", &again).unwrap();
        assert_eq!(value_of(&again), ["old"], "{at}");
        engine.compact(&again, Compaction::Major).unwrap();
        engine.drop_table(&again).unwrap();
    }
    // Rows that were being overwritten may be of either value, each whole.
    let values = value_of(&name());
    let now = values.last().cloned().unwrap_or_default();
    assert!(values.iter().all(|value| ["first", "old", "new"].contains(&&**value)), "{at}: {values:?}");
    (now, if has_copy { "old".to_owned() } else { String::new() }, there.len())
}
