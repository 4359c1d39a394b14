//! Sorted cells into a new file: what flush and compaction share.

use std::sync::{Arc, RwLockWriteGuard};

use basalt_store::{
    CellKind, CellRef, FamilyDescriptor, Fold, FoldedRow, KeepDeletedCells, Pass, Retention, RowPut, Rules, SeqNo,
    Timestamp,
};
use bytes::Bytes;

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

/// After so many cells a long work looks whether the engine closes.
const LOOK_CELLS: u64 = 4096;

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
    /// Whether a long work goes on, which has come so many cells far.
    ///
    /// # Errors
    /// `Closed`: the engine closes.
    pub(crate) fn check_goes_on(&self, cells_count: u64) -> Result<()> {
        if cells_count.is_multiple_of(LOOK_CELLS) && self.jobs.is_stopped() { Err(Error::Closed) } else { Ok(()) }
    }

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
        let is_undone = |output: &Output| {
            let of_family = beside.iter().find(|beside| beside.family() == output.entry.family);
            of_family.is_some_and(|beside| beside.has_grown(&view, &output.file))
        };
        if !outputs.iter().any(is_undone) {
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
        let mut sieve = Sieve {
            family: family.name.clone(),
            writer,
            retention: Retention::new(pass.rules(family), pass.pass, self.clock.now()),
            fold,
            row: KeptRow::default(),
            folded: FoldedRow::default(),
        };
        cells.rewind()?;
        let mut step = Step::OtherRow;
        for count in 0.. {
            if pass.is_merge {
                self.check_goes_on(count)?;
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
        sieve.end_row()?;
        if sieve.writer.cells_count() == 0 {
            return Ok(None);
        }
        let bytes = sieve.writer.finish()?;
        Ok(Some((file, bytes)))
    }
}

/// Judges cells, folds rows, writes what is left.
struct Sieve<'a, 'b> {
    family: Bytes,
    writer: SstableWriter,
    retention: Retention,
    fold: Option<(Arc<dyn Fold>, &'a mut Beside<'b>)>,
    row: KeptRow,
    folded: FoldedRow,
}

impl Sieve<'_, '_> {
    /// Takes the next cell, to which `step` led.
    fn take(&mut self, cell: &CellRef<'_>, step: Step) -> Result<()> {
        let same_row = match step {
            Step::SameRow => true,
            Step::OtherRow => false,
            Step::Untold => self.row.key == cell.row,
        };
        if !same_row {
            self.end_row()?;
            self.row.begin(cell.row);
            self.retention.begin_row();
        }
        // A tombstone that goes in this pass has still masked something in it.
        self.row.stays |= cell.kind.is_tombstone();
        if !self.retention.judge(cell).keeps() {
            return Ok(());
        }
        if self.fold.is_some() {
            self.row.keep(cell.kind, RowPut::from(*cell));
            return Ok(());
        }
        self.writer.push(cell)
    }

    /// Takes the row that a source stands on as a whole; false where its cells are to be taken one by one.
    fn take_row(&mut self, cells: &dyn CellSource) -> Result<bool> {
        self.end_row()?;
        let Sieve { fold: Some((fold, beside)), retention, row, folded, .. } = self else { return Ok(false) };
        let until = cells.row().and_then(|row| beside.newest(row));
        retention.begin_row();
        let mut is_folded = false;
        let is_taken = cells.lend_row(&mut |key, puts| {
            let times = || puts.iter().map(|put| put.timestamp);
            let Some((oldest, newest)) = times().min().zip(times().max()) else { return false };
            if !retention.keeps_lone_puts(oldest, newest) {
                return false;
            }
            row.begin(key);
            folded.clear();
            is_folded = until < Some(oldest) && fold.fold(puts, folded);
            if !is_folded {
                row.stays = true;
                for put in puts {
                    row.keep(CellKind::Put, *put);
                }
            }
            true
        });
        if is_folded {
            self.write_folded()?;
        }
        Ok(is_taken)
    }

    /// Writes the row that was kept for the fold.
    fn end_row(&mut self) -> Result<()> {
        let Sieve { fold: Some((fold, beside)), row, folded, .. } = self else { return Ok(()) };
        let Some(oldest) = row.cells.iter().map(|cell| cell.timestamp).min() else { return Ok(()) };
        folded.clear();
        let puts = || row.cells().map(|(_, put)| put);
        let may_fold = !row.stays && beside.newest(&row.key) < Some(oldest);
        if may_fold && fold.fold(&puts().collect::<Vec<_>>(), folded) {
            self.write_folded()?;
        } else {
            for (kind, put) in self.row.cells() {
                self.writer.push(&CellRef { kind, ..put.of_row(&self.row.key, &self.family) })?;
            }
        }
        self.row.cells.clear();
        Ok(())
    }

    /// Writes what the fold made of the row.
    fn write_folded(&mut self) -> Result<()> {
        let Sieve { folded, writer, row, family, .. } = self;
        folded.cells().try_for_each(|put| writer.push(&put.of_row(&row.key, family)))
    }
}

/// A row's cells, copied.
#[derive(Debug, Default)]
struct KeptRow {
    /// It is not folded: it has a tombstone in this pass, or the fold wants it as it is.
    stays: bool,
    key: Vec<u8>,
    data: Vec<u8>,
    cells: Vec<KeptCell>,
}

#[derive(Debug, Clone, Copy)]
struct KeptCell {
    start: usize,
    middle: usize,
    end: usize,
    timestamp: Timestamp,
    seq: SeqNo,
    kind: CellKind,
}

impl KeptRow {
    fn begin(&mut self, key: &[u8]) {
        self.stays = false;
        self.key.clear();
        self.key.extend_from_slice(key);
        self.data.clear();
        self.cells.clear();
    }

    fn keep(&mut self, kind: CellKind, put: RowPut<'_>) {
        let RowPut { qualifier, timestamp, seq, value } = put;
        let start = self.data.len();
        self.data.extend_from_slice(qualifier);
        let middle = self.data.len();
        self.data.extend_from_slice(value);
        let end = self.data.len();
        self.cells.push(KeptCell { start, middle, end, timestamp, seq, kind });
    }

    fn cells(&self) -> impl Iterator<Item = (CellKind, RowPut<'_>)> {
        self.cells.iter().map(|cell| {
            let KeptCell { start, middle, end, timestamp, seq, kind } = *cell;
            let qualifier = self.data.get(start..middle).unwrap_or_default();
            (kind, RowPut { qualifier, timestamp, seq, value: self.data.get(middle..end).unwrap_or_default() })
        })
    }
}
