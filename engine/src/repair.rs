//! What can be had of a damaged folder, and what cannot: dry unless told to write.
//!
//! | damaged | kept | lost |
//! |---|---|---|
//! | the log | every record that proves whole and reads, in order, as new segments | records that do not |
//! | an SSTable's block, also one whose checksum fits and whose cells do not | all other blocks, as a new file in its place | the cells of the block |
//! | an SSTable's bloom filter, or the summary of a row | every cell, as a new file | — |
//! | an SSTable's index, metadata or footer, or its length | blocks that prove whole, as a new file | what does not prove |
//! | an SSTable's header and footer both | nothing of the file | the file |
//! | a file that cannot be opened, or has another's name | the file, as it is | — |
//! | the manifest | — | not mended: nothing else knows what the files are |
//!
//! What the disk does not give is damaged as what does not fit.
//!
//! Originals stay beside, under their names and `.damaged`. A lost cell may have been a tombstone: what it masked is seen
//! again. A repair that is interrupted is begun anew: no original goes before what takes its place is there, of the log all of it.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use basalt_store::{CellRef, FamilyDescriptor, TableDescriptor, TableName};
use bytes::Bytes;

use crate::audit::{Folder, count};
use crate::backup::check_openable;
use crate::data_folder::open_file;
use crate::error::{Error, Result};
use crate::id::{FamilyId, FileId};
use crate::io::{IoOp, publish};
use crate::loss::Loss;
use crate::manifest::{Catalog, Edit, FileEntry, Manifest, Marks, SnapshotEntry};
use crate::mutation::LoggedBatch;
use crate::progress::Progress;
use crate::record::{self, Record, Step};
use crate::side_log::forget_all;
use crate::sstable::{Remains, Sstable, SstableOptions, SstableWriter};
use crate::wal::{LogPos, MARK, SEGMENT_HEADER_BYTES, SegmentId, header_id, segment_header, too_large};

/// A position in the log has four bytes for the place in a segment.
const SEGMENT_BYTES_MAX: usize = u32::MAX as usize;

/// What a disk does not give of a segment is found in pieces of so many bytes.
const PAGE_BYTES: usize = 4096;

/// What a repair found, and did if it was told to.
#[derive(Debug, Default)]
pub struct Repair {
    /// What is lost.
    pub losses: Vec<Loss>,
    /// What would be lost of that at which it ended early: nothing was done there.
    pub undone: Vec<Loss>,
    /// Files that could not be opened, or have another's name: they stay as they are.
    pub unopened: Vec<Loss>,
    /// What it does not mend: the folder is to be restored from a backup.
    pub unmended: Vec<Error>,
    /// Originals that were put aside.
    pub kept_aside: Vec<PathBuf>,
}

/// The log as far as it reads.
#[derive(Debug, Default)]
struct Salvaged {
    /// Closed records with their sequence numbers, ascending.
    records: Vec<(u64, Vec<u8>)>,
    segments: Vec<PathBuf>,
    /// Where the longest of them ends, as far as a record's place can be.
    segment_bytes_max: usize,
}

impl Folder {
    /// Finds all damage; with `fix`, puts what can be had in the place of what is damaged. What is found and done is added to `repair`, also
    /// before an error.
    ///
    /// Cost: reads every byte; the log's records in memory at once, at most what the log may be long, and a segment.
    ///
    /// # Errors
    /// With `fix`, [`Error::IsBackup`] and [`Error::Unfinished`]; [`Error::Version`] and [`Error::UnknownCodec`] for a file of a later
    /// program, of which nobody here can tell what is damaged; what kept it from reading or writing.
    pub fn repair(&self, fix: bool, repair: &mut Repair, tell: &mut dyn FnMut(Progress<'_>)) -> Result<()> {
        if fix {
            check_openable(&*self.fs, &self.dir)?;
        }
        let catalog = match self.catalog() {
            Ok(Some(catalog)) => catalog,
            Ok(None) => {
                repair.unmended.push(Manifest::missing(&self.dir));
                return Ok(());
            }
            Err(error @ Error::Corrupt { .. }) => {
                repair.unmended.push(error);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        self.repair_log(&catalog, fix, repair)?;
        self.repair_files(&catalog, fix, repair, tell)
    }

    fn repair_log(&self, catalog: &Catalog, fix: bool, repair: &mut Repair) -> Result<()> {
        let first = catalog.marks.log_start;
        let damage = match self.read_log(catalog, &mut |_, _| {}) {
            Ok(_) => return Ok(()),
            Err(error) if error.is_unreadable() => error,
            Err(error) => return Err(error),
        };
        let before = repair.losses.len();
        let mut salvaged = self.salvage_log(first, &mut repair.losses)?;
        if repair.losses.len() == before {
            // What is not there: nothing tells how much it was.
            repair.losses.push(Loss::of(damage, 0, 0));
        }
        if !fix {
            return Ok(());
        }
        let mut written = Vec::new();
        if let Err(error) = self.write_log(first, &mut salvaged, &mut written) {
            for segment in &written {
                drop(self.fs.remove(&segment.aside));
            }
            repair.undone = repair.losses.split_off(before);
            return Err(error);
        }
        // First: of a shorter log the numbers are given out again, after which nobody sees that a side log is from before.
        forget_all(&*self.fs, &self.dir)?;
        for segment in &salvaged.segments {
            self.keep_aside(segment, repair)?;
        }
        self.put_log(&written, &salvaged.segments)
    }

    /// Reads every record that proves whole, and notes what lies between.
    fn salvage_log(&self, first: SegmentId, losses: &mut Vec<Loss>) -> Result<Salvaged> {
        let names = self.fs.list(&self.dir).map_err(Error::io(IoOp::List, &self.dir))?;
        let mut ids: Vec<SegmentId> = names.iter().filter_map(|name| SegmentId::of_name(name)).collect();
        ids.retain(|id| *id >= first);
        ids.sort_unstable();
        let mut salvaged = Salvaged::default();
        let mut expected = first;
        for id in ids {
            if expected < id {
                self.check_absent(expected)?;
                losses.push(Loss::of(expected.missing(&self.dir), 0, 0));
            }
            expected = id.next();
            let path = id.path(&self.dir);
            let (bytes, unread) = self.read_segment(&path)?;
            if let Some(own) = header_id(&bytes, &path)?.filter(|own| *own != id) {
                return Err(Error::Misnamed { file: path, name: own.name().into() });
            }
            let len = bytes.len().next_multiple_of(record::ALIGN_BYTES).min(SEGMENT_BYTES_MAX);
            salvaged.segment_bytes_max = salvaged.segment_bytes_max.max(len);
            let before = losses.len();
            salvage_segment(&bytes, id, &path, &mut salvaged, losses);
            for (page, cause) in unread {
                let meets =
                    |loss: &&mut Loss| loss.offset < page.end as u64 && page.start as u64 <= loss.offset + loss.bytes;
                if let Some(loss) = losses.iter_mut().skip(before).find(meets) {
                    loss.damage = cause;
                }
            }
            salvaged.segments.push(path);
        }
        self.check_absent(expected)?;
        Ok(salvaged)
    }

    /// Refuses a segment that is not listed and has its name taken, as by a folder: no file could be put there.
    fn check_absent(&self, id: SegmentId) -> Result<()> {
        let path = id.path(&self.dir);
        match self.fs.open(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(Error::io(IoOp::Open, &path)(source)),
            _ => Ok(()),
        }
    }

    /// Writes segments of the salvaged records aside, all of them before any original goes: a disk that has no room for them is told as it
    /// was. Each is filled, up to the length of the longest of the originals: so it holds at least what the one in whose place it comes does,
    /// and an interruption costs nothing. `written` gets them, also the one that is not whole.
    fn write_log(&self, first: SegmentId, salvaged: &mut Salvaged, written: &mut Vec<NewSegment>) -> Result<()> {
        let (mut id, mut synced) = (first, LogPos::new(first, SEGMENT_HEADER_BYTES));
        let mut records = salvaged.records.iter_mut().peekable();
        loop {
            let mut bytes = segment_header(id);
            while let Some((sequence, record)) = records.next_if(|(_, record)| {
                bytes.len() as u64 == SEGMENT_HEADER_BYTES || bytes.len() + record.len() <= salvaged.segment_bytes_max
            }) {
                record::stamp(record, id.0.into(), bytes.len() as u64, *sequence, synced.0);
                bytes.extend_from_slice(record);
                synced = LogPos::new(id, bytes.len() as u64);
            }
            let target = id.path(&self.dir);
            let aside = target.with_extension("tmp");
            let file = self.fs.create(&aside).map_err(Error::io(IoOp::Create, &aside))?;
            written.push(NewSegment { aside: aside.clone(), target });
            file.write_at(0, &bytes).map_err(Error::io(IoOp::Write, &aside))?;
            file.sync_data().map_err(Error::io(IoOp::SyncData, &aside))?;
            if records.peek().is_none() {
                return Ok(());
            }
            id = id.next();
        }
    }

    /// Puts the new segments in the place of the originals, first ones first.
    fn put_log(&self, written: &[NewSegment], originals: &[PathBuf]) -> Result<()> {
        for NewSegment { aside, target } in written {
            let file = self.fs.open(aside).map_err(Error::io(IoOp::Open, aside))?;
            publish(&*self.fs, &*file, aside, target)?;
        }
        // Last first: with a gap between segments the log would not read.
        for segment in originals.iter().rev().filter(|original| !written.iter().any(|new| new.target == **original)) {
            self.fs.remove(segment).map_err(Error::io(IoOp::Remove, segment))?;
            self.fs.sync_dir(&self.dir).map_err(Error::io(IoOp::SyncDir, &self.dir))?;
        }
        Ok(())
    }

    fn repair_files(
        &self,
        catalog: &Catalog,
        fix: bool,
        repair: &mut Repair,
        tell: &mut dyn FnMut(Progress<'_>),
    ) -> Result<()> {
        let files = catalog.all_files();
        let bytes_total = files.values().map(|file| file.bytes).sum();
        let mut bytes_done = 0;
        for file in files.values() {
            let path = file.id.path(&self.dir);
            self.repair_file(catalog, file, fix, repair)?;
            bytes_done += file.bytes;
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            tell(Progress { file: name, bytes_done, bytes_total });
        }
        Ok(())
    }

    /// Looks for damage of a file, and with `fix` puts what can be had in its place.
    fn repair_file(&self, catalog: &Catalog, file: &FileEntry, fix: bool, repair: &mut Repair) -> Result<()> {
        let Some((left, damage)) = self.look_at(catalog, file)? else { return Ok(()) };
        if matches!(left, Left::Unopened) {
            repair.unopened.push(Loss { table: catalog.table(file.family), ..Loss::of(damage, 0, file.bytes) });
            return Ok(());
        }
        let is_to_fill = fix && !matches!(left, Left::Nothing);
        let id = self.next_file(catalog)?;
        let salvaged = self.salvage_file(catalog, file, (left, damage), is_to_fill.then_some(id));
        if salvaged.is_err() && is_to_fill {
            // Nothing of the file is done: what it would lose is told, and what was written of it fills no disk.
            drop(self.fs.remove(&aside_path(&self.dir, id)));
            let mut told = Repair::default();
            drop(self.repair_file(catalog, file, false, &mut told));
            repair.undone = told.losses;
        }
        let (mut losses, entry) = salvaged?;
        repair.losses.append(&mut losses);
        if fix { self.replace(file, entry, repair) } else { Ok(()) }
    }

    /// What is lost of a damaged file, and with an `id` the file of that id with all that is not, if that is anything.
    fn salvage_file(
        &self,
        catalog: &Catalog,
        file: &FileEntry,
        (left, damage): (Left, Error),
        id: Option<FileId>,
    ) -> Result<(Vec<Loss>, Option<FileEntry>)> {
        let mut new = id.map(|id| self.begin_file(catalog, file, id)).transpose()?.flatten();
        let mut cells_count = 0;
        let mut take = |cell: &CellRef<'_>| {
            cells_count += 1;
            // Whose cells they are the manifest says, not the damaged file.
            new.as_mut().map_or(Ok(()), |new| new.writer.push(&CellRef { family: &new.family, ..*cell }))
        };
        let mut losses = match left {
            Left::Table(table) => table.salvage(&mut take)?,
            Left::Frames(remains) => remains.salvage(&mut take)?,
            Left::Unopened | Left::Nothing => Vec::new(),
        };
        if cells_count == 0 && losses.iter().all(|loss| loss.cells_count.is_none()) {
            losses = vec![Loss::of(damage, 0, file.bytes)];
        } else if losses.is_empty() {
            // Not a cell is lost: what does not fit is what the file tells of them.
            losses.push(Loss { cells_count: Some(0), ..Loss::of(damage, 0, 0) });
        }
        for loss in &mut losses {
            loss.table = catalog.table(file.family);
        }
        let entry = new.map(|new| self.finish_file(file, new)).transpose()?.flatten();
        Ok((losses, entry))
    }

    /// What is left of a file, and what is wrong with it; `None` where nothing is.
    fn look_at(&self, catalog: &Catalog, file: &FileEntry) -> Result<Option<(Left, Error)>> {
        let damage = match open_file(&*self.fs, &self.dir, file, &self.codecs, &self.cache) {
            Ok(table) => match table.verify() {
                Ok(()) => return Ok(None),
                Err(damage) if damage.is_unreadable() => return Ok(Some((Left::Table(table), damage))),
                Err(error) => return Err(error),
            },
            Err(damage) => damage,
        };
        if let Some(misnamed) = self.misnamed(file) {
            return Ok(Some((Left::Unopened, misnamed)));
        }
        let is_version = matches!(damage, Error::Version { .. });
        let left = match &damage {
            Error::Io { op: IoOp::Open | IoOp::Len, .. } => Left::Unopened,
            Error::Missing { .. } => Left::Nothing,
            // A version may be damage too, where the file's end says another one.
            error if error.is_unreadable() || is_version => match self.remains(catalog, file)? {
                Some(remains) => Left::Frames(remains),
                None if is_version => return Err(damage),
                None => Left::Nothing,
            },
            _ => return Err(damage),
        };
        Ok(Some((left, damage)))
    }

    /// What a file is by its own header, if that is another than its name says: nothing of it would prove under this name.
    fn misnamed(&self, file: &FileEntry) -> Option<Error> {
        let path = file.id.path(&self.dir);
        let opened = self.fs.open(&path).ok()?;
        let own = Sstable::own_id(&*opened, &path, file.id).filter(|own| *own != file.id)?;
        let name = own.path(Path::new("")).display().to_string().into();
        Some(Error::Misnamed { file: path, name })
    }

    /// The frames of a file that does not open.
    fn remains(&self, catalog: &Catalog, file: &FileEntry) -> Result<Option<Remains>> {
        let path = file.id.path(&self.dir);
        let opened = self.fs.open(&path).map_err(Error::io(IoOp::Open, &path))?;
        Remains::find(opened, &path, (file.id, file.bytes), catalog.family(file.family), &self.codecs)
    }

    /// Publishes a file; `None` where it has no cell.
    fn finish_file(&self, file: &FileEntry, new: NewFile) -> Result<Option<FileEntry>> {
        if new.writer.cells_count() == 0 {
            self.fs.remove(&new.aside).map_err(Error::io(IoOp::Remove, &new.aside))?;
            return Ok(None);
        }
        let bytes = new.writer.finish()?;
        publish(&*self.fs, &*new.file, &new.aside, &new.id.path(&self.dir))?;
        Ok(Some(FileEntry { id: new.id, family: file.family, bytes }))
    }

    /// An id that no file has had.
    fn next_file(&self, catalog: &Catalog) -> Result<FileId> {
        let names = self.fs.list(&self.dir).map_err(Error::io(IoOp::List, &self.dir))?;
        let used = names.iter().filter_map(|name| FileId::of_name(name)).map(|id| id.0 + 1).max();
        Ok(FileId(catalog.marks.next_file.max(used.unwrap_or(0))))
    }

    /// Begins a file in the place of another; `None` when no family knows it.
    fn begin_file(&self, catalog: &Catalog, file: &FileEntry, id: FileId) -> Result<Option<NewFile>> {
        let Some(family) = catalog.family(file.family) else { return Ok(None) };
        let aside = aside_path(&self.dir, id);
        let opened = self.fs.create(&aside).map_err(Error::io(IoOp::Create, &aside))?;
        let options = SstableOptions::of_family(id, family, &self.codecs);
        let writer = SstableWriter::create(Arc::clone(&opened), &aside, options)?;
        Ok(Some(NewFile { id, aside, file: opened, family: family.name.clone(), writer }))
    }

    /// Names a file, or none, in the place of another wherever that is named, and puts the original aside.
    fn replace(&self, file: &FileEntry, by: Option<FileEntry>, repair: &mut Repair) -> Result<()> {
        let path = file.id.path(&self.dir);
        // First: a row that was deleted may be seen again, under its old number.
        forget_all(&*self.fs, &self.dir)?;
        self.keep_aside(&path, repair)?;
        let opened = Manifest::open(&self.fs, &self.dir)?;
        let Some(mut manifest) = opened else { return Ok(()) };
        let edits = manifest.catalog().replacing(file.id, by);
        manifest.append(&edits)?;
        match self.fs.remove(&path) {
            Err(source) if source.kind() == std::io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(Error::io(IoOp::Remove, &path)),
        }
    }

    /// Gives a file another name, under which nothing reads or deletes it.
    fn keep_aside(&self, path: &Path, repair: &mut Repair) -> Result<()> {
        let names = self.fs.list(&self.dir).map_err(Error::io(IoOp::List, &self.dir))?;
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if !names.iter().any(|there| there == name) {
            return Ok(());
        }
        let free = (1_u32..).map(|number| match number {
            1 => format!("{name}.damaged"),
            number => format!("{name}.damaged-{number}"),
        });
        let Some(free) = free.into_iter().find(|free| !names.contains(free)) else { return Ok(()) };
        let aside = self.dir.join(free);
        self.fs.link(path, &aside).map_err(Error::io(IoOp::Create, &aside))?;
        self.fs.sync_dir(&self.dir).map_err(Error::io(IoOp::SyncDir, &self.dir))?;
        repair.kept_aside.push(aside);
        Ok(())
    }

    /// A segment. Where the disk does not give its bytes there are some that no record has, told with why.
    fn read_segment(&self, path: &Path) -> Result<(Vec<u8>, Vec<Unread>)> {
        let file = self.fs.open(path).map_err(Error::io(IoOp::Open, path))?;
        let len = file.len().map_err(Error::io(IoOp::Len, path))?;
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
        let mut unread = Vec::new();
        if file.read_exact_at(0, &mut bytes).is_err() {
            for (page, place) in bytes.chunks_mut(PAGE_BYTES).zip((0..).step_by(PAGE_BYTES)) {
                if let Err(source) = file.read_exact_at(place as u64, page) {
                    page.fill(0xff);
                    unread.push((place..place + page.len(), Error::io(IoOp::Read, path)(source)));
                }
            }
        }
        Ok((bytes, unread))
    }
}

/// Bytes of a segment that the disk does not give, and why.
type Unread = (Range<usize>, Error);

/// What a damaged file is read by.
enum Left {
    /// It opens.
    Table(Sstable),
    /// It does not, and has frames.
    Frames(Remains),
    Unopened,
    Nothing,
}

/// A segment that was written to take the place of one that is damaged, or behind such.
struct NewSegment {
    aside: PathBuf,
    target: PathBuf,
}

/// A file that is being written in the place of a damaged one.
struct NewFile {
    id: FileId,
    aside: PathBuf,
    file: Arc<dyn crate::io::File>,
    family: Bytes,
    writer: SstableWriter,
}

impl Catalog {
    /// The settings of a family, of a table or of a snapshot.
    fn family(&self, id: FamilyId) -> Option<&FamilyDescriptor> {
        self.table_and_family(id).map(|(_, family)| family)
    }

    /// The table of a family; of a snapshot the one that it was made of.
    fn table(&self, id: FamilyId) -> Option<TableName> {
        self.table_and_family(id).map(|(table, _)| table.name.clone())
    }

    fn table_and_family(&self, id: FamilyId) -> Option<(&TableDescriptor, &FamilyDescriptor)> {
        let tables = self.tables.values().map(|table| (&table.families, &table.descriptor));
        let snapshots = self.snapshots.values().map(|snapshot| (&snapshot.families, &snapshot.descriptor));
        tables.chain(snapshots).find_map(|(ids, table)| {
            let index = ids.iter().position(|known| *known == id)?;
            Some((table, table.families.get(index)?))
        })
    }

    /// Edits by which all that names a file names another one, or none.
    fn replacing(&self, id: FileId, by: Option<FileEntry>) -> Vec<Edit> {
        let new_of = |old: &FileEntry| by.map(|new| FileEntry { family: old.family, ..new });
        // First: a region moves the mark of files given so far, a snapshot is refused beyond it.
        let mark = by.map(|new| Edit::Marks(Marks { next_file: new.id.0 + 1, ..self.marks }));
        let mut edits: Vec<Edit> = mark.into_iter().collect();
        for (region, entry) in &self.regions {
            let Some(old) = entry.files.iter().find(|file| file.id == id) else { continue };
            let added = new_of(old).into_iter().collect();
            edits.push(Edit::Files { region: *region, flushed: 0, removed: vec![id], added });
        }
        for snapshot in self.snapshots.values() {
            if snapshot.files().iter().all(|file| file.id != id) {
                continue;
            }
            let mut changed = SnapshotEntry::clone(snapshot);
            for region in &mut changed.regions {
                let files = std::mem::take(&mut region.files);
                let kept = files.into_iter().filter_map(|file| if file.id == id { new_of(&file) } else { Some(file) });
                region.files = kept.collect();
            }
            edits.push(Edit::DropSnapshot { name: snapshot.name.clone() });
            edits.push(Edit::Snapshot(changed));
        }
        edits
    }
}

/// Where a file is written until it is published.
fn aside_path(dir: &Path, id: FileId) -> PathBuf {
    id.path(dir).with_extension("tmp")
}

/// Takes the records of a segment that prove whole and read.
fn salvage_segment(bytes: &[u8], id: SegmentId, path: &Path, salvaged: &mut Salvaged, losses: &mut Vec<Loss>) {
    let number = u64::from(id.0);
    let mut offset = usize::try_from(SEGMENT_HEADER_BYTES).unwrap_or(usize::MAX);
    let mut last = salvaged.records.last().map_or(0, |(sequence, _)| *sequence);
    loop {
        let damage = match record::read(bytes, number, offset) {
            Step::Record(found) if found.kind == MARK => {
                offset = found.end;
                continue;
            }
            Step::Record(found) => {
                if count(&found).is_none() {
                    let (at, lost_bytes) = (offset as u64, (found.end - offset) as u64);
                    losses.push(Loss::of(LoggedBatch::unreadable(path, at, found.kind), at, lost_bytes));
                } else if found.sequence > record::SEQUENCE_MAX {
                    let lost_bytes = (found.end - offset) as u64;
                    losses.push(Loss::of(too_large(path, offset, found.sequence), offset as u64, lost_bytes));
                } else if found.sequence > last {
                    // One that was salvaged before an interruption comes again.
                    let record = bytes.get(offset..found.end.min(bytes.len())).unwrap_or_default().to_vec();
                    last = found.sequence;
                    salvaged.records.push((last, padded(record)));
                }
                offset = found.end;
                continue;
            }
            Step::End => None,
            Step::Damaged(damage) => Some(damage),
        };
        let next = next_record(bytes, number, offset);
        let end = next.map_or(bytes.len(), |(next, _)| next);
        let written = bytes.get(offset..end).unwrap_or_default().iter().rposition(|byte| *byte != 0);
        // A mark that does not know of more is behind what was not written over, in a segment that is used again.
        let here = LogPos::new(id, offset as u64).0;
        let is_gap = next.is_some_and(|(_, found)| found.kind != MARK || found.synced > here);
        if let Some(written) = written.filter(|_| damage.is_some() || is_gap) {
            let damage = damage.unwrap_or(record::Damage { what: "record header", expected: 1, found: 0 });
            let record::Damage { what, expected, found } = damage;
            let damage = Error::Corrupt { file: path.to_path_buf(), offset: offset as u64, what, expected, found };
            let lost_bytes = next.map_or(written + 1, |(next, _)| next - offset);
            losses.push(Loss::of(damage, offset as u64, lost_bytes as u64));
        }
        match next {
            Some((next, _)) => offset = next,
            None => return,
        }
    }
}

/// A record that ends within its padding, filled up.
fn padded(mut record: Vec<u8>) -> Vec<u8> {
    record.resize(record.len().next_multiple_of(record::ALIGN_BYTES), 0);
    record
}

/// The first place behind `offset` where a record proves whole: where a damaged one ends is found by trying.
fn next_record(bytes: &[u8], number: u64, offset: usize) -> Option<(usize, Record<'_>)> {
    let from = offset.next_multiple_of(record::ALIGN_BYTES);
    (from..bytes.len()).step_by(record::ALIGN_BYTES).skip_while(|at| *at <= offset).find_map(|at| {
        match record::read(bytes, number, at) {
            Step::Record(found) => Some((at, found)),
            Step::End | Step::Damaged(_) => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a segment that is used again and has a mark only, what lies between is of the segment before.
    #[test]
    fn what_the_mark_behind_it_does_not_know_of_is_no_loss() {
        let check = |synced: LogPos, losses_count| {
            let mut bytes = vec![0; 8192];
            bytes[64..4096].fill(7);
            let mark = record::mark(MARK, 2, 4096, 9, synced.0);
            bytes[4096..4096 + mark.len()].copy_from_slice(&mark);
            let (mut salvaged, mut losses) = (Salvaged::default(), Vec::new());
            salvage_segment(&bytes, SegmentId(2), Path::new("2.wal"), &mut salvaged, &mut losses);
            assert_eq!(losses.len(), losses_count, "{losses:?}");
        };
        check(LogPos::new(SegmentId(1), 500), 0);
        check(LogPos::new(SegmentId(2), 4096), 1);
    }
}
