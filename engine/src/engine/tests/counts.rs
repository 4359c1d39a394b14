//! What goes wrong is counted and told, and what is read twice is counted.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use basalt_store::{ManualClock, Timestamp};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::*;
use crate::io::{FileSystem, SimFs};

fn simulated(change: impl FnOnce(&mut EngineOptions)) -> (Arc<Engine>, SimFs) {
    let fs = SimFs::new(1);
    let mut options = options(Arc::new(fs.clone()), Path::new("/d"), Workers::Manual);
    change(&mut options);
    let engine = Engine::open(options).unwrap();
    engine.create_table(table(), &[]).unwrap();
    (engine, fs)
}

#[test]
fn batches_refused_for_memory_are_counted() {
    let (engine, _fs) = simulated(|options| options.limits.memtables_bytes = 4 << 10);
    let put = |row: &str| {
        let pending = put(&engine, row, &"v".repeat(10_000));
        // Only what a flush would free is not freed.
        engine.core.apply_left();
        engine.core.wal.write_group(false);
        pending.wait()
    };
    put("a").unwrap();
    assert_eq!(engine.stats().refused_for_memory, 0);
    for refused in 1..=3 {
        assert!(put("b").is_err());
        assert_eq!(engine.stats().refused_for_memory, refused);
    }
}

#[test]
fn memtables_near_their_bound_are_told_until_they_are_flushed() {
    let (engine, _fs) = simulated(|options| options.limits.memtables_bytes = 400 << 10);
    let mut bytes_before = 0;
    for row in 0..2_000 {
        if engine.is_pressed() {
            break;
        }
        bytes_before = engine.stats().memtable_bytes;
        let pending = put(&engine, &format!("{row:04}"), &"v".repeat(1_000));
        engine.core.apply_left();
        engine.core.wal.write_group(false);
        pending.wait().unwrap();
    }
    assert!(engine.is_pressed() && bytes_before <= 600 << 10, "{bytes_before}");
    assert!(engine.stats().memtable_bytes > 600 << 10);
    // No flush ends what keeps writes from being taken here.
    engine.core.condition.set_no_room(&Error::DiskFull);
    assert!(!engine.is_pressed());
    engine.core.condition.set_lack(None);
    engine.flush(&name()).unwrap();
    assert!(!engine.is_pressed());
}

#[test]
fn flushes_that_fail_are_counted() {
    let (engine, fs) = simulated(|options| options.limits.reserve_bytes = 0);
    let pending = put(&engine, "r", &"v".repeat(2_000));
    engine.pump().unwrap();
    pending.wait().unwrap();
    fs.set_capacity(fs.used_bytes());
    assert!(engine.flush(&name()).is_err());
    assert_eq!((engine.stats().flush_failures, engine.stats().flushes), (1, 0));
    fs.set_capacity(u64::MAX);
    engine.flush(&name()).unwrap();
    assert_eq!((engine.stats().flush_failures, engine.stats().flushes), (1, 1));
}

/// Damages each file at the same place; done again, it mends them.
fn damage(fs: &SimFs) {
    let dir = Path::new("/d");
    for name in fs.list(dir).unwrap().iter().filter(|name| name.starts_with("sst-")) {
        fs.flip_bit(&dir.join(name), 60, 1).unwrap();
    }
}

/// Whoever asked for it. A flush is not among them.
#[test]
fn compactions_that_fail_are_counted() {
    let clock = Arc::new(ManualClock::new(Timestamp(1000)));
    let (engine, fs) = simulated(|options| {
        options.limits.compaction_files_min = 2;
        options.clock = Arc::clone(&clock) as Arc<dyn basalt_store::Clock>;
    });
    for value in ["1", "2"] {
        drop(put(&engine, "r", value));
        engine.pump().unwrap();
        engine.flush(&name()).unwrap();
    }
    let failures = || engine.stats().compaction_failures;
    damage(&fs);
    assert_eq!(failures(), 0);
    assert!(engine.compact(&name(), Compaction::Minor).is_err());
    assert_eq!(failures(), 1);
    assert!(engine.compact(&name(), Compaction::Major).is_err());
    assert_eq!(failures(), 2);
    clock.advance(10_000);
    assert!(engine.core.compact_due().is_err());
    assert_eq!((failures(), engine.stats().compactions, engine.stats().flush_failures), (3, 0, 0));
    damage(&fs);
    clock.advance(20_000);
    engine.core.compact_due().unwrap();
    assert_eq!((failures(), engine.stats().compactions), (3, 2), "one of each family");
}

/// They are put off as compactions are, and told as such.
#[test]
fn splits_that_fail_are_counted_with_compactions() {
    let (engine, fs) = simulated(|options| options.limits.region_bytes_max = 1);
    for row in ["r", "s"] {
        drop(put(&engine, row, "v"));
    }
    engine.pump().unwrap();
    engine.flush(&name()).unwrap();
    damage(&fs);
    assert!(engine.core.compact_due().is_err());
    assert_eq!((engine.stats().compaction_failures, engine.stats().splits), (1, 0));
    damage(&fs);
    engine.core.compact_due().unwrap();
    assert_eq!((engine.stats().compaction_failures, engine.stats().splits), (1, 1));
}

#[test]
fn a_block_that_is_read_again_is_a_hit() {
    let (engine, _fs) = simulated(|_| {});
    let pending = put(&engine, "r", "v");
    engine.pump().unwrap();
    pending.wait().unwrap();
    engine.flush(&name()).unwrap();
    let counted = || (engine.stats().block_cache_hits, engine.stats().block_cache_misses);
    scan(&engine, Scan::all());
    let (hits, misses) = counted();
    assert!(misses > 0);
    scan(&engine, Scan::all());
    assert!(counted().0 > hits && counted().1 == misses, "{hits} {misses} {:?}", counted());
}

/// Keeps the lines of a log.
#[derive(Debug, Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Subscriber for Heard {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

/// What a work logs.
pub(super) fn heard(work: impl FnOnce()) -> Vec<String> {
    let heard = Heard::default();
    tracing::subscriber::with_default(heard.clone(), || {
        // Another test may have been the first to come to a line, just when nobody listened.
        tracing::callsite::rebuild_interest_cache();
        work();
    });
    std::mem::take(&mut *heard.0.lock().unwrap())
}

/// The lines of a flush that a full disk puts off, of the flush, and of a compaction.
fn lines_of_work() -> Vec<String> {
    let (engine, fs) = simulated(|options| {
        (options.limits.reserve_bytes, options.limits.memtable_bytes) = (0, 1_000);
    });
    heard(|| {
        let pending = put(&engine, "r", &"v".repeat(2_000));
        engine.core.apply_left();
        engine.core.wal.write_group(false);
        pending.wait().unwrap();
        fs.set_capacity(fs.used_bytes());
        assert!(engine.pump().is_err());
        fs.set_capacity(u64::MAX);
        engine.pump().unwrap();
        engine.compact(&name(), Compaction::Major).unwrap();
    })
}

/// Work that is put off says where, why, and that it is tried again; work that is done says how much and how long.
#[test]
fn work_is_told_with_its_place() {
    // Once before, so that no other test is about to be the first to come to a line.
    lines_of_work();
    let lines = lines_of_work();
    let told = |level: &str, parts: &[&str]| {
        lines.iter().any(|line| line.starts_with(level) && parts.iter().all(|part| line.contains(part)))
    };
    let place = "table=t region=";
    assert!(told("WARN", &["put off; it is tried again", "work=\"flush\"", place, "error="]), "{lines:?}");
    assert!(told("DEBUG", &["message=flushed", place, " bytes=", "took_ms="]), "{lines:?}");
    assert!(told("DEBUG", &["message=compacted", place, " bytes=", "took_ms=", "is_major=true"]), "{lines:?}");
}
