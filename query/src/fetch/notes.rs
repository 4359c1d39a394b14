//! Annotations: those of a series, which lie in its rows, and the global ones, which have rows of their own.

use basalt_schema::{BaseTime, DATA_FAMILY, Schema, annotation_start_ms};
use basalt_store::{CellView, Columns, Scan};

use crate::answer::SeriesAnnotation;
use crate::cancel::Budget;
use crate::series_data::note_bytes;
use crate::{Error, Result};

/// The annotation of a cell, if it holds one. Its text goes into answers unchanged, so it must be JSON.
pub(super) fn annotation(base_ms: i64, cell: &CellView<'_>) -> Result<Option<SeriesAnnotation>> {
    let Some(start_ms) = annotation_start_ms(base_ms, cell.qualifier, cell.value) else {
        return Ok(None);
    };
    let _: serde::de::IgnoredAny = serde_json::from_slice(cell.value)
        .map_err(|error| Error::CorruptAnnotation { start_ms, reason: error.to_string().into() })?;
    Ok(Some(SeriesAnnotation { start_ms, json: cell.value.into() }))
}

/// The global annotations from `start_ms` to `end_ms`, by time.
///
/// # Errors
/// The store's own, `Corrupt` keys, a budget.
pub(crate) fn global_annotations(
    schema: &Schema,
    start_ms: i64,
    end_ms: i64,
    budget: &Budget,
) -> Result<Vec<SeriesAnnotation>> {
    let layout = schema.layout();
    let base = |time_ms: i64| BaseTime::of_seconds(u32::try_from(time_ms.max(0) / 1000).unwrap_or(u32::MAX));
    let mut scan =
        Scan::range(layout.global_annotations_key(base(start_ms)), layout.global_annotations_key(base(end_ms)));
    scan.stop_inclusive = true;
    let mut scanner = schema.store().scan(&schema.tables().data, scan.with_columns(Columns::family(DATA_FAMILY)))?;
    let mut found = Vec::new();
    while let Some(batch) = scanner.step_wait() {
        let batch = batch?;
        for row in batch.rows() {
            let base_ms = i64::from(layout.decode(row.key())?.base().seconds()) * 1000;
            for cell in row.cells() {
                let note = annotation(base_ms, &cell)?;
                let Some(note) = note.filter(|note| (start_ms..=end_ms).contains(&note.start_ms)) else { continue };
                budget.reserve(note_bytes(&note))?;
                found.push(note);
            }
        }
        budget.spend(0, batch.data_bytes() as u64)?;
    }
    Ok(found)
}
