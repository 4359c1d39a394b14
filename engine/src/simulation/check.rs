//! What a history looks at: that the engine holds what it may, and takes writes when it can.

use basalt_store::{Store as _, TableName};

use super::row::{Content, Row, number, read_all};
use super::told::Told;
use super::{COUNTER, History, claims, named, row_key};
use crate::io::Rng as _;
use crate::{Engine, Health};

impl History {
    /// With room again, writes are taken again.
    pub(super) fn free_space(&mut self, engine: &Engine) -> Told {
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

    /// Every row, claim and counter holds what it may.
    pub(super) fn check_all(&mut self, engine: &Engine) -> Told {
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

    /// Each snapshot that was taken is there and holds what it held; then it is deleted, if chance will.
    pub(super) fn check_snapshots(&mut self, engine: &Engine) -> Told {
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
    pub(super) fn content(&self, engine: &Engine, table: &TableName) -> Result<Option<Content>, String> {
        let may_fail = self.may_fail(engine);
        match read_all(engine, table) {
            Ok(found) => Ok(Some(found)),
            Err(_) if may_fail || self.may_fail(engine) => Ok(None),
            Err(error) => Err(format!("{table} cannot be read: {error}")),
        }
    }
}
