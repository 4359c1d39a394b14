//! Numbers that name things in the manifest and the log. None is ever used twice.

/// Names a table; a truncated table is a new one under the old name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TableId(pub(crate) u32);

/// Names a column family within its table; one dropped and made again is another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FamilyId(pub(crate) u32);

/// Names a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RegionId(pub(crate) u64);
