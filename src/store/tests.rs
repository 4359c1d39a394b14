//! Opening, closing and refusing stores, and what their failures end with.

use std::io;

use basalt_engine::Workers;
use basalt_engine::io::{IoOp, SimFs};
use basalt_schema::UidKind;
use rustix::io::Errno;

use super::*;
use crate::config::Mode;

fn memory() -> Config {
    let mut config = Config::default();
    config.store.kind = StoreKind::Memory;
    config
}

#[tokio::test]
async fn a_poisoned_store_ends_the_daemon_with_one_line() {
    let mut opened = OpenStore::open(&memory()).unwrap();
    let (raise, poisoned) = watch::channel(None);
    opened.poisoned = poisoned;
    assert!(!opened.is_poisoned());
    raise.send_replace(Some("fdatasync of wal-1: EIO".to_owned()));
    assert!(opened.is_poisoned());
    let failure = opened.poisoned().await;
    assert_eq!(failure.exit, Exit::Disk);
    assert!(failure.line.contains("EIO") && !failure.line.contains('\n'), "{failure}");
}

#[test]
fn settings_that_no_table_can_have_are_refused_as_such() {
    let mut config = memory();
    config.schema.salt_buckets = 60_000;
    assert_eq!(OpenTables::open(&config).unwrap_err().exit, Exit::Config);
}

/// S-APPEND-REPAIR: a daemon that only reads writes nothing while it answers.
#[test]
fn s_append_repair_only_where_the_daemon_writes() {
    for (mode, repairs) in [(Mode::ReadWrite, true), (Mode::WriteOnly, true), (Mode::ReadOnly, false)] {
        let mut config = memory();
        (config.schema.repair_appends, config.server.mode) = (true, mode);
        assert_eq!(settings(&config).unwrap().repair_appends, repairs, "{mode:?}");
    }
}

#[test]
fn each_failure_of_the_store_has_its_exit_code() {
    for (kind, exit) in [
        (ErrorKind::Corrupt, Exit::Damage),
        (ErrorKind::ReadOnly, Exit::TryLater),
        (ErrorKind::Unavailable, Exit::TryLater),
        (ErrorKind::Invalid, Exit::Failure),
    ] {
        assert_eq!(exit_of(kind), exit);
    }
    let locked = basalt_engine::Error::Locked { dir: "x".into() };
    assert_eq!(refused(&locked).exit, Exit::Locked);
    let poisoned = basalt_engine::Error::Poisoned { reason: "x".into() };
    assert_eq!(refused(&poisoned).exit, Exit::Disk);
    let failed = |op, kind: io::ErrorKind| {
        let source = kind.into();
        refused(&basalt_engine::Error::Io { op, path: "x".into(), source }).exit
    };
    assert_eq!(failed(IoOp::SyncData, io::ErrorKind::Other), Exit::Disk);
    assert_eq!(failed(IoOp::SyncDir, io::ErrorKind::StorageFull), Exit::TryLater);
    assert_eq!(failed(IoOp::Read, io::ErrorKind::Other), Exit::Failure);
}

/// What the engine says of a disk that cannot be read is not lost on its way through the crates.
#[test]
fn a_disk_that_cannot_be_read_is_not_better_later() {
    for (number, exit) in [(Errno::IO, Exit::Disk), (Errno::ACCESS, Exit::Failure), (Errno::NOSPC, Exit::TryLater)] {
        let engine = basalt_engine::Error::Io { op: IoOp::Read, path: "x".into(), source: number.into() };
        assert_eq!(refused(&engine).exit, exit);
        let tables = basalt_schema::Error::from(basalt_store::Error::from(engine));
        assert_eq!((exit_of_cause(tables.kind(), &tables), no_tables(&tables).exit), (exit, exit));
    }
    let closed = basalt_store::Error::Closed;
    assert_eq!(exit_of_cause(closed.kind(), &closed), Exit::TryLater);
}

/// A tool that only read has done its work, wherever the rows are that a kill left in the log.
#[test]
fn who_wrote_nothing_closes_on_a_full_disk() {
    let fs = SimFs::new(1);
    let open = |fs: &SimFs| {
        let mut options = EngineOptions::new("/d");
        (options.fs, options.workers) = (Arc::new(fs.clone()), Workers::Manual);
        options.limits.reserve_bytes = 0;
        let mut opened = OpenStore::open(&memory()).unwrap();
        opened.engine = Some(Engine::open(options).unwrap());
        opened
    };
    let put = |opened: &OpenStore| {
        let engine = opened.engine.as_ref().unwrap();
        let mut batch = basalt_store::MutationBatch::new(basalt_store::Durability::Fsync);
        batch.row(b"row").unwrap().put(b"id", b"tagv", None, &[0, 0, 9]).unwrap();
        let told = engine.apply(&"tsdb-uid".parse().unwrap(), batch);
        engine.pump().unwrap();
        told.wait()
    };
    let opened = open(&fs);
    Schema::open(Arc::clone(opened.engine.as_ref().unwrap()) as Arc<dyn Store>, SchemaConfig::default()).unwrap();
    put(&opened).unwrap();
    let fs = fs.process_kill();
    for (writes, exit) in [(false, None), (true, Some(Exit::TryLater))] {
        let opened = open(&fs);
        if writes {
            put(&opened).unwrap();
        }
        fs.set_capacity(0);
        assert_eq!(opened.close().err().map(|failure| failure.exit), exit, "{writes}");
        fs.set_capacity(u64::MAX);
    }
}

/// The shell can enable or drop a table that it disabled, over HBase too.
#[test]
fn a_disabled_table_keeps_nobody_from_the_shell() {
    let mut store = OpenStore::open(&memory()).unwrap();
    store.schema.is_shared = true;
    let tables = Schema::open(store.store(), store.schema.clone()).unwrap().tables().clone();
    store.store().disable_table(&tables.data).unwrap();
    store.check_tables().unwrap();
    assert_eq!(store.check_rows().unwrap_err().exit, Exit::TryLater, "points are not served without it");
}

/// A copy brings the names of UIDs first, and what leads from names to UIDs behind them.
#[test]
fn names_that_a_copy_did_not_bring_are_seen_by_the_next_open() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.store.data_dir = folder.path().to_owned();
    // Tables that were served have a log of the series index.
    let served = OpenTables::serve(&config).unwrap();
    served.close().unwrap();
    assert_eq!(OpenTables::serve(&config).unwrap().schema.rebuilt().log, basalt_schema::LogRead::Whole);
    let target = OpenTables::open_for_copy(&config).unwrap();
    target.begin_copy().unwrap();
    let mut batch = basalt_store::MutationBatch::new(basalt_store::Durability::Fsync);
    batch.row(&[0, 0, 1]).unwrap().put(b"name", b"metrics", None, b"m").unwrap();
    target.store.store().apply(&"tsdb-uid".parse().unwrap(), batch).wait().unwrap();
    target.close_unfinished().unwrap();
    let served = OpenTables::serve(&config).unwrap();
    let unled: Vec<_> = served.schema.uids_found().iter().map(|found| found.unled_count).collect();
    assert_eq!(unled, [1, 0, 0]);
    served.close().unwrap();
}

/// What one request writes to the UID table does not fail the names of another that comes before its sync.
#[test]
fn a_name_is_given_a_uid_while_an_earlier_write_is_not_synced() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = EngineOptions::new(folder.path());
    options.workers = Workers::Manual;
    let engine = Engine::open(options).unwrap();
    let schema = Arc::new(Schema::open(Arc::clone(&engine) as Arc<dyn Store>, SchemaConfig::default()).unwrap());
    let mut batch = basalt_store::MutationBatch::new(basalt_store::Durability::Fsync);
    batch.row(b"other").unwrap().put(b"id", b"tagv", None, &[0, 0, 9]).unwrap();
    let _unsynced = engine.apply(&schema.tables().uid, batch);
    let (tell, told) = std::sync::mpsc::channel();
    let assigning = std::thread::spawn(move || {
        let metrics = schema.uids().of(UidKind::Metric);
        let hex = metrics.uid_or_create("m").map(|uid| metrics.hex(uid));
        tell.send(hex.map_err(|cause| cause.to_string())).unwrap();
    });
    let answer = loop {
        if let Ok(answer) = told.recv_timeout(std::time::Duration::from_millis(50)) {
            break answer;
        }
        engine.pump().unwrap();
    };
    assert_eq!(answer.as_deref(), Ok("000001"));
    assigning.join().unwrap();
}
