//! The series index between two runs: told at the start, kept while the daemon runs and when a folder is closed.

use std::sync::Arc;
use std::time::Duration;

use basalt_schema::{LogRead, Schema, UidsFound};
use basalt_store::with_causes;
use tokio::task::spawn_blocking;

/// How often what is new in the index is written down: a start after a crash looks at the rows of about as long.
const KEEP_EVERY: Duration = Duration::from_secs(10);

/// Says in the log how the index was read.
pub(super) fn tell(schema: &Schema) {
    let (read, series) = (schema.rebuilt(), schema.index().len());
    let (kept, rows) = (read.series_kept, read.rows_count);
    match read.log {
        LogRead::Cut => {
            tracing::warn!(series, kept, rows, "the series index's log was damaged: read from rows what it lacks");
        }
        LogRead::Ahead => {
            tracing::warn!(
                series,
                rows,
                "the series index's log is from a later state of the folder: read from all rows"
            );
        }
        LogRead::None | LogRead::Absent | LogRead::Whole => tracing::info!(series, kept, rows, "series index read"),
    }
}

/// Says in the log what the tables of UIDs have lost, as far as it is seen.
pub(super) fn tell_of_uids(found: &[UidsFound]) {
    found.iter().for_each(tell_of_kind);
}

fn tell_of_kind(found: &UidsFound) {
    let UidsFound { kind, largest, counter_behind, nameless_count, unled_count } = *found;
    if let Some(counter) = counter_behind {
        tracing::warn!(
            "UIDs of {kind} up to {} are in use and the counter is {counter}: new ones come after them; \
             {nameless_count} UIDs of rows have no name; `basalt fsck` and `basalt uid fsck` tell more",
            largest.number()
        );
    }
    if unled_count > 0 {
        tracing::warn!(
            "{unled_count} UIDs of {kind} have names that do not lead to them: put again, such a name gets another UID; \
             `basalt uid fsck fix` leads them back"
        );
    }
}

/// Writes the index down, synced first so that it holds for every change so far.
pub(super) fn keep(schema: &Schema) {
    let synced = schema.store().sync().wait().map_err(Into::into);
    told(synced.and_then(|()| schema.last_checkpoint()));
}

/// Writes down what is new, again and again; call it in a task of its own.
pub(crate) async fn keep_keeping(schema: Arc<Schema>) {
    loop {
        tokio::time::sleep(KEEP_EVERY).await;
        let schema = Arc::clone(&schema);
        // A panic was told where it happened.
        spawn_blocking(move || told(schema.checkpoint())).await.unwrap_or_default();
    }
}

fn told(kept: basalt_schema::Result<()>) {
    if let Err(cause) = kept {
        let cause = with_causes(&cause);
        tracing::warn!("the series index is not written down, so that the next start reads more rows: {cause}");
    }
}

#[cfg(test)]
mod tests;
