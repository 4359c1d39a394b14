//! The engine's threads: one writes the log, one flushes, some compact, one proves files.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use basalt_store::Compaction;
use bytes::Bytes;

use crate::core::Core;
use crate::error::{Error, Result};
use crate::io::IoOp;
use crate::jobs::Work;
use crate::region::Region;
use crate::stats::Stats;
use crate::table::Table;

/// How often a thread looks for work that nobody told it of: TTL, a disk that was full.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);

/// The running threads.
#[derive(Debug, Default)]
pub(crate) struct Background {
    threads: Vec<JoinHandle<()>>,
}

impl Background {
    /// Starts the threads.
    ///
    /// # Errors
    /// What kept a thread from starting; those that run are told to end as ever.
    pub(crate) fn start(&mut self, core: &Arc<Core>) -> Result<()> {
        self.spawn(core, "wal", |core| core.wal.run(|| core.apply_left()))?;
        core.gathered.serve();
        self.spawn(core, "flush", |core| core.work(Work::Flush, Core::flush_due))?;
        for _ in 0..core.limits.compaction_threads {
            self.spawn(core, "compact", |core| core.work(Work::Compact, Core::compact_due))?;
        }
        let interval = core.limits.scrub_interval;
        if !interval.is_zero() {
            // It changes nothing: where it dies all else goes on, and nothing is proved unasked until the next start.
            let core = Arc::clone(core);
            self.start_thread("scrub", move || core.keep_scrubbing(interval))?;
        }
        Ok(())
    }

    fn spawn(&mut self, core: &Arc<Core>, name: &'static str, work: impl Fn(&Core) + Send + 'static) -> Result<()> {
        let core = Arc::clone(core);
        let run = move || {
            // A worker that died leaves its part undone: nothing more may be promised.
            if catch_unwind(AssertUnwindSafe(|| work(&core))).is_err() {
                core.condition.poison(&Error::WorkerDied { worker: name });
                core.wal.fail_all();
                core.close_gathered();
            }
        };
        self.start_thread(name, run)
    }

    fn start_thread(&mut self, name: &'static str, run: impl FnOnce() + Send + 'static) -> Result<()> {
        let thread = std::thread::Builder::new().name(name.into()).spawn(run);
        self.threads.push(thread.map_err(Error::no_thread(name))?);
        Ok(())
    }

    /// Whether the caller does the work.
    pub(crate) fn is_manual(&self) -> bool {
        self.threads.is_empty()
    }

    /// Waits for the threads to end; they were told to.
    pub(crate) fn join(self) {
        for thread in self.threads {
            // A panic was caught and told where it happened.
            drop(thread.join());
        }
    }
}

impl Core {
    /// A thread's life: waits, works, tells what went wrong, goes on.
    fn work(&self, work: Work, step: impl Fn(&Core) -> Result<()>) {
        while self.jobs.wait(work, LOOK_INTERVAL) {
            if self.condition.check_alive().is_err() {
                continue;
            }
            // What failed was told with its place.
            drop(step(self));
        }
    }

    /// Says which work on which region failed, and whether it is tried again.
    fn put_off(&self, work: &'static str, (table, region): (&Table, &Region), error: &Error) {
        // Not a failure: the next start does it.
        if matches!(error, Error::Closed) {
            return;
        }
        let name = &table.shape().descriptor.name;
        let (region, error) = (region.id.0, basalt_store::with_causes(error));
        if self.condition.check_alive().is_ok() {
            tracing::warn!(work, table = %name, region, error, "put off; it is tried again");
        } else {
            tracing::error!(work, table = %name, region, error, "given up until a restart");
        }
    }

    /// Flushes regions until no bound is passed, but for those that fail: they are tried again the next time.
    ///
    /// Before, and so every [`LOOK_INTERVAL`], it looks whether the folder is there: what is acknowledged while its name means nothing, or
    /// another, the next start does not find.
    ///
    /// # Errors
    /// The first; want of room, or an engine that is poisoned, at once.
    pub(crate) fn flush_due(&self) -> Result<()> {
        self.guard(self.fs.check_locked(&self.dir).map_err(Error::io(IoOp::Open, &self.dir)))?;
        let (mut failed, mut first) = (Vec::new(), Ok(()));
        while let Some((table, region)) = self.pick_flush(&failed) {
            let flushed = self.flush_region(&table, &region);
            if self.is_of_all(&flushed) {
                return flushed.inspect_err(|error| self.put_off("flush", (&table, &region), error));
            }
            if let Err(error) = &flushed {
                self.put_off("flush", (&table, &region), error);
                failed.push(region.id);
            }
            first = first.and(flushed);
        }
        first
    }

    /// Drops what TTL has emptied, compacts until no merge is worth it, and splits regions until none is too large. One that fails
    /// keeps no other from it; but after want of room no more is merged.
    ///
    /// # Errors
    /// The first; an engine that is poisoned, at once.
    pub(crate) fn compact_due(&self) -> Result<()> {
        // Before all merges: on a full disk it is what makes room.
        let mut first = self.drop_all_expired();
        let (mut has_split, mut has_room) = (true, true);
        while std::mem::take(&mut has_split) {
            for (table, region) in self.all_regions() {
                let compacted = self.compact_and_split(&table, &region, has_room);
                if let Err(error) = &compacted {
                    self.put_off("compaction", (&table, &region), error);
                }
                let lacks_room = compacted.as_ref().is_err_and(Error::is_want_of_room);
                // Where a merge has no room a split may have some: it rewrites nothing.
                let is_over = (lacks_room && !has_room) || self.condition.check_alive().is_err();
                has_room &= !lacks_room;
                has_split |= matches!(compacted, Ok(true));
                first = first.and(compacted.map(drop));
                if is_over {
                    return first;
                }
            }
        }
        first
    }

    /// Drops the files that TTL has emptied, of every region.
    fn drop_all_expired(&self) -> Result<()> {
        let mut first = Ok(());
        for (table, region) in self.all_regions() {
            let dropped = self.drop_expired(&table, &region);
            if let Err(error) = &dropped {
                self.put_off("compaction", (&table, &region), error);
            }
            first = first.and(dropped);
            if self.jobs.is_stopped() || self.condition.check_alive().is_err() {
                break;
            }
        }
        first
    }

    /// Does what is due in a region, but for merges where there is no room for them; whether it was split.
    fn compact_and_split(&self, table: &Table, region: &Arc<Region>, has_room: bool) -> Result<bool> {
        while has_room && !self.jobs.is_stopped() && self.compact_some(table, region, false)? {}
        Ok(!self.jobs.is_stopped() && self.count_failed(self.split_if_due(table, region))?)
    }

    /// Whether an error is no region's own.
    fn is_of_all<T>(&self, done: &Result<T>) -> bool {
        done.as_ref().is_err_and(Error::is_want_of_room) || self.condition.check_alive().is_err()
    }

    pub(crate) fn flush_table(&self, table: &Table) -> Result<()> {
        for_each_region(table, |region| self.flush_region(table, region))
    }

    pub(crate) fn flush_all(&self) -> Result<()> {
        self.all_tables().iter().try_for_each(|table| self.flush_table(table))
    }

    pub(crate) fn compact_table(&self, table: &Table, compaction: Compaction) -> Result<()> {
        for_each_region(table, |region| match compaction {
            Compaction::Major => self.compact_region(table, region),
            Compaction::Minor => {
                while self.compact_some(table, region, true)? {}
                Ok(())
            }
        })
    }

    pub(crate) fn stats(&self) -> Stats {
        let wal = &self.wal.stats;
        let mut stats = Stats {
            wal_bytes: wal.bytes.load(Ordering::Relaxed),
            wal_records: wal.records.load(Ordering::Relaxed),
            wal_syncs: wal.syncs.load(Ordering::Relaxed),
            wal_sync_time: Duration::from_nanos(wal.sync_nanos.load(Ordering::Relaxed)),
            wal_sync_time_max: Duration::from_nanos(wal.sync_nanos_max.load(Ordering::Relaxed)),
            memtable_bytes: self.memtable_bytes.load(Ordering::Relaxed),
            splits: self.counters.splits.load(Ordering::Relaxed),
            flushes: self.counters.flushes.load(Ordering::Relaxed),
            flushed_bytes: self.counters.flushed_bytes.load(Ordering::Relaxed),
            compactions: self.counters.compactions.load(Ordering::Relaxed),
            compacted_bytes: self.counters.compacted_bytes.load(Ordering::Relaxed),
            flush_failures: self.counters.flush_failures.load(Ordering::Relaxed),
            compaction_failures: self.counters.compaction_failures.load(Ordering::Relaxed),
            scrubbed_bytes: self.counters.scrubbed_bytes.load(Ordering::Relaxed),
            scrub_damages: self.counters.scrub_damages.load(Ordering::Relaxed),
            refused_for_memory: self.counters.refused_for_memory.load(Ordering::Relaxed),
            block_cache_bytes: self.cache.bytes(),
            block_cache_hits: self.cache.hits.load(Ordering::Relaxed),
            block_cache_misses: self.cache.misses.load(Ordering::Relaxed),
            clock_behind: self.clock_behind(),
            ..Stats::default()
        };
        for (_, region) in self.all_regions() {
            let view = region.view();
            stats.regions_count += 1;
            stats.file_index_bytes += view.files.iter().map(|file| file.table.memory_bytes() as u64).sum::<u64>();
            stats.files_without_filter +=
                view.files.iter().filter(|file| file.table.is_without_filter()).count() as u64;
            stats.files_count += view.files.len() as u64;
            stats.file_bytes += view.files.iter().map(|file| file.bytes).sum::<u64>();
        }
        stats
    }
}

/// Does the work on every region of a table, in key order; on both halves of one that is split meanwhile.
fn for_each_region(table: &Table, mut work: impl FnMut(&Region) -> Result<()>) -> Result<()> {
    let mut from = Bytes::new();
    loop {
        let Some(region) = table.regions().of(&from).cloned() else { return Ok(()) };
        work(&region)?;
        // Its halves begin where it did.
        if region.is_retired() {
            continue;
        }
        if region.range.end.is_empty() {
            return Ok(());
        }
        from = region.range.end.clone();
    }
}
