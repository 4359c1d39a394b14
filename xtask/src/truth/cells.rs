//! Rows, changes and requests for them, over the pipe.

use std::collections::{BTreeMap, BTreeSet};

use basalt_store::{
    CellKind, CellRef, Columns, Get, MutationBatch, Result, RowBatchBuilder, RowMutation, Scan, SeqNo, TimeRange,
    Timestamp,
};

use super::filter::filter;
use super::wire::{Ask, Told};

/// A row, or a piece of one.
#[derive(Debug)]
pub(super) struct Row {
    key: Vec<u8>,
    is_last_piece: bool,
    cells: Vec<Cell>,
}

#[derive(Debug)]
struct Cell {
    family: Vec<u8>,
    qualifier: Vec<u8>,
    timestamp: Timestamp,
    kind: CellKind,
    value: Vec<u8>,
}

impl Row {
    /// Adds the row to an answer.
    pub(super) fn push(&self, builder: &mut RowBatchBuilder) -> Result<()> {
        builder.begin_row(&self.key)?;
        for Cell { family, qualifier, timestamp, kind, value } in &self.cells {
            let (timestamp, kind, seq) = (*timestamp, *kind, SeqNo(0));
            builder.push(CellRef { row: &self.key, family, qualifier, timestamp, kind, seq, value })?;
        }
        if !self.is_last_piece {
            builder.mark_partial();
        }
        Ok(())
    }
}

/// The rows of an answer.
pub(super) fn told_rows(told: &mut Told<'_>) -> anyhow::Result<Vec<Row>> {
    told.list(|told| {
        let (key, is_last_piece) = (told.bytes()?.to_vec(), told.flag()?);
        let cells = told.list(|told| {
            Ok(Cell {
                family: told.bytes()?.to_vec(),
                qualifier: told.bytes()?.to_vec(),
                timestamp: Timestamp(told.u64()?),
                kind: CellKind::from_code(told.u8()?)?,
                value: told.bytes()?.to_vec(),
            })
        })?;
        Ok(Row { key, is_last_piece, cells })
    })
}

/// A batch's changes, row by row.
pub(super) fn apply(ask: Ask, batch: &MutationBatch) -> Ask {
    changes(ask, batch)
}

/// Durability and row entries.
pub(super) fn changes(ask: Ask, batch: &MutationBatch) -> Ask {
    ask.u8(batch.durability() as u8).list(batch.rows(), entry)
}

fn entry(ask: Ask, row: RowMutation<'_>) -> Ask {
    ask.bytes(row.key()).list(row.cells(), |ask, cell| {
        let time = cell.timestamp.unwrap_or(Timestamp::LATEST);
        ask.u8(cell.kind.code()).bytes(cell.family).bytes(cell.qualifier).u64(time.0).bytes(cell.value)
    })
}

/// A family told twice is told once, with all that was asked of it: HBase's own client would take the last word.
fn columns(ask: Ask, columns: &Columns) -> Ask {
    let mut families = BTreeMap::<&[u8], BTreeSet<&[u8]>>::new();
    let whole: BTreeSet<&[u8]> =
        columns.0.iter().filter(|one| one.qualifiers.is_empty()).map(|one| &*one.family).collect();
    for one in &columns.0 {
        let wanted = families.entry(&one.family).or_default();
        if !whole.contains(&*one.family) {
            wanted.extend(one.qualifiers.iter().map(|qualifier| &**qualifier));
        }
    }
    ask.list(families.iter(), |ask, (family, wanted)| ask.bytes(family).list(wanted.iter(), Ask::bytes))
}

fn time_range(ask: Ask, range: TimeRange) -> Ask {
    ask.u64(range.min.0).u64(range.max.0)
}

/// A get's request.
pub(super) fn get(ask: Ask, get: &Get) -> Result<Ask> {
    let ask = columns(ask.list(get.rows.iter(), Ask::bytes), &get.columns);
    let ask = time_range(ask, get.time_range).u32(get.versions);
    Ok(match &get.filter {
        Some(tree) => ask.flag(true).bytes(filter(Ask::default(), tree)?.0),
        None => ask.flag(false),
    })
}

/// A scan's request.
pub(super) fn scan(ask: Ask, scan: &Scan) -> Result<Ask> {
    let ask = ask.bytes(&scan.start).flag(scan.start_inclusive).bytes(&scan.stop).flag(scan.stop_inclusive);
    let ask = time_range(columns(ask, &scan.columns), scan.time_range).u32(scan.versions);
    // All ones is no limit.
    let ask = ask.u64(scan.limit_rows.unwrap_or(u64::MAX)).u32(scan.batch_cells.unwrap_or(0));
    let ask = ask.flag(scan.reversed).flag(scan.raw);
    let ask = match &scan.filter {
        Some(tree) => ask.flag(true).bytes(filter(Ask::default(), tree)?.0),
        None => ask.flag(false),
    };
    Ok(ask.u64(scan.batch_bytes as u64).flag(scan.cache_blocks))
}
