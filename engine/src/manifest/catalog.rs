//! What the store consists of: the sum of all edits of the manifest.
//!
//! Pure: applying an edit does no I/O, and an edit that does not fit what is
//! there is refused, whoever wrote it.

use std::collections::BTreeMap;

use basalt_store::{Namespaces, TableDescriptor, Timestamp};

use crate::id::{FamilyId, FileId, RegionId, TableId};
use crate::record::SEQUENCE_MAX;
use crate::wal::SegmentId;

use super::entry::{Edit, FileEntry, Marks, NewRegion, RegionEntry, SnapshotEntry, TableEntry};

mod regions;
mod snapshots;

/// The store's namespaces, tables, regions and files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Catalog {
    pub(crate) namespaces: Namespaces,
    pub(crate) tables: BTreeMap<TableId, TableEntry>,
    pub(crate) regions: BTreeMap<RegionId, RegionEntry>,
    pub(crate) snapshots: BTreeMap<Box<str>, SnapshotEntry>,
    pub(crate) marks: Marks,
}

/// An edit that does not fit what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Misfit {
    pub(crate) what: &'static str,
    pub(crate) number: u64,
}

impl Catalog {
    /// An empty store.
    pub(crate) fn new() -> Catalog {
        Catalog {
            namespaces: Namespaces::default(),
            tables: BTreeMap::new(),
            regions: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            marks: Marks {
                log_start: SegmentId(1),
                clock: Timestamp(0),
                sequence: 0,
                next_file: 1,
                next_table: 1,
                next_region: 1,
                next_family: 1,
            },
        }
    }

    /// Applies an edit.
    ///
    /// # Errors
    /// The first thing of it that does not fit; the catalog is then worth nothing.
    pub(crate) fn apply(&mut self, edit: &Edit) -> Result<(), Misfit> {
        match edit {
            Edit::CreateTable { id, descriptor, families, regions } => {
                self.create_table(*id, descriptor, families, regions)
            }
            Edit::AlterTable { id, descriptor, families } => self.alter_table(*id, descriptor, families),
            Edit::DropTable { id } => {
                let table = self.tables.remove(id).ok_or(misfit("dropped table", id.0.into()))?;
                self.regions.retain(|region, _| !table.regions.contains(region));
                Ok(())
            }
            Edit::Files { region, flushed, removed, added } => self.files(*region, *flushed, removed, added),
            Edit::SetNamespace(namespace) => {
                namespace.validate().map_err(|_| misfit("properties of a namespace", 0))?;
                self.namespaces.set(namespace.clone());
                Ok(())
            }
            Edit::DropNamespace { name } => {
                let tables = self.load_of(name).tables_count;
                self.namespaces.check_drop(name, tables).map_err(|_| misfit("dropped namespace, tables", tables))?;
                self.namespaces.remove(name);
                Ok(())
            }
            Edit::SetTableState { id, disabled } => {
                let table = self.tables.get_mut(id).ok_or(misfit("switched table", id.0.into()))?;
                table.disabled = *disabled;
                Ok(())
            }
            Edit::Regions(edit) => self.replace_regions(edit),
            Edit::Snapshot(entry) => self.take_snapshot(entry),
            Edit::DropSnapshot { name } => self.drop_snapshot(name),
            Edit::Marks(marks) => {
                if marks.log_start > SegmentId::MAX {
                    return Err(misfit("first segment of the log", marks.log_start.0.into()));
                }
                if marks.next_file > FileId::MAX.0 + 1 {
                    return Err(misfit("first unused file id", marks.next_file));
                }
                check_sequence(marks.sequence)?;
                self.marks.log_start = self.marks.log_start.max(marks.log_start);
                self.marks.clock = self.marks.clock.max(marks.clock);
                self.marks.sequence = self.marks.sequence.max(marks.sequence);
                self.marks.next_file = self.marks.next_file.max(marks.next_file);
                self.marks.next_table = self.marks.next_table.max(marks.next_table);
                self.marks.next_region = self.marks.next_region.max(marks.next_region);
                self.marks.next_family = self.marks.next_family.max(marks.next_family);
                Ok(())
            }
        }
    }

    fn create_table(
        &mut self,
        id: TableId,
        descriptor: &TableDescriptor,
        families: &[FamilyId],
        regions: &[NewRegion],
    ) -> Result<(), Misfit> {
        let number = u64::from(id.0);
        if id.0 < self.marks.next_table || families.len() != descriptor.families.len() {
            return Err(misfit("created table", number));
        }
        self.namespaces.get(descriptor.name.namespace()).map_err(|_| misfit("namespace of a created table", number))?;
        let tiled = regions.first().is_some_and(|first| first.start.is_empty())
            && regions.last().is_some_and(|last| last.end.is_empty())
            && regions.is_sorted_by(|a, b| a.start < b.start && a.end == b.start);
        let next_table = id.0.checked_add(1).ok_or(misfit("created table", number))?;
        // Not merely a number below the next one: after splits a table has later ones than tables made after it.
        if !tiled || regions.iter().any(|region| self.regions.contains_key(&region.id)) {
            return Err(misfit("regions of a created table", number));
        }
        for region in regions {
            let (start, end) = (region.start.clone(), region.end.clone());
            let entry = RegionEntry { table: id, start, end, flushed: 0, files: Vec::new() };
            let next = region.id.0.checked_add(1).ok_or(misfit("regions of a created table", region.id.0))?;
            self.marks.next_region = self.marks.next_region.max(next);
            self.regions.insert(region.id, entry);
        }
        self.take_families(families)?;
        self.marks.next_table = next_table;
        let regions = regions.iter().map(|region| region.id).collect();
        let (descriptor, families) = (descriptor.clone(), families.to_vec());
        let entry = TableEntry { descriptor, families, regions, disabled: false };
        self.tables.insert(id, entry);
        Ok(())
    }

    /// Files of families that are no longer there go too.
    fn alter_table(&mut self, id: TableId, descriptor: &TableDescriptor, families: &[FamilyId]) -> Result<(), Misfit> {
        let table = self.tables.get_mut(&id).ok_or(misfit("altered table", id.0.into()))?;
        if families.len() != descriptor.families.len() {
            return Err(misfit("families of an altered table", id.0.into()));
        }
        table.descriptor = descriptor.clone();
        table.families = families.to_vec();
        for region in &table.regions {
            if let Some(entry) = self.regions.get_mut(region) {
                entry.files.retain(|file| families.contains(&file.family));
            }
        }
        self.take_families(families)
    }

    fn take_families(&mut self, families: &[FamilyId]) -> Result<(), Misfit> {
        for family in families {
            let next = family.0.checked_add(1).ok_or(misfit("family of a table", family.0.into()))?;
            self.marks.next_family = self.marks.next_family.max(next);
        }
        Ok(())
    }

    fn files(&mut self, region: RegionId, flushed: u64, removed: &[FileId], added: &[FileEntry]) -> Result<(), Misfit> {
        check_sequence(flushed)?;
        let entry = self.regions.get_mut(&region).ok_or(misfit("region of files", region.0))?;
        let mut place = entry.files.len();
        for id in removed {
            let at = entry.files.iter().position(|file| file.id == *id).ok_or(misfit("removed file", id.0))?;
            entry.files.remove(at);
            // New files take the place of the oldest they replace.
            place = place.min(at);
        }
        if removed.is_empty() {
            place = entry.files.len();
        }
        for file in added.iter().rev() {
            entry.files.insert(place, *file);
            let next = file.id.0.checked_add(1).ok_or(misfit("added file", file.id.0))?;
            self.marks.next_file = self.marks.next_file.max(next);
        }
        entry.flushed = entry.flushed.max(flushed);
        self.marks.sequence = self.marks.sequence.max(flushed);
        Ok(())
    }

    /// Whether anything names a file: what nothing names may be deleted.
    pub(crate) fn names_file(&self, id: FileId) -> bool {
        self.regions.values().any(|region| region.files.iter().any(|file| file.id == id)) || self.is_kept(id)
    }

    /// Whether the store ever answered. Then it has a log, if only an empty segment of one: it had that before its first table.
    pub(crate) fn has_answered(&self) -> bool {
        self.marks.sequence > 0 || !self.tables.is_empty()
    }

    /// Edits that make this catalog out of an empty one.
    pub(crate) fn as_edits(&self) -> Vec<Edit> {
        // First: tables are made in namespaces that are there. The predefined ones may have properties too.
        let mut edits: Vec<_> = self.namespaces.iter().cloned().map(Edit::SetNamespace).collect();
        for (id, table) in &self.tables {
            let entries = || table.regions.iter().filter_map(|id| self.regions.get(id).map(|region| (*id, region)));
            let regions = entries().map(|(id, region)| {
                let (start, end) = (region.start.clone(), region.end.clone());
                NewRegion { id, start, end }
            });
            edits.push(Edit::CreateTable {
                id: *id,
                descriptor: table.descriptor.clone(),
                families: table.families.clone(),
                regions: regions.collect(),
            });
            edits.extend(entries().map(|(id, region)| Edit::Files {
                region: id,
                flushed: region.flushed,
                removed: Vec::new(),
                added: region.files.clone(),
            }));
            edits.extend(table.disabled.then_some(Edit::SetTableState { id: *id, disabled: true }));
        }
        // Behind the tables, which may not be made under numbers that were given already; before the snapshots, which
        // may keep files that are later than any of a table's.
        edits.push(Edit::Marks(self.marks));
        edits.extend(self.snapshots.values().cloned().map(Edit::Snapshot));
        edits
    }
}

/// Refuses a sequence number that no record has.
fn check_sequence(number: u64) -> Result<(), Misfit> {
    if number > SEQUENCE_MAX { Err(misfit("last sequence number", number)) } else { Ok(()) }
}

fn misfit(what: &'static str, number: u64) -> Misfit {
    Misfit { what, number }
}
