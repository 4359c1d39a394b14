//! Meta objects and counters that come by themselves, as points do.
//!
//! All off unless switched on: the series index answers without them. The bytes are those of `ts_meta` and `uid_meta`.
//!
//! OpenTSDB 2.4 looks at none of them unless `track` is on, and then writes the object or a counter, not both, unless
//! `count` is on too. That is kept under `strict`; else each switch does what its name says. *Source*: OpenTSDB 2.4
//! `TSDB.storeIntoDB`, `TSMeta.incrementAndGetCounter`, `TSMeta.storeIfNecessary` (rules S-TSMETA, S-UIDMETA).

use std::sync::atomic::Ordering;

use basalt_store::{Durability, ErrorKind, Increment, MutationBatch};
use bytes::Bytes;

use crate::tables::UID_NAME_FAMILY;
use crate::ts_meta::COUNTER_QUALIFIER;
use crate::{Result, Schema, TsMeta, TsMetaEdit, Tsuid};

impl Schema {
    /// A series was met that was not met before, or not since a meta object was deleted: it gets its object and its
    /// place in the trees. Durable with the next write at level `Fsync`.
    ///
    /// What fails is counted, and no reason to refuse a point: only a damaged or missing cell fails where the point
    /// itself will not. *Cost*: nothing unless switched on; else a get, and for a new series some checked puts.
    pub fn note_series(&self, tsuid: &Tsuid) {
        if self.config().realtime.makes_objects() && self.keep_series(tsuid).is_err() {
            self.realtime_failures_count().fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A series was given its meta object by hand: it gets its place in the trees, durable when it returns. What fails is counted.
    pub(crate) fn note_in_trees(&self, tsuid: &Tsuid, meta: &TsMeta) {
        let grown = self.grow_live_trees(tsuid, meta).and_then(|()| Ok(self.store().sync().wait()?));
        if grown.is_err() {
            self.realtime_failures_count().fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Points are on their way into these series. Durable with the next write at level `Fsync`.
    ///
    /// *Cost*: nothing unless [`Realtime::counts`](crate::Realtime::counts); else a read-modify-write a series, or one batch of puts.
    pub fn note_points(&self, series: &[(Tsuid, u32)]) {
        if self.config().realtime.counts() && self.keep_counters(series).is_err() {
            self.realtime_failures_count().fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How often meta objects, counters or places in trees could not be kept.
    pub fn realtime_failures(&self) -> u64 {
        self.realtime_failures_count().load(Ordering::Relaxed)
    }

    fn keep_series(&self, tsuid: &Tsuid) -> Result<()> {
        if self.has_ts_meta(tsuid)? {
            return Ok(());
        }
        let created = i64::try_from(self.config().clock.now().0 / 1000).ok();
        self.make_ts_meta(tsuid, &TsMetaEdit { created, ..TsMetaEdit::default() })?;
        if self.config().realtime.trees
            && let Some(meta) = self.ts_meta(tsuid)?
        {
            self.grow_live_trees(tsuid, &meta)?;
        }
        Ok(())
    }

    fn keep_counters(&self, series: &[(Tsuid, u32)]) -> Result<()> {
        if self.config().realtime.increments() {
            let pending: Vec<_> = series.iter().map(|(tsuid, count)| self.increment_counter(tsuid, *count)).collect();
            // All are asked for before the first is waited for.
            return pending.into_iter().try_for_each(|pending| match pending.wait() {
                Err(error) if error.kind() != ErrorKind::Invalid => Err(error.into()),
                // A cell that is no counter stays: it is somebody's, and `uid metasync` tells of it.
                _ => Ok(()),
            });
        }
        let mut batch = MutationBatch::new(Durability::Async);
        for (tsuid, _) in series {
            batch.row(tsuid.as_bytes())?.put(UID_NAME_FAMILY, COUNTER_QUALIFIER, None, &1i64.to_be_bytes())?;
        }
        self.apply(&self.tables().meta, batch)
    }

    pub(crate) fn increment_counter(&self, tsuid: &Tsuid, count: u32) -> basalt_store::Pending<i64> {
        let increment = Increment {
            row: Bytes::copy_from_slice(tsuid.as_bytes()),
            family: Bytes::from_static(UID_NAME_FAMILY),
            qualifier: Bytes::from_static(COUNTER_QUALIFIER),
            amount: count.into(),
            durability: Durability::Async,
        };
        self.store().increment(&self.tables().meta, increment)
    }
}

#[cfg(test)]
mod tests;
