//! Tables made, altered, emptied and dropped: each one edit of the manifest.

use std::sync::{Arc, PoisonError};

use basalt_store::{
    FamilyDescriptor, Guards, RegionInfo, SplitPolicy, TableDescriptor, TableName, TableState, TruncatedRegions,
};
use bytes::Bytes;
use std::sync::atomic::Ordering;

use crate::core::Core;
use crate::error::Result;
use crate::id::{FamilyId, RegionId, TableId};
use crate::key_range::KeyRange;
use crate::manifest::{Catalog, Edit, NewRegion};
use crate::region::{Region, RegionFile};
use crate::table::{Shape, Table};

impl Core {
    /// Makes a table of regions that begin at the splits.
    pub(crate) fn create_table(&self, descriptor: TableDescriptor, splits: &[Bytes]) -> Result<()> {
        descriptor.validate_change(None)?;
        SplitPolicy::of(&descriptor)?;
        Guards::of(&descriptor, &self.triggers)?;
        if splits.first().is_some_and(Bytes::is_empty) || !splits.is_sorted_by(|a, b| a < b) {
            let reason = "split keys must be sorted, each once, none empty".into();
            return Err(basalt_store::Error::InvalidArgument { what: "splits", reason }.into());
        }
        self.condition.check()?;
        let _one = self.reshaping.lock().unwrap_or_else(PoisonError::into_inner);
        let name = descriptor.name.clone();
        if self.table(&name).is_ok() {
            return Err(basalt_store::Error::TableExists { table: name.to_string().into() }.into());
        }
        let table = {
            let mut manifest = self.manifest();
            let state = manifest.catalog().state_of_new(&name, splits.len() as u64 + 1)?;
            let (edit, table) = self.new_table(manifest.catalog(), descriptor, state, splits);
            self.edit(&mut manifest, &[edit])?;
            table
        };
        self.tables.write().unwrap_or_else(PoisonError::into_inner).insert(name, Arc::new(table));
        Ok(())
    }

    /// Gives a table other settings. Families that are not named any more go with their data.
    pub(crate) fn alter_table(&self, descriptor: TableDescriptor) -> Result<()> {
        SplitPolicy::of(&descriptor)?;
        Guards::of(&descriptor, &self.triggers)?;
        self.condition.check()?;
        let _one = self.reshaping.lock().unwrap_or_else(PoisonError::into_inner);
        let table = self.table(&descriptor.name)?;
        let name = descriptor.name.clone();
        if shows_more(&table.shape().descriptor, &descriptor) {
            // No number tells of rows that nobody saw before.
            return self.side_logs.forgotten(&name, || self.alter_table_locked(&table, descriptor));
        }
        self.alter_table_locked(&table, descriptor)
    }

    /// Gives a table other settings; the caller changes the list of tables alone.
    fn alter_table_locked(&self, table: &Table, descriptor: TableDescriptor) -> Result<()> {
        let _shape = table.lock_shape();
        let before = table.shape();
        descriptor.validate_change(Some(&before.descriptor))?;
        let families: Vec<FamilyId> = {
            let mut manifest = self.manifest();
            let mut next = manifest.catalog().marks.next_family;
            let ids = descriptor.families.iter().map(|family| {
                let kept = before.descriptor.family(&family.name).and_then(|(index, _)| before.family_id(index));
                kept.unwrap_or_else(|| {
                    next += 1;
                    FamilyId(next - 1)
                })
            });
            let families: Vec<FamilyId> = ids.collect();
            let (descriptor, families_told) = (descriptor.clone(), families.clone());
            self.edit(&mut manifest, &[Edit::AlterTable { id: table.id, descriptor, families: families_told }])?;
            families
        };
        let is_gone = |file: &RegionFile| !families.contains(&file.family);
        for region in table.regions().iter() {
            let gone: Vec<_> = region.view().files.iter().filter(|file| is_gone(file)).cloned().collect();
            region.change(|view| view.files.retain(|file| !is_gone(file)));
            for file in &gone {
                self.delete_file(file.table.file_id());
            }
        }
        table.set_shape(Shape { descriptor, families, state: before.state });
        Ok(())
    }

    /// Puts an empty table in the place of one, enabled.
    pub(crate) fn truncate_table(&self, name: &TableName, regions: TruncatedRegions) -> Result<()> {
        self.replace_table(name, |catalog, table| {
            let splits: Vec<_> = match regions {
                TruncatedRegions::Kept => table.regions().iter().skip(1).map(|region| region.start().clone()).collect(),
                TruncatedRegions::Merged => Vec::new(),
            };
            let shape = table.shape();
            let state = TableState { disabled: false, ..shape.state };
            let (edit, table) = self.new_table(catalog, shape.descriptor.clone(), state, &splits);
            Ok(Some((vec![edit], table)))
        })
    }

    /// Removes a table with its data.
    pub(crate) fn drop_table(&self, name: &TableName) -> Result<()> {
        self.replace_table(name, |_, _| Ok(None))
    }

    fn replace_table(
        &self,
        name: &TableName,
        by: impl FnOnce(&Catalog, &Table) -> Result<Option<(Vec<Edit>, Table)>>,
    ) -> Result<()> {
        self.condition.check_alive()?;
        let _one = self.reshaping.lock().unwrap_or_else(PoisonError::into_inner);
        self.table(name)?;
        self.side_logs.forgotten(name, || self.replace_table_locked(name, by))
    }

    /// Puts a table in the place of one, or none, in one edit; the caller changes the list of tables alone.
    pub(crate) fn replace_table_locked(
        &self,
        name: &TableName,
        by: impl FnOnce(&Catalog, &Table) -> Result<Option<(Vec<Edit>, Table)>>,
    ) -> Result<()> {
        let table = self.table(name)?;
        let _shape = table.lock_shape();
        let new = {
            let mut manifest = self.manifest();
            let (made, new) = by(manifest.catalog(), &table)?.unzip();
            let edits: Vec<_> =
                std::iter::once(Edit::DropTable { id: table.id }).chain(made.into_iter().flatten()).collect();
            self.edit(&mut manifest, &edits)?;
            new
        };
        table.mark_dropped();
        {
            let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
            match new {
                Some(new) => tables.insert(name.clone(), Arc::new(new)),
                None => tables.remove(name),
            };
        }
        for region in table.regions().iter() {
            for file in &region.clear() {
                self.delete_file(file.table.file_id());
            }
        }
        Ok(())
    }

    /// A table's regions, as operators see them.
    pub(crate) fn region_infos(table: &Table) -> Vec<RegionInfo> {
        table.regions().iter().map(|region| region_info(region)).collect()
    }

    /// A table to be, under numbers that were never given.
    fn new_table(
        &self,
        catalog: &Catalog,
        descriptor: TableDescriptor,
        state: TableState,
        splits: &[Bytes],
    ) -> (Edit, Table) {
        let id = TableId(catalog.marks.next_table);
        let families: Vec<_> = (catalog.marks.next_family..).map(FamilyId).take(descriptor.families.len()).collect();
        let starts = std::iter::once(Bytes::new()).chain(splits.iter().cloned());
        let ends = splits.iter().cloned().chain(std::iter::once(Bytes::new()));
        let ids = (catalog.marks.next_region..).map(RegionId);
        let regions: Vec<_> =
            starts.zip(ends).zip(ids).map(|((start, end), id)| NewRegion { id, start, end }).collect();
        let open = regions.iter().map(|region| {
            let range = Arc::new(KeyRange { start: region.start.clone(), end: region.end.clone() });
            Arc::new(Region::new(region.id, range, Vec::new(), Arc::clone(&self.memtable_bytes)))
        });
        let shape = Shape { descriptor: descriptor.clone(), state, families: families.clone() };
        let table = Table::new(id, shape, open.collect());
        (Edit::CreateTable { id, descriptor, families, regions }, table)
    }
}

/// Whether cells that went by their TTL, and lie in files still, come back as a table gets other settings.
fn shows_more(before: &TableDescriptor, after: &TableDescriptor) -> bool {
    let ttl = |family: &FamilyDescriptor| family.ttl_seconds.unwrap_or(u64::MAX);
    after.families.iter().any(|after| {
        let before = before.family(&after.name).map(|(_, before)| before);
        before.is_some_and(|before| ttl(after) > ttl(before) || after.min_versions > before.min_versions)
    })
}

fn region_info(region: &Region) -> RegionInfo {
    let view = region.view();
    RegionInfo {
        id: region.id.0,
        start: region.range.start.clone(),
        end: region.range.end.clone(),
        file_bytes: region.file_bytes(),
        memtable_bytes: region.memtable_bytes(),
        files_count: view.files.len() as u64,
        reads_count: region.reads.load(Ordering::Relaxed),
        writes_count: region.writes.load(Ordering::Relaxed),
    }
}
