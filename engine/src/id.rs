//! Numbers that name things in the manifest and the log. None is ever used twice.

use std::path::{Path, PathBuf};

/// Names a table; a truncated table is a new one under the old name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TableId(pub(crate) u32);

/// Names a column family within its table; one dropped and made again is another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FamilyId(pub(crate) u32);

/// Names a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RegionId(pub(crate) u64);

/// Names an SSTable in its store, whatever happens to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FileId(pub(crate) u64);

impl FileId {
    /// No store comes so far. A name with a larger number is not a file's: none would come after the last of them.
    pub(crate) const MAX: FileId = FileId(u64::MAX >> 1);

    /// The file in the store's folder.
    pub(crate) fn path(self, dir: &Path) -> PathBuf {
        dir.join(format!("sst-{:016}.sst", self.0))
    }

    /// The id in a file's name; `None` for what is no SSTable's.
    pub(crate) fn of_name(name: &str) -> Option<FileId> {
        let id = FileId(name.strip_prefix("sst-")?.strip_suffix(".sst")?.parse().ok()?);
        (id <= FileId::MAX).then_some(id)
    }
}
