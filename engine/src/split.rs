//! A region split in two while it serves.
//!
//! ```text
//! flush ─► stop flushes, compactions, writes of the region ─► sync the log ─► one manifest edit ─► halves in its place
//! ```
//!
//! Nothing is rewritten: files and memtables that hold rows of both halves are read by both, each its part
//! ([`crate::key_range`]), until a flush or a compaction of the half writes it a file of its own. A file goes when
//! nothing names it any more. Before the edit is on disk there is one region, after it there are two, whatever happens.
//!
//! Writers that meet the region that was look for their rows' region anew; readers of it go on with what it held.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use basalt_store::{ErrorKind, SplitAt, SplitPolicy, no_split};
use bytes::Bytes;

use crate::core::Core;
use crate::error::Result;
use crate::id::RegionId;
use crate::key_range::KeyRange;
use crate::manifest::{Edit, FileEntry, FilledRegion, NewRegion, RegionsEdit};
use crate::merge::CellSource;
use crate::region::{Frozen, Region, RegionFile, View};
use crate::source::FamilyRead;
use crate::table::Table;

/// A file of so few blocks is read for its middle row; of more, the borders between blocks are near enough.
const BLOCKS_READ_MAX: usize = 4;

impl Core {
    /// Splits a region on request; answers where the second half begins.
    ///
    /// # Errors
    /// `InvalidArgument` where there is nothing to split; disk full; any failed write or sync poisons.
    pub(crate) fn split_region(&self, table: &Table, at: &SplitAt) -> Result<Bytes> {
        self.condition.check()?;
        SplitPolicy::of(&table.shape().descriptor)?.check_request()?;
        let row = match at {
            SplitAt::Key(row) | SplitAt::MiddleOf(row) => row,
        };
        loop {
            let Some(region) = table.regions().of(row).cloned() else { continue };
            // Before the locks, so that writers wait for a few bytes at most.
            self.flush_region(table, &region)?;
            let wanted = match at {
                SplitAt::Key(key) => Some(key),
                SplitAt::MiddleOf(_) => None,
            };
            if let Some(key) = self.split_here(table, &region, wanted)? {
                return Ok(key);
            }
        }
    }

    /// Splits a region that has grown beyond its table's bound; whether it did. None is split while writes are refused.
    ///
    /// # Errors
    /// As [`Core::split_region`], but for a region that has no middle.
    pub(crate) fn split_if_due(&self, table: &Table, region: &Arc<Region>) -> Result<bool> {
        let policy = SplitPolicy::of(&table.shape().descriptor)?;
        let bound = policy.region_bytes_max.unwrap_or(self.limits.region_bytes_max);
        let is_due = policy.by_itself && !region.is_retired() && region.file_bytes() > bound;
        if !is_due || self.condition.check().is_err() {
            return Ok(false);
        }
        match self.split_here(table, region, None) {
            Ok(split) => Ok(split.is_some()),
            // One row may be larger than any region ought to be, a namespace may have all its regions.
            Err(error) if error.kind() == ErrorKind::Invalid => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Splits a region at `key`, or in its middle; `None` when it is no region any more.
    fn split_here(&self, table: &Table, region: &Arc<Region>, key: Option<&Bytes>) -> Result<Option<Bytes>> {
        let _compacting = region.lock_compacting();
        let _flushing = region.lock_flushing();
        let Some(_shape_kept) = table.keep_shape() else {
            let table = table.shape().descriptor.name.to_string().into();
            return Err(basalt_store::Error::UnknownTable { table }.into());
        };
        if region.is_retired() {
            return Ok(None);
        }
        let key = match key {
            Some(key) => key.clone(),
            None => middle(region)?.ok_or_else(|| no_split("the region has no two rows to be parted"))?,
        };
        if key == region.range.start {
            return Err(no_split("a region begins there already").into());
        }
        assert!(region.range.contains(&key), "BUG: a region is split at a key of another one");
        let _changes = self.stop_changes();
        let _writes = region.stop_updates();
        self.replace_by_halves(table, region, &key)?;
        Ok(Some(key))
    }

    /// The one step: durable first, then seen. The caller holds the region's locks.
    fn replace_by_halves(&self, table: &Table, region: &Arc<Region>, key: &Bytes) -> Result<()> {
        // The halves show every write so far at once: none of them may be lost.
        let last = self.wal.last_sequence();
        self.wal.sync_to(last)?;
        region.freeze_stopped();
        let view = region.view();
        let ranges = [
            KeyRange { start: region.range.start.clone(), end: key.clone() },
            KeyRange { start: key.clone(), end: region.range.end.clone() },
        ];
        let ranges = ranges.map(Arc::new);
        let files = ranges.each_ref().map(|range| files_within(&view, range));
        let ids = self.write_split(table, region, &ranges, &files)?;
        let halves = ranges.into_iter().zip(files).zip(ids).map(|((range, files), id)| {
            let half = Region::new(id, Arc::clone(&range), files, Arc::clone(&self.memtable_bytes));
            half.read_point.start_at(last);
            half.change(|half| half.frozen = frozen_within(&view, &range));
            Arc::new(half)
        });
        let halves: Vec<_> = halves.collect();
        // Each memtable had one holder, and has two now.
        for frozen in &view.frozen {
            frozen.memtable.share();
        }
        region.retire();
        table.replace_region(region, halves);
        self.counters.splits.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Makes the split durable; answers the ids of the halves.
    fn write_split(
        &self,
        table: &Table,
        region: &Region,
        ranges: &[Arc<KeyRange>; 2],
        files: &[Vec<RegionFile>; 2],
    ) -> Result<[RegionId; 2]> {
        let mut manifest = self.manifest();
        let catalog = manifest.catalog();
        let namespace = table.shape().descriptor.name.namespace().to_owned();
        let there = catalog.load_of(&namespace).regions_count;
        catalog.namespaces.get(&namespace)?.check_regions(there, 1)?;
        let next = catalog.marks.next_region;
        let ids = [RegionId(next), RegionId(next + 1)];
        let flushed = catalog.regions.get(&region.id).map_or(0, |entry| entry.flushed);
        let entry = |file: &RegionFile| {
            let bytes = file.table.file_bytes();
            FileEntry { id: file.table.file_id(), family: file.family, bytes }
        };
        let added = ids.iter().zip(ranges).zip(files).map(|((id, range), files)| FilledRegion {
            region: NewRegion { id: *id, start: range.start.clone(), end: range.end.clone() },
            flushed,
            files: files.iter().map(entry).collect(),
        });
        let edit = RegionsEdit { table: table.id, removed: vec![region.id], added: added.collect() };
        self.edit(&mut manifest, &[Edit::Regions(edit)])?;
        Ok(ids)
    }
}

/// The files that hold rows of a range, as its region sees them.
fn files_within(view: &View, range: &Arc<KeyRange>) -> Vec<RegionFile> {
    let overlaps = |file: &&RegionFile| {
        let metadata = file.table.metadata();
        metadata.last_row >= range.start && range.is_before_end(&metadata.first_row)
    };
    let files = view.files.iter().filter(overlaps);
    files.map(|file| RegionFile::new(file.family, Arc::clone(&file.table), range)).collect()
}

fn frozen_within(view: &View, range: &Arc<KeyRange>) -> Vec<Frozen> {
    let part = |frozen: &Frozen| Frozen { memtable: Arc::clone(&frozen.memtable), part: Some(Arc::clone(range)) };
    view.frozen.iter().map(part).collect()
}

/// The row with about half of a region's file bytes on either side, which is not its first; `None` when there is no such
/// row. It is one that a block begins with, but for small regions.
fn middle(region: &Region) -> Result<Option<Bytes>> {
    let view = region.view();
    let range = &region.range;
    let mut borders = Vec::new();
    for file in &view.files {
        borders.append(&mut file.table.borders_within(range)?);
    }
    borders.sort_unstable();
    let total: u64 = borders.iter().map(|(_, bytes)| bytes).sum();
    let first = borders.iter().map(|(row, _)| row).find(|row| **row >= range.start).cloned();
    if borders.len() <= BLOCKS_READ_MAX {
        return middle_row(&view, range);
    }
    let mut before = 0;
    let mut nearest: Option<Bytes> = None;
    for (row, bytes) in borders {
        if range.contains(&row) && Some(&row) > first.as_ref() && row != range.start {
            nearest = Some(row);
            if 2 * before >= total {
                break;
            }
        }
        before += bytes;
    }
    Ok(nearest)
}

/// The middle one of the rows of the largest file.
fn middle_row(view: &View, range: &KeyRange) -> Result<Option<Bytes>> {
    let Some(largest) = view.files.iter().max_by_key(|file| file.bytes) else { return Ok(None) };
    let name = &largest.table.metadata().family;
    let mut cells = FamilyRead::all(largest.family, name).open_file(largest);
    let mut rows: Vec<Bytes> = Vec::new();
    cells.rewind()?;
    while let Some(cell) = cells.cell() {
        if rows.last().is_none_or(|last| &last[..] != cell.row) {
            rows.push(Bytes::copy_from_slice(cell.row));
        }
        cells.advance()?;
    }
    let half = rows.get(rows.len() / 2).filter(|_| rows.len() > 1);
    Ok(half.filter(|row| **row != range.start).cloned())
}
