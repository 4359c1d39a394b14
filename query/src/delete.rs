//! Deleting what a query read (`Q-DELETE`, `S-DELETE-ROW`): the points or histograms of its range, or under `strict` whole rows as in
//! OpenTSDB.
//!
//! A fold forgets when each point was written, so tombstones for single points would miss some. Instead a row is changed
//! by one atomic, checked mutation: it deletes the family up to the newest time read and puts what stays just after that.
//! Whoever writes meanwhile has a later time and is not touched. To be sure of that, a row written within the last second
//! waits until it is a second old.
//!
//! Tombstones may be younger than all that is read of their row: OpenTSDB's compaction deletes the parts of a cell long after
//! they were written, and `fsck` does. What stays is put after those too ([`latest`]), else it might lie below one.
//!
//! Where cells bear the times of their points, nobody has a later time: a point that is put again would stay hidden below the
//! tombstone until a major compaction. There nothing is deleted.
//!
//! Only rows that exist are read: their keys are scanned first ([`row_keys`]). So a delete takes as long as the metric has rows,
//! however long its range is, and one that is not done in its time goes on when it is asked for again, without the rows that
//! are gone.
//!
//! The check is that the newest cell read is still there, so that a fold or another daemon's delete between read and
//! change is noticed and the row read again. In a row with an append cell it is that cell, newest or not: an append takes all of it to a
//! time above the tombstone, and such a row is not folded. Deletes of one engine take turns row by row.

mod change;
mod latest;
mod row_keys;

use std::ops::RangeInclusive;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use basalt_schema::{APPEND_QUALIFIER, BaseTime, DATA_FAMILY, RowCell, RowRemainder, Schema, histogram_offset_ms};
use basalt_store::{Columns, Get, Pending, RowBatch, RowView, Timestamp};
use bytes::Bytes;

use change::Change;
use row_keys::RowKeys;

use crate::cancel::Budget;
use crate::get_size::GetSize;
use crate::hours::Hours;
use crate::plan::Plan;
use crate::request::Query;
use crate::{Error, Result};

/// How old, in ms, the newest cell of a row must be.
const AGE_MS_MIN: i64 = 1_000;
/// A cell this far in the future, in ms, is not waited for.
const FUTURE_MS_MAX: i64 = 10_000;
/// Offsets, in ms, of no cell of an hour.
const NOWHERE: RangeInclusive<u32> = u32::MAX..=u32::MAX;
/// How often a row that others change is read again.
const ATTEMPTS_MAX: usize = 16;

/// Who deletes.
#[derive(Debug)]
pub(crate) struct Deleter<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) query: &'a Query,
    /// What was read.
    pub(crate) plan: &'a Plan,
    pub(crate) budget: &'a Budget,
    /// Whole rows of the scanned hours, whatever instants they hold.
    pub(crate) whole_rows: bool,
    /// Held while rows are read and changed; nothing else is locked under it but the store's own.
    pub(crate) turn: &'a Mutex<()>,
}

impl Deleter<'_> {
    /// Whether points can be deleted.
    ///
    /// # Errors
    /// `Invalid`: cells bear the times of their points.
    pub(crate) fn check(schema: &Schema) -> Result<()> {
        if schema.config().data_times.is_some() { Err(Error::DeleteWithPointTimes) } else { Ok(()) }
    }

    /// Deletes what the plan read.
    ///
    /// # Errors
    /// `Corrupt`: a row that cannot be decoded, which stays. `Throttled`: a row that others keep changing, or of the
    /// future. The store's own, a budget. What was deleted before stays deleted; asking again goes on.
    pub(crate) fn run(&self) -> Result<()> {
        let plan = self.plan;
        // OpenTSDB too deletes points and histograms alone, and neither rollups nor pre-aggregates.
        if plan.table != self.schema.tables().data {
            return Ok(());
        }
        let mut window = plan.window;
        if !self.whole_rows {
            window.scan_start_ms = self.query.start_ms;
            window.scan_end_ms = self.query.end_ms.saturating_add(1_000);
            window.read_end_ms = window.scan_end_ms;
        }
        let Some(hours) = Hours::of(&window, None) else { return Ok(()) };
        let keys = RowKeys { schema: self.schema, plan, hours, budget: self.budget };
        let mut size = GetSize::new(self.schema);
        keys.each(|mut keys| {
            while !keys.is_empty() {
                let (now, later) = keys.split_at(size.rows().min(keys.len()));
                self.rows(now.to_vec(), &mut size)?;
                keys = later;
            }
            Ok(())
        })
    }

    /// Reads and changes rows together.
    fn rows(&self, mut keys: Vec<Bytes>, size: &mut GetSize) -> Result<()> {
        for _ in 0..ATTEMPTS_MAX {
            if keys.is_empty() {
                return Ok(());
            }
            keys = self.attempt(keys, size)?;
        }
        if keys.is_empty() { Ok(()) } else { Err(Error::RowsBusy { rows: keys.len() }) }
    }

    /// Reads rows and changes those that may be; gives back those that others changed meanwhile or that are too young.
    fn attempt(&self, keys: Vec<Bytes>, size: &mut GetSize) -> Result<Vec<Bytes>> {
        self.budget.check()?;
        let mut again = Vec::new();
        let mut youngest = None;
        {
            let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            let get = Get::rows(keys).with_columns(Columns::family(DATA_FAMILY));
            let batch = self.schema.store().get(&self.schema.tables().data, get).wait()?;
            size.learn(&batch);
            self.budget.spend(0, batch.data_bytes() as u64)?;
            // Once more for what of them is put again.
            let times = if self.whole_rows { 1 } else { 2 };
            let bytes = batch.memory_bytes() as u64 * times;
            self.budget.while_held(bytes, || self.change_all(&batch, &mut again, &mut youngest))?;
        }
        if let Some(youngest) = youngest {
            self.wait_for(youngest, again.len())?;
        }
        Ok(again)
    }

    /// Changes the rows that were read; the keys of those that stay, and the newest time in those that are too young, are added.
    fn change_all(&self, batch: &RowBatch, again: &mut Vec<Bytes>, youngest: &mut Option<Timestamp>) -> Result<()> {
        let changes = batch.rows().filter_map(|row| self.change(&row).transpose());
        let mut changes = changes.collect::<Result<Vec<_>>>()?;
        latest::look_for_tombstones(self.schema, self.budget, &mut changes)?;
        let mut pending: Vec<(Bytes, Pending<bool>)> = Vec::new();
        for change in changes {
            let key = Bytes::copy_from_slice(change.key);
            if change.latest > self.newest_allowed() {
                *youngest = (*youngest).max(Some(change.latest));
                again.push(key);
            } else {
                let checked = change.checked()?;
                pending.push((key, self.schema.store().check_and_mutate(&self.schema.tables().data, checked)));
            }
        }
        for (key, outcome) in pending {
            if !outcome.wait()? {
                again.push(key);
            }
        }
        Ok(())
    }

    /// The change of one row; `None` when nothing of it goes.
    fn change<'a>(&self, row: &RowView<'a>) -> Result<Option<Change<'a>>> {
        let cells: Vec<RowCell<'_>> = row.cells().map(RowCell::from).collect();
        let Some(newest) = cells.iter().max_by_key(|cell| (cell.timestamp, cell.seq)) else { return Ok(None) };
        let appended = cells.iter().find(|cell| cell.qualifier == APPEND_QUALIFIER);
        let (checked, newest) = (*appended.unwrap_or(newest), newest.timestamp);
        let mut change = Change { key: row.key(), checked, newest, latest: newest, kept: Vec::new() };
        if !self.whole_rows {
            let base = self.schema.layout().decode(row.key())?.base();
            let mut remainder = RowRemainder::default();
            let Some(range) = self.offsets_ms(base) else { return Ok(None) };
            // A question for histograms reads no points, and one for points no histograms.
            let (points, histograms) = if self.plan.histograms { (NOWHERE, range) } else { (range, NOWHERE) };
            let goes = |qualifier: &[u8]| histogram_offset_ms(qualifier).is_some_and(|at| histograms.contains(&at));
            let taken = remainder.take(&cells, self.schema.config().duplicates(), points)?;
            if taken == 0 && !cells.iter().any(|cell| goes(cell.qualifier)) {
                return Ok(None);
            }
            let kept = remainder.cells(&cells).filter(|(qualifier, _)| !goes(qualifier));
            change.kept.extend(kept.map(|(qualifier, value)| (qualifier.to_vec(), value.to_vec())));
        }
        Ok(Some(change))
    }

    /// The query's range within an hour, in ms from its start; `None` when it ends before the hour.
    fn offsets_ms(&self, base: BaseTime) -> Option<RangeInclusive<u32>> {
        let base_ms = i64::from(base.seconds()) * 1000;
        let last = self.query.end_ms.checked_sub(base_ms).filter(|last| *last >= 0)?;
        let first = self.query.start_ms.saturating_sub(base_ms).max(0);
        // What does not fit lies behind every point of the hour.
        let offset = |ms: i64| u32::try_from(ms).unwrap_or(u32::MAX);
        Some(offset(first)..=offset(last))
    }

    /// The latest time of a cell that may be deleted now.
    fn newest_allowed(&self) -> Timestamp {
        Timestamp(u64::try_from(self.now_ms() - AGE_MS_MIN).unwrap_or(0))
    }

    fn now_ms(&self) -> i64 {
        self.query.now_ms.saturating_add(i64::try_from(self.budget.elapsed().as_millis()).unwrap_or(i64::MAX))
    }

    /// Waits until a cell of this time is old enough, looking up now and then.
    fn wait_for(&self, time: Timestamp, rows: usize) -> Result<()> {
        let at_ms = i64::try_from(time.0).unwrap_or(i64::MAX).saturating_add(AGE_MS_MIN);
        loop {
            let left_ms = at_ms.saturating_sub(self.now_ms());
            if left_ms > FUTURE_MS_MAX {
                return Err(Error::RowsAhead { rows, ahead_ms: left_ms });
            }
            if left_ms < 0 {
                return Ok(());
            }
            self.budget.check()?;
            // Nobody wakes this thread; a wake-up without reason only looks at the clock once more.
            std::thread::park_timeout(Duration::from_millis(left_ms.clamp(1, 50).unsigned_abs()));
        }
    }
}

#[cfg(test)]
mod tests;
