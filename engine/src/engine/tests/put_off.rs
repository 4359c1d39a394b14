//! Work that cannot be done now, and work that is done all the same.

use std::path::Path;

use basalt_store::{Durability, FamilyDescriptor, ManualClock, Timestamp};

use super::*;
use crate::health::Lack;
use crate::io::{Fault, FaultKind, FaultSpan, OsFs, Rng, SimFs, SplitMix};

/// An engine without threads, with a table, on a disk and by a clock of its own.
struct Simulated {
    engine: Arc<Engine>,
    fs: SimFs,
    clock: Arc<ManualClock>,
}

fn simulated(splits: &[Bytes], change: impl FnOnce(&mut EngineOptions)) -> Simulated {
    let (fs, clock) = (SimFs::new(1), Arc::new(ManualClock::new(Timestamp(1000))));
    let mut options = options(Arc::new(fs.clone()), Path::new("/d"), Workers::Manual);
    options.clock = Arc::clone(&clock) as Arc<dyn basalt_store::Clock>;
    change(&mut options);
    let engine = Engine::open(options).unwrap();
    engine.create_table(table(), splits).unwrap();
    Simulated { engine, fs, clock }
}

/// Writes a row, and nothing else is done.
fn write(engine: &Engine, row: &str, value: &str) {
    let told = put(engine, row, value);
    engine.core.apply_left();
    engine.core.wal.write_group(false);
    engine.core.wal.make_ready();
    told.wait().unwrap();
}

/// Each flush of another region makes small files and cuts no log. It would come again with the next write.
#[test]
fn a_log_that_a_failed_flush_holds_back_flushes_no_other_region() {
    let Simulated { engine, fs, .. } = simulated(&["m".into(), "t".into()], |options| {
        options.limits.wal_bytes_max = 48 << 10;
        (options.limits.memtable_bytes, options.limits.memtables_bytes) = (1 << 20, 1 << 20);
    });
    for row in 0..90 {
        write(&engine, &format!("{}{row}", ["a", "p", "z"][row % 3]), &"v".repeat(500));
    }
    assert!(engine.stats().wal_bytes > 64 << 10);
    fs.set_fault(Some(Fault { after_calls: 0, kind: FaultKind::Eio, span: FaultSpan::Once }));
    assert!(engine.core.flush_due().is_err());
    assert_eq!((engine.stats().flush_failures, engine.stats().flushes), (1, 0));
    engine.core.flush_due().unwrap();
    let stats = engine.stats();
    // Beside the bound there is the segment that is written to.
    assert!(stats.flushes > 0 && stats.wal_bytes <= 64 << 10, "{stats:?}");
}

/// As where a disk was mounted over it after the start: a next start would find nothing of what is acknowledged.
#[test]
fn a_folder_that_lost_its_name_takes_no_more_writes() {
    let dir = tempfile::tempdir().unwrap();
    let (store, moved) = (dir.path().join("store"), dir.path().join("moved"));
    let engine = Engine::open(options(Arc::new(OsFs), &store, Workers::Manual)).unwrap();
    engine.create_table(table(), &[]).unwrap();
    write(&engine, "row", "v");
    engine.pump().unwrap();
    OsFs.rename(&store, &moved).unwrap();
    OsFs.create_dir_all(&store).unwrap();
    engine.pump().unwrap_err();
    let Health::Poisoned { reason } = engine.health() else { panic!("writes are taken") };
    assert!(
        reason.ends_with("the folder was moved, removed or replaced while it was in use: bring it back first"),
        "{reason}"
    );
    assert!(put(&engine, "row", "late").wait().is_err());
    drop(engine);
    assert_eq!(OsFs.list(&store).unwrap(), [""; 0]);
    let engine = Engine::open(options(Arc::new(OsFs), &moved, Workers::Manual)).unwrap();
    assert_eq!(rows(&engine.get(&name(), Get::rows(vec!["row".into()])).wait().unwrap()).len(), 1);
}

/// Flushes a row of each of the prefixes, into a file a family.
fn flush_rows(engine: &Engine, rows: &[&str], value: &str) {
    for row in rows {
        write(engine, row, value);
    }
    engine.flush(&name()).unwrap();
}

fn damage_first_file(fs: &SimFs) {
    let names = fs.list(Path::new("/d")).unwrap();
    let first = names.into_iter().filter(|name| name.starts_with("sst-")).min().unwrap();
    fs.flip_bit(&Path::new("/d").join(first), 60, 1).unwrap();
}

/// It read and wrote the same files with every flush, and kept its region from every other merge.
#[test]
fn a_merge_that_fails_is_tried_seldom_and_keeps_no_other_from_being_done() {
    let Simulated { engine, fs, clock } = simulated(&[], |options| options.limits.compaction_files_min = 3);
    for _ in 0..3 {
        flush_rows(&engine, &["a"], "v");
    }
    damage_first_file(&fs);
    let counted = || (engine.stats().compaction_failures, engine.stats().files_count);
    assert!(engine.core.compact_due().is_err());
    assert_eq!(counted(), (1, 6));
    engine.core.compact_due().unwrap();
    assert_eq!(counted(), (1, 4), "the other family");
    flush_rows(&engine, &["a"], "v");
    engine.core.compact_due().unwrap();
    assert_eq!(counted(), (1, 4), "and those behind the damaged file");
    flush_rows(&engine, &["a"], "v");
    for wait in [10_000, 20_000, 40_000] {
        clock.advance(wait - 1);
        engine.core.compact_due().unwrap();
        clock.advance(1);
        let failures = counted().0;
        assert!(engine.core.compact_due().is_err());
        assert_eq!(counted().0, failures + 1);
        engine.core.compact_due().unwrap();
        assert_eq!(counted().0, failures + 1);
    }
    for asked in [Compaction::Minor, Compaction::Major] {
        assert!(engine.compact(&name(), asked).is_err(), "who asks for it has it tried at once");
    }
    damage_first_file(&fs);
    engine.compact(&name(), Compaction::Major).unwrap();
    assert_eq!(counted().1, 2);
    engine.verify().unwrap();
}

/// Text that no compression makes shorter than half.
fn noise(seed: u64, bytes: usize) -> String {
    let mut rng = SplitMix::new(seed);
    let hex = |_| format!("{:016x}", rng.next_u64());
    (0..bytes / 16).map(hex).collect()
}

/// It refused writes while it was tried again with the reserve, which it did not fit into, and so again and again.
#[test]
fn a_merge_larger_than_the_free_space_refuses_no_write() {
    let Simulated { engine, fs, clock } = simulated(&[], |options| {
        options.limits.compaction_files_min = 3;
        (options.limits.memtable_bytes, options.limits.memtables_bytes) = (1 << 20, 1 << 20);
    });
    for round in 0..3 {
        flush_rows(&engine, &[&format!("a{round}")], &noise(round, 12 << 10));
    }
    let used = fs.used_bytes();
    fs.set_capacity(used + (6 << 10));
    for _family in ["f", "g"] {
        assert!(engine.core.compact_due().unwrap_err().is_disk_full());
        assert_eq!((engine.health(), fs.used_bytes()), (Health::Ok, used), "the reserve is as it was");
    }
    write(&engine, "b", "v");
    engine.core.compact_due().unwrap();
    assert_eq!((engine.health(), engine.stats().compaction_failures), (Health::Ok, 2));
    fs.set_capacity(u64::MAX);
    clock.advance(10_000);
    engine.core.compact_due().unwrap();
    assert_eq!(engine.stats().files_count, 2);
}

/// What TTL has emptied in one region is dropped, though another region's merge has no room, and though there is none for the
/// manifest: it could never have made room.
#[test]
fn retention_makes_room_on_a_full_disk() {
    let Simulated { engine, fs, clock } = simulated(&["m".into()], |options| {
        options.limits.compaction_files_min = 3;
        (options.limits.memtable_bytes, options.limits.memtables_bytes) = (1 << 20, 1 << 20);
    });
    for round in 0..3 {
        let mut batch = MutationBatch::new(Durability::Async);
        for row in ["a", "z"] {
            let (row, value) = (format!("{row}{round}"), noise(round, 12 << 10));
            let mut changes = batch.row(row.as_bytes()).unwrap();
            changes.put(b"f", b"q", None, value.as_bytes()).unwrap().put(b"g", b"q", None, b"old").unwrap();
        }
        assert!(engine.apply(&name(), batch).wait().unwrap().failed.is_empty());
        engine.flush(&name()).unwrap();
        engine.core.wal.make_ready();
    }
    let short = FamilyDescriptor { ttl_seconds: Some(5), ..FamilyDescriptor::new("g") };
    engine.alter_table(TableDescriptor::new(name(), vec![FamilyDescriptor::new("f"), short])).unwrap();
    clock.advance(10_000);
    let used = fs.used_bytes();
    fs.set_capacity(used);
    assert!(engine.core.compact_due().unwrap_err().is_disk_full());
    assert_eq!((engine.stats().files_count, engine.stats().compaction_failures), (6, 1), "none of the short family");
    engine.core.wal.make_ready();
    assert_eq!(engine.health(), Health::Ok);
    assert!(fs.used_bytes() < used);
    write(&engine, "b", "v");
}

/// It is no failure, which would end the work on the regions behind it.
#[test]
fn no_region_is_split_while_writes_are_refused() {
    let Simulated { engine, .. } = simulated(&[], |options| options.limits.region_bytes_max = 1);
    flush_rows(&engine, &["r", "s"], "v");
    engine.core.condition.set_lack(Some(Lack::Space));
    engine.core.compact_due().unwrap();
    assert_eq!((engine.stats().splits, engine.stats().compaction_failures), (0, 0));
    engine.core.condition.set_lack(None);
    engine.core.compact_due().unwrap();
    assert_eq!(engine.stats().splits, 1);
}
