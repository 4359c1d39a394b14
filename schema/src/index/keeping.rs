//! The index between two runs: a log beside the tables, so that a start reads what it says, and then only rows that came after.
//!
//! Invariants:
//! - A record holds for all changes up to its number when the index knew the series of every such change, and all of them are
//!   in this record and those before it; the UIDs of its series are on disk. So every beginning of the log is true,
//!   and a log that lost its end costs a longer look.
//! - Who writes rows adds their series to the index first ([`crate::IndexedStore`] does for those who know no series); rows
//!   written without an index, as by the shell on a closed folder, have later numbers than the last record.
//! - No record has a series whose rows went with their table: its UIDs may be given to other names. Where the index has such, there
//!   is no log until the next start, which reads all row keys.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use basalt_store::{ErrorKind, SeqNo, SideLog, Store, TableName};

use super::block::Scope;
use super::rebuild::{LogRead, ReadRows};
use super::{RebuildReport, SeriesIndex, block};
use crate::{KeyLayout, Result};

/// The log's name.
const LOG: &str = "series";
/// Series of a block, at most.
const BLOCK_SERIES: usize = 16 * 1024;
/// Records beyond one a block at which the log is written anew: most of them say of few series, or of none, what changes they hold for.
const RECORDS_MAX: usize = 4096;

/// Keeps the index; by default it does not.
#[derive(Debug, Default)]
pub(crate) struct Keeping {
    /// And of what its blocks are.
    log: Option<(Arc<dyn SideLog>, Scope)>,
    /// Guards how far the log is; held over its I/O, one checkpoint at a time. Rank: above the index's own locks.
    state: Mutex<State>,
}

/// How far the log is.
#[derive(Debug, Default)]
struct State {
    /// The epoch of the rows that the index knows.
    epoch: u64,
    upto: SeqNo,
    /// Of the series with ids below this one.
    series: usize,
    records: usize,
    /// The log is not what this says: it is to be written anew.
    is_lost: bool,
    /// The index has series without rows: no log is to be written.
    is_stale: bool,
}

/// What is to be written: the series that the index knew at some moment.
struct IndexedSeries<'a> {
    index: &'a SeriesIndex,
    scope: Scope,
    /// The id above theirs.
    series: usize,
}

impl IndexedSeries<'_> {
    /// Where the block ends that begins with an id.
    fn block_end(&self, start: usize) -> usize {
        self.index.block_end(start, self.series.min(start + BLOCK_SERIES))
    }

    fn block(&self, ids: Range<usize>) -> Vec<u8> {
        self.index.block(self.scope, ids)
    }
}

/// What an index is made of.
#[derive(Debug)]
pub(crate) struct Rows<'a> {
    pub(crate) store: &'a dyn Store,
    /// All with keys of this layout.
    pub(crate) tables: Vec<&'a TableName>,
    pub(crate) layout: KeyLayout,
}

impl Keeping {
    /// Fills an empty index: from the log, and from the rows that came after. `uid` is the table of the series' names.
    ///
    /// # Errors
    /// As [`SeriesIndex::rebuild`], and the log's own.
    pub(crate) fn open(index: &mut SeriesIndex, rows: &Rows<'_>, uid: &TableName) -> Result<(Self, RebuildReport)> {
        let scope = rows.scope();
        let log = rows.store.side_log(LOG).map(|log| (log, scope));
        if let Some((log, _)) = &log {
            // Of names too: of a series that has no row yet, the UIDs may be given to other names.
            log.is_of(&[&rows.tables[..], &[uid]].concat());
        }
        let mut state = State::default();
        let read = log.as_ref().map_or(LogRead::None, |(log, scope)| state.read(index, &**log, *scope));
        state.is_lost = read != LogRead::Whole;
        if let (LogRead::Ahead, Some((log, _))) = (read, &log) {
            // Emptied at once: when the store is as far as it says, nobody sees any more that its numbers were other changes'.
            log.read(&mut |_, _| false)?;
            // Of what it told nothing is known, its UIDs may be given to other names.
            *index = SeriesIndex::new(index.widths, index.series_max);
            state = State { epoch: state.epoch, is_lost: true, ..State::default() };
        }
        let series_kept = index.len() as u64;
        let after = Some(state.upto).filter(|upto| *upto > SeqNo(0));
        let ReadRows { mut report, .. } = rows.read(index, after)?;
        (report.log, report.series_kept) = (read, series_kept);
        Ok((Self { log, state: Mutex::new(state) }, report))
    }

    /// Whether the log is there and whole, by its frames alone: then no repair took anything since it was written. Cuts off what is
    /// damaged, as [`Keeping::open`] does; what cannot be read is not whole.
    pub(crate) fn is_whole(rows: &Rows<'_>) -> bool {
        let Some(log) = rows.store.side_log(LOG) else { return false };
        let scope = rows.scope();
        let mut last = None;
        let read = log.read(&mut |upto, payload| {
            let is_ours = block::is_of(scope, payload);
            last = Some(upto).filter(|_| is_ours);
            is_ours
        });
        matches!(read, Ok(false)) && last.is_some_and(|upto| upto <= log.synced())
    }

    /// Writes down what the index knows more than its log says. On disk when it returns.
    ///
    /// *Cost*: by the number of new series, and a sync of the store where there are any; all of them where the log is written
    /// anew. Where older rows came back or a table of its was emptied or dropped, a scan of all row keys, once no table is disabled.
    ///
    /// # Errors
    /// As [`SeriesIndex::rebuild`], and the log's own; the next call goes on from there.
    pub(crate) fn checkpoint(&self, index: &SeriesIndex, rows: &Rows<'_>) -> Result<()> {
        let Some((log, scope)) = &self.log else { return Ok(()) };
        let mut state = self.state();
        let epoch = log.epoch();
        if epoch != state.epoch {
            let Some(rows) = rows.now()? else { return Ok(()) };
            let (known, end) = (index.len(), index.ids_end());
            // What is on its way by now has its row then.
            rows.store.sync().wait()?;
            let with_rows = rows.read(index, None)?.series;
            let is_known = |id: &u32| (*id as usize) < end;
            let is_stale = with_rows.iter().take_while(is_known).count() < known;
            (state.epoch, state.is_lost, state.is_stale) = (epoch, true, is_stale);
        }
        if state.is_stale {
            return Ok(());
        }
        // First the number, then the series: those of all changes up to it are in the index by now.
        let (upto, series) = (log.synced(), index.ids_end());
        if !state.is_lost && (state.upto, state.series) == (upto, series) {
            return Ok(());
        }
        if state.is_lost || state.series < series {
            // A crash takes back what is not on disk, and then other names are given the UIDs of series that are new.
            rows.store.sync().wait()?;
        }
        let known = IndexedSeries { index, scope: *scope, series };
        let is_long = state.records > RECORDS_MAX + series / BLOCK_SERIES;
        if state.is_lost || is_long || !state.append(&known, &**log, upto)? {
            state.is_lost = true;
            state.replace(&known, &**log, upto)?;
        }
        Ok(())
    }

    /// As [`Keeping::checkpoint`] at the end of a server, which is not to wait for a scan of all row keys: where one is under way or
    /// called for, the log stays as it is.
    pub(crate) fn last_checkpoint(&self, index: &SeriesIndex, rows: &Rows<'_>) -> Result<()> {
        let Some((log, _)) = &self.log else { return Ok(()) };
        let is_near = self.state.try_lock().is_ok_and(|state| state.epoch == log.epoch());
        if is_near { self.checkpoint(index, rows) } else { Ok(()) }
    }

    /// Empties the log; the next checkpoint writes it anew.
    ///
    /// # Errors
    /// The log's own.
    pub(crate) fn forget(&self) -> Result<()> {
        let Some((log, _)) = &self.log else { return Ok(()) };
        self.state().is_lost = true;
        log.read(&mut |_, _| false)?;
        Ok(())
    }

    /// Has the next checkpoint look at all row keys, as where the epoch was raised.
    pub(crate) fn doubt(&self) {
        let mut state = self.state();
        state.epoch = state.epoch.wrapping_sub(1);
    }

    /// The log, where what it holds for is what the index knows; `None` too where there is none.
    pub(super) fn log_in_step(&self) -> Option<(&dyn SideLog, u64)> {
        let (log, _) = self.log.as_ref()?;
        let epoch = self.state().epoch;
        (log.epoch() == epoch).then_some((&**log, epoch))
    }

    /// So many series left, all that had no row in this epoch: the log is to be written without them.
    pub(super) fn note_departed(&self, epoch: u64, gone: u64) {
        let mut state = self.state();
        state.is_lost |= gone > 0;
        state.is_stale &= state.epoch != epoch;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Adds what the log says.
    fn read(&mut self, index: &SeriesIndex, log: &dyn SideLog, scope: Scope) -> LogRead {
        self.epoch = log.epoch();
        let read = log.read(&mut |upto, payload| {
            let added = block::decode(scope, payload).is_some_and(|sets| index.add_sets(&sets).is_ok());
            if added {
                (self.upto, self.records) = (upto, self.records + 1);
            }
            added
        });
        self.series = index.ids_end();
        if self.upto > log.synced() {
            return LogRead::Ahead;
        }
        match read {
            Ok(false) if self.records > 0 => LogRead::Whole,
            Ok(true) if self.records > 0 => LogRead::Cut,
            Ok(_) => LogRead::Absent,
            Err(_) => {
                // What was read before is true all the same.
                if self.records > 0 { LogRead::Cut } else { LogRead::Absent }
            }
        }
    }

    /// Appends what is new; false when the log takes nothing.
    fn append(&mut self, known: &IndexedSeries<'_>, log: &dyn SideLog, upto: SeqNo) -> Result<bool> {
        loop {
            let end = known.block_end(self.series);
            // All before the last hold for no more changes than those before them: a crash may leave them the last.
            let holds = if end == known.series { upto } else { self.upto };
            let payload = known.block(self.series..end);
            if !log.append(self.epoch, holds, &payload)? {
                return Ok(false);
            }
            (self.series, self.upto, self.records) = (end, holds, self.records + 1);
            if end == known.series {
                return Ok(true);
            }
        }
    }

    fn replace(&mut self, known: &IndexedSeries<'_>, log: &dyn SideLog, upto: SeqNo) -> Result<()> {
        let series = known.series;
        let (mut next, mut records) = (Some(0), 0);
        let mut blocks = std::iter::from_fn(|| {
            let start = next?;
            let end = known.block_end(start);
            (next, records) = (Some(end).filter(|end| *end < series), records + 1);
            Some(known.block(start..end))
        });
        if log.replace(self.epoch, upto, &mut blocks)? {
            (self.series, self.upto, self.records, self.is_lost) = (series, upto, records, false);
        }
        Ok(())
    }
}

impl Rows<'_> {
    /// That of an index of them.
    fn scope(&self) -> Scope {
        Scope::new(self.layout.widths, self.tables.iter().map(ToString::to_string))
    }

    /// Those of the tables that are there by now; `None` while one is disabled.
    pub(super) fn now(&self) -> Result<Option<Self>> {
        let mut tables = self.tables.clone();
        for table in &self.tables {
            match self.store.is_table_enabled(table) {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(error) if error.kind() == ErrorKind::NotFound => tables.retain(|there| there != table),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Some(Self { tables, ..*self }))
    }

    /// Adds the series of all rows, or of those changed after a number.
    fn read(&self, index: &SeriesIndex, after: Option<SeqNo>) -> Result<ReadRows> {
        let mut read = ReadRows::default();
        for table in &self.tables {
            index.add_rows_of(self.store, table, self.layout, after, &mut read)?;
        }
        Ok(read)
    }
}
