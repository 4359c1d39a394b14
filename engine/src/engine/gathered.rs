//! Batches that wait for a push.

use std::path::Path;

use basalt_store::{Durability, ManualClock, Scan};

use super::tests::{name, options, put, scan, table};
use super::*;
use crate::io::SimFs;

fn open() -> Arc<Engine> {
    open_at(Arc::default())
}

fn open_at(clock: Arc<ManualClock>) -> Arc<Engine> {
    let options = options(Arc::new(SimFs::new(1)), Path::new("/d"), Workers::Manual);
    let engine = Engine::open(EngineOptions { clock, ..options }).unwrap();
    engine.create_table(table(), &["m".into()]).unwrap();
    engine
}

/// Applies a batch of one row that a push follows.
fn hold(engine: &Engine, (row, family): (&str, &str), value: &str) -> Pending<Applied> {
    let mut batch = MutationBatch::new(Durability::Fsync);
    batch.hold();
    batch.row(row.as_bytes()).unwrap().put(family.as_bytes(), b"q", None, value.as_bytes()).unwrap();
    engine.apply(&name(), batch)
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
    engine.push();
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
    engine.push();
    assert!(held.wait().unwrap().failed.is_empty() && at_once.wait().unwrap().failed.is_empty());
    assert_eq!(scan(&engine, Scan::all())[0].1[0], "at once");
}

#[test]
fn a_tombstone_covers_what_was_put_before_it_and_nothing_after() {
    let clock = Arc::new(ManualClock::default());
    let engine = open_at(Arc::clone(&clock));
    let first = hold(&engine, ("a", "f"), "1");
    let mut batch = MutationBatch::new(Durability::Fsync);
    batch.hold();
    batch.row(b"a").unwrap().delete_family(b"f", None).unwrap();
    let deleted = engine.apply(&name(), batch);
    clock.advance(1);
    let second = hold(&engine, ("a", "f"), "2");
    engine.push();
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
    engine.push();
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
