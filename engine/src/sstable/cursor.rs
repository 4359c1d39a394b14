//! Walks an open SSTable cell by cell: in cell order, or by rows from the last to the first.
//!
//! Backwards, rows descend and the cells of a row still ascend (rule S-SCAN-7). A row may lie in several blocks, so a
//! backward step first finds the block in which the row before begins.

use std::cmp::Ordering;
use std::sync::Arc;

use basalt_store::{CellRef, Packing, TimeRange};

use crate::block_count::BlockCount;
use crate::error::{Error, Result};
use crate::merge::{CellSource, Direction, Step};

use super::block::{BlockCursor, Next};
use super::block_cache::Caching;
use super::input::{Malformed, Parsed};
use super::leaves::{BlockAt, Blocks};
use super::packed::{Loaded, PackedBlock, PackedCursor, Parts};
use super::{Block, Sstable};

/// How a file is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadOptions {
    /// Which way rows are walked.
    pub(crate) direction: Direction,
    /// Blocks that certainly have no cell of these times, and no tombstone over one, are passed by. Cells outside the
    /// range may still come: the reader filters. Must be [`TimeRange::ALL`] where cells outside the range decide about
    /// cells inside it (versions counted over all times, compaction).
    pub(crate) time_range: TimeRange,
    /// Where blocks read from the file are kept.
    pub(crate) caching: Caching,
    /// Forward: whether rows are stood on without taking them apart, where their block allows it. Such a row has no cell
    /// until [`CellSource::unpack`].
    pub(crate) packing: Packing,
}

/// Stands on a cell of a file, or past the last one. Moving within a block does no I/O and no allocation.
#[derive(Debug)]
pub(crate) struct SstableCursor {
    table: Arc<Sstable>,
    options: ReadOptions,
    /// The block that was opened last.
    at: Option<BlockAt>,
    cursor: Option<BlockCursor>,
    /// In its place where the block is one by columns.
    packed: Option<PackedCursor>,
    /// Backwards: block and row index within it where the current row begins.
    row_start: Option<(BlockAt, usize)>,
    row_buffer: Vec<u8>,
    parts: Parts,
    count: Option<Arc<BlockCount>>,
}

impl SstableCursor {
    /// Stands nowhere yet: seek or rewind it. No I/O.
    pub(crate) fn new(table: Arc<Sstable>, options: ReadOptions) -> Self {
        Self {
            table,
            options,
            at: None,
            cursor: None,
            packed: None,
            row_start: None,
            row_buffer: Vec::new(),
            parts: Parts::default(),
            count: None,
        }
    }

    /// The same cursor, whose opened blocks are counted.
    pub(crate) fn counted(mut self, count: Option<Arc<BlockCount>>) -> Self {
        self.count = count;
        self
    }

    fn blocks(&self) -> Blocks<'_> {
        self.table.blocks_of(self.options.caching, self.options.time_range)
    }

    /// Stands nowhere.
    fn clear(&mut self) {
        if let Some(cursor) = self.cursor.take() {
            self.row_buffer = cursor.into_row_buffer();
        }
        if let Some(packed) = self.packed.take() {
            self.parts = packed.into_parts();
        }
    }

    /// Stands on the first cell of the row that `choose` picks in a block; nowhere when it picks none.
    fn open(&mut self, block: BlockAt, choose: impl FnOnce(&Block) -> Parsed<Option<usize>>) -> Result<bool> {
        let loaded = match &self.cursor {
            Some(cursor) if self.is_at(&block) => cursor.block().clone(),
            _ => {
                let (loaded, file_bytes) = self.table.read_block(block.entry(), self.options.caching)?;
                self.count_block(file_bytes);
                loaded
            }
        };
        self.open_image(block, loaded, choose)
    }

    fn is_at(&self, block: &BlockAt) -> bool {
        self.at.as_ref() == Some(block)
    }

    fn count_block(&self, file_bytes: Option<u64>) {
        if let Some(count) = &self.count {
            count.add(file_bytes);
        }
    }

    fn open_image(
        &mut self,
        block: BlockAt,
        loaded: Block,
        choose: impl FnOnce(&Block) -> Parsed<Option<usize>>,
    ) -> Result<bool> {
        self.clear();
        let offset = block.entry().offset;
        self.at = Some(block);
        let buffer = std::mem::take(&mut self.row_buffer);
        let opened = choose(&loaded).and_then(|row| match row {
            Some(row) => BlockCursor::at_row(loaded, row, buffer).map(Some),
            None => Ok(None),
        });
        self.cursor = opened.map_err(|malformed| self.table.malformed(offset, malformed))?;
        Ok(self.cursor.is_some())
    }

    fn open_first_row(&mut self, block: Option<BlockAt>) -> Result<()> {
        let Some(block) = block else {
            self.clear();
            return Ok(());
        };
        self.open_forward(block, None).map(|_| ())
    }

    /// Stands on the first row of a block that is at or after `target`, or on its first; nowhere when there is none.
    fn open_forward(&mut self, block: BlockAt, target: Option<&[u8]>) -> Result<bool> {
        let choose = |loaded: &Block| match target {
            None => Ok(Some(0)),
            Some(row) => Ok(Some(loaded.find_row(row)?).filter(|row| *row < loaded.rows_count())),
        };
        let is_here = self.is_at(&block);
        if self.options.packing == Packing::Cells || (is_here && self.cursor.is_some()) {
            return self.open(block, choose);
        }
        let columns = match &self.packed {
            Some(packed) if is_here => Arc::clone(packed.columns()),
            _ => {
                let (loaded, file_bytes) = self.table.load_packed(block.entry(), self.options.caching)?;
                self.count_block(file_bytes);
                match loaded {
                    Loaded::Image(loaded) => return self.open_image(block, loaded, choose),
                    Loaded::Packed(columns) => columns,
                }
            }
        };
        self.clear();
        self.at = Some(block);
        match PackedCursor::at(columns, target, std::mem::take(&mut self.parts)) {
            Ok(packed) => self.packed = Some(packed),
            Err(parts) => self.parts = parts,
        }
        Ok(self.packed.is_some())
    }

    /// The row it stands on, if that can be had by columns: no other block of the file has cells of it.
    pub(crate) fn packed_row(&self) -> Option<(&dyn PackedBlock, usize)> {
        let packed = self.packed.as_ref().filter(|packed| !packed.is_unpacked())?;
        let at = self.at.as_ref()?;
        let goes_on = packed.is_last() && at.first_row_after(&self.table) == Some(packed.row());
        let began = packed.row_index() == 0 && at.last_row_before(&self.table) == Some(packed.row());
        (!goes_on && !began).then_some((packed.block(), packed.row_index()))
    }

    fn advance_packed(&mut self) -> Result<Step> {
        let Some(packed) = &mut self.packed else { return Ok(Step::OtherRow) };
        let was_unpacked = packed.is_unpacked();
        if packed.advance() {
            return Ok(Step::OtherRow);
        }
        self.open_next_block(was_unpacked)?;
        Ok(Step::Untold)
    }

    /// Goes to the first row of the next block. A row that is being read by cells is read so to its end.
    fn open_next_block(&mut self, by_cells: bool) -> Result<()> {
        let Some(at) = &self.at else { return Ok(()) };
        let next = self.blocks().after(at)?;
        let goes_on = by_cells && next.as_ref().is_some_and(|next| next.first_row() == at.last_row());
        self.open_first_row(next)?;
        if goes_on { self.unpack() } else { Ok(()) }
    }

    /// Goes to the beginning of the row that a block ends with.
    fn open_last_row(&mut self, block: Option<BlockAt>) -> Result<()> {
        let Some(block) = block else {
            self.clear();
            return Ok(());
        };
        self.open(block, |loaded| Ok(Some(loaded.rows_count() - 1)))?;
        self.go_to_row_start()
    }

    /// From the first cell of a row within a block, goes back to the block in which the row begins.
    fn go_to_row_start(&mut self) -> Result<()> {
        while let (Some(cursor), Some(at)) = (&self.cursor, &self.at) {
            // Whether the row is in the block before too is known without a read.
            let began = cursor.row_index() == 0 && at.last_row_before(&self.table) == Some(cursor.row());
            let before = if began { self.blocks().before(at)? } else { None };
            let Some(before) = before.filter(|before| before.last_row() == cursor.row()) else {
                self.row_start = Some((at.clone(), cursor.row_index()));
                break;
            };
            self.open(before, |loaded| Ok(Some(loaded.rows_count() - 1)))?;
        }
        Ok(())
    }

    #[inline]
    fn step<T>(&mut self, step: impl FnOnce(&mut BlockCursor) -> Parsed<T>) -> Result<Option<T>> {
        let Some(cursor) = &mut self.cursor else { return Ok(None) };
        match step(cursor) {
            Ok(stepped) => Ok(Some(stepped)),
            Err(malformed) => Err(self.malformed(malformed)),
        }
    }

    #[cold]
    fn malformed(&self, malformed: Malformed) -> Error {
        let offset = self.at.as_ref().map_or(0, |at| at.entry().offset);
        self.table.malformed(offset, malformed)
    }

    #[inline]
    fn advance_forward(&mut self) -> Result<Step> {
        if self.packed.is_some() {
            return self.advance_packed();
        }
        Ok(match self.step(BlockCursor::next)? {
            Some(Next::InRow) => Step::SameRow,
            Some(Next::NewRow) | None => Step::OtherRow,
            Some(Next::End) => {
                self.open_next_block(true)?;
                Step::Untold
            }
        })
    }

    fn advance_reverse(&mut self) -> Result<Step> {
        match self.step(BlockCursor::next_in_row)? {
            Some(true) => return Ok(Step::SameRow),
            None => return Ok(Step::OtherRow),
            Some(false) => {}
        }
        if let Some(after) = self.row_goes_on()? {
            self.open_first_row(Some(after))?;
            return Ok(Step::SameRow);
        }
        let Some((block, row)) = self.row_start.take() else { return Ok(Step::OtherRow) };
        match row.checked_sub(1) {
            Some(row) => {
                self.open(block, |_| Ok(Some(row)))?;
                self.go_to_row_start()?;
            }
            None => self.open_last_row(self.blocks().before(&block)?)?,
        }
        Ok(Step::OtherRow)
    }

    /// The block in which the current row goes on, once its cells in this one are done.
    fn row_goes_on(&self) -> Result<Option<BlockAt>> {
        let (Some(cursor), Some(at)) = (&self.cursor, &self.at) else { return Ok(None) };
        let is_last = cursor.row_index() + 1 == cursor.block().rows_count();
        if !is_last || at.first_row_after(&self.table) != Some(cursor.row()) {
            return Ok(None);
        }
        Ok(self.blocks().after(at)?.filter(|after| after.first_row() == cursor.row()))
    }

    fn seek_forward(&mut self, row: &[u8], qualifier: &[u8]) -> Result<()> {
        let Some(block) = self.blocks().find(row, qualifier, self.at.as_ref())? else {
            self.clear();
            return Ok(());
        };
        if !self.open_forward(block, Some(row))? {
            self.open_next_block(false)?;
        }
        if !qualifier.is_empty() && self.row() == Some(row) {
            self.unpack()?;
        }
        while self.cell().is_some_and(|cell| cell.row == row && cell.qualifier < qualifier) {
            self.advance_forward()?;
        }
        Ok(())
    }

    fn seek_reverse(&mut self, row: &[u8]) -> Result<()> {
        let Some(block) = self.blocks().find_reverse(row, self.at.as_ref())? else {
            self.clear();
            return Ok(());
        };
        let stands = self.open(block.clone(), |loaded| {
            let at_or_after = loaded.find_row(row)?;
            let exact = at_or_after < loaded.rows_count() && loaded.compare_row(at_or_after, row)? == Ordering::Equal;
            Ok(if exact { Some(at_or_after) } else { at_or_after.checked_sub(1) })
        })?;
        if stands { self.go_to_row_start() } else { self.open_last_row(self.blocks().before(&block)?) }
    }
}

impl CellSource for SstableCursor {
    #[inline]
    fn cell(&self) -> Option<CellRef<'_>> {
        let family = &self.table.metadata.family;
        let packed = || self.packed.as_ref()?.cell(family);
        self.cursor.as_ref().map(|cursor| cursor.cell(family)).or_else(packed)
    }

    #[inline]
    fn row(&self) -> Option<&[u8]> {
        self.cursor.as_ref().map(BlockCursor::row).or_else(|| self.packed.as_ref().map(PackedCursor::row))
    }

    #[inline]
    fn advance(&mut self) -> Result<Step> {
        match self.options.direction {
            Direction::Forward => self.advance_forward(),
            Direction::Reverse => self.advance_reverse(),
        }
    }

    fn unpack(&mut self) -> Result<()> {
        let Some(packed) = &mut self.packed else { return Ok(()) };
        if packed.unpack() {
            return Ok(());
        }
        let position = packed.row_index();
        Err(self.malformed(Malformed { position }))
    }

    fn rewind(&mut self) -> Result<()> {
        match self.options.direction {
            Direction::Forward => self.open_first_row(self.blocks().first()?),
            Direction::Reverse => self.open_last_row(self.blocks().last()?),
        }
    }

    fn seek(&mut self, row: &[u8], qualifier: &[u8]) -> Result<()> {
        match self.options.direction {
            Direction::Forward => self.seek_forward(row, qualifier),
            Direction::Reverse => self.seek_reverse(row),
        }
    }
}
