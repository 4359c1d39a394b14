//! Filters: what the store leaves out before anything crosses to the reader. The tree is data; [`FilterRun`] evaluates
//! it, for every store alike.

mod column;
mod compare;
mod fuzzy;
mod list;
mod node;
mod row;
mod run;
mod verdict;

pub use column::{ColumnRange, ColumnTest};
pub use compare::Comparator;
pub use run::FilterRun;
pub use verdict::{Advance, CellVerdict, Kept, RowVerdict};

use bytes::Bytes;

use crate::{Comparison, Timestamp};

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
    /// Rows up to this key and with it; the scan ends after it (`InclusiveStopFilter`).
    InclusiveStop(Bytes),
    /// Rows whose key compares so (`RowFilter`).
    Row(Comparison, Comparator),
    /// Families whose name compares so (`FamilyFilter`).
    Family(Comparison, Comparator),
    /// Columns whose qualifier compares so (`QualifierFilter`).
    Qualifier(Comparison, Comparator),
    /// Cells whose value compares so (`ValueFilter`).
    Value(Comparison, Comparator),
    /// Columns whose qualifier begins so (`ColumnPrefixFilter`).
    ColumnPrefix(Bytes),
    /// Columns whose qualifier begins with one of these (`MultipleColumnPrefixFilter`).
    ColumnPrefixes(Vec<Bytes>),
    /// Columns whose qualifier lies within a range (`ColumnRangeFilter`).
    ColumnRange(ColumnRange),
    /// Each row's first so many columns (`ColumnCountGetFilter`).
    ColumnCount(u32),
    /// So many of each row's columns, after leaving out others at its beginning (`ColumnPaginationFilter`).
    ColumnPage {
        /// How many columns at most.
        limit: u32,
        /// How many to leave out before them.
        offset: u32,
    },
    /// One column alone, where its value compares so (`ColumnValueFilter`).
    ColumnValue(ColumnTest),
    /// Whole rows, where one column's value compares so (`SingleColumnValueFilter`).
    SingleColumnValue {
        /// The column and what its value is held against.
        test: ColumnTest,
        /// Rows without the column are left out; HBase keeps them unless told.
        if_missing: bool,
        /// Only the newest version counts; HBase's default.
        latest_only: bool,
        /// The tested column itself is left out of the answer (`SingleColumnValueExcludeFilter`).
        exclude: bool,
    },
    /// Cells of exactly these times (`TimestampsFilter`).
    Timestamps(Vec<Timestamp>),
    /// The first so many rows that the rest of the scan's filter lets through (`PageFilter`). Counted over the whole
    /// scan, where HBase counts a region at a time.
    Page(u64),
    /// Everything up to the first thing that the filter within leaves out; there the scan ends (`WhileMatchFilter`).
    WhileMatch(Box<Filter>),
    /// Only rows of which the filter within leaves nothing out (`SkipFilter`).
    Skip(Box<Filter>),
    /// All of them, or one of them (`FilterList`).
    List(ListOperator, Vec<Filter>),
}

impl Filter {
    /// Whether it judges rows by all their cells, and so cannot be had with rows in pieces (`hasFilterRow`).
    pub fn judges_whole_rows(&self) -> bool {
        match self {
            Self::SingleColumnValue { .. } | Self::Page(_) | Self::WhileMatch(_) | Self::Skip(_) => true,
            Self::List(_, list) => list.iter().any(Self::judges_whole_rows),
            _ => false,
        }
    }

    /// Whether it passes one cell of a row at most: a store may then leave the rest of the row unread.
    ///
    /// ```
    /// use basalt_store::{Filter, ListOperator};
    /// let both = vec![Filter::FirstKeyOnly, Filter::KeyOnly];
    /// assert!(Filter::List(ListOperator::All, both.clone()).is_first_key_only());
    /// assert!(!Filter::List(ListOperator::One, both).is_first_key_only());
    /// ```
    pub fn is_first_key_only(&self) -> bool {
        match self {
            Self::FirstKeyOnly => true,
            Self::List(ListOperator::All, list) => list.iter().any(Self::is_first_key_only),
            _ => false,
        }
    }
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
