//! Changes of small cells, as the points of known series are: from their batches straight to the log's record and the memtables' entries.
//!
//! Other changes are resolved first: each row and cell is laid down with its times and families. Here nothing is left to resolve, so
//! that the rows of a batch are gone through once.

use std::iter::repeat_n;
use std::sync::Arc;

use basalt_store::{CellKind, Durability, MutationBatch, Timestamp};

use super::logged::Logged;
use super::placed::Placed;
use crate::core::Core;
use crate::id::FamilyId;
use crate::memtable::{Inline, InlineCell, InlineCells};
use crate::mutation::{LoggedCell, MutationWriter};
use crate::table::{Regions, Shape, Starts, Table};
use crate::wal::Answer;

/// What a row takes in a record, roughly: what its key has of its own, a qualifier and a value.
const ROW_BYTES: usize = 32;

/// A change of which each row has a handle, and each cell is a value of one family without a time, small enough for an entry.
pub(super) struct InlineChange<'a> {
    batches: &'a [MutationBatch],
    /// How many rows there are up to the end of each batch.
    row_ends: Vec<u32>,
    family: FamilyId,
    stamp: Timestamp,
    cells: Vec<InlineCell>,
    record: Vec<u8>,
    /// How many sequence numbers it takes.
    numbers: u64,
}

impl<'a> InlineChange<'a> {
    /// The change that the batches are together; `None` for any other, or one of which a row may have to be refused.
    pub(super) fn of(
        table: &Table,
        shape: &Shape,
        batches: &'a [MutationBatch],
        stamp: Timestamp,
        value_bytes_max: usize,
    ) -> Option<Self> {
        let family = one_family(shape, batches)?;
        let cells_count = batches.iter().map(MutationBatch::cells_count).sum();
        if value_bytes_max < Inline::BYTES_MAX {
            return None;
        }
        let mut cells = Vec::with_capacity(cells_count);
        let mut row_ends = Vec::with_capacity(batches.len());
        let mut writer = MutationWriter::begin(table.id, stamp, cells_count * ROW_BYTES);
        for batch in batches {
            for row in batch.rows() {
                let (handle, place, count) = (row.handle()?, writer.rows(), row.cells().len());
                // A row without a change takes no number.
                let place = u32::try_from(place).ok().filter(|_| count > 0)?;
                writer.row(row.key(), count);
                for cell in row.cells() {
                    let is_plain = cell.kind == CellKind::Put && cell.timestamp.is_none();
                    let inline = Inline::of(cell.kind, cell.qualifier, cell.value).filter(|_| is_plain)?;
                    cells.push(InlineCell { handle, row: place, inline });
                    let (kind, qualifier, value) = (cell.kind, cell.qualifier, cell.value);
                    writer.cell(&LoggedCell { family, kind, timestamp: stamp, qualifier, value });
                }
            }
            row_ends.push(u32::try_from(writer.rows()).ok()?);
        }
        let numbers = writer.rows();
        (numbers > 0).then(|| Self { batches, row_ends, family, stamp, cells, record: writer.finish(), numbers })
    }

    /// The key of a row, by its place among those of all batches: thousands, where each brings one point.
    fn key(&self, row: u32) -> &'a [u8] {
        let batch = self.row_ends.partition_point(|end| *end <= row);
        let first = batch.checked_sub(1).and_then(|before| self.row_ends.get(before)).unwrap_or(&0);
        self.batches.get(batch).and_then(|batch| batch.key((row - first) as usize)).unwrap_or_default()
    }

    /// Which regions take which cells.
    fn place(&self, regions: &Regions) -> Placed {
        let (starts, mut of_cells) = (Starts::of(regions), Vec::with_capacity(self.cells.len()));
        for batch in self.batches {
            for row in batch.rows() {
                of_cells.extend(repeat_n(starts.index_of(regions, row.key()), row.cells().len()));
            }
        }
        Placed::new(regions, &of_cells)
    }

    /// Puts cells into the memtables, region by region.
    fn insert(&self, placed: &Placed, first: u64) {
        let mut together = Vec::with_capacity(self.cells.len());
        for (region, places) in &placed.regions {
            let (mut rows, mut last) = (0, None);
            together.clear();
            for cell in placed.rows(places).iter().filter_map(|place| self.cells.get(*place)) {
                rows += u64::from(last != Some(cell.row));
                last = Some(cell.row);
                together.push(*cell);
            }
            let active = Arc::clone(&region.view().active);
            let mut memtable = active.insert();
            let (family, stamp) = (self.family, (self.stamp, first));
            memtable.inline_cells(&InlineCells { family, stamp, cells: &together }, |row| self.key(row));
            memtable.finish();
            region.count_write(rows);
        }
    }
}

impl Core {
    /// Numbers, logs and applies a change; the caller holds its rows' locks.
    pub(super) fn commit_inline(
        &self,
        table: &Table,
        mut change: InlineChange<'_>,
        level: Durability,
        writes_log: bool,
        answer: Answer,
    ) {
        let (record, numbers) = (std::mem::take(&mut change.record), change.numbers);
        let logged = Logged { record, numbers, level, writes_log, deletes: false, deletes_held: None };
        let place = |regions: &Regions| change.place(regions);
        self.commit_logged(table, logged, place, |placed, first| change.insert(placed, first), answer);
    }
}

/// The family that all cells are in, if there is one and the table has it.
fn one_family(shape: &Shape, batches: &[MutationBatch]) -> Option<FamilyId> {
    let (first, others) = batches.split_first()?;
    let [name] = first.families() else { return None };
    let are_alike = others.iter().all(|batch| batch.families() == first.families());
    shape.family_named(name).ok().filter(|_| are_alike)
}
