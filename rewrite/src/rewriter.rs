//! The rewriter of stores that have no fold of their own: what OpenTSDB calls compaction, as its daemon does it.
//!
//! ```text
//! put ─ note ─► queue ─ due ─► read ─► plan ─► put the folded cell ─► look whether it is seen ─► delete its parts
//! ```
//!
//! **A crash between any two steps is safe.** Until the folded cell is durable nothing is deleted; from then on the parts
//! are duplicates of it, which every reader takes for one point, and the next rewrite of the row deletes them.
//!
//! **A write that races a rewrite is not lost.** The folded cell bears the newest time of its parts, and each part is
//! deleted up to the time at which it was read; so a write after the read is newer than either. That takes server times
//! that do not go back by more than [`RewriteLimits::quiet_ms`]: rows written to within it wait. Rows whose cells bear the
//! times of their points are left as they are.
//!
//! **A deletion that races it stays one.** Its tombstones are newer than the folded cell. Where such a tombstone of an
//! earlier rewrite, by whomever, would hide the folded cell, it is not seen when it is looked for, and nothing is deleted.
//! That is looked for after every put: cells that are there do not tell whether a tombstone is.
//!
//! What waits in the queue is lost with the process: [`Rewriter::catch_up`] has the hours just past looked at again.

mod counts;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use basalt_schema::{BaseTime, DATA_FAMILY, Schema, SeriesId};
use basalt_store::{
    Applied, Clock, Columns, Durability, Error, ErrorKind, Filter, FuzzyKey, Get, ListOperator, MutationBatch, Pending,
    Result, RowBatch, RowFailure, Scan, Timestamp,
};
use bytes::Bytes;
use roaring::RoaringBitmap;

pub use self::counts::RewriteCounts;
use self::counts::{Add, Counts};
use crate::queue::{Queue, Queued};
use crate::row_plan::{Planner, RowPlan, Verdict};

/// Seconds from which on a row is due after its hour and the time that it must be quiet for.
const AFTER_HOUR_S: u64 = 1;
/// Rows of late points are put off to full minutes, or to multiples of a shorter quiet time, so that few sets of them wait.
const LATE_STEP_S: u64 = 60;
/// Rows of one batch, and bytes of rows that it may hold by what rows held before.
const BATCH_ROWS: u64 = 128;
const BATCH_BYTES: u64 = 8 << 20;

/// The bounds and the pace of rewriting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewriteLimits {
    /// Rows that may wait; further ones stay in single cells.
    pub queue_rows_max: u64,
    /// Rows of an interval at least, where so many are due.
    pub rows_min: u64,
    /// How many times as fast rows are taken as would rewrite all that wait within an hour.
    pub speed: u64,
    /// Rows with a younger cell wait, in milliseconds: by how much servers' times may differ.
    pub quiet_ms: u64,
}

impl Default for RewriteLimits {
    /// OpenTSDB's pace, and two minutes; some 20 MB of queue at most.
    fn default() -> Self {
        Self { queue_rows_max: 10_000_000, rows_min: 100, speed: 2, quiet_ms: 120_000 }
    }
}

/// Rewrites rows of the data table. One a process; shared by `Arc`. It has no thread: whoever owns it calls
/// [`Rewriter::rewrite`] again and again.
///
/// ```
/// use std::sync::Arc;
/// use basalt_rewrite::{RewriteLimits, Rewriter};
/// use basalt_schema::{Schema, SchemaConfig};
/// use basalt_store::{ManualClock, MemoryStore};
/// let clock = Arc::new(ManualClock::default());
/// let store = Arc::new(MemoryStore::new(Arc::clone(&clock) as _));
/// let schema = Arc::new(Schema::open(store, SchemaConfig::default())?);
/// let rewriter = Rewriter::new(schema, clock, RewriteLimits::default());
/// assert_eq!(rewriter.rewrite(1)?, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Rewriter {
    schema: Arc<Schema>,
    clock: Arc<dyn Clock>,
    limits: RewriteLimits,
    /// Guards what waits; held for a look or a change, never over a call of the store. Rank 1: nothing is locked below.
    queue: Mutex<Queue>,
    counts: Counts,
}

impl Rewriter {
    /// A rewriter with nothing to do.
    pub fn new(schema: Arc<Schema>, clock: Arc<dyn Clock>, limits: RewriteLimits) -> Self {
        let queue = Mutex::new(Queue::new(limits.queue_rows_max));
        Self { schema, clock, limits, queue, counts: Counts::default() }
    }

    /// Hears which rows are written to, before or after they are. *Cost*: a lock, and a look into a bitmap each.
    pub fn note(&self, rows: impl IntoIterator<Item = (SeriesId, BaseTime)>) {
        let now_s = self.now_s();
        let mut queue = self.queue();
        let refused = rows.into_iter().filter(|(series, base)| {
            let due_s = due_s(*base, now_s, self.limits.quiet_ms);
            queue.push(due_s, *base, *series) == Queued::Full
        });
        let refused = refused.count() as u64;
        drop(queue);
        self.counts.refused.add(refused);
    }

    /// Has the rows of the hour that is and of `hours` before it looked at, whoever wrote them: what waited when the process
    /// before this one ended. Says how many there are.
    ///
    /// *Cost*: a scan of the data table's keys by which the store may seek from one metric's hours to the next's.
    ///
    /// # Errors
    /// The store's own; rows that were found by then wait.
    pub fn catch_up(&self, hours: u32) -> Result<u64> {
        let now_s = u32::try_from(self.now_s()).unwrap_or(u32::MAX);
        let layout = self.schema.layout();
        let before = layout.salting.width() + layout.widths.metric.bytes();
        let keys = (0..=hours).map(|hour| {
            let base = BaseTime::of_seconds(now_s.saturating_sub(hour.saturating_mul(BaseTime::SPAN_S)));
            let (mut key, mut mask) = (vec![0; before], vec![1; before]);
            key.extend_from_slice(&base.to_be_bytes());
            mask.resize(key.len(), 0);
            FuzzyKey { key: key.into(), mask: mask.into() }
        });
        let filters = vec![Filter::FuzzyRow(keys.collect()), Filter::FirstKeyOnly, Filter::KeyOnly];
        let scan = Scan::all().with_columns(Columns::family(DATA_FAMILY));
        let scan = scan.with_filter(Filter::List(ListOperator::All, filters));
        let mut scanner = self.schema.store().scan(&self.schema.tables().data, scan)?;
        let mut found = 0;
        while let Some(rows) = scanner.next_wait() {
            for row in rows?.rows() {
                let key = layout.decode(row.key()).ok().filter(|key| !key.is_global_annotations());
                // An index that is full leaves rows out, as puts are refused then.
                let row = key.and_then(|key| Some((self.schema.index().add(&key.tsuid()).ok()?, key.base())));
                found += u64::from(row.is_some());
                self.note(row);
            }
        }
        Ok(found)
    }

    /// How many rows to rewrite within `interval_ms`, if so many are due: what rewrites all that wait within an hour,
    /// times the speed, so that the hour's turn brings no storm.
    pub fn quota(&self, interval_ms: u64) -> u64 {
        let queue = self.queue();
        if !queue.is_due(self.now_s()) {
            return 0;
        }
        let of_interval = u128::from(queue.len()) * u128::from(interval_ms) * u128::from(self.limits.speed);
        let of_interval = of_interval / (u128::from(BaseTime::SPAN_S) * 1000);
        u64::try_from(of_interval).unwrap_or(u64::MAX).max(self.limits.rows_min)
    }

    /// Rewrites a batch of up to `rows_max` rows that are due, and says how many were looked at; 0 when none is.
    ///
    /// *Cost*: it waits for the store, some four calls; memory for the rows.
    ///
    /// # Errors
    /// The store's own; the rows wait again, save one that the store cannot read, or refuses for good.
    pub fn rewrite(&self, rows_max: u64) -> Result<u64> {
        let mean_bytes = self.counts.row_bytes.get().max(1);
        let rows_max = rows_max.min(BATCH_ROWS).min(BATCH_BYTES / mean_bytes).max(1);
        let mut queue = self.queue();
        let Some((base, series)) = queue.pop(self.now_s(), rows_max) else { return Ok(0) };
        // Under the lock, so that rows are always seen in one of the two.
        self.counts.in_hand.add(series.len());
        drop(queue);
        let rewritten = self.rewrite_each(base, &series);
        self.counts.in_hand.sub(series.len());
        rewritten.map(|()| series.len())
    }

    /// Rewrites rows together; where one of them fails the others for good, each by itself, so that it alone is left.
    fn rewrite_each(&self, base: BaseTime, series: &RoaringBitmap) -> Result<()> {
        let together = self.rewrite_rows(base, series);
        if series.len() == 1 || together.as_ref().err().is_none_or(is_passing) {
            return together;
        }
        let (mut result, mut rest) = (Ok(()), series.clone());
        while let Some(one) = rest.min() {
            rest.remove(one);
            let Err(error) = self.rewrite_rows(base, &RoaringBitmap::from([one])) else { continue };
            let ends = is_passing(&error);
            result = Err(error);
            if ends {
                self.put_off(base, &rest);
                break;
            }
        }
        result
    }

    fn rewrite_rows(&self, base: BaseTime, series: &RoaringBitmap) -> Result<()> {
        let again = |errors: &Add, error: Error| {
            errors.add(1);
            if is_passing(&error) {
                self.put_off(base, series);
            }
            Err(error)
        };
        let planned = match self.read(base, series) {
            Ok(planned) => planned,
            Err(error) => return again(&self.counts.read_errors, error),
        };
        let put = match self.put(planned) {
            Ok(put) => put,
            Err(error) => return again(&self.counts.put_errors, error),
        };
        let seen = match self.seen(put) {
            Ok(seen) => seen,
            Err(error) => return again(&self.counts.read_errors, error),
        };
        if let Err(error) = self.delete(&seen) {
            return again(&self.counts.delete_errors, error);
        }
        Ok(())
    }

    /// What was done so far, and what waits.
    pub fn counts(&self) -> RewriteCounts {
        let (queue, now_s) = (self.queue(), self.now_s());
        self.counts.told(queue.len(), queue.due(now_s) + self.counts.in_hand.get())
    }

    /// Reads rows of an hour, and plans those that are to be rewritten.
    fn read(&self, base: BaseTime, series: &RoaringBitmap) -> Result<Vec<RowPlan>> {
        let (layout, index) = (self.schema.layout(), self.schema.index());
        let series = index.tsuids(series);
        let keys: Vec<_> = series.iter().map(|(_, tsuid)| layout.series_key(tsuid).row_key(base)).collect();
        let get = Get::rows(keys.into_iter().map(Bytes::from).collect());
        let get = get.with_columns(Columns::family(DATA_FAMILY));
        let rows = self.schema.store().get(&self.schema.tables().data, get).wait()?;
        self.counts.rows_read.add(rows.len() as u64);
        if let Some(mean) = (rows.data_bytes() as u64).checked_div(rows.len() as u64) {
            self.counts.row_bytes.set(mean);
        }
        let quiet_since = Timestamp(self.clock.now().0.saturating_sub(self.limits.quiet_ms));
        let (mut planner, mut planned, mut young) = (Planner::default(), Vec::new(), RoaringBitmap::new());
        for row in rows.rows() {
            match planner.plan(&row, base, quiet_since) {
                Verdict::Keep => {}
                Verdict::Damaged => self.counts.damaged.add(1),
                Verdict::TooYoung => {
                    let tsuid = layout.decode(row.key()).ok().map(|key| key.tsuid());
                    young.extend(tsuid.and_then(|tsuid| index.id(&tsuid)).map(|id| id.0));
                }
                Verdict::Rewrite(plan) => planned.push(plan),
            }
        }
        self.put_off(base, &young);
        Ok(planned)
    }

    /// Puts the folded cells, durably; those of rows that were refused are left out, and wait again where that may pass.
    fn put(&self, mut planned: Vec<RowPlan>) -> Result<Vec<RowPlan>> {
        let mut batch = MutationBatch::new(Durability::Fsync);
        for plan in planned.iter().filter(|plan| !plan.is_put) {
            batch.row(&plan.key)?.put(DATA_FAMILY, &plan.qualifier, Some(plan.time), &plan.value)?;
        }
        let refused = self.apply(batch)?;
        if !refused.failed.is_empty() {
            self.put_off_refused(&refused.failed, planned.iter().filter(|plan| !plan.is_put));
            self.counts.put_errors.add(refused.failed.len() as u64);
            let rows: HashSet<usize> = refused.failed.iter().map(|failure| failure.row).collect();
            let mut row = 0;
            planned.retain(|plan| {
                let is_refused = !plan.is_put && rows.contains(&row);
                row += usize::from(!plan.is_put);
                !is_refused
            });
        }
        for plan in &planned {
            self.counts.rows_rewritten.add(1);
            self.counts.cells_written.add(u64::from(!plan.is_put));
            self.counts.identical.add(plan.duplicates.identical);
            self.counts.variant.add(plan.duplicates.variant);
        }
        Ok(planned)
    }

    /// Leaves out rows whose new cell a reader does not see: a tombstone lies over it.
    fn seen(&self, mut put: Vec<RowPlan>) -> Result<Vec<RowPlan>> {
        let (store, data) = (self.schema.store(), &self.schema.tables().data);
        // Side by side: over a network each takes its time.
        let asked: Vec<_> = gets_of_new_cells(&put).into_iter().map(|get| store.get(data, get)).collect();
        let found = asked.into_iter().map(Pending::wait).collect::<Result<Vec<_>>>()?;
        let rows = found.iter().flat_map(RowBatch::rows);
        let cells = rows.flat_map(|row| row.cells().map(move |cell| (row.key(), cell.qualifier, cell.value)));
        let cells: HashSet<(&[u8], &[u8], &[u8])> = cells.collect();
        let before = put.len();
        put.retain(|plan| plan.is_put || cells.contains(&(&plan.key[..], &plan.qualifier[..], &plan.value[..])));
        self.counts.hidden.add((before - put.len()) as u64);
        Ok(put)
    }

    /// Deletes the parts of folded cells that are put, each up to the time at which it was read.
    fn delete(&self, put: &[RowPlan]) -> Result<()> {
        let mut batch = MutationBatch::new(Durability::Fsync);
        for plan in put.iter().filter(|plan| !plan.parts.is_empty()) {
            let mut row = batch.row(&plan.key)?;
            for (qualifier, time) in &plan.parts {
                row.delete_column(DATA_FAMILY, qualifier, Some(*time))?;
            }
        }
        let failed = self.apply(batch)?.failed;
        self.put_off_refused(&failed, put.iter().filter(|plan| !plan.parts.is_empty()));
        let refused: HashSet<usize> = failed.iter().map(|failure| failure.row).collect();
        self.counts.delete_errors.add(refused.len() as u64);
        let deleted = put.iter().filter(|plan| !plan.parts.is_empty()).enumerate();
        let deleted = deleted.filter(|(row, _)| !refused.contains(row)).map(|(_, plan)| plan.parts.len() as u64);
        self.counts.cells_deleted.add(deleted.sum());
        Ok(())
    }

    fn apply(&self, batch: MutationBatch) -> Result<Applied> {
        if batch.is_empty() {
            return Ok(Applied::default());
        }
        self.schema.store().apply(&self.schema.tables().data, batch).wait()
    }

    /// Has rows wait again, for some minutes.
    fn put_off(&self, base: BaseTime, series: &RoaringBitmap) {
        self.note(series.iter().map(|series| (SeriesId(series), base)));
    }

    /// The same for those of a batch, one entry each, that were refused for now.
    fn put_off_refused<'a>(&self, failed: &[RowFailure], batch: impl Iterator<Item = &'a RowPlan>) {
        let passing = failed.iter().filter(|failure| is_passing(&failure.error)).map(|failure| failure.row);
        let passing: HashSet<usize> = passing.collect();
        let (layout, index) = (self.schema.layout(), self.schema.index());
        let refused = batch.enumerate().filter(|(row, _)| passing.contains(row));
        self.note(refused.filter_map(|(_, plan)| {
            let key = layout.decode(&plan.key).ok()?;
            Some((index.id(&key.tsuid())?, key.base()))
        }));
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Its numbers are whole after each change.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_s(&self) -> u64 {
        self.clock.now().0 / 1000
    }
}

/// Gets of the new cells of rows. One asks for each of its columns in each of its rows, so a get is of rows whose new cells have
/// the same qualifier, which is as long as a row has points.
fn gets_of_new_cells(put: &[RowPlan]) -> Vec<Get> {
    let mut rows = HashMap::<&[u8], Vec<Bytes>>::new();
    for plan in put.iter().filter(|plan| !plan.is_put) {
        rows.entry(&plan.qualifier).or_default().push(Bytes::copy_from_slice(&plan.key));
    }
    let get = |(qualifier, rows)| {
        Get::rows(rows).with_columns(Columns::column(DATA_FAMILY, Bytes::copy_from_slice(qualifier)))
    };
    rows.into_iter().map(get).collect()
}

/// When a row that is written to now may be rewritten: after its hour, and where that is past, when the write has had time.
fn due_s(base: BaseTime, now_s: u64, quiet_ms: u64) -> u64 {
    let quiet_s = quiet_ms.div_ceil(1000);
    let after_hour = u64::from(base.seconds()) + u64::from(BaseTime::SPAN_S) + quiet_s + AFTER_HOUR_S;
    if now_s < after_hour {
        return after_hour;
    }
    (now_s + quiet_s + AFTER_HOUR_S).next_multiple_of(quiet_s.clamp(1, LATE_STEP_S))
}

/// Whether the same may be done later; what a store refuses for good, or cannot read, it would refuse again.
fn is_passing(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Throttled | ErrorKind::ReadOnly)
}

#[cfg(test)]
mod tests;
