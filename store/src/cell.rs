//! The cell: one version of one column of one row, or a tombstone over some of them, and the one order of all cells.

use std::cmp::Ordering;

use crate::{Error, Result};

/// A cell's time: milliseconds since the epoch UTC by convention, any number up to [`Timestamp::LATEST`] by right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The largest time, HBase's `Long.MAX_VALUE`: a mutation that carries it is stamped by the server.
    pub const LATEST: Self = Self(i64::MAX as u64);

    /// The millisecond after it; a cell's largest time has none.
    #[must_use]
    pub fn after(self) -> Self {
        Self(self.0.saturating_add(1).min(Self::LATEST.0 - 1).max(self.0))
    }
}

/// The order in which a store took a mutation in; grows by one a record, never reused. 0 means "not told".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SeqNo(pub u64);

/// What a cell is. The codes are HBase's (`KeyValue.Type`); 0 is never valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum CellKind {
    /// A value.
    Put = 4,
    /// Tombstone over one exact version of one column.
    Delete = 8,
    /// Tombstone over one exact version of every column of a family; its qualifier is empty.
    DeleteFamilyVersion = 10,
    /// Tombstone over a column's versions at or below its time.
    DeleteColumn = 12,
    /// Tombstone over a family's versions at or below its time; its qualifier is empty.
    DeleteFamily = 14,
}

impl CellKind {
    /// The kind's code on disk and wire.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The kind of a code.
    ///
    /// # Errors
    /// `Invalid` for any code but the five; a reader of files says `Corrupt` with the place instead.
    #[inline]
    pub fn from_code(code: u8) -> Result<Self> {
        Ok(match code {
            4 => Self::Put,
            8 => Self::Delete,
            10 => Self::DeleteFamilyVersion,
            12 => Self::DeleteColumn,
            14 => Self::DeleteFamily,
            _ => return Err(Self::no_code(code)),
        })
    }

    #[cold]
    fn no_code(code: u8) -> Error {
        Error::InvalidArgument { what: "cell kind", reason: format!("code {code}").into() }
    }

    /// Whether the cell hides others instead of holding a value.
    pub const fn is_tombstone(self) -> bool {
        !matches!(self, Self::Put)
    }

    /// Whether a cell of this kind under `qualifier` is a tombstone that may hide cells of `column`.
    pub fn is_tombstone_over(self, qualifier: &[u8], column: &[u8]) -> bool {
        match self {
            Self::Put => false,
            Self::Delete | Self::DeleteColumn => qualifier == column,
            Self::DeleteFamily | Self::DeleteFamilyVersion => true,
        }
    }
}

/// A cell, borrowed from wherever it lies: a memtable, a block, a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellRef<'a> {
    /// Row key, 1 to 32,767 bytes.
    pub row: &'a [u8],
    /// Column family.
    pub family: &'a [u8],
    /// Qualifier; any bytes, may be empty.
    pub qualifier: &'a [u8],
    /// Time.
    pub timestamp: Timestamp,
    /// Value or which tombstone.
    pub kind: CellKind,
    /// Sequence number of the mutation that brought it.
    pub seq: SeqNo,
    /// Value; empty for tombstones.
    pub value: &'a [u8],
}

/// What HBase's `KeyValue` holds besides row, family, qualifier and value: lengths of key and value in 4 bytes each, of
/// the row in 2 and of the family in 1, time in 8, type in 1.
const KEY_VALUE_FIXED_BYTES: usize = 20;

impl CellRef<'_> {
    /// Bytes of the cell as a `KeyValue` of HBase's, in which every cell carries all its coordinates (rule S-SIZE-1).
    /// What a file takes for it is mostly less: keys are shared, and blocks compressed.
    pub fn key_value_bytes(&self) -> u64 {
        let Self { row, family, qualifier, value, .. } = self;
        (KEY_VALUE_FIXED_BYTES + row.len() + family.len() + qualifier.len() + value.len()) as u64
    }

    /// HBase's order (rule S-SCAN-6): row, family, qualifier ascending as unsigned bytes; then time descending, so that
    /// the newest is met first; then kind code descending, so that tombstones precede what they hide; then sequence
    /// number descending, so that of two cells with one address the last written is met first.
    ///
    /// Cost: three byte comparisons at most, no allocation.
    pub fn order(&self, other: &Self) -> Ordering {
        self.row.cmp(other.row).then_with(|| self.family.cmp(other.family)).then_with(|| self.order_in_family(other))
    }

    /// [`CellRef::order`] for two cells of one row and family.
    pub fn order_in_family(&self, other: &Self) -> Ordering {
        self.qualifier
            .cmp(other.qualifier)
            .then_with(|| other.timestamp.cmp(&self.timestamp))
            .then_with(|| other.kind.code().cmp(&self.kind.code()))
            .then_with(|| other.seq.cmp(&self.seq))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(qualifier: &'static [u8], timestamp: u64, kind: CellKind, seq: u64) -> CellRef<'static> {
        CellRef {
            row: b"r",
            family: b"f",
            qualifier,
            timestamp: Timestamp(timestamp),
            kind,
            seq: SeqNo(seq),
            value: b"",
        }
    }

    #[test]
    fn s_scan_6_newest_first_tombstones_before_values() {
        let sorted = [
            cell(b"", 9, CellKind::DeleteFamily, 1),
            cell(b"a", 9, CellKind::DeleteColumn, 1),
            cell(b"a", 9, CellKind::Delete, 1),
            cell(b"a", 9, CellKind::Put, 7),
            cell(b"a", 9, CellKind::Put, 6),
            cell(b"a", 8, CellKind::DeleteColumn, 9),
            cell(b"a\0", 10, CellKind::Put, 1),
            cell(b"b", 1, CellKind::Put, 1),
        ];
        assert!(sorted.is_sorted_by(|a, b| a.order(b) == Ordering::Less));
    }

    #[test]
    fn codes_are_hbases_and_zero_is_none() {
        for code in 0..=u8::MAX {
            match CellKind::from_code(code) {
                Ok(kind) => assert_eq!(kind.code(), code),
                Err(_) => assert!(![4, 8, 10, 12, 14].contains(&code)),
            }
        }
    }
}
