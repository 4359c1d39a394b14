//! Which of two values at one instant wins, as the data table says it by the name of its fold: who is given a folder alone must read
//! and fold it as its server does. The server's settings decide, and are kept there; all others go by what is kept.
//!
//! Over HBase, which folds nothing, and where no OpenTSDB says it, each goes by its own settings.

use basalt_rewrite::HourFold;
use basalt_schema::{DATA_FAMILY, LargerOrSmaller, Schema, SchemaConfig};
use basalt_store::{ErrorKind, Store, TableName, with_causes};

use super::failure::no_tables;
use crate::exit::Failure;

/// Takes what the data table says into the settings, if it is there and says it.
///
/// # Errors
///
/// Exit code 3: settings that say otherwise, as those of a server that was not started on the table yet. The store's own.
pub(super) fn take(store: &dyn Store, schema: &mut SchemaConfig) -> Result<(), Failure> {
    let kept = kept(store, &schema.data_table).map_err(|cause| no_tables(&cause))?;
    let Some(fold) = kept else { return Ok(()) };
    if schema.data_times.is_some() && schema.data_times != fold.data_times() {
        let (table, kept, set) = (&schema.data_table, winner(fold.data_times()), winner(schema.data_times));
        return Err(Failure::config(format!(
            "table {table} was served so that of two values at one instant {kept} wins, and settings say that {set} does: \
             start a server with these settings once, or leave `schema.use_otsdb_timestamp` out"
        )));
    }
    schema.data_times = fold.data_times();
    Ok(())
}

/// Has the data table say what the settings do.
///
/// *Cost*: waits for compactions of the table where it said otherwise.
///
/// # Errors
///
/// The store's own.
pub(super) fn keep(store: &dyn Store, schema: &SchemaConfig) -> basalt_schema::Result<()> {
    let (name, now) = (&schema.data_table, winner(schema.data_times));
    match Schema::keep_fold(store, schema) {
        Ok(before) => {
            if let Some(before) = before.and_then(|fold| HourFold::named(&fold)) {
                let before = winner(before.data_times());
                tracing::warn!(
                    "table {name}: of two values at one instant {now} wins from here on; until now {before} won"
                );
            }
            Ok(())
        }
        Err(cause) if cause.kind() == ErrorKind::ReadOnly => {
            let cause = with_causes(&cause);
            tracing::warn!(
                "table {name}: of two values at one instant {now} wins from here on, but the table does not say so yet, and rows are \
                 folded as until now: {cause}"
            );
            Ok(())
        }
        Err(cause) => Err(cause),
    }
}

fn kept(store: &dyn Store, name: &str) -> basalt_schema::Result<Option<HourFold>> {
    let name: TableName = name.parse()?;
    match store.describe_table(&name) {
        Ok(table) => {
            let fold = table.family(DATA_FAMILY).and_then(|(_, family)| family.fold.as_deref());
            Ok(fold.and_then(HourFold::named))
        }
        Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(cause.into()),
    }
}

fn winner(data_times: Option<LargerOrSmaller>) -> &'static str {
    match data_times {
        None => "the newest",
        Some(LargerOrSmaller::Larger) => "the larger",
        Some(LargerOrSmaller::Smaller) => "the smaller",
    }
}
