//! Snapshots: the edits that keep and forget which files a table consisted of, applied; and which files are still named.

use std::collections::BTreeMap;

use super::super::entry::{FileEntry, SnapshotEntry};
use super::{Catalog, Misfit, misfit};
use crate::id::FileId;

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
