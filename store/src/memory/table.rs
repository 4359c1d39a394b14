//! A table in memory: its settings, its regions' bounds and counters, its rows.

use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

use bytes::Bytes;

use super::lock::{read, write};
use super::rows::{FamilyCells, Rows};
use super::snapshot::Image;
use crate::{
    Compaction, Error, Pass, RegionInfo, Result, Retention, Rules, SplitAt, SplitPolicy, TableDescriptor, TableState,
    Timestamp, TruncatedRegions, no_split,
};

/// A table is not compacted by itself before so many cells were put.
const CELLS_PUT_MIN: u64 = 1 << 16;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Table {
    /// Guards everything of the table; rank 2, after the store's list of tables.
    pub(super) state: RwLock<State>,
    /// Cells that may be put before it is compacted by itself. Relaxed: it is changed with `state` held.
    cells_to_put: AtomicU64,
    /// Sorted by start. Guards which regions there are; rank 3, held for a moment.
    regions: RwLock<Vec<Arc<Region>>>,
}

/// What changes.
#[derive(Debug)]
pub(super) struct State {
    pub(super) descriptor: TableDescriptor,
    pub(super) serves: TableState,
    pub(super) rows: Rows,
}

#[derive(Debug, Default)]
struct Region {
    id: u64,
    start: Bytes,
    // Relaxed, both: told to operators, ordered with nothing.
    reads_count: AtomicU64,
    writes_count: AtomicU64,
}

impl Table {
    /// An empty table.
    ///
    /// # Errors
    /// `Invalid`: splits that are not sorted and apart, or empty keys.
    pub(super) fn new(
        descriptor: TableDescriptor,
        splits: &[Bytes],
        serves: TableState,
        next_region: &AtomicU64,
    ) -> Result<Self> {
        SplitPolicy::of(&descriptor)?;
        if splits.first().is_some_and(Bytes::is_empty) || !splits.is_sorted_by(|a, b| a < b) {
            let reason = "split keys must be sorted, each once, none empty".into();
            return Err(Error::InvalidArgument { what: "splits", reason });
        }
        let starts = std::iter::once(Bytes::new()).chain(splits.iter().cloned());
        Ok(Self {
            state: RwLock::new(State { descriptor, serves, rows: Rows::new() }),
            cells_to_put: AtomicU64::new(CELLS_PUT_MIN),
            regions: RwLock::new(starts.map(|start| Region::new(start, next_region)).collect()),
        })
    }

    pub(super) fn descriptor(&self) -> TableDescriptor {
        read(&self.state).descriptor.clone()
    }

    /// Takes new settings; families that are no longer there go with their cells.
    pub(super) fn alter(&self, descriptor: TableDescriptor) -> Result<()> {
        SplitPolicy::of(&descriptor)?;
        let mut state = write(&self.state);
        descriptor.validate_change(Some(&state.descriptor))?;
        state.rows.retain(|_, row| {
            row.retain(|family, _| descriptor.family(family).is_some());
            !row.is_empty()
        });
        state.descriptor = descriptor;
        Ok(())
    }

    /// An empty table to take this one's place, enabled.
    pub(super) fn emptied(&self, regions: TruncatedRegions, next_region: &AtomicU64) -> Result<Self> {
        let splits: Vec<Bytes> = match regions {
            TruncatedRegions::Kept => read(&self.regions).iter().skip(1).map(|region| region.start.clone()).collect(),
            TruncatedRegions::Merged => Vec::new(),
        };
        let serves = TableState { disabled: false, ..self.serves() };
        Self::new(self.descriptor(), &splits, serves, next_region)
    }

    /// What the table consists of now.
    pub(super) fn image(&self) -> Image {
        let state = read(&self.state);
        let splits = read(&self.regions).iter().skip(1).map(|region| region.start.clone()).collect();
        Image { descriptor: state.descriptor.clone(), splits, rows: state.rows.clone() }
    }

    /// A table that consists of this.
    pub(super) fn of_image(image: Image, serves: TableState, next_region: &AtomicU64) -> Result<Self> {
        let table = Self::new(image.descriptor, &image.splits, serves, next_region)?;
        write(&table.state).rows = image.rows;
        Ok(table)
    }

    pub(super) fn serves(&self) -> TableState {
        read(&self.state).serves
    }

    /// Changes whether the table serves.
    pub(super) fn set_serves(&self, change: impl FnOnce(&mut TableState) -> Result<()>) -> Result<()> {
        change(&mut write(&self.state).serves)
    }

    pub(super) fn regions_count(&self) -> usize {
        read(&self.regions).len()
    }

    /// What a compaction at `now` of all there is does.
    pub(super) fn compact(&self, compaction: Compaction, now: Timestamp, purge_delay_ms: u64) {
        let State { descriptor, rows, .. } = &mut *write(&self.state);
        let purge_delay_ms = descriptor.purge_delay_ms(purge_delay_ms);
        for family in &descriptor.families {
            let earliest = rows.values().filter_map(|row| row.get(&family.name)?.earliest_put()).min();
            let pass = match compaction {
                Compaction::Minor => Pass::Retain,
                // Without any put no tombstone has anything to mask.
                Compaction::Major => Pass::Major { earliest_put: earliest.unwrap_or(Timestamp(u64::MAX)) },
            };
            let mut retention = Retention::new(Rules::of(family).with_purge_delay(purge_delay_ms), pass, now);
            for row in rows.values_mut() {
                if row.get_mut(&family.name).is_some_and(|cells: &mut FamilyCells| !cells.compact(&mut retention)) {
                    row.remove(&family.name);
                }
            }
        }
        rows.retain(|_, row| !row.is_empty());
        let kept = rows.values().flat_map(|row| row.values()).map(FamilyCells::len).sum::<usize>() as u64;
        self.cells_to_put.store(kept.max(CELLS_PUT_MIN), Ordering::Relaxed);
    }

    /// Whether so much was put since the last compaction that most of it may be dropped.
    pub(super) fn is_compaction_due(&self) -> bool {
        self.cells_to_put.load(Ordering::Relaxed) == 0
    }

    pub(super) fn regions(&self) -> Vec<RegionInfo> {
        let state = read(&self.state);
        let regions = read(&self.regions).clone();
        let ends = regions.iter().skip(1).map(|region| region.start.clone()).chain([Bytes::new()]);
        let regions = regions.iter().zip(ends);
        regions
            .map(|(region, end)| {
                let below = if end.is_empty() { Bound::Unbounded } else { Bound::Excluded(&end[..]) };
                let rows = state.rows.range::<[u8], _>((Bound::Included(&region.start[..]), below));
                let bytes = rows.flat_map(|(key, row)| {
                    row.values().map(FamilyCells::data_bytes).chain(std::iter::once(key.len() as u64))
                });
                RegionInfo {
                    id: region.id,
                    memtable_bytes: bytes.sum(),
                    start: region.start.clone(),
                    end,
                    file_bytes: 0,
                    files_count: 0,
                    reads_count: region.reads_count.load(Ordering::Relaxed),
                    writes_count: region.writes_count.load(Ordering::Relaxed),
                }
            })
            .collect()
    }

    /// Counts a change of a row by so many cells.
    pub(super) fn count_write(&self, row: &[u8], cells: usize) {
        let left = self.cells_to_put.load(Ordering::Relaxed).saturating_sub(cells as u64);
        self.cells_to_put.store(left, Ordering::Relaxed);
        let regions = read(&self.regions);
        if let Some(region) = regions.get(region_of(&regions, row)) {
            region.writes_count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a read of all regions from that of `first` to that of `last`, which is in or not; an empty `last` is the
    /// table's end.
    pub(super) fn count_read(&self, first: &[u8], last: &[u8], inclusive: bool) {
        let regions = read(&self.regions);
        let to = match (last.is_empty(), inclusive) {
            (true, _) => regions.len(),
            (false, true) => region_of(&regions, last) + 1,
            (false, false) => regions.partition_point(|region| &region.start[..] < last),
        };
        for region in regions.get(region_of(&regions, first)..to).unwrap_or_default() {
            region.reads_count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Splits a region, if there may be one more; answers where the second one begins.
    pub(super) fn split(
        &self,
        at: &SplitAt,
        next_region: &AtomicU64,
        check_more: impl FnOnce() -> Result<()>,
    ) -> Result<Bytes> {
        let state = read(&self.state);
        SplitPolicy::of(&state.descriptor)?.check_request()?;
        let mut regions = write(&self.regions);
        let key = match at {
            SplitAt::Key(key) => key.clone(),
            SplitAt::MiddleOf(row) => {
                let index = region_of(&regions, row);
                let end = regions.get(index + 1).map(|region| region.start.clone()).unwrap_or_default();
                let start = regions.get(index).map(|region| region.start.clone()).unwrap_or_default();
                middle(&state.rows, &start, &end).ok_or_else(|| no_split("the region has less than two rows"))?
            }
        };
        let index = region_of(&regions, &key);
        if regions.get(index).is_none_or(|region| region.start == key) {
            return Err(no_split("a region begins there already"));
        }
        check_more()?;
        // Both halves count anew.
        let start = regions.get(index).map(|region| region.start.clone()).unwrap_or_default();
        let halves = [start, key.clone()].map(|start| Region::new(start, next_region));
        regions.splice(index..=index, halves);
        Ok(key)
    }
}

impl Region {
    fn new(start: Bytes, next_region: &AtomicU64) -> Arc<Self> {
        // Relaxed: a number that only grows.
        Arc::new(Self { id: next_region.fetch_add(1, Ordering::Relaxed) + 1, start, ..Self::default() })
    }
}

/// The row in the middle of a range, which is not its first.
fn middle(rows: &Rows, start: &Bytes, end: &Bytes) -> Option<Bytes> {
    let below = if end.is_empty() { Bound::Unbounded } else { Bound::Excluded(end.clone()) };
    let range = || rows.range((Bound::Included(start.clone()), below.clone()));
    let half = range().count() / 2;
    range().nth(half).map(|(key, _)| key.clone()).filter(|_| half > 0)
}

/// The index of the region that holds a row.
fn region_of(regions: &[Arc<Region>], row: &[u8]) -> usize {
    regions.partition_point(|region| region.start <= row).saturating_sub(1)
}
