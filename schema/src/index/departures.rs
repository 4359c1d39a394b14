//! Series that leave the index, some time after their last row went.
//!
//! ```text
//! look at all row keys ─ mark series without ─ ‖ ─ forget their spellings ─ ‖ ─ sync, flush ─ look again ─ take those marked out
//!                                              ‖ writers before it are gone
//! ```
//!
//! A pass, in turns of bounded work. Invariants:
//! - A series that has a row in the store, or that a writer is about to give one, does not leave. Who writes a row has found its series in
//!   the index or among spellings that were found there before, and is counted from then on until the store has the row
//!   ([`SeriesIndex::writing`]). Found in the index after the mark, it loses the mark. Found there before the mark, its writer is
//!   gone when spellings are forgotten, so nobody remembers it anew. Found among spellings, its writer is gone at the sync, and the second
//!   look sees the row, by which the series loses the mark.
//! - A row's handle is of its series' id, and a memtable has one for a row: at the flush those with ids of marked series go, and none
//!   comes after it.
//! - Rows that come back without a writer (a snapshot's, those of a longer TTL) raise the epoch. The pass ends then, and the next checkpoint
//!   reads all row keys, after whatever left.

use std::mem::take;
use std::sync::{Mutex, MutexGuard, PoisonError};

use basalt_store::{SeqNo, SideLog, TableName};
use bytes::Bytes;
use roaring::RoaringBitmap;

use super::rebuild::{Part, ReadRows};
use super::{Keeping, Rows, SeriesId, SeriesIndex};
use crate::Result;

/// Makes who remembers series that it found before forget some.
pub type Forget<'a> = dyn FnMut(&dyn Fn(SeriesId) -> bool) + 'a;

/// What a turn did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Departed {
    /// There is more to do.
    UnderWay,
    /// A pass is done, and so many series left.
    Done(u64),
    /// Nothing leaves now: the index is not kept, row keys are about to be read again, or a table is disabled.
    NotNow,
}

/// The pass under way.
#[derive(Debug, Default)]
pub(crate) struct Departures {
    /// Guards the pass; held over a turn. Rank: above that of the index's log.
    pass: Mutex<Pass>,
}

#[derive(Debug, Default)]
struct Pass {
    /// Of the rows that it looks at.
    epoch: u64,
    step: Step,
}

#[derive(Debug, Default)]
enum Step {
    /// No pass is under way.
    #[default]
    None,
    /// Looks which series have rows.
    Looking(Look),
    /// Series without rows are marked; what changed since this number is to be looked at again.
    Marked(SeqNo),
    /// Nobody remembers them.
    Forgotten(SeqNo),
    /// Looks for rows that came meanwhile.
    LookingAgain(Look),
}

/// Row keys, looked at in parts.
#[derive(Debug)]
struct Look {
    /// Those still to be looked at.
    tables: Vec<TableName>,
    /// Where the next part of the last one begins.
    start: Bytes,
    /// What changed until then is on disk, and seen by who begins to look.
    synced: SeqNo,
    /// The id above those of the series that may leave.
    ids_end: u32,
    read: ReadRows,
}

impl Departures {
    /// Does a part of a pass, or begins one; `forget` makes who remembers series found before forget some.
    ///
    /// *Cost*: about as many row keys read, or a flush of the tables, or a microsecond for each tag of the series that leave.
    ///
    /// # Errors
    /// The store's own. The pass is given up, and nothing left.
    pub(crate) fn turn(
        &self,
        (index, keeping): (&SeriesIndex, &Keeping),
        rows: &Rows<'_>,
        rows_max: u64,
        forget: &mut Forget<'_>,
    ) -> Result<Departed> {
        let mut pass = self.pass();
        let (epoch, begun) = (pass.epoch, take(&mut pass.step));
        let in_step = keeping.log_in_step().filter(|(_, now)| matches!(begun, Step::None) || *now == epoch);
        // Rows of a table that is disabled are not read.
        let (Some((log, epoch)), Some(rows)) = (in_step, rows.now()?) else {
            index.set_leaving(RoaringBitmap::new());
            return Ok(Departed::NotNow);
        };
        let around = Around { index, rows: &rows, rows_max, log, epoch };
        let (step, gone) = around.step(begun, forget).inspect_err(|_| index.set_leaving(RoaringBitmap::new()))?;
        let is_done = matches!(step, Step::None);
        *pass = Pass { epoch, step };
        if !is_done {
            return Ok(Departed::UnderWay);
        }
        if log.epoch() == epoch {
            keeping.note_departed(epoch, gone);
        }
        Ok(Departed::Done(gone))
    }

    fn pass(&self) -> MutexGuard<'_, Pass> {
        self.pass.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a turn works on.
struct Around<'a> {
    index: &'a SeriesIndex,
    rows: &'a Rows<'a>,
    rows_max: u64,
    log: &'a dyn SideLog,
    epoch: u64,
}

impl Around<'_> {
    /// Does a step; gives the next one, and how many series left.
    fn step(&self, begun: Step, forget: &mut Forget<'_>) -> Result<(Step, u64)> {
        let (index, store) = (self.index, self.rows.store);
        let next = match begun {
            Step::None => {
                let synced = self.log.synced();
                // What changed until then is seen from here on.
                store.sync().wait()?;
                Step::Looking(self.look(synced, u32::try_from(index.ids_end()).unwrap_or(u32::MAX)))
            }
            Step::Looking(look) => match self.look_on(look, false)? {
                look if !look.tables.is_empty() => Step::Looking(look),
                look => {
                    let without_rows = index.ids_before(look.ids_end) - look.read.series;
                    if without_rows.is_empty() {
                        return Ok((Step::None, 0));
                    }
                    index.set_leaving(without_rows);
                    index.gate.begin_turn();
                    Step::Marked(look.synced)
                }
            },
            Step::Marked(synced) if index.gate.is_clear() => {
                let leaving = index.leaving();
                forget(&|SeriesId(id)| leaving.contains(id));
                index.gate.begin_turn();
                Step::Forgotten(synced)
            }
            Step::Forgotten(synced) if index.gate.is_clear() => {
                store.sync().wait()?;
                self.rows.tables.iter().try_for_each(|table| store.flush(table))?;
                Step::LookingAgain(self.look(synced, 0))
            }
            Step::LookingAgain(look) => match self.look_on(look, true)? {
                look if !look.tables.is_empty() => Step::LookingAgain(look),
                _ if self.log.epoch() == self.epoch => return Ok((Step::None, index.let_leave())),
                _ => {
                    index.set_leaving(RoaringBitmap::new());
                    Step::None
                }
            },
            waits @ (Step::Marked(_) | Step::Forgotten(_)) => waits,
        };
        Ok((next, 0))
    }

    /// A look at all of the tables, to be begun.
    fn look(&self, synced: SeqNo, ids_end: u32) -> Look {
        let tables = self.rows.tables.iter().map(|table| (*table).clone()).collect();
        Look { tables, start: Bytes::new(), synced, ids_end, read: ReadRows::default() }
    }

    /// Looks at a part; again, at rows alone that changed since the pass began. Series with rows lose their mark.
    fn look_on(&self, mut look: Look, is_again: bool) -> Result<Look> {
        if let Some(table) = look.tables.last() {
            let part =
                Part { start: take(&mut look.start), after: is_again.then_some(look.synced), rows_max: self.rows_max };
            let next = self.index.add_part(self.rows.store, table, self.rows.layout, part, &mut look.read)?;
            match next {
                Some(next) => look.start = next,
                None => drop(look.tables.pop()),
            }
        }
        Ok(look)
    }
}
