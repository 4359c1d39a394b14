//! The log's batches back into the memtables.
//!
//! ```text
//! replay ─► chunks of records ─┬─► thread: the rows of its regions ─► their memtables
//!                              └─► thread: …
//! ```
//!
//! Each thread reads all records and takes the rows of its own regions, in the log's order: what a memtable then holds does
//! not hang on which thread was faster. A log of one chunk starts no thread.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle, available_parallelism};

use basalt_store::{SeqNo, Timestamp};

use crate::error::{Error, Result};
use crate::id::TableId;
use crate::memtable::{MemRow, Memtable, MemtableWriter};
use crate::mutation::{LoggedBatch, LoggedCell};
use crate::record::Record;
use crate::region::Region;
use crate::table::{Regions, Shape};
use crate::write::Starts;

/// Bytes of records that are handed on at once.
const CHUNK_BYTES: usize = 1 << 20;
/// Chunks that wait for a thread, at most; then the log is read no further.
const CHUNKS_AHEAD: usize = 2;
/// Rows that are put into the memtables together: they are looked up so, and lie in the processor's own memory till then.
const ROWS_TOGETHER: usize = 2048;
/// Threads, at most: all read every record.
const THREADS_MAX: usize = 4;

/// The tables as the log is read into them.
#[derive(Debug, Default)]
pub(super) struct Refill {
    tables: BTreeMap<TableId, RefillTable>,
    regions_count: usize,
}

#[derive(Debug)]
struct RefillTable {
    shape: Arc<Shape>,
    regions: Regions,
    starts: Starts,
    targets: Vec<Target>,
}

/// Where a region's rows go.
#[derive(Debug)]
struct Target {
    /// Its place among the regions of all tables.
    place: usize,
    memtable: Arc<Memtable>,
    /// Everything up to here is in files.
    flushed: u64,
}

/// Rows that were read and are in no memtable yet.
#[derive(Debug, Default)]
struct Waiting<'t, 'c> {
    /// Those of each target, by its place, with the target; targets without rows have none.
    of_targets: Vec<(Option<&'t Target>, Vec<WaitingRow>)>,
    rows_count: usize,
    keys: Vec<u8>,
    cells: Vec<LoggedCell<'c>>,
}

#[derive(Debug)]
struct WaitingRow {
    sequence: SeqNo,
    /// Among the keys.
    key: Range<usize>,
    /// Among the cells.
    cells: Range<usize>,
}

/// Records, copied.
#[derive(Debug, Default)]
struct Chunk {
    bytes: Vec<u8>,
    records: Vec<(u8, u64, Range<usize>)>,
}

/// A record whose checksum fits and whose payload does not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Unreadable {
    kind: u8,
}

/// How the records went: the latest time given by the server.
type Done = std::result::Result<Timestamp, Unreadable>;

impl Refill {
    /// Adds a table; `flushed` answers up to which change the files of a region hold it.
    pub(super) fn add_table(
        &mut self,
        id: TableId,
        shape: Arc<Shape>,
        regions: Regions,
        flushed: impl Fn(&Region) -> u64,
    ) {
        let targets = regions.iter().enumerate().map(|(index, region)| Target {
            place: self.regions_count + index,
            memtable: Arc::clone(&region.view().active),
            flushed: flushed(region),
        });
        let targets: Vec<_> = targets.collect();
        self.regions_count += targets.len();
        let starts = Starts::of(&regions);
        self.tables.insert(id, RefillTable { shape, regions, starts, targets });
    }

    /// Puts every record that `read` hands over into the memtables; answers what `read` does, and the latest time given by
    /// the server.
    ///
    /// # Errors
    /// What `unreadable` makes of the kind of a record that does not read; else what `read` answers, which comes behind all
    /// that it handed over.
    pub(super) fn run<T>(
        &self,
        unreadable: impl Fn(u8) -> Error,
        read: impl FnOnce(&mut dyn FnMut(Record<'_>) -> Result<()>) -> Result<T>,
    ) -> Result<(T, Timestamp)> {
        std::thread::scope(|scope| {
            let mut feed = Feed { refill: self, scope, chunk: Chunk::default(), threads: Vec::new() };
            let done = read(&mut |record| {
                feed.take(&record);
                Ok(())
            });
            let clock = feed.finish()?.map_err(|Unreadable { kind }| unreadable(kind))?;
            Ok((done?, clock))
        })
    }

    /// Inserts the rows of a chunk whose regions are among those of thread `turn` of `threads`.
    fn insert(&self, chunk: &Chunk, turn: usize, threads: usize) -> Done {
        let mut writers: Vec<Option<MemtableWriter<'_>>> = Vec::new();
        writers.resize_with(self.regions_count, || None);
        let is_mine: Vec<bool> = (0..self.regions_count).map(|place| place % threads == turn).collect();
        let (mut clock, mut cells, mut waiting) = (Timestamp(0), Vec::new(), Waiting::of(self.regions_count));
        let mut insert = |kind, sequence, payload| {
            let mut batch = LoggedBatch::decode(kind, payload, sequence)?;
            clock = clock.max(batch.server_time);
            // A table that was dropped since.
            let Some(table) = self.tables.get(&batch.table) else { return Some(()) };
            while let Some((key, sequence)) = batch.next_row(&mut cells)? {
                let Some(target) = table.targets.get(table.starts.index_of(&table.regions, key)) else { continue };
                if !is_mine.get(target.place).is_some_and(|is_mine| *is_mine) || sequence.0 <= target.flushed {
                    continue;
                }
                table.keep_families(&mut cells);
                if !cells.is_empty() && waiting.add(target, (key, sequence), &cells) == ROWS_TOGETHER {
                    waiting.put(&mut writers);
                }
            }
            Some(())
        };
        for (kind, sequence, place) in &chunk.records {
            let payload = chunk.bytes.get(place.clone()).unwrap_or_default();
            insert(*kind, *sequence, payload).ok_or(Unreadable { kind: *kind })?;
        }
        waiting.put(&mut writers);
        writers.into_iter().flatten().for_each(MemtableWriter::finish);
        Ok(clock)
    }
}

impl<'t, 'c> Waiting<'t, 'c> {
    /// Of so many targets.
    fn of(targets_count: usize) -> Self {
        let mut of_targets = Vec::new();
        of_targets.resize_with(targets_count, Default::default);
        Self { of_targets, ..Self::default() }
    }

    /// Adds a row behind the others of its target; answers how many rows there are.
    fn add(&mut self, target: &'t Target, (key, sequence): (&[u8], SeqNo), cells: &[LoggedCell<'c>]) -> usize {
        let Waiting { of_targets, rows_count, keys, cells: all } = self;
        let from = (keys.len(), all.len());
        keys.extend_from_slice(key);
        all.extend_from_slice(cells);
        if let Some((of_target, rows)) = of_targets.get_mut(target.place) {
            *of_target = Some(target);
            rows.push(WaitingRow { sequence, key: from.0..keys.len(), cells: from.1..all.len() });
        }
        *rows_count += 1;
        *rows_count
    }

    /// Puts all rows into the memtables, each one's in their order.
    fn put(&mut self, writers: &mut [Option<MemtableWriter<'t>>]) {
        let Waiting { of_targets, rows_count, keys, cells } = self;
        let row_of = |row: &WaitingRow| {
            let (key, cells) = (keys.get(row.key.clone())?, cells.get(row.cells.clone())?);
            Some(MemRow { key, handle: None, sequence: row.sequence, cells })
        };
        for ((target, waiting), writer) in of_targets.iter_mut().zip(writers) {
            let Some(target) = target.take() else { continue };
            let rows: Vec<_> = waiting.iter().filter_map(row_of).collect();
            writer.get_or_insert_with(|| target.memtable.insert()).rows(&rows);
            waiting.clear();
        }
        *rows_count = 0;
        keys.clear();
        cells.clear();
    }
}

impl RefillTable {
    /// Leaves cells of families out that were dropped since.
    fn keep_families(&self, cells: &mut Vec<LoggedCell<'_>>) {
        if cells.iter().any(|cell| self.shape.family(cell.family).is_none()) {
            cells.retain(|cell| self.shape.family(cell.family).is_some());
        }
    }
}

impl Chunk {
    fn push(&mut self, record: &Record<'_>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(record.payload);
        self.records.push((record.kind, record.sequence, start..self.bytes.len()));
    }
}

/// Hands chunks on.
struct Feed<'scope, 'env> {
    refill: &'env Refill,
    scope: &'scope Scope<'scope, 'env>,
    chunk: Chunk,
    /// Begun with the second chunk.
    threads: Vec<(SyncSender<Arc<Chunk>>, ScopedJoinHandle<'scope, Done>)>,
}

impl Feed<'_, '_> {
    fn take(&mut self, record: &Record<'_>) {
        if self.chunk.bytes.len() >= CHUNK_BYTES {
            self.send();
        }
        self.chunk.push(record);
    }

    fn send(&mut self) {
        let (refill, scope) = (self.refill, self.scope);
        if self.threads.is_empty() {
            let count = available_parallelism().map_or(1, NonZero::get).clamp(1, THREADS_MAX);
            self.threads.extend((0..count).map(|turn| {
                let (sender, chunks) = sync_channel(CHUNKS_AHEAD);
                (sender, scope.spawn(move || insert_all(refill, &chunks, turn, count)))
            }));
        }
        let chunk = Arc::new(std::mem::take(&mut self.chunk));
        for (sender, _) in &self.threads {
            // A thread that ended tells why when it is joined.
            sender.send(Arc::clone(&chunk)).unwrap_or_default();
        }
    }

    /// Waits until everything is in.
    fn finish(mut self) -> Result<Done> {
        if self.threads.is_empty() {
            return Ok(self.refill.insert(&self.chunk, 0, 1));
        }
        self.send();
        let mut clock = Ok(Timestamp(0));
        for (sender, thread) in self.threads {
            drop(sender);
            let done = thread.join().map_err(|_| Error::WorkerDied { worker: "replay" })?;
            clock = clock.and_then(|clock: Timestamp| done.map(|other| clock.max(other)));
        }
        Ok(clock)
    }
}

/// A thread's life.
fn insert_all(refill: &Refill, chunks: &Receiver<Arc<Chunk>>, turn: usize, threads: usize) -> Done {
    chunks.iter().try_fold(Timestamp(0), |clock, chunk| Ok(clock.max(refill.insert(&chunk, turn, threads)?)))
}
