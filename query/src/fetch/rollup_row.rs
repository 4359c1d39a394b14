//! Decodes rows of rollups: of two values of a slot the newer counts, and an average takes its sum and its count together.

use basalt_schema::{BaseTime, RollupAggregate, RowCell, Value};
use basalt_store::{RowView, SeqNo, Timestamp};

use crate::Result;
use crate::rollup::RollupRead;
use crate::series_data::SeriesData;

/// Adds a row's values to its series; says how many they are.
///
/// # Errors
/// `Corrupt`: a cell of the aggregate, or of the counts, whose value cannot be read.
pub(super) fn take_row(read: &RollupRead, base: BaseTime, row: &RowView<'_>, data: &mut SeriesData) -> Result<usize> {
    let values = values_of(&read.aggregate, row)?;
    let interval_ms = i64::from(read.rollup.interval_s()) * 1000;
    let base_ms = i64::from(base.seconds()) * 1000;
    let counts = read.counts.as_ref().map(|counts| values_of(counts, row)).transpose()?;
    data.has_rollups |= !values.is_empty() || counts.as_ref().is_some_and(|counts| !counts.is_empty());
    let mut taken = 0;
    for (slot, value) in values {
        let time_ms = base_ms + i64::from(slot) * interval_ms;
        if data.span.times().last().is_some_and(|last| *last >= time_ms) {
            continue;
        }
        if let Some(counts) = &counts {
            // A sum without its count is no average, as a count without its sum is none.
            let Ok(place) = counts.binary_search_by_key(&slot, |(slot, _)| *slot) else { continue };
            data.counts.push(counts.get(place).map_or(0, |(_, value)| whole(*value)));
        }
        data.span.push(time_ms, value.into());
        taken += 1;
    }
    Ok(taken)
}

/// The values of an aggregate in a row by slot; of two of one slot the newer, and of those written at once the one whose
/// column comes later, as OpenTSDB takes it.
fn values_of(aggregate: &RollupAggregate, row: &RowView<'_>) -> Result<Vec<(u32, Value)>> {
    let mut found: Vec<(u32, (Timestamp, SeqNo), Value)> = Vec::new();
    for cell in row.cells().map(RowCell::from) {
        let decoded = aggregate.decode(&cell)?;
        found.extend(decoded.map(|(slot, value)| (slot, (cell.timestamp, cell.seq), value)));
    }
    // Equals stay in their order.
    found.reverse();
    found.sort_by_key(|(slot, written, _)| (*slot, std::cmp::Reverse(*written)));
    found.dedup_by_key(|(slot, ..)| *slot);
    Ok(found.into_iter().map(|(slot, _, value)| (slot, value)).collect())
}

#[expect(clippy::cast_possible_truncation, reason = "as Java narrows a double to a long")]
fn whole(value: Value) -> i64 {
    match value {
        Value::Int(value) => value,
        Value::Float(value) => value as i64,
    }
}
