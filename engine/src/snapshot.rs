//! Snapshots of tables, and tables made of snapshots: each one edit of the manifest over files that never change.
//!
//! A snapshot is the table at one number of the log, across its regions: flushes of all of them are stopped, writes for
//! the moment in which the memtables are frozen, then what was frozen is flushed while writes go on. The edit names the
//! files; a file is deleted only when neither a region nor a snapshot names it.
//!
//! A fold cannot change a snapshot: it writes new files, and the snapshot's own stay.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use basalt_store::{SnapshotInfo, TableDescriptor, TableName, TableState, check_snapshot_name, with_causes};

use crate::core::Core;
use crate::data_folder::open_file;
use crate::error::Result;
use crate::id::{FamilyId, FileId, RegionId, TableId};
use crate::key_range::KeyRange;
use crate::manifest::{Catalog, Edit, FileEntry, NewRegion, SnapshotEntry, SnapshotRegion};
use crate::region::{Region, RegionFile};
use crate::sstable::Sstable;
use crate::table::{Regions, Shape, Table};

impl Core {
    /// Keeps a table as it is.
    ///
    /// # Errors
    /// `SnapshotExists`, `UnknownTable`, `InvalidName`; disk full: there is no snapshot then. Any failed write or sync poisons, and the
    /// snapshot may be there.
    pub(crate) fn snapshot(&self, table: &TableName, name: &str) -> Result<()> {
        check_snapshot_name(name)?;
        self.condition.check()?;
        let _one = self.reshaping.lock().unwrap_or_else(PoisonError::into_inner);
        let table = self.table(table)?;
        if self.manifest().catalog().snapshots.contains_key(name) {
            return Err(basalt_store::Error::SnapshotExists { snapshot: name.into() }.into());
        }
        loop {
            let regions = table.regions();
            let _flushes: Vec<_> = regions.iter().map(|region| region.lock_flushing()).collect();
            if regions.iter().any(|region| region.is_retired()) {
                continue;
            }
            self.flush_to_one_number(&table, &regions)?;
            let mut manifest = self.manifest();
            let entry = entry_of(manifest.catalog(), table.id, name, self.stamp());
            if let Some(entry) = entry {
                self.edit(&mut manifest, &[Edit::Snapshot(entry)])?;
            }
            break;
        }
        if let Err(error) = self.trim_log() {
            self.condition.check_alive()?;
            // The snapshot is durable all the same; the next flush trims.
            let error = with_causes(&error);
            tracing::warn!(error, "the log was not trimmed behind a snapshot");
        }
        Ok(())
    }

    /// Flushes regions so that their files hold the log up to one number, and nothing after it; the caller stopped
    /// their flushes.
    pub(crate) fn flush_to_one_number(&self, table: &Table, regions: &Regions) -> Result<()> {
        let upto = self.freeze_all(regions.iter());
        self.flush_frozen_regions(table, regions, upto)
    }

    /// Freezes memtables at one number of the log, and answers it.
    pub(crate) fn freeze_all<'a>(&self, regions: impl IntoIterator<Item = &'a Arc<Region>>) -> u64 {
        let regions: Vec<_> = regions.into_iter().collect();
        let _changes = self.stop_changes();
        let _writes: Vec<_> = regions.iter().map(|region| region.stop_updates()).collect();
        for region in &regions {
            region.freeze_stopped();
        }
        self.wal.last_sequence()
    }

    /// Flushes what was frozen at `upto`.
    pub(crate) fn flush_frozen_regions(&self, table: &Table, regions: &Regions, upto: u64) -> Result<()> {
        let Some(_shape_kept) = table.keep_shape() else { return Ok(()) };
        for region in regions.iter() {
            let frozen = region.view().frozen.clone();
            if !frozen.is_empty() {
                self.with_room(|| self.flush_frozen(table, region, &frozen, upto))?;
            }
        }
        Ok(())
    }

    /// Every snapshot, by name.
    pub(crate) fn list_snapshots(&self) -> Vec<SnapshotInfo> {
        self.manifest().catalog().snapshots.values().map(info).collect()
    }

    /// Forgets a snapshot; files that nothing else names go.
    pub(crate) fn delete_snapshot(&self, name: &str) -> Result<()> {
        self.condition.check_alive()?;
        let entry = {
            let mut manifest = self.manifest();
            let entry = find(manifest.catalog(), name)?;
            self.edit(&mut manifest, &[Edit::DropSnapshot { name: name.into() }])?;
            entry
        };
        for file in entry.files() {
            self.delete_file(file.id);
        }
        Ok(())
    }

    /// Makes a table of a snapshot, under a name of its own.
    pub(crate) fn clone_snapshot(&self, name: &str, table: &TableName) -> Result<()> {
        self.condition.check()?;
        let _one = self.reshaping.lock().unwrap_or_else(PoisonError::into_inner);
        self.side_logs.forgotten(table, || self.add_table_of(name, Some(table)))
    }

    /// Puts a snapshot's table back.
    pub(crate) fn restore_snapshot(&self, name: &str) -> Result<()> {
        self.condition.check()?;
        let _one = self.reshaping.lock().unwrap_or_else(PoisonError::into_inner);
        let table = find(self.manifest().catalog(), name)?.descriptor.name;
        self.side_logs.forgotten(&table, || self.put_back(&table, name))
    }

    /// Puts a snapshot in the place of its table; the caller changes the list of tables alone.
    fn put_back(&self, table: &TableName, name: &str) -> Result<()> {
        let Ok(there) = self.table(table) else { return self.add_table_of(name, None) };
        let (state, regions_count) = (there.shape().state, there.regions().len() as u64);
        if !state.disabled {
            return Err(basalt_store::Error::TableEnabled { table: table.to_string().into() }.into());
        }
        self.replace_table_locked(table, |catalog, _| {
            let entry = find(catalog, name)?;
            let others = catalog.load_of(table.namespace()).regions_count - regions_count;
            catalog.namespaces.get(table.namespace())?.check_regions(others, entry.regions.len() as u64)?;
            let (mut edits, restored) = self.table_of(catalog, &entry, entry.descriptor.clone(), state)?;
            edits.push(Edit::SetTableState { id: restored.id, disabled: true });
            Ok(Some((edits, restored)))
        })
    }

    /// Adds a table of a snapshot's files; the caller changes the list of tables alone.
    fn add_table_of(&self, snapshot: &str, name: Option<&TableName>) -> Result<()> {
        let table = {
            let mut manifest = self.manifest();
            let catalog = manifest.catalog();
            let entry = find(catalog, snapshot)?;
            let mut descriptor = entry.descriptor.clone();
            descriptor.name = name.unwrap_or(&descriptor.name).clone();
            descriptor.validate()?;
            if self.table(&descriptor.name).is_ok() {
                return Err(basalt_store::Error::TableExists { table: descriptor.name.to_string().into() }.into());
            }
            let state = catalog.state_of_new(&descriptor.name, entry.regions.len() as u64)?;
            let (edits, table) = self.table_of(catalog, &entry, descriptor, state)?;
            self.edit(&mut manifest, &edits)?;
            table
        };
        let name = table.shape().descriptor.name.clone();
        self.tables.write().unwrap_or_else(PoisonError::into_inner).insert(name, Arc::new(table));
        Ok(())
    }

    /// A table to be that begins with a snapshot's files, and the edits that make it.
    fn table_of(
        &self,
        catalog: &Catalog,
        entry: &SnapshotEntry,
        descriptor: TableDescriptor,
        state: TableState,
    ) -> Result<(Vec<Edit>, Table)> {
        let id = TableId(catalog.marks.next_table);
        let families: Vec<_> = (catalog.marks.next_family..).map(FamilyId).take(entry.families.len()).collect();
        let renamed: BTreeMap<_, _> = entry.families.iter().copied().zip(families.iter().copied()).collect();
        let mut opened = self.open_files();
        let mut edits = vec![Edit::CreateTable {
            id,
            descriptor: descriptor.clone(),
            families: families.clone(),
            regions: new_regions(catalog, entry),
        }];
        let mut regions = Vec::with_capacity(entry.regions.len());
        for (region, new) in entry.regions.iter().zip(new_regions(catalog, entry)) {
            let range = Arc::new(KeyRange { start: new.start, end: new.end });
            let known =
                region.files.iter().filter_map(|file| Some(FileEntry { family: *renamed.get(&file.family)?, ..*file }));
            let added: Vec<FileEntry> = known.collect();
            let mut files = Vec::with_capacity(added.len());
            for file in &added {
                let table = match opened.get(&file.id) {
                    Some(table) => Arc::clone(table),
                    None => Arc::new(open_file(&*self.fs, &self.dir, file, &self.codecs, &self.cache)?),
                };
                opened.insert(file.id, Arc::clone(&table));
                files.push(RegionFile::new(file.family, table, &range));
            }
            edits.push(Edit::Files { region: new.id, flushed: 0, removed: Vec::new(), added });
            regions.push(Arc::new(Region::new(new.id, range, files, Arc::clone(&self.memtable_bytes))));
        }
        Ok((edits, Table::new(id, Shape { descriptor, state, families }, regions)))
    }

    /// The files that regions have open: of one file there is one index in memory.
    fn open_files(&self) -> BTreeMap<FileId, Arc<Sstable>> {
        let regions = self.all_regions();
        let files = regions.iter().flat_map(|(_, region)| region.view().files.clone());
        files.map(|file| (file.table.file_id(), file.table)).collect()
    }
}

fn find(catalog: &Catalog, name: &str) -> Result<SnapshotEntry> {
    let unknown = || basalt_store::Error::UnknownSnapshot { snapshot: name.into() };
    Ok(catalog.snapshots.get(name).cloned().ok_or_else(unknown)?)
}

/// A snapshot of a table's files as the manifest has them now.
fn entry_of(catalog: &Catalog, table: TableId, name: &str, created: basalt_store::Timestamp) -> Option<SnapshotEntry> {
    let table = catalog.tables.get(&table)?;
    let regions = table.regions.iter().filter_map(|id| catalog.regions.get(id)).map(|region| {
        let (start, end) = (region.start.clone(), region.end.clone());
        SnapshotRegion { start, end, files: region.files.clone() }
    });
    Some(SnapshotEntry {
        name: name.into(),
        created,
        descriptor: table.descriptor.clone(),
        families: table.families.clone(),
        regions: regions.collect(),
    })
}

fn new_regions(catalog: &Catalog, entry: &SnapshotEntry) -> Vec<NewRegion> {
    let ids = (catalog.marks.next_region..).map(RegionId);
    let regions = entry.regions.iter().zip(ids);
    regions.map(|(region, id)| NewRegion { id, start: region.start.clone(), end: region.end.clone() }).collect()
}

fn info(entry: &SnapshotEntry) -> SnapshotInfo {
    let files = entry.files();
    SnapshotInfo {
        name: entry.name.clone(),
        table: entry.descriptor.name.clone(),
        created: entry.created,
        regions_count: entry.regions.len() as u64,
        files_count: files.len() as u64,
        file_bytes: files.iter().map(|file| file.bytes).sum(),
    }
}
