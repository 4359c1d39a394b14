//! Seeded histories over the simulated disk: writes, flushes, compactions and reads until a crash at a random step or
//! under a fault, then another life on a disk that may legally be found. One seed, one history.
//!
//! Checked at every opening and every scan: what was acknowledged is there, what was seen is not lost, what was not
//! acknowledged is whole or absent, rows are never torn, counters lie between what was and what may have been counted, a family
//! whose rows are folded holds in each column what it may, whatever was folded before a column was deleted, an append cell what was
//! appended, in order, of a family that is folded by value nothing but a put changes what is read, and a claimed row has one holder.
//!
//! Feature `sim`: the tests here run a few hundred histories, `basalt-torture sim` and `countdown` as many as are wanted.

mod answers;
mod appended;
mod by_value;
mod check;
mod claims;
mod folded;
mod row;
mod step;
mod told;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use basalt_store::{Applied, Durability, ManualClock, Pending, Store, TableName, Timestamp};
use bytes::Bytes;

use self::row::{Content, RowLedger};
use self::told::{Told, at};
use crate::io::{Fault, FaultKind, FaultSpan, LossMode, Rng, SimFs, SplitMix};
use crate::{Engine, EngineOptions, Error, Limits, Workers};

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
