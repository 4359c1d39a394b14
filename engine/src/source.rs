//! The sorted streams that a region's family is read from.

use std::sync::Arc;

use basalt_store::{CellRef, Packing, TimeRange};
use bytes::Bytes;

use crate::block_count::BlockCount;
use crate::error::Result;
use crate::id::FamilyId;
use crate::key_range::{KeyRange, Part};
use crate::memtable::{Memtable, MemtableCursor, MemtableRowCursor};
use crate::merge::{CellSource, Direction, Merge, Step};
use crate::region::{RegionFile, View};
use crate::sstable::{BlockCodec, Caching, PackedBlock, ReadOptions, SstableCursor};

/// A memtable's or a file's cells.
#[derive(Debug)]
pub(crate) enum Source {
    Memtable(MemtableCursor),
    /// Of a read by columns.
    MemtableRows(Box<MemtableRowCursor>),
    File(Box<SstableCursor>),
    /// What a split left of one of the others to a region.
    Part(Box<Part<Source>>),
}

/// A row that can be had by columns.
#[derive(Debug)]
pub(crate) enum RowByColumns<'a> {
    /// One put, in a block.
    Put(&'a dyn PackedBlock, usize),
    /// Perhaps: the one that this stands on, if its cells are points.
    Puts(&'a MemtableRowCursor),
}

impl Source {
    /// The row that it stands on, if that can be had by columns.
    pub(crate) fn row_by_columns(&self) -> Option<RowByColumns<'_>> {
        match self {
            Source::Memtable(_) => None,
            Source::MemtableRows(cursor) => Some(RowByColumns::Puts(cursor)),
            Source::File(cursor) => cursor.packed_row().map(|(block, row)| RowByColumns::Put(block, row)),
            Source::Part(part) => part.within()?.row_by_columns(),
        }
    }

    /// Cells that were copied out of a memtable.
    pub(crate) fn copied_cells_mut(&mut self) -> Option<&mut MemtableCursor> {
        match self {
            Source::Memtable(cursor) => Some(cursor),
            Source::MemtableRows(cursor) => cursor.cells_mut(),
            Source::File(_) | Source::Part(_) => None,
        }
    }
}

impl CellSource for Source {
    #[inline]
    fn cell(&self) -> Option<CellRef<'_>> {
        match self {
            Source::Memtable(cursor) => cursor.cell(),
            Source::MemtableRows(cursor) => cursor.cell(),
            Source::File(cursor) => cursor.cell(),
            Source::Part(part) => part.cell(),
        }
    }

    #[inline]
    fn row(&self) -> Option<&[u8]> {
        match self {
            Source::Memtable(cursor) => cursor.row(),
            Source::MemtableRows(cursor) => cursor.row(),
            Source::File(cursor) => cursor.row(),
            Source::Part(part) => part.row(),
        }
    }

    fn unpack(&mut self) -> Result<()> {
        match self {
            Source::Memtable(_) => Ok(()),
            Source::MemtableRows(cursor) => cursor.unpack(),
            Source::File(cursor) => cursor.unpack(),
            Source::Part(part) => part.unpack(),
        }
    }

    #[inline]
    fn advance(&mut self) -> Result<Step> {
        match self {
            Source::Memtable(cursor) => cursor.advance(),
            Source::MemtableRows(cursor) => cursor.advance(),
            Source::File(cursor) => cursor.advance(),
            Source::Part(part) => part.advance(),
        }
    }

    fn rewind(&mut self) -> Result<()> {
        match self {
            Source::Memtable(cursor) => cursor.rewind(),
            Source::MemtableRows(cursor) => cursor.rewind(),
            Source::File(cursor) => cursor.rewind(),
            Source::Part(part) => part.rewind(),
        }
    }

    fn seek(&mut self, row: &[u8], qualifier: &[u8]) -> Result<()> {
        match self {
            Source::Memtable(cursor) => cursor.seek(row, qualifier),
            Source::MemtableRows(cursor) => cursor.seek(row, qualifier),
            Source::File(cursor) => cursor.seek(row, qualifier),
            Source::Part(part) => part.seek(row, qualifier),
        }
    }
}

/// How a family of a view is read.
#[derive(Debug, Clone)]
pub(crate) struct FamilyRead<'a> {
    pub(crate) id: FamilyId,
    pub(crate) name: &'a Bytes,
    pub(crate) direction: Direction,
    /// Cells of memtables with later numbers are not there.
    pub(crate) read_point: u64,
    pub(crate) time_range: TimeRange,
    /// Files of earlier changes only are not wanted.
    pub(crate) after: u64,
    /// Whether cells of other times decide which are seen: then none is passed over.
    pub(crate) needs_all_times: bool,
    pub(crate) caching: Caching,
    /// The one row that is wanted, if one is.
    pub(crate) row: Option<&'a [u8]>,
    /// The one column of it that is wanted, if one is.
    pub(crate) qualifier: Option<&'a [u8]>,
    /// Where the blocks that are opened are counted, if anywhere.
    pub(crate) count: Option<Arc<BlockCount>>,
    /// How rows may be stood on ([`ReadOptions::packing`]).
    pub(crate) packing: Packing,
    /// Whether nearly all rows are skipped after their first cell.
    pub(crate) first_cells: bool,
    /// What tells the points among a memtable's cells, if the family has such.
    pub(crate) codec: Option<&'a Arc<dyn BlockCodec>>,
}

impl<'a> FamilyRead<'a> {
    /// Everything of a family, forward, past the block cache.
    pub(crate) fn all(id: FamilyId, name: &'a Bytes) -> FamilyRead<'a> {
        FamilyRead {
            id,
            name,
            direction: Direction::Forward,
            read_point: u64::MAX,
            time_range: TimeRange::ALL,
            after: 0,
            needs_all_times: true,
            caching: Caching::Bypass,
            row: None,
            qualifier: None,
            count: None,
            packing: Packing::Cells,
            first_cells: false,
            codec: None,
        }
    }
}

impl FamilyRead<'_> {
    /// Wants cells of these times.
    pub(crate) fn set_time_range(&mut self, times: TimeRange) {
        self.time_range = if self.needs_all_times { TimeRange::ALL } else { times };
    }

    /// The family's cells in a view, merged; newest sources first, so that of two
    /// cells with one address and number the one written later comes first.
    pub(crate) fn open(&self, view: &View) -> Merge<Source> {
        let frozen = view.frozen.iter().rev().map(|frozen| (&frozen.memtable, frozen.part.as_ref()));
        let memtables = std::iter::once((&view.active, None)).chain(frozen);
        let mut sources: Vec<Source> = memtables
            .filter(|(memtable, _)| !memtable.is_empty())
            .map(|(memtable, part)| self.cut(self.open_memtable(memtable), part))
            .collect();
        sources.extend(view.files.iter().rev().filter(|file| self.wants(file)).map(|file| self.open_file(file)));
        Merge::new(sources, self.direction)
    }

    fn wants(&self, file: &RegionFile) -> bool {
        file.family == self.id
            && file.table.metadata().times.overlaps(self.time_range)
            && file.table.metadata().seq_max.0 > self.after
            && self.row.is_none_or(|row| match self.qualifier {
                Some(qualifier) => file.table.may_contain_column(row, qualifier),
                None => file.table.may_contain_row(row),
            })
    }

    pub(crate) fn open_file(&self, file: &RegionFile) -> Source {
        let FamilyRead { direction, time_range, caching, packing, .. } = *self;
        let options = ReadOptions { direction, time_range, caching, packing };
        let cursor = SstableCursor::new(Arc::clone(&file.table), options).counted(self.count.clone());
        self.cut(Source::File(Box::new(cursor)), file.part.as_ref())
    }

    /// The family's rows in a memtable, which lends them; forward.
    pub(crate) fn rows_of(&self, memtable: &Arc<Memtable>) -> MemtableRowCursor {
        MemtableRowCursor::whole(self.cells_of(memtable))
    }

    fn cells_of(&self, memtable: &Arc<Memtable>) -> MemtableCursor {
        MemtableCursor::new(Arc::clone(memtable), self.id, self.name.clone(), self.direction, self.read_point)
    }

    fn open_memtable(&self, memtable: &Arc<Memtable>) -> Source {
        let cursor = self.cells_of(memtable);
        let one_row = self.row.is_some();
        match self.codec.filter(|_| self.packing != Packing::Cells) {
            Some(codec) => Source::MemtableRows(Box::new(MemtableRowCursor::new(cursor, Arc::clone(codec), one_row))),
            None if one_row => Source::Memtable(cursor.of_one_row(self.qualifier.is_none())),
            None if self.first_cells => Source::Memtable(cursor.of_first_cells()),
            None => Source::Memtable(cursor),
        }
    }

    /// Shows of a source its part only; a row that is asked for lies in it.
    fn cut(&self, source: Source, part: Option<&Arc<KeyRange>>) -> Source {
        match part {
            Some(range) if self.row.is_none() => {
                Source::Part(Box::new(Part::new(source, KeyRange::clone(range), self.direction)))
            }
            _ => source,
        }
    }
}
