//! Sorted cells into a new file: what flush and compaction share.

use std::sync::Arc;

use basalt_store::{
    CellKind, CellRef, FamilyDescriptor, Fold, FoldedRow, KeepDeletedCells, Pass, Retention, Rules, SeqNo, Timestamp,
};

use crate::core::{Core, sstable_path};
use crate::error::{Error, Result};
use crate::id::FamilyId;
use crate::io::{IoOp, publish};
use crate::key_range::KeyRange;
use crate::manifest::FileEntry;
use crate::merge::{CellSource, Step};
use crate::region::RegionFile;
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
}

impl FilePass {
    /// A flush or a minor compaction: tombstones stay in any case.
    pub(crate) const RETAIN: FilePass = FilePass { pass: Pass::Retain, purge_delay_ms: 0 };

    fn rules(self, family: &FamilyDescriptor) -> Rules {
        Rules::of(family).with_purge_delay(self.purge_delay_ms)
    }
}

impl Core {
    /// Writes what a pass keeps of `cells` into a new file; `None` when it keeps nothing.
    ///
    /// # Errors
    /// Disk full: nothing is left behind. Any other failed write or sync poisons.
    pub(crate) fn write_file(
        &self,
        id: FamilyId,
        family: &FamilyDescriptor,
        range: &Arc<KeyRange>,
        cells: &mut dyn CellSource,
        pass: FilePass,
    ) -> Result<Option<Output>> {
        let file_id = self.new_file_id();
        let target = sstable_path(&self.dir, file_id);
        let aside = target.with_extension("tmp");
        let written = self.write_aside(file_id, &aside, family, cells, pass);
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
        self.guard(publish(&*self.fs, &*file, &aside, &target))?;
        let table = Sstable::open(file, &target, file_id, &self.codecs, Arc::clone(&self.cache))?;
        let entry = FileEntry { id: file_id, family: id, bytes };
        let file = RegionFile::new(id, Arc::new(table), range);
        assert!(file.part.is_none(), "BUG: a region writes rows of another one");
        Ok(Some(Output { entry, file }))
    }

    /// Deletes files that a full disk kept out of the manifest: tried again, they would fill it further.
    ///
    /// After any other failure the manifest may name them.
    pub(crate) fn keep_if<'a, T>(&self, named: Result<T>, outputs: impl IntoIterator<Item = &'a Output>) -> Result<T> {
        if named.as_ref().is_err_and(Error::is_disk_full) && self.condition.check_alive().is_ok() {
            for output in outputs {
                self.delete_file(output.entry.id);
            }
        }
        named
    }

    fn write_aside(
        &self,
        file_id: crate::sstable::FileId,
        aside: &std::path::Path,
        family: &FamilyDescriptor,
        cells: &mut dyn CellSource,
        pass: FilePass,
    ) -> Result<Option<(Arc<dyn crate::io::File>, u64)>> {
        let file = self.fs.create(aside).map_err(Error::io(IoOp::Create, aside))?;
        let options = SstableOptions::of_family(file_id, family, &self.codecs);
        let writer = SstableWriter::create(Arc::clone(&file), aside, options)?;
        // A fold forgets single versions and deleted cells; families that keep them are not folded.
        let may_fold =
            family.versions == 1 && family.keep_deleted == KeepDeletedCells::False && !family.new_version_behavior;
        let fold = self.fold(family.fold.as_deref()).filter(|_| may_fold).map(Arc::clone);
        let mut sieve = Sieve {
            writer,
            retention: Retention::new(pass.rules(family), pass.pass, self.clock.now()),
            fold,
            row: KeptRow::default(),
            folded: FoldedRow::default(),
        };
        cells.rewind()?;
        let mut step = Step::OtherRow;
        while let Some(cell) = cells.cell() {
            sieve.take(&cell, step)?;
            step = cells.advance()?;
        }
        sieve.end_row()?;
        if sieve.writer.cells_count() == 0 {
            return Ok(None);
        }
        let finished = sieve.writer.finish()?;
        Ok(Some((file, finished.file_bytes)))
    }
}

/// Judges cells, folds rows, writes what is left.
struct Sieve {
    writer: SstableWriter,
    retention: Retention,
    fold: Option<Arc<dyn Fold>>,
    row: KeptRow,
    folded: FoldedRow,
}

impl Sieve {
    /// Takes the next cell, to which `step` led.
    fn take(&mut self, cell: &CellRef<'_>, step: Step) -> Result<()> {
        let same_row = match step {
            Step::SameRow => true,
            Step::OtherRow => false,
            Step::Untold => self.row.key == cell.row,
        };
        if !same_row {
            self.end_row()?;
            self.row.begin(cell);
            self.retention.begin_row();
        }
        // A tombstone that goes in this pass has still masked something in it.
        self.row.has_tombstone |= cell.kind.is_tombstone();
        if !self.retention.judge(cell).keeps() {
            return Ok(());
        }
        if self.fold.is_some() {
            self.row.keep(cell);
            return Ok(());
        }
        self.writer.push(cell)
    }

    /// Writes the row that was kept for the fold.
    fn end_row(&mut self) -> Result<()> {
        let Some(fold) = &self.fold else { return Ok(()) };
        let cells: Vec<CellRef<'_>> = self.row.cells().collect();
        self.folded.clear();
        if cells.is_empty() || self.row.has_tombstone || !fold.fold(&cells, &mut self.folded) {
            return cells.iter().try_for_each(|cell| self.writer.push(cell));
        }
        for cell in self.folded.cells() {
            self.writer.push(&CellRef {
                row: &self.row.key,
                family: &self.row.family,
                qualifier: cell.qualifier,
                timestamp: cell.timestamp,
                kind: CellKind::Put,
                seq: cell.seq,
                value: cell.value,
            })?;
        }
        Ok(())
    }
}

/// A row's cells, copied.
#[derive(Debug, Default)]
struct KeptRow {
    has_tombstone: bool,
    key: Vec<u8>,
    family: Vec<u8>,
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
    fn begin(&mut self, cell: &CellRef<'_>) {
        self.has_tombstone = false;
        self.key.clear();
        self.key.extend_from_slice(cell.row);
        self.family.clear();
        self.family.extend_from_slice(cell.family);
        self.data.clear();
        self.cells.clear();
    }

    fn keep(&mut self, cell: &CellRef<'_>) {
        let start = self.data.len();
        self.data.extend_from_slice(cell.qualifier);
        let middle = self.data.len();
        self.data.extend_from_slice(cell.value);
        let end = self.data.len();
        let CellRef { timestamp, seq, kind, .. } = *cell;
        self.cells.push(KeptCell { start, middle, end, timestamp, seq, kind });
    }

    fn cells(&self) -> impl Iterator<Item = CellRef<'_>> {
        self.cells.iter().map(|cell| CellRef {
            row: &self.key,
            family: &self.family,
            qualifier: self.data.get(cell.start..cell.middle).unwrap_or_default(),
            timestamp: cell.timestamp,
            kind: cell.kind,
            seq: cell.seq,
            value: self.data.get(cell.middle..cell.end).unwrap_or_default(),
        })
    }
}
