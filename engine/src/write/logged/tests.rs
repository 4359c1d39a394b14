//! Changes to which something happens between their choice of regions and their end.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::channel;

use basalt_store::{FamilyDescriptor, MutationBatch, SplitAt, Store as _, TableDescriptor, TableName, Timestamp};
use bytes::Bytes;

use super::*;
use crate::io::SimFs;
use crate::mutation::MutationWriter;
use crate::{Engine, EngineOptions, Workers};

/// An engine with a table of one region.
fn open() -> (Arc<Engine>, Arc<Table>) {
    let options = EngineOptions { fs: Arc::new(SimFs::new(1)), ..EngineOptions::new(Path::new("/d")) };
    let engine = Engine::open(EngineOptions { workers: Workers::Manual, ..options }).unwrap();
    let name: TableName = "t".parse().unwrap();
    engine.create_table(TableDescriptor::new(name.clone(), vec![FamilyDescriptor::new("f")]), &[]).unwrap();
    let table = engine.core.table(&name).unwrap();
    (engine, table)
}

/// A change of one row, which is none.
fn logged(table: &Table) -> Logged {
    let mut writer = MutationWriter::begin(table.id, Timestamp(7), 0);
    writer.row(b"m", 0);
    Logged {
        record: writer.finish(),
        numbers: 1,
        level: Durability::Async,
        writes_log: false,
        deletes: false,
        deletes_held: None,
    }
}

fn place(regions: &Regions) -> Placed {
    Placed::new(regions, &[regions.index_of(b"m")])
}

/// Its halves take them: what went into its memtables would be in no file and no longer seen.
#[test]
fn a_region_that_is_split_meanwhile_takes_no_rows() {
    let (engine, table) = open();
    let (asked, taken) = (Cell::new(0), Cell::new(None));
    let place = |regions: &Regions| {
        let placed = place(regions);
        if asked.replace(asked.get() + 1) == 0 {
            engine.core.split_region(&table, &SplitAt::Key("g".into())).unwrap();
        }
        placed
    };
    let insert = |placed: &Placed, _| taken.set(placed.regions.first().map(|(region, _)| region.start().clone()));
    engine.core.commit_logged(&table, logged(&table), place, insert, Box::new(|_| {}));
    assert_eq!((asked.get(), taken.take()), (2, Some(Bytes::from("g"))));
}

/// It has its number and never comes to its end, so no reader would ever see what comes after it in its regions, and no sender of
/// that would hear of it. All are told instead, whoever's thread it died on.
#[test]
fn a_change_that_dies_half_way_is_the_end_of_the_engine() {
    let (engine, table) = open();
    let (tell, told) = channel();
    let dies = || {
        let answer = Box::new(move |result| tell.send(result).unwrap());
        engine.core.commit_logged(
            &table,
            logged(&table),
            place,
            |_, _| std::panic::resume_unwind(Box::new(())),
            answer,
        );
    };
    assert!(catch_unwind(AssertUnwindSafe(dies)).is_err());
    assert!(matches!(engine.core.condition.check(), Err(Error::Poisoned { .. })));
    assert!(told.try_recv().is_err(), "its answer went with it");
    let refused = engine.apply(&"t".parse().unwrap(), {
        let mut batch = MutationBatch::new(Durability::Fsync);
        batch.row(b"m").unwrap().put(b"f", b"q", None, b"v").unwrap();
        batch
    });
    assert_eq!(refused.wait().unwrap_err().kind(), basalt_store::ErrorKind::ReadOnly);
}
