//! Starts and flushes on a disk that is full.

use std::path::Path;

use basalt_store::Durability;

use super::*;
use crate::io::{Fault, FaultKind, FaultSpan, SimFs};

/// Reads go on, writes are refused, and taken when there is space for the reserve again.
#[test]
fn a_disk_without_room_for_the_reserve_is_no_reason_not_to_start() {
    let fs = SimFs::new(1);
    let open = || {
        let mut options = options(Arc::new(fs.clone()), Path::new("/d"), Workers::Threads);
        (options.limits.wal_segment_bytes, options.limits.reserve_bytes) = (16 << 10, 256 << 10);
        options.limits.full_disk_retry_interval = std::time::Duration::from_millis(2);
        Engine::open(options)
    };
    let engine = open().unwrap();
    engine.create_table(table(), &[]).unwrap();
    put(&engine, "a", "1").wait().unwrap();
    engine.close().unwrap();
    drop(engine);
    fs.remove(Path::new("/d/RESERVE")).unwrap();
    fs.set_capacity(fs.used_bytes() + (128 << 10));
    let engine = open().unwrap();
    assert_eq!(scan(&engine, Scan::all()), [("a".to_owned(), vec!["1".to_owned(); 2])]);
    assert_eq!((engine.health(), put(&engine, "b", "1").wait().is_err()), (Health::DiskFull, true));
    fs.set_capacity(u64::MAX);
    let begun = std::time::Instant::now();
    while put(&engine, "b", "2").wait().is_err() {
        assert!(begun.elapsed() < std::time::Duration::from_mins(1), "{:?}", engine.health());
    }
    assert_eq!(scan(&engine, Scan::all()).len(), 2);
}

/// A table that is dropped, which it must be disabled for, gives space back.
#[test]
fn a_table_can_be_disabled_and_dropped_on_a_full_disk() {
    let fs = SimFs::new(1);
    let open = || {
        let mut options = options(Arc::new(fs.clone()), Path::new("/d"), Workers::Manual);
        options.limits.reserve_bytes = 256 << 10;
        Engine::open(options).unwrap()
    };
    let engine = open();
    engine.create_table(table(), &[]).unwrap();
    engine.close().unwrap();
    drop(engine);
    fs.remove(Path::new("/d/RESERVE")).unwrap();
    fs.set_capacity(fs.used_bytes() + (128 << 10));
    let engine = open();
    assert_eq!(engine.health(), Health::DiskFull);
    engine.disable_table(&name()).unwrap();
    engine.enable_table(&name()).unwrap();
    engine.disable_table(&name()).unwrap();
    engine.drop_table(&name()).unwrap();
    assert_eq!(engine.list_tables().unwrap(), []);
}

/// Also where there is no room for a segment of the log, with the reserve or without, and whatever is flushed meanwhile.
#[test]
fn a_disk_without_any_room_is_no_reason_not_to_start() {
    for (has_reserve, is_closed, is_flushed) in
        [true, false].into_iter().flat_map(|one| [(one, true, true), (one, true, false), (one, false, true)])
    {
        let fs = SimFs::new(1);
        let open_on = |fs: &SimFs| {
            let mut options = options(Arc::new(fs.clone()), Path::new("/d"), Workers::Manual);
            options.limits.reserve_bytes = 64 << 10;
            Engine::open(options).unwrap()
        };
        let put = |engine: &Engine, row: &str| {
            let told = put(engine, row, "1");
            engine.pump().unwrap();
            told.wait()
        };
        let engine = open_on(&fs);
        engine.create_table(table(), &[]).unwrap();
        put(&engine, "a").unwrap();
        let mut fs = if is_closed {
            engine.close().unwrap();
            fs
        } else {
            fs.process_kill()
        };
        drop(engine);
        if !has_reserve {
            fs.remove(Path::new("/d/RESERVE")).unwrap();
        }
        for _ in 0..2 {
            // So what a start gives back does not count.
            fs.set_capacity(0);
            let engine = open_on(&fs);
            assert_eq!(scan(&engine, Scan::all()).len(), 1);
            assert_eq!((engine.health(), put(&engine, "b").is_err()), (Health::DiskFull, true));
            assert_eq!(fs.open(Path::new("/d/RESERVE")).is_ok(), has_reserve);
            if is_flushed && has_reserve {
                fs.set_capacity(fs.used_bytes());
                engine.flush(&name()).unwrap();
                engine.core.trim_log().unwrap();
            }
            fs = fs.process_kill();
            if has_reserve {
                // It was lent to the flush.
                fs.set_capacity(u64::MAX);
                fs.create(Path::new("/d/RESERVE")).unwrap().preallocate(64 << 10).unwrap();
            }
        }
        fs.set_capacity(fs.used_bytes());
        let engine = open_on(&fs);
        assert_eq!(scan(&engine, Scan::all()).len(), 1);
        fs.set_capacity(u64::MAX);
        engine.pump().unwrap();
        assert_eq!(engine.health(), Health::Ok);
        put(&engine, "b").unwrap();
        drop(engine);
        let engine = open_on(&fs.power_loss(crate::io::LossMode::Hostile));
        assert_eq!(scan(&engine, Scan::all()).len(), 2);
        engine.verify().unwrap();
    }
}

/// They are in the log's queue and in memtables, and nowhere else. Whatever call of the close it is that first finds no room.
#[test]
fn what_was_acknowledged_before_it_was_logged_outlives_a_close_on_a_full_disk() {
    for after_calls in std::iter::once(None).chain((0..60).map(Some)) {
        let fs = SimFs::new(1);
        let open = || {
            let mut options = options(Arc::new(fs.clone()), Path::new("/d"), Workers::Manual);
            options.limits.reserve_bytes = 64 << 10;
            Engine::open(options).unwrap()
        };
        let engine = open();
        // Before the other, and without rows: the log alone is cut for it, which a backup leaves as it is.
        engine.create_table(TableDescriptor::new("a".parse().unwrap(), table().families), &[]).unwrap();
        engine.create_table(table(), &[]).unwrap();
        for row in 0..40 {
            drop(put(&engine, &format!("first{row}"), &"x".repeat(512)));
            engine.core.wal.write_group(false);
        }
        engine.backup(Path::new("/b"), &mut |_| {}).unwrap();
        fs.set_capacity(fs.used_bytes());
        let put = |row: u32| {
            let mut batch = MutationBatch::new(Durability::Async);
            let row = format!("row{row:04}");
            batch.row(row.as_bytes()).unwrap().put(b"f", b"q", None, &[7; 512]).unwrap();
            engine.apply(&name(), batch).wait()
        };
        let mut taken = 0;
        while put(taken).is_ok() {
            taken += 1;
            if taken % 8 == 0 {
                engine.core.wal.write_group(false);
            }
        }
        assert!(engine.health() == Health::DiskFull && taken > 4, "{taken}");
        if let Some(after_calls) = after_calls {
            fs.set_capacity(u64::MAX);
            fs.set_fault(Some(Fault { after_calls, kind: FaultKind::Enospc, span: FaultSpan::Once }));
        }
        engine.close().unwrap_or_else(|error| panic!("{after_calls:?}: {error}"));
        drop(engine);
        fs.set_fault(None);
        fs.set_capacity(u64::MAX);
        let engine = open();
        assert_eq!(scan(&engine, Scan::all()).len(), taken as usize + 40, "{after_calls:?}");
        engine.verify().unwrap();
    }
}

/// A full disk that is tried again and again does not fill up by our own doing.
#[test]
fn a_flush_that_meets_a_full_disk_leaves_no_file_behind() {
    let fs = SimFs::new(1);
    let mut options = options(Arc::new(fs.clone()), Path::new("/d"), Workers::Manual);
    options.limits.reserve_bytes = 0;
    let engine = Engine::open(options).unwrap();
    engine.create_table(table(), &[]).unwrap();
    let pending = put(&engine, "r", &"v".repeat(2000));
    engine.pump().unwrap();
    pending.wait().unwrap();
    let used = fs.used_bytes();
    let mut refused = 0;
    for more in (0..).step_by(16) {
        fs.set_capacity(used + more);
        if engine.flush(&name()).is_ok() {
            break;
        }
        refused += 1;
        assert_eq!(fs.used_bytes(), used, "with {more} bytes free");
    }
    assert!(refused > 20, "{refused}");
}
