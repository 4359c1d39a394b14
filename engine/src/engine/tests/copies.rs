//! Copies of a folder that were not taken of one instant.

use std::path::Path;

use super::counts::heard;
use basalt_store::Durability;

use super::*;
use crate::io::SimFs;

const DIR: &str = "/d";

fn open(fs: &SimFs) -> Arc<Engine> {
    Engine::open(options(Arc::new(fs.clone()), Path::new(DIR), Workers::Manual)).unwrap()
}

/// Puts two rows of tables, with what lies between one and the other, which is of another instant; a flush of the second's table is behind.
fn with_between(between: impl FnOnce(&SimFs)) -> SimFs {
    let fs = SimFs::new(1);
    let engine = open(&fs);
    let other: TableName = "u".parse().unwrap();
    engine.create_table(table(), &[]).unwrap();
    engine.create_table(TableDescriptor { name: other.clone(), ..table() }, &[]).unwrap();
    let put_both = |row: &str| {
        drop(put(&engine, row, "v"));
        let mut batch = MutationBatch::new(Durability::Fsync);
        batch.row(row.as_bytes()).unwrap().put(b"f", b"q", None, b"v").unwrap();
        drop(engine.apply(&other, batch));
        engine.pump().unwrap();
    };
    put_both("a");
    between(&fs);
    put_both("b");
    engine.flush(&other).unwrap();
    drop(Arc::try_unwrap(engine).map(std::mem::forget));
    fs.process_kill()
}

/// The lines of a start that warn of the log.
fn told(fs: &SimFs) -> Vec<String> {
    let start = || heard(|| drop(Arc::try_unwrap(open(&fs.snapshot())).map(std::mem::forget)));
    // Once before, so that no other test is about to be the first to come to a line.
    start();
    start().into_iter().filter(|line| line.starts_with("WARN") && line.contains("copied")).collect()
}

/// The row of the first table that lies behind it in the log is lost, and nothing is damaged.
#[test]
fn a_log_that_was_copied_before_the_files_is_told() {
    let mut early = None;
    let fs = with_between(|fs| early = Some(fs.snapshot()));
    assert!(told(&fs).is_empty(), "of one instant");
    let early = early.unwrap();
    for log in early.list(Path::new(DIR)).unwrap().iter().filter(|name| name.starts_with("wal-")) {
        let path = Path::new(DIR).join(log);
        let file = early.open(&path).unwrap();
        let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
        file.read_exact_at(0, &mut bytes).unwrap();
        fs.create(&path).unwrap().write_at(0, &bytes).unwrap();
    }
    let lines = told(&fs);
    assert_eq!(lines.len(), 1, "{lines:?}");
    // What comes then is behind all of it.
    let engine = open(&fs);
    drop(put(&engine, "c", "v"));
    engine.pump().unwrap();
    drop(Arc::try_unwrap(engine).map(std::mem::forget));
    assert!(told(&fs.process_kill()).is_empty());
}

/// A folder that was closed, and one that was restored, have a log that tells nothing.
#[test]
fn a_log_without_a_change_is_not_told() {
    let fs = with_between(|_| ());
    let engine = open(&fs);
    engine.backup(Path::new("/b"), &mut |_| {}).unwrap();
    engine.close().unwrap();
    assert!(told(&fs).is_empty());
    crate::restore(&fs, Path::new("/b"), Path::new("/r"), &mut |_| {}).unwrap();
    let lines = heard(|| drop(Engine::open(options(Arc::new(fs.clone()), Path::new("/r"), Workers::Manual)).unwrap()));
    assert!(!lines.iter().any(|line| line.starts_with("WARN")), "{lines:?}");
}
