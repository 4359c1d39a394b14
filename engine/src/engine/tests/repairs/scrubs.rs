//! Damage of an open engine's files, told while it works.

use std::cell::RefCell;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use basalt_store::{Clock, Timestamp};

use super::*;

fn scrub(engine: &Engine) -> (u64, Vec<String>) {
    let mut told = 0;
    let found = engine.scrub(&mut |_| told += 1).unwrap();
    assert!(
        found.files_count + found.damages.len() as u64 >= told,
        "the manifest and its copy are no files of a table"
    );
    (found.files_count, found.damages.iter().map(ToString::to_string).collect())
}

/// What nobody reads too: files of a snapshot, the manifest and its copy, each of which goes on as it was in memory.
#[test]
fn a_scrub_tells_every_damaged_file_and_the_engine_goes_on() {
    let fs = store();
    let files = audit(&fs);
    let engine = Engine::open(engine_options(&fs)).unwrap();
    let sstables: Vec<_> = files.iter().filter(|file| file.kind == FileKind::Sstable).collect();
    let is_of_snapshot = |file: &&&AuditedFile| file.owners.iter().all(|owner| owner.snapshot.is_some());
    let of_snapshot = sstables.iter().find(is_of_snapshot).unwrap();
    let of_table = sstables.iter().find(|file| !is_of_snapshot(file)).unwrap();
    assert_eq!(scrub(&engine), (2 + sstables.len() as u64, Vec::new()));
    let names = ["MANIFEST", "MANIFEST.copy", &of_snapshot.name, &of_table.name];
    for name in names {
        fs.flip_bit(&Path::new(DIR).join(name), 60, 1).unwrap();
    }
    let (proved, told) = scrub(&engine);
    assert_eq!(proved, sstables.len() as u64 - 2);
    for name in names {
        assert_eq!(
            told.iter().filter(|line| line.contains(&format!("{name} is damaged at offset"))).count(),
            1,
            "{told:?}"
        );
    }
    drop(put(&engine, "row9999", "1"));
    engine.pump().unwrap();
    engine.close().unwrap();
    assert!(matches!(engine.scrub(&mut |_| {}), Err(Error::Closed)));
}

/// From a moment on: the files whose turn was before are left out. One that goes before its turn is passed over.
#[test]
fn a_scrub_that_nobody_asked_for_takes_its_time() {
    const INTERVAL: Duration = Duration::from_hours(21 * 24);
    let fs = store();
    let sstables: Vec<_> = audit(&fs).into_iter().filter(|file| file.kind == FileKind::Sstable).collect();
    let engine = Engine::open(engine_options(&fs)).unwrap();
    let manifest: u64 = engine.core.manifest().prove().map(Result::unwrap).sum();
    let slept = RefCell::new(Vec::new());
    let scrub = |begin| {
        slept.take();
        let before = engine.stats().scrubbed_bytes;
        let sleep = |time| {
            slept.borrow_mut().push(time);
            Ok(())
        };
        engine.core.scrub_slowly(INTERVAL, begin, &sleep).unwrap();
        let slept: Duration = slept.borrow().iter().sum();
        (engine.stats().scrubbed_bytes - before - manifest, slept)
    };
    let bytes: u64 = sstables.iter().map(|file| file.bytes).sum();
    let (proved, slept_all) = scrub(Duration::ZERO);
    assert!(proved == bytes && INTERVAL <= slept_all && slept_all < INTERVAL + Duration::from_secs(1), "{slept_all:?}");
    let (proved, slept_less) = scrub(INTERVAL / 2);
    assert!(proved < bytes && proved >= bytes / 2 && slept_less < INTERVAL / 2 + Duration::from_secs(1), "{proved}");
    let is_of_snapshot = |file: &&AuditedFile| file.owners.iter().all(|owner| owner.snapshot.is_some());
    let of_snapshot = sstables.iter().find(is_of_snapshot).unwrap();
    fs.flip_bit(&Path::new(DIR).join(&of_snapshot.name), 60, 1).unwrap();
    assert_eq!(scrub(Duration::ZERO).0, bytes - of_snapshot.bytes);
    assert_eq!(engine.stats().scrub_damages, 1);
    let compact = std::sync::Once::new();
    let sleep = |_| {
        compact.call_once(|| engine.compact(&name(), Compaction::Major).unwrap());
        Ok(())
    };
    engine.core.scrub_slowly(INTERVAL, Duration::ZERO, &sleep).unwrap();
    assert_eq!(engine.stats().scrub_damages, 2, "what is gone is no damage");
    let gone = engine.core.scrub_slowly(INTERVAL, Duration::ZERO, &|_| Err(Error::Closed));
    assert!(matches!(gone, Err(Error::Closed)));
}

/// Tells that the scrub asked for the time, and has it die of that.
#[derive(Debug)]
struct DeadlyClock(SyncSender<()>);

impl Clock for DeadlyClock {
    fn now(&self) -> Timestamp {
        if std::thread::current().name() == Some("scrub") {
            self.0.send(()).unwrap();
            panic!("a scrub dies of this");
        }
        Timestamp(1)
    }
}

#[test]
fn a_scrub_that_dies_takes_nothing_with_it() {
    let (tell, told) = sync_channel(1);
    let options =
        EngineOptions { clock: Arc::new(DeadlyClock(tell)), workers: Workers::Threads, ..engine_options(&store()) };
    let engine = Engine::open(options).unwrap();
    told.recv().unwrap();
    // It waits for the threads.
    engine.close().unwrap();
    assert_eq!(engine.health(), Health::Ok);
}
