//! Memtables into files while the log is read.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use basalt_store::{Timestamp, with_causes};

use super::{Tables, files, wal_options};
use crate::core::{Core, Recovered, Surroundings};
use crate::error::Result;
use crate::manifest::Manifest;
use crate::mutation::LoggedBatch;
use crate::wal::{Replay, Wal};

/// Whether all changes that are left of the log are no older than those that were read, the newest of which is of this time. So it is
/// behind every flush ([`Core::stop_changes`]), and not behind every segment: changes of one moment are logged in any order. A later fold
/// gives the newest of their times to all that are left, and would put what is older over what is in the files.
///
/// *Cost*: reads the rest of the log.
pub(super) fn may_spill(log: &Replay<'_>, newest: Timestamp) -> Result<bool> {
    let mut is_behind = true;
    log.look_ahead(&mut |record| {
        let batch = LoggedBatch::decode(record.kind, record.payload, record.sequence);
        is_behind = batch.is_none_or(|batch| batch.server_time >= newest);
        is_behind
    })?;
    Ok(is_behind)
}

/// Flushes every region, which hold all changes of the log up to this number and no other; answers whether there was room for it. No row
/// is folded: a tombstone that follows in the log was made against its cells as they were, and would miss the folded one.
///
/// # Errors
/// Any I/O error but want of room: the memtables are kept then.
pub(super) fn spill(
    around: &Surroundings,
    manifest: Manifest,
    tables: &Tables,
    sequence: u64,
) -> Result<(Manifest, bool)> {
    let (_, next_file) = files(around, manifest.catalog())?;
    let catalog = manifest.catalog();
    let (clock, log_start) = (catalog.marks.clock.max(tables.clock), catalog.marks.log_start);
    let (fs, condition, reserve) = (Arc::clone(&around.fs), Arc::clone(&around.condition), Arc::clone(&around.reserve));
    let wal = Wal::of_replay(fs, wal_options(around), condition, reserve, (log_start, sequence));
    let recovered = Recovered { manifest, tables: tables.by_name(), wal, clock, next_file };
    let core = Core::new(Surroundings { folds: Vec::new(), ..around.clone() }, recovered);
    let memtable_bytes = around.memtable_bytes.load(Ordering::Relaxed);
    let has_room = match core.flush_all() {
        Ok(()) => {
            tracing::info!(
                memtable_bytes,
                sequence,
                "memtables are written to files, as the log holds more than they may"
            );
            true
        }
        Err(error) if error.is_want_of_room() => {
            let error = with_causes(&error);
            tracing::warn!(
                error,
                memtable_bytes,
                "no room to write memtables to files: the log is replayed into memory"
            );
            false
        }
        Err(error) => return Err(error),
    };
    Ok((core.into_manifest(), has_room))
}
