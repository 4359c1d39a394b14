//! Seeded histories over the simulated disk: writes, flushes, compactions and reads until a crash at a random step or
//! under a fault, then another life on a disk that may legally be found. One seed, one history.
//!
//! Checked at every opening and every scan: what was acknowledged is there, what was seen is not lost, what was not
//! acknowledged is whole or absent, rows are never torn, counters lie between what was and what may have been counted.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use basalt_store::{Durability, FamilyDescriptor, ManualClock, Timestamp};

use super::tests::small_limits;
use super::*;
use crate::io::{Fault, FaultKind, FaultSpan, LossMode, Rng, SimFs, SplitMix};
use crate::options::Limits;

const ROWS: u64 = 12;
const LIVES: u32 = 4;
const STEPS: u64 = 40;
const COUNTER: &str = "counter";

fn name() -> TableName {
    "sim".parse().unwrap()
}

fn row_key(row: u64) -> String {
    format!("row{row:02}")
}

/// What was asked of one row, in order: the value it then has, or none after a delete.
#[derive(Debug, Default)]
struct RowLedger {
    asked: Vec<Option<u64>>,
    /// At least this many of them took effect, whatever happens.
    floor: usize,
}

impl RowLedger {
    /// The row holds what one of the changes from the floor on left there.
    fn check(&self, found: Option<u64>) -> std::result::Result<usize, String> {
        let states = std::iter::once(None).chain(self.asked.iter().copied());
        let mut from = states.enumerate().skip(self.floor);
        from.find(|(_, state)| *state == found)
            .map(|(count, _)| count)
            .ok_or_else(|| format!("{found:?}, not one of {:?} from {} on", self.asked, self.floor))
    }
}

/// A batch that is not answered yet.
struct Asked {
    pending: Pending<Applied>,
    durability: Durability,
    /// Rows, and how many changes each has had with this one.
    rows: Vec<(u64, usize)>,
}

struct Counted {
    pending: Pending<i64>,
    durability: Durability,
}

struct History {
    seed: u64,
    rng: SplitMix,
    fs: SimFs,
    clock: Arc<ManualClock>,
    rows: BTreeMap<u64, RowLedger>,
    next_value: u64,
    /// Increments that are surely counted, and those that may be.
    counted: i64,
    may_be_counted: i64,
    asked: Vec<Asked>,
    increments: Vec<Counted>,
    table_made: bool,
    /// What the table held when the snapshot was taken, by its name.
    snapshots: BTreeMap<String, BTreeMap<String, Vec<Vec<u8>>>>,
    trace: u64,
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
            seed,
            rng: SplitMix::new(seed),
            fs: SimFs::new(seed),
            clock: Arc::new(ManualClock::new(Timestamp(1_000_000))),
            rows: (0..ROWS).map(|row| (row, RowLedger::default())).collect(),
            next_value: 0,
            counted: 0,
            may_be_counted: 0,
            asked: Vec::new(),
            increments: Vec::new(),
            table_made: false,
            snapshots: BTreeMap::new(),
            trace: 0,
        }
    }

    fn run(mut self) -> u64 {
        for life in 0..LIVES {
            self.draw_fault();
            match self.open() {
                Ok(engine) => self.live(&engine, life),
                Err(error) => assert!(!matches!(error, Error::Corrupt { .. }), "seed {}: {error}", self.seed),
            }
            self.end_life();
        }
        self.fs.set_fault(None);
        self.fs.set_capacity(u64::MAX);
        let engine = self.open().unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
        self.check_all(&engine, LIVES);
        self.check_snapshots(&engine, LIVES);
        assert!(engine.verify().is_ok(), "seed {}", self.seed);
        self.trace
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

    fn open(&self) -> Result<Arc<Engine>> {
        Engine::open(EngineOptions {
            fs: Arc::new(self.fs.clone()),
            clock: Arc::clone(&self.clock) as Arc<dyn basalt_store::Clock>,
            limits: Limits {
                wal_segment_bytes: 2 << 10,
                wal_bytes_max: 8 << 10,
                reserve_bytes: 2 << 10,
                memtable_bytes: 3 << 10,
                memtables_bytes: 64 << 10,
                compaction_files_min: 2,
                region_bytes_max: 5 << 10,
                ..small_limits()
            },
            workers: Workers::Manual,
            ..EngineOptions::new(Path::new("/d"))
        })
    }

    fn live(&mut self, engine: &Engine, life: u32) {
        self.check_all(engine, life);
        if !self.table_made && engine.describe_table(&name()).is_err() {
            let families = vec![FamilyDescriptor::new("f"), FamilyDescriptor::new("g").with_versions(3)];
            let made = engine.create_table(TableDescriptor::new(name(), families), &["row04".into(), "row08".into()]);
            self.table_made = made.is_ok();
        }
        for _ in 0..STEPS {
            self.clock.advance(1);
            self.step(engine, life);
            self.hear();
        }
    }

    fn step(&mut self, engine: &Engine, life: u32) {
        match self.rng.below(23) {
            0..8 => self.write(engine),
            8..10 => self.increment(engine),
            10..15 => drop(engine.pump()),
            15 => drop(engine.flush(&name())),
            16 => drop(engine.compact(&name(), Compaction::Minor)),
            17 => drop(engine.compact(&name(), Compaction::Major)),
            18 => self.check_all(engine, life),
            19 => {
                let row = row_key(self.rng.below(ROWS)).into();
                let at = if self.rng.chance(1, 2) { SplitAt::Key(row) } else { SplitAt::MiddleOf(row) };
                drop(engine.split_region(&name(), &at));
            }
            20 => self.snapshot(engine),
            21 => self.check_snapshots(engine, life),
            _ => self.free_space(engine),
        }
    }

    fn write(&mut self, engine: &Engine) {
        let durability = match self.rng.below(6) {
            0 => Durability::Os,
            1 => Durability::Async,
            _ => Durability::Fsync,
        };
        let mut batch = MutationBatch::new(durability);
        let mut rows = Vec::new();
        for row in 0..ROWS {
            if !self.rng.chance(1, 4) {
                continue;
            }
            let key = row_key(row);
            let mut changes = batch.row(key.as_bytes()).unwrap();
            let asked = if self.rng.chance(1, 6) {
                changes.delete_family(b"f", None).unwrap().delete_family(b"g", None).unwrap();
                None
            } else {
                self.next_value += 1;
                let mut value = self.next_value.to_be_bytes().to_vec();
                value.resize(8 + usize::try_from(self.rng.below(200)).unwrap(), 7);
                changes.put(b"f", b"v", None, &value).unwrap().put(b"g", b"v", None, &value).unwrap();
                Some(self.next_value)
            };
            let ledger = self.rows.get_mut(&row).unwrap();
            ledger.asked.push(asked);
            rows.push((row, ledger.asked.len()));
        }
        let pending = engine.apply(&name(), batch);
        self.asked.push(Asked { pending, durability, rows });
    }

    fn increment(&mut self, engine: &Engine) {
        let durability = if self.rng.chance(1, 3) { Durability::Async } else { Durability::Fsync };
        let (row, family, qualifier) = (COUNTER.into(), "f".into(), "n".into());
        let pending = engine.increment(&name(), Increment { row, family, qualifier, amount: 1, durability });
        self.may_be_counted += 1;
        self.increments.push(Counted { pending, durability });
    }

    /// Notes the answers that are there.
    fn hear(&mut self) {
        for mut asked in std::mem::take(&mut self.asked) {
            match poll(&mut asked.pending) {
                None => self.asked.push(asked),
                Some(Ok(applied)) if asked.durability == Durability::Fsync => {
                    assert!(applied.failed.is_empty());
                    self.trace = self.trace.wrapping_mul(31).wrapping_add(asked.rows.len() as u64);
                    for (row, count) in asked.rows {
                        let ledger = self.rows.get_mut(&row).unwrap();
                        ledger.floor = ledger.floor.max(count);
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
    }

    /// Scorecard row 8: with space again, writes are taken again.
    fn free_space(&mut self, engine: &Engine) {
        if engine.health() != Health::DiskFull || self.fs.is_dead() {
            return;
        }
        self.fs.set_capacity(u64::MAX);
        self.fs.set_fault(None);
        for _ in 0..3 {
            engine.pump().unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
        }
        assert_eq!(engine.health(), Health::Ok, "seed {}", self.seed);
    }

    fn check_all(&mut self, engine: &Engine, life: u32) {
        let at = format!("seed {}, life {life}", self.seed);
        if let Err(error) = engine.describe_table(&name()) {
            assert!(!self.table_made, "{at}: {error}");
            return;
        }
        let Some(found) = content(engine, &name()) else { return };
        let number = |value: &[u8]| u64::from_be_bytes(value[..8].try_into().unwrap());
        for (row, ledger) in &mut self.rows {
            let cells = found.get(&row_key(*row));
            if let Some(cells) = cells {
                assert!(cells.len() == 2 && cells[0] == cells[1], "{at}: row {row} is torn");
            }
            let value = cells.map(|cells| number(&cells[0]));
            if let Err(told) = ledger.check(value) {
                panic!("{at}: row {row} holds {told}");
            }
        }
        let counter = found.get(COUNTER).map_or(0, |cells| i64::from_be_bytes(cells[0][..8].try_into().unwrap()));
        let counts = self.counted..=self.may_be_counted;
        assert!(counts.contains(&counter), "{at}: the counter is {counter}, not in {counts:?}");
    }

    /// Takes a snapshot under a new name: its flush made all that the table shows durable.
    fn snapshot(&mut self, engine: &Engine) {
        let taken = format!("s{}", self.next_value);
        if engine.snapshot(&name(), &taken).is_ok()
            && let Some(found) = content(engine, &name())
        {
            self.snapshots.insert(taken, found);
        }
    }

    /// Each snapshot that was taken is there and holds what it held; then it is deleted, if chance will.
    fn check_snapshots(&mut self, engine: &Engine, life: u32) {
        let at = format!("seed {}, life {life}", self.seed);
        let there = engine.list_snapshots().unwrap();
        let copy: TableName = "copy".parse().unwrap();
        drop(engine.drop_table(&copy));
        for (taken, expected) in &self.snapshots {
            assert!(there.iter().any(|snapshot| *snapshot.name == **taken), "{at}: {taken} is gone");
            if engine.clone_snapshot(taken, &copy).is_ok()
                && let Some(found) = content(engine, &copy)
            {
                assert_eq!(&found, expected, "{at}: {taken} holds something else");
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
    }

    /// The power goes, or the process is killed; what was in flight stays possible for ever.
    fn end_life(&mut self) {
        self.hear();
        self.trace = self.trace.wrapping_mul(31).wrapping_add(self.fs.calls());
        self.fs = match self.rng.below(5) {
            0 => self.fs.process_kill(),
            1 => self.fs.power_loss(LossMode::Ordered),
            _ => self.fs.power_loss(LossMode::Hostile),
        };
        self.fs.set_capacity(u64::MAX);
        self.asked.clear();
        self.increments.clear();
    }
}

/// A table's rows; `None` from a dead disk, which answers nothing: what it does answer must be right.
fn content(engine: &Engine, table: &TableName) -> Option<BTreeMap<String, Vec<Vec<u8>>>> {
    let mut scanner = engine.scan(table, Scan::all()).ok()?;
    let mut found = BTreeMap::new();
    while let Some(batch) = scanner.next_wait() {
        for row in batch.ok()?.rows() {
            let values: Vec<Vec<u8>> = row.cells().map(|cell| cell.value.to_vec()).collect();
            found.insert(String::from_utf8(row.key().to_vec()).unwrap(), values);
        }
    }
    Some(found)
}

/// Scorecard row 3. `BASALT_SIM_HISTORIES` sets the count, `BASALT_SIM_SEED` the first seed.
#[test]
fn what_was_acknowledged_survives_whatever_happens() {
    let number = |name, default| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (first, count) = (number("BASALT_SIM_SEED", 0), number("BASALT_SIM_HISTORIES", 200));
    for seed in first..first + count {
        History::new(seed).run();
    }
}

#[test]
fn one_seed_is_one_history() {
    for seed in 1000..1020 {
        assert_eq!(History::new(seed).run(), History::new(seed).run(), "seed {seed}");
    }
}
