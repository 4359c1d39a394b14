//! Memtables into files, and the log cut behind them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::beside::Beside;
use crate::core::Core;
use crate::error::{Error, Result};
use crate::health::Lack;
use crate::id::RegionId;
use crate::manifest::{Edit, Marks};
use crate::memtable::Memtable;
use crate::merge::CellSource;
use crate::output::{FilePass, Output};
use crate::region::{Frozen, Region, View};
use crate::reserve::Lent;
use crate::source::FamilyRead;
use crate::stats::millis;
use crate::table::{Shape, Table};
use crate::wal::SegmentId;

impl Core {
    /// Moves a region's memtables into files. On a full disk the reserve is
    /// released and it is tried once more.
    ///
    /// # Errors
    /// The memtables are kept, and the flush is tried again: a full disk, or a file that could not be written aside. A file that
    /// could not be published poisons.
    pub(crate) fn flush_region(&self, table: &Table, region: &Region) -> Result<()> {
        let flushed = self.flush_whole(table, region);
        if flushed.is_err() {
            self.counters.flush_failures.fetch_add(1, Ordering::Relaxed);
        }
        flushed
    }

    fn flush_whole(&self, table: &Table, region: &Region) -> Result<()> {
        let _one = region.lock_flushing();
        let Some(_shape_kept) = table.keep_shape() else { return Ok(()) };
        if region.is_retired() {
            return Ok(());
        }
        self.condition.check_alive()?;
        let changes = self.stop_changes();
        let upto = region.freeze(|| self.wal.last_sequence());
        drop(changes);
        let frozen = region.view().frozen.clone();
        if frozen.is_empty() {
            return self.with_room(|| self.trim_log());
        }
        self.with_room(|| self.flush_frozen(table, region, &frozen, upto))?;
        // A step of its own: what is flushed must not be flushed again when there is no room for the log's mark.
        self.with_room(|| self.trim_log())
    }

    /// Does it, and once more with the reserve's space when the disk is full.
    pub(crate) fn with_room<T>(&self, mut step: impl FnMut() -> Result<T>) -> Result<T> {
        match step() {
            Err(error) if error.is_disk_full() => {
                let _room = self.make_room()?;
                step()
            }
            done => done,
        }
    }

    /// Refuses writes and gives the reserve to whoever makes room, until the answer is dropped.
    pub(crate) fn make_room(&self) -> Result<Lent<'_>> {
        // Lent first: as long as it is, nobody says that there is space again.
        let lent = self.reserve.lend()?;
        self.condition.set_lack(Some(Lack::Space));
        self.wal.wake();
        Ok(lent)
    }

    pub(crate) fn flush_frozen(&self, table: &Table, region: &Region, frozen: &[Frozen], upto: u64) -> Result<()> {
        // What is in the file must not outlive what was logged before it: rows of other regions, and the UIDs by
        // which the file's own rows are named.
        let began = Instant::now();
        self.wal.sync_to(upto)?;
        let shape = table.shape();
        let families = shape.families.iter().zip(&shape.descriptor.families);
        let beside = families.filter_map(|(id, family)| {
            let (read, fold) = (FamilyRead::all(*id, &family.name), self.fold(family.fold.as_deref())?);
            Some(Beside::of((read, &**fold), &region.view(), frozen, &[]))
        });
        let (outputs, no_deletes) =
            self.write_beside(region, beside.collect(), |beside| self.write_memtables(&shape, region, frozen, beside))?;
        let added: Vec<_> = outputs.iter().map(|output| output.entry).collect();
        let bytes: u64 = added.iter().map(|file| file.bytes).sum();
        let edit = Edit::Files { region: region.id, flushed: upto, removed: Vec::new(), added };
        let edited = {
            let mut manifest = self.manifest();
            let marks = Marks { sequence: upto, ..self.marks(manifest.catalog().marks.log_start) };
            self.edit(&mut manifest, &[edit, Edit::Marks(marks)])
        };
        self.keep_if(edited, &outputs)?;
        region.change(|view| {
            view.frozen.retain(|left| !frozen.iter().any(|flushed| Arc::ptr_eq(&flushed.memtable, &left.memtable)));
            view.files.extend(outputs.into_iter().map(|output| output.file));
        });
        drop(no_deletes);
        for flushed in frozen {
            flushed.memtable.release();
        }
        self.counters.flushes.fetch_add(1, Ordering::Relaxed);
        self.counters.flushed_bytes.fetch_add(bytes, Ordering::Relaxed);
        let name = &table.shape().descriptor.name;
        tracing::debug!(table = %name, region = region.id.0, bytes, took_ms = millis(began), "flushed");
        self.jobs.wake(crate::jobs::Work::Compact);
        Ok(())
    }

    /// One file a family, in the order of families.
    fn write_memtables(
        &self,
        shape: &Shape,
        region: &Region,
        frozen: &[Frozen],
        beside: &mut [Beside<'_>],
    ) -> Result<Vec<Output>> {
        let view = View { active: Arc::new(Memtable::new(Arc::default())), frozen: frozen.to_vec(), files: Vec::new() };
        let mut outputs: Vec<Output> = Vec::new();
        for (id, family) in shape.families.iter().zip(&shape.descriptor.families) {
            let read = FamilyRead::all(*id, &family.name);
            let mut cells: Box<dyn CellSource> = match frozen {
                // By rows, which are folded as they lie.
                [one] if family.fold.is_some() && one.part.is_none() => Box::new(read.rows_of(&one.memtable)),
                _ => Box::new(read.open(&view)),
            };
            let beside = beside.iter_mut().find(|beside| beside.family() == *id);
            let written = self.write_file(*id, family, &region.range, &mut cells, (FilePass::FLUSH, beside));
            // No manifest names them yet.
            if written.is_err() && self.condition.check_alive().is_ok() {
                for output in &outputs {
                    self.delete_file(output.entry.id);
                }
            }
            outputs.extend(written?);
        }
        Ok(outputs)
    }

    /// Removes the log's segments of which everything is in files.
    ///
    /// # Errors
    /// A failed manifest edit; segments that cannot be deleted are left for the next open.
    pub(crate) fn trim_log(&self) -> Result<()> {
        // First what is in the memtables for certain, then what they hold: a
        // write that comes in between has a larger number than both.
        let applied = self.wal.applied_to();
        let regions = self.all_regions();
        let unflushed = regions.iter().filter_map(|(_, region)| region.first_unflushed()).min();
        let needed_after = unflushed.map_or(applied, |first| applied.min(first - 1));
        let start = self.wal.first_needed(needed_after);
        {
            let mut manifest = self.manifest();
            if start <= manifest.catalog().marks.log_start {
                return Ok(());
            }
            let marks = self.marks(start);
            self.edit(&mut manifest, &[Edit::Marks(marks)])?;
        }
        if let Err(error) = self.wal.remove_before(start) {
            tracing::warn!(%error, "a log segment stays until the next start");
        }
        Ok(())
    }

    /// Marks as they stand; 0 where the edits themselves move them.
    fn marks(&self, log_start: SegmentId) -> Marks {
        let (clock, next_file) = (self.last_stamp(), self.next_file());
        Marks { log_start, clock, sequence: 0, next_file, next_table: 0, next_region: 0, next_family: 0 }
    }

    /// The region to flush next, if a bound is passed: the one that holds the log back, or the fullest; none that has failed.
    pub(crate) fn pick_flush(&self, failed: &[RegionId]) -> Option<(Arc<Table>, Arc<Region>)> {
        let mut regions = self.all_regions();
        if self.wal.stats.sealed_bytes.load(Ordering::Relaxed) > self.limits.wal_bytes_max {
            let unflushed = regions.iter().filter_map(|pair| Some((pair.1.first_unflushed()?, pair)));
            let oldest = unflushed.min_by_key(|(first, _)| *first).map(|(_, pair)| pair);
            // Where that one has failed, no flush of another cuts the log.
            if let Some((table, region)) = oldest.filter(|(_, region)| !failed.contains(&region.id)) {
                return Some((Arc::clone(table), Arc::clone(region)));
            }
        }
        regions.retain(|(_, region)| !failed.contains(&region.id));
        let fullest = regions.into_iter().max_by_key(|(_, region)| region.memtable_bytes());
        let total = self.memtable_bytes.load(Ordering::Relaxed);
        fullest.filter(|(_, region)| {
            let bytes = region.memtable_bytes();
            bytes > self.limits.memtable_bytes || (total > self.limits.memtables_bytes && bytes > 0)
        })
    }

    /// Whether a write should wake the flush thread.
    pub(crate) fn is_flush_due<'a>(&self, mut regions: impl Iterator<Item = &'a Arc<Region>>) -> bool {
        self.wal.stats.sealed_bytes.load(Ordering::Relaxed) > self.limits.wal_bytes_max
            || self.memtable_bytes.load(Ordering::Relaxed) > self.limits.memtables_bytes
            || regions.any(|region| region.view().active.bytes() > self.limits.memtable_bytes)
    }

    /// Refuses a write while the memtables hold twice their bound.
    pub(crate) fn check_memory(&self) -> Result<()> {
        let room = self.memory_for_writes();
        if room.is_err() {
            self.counters.refused_for_memory.fetch_add(1, Ordering::Relaxed);
        }
        room
    }

    /// Whether the memtables come near their bound. Not where writes are refused for another reason, which no flush ends.
    pub(crate) fn is_pressed(&self) -> bool {
        self.memtable_bytes.load(Ordering::Relaxed) > self.limits.memtables_bytes_pressed()
            && self.condition.check().is_ok()
    }

    /// Flushes what is left of a log that was written with larger bounds: as no write is taken before, none would tell the flush thread
    /// of it.
    ///
    /// # Errors
    /// An engine that is poisoned; what else failed is tried again.
    pub(crate) fn flush_replayed(&self) -> Result<()> {
        let flushed = self.memory_for_writes().or_else(|_| self.flush_due());
        flushed.or_else(|_| self.condition.check_alive())
    }

    fn memory_for_writes(&self) -> Result<()> {
        let queued_bytes = self.memtable_bytes.load(Ordering::Relaxed);
        let limit_bytes = self.limits.memtables_bytes_max();
        if queued_bytes <= limit_bytes { Ok(()) } else { Err(Error::Throttled { queued_bytes, limit_bytes }) }
    }
}
