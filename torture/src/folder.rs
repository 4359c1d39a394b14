//! Data folders to be damaged: their files' bytes, and what must be read from them.
//!
//! A folder is written by a real engine on a disk in memory, whose process is then killed: files in every state, and a
//! log that holds what came last. What was acknowledged is kept beside it as the contents after each of the last writes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, ensure};
use basalt_engine::io::{Fault, FaultKind, FaultSpan, FileSystem, SimFs};
use basalt_engine::{Engine, EngineOptions, FileKind, Limits, Repair, Workers};
use basalt_store::{
    Durability, FamilyDescriptor, Get, ManualClock, MutationBatch, RowBatch, Scan, Store, TableDescriptor, TableName,
    Timestamp,
};
use bytes::Bytes;

const RECORD_HEADER_BYTES: usize = 32;

/// All that a reader can see: rows by table and key, tables and snapshots by name.
pub(crate) type Content = BTreeMap<(String, Vec<u8>), Vec<Vec<u8>>>;

/// Where a record lies in its segment. Layout: `docs/formats/wal.md`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogRecord {
    start: usize,
    pub(crate) payload_end: usize,
    /// With its padding.
    pub(crate) end: usize,
    /// Up to where it says that the log was on disk: segment in the upper half, offset in the lower.
    pub(crate) synced: u64,
}

#[derive(Debug)]
pub(crate) struct Folder {
    /// Bytes by name.
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    /// What may be read: the last is after all writes, the ones before lack the last, the last two, …
    pub(crate) states: Vec<Content>,
}

impl Folder {
    pub(crate) const DIR: &str = "/d";
    const SEGMENT_HEADER_BYTES: usize = 32;

    /// `rows` rows of one table, all in the log, a record each.
    pub(crate) fn logged(rows: u64, segment_bytes: u64) -> Result<Folder> {
        let fs = SimFs::new(1);
        let limits = Limits {
            wal_segment_bytes: segment_bytes,
            wal_bytes_max: 64 << 20,
            reserve_bytes: 1 << 10,
            memtable_bytes: 64 << 20,
            memtables_bytes: 128 << 20,
            ..small_limits()
        };
        let engine = open(&fs, limits)?;
        let table: TableName = "t".parse()?;
        engine.create_table(TableDescriptor::new(table.clone(), vec![FamilyDescriptor::new("f")]), &[])?;
        let mut content = Content::new();
        for row in 0..rows {
            let (key, value) = logged_row(row);
            put(&engine, &table, &key, &value)?;
            content.insert(("t".to_owned(), key), vec![value]);
        }
        content.insert(("tables".to_owned(), b"t".to_vec()), Vec::new());
        stop(&fs, engine)?;
        Ok(Folder { files: bytes_of(&fs)?, states: vec![content] })
    }

    /// Of a folder of [`Folder::logged`]: how many of the first rows are there, if nothing else is.
    pub(crate) fn prefix_of(&self, found: &Content) -> Option<usize> {
        let whole = self.states.last()?;
        let rows = found.len().checked_sub(1)?;
        let is_right = found.iter().all(|(place, values)| whole.get(place) == Some(values));
        let mut numbered = found.iter().filter(|(place, _)| place.0 == "t").zip(0_u64..);
        let are_first = numbered.all(|((place, _), row)| place.1 == logged_row(row).0);
        (is_right && are_first).then_some(rows)
    }

    /// The log's segments in order, as name and bytes.
    pub(crate) fn segments(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().filter(|(name, _)| name.starts_with("wal-")).map(|(name, bytes)| (&**name, &**bytes))
    }

    /// The records of a segment.
    pub(crate) fn records(&self, segment: &str) -> Vec<LogRecord> {
        let bytes = self.files.get(segment).map_or(&[][..], Vec::as_slice);
        let mut start = Self::SEGMENT_HEADER_BYTES;
        let mut records = Vec::new();
        while let Some(header) =
            bytes.get(start..start + RECORD_HEADER_BYTES).filter(|header| header.iter().any(|byte| *byte != 0))
        {
            let len = header.get(8..).and_then(<[u8]>::first_chunk).map_or(0, |len| u32::from_le_bytes(*len));
            let synced = header.get(24..).and_then(<[u8]>::first_chunk).map_or(0, |synced| u64::from_le_bytes(*synced));
            let payload_end = start + RECORD_HEADER_BYTES + usize::try_from(len).unwrap_or(0);
            let end = payload_end.next_multiple_of(8);
            records.push(LogRecord { start, payload_end, end, synced });
            start = end;
        }
        records
    }

    /// Up to where the log's own records say that it was on disk, those whose heads a damage of `segment` left.
    pub(crate) fn synced(&self, segment: &str, damaged: &[u8]) -> u64 {
        let told = self.segments().flat_map(|(name, bytes)| {
            let bytes_now = if name == segment { damaged } else { bytes };
            let is_left = move |record: &LogRecord| {
                let head = record.start..record.start + RECORD_HEADER_BYTES;
                bytes.get(head.clone()) == bytes_now.get(head)
            };
            self.records(name).into_iter().filter(is_left)
        });
        told.map(|record| record.synced).max().unwrap_or(0)
    }

    /// Opens a disk and reads everything, by scans and by gets.
    pub(crate) fn read(&self, fs: &SimFs) -> Result<Content> {
        let engine = open(fs, small_limits())?;
        let found = content(&engine).and_then(|found| {
            self.get_all(&engine, &found)?;
            Ok(found)
        });
        stop(fs, engine)?;
        found
    }

    /// As [`Folder::read`], once the disk is repaired without a loss of cells.
    pub(crate) fn mended(&self, fs: &SimFs) -> Result<Content> {
        let mut done = Repair::default();
        basalt_engine::Folder::open(options(fs, small_limits()))?.repair(true, &mut done, &mut |_| {})?;
        ensure!(done.unmended.is_empty(), "not mended: {:?}", done.unmended);
        ensure!(done.losses.iter().all(|loss| loss.cells_count == Some(0)), "cells are lost: {:?}", done.losses);
        self.read(fs)
    }

    /// Whether a closed folder's proof finds a file of the table's damaged; `None` for one that nothing names, which the next
    /// opening deletes.
    pub(crate) fn is_proved_damaged(fs: &SimFs, name: &str) -> Result<Option<bool>> {
        let closed = basalt_engine::Folder::open(options(fs, small_limits()))?;
        let audited = closed.audit(true, &mut |_| {})?;
        let found = audited.iter().find(|file| file.name == name && file.kind != FileKind::Unnamed);
        Ok(found.map(|file| file.damage.as_ref().is_some_and(|damage| damage.to_string().contains(name))))
    }

    /// What gets find must be what scans found: they ask bloom filters, which scans do not.
    fn get_all(&self, engine: &Engine, found: &Content) -> Result<()> {
        let places: Vec<&(String, Vec<u8>)> = self.states.iter().flat_map(Content::keys).collect();
        for table in engine.list_tables()? {
            let name = table.to_string();
            let mut keys: Vec<Bytes> =
                places.iter().filter(|place| place.0 == name).map(|place| Bytes::copy_from_slice(&place.1)).collect();
            keys.sort_unstable();
            keys.dedup();
            let mut got = Content::new();
            take_rows(&name, &engine.get(&table, Get::rows(keys)).wait()?, &mut got);
            let scanned = found.iter().filter(|(place, _)| place.0 == name);
            ensure!(scanned.eq(got.iter()), "gets of table {name} find other rows than a scan");
        }
        Ok(())
    }
}

/// Row `number` of a folder of [`Folder::logged`].
fn logged_row(number: u64) -> (Vec<u8>, Vec<u8>) {
    let len = usize::try_from(number % 50).unwrap_or(0);
    (format!("row{number:05}").into_bytes(), vec![u8::try_from(number % 251).unwrap_or(0); len])
}

/// Bounds at which everything happens with few bytes.
pub(crate) fn small_limits() -> Limits {
    Limits {
        wal_segment_bytes: 8 << 10,
        wal_bytes_max: 32 << 10,
        reserve_bytes: 1 << 10,
        memtable_bytes: 6 << 10,
        memtables_bytes: 64 << 10,
        block_cache_bytes: 64 << 10,
        compaction_threads: 0,
        compaction_files_min: 3,
        ..Limits::default()
    }
}

pub(crate) fn open(fs: &SimFs, limits: Limits) -> Result<Arc<Engine>> {
    Ok(Engine::open(options(fs, limits))?)
}

fn options(fs: &SimFs, limits: Limits) -> EngineOptions {
    EngineOptions {
        fs: Arc::new(fs.clone()),
        clock: Arc::new(ManualClock::new(Timestamp(1000))),
        limits,
        workers: Workers::Manual,
        ..EngineOptions::new(Folder::DIR)
    }
}

/// Ends an engine without a flush: its disk takes no change any more.
pub(crate) fn stop(fs: &SimFs, engine: Arc<Engine>) -> Result<()> {
    fs.set_fault(Some(Fault { after_calls: 0, kind: FaultKind::Eio, span: FaultSpan::FromThenOn }));
    let ended = Arc::try_unwrap(engine).map_err(|_| anyhow::anyhow!("an engine is held by somebody"));
    drop(ended?);
    fs.set_fault(None);
    Ok(())
}

/// Puts one value and has it on disk.
pub(crate) fn put(engine: &Engine, table: &TableName, key: &[u8], value: &[u8]) -> Result<()> {
    let mut batch = MutationBatch::new(Durability::Fsync);
    batch.row(key)?.put(b"f", b"q", None, value)?;
    let pending = engine.apply(table, batch);
    engine.pump()?;
    ensure!(pending.wait()?.failed.is_empty(), "a put of row {key:?} failed");
    Ok(())
}

/// The bytes of every file.
pub(crate) fn bytes_of(fs: &SimFs) -> Result<BTreeMap<String, Vec<u8>>> {
    let dir = Path::new(Folder::DIR);
    let read = |name: String| {
        let file = fs.open(&dir.join(&name))?;
        let mut bytes = vec![0; usize::try_from(file.len()?)?];
        file.read_exact_at(0, &mut bytes)?;
        Ok((name, bytes))
    };
    fs.list(dir)?.into_iter().map(read).collect()
}

/// The files without the log's old segments, which lie there to be used again and which the next opening deletes.
pub(crate) fn without_old_segments(mut files: BTreeMap<String, Vec<u8>>) -> Result<BTreeMap<String, Vec<u8>>> {
    let fs = copy(&files)?;
    stop(&fs, open(&fs, small_limits())?)?;
    let kept = fs.list(Path::new(Folder::DIR))?;
    files.retain(|name, _| !name.starts_with("wal-") || kept.contains(name));
    Ok(files)
}

/// A disk that holds these files.
pub(crate) fn copy(files: &BTreeMap<String, Vec<u8>>) -> Result<SimFs> {
    let fs = SimFs::new(2);
    let dir = Path::new(Folder::DIR);
    fs.create_dir_all(dir)?;
    for (name, bytes) in files {
        fs.create(&dir.join(name))?.write_at(0, bytes)?;
    }
    Ok(fs)
}

/// All that there is.
pub(crate) fn content(engine: &Engine) -> Result<Content> {
    let mut found = Content::new();
    for table in engine.list_tables()? {
        let name = table.to_string();
        let mut scanner = engine.scan(&table, Scan::all())?;
        while let Some(batch) = scanner.next_wait() {
            take_rows(&name, &batch?, &mut found);
        }
        found.insert(("tables".to_owned(), name.into_bytes()), Vec::new());
    }
    for snapshot in engine.list_snapshots()? {
        found.insert(("snapshots".to_owned(), snapshot.name.as_bytes().to_vec()), Vec::new());
    }
    Ok(found)
}

fn take_rows(table: &str, batch: &RowBatch, found: &mut Content) {
    for row in batch.rows() {
        let values = row.cells().map(|cell| cell.value.to_vec()).collect();
        found.insert((table.to_owned(), row.key().to_vec()), values);
    }
}
