//! Logs long enough to be read back by several threads.

use std::path::Path;

use basalt_store::{CellKind, Durability, FamilyDescriptor, ManualClock, MutationBatch, Timestamp};

use super::*;
use crate::error::Error as EngineError;
use crate::io::{Fault, FaultKind, FaultSpan, FileSystem, LossMode, Rng, SimFs, SplitMix};
use crate::mutation::MUTATIONS;
use crate::record;
use crate::wal::Write;

fn open(fs: &SimFs) -> Arc<Engine> {
    try_open(fs).unwrap()
}

fn try_open(fs: &SimFs) -> Result<Arc<Engine>> {
    Engine::open(options_of(fs))
}

fn options_of(fs: &SimFs) -> EngineOptions {
    let mut options = options(Arc::new(fs.clone()), Path::new("/d"), Workers::Manual);
    (options.limits.memtable_bytes, options.limits.memtables_bytes) = (64 << 20, 64 << 20);
    (options.limits.wal_bytes_max, options.limits.wal_segment_bytes) = (64 << 20, 1 << 20);
    options
}

/// Rows of several regions, overwritten and deleted, of which some are in files, beside a table and a family that are
/// dropped later: all is as it was, twice the same.
#[test]
fn a_log_of_many_chunks_comes_back_as_it_was() {
    let fs = SimFs::new(1);
    let engine = open(&fs);
    let families = |names: &[&'static str]| names.iter().map(|name| FamilyDescriptor::new(*name)).collect::<Vec<_>>();
    let splits: Vec<Bytes> = ["c", "e", "g", "i"].map(Bytes::from).into();
    engine.create_table(TableDescriptor::new(name(), families(&["f", "g"])), &splits).unwrap();
    let other: TableName = "other".parse().unwrap();
    engine.create_table(TableDescriptor::new(other.clone(), families(&["f"])), &[]).unwrap();
    for step in 0..300_u32 {
        let mut batch = MutationBatch::new(Durability::Async);
        for row in 0..20 {
            let number = (step * 20 + row) * 7919 % 3000;
            let key = format!("{}{number:04}", char::from(b'a' + u8::try_from(number % 10).unwrap()));
            let mut changes = batch.row(key.as_bytes()).unwrap();
            if number % 11 == step % 11 {
                changes.delete_family(b"f", None).unwrap();
            } else {
                let value = step.to_string().repeat(200);
                changes.put(b"f", b"q", None, value.as_bytes()).unwrap().put(b"g", b"q", None, b"g").unwrap();
            }
        }
        let mut dropped = MutationBatch::new(Durability::Async);
        dropped.row(b"a").unwrap().put(b"f", b"q", None, b"v").unwrap();
        let _answered_later = [engine.apply(&name(), batch), engine.apply(&other, dropped)];
        engine.pump().unwrap();
        if step == 100 {
            engine.flush(&name()).unwrap();
        }
    }
    engine.drop_table(&other).unwrap();
    engine.alter_table(TableDescriptor::new(name(), families(&["f"]))).unwrap();
    let synced = engine.sync();
    engine.pump().unwrap();
    synced.wait().unwrap();
    assert!(engine.stats().wal_bytes > 2 << 20, "{} bytes of log", engine.stats().wal_bytes);
    let expected = scan(&engine, Scan::all());
    assert!(expected.len() > 2000);
    let again = [open(&fs.snapshot()), open(&fs.snapshot())];
    for engine in &again {
        assert_eq!(scan(engine, Scan::all()), expected);
    }
    assert_eq!(again[0].stats().memtable_bytes, again[1].stats().memtable_bytes);
}

/// Each thread takes its own rows, and only those that are in no file: what is in the memtables then is what a log that one thread
/// reads back leaves there.
#[test]
fn a_row_comes_back_once() {
    let filled = |rounds: u32| {
        let fs = SimFs::new(6);
        let engine = open(&fs);
        engine.create_table(table(), &["2", "4", "6", "8"].map(Bytes::from)).unwrap();
        for step in 0..rounds {
            let mut batch = MutationBatch::new(Durability::Async);
            for row in 0..10_u32 {
                let key = format!("{row}{:03}", step % 40);
                batch.row(key.as_bytes()).unwrap().put(b"f", b"q", None, &vec![7; 4 << 10]).unwrap();
            }
            let _answered_later = engine.apply(&name(), batch);
            engine.pump().unwrap();
            if step == rounds / 2 {
                engine.flush(&name()).unwrap();
            }
        }
        let synced = engine.sync();
        engine.pump().unwrap();
        synced.wait().unwrap();
        let regions = |engine: &Engine| {
            let regions = engine.regions(&name()).unwrap();
            regions.iter().map(|region| region.memtable_bytes).collect::<Vec<_>>()
        };
        (engine.stats().wal_bytes, regions(&engine), regions(&open(&fs.snapshot())))
    };
    for rounds in [6, 120] {
        let (log_bytes, before, after) = filled(rounds);
        assert_eq!(log_bytes > 2 << 20, rounds == 120, "{log_bytes} bytes");
        assert_eq!(before, after, "{rounds} rounds");
    }
}

/// Nobody can read them, and no flush would take them out of memory.
#[test]
fn cells_of_a_family_that_was_dropped_do_not_come_back() {
    let fs = SimFs::new(8);
    let engine = open(&fs);
    let families = |names: &[&'static str]| names.iter().map(|name| FamilyDescriptor::new(*name)).collect::<Vec<_>>();
    engine.create_table(TableDescriptor::new(name(), families(&["f", "g"])), &[]).unwrap();
    let mut batch = MutationBatch::new(Durability::Fsync);
    batch.row(b"r").unwrap().put(b"g", b"q", None, b"v").unwrap();
    let answer = engine.apply(&name(), batch);
    engine.pump().unwrap();
    assert!(answer.wait().unwrap().failed.is_empty());
    assert!(open(&fs.snapshot()).stats().memtable_bytes > 0);
    engine.alter_table(TableDescriptor::new(name(), families(&["f"]))).unwrap();
    assert_eq!(open(&fs.snapshot()).stats().memtable_bytes, 0);
}

/// What the log has of a table that was dropped, or emptied, is no part of one that was made under its name. A crash on the way leaves
/// one of the two, whole.
#[test]
fn what_the_log_has_of_a_table_that_was_dropped_does_not_come_back() {
    let write = |engine: &Engine, row: &str| {
        let answer = put(engine, row, row);
        engine.pump().unwrap();
        answer.wait().is_ok()
    };
    let found = |engine: &Engine| {
        let is_there = engine.list_tables().unwrap() == [name()];
        is_there.then(|| scan(engine, Scan::all()).into_iter().map(|(row, _)| row).collect::<Vec<_>>().join(" "))
    };
    let drop_and_make =
        |engine: &Engine| engine.drop_table(&name()).is_ok() && engine.create_table(table(), &["b".into()]).is_ok();
    let empty = |engine: &Engine| engine.truncate_table(&name(), TruncatedRegions::Kept).is_ok();
    let kept: &[Option<&str>] = &[Some("a b"), Some(""), Some("c")];
    let made: &[Option<&str>] = &[Some("a b"), None, Some(""), Some("c")];
    for (is_emptied, states) in [(false, made), (true, kept)] {
        let change = |engine: &Engine| if is_emptied { empty(engine) } else { drop_and_make(engine) };
        let mut seen = vec![false; states.len()];
        for step in 0.. {
            let fs = SimFs::new(step);
            let engine = open(&fs);
            engine.create_table(table(), &[]).unwrap();
            assert!(write(&engine, "a"));
            engine.flush(&name()).unwrap();
            assert!(write(&engine, "b"));
            fs.set_fault(Some(Fault { after_calls: step, kind: FaultKind::Crash, span: FaultSpan::FromThenOn }));
            let is_changed = change(&engine);
            let is_through = is_changed && write(&engine, "c");
            for folder in [fs.process_kill(), fs.power_loss(LossMode::Hostile)] {
                let again = open(&folder);
                let found = found(&again);
                let state = states.iter().position(|state| *state == found.as_deref());
                let state = state.unwrap_or_else(|| panic!("step {step}: {found:?}"));
                assert!(!is_changed || state >= states.len() - 2, "step {step}: {found:?} after the change");
                assert!(!is_through || state == states.len() - 1, "step {step}: {found:?} in the end");
                assert!(state == 0 || again.stats().memtable_bytes == 0 || state == states.len() - 1);
                again.verify().unwrap();
                seen[state] = true;
            }
            if is_through {
                break;
            }
        }
        assert!(seen.iter().all(|is_seen| *is_seen), "{seen:?}");
    }
}

/// The server's clock may stand before what it gave out in its life before, of which only the log tells.
#[test]
fn times_go_on_behind_those_of_the_log() {
    for rounds in [1, 120] {
        let fs = SimFs::new(7);
        let engine = open(&fs);
        engine.create_table(table(), &["2", "4", "6", "8"].map(Bytes::from)).unwrap();
        drop(engine);
        let at = |now: u64, fs: &SimFs| {
            let (mut options, clock) = (options_of(fs), Arc::new(ManualClock::new(Timestamp(now))));
            options.clock = clock;
            Engine::open(options).unwrap()
        };
        let engine = at(9_000_000, &fs);
        let put = |engine: &Engine, row: u32, value: &[u8]| {
            let mut batch = MutationBatch::new(Durability::Fsync);
            batch.row(row.to_string().as_bytes()).unwrap().put(b"f", b"q", None, value).unwrap();
            let answer = engine.apply(&name(), batch);
            engine.pump().unwrap();
            assert!(answer.wait().unwrap().failed.is_empty());
        };
        for row in 0..rounds {
            put(&engine, row % 10, &vec![7; 30 << 10]);
        }
        let engine = at(5000, &fs.process_kill());
        put(&engine, 0, b"later");
        assert_eq!(scan(&engine, Scan::range("0", "1")), [("0".to_owned(), vec!["later".to_owned()])]);
    }
}

/// Far more small rows than are put into the memtables together, some of them twice, over several regions.
#[test]
fn many_small_rows_of_a_chunk_come_back() {
    let fs = SimFs::new(4);
    let engine = open(&fs);
    engine.create_table(table(), &["3", "6"].map(Bytes::from)).unwrap();
    for step in 0..30_u32 {
        let mut batch = MutationBatch::new(Durability::Async);
        for row in 0..500 {
            let key = format!("{:05}", (step * 400 + row) * 7919 % 100_000);
            batch.row(key.as_bytes()).unwrap().put(b"f", b"q", None, &step.to_be_bytes()).unwrap();
        }
        let _answered_later = engine.apply(&name(), batch);
        engine.pump().unwrap();
    }
    let synced = engine.sync();
    engine.pump().unwrap();
    synced.wait().unwrap();
    let found = scan(&open(&fs.snapshot()), Scan::all());
    assert!(found.len() > 12_000);
    assert_eq!(found, scan(&engine, Scan::all()));
}

/// Writes some hundred chunks' worth of one row's values, each over the one before.
fn overwrite(engine: &Engine, count: u32) {
    for step in 0..count {
        let mut batch = MutationBatch::new(Durability::Async);
        let value = format!("{step:08}").repeat(8 << 10);
        batch.row(b"r").unwrap().put(b"f", b"q", Some(Timestamp(7)), value.as_bytes()).unwrap();
        let _answered_later = engine.apply(&name(), batch);
        engine.pump().unwrap();
    }
    let synced = engine.sync();
    engine.pump().unwrap();
    synced.wait().unwrap();
}

/// One cell of one time, written in batches that lie in different chunks: the last one wins.
#[test]
fn of_two_writes_to_one_cell_the_later_stays() {
    let fs = SimFs::new(2);
    let engine = open(&fs);
    engine.create_table(table(), &[]).unwrap();
    overwrite(&engine, 60);
    let found = scan(&open(&fs.snapshot()), Scan::all());
    assert_eq!(found, scan(&engine, Scan::all()));
    assert!(found[0].1[0].starts_with("00000059"));
}

/// A record that a later program wrote, with more of the log behind it: refused in its own words, and the log stays as it is
/// for whoever can read it.
#[test]
fn a_record_that_does_not_read_is_told_and_nothing_is_cut() {
    let fs = SimFs::new(3);
    let engine = open(&fs);
    engine.create_table(table(), &[]).unwrap();
    overwrite(&engine, 30);
    let mut foreign = Vec::new();
    record::begin(&mut foreign, 77);
    foreign.extend_from_slice(b"of a later program");
    record::close(&mut foreign);
    let write = Write { record: foreign, numbers: 1, level: Durability::Fsync, held: false, regions: Vec::new() };
    let sequence = engine.core.wal.append(write).unwrap();
    engine.core.wal.applied(sequence, Box::new(|_| {}));
    overwrite(&engine, 30);
    let folder = fs.snapshot();
    // The one in use is longer than what was written to it: there is something to cut.
    let before = segment_lengths(&folder);

    let refused = try_open(&folder).unwrap_err();
    let told = |error: &EngineError| {
        matches!(error, EngineError::Corrupt { what: "log record kind", expected: 2, found: 77, .. })
    };
    assert!(told(&refused), "{refused}");
    assert_eq!(segment_lengths(&folder), before);
}

/// A record that reads but for what one of its cells is, which only the thread sees whose region it is in, and a foreign one behind
/// it, which all see: the first is told.
#[test]
fn of_records_that_do_not_read_the_first_is_told() {
    for key in [b"a", b"z"] {
        let fs = SimFs::new(5);
        let engine = open(&fs);
        engine.create_table(table(), &["k".into()]).unwrap();
        overwrite(&engine, 30);
        let mut payload = engine.core.table(&name()).unwrap().id.0.to_le_bytes().to_vec();
        payload.extend_from_slice(&7_u64.to_le_bytes());
        payload.extend_from_slice(&1_u32.to_le_bytes());
        // A key of one byte, one cell of family 1, of a kind that there is not.
        payload.extend_from_slice(&[0, 0, 1, key[0], 1, 2, 99, 1, b'q', 1, b'v']);
        for (kind, payload) in [(MUTATIONS, &payload[..]), (77, b"of a later program")] {
            let mut foreign = Vec::new();
            record::begin(&mut foreign, kind);
            foreign.extend_from_slice(payload);
            record::close(&mut foreign);
            let write =
                Write { record: foreign, numbers: 1, level: Durability::Fsync, held: false, regions: Vec::new() };
            let sequence = engine.core.wal.append(write).unwrap();
            engine.core.wal.applied(sequence, Box::new(|_| {}));
            overwrite(&engine, 30);
        }
        let refused = try_open(&fs.snapshot()).unwrap_err();
        let found = |error: &EngineError| match error {
            EngineError::Corrupt { what: "log record kind", found, .. } => Some(*found),
            _ => None,
        };
        assert_eq!(found(&refused), Some(MUTATIONS.into()), "{refused}");
    }
}

/// Rows of one cell and of several, small and long, of two families, put and deleted, with times and without: all come back with their
/// times and numbers.
#[test]
fn rows_of_all_kinds_come_back() {
    let fs = SimFs::new(6);
    let engine = open(&fs);
    let families = ["f", "g"].map(FamilyDescriptor::new).to_vec();
    engine.create_table(TableDescriptor::new(name(), families), &["2", "4", "6", "8"].map(Bytes::from)).unwrap();
    let mut rng = SplitMix::new(6);
    for step in 0..600_u32 {
        let mut batch = MutationBatch::new(Durability::Async);
        for row in 0..60 {
            let key = format!("{:02}", (step * 7 + row) % 97);
            let mut changes = batch.row(key.as_bytes()).unwrap();
            for _ in 0..=(if rng.chance(1, 6) { 1 + rng.below(3) } else { 0 }) {
                let qualifier = (step * 60 + row).to_be_bytes();
                let value_bytes_end = if rng.chance(1, 9) { 900 } else { 10 };
                let value = vec![7; usize::try_from(rng.below(value_bytes_end)).unwrap()];
                let time = rng.chance(1, 9).then(|| Timestamp(rng.below(1000)));
                let family = if rng.chance(1, 9) { b"g" } else { b"f" };
                let cell = &qualifier[usize::try_from(rng.below(3)).unwrap()..];
                match rng.below(20) {
                    0 => changes.delete_family(family, time).unwrap(),
                    _ => changes.put(family, cell, time, &value).unwrap(),
                };
            }
        }
        let _answered_later = engine.apply(&name(), batch);
        engine.pump().unwrap();
    }
    let synced = engine.sync();
    engine.pump().unwrap();
    synced.wait().unwrap();
    assert!(engine.stats().wal_bytes > 2 << 20, "{} bytes of log", engine.stats().wal_bytes);
    let expected = told(&engine);
    let count: usize = expected.iter().map(|(_, cells)| cells.len()).sum();
    assert!(count > 20_000, "{count} cells");
    assert!(told(&open(&fs.snapshot())) == expected);
}

/// A row's key, and its cells with their family, qualifier, value, time, number and kind.
type Told = (Vec<u8>, Vec<(Vec<u8>, Vec<u8>, Vec<u8>, u64, u64, CellKind)>);

fn told(engine: &Engine) -> Vec<Told> {
    let mut scanner = engine.scan(&name(), Scan { versions: u32::MAX, raw: true, ..Scan::all() }).unwrap();
    let mut all = Vec::new();
    while let Some(batch) = scanner.next_wait() {
        for row in batch.unwrap().rows() {
            let cells = row.cells().map(|cell| {
                let bytes = (cell.family.to_vec(), cell.qualifier.to_vec(), cell.value.to_vec());
                (bytes.0, bytes.1, bytes.2, cell.timestamp.0, cell.seq.0, cell.kind)
            });
            all.push((row.key().to_vec(), cells.collect()));
        }
    }
    all
}

/// What is made beforehand is the folder's only while an engine is open.
#[test]
fn a_closed_log_ends_with_its_records() {
    let fs = SimFs::new(4);
    for row in 0..3 {
        let engine = open(&fs);
        if row == 0 {
            engine.create_table(table(), &[]).unwrap();
        }
        assert_eq!(scan(&engine, Scan::all()), expected(0..row));
        let written = put(&engine, &format!("row{row:04}"), &format!("v{row}"));
        engine.pump().unwrap();
        written.wait().unwrap();
        assert!(segment_lengths(&fs).iter().sum::<u64>() >= 1 << 20);
        engine.close().unwrap();
        assert!(segment_lengths(&fs).iter().sum::<u64>() < 4096, "{:?}", segment_lengths(&fs));
    }
}

fn segment_lengths(fs: &SimFs) -> Vec<u64> {
    let names = fs.list(Path::new("/d")).unwrap();
    let segments = names.into_iter().filter(|name| name.starts_with("wal-"));
    segments.map(|name| fs.open(&Path::new("/d").join(name)).unwrap().len().unwrap()).collect()
}
