//! What operators have done with a store, by the command line or through a server, and what they are told of it.

use std::path::Path;

use basalt_engine::BackedUp;
use basalt_store::{Compaction, Store, TableName};

use super::failed;
use crate::exit::Failure;

/// What a backup is told as.
pub(crate) fn backed_up(done: &BackedUp, target: &Path) -> String {
    let BackedUp { files_count, bytes, sequence, .. } = done;
    format!("backed up {files_count} files, {bytes} bytes, up to change {sequence}, into {}\n", target.display())
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
    let (before, after) =
        work().map_err(|cause: basalt_store::Error| failed(&format!("cannot compact `{table}`"), &cause.into()))?;
    Ok(format!("{table}: {before} bytes in files and memory, now {after} in files\n"))
}

/// A table's bytes in files and memtables.
fn bytes(store: &dyn Store, table: &TableName) -> basalt_store::Result<u64> {
    Ok(store.regions(table)?.iter().map(|region| region.file_bytes + region.memtable_bytes).sum())
}
