//! Rows of a region, as a reader sees them: its families are walked together, and their cells fed to the rules.

use basalt_store::{Advance, PackedRows, Packing, RowBatchBuilder, RowReader, TimeRange};
use bytes::Bytes;

use crate::error::Result;
use crate::memtable::LonePuts;
use crate::merge::{CellSource, Direction, Merge, Step};
use crate::source::{FamilyRead, RowByColumns, Source};
use crate::sstable::{BlockCodecs, Caching};
use crate::table::Shape;

/// Cells that are stepped over before a seek is tried instead.
const STEPS_BEFORE_SEEK: u64 = 8;

/// A merge for each family that a reader selected, made by `open` from the family's defaults.
pub(super) fn open_families<'a>(
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
pub(super) struct Rows {
    /// In the order of the selection, which is that of cells.
    families: Vec<FamilyWalk>,
    direction: Direction,
    /// The row that is being read.
    pub(super) row: Vec<u8>,
}

impl Rows {
    /// A walk that stands nowhere yet.
    pub(super) fn new(families: Vec<Merge<Source>>, direction: Direction) -> Rows {
        let walk = |cells| FamilyWalk { cells, on_row: false, direction, left: Vec::new(), is_refilled: false };
        Rows { families: families.into_iter().map(walk).collect(), direction, row: Vec::new() }
    }

    /// Goes to a row; says whether any family has cells of it.
    pub(super) fn go_to(&mut self, row: &[u8]) -> Result<bool> {
        self.row.clear();
        self.row.extend_from_slice(row);
        self.seek(row)?;
        Ok(self.families.iter().any(|family| family.on_row))
    }

    /// Goes before the first row of the direction.
    pub(super) fn rewind(&mut self) -> Result<()> {
        self.families.iter_mut().try_for_each(|family| family.cells.rewind())
    }

    /// Goes before the first row at or behind a key, in the direction.
    pub(super) fn seek(&mut self, target: &[u8]) -> Result<()> {
        let Rows { families, row, .. } = self;
        families.iter_mut().try_for_each(|family| family.seek(row, target, &[]))
    }

    /// Finds the next row that any family stands on; false at the end.
    pub(super) fn find(&mut self) -> bool {
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
    pub(super) fn read(&mut self, reader: &mut RowReader, out: &mut RowBatchBuilder) -> Result<()> {
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
    pub(super) fn skip(&mut self, reader: &mut RowReader) -> Result<()> {
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
