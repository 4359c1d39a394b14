//! Work that cannot be done now, and work that is done all the same.

use std::path::Path;

use super::tests::{options, put, table};
use super::*;
use crate::io::{Fault, FaultKind, FaultSpan, SimFs};

/// An engine without threads, on a disk of its own, and a table.
fn simulated(splits: &[Bytes], change: impl FnOnce(&mut EngineOptions)) -> (Arc<Engine>, SimFs) {
    let fs = SimFs::new(1);
    let mut options = options(Arc::new(fs.clone()), Path::new("/d"), Workers::Manual);
    change(&mut options);
    let engine = Engine::open(options).unwrap();
    engine.create_table(table(), splits).unwrap();
    (engine, fs)
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
    let (engine, fs) = simulated(&["m".into(), "t".into()], |options| {
        options.limits.wal_bytes_max = 48 << 10;
        (options.limits.memtable_bytes, options.limits.memtables_bytes) = (1 << 20, 1 << 20);
    });
    for row in 0..60 {
        write(&engine, &format!("{}{row}", ["a", "p", "z"][row % 3]), &"v".repeat(500));
    }
    assert!(engine.stats().wal_bytes > 48 << 10);
    fs.set_fault(Some(Fault { after_calls: 0, kind: FaultKind::Eio, span: FaultSpan::Once }));
    assert!(engine.core.flush_due().is_err());
    assert_eq!((engine.stats().flush_failures, engine.stats().flushes), (1, 0));
    engine.core.flush_due().unwrap();
    let stats = engine.stats();
    assert!(stats.flushes > 0 && stats.wal_bytes <= 48 << 10, "{stats:?}");
}
