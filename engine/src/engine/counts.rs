//! What goes wrong is counted, and what is read twice.

use std::path::Path;
use std::sync::Arc;

use super::tests::{name, options, put, scan, table};
use super::*;
use crate::io::SimFs;

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
        engine.core.apply_gathered(true);
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
