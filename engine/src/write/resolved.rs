//! Changes of any cells: each row and cell is checked and laid down with its time and family, then put into the record and the memtables.

use std::ops::Range;
use std::sync::Arc;

use basalt_store::{CellKind, Durability, MutationBatch, RowHandle, RowMutation, SeqNo, Timestamp};

use super::logged::Logged;
use super::placed::Placed;
use crate::core::Core;
use crate::id::FamilyId;
use crate::memtable::MemRow;
use crate::mutation::{LoggedCell, MutationWriter};
use crate::region::Region;
use crate::sstable::CELL_BYTES_MAX;
use crate::table::{Regions, Shape, Starts, Table};
use crate::wal::Answer;

/// What a record holds beside the bytes of its cells, roughly, for each of them.
const CELL_OVERHEAD_BYTES: usize = 16;

/// Rows whose times and families are resolved.
#[derive(Debug, Default)]
pub(super) struct Resolved<'a> {
    pub(super) rows: Vec<ResolvedRow<'a>>,
    pub(super) cells: Vec<LoggedCell<'a>>,
    /// Whoever applies them is about to write the log.
    pub(super) writes_log: bool,
    /// The region whose deletes the caller has begun.
    pub(super) deletes_held: Option<Arc<Region>>,
}

#[derive(Debug)]
pub(super) struct ResolvedRow<'a> {
    key: &'a [u8],
    handle: Option<RowHandle>,
    cells: Range<usize>,
}

impl<'a> Resolved<'a> {
    fn cells_of(&self, row: &ResolvedRow<'a>) -> &[LoggedCell<'a>] {
        self.cells.get(row.cells.clone()).unwrap_or_default()
    }
}

impl Core {
    /// Checks a row's changes and adds them to `resolved`, whole or not at all.
    pub(super) fn resolve_row<'a>(
        &self,
        row: RowMutation<'a>,
        families: &[basalt_store::Result<FamilyId>],
        stamp: Timestamp,
        resolved: &mut Resolved<'a>,
    ) -> basalt_store::Result<()> {
        let start = resolved.cells.len();
        // Values that follow from a cell ahead of the clock go over it; tombstones keep to the clock, as in HBase.
        let time_of = |kind| if kind == CellKind::Put { stamp } else { stamp.min(self.last_stamp()) };
        for cell in row.cells() {
            let family = match families.get(cell.family_index) {
                Some(Ok(family)) => *family,
                Some(Err(error)) => {
                    resolved.cells.truncate(start);
                    return Err(error.clone());
                }
                None => continue,
            };
            // What no file can hold would keep its region from being flushed, for ever.
            let cell_bytes = row.key().len().saturating_add(cell.qualifier.len()).saturating_add(cell.value.len());
            if cell_bytes > CELL_BYTES_MAX {
                resolved.cells.truncate(start);
                let (size, limit) = (cell_bytes as u64, CELL_BYTES_MAX as u64);
                return Err(basalt_store::Error::TooLarge { what: "cell", size, limit });
            }
            if cell.value.len() > self.limits.value_bytes_max {
                resolved.cells.truncate(start);
                let (size, limit) = (cell.value.len() as u64, self.limits.value_bytes_max as u64);
                return Err(basalt_store::Error::TooLarge { what: "value", size, limit });
            }
            resolved.cells.push(LoggedCell {
                family,
                kind: cell.kind,
                timestamp: cell.timestamp.unwrap_or_else(|| time_of(cell.kind)),
                qualifier: cell.qualifier,
                value: cell.value,
            });
        }
        if resolved.cells.len() > start {
            let (key, handle) = (row.key(), row.handle());
            resolved.rows.push(ResolvedRow { key, handle, cells: start..resolved.cells.len() });
        }
        Ok(())
    }

    /// Numbers, logs and applies resolved rows; the caller holds their locks.
    pub(super) fn commit(
        &self,
        table: &Table,
        resolved: &Resolved<'_>,
        level: Durability,
        stamp: Timestamp,
        answer: Answer,
    ) {
        if resolved.rows.is_empty() {
            return answer(Ok(()));
        }
        let deletes = resolved.cells.iter().any(|cell| cell.kind.is_tombstone());
        // The clock of the next start goes on from here: a value that follows from a cell ahead of the clock must not move it.
        let given = stamp.min(self.last_stamp());
        if deletes {
            self.note_tombstone(given);
        }
        let (record, numbers) = encode(table, resolved, if deletes { self.pass(given) } else { given });
        let deletes_held = resolved.deletes_held.clone();
        let logged = Logged { record, numbers, level, writes_log: resolved.writes_log, deletes, deletes_held };
        let place = |regions: &Regions| {
            let starts = Starts::of(regions);
            let of_rows: Vec<_> = resolved.rows.iter().map(|row| starts.index_of(regions, row.key)).collect();
            Placed::new(regions, &of_rows)
        };
        self.commit_logged(table, logged, place, |placed, first| insert(placed, resolved, first), answer);
    }
}

/// Puts rows into the memtables, region by region.
fn insert(placed: &Placed, resolved: &Resolved<'_>, first: u64) {
    let mut together = Vec::with_capacity(resolved.rows.len());
    for (region, rows) in &placed.regions {
        let rows = placed.rows(rows);
        let active = Arc::clone(&region.view().active);
        let mut memtable = active.insert();
        let of_row = |index: &usize| {
            let row = resolved.rows.get(*index)?;
            let sequence = SeqNo(first + *index as u64);
            Some(MemRow { key: row.key, handle: row.handle, sequence, cells: resolved.cells_of(row) })
        };
        together.clear();
        together.extend(rows.iter().filter_map(of_row));
        memtable.rows(&together);
        memtable.finish();
        region.count_write(rows.len() as u64);
    }
}

/// Which families a batch names, in its order.
pub(super) fn family_ids(shape: &Shape, batch: &MutationBatch) -> Vec<basalt_store::Result<FamilyId>> {
    batch.families().iter().map(|name| shape.family_named(name)).collect()
}

/// The closed record of the rows, and how many numbers it takes.
fn encode(table: &Table, resolved: &Resolved<'_>, server_time: Timestamp) -> (Vec<u8>, u64) {
    let cell_bytes: usize =
        resolved.cells.iter().map(|cell| cell.qualifier.len() + cell.value.len() + CELL_OVERHEAD_BYTES).sum();
    let key_bytes: usize = resolved.rows.iter().map(|row| row.key.len() + CELL_OVERHEAD_BYTES).sum();
    let mut writer = MutationWriter::begin(table.id, server_time, cell_bytes + key_bytes);
    for row in &resolved.rows {
        writer.row(row.key, row.cells.len());
        for cell in resolved.cells_of(row) {
            writer.cell(cell);
        }
    }
    let numbers = writer.rows();
    (writer.finish(), numbers)
}
