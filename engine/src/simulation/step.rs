//! What a history asks of the engine, a step at a time, and what it notes of that.

use basalt_store::{Compaction, Durability, Increment, Lane, MutationBatch, SplitAt, Store as _, TableName};

use super::row::change;
use super::told::Told;
use super::{Asked, AskedOfRow, COUNTER, Counted, History, ROWS, appended, claims, folded, row_key};
use crate::Engine;
use crate::io::Rng as _;

impl History {
    /// Does one of what a client, an operator or a background thread may do.
    pub(super) fn step(&mut self, engine: &Engine) -> Told {
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
}
