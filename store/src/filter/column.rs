//! Columns by range, and one column's value that decides about its row.

use bytes::Bytes;

use super::compare::Test;
use super::verdict::{Advance, CellVerdict, Kept};
use crate::filter::Comparator;
use crate::{CellRef, Comparison};

/// A range of qualifiers (`ColumnRangeFilter`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnRange {
    /// The smallest qualifier; `None`: from the family's beginning.
    pub min: Option<Bytes>,
    /// Whether `min` itself is in.
    pub min_inclusive: bool,
    /// The largest qualifier; `None`: to the family's end.
    pub max: Option<Bytes>,
    /// Whether `max` itself is in.
    pub max_inclusive: bool,
}

impl ColumnRange {
    pub(super) fn judge(&self, qualifier: &[u8]) -> CellVerdict {
        let below = self.min.as_ref().is_some_and(|min| qualifier < min || (qualifier == min && !self.min_inclusive));
        let above = self.max.as_ref().is_some_and(|max| qualifier > max || (qualifier == max && !self.max_inclusive));
        match (below, above) {
            (true, _) => CellVerdict { kept: Kept::No, advance: Advance::NextColumn },
            (false, true) => CellVerdict { kept: Kept::No, advance: Advance::NextFamily },
            (false, false) => CellVerdict::KEEP,
        }
    }
}

/// A column and what its value is held against: `stored <comparison> comparator`.
#[derive(Debug, Clone)]
pub struct ColumnTest {
    /// The column's family.
    pub family: Bytes,
    /// The column's qualifier.
    pub qualifier: Bytes,
    /// How the value must compare.
    pub comparison: Comparison,
    /// With what.
    pub comparator: Comparator,
}

/// A [`ColumnTest`] at work.
#[derive(Debug)]
pub(super) struct Column {
    family: Bytes,
    qualifier: Bytes,
    test: Test,
}

impl Column {
    pub(super) fn new(told: &ColumnTest) -> Self {
        let ColumnTest { family, qualifier, comparison, comparator } = told;
        Self { family: family.clone(), qualifier: qualifier.clone(), test: Test::new(*comparison, comparator) }
    }

    pub(super) fn is_of(&self, cell: &CellRef<'_>) -> bool {
        cell.family == self.family && cell.qualifier == self.qualifier
    }

    pub(super) fn holds(&self, cell: &CellRef<'_>) -> bool {
        self.test.holds(cell.value)
    }
}

/// A row that one column's value decides about (`SingleColumnValueFilter`).
#[derive(Debug)]
pub(super) struct SingleColumn {
    pub(super) column: Column,
    pub(super) if_missing: bool,
    pub(super) latest_only: bool,
    pub(super) exclude: bool,
    pub(super) seen: Seen,
}

/// What a row has shown of the tested column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    Nothing,
    Failing,
    Matching,
}

impl SingleColumn {
    pub(super) fn judge(&mut self, cell: &CellRef<'_>) -> CellVerdict {
        const OVER: CellVerdict = CellVerdict { kept: Kept::No, advance: Advance::NextRow };
        if self.seen == Seen::Failing && self.latest_only {
            return OVER;
        }
        if self.seen == Seen::Matching || !self.column.is_of(cell) {
            return CellVerdict::KEEP;
        }
        self.seen = if self.column.holds(cell) { Seen::Matching } else { Seen::Failing };
        if self.seen == Seen::Failing && self.latest_only { OVER } else { CellVerdict::KEEP }
    }

    pub(super) fn rejects_row(&self) -> bool {
        match self.seen {
            Seen::Nothing => self.if_missing,
            Seen::Failing => true,
            Seen::Matching => false,
        }
    }

    pub(super) fn reset(&mut self) {
        self.seen = Seen::Nothing;
    }
}
