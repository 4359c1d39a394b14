//! A closed data folder, read whole and proved, file by file; and what its files hold. Nothing is changed.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use basalt_store::TableName;
use bytes::Bytes;

use crate::backup::check_finished;
use crate::data_folder::{lock_dir, open_file};
use crate::error::{Error, Result};
use crate::id::{FamilyId, FileId};
use crate::io::{DryFs, FileLock, FileSystem, IoOp};
use crate::manifest::{self, Catalog, FileEntry, Manifest};
use crate::mutation::LoggedBatch;
use crate::options::EngineOptions;
use crate::progress::Progress;
use crate::record::Record;
use crate::sstable::{BlockCache, BlockCodecs};
use crate::wal::replay;

/// What a file of a data folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Which tables and files there are; its copy too.
    Manifest,
    /// All segments of the log together, by the name of the first.
    Log,
    /// Cells of one column family.
    Sstable,
    /// A file that nothing names: the next start deletes it.
    Unnamed,
}

/// A file, proved or damaged.
#[derive(Debug)]
pub struct AuditedFile {
    /// Its name in the folder.
    pub name: String,
    /// What it is.
    pub kind: FileKind,
    /// Its bytes.
    pub bytes: u64,
    /// Records of a log, rows of an SSTable.
    pub rows_count: u64,
    /// Cells.
    pub cells_count: u64,
    /// Data blocks of an SSTable.
    pub blocks_count: u64,
    /// Whose it is; empty for manifest, log and unnamed files.
    pub owners: Vec<Owner>,
    /// What is wrong with it, with file and offset.
    pub damage: Option<Error>,
}

/// A region or snapshot that names a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The table.
    pub table: TableName,
    /// The column family's name.
    pub family: Bytes,
    /// The snapshot, if it is one that names it.
    pub snapshot: Option<Box<str>>,
    /// The first key of the region.
    pub start: Bytes,
    /// The key after its last; empty for the table's end.
    pub end: Bytes,
}

/// A data folder that nobody else has open, or that nobody can change.
#[derive(Debug)]
pub struct Folder {
    pub(crate) dir: PathBuf,
    pub(crate) fs: Arc<dyn FileSystem>,
    pub(crate) codecs: BlockCodecs,
    pub(crate) cache: Arc<BlockCache>,
    _lock: Option<Box<dyn FileLock>>,
}

impl Folder {
    /// Takes the folder's lock and reads nothing yet. A folder that is mounted to be read only needs no lock file.
    ///
    /// # Errors
    /// [`Error::Locked`]; any I/O error.
    pub fn open(options: EngineOptions) -> Result<Folder> {
        let lock = match lock_dir(&*options.fs, &options.dir) {
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::ReadOnlyFilesystem => None,
            taken => Some(taken?),
        };
        let cache = Arc::new(BlockCache::new(0, 0));
        Ok(Folder { dir: options.dir, fs: options.fs, codecs: options.codecs, cache, _lock: lock })
    }

    /// Reads every file, whole where `is_whole` says so, else only what it tells of itself. `tell` is called after each.
    ///
    /// Cost: `is_whole` reads all bytes; memory for one block and the open files' indexes, one at a time.
    ///
    /// # Errors
    /// [`Error::Unfinished`]; what kept it from looking. Damage is in the answer, file by file.
    pub fn audit(&self, is_whole: bool, tell: &mut dyn FnMut(Progress<'_>)) -> Result<Vec<AuditedFile>> {
        check_finished(&*self.fs, &self.dir)?;
        let names = self.fs.list(&self.dir).map_err(Error::io(IoOp::List, &self.dir))?;
        let mut audited = Vec::new();
        let catalog = self.audit_manifest(&names, &mut audited)?;
        if let Some(catalog) = &catalog {
            self.audit_log(catalog, &mut audited)?;
        }
        let owners = catalog.as_ref().map(owners).unwrap_or_default();
        let bytes_total = owners.values().map(|(file, _)| file.bytes).sum();
        let mut bytes_done = 0;
        for (file, owners) in owners.into_values() {
            let one = self.audit_file(&file, owners, is_whole);
            bytes_done += file.bytes;
            tell(Progress { file: &one.name, bytes_done, bytes_total });
            audited.push(one);
        }
        let named: Vec<String> = audited.iter().map(|file| file.name.clone()).collect();
        for name in names.iter().filter(|name| FileId::of_name(name).is_some() && !named.contains(name)) {
            let bytes = self.len_of(name)?;
            audited.push(AuditedFile { bytes, ..new(name.clone(), FileKind::Unnamed) });
        }
        Ok(audited)
    }

    /// The catalog, if the manifest reads.
    pub(crate) fn catalog(&self) -> Result<Option<Catalog>> {
        Ok(Manifest::open(&self.dry(), &self.dir)?.map(|manifest| manifest.catalog().clone()))
    }

    /// The same as the manifest's copy has it; `None` where there is none.
    pub(crate) fn copied(&self) -> Result<Option<Catalog>> {
        Manifest::copied(&self.dry(), &self.dir)
    }

    fn dry(&self) -> Arc<dyn FileSystem> {
        Arc::new(DryFs(Arc::clone(&self.fs)))
    }

    /// The catalog, of manifest or copy.
    fn audit_manifest(&self, names: &[String], audited: &mut Vec<AuditedFile>) -> Result<Option<Catalog>> {
        let found = self.catalog().and_then(|found| found.ok_or_else(|| Manifest::missing(&self.dir)));
        // What the one does not say the other does.
        let both = [(manifest::NAME, Some(found)), (manifest::COPY, self.copied().transpose())];
        let mut read = None;
        for (name, found) in both.map(|(name, found)| (name.to_owned(), found)) {
            let Some(found) = found else { continue };
            let bytes = if names.contains(&name) { self.len_of(&name)? } else { 0 };
            let (catalog, damage) = found.map_or_else(|error| (None, Some(error)), |catalog| (Some(catalog), None));
            audited.push(AuditedFile { bytes, damage, ..new(name, FileKind::Manifest) });
            read = read.or(catalog);
        }
        Ok(read)
    }

    fn audit_log(&self, catalog: &Catalog, audited: &mut Vec<AuditedFile>) -> Result<()> {
        let path = catalog.marks.log_start.path(&self.dir);
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let mut log = new(name, FileKind::Log);
        let read = self.read_log(catalog, &mut |rows, cells| {
            log.rows_count += rows;
            log.cells_count += cells;
        });
        match read {
            Ok(bytes) => log.bytes = bytes,
            Err(error @ Error::Io { .. }) if !error.is_unreadable() => return Err(error),
            Err(error) => log.damage = Some(error),
        }
        audited.push(log);
        Ok(())
    }

    /// Reads the log as a start does, and changes nothing; answers its bytes. `tell` gets the rows and cells of each record.
    ///
    /// # Errors
    /// What a start refuses it for; any I/O error.
    pub(crate) fn read_log(&self, catalog: &Catalog, tell: &mut dyn FnMut(u64, u64)) -> Result<u64> {
        let first = catalog.marks.log_start;
        let path = first.path(&self.dir);
        let dry = DryFs(Arc::clone(&self.fs));
        let replayed = replay(&dry, &self.dir, first, &mut |record| {
            let (rows, cells) = count(&record).ok_or_else(|| LoggedBatch::unreadable(&path, 0, record.kind))?;
            tell(rows, cells);
            Ok(())
        })?;
        if catalog.has_answered() && self.fs.open(&path).is_err() {
            return Err(first.missing(&self.dir));
        }
        Ok(replayed.sealed.iter().map(|sealed| sealed.bytes).sum())
    }

    fn audit_file(&self, file: &FileEntry, owners: Vec<Owner>, is_whole: bool) -> AuditedFile {
        let path = file.id.path(&self.dir);
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let mut audited = AuditedFile { bytes: file.bytes, owners, ..new(name, FileKind::Sstable) };
        let opened = open_file(&*self.fs, &self.dir, file, &self.codecs, &self.cache);
        let proved = opened.and_then(|table| {
            let metadata = table.metadata();
            audited.rows_count = metadata.rows_count;
            audited.cells_count = metadata.cells_count;
            audited.blocks_count = metadata.blocks_count.into();
            if is_whole {
                return table.verify();
            }
            table.check_index()?;
            table.check_filter()
        });
        audited.damage = proved.err();
        audited
    }

    fn len_of(&self, name: &str) -> Result<u64> {
        let path = self.dir.join(name);
        let file = self.fs.open(&path).map_err(Error::io(IoOp::Open, &path))?;
        file.len().map_err(Error::io(IoOp::Len, &path))
    }
}

fn new(name: String, kind: FileKind) -> AuditedFile {
    AuditedFile {
        name,
        kind,
        bytes: 0,
        rows_count: 0,
        cells_count: 0,
        blocks_count: 0,
        owners: Vec::new(),
        damage: None,
    }
}

/// Rows and cells of a logged batch.
pub(crate) fn count(record: &Record<'_>) -> Option<(u64, u64)> {
    let mut batch = LoggedBatch::decode(record.kind, record.payload, record.sequence)?;
    let (mut rows, mut cells, mut row) = (0, 0, Vec::new());
    while batch.next_row(&mut row)?.is_some() {
        rows += 1;
        cells += row.len() as u64;
    }
    Some((rows, cells))
}

/// Every file that a catalog names, with those who name it.
fn owners(catalog: &Catalog) -> BTreeMap<FileId, (FileEntry, Vec<Owner>)> {
    let mut found: BTreeMap<FileId, (FileEntry, Vec<Owner>)> = BTreeMap::new();
    let mut add = |file: &FileEntry, owner: Owner| {
        found.entry(file.id).or_insert_with(|| (*file, Vec::new())).1.push(owner);
    };
    for table in catalog.tables.values() {
        for region in table.regions.iter().filter_map(|id| catalog.regions.get(id)) {
            for file in &region.files {
                let family = family_name(&table.families, &table.descriptor, file.family);
                let (table, start, end) = (table.descriptor.name.clone(), region.start.clone(), region.end.clone());
                add(file, Owner { table, family, snapshot: None, start, end });
            }
        }
    }
    for snapshot in catalog.snapshots.values() {
        for region in &snapshot.regions {
            for file in &region.files {
                let family = family_name(&snapshot.families, &snapshot.descriptor, file.family);
                let (table, start, end) = (snapshot.descriptor.name.clone(), region.start.clone(), region.end.clone());
                add(file, Owner { table, family, snapshot: Some(snapshot.name.clone()), start, end });
            }
        }
    }
    found
}

fn family_name(ids: &[FamilyId], table: &basalt_store::TableDescriptor, id: FamilyId) -> Bytes {
    let index = ids.iter().position(|known| *known == id);
    index.and_then(|index| table.families.get(index)).map(|family| family.name.clone()).unwrap_or_default()
}
