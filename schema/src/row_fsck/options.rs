//! What a check of rows may mend, and what it counts.

use crate::LargerOrSmaller;

/// What may be mended, and how. All off: nothing is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line, as in OpenTSDB")]
pub struct RowFsckOptions {
    /// Mends at all.
    pub fix: bool,
    /// Folds every row.
    pub compact: bool,
    /// Resolves duplicates.
    pub resolve_duplicates: bool,
    /// Of duplicates the oldest write stays instead of the newest.
    pub first_write_wins: bool,
    /// Of duplicates the larger or the smaller stays, as readers see it, where cells do not tell which is newer.
    pub data_times: Option<LargerOrSmaller>,
    /// Deletes rows whose UIDs have no names.
    pub delete_orphans: bool,
    /// Deletes columns that nobody knows.
    pub delete_unknown_columns: bool,
    /// Deletes points whose values cannot be read; those that readers can read, by their own length, are written anew.
    pub delete_bad_values: bool,
    /// Deletes rows whose keys are none.
    pub delete_bad_rows: bool,
    /// Deletes compacted cells that cannot be read.
    pub delete_bad_compacts: bool,
    /// The one histogram codec that is known; cells of others are told of, as are all when there is none.
    pub histogram_id: Option<u8>,
}

/// What was met and what was mended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "each is OpenTSDB's counter of that name")]
pub struct RowFsckCounts {
    pub cells: u64,
    pub rows: u64,
    pub valid_points: u64,
    pub annotations: u64,
    pub appends: u64,
    pub bad_keys: u64,
    pub bad_keys_fixed: u64,
    pub duplicates: u64,
    pub duplicates_fixed: u64,
    pub orphans: u64,
    pub orphans_fixed: u64,
    pub future: u64,
    pub unknown: u64,
    pub unknown_fixed: u64,
    pub bad_values: u64,
    pub bad_values_deleted: u64,
    pub bad_encodings: u64,
    pub bad_encodings_fixed: u64,
    pub fixable_compacts: u64,
    pub bad_compacts: u64,
    pub bad_compacts_deleted: u64,
    pub vle: u64,
    pub vle_fixed: u64,
    pub vle_bytes: u64,
    #[doc = "Not OpenTSDB's: errors of compacted cells, in their order or last byte, that a fold wrote right."]
    pub compacts_folded: u64,
}

impl RowFsckCounts {
    /// All errors.
    pub const fn errors(&self) -> u64 {
        self.bad_keys
            + self.duplicates
            + self.orphans
            + self.unknown
            + self.bad_values
            + self.bad_compacts
            + self.fixable_compacts
            + self.bad_encodings
    }

    /// Those of them that were mended, as OpenTSDB counts: without compacted cells.
    pub const fn fixed(&self) -> u64 {
        self.bad_keys_fixed
            + self.duplicates_fixed
            + self.orphans_fixed
            + self.unknown_fixed
            + self.bad_encodings_fixed
            + self.bad_values_deleted
    }

    /// Those of them that were mended.
    pub const fn mended(&self) -> u64 {
        self.fixed() + self.bad_compacts_deleted + self.compacts_folded
    }
}
