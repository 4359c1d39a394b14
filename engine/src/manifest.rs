//! The manifest: a log of edits that says which tables, regions and files there
//! are, and from where the WAL is to be replayed.
//!
//! Byte map: `docs/formats/manifest.md`. An edit is on disk before anything acts
//! on it: a file is read only after the edit that names it, and deleted only
//! after the edit that removes it. Behind the last edit lies a mark, which says
//! that all before it is on disk: by it a damaged last edit is told from a torn
//! one. The next edit is written over it. When the log has grown large it is written
//! anew, aside, as the few edits that make the present state, and renamed over
//! the old one. Beside it lies a [copy], from which a repair puts it back.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::header::{HEADER_BYTES, Header};
use crate::io::{File, FileSystem, IoOp, publish};
use crate::record::{self, Step};

mod catalog;
mod copy;
mod edit;
mod edit_v1;
mod entry;
#[cfg(any(test, fuzzing))]
pub(crate) mod foreign;
#[cfg(test)]
mod tests;

pub(crate) use catalog::Catalog;
pub(crate) use copy::COPY;
pub(crate) use entry::{
    Edit, FileEntry, FilledRegion, Marks, NewRegion, RegionsEdit, SnapshotEntry, SnapshotRegion, TableEntry,
};

/// Its name in the folder.
pub(crate) const NAME: &str = "MANIFEST";
/// Its name until it is published.
pub(crate) const ASIDE: &str = "MANIFEST.tmp";
/// The names that a store's manifest and its copy have until they are published.
pub(crate) const ASIDES: [&str; 2] = [ASIDE, copy::ASIDE];
/// The newest version, which is written; an older one is written anew at once.
const VERSION: u32 = 5;
const HEADER: Header = Header {
    magic: b"BasltMAN",
    version_min: 1,
    version: VERSION,
    names: ["manifest length", "manifest magic", "manifest header checksum"],
};
/// The record type of a list of edits.
const EDITS: u8 = 2;
/// The record type of the mark.
const MARK: u8 = 3;
/// From a mark to its second copy: what damages the last edit and the mark behind it leaves that one alone.
const MARK_GAP_BYTES: usize = 4096;
/// Set in the file's number within checksums, so that a log record never fits here.
const FILE_NUMBER_TAG: u64 = 1 << 63;
/// The log is written anew when it is larger than this and than twice what it was when new.
const REWRITE_BYTES_MIN: u64 = 1 << 20;

/// The open manifest.
#[derive(Debug)]
pub(crate) struct Manifest {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    file: Arc<dyn File>,
    /// The same bytes once more; `None` where the disk had no room for them.
    copy: Option<Arc<dyn File>>,
    /// Counts the rewritings; bound into every checksum.
    generation: u64,
    /// All up to the last edit, which is on disk: the next record goes behind it, over the mark.
    bytes: Vec<u8>,
    /// How long the file was when it was written anew.
    fresh_bytes: u64,
    sequence: u64,
    catalog: Catalog,
}

impl Manifest {
    /// What a folder that must have one says where there is none.
    pub(crate) fn missing(dir: &Path) -> Error {
        Error::NoManifest { dir: dir.to_path_buf() }
    }

    /// Reads the manifest of `dir`; `None` when there is none.
    ///
    /// A torn last record is cut; nobody acted on it. The copy is written anew.
    ///
    /// # Errors
    /// `Corrupt` or `Version`; [`Error::NoManifest`] where there is its copy alone; any I/O error.
    pub(crate) fn open(fs: &Arc<dyn FileSystem>, dir: &Path) -> Result<Option<Manifest>> {
        let path = dir.join(NAME);
        let names = fs.list(dir).map_err(Error::io(IoOp::List, dir))?;
        let has = |wanted: &str| names.iter().any(|name| name == wanted);
        if !has(NAME) {
            // The copy was never there before it.
            return if has(COPY) { Err(Manifest::missing(dir)) } else { Ok(None) };
        }
        let Found { mut manifest, version, len } = Manifest::read(fs, dir, NAME)?;
        if has(COPY) {
            manifest.check_copy()?;
        }
        if version < VERSION {
            // Published whole: until then the old file is the manifest, and nothing was acted on.
            return Ok(Some(Manifest::write_anew(fs, dir, manifest.generation + 1, manifest.catalog)?));
        }
        if manifest.offset() != len {
            manifest.file.set_len(manifest.offset()).map_err(Error::io(IoOp::SetLen, &path))?;
        }
        // What was read may never have been synced; from here on it is acted upon. Written once more, since after a
        // failed sync the system takes bytes for written that are in its memory only.
        manifest.file.write_at(0, &manifest.bytes).map_err(Error::io(IoOp::Write, &path))?;
        fs.sync_dir(dir).map_err(Error::io(IoOp::SyncDir, dir))?;
        manifest.file.sync_data().map_err(Error::io(IoOp::SyncData, &path))?;
        manifest.copy_anew()?;
        manifest.mark();
        Ok(Some(manifest))
    }

    /// Reads the manifest or its copy, and changes nothing.
    fn read(fs: &Arc<dyn FileSystem>, dir: &Path, name: &str) -> Result<Found> {
        let path = dir.join(name);
        let file = fs.open_rw(&path).map_err(Error::io(IoOp::Open, &path))?;
        let len = file.len().map_err(Error::io(IoOp::Len, &path))?;
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
        file.read_exact_at(0, &mut bytes).map_err(Error::io(IoOp::Read, &path))?;
        let (generation, version) = check_header(&bytes, &path)?;
        let mut manifest = Manifest {
            fs: Arc::clone(fs),
            dir: dir.to_path_buf(),
            file,
            copy: None,
            generation,
            bytes: Vec::new(),
            fresh_bytes: 0,
            sequence: 0,
            catalog: Catalog::new(),
        };
        let end = manifest.replay(&bytes, &path, version)?;
        // A file may end within the zeros behind its last edit.
        bytes.resize(end, 0);
        manifest.bytes = bytes;
        Ok(Found { manifest, version, len })
    }

    /// Makes the manifest of an empty store.
    ///
    /// # Errors
    /// Any I/O error.
    pub(crate) fn create(fs: &Arc<dyn FileSystem>, dir: &Path) -> Result<Manifest> {
        Manifest::write_anew(fs, dir, 1, Catalog::new())
    }

    /// Makes the manifest of a store that begins with this, without a copy: the first open makes it.
    ///
    /// # Errors
    /// Any I/O error.
    pub(crate) fn create_of(fs: &Arc<dyn FileSystem>, dir: &Path, catalog: Catalog) -> Result<Manifest> {
        Manifest::write_aside(fs, dir, 1, catalog)?.published()
    }

    /// The present state.
    pub(crate) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Makes the edits durable, as one: then they hold, and the caller acts on them.
    ///
    /// # Errors
    /// Any I/O error; a full disk leaves the manifest as it was. `Corrupt` for an
    /// edit that does not fit, which is a bug.
    pub(crate) fn append(&mut self, edits: &[Edit]) -> Result<()> {
        let path = self.dir.join(NAME);
        let offset = self.offset();
        let mut catalog = self.catalog.clone();
        for edit in edits {
            catalog.apply(edit).map_err(|misfit| corrupt(&path, offset, misfit.what, 0, misfit.number))?;
        }
        if offset > REWRITE_BYTES_MIN.max(2 * self.fresh_bytes) {
            match Manifest::write_aside(&self.fs, &self.dir, self.generation + 1, catalog.clone()) {
                Ok(anew) => {
                    *self = anew.published()?;
                    return self.copy_anew();
                }
                // For the edits alone there may be, and it may be they that make room.
                Err(error) if error.is_want_of_room() => drop(self.fs.remove(&self.dir.join(ASIDE))),
                Err(error) => return Err(error),
            }
        }
        let record = encode_record(edits, self.generation, offset, self.sequence + 1);
        if let Err(source) = self.file.write_at(offset, &record) {
            // Gone for good before anyone acts on its failure: a record that lacks but its padding reads as whole. A
            // cut that fails is no full disk to be waited for: it leaves unknown what a restart would read.
            self.file.set_len(offset).map_err(undecided(IoOp::SetLen, &path))?;
            self.file.sync_data().map_err(Error::io(IoOp::SyncData, &path))?;
            self.mark();
            return Err(Error::io(IoOp::Write, &path)(source));
        }
        self.file.sync_data().map_err(Error::io(IoOp::SyncData, &path))?;
        self.bytes.extend_from_slice(&record);
        self.sequence += 1;
        self.catalog = catalog;
        self.copy_edit(offset)?;
        self.mark();
        Ok(())
    }

    /// Where the next record goes.
    fn offset(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Holds what the disk has of it, and of its copy where there is one, against what they are to have; answers the bytes of each.
    pub(crate) fn prove(&self) -> impl Iterator<Item = Result<u64>> {
        let names = [Some(NAME), self.copy.is_some().then_some(COPY)];
        names.into_iter().flatten().map(|name| self.prove_file(&self.dir.join(name)))
    }

    fn prove_file(&self, path: &Path) -> Result<u64> {
        let file = self.fs.open(path).map_err(Error::io(IoOp::Open, path))?;
        let mut bytes = vec![0; self.bytes.len()];
        file.read_exact_at(0, &mut bytes).map_err(Error::io(IoOp::Read, path))?;
        let differing = self.bytes.iter().zip(&bytes).zip(0..).find(|((kept, read), _)| kept != read);
        match differing {
            Some(((kept, read), offset)) => Err(corrupt(path, offset, "byte", (*kept).into(), (*read).into())),
            None => Ok(self.offset()),
        }
    }

    /// Says behind the last edit that it is on disk.
    ///
    /// Neither synced nor needed: a power loss may take it or tear it, and a disk without room may refuse it. Then a
    /// damaged last edit reads as a torn one, until the next edit.
    fn mark(&self) {
        let offset = self.offset();
        let mark = mark(self.generation, offset, self.sequence);
        for file in [Some(&self.file), self.copy.as_ref()].into_iter().flatten() {
            if let Err(error) = file.write_at(offset, &mark) {
                tracing::debug!(%error, "the manifest's last edit is unmarked");
            }
        }
    }

    fn write_anew(fs: &Arc<dyn FileSystem>, dir: &Path, generation: u64, catalog: Catalog) -> Result<Manifest> {
        let mut manifest = Manifest::write_aside(fs, dir, generation, catalog)?.published()?;
        manifest.copy_anew()?;
        Ok(manifest)
    }

    /// Writes one that is a manifest once it is [published](Manifest::published).
    fn write_aside(fs: &Arc<dyn FileSystem>, dir: &Path, generation: u64, catalog: Catalog) -> Result<Manifest> {
        let aside = dir.join(ASIDE);
        let mut bytes = header(generation);
        let record = encode_record(&catalog.as_edits(), generation, bytes.len() as u64, 1);
        bytes.extend_from_slice(&record);
        let file = fs.create(&aside).map_err(Error::io(IoOp::Create, &aside))?;
        let (fs, dir, fresh_bytes) = (Arc::clone(fs), dir.to_path_buf(), bytes.len() as u64);
        let manifest = Manifest { fs, dir, file, copy: None, generation, bytes, fresh_bytes, sequence: 1, catalog };
        manifest.file.write_at(0, &manifest.marked()).map_err(Error::io(IoOp::Write, &aside))?;
        Ok(manifest)
    }

    /// All bytes of a file of it, with the mark.
    fn marked(&self) -> Vec<u8> {
        [&*self.bytes, &*mark(self.generation, self.offset(), self.sequence)].concat()
    }

    /// Puts one that was written aside in the place of the manifest.
    fn published(self) -> Result<Manifest> {
        publish(&*self.fs, &*self.file, &self.dir.join(ASIDE), &self.dir.join(NAME))?;
        Ok(self)
    }

    /// Applies what the bytes of a file say; answers where its last edit ends.
    fn replay(&mut self, bytes: &[u8], path: &Path, version: u32) -> Result<usize> {
        let decode = |payload: &[u8], catalog: &Catalog| match version {
            1 => edit_v1::decode(payload, catalog),
            _ => edit::decode(payload),
        };
        let number = self.generation | FILE_NUMBER_TAG;
        let mut offset = HEADER_BYTES;
        let damage = loop {
            match record::read(bytes, number, offset) {
                // What lies behind it is an edit that was being written over it.
                Step::Record(found) if found.kind == MARK => break None,
                Step::Record(found) => {
                    let payload = Some(found.payload).filter(|_| found.kind == EDITS);
                    let edits = payload.and_then(|payload| decode(payload, &self.catalog));
                    let unreadable = || corrupt(path, offset as u64, "manifest edit", EDITS.into(), found.kind.into());
                    for edit in edits.ok_or_else(unreadable)? {
                        let misfits =
                            |misfit: catalog::Misfit| corrupt(path, offset as u64, misfit.what, 0, misfit.number);
                        self.catalog.apply(&edit).map_err(misfits)?;
                    }
                    if offset == HEADER_BYTES {
                        self.fresh_bytes = found.end as u64;
                    }
                    if found.sequence > record::SEQUENCE_MAX {
                        let (expected, found) = (record::SEQUENCE_MAX, found.sequence);
                        return Err(corrupt(path, offset as u64, "record sequence", expected, found));
                    }
                    self.sequence = found.sequence;
                    offset = found.end;
                }
                Step::End => break None,
                Step::Damaged(damage) => break Some(damage),
            }
        };
        let synced = record::known_synced(bytes, number, offset);
        // The first record was published with the file: it cannot be torn.
        if synced > offset as u64 || offset == HEADER_BYTES {
            let damage = damage.unwrap_or(record::Damage { what: "record header", expected: synced, found: 0 });
            return Err(corrupt(path, offset as u64, damage.what, damage.expected, damage.found));
        }
        if damage.is_some() {
            let torn = bytes.len() - offset;
            tracing::warn!(file = %path.display(), offset, bytes = torn, "cut a torn manifest tail");
        }
        Ok(offset)
    }
}

/// What was read of a file.
#[derive(Debug)]
struct Found {
    manifest: Manifest,
    version: u32,
    /// How long the file is.
    len: u64,
}

/// Every record before this one is on disk: that is what its header says.
fn encode_record(edits: &[Edit], generation: u64, offset: u64, sequence: u64) -> Vec<u8> {
    let mut record = Vec::new();
    record::begin(&mut record, EDITS);
    edit::encode_into(edits, &mut record);
    record::close(&mut record);
    record::stamp(&mut record, generation | FILE_NUMBER_TAG, offset, sequence, offset);
    record
}

/// Two records of no bytes, with zeros between, that say that all before the first is on disk.
fn mark(generation: u64, offset: u64, sequence: u64) -> Vec<u8> {
    let copy_at = |at: u64| record::mark(MARK, generation | FILE_NUMBER_TAG, at, sequence, offset);
    let mut mark = copy_at(offset);
    mark.resize(MARK_GAP_BYTES, 0);
    mark.extend_from_slice(&copy_at(offset + MARK_GAP_BYTES as u64));
    mark
}

fn header(generation: u64) -> Vec<u8> {
    HEADER.encode(0, generation)
}

/// Checks the header and answers the generation and the version.
fn check_header(bytes: &[u8], path: &Path) -> Result<(u64, u32)> {
    let (version, _, generation) = HEADER.check(bytes, path)?;
    // As with sequence numbers: a larger one is no writer's, and none may come behind the last.
    if generation >= record::SEQUENCE_MAX {
        return Err(corrupt(path, 16, "manifest generation", record::SEQUENCE_MAX - 1, generation));
    }
    Ok((generation, version))
}

/// A failure after which nobody knows what a restart would read: no want of room that is waited for.
fn undecided(op: IoOp, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let path = path.to_path_buf();
    move |source| Error::io(op, &path)(std::io::Error::other(source))
}

fn corrupt(file: &Path, offset: u64, what: &'static str, expected: u64, found: u64) -> Error {
    Error::Corrupt { file: file.to_path_buf(), offset, what, expected, found }
}
