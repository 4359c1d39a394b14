//! Splits while everything else goes on, and at every step of a crash.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use basalt_store::{Durability, FamilyDescriptor, MutationBatch};

use super::*;
use crate::io::{Fault, FaultKind, FaultSpan, LossMode, OsFs, SimFs};

fn starts(engine: &Engine) -> Vec<Bytes> {
    engine.regions(&name()).unwrap().into_iter().map(|region| region.start).collect()
}

/// S-PERF-2: a table grows past its `MAX_FILESIZE`, its regions split by themselves, no row is lost, scans are equal.
#[test]
fn s_perf_2_regions_split_at_max_filesize() {
    let dir = tempfile::tempdir().unwrap();
    let open = || {
        let mut options = options(Arc::new(OsFs), dir.path(), Workers::Threads);
        options.limits.compaction_threads = 1;
        (options.limits.memtable_bytes, options.limits.memtables_bytes) = (512 << 10, 64 << 20);
        (options.limits.wal_bytes_max, options.limits.wal_segment_bytes) = (64 << 20, 4 << 20);
        Engine::open(options).unwrap()
    };
    let engine = open();
    let family = FamilyDescriptor { compression: basalt_store::Compression::None, ..FamilyDescriptor::new("f") };
    let grown = TableDescriptor::new(name(), vec![family]).with_attribute("MAX_FILESIZE", (2 << 20).to_string());
    engine.create_table(grown, &[]).unwrap();
    let value = "v".repeat(1000);
    for piece in 0..90_u32 {
        let mut batch = MutationBatch::new(Durability::Os);
        for row in 0..100 {
            // Spread over the keys, so that all regions grow.
            let key = format!("row{:06}", (piece * 100 + row) * 7919 % 9000);
            batch.row(key.as_bytes()).unwrap().put(b"f", b"q", None, value.as_bytes()).unwrap();
        }
        assert!(engine.apply(&name(), batch).wait().unwrap().failed.is_empty());
    }
    engine.flush(&name()).unwrap();
    let all: Vec<Row> = (0..9000).map(|row| (format!("row{row:06}"), vec![value.clone()])).collect();
    assert!(scan(&engine, Scan::all()) == all, "a row is lost or twice there");
    // Other threads split too: a region that one is at is passed over, and its halves are seen before they are counted.
    let begun = std::time::Instant::now();
    loop {
        let (regions, splits) = (engine.regions(&name()).unwrap(), engine.stats().splits);
        let are_small = regions.iter().all(|region| region.file_bytes <= 2 << 20);
        if regions.len() >= 4 && are_small && splits == regions.len() as u64 - 1 {
            break;
        }
        assert!(begun.elapsed() < std::time::Duration::from_mins(1), "{splits} splits: {regions:?}");
        engine.core.compact_due().unwrap();
    }
    engine.compact(&name(), Compaction::Major).unwrap();
    drop(engine);
    let engine = open();
    assert!(scan(&engine, Scan::all()) == all, "after reopening");
    let mut reversed = all;
    reversed.reverse();
    assert!(scan(&engine, Scan { reversed: true, ..Scan::all() }) == reversed);
    engine.verify().unwrap();
}

/// Rows go to the region that has them, where the first bytes of regions are their places and where they are not.
#[test]
fn rows_are_found_on_both_sides_of_every_split() {
    let splits: [&[&[u8]]; 5] = [
        &[&[1], &[2], &[3]],
        &[&[1], &[2], &[2, 5], &[3]],
        &[&[2]],
        &[&[0, 1], &[1], &[2]],
        &[&[1, 2, 3, 4, 5, 6, 7, 8, 9]],
    ];
    for splits in splits {
        let fs = SimFs::new(1);
        let engine = Engine::open(options(Arc::new(fs), Path::new("/d"), Workers::Manual)).unwrap();
        let splits: Vec<Bytes> = splits.iter().map(|split| Bytes::copy_from_slice(split)).collect();
        engine.create_table(table(), &splits).unwrap();
        let mut batch = MutationBatch::new(Durability::Async);
        let keys: Vec<[u8; 10]> = (0..6).flat_map(|a| (0..8).map(move |b| [a, b, 3, 4, 5, 6, 7, 8, 9, 0])).collect();
        for key in &keys {
            batch.row(key).unwrap().put(b"f", b"q", None, b"v").unwrap();
        }
        let applied = engine.apply(&name(), batch);
        engine.pump().unwrap();
        assert!(applied.wait().unwrap().failed.is_empty());
        for key in &keys {
            let found = engine.get(&name(), Get::row(Bytes::copy_from_slice(key))).wait().unwrap();
            assert_eq!(found.rows().len(), 1, "{key:?} of {splits:?}");
        }
    }
}

/// Regions of salt buckets mean something: their table says so, and they stay as they are.
#[test]
fn tables_with_the_disabled_policy_do_not_split_by_themselves() {
    let fs = SimFs::new(1);
    let mut options = options(Arc::new(fs), Path::new("/d"), Workers::Manual);
    options.limits.region_bytes_max = 1;
    let engine = Engine::open(options).unwrap();
    let salted = table().with_attribute("SPLIT_POLICY", basalt_store::SplitPolicy::DISABLED);
    engine.create_table(salted.clone(), &[]).unwrap();
    for row in 0..20 {
        drop(put(&engine, &format!("row{row:04}"), "v"));
    }
    engine.pump().unwrap();
    engine.flush(&name()).unwrap();
    engine.pump().unwrap();
    assert_eq!(starts(&engine).len(), 1);
    engine.alter_table(table()).unwrap();
    engine.pump().unwrap();
    assert!(starts(&engine).len() > 1, "without it they do");
    engine.alter_table(salted).unwrap();
    let regions = starts(&engine).len();
    engine.split_region(&name(), &SplitAt::Key("zz".into())).unwrap();
    assert_eq!(starts(&engine).len(), regions + 1, "on request it is done all the same");
}

/// Writes every third row again and again, and counts in one.
fn write_rounds(engine: &Engine, writer: u32) {
    for round in 0..60 {
        let mut batch = MutationBatch::new(Durability::Fsync);
        for row in (writer..200).step_by(3) {
            let value = format!("{writer} {round}");
            let mut changes = batch.row(format!("row{row:04}").as_bytes()).unwrap();
            changes.put(b"f", b"q", None, value.as_bytes()).unwrap();
            changes.put(b"g", b"q", None, value.as_bytes()).unwrap();
        }
        assert!(engine.apply(&name(), batch).wait().unwrap().failed.is_empty());
        let (row, family, qualifier) = ("row0100".into(), "f".into(), "n".into());
        let increment = Increment { row, family, qualifier, amount: 1, durability: Durability::Async };
        engine.increment(&name(), increment).wait().unwrap();
    }
}

/// Scans until it is told to end: each scan has each row once, and no row is torn.
fn scan_until(engine: &Engine, reversed: bool, done: &AtomicBool) {
    let all: Vec<_> = expected(0..200).into_iter().map(|(key, _)| key).collect();
    while !done.load(Ordering::Relaxed) {
        let mut rows = scan(engine, Scan { reversed, batch_bytes: 200, ..Scan::all() });
        if reversed {
            rows.reverse();
        }
        assert!(rows.iter().all(|(key, cells)| key == "row0100" || cells[0] == cells[1]), "{rows:?}");
        assert_eq!(rows.into_iter().map(|(key, _)| key).collect::<Vec<_>>(), all);
    }
}

fn split_all_over(engine: &Engine) {
    for row in 1..60_u32 {
        let key = format!("row{:04}", row * 67 % 200);
        let at = if row % 2 == 0 { SplitAt::Key(key.into()) } else { SplitAt::MiddleOf(key.into()) };
        // A key may have been split at before, and a region be one row.
        drop(engine.split_region(&name(), &at));
        if row % 10 == 0 {
            engine.compact(&name(), Compaction::Major).unwrap();
        }
    }
}

/// Rule S-SPLIT-1 on the run: writers and scans go on, no scan misses a row or sees one twice.
#[test]
fn splits_under_load_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(Arc::new(OsFs), dir.path(), Workers::Threads);
    options.limits.memtables_bytes = 32 << 20;
    options.limits.compaction_threads = 1;
    options.limits.compaction_files_min = 2;
    let engine = Engine::open(options).unwrap();
    engine.create_table(table(), &[]).unwrap();
    for row in 0..200 {
        drop(put(&engine, &format!("row{row:04}"), "first"));
    }
    put(&engine, "row0000", "first").wait().unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (engine, done) = (&engine, &done);
        let writers: Vec<_> = (0..3).map(|writer| scope.spawn(move || write_rounds(engine, writer))).collect();
        for reversed in [false, true] {
            scope.spawn(move || scan_until(engine, reversed, done));
        }
        scope.spawn(move || split_all_over(engine));
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(engine.stats().splits > 20, "{:?}", engine.stats());
    engine.flush(&name()).unwrap();
    assert_eq!(engine.stats().memtable_bytes, 0, "what is flushed by all regions throttles no more");
    for (row, (_, cells)) in scan(&engine, Scan::all()).into_iter().enumerate() {
        assert_eq!(cells.last(), Some(&format!("{} 59", row % 3)));
    }
    let counted = engine.get(&name(), Get::row("row0100")).wait().unwrap();
    let counter = counted.row(0).unwrap().cells().find(|cell| cell.qualifier == b"n").unwrap().value.to_vec();
    assert_eq!(counter, 180_u64.to_be_bytes());
    drop(engine);
    let engine = Engine::open(EngineOptions::new(dir.path())).unwrap();
    assert_eq!(scan(&engine, Scan::all()).len(), 200);
    engine.verify().unwrap();
}

/// Rows of `crashed` as they must be whatever step the split died at.
fn check_after_crash(fs: SimFs, at: &str) -> usize {
    let engine = Engine::open(options(Arc::new(fs), Path::new("/d"), Workers::Manual));
    let engine = engine.unwrap_or_else(|error| panic!("{at}: {error}"));
    assert_eq!(scan(&engine, Scan::all()), expected(0..60), "{at}");
    engine.verify().unwrap();
    let count = starts(&engine).len();
    engine.compact(&name(), Compaction::Major).unwrap();
    assert_eq!(scan(&engine, Scan::all()), expected(0..60), "{at}, compacted");
    count
}

/// A crash at each step of a split, and of the flush and compaction of its halves, leaves one region or two, whole.
#[test]
fn a_split_is_whole_or_absent_at_every_crash() {
    let mut outcomes = [0; 2];
    for seed in 0..3 {
        for after_calls in 0.. {
            let fs = SimFs::new(seed);
            let engine = Engine::open(options(Arc::new(fs.clone()), Path::new("/d"), Workers::Manual)).unwrap();
            engine.create_table(table(), &[]).unwrap();
            let half = |rows: std::ops::Range<u32>| {
                let asked: Vec<_> = rows.map(|row| put(&engine, &format!("row{row:04}"), &format!("v{row}"))).collect();
                engine.pump().unwrap();
                for put in asked {
                    put.wait().unwrap();
                }
            };
            half(0..40);
            engine.flush(&name()).unwrap();
            half(40..60);
            fs.set_fault(Some(Fault { after_calls, kind: FaultKind::Crash, span: FaultSpan::FromThenOn }));
            let split = engine.split_region(&name(), &SplitAt::Key("row0020".into()));
            let done = split.is_ok()
                && engine.flush(&name()).is_ok()
                && engine.compact(&name(), Compaction::Major).is_ok()
                && !fs.is_dead();
            drop(engine);
            let at = format!("seed {seed}, step {after_calls}");
            let regions = check_after_crash(fs.power_loss(LossMode::Hostile), &at);
            assert!(regions == 2 || (regions == 1 && split.is_err()), "{at}: {regions} regions");
            outcomes[regions - 1] += 1;
            if done {
                break;
            }
        }
    }
    assert!(outcomes.iter().all(|count| *count > 3), "{outcomes:?}");
}

/// A file of both halves goes when the second one has let go of it too, not before.
#[test]
fn a_shared_file_goes_with_its_last_region() {
    let fs = SimFs::new(1);
    let engine = Engine::open(options(Arc::new(fs.clone()), Path::new("/d"), Workers::Manual)).unwrap();
    engine.create_table(table(), &[]).unwrap();
    for (row, _) in expected(0..40) {
        drop(put(&engine, &row, "v"));
    }
    engine.pump().unwrap();
    engine.flush(&name()).unwrap();
    let files = || {
        let names = fs.list(Path::new("/d")).unwrap();
        names.into_iter().filter(|name| name.starts_with("sst-")).count()
    };
    engine.split_region(&name(), &SplitAt::Key("row0020".into())).unwrap();
    assert_eq!(files(), 2, "nothing is rewritten");
    let regions = engine.regions(&name()).unwrap();
    assert!(regions.iter().all(|region| region.files_count == 2));
    let table = engine.core.table(&name()).unwrap();
    engine.core.compact_region(&table, &table.regions()[0]).unwrap();
    assert_eq!((files(), scan(&engine, Scan::all()).len()), (4, 40));
    engine.core.compact_region(&table, &table.regions()[1]).unwrap();
    assert_eq!((files(), scan(&engine, Scan::all()).len()), (4, 40));
    engine.split_region(&name(), &SplitAt::Key("row0010".into())).unwrap();
    engine.drop_table(&name()).unwrap();
    assert_eq!(files(), 0);
}
