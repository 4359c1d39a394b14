//! The SSTables: of each that is damaged, all cells that prove whole, in a new file.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use basalt_store::{CellRef, FamilyDescriptor, TableDescriptor, TableName};
use bytes::Bytes;

use super::Repair;
use crate::audit::Folder;
use crate::data_folder::open_file;
use crate::error::{Error, Result};
use crate::id::{FamilyId, FileId};
use crate::io::{File, IoOp, publish};
use crate::loss::Loss;
use crate::manifest::{Catalog, Edit, FileEntry, Manifest, Marks, SnapshotEntry};
use crate::progress::Progress;
use crate::side_log::forget_all;
use crate::sstable::{Remains, Sstable, SstableOptions, SstableWriter};

/// What a damaged file is read by.
enum Left {
    /// It opens.
    Table(Sstable),
    /// It does not, and has frames.
    Frames(Remains),
    Unopened,
    Nothing,
}

/// A file that is being written in the place of a damaged one.
struct NewFile {
    id: FileId,
    aside: PathBuf,
    file: Arc<dyn File>,
    family: Bytes,
    writer: SstableWriter,
}

impl Folder {
    /// Finds damage of the files that the manifest names; with `fix`, puts what can be had in their place.
    pub(super) fn repair_files(
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
            Err(source) if source.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(Error::io(IoOp::Remove, &path)),
        }
    }
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
