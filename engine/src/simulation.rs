//! Seeded histories over the simulated disk: writes, flushes, compactions and reads until a crash at a random step or
//! under a fault, then another life on a disk that may legally be found. One seed, one history.
//!
//! Checked at every opening and every scan: what was acknowledged is there, what was seen is not lost, what was not
//! acknowledged is whole or absent, rows are never torn, counters lie between what was and what may have been counted, a family
//! whose rows are folded holds in each column what it may, whatever was folded before a column was deleted, an append cell what was
//! appended, in order, of a family that is folded by value nothing but a put changes what is read, and a claimed row has one holder.
//!
//! Feature `sim`: the tests here run a few hundred histories, `basalt-torture sim` and `countdown` as many as are wanted.

mod appended;
mod by_value;
mod claims;
mod folded;
mod row;
mod told;

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use basalt_store::{
    Applied, Compaction, Durability, Increment, Lane, ManualClock, MutationBatch, Pending, SplitAt, Store, TableName,
    Timestamp,
};
use bytes::Bytes;

use self::row::{Content, Row, RowLedger, change, number, read_all};
use self::told::{Told, at};
use crate::io::{Fault, FaultKind, FaultSpan, LossMode, Rng, SimFs, SplitMix};
use crate::{Engine, EngineOptions, Error, Health, Limits, Workers};

const ROWS: u64 = 12;
const LIVES: u32 = 4;
const STEPS: u64 = 40;
/// Of a history that every step is failed in once.
const STEPS_UNDER_FAULT: u64 = 120;
const COUNTER: &str = "counter";

/// A promise that was broken, in words; or a call that must not fail and did.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("seed {seed}: {what}")]
pub struct Violation {
    /// Replays it.
    pub seed: u64,
    /// What was found, and what it should have been.
    pub what: String,
}

/// One history of four lives on disks and under faults drawn from `seed`; answers a hash of its course.
///
/// # Errors
/// The first broken promise.
pub fn history(seed: u64) -> Result<u64, Violation> {
    let mut history = History::new(seed);
    history.run().map_err(|what| Violation { seed, what })?;
    Ok(history.trace)
}

/// The history of `seed` under one fault, without drawn ones, then a power loss and a last look; answers whether it
/// was long enough for the fault to come.
///
/// # Errors
/// The first broken promise.
pub fn under_fault(seed: u64, fault: Fault) -> Result<bool, Violation> {
    History::new(seed).run_under(fault).map_err(|what| Violation { seed, what })
}

/// The table of every history, and the one that snapshots are looked at in.
fn named(name: &str) -> Told<TableName> {
    name.parse().map_err(|error| format!("{error}"))
}

fn row_key(row: u64) -> String {
    format!("row{row:02}")
}

/// A batch that is not answered yet.
struct Asked {
    pending: Pending<Applied>,
    durability: Durability,
    /// Its number.
    change: u64,
    /// Rows, and how many changes each has had with this one.
    rows: Vec<(u64, usize)>,
}

struct Counted {
    pending: Pending<i64>,
    durability: Durability,
}

/// An append, or a claim.
struct AskedOfRow<T> {
    pending: Pending<T>,
    durability: Durability,
    change: u64,
    row: u64,
}

struct History {
    table: Option<TableName>,
    rng: SplitMix,
    fs: SimFs,
    clock: Arc<ManualClock>,
    rows: BTreeMap<u64, RowLedger>,
    next_value: u64,
    next_change: u64,
    /// Increments that are surely counted, and those that may be.
    counted: i64,
    may_be_counted: i64,
    /// In the step before: what is put within the same millisecond is hidden, as in HBase.
    may_have_deleted: bool,
    /// What the counter was when it was last looked at in this life.
    counter_seen: i64,
    asked: Vec<Asked>,
    increments: Vec<Counted>,
    appends: Vec<AskedOfRow<Bytes>>,
    claims: BTreeMap<u64, claims::Ledger>,
    claims_asked: Vec<AskedOfRow<bool>>,
    table_made: bool,
    /// What the table held when the snapshot was taken, by its name.
    snapshots: BTreeMap<String, Content>,
    trace: u64,
    /// Calls of the life before, which might have failed.
    calls: u64,
}

fn poll<T: Unpin>(pending: &mut Pending<T>) -> Option<basalt_store::Result<T>> {
    match Pin::new(pending).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Some(answer),
        Poll::Pending => None,
    }
}

impl History {
    fn new(seed: u64) -> History {
        History {
            table: named("sim").ok(),
            rng: SplitMix::new(seed),
            fs: SimFs::new(seed),
            clock: Arc::new(ManualClock::new(Timestamp(1_000_000))),
            rows: (0..ROWS).map(|row| (row, RowLedger::default())).collect(),
            next_value: 0,
            next_change: 0,
            counted: 0,
            may_be_counted: 0,
            may_have_deleted: false,
            counter_seen: 0,
            asked: Vec::new(),
            increments: Vec::new(),
            appends: Vec::new(),
            claims: (0..claims::ROWS).map(|row| (row, claims::Ledger::default())).collect(),
            claims_asked: Vec::new(),
            table_made: false,
            snapshots: BTreeMap::new(),
            trace: 0,
            calls: 0,
        }
    }

    fn run(&mut self) -> Told {
        for life in 0..LIVES {
            self.draw_fault();
            self.one_life(&format!("life {life}"), STEPS)?;
        }
        self.last_look()
    }

    fn run_under(&mut self, fault: Fault) -> Told<bool> {
        self.fs.set_fault(Some(fault));
        self.one_life("under the fault", STEPS_UNDER_FAULT)?;
        let reached = self.calls > fault.after_calls;
        self.last_look()?;
        Ok(reached)
    }

    fn one_life(&mut self, life: &str, steps: u64) -> Told {
        match self.open() {
            Ok(engine) => self.live(&engine, steps).map_err(|what| at(life)(&what))?,
            Err(error @ (Error::Corrupt { .. } | Error::Missing { .. })) => return Err(at(life)(&error)),
            Err(_) => {}
        }
        self.end_life()
    }

    /// Nothing fails any more: what is there now is there.
    fn last_look(&mut self) -> Told {
        let last = at("at the end");
        self.fs.set_fault(None);
        self.fs.set_capacity(u64::MAX);
        let engine = self.open().map_err(|error| last(&error))?;
        self.check_all(&engine).map_err(|what| last(&what))?;
        self.check_snapshots(&engine).map_err(|what| last(&what))?;
        engine.verify().map_err(|error| last(&error))?;
        Ok(())
    }

    fn name(&self) -> Told<TableName> {
        self.table.clone().ok_or_else(|| "no table".to_owned())
    }

    fn draw_fault(&mut self) {
        let after_calls = self.rng.below(150);
        let (kind, span) = match self.rng.below(8) {
            0..4 => (FaultKind::Crash, FaultSpan::FromThenOn),
            4 => (FaultKind::Eio, FaultSpan::Once),
            5 => (FaultKind::Eio, FaultSpan::FromThenOn),
            6 => (FaultKind::Enospc, FaultSpan::Once),
            _ => (FaultKind::Enospc, FaultSpan::FromThenOn),
        };
        self.fs.set_fault(Some(Fault { after_calls, kind, span }));
        if self.rng.chance(1, 6) {
            self.fs.set_capacity(self.fs.used_bytes() + self.rng.below(100 << 10));
        }
    }

    fn open(&mut self) -> crate::Result<Arc<Engine>> {
        // With less memory than before, what the log holds goes into files on the way.
        let memtables_bytes = if self.rng.chance(1, 4) { 1 << 10 } else { 64 << 10 };
        Engine::open(EngineOptions {
            fs: Arc::new(self.fs.clone()),
            clock: Arc::clone(&self.clock) as Arc<dyn basalt_store::Clock>,
            limits: Limits {
                wal_segment_bytes: 2 << 10,
                wal_bytes_max: 8 << 10,
                reserve_bytes: 2 << 10,
                memtable_bytes: 3 << 10,
                memtables_bytes,
                block_cache_bytes: 64 << 10,
                // Some files are read without theirs.
                bloom_filters_bytes: 1 << 10,
                compaction_threads: 0,
                compaction_files_min: 2,
                region_bytes_max: 5 << 10,
                ..Limits::default()
            },
            workers: Workers::Manual,
            folds: vec![Arc::new(folded::Columns), Arc::new(by_value::Largest)],
            ..EngineOptions::new(Path::new("/d"))
        })
    }

    fn live(&mut self, engine: &Engine, steps: u64) -> Told {
        if self.rng.chance(1, 2) {
            // Puts wait for the log's thread, in whose place we pump.
            engine.core.gathered.serve();
        }
        self.check_all(engine)?;
        // What a start shows it made durable first: no later life lacks it.
        for ledger in self.rows.values_mut() {
            ledger.keep();
        }
        self.claims.values_mut().for_each(claims::Ledger::keep);
        self.counted = self.counted.max(self.counter_seen);
        let name = self.name()?;
        if !self.table_made && engine.describe_table(&name).is_err() {
            let made = engine.create_table(row::table(name), &["row04".into(), "row08".into()]);
            self.table_made = made.is_ok();
        }
        for _ in 0..steps {
            self.clock.advance(u64::from(self.may_have_deleted || self.rng.chance(2, 3)));
            self.may_have_deleted = !self.asked.is_empty();
            self.step(engine)?;
            self.hear()?;
        }
        Ok(())
    }

    fn step(&mut self, engine: &Engine) -> Told {
        let name = self.name()?;
        match self.rng.below(30) {
            0..8 => return self.write(engine),
            8..10 => self.increment(engine, &name),
            10..13 => drop(engine.pump()),
            13..15 => engine.push(Lane(u16::from(self.rng.chance(1, 2)))),
            15 => drop(engine.flush(&name)),
            16 => drop(engine.compact(&name, Compaction::Minor)),
            17 => drop(engine.compact(&name, Compaction::Major)),
            18 => return self.check_all(engine),
            19 => {
                let row = row_key(self.rng.below(ROWS)).into();
                let at = if self.rng.chance(1, 2) { SplitAt::Key(row) } else { SplitAt::MiddleOf(row) };
                drop(engine.split_region(&name, &at));
            }
            20 => return self.snapshot(engine),
            21 => return self.check_snapshots(engine),
            22..24 => return self.delete_column(engine),
            24..27 => self.append(engine, &name),
            27..29 => return self.claim(engine, &name),
            _ => return self.free_space(engine),
        }
        Ok(())
    }

    fn write(&mut self, engine: &Engine) -> Told {
        let durability = match self.rng.below(6) {
            0 => Durability::Os,
            1 => Durability::Async,
            _ => Durability::Fsync,
        };
        // What waits on different roads is in no order, so that a row keeps to one.
        let road = self.rng.below(3);
        let may_wait = durability == Durability::Fsync;
        let change_number = self.draw_change();
        let mut batch = MutationBatch::new(durability);
        let mut rows = Vec::new();
        for (row, ledger) in &mut self.rows {
            if !self.rng.chance(1, if may_wait { 2 } else { 4 }) || (may_wait && row % 3 != road) {
                continue;
            }
            let asked = if self.rng.chance(1, 6) {
                None
            } else {
                self.next_value += 1;
                Some(self.next_value)
            };
            let padding = asked.map_or(0, |_| self.rng.below(200));
            change(&mut batch, &row_key(*row), asked, padding).map_err(|error| error.to_string())?;
            self.may_have_deleted |= asked.is_none();
            rows.push((*row, ledger.ask(change_number, asked)));
        }
        match road {
            0 => batch.hold(Lane(0)),
            1 => batch.hold(Lane(1)),
            _ => {}
        }
        let pending = engine.apply(&self.name()?, batch);
        self.asked.push(Asked { pending, durability, change: change_number, rows });
        Ok(())
    }

    fn draw_change(&mut self) -> u64 {
        self.next_change += 1;
        self.next_change
    }

    /// Deletes a column of a row that nothing else is asked of, by the cells that hold it now, or its append cell.
    fn delete_column(&mut self, engine: &Engine) -> Told {
        let name = self.name()?;
        engine.push(Lane(0));
        engine.push(Lane(1));
        drop(engine.pump());
        self.hear()?;
        let (row, column) = (self.rng.below(ROWS), folded::column_of(self.rng.below(4)));
        if !self.asked.is_empty() || engine.describe_table(&name).is_err() {
            return Ok(());
        }
        let Some(mut found) = self.content(engine, &name)? else { return Ok(()) };
        let cells = found.remove(&row_key(row)).unwrap_or_default().folded;
        let is_append_cell = self.rng.chance(1, 5);
        if !is_append_cell && !cells.numbers().contains_key(&column) {
            return Ok(());
        }
        let change = self.draw_change();
        let mut batch = MutationBatch::new(Durability::Fsync);
        let delete = |mut changes| {
            if is_append_cell { appended::delete(&mut changes) } else { cells.delete(column, &mut changes) }
        };
        let deleted = batch.row(row_key(row).as_bytes()).and_then(delete);
        deleted.map_err(|error| error.to_string())?;
        self.may_have_deleted = true;
        let ledger = self.rows.entry(row).or_default();
        if is_append_cell {
            ledger.appended.ask(change, None);
        } else {
            ledger.folded.ask_delete(change, column);
        }
        let rows = vec![(row, ledger.floor)];
        let pending = engine.apply(&name, batch);
        // Before anything is folded.
        drop(engine.pump());
        self.asked.push(Asked { pending, durability: Durability::Fsync, change, rows });
        Ok(())
    }

    fn increment(&mut self, engine: &Engine, name: &TableName) {
        let durability = if self.rng.chance(1, 3) { Durability::Async } else { Durability::Fsync };
        let (row, family, qualifier) = (COUNTER.into(), "f".into(), "n".into());
        let pending = engine.increment(name, Increment { row, family, qualifier, amount: 1, durability });
        self.may_be_counted += 1;
        self.increments.push(Counted { pending, durability });
    }

    /// Appends a number to a row's cell, which comes behind what waits for the row.
    fn append(&mut self, engine: &Engine, name: &TableName) {
        let durability = if self.rng.chance(1, 3) { Durability::Async } else { Durability::Fsync };
        let (row, change) = (self.rng.below(ROWS), self.draw_change());
        self.rows.entry(row).or_default().appended.ask(change, Some(change));
        let pending = engine.append(name, appended::append(&row_key(row), change, durability));
        self.appends.push(AskedOfRow { pending, durability, change, row });
        // A second one within the millisecond would be of the next, which a delete by the clock leaves.
        self.clock.advance(1);
    }

    /// Claims a row that nobody may hold, or has its holder, if it is that, leave or make room for another.
    fn claim(&mut self, engine: &Engine, name: &TableName) -> Told {
        let durability = if self.rng.chance(1, 3) { Durability::Async } else { Durability::Fsync };
        let (row, change) = (self.rng.below(claims::ROWS), self.draw_change());
        let ledger = self.claims.entry(row).or_default();
        let holders = ledger.may_hold();
        let drawn = usize::try_from(self.rng.below(holders.len() as u64)).unwrap_or(0);
        let expected = holders.get(drawn).copied().flatten();
        let next = if expected.is_some() && self.rng.chance(1, 2) { None } else { Some(change) };
        ledger.ask(change, (expected, next));
        self.may_have_deleted |= next.is_none();
        let check = claims::change(row, (expected, next), durability).map_err(|error| error.to_string())?;
        let pending = engine.check_and_mutate(name, check);
        self.claims_asked.push(AskedOfRow { pending, durability, change, row });
        Ok(())
    }

    /// Notes the answers that are there.
    fn hear(&mut self) -> Told {
        for mut asked in std::mem::take(&mut self.asked) {
            match poll(&mut asked.pending) {
                None => self.asked.push(asked),
                Some(Ok(applied)) if asked.durability == Durability::Fsync => {
                    if let Some(failed) = applied.failed.first() {
                        return Err(format!("a row of an acknowledged batch failed: {failed:?}"));
                    }
                    self.trace = self.trace.wrapping_mul(31).wrapping_add(asked.rows.len() as u64);
                    for (row, count) in asked.rows {
                        self.rows.entry(row).or_default().is_sure(count, asked.change);
                    }
                }
                // Refused, or promised less than the power loss that may come.
                Some(_) => {}
            }
        }
        for mut counted in std::mem::take(&mut self.increments) {
            match poll(&mut counted.pending) {
                None => self.increments.push(counted),
                // The value told holds all that were counted before, and is itself on disk.
                Some(Ok(value)) if counted.durability == Durability::Fsync => self.counted = self.counted.max(value),
                Some(_) => {}
            }
        }
        for mut appended in std::mem::take(&mut self.appends) {
            match poll(&mut appended.pending) {
                None => self.appends.push(appended),
                Some(Ok(held)) if appended.durability == Durability::Fsync => {
                    let ledger = &mut self.rows.entry(appended.row).or_default().appended;
                    ledger.is_sure(appended.change, appended::numbers(&held));
                }
                Some(_) => {}
            }
        }
        for mut claimed in std::mem::take(&mut self.claims_asked) {
            match poll(&mut claimed.pending) {
                None => self.claims_asked.push(claimed),
                Some(Ok(was_changed)) if claimed.durability == Durability::Fsync => {
                    let heard = self.claims.entry(claimed.row).or_default().hear(claimed.change, was_changed);
                    heard.map_err(|told| format!("a claim of row {} is answered {told}", claimed.row))?;
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// With room again, writes are taken again.
    fn free_space(&mut self, engine: &Engine) -> Told {
        if !matches!(engine.health(), Health::DiskFull | Health::NoDescriptors) || self.fs.is_dead() {
            return Ok(());
        }
        self.fs.set_capacity(u64::MAX);
        self.fs.set_fault(None);
        for _ in 0..3 {
            engine.pump().map_err(|error| format!("with space again: {error}"))?;
        }
        match engine.health() {
            Health::Ok => Ok(()),
            other => Err(format!("with space again it is {other:?}")),
        }
    }

    fn check_all(&mut self, engine: &Engine) -> Told {
        let name = self.name()?;
        if let Err(error) = engine.describe_table(&name) {
            return if self.table_made { Err(error.to_string()) } else { Ok(()) };
        }
        let Some(found) = self.content(engine, &name)? else { return Ok(()) };
        for (row, ledger) in &mut self.rows {
            let nothing = Row::default();
            let held = found.get(&row_key(*row)).unwrap_or(&nothing);
            ledger.see(held).map_err(|told| format!("row {row} holds {told}"))?;
        }
        for (row, ledger) in &mut self.claims {
            let holder = found.get(&claims::row_key(*row)).and_then(|row| number(row.values.first()?));
            ledger.see(holder).map_err(|told| format!("claimed row {row} is held by {told}"))?;
        }
        let counter = found.get(COUNTER).and_then(|row| number(row.values.first()?)).unwrap_or(0);
        let counts = self.counted.max(self.counter_seen)..=self.may_be_counted;
        self.counter_seen = i64::try_from(counter)
            .ok()
            .filter(|counter| counts.contains(counter))
            .ok_or_else(|| format!("the counter is {counter}, not in {counts:?}"))?;
        Ok(())
    }

    /// Takes a snapshot under a new name: its flush made all that the table shows durable.
    fn snapshot(&mut self, engine: &Engine) -> Told {
        let taken = format!("s{}", self.next_value);
        let name = self.name()?;
        if engine.snapshot(&name, &taken).is_ok()
            && let Some(found) = self.content(engine, &name)?
        {
            self.snapshots.insert(taken, found);
        }
        Ok(())
    }

    /// Each snapshot that was taken is there and holds what it held; then it is deleted, if chance will.
    fn check_snapshots(&mut self, engine: &Engine) -> Told {
        let there = engine.list_snapshots().map_err(|error| error.to_string())?;
        let copy = named("copy")?;
        // Asked first: a fault that comes once may keep the copy from being dropped, and is over then.
        let may_fail = self.may_fail(engine);
        drop(engine.drop_table(&copy));
        for (taken, expected) in &self.snapshots {
            if there.iter().all(|snapshot| *snapshot.name != **taken) {
                return Err(format!("snapshot {taken} is gone"));
            }
            match engine.clone_snapshot(taken, &copy) {
                Ok(()) => {}
                Err(_) if may_fail || self.may_fail(engine) => continue,
                Err(error) => return Err(format!("snapshot {taken} cannot be cloned: {error}")),
            }
            if let Some(found) = self.content(engine, &copy)?
                && found != *expected
            {
                return Err(format!("snapshot {taken} holds {found:?}, not {expected:?}"));
            }
            drop(engine.drop_table(&copy));
        }
        for snapshot in there {
            // One whose taking or deleting was not answered may be there or not.
            if self.rng.chance(1, 2) {
                self.snapshots.remove(&*snapshot.name);
                drop(engine.delete_snapshot(&snapshot.name));
            }
        }
        Ok(())
    }

    /// Whether a call may be refused: the disk is dead or full, or a fault is set, or what one did is known.
    fn may_fail(&self, engine: &Engine) -> bool {
        self.fs.is_dead() || self.fs.has_fault() || engine.health() != Health::Ok
    }

    /// A table's rows; `None` where it may not answer. What it does answer must be right.
    fn content(&self, engine: &Engine, table: &TableName) -> Result<Option<Content>, String> {
        let may_fail = self.may_fail(engine);
        match read_all(engine, table) {
            Ok(found) => Ok(Some(found)),
            Err(_) if may_fail || self.may_fail(engine) => Ok(None),
            Err(error) => Err(format!("{table} cannot be read: {error}")),
        }
    }

    /// The power goes, or the process is killed; what was in flight stays possible for ever.
    fn end_life(&mut self) -> Told {
        self.hear()?;
        self.calls = self.fs.calls();
        self.trace = self.trace.wrapping_mul(31).wrapping_add(self.calls);
        self.fs = match self.rng.below(5) {
            0 => self.fs.process_kill(),
            1 => self.fs.power_loss(LossMode::Ordered),
            _ => self.fs.power_loss(LossMode::Hostile),
        };
        self.fs.set_capacity(u64::MAX);
        self.asked.clear();
        self.increments.clear();
        self.appends.clear();
        self.claims_asked.clear();
        for ledger in self.rows.values_mut() {
            ledger.forget();
        }
        self.claims.values_mut().for_each(claims::Ledger::forget);
        self.counter_seen = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `BASALT_SIM_HISTORIES` sets the count, `BASALT_SIM_SEED` the first seed.
    #[test]
    fn what_was_acknowledged_survives_whatever_happens() {
        let number = |name, default| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
        let (first, count) = (number("BASALT_SIM_SEED", 0), number("BASALT_SIM_HISTORIES", 200));
        for seed in first..first + count {
            history(seed).unwrap();
        }
    }

    #[test]
    fn one_seed_is_one_history() {
        for seed in 1000..1020 {
            assert_eq!(history(seed), history(seed), "seed {seed}");
        }
    }

    /// One step in a hundred fails; `basalt-torture countdown` fails each.
    #[test]
    fn any_step_may_fail() {
        for (kind, span) in [(FaultKind::Eio, FaultSpan::Once), (FaultKind::Enospc, FaultSpan::FromThenOn)] {
            let mut steps = (0..).step_by(100);
            assert!(steps.any(|after_calls| !under_fault(1, Fault { after_calls, kind, span }).unwrap()));
        }
    }
}
