//! Filters: what the store leaves out before anything crosses to the reader. The tree is data; [`FilterRun`] evaluates
//! it, for every store alike.

mod fuzzy;
mod run;

pub use run::{Advance, CellVerdict, FilterRun, Kept, RowVerdict};

use bytes::Bytes;

/// A filter tree. Semantics are those of HBase's filter of the same name.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Filter {
    /// Values come empty (`KeyOnlyFilter`).
    KeyOnly,
    /// Only each row's first cell (`FirstKeyOnlyFilter`).
    FirstKeyOnly,
    /// Rows that begin so; the scan ends after the last (`PrefixFilter`).
    Prefix(Bytes),
    /// Rows within one of these ranges; the store seeks from one to the next (`MultiRowRangeFilter`).
    MultiRowRange(Vec<RowRange>),
    /// Rows that match one of these keys at the fixed places; the store may seek (`FuzzyRowFilter`).
    FuzzyRow(Vec<FuzzyKey>),
    /// Rows whose key the regular expression finds a match in (`RowFilter` with `RegexStringComparator`).
    RowRegex(regex::bytes::Regex),
    /// Columns whose qualifier begins so (`ColumnPrefixFilter`).
    ColumnPrefix(Bytes),
    /// All of them, or one of them (`FilterList`).
    List(ListOperator, Vec<Filter>),
}

/// How a list of filters combines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListOperator {
    /// `MUST_PASS_ALL`
    All,
    /// `MUST_PASS_ONE`
    One,
}

/// A range of row keys: `start` in, `stop` out; an empty `stop` is the table's end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowRange {
    /// The first key.
    pub start: Bytes,
    /// The key after the last.
    pub stop: Bytes,
}

/// A key with holes: `key[i]` counts where `mask[i]` is 0, any byte fits where it is 1. Both of one length; longer row
/// keys match by their beginning, shorter ones the key's beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FuzzyKey {
    /// The bytes to match.
    pub key: Bytes,
    /// 0 for fixed, 1 for any.
    pub mask: Bytes,
}
