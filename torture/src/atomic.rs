//! `atomic`: rows are atomic, a check-and-put has one winner, a counter counts.
//!
//! Threads of a child process change a store over the engine and tell what they ask and what they are answered; the child
//! is killed, and what it told is the ledger. Every row holds one value in all its cells and both families; of each
//! contested key at most one thread was told that it won, and its mark is there; a counter lies between what was
//! acknowledged and what was asked.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use basalt_engine::io::{Rng as _, SplitMix};
use basalt_engine::{Engine, EngineOptions, Limits};
use basalt_store::{
    CheckAndMutate, Comparison, Durability, FamilyDescriptor, Increment, MutationBatch, Scan, Store, TableDescriptor,
    TableName,
};

use crate::campaign::wait;

const THREADS: u64 = 8;
const ROWS: u64 = 20;
const CELLS: u64 = 5;
const FAMILIES: [&[u8]; 2] = [b"f", b"g"];
const COUNTER: &str = "counter";

/// What all children told.
#[derive(Debug, Default)]
struct Told {
    asked: i64,
    counted: i64,
    /// Who was told to have won a key.
    winners: BTreeMap<String, String>,
    /// Of each row, the values that were asked, and how many changes of it were answered.
    operations: u64,
}

pub(crate) fn run(seed: u64, kills: u64) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let mut rng = SplitMix::new(seed);
    let mut told = Told::default();
    for kill in crate::verdict::rounds("atomic", kills) {
        one_life(folder.path(), kill, Duration::from_millis(50 + rng.below(250)), &mut told)?;
        verify(folder.path(), &told).with_context(|| format!("after kill {kill}"))?;
    }
    Ok(format!(
        "{kills} kills, {} answers, counter at {} of {} asked, {} contests: 0 half rows, 0 second winners",
        told.operations,
        told.counted,
        told.asked,
        told.winners.len()
    ))
}

/// Starts a child on the folder, kills it after a while and takes what it told.
fn one_life(dir: &Path, life: u64, time: Duration, told: &mut Told) -> Result<()> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg("atomic-child")
        .arg(dir)
        .arg(life.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let output = child.stdout.take().context("a child without output")?;
    let mut lines = BufReader::new(output).lines();
    let first = lines.next().context("the child tells nothing")??;
    ensure!(first == "open", "the child says {first:?}");
    // The pipe is read beside, or the child would wait for us.
    let reader = std::thread::spawn(move || lines.collect::<std::io::Result<Vec<String>>>());
    wait(time);
    child.kill()?;
    child.wait()?;
    let lines = reader.join().map_err(|_| anyhow::anyhow!("the reader panicked"))??;
    for line in &lines {
        hear(line, told)?;
    }
    Ok(())
}

/// A line that the kill cut reads as none of these, and is the last of its kind only.
fn hear(line: &str, told: &mut Told) -> Result<()> {
    let words: Vec<&str> = line.split(' ').collect();
    match words.as_slice() {
        ["ask", "."] => told.asked += 1,
        ["counted", value, "."] => {
            told.counted = told.counted.max(value.parse()?);
            told.operations += 1;
        }
        ["won", key, by, "."] => {
            if let Some(other) = told.winners.insert((*key).to_owned(), (*by).to_owned()) {
                bail!("{key} was won by {other} and by {by}");
            }
            told.operations += 1;
        }
        ["put", "."] => told.operations += 1,
        _ => {}
    }
    Ok(())
}

fn verify(dir: &Path, told: &Told) -> Result<()> {
    let engine = open(dir)?;
    let mut scanner = engine.scan(&table()?, Scan::all())?;
    let mut found: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    while let Some(batch) = scanner.next_wait() {
        for row in batch?.rows() {
            let values = row.cells().map(|cell| cell.value.to_vec()).collect();
            found.insert(String::from_utf8_lossy(row.key()).into_owned(), values);
        }
    }
    for (key, values) in found.iter().filter(|(key, _)| key.starts_with("row")) {
        let is_whole = values.len() as u64 == CELLS * 2 && values.windows(2).all(|pair| pair.first() == pair.last());
        ensure!(is_whole, "{key} is torn: {values:?}");
    }
    for (key, by) in &told.winners {
        let holds = found.get(key).and_then(|values| values.first());
        ensure!(holds.is_some_and(|value| value == by.as_bytes()), "{key} was won by {by} and holds {holds:?}");
    }
    let counter = found.get(COUNTER).and_then(|values| values.first()?.first_chunk()).copied();
    let counter = counter.map_or(0, i64::from_be_bytes);
    ensure!(
        (told.counted..=told.asked).contains(&counter),
        "the counter is {counter}, {} were answered and {} asked",
        told.counted,
        told.asked
    );
    engine.close()?;
    Ok(())
}

/// The child: changes the store until it is killed.
pub(crate) fn child(dir: &Path, life: u64) -> Result<()> {
    let engine = open(dir)?;
    if engine.list_tables()?.is_empty() {
        let families = FAMILIES.iter().map(|name| FamilyDescriptor::new(*name)).collect();
        engine.create_table(TableDescriptor::new(table()?, families), &["row10".into()])?;
    }
    say("open")?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let engine = Arc::clone(&engine);
                scope.spawn(move || change(&engine, life, thread))
            })
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?)
    })
}

fn change(engine: &Engine, life: u64, thread: u64) -> Result<()> {
    let table = table()?;
    let mut rng = SplitMix::new(life << 8 | thread);
    for step in 0_u64.. {
        let value = format!("{life}-{thread}-{step}");
        let mut batch = MutationBatch::new(Durability::Fsync);
        let mut row = batch.row(format!("row{:02}", rng.below(ROWS)).as_bytes())?;
        for (family, cell) in FAMILIES.iter().flat_map(|family| (0..CELLS).map(move |cell| (family, cell))) {
            row.put(family, format!("q{cell}").as_bytes(), None, value.as_bytes())?;
        }
        engine.apply(&table, batch).wait()?;
        say("put .")?;
        say("ask .")?;
        let (row, family, qualifier) = (COUNTER.into(), "f".into(), "n".into());
        let increment = Increment { row, family, qualifier, amount: 1, durability: Durability::Fsync };
        say(&format!("counted {} .", engine.increment(&table, increment).wait()?))?;
        // All threads come by the same keys, at about the same time.
        let key = format!("win{life:05}-{step:06}");
        let mut mutation = MutationBatch::new(Durability::Fsync);
        mutation.row(key.as_bytes())?.put(b"f", b"by", None, value.as_bytes())?;
        let (row, family, qualifier) = (key.clone().into(), "f".into(), "by".into());
        let check = CheckAndMutate { row, family, qualifier, comparison: Comparison::Equal, expected: None, mutation };
        if engine.check_and_mutate(&table, check).wait()? {
            say(&format!("won {key} {value} ."))?;
        }
    }
    Ok(())
}

/// One line, whole: the pipe takes it in one piece.
fn say(line: &str) -> Result<()> {
    Ok(std::io::stdout().lock().write_all(format!("{line}\n").as_bytes())?)
}

fn table() -> Result<TableName> {
    Ok("atomic".parse()?)
}

/// Small memtables, so that every life flushes and compacts.
fn open(dir: &Path) -> Result<Arc<Engine>> {
    let limits = Limits {
        wal_segment_bytes: 256 << 10,
        wal_bytes_max: 1 << 20,
        reserve_bytes: 64 << 10,
        memtable_bytes: 64 << 10,
        memtables_bytes: 1 << 20,
        block_cache_bytes: 1 << 20,
        ..Limits::default()
    };
    Ok(Engine::open(EngineOptions { limits, ..EngineOptions::new(dir) })?)
}
