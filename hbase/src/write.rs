//! Batches of changes: each row entry whole or not at all, entries of one key in their order.

use std::collections::HashMap;
use std::sync::Arc;

use basalt_store::{
    Applied, CellKind, CellMutation, Error as StoreError, MutationBatch, Result, RowFailure, RowMutation, TableName,
};
use bytes::{Bytes, BytesMut};

use crate::cells::{self, Cell};
use crate::cluster::Cluster;
use crate::error::about;
use crate::exception::Exception;
use crate::multi::{Encoded, Share, Work};
use crate::patience::Patience;
use crate::pb::client::{Action, DELETE, MultiRequest, MutationProto, PUT, RegionAction};
use crate::region_call::Repeat;
use crate::request::durability;

/// Bytes that a cell takes on the wire beside row, family, qualifier and value; about.
const CELL_BYTES: usize = 24;

impl Cluster {
    /// Applies a batch. Its changes can be sent twice: HBase keeps one cell of an address, and a change without a time
    /// that a server took unheard is taken again at a later one. Only a tombstone over the newest version would then
    /// take the next one too: an entry with one is not sent again where it may have been done.
    ///
    /// # Errors
    /// As [`basalt_store::Store::apply`]'s.
    pub(crate) async fn apply(self: &Arc<Self>, table: &TableName, batch: MutationBatch) -> Result<Applied> {
        let rows: Vec<RowMutation<'_>> = batch.rows().collect();
        let durability = durability(batch.durability(), &self.options);
        let mut work = Changes { table, rows: &rows, durability, failed: Vec::new() };
        let mut patience = Patience::of_operation(&self.options);
        for wave in waves(&rows) {
            self.multi(table, wave, &mut work, &mut patience).await?;
        }
        let mut failed = work.failed;
        failed.sort_by_key(|failure| failure.row);
        Ok(Applied { failed })
    }
}

/// Entries by how often their key came before: what HBase is handed together it takes as of one moment, so that an entry
/// would not see the one before it. Always one wave at least.
fn waves(rows: &[RowMutation<'_>]) -> Vec<Vec<usize>> {
    let mut seen: HashMap<&[u8], usize> = HashMap::with_capacity(rows.len());
    let mut waves = vec![Vec::with_capacity(rows.len())];
    for (entry, row) in rows.iter().enumerate().filter(|(_, row)| row.cells().len() > 0) {
        let before = seen.entry(row.key()).and_modify(|before| *before += 1).or_insert(0);
        if waves.len() == *before {
            waves.push(Vec::new());
        }
        if let Some(wave) = waves.get_mut(*before) {
            wave.push(entry);
        }
    }
    waves
}

struct Changes<'a> {
    table: &'a TableName,
    rows: &'a [RowMutation<'a>],
    durability: i32,
    failed: Vec<RowFailure>,
}

impl Changes<'_> {
    fn row(&self, entry: usize) -> Option<&RowMutation<'_>> {
        self.rows.get(entry)
    }
}

impl Work for Changes<'_> {
    fn key(&self, entry: usize) -> &[u8] {
        self.row(entry).map_or(&[], RowMutation::key)
    }

    fn repeat(&self, entry: usize) -> Repeat {
        let takes_newest = |cell: CellMutation<'_>| cell.kind == CellKind::Delete && cell.timestamp.is_none();
        let is_once = self.row(entry).is_some_and(|row| row.cells().any(takes_newest));
        if is_once { Repeat::IfNotBegun } else { Repeat::Always }
    }

    fn is_change(&self) -> bool {
        true
    }

    fn bytes(&self, entry: usize) -> usize {
        self.row(entry).map_or(0, |row| {
            let cell_bytes = CELL_BYTES + row.key().len();
            row.cells().map(|cell| cell_bytes + cell.family.len() + cell.qualifier.len() + cell.value.len()).sum()
        })
    }

    fn encode(&self, shares: &[Share]) -> Result<Encoded> {
        let (mut region_action, mut told, mut block) = (Vec::new(), Vec::new(), BytesMut::new());
        for Share { region, entries } in shares {
            let rows = || entries.iter().filter_map(|&entry| Some((entry, self.row(entry)?)));
            let (mut action, mut plain) = (Vec::new(), Vec::new());
            let mut mixed = Vec::new();
            for (entry, row) in rows() {
                if sorts(row) > 1 {
                    mixed.push((entry, row));
                    continue;
                }
                push_actions(row, self.durability, &mut action, &mut block)?;
                plain.push(entry);
            }
            if !action.is_empty() {
                region_action.push(RegionAction { region: region.specifier(), atomic: None, action });
                told.push(plain);
            }
            for (entry, row) in mixed {
                let mut action = Vec::new();
                push_actions(row, self.durability, &mut action, &mut block)?;
                told.push(vec![entry; action.len()]);
                region_action.push(RegionAction { region: region.specifier(), atomic: Some(true), action });
            }
        }
        let ask = MultiRequest { region_action, ..MultiRequest::default() };
        Ok(Encoded { ask, cells: block.freeze(), entries: told })
    }

    fn settle(&mut self, entry: usize, told: std::result::Result<Vec<Cell>, Exception>) -> Result<()> {
        let Err(exception) = told else { return Ok(()) };
        match about(self.table, exception) {
            error @ (StoreError::UnknownTable { .. } | StoreError::TableDisabled { .. }) => Err(error),
            error => {
                self.failed.push(RowFailure { row: entry, error });
                Ok(())
            }
        }
    }
}

/// Puts and tombstones in turns: how many messages the entry is.
fn sorts(row: &RowMutation<'_>) -> usize {
    let mut last = None;
    row.cells().filter(|cell| last.replace(is_put(cell.kind)) != Some(is_put(cell.kind))).count()
}

fn is_put(kind: CellKind) -> bool {
    kind == CellKind::Put
}

/// Adds an entry's changes in their order: neighbours of one sort are one message, their cells are in the block.
///
/// # Errors
/// `Invalid`: a cell that is too large for a frame.
pub(crate) fn push_actions(
    row: &RowMutation<'_>,
    durability: i32,
    actions: &mut Vec<Action>,
    block: &mut BytesMut,
) -> Result<()> {
    let mut last: Option<(bool, i32)> = None;
    let mut push = |is_put: bool, count: i32| {
        let mutation = MutationProto {
            row: Some(Bytes::copy_from_slice(row.key())),
            mutate_type: Some(if is_put { PUT } else { DELETE }),
            durability: Some(durability),
            associated_cell_count: Some(count),
            ..MutationProto::default()
        };
        let index = u32::try_from(actions.len()).ok();
        actions.push(Action { index, mutation: Some(mutation), get: None });
    };
    for cell in row.cells() {
        cells::encode(row.key(), &cell, block)?;
        let is_put = is_put(cell.kind);
        last = match last {
            Some((sort, count)) if sort == is_put => Some((sort, count + 1)),
            Some((sort, count)) => {
                push(sort, count);
                Some((is_put, 1))
            }
            None => Some((is_put, 1)),
        };
    }
    if let Some((sort, count)) = last {
        push(sort, count);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use basalt_store::Durability;

    #[test]
    fn a_keys_later_entries_wait_for_its_earlier_ones() {
        let mut batch = MutationBatch::new(Durability::Fsync);
        for key in ["a", "b", "a", "c", "a", "b"] {
            batch.row(key.as_bytes()).unwrap().put(b"f", b"q", None, b"v").unwrap();
        }
        let rows: Vec<_> = batch.rows().collect();
        assert_eq!(waves(&rows), [vec![0, 1, 3], vec![2, 5], vec![4]]);
        assert_eq!(waves(&[]), [Vec::<usize>::new()]);
    }

    #[test]
    fn puts_and_tombstones_in_turns_are_messages_in_turns() {
        let mut batch = MutationBatch::new(Durability::Fsync);
        let mut row = batch.row(b"r").unwrap();
        row.put(b"f", b"a", None, b"1").unwrap().put(b"g", b"a", None, b"1").unwrap();
        row.delete_column(b"f", b"b", None).unwrap();
        row.put(b"f", b"c", None, b"1").unwrap();
        let row = batch.rows().next().unwrap();
        let (mut actions, mut block) = (Vec::new(), BytesMut::new());
        push_actions(&row, 3, &mut actions, &mut block).unwrap();
        let told: Vec<_> = actions
            .iter()
            .map(|action| (action.index, action.mutation.as_ref().unwrap()))
            .map(|(index, mutation)| (index, mutation.mutate_type.unwrap(), mutation.associated_cell_count.unwrap()))
            .collect();
        assert_eq!(told, [(Some(0), PUT, 2), (Some(1), DELETE, 1), (Some(2), PUT, 1)]);
        assert_eq!(sorts(&row), 3);
        assert_eq!(cells::Cells(block.freeze()).take(4).unwrap().len(), 4);
    }
}
