//! The log's batches back into the memtables.
//!
//! ```text
//! replay ─► chunks of records ─┬─► thread: the rows of its regions ─► their memtables
//!                              └─► thread: …
//! ```
//!
//! Each thread reads all records and takes the rows of its own regions, in the log's order: what a memtable then holds does
//! not hang on which thread was faster. Others' rows are skipped, which costs less than to hand rows from one processor to
//! another. A log of one chunk starts no thread.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, Scope, ScopedJoinHandle, available_parallelism};

use basalt_store::{SeqNo, Timestamp};

use crate::error::{Error, Result};
use crate::id::TableId;
use crate::memtable::{MemRow, Memtable, SmallRow};
use crate::mutation::{LoggedBatch, LoggedCell};
use crate::record::Record;
use crate::region::Region;
use crate::table::{Regions, Shape, Starts};

/// Bytes of records that are handed on at once.
const CHUNK_BYTES: usize = 1 << 20;
/// Chunks that wait for a thread, at most; then the log is read no further.
const CHUNKS_AHEAD: usize = 2;
/// Bytes of records that were handed over and are in no memtable yet, at most: those chunks, and one at each end.
pub(super) const AHEAD_BYTES_MAX: usize = (CHUNKS_AHEAD + 2) * CHUNK_BYTES;
/// Rows of a part, at most. They are put into the memtables together, and lie in the processor's own memory till then.
const PART_ROWS: usize = 2048;
/// What they are called.
const WORKER: &str = "replay";
/// Threads, at most: all read every record.
const THREADS_MAX: usize = 4;

/// The tables as the log is read into them.
#[derive(Debug, Default)]
pub(super) struct Refill {
    tables: BTreeMap<TableId, RefillTable>,
    /// The regions of all tables, each table's one behind the other.
    targets: Vec<Target>,
}

#[derive(Debug)]
struct RefillTable {
    shape: Arc<Shape>,
    regions: Regions,
    starts: Starts,
    /// The place of its first region among those of all tables.
    first_place: usize,
}

/// Where a region's rows go.
#[derive(Debug)]
struct Target {
    memtable: Arc<Memtable>,
    /// Everything up to here is in files.
    flushed: u64,
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
    sequence: u64,
}

/// How the records went: the latest time given by the server.
type Done = std::result::Result<Timestamp, Unreadable>;

/// Rows of a chunk that are in no memtable yet.
#[derive(Debug, Default)]
struct Part<'c> {
    /// By the place of the region.
    of_targets: Vec<PartRows>,
    rows_count: usize,
    keys: Vec<u8>,
    /// Cells that are not small, and those of rows that have several.
    cells: Vec<LoggedCell<'c>>,
}

/// The rows of one region.
#[derive(Debug, Default)]
struct PartRows {
    small: Vec<SmallRow>,
    others: Vec<PartRow>,
}

#[derive(Debug)]
struct PartRow {
    sequence: SeqNo,
    /// Among the keys.
    key: Range<usize>,
    /// Among the cells.
    cells: Range<usize>,
}

impl Refill {
    /// Adds a table; `flushed` answers up to which change the files of a region hold it.
    pub(super) fn add_table(
        &mut self,
        id: TableId,
        shape: Arc<Shape>,
        regions: Regions,
        flushed: impl Fn(&Region) -> u64,
    ) {
        let (first_place, starts) = (self.targets.len(), Starts::of(&regions));
        let target_of =
            |region: &Arc<Region>| Target { memtable: Arc::clone(&region.view().active), flushed: flushed(region) };
        self.targets.extend(regions.iter().map(target_of));
        self.tables.insert(id, RefillTable { shape, regions, starts, first_place });
    }

    /// Puts every record that `read` hands over into the memtables; answers what `read` does, and the latest time given by
    /// the server.
    ///
    /// # Errors
    /// What `unreadable` makes of the kind of a record that does not read; else what `read` answers, which comes behind all
    /// that it handed over: `NoThread`, too.
    pub(super) fn run<T>(
        &self,
        unreadable: impl Fn(u8) -> Error,
        read: impl FnOnce(&mut dyn FnMut(Record<'_>) -> Result<()>) -> Result<T>,
    ) -> Result<(T, Timestamp)> {
        std::thread::scope(|scope| {
            let mut feed = Feed { refill: self, scope, chunk: Chunk::default(), threads: Vec::new() };
            let done = read(&mut |record| feed.take(&record));
            let clock = feed.finish()?.map_err(|Unreadable { kind, .. }| unreadable(kind))?;
            Ok((done?, clock))
        })
    }

    /// Inserts the rows of a chunk whose regions are among those of thread `turn` of `threads`.
    fn insert(&self, chunk: &Chunk, turn: usize, threads: usize) -> Done {
        let is_mine: Vec<bool> = (0..self.targets.len()).map(|place| place % threads == turn).collect();
        let (mut clock, mut part) = (Timestamp(0), Part::of(self.targets.len()));
        for (kind, sequence, place) in &chunk.records {
            let payload = chunk.bytes.get(place.clone()).unwrap_or_default();
            let unreadable = Unreadable { kind: *kind, sequence: *sequence };
            let mut batch = LoggedBatch::decode(*kind, payload, *sequence).ok_or(unreadable)?;
            clock = clock.max(batch.server_time);
            self.insert_batch(&mut batch, &is_mine, &mut part).ok_or(unreadable)?;
        }
        self.put(&mut part);
        Ok(clock)
    }

    /// Adds the rows of the regions that are `mine` to a part, which goes into the memtables when it is full; `None` for a batch that does
    /// not read.
    fn insert_batch<'c>(&self, batch: &mut LoggedBatch<'c>, mine: &[bool], part: &mut Part<'c>) -> Option<()> {
        // A table that was dropped since.
        let Some(table) = self.tables.get(&batch.table) else { return Some(()) };
        let mut cells = Vec::new();
        while let Some(sequence) = batch.begin_row()? {
            let place = table.first_place + table.starts.index_of(&table.regions, batch.key());
            let Some((target, true)) = self.targets.get(place).zip(mine.get(place).copied()) else {
                // Whose region it is looks at them.
                batch.skip_cells()?;
                continue;
            };
            batch.cells_into(&mut cells)?;
            if sequence.0 <= target.flushed {
                continue;
            }
            table.keep_families(&mut cells);
            if !cells.is_empty() && part.add(place, (batch.key(), sequence), &cells) == PART_ROWS {
                self.put(part);
            }
        }
        Some(())
    }

    /// Puts the rows of a part into the memtables; it has none then.
    fn put(&self, part: &mut Part<'_>) {
        let Part { of_targets, rows_count, keys, cells } = part;
        let row_of = |row: &PartRow| {
            let (key, cells) = (keys.get(row.key.clone())?, cells.get(row.cells.clone())?);
            Some(MemRow { key, handle: None, sequence: row.sequence, cells })
        };
        for (PartRows { small, others }, target) in of_targets.iter_mut().zip(&self.targets) {
            if small.is_empty() && others.is_empty() {
                continue;
            }
            let mut writer = target.memtable.insert();
            writer.small_rows(small, keys);
            writer.rows(&others.iter().filter_map(row_of).collect::<Vec<_>>());
            writer.finish();
            small.clear();
            others.clear();
        }
        *rows_count = 0;
        keys.clear();
        cells.clear();
    }
}

impl<'c> Part<'c> {
    /// Of so many regions.
    fn of(targets_count: usize) -> Self {
        let mut of_targets = Vec::new();
        of_targets.resize_with(targets_count, Default::default);
        Self { of_targets, ..Self::default() }
    }

    /// Adds a row behind the others of its region; answers how many rows there are.
    fn add(&mut self, place: usize, (key, sequence): (&[u8], SeqNo), cells: &[LoggedCell<'c>]) -> usize {
        let Part { of_targets, rows_count, keys, cells: all } = self;
        let (from, first) = (keys.len(), all.len());
        keys.extend_from_slice(key);
        let key = from..keys.len();
        if let Some(PartRows { small, others }) = of_targets.get_mut(place) {
            // Fast path: a point.
            let lone = if let [lone] = cells { SmallRow::of(key.clone(), sequence, lone) } else { None };
            if let Some(row) = lone {
                small.push(row);
            } else {
                all.extend_from_slice(cells);
                others.push(PartRow { sequence, key, cells: first..all.len() });
            }
        }
        *rows_count += 1;
        *rows_count
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
    /// An empty one, with room for all: to grow would be to copy it.
    fn roomy() -> Chunk {
        Chunk { bytes: Vec::with_capacity(CHUNK_BYTES + CHUNK_BYTES / 8), records: Vec::new() }
    }

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
    fn take(&mut self, record: &Record<'_>) -> Result<()> {
        if self.chunk.bytes.len() >= CHUNK_BYTES {
            if self.threads.is_empty() {
                self.start()?;
            }
            self.send();
        }
        self.chunk.push(record);
        Ok(())
    }

    fn start(&mut self) -> Result<()> {
        let refill = self.refill;
        let count = available_parallelism().map_or(1, NonZero::get).clamp(1, THREADS_MAX);
        for turn in 0..count {
            let (sender, chunks) = sync_channel(CHUNKS_AHEAD);
            let work = move || insert_all(refill, &chunks, turn, count);
            let thread = Builder::new().name(WORKER.to_owned()).spawn_scoped(self.scope, work);
            self.threads.push((sender, thread.map_err(Error::no_thread(WORKER))?));
        }
        Ok(())
    }

    fn send(&mut self) {
        let chunk = Arc::new(std::mem::replace(&mut self.chunk, Chunk::roomy()));
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
            let done = thread.join().map_err(|_| Error::WorkerDied { worker: WORKER })?;
            clock = match (clock, done) {
                (Ok(clock), Ok(other)) => Ok(clock.max(other)),
                // Some read rows that others skip: the first in the log is the one.
                (Err(first), Err(other)) => Err(if other.sequence < first.sequence { other } else { first }),
                (Err(first), _) | (_, Err(first)) => Err(first),
            };
        }
        Ok(clock)
    }
}

/// A thread's life.
fn insert_all(refill: &Refill, chunks: &Receiver<Arc<Chunk>>, turn: usize, threads: usize) -> Done {
    chunks.iter().try_fold(Timestamp(0), |clock, chunk| Ok(clock.max(refill.insert(&chunk, turn, threads)?)))
}
