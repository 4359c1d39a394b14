//! Logs that hold more than memtables may: they were written with larger bounds.

use std::path::Path;

use basalt_store::{Durability, FamilyDescriptor, Fold, MutationBatch};

use super::*;
use crate::io::{Fault, FaultKind, FaultSpan, LossMode, SimFs};
use crate::mutation::MUTATIONS;
use crate::record;
use crate::wal::{Replay, Write};

const SEGMENT_BYTES: u64 = 64 << 10;

/// With memtables of so many bytes together.
fn open(fs: &SimFs, memtables_bytes: u64) -> Arc<Engine> {
    open_with(fs, memtables_bytes, Vec::new())
}

fn open_with(fs: &SimFs, memtables_bytes: u64, folds: Vec<Arc<dyn Fold>>) -> Arc<Engine> {
    Engine::open(options_of(fs, memtables_bytes, folds)).unwrap()
}

fn options_of(fs: &SimFs, memtables_bytes: u64, folds: Vec<Arc<dyn Fold>>) -> EngineOptions {
    let mut options = options(Arc::new(fs.clone()), Path::new("/d"), Workers::Manual);
    (options.limits.memtable_bytes, options.limits.memtables_bytes) = (memtables_bytes, memtables_bytes);
    (options.limits.wal_bytes_max, options.limits.wal_segment_bytes) = (64 << 20, SEGMENT_BYTES);
    options.folds = folds;
    options
}

const LARGE: u64 = 64 << 20;
const SMALL: u64 = 100 << 10;

/// Puts some 800 KiB into rows of three regions, most of them over others.
fn fill(engine: &Engine) {
    fill_some(engine, 0..80);
}

fn fill_some(engine: &Engine, steps: std::ops::Range<u32>) {
    for step in steps {
        let mut batch = MutationBatch::new(Durability::Async);
        for row in 0..10_u32 {
            let key = format!("{:03}", (step * 10 + row) * 7919 % 600);
            let value = format!("{step:08}").repeat(128);
            batch.row(key.as_bytes()).unwrap().put(b"f", b"q", None, value.as_bytes()).unwrap();
        }
        let _answered_later = engine.apply(&name(), batch);
        engine.pump().unwrap();
    }
    let synced = engine.sync();
    engine.pump().unwrap();
    synced.wait().unwrap();
}

/// A folder whose log was filled.
fn filled() -> (SimFs, Arc<Engine>) {
    let fs = SimFs::new(1);
    let engine = open(&fs, LARGE);
    engine.create_table(table(), &["2", "4"].map(Bytes::from)).unwrap();
    fill(&engine);
    assert_eq!(engine.stats().files_count, 0);
    (fs, engine)
}

/// What does not fit goes into files on the way, and what is in these comes back from the log no more.
#[test]
fn a_log_that_holds_more_than_memtables_may_is_replayed_into_files() {
    let (fs, before) = filled();
    let expected = scan(&before, Scan::all());
    let folder = fs.snapshot();
    let engine = open(&folder, SMALL);
    assert!(scan(&engine, Scan::all()) == expected);
    let stats = engine.stats();
    assert!(stats.files_count >= 6, "{} files of three regions", stats.files_count);
    let bound = 2 * SMALL + 2 * SEGMENT_BYTES;
    assert!(stats.memtable_bytes < bound, "{} bytes in memtables", stats.memtable_bytes);
    engine.verify().unwrap();

    let again = open(&folder.process_kill(), LARGE);
    assert!(scan(&again, Scan::all()) == expected);
    assert!(again.stats().memtable_bytes < bound, "{} bytes in memtables again", again.stats().memtable_bytes);
}

/// What is flushed at a pause must not outlive what was logged before it. Behind a segment that another follows all is on disk, and
/// of the last one nobody says so.
#[test]
fn the_log_is_left_for_a_while_only_where_all_that_was_read_is_on_disk() {
    let (fs, engine) = filled();
    let mut batch = MutationBatch::new(Durability::Os);
    batch.row(b"r").unwrap().put(b"f", b"q", None, b"not on disk").unwrap();
    let answer = engine.apply(&name(), batch);
    engine.pump().unwrap();
    answer.wait().unwrap();
    let first = engine.core.manifest().catalog().marks.log_start;
    let (folder, dir) = (fs.process_kill(), Path::new("/d"));
    let mut log = Replay::begin(&folder, dir, first).unwrap();
    let mut pauses_count = 0;
    while !log.read(&mut |_| Ok(()), &|| true).unwrap() {
        pauses_count += 1;
        assert!(log.last_sequence() < engine.core.wal.last_sequence());
    }
    let sealed = log.finish().unwrap().sealed;
    assert!(sealed.len() > 5 && pauses_count == sealed.len() - 1, "{pauses_count} pauses, {} segments", sealed.len());
}

/// The last segment goes into memory whole. Were it not flushed at the start, no put would be taken until somebody looks.
#[test]
fn puts_are_taken_after_a_start_whose_log_ends_over_the_bound() {
    let (fs, before) = filled();
    let small = 4 << 10;
    assert!(small * 2 < SEGMENT_BYTES / 2);
    let engine = open(&fs.snapshot(), small);
    let mut batch = MutationBatch::new(Durability::Fsync);
    batch.row(b"r").unwrap().put(b"f", b"q", None, b"v").unwrap();
    let answer = engine.apply(&name(), batch);
    engine.pump().unwrap();
    assert!(answer.wait().unwrap().failed.is_empty());
    assert!(scan(&engine, Scan::all())[..600] == scan(&before, Scan::all()));
}

/// As little as they may hold together while the store is open, however often it starts.
#[test]
fn a_log_that_fits_is_replayed_into_memtables() {
    let (fs, before) = filled();
    let engine = open(&fs.snapshot(), before.stats().memtable_bytes / 2 + 1);
    assert_eq!(engine.stats().files_count, 0);
    assert_eq!(engine.stats().memtable_bytes, before.stats().memtable_bytes);
}

/// A full disk keeps no store from its start.
#[test]
fn without_room_for_files_the_log_is_replayed_into_memtables() {
    let (fs, before) = filled();
    let folder = fs.snapshot();
    folder.set_capacity(folder.used_bytes());
    let engine = open(&folder, SMALL);
    assert!(scan(&engine, Scan::all()) == scan(&before, Scan::all()));
}

/// What is left is joined under the newest of its times when it is folded. What is older would then hide what is in files.
#[test]
fn what_is_left_of_the_log_is_no_older_than_what_is_flushed() {
    let (fs, engine) = filled();
    let mut old = Vec::new();
    record::begin(&mut old, MUTATIONS);
    old.extend_from_slice(&engine.core.table(&name()).unwrap().id.0.to_le_bytes());
    old.extend_from_slice(&1_u64.to_le_bytes());
    // No row.
    old.extend_from_slice(&0_u32.to_le_bytes());
    record::close(&mut old);
    let write = Write { record: old, numbers: 1, level: Durability::Fsync, held: false, regions: Vec::new() };
    let sequence = engine.core.wal.append(write).unwrap();
    engine.core.wal.applied(sequence, Box::new(|_| {}));
    engine.pump().unwrap();
    assert_eq!(open(&fs.snapshot(), SMALL).stats().files_count, 3, "one for each region, at the end");

    fill(&engine);
    let again = open(&fs.snapshot(), SMALL);
    assert!(scan(&again, Scan::all()) == scan(&engine, Scan::all()));
    assert!(again.stats().files_count > 3, "from there on there are places");
}

/// A tombstone masks the column that it was made against. In a folded cell it would miss it, and what was deleted would be seen again.
#[test]
fn what_is_deleted_later_in_the_log_stays_deleted() {
    let fs = SimFs::new(1);
    let open = |fs: &SimFs, memtables_bytes| open_with(fs, memtables_bytes, vec![Arc::new(Joining)]);
    let engine = open(&fs, LARGE);
    let family = FamilyDescriptor { fold: Some("joining".into()), ..FamilyDescriptor::new("f") };
    engine.create_table(TableDescriptor::new(name(), vec![family]), &[]).unwrap();
    let change = |change: &dyn Fn(&mut MutationBatch)| {
        let mut batch = MutationBatch::new(Durability::Async);
        change(&mut batch);
        let _answered_later = engine.apply(&name(), batch);
        engine.pump().unwrap();
    };
    let rows: Vec<_> = (0..600).map(|row| format!("{row:03}")).collect();
    for row in &rows {
        let value = "v".repeat(1000);
        let put = |batch: &mut MutationBatch, column| {
            batch.row(row.as_bytes()).unwrap().put(b"f", column, None, value.as_bytes()).unwrap();
        };
        change(&|batch| put(batch, b"1"));
        change(&|batch| put(batch, b"2"));
    }
    for row in &rows {
        change(&|batch| {
            batch.row(row.as_bytes()).unwrap().delete_column(b"f", b"1", None).unwrap();
        });
    }
    let synced = engine.sync();
    engine.pump().unwrap();
    synced.wait().unwrap();
    let again = open(&fs.snapshot(), SMALL);
    assert!(again.stats().files_count > 3);
    assert!(scan(&again, Scan::all()) == scan(&engine, Scan::all()));
}

/// By a kill, and by a power loss: nothing is lost, and nothing comes back of the table of that name that was dropped.
#[test]
fn a_crash_at_each_step_of_a_start_that_writes_files_loses_nothing() {
    const BYTES: u64 = 24 << 10;
    let fs = SimFs::new(1);
    let engine = open(&fs, LARGE);
    engine.create_table(table(), &["2", "4"].map(Bytes::from)).unwrap();
    fill_some(&engine, 0..8);
    engine.drop_table(&name()).unwrap();
    engine.create_table(table(), &["2", "4"].map(Bytes::from)).unwrap();
    fill_some(&engine, 8..24);
    let expected = scan(&engine, Scan::all());
    assert_eq!(expected.len(), 160);
    let (mut kills_count, mut spilled_count) = (0, 0);
    // Until a start is through.
    for step in 0.. {
        let folder = fs.snapshot();
        folder.set_fault(Some(Fault { after_calls: step, kind: FaultKind::Crash, span: FaultSpan::FromThenOn }));
        if Engine::open(options_of(&folder, BYTES, Vec::new())).is_ok() {
            break;
        }
        let loss = if step % 2 == 0 { LossMode::Ordered } else { LossMode::Hostile };
        for (folder, bytes) in [(folder.process_kill(), LARGE), (folder.power_loss(loss), BYTES)] {
            let again = open(&folder, bytes);
            assert!(scan(&again, Scan::all()) == expected, "step {step}, {bytes} bytes");
            again.verify().unwrap();
            spilled_count += u32::from(bytes == LARGE && again.stats().files_count > 0);
        }
        kills_count += 1;
    }
    assert!(
        spilled_count > 50 && kills_count > spilled_count,
        "{kills_count} kills, {spilled_count} with files already"
    );
}
