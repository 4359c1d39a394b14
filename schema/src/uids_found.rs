//! UIDs that occur, in row keys and in either map of the UID table, and the counters that must not be behind them.
//!
//! Where cells of the UID table are lost, as by a repair, a counter may be behind UIDs under which points lie: the next new names
//! would get them, and answer with others' points. A repair that loses anything takes the index's log away, so all row keys are read
//! at the next open, and what occurs is known. From then on:
//! - no UID is given out that is not above all that occur ([`crate::UidTable`] jumps over them);
//! - no log of the index is written before the counters are raised, so that each open until then looks again. One who only reads
//!   raises none, and writes no log.

use basalt_store::{Columns, FamilyColumns, RowView, Scan};
use bytes::Bytes;
use roaring::RoaringTreemap;

use crate::tables::{UID_ID_FAMILY, UID_NAME_FAMILY};
use crate::uid_table::COUNTER_ROW;
use crate::{Result, Schema, SeriesIndex, Uid, UidKind, UidWidths};

/// What an open found of one kind's UIDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UidsFound {
    /// Whose.
    pub kind: UidKind,
    /// The largest one in row keys and in either map.
    pub largest: Uid,
    /// The counter, where it is behind that: 0 where it is lost. None of UIDs that are drawn at random, or where the cell is no counter,
    /// as then nothing is assigned.
    pub counter_behind: Option<i64>,
    /// How many are in row keys and in neither map.
    pub nameless_count: u64,
    /// How many more have a name than names have a UID.
    pub unled_count: u64,
}

/// What is met of one kind.
#[derive(Debug, Default)]
struct Met {
    largest: u64,
    /// Those of row keys that no map has.
    nameless: RoaringTreemap,
    forward_count: u64,
    reverse_count: u64,
}

impl Schema {
    /// Looks for the UIDs that occur. The index has every series.
    ///
    /// *Cost*: a scan of the UID table; memory by UIDs, about a bit each.
    pub(crate) fn find_uids(&self) -> Result<Vec<UidsFound>> {
        let mut met: [Met; 3] = Default::default();
        add_rows(self.index(), &mut met);
        self.add_names(&mut met)?;
        let found = |(kind, met): (UidKind, Met)| {
            let (uids, largest) = (self.uids().of(kind), Uid::new(met.largest));
            Ok(UidsFound {
                kind,
                largest,
                counter_behind: uids.counter()?.filter(|counter| uids.is_behind(*counter, largest)),
                nameless_count: met.nameless.len(),
                unled_count: met.reverse_count.saturating_sub(met.forward_count),
            })
        };
        UidKind::ALL.into_iter().zip(met).map(found).collect()
    }

    /// Looks again for the UIDs that occur, behind a copy of the tables past this schema, and raises the counters that are behind,
    /// durably. The index has every series, as [`crate::IndexedStore`] adds them.
    ///
    /// *Cost*: a scan of the UID table; memory by UIDs, about a bit each.
    ///
    /// # Errors
    /// The store's own; counters of which not all are raised.
    pub fn find_uids_again(&self) -> Result<Vec<UidsFound>> {
        let found = self.find_uids()?;
        self.raise_counters(&found)?;
        Ok(found)
    }

    /// Raises the counters that were found behind, durably.
    pub(crate) fn raise_counters(&self, found: &[UidsFound]) -> Result<()> {
        let mut behind = found.iter().filter(|found| found.counter_behind.is_some());
        behind.try_for_each(|found| self.uids().of(found.kind).raise_counter(found.largest))
    }

    fn add_names(&self, met: &mut [Met; 3]) -> Result<()> {
        let qualifiers = UidKind::ALL.map(|kind| Bytes::from_static(kind.qualifier().as_bytes()));
        let family = |family: &'static [u8]| FamilyColumns { family: family.into(), qualifiers: qualifiers.to_vec() };
        let mut scan = Scan::all().with_columns(Columns([UID_ID_FAMILY, UID_NAME_FAMILY].map(family).into()));
        scan.cache_blocks = false;
        let mut scanner = self.store().scan(&self.tables().uid, scan)?;
        while let Some(batch) = scanner.next_wait() {
            batch?.rows().filter(|row| row.key() != COUNTER_ROW).for_each(|row| {
                add_name(&row, self.layout().widths, met);
            });
        }
        Ok(())
    }
}

/// Adds the UIDs of row keys; a key without a tag is none of a point.
fn add_rows(index: &SeriesIndex, [metrics, tagks, tagvs]: &mut [Met; 3]) {
    for metric in index.metrics() {
        for tagk in index.tag_keys(metric) {
            metrics.add(metric);
            tagks.add(tagk);
            index.tag_values(metric, tagk).into_iter().for_each(|tagv| tagvs.add(tagv));
        }
    }
}

/// Adds the UIDs of a row of the UID table.
fn add_name(row: &RowView<'_>, widths: UidWidths, met: &mut [Met; 3]) {
    for cell in row.cells() {
        let kinds = UidKind::ALL.into_iter().zip(&mut *met);
        let Some((kind, met)) = kinds.into_iter().find(|(kind, _)| kind.qualifier().as_bytes() == cell.qualifier)
        else {
            continue;
        };
        let is_forward = cell.family == UID_ID_FAMILY;
        let id = if is_forward { cell.value } else { row.key() };
        if let Some(uid) = Uid::decode(id).filter(|_| id.len() == widths.of(kind).bytes()) {
            met.largest = met.largest.max(uid.number());
            met.nameless.remove(uid.number());
            *(if is_forward { &mut met.forward_count } else { &mut met.reverse_count }) += 1;
        }
    }
}

impl Met {
    fn add(&mut self, uid: Uid) {
        self.largest = self.largest.max(uid.number());
        self.nameless.insert(uid.number());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use basalt_store::{Durability, ManualClock, MemoryStore, MutationBatch, Store};

    use super::*;
    use crate::{BaseTime, DATA_FAMILY, SchemaConfig, TagPair, Tsuid, UidDice};

    fn memory() -> Arc<dyn Store> {
        Arc::new(MemoryStore::new(Arc::new(ManualClock::default())))
    }

    fn open(store: &Arc<dyn Store>) -> Schema {
        Schema::open(Arc::clone(store), SchemaConfig::default()).unwrap()
    }

    /// A row of a metric, with the tag 2=3, or without.
    fn put_row(schema: &Schema, metric: u64, has_tag: bool) {
        let pair = TagPair { key: Uid::new(2), value: Uid::new(3) };
        let tags = if has_tag { vec![pair] } else { vec![] };
        let tsuid = Tsuid::new(Uid::new(metric), &tags, schema.layout().widths);
        let key = schema.layout().series_key(&tsuid).row_key(BaseTime::of_seconds(3600));
        put(schema, "tsdb", &key, DATA_FAMILY, b"\0\0");
    }

    fn put(schema: &Schema, table: &str, row: &[u8], family: &[u8], qualifier: &[u8]) {
        let mut batch = MutationBatch::new(Durability::Fsync);
        let value = if family == UID_ID_FAMILY { &[0, 0, 9][..] } else { b"name" };
        batch.row(row).unwrap().put(family, qualifier, None, value).unwrap();
        schema.apply(&table.parse().unwrap(), batch).unwrap();
    }

    fn drawn(schema: &Schema) -> [u64; 3] {
        UidKind::ALL.map(|kind| schema.uids().of(kind).uid_or_create("new").unwrap().number())
    }

    /// S-UID-COUNTER: whatever was lost of the UID table.
    #[test]
    fn no_uid_of_a_row_or_a_map_is_given_out_again() {
        let store = memory();
        let first = open(&store);
        assert!(first.uids_found().iter().all(|found| found.counter_behind.is_none()));
        put_row(&first, 7, true);
        // No points lie there: the first has no tags, and the second is of annotations.
        put_row(&first, 0x74_65_73, false);
        put_row(&first, 0, true);
        // Each alone is left of a name.
        put(&first, "tsdb-uid", b"led", UID_ID_FAMILY, b"tagk");
        put(&first, "tsdb-uid", &[0, 0, 8], UID_NAME_FAMILY, b"tagv");
        let found = |largest, unled_count, kind| UidsFound {
            kind,
            largest: Uid::new(largest),
            counter_behind: Some(0),
            nameless_count: 1,
            unled_count,
        };
        let [metric, tagk, tagv] = UidKind::ALL;
        let expected = [found(7, 0, metric), found(9, 0, tagk), found(8, 1, tagv)];
        let again = open(&store);
        assert_eq!(again.uids_found(), expected);
        assert_eq!(drawn(&again), [8, 10, 9]);
        let next = open(&store);
        assert!(next.uids_found().iter().all(|found| found.counter_behind.is_none()), "{:?}", next.uids_found());
    }

    #[test]
    fn a_checkpoint_of_one_who_may_assign_raises_the_counters() {
        let store = memory();
        put_row(&open(&store), 7, true);
        let config = SchemaConfig::default();
        let reader = Schema::open_existing(Arc::clone(&store), config).unwrap();
        reader.checkpoint().unwrap();
        let counters = |schema: &Schema| UidKind::ALL.map(|kind| schema.uids().of(kind).usage().unwrap().used);
        assert_eq!(counters(&reader), [0, 0, 0]);
        let writer = open(&store);
        for _twice in 0..2 {
            writer.checkpoint().unwrap();
            assert_eq!(counters(&writer), [7, 2, 3]);
        }
        assert_eq!(drawn(&writer), [8, 3, 4]);
    }

    /// S-UID-RANDOM: nobody counts, and a number of a row is passed over.
    #[test]
    fn a_random_uid_of_a_row_is_not_given_out() {
        let store = memory();
        put_row(&open(&store), 7, true);
        let rolls = std::sync::atomic::AtomicU64::new(6);
        let dice = UidDice::new(move || rolls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) / 2 * 2 + 1);
        let config = SchemaConfig { random_metrics: Some(dice), ..SchemaConfig::default() };
        let random = Schema::open(Arc::clone(&store), config).unwrap();
        assert_eq!(random.uids_found().iter().filter(|found| found.counter_behind.is_some()).count(), 2);
        assert_eq!(drawn(&random), [9, 3, 4]);
        assert_eq!(random.uids().of(UidKind::Metric).collisions_count(), 2);
    }
}
