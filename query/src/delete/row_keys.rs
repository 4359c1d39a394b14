//! The keys of the rows that there are of a plan's series; nothing else of them is read.
//!
//! Few series are asked for by their tags: the store then seeks from one of their rows to the next, over hours that hold nothing
//! and over rows of other series. Of many series, or where the metric has few rows, all its keys are read.

use std::collections::{BTreeMap, HashSet};

use basalt_schema::{BaseTime, DATA_FAMILY, Salt, Schema};
use basalt_store::{Columns, Filter, FuzzyKey, ListOperator, Scan};
use bytes::Bytes;
use foldhash::fast::RandomState;

use crate::Result;
use crate::cancel::Budget;
use crate::fetch::is_sooner_by_keys;
use crate::hours::Hours;
use crate::plan::Plan;

/// Series that one scan asks for by their tags: the store holds each row against all of them.
const SERIES_AT_ONCE: usize = 64;
/// Rows of one scan. It is over before they are changed, which takes longer than a server keeps a scan open.
const KEYS_AT_ONCE: u64 = 4_096;

/// Finds the keys.
#[derive(Debug)]
pub(super) struct RowKeys<'a> {
    pub(super) schema: &'a Schema,
    pub(super) plan: &'a Plan,
    pub(super) hours: Hours<'a>,
    pub(super) budget: &'a Budget,
}

impl RowKeys<'_> {
    /// Gives the keys of all rows, some at a time, in no order.
    ///
    /// *Cost*: a key a row of the series; where they are at most a part of the metric's and of its rows, a seek more for each of
    /// them and each hour in which others have rows, else the keys of these others.
    ///
    /// # Errors
    /// Those of `take`; the store's own, `Corrupt` keys, a budget.
    pub(super) fn each(&self, mut take: impl FnMut(&[Bytes]) -> Result<()>) -> Result<()> {
        let metric_bytes = self.schema.layout().widths.metric.bytes();
        let mut buckets: BTreeMap<u32, Vec<&[u8]>> = BTreeMap::new();
        for tsuid in &self.plan.series {
            let tags = tsuid.as_bytes().get(metric_bytes..).unwrap_or_default();
            buckets.entry(self.schema.layout().salt_of(tsuid).0).or_default().push(tags);
        }
        // One scan a bucket asks for these whatever is sooner.
        let is_few = buckets.values().all(|tags| tags.len() <= SERIES_AT_ONCE)
            || is_sooner_by_keys(self.schema, self.plan, self.hours, self.budget)?;
        for (salt, tags) in buckets {
            let at_once = if is_few { SERIES_AT_ONCE } else { tags.len() };
            for tags in tags.chunks(at_once) {
                self.of_tags(Salt(salt), tags, &mut take)?;
            }
        }
        Ok(())
    }

    fn of_tags(&self, salt: Salt, tags: &[&[u8]], take: &mut impl FnMut(&[Bytes]) -> Result<()>) -> Result<()> {
        let wanted: HashSet<&[u8], RandomState> = tags.iter().copied().collect();
        let mut scan = self.scan(salt, tags);
        let mut keys = Vec::new();
        loop {
            let (mut rows, mut last) = (0, None);
            let mut scanner = self.schema.store().scan(&self.plan.table, scan.clone())?;
            while let Some(batch) = scanner.step_wait() {
                let batch = batch?;
                for row in batch.rows() {
                    let is_wanted = wanted.contains(self.schema.layout().decode(row.key())?.tags_bytes());
                    let key = Bytes::copy_from_slice(row.key());
                    keys.extend(is_wanted.then(|| key.clone()));
                    last = Some(key);
                }
                rows += batch.len() as u64;
                self.budget.spend(0, batch.data_bytes() as u64)?;
            }
            take(&keys)?;
            keys.clear();
            let Some(last) = last.filter(|_| rows >= KEYS_AT_ONCE) else { return Ok(()) };
            (scan.start, scan.start_inclusive) = (last, false);
        }
    }

    fn scan(&self, salt: Salt, tags: &[&[u8]]) -> Scan {
        let layout = self.schema.layout();
        let bound = |base| layout.range_start(salt, self.plan.metric, base);
        let mut filters = Vec::new();
        if tags.len() <= SERIES_AT_ONCE {
            let fuzzy = |tags: &&[u8]| {
                let key = [&bound(self.hours.from), *tags].concat();
                let mut mask = vec![0; key.len()];
                mask.iter_mut().skip(layout.base_offset()).take(BaseTime::BYTES).for_each(|any| *any = 1);
                FuzzyKey { key: key.into(), mask: mask.into() }
            };
            filters.push(Filter::FuzzyRow(tags.iter().map(fuzzy).collect()));
        } else {
            filters.extend(self.plan.row_filter.clone());
        }
        filters.extend([Filter::FirstKeyOnly, Filter::KeyOnly]);
        let range = Scan::range(bound(self.hours.from), bound(self.hours.to));
        let mut scan = range.with_columns(Columns::family(DATA_FAMILY));
        scan.filter = Some(Filter::List(ListOperator::All, filters));
        scan.limit_rows = Some(KEYS_AT_ONCE);
        scan
    }
}
