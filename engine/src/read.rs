//! Gets, and the rows that they and scans read: what the rules let a reader see.

use std::sync::Arc;

use basalt_store::{
    Advance, Cost, Get, PackedRows, Packing, RowBatch, RowBatchBuilder, RowReader, RowVerdict, TimeRange,
};
use bytes::Bytes;

use crate::block_count::BlockCount;
use crate::core::Core;
use crate::error::Result;
use crate::memtable::LonePuts;
use crate::merge::{CellSource, Direction, Merge, Step};
use crate::region::View;
use crate::source::{FamilyRead, RowByColumns, Source};
use crate::sstable::{BlockCodecs, Caching};
use crate::table::{Shape, Table};

mod scan;

/// Cells that are stepped over before a seek is tried instead.
const STEPS_BEFORE_SEEK: u64 = 8;

/// An answer to a get begins with room for up to as many rows.
const ROOM_ROWS: usize = 256;

impl Core {
    /// Answers a get on the caller's thread.
    pub(crate) fn get(&self, table: &Table, get: &Get) -> Result<RowBatch> {
        if get.rows.iter().any(Bytes::is_empty) {
            let reason = "it is empty".into();
            return Err(basalt_store::Error::InvalidArgument { what: "row key", reason }.into());
        }
        if get.rows.len() > self.limits.get_rows_max {
            let (size, limit) = (get.rows.len() as u64, self.limits.get_rows_max as u64);
            return Err(basalt_store::Error::TooLarge { what: "list of rows", size, limit }.into());
        }
        let shape = table.shape();
        RowReader::check_get(&shape.descriptor, get)?;
        let regions = table.regions();
        let mut reading = None;
        for row in &get.rows {
            let Some(region) = regions.of(row) else { continue };
            region.count_read();
            let (view, read_point) = region.snapshot();
            table.check_there()?;
            // Fast path: nothing is made ready for rows that are nowhere.
            if !view.may_contain_row(row) {
                continue;
            }
            let (reader, count, out) = match &mut reading {
                Some(reading) => reading,
                None => reading.insert(self.begin_get(&shape, get)?),
            };
            let (time_range, codecs) = (get.time_range, &self.codecs);
            let wanted = RowWanted { row, read_point, time_range, count: Some(count), codecs };
            read_row(&shape, &view, &wanted, reader, out)?;
        }
        let Some((mut reader, count, mut out)) = reading else { return Ok(RowBatch::default()) };
        out.set_cost(cost(&mut reader, &count));
        Ok(out.finish())
    }

    fn begin_get(&self, shape: &Shape, get: &Get) -> Result<(RowReader, Arc<BlockCount>, RowBatchBuilder)> {
        let reader = RowReader::for_get(&shape.descriptor, get, self.clock.now())?;
        Ok((reader, Arc::default(), RowBatchBuilder::with_room(get.rows.len().min(ROOM_ROWS))))
    }
}

/// What was examined since this was asked last.
fn cost(reader: &mut RowReader, count: &BlockCount) -> Cost {
    let mut cost = reader.take_cost();
    cost += count.take();
    cost
}

/// One row of a view.
#[derive(Debug)]
pub(crate) struct RowWanted<'a> {
    pub(crate) row: &'a [u8],
    pub(crate) read_point: u64,
    pub(crate) time_range: TimeRange,
    /// Where blocks are counted, if anywhere.
    pub(crate) count: Option<&'a Arc<BlockCount>>,
    /// Those that families may name.
    pub(crate) codecs: &'a BlockCodecs,
}

/// Reads one row into `out`.
pub(crate) fn read_row<'a>(
    shape: &'a Shape,
    view: &View,
    wanted: &RowWanted<'a>,
    reader: &mut RowReader,
    out: &mut RowBatchBuilder,
) -> Result<()> {
    let families = open_families(shape, reader, wanted.codecs, |mut family, qualifiers| {
        family.read_point = wanted.read_point;
        family.set_time_range(wanted.time_range);
        family.row = Some(wanted.row);
        family.count = wanted.count.map(Arc::clone);
        if let [one] = qualifiers {
            FamilyRead { qualifier: Some(one), ..family }.open(view)
        } else {
            family.open(view)
        }
    });
    // Fast path: no memtable and no file has the row.
    if families.iter().all(Merge::is_void) {
        return Ok(());
    }
    let mut rows = Rows::new(families, Direction::Forward);
    rows.row.extend_from_slice(wanted.row);
    rows.seek(wanted.row)?;
    // A row without a cell is no row: no filter is asked about it.
    if rows.families.iter().any(|family| family.on_row) && reader.begin_row(wanted.row, out)? == RowVerdict::Pass {
        rows.read(reader, out)?;
        reader.end_row(out);
    }
    Ok(())
}

/// A merge for each family that a reader selected, made by `open` from the family's defaults.
fn open_families<'a>(
    shape: &'a Shape,
    reader: &RowReader,
    codecs: &'a BlockCodecs,
    open: impl Fn(FamilyRead<'a>, &[Bytes]) -> Merge<Source>,
) -> Vec<Merge<Source>> {
    let selected = reader.selection().families().enumerate();
    let families = selected.filter_map(|(position, index)| {
        Some((position, shape.family_id(index)?, shape.descriptor.families.get(index)?))
    });
    families
        .map(|(position, id, family)| {
            let read = FamilyRead {
                id,
                name: &family.name,
                direction: Direction::Forward,
                read_point: u64::MAX,
                time_range: TimeRange::ALL,
                after: 0,
                needs_all_times: family.new_version_behavior,
                caching: Caching::of(family),
                row: None,
                qualifier: None,
                count: None,
                packing: reader.packing(),
                first_cells: false,
                codec: codecs.find(&family.block_encoding),
            };
            open(read, reader.selection().qualifiers(position))
        })
        .collect()
}

/// The selected families of a region, walked row by row.
#[derive(Debug)]
struct Rows {
    /// In the order of the selection, which is that of cells.
    families: Vec<FamilyWalk>,
    direction: Direction,
    /// The row that is being read.
    row: Vec<u8>,
}

impl Rows {
    fn new(families: Vec<Merge<Source>>, direction: Direction) -> Rows {
        let walk = |cells| FamilyWalk { cells, on_row: false, direction, left: Vec::new(), is_refilled: false };
        Rows { families: families.into_iter().map(walk).collect(), direction, row: Vec::new() }
    }

    fn rewind(&mut self) -> Result<()> {
        self.families.iter_mut().try_for_each(|family| family.cells.rewind())
    }

    fn seek(&mut self, target: &[u8]) -> Result<()> {
        let Rows { families, row, .. } = self;
        families.iter_mut().try_for_each(|family| family.seek(row, target, &[]))
    }

    /// Finds the next row that any family stands on; false at the end.
    fn find(&mut self) -> bool {
        let rows = self.families.iter().filter_map(|family| family.cells.row());
        let next = match self.direction {
            Direction::Forward => rows.min(),
            Direction::Reverse => rows.max(),
        };
        let Some(next) = next else { return false };
        self.row.clear();
        self.row.extend_from_slice(next);
        match &mut self.families[..] {
            [only] => only.on_row = true,
            several => several.iter_mut().for_each(|family| family.look(&self.row)),
        }
        true
    }

    /// Feeds the row's cells to the reader.
    fn read(&mut self, reader: &mut RowReader, out: &mut RowBatchBuilder) -> Result<()> {
        if reader.packing() != Packing::Cells {
            // Fast path: folded rows.
            if self.give_packed(reader, out) {
                return Ok(());
            }
            self.families.iter_mut().try_for_each(|family| family.cells.unpack_row(&self.row))?;
        }
        for (position, family) in self.families.iter_mut().enumerate() {
            if !family.on_row {
                continue;
            }
            reader.begin_family(position);
            if family.read(&self.row, reader, out)? == Advance::NextRow {
                break;
            }
        }
        Ok(())
    }

    /// Gives the row by columns, or not at all if no reader sees its cells; false where it takes cells to tell.
    fn give_packed(&self, reader: &mut RowReader, out: &mut RowBatchBuilder) -> bool {
        let [family] = &self.families[..] else { return false };
        if !family.on_row {
            return false;
        }
        // Fast path: one source has all of it.
        if let Some(source) = family.cells.alone() {
            let packing = reader.packing();
            let mut passed = None;
            out.push_packed(|rows| {
                let first = rows.len();
                passed = add_columns(source, packing, reader, rows);
                rows.len() > first
            });
            reader.count_passed(passed.unwrap_or(0));
            return passed.is_some();
        }
        Self::give_joined(family, reader, out)
    }

    /// The same of a row that was flushed while it grew: its pieces one behind the other.
    fn give_joined(family: &FamilyWalk, reader: &mut RowReader, out: &mut RowBatchBuilder) -> bool {
        let (mut passed, mut is_told) = (0, true);
        out.push_packed(|rows| {
            let first = rows.len();
            // Summaries of pieces do not join.
            let packing = if reader.packing() == Packing::Newest { Packing::Newest } else { Packing::Points };
            is_told = family.cells.standing().all(|source| {
                let added = add_columns(source, packing, reader, rows);
                passed += added.unwrap_or(0);
                added.is_some()
            });
            if !is_told {
                rows.truncate(first);
                return false;
            }
            let is_hidden = rows.len() == first;
            let join = if packing == Packing::Newest { PackedRows::keep_newest } else { PackedRows::join };
            is_told = is_hidden || join(rows, first);
            is_told && !is_hidden
        });
        if is_told {
            reader.count_passed(passed);
        }
        is_told
    }

    /// Goes behind the row, wherever in it the families stand.
    fn skip(&mut self, reader: &mut RowReader) -> Result<()> {
        for family in &mut self.families {
            reader.count_passed(family.skip_row(&self.row)?);
        }
        Ok(())
    }
}

/// Adds a row of a source, or a piece of one, to packed ones, if a reader sees it; answers how many cells it is, `None` where it
/// takes cells to tell.
fn add_columns(source: &Source, packing: Packing, reader: &mut RowReader, rows: &mut PackedRows) -> Option<u64> {
    match source.row_by_columns()? {
        RowByColumns::Put(block, row) => {
            let (timestamp, seq) = block.written(row);
            let is_added = !reader.keeps_lone_put(timestamp, seq) || block.pack(row, packing, rows);
            is_added.then_some(1)
        }
        RowByColumns::Puts(cells) => {
            reader.begin_family(0);
            let count = cells.pack(packing, |oldest, newest| reader.keeps_lone_puts(oldest, newest), rows);
            Some(count as u64).filter(|count| *count > 0)
        }
    }
}

/// A family's cells, and whether they are still those of the row that is being read.
#[derive(Debug)]
struct FamilyWalk {
    cells: Merge<Source>,
    /// Kept by every step, so that keys are compared only where a step cannot tell.
    on_row: bool,
    direction: Direction,
    /// The qualifier of the column that was left last; kept for its memory.
    left: Vec<u8>,
    /// The source may have come to cells that it had not copied before.
    is_refilled: bool,
}

impl FamilyWalk {
    fn look(&mut self, row: &[u8]) {
        self.on_row = self.cells.row() == Some(row);
    }

    fn advance(&mut self, row: &[u8]) -> Result<()> {
        match self.cells.advance()? {
            Step::SameRow => {}
            Step::OtherRow => self.on_row = false,
            Step::Untold => {
                self.look(row);
                self.is_refilled = true;
            }
        }
        Ok(())
    }

    fn seek(&mut self, row: &[u8], target: &[u8], qualifier: &[u8]) -> Result<()> {
        self.cells.seek(target, qualifier)?;
        self.look(row);
        Ok(())
    }

    /// Feeds the row's cells to the reader; answers how it wants to go on.
    fn read(&mut self, row: &[u8], reader: &mut RowReader, out: &mut RowBatchBuilder) -> Result<Advance> {
        self.is_refilled = true;
        let mut is_column_begun = true;
        while self.on_row {
            // Fast path: puts that lie in a memtable alone.
            if is_column_begun && std::mem::take(&mut self.is_refilled) && self.give_lone_puts(row, reader, out)? {
                continue;
            }
            let Some(cell) = self.cells.cell() else { break };
            is_column_begun = false;
            match reader.feed(&cell, out)? {
                Advance::NextCell => self.advance(row)?,
                Advance::NextColumn => {
                    self.left.clear();
                    self.left.extend_from_slice(cell.qualifier);
                    let passed = self.next_column(row, reader.wanted())?;
                    reader.count_passed(passed);
                    is_column_begun = true;
                }
                advance => return Ok(advance),
            }
        }
        Ok(Advance::NextFamily)
    }

    /// Gives cells that need no judging, if such come next in a memtable that alone has the row; says whether any did.
    fn give_lone_puts(&mut self, row: &[u8], reader: &mut RowReader, out: &mut RowBatchBuilder) -> Result<bool> {
        let Some(cursor) = self.cells.alone_mut().and_then(Source::copied_cells_mut) else { return Ok(false) };
        let puts = cursor.lone_puts().filter(|puts| reader.keeps_lone_puts(puts.oldest, puts.newest));
        let Some(LonePuts { count, .. }) = puts else { return Ok(false) };
        cursor.next_cells(count).try_for_each(|cell| out.push(cell))?;
        reader.count_passed(count as u64);
        cursor.pass(count - 1);
        self.advance(row)?;
        Ok(true)
    }

    /// Goes from the column `left` to the next of the row, or to the one that is wanted if that is further on.
    ///
    /// Answers how many cells it passed over one by one, besides the one it stood on.
    fn next_column(&mut self, row: &[u8], wanted: Option<&[u8]>) -> Result<u64> {
        self.advance(row)?;
        let mut passed = 0;
        while self.on_row && self.cells.cell().is_some_and(|cell| !self.is_next(cell.qualifier, wanted)) {
            // In reverse a seek knows no columns: step on.
            if passed + 1 >= STEPS_BEFORE_SEEK && self.direction == Direction::Forward {
                // The smallest qualifier behind the one left.
                let behind = [&self.left[..], &[0]].concat();
                let target = wanted.filter(|wanted| *wanted > &behind[..]).unwrap_or(&behind);
                self.seek(row, row, target)?;
                break;
            }
            self.advance(row)?;
            passed += 1;
        }
        Ok(passed)
    }

    fn is_next(&self, qualifier: &[u8], wanted: Option<&[u8]>) -> bool {
        qualifier != self.left && wanted.is_none_or(|wanted| qualifier >= wanted)
    }

    /// Goes behind the row; answers how many cells it passed over one by one.
    fn skip_row(&mut self, row: &[u8]) -> Result<u64> {
        let mut steps = 0;
        while self.on_row {
            if steps >= STEPS_BEFORE_SEEK && self.direction == Direction::Forward {
                // The smallest key behind the row.
                self.seek(row, &[row, &[0]].concat(), &[])?;
                break;
            }
            self.advance(row)?;
            steps += 1;
        }
        Ok(steps)
    }
}
