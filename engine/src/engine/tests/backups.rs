//! A backup restores to what the store was, and a damaged one is refused.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use basalt_store::{Durability, MutationBatch};

use super::*;
use crate::io::{Fault, FaultKind, FaultSpan, LossMode, OsFs, SimFs};
use crate::restore;

const STORE: &str = "/d";
const BACKUP: &str = "/b";
const RESTORED: &str = "/r";

fn open_at(fs: &SimFs, dir: &str) -> Result<Arc<Engine>> {
    Engine::open(options(Arc::new(fs.clone()), Path::new(dir), Workers::Manual))
}

/// Whether whoever looks for damage where a restore was cut off is told so, and not that files were lost.
fn is_told_unfinished(fs: &SimFs) -> bool {
    let options = options(Arc::new(fs.clone()), Path::new(RESTORED), Workers::Manual);
    let folder = crate::Folder::open(options).unwrap();
    let audited = folder.audit(true, &mut |_| {}).map(drop);
    let repaired = folder.repair(false, &mut crate::Repair::default(), &mut |_| {});
    [audited, repaired].iter().all(|told| matches!(told, Err(Error::Unfinished { .. })))
}

fn fill(engine: &Engine, range: std::ops::Range<u32>) {
    let asked: Vec<_> = range.map(|row| put(engine, &format!("row{row:04}"), &format!("v{row}"))).collect();
    drop(engine.pump());
    drop(asked);
}

/// A store of 40 rows in two regions, with a snapshot of the first 20, flushed and not.
fn store(fs: &SimFs) -> Arc<Engine> {
    let engine = open_at(fs, STORE).unwrap();
    engine.create_table(table(), &["row0010".into()]).unwrap();
    fill(&engine, 0..20);
    engine.snapshot(&name(), "s").unwrap();
    fill(&engine, 20..40);
    engine
}

fn files(fs: &SimFs, dir: &str) -> Vec<String> {
    fs.list(Path::new(dir)).unwrap().into_iter().filter(|name| name != "LOCK").collect()
}

fn restored(fs: &SimFs) -> Result<Arc<Engine>> {
    restore(fs, Path::new(BACKUP), Path::new(RESTORED), &mut |_| {})?;
    open_at(fs, RESTORED)
}

/// While rows are written and compacted a backup is taken: what comes back is the log up to one moment, with all that
/// was acknowledged before.
#[test]
fn s_backup_a_restored_store_is_one_prefix_of_what_was_written() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = options(Arc::new(OsFs), &dir.path().join("d"), Workers::Threads);
    (options.limits.memtables_bytes, options.limits.wal_bytes_max) = (64 << 20, 64 << 20);
    options.limits.compaction_threads = 1;
    options.limits.compaction_files_min = 2;
    let engine = Engine::open(options).unwrap();
    engine.create_table(table(), &["row0003".into(), "row0006".into()]).unwrap();
    let (acknowledged, done) = (AtomicU32::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1.. {
                let mut batch = MutationBatch::new(Durability::Fsync);
                for row in 0..10 {
                    let value = format!("{round} {}", "x".repeat(50));
                    let key = format!("row{row:04}");
                    batch.row(key.as_bytes()).unwrap().put(b"f", b"q", None, value.as_bytes()).unwrap();
                }
                assert!(engine.apply(&name(), batch).wait().unwrap().failed.is_empty());
                acknowledged.store(round, Ordering::SeqCst);
                if done.load(Ordering::SeqCst) {
                    return;
                }
            }
        });
        for taken in 0..8 {
            let before = acknowledged.load(Ordering::SeqCst);
            let (backup, target) = (dir.path().join(format!("b{taken}")), dir.path().join(format!("r{taken}")));
            let told = engine.backup(&backup, &mut |_| {}).unwrap();
            let after = acknowledged.load(Ordering::SeqCst);
            assert_eq!(restore(&OsFs, &backup, &target, &mut |_| {}).unwrap(), told);
            let copy = Engine::open(EngineOptions::new(&target)).unwrap();
            let rows = scan(&copy, Scan::all());
            let rounds: Vec<u32> =
                rows.iter().map(|(_, cells)| cells[0].split(' ').next().unwrap().parse().unwrap()).collect();
            assert!(rounds.is_empty() || (rounds.len() == 10 && rounds.iter().all(|round| *round == rounds[0])));
            let round = rounds.first().copied().unwrap_or(0);
            assert!((before..=after + 1).contains(&round), "{round} is not in {before}..={after} + 1");
            copy.verify().unwrap();
            engine.compact(&name(), Compaction::Major).unwrap();
        }
        done.store(true, Ordering::SeqCst);
    });
    let held = format!("{:?}", engine.core.held_files);
    assert!(held.contains("holders: 0, deferred: []"), "{held}");
}

#[test]
fn tables_snapshots_and_numbers_come_back() {
    let fs = SimFs::new(1);
    let engine = store(&fs);
    engine.backup(Path::new(BACKUP), &mut |_| {}).unwrap();
    engine.drop_table(&name()).unwrap();
    engine.delete_snapshot("s").unwrap();
    let copy = restored(&fs).unwrap();
    assert_eq!(scan(&copy, Scan::all()), expected(0..40));
    assert_eq!(copy.regions(&name()).unwrap().len(), 2);
    fill(&copy, 40..60);
    copy.compact(&name(), Compaction::Major).unwrap();
    drop(copy);
    let copy = open_at(&fs, RESTORED).unwrap();
    assert_eq!(scan(&copy, Scan::all()), expected(0..60));
    copy.disable_table(&name()).unwrap();
    copy.restore_snapshot("s").unwrap();
    copy.enable_table(&name()).unwrap();
    assert_eq!(scan(&copy, Scan::all()), expected(0..20));
    copy.verify().unwrap();
}

#[test]
fn folders_that_are_not_what_they_should_be_are_refused() {
    let fs = SimFs::new(1);
    let engine = store(&fs);
    assert!(matches!(restored(&fs), Err(Error::NoBackup { .. })));
    engine.backup(Path::new(BACKUP), &mut |_| {}).unwrap();
    assert!(matches!(engine.backup(Path::new(BACKUP), &mut |_| {}), Err(Error::NotEmpty { .. })));
    assert!(matches!(open_at(&fs, BACKUP), Err(Error::IsBackup { .. })));
    let into_store = restore(&fs, Path::new(BACKUP), Path::new(STORE), &mut |_| {});
    assert!(matches!(into_store, Err(Error::Locked { .. })));
    drop(engine);
    let into_store = restore(&fs, Path::new(BACKUP), Path::new(STORE), &mut |_| {});
    assert!(matches!(into_store, Err(Error::NotEmpty { .. })));
}

/// Who looks at the folder meanwhile leaves a file in it, as `basalt verify` its lock: what is told as a backup restores.
#[test]
fn a_backup_names_only_what_it_wrote() {
    let dir = tempfile::tempdir().unwrap();
    let [store, backup, target] = ["d", "b", "r"].map(|name| dir.path().join(name));
    let open = |dir: &Path| Engine::open(options(Arc::new(OsFs), dir, Workers::Manual)).unwrap();
    let engine = open(&store);
    engine.create_table(table(), &[]).unwrap();
    fill(&engine, 0..10);
    let lock = backup.join("LOCK");
    let told = engine.backup(&backup, &mut |_| drop(OsFs.lock(&lock).unwrap())).unwrap();
    assert!(lock.exists());
    assert_eq!(restore(&OsFs, &backup, &target, &mut |_| {}).unwrap(), told);
    assert_eq!(scan(&open(&target), Scan::all()), expected(0..10));
}

/// What lies in the folder when a backup comes to it may be the store's own file, linked by another backup: it is not written over,
/// neither where a link is refused for it nor where it would be copied.
#[test]
fn a_backup_writes_over_no_file() {
    for is_copied in [false, true] {
        let fs = SimFs::new(1);
        let engine = store(&fs);
        let taken = engine.backup(Path::new(BACKUP), &mut |_| {
            for name in files(&fs, STORE).iter().filter(|name| name.starts_with("sst-")) {
                drop(fs.link(&Path::new(STORE).join(name), &Path::new(BACKUP).join(name)));
            }
            let fault = Fault { after_calls: 0, kind: FaultKind::Eio, span: FaultSpan::Once };
            fs.set_fault(is_copied.then_some(fault));
        });
        let is_refused = matches!(&taken, Err(Error::Io { source, .. }) if source.kind() == ErrorKind::AlreadyExists);
        assert!(is_refused && !fs.has_fault(), "{taken:?}");
        engine.verify().unwrap();
        assert_eq!(scan(&engine, Scan::all()), expected(0..40));
        drop(engine);
        assert_eq!(scan(&open_at(&fs, STORE).unwrap(), Scan::all()), expected(0..40));
    }
}

/// As when a client gave up waiting for its backup and asks again.
#[test]
fn of_backups_into_one_folder_at_once_one_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::open(options(Arc::new(OsFs), &dir.path().join("d"), Workers::Threads)).unwrap();
    engine.create_table(table(), &["row0010".into()]).unwrap();
    for row in 0..40 {
        put(&engine, &format!("row{row:04}"), &format!("v{row}")).wait().unwrap();
    }
    let (backup, target) = (dir.path().join("b"), dir.path().join("r"));
    let start = std::sync::Barrier::new(4);
    let take = || {
        start.wait();
        engine.backup(&backup, &mut |_| assert!(engine.core.backing_up.try_lock().is_err(), "others wait"))
    };
    let answers: Vec<_> = std::thread::scope(|scope| {
        let takers: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
        takers.into_iter().map(|taker| taker.join().unwrap()).collect()
    });
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1, "{answers:?}");
    let is_told =
        |answer: &Result<_>| matches!(answer, Ok(_) | Err(Error::NotEmpty { .. } | Error::HalfBackedUp { .. }));
    assert!(answers.iter().all(is_told), "{answers:?}");
    engine.verify().unwrap();
    restore(&OsFs, &backup, &target, &mut |_| {}).unwrap();
    let copy = Engine::open(options(Arc::new(OsFs), &target, Workers::Manual)).unwrap();
    assert_eq!(scan(&copy, Scan::all()), expected(0..40));
}

/// A backup that finds no room, at whichever step, leaves the folder as empty as before and the disk with as much room, also where
/// files are copied.
#[test]
fn a_backup_that_finds_no_room_is_taken_again() {
    for is_copied in [false, true] {
        let mut copies = 0;
        for after_calls in 0.. {
            let fs = SimFs::new(1);
            let engine = store(&fs);
            engine.flush(&name()).unwrap();
            let used = fs.used_bytes();
            let fault = |kind, span| fs.set_fault(Some(Fault { after_calls, kind, span }));
            if is_copied {
                // A link that fails is a copy.
                fs.set_capacity(used + 300);
                fault(FaultKind::Eio, FaultSpan::Once);
            } else {
                fault(FaultKind::Enospc, FaultSpan::FromThenOn);
            }
            let taken = engine.backup(Path::new(BACKUP), &mut |_| {});
            let at =
                taken.as_ref().err().and_then(Error::file).and_then(Path::extension).unwrap_or_default().to_owned();
            copies += u32::from(is_copied && at == "sst" && taken.as_ref().is_err_and(Error::is_disk_full));
            if taken.is_ok() || is_copied && at == "tmp" && after_calls > 10 {
                assert!(after_calls > 10 && (!is_copied || copies > 0), "{after_calls} steps, {copies} copies");
                break;
            }
            fs.set_fault(None);
            let left = (files(&fs, BACKUP), fs.used_bytes());
            assert_eq!(left, (Vec::new(), used), "step {after_calls}, {is_copied}, {taken:?}");
            fs.set_capacity(u64::MAX);
            engine.backup(Path::new(BACKUP), &mut |_| {}).unwrap();
            assert_eq!(scan(&restored(&fs).unwrap(), Scan::all()), expected(0..40));
        }
    }
}

/// Where the folder's name is another folder's by then, as a link to the store, nothing goes there.
#[test]
fn a_backup_that_fails_removes_no_file_of_another_folder() {
    let fs = SimFs::new(1);
    let engine = store(&fs);
    let taken = engine.backup(Path::new(BACKUP), &mut |_| {
        fs.remove(&Path::new(BACKUP).join("BACKUP.tmp")).unwrap();
        fs.set_fault(Some(Fault { after_calls: 0, kind: FaultKind::Enospc, span: FaultSpan::FromThenOn }));
    });
    assert!(taken.is_err_and(|error| error.is_disk_full()));
    assert_eq!(files(&fs, BACKUP).len(), 1);
}

/// What is left of one that was cut off is told as that.
#[test]
fn a_backup_that_was_cut_off_is_told() {
    let fs = SimFs::new(1);
    let engine = store(&fs);
    let crash = Fault { after_calls: 12, kind: FaultKind::Crash, span: FaultSpan::FromThenOn };
    fs.set_fault(Some(crash));
    assert!(engine.backup(Path::new(BACKUP), &mut |_| {}).is_err());
    drop(engine);
    let fs = fs.process_kill();
    let engine = open_at(&fs, STORE).unwrap();
    let refused = engine.backup(Path::new(BACKUP), &mut |_| {});
    assert!(matches!(&refused, Err(Error::HalfBackedUp { .. })), "{refused:?}");
}

/// A restore that stops at any step does not keep an earlier backup from being restored into the same folder.
#[test]
fn another_backup_is_restored_where_a_restore_was_interrupted() {
    let fs = SimFs::new(1);
    let engine = store(&fs);
    let earlier = "/earlier";
    engine.backup(Path::new(earlier), &mut |_| {}).unwrap();
    drop(engine);
    let engine = open_at(&fs, STORE).unwrap();
    fill(&engine, 40..60);
    engine.flush(&name()).unwrap();
    engine.core.trim_log().unwrap();
    engine.backup(Path::new(BACKUP), &mut |_| {}).unwrap();
    drop(engine);
    let log = |dir| files(&fs, dir).into_iter().find(|name| name.starts_with("wal-")).unwrap();
    assert_ne!(log(earlier), log(BACKUP));
    for mode in [LossMode::Ordered, LossMode::Hostile] {
        for step in 0.. {
            let disk = fs.snapshot();
            disk.set_fault(Some(Fault { after_calls: step, kind: FaultKind::Crash, span: FaultSpan::FromThenOn }));
            if restore(&disk, Path::new(BACKUP), Path::new(RESTORED), &mut |_| {}).is_ok() {
                assert!(step > 10, "{step} steps");
                break;
            }
            let disk = disk.power_loss(mode);
            let again = restore(&disk, Path::new(earlier), Path::new(RESTORED), &mut |_| {});
            let copy = open_at(&disk, RESTORED).unwrap();
            // Where the mark went with the last step, the restore was through.
            let rows = if matches!(again, Err(Error::NotEmpty { .. })) { 60 } else { again.map(|_| 40).unwrap() };
            assert_eq!(scan(&copy, Scan::all()), expected(0..rows), "step {step}, {mode:?}");
            copy.verify().unwrap();
        }
    }
}

/// One flipped bit in any file of the backup: the restore names the file, and leaves nothing that could be opened.
#[test]
fn a_damaged_backup_is_refused_by_the_files_name() {
    let fs = SimFs::new(1);
    store(&fs).backup(Path::new(BACKUP), &mut |_| {}).unwrap();
    for name in files(&fs, BACKUP) {
        let path = Path::new(BACKUP).join(&name);
        let len = fs.open(&path).unwrap().len().unwrap();
        for at in (0..len).step_by(usize::try_from(len / 7 + 1).unwrap()) {
            let damaged = fs.snapshot();
            damaged.flip_bit(&path, at, 3).unwrap();
            match restored(&damaged) {
                Err(Error::Corrupt { file, .. }) => assert_eq!(file, path, "byte {at}"),
                other => panic!("{name}, byte {at}: {other:?}"),
            }
            assert_eq!(files(&damaged, RESTORED), [""; 0]);
        }
        let lacking = fs.snapshot();
        lacking.remove(&path).unwrap();
        assert!(restored(&lacking).is_err(), "{name}");
    }
    assert_eq!(scan(&restored(&fs).unwrap(), Scan::all()), expected(0..40));
}

/// A crash at each step of a backup: the store is whole, the folder is a whole backup or none.
#[test]
fn a_backup_is_whole_or_none_at_every_crash() {
    for seed in 0..2 {
        for after_calls in 0.. {
            let at = format!("seed {seed}, step {after_calls}");
            let fs = SimFs::new(seed);
            let engine = store(&fs);
            fs.set_fault(Some(Fault { after_calls, kind: FaultKind::Crash, span: FaultSpan::FromThenOn }));
            let taken = engine.backup(Path::new(BACKUP), &mut |_| {});
            drop(engine);
            let fs = fs.power_loss(LossMode::Hostile);
            let engine = open_at(&fs, STORE).unwrap_or_else(|error| panic!("{at}: {error}"));
            assert_eq!(scan(&engine, Scan::all()), expected(0..40), "{at}");
            engine.verify().unwrap();
            match restored(&fs) {
                Ok(copy) => assert_eq!(scan(&copy, Scan::all()), expected(0..40), "{at}"),
                Err(error) => assert!(taken.is_err() && matches!(error, Error::NoBackup { .. }), "{at}: {error}"),
            }
            if taken.is_ok() {
                break;
            }
        }
    }
}

/// A crash at each step of a restore: the folder is not opened before it is whole, and a second restore makes it so.
#[test]
fn a_restore_is_whole_or_refused_at_every_crash() {
    let mut refused = 0;
    for seed in 0..2 {
        for after_calls in 0.. {
            let at = format!("seed {seed}, step {after_calls}");
            let fs = SimFs::new(seed);
            store(&fs).backup(Path::new(BACKUP), &mut |_| {}).unwrap();
            fs.set_fault(Some(Fault { after_calls, kind: FaultKind::Crash, span: FaultSpan::FromThenOn }));
            let done = restore(&fs, Path::new(BACKUP), Path::new(RESTORED), &mut |_| {}).is_ok();
            let fs = fs.power_loss(LossMode::Hostile);
            // A folder without a file is what it was before.
            if !files(&fs, RESTORED).is_empty() {
                match open_at(&fs, RESTORED) {
                    Ok(copy) => assert_eq!(scan(&copy, Scan::all()), expected(0..40), "{at}"),
                    Err(error) => {
                        refused += 1;
                        assert!(!done && matches!(error, Error::Unfinished { .. }), "{at}: {error}");
                        assert!(is_told_unfinished(&fs), "{at}");
                        assert_eq!(scan(&restored(&fs).unwrap(), Scan::all()), expected(0..40), "{at}");
                    }
                }
            }
            if done {
                break;
            }
        }
    }
    assert!(refused > 20, "{refused}");
}

/// A backup that is refused for damage near its end, and a crash or a failure at each step: as long as any of its files is there the folder
/// is not opened, and is filled by the next restore.
#[test]
fn what_is_left_of_a_refused_backup_is_no_store() {
    let whole = SimFs::new(1);
    store(&whole).backup(Path::new(BACKUP), &mut |_| {}).unwrap();
    let last = files(&whole, BACKUP).into_iter().rfind(|name| name.starts_with("wal-")).unwrap();
    let damaged = Path::new(BACKUP).join(last);
    let (mut marked, mut empty) = (0, 0);
    for round in 0..12 {
        let kind = if round % 2 == 0 { FaultKind::Crash } else { FaultKind::Eio };
        for after_calls in 0.. {
            let at = format!("{kind:?}, round {round}, step {after_calls}");
            let fs = whole.snapshot();
            fs.flip_bit(&damaged, 3, 3).unwrap();
            fs.set_fault(Some(Fault { after_calls, kind, span: FaultSpan::FromThenOn }));
            restore(&fs, Path::new(BACKUP), Path::new(RESTORED), &mut |_| {}).unwrap_err();
            let is_met = fs.calls() > after_calls;
            let left = if round == 1 { fs.process_kill() } else { fs.power_loss(LossMode::Hostile) };
            if files(&left, RESTORED).is_empty() {
                empty += 1;
            } else {
                marked += 1;
                let opened = open_at(&left, RESTORED);
                assert!(matches!(opened, Err(Error::Unfinished { .. })), "{at}: {:?}", files(&left, RESTORED));
            }
            left.flip_bit(&damaged, 3, 3).unwrap();
            assert_eq!(scan(&restored(&left).unwrap(), Scan::all()), expected(0..40), "{at}");
            if !is_met {
                break;
            }
        }
    }
    assert!(marked > 20 && empty > 20, "{marked} marked, {empty} empty");
}
