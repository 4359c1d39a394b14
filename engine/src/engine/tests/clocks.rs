//! Times given by the server.

use std::path::Path;

use basalt_store::{CheckAndMutate, Clock, Comparison, Durability, ManualClock, Timestamp};

use super::*;
use crate::io::{LossMode, SimFs};

/// Row, qualifier, time and value of every version.
type Cells = Vec<(Vec<u8>, Vec<u8>, u64, Vec<u8>)>;

fn cells(engine: &Engine) -> Cells {
    let mut scanner = engine.scan(&name(), Scan { raw: true, versions: u32::MAX, ..Scan::all() }).unwrap();
    let mut all = Cells::new();
    while let Some(batch) = scanner.next_wait() {
        for row in batch.unwrap().rows() {
            for cell in row.cells() {
                all.push((row.key().to_vec(), cell.qualifier.to_vec(), cell.timestamp.0, cell.value.to_vec()));
            }
        }
    }
    all
}

fn put(engine: &Engine, row: &str, at: Option<u64>) {
    let mut batch = MutationBatch::new(Durability::Async);
    batch.row(row.as_bytes()).unwrap().put(b"f", b"q", at.map(Timestamp), &0_u64.to_be_bytes()).unwrap();
    assert!(engine.apply(&name(), batch).wait().unwrap().failed.is_empty());
}

/// Counters, appends and checks go over a cell that is ahead of the clock; the clock does not go with them, nor after a restart.
#[test]
fn a_cell_of_the_future_moves_no_clock() {
    let fs = SimFs::new(1);
    let open = |fs: &SimFs| Engine::open(options(Arc::new(fs.clone()), Path::new("/d"), Workers::Manual)).unwrap();
    let engine = open(&fs);
    engine.create_table(table(), &[]).unwrap();
    let rows = ["added", "appended", "checked"];
    for row in rows {
        put(&engine, row, Some(1 << 42));
    }
    let durability = Durability::Async;
    let column = || (Bytes::from("f"), Bytes::from("q"));
    let (family, qualifier) = column();
    let increment = Increment { row: "added".into(), family, qualifier, amount: 2, durability };
    engine.increment(&name(), increment).wait().unwrap();
    let (family, qualifier) = column();
    let append = Append { row: "appended".into(), family, qualifier, value: "more".into(), durability };
    engine.append(&name(), append).wait().unwrap();
    let mut mutation = MutationBatch::new(durability);
    mutation.row(b"checked").unwrap().put(b"f", b"q", None, b"new").unwrap().delete_column(b"g", b"q", None).unwrap();
    let (family, qualifier) = column();
    let (comparison, expected) = (Comparison::Equal, Some(Bytes::copy_from_slice(&0_u64.to_be_bytes())));
    let check = CheckAndMutate { row: "checked".into(), family, qualifier, comparison, expected, mutation };
    assert!(engine.check_and_mutate(&name(), check).wait().unwrap());
    put(&engine, "live", None);
    let synced = engine.sync();
    engine.core.wal.write_group(false);
    synced.wait().unwrap();
    let before = cells(&engine);
    let of = |cells: &Cells, row: &str| cells.iter().find(|cell| cell.0 == row.as_bytes()).map(|cell| cell.2);
    let times = rows.map(|row| of(&before, row).unwrap());
    assert_eq!(times, [(1 << 42) + 1, (1 << 42) + 1, 1 << 42]);
    assert_eq!(of(&before, "live"), Some(1000));
    let engine = open(&fs.power_loss(LossMode::Hostile));
    assert_eq!(cells(&engine), before);
    assert_eq!(engine.core.last_stamp(), Timestamp(1000));
    put(&engine, "later", None);
    let synced = engine.sync();
    engine.core.wal.write_group(false);
    synced.wait().unwrap();
    assert_eq!(of(&cells(&engine), "later"), Some(1000));
}

/// While the clock is behind, each append to a cell is a millisecond later than the one before; what is put next is no older.
#[test]
fn a_put_is_no_older_than_appends_before_it_though_the_clock_went_back() {
    let fs = SimFs::new(1);
    let open = |fs: &SimFs| {
        let mut options = options(Arc::new(fs.clone()), Path::new("/d"), Workers::Manual);
        let clock = Arc::new(ManualClock::new(Timestamp(2000)));
        options.clock = Arc::clone(&clock) as Arc<dyn Clock>;
        (Engine::open(options).unwrap(), clock)
    };
    let time_of = |engine: &Engine, row: &str| {
        let synced = engine.sync();
        engine.core.wal.write_group(false);
        synced.wait().unwrap();
        cells(engine).iter().find(|cell| cell.0 == row.as_bytes()).map(|cell| cell.2)
    };
    let (engine, clock) = open(&fs);
    engine.create_table(table(), &[]).unwrap();
    let append = || {
        let (row, family, qualifier) = (Bytes::from("appended"), Bytes::from("f"), Bytes::from("q"));
        let append = Append { row, family, qualifier, value: "more".into(), durability: Durability::Async };
        engine.append(&name(), append).wait().unwrap();
    };
    append();
    clock.set(Timestamp(1000));
    append();
    append();
    put(&engine, "put", None);
    assert_eq!((time_of(&engine, "appended"), time_of(&engine, "put")), (Some(2002), Some(2002)));
    let (engine, clock) = open(&fs.power_loss(LossMode::Hostile));
    clock.set(Timestamp(1000));
    put(&engine, "later", None);
    assert!(time_of(&engine, "later") >= Some(2002));
}

/// A tombstone masks what is put at its time, which is the last one given: that is passed, also by the next start.
#[test]
fn s_del_8_a_put_after_a_delete_is_seen_though_the_clock_went_back_later() {
    for (reopens, flushes) in [(false, false), (true, false), (true, true)] {
        let fs = SimFs::new(1);
        let open = |fs: &SimFs, now| {
            let mut options = options(Arc::new(fs.clone()), Path::new("/d"), Workers::Manual);
            let clock = Arc::new(ManualClock::new(Timestamp(now)));
            options.clock = Arc::clone(&clock) as Arc<dyn Clock>;
            (Engine::open(options).unwrap(), clock)
        };
        let sync = |engine: &Engine| {
            let synced = engine.sync();
            engine.core.wal.write_group(false);
            synced.wait().unwrap();
        };
        let (mut engine, clock) = open(&fs, 2000);
        engine.create_table(table(), &[]).unwrap();
        put(&engine, "row", None);
        let mut batch = MutationBatch::new(Durability::Async);
        batch.row(b"row").unwrap().delete_column(b"f", b"q", None).unwrap();
        engine.apply(&name(), batch).wait().unwrap();
        sync(&engine);
        if flushes {
            engine.flush(&name()).unwrap();
        }
        clock.set(Timestamp(1000));
        if reopens {
            engine = open(&fs.power_loss(LossMode::Hostile), 1000).0;
        }
        put(&engine, "row", None);
        sync(&engine);
        let row = engine.get(&name(), Get::row("row")).wait().unwrap();
        assert_eq!(row.row(0).map(|row| row.cells().count()), Some(1), "{reopens} {flushes}");
    }
}
