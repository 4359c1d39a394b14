//! OpenTSDB's tables from one store to another: copied cell by cell with their times, then read back and compared.
//!
//! ```text
//! source ─ scan ─► rows ─ key anew ─► batches ─► target        names first, points last
//!   │               └─ digest                      │
//!   │                  = ?                         │
//!   └─ scan anew ── digest ── = ? ─ digest ◄─ scan ┘
//! ```
//!
//! Cells keep their times, what was deleted is not brought along, and what is sent twice is the same cell: a copy that
//! was killed goes on behind the last row that its progress file tells of. Nobody may write to either end meanwhile; who
//! did is found out by the comparison.

mod copy;
mod digest;
mod job;
mod plan;
mod progress;
mod verify;

#[cfg(test)]
mod tests;

use self::job::at;
pub(crate) use self::job::{End, Job, PATIENCE};
use self::plan::TablePair;
use self::progress::{Memory, Shown};
use self::verify::Same;
use crate::exit::{Exit, Failure};

/// What was done.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    /// Tables that the source has.
    pub(crate) tables: u64,
    /// Rows that both ends hold alike.
    pub(crate) rows: u64,
    /// Cells that were copied, by this run and those before it.
    pub(crate) cells: u64,
    /// Rows that an earlier run copied.
    pub(crate) resumed: u64,
    /// How far, in milliseconds, the times of cells are ahead of the clock here. Until then what is written to their columns, or at the
    /// instants of their points, is older than they are, and not seen.
    pub(crate) ahead_ms: u64,
}

impl Sum {
    /// Counts a table that both ends hold alike.
    fn add(&mut self, job: &Job, pair: &TablePair, same: &Same) {
        self.rows += same.rows;
        // Where cells bear the times of their points, the later is not known by its time.
        if pair.is_names || job.source.schema.data_times.is_none() {
            self.ahead_ms = self.ahead_ms.max(same.newest.0.saturating_sub(job.now.0));
        }
    }
}

/// Copies and compares, and then has the target closed, whatever became of it: `close` hears whether all was copied. `begin` comes before
/// the first row, if any is to be copied.
///
/// # Errors
///
/// Exit code 3: settings that cannot be brought together. 1: the target holds other rows, or none of those remembered, or
/// the ends differ after the copy. What a store says, `begin` and `close`.
pub(crate) fn run(
    job: &Job,
    begin: impl FnOnce() -> Result<(), Failure>,
    close: impl FnOnce(bool) -> Result<(), Failure>,
) -> Result<Sum, Failure> {
    let done = copy_and_compare(job, begin);
    close(done.is_ok() && !job.only_verify)?;
    let (sum, memory) = done?;
    // Whoever migrates again begins anew. Not before: a target that cannot be closed is asked to be tried again.
    memory.map_or(Ok(()), Memory::forget)?;
    Ok(sum)
}

/// Copies and compares; answers what is remembered of a copy, too.
fn copy_and_compare(job: &Job, begin: impl FnOnce() -> Result<(), Failure>) -> Result<(Sum, Option<Memory>), Failure> {
    let pairs = plan::pairs(job)?;
    let mut shown = Shown::new();
    let mut sum = Sum { tables: pairs.len() as u64, ..Sum::default() };
    if job.only_verify {
        for pair in &pairs {
            sum.add(job, pair, &verify::compare(job, pair, None, &mut shown)??);
        }
        return Ok((sum, None));
    }
    let mut memory = Memory::load(&job.progress, &job.source.name, &job.target.name)?;
    if !memory.is_new() {
        pairs.iter().try_for_each(|pair| refuse_emptied(job, pair, &memory))?;
    }
    if job.into_filled {
        memory.set_into_filled();
    } else if memory.is_new() {
        pairs.iter().try_for_each(|pair| refuse_filled(job, pair))?;
    }
    begin()?;
    sum.resumed = memory.rows();
    for pair in &pairs {
        plan::take_over_settings(job, pair)?;
        copy::copy(job, pair, &mut memory, &mut shown)?;
    }
    for pair in &pairs {
        let state = memory.of(&pair.to.to_string());
        sum.cells += state.cells;
        match verify::compare(job, pair, Some(&state), &mut shown)? {
            Ok(same) => sum.add(job, pair, &same),
            Err(differ) => {
                // Whoever runs it again copies again; from what is remembered, the same would be found for ever.
                memory.forget()?;
                return Err(differ);
            }
        }
    }
    Ok((sum, Some(memory)))
}

/// A table of the target must be empty: where names have other UIDs, points of two servers would become one's.
fn refuse_filled(job: &Job, pair: &TablePair) -> Result<(), Failure> {
    if is_empty(job, pair)? {
        return Ok(());
    }
    let (table, target) = (&pair.to, &job.target.name);
    let line = format!(
        "table {table} of {target} holds rows already, and nothing was copied: empty it, or add --into-filled where it is \
         an earlier copy of the same tables"
    );
    Err(Failure::new(Exit::Failure, line))
}

/// A table of the target must hold what is remembered of it: in a target that was made anew, points would be without the
/// names that were copied before.
fn refuse_emptied(job: &Job, pair: &TablePair, memory: &Memory) -> Result<(), Failure> {
    let rows = memory.of(&pair.to.to_string()).digest.rows;
    if rows == 0 || !is_empty(job, pair)? {
        return Ok(());
    }
    let (file, table, target) = (job.progress.display(), &pair.to, &job.target.name);
    let line = format!(
        "{file} tells of {rows} rows in table {table} of {target}, which is empty: it is of another target, or this one \
         was made anew; remove {file} to copy from the start"
    );
    Err(Failure::new(Exit::Failure, line))
}

/// Whether a table of the target holds no row.
fn is_empty(job: &Job, pair: &TablePair) -> Result<bool, Failure> {
    let scan = basalt_store::Scan { limit_rows: Some(1), ..basalt_store::Scan::all() };
    let mut scanner = job.target.store.scan(&pair.to, scan).map_err(|cause| at(&job.target, &cause))?;
    let first = scanner.next_wait().transpose().map_err(|cause| at(&job.target, &cause))?;
    Ok(first.is_none())
}
