//! Snapshots in the manifest: which files a table consisted of, and the edits that keep and forget that.

use std::collections::BTreeMap;

use basalt_store::{TableDescriptor, Timestamp};
use bytes::Bytes;

use super::catalog::{Catalog, FileEntry, Misfit, misfit};
use super::edit::{ReadFamily, file, list, put_files, put_table, table, text};
use crate::field::{Fields, put_string, put_varint};
use crate::id::{FamilyId, FileId};

/// A table as it was. What it names stays on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SnapshotEntry {
    pub(crate) name: Box<str>,
    pub(crate) created: Timestamp,
    pub(crate) descriptor: TableDescriptor,
    /// One a family, in the descriptor's order; the files are named by these.
    pub(crate) families: Vec<FamilyId>,
    /// In key order; they tile the key space.
    pub(crate) regions: Vec<SnapshotRegion>,
}

/// A region of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SnapshotRegion {
    pub(crate) start: Bytes,
    /// Empty for the last.
    pub(crate) end: Bytes,
    /// Oldest first.
    pub(crate) files: Vec<FileEntry>,
}

impl SnapshotEntry {
    /// Every file, once.
    pub(crate) fn files(&self) -> Vec<FileEntry> {
        let mut files: Vec<FileEntry> = self.regions.iter().flat_map(|region| &region.files).copied().collect();
        files.sort_unstable_by_key(|file| file.id);
        files.dedup_by_key(|file| file.id);
        files
    }
}

impl Catalog {
    pub(super) fn take_snapshot(&mut self, entry: &SnapshotEntry) -> Result<(), Misfit> {
        let beyond = |file: &&FileEntry| file.id.0 >= self.marks.next_file;
        if let Some(file) = entry.regions.iter().flat_map(|region| &region.files).find(beyond) {
            return Err(misfit("file of a snapshot", file.id.0));
        }
        if self.snapshots.contains_key(&entry.name) || entry.families.len() != entry.descriptor.families.len() {
            return Err(misfit("snapshot", entry.created.0));
        }
        self.snapshots.insert(entry.name.clone(), entry.clone());
        Ok(())
    }

    pub(super) fn drop_snapshot(&mut self, name: &str) -> Result<(), Misfit> {
        self.snapshots.remove(name).map(drop).ok_or(misfit("dropped snapshot", name.len() as u64))
    }

    /// Every file that a region or a snapshot names, once.
    pub(crate) fn all_files(&self) -> BTreeMap<FileId, FileEntry> {
        let of_regions = self.regions.values().flat_map(|region| region.files.iter().copied());
        let of_snapshots = self.snapshots.values().flat_map(SnapshotEntry::files);
        of_regions.chain(of_snapshots).map(|file| (file.id, file)).collect()
    }

    /// Whether a snapshot keeps a file.
    pub(super) fn is_kept(&self, id: FileId) -> bool {
        let regions = self.snapshots.values().flat_map(|snapshot| &snapshot.regions);
        regions.flat_map(|region| &region.files).any(|file| file.id == id)
    }
}

pub(super) fn encode_into(entry: &SnapshotEntry, out: &mut Vec<u8>) {
    put_string(out, entry.name.as_bytes());
    put_varint(out, entry.created.0);
    put_table(out, &entry.descriptor, &entry.families);
    put_varint(out, entry.regions.len() as u64);
    for region in &entry.regions {
        put_string(out, &region.start);
        put_string(out, &region.end);
        put_files(out, &region.files);
    }
}

pub(super) fn decode(fields: &mut Fields<'_>, family: ReadFamily) -> Option<SnapshotEntry> {
    let name = text(fields)?.into();
    let created = Timestamp(fields.varint()?);
    let (descriptor, families) = table(fields, family)?;
    let regions = list(fields, |fields| {
        let start = Bytes::copy_from_slice(fields.string()?);
        let end = Bytes::copy_from_slice(fields.string()?);
        Some(SnapshotRegion { start, end, files: list(fields, file)? })
    })?;
    Some(SnapshotEntry { name, created, descriptor, families, regions })
}
