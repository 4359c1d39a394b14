//! Files merged into fewer: by size among neighbours, or all of a family on request.
//!
//! Files of a family are kept in the order of their numbers and only neighbours
//! merge, so the order stays. Tombstones go only in a major compaction: there the
//! memtables were flushed and every file of the family takes part.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use basalt_store::{CellKind, KeepDeletedCells, Pass, Rules, Timestamp};

use crate::beside::Beside;
use crate::core::Core;
use crate::error::{Error, Result};
use crate::id::{FamilyId, FileId};
use crate::manifest::Edit;
use crate::merge::{CellSource, Direction, Merge};
use crate::output::{FilePass, Output};
use crate::region::{Region, RegionFile};
use crate::source::{FamilyRead, Source};
use crate::sstable::tell_of_filter;
use crate::stats::millis;
use crate::table::{Shape, Table};

/// A file joins a merge when it is at most this many tenths of those newer than it together.
const RATIO_TENTHS: u64 = 12;

impl Core {
    /// Merges all files of each family of a region; what no reader may see goes.
    ///
    /// # Errors
    /// A full disk, a file that could not be written aside, the end of the engine: the files stay as they are. A failure to publish
    /// poisons.
    pub(crate) fn compact_region(&self, table: &Table, region: &Region) -> Result<()> {
        self.flush_region(table, region)?;
        self.count_failed(self.merge_all(table, region))
    }

    fn merge_all(&self, table: &Table, region: &Region) -> Result<()> {
        let _one = region.lock_compacting();
        let Some(_shape_kept) = table.keep_shape_to_merge() else { return Ok(()) };
        if region.is_retired() {
            return Ok(());
        }
        let shape = table.shape();
        for id in &shape.families {
            let files = files_of(region, *id);
            if !files.is_empty() {
                self.merge_files(&shape, region, *id, &files, true)?;
            }
        }
        hold_filters(region);
        Ok(())
    }

    /// Drops the files of a region that TTL has emptied; one that is compacted now is passed over.
    ///
    /// # Errors
    /// A full disk: the files stay as they are. A failure to publish poisons.
    pub(crate) fn drop_expired(&self, table: &Table, region: &Region) -> Result<()> {
        let Some(_one) = region.try_lock_compacting() else { return Ok(()) };
        let Some(_shape_kept) = table.keep_shape() else { return Ok(()) };
        if region.is_retired() {
            return Ok(());
        }
        self.count_failed(self.drop_expired_of(&table.shape(), region))
    }

    /// The caller keeps the shape, and others from compacting the region.
    fn drop_expired_of(&self, shape: &Shape, region: &Region) -> Result<()> {
        let now = self.clock.now();
        for id in &shape.families {
            let Some(family) = shape.family(*id) else { continue };
            let (mut files, rules) = (files_of(region, *id), Rules::of(family));
            files.retain(|file| rules.is_file_expired(Timestamp(file.table.metadata().times.max), now));
            if !files.is_empty() {
                // It makes room, and needs a few bytes for it.
                self.with_room(|| self.replace_files(region, &files, None))?;
            }
        }
        Ok(())
    }

    /// Drops the files of a region that TTL has emptied, and does its most urgent merge; false when there is none. Files for which
    /// a merge failed lately take part only where somebody asked for it.
    ///
    /// # Errors
    /// As [`Core::compact_region`].
    pub(crate) fn compact_some(&self, table: &Table, region: &Region, is_asked: bool) -> Result<bool> {
        self.count_failed(self.merge_some(table, region, is_asked))
    }

    /// Counts what failed of a compaction thread's work, whoever asked for it.
    pub(crate) fn count_failed<T>(&self, done: Result<T>) -> Result<T> {
        if done.is_err() {
            self.counters.compaction_failures.fetch_add(1, Ordering::Relaxed);
        }
        done
    }

    fn merge_some(&self, table: &Table, region: &Region, is_asked: bool) -> Result<bool> {
        let mut failed = region.lock_compacting();
        let Some(_shape_kept) = table.keep_shape_to_merge() else { return Ok(false) };
        if region.is_retired() {
            return Ok(false);
        }
        let (shape, now) = (table.shape(), self.clock.now());
        self.drop_expired_of(&shape, region)?;
        for id in &shape.families {
            let files = files_of(region, *id);
            let is_free = |file: &RegionFile| is_asked || !failed.is_put_off(file.table.file_id(), now);
            let Some(files) = self.pick_files(&files, is_free) else { continue };
            let merged = self.merge_files(&shape, region, *id, files, false);
            if let Err(error) = &merged {
                let view = region.view();
                let there = |id| view.files.iter().any(|file| file.table.file_id() == id);
                failed.note(&self.blamed(files, error), self.clock.now(), there);
            }
            return merged.map(|()| true);
        }
        hold_filters(region);
        Ok(false)
    }

    /// Which files of a family to merge, oldest first: those that are not free stay where they are, so no merge goes over them.
    fn pick_files<'f>(
        &self,
        files: &'f [RegionFile],
        is_free: impl Fn(&RegionFile) -> bool,
    ) -> Option<&'f [RegionFile]> {
        files.split(|file| !is_free(file)).find_map(|neighbours| {
            let sizes: Vec<u64> = neighbours.iter().map(|file| file.bytes).collect();
            neighbours.get(pick(&sizes, self.limits.compaction_files_min, self.limits.compaction_files_max)?)
        })
    }

    /// The files for which a merge of `files` failed: the one that the error names, else all.
    fn blamed(&self, files: &[RegionFile], error: &Error) -> Vec<FileId> {
        let ids = || files.iter().map(|file| file.table.file_id());
        let named = error.file().and_then(|file| ids().find(|id| file == id.path(&self.dir)));
        named.map_or_else(|| ids().collect(), |id| vec![id])
    }

    fn merge_files(
        &self,
        shape: &Shape,
        region: &Region,
        id: FamilyId,
        files: &[RegionFile],
        is_major: bool,
    ) -> Result<()> {
        let Some(family) = shape.family(id) else { return Ok(()) };
        let began = Instant::now();
        let read = FamilyRead::all(id, &family.name);
        let open = || Merge::new(files.iter().rev().map(|file| read.open_file(file)).collect(), Direction::Forward);
        let pass = if is_major {
            let keeps = family.keep_deleted != KeepDeletedCells::False;
            let pass = Pass::Major { earliest_put: if keeps { self.earliest_put(open())? } else { Timestamp(0) } };
            let of_store = u64::try_from(self.limits.purge_delay.as_millis()).unwrap_or(u64::MAX);
            FilePass { pass, purge_delay_ms: shape.descriptor.purge_delay_ms(of_store), ..FilePass::MINOR }
        } else {
            FilePass::MINOR
        };
        let write = |beside: &mut [Beside<'_>]| {
            let output = self.write_file(id, family, &region.range, &mut open(), (pass, beside.first_mut()))?;
            Ok(output.into_iter().collect())
        };
        let fold = self.fold(family.fold.as_deref());
        let beside =
            fold.into_iter().map(|fold| Beside::of((read.clone(), &**fold), &region.view(), &[], files)).collect();
        let (from_bytes, from_files) = (files.iter().map(|file| file.bytes).sum::<u64>(), files.len());
        // While the reserve is lent, writes are refused: not for a merge that does not fit into it. Such a one is put off.
        let fits_reserve = from_bytes <= self.limits.reserve_bytes;
        let write_in_room =
            |beside: &mut [Beside<'_>]| if fits_reserve { self.with_room(|| write(beside)) } else { write(beside) };
        let (outputs, no_deletes) = self.write_beside(region, beside, write_in_room)?;
        let output = outputs.into_iter().next();
        let bytes = output.as_ref().map_or(0, |output| output.entry.bytes);
        self.replace_files(region, files, output)?;
        drop(no_deletes);
        let (table, region, took_ms) = (&shape.descriptor.name, region.id.0, millis(began));
        tracing::debug!(%table, region, from_files, from_bytes, bytes, is_major, took_ms, "compacted");
        Ok(())
    }

    /// No put is older than what this answers.
    fn earliest_put(&self, mut cells: Merge<Source>) -> Result<Timestamp> {
        let (mut earliest, mut count) = (Timestamp(u64::MAX), 0);
        cells.rewind()?;
        while let Some(cell) = cells.cell() {
            self.jobs.check_goes_on(count)?;
            count += 1;
            if cell.kind == CellKind::Put {
                earliest = earliest.min(cell.timestamp);
            }
            cells.advance()?;
        }
        Ok(earliest)
    }

    /// Puts a file in the place of others: the manifest first, then the readers, then the disk.
    fn replace_files(&self, region: &Region, files: &[RegionFile], output: Option<Output>) -> Result<()> {
        let removed = files.iter().map(|file| file.table.file_id()).collect();
        let added: Vec<_> = output.iter().map(|output| output.entry).collect();
        let bytes: u64 = added.iter().map(|file| file.bytes).sum();
        let edited = {
            let mut manifest = self.manifest();
            self.edit(&mut manifest, &[Edit::Files { region: region.id, flushed: 0, removed, added }])
        };
        self.keep_if(edited, &output)?;
        region.change(|view| {
            let is_old = |file: &RegionFile| files.iter().any(|old| Arc::ptr_eq(&old.table, &file.table));
            let place = view.files.iter().position(is_old).unwrap_or(view.files.len());
            view.files.retain(|file| !is_old(file));
            view.files.splice(place..place, output.map(|output| output.file));
        });
        self.counters.compactions.fetch_add(1, Ordering::Relaxed);
        self.counters.compacted_bytes.fetch_add(bytes, Ordering::Relaxed);
        for file in files {
            self.delete_file(file.table.file_id());
        }
        Ok(())
    }
}

/// Gives files their bloom filters where merges have made room for them.
fn hold_filters(region: &Region) {
    for file in &region.view().files {
        if let Err(error) = file.table.hold_filter() {
            tell_of_filter(&error);
        }
    }
}

fn files_of(region: &Region, id: FamilyId) -> Vec<RegionFile> {
    region.view().files.iter().filter(|file| file.family == id).cloned().collect()
}

/// Which neighbours to merge, oldest file first: the first from which on no file
/// is much larger than the newer ones together, so that each byte is rewritten a
/// logarithmic number of times. Source: HBase's ratio-based policy.
fn pick(sizes: &[u64], files_min: usize, files_max: usize) -> Option<std::ops::Range<usize>> {
    for start in 0..sizes.len() {
        let end = sizes.len().min(start + files_max.max(2));
        if end - start < files_min.max(2) {
            return None;
        }
        let newer: u64 = sizes.get(start + 1..end)?.iter().sum();
        if *sizes.get(start)? <= newer.saturating_mul(RATIO_TENTHS) / 10 {
            return Some(start..end);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_one_size_merge_and_a_large_old_file_stays() {
        let check = |sizes: &[u64], expected| assert_eq!(pick(sizes, 4, 10), expected, "{sizes:?}");
        check(&[10, 10, 10], None);
        check(&[10, 10, 10, 10], Some(0..4));
        check(&[1000, 10, 10, 10, 10], Some(1..5));
        check(&[1000, 10, 10, 10], None);
        check(&[40, 10, 10, 10], None);
        check(&[10; 30], Some(0..10));
        check(&[], None);
    }
}
