//! The folders that `flip` damages: tables of several layouts, files of several ages, a log that goes on behind them.

use std::collections::BTreeMap;

use anyhow::Result;
use basalt_engine::Engine;
use basalt_engine::io::{Rng, SimFs, SplitMix};
use basalt_store::{
    BloomFilter, Compaction, Compression, Durability, FamilyDescriptor, MutationBatch, Store, TableDescriptor,
    TableName,
};

use crate::folder::{Content, Folder, bytes_of, content, open, put, small_limits, stop, without_old_segments};

const WRITES: u64 = 160;
const KEYS: u64 = 60;
/// Writes that are in the log alone, and how many of the last are of one sync.
const LOGGED: u64 = 6;
const LAST_GROUP: u64 = 3;

/// A folder, and the bytes that its files had in the midst of its making.
pub(crate) struct Mixed {
    pub(crate) folder: Folder,
    pub(crate) earlier: BTreeMap<String, Vec<u8>>,
}

pub(crate) fn mixed(seed: u64) -> Result<Mixed> {
    let mut rng = SplitMix::new(seed ^ 0xF01D);
    let fs = SimFs::new(seed);
    let engine = open(&fs, small_limits())?;
    let tables: Vec<TableName> = vec!["plain".parse()?, "packed".parse()?];
    create(&engine, &tables)?;
    let mut earlier = BTreeMap::new();
    for write in 0..WRITES {
        let table = tables.get(usize::from(rng.chance(1, 2))).unwrap_or(&tables[0]);
        put(&engine, table, &key(&mut rng), &value(&mut rng, write))?;
        match rng.below(40) {
            0 => engine.flush(table)?,
            1 => engine.compact(table, Compaction::Minor)?,
            2 => engine.compact(table, Compaction::Major)?,
            _ => {}
        }
        if write == WRITES / 2 {
            earlier = bytes_of(&fs)?;
        }
    }
    last_edit(&engine, &tables, &mut rng)?;
    let states = write_log(&engine, &mut rng)?;
    stop(&fs, engine)?;
    Ok(Mixed { folder: Folder { files: without_old_segments(bytes_of(&fs)?)?, states }, earlier })
}

fn create(engine: &Engine, tables: &[TableName]) -> Result<()> {
    for (name, is_plain) in tables.iter().zip([true, false]) {
        let mut family = FamilyDescriptor::new("f");
        family.block_bytes = 1024;
        if is_plain {
            family.compression = Compression::None;
            family.bloom = BloomFilter::RowColumn;
        } else {
            family.block_encoding = "PREFIX".into();
        }
        engine.create_table(TableDescriptor::new(name.clone(), vec![family]), &[])?;
    }
    Ok(())
}

/// What the manifest tells last: its end is where damage is hardest to tell from a torn tail.
fn last_edit(engine: &Engine, tables: &[TableName], rng: &mut SplitMix) -> Result<()> {
    let late = TableDescriptor::new("late".parse()?, vec![FamilyDescriptor::new("f")]);
    for table in tables {
        engine.flush(table)?;
    }
    if rng.chance(1, 2) {
        for table in tables {
            engine.snapshot(table, &format!("of-{table}"))?;
        }
        engine.create_table(late, &[])?;
    } else {
        engine.create_table(late, &[])?;
        for table in tables {
            engine.snapshot(table, &format!("of-{table}"))?;
        }
    }
    Ok(())
}

/// Writes that no flush follows; answers what there is after each of the last ones.
fn write_log(engine: &Engine, rng: &mut SplitMix) -> Result<Vec<Content>> {
    let late: TableName = "late".parse()?;
    let mut states = vec![content(engine)?];
    for write in 0..LOGGED {
        put(engine, &late, &key(rng), &value(rng, WRITES + write))?;
        states.push(content(engine)?);
    }
    let mut pending = Vec::new();
    for write in 0..LAST_GROUP {
        let (key, value) = (key(rng), value(rng, WRITES + LOGGED + write));
        let mut batch = MutationBatch::new(Durability::Fsync);
        batch.row(&key)?.put(b"f", b"q", None, &value)?;
        pending.push(engine.apply(&late, batch));
        let mut next = states.last().cloned().unwrap_or_default();
        next.insert(("late".to_owned(), key), vec![value]);
        states.push(next);
    }
    engine.pump()?;
    for pending in pending {
        pending.wait()?;
    }
    Ok(states)
}

fn key(rng: &mut SplitMix) -> Vec<u8> {
    format!("row{:03}", rng.below(KEYS)).into_bytes()
}

/// A value that is nobody else's, half of it hard to compress.
fn value(rng: &mut SplitMix, write: u64) -> Vec<u8> {
    let mut value = write.to_be_bytes().to_vec();
    for _ in 0..rng.below(20) {
        value.extend_from_slice(&rng.next_u64().to_be_bytes());
        value.extend_from_slice(b"the same");
    }
    value
}
