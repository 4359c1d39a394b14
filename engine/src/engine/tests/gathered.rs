//! Batches that wait for a push, or for the log's thread.

use std::path::Path;
use std::sync::Condvar;
use std::time::Duration;

use basalt_store::{CheckAndMutate, Clock, Comparison, Durability, Lane, ManualClock, Scan, Timestamp};

use super::*;
use crate::io::{OsFs, SimFs};

fn open() -> Arc<Engine> {
    open_at(Arc::default())
}

fn open_at(clock: Arc<ManualClock>) -> Arc<Engine> {
    open_on(&SimFs::new(1), clock)
}

fn open_on(fs: &SimFs, clock: Arc<ManualClock>) -> Arc<Engine> {
    let options = options(Arc::new(fs.clone()), Path::new("/d"), Workers::Manual);
    let engine = Engine::open(EngineOptions { clock, ..options }).unwrap();
    engine.create_table(table(), &["m".into()]).unwrap();
    engine
}

fn batch((row, family): (&str, &str), value: &str) -> MutationBatch {
    let mut batch = MutationBatch::new(Durability::Fsync);
    batch.row(row.as_bytes()).unwrap().put(family.as_bytes(), b"q", None, value.as_bytes()).unwrap();
    batch
}

/// Applies a batch of one row that a push follows.
fn hold(engine: &Engine, cell: (&str, &str), value: &str) -> Pending<Applied> {
    hold_in(Lane::default(), engine, cell, value)
}

fn hold_in(lane: Lane, engine: &Engine, cell: (&str, &str), value: &str) -> Pending<Applied> {
    let mut batch = batch(cell, value);
    batch.hold(lane);
    engine.apply(&name(), batch)
}

/// Applies a batch of one row.
fn leave(engine: &Engine, row: &str, value: &str) -> Pending<Applied> {
    engine.apply(&name(), batch((row, "f"), value))
}

fn row(row: &str, value: &str) -> (String, Vec<String>) {
    (row.to_owned(), vec![value.to_owned()])
}

#[test]
fn what_waits_for_a_push_is_one_record_and_each_is_answered_for_itself() {
    let engine = open();
    let before = engine.stats().wal_records;
    let answers = [hold(&engine, ("a", "f"), "1"), hold(&engine, ("z", "none"), "2"), hold(&engine, ("a", "f"), "3")];
    assert_eq!(scan(&engine, Scan::all()), []);
    engine.push(Lane::default());
    let failed = answers.map(|answer| answer.wait().unwrap().failed);
    assert_eq!(failed.each_ref().map(Vec::len), [0, 1, 0]);
    assert_eq!(failed[1][0].row, 0);
    assert_eq!(engine.stats().wal_records - before, 1);
    assert_eq!(scan(&engine, Scan::all()), [row("a", "3")], "the later one wins");
}

#[test]
fn changes_keep_their_order_whether_they_wait_or_not() {
    let engine = open();
    let held = hold(&engine, ("a", "f"), "held");
    let at_once = put(&engine, "a", "at once");
    engine.push(Lane::default());
    assert!(held.wait().unwrap().failed.is_empty() && at_once.wait().unwrap().failed.is_empty());
    assert_eq!(scan(&engine, Scan::all())[0].1[0], "at once");
}

#[test]
fn a_push_applies_its_own_lane_alone() {
    let engine = open();
    let (one, other) = (Lane(1), Lane(2));
    let left = hold_in(one, &engine, ("a", "f"), "1");
    let pushed = [hold_in(other, &engine, ("b", "f"), "2"), hold_in(other, &engine, ("m", "f"), "3")];
    engine.push(other);
    assert!(pushed.into_iter().all(|answer| answer.wait().unwrap().failed.is_empty()));
    assert_eq!(scan(&engine, Scan::all()), [row("b", "2"), row("m", "3")]);
    engine.push(one);
    assert!(left.wait().unwrap().failed.is_empty());
    assert_eq!(scan(&engine, Scan::all())[0], row("a", "1"));
}

/// Two threads of puts apply at the same time: one that is kept by a row's owner keeps no other.
#[test]
fn a_push_waits_for_no_other_lane() {
    let engine = open();
    let table = engine.table(&name()).unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let owned = table.row_locks().own(b"a");
        let push = |lane, key| {
            let (tell, engine) = (tell.clone(), &engine);
            scope.spawn(move || {
                let held = hold_in(Lane(lane), engine, (key, "f"), "v");
                engine.push(Lane(lane));
                assert!(held.wait().unwrap().failed.is_empty());
                tell.send(key).unwrap();
            })
        };
        push(1, "a");
        // It is kept; this moment is for a thread that begins slowly.
        assert!(told.recv_timeout(Duration::from_millis(100)).is_err());
        push(2, "b");
        let first = told.recv_timeout(Duration::from_mins(1));
        drop(owned);
        assert_eq!((first, told.recv_timeout(Duration::from_mins(1))), (Ok("b"), Ok("a")));
    });
}

/// Gives a thread named `late` its time, and keeps it before it goes on with it.
#[derive(Debug)]
struct Late {
    came: std::sync::mpsc::SyncSender<()>,
    goes_on: Mutex<Option<std::sync::mpsc::Receiver<()>>>,
    clock: ManualClock,
}

impl Clock for Late {
    fn now(&self) -> Timestamp {
        let now = self.clock.now();
        let is_late = std::thread::current().name() == Some("late");
        // Once: a change that reads asks again.
        if let Some(goes_on) = is_late.then(|| self.goes_on.lock().unwrap().take()).flatten() {
            self.came.send(()).unwrap();
            goes_on.recv_timeout(Duration::from_mins(1)).unwrap();
        }
        now
    }
}

/// A fold joins what was frozen into cells of the newest time: a change behind it with an older one would be hidden by what it went
/// over (0023).
#[test]
fn no_memtable_is_frozen_between_a_changes_time_and_its_number() {
    let of_newest = || {
        let mut batch = MutationBatch::new(Durability::Fsync);
        batch.row(b"a").unwrap().delete(b"f", b"q", None).unwrap();
        batch
    };
    let at_once = || {
        let mut batch = MutationBatch::new(Durability::Os);
        batch.row(b"a").unwrap().put(b"f", b"q", None, b"new").unwrap();
        batch
    };
    let held = || {
        let mut batch = batch(("a", "f"), "new");
        batch.hold(Lane(1));
        batch
    };
    for late_change in [held(), at_once(), of_newest()] {
        let (came, has_come) = std::sync::mpsc::sync_channel(1);
        let (go_on, goes_on) = std::sync::mpsc::channel();
        let late = Arc::new(Late { came, goes_on: Mutex::new(Some(goes_on)), clock: ManualClock::default() });
        let options = options(Arc::new(SimFs::new(1)), Path::new("/d"), Workers::Manual);
        let engine = Engine::open(EngineOptions { clock: Arc::clone(&late) as Arc<dyn Clock>, ..options }).unwrap();
        engine.create_table(table(), &[]).unwrap();
        std::thread::scope(|scope| {
            let change = || {
                drop(engine.apply(&name(), late_change.clone()));
                engine.push(Lane(1));
            };
            let changing = std::thread::Builder::new().name("late".to_owned()).spawn_scoped(scope, change).unwrap();
            has_come.recv_timeout(Duration::from_mins(1)).unwrap();
            late.clock.advance(1);
            let other = hold_in(Lane(2), &engine, ("b", "f"), "later");
            engine.push(Lane(2));
            assert!(other.wait().unwrap().failed.is_empty());
            let (tell, told) = std::sync::mpsc::channel();
            let engine = &engine;
            scope.spawn(move || tell.send(engine.flush(&name())).unwrap());
            // It waits; this moment is for one that does not.
            assert!(told.recv_timeout(Duration::from_millis(200)).is_err(), "{late_change:?}");
            go_on.send(()).unwrap();
            changing.join().unwrap();
            told.recv_timeout(Duration::from_mins(1)).unwrap().unwrap();
        });
    }
}

/// Whoever changes a row at once, or asks for a sync, comes behind what waits in any lane; so does the engine's end.
#[test]
fn what_waits_in_any_lane_is_before_what_waits_in_none() {
    let clock = Arc::new(ManualClock::default());
    let engine = open_at(Arc::clone(&clock));
    // More threads than lanes share them.
    let lanes = [0, 1, 15, 16, 1000, u16::MAX].map(Lane);
    let before = engine.core.wal.last_sequence();
    let numbers = || engine.core.wal.last_sequence() - before;
    let held = lanes.map(|lane| hold_in(lane, &engine, (&format!("a{}", lane.0), "f"), "held"));
    clock.advance(1);
    let mut at_once = MutationBatch::new(Durability::Fsync);
    for Lane(lane) in lanes {
        at_once.row(format!("a{lane}").as_bytes()).unwrap().delete_family(b"f", None).unwrap();
    }
    let deleted = engine.apply(&name(), at_once);
    assert_eq!(numbers(), 12, "what is held, then what deletes it");
    let synced = hold_in(Lane(3), &engine, ("b", "f"), "synced");
    let sync = engine.sync();
    assert_eq!(numbers(), 14, "what is held, then the sync");
    engine.pump().unwrap();
    assert!(held.into_iter().chain([deleted, synced]).all(|answer| answer.wait().unwrap().failed.is_empty()));
    sync.wait().unwrap();
    assert_eq!(scan(&engine, Scan::all()), [row("b", "synced")]);
    let closed = hold_in(Lane(4), &engine, ("c", "f"), "closed");
    engine.close().unwrap();
    assert!(numbers() > 14);
    assert!(closed.wait().unwrap().failed.is_empty());
}

#[test]
fn a_tombstone_covers_what_was_put_before_it_and_nothing_after() {
    let clock = Arc::new(ManualClock::default());
    let engine = open_at(Arc::clone(&clock));
    let first = hold(&engine, ("a", "f"), "1");
    let mut batch = MutationBatch::new(Durability::Fsync);
    batch.hold(Lane::default());
    batch.row(b"a").unwrap().delete_family(b"f", None).unwrap();
    let deleted = engine.apply(&name(), batch);
    clock.advance(1);
    let second = hold(&engine, ("a", "f"), "2");
    engine.push(Lane::default());
    assert!([first, deleted, second].into_iter().all(|answer| answer.wait().unwrap().failed.is_empty()));
    assert_eq!(scan(&engine, Scan::all()), [row("a", "2")]);
}

#[test]
fn as_much_as_is_enough_for_one_change_waits_no_longer() {
    let engine = open();
    let before = engine.core.wal.last_sequence();
    let value = "v".repeat(300 << 10);
    let rows = ["a", "b", "c"];
    let held = rows.map(|row| hold(&engine, (row, "f"), &value));
    assert_eq!(engine.core.wal.last_sequence(), before);
    let last = hold(&engine, ("d", "f"), &value);
    assert_eq!(engine.core.wal.last_sequence(), before + 4);
    engine.push(Lane::default());
    assert!(held.into_iter().chain([last]).all(|answer| answer.wait().unwrap().failed.is_empty()));
}

/// A push may not follow where the engine is closed meanwhile.
#[test]
fn what_waits_is_applied_when_the_engine_closes_and_refused_behind() {
    let engine = open();
    let before = engine.core.wal.last_sequence();
    let held = hold(&engine, ("a", "f"), "1");
    engine.close().unwrap();
    assert!(engine.core.wal.last_sequence() > before);
    assert!(held.wait().unwrap().failed.is_empty());
    assert!(matches!(hold(&engine, ("b", "f"), "2").wait(), Err(basalt_store::Error::Closed)));
}

/// One that no push follows waits for the log's thread where there is one.
#[test]
fn what_waits_for_the_logs_thread_is_one_record() {
    let fs = SimFs::new(1);
    let engine = open_on(&fs, Arc::default());
    let last = || engine.core.wal.last_sequence();
    let before = (last(), engine.stats().wal_records);
    let at_once = leave(&engine, "a", "0");
    assert_eq!(last(), before.0 + 1, "nobody would come for it");
    engine.core.gathered.serve();
    let waiting = [leave(&engine, "a", "1"), leave(&engine, "b", "2"), leave(&engine, "a", "3")];
    assert_eq!(last(), before.0 + 1);
    let calls = fs.calls();
    engine.core.apply_left();
    assert_eq!(fs.calls() - calls, 1, "the record is on its way while the rows go into the memtables");
    engine.core.wal.write_group(false);
    assert_eq!(fs.calls() - calls, 2, "a sync alone");
    assert_eq!((last(), engine.stats().wal_records), (before.0 + 4, before.1 + 2));
    assert!(waiting.into_iter().chain([at_once]).all(|answer| answer.wait().unwrap().failed.is_empty()));
    assert_eq!(scan(&engine, Scan::all()), [row("a", "3"), row("b", "2")]);
}

#[test]
fn a_large_batch_is_applied_at_once_behind_those_that_wait() {
    let of_bytes = batch(("a", "f"), &"v".repeat(128 << 10));
    let mut of_cells = batch(("a", "f"), "0");
    for number in 1..2048_u32 {
        of_cells.row(b"a").unwrap().put(b"f", &number.to_be_bytes(), None, b"v").unwrap();
    }
    for large in [of_bytes, of_cells] {
        let engine = open();
        engine.core.gathered.serve();
        let before = engine.core.wal.last_sequence();
        let cells: Vec<_> = large.rows().flat_map(|row| row.cells().map(|cell| cell.value.to_vec())).collect();
        let small = leave(&engine, "a", "small");
        assert_eq!(engine.core.wal.last_sequence(), before);
        let at_once = engine.apply(&name(), large);
        assert_eq!(engine.core.wal.last_sequence(), before + 2);
        engine.core.wal.write_group(false);
        assert!([small, at_once].into_iter().all(|answer| answer.wait().unwrap().failed.is_empty()));
        let (found, newest) = (scan(&engine, Scan::all()), String::from_utf8_lossy(&cells[0]));
        assert!(found[0].1.len() == cells.len() && found[0].1.iter().any(|value| *value == newest));
    }
}

#[test]
fn a_read_modify_write_sees_what_waits() {
    let clock = Arc::new(ManualClock::default());
    let engine = open_at(Arc::clone(&clock));
    engine.core.gathered.serve();
    let [row, family, qualifier] = [&b"a"[..], b"f", b"q"].map(Bytes::from_static);
    let first = leave(&engine, "a", "1");
    let append = Append {
        row: row.clone(),
        family: family.clone(),
        qualifier: qualifier.clone(),
        value: Bytes::from_static(b"2"),
        durability: Durability::Fsync,
    };
    let appended = engine.append(&name(), append);
    // The appended one went over the first.
    clock.advance(10);
    let second = leave(&engine, "a", "3");
    let check = CheckAndMutate {
        row,
        family,
        qualifier,
        comparison: Comparison::Equal,
        expected: Some(Bytes::from_static(b"3")),
        mutation: batch(("a", "f"), "4"),
    };
    let checked = engine.check_and_mutate(&name(), check);
    engine.push(Lane::default());
    assert!([first, second].into_iter().all(|answer| answer.wait().unwrap().failed.is_empty()));
    assert_eq!((&appended.wait().unwrap()[..], checked.wait().unwrap()), (&b"12"[..], true));
    assert_eq!(scan(&engine, Scan::all())[0].1[0], "4");
}

/// A clock that keeps the log's thread, or ends it.
#[derive(Debug, Default)]
struct Keeper {
    state: Mutex<Kept>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Kept {
    keeps: bool,
    ends: bool,
    /// It was asked on the log's thread.
    came: bool,
}

impl Keeper {
    fn change(&self, change: impl FnOnce(&mut Kept)) {
        change(&mut self.state.lock().unwrap());
        self.changed.notify_all();
    }

    /// Waits until `is` answers true, and answers whether the thread is to end.
    fn wait_until(&self, is: impl Fn(&Kept) -> bool) -> bool {
        let state = self.state.lock().unwrap();
        let limit = Duration::from_mins(1);
        let (state, waited) = self.changed.wait_timeout_while(state, limit, |state| !is(state)).unwrap();
        assert!(!waited.timed_out(), "nothing happens");
        state.ends
    }
}

impl Clock for Keeper {
    fn now(&self) -> Timestamp {
        if matches!(std::thread::current().name(), Some("wal" | "dies")) {
            self.change(|kept| kept.came = true);
            assert!(!self.wait_until(|kept| !kept.keeps), "as the test wants it");
        }
        Timestamp(1)
    }
}

/// An engine whose log's thread is kept while it applies a put to the row `a`.
fn kept(dir: &Path) -> (Arc<Engine>, Arc<Keeper>, Pending<Applied>) {
    let keeper = Arc::new(Keeper::default());
    let clock = Arc::clone(&keeper) as Arc<dyn Clock>;
    let options = EngineOptions { clock, ..options(Arc::new(OsFs), dir, Workers::Threads) };
    let engine = Engine::open(options).unwrap();
    engine.create_table(table(), &["m".into()]).unwrap();
    keeper.change(|kept| *kept = Kept { keeps: true, ..Kept::default() });
    let first = leave(&engine, "a", "1");
    keeper.wait_until(|kept| kept.came);
    (engine, keeper, first)
}

#[test]
fn changes_keep_their_order_whoever_applies_them() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, keeper, first) = kept(dir.path());
    let pusher = Arc::clone(&engine);
    let (tell, told) = std::sync::mpsc::channel();
    let pushing = std::thread::spawn(move || {
        // It does not wait for the disk, and so is left to nobody.
        let mut at_once = MutationBatch::new(Durability::Os);
        at_once.row(b"a").unwrap().put(b"f", b"q", None, b"2").unwrap();
        let second = pusher.apply(&name(), at_once);
        tell.send(()).unwrap();
        second
    });
    // It waits for the log's thread; this moment is for one that does not.
    assert!(told.recv_timeout(Duration::from_millis(200)).is_err());
    keeper.change(|kept| kept.keeps = false);
    let second = pushing.join().unwrap();
    assert!([first, second].into_iter().all(|answer| answer.wait().unwrap().failed.is_empty()));
    assert_eq!(scan(&engine, Scan::all()), [row("a", "2")]);
}

#[test]
fn who_waits_for_the_logs_thread_hears_that_it_failed() {
    let dir = tempfile::tempdir().unwrap();
    let (engine, keeper, first) = kept(dir.path());
    let behind = leave(&engine, "a", "2");
    keeper.change(|kept| (kept.keeps, kept.ends) = (false, true));
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || [first, behind].map(|answer| tell.send(answer.wait().is_err()).unwrap()));
    assert_eq!([(); 2].map(|()| told.recv_timeout(Duration::from_mins(1))), [Ok(true), Ok(true)]);
    assert!(leave(&engine, "a", "3").wait().is_err() && matches!(engine.health(), Health::Poisoned { .. }));
    assert_eq!(scan(&engine, Scan::all()), []);
}

/// A sender's thread that applies others' batches before its own, and dies of it.
#[test]
fn who_waits_hears_that_somebody_died_of_it() {
    let keeper = Arc::new(Keeper::default());
    let clock = Arc::clone(&keeper) as Arc<dyn Clock>;
    let options = options(Arc::new(SimFs::new(1)), Path::new("/d"), Workers::Manual);
    let engine = Engine::open(EngineOptions { clock, ..options }).unwrap();
    engine.create_table(table(), &["m".into()]).unwrap();
    engine.core.gathered.serve();
    keeper.change(|kept| kept.ends = true);
    let waiting = leave(&engine, "a", "1");
    std::thread::scope(|scope| {
        let large = || leave(&engine, "b", &"v".repeat(128 << 10)).wait().is_err();
        let sender = std::thread::Builder::new().name("dies".to_owned()).spawn_scoped(scope, large).unwrap();
        assert!(sender.join().is_err(), "of its own batch it dies as ever");
    });
    assert!(waiting.wait().is_err() && matches!(engine.health(), Health::Poisoned { .. }));
}
