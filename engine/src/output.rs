//! Sorted cells into a new file: what flush and compaction share.

use std::sync::{Arc, RwLockWriteGuard};

use basalt_store::{FamilyDescriptor, KeepDeletedCells, Pass, Retention, Rules};

use crate::beside::Beside;
use crate::core::Core;
use crate::error::{Error, Result};
use crate::id::{FamilyId, FileId};
use crate::io::{IoOp, publish};
use crate::key_range::KeyRange;
use crate::manifest::FileEntry;
use crate::merge::{CellSource, Step};
use crate::region::{Region, RegionFile};
use crate::sstable::{Sstable, SstableOptions, SstableWriter};

mod sieve;

use sieve::Sieve;

/// A file that is published and open, and not in the manifest yet.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) entry: FileEntry,
    pub(crate) file: RegionFile,
}

/// What cells are written anew for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FilePass {
    pub(crate) pass: Pass,
    /// See [`Rules::purge_delay_ms`].
    pub(crate) purge_delay_ms: u64,
    /// It is given up when the engine closes: it may take hours.
    pub(crate) is_merge: bool,
}

impl FilePass {
    /// A flush: tombstones stay in any case.
    pub(crate) const FLUSH: FilePass = FilePass { pass: Pass::Retain, purge_delay_ms: 0, is_merge: false };
    /// A minor compaction: tombstones stay as well.
    pub(crate) const MINOR: FilePass = FilePass { is_merge: true, ..FilePass::FLUSH };

    fn rules(self, family: &FamilyDescriptor) -> Rules {
        Rules::of(family).with_purge_delay(self.purge_delay_ms)
    }
}

impl Core {
    /// Writes what a pass keeps of `cells` into a new file; `None` when it keeps nothing. Rows are folded where what lies beside
    /// them allows it; none is where that is not told.
    ///
    /// # Errors
    /// A full disk, a file that could not be written aside, the end of the engine: nothing is published. A file that does not open:
    /// it is deleted. A failure to publish poisons.
    pub(crate) fn write_file(
        &self,
        id: FamilyId,
        family: &FamilyDescriptor,
        range: &Arc<KeyRange>,
        cells: &mut dyn CellSource,
        (pass, beside): (FilePass, Option<&mut Beside<'_>>),
    ) -> Result<Option<Output>> {
        let file_id = self.new_file_id();
        let target = file_id.path(&self.dir);
        let aside = target.with_extension("tmp");
        let written = self.write_aside(file_id, &aside, family, cells, (pass, beside));
        let finished = match written {
            Ok(finished) => finished,
            Err(error) => {
                // Space is needed more than the name; what stays is deleted at the next open.
                drop(self.fs.remove(&aside));
                return Err(error);
            }
        };
        let Some((file, bytes)) = finished else {
            self.fs.remove(&aside).map_err(Error::io(IoOp::Remove, &aside))?;
            return Ok(None);
        };
        let published = self.guard(publish(&*self.fs, &*file, &aside, &target));
        if published.is_err() && self.condition.check_alive().is_ok() {
            // There was no room for its name.
            drop(self.fs.remove(&aside));
        }
        published?;
        let opened = Sstable::open(file, &target, file_id, &self.codecs, Arc::clone(&self.cache));
        if opened.is_err() {
            // No manifest names it yet. It would stay until the next start, and one more with each try.
            self.delete_file(file_id);
        }
        let table = opened?;
        let entry = FileEntry { id: file_id, family: id, bytes };
        let file = RegionFile::new(id, Arc::new(table), range);
        assert!(file.part.is_none(), "BUG: a region writes rows of another one");
        Ok(Some(Output { entry, file }))
    }

    /// Writes what a pass over some memtables or files makes, so that its folds undo no delete. No delete begins until the guard is
    /// dropped, which is to be when the files are in the region's view.
    ///
    /// `write` is called again, to fold nothing, where a row of its first output may have been deleted in meanwhile.
    ///
    /// # Errors
    /// Those of `write`.
    pub(crate) fn write_beside<'r>(
        &self,
        region: &'r Region,
        mut beside: Vec<Beside<'_>>,
        mut write: impl FnMut(&mut [Beside<'_>]) -> Result<Vec<Output>>,
    ) -> Result<(Vec<Output>, RwLockWriteGuard<'r, ()>)> {
        let outputs = write(&mut beside)?;
        let no_deletes = region.stop_deletes();
        let view = region.view();
        let may_undo_delete = |output: &Output| {
            let of_family = beside.iter().find(|beside| beside.family() == output.entry.family);
            of_family.is_some_and(|beside| beside.may_undo_delete(&view, &output.file))
        };
        if !outputs.iter().any(may_undo_delete) {
            return Ok((outputs, no_deletes));
        }
        drop(no_deletes);
        for output in outputs {
            self.delete_file(output.entry.id);
        }
        let outputs = write(&mut [])?;
        Ok((outputs, region.stop_deletes()))
    }

    /// Deletes files that want of room kept out of the manifest: tried again, they would fill the disk further.
    ///
    /// After any other failure the manifest may name them.
    pub(crate) fn keep_if<'a, T>(&self, named: Result<T>, outputs: impl IntoIterator<Item = &'a Output>) -> Result<T> {
        if named.as_ref().is_err_and(Error::is_want_of_room) && self.condition.check_alive().is_ok() {
            for output in outputs {
                self.delete_file(output.entry.id);
            }
        }
        named
    }

    fn write_aside(
        &self,
        file_id: FileId,
        aside: &std::path::Path,
        family: &FamilyDescriptor,
        cells: &mut dyn CellSource,
        (pass, beside): (FilePass, Option<&mut Beside<'_>>),
    ) -> Result<Option<(Arc<dyn crate::io::File>, u64)>> {
        let file = self.fs.create(aside).map_err(Error::io(IoOp::Create, aside))?;
        let options = SstableOptions::of_family(file_id, family, &self.codecs);
        let writer = SstableWriter::create(Arc::clone(&file), aside, options)?;
        // A fold forgets single versions and deleted cells; families that keep them are not folded.
        let may_fold =
            family.versions == 1 && family.keep_deleted == KeepDeletedCells::False && !family.new_version_behavior;
        let fold = self.fold(family.fold.as_deref()).filter(|_| may_fold).map(Arc::clone).zip(beside);
        let retention = Retention::new(pass.rules(family), pass.pass, self.clock.now());
        let mut sieve = Sieve::new(family.name.clone(), writer, retention, fold);
        cells.rewind()?;
        let mut step = Step::OtherRow;
        for count in 0.. {
            if pass.is_merge {
                self.jobs.check_goes_on(count)?;
            }
            if let Some(cell) = cells.cell() {
                sieve.take(&cell, step)?;
            } else if cells.row().is_none() {
                break;
            } else if !sieve.take_row(cells)? {
                cells.unpack()?;
                step = Step::OtherRow;
                continue;
            }
            step = cells.advance()?;
        }
        let Some(bytes) = sieve.finish()? else { return Ok(None) };
        Ok(Some((file, bytes)))
    }
}
