//! Meta objects made and removed after the fact: `uid metasync`, `uid metapurge`.
//!
//! *Source*: OpenTSDB 2.4 `MetaSync`, `MetaPurge` (rule C-META). There many threads meet a name's rows in no order and
//! settle its time within the hour; here all rows are read first, so the time is that of the first one.

use std::collections::BTreeMap;
use std::sync::Arc;

use basalt_store::{Columns, Durability, ErrorKind, Filter, ListOperator, MutationBatch, Scan, TableName, WriteBuffer};

use crate::config::Realtime;
use crate::tables::{DATA_FAMILY, UID_NAME_FAMILY};
use crate::ts_meta::{COUNTER_QUALIFIER, META_QUALIFIER};
use crate::{Result, Schema, TsMetaEdit, Tsuid, Uid, UidKind};

/// A time of an object may be this much after the first row, seconds: the row's own hour.
const LATE_S: i64 = 3600;

/// A batch of deletes with more than so much is sent.
const DELETES_BYTES_MAX: usize = 256 << 10;

/// What a sync did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MetaSync {
    /// Series that have rows.
    pub series: u64,
    /// Objects of names made or given an earlier time.
    pub names_changed: u64,
    /// Objects of series made.
    pub series_made: u64,
    /// Counters of series made.
    pub counters_made: u64,
    /// Objects of series given an earlier time.
    pub series_changed: u64,
    /// Series that were passed over, as one of their names is gone or a cell is damaged.
    pub skipped: u64,
}

/// What a purge removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MetaPurge {
    /// Objects of names.
    pub names: u64,
    /// Objects and counters of series.
    pub series: u64,
}

impl Schema {
    /// Makes the meta objects that rows of points lack, and sets times that are later than the points. Durable when it
    /// returns.
    ///
    /// A series without object and counter gets both. OpenTSDB makes the counter alone unless `enable_realtime_ts` is on,
    /// and the object at the next sync: so does `strict`.
    ///
    /// *Cost*: a scan of the data table's keys, then a few reads and writes a name and series, and one sync; memory for a time a series.
    ///
    /// # Errors
    /// The store's own.
    pub fn sync_metas(&self) -> Result<MetaSync> {
        let firsts = self.first_hours()?;
        let mut sync = MetaSync { series: firsts.len() as u64, ..MetaSync::default() };
        for kind in UidKind::ALL {
            for (uid, first) in self.first_hours_of_names(&firsts, kind) {
                match self.sync_name(kind, uid, first) {
                    Ok(changed) => sync.names_changed += u64::from(changed),
                    Err(error) => skip_or_fail(&mut sync, error)?,
                }
            }
        }
        for (tsuid, first) in &firsts {
            if let Err(error) = self.sync_series(tsuid, *first, &mut sync) {
                skip_or_fail(&mut sync, error)?;
            }
        }
        self.store().sync().wait()?;
        Ok(sync)
    }

    /// Every series that has rows, with the time of its first one, seconds.
    fn first_hours(&self) -> Result<BTreeMap<Tsuid, i64>> {
        let mut scan = Scan::all().with_columns(Columns::family(DATA_FAMILY));
        scan.filter = Some(Filter::List(ListOperator::All, vec![Filter::FirstKeyOnly, Filter::KeyOnly]));
        let mut scanner = self.store().scan(&self.tables().data, scan)?;
        let mut firsts = BTreeMap::<Tsuid, i64>::new();
        while let Some(batch) = scanner.next_wait() {
            for row in batch?.rows() {
                let Ok(key) = self.layout().decode(row.key()) else { continue };
                if key.is_global_annotations() {
                    continue;
                }
                let hour = i64::from(key.base().seconds());
                let first = firsts.entry(key.tsuid()).or_insert(hour);
                *first = hour.min(*first);
            }
        }
        Ok(firsts)
    }

    fn first_hours_of_names(&self, firsts: &BTreeMap<Tsuid, i64>, kind: UidKind) -> BTreeMap<Uid, i64> {
        let widths = self.layout().widths;
        let mut hours = BTreeMap::<Uid, i64>::new();
        let mut see = |uid: Uid, first: i64| {
            let hour = hours.entry(uid).or_insert(first);
            *hour = first.min(*hour);
        };
        for (tsuid, first) in firsts {
            match kind {
                UidKind::Metric => see(tsuid.metric(widths), *first),
                UidKind::Tagk => tsuid.pairs(widths).for_each(|pair| see(pair.key, *first)),
                UidKind::Tagv => tsuid.pairs(widths).for_each(|pair| see(pair.value, *first)),
            }
        }
        hours
    }

    fn sync_name(&self, kind: UidKind, uid: Uid, first: i64) -> Result<bool> {
        let meta = self.uid_meta(kind, uid)?;
        if !is_late(meta.created, first) {
            return Ok(false);
        }
        self.set_back_uid_meta(kind, uid, first)?;
        Ok(true)
    }

    fn sync_series(&self, tsuid: &Tsuid, first: i64, sync: &mut MetaSync) -> Result<()> {
        if let Some(meta) = self.ts_meta(tsuid)? {
            if is_late(meta.said.created, first) {
                self.set_back_ts_meta(tsuid, first)?;
                sync.series_changed += 1;
            }
            return Ok(());
        }
        self.names(tsuid)?;
        let Realtime { series, trees, strict, .. } = self.config().realtime;
        let is_uncounted = !self.has_ts_counter(tsuid)?;
        if is_uncounted {
            self.increment_counter(tsuid, 1).wait()?;
            sync.counters_made += 1;
        }
        if strict && is_uncounted && !series {
            return Ok(());
        }
        let edit = TsMetaEdit { created: Some(first), ..TsMetaEdit::default() };
        sync.series_made += u64::from(self.make_ts_meta(tsuid, &edit)?);
        if trees && let Some(meta) = self.ts_meta(tsuid)? {
            self.grow_live_trees(tsuid, &meta)?;
        }
        Ok(())
    }

    /// Removes every meta object of names and series, and the counters. Durable when it returns.
    ///
    /// OpenTSDB stops at the largest UID of a metric, so that objects of tags beyond it stay; here none does.
    ///
    /// *Cost*: a scan of the UID table's names and of the meta table.
    ///
    /// # Errors
    /// The store's own.
    pub fn purge_metas(&self) -> Result<MetaPurge> {
        let kinds = UidKind::ALL.map(|kind| kind.meta_qualifier().as_bytes());
        let scan = || Scan::all().with_columns(Columns::family(UID_NAME_FAMILY));
        let names = self.delete_cells(&self.tables().uid, scan(), |qualifier| kinds.contains(&qualifier))?;
        let series = [META_QUALIFIER, COUNTER_QUALIFIER];
        let series = self.delete_cells(&self.tables().meta, scan(), |qualifier| series.contains(&qualifier))?;
        self.uids().raise_generation();
        Ok(MetaPurge { names, series })
    }

    /// Deletes the cells of a scan whose qualifier is one that `goes`; how many there were. Durable when it returns.
    pub(crate) fn delete_cells(&self, table: &TableName, scan: Scan, goes: impl Fn(&[u8]) -> bool) -> Result<u64> {
        let mut scanner = self.store().scan(table, scan)?;
        let batch = MutationBatch::new(Durability::Fsync);
        let mut doomed = WriteBuffer::new(Arc::clone(self.store()), table.clone(), batch, DELETES_BYTES_MAX);
        let mut deleted = 0;
        while let Some(batch) = scanner.next_wait() {
            for row in batch?.rows() {
                let mut cells = row.cells().filter(|cell| goes(cell.qualifier)).peekable();
                if cells.peek().is_none() {
                    continue;
                }
                let mut doomed = doomed.row(row.key())?;
                for cell in cells {
                    // With the cell's own time: a tombstone of the server's would hide a put of the same millisecond.
                    doomed.delete_column(cell.family, cell.qualifier, Some(cell.timestamp))?;
                    deleted += 1;
                }
            }
        }
        doomed.close()?;
        Ok(deleted)
    }
}

/// Whether an object's time is none, or later than its first point can be.
const fn is_late(created: i64, first: i64) -> bool {
    created == 0 || created > first + LATE_S
}

/// A name that is gone, or a cell that is damaged, ends the work on one series only.
fn skip_or_fail(sync: &mut MetaSync, error: crate::Error) -> Result<()> {
    if !is_of_one_series(&error) {
        return Err(error);
    }
    sync.skipped += 1;
    Ok(())
}

/// Whether other series may do better.
pub(crate) fn is_of_one_series(error: &crate::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Corrupt | ErrorKind::Invalid | ErrorKind::Conflict)
}

#[cfg(test)]
mod tests;
