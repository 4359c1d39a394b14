//! What the manifest tells of: tables, regions, files and snapshots, and the edits that change them.

use basalt_store::{NamespaceDescriptor, TableDescriptor, Timestamp};
use bytes::Bytes;

use crate::id::{FamilyId, FileId, RegionId, TableId};
use crate::wal::SegmentId;

/// A table as the manifest knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableEntry {
    pub(crate) descriptor: TableDescriptor,
    /// One a family, in the descriptor's order.
    pub(crate) families: Vec<FamilyId>,
    /// In key order; they tile the key space.
    pub(crate) regions: Vec<RegionId>,
    /// Whether it does not serve.
    pub(crate) disabled: bool,
}

/// A region and its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RegionEntry {
    pub(crate) table: TableId,
    pub(crate) start: Bytes,
    /// Empty for the last.
    pub(crate) end: Bytes,
    /// Everything up to here is in files.
    pub(crate) flushed: u64,
    /// Oldest first.
    pub(crate) files: Vec<FileEntry>,
}

/// A file of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileEntry {
    pub(crate) id: FileId,
    pub(crate) family: FamilyId,
    pub(crate) bytes: u64,
}

/// One change of the store, whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Edit {
    CreateTable {
        id: TableId,
        descriptor: TableDescriptor,
        families: Vec<FamilyId>,
        regions: Vec<NewRegion>,
    },
    AlterTable {
        id: TableId,
        descriptor: TableDescriptor,
        families: Vec<FamilyId>,
    },
    DropTable {
        id: TableId,
    },
    /// Files of a region take the place of others, which are neighbours; new ones come last.
    Files {
        region: RegionId,
        flushed: u64,
        removed: Vec<FileId>,
        added: Vec<FileEntry>,
    },
    /// Regions take the place of others.
    Regions(RegionsEdit),
    /// A table as it is, kept.
    Snapshot(SnapshotEntry),
    DropSnapshot {
        name: Box<str>,
    },
    /// Marks that only grow.
    Marks(Marks),
    /// A namespace is made, or set anew.
    SetNamespace(NamespaceDescriptor),
    DropNamespace {
        name: Box<str>,
    },
    SetTableState {
        id: TableId,
        disabled: bool,
    },
}

/// A region of a table to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewRegion {
    pub(crate) id: RegionId,
    pub(crate) start: Bytes,
    pub(crate) end: Bytes,
}

/// Numbers that only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Marks {
    /// The first segment that the log begins with.
    pub(crate) log_start: SegmentId,
    /// No cell time given by the server was later.
    pub(crate) clock: Timestamp,
    /// No sequence number was larger.
    pub(crate) sequence: u64,
    /// Not given to a file yet.
    pub(crate) next_file: u64,
    /// Not given to a table yet, though it was dropped: the log may still hold its rows.
    pub(crate) next_table: u32,
    /// Not given to a region yet.
    pub(crate) next_region: u64,
    /// Not given to a family yet, whatever its table.
    pub(crate) next_family: u32,
}

/// A region with what it begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilledRegion {
    pub(crate) region: NewRegion,
    /// Everything up to here is in files.
    pub(crate) flushed: u64,
    /// Oldest first; a file of the region that was may be in both halves.
    pub(crate) files: Vec<FileEntry>,
}

/// Regions of a table that take the place of neighbours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RegionsEdit {
    pub(crate) table: TableId,
    /// In key order.
    pub(crate) removed: Vec<RegionId>,
    /// In key order; they tile what the removed ones did, and hold no file that those did not.
    pub(crate) added: Vec<FilledRegion>,
}

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
