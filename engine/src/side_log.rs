//! Logs beside the tables, for what others derive from rows: what is in them can be lost, never be wrong.
//!
//! Byte map: `docs/formats/series-index.md`. A log is a file of records as the WAL's ([`record`]), each with the number of the
//! last change that it holds for. A record is on disk before it counts. Where one does not read, the log ends.
//!
//! Rows put back by a snapshot have old numbers, and those of a table that is emptied or dropped leave none: by numbers nobody sees
//! either. So every log goes with such a change but those of other tables, and whoever has one open learns it by the epoch.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use basalt_store::{SeqNo, SideLog, TableName};

use crate::error::{Error, Result};
use crate::header::{HEADER_BYTES, Header};
use crate::io::{File, FileSystem, IoOp, publish};
use crate::record::{self, Step};

const HEADER: Header = Header {
    magic: b"BasltSID",
    version_min: 1,
    version: 1,
    names: ["side log length", "side log magic", "side log header checksum"],
};
/// The record type of a payload.
const PAYLOAD: u8 = 1;
/// The file's number within checksums, so that no record of another log fits here.
const FILE_NUMBER: u64 = 1 << 62;
const PREFIX: &str = "side-";
const SUFFIX: &str = ".log";

/// The logs of a data folder.
#[derive(Debug)]
pub(crate) struct SideLogs {
    around: Arc<Around>,
    /// Guards which logs are open. Rank: above each log's own lock.
    open: Mutex<BTreeMap<Box<str>, Arc<SideFile>>>,
}

/// What all of them share.
#[derive(Debug)]
struct Around {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    /// The last record of the WAL that is on disk.
    logged: Arc<AtomicU64>,
    /// A change is under way that numbers do not tell of: nothing is written. Set with all logs' locks held, read with one.
    changes: AtomicBool,
}

/// One log.
#[derive(Debug)]
struct SideFile {
    around: Arc<Around>,
    path: PathBuf,
    /// Guards the file; held over its I/O. Leaf lock.
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    epoch: u64,
    file: Held,
    /// Whose rows it is of; `None` for any.
    tables: Option<Vec<TableName>>,
}

/// How far the file is known.
#[derive(Debug)]
enum Held {
    /// Not read yet, absent, or left in an unknown state by a failure: nothing can be added.
    Unknown,
    /// It ends there, and all before is on disk.
    Open { file: Arc<dyn File>, end: u64 },
    /// The engine is closed.
    Closed,
}

/// A log's file, read.
struct Loaded {
    file: Arc<dyn File>,
    bytes: Vec<u8>,
}

impl SideLogs {
    /// The logs of `dir`; `logged` is kept by the WAL.
    pub(crate) fn new(fs: Arc<dyn FileSystem>, dir: &Path, logged: Arc<AtomicU64>) -> SideLogs {
        SideLogs {
            around: Arc::new(Around { fs, dir: dir.to_path_buf(), logged, changes: AtomicBool::new(false) }),
            open: Mutex::default(),
        }
    }

    /// The log of a name.
    pub(crate) fn get(&self, name: &str) -> Arc<dyn SideLog> {
        let new = || {
            let (around, path) = (Arc::clone(&self.around), self.around.dir.join(format!("{PREFIX}{name}{SUFFIX}")));
            let state = Mutex::new(State { epoch: 0, file: Held::Unknown, tables: None });
            Arc::new(SideFile { around, path, state })
        };
        Arc::clone(self.open().entry(name.into()).or_insert_with(new)) as Arc<dyn SideLog>
    }

    /// Makes a change of a table that numbers do not tell of, and deletes all logs before it but those that are of others. None is
    /// written until it is made, as it would be of the rows before. One change at a time.
    ///
    /// # Errors
    /// Any I/O error; the change is not made then. Those of the change.
    pub(crate) fn forgotten<T>(&self, table: &TableName, change: impl FnOnce() -> Result<T>) -> Result<T> {
        self.at_all(table, true, |kept| forget_but(&*self.around.fs, &self.around.dir, kept))?;
        let changed = change();
        self.at_all(table, false, |_| Ok(())).and(changed)
    }

    /// Raises the epoch of all logs that may be of a table after `work`, while which none is written and which is given the others,
    /// and says whether a change is under way.
    fn at_all(&self, table: &TableName, changes: bool, work: impl FnOnce(&[&Path]) -> Result<()>) -> Result<()> {
        let open = self.open();
        let held = open.values().map(|log| (&*log.path, log.lock()));
        let (others, mut of_table): (Vec<_>, Vec<_>) = held.partition(|(_, state)| state.is_of_others(table));
        work(&others.iter().map(|(path, _)| *path).collect::<Vec<_>>())?;
        self.around.changes.store(changes, Ordering::Relaxed);
        for (_, state) in &mut of_table {
            state.epoch += 1;
            state.file = Held::Unknown;
        }
        Ok(())
    }

    /// Lets nothing more be written.
    pub(crate) fn close(&self) {
        for log in self.open().values() {
            log.lock().file = Held::Closed;
        }
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<Box<str>, Arc<SideFile>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a file of this name is such a log.
pub(crate) fn is_name(name: &str) -> bool {
    name.starts_with(PREFIX) && name.ends_with(SUFFIX)
}

/// Deletes the logs of a folder, for good.
///
/// # Errors
/// Any I/O error.
pub(crate) fn forget_all(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    forget_but(fs, dir, &[])
}

fn forget_but(fs: &dyn FileSystem, dir: &Path, kept: &[&Path]) -> Result<()> {
    let names = fs.list(dir).map_err(Error::io(IoOp::List, dir))?;
    let logs = names.iter().filter(|name| is_name(name)).map(|name| dir.join(name));
    let mut logs = logs.filter(|path| !kept.contains(&&**path)).peekable();
    if logs.peek().is_none() {
        return Ok(());
    }
    for path in logs {
        fs.remove(&path).map_err(Error::io(IoOp::Remove, &path))?;
    }
    fs.sync_dir(dir).map_err(Error::io(IoOp::SyncDir, dir))
}

impl SideFile {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file and its bytes, if there is one.
    fn load(&self) -> Result<Option<Loaded>> {
        let file = match self.around.fs.open_rw(&self.path) {
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(Error::io(IoOp::Open, &self.path))?,
        };
        let len = file.len().map_err(Error::io(IoOp::Len, &self.path))?;
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
        file.read_exact_at(0, &mut bytes).map_err(Error::io(IoOp::Read, &self.path))?;
        Ok(Some(Loaded { file, bytes }))
    }

    fn read_all(&self, state: &mut State, visit: &mut dyn FnMut(SeqNo, &[u8]) -> bool) -> Result<bool> {
        state.check_open()?;
        state.file = Held::Unknown;
        let Some(Loaded { file, bytes }) = self.load()? else { return Ok(false) };
        // Of any other version nothing is read.
        if !bytes.starts_with(&HEADER.encode(0, 0)) {
            return Ok(true);
        }
        let (whole, mut offset) = (bytes.len(), HEADER_BYTES);
        while let Step::Record(record) = record::read(&bytes, FILE_NUMBER, offset) {
            if record.kind != PAYLOAD || !visit(SeqNo(record.sequence), record.payload) {
                break;
            }
            assert!(record.end > offset, "BUG: a record of no bytes");
            offset = record.end;
        }
        let (end, has_more) = (offset.min(whole) as u64, offset < whole);
        if has_more {
            file.set_len(end).map_err(Error::io(IoOp::SetLen, &self.path))?;
            file.sync_data().map_err(Error::io(IoOp::SyncData, &self.path))?;
        }
        state.file = Held::Open { file, end: end.next_multiple_of(record::ALIGN_BYTES as u64) };
        Ok(has_more)
    }

    fn add(&self, state: &mut State, upto: SeqNo, payload: &[u8]) -> Result<bool> {
        // Unknown until it is on disk: what a failure leaves is told at the next start alone.
        let (file, end) = match std::mem::replace(&mut state.file, Held::Unknown) {
            Held::Open { file, end } => (file, end),
            Held::Unknown => return Ok(false),
            Held::Closed => {
                state.file = Held::Closed;
                return Err(Error::Closed);
            }
        };
        let record = record_of(end, upto, payload);
        file.write_at(end, &record).map_err(Error::io(IoOp::Write, &self.path))?;
        file.sync_data().map_err(Error::io(IoOp::SyncData, &self.path))?;
        state.file = Held::Open { file, end: end + record.len() as u64 };
        Ok(true)
    }

    fn put_anew(&self, state: &mut State, upto: SeqNo, payloads: &mut dyn Iterator<Item = Vec<u8>>) -> Result<()> {
        state.check_open()?;
        state.file = Held::Unknown;
        let aside = self.path.with_extension("tmp");
        let fs = &*self.around.fs;
        let file = fs.create(&aside).map_err(Error::io(IoOp::Create, &aside))?;
        let write = || {
            let mut end = HEADER_BYTES as u64;
            file.write_at(0, &HEADER.encode(0, 0))?;
            for payload in payloads {
                let record = record_of(end, upto, &payload);
                file.write_at(end, &record)?;
                end += record.len() as u64;
            }
            Ok(end)
        };
        match write() {
            Ok(end) => {
                publish(fs, &*file, &aside, &self.path)?;
                state.file = Held::Open { file, end };
                Ok(())
            }
            Err(cause) => {
                // Space is needed more than the name.
                drop(fs.remove(&aside));
                Err(Error::io(IoOp::Write, &aside)(cause))
            }
        }
    }
}

impl State {
    fn is_of_others(&self, table: &TableName) -> bool {
        self.tables.as_ref().is_some_and(|tables| !tables.contains(table))
    }

    const fn check_open(&self) -> Result<()> {
        match self.file {
            Held::Closed => Err(Error::Closed),
            Held::Unknown | Held::Open { .. } => Ok(()),
        }
    }
}

impl SideLog for SideFile {
    fn is_of(&self, tables: &[&TableName]) {
        self.lock().tables = Some(tables.iter().copied().cloned().collect());
    }

    fn epoch(&self) -> u64 {
        self.lock().epoch
    }

    fn synced(&self) -> SeqNo {
        SeqNo(self.around.logged.load(Ordering::Acquire))
    }

    fn read(&self, visit: &mut dyn FnMut(SeqNo, &[u8]) -> bool) -> basalt_store::Result<bool> {
        Ok(self.read_all(&mut self.lock(), visit)?)
    }

    fn append(&self, epoch: u64, upto: SeqNo, payload: &[u8]) -> basalt_store::Result<bool> {
        let mut state = self.lock();
        if state.epoch != epoch || self.around.changes.load(Ordering::Relaxed) {
            return Ok(false);
        }
        Ok(self.add(&mut state, upto, payload)?)
    }

    fn replace(
        &self,
        epoch: u64,
        upto: SeqNo,
        payloads: &mut dyn Iterator<Item = Vec<u8>>,
    ) -> basalt_store::Result<bool> {
        let mut state = self.lock();
        if state.epoch != epoch || self.around.changes.load(Ordering::Relaxed) {
            return Ok(false);
        }
        self.put_anew(&mut state, upto, payloads)?;
        Ok(true)
    }
}

fn record_of(offset: u64, upto: SeqNo, payload: &[u8]) -> Vec<u8> {
    let mut record = Vec::with_capacity(record::HEADER_BYTES + payload.len() + record::ALIGN_BYTES);
    record::begin(&mut record, PAYLOAD);
    record.extend_from_slice(payload);
    record::close(&mut record);
    record::stamp(&mut record, FILE_NUMBER, offset, upto.0, 0);
    record
}
