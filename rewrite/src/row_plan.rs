//! What a row's rewrite is: the cell to put, and the very versions that it stands for, to delete.
//!
//! The put cell bears the newest time of its parts, never the time of the rewrite: whoever deleted or wrote the row since
//! it was read has a newer one, and wins. A part is deleted up to the time at which it was read: what was written to its
//! column since stays.

use basalt_schema::{BaseTime, ColumnKind, Duplicates, Qualifier, RowCell, RowFold};
use basalt_store::{RowView, Timestamp};

/// What becomes of a row that was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing: it holds one cell of points or none, points that were appended, or points that cannot be written back.
    Keep,
    /// Nothing, as its cells do not hold what their qualifiers say: the evidence stays for `fsck`.
    Damaged,
    /// Nothing yet: it was just written to.
    TooYoung,
    /// This.
    Rewrite(RowPlan),
}

/// One row's rewrite.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RowPlan {
    pub(crate) key: Vec<u8>,
    /// The folded cell.
    pub(crate) qualifier: Vec<u8>,
    pub(crate) value: Vec<u8>,
    /// The newest time of its parts.
    pub(crate) time: Timestamp,
    /// The row holds the folded cell already: a rewrite before got as far as that.
    pub(crate) is_put: bool,
    /// Columns of the parts, and when they were written.
    pub(crate) parts: Vec<(Vec<u8>, Timestamp)>,
    /// Points that the fold leaves out as others have their instants: with the same bytes, and with others.
    pub(crate) duplicates: DuplicatesCount,
}

/// Points at instants that others of the row have too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DuplicatesCount {
    pub(crate) identical: u64,
    pub(crate) variant: u64,
}

/// Plans rows; reused from row to row.
#[derive(Debug, Default)]
pub(crate) struct Planner {
    fold: RowFold,
}

impl Planner {
    /// What to do with a row of the data table's family as it was read. `quiet_since`: rows with a later cell wait.
    pub(crate) fn plan(&mut self, row: &RowView<'_>, base: BaseTime, quiet_since: Timestamp) -> Verdict {
        let cells: Vec<RowCell<'_>> = row.cells().map(RowCell::from).collect();
        let folded = match self.fold.fold(&cells, Duplicates::NewestWins) {
            Ok(Some(folded)) => folded,
            Ok(None) => return Verdict::Keep,
            Err(_) => return Verdict::Damaged,
        };
        let joined = || cells.iter().filter(|cell| RowFold::joins(cell.qualifier));
        if bear_times_of_points(joined(), base) {
            return Verdict::Keep;
        }
        if folded.timestamp > quiet_since {
            return Verdict::TooYoung;
        }
        let is_put = joined().any(|cell| {
            cell.qualifier == folded.qualifier && cell.value == folded.value && cell.timestamp == folded.timestamp
        });
        let parts = joined().filter(|cell| cell.qualifier != folded.qualifier);
        let parts: Vec<_> = parts.map(|cell| (cell.qualifier.to_vec(), cell.timestamp)).collect();
        if is_put && parts.is_empty() {
            return Verdict::Keep;
        }
        Verdict::Rewrite(RowPlan {
            key: row.key().to_vec(),
            qualifier: folded.qualifier.to_vec(),
            value: folded.value.to_vec(),
            time: folded.timestamp,
            is_put,
            parts,
            duplicates: count_duplicates(joined()),
        })
    }
}

/// Whether all lone points were written with their own times (`tsd.storage.use_otsdb_timestamp`). Two writes of one point
/// have one time then, and a deletion of the one that was read would take the other too.
fn bear_times_of_points<'a>(cells: impl Iterator<Item = &'a RowCell<'a>>, base: BaseTime) -> bool {
    let mut lone = cells.filter(|cell| ColumnKind::of(cell.qualifier) == ColumnKind::Point).peekable();
    let is_own = |cell: &RowCell<'_>| {
        let offset_ms = Qualifier::decode_first(cell.qualifier).map(|(qualifier, _)| u64::from(qualifier.offset_ms));
        offset_ms.is_some_and(|offset_ms| base.millis() + offset_ms == cell.timestamp.0)
    };
    lone.peek().is_some() && lone.all(is_own)
}

fn count_duplicates<'a>(cells: impl Iterator<Item = &'a RowCell<'a>>) -> DuplicatesCount {
    let mut points = Vec::new();
    for cell in cells {
        // Read once already: it is not damaged.
        let pushed = cell.for_each_point(|point| points.push((point.qualifier.offset_ms, point.value)));
        debug_assert!(pushed.is_ok(), "BUG: a cell that was folded cannot be read");
    }
    points.sort_unstable();
    let mut count = DuplicatesCount::default();
    for (one, other) in points.iter().zip(points.iter().skip(1)).filter(|(one, other)| one.0 == other.0) {
        *(if one.1 == other.1 { &mut count.identical } else { &mut count.variant }) += 1;
    }
    count
}
