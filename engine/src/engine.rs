//! The facade: an open data folder, from its opening to its end; as a store it is told in `store`.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use basalt_store::{Pending, TableName};

use crate::background::Background;
use crate::backup::{BackedUp, check_openable};
use crate::core::{Core, Surroundings};
use crate::data_folder::lock_dir;
use crate::error::{Error, Result};
use crate::health::{Condition, Health};
use crate::io::FileLock;
use crate::options::{EngineOptions, Limits, Workers};
use crate::progress::Progress;
use crate::recovery::recover;
use crate::reserve::Reserve;
use crate::scrub::Scrubbed;
use crate::sstable::BlockCache;
use crate::stats::Stats;
use crate::table::Table;

mod store;
#[cfg(test)]
mod tests;

/// The embedded store over one data folder.
///
/// Dropping it closes it as [`Engine::close`] does; of a failure only the log tells.
///
/// ```
/// # use basalt_engine::{Engine, EngineOptions};
/// # use basalt_store::*;
/// # let dir = tempfile::tempdir()?;
/// let engine = Engine::open(EngineOptions::new(dir.path()))?;
/// let table: TableName = "t".parse()?;
/// engine.create_table(TableDescriptor::new(table.clone(), vec![FamilyDescriptor::new("f")]), &[])?;
/// let mut batch = MutationBatch::new(Durability::Fsync);
/// batch.row(b"r")?.put(b"f", b"q", None, b"v")?;
/// assert!(engine.apply(&table, batch).wait()?.failed.is_empty());
/// engine.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Engine {
    pub(crate) core: Arc<Core>,
    /// Taken by the first close. Rank: above everything.
    open: Mutex<Option<Open>>,
}

/// What an engine lets go of when it closes, in this order.
#[derive(Debug)]
struct Open {
    background: Background,
    _lock: Box<dyn FileLock>,
}

impl Engine {
    /// Opens a data folder and recovers what it holds.
    ///
    /// Cost: reads the log since the last flush of each region, at most
    /// [`Limits::wal_bytes_max`](crate::Limits::wal_bytes_max) and a segment or two.
    ///
    /// # Errors
    /// [`Error::Locked`] when another process has the folder; [`Error::Corrupt`]
    /// with file and offset for damage; [`Error::Version`] for files of a later
    /// program; [`Error::Io`], of which [`Error::is_disk_full`] tells a full disk;
    /// `TooLarge` for log segments over [`Limits::WAL_SEGMENT_BYTES_MAX`](crate::Limits::WAL_SEGMENT_BYTES_MAX).
    pub fn open(options: EngineOptions) -> Result<Arc<Engine>> {
        let (size, limit) = (options.limits.wal_segment_bytes, Limits::WAL_SEGMENT_BYTES_MAX);
        if size > limit {
            return Err(basalt_store::Error::TooLarge { what: "a log segment", size, limit }.into());
        }
        let lock = lock_dir(&*options.fs, &options.dir)?;
        check_openable(&*options.fs, &options.dir)?;
        let EngineOptions { dir, fs, clock, limits, folds, triggers, codecs, on_poison, workers } = options;
        let around = Surroundings {
            cache: Arc::new(BlockCache::new(limits.block_cache_bytes, limits.bloom_filters_bytes)),
            condition: Arc::new(Condition::new(limits.room_bytes(), on_poison)),
            reserve: Arc::new(Reserve::new(Arc::clone(&fs), &dir, limits.reserve_bytes)),
            memtable_bytes: Arc::default(),
            dir,
            fs,
            clock,
            limits,
            folds,
            triggers,
            codecs,
        };
        let recovered = recover(&around)?;
        let core = Arc::new(Core::new(around, recovered));
        core.meet_clock()?;
        core.flush_replayed()?;
        let open = Open { background: Background::default(), _lock: lock };
        let engine = Engine { core, open: Mutex::new(Some(open)) };
        if let Workers::Threads = workers {
            // Where one cannot be started, those that run end as the engine is dropped, before the folder is let go of.
            engine.start_threads()?;
        }
        Ok(Arc::new(engine))
    }

    fn start_threads(&self) -> Result<()> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.as_mut().map_or(Ok(()), |open| open.background.start(&self.core))
    }

    /// Flushes, syncs, ends the threads, cuts the log to what it holds and releases the folder. Writes are refused from here on.
    ///
    /// Waits for what other threads' calls write: compactions and backups are given up, and end with [`Error::Closed`]. Not to be
    /// called by what [`Engine::backup`] tells.
    ///
    /// # Errors
    /// What kept the last bytes from the disk; they are still in the log if they were acknowledged.
    pub fn close(&self) -> Result<()> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(open) = open else { return Ok(()) };
        self.core.jobs.stop();
        self.core.close_gathered();
        // On a full disk too, with the reserve, and first of all the log: what was acknowledged before it reached that has no other
        // place.
        let log = || self.core.with_room(|| self.core.wal.sync_to(self.core.wal.last_sequence()));
        let flushed = self.core.condition.check_alive().and_then(|()| log()).and_then(|()| self.core.flush_all());
        self.core.wal.close();
        self.core.side_logs.close();
        self.core.scan_threads.stop();
        if open.background.is_manual() {
            self.core.wal.write_group(true);
            self.core.wal.fail_all();
        }
        open.background.join();
        flushed.and_then(|()| self.core.with_room(|| self.core.wal.trim()))
    }

    /// Whether writes are taken.
    pub fn health(&self) -> Health {
        self.core.condition.health()
    }

    /// Whether flushes lag, so that writes are soon refused (`Throttled`): who waits a moment then is not. *Cost*: two loads.
    pub fn is_pressed(&self) -> bool {
        self.core.is_pressed()
    }

    /// The engine's figures now.
    pub fn stats(&self) -> Stats {
        self.core.stats()
    }

    /// Does what the threads would do now, once: writes and syncs what is queued,
    /// makes the log ready, flushes and compacts what is due.
    ///
    /// For engines of [`Workers::Manual`].
    ///
    /// # Errors
    /// What a flush or a compaction met.
    pub fn pump(&self) -> Result<()> {
        self.core.apply_left();
        self.core.wal.write_group(false);
        self.core.wal.make_ready();
        self.core.flush_due()?;
        self.core.compact_due()
    }

    /// Proves everything as [`Engine::scrub`] does.
    ///
    /// # Errors
    /// Those of it; the first damage, with file and offset.
    pub fn verify(&self) -> Result<Scrubbed> {
        let mut found = self.scrub(&mut |_| {})?;
        if found.damages.is_empty() { Ok(found) } else { Err(found.damages.swap_remove(0)) }
    }

    /// Reads the manifest, its copy and every file of tables and snapshots whole from the disk, and proves them, while writes and reads go on.
    /// Files that compactions replace before it is their turn are passed over. `tell` is called after each file of a table.
    ///
    /// Cost: reads all bytes but the log's.
    ///
    /// # Errors
    /// [`Error::Closed`]: the engine closes; want of descriptors. Damage is in the answer, file by file, and logged.
    pub fn scrub(&self, tell: &mut dyn FnMut(Progress<'_>)) -> Result<Scrubbed> {
        let _asked = self.core.jobs.begin()?;
        self.core.scrub(tell)
    }

    /// Writes a backup of everything into `target`, which must be absent or empty, while writes go on: all that was
    /// answered before the call is in it, and exactly one prefix of the log. `tell` is called after each file.
    ///
    /// Cost: every file is read and proved; on the disk of the store none is copied. Backups are taken one after the other.
    ///
    /// # Errors
    /// [`Error::NotEmpty`]; [`Error::HalfBackedUp`], also while another backup is taken into it; [`Error::Corrupt`]: a file of the store is
    /// damaged; [`Error::Closed`]: the engine closes; a full disk; any I/O error. Then `target` is no backup, and what was written into it
    /// is removed, unless the disk refuses that too.
    pub fn backup(&self, target: &Path, tell: &mut dyn FnMut(Progress<'_>)) -> Result<BackedUp> {
        let _asked = self.core.jobs.begin()?;
        self.core.backup(target, tell)
    }

    /// Does a work that may write files, for which a close waits.
    fn work<T>(&self, work: impl FnOnce(&Core) -> Result<T>) -> basalt_store::Result<T> {
        let _asked = self.core.jobs.begin()?;
        Ok(work(&self.core)?)
    }

    fn table(&self, name: &TableName) -> Result<Arc<Table>> {
        self.check_open()?;
        self.core.table(name)
    }

    /// The table, if its cells may be read.
    fn readable(&self, name: &TableName) -> Result<Arc<Table>> {
        let table = self.table(name)?;
        let shape = table.shape();
        shape.state.check_read(&shape.descriptor)?;
        Ok(table)
    }

    /// Changes cells of a table, if it may be done.
    fn change<T>(&self, name: &TableName, change: impl FnOnce(&Arc<Table>) -> Pending<T>) -> Pending<T> {
        let writable = || {
            let table = self.table(name)?;
            let shape = table.shape();
            shape.state.check_write(&shape.descriptor)?;
            Ok(table)
        };
        writable().map_or_else(|error: Error| Pending::ready(Err(error.into())), |table| change(&table))
    }

    /// Whether the engine is open.
    fn check_open(&self) -> Result<()> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.is_some() { Ok(()) } else { Err(Error::Closed) }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::warn!(%error, "closed with memtables unflushed; the log holds what was acknowledged");
        }
    }
}
