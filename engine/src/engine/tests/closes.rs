//! An engine that is closed while other threads' calls are under way.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use super::*;
use crate::io::SimFs;

fn open(fs: &SimFs) -> Arc<Engine> {
    Engine::open(options(Arc::new(fs.clone()), Path::new("/d"), Workers::Manual)).unwrap()
}

/// Four files of each family.
fn filled() -> (SimFs, Arc<Engine>) {
    let fs = SimFs::new(1);
    let engine = open(&fs);
    engine.create_table(table(), &[]).unwrap();
    for row in 0..40 {
        let told = put(&engine, &format!("row{row:04}"), &format!("v{row}"));
        engine.core.wal.write_group(false);
        told.wait().unwrap();
        if row % 10 == 9 {
            engine.flush(&name()).unwrap();
        }
    }
    (fs, engine)
}

/// Closes the engine once `work` reads a file, on another thread; answers what the work came to.
fn closed_meanwhile<T: Send>(fs: &SimFs, engine: &Arc<Engine>, work: impl FnOnce(&Engine) -> T + Send) -> T {
    let (tell_reading, reading) = channel();
    let is_closed = Arc::new(AtomicBool::new(false));
    let (core, closed) = (Arc::clone(&engine.core), Arc::clone(&is_closed));
    fs.before_read(move || {
        tell_reading.send(()).unwrap();
        // Until the close has not waited, or for a while longer than it would take.
        let mut left = 2000;
        while left > 0 && !closed.load(Ordering::Acquire) {
            left -= u32::from(core.jobs.is_stopped());
            std::thread::yield_now();
        }
    });
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| work(engine));
        reading.recv().unwrap();
        engine.close().unwrap();
        let calls = fs.calls();
        is_closed.store(true, Ordering::Release);
        let done = worker.join().unwrap();
        assert_eq!(fs.calls(), calls, "something was written to a folder that was let go of");
        done
    })
}

/// Whoever opens the folder next finds what its manifest names, and nothing else.
fn check_reopened(fs: &SimFs) {
    let names = fs.list(Path::new("/d")).unwrap();
    assert_eq!(names.iter().filter(|name| name.starts_with("sst-")).count(), 8, "{names:?}");
    let engine = open(fs);
    assert_eq!(scan(&engine, Scan::all()), expected(0..40));
    engine.verify().unwrap();
    assert_eq!(engine.stats().files_count, 8);
}

/// It takes hours for a large store: it is given up, and not waited for to its end.
#[test]
fn a_compaction_that_somebody_asked_for_ends_before_the_engine() {
    for compaction in [Compaction::Minor, Compaction::Major] {
        let (fs, engine) = filled();
        let compacted = closed_meanwhile(&fs, &engine, |engine| engine.compact(&name(), compaction));
        assert!(matches!(compacted, Err(basalt_store::Error::Closed)), "{compacted:?}");
        check_reopened(&fs);
    }
}

/// One of the engine's own threads is waited for as ever, but no longer for hours.
#[test]
fn a_merge_of_an_engine_that_ends_is_given_up() {
    let (fs, engine) = filled();
    engine.core.jobs.stop();
    let table = engine.core.table(&name()).unwrap();
    let merged = engine.core.compact_some(&table, &table.regions()[0], false);
    assert!(matches!(merged, Err(Error::Closed)), "{merged:?}");
    engine.close().unwrap();
    check_reopened(&fs);
}

#[test]
fn a_backup_ends_before_the_engine() {
    let (fs, engine) = filled();
    let backup = Path::new("/b");
    let taken = closed_meanwhile(&fs, &engine, |engine| engine.backup(backup, &mut |_| {}));
    assert!(matches!(taken, Err(Error::Closed)), "{taken:?}");
    assert!(!fs.list(backup).unwrap().iter().any(|name| name == "BACKUP"));
    check_reopened(&fs);
}

/// Those that write the manifest alone, too.
#[test]
fn a_closed_engine_takes_no_work() {
    let (fs, engine) = filled();
    engine.close().unwrap();
    let calls = fs.calls();
    let others = TableDescriptor::new("u".parse().unwrap(), vec![FamilyDescriptor::new("f")]);
    let refused = [
        engine.create_table(others, &[]),
        engine.alter_table(table()),
        engine.disable_table(&name()),
        engine.drop_table(&name()),
        engine.create_namespace(NamespaceDescriptor::new("n")),
        engine.snapshot(&name(), "s"),
        engine.flush(&name()),
        engine.compact(&name(), Compaction::Major),
    ];
    for told in refused {
        assert!(matches!(told, Err(basalt_store::Error::Closed)), "{told:?}");
    }
    assert_eq!(fs.calls(), calls);
    check_reopened(&fs);
}
