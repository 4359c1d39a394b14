//! What operators have done with a store, by the command line or through a server, and what they are told of it.

use std::fmt::Write as _;
use std::path::Path;

use basalt_engine::{BackedUp, Engine};
use basalt_schema::{Rollups, SchemaConfig};
use basalt_store::{Compaction, Store, TableName, with_causes};

use super::{failed, refused};
use crate::exit::{Exit, Failure};

/// What a backup is told as.
pub(crate) fn backed_up(done: &BackedUp, target: &Path) -> String {
    let BackedUp { files_count, bytes, sequence, .. } = done;
    format!("backed up {files_count} files, {bytes} bytes, up to change {sequence}, into {}\n", target.display())
}

/// Proves the files of an open engine; `told` gets a line for each that is damaged, and how many are not.
///
/// # Errors
///
/// Exit code 5: damage. The engine closes.
pub(crate) fn scrubbed(engine: &Engine, told: &mut String) -> Result<(), Failure> {
    let found = engine.scrub(&mut |_| {}).map_err(|cause| refused(&cause))?;
    for damage in &found.damages {
        writeln!(told, "{}", with_causes(damage)).unwrap_or_default();
    }
    writeln!(told, "{} files, {} bytes: proved", found.files_count, found.bytes).unwrap_or_default();
    let count = found.damages.len();
    let line = format!("{count} files are damaged; stop the server, and `basalt repair` tells what can be had of them");
    if count > 0 { Err(Failure::new(Exit::Damage, line)) } else { Ok(()) }
}

/// Flushes and compacts a table, and tells how large it was and is.
///
/// # Errors
///
/// The store's, with the table's name.
pub(crate) fn compacted(store: &dyn Store, table: &TableName) -> Result<String, Failure> {
    let work = || {
        let before = bytes(store, table)?;
        store.flush(table)?;
        store.compact(table, Compaction::Major)?;
        Ok((before, bytes(store, table)?))
    };
    let (before, after) = work().map_err(|cause: basalt_store::Error| {
        let Failure { exit, line } = failed(&format!("cannot compact `{table}`"), &cause.into());
        let todo = if exit == Exit::TryLater { "; what was merged stays: run it again when there is room" } else { "" };
        Failure::new(exit, line + todo)
    })?;
    Ok(format!("{table}: {before} bytes in files and memory, now {after} in files\n"))
}

/// The tables that are compacted where none is named: all that a folder holds, be they OpenTSDB's or others, but of a cluster's, which
/// are other programs' too, those that the settings name.
///
/// # Errors
///
/// The store's.
pub(crate) fn compacted_unless_told(store: &dyn Store, schema: &SchemaConfig) -> Result<Vec<TableName>, Failure> {
    let SchemaConfig { data_table, uid_table, meta_table, tree_table, .. } = schema;
    let rollups = || schema.rollups.iter().flat_map(Rollups::iter);
    let is_own = |table: &TableName| {
        [data_table, uid_table, meta_table, tree_table].into_iter().any(|own| *own == table.to_string())
            || rollups().any(|rollup| [rollup.table(), rollup.preaggregate_table()].contains(&table))
    };
    let mut tables = store.list_tables().map_err(|cause| failed("cannot list the tables", &cause.into()))?;
    tables.retain(|table| !schema.is_shared || is_own(table));
    Ok(tables)
}

/// A table's bytes in files and memtables.
fn bytes(store: &dyn Store, table: &TableName) -> basalt_store::Result<u64> {
    Ok(store.regions(table)?.iter().map(|region| region.file_bytes + region.memtable_bytes).sum())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use basalt_schema::RollupSettings;
    use basalt_store::{FamilyDescriptor, ManualClock, MemoryStore, TableDescriptor};

    use super::*;

    #[test]
    fn of_a_cluster_the_tables_of_others_are_left_alone() {
        let store = MemoryStore::new(Arc::new(ManualClock::default()));
        for name in ["tsdb", "tsdb-uid", "tsdb-1h", "other"] {
            let table = TableDescriptor::new(name.parse().unwrap(), vec![FamilyDescriptor::new("t")]);
            store.create_table(table, &[]).unwrap();
        }
        let rollups = r#"{"aggregationIds": {"sum": 0}, "intervals":
            [{"table": "tsdb-1h", "preAggregationTable": "tsdb-1h-agg", "interval": "1h", "rowSpan": "1d"}]}"#;
        let rollups = Some(Rollups::parse(rollups, RollupSettings::default()).unwrap());
        for (is_shared, wanted) in
            [(true, &["tsdb", "tsdb-1h", "tsdb-uid"][..]), (false, &["other", "tsdb", "tsdb-1h", "tsdb-uid"])]
        {
            let schema = SchemaConfig { is_shared, rollups: rollups.clone(), ..SchemaConfig::default() };
            let told = compacted_unless_told(&store, &schema).unwrap();
            assert_eq!(told.iter().map(ToString::to_string).collect::<Vec<_>>(), wanted);
        }
    }
}
