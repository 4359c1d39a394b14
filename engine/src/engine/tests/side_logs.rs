//! Logs beside the tables: whatever happens to one, a beginning of it is read and nothing else.

use std::path::Path;

use basalt_store::{FamilyDescriptor, MutationBatch, SeqNo};

use super::*;
use crate::io::{Fault, FaultKind, FaultSpan, LossMode, SimFs};

fn open(fs: &SimFs) -> Arc<Engine> {
    let mut options = options(Arc::new(fs.clone()), Path::new("/d"), Workers::Manual);
    (options.limits.memtable_bytes, options.limits.memtables_bytes) = (64 << 20, 64 << 20);
    (options.limits.wal_bytes_max, options.limits.wal_segment_bytes) = (64 << 20, 1 << 20);
    Engine::open(options).unwrap()
}

fn log(engine: &Engine) -> Arc<dyn SideLog> {
    engine.side_log("series").unwrap()
}

/// The records, and whether more was cut off.
fn read(log: &dyn SideLog) -> (Vec<(u64, Vec<u8>)>, bool) {
    let mut records = Vec::new();
    let cut = log.read(&mut |upto, payload| {
        records.push((upto.0, payload.to_vec()));
        true
    });
    (records, cut.unwrap())
}

fn payload(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(usize::try_from(number * 7 % 90).unwrap())
}

fn records(upto: std::ops::Range<u64>) -> Vec<(u64, Vec<u8>)> {
    upto.map(|upto| (upto, payload(upto))).collect()
}

/// `replace` with records 0..`first`, then appends up to `end`.
fn fill(log: &dyn SideLog, first: u64, end: u64) {
    assert!(log.replace(log.epoch(), SeqNo(0), &mut (0..first).map(payload)).unwrap());
    for upto in first..end {
        assert!(log.append(log.epoch(), SeqNo(upto), &payload(upto)).unwrap());
    }
}

fn put(engine: &Engine, row: &str) {
    let mut batch = MutationBatch::new(Durability::Async);
    batch.row(row.as_bytes()).unwrap().put(b"f", b"q", None, b"v").unwrap();
    drop(engine.apply(&name(), batch));
}

fn keys(engine: &Engine, after: Option<u64>) -> Vec<String> {
    let mut scanner = engine.scan(&name(), Scan { after: after.map(SeqNo), ..Scan::all() }).unwrap();
    let batches = std::iter::from_fn(|| scanner.next_wait());
    let keys = batches.flat_map(|batch| batch.unwrap().rows().map(|row| row.key().to_vec()).collect::<Vec<_>>());
    keys.map(|key| String::from_utf8(key).unwrap()).collect()
}

#[test]
fn what_is_appended_is_read_by_the_next_to_open() {
    let fs = SimFs::new(1);
    let engine = open(&fs);
    assert_eq!(read(&*log(&engine)), (vec![], false));
    // Nothing is there to append to.
    assert!(!log(&engine).append(0, SeqNo(1), b"x").unwrap());
    fill(&*log(&engine), 1, 20);
    engine.close().unwrap();
    assert!(log(&engine).append(0, SeqNo(1), b"x").is_err(), "another may have the folder by now");
    let engine = open(&fs);
    assert_eq!(read(&*log(&engine)), (records(0..20), false));
    assert!(log(&engine).append(0, SeqNo(20), &payload(20)).unwrap());
    assert_eq!(read(&*log(&engine)), (records(0..21), false));
}

#[test]
fn a_flipped_bit_ends_the_log_before_it() {
    let fs = SimFs::new(1);
    let engine = open(&fs);
    fill(&*log(&engine), 1, 12);
    engine.close().unwrap();
    let path = Path::new("/d/side-series.log");
    let bytes = fs.open(path).unwrap().len().unwrap();
    for offset in (0..bytes).step_by(7) {
        let fs = fs.snapshot();
        fs.flip_bit(path, offset, 3).unwrap();
        let engine = open(&fs);
        let log = log(&engine);
        let (found, cut) = read(&*log);
        assert!(cut, "{offset}");
        assert_eq!(found, records(0..found.len() as u64), "{offset}");
        assert!(
            offset < 32 || found.len() as u64 * 700 + 100 > offset.saturating_sub(800),
            "{offset}: {}",
            found.len()
        );
        // What was cut off does not come back behind what is appended.
        let next = found.len() as u64;
        if log.append(0, SeqNo(next), &payload(next)).unwrap() {
            assert_eq!(read(&*log), (records(0..next + 1), false));
        }
    }
}

/// A kill at every step of writing: what was appended is there, and of what was not, nothing or all.
#[test]
fn a_crash_at_any_step_leaves_a_beginning() {
    for step in 0..16 {
        for mode in [LossMode::Ordered, LossMode::Hostile] {
            let fs = SimFs::new(step);
            let engine = open(&fs);
            let log = log(&engine);
            fill(&*log, 3, 5);
            let fault = Fault { after_calls: step, kind: FaultKind::Crash, span: FaultSpan::FromThenOn };
            fs.set_fault(Some(fault));
            let mut done = 5;
            while done < 8 && log.append(0, SeqNo(done), &payload(done)).is_ok_and(|added| added) {
                done += 1;
            }
            let replaced = done == 8 && log.replace(0, SeqNo(0), &mut (0..30).map(payload)).is_ok();
            let fs = fs.power_loss(mode);
            drop(engine);
            let engine = open(&fs);
            let (found, _) = read(&*self::log(&engine));
            let count = found.len() as u64;
            assert!(found.iter().map(|(_, payload)| payload).eq((0..count).map(payload).collect::<Vec<_>>().iter()));
            if replaced {
                assert_eq!(count, 30, "step {step}");
            } else {
                assert!(
                    (done..=done + 1).contains(&count) || (done == 8 && count == 30),
                    "step {step}: {done}, {count}"
                );
            }
        }
    }
}

/// A number that a log was told is given to no later change, whatever a crash takes.
#[test]
fn a_number_that_is_synced_is_never_given_again() {
    for seed in 0..40 {
        let mut fs = SimFs::new(seed);
        let mut engine = open(&fs);
        engine.create_table(TableDescriptor::new(name(), vec![FamilyDescriptor::new("f")]), &[]).unwrap();
        for life in 0..3 {
            for step in 0..10 {
                put(&engine, &format!("{life} {step}"));
                match (seed + step) % 7 {
                    1 => drop(engine.sync()),
                    3 => engine.pump().unwrap(),
                    5 => engine.flush(&name()).unwrap(),
                    _ => {}
                }
            }
            let synced = log(&engine).synced();
            fs = fs.power_loss(LossMode::Hostile);
            drop(engine);
            engine = open(&fs);
            assert!(log(&engine).synced() >= synced, "seed {seed}, life {life}");
            let before = keys(&engine, Some(synced.0));
            put(&engine, "new");
            engine.flush(&name()).unwrap();
            let after = keys(&engine, Some(synced.0));
            assert!(after.contains(&"new".to_owned()), "seed {seed}: {before:?} {after:?}");
        }
    }
}

/// By a number, rows are left out that were on disk before it, and no other; also after a merge of old files with new ones.
#[test]
fn a_scan_after_a_number_has_every_row_changed_since() {
    let fs = SimFs::new(1);
    let engine = open(&fs);
    engine.create_table(TableDescriptor::new(name(), vec![FamilyDescriptor::new("f")]), &["m".into()]).unwrap();
    let settle = |engine: &Engine| {
        engine.pump().unwrap();
        log(engine).synced().0
    };
    put(&engine, "a");
    put(&engine, "x");
    engine.flush(&name()).unwrap();
    let first = settle(&engine);
    assert!(keys(&engine, Some(first)).is_empty());
    put(&engine, "b");
    engine.flush(&name()).unwrap();
    assert_eq!(keys(&engine, Some(first)), ["b"]);
    put(&engine, "c");
    let unflushed = settle(&engine);
    assert_eq!(keys(&engine, Some(unflushed)), ["c"], "what is in memory is never left out");
    engine.compact(&name(), Compaction::Major).unwrap();
    assert!(keys(&engine, Some(first)).ends_with(&["c".to_owned()]));
    drop(engine);
    let engine = open(&fs);
    assert_eq!(keys(&engine, Some(log(&engine).synced().0)), Vec::<String>::new());
    assert_eq!(keys(&engine, None), ["a", "b", "c", "x"]);
}

/// Rows of a snapshot come back with old numbers: no log survives that, in the process that has it open or in the next.
#[test]
fn a_snapshot_that_comes_back_ends_every_log() {
    let fs = SimFs::new(1);
    let engine = open(&fs);
    engine.create_table(TableDescriptor::new(name(), vec![FamilyDescriptor::new("f")]), &[]).unwrap();
    put(&engine, "a");
    engine.snapshot(&name(), "s").unwrap();
    for clone in [true, false] {
        let log = log(&engine);
        fill_of_epoch(&*log);
        let epoch = log.epoch();
        if clone {
            engine.clone_snapshot("s", &"copy".parse().unwrap()).unwrap();
        } else {
            engine.disable_table(&name()).unwrap();
            engine.restore_snapshot("s").unwrap();
        }
        assert!(log.epoch() > epoch);
        assert!(!log.append(epoch, SeqNo(9), b"x").unwrap() && !log.append(log.epoch(), SeqNo(9), b"x").unwrap());
        assert!(!log.replace(epoch, SeqNo(9), &mut std::iter::empty()).unwrap());
        assert_eq!(read(&*open(&fs.snapshot()).side_log("series").unwrap()), (vec![], false));
    }
}

/// What a table had is told by no number once it is emptied or dropped.
#[test]
fn a_table_that_is_emptied_or_dropped_ends_every_log() {
    let fs = SimFs::new(1);
    let engine = open(&fs);
    engine.create_table(TableDescriptor::new(name(), vec![FamilyDescriptor::new("f")]), &[]).unwrap();
    for drops in [false, true] {
        let log = log(&engine);
        fill_of_epoch(&*log);
        let epoch = log.epoch();
        if drops {
            engine.disable_table(&name()).unwrap();
            engine.drop_table(&name()).unwrap();
        } else {
            engine.truncate_table(&name(), TruncatedRegions::Kept).unwrap();
        }
        assert!(log.epoch() > epoch);
        assert!(!log.replace(epoch, SeqNo(9), &mut std::iter::empty()).unwrap());
        assert_eq!(read(&*open(&fs.snapshot()).side_log("series").unwrap()), (vec![], false), "{drops}");
    }
}

/// One that says whose rows it is of, as no closed one does.
#[test]
fn a_change_of_another_table_leaves_a_log_as_it_is() {
    let fs = SimFs::new(1);
    let engine = open(&fs);
    let other: TableName = "other".parse().unwrap();
    for table in [name(), other.clone()] {
        engine.create_table(TableDescriptor::new(table, vec![FamilyDescriptor::new("f")]), &[]).unwrap();
    }
    let (log, of_all) = (log(&engine), engine.side_log("all").unwrap());
    log.is_of(&[&name()]);
    fill_of_epoch(&*log);
    fill_of_epoch(&*of_all);
    let epochs = || (log.epoch(), of_all.epoch());
    let before = epochs();
    engine.truncate_table(&other, TruncatedRegions::Kept).unwrap();
    assert!(epochs().0 == before.0 && epochs().1 > before.1);
    assert!(log.append(before.0, SeqNo(2), &payload(2)).unwrap());
    assert!(!of_all.append(epochs().1, SeqNo(2), &payload(2)).unwrap());
    let later = open(&fs.snapshot());
    assert_eq!(read(&*later.side_log("all").unwrap()), (vec![], false));
    assert_eq!(read(&*self::log(&later)), (records(0..3), false));
    later.truncate_table(&other, TruncatedRegions::Kept).unwrap();
    assert_eq!(read(&*self::log(&later)), (vec![], false));
    engine.truncate_table(&name(), TruncatedRegions::Kept).unwrap();
    assert!(epochs().0 > before.0);
    assert_eq!(read(&*log), (vec![], false));
}

/// Of the rows before a change no log is made while it is under way, also by one who asks for it by then alone.
#[test]
fn no_log_is_made_during_a_change() {
    let fs = SimFs::new(1);
    let engine = open(&fs);
    let (first, second) = (log(&engine), engine.side_log("other").unwrap());
    let change = || {
        for log in [&first, &second, &engine.side_log("third").unwrap()] {
            assert!(!log.replace(log.epoch(), SeqNo(0), &mut std::iter::once(payload(0))).unwrap());
            assert!(!log.append(log.epoch(), SeqNo(1), &payload(1)).unwrap());
        }
        Ok(first.epoch())
    };
    let epoch = engine.core.side_logs.forgotten(&name(), change).unwrap();
    assert!(first.epoch() > epoch);
    fill_of_epoch(&*first);
}

fn fill_of_epoch(log: &dyn SideLog) {
    assert!(log.replace(log.epoch(), SeqNo(0), &mut std::iter::once(payload(0))).unwrap());
    assert!(log.append(log.epoch(), SeqNo(1), &payload(1)).unwrap());
}
