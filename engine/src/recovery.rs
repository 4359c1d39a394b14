//! What a locked data folder holds, brought back after whatever happened to it.
//!
//! ```text
//! manifest ─► sweep asides ─► open its files ─► replay the log into memtables ─► delete other files ─► new segment
//!                                                └ now and then into files, where they would hold too much
//! ```
//!
//! Files that the manifest does not name are deleted only when all it names are there and read: a damaged manifest must
//! not cost the only copy of anything.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use basalt_store::{NamespaceDescriptor, TableName, TableState, Timestamp};

use crate::core::{Recovered, Surroundings};
use crate::data_folder::open_file;
use crate::error::{Error, Result};
use crate::id::{FileId, RegionId, TableId};
use crate::io::{FileSystem, IoOp};
use crate::key_range::KeyRange;
use crate::manifest::{self, Catalog, Manifest};
use crate::mutation::LoggedBatch;
use crate::record::Record;
use crate::region::{Region, RegionFile};
use crate::side_log;
use crate::sstable::{Sstable, tell_of_filter};
use crate::stats::millis;
use crate::table::{Shape, Table};
use crate::wal::{Replay, Replayed, SegmentId, Wal, WalOptions};

mod refill;
mod spill;

use refill::Refill;

/// Brings back what the folder holds.
///
/// # Errors
/// `Corrupt`, `Version`; a full disk where the folder is new; any I/O error.
pub(crate) fn recover(around: &Surroundings) -> Result<Recovered> {
    let found = Manifest::open(&around.fs, &around.dir)?;
    let is_new = found.is_none();
    let manifest = match found {
        Some(manifest) => {
            sweep_asides(&*around.fs, &around.dir)?;
            manifest
        }
        None => begin_manifest(around)?,
    };
    let mut tables = Tables::open(around, manifest.catalog())?;
    let began = Instant::now();
    let (manifest, replayed) = replay_log(around, manifest, &mut tables, is_new)?;
    let (bytes, segments) = (replayed.sealed.iter().map(|segment| segment.bytes).sum::<u64>(), replayed.sealed.len());
    tracing::info!(bytes, segments, took_ms = millis(began), "log replayed");
    let next_file = sweep_files(around, manifest.catalog())?;
    for region in tables.regions.values() {
        region.region.read_point.start_at(replayed.last_sequence);
    }
    // A full disk is a state, as while it runs: what there is can be read, and writes are taken again when there is room.
    let wal = Wal::open_in_any_room(
        Arc::clone(&around.fs),
        wal_options(around),
        Arc::clone(&around.condition),
        Arc::clone(&around.reserve),
        replayed,
    )?;
    match around.reserve.fill() {
        Err(error) if error.is_want_of_room() => around.condition.set_no_room(&error),
        filled => filled?,
    }
    let clock = manifest.catalog().marks.clock.max(tables.clock);
    Ok(Recovered { manifest, wal, clock, next_file, tables: tables.by_name() })
}

fn wal_options(around: &Surroundings) -> WalOptions {
    WalOptions {
        dir: around.dir.clone(),
        segment_bytes: around.limits.wal_segment_bytes,
        queue_bytes_max: around.limits.wal_queue_bytes_max,
        sync_interval: around.limits.sync_interval,
        retry_interval: around.limits.full_disk_retry_interval,
    }
}

/// The manifest of a new folder. One that has a log or files has lost its own, which is the first file that a store makes: they are not
/// to be swept for it.
fn begin_manifest(around: &Surroundings) -> Result<Manifest> {
    let names = around.fs.list(&around.dir).map_err(Error::io(IoOp::List, &around.dir))?;
    if names.iter().any(|name| FileId::of_name(name).is_some() || SegmentId::of_name(name).is_some()) {
        return Err(Manifest::missing(&around.dir));
    }
    Manifest::create(&around.fs, &around.dir)
}

/// Deletes what was written aside and never published. Only in a folder with a manifest, and only what a store names so: others keep
/// files of theirs here.
fn sweep_asides(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    let names = fs.list(dir).map_err(Error::io(IoOp::List, dir))?;
    for name in names.iter().filter(|name| is_aside(name)) {
        let path = dir.join(name);
        fs.remove(&path).map_err(Error::io(IoOp::Remove, &path))?;
    }
    Ok(())
}

/// Whether a file of a store has this name until it is published.
fn is_aside(name: &str) -> bool {
    let Some(stem) = name.strip_suffix(".tmp") else { return false };
    let log = format!("{stem}.log");
    manifest::ASIDES.contains(&name)
        || FileId::of_name(&format!("{stem}.sst")).is_some()
        || SegmentId::of_name(&log).is_some()
        || side_log::is_name(&log)
}

/// The files in the folder, and the first id that none ever had.
fn files(around: &Surroundings, catalog: &Catalog) -> Result<(Vec<FileId>, u64)> {
    let names = around.fs.list(&around.dir).map_err(Error::io(IoOp::List, &around.dir))?;
    let ids: Vec<FileId> = names.iter().filter_map(|name| FileId::of_name(name)).collect();
    let next = ids.iter().map(|id| id.0 + 1).fold(catalog.marks.next_file, u64::max);
    Ok((ids, next))
}

/// Deletes files that the manifest does not name; answers the first file id that was never used.
fn sweep_files(around: &Surroundings, catalog: &Catalog) -> Result<u64> {
    let (ids, next) = files(around, catalog)?;
    for id in ids.into_iter().filter(|id| !catalog.names_file(*id)) {
        let path = id.path(&around.dir);
        around.fs.remove(&path).map_err(Error::io(IoOp::Remove, &path))?;
    }
    Ok(next)
}

/// The tables while the log is read into them.
struct Tables {
    by_id: BTreeMap<TableId, Arc<Table>>,
    regions: BTreeMap<RegionId, OpenRegion>,
    clock: Timestamp,
    /// The last change of which a cell is in a file.
    filed: u64,
}

struct OpenRegion {
    region: Arc<Region>,
    /// Everything up to here is in files.
    flushed: u64,
}

impl Tables {
    fn open(around: &Surroundings, catalog: &Catalog) -> Result<Tables> {
        let mut regions = BTreeMap::new();
        // After a split one file is of two regions.
        let mut opened: BTreeMap<FileId, Arc<Sstable>> = BTreeMap::new();
        for (id, entry) in &catalog.regions {
            let range = Arc::new(KeyRange { start: entry.start.clone(), end: entry.end.clone() });
            let mut files = Vec::with_capacity(entry.files.len());
            for file in &entry.files {
                let table = match opened.get(&file.id) {
                    Some(table) => Arc::clone(table),
                    None => Arc::new(open_file(&*around.fs, &around.dir, file, &around.codecs, &around.cache)?),
                };
                opened.insert(file.id, Arc::clone(&table));
                files.push(RegionFile::new(file.family, table, &range));
            }
            let region = Arc::new(Region::new(*id, range, files, Arc::clone(&around.memtable_bytes)));
            regions.insert(*id, OpenRegion { region, flushed: entry.flushed });
        }
        for error in opened.values().filter_map(|table| table.damage_of_filter()) {
            tell_of_filter(&error);
        }
        let open_table = |(id, entry): (&TableId, &manifest::TableEntry)| {
            let namespace = catalog.namespaces.get(entry.descriptor.name.namespace());
            let state = TableState {
                disabled: entry.disabled,
                namespace_read_only: namespace.is_ok_and(NamespaceDescriptor::is_read_only),
            };
            let (descriptor, families) = (entry.descriptor.clone(), entry.families.clone());
            let shape = Shape { descriptor, state, families };
            let of_table = entry.regions.iter().filter_map(|id| regions.get(id));
            (*id, Arc::new(Table::new(*id, shape, of_table.map(|open| Arc::clone(&open.region)).collect())))
        };
        let by_id = catalog.tables.iter().map(open_table).collect();
        let filed = opened.values().map(|table| table.metadata().seq_max.0).max().unwrap_or(0);
        Ok(Tables { by_id, regions, clock: Timestamp(0), filed })
    }

    fn by_name(&self) -> BTreeMap<TableName, Arc<Table>> {
        self.by_id.values().map(|table| (table.shape().descriptor.name.clone(), Arc::clone(table))).collect()
    }

    /// What the log is read into.
    fn refill(&self) -> Refill {
        let mut refill = Refill::default();
        for (id, table) in &self.by_id {
            let flushed = |region: &Region| self.regions.get(&region.id).map_or(0, |open| open.flushed);
            refill.add_table(*id, table.shape(), table.regions(), flushed);
        }
        refill
    }
}

/// Reads the log into the memtables, and these into files where they come to hold more than ever while a store is open: the log may
/// have been written with larger bounds.
fn replay_log(
    around: &Surroundings,
    mut manifest: Manifest,
    tables: &mut Tables,
    is_new: bool,
) -> Result<(Manifest, Replayed)> {
    let first = manifest.catalog().marks.log_start;
    let mut log = Replay::begin(&*around.fs, &around.dir, first)?;
    let mut bytes_max = around.limits.memtables_bytes_max();
    while !replay_some(around, &mut log, tables, bytes_max)? {
        // What was on its way is in now, as far as it is in no file.
        let is_full = around.memtable_bytes.load(Ordering::Relaxed) > bytes_max / 2;
        if is_full && spill::may_spill(&log, tables.clock)? {
            let has_room;
            (manifest, has_room) = spill::spill(around, manifest, tables, log.last_sequence())?;
            bytes_max = if has_room { bytes_max } else { u64::MAX };
        }
    }
    // Not before all of it went in: a log that is refused stays as it is.
    let mut replayed = log.finish()?;
    let has_first = !replayed.sealed.is_empty() || around.fs.open(&first.path(&around.dir)).is_ok();
    if !is_new && !has_first && manifest.catalog().has_answered() {
        return Err(first.missing(&around.dir));
    }
    tell_of_log_that_lags(replayed.last_sequence, tables.filed);
    replayed.last_sequence = replayed.last_sequence.max(manifest.catalog().marks.sequence);
    Ok((manifest, replayed))
}

/// Warns where files hold a change behind the log's last one, if that has any: the log is synced before its changes go into files, so the
/// files of a folder are of one instant no more, as after a copy while a server had it open. No error: behind a repair of the log, or on a
/// full disk with `Durability::Async`, it is so too.
fn tell_of_log_that_lags(logged: u64, filed: u64) {
    if (1..filed).contains(&logged) {
        tracing::warn!(
            logged,
            filed,
            "the log ends before the newest change in files: if this folder was copied while a server had it open, points are missing; \
             restore a backup instead"
        );
    }
}

/// Reads a segment of the log into the memtables, and more as long as all of these hold no more than `bytes_max` with what is on its way
/// there; whether that is all of the log.
fn replay_some(around: &Surroundings, log: &mut Replay<'_>, tables: &mut Tables, bytes_max: u64) -> Result<bool> {
    let handed_bytes = Cell::new(0);
    let is_full = || {
        let on_its_way_bytes = handed_bytes.get().min(refill::AHEAD_BYTES_MAX) as u64;
        around.memtable_bytes.load(Ordering::Relaxed) + on_its_way_bytes > bytes_max
    };
    let read = |visit: &mut dyn FnMut(Record<'_>) -> Result<()>| {
        let mut hand = |record: Record<'_>| {
            handed_bytes.update(|bytes| bytes + record.payload.len());
            visit(record)
        };
        log.read(&mut hand, &is_full)
    };
    let (is_all, clock) = tables.refill().run(|kind| LoggedBatch::unreadable(&around.dir, 0, kind), read)?;
    tables.clock = tables.clock.max(clock);
    Ok(is_all)
}
