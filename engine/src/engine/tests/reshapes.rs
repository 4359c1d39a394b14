//! Tables that are changed while other work goes on.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use basalt_store::{
    Columns, Durability, Error as StoreError, ErrorKind, FamilyDescriptor, Filter, Fold, FoldedRow, Get, RowPut,
};

use super::*;
use crate::io::SimFs;

/// Folds nothing. In the first row that it sees it says so, and waits there.
#[derive(Debug)]
struct Pausing(Mutex<Option<(Sender<()>, Receiver<()>)>>);

impl Fold for Pausing {
    fn name(&self) -> &'static str {
        "pausing"
    }

    fn fold(&self, _cells: &[RowPut<'_>], _out: &mut FoldedRow) -> bool {
        let pause = self.0.lock().unwrap().take();
        if let Some((begun, go_on)) = pause {
            begun.send(()).unwrap();
            go_on.recv().unwrap();
        }
        false
    }
}

fn write(engine: &Engine, row: &str) {
    let mut batch = MutationBatch::new(Durability::Async);
    let mut changes = batch.row(row.as_bytes()).unwrap();
    changes.put(b"f", b"p", None, b"1").unwrap().put(b"f", b"q", None, b"2").unwrap();
    assert!(engine.apply(&name(), batch).wait().unwrap().failed.is_empty());
}

/// Who waits for a long compaction, to alter its table, holds up no flush: in the end all writes of all tables would wait for that.
#[test]
fn a_table_is_flushed_while_one_waits_to_alter_it() {
    let pausing = Arc::new(Pausing(Mutex::default()));
    let mut options = options(Arc::new(SimFs::new(1)), Path::new("/d"), Workers::Manual);
    options.folds = vec![Arc::clone(&pausing) as Arc<dyn Fold>];
    let engine = Engine::open(options).unwrap();
    let family = FamilyDescriptor { fold: Some("pausing".into()), ..FamilyDescriptor::new("f") };
    let before = TableDescriptor::new(name(), vec![family]);
    engine.create_table(before.clone(), &[]).unwrap();
    write(&engine, "a");
    engine.flush(&name()).unwrap();
    let (tell_begun, begun) = channel();
    let (go_on, told_to_go_on) = channel();
    *pausing.0.lock().unwrap() = Some((tell_begun, told_to_go_on));
    let after = before.with_attribute("k", "v");
    let (is_altering, (tell_flushed, flushed)) = (AtomicBool::new(false), channel());
    let is_flushed = std::thread::scope(|scope| {
        scope.spawn(|| engine.compact(&name(), Compaction::Major).unwrap());
        begun.recv().unwrap();
        scope.spawn(|| {
            is_altering.store(true, Ordering::Release);
            engine.alter_table(after.clone()).unwrap();
        });
        // Then a few more, until it waits; on a busy machine each may last as long as a time slice.
        let mut left = 100;
        while left > 0 {
            left -= u32::from(is_altering.load(Ordering::Acquire));
            std::thread::yield_now();
        }
        write(&engine, "b");
        scope.spawn(|| {
            engine.flush(&name()).unwrap();
            tell_flushed.send(()).unwrap();
        });
        let is_flushed = flushed.recv_timeout(Duration::from_secs(10)).is_ok();
        assert_ne!(engine.describe_table(&name()).unwrap(), after, "it waits for the compaction");
        go_on.send(()).unwrap();
        is_flushed
    });
    assert!(is_flushed);
    assert_eq!(engine.describe_table(&name()).unwrap(), after);
    assert_eq!((engine.stats().files_count, scan(&engine, Scan::all()).len()), (2, 2));
    engine.drop_table(&name()).unwrap();
    assert_eq!(engine.stats().files_count, 0);
}

/// A scan or get that goes on while its table is emptied does not end as if it had read all: regions that it comes to later have
/// lost their files.
#[test]
fn what_reads_a_table_that_is_emptied_meanwhile_ends_with_an_error() {
    let mut options = options(Arc::new(SimFs::new(1)), Path::new("/d"), Workers::Manual);
    options.limits.scan_batches_ahead = 1;
    let engine = Engine::open(options).unwrap();
    engine.create_table(TableDescriptor::new(name(), vec![FamilyDescriptor::new("f")]), &["m".into()]).unwrap();
    // More of the first region than a scan reads ahead.
    for row in ["a", "b", "c", "d", "e", "z"] {
        write(&engine, row);
    }
    engine.flush(&name()).unwrap();
    let mut scanner = engine.scan(&name(), Scan { batch_bytes: 1, ..Scan::all() }).unwrap();
    assert!(scanner.next_wait().unwrap().is_ok());
    let table = engine.core.table(&name()).unwrap();
    engine.truncate_table(&name(), TruncatedRegions::Kept).unwrap();
    let ends: Vec<_> = std::iter::from_fn(|| scanner.next_wait()).collect();
    let is_told = |error: &StoreError| error.kind() == ErrorKind::Unavailable && error.to_string().contains("emptied");
    assert!(matches!(ends.last(), Some(Err(error)) if is_told(error)), "{ends:?}");
    let get = Get::rows(vec!["z".into()]).with_columns(Columns::family("f"));
    assert!(matches!(engine.core.get(&table, &get), Err(Error::TableReplaced { .. })));
}

/// Rule S-SCAN-2: whoever reads a scan that finds nothing hears of it now and then, to give up.
#[test]
fn a_scan_that_passes_over_many_rows_comes_back_between_them() {
    let mut options = options(Arc::new(SimFs::new(1)), Path::new("/d"), Workers::Manual);
    (options.limits.memtable_bytes, options.limits.memtables_bytes) = (256 << 20, 256 << 20);
    let engine = Engine::open(options).unwrap();
    engine.create_table(TableDescriptor::new(name(), vec![FamilyDescriptor::new("f")]), &[]).unwrap();
    let mut batch = MutationBatch::new(Durability::Skip);
    for row in 0..70_000_u32 {
        batch.row(&row.to_be_bytes()).unwrap().put(b"f", b"q", None, b"").unwrap();
    }
    assert!(engine.apply(&name(), batch).wait().unwrap().failed.is_empty());
    let nothing = Filter::ColumnPrefix("x".into());
    let mut scanner = engine.scan(&name(), Scan::all().with_filter(nothing)).unwrap();
    let steps: Vec<bool> = std::iter::from_fn(|| scanner.step_wait()).map(|batch| batch.unwrap().is_empty()).collect();
    assert_eq!(steps, [true, true]);
    assert_eq!(scanner.cost().cells, 70_000);
}
