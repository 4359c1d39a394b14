//! How new the tombstones of rows are, which a plain read does not show.

use std::collections::HashMap;

use basalt_schema::{DATA_FAMILY, Schema};
use basalt_store::{Columns, Filter, ListOperator, RowRange, Scan, Timestamp};
use bytes::Bytes;

use super::change::Change;
use crate::Result;
use crate::cancel::Budget;

/// Has changes that put something again know of all tombstones in their rows.
///
/// *Cost*: one scan that seeks from row to row, for their cells without values; none where nothing is put again.
///
/// # Errors
/// The store's own; a budget.
pub(super) fn look_for_tombstones(schema: &Schema, budget: &Budget, changes: &mut [Change<'_>]) -> Result<()> {
    let keys = changes.iter().filter(|change| !change.kept.is_empty()).map(|change| change.key);
    let (Some(first), Some(last)) = (keys.clone().min(), keys.clone().max()) else { return Ok(()) };
    let (start, stop) = (Bytes::copy_from_slice(first), behind(last));
    let ranges = keys.map(|key| RowRange { start: Bytes::copy_from_slice(key), stop: behind(key) }).collect();
    let filter = Filter::List(ListOperator::All, vec![Filter::MultiRowRange(ranges), Filter::KeyOnly]);
    let scan = Scan::range(start, stop).with_columns(Columns::family(DATA_FAMILY)).with_filter(filter);
    let mut scanner = schema.store().scan(&schema.tables().data, Scan { raw: true, ..scan })?;
    let mut latest: HashMap<Bytes, Timestamp> = HashMap::new();
    while let Some(batch) = scanner.step_wait() {
        let batch = batch?;
        budget.spend(0, batch.data_bytes() as u64)?;
        for row in batch.rows() {
            let newest = row.cells().map(|cell| cell.timestamp).max().unwrap_or_default();
            let latest = latest.entry(Bytes::copy_from_slice(row.key())).or_default();
            *latest = newest.max(*latest);
        }
    }
    for change in changes {
        let found = latest.get(change.key).copied().unwrap_or_default();
        change.latest = change.latest.max(found);
    }
    Ok(())
}

/// The key after a row's.
fn behind(key: &[u8]) -> Bytes {
    [key, &[0]].concat().into()
}
