//! What a reader asks for: a range of rows or a list of them, and which of their cells.

use bytes::Bytes;

use crate::{Filter, Packing, SeqNo, Timestamp};

/// A half-open range of cell times: `min` in, `max` out (rule S-GET-5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeRange {
    /// The earliest time that is in.
    pub min: Timestamp,
    /// The earliest time after it that is out; [`TimeRange::ALL`]'s takes every time in.
    pub max: Timestamp,
}

impl TimeRange {
    /// Every time. `max` is one past the largest legal time.
    pub const ALL: Self = Self { min: Timestamp(0), max: Timestamp(Timestamp::LATEST.0 + 1) };

    /// The state at `time`: everything up to and with it.
    pub fn as_of(time: Timestamp) -> Self {
        Self { min: Timestamp(0), max: Timestamp(time.0.saturating_add(1)) }
    }

    /// Whether a cell of this time is in.
    pub fn contains(&self, time: Timestamp) -> bool {
        self.min <= time && time < self.max
    }
}

impl Default for TimeRange {
    fn default() -> Self {
        Self::ALL
    }
}

/// One family, whole or some columns of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FamilyColumns {
    /// The family.
    pub family: Bytes,
    /// The qualifiers wanted, in any order; empty: all.
    pub qualifiers: Vec<Bytes>,
}

/// Which columns; empty: every family whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Columns(pub Vec<FamilyColumns>);

impl Columns {
    /// Every family whole.
    pub fn all() -> Self {
        Self::default()
    }

    /// One family whole.
    pub fn family(family: impl Into<Bytes>) -> Self {
        Self(vec![FamilyColumns { family: family.into(), qualifiers: Vec::new() }])
    }

    /// One column.
    pub fn column(family: impl Into<Bytes>, qualifier: impl Into<Bytes>) -> Self {
        Self(vec![FamilyColumns { family: family.into(), qualifiers: vec![qualifier.into()] }])
    }
}

/// A get: rows by key, answered in the order asked, absent rows left out (rule S-GET-1).
#[derive(Debug, Clone)]
pub struct Get {
    /// The rows; a list is answered with one batch, and bounded by the store.
    pub rows: Vec<Bytes>,
    /// Which columns.
    pub columns: Columns,
    /// Which cell times.
    pub time_range: TimeRange,
    /// How many versions of a column at most; 1 by default.
    pub versions: u32,
    /// What to leave out at the store.
    pub filter: Option<Filter>,
    /// How rows of points may come; a store that keeps none by columns gives cells.
    pub packing: Packing,
}

impl Get {
    /// One row whole, newest versions.
    pub fn row(key: impl Into<Bytes>) -> Self {
        Self::rows(vec![key.into()])
    }

    /// Many rows whole, newest versions.
    pub fn rows(rows: Vec<Bytes>) -> Self {
        Self {
            rows,
            columns: Columns::all(),
            time_range: TimeRange::ALL,
            versions: 1,
            filter: None,
            packing: Packing::Cells,
        }
    }

    /// The same, with rows of points packed so where the store can.
    #[must_use]
    pub fn with_packing(mut self, packing: Packing) -> Self {
        self.packing = packing;
        self
    }

    /// The same of these columns only.
    #[must_use]
    pub fn with_columns(mut self, columns: Columns) -> Self {
        self.columns = columns;
        self
    }
}

/// A scan: rows from `start` to `stop` in key order, or from the larger to the smaller when `reversed`.
///
/// The scan is row-consistent: each row is seen as it stood at one moment; different rows may be of different moments.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own, as in HBase's Scan")]
pub struct Scan {
    /// First key; empty: from the table's end that the scan begins at.
    pub start: Bytes,
    /// Whether `start` itself is in; true by default.
    pub start_inclusive: bool,
    /// Last key; empty: to the other end.
    pub stop: Bytes,
    /// Whether `stop` itself is in; false by default (rules S-SCAN-1, S-SCAN-3).
    pub stop_inclusive: bool,
    /// Which columns.
    pub columns: Columns,
    /// Which cell times.
    pub time_range: TimeRange,
    /// How many versions of a column at most; 1 by default. A raw scan gives all that are stored up to this many.
    pub versions: u32,
    /// How many rows at most.
    pub limit_rows: Option<u64>,
    /// How many cells of a row come in one piece; a longer row comes in several with the same key.
    pub batch_cells: Option<u32>,
    /// Rows in descending order; within a row nothing changes (rule S-SCAN-7).
    pub reversed: bool,
    /// Tombstones and deleted cells too (rule S-KEEP-3).
    pub raw: bool,
    /// What to leave out at the store.
    pub filter: Option<Filter>,
    /// About how many bytes a [`RowBatch`](crate::RowBatch) carries.
    pub batch_bytes: usize,
    /// Whether blocks that are read stay in the block cache; a long scan does not want that.
    pub cache_blocks: bool,
    /// How rows of points may come; a store that keeps none by columns gives cells.
    pub packing: Packing,
    /// Rows may be left out of which everything was written up to this change; a store that does not number its changes leaves
    /// none out. Cells of a row that is not left out may be missing, so nothing but the key is to be asked of it.
    pub after: Option<SeqNo>,
}

/// About how many bytes a batch of a scan carries by default.
const BATCH_BYTES_DEFAULT: usize = 256 * 1024;

impl Scan {
    /// A scan of at most so many rows is read at once, on the caller's thread, by a store that has threads for longer ones.
    pub const SHORT_ROWS: u64 = 256;

    /// Every row, newest versions.
    pub fn all() -> Self {
        Self::range(Bytes::new(), Bytes::new())
    }

    /// The rows of `[start, stop)`, newest versions.
    pub fn range(start: impl Into<Bytes>, stop: impl Into<Bytes>) -> Self {
        Self {
            start: start.into(),
            start_inclusive: true,
            stop: stop.into(),
            stop_inclusive: false,
            columns: Columns::all(),
            time_range: TimeRange::ALL,
            versions: 1,
            limit_rows: None,
            batch_cells: None,
            reversed: false,
            raw: false,
            filter: None,
            batch_bytes: BATCH_BYTES_DEFAULT,
            cache_blocks: true,
            packing: Packing::Cells,
            after: None,
        }
    }

    /// The rows that begin with `prefix` (rule S-SCAN-4); an empty prefix is every row.
    pub fn prefix(prefix: &[u8]) -> Self {
        Self::range(Bytes::copy_from_slice(prefix), after_prefix(prefix))
    }

    /// The same of these columns only.
    #[must_use]
    pub fn with_columns(mut self, columns: Columns) -> Self {
        self.columns = columns;
        self
    }

    /// The same, with rows of points packed so where the store can.
    #[must_use]
    pub fn with_packing(mut self, packing: Packing) -> Self {
        self.packing = packing;
        self
    }

    /// The same through a filter.
    #[must_use]
    pub fn with_filter(mut self, filter: Filter) -> Self {
        self.filter = Some(filter);
        self
    }
}

/// The smallest key after all that begin with `prefix`; empty (the table's end) when there is none.
pub(crate) fn after_prefix(prefix: &[u8]) -> Bytes {
    let mut stop = prefix.to_vec();
    while let Some(last) = stop.pop() {
        if last < u8::MAX {
            stop.push(last + 1);
            break;
        }
    }
    stop.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s_scan_4_a_prefix_is_a_range() {
        let check = |prefix: &[u8], stop: &[u8]| assert_eq!(&Scan::prefix(prefix).stop[..], stop);
        check(b"pre", b"prf");
        check(b"a\xff\xff", b"b");
        check(b"\xff", b"");
        check(b"", b"");
    }

    #[test]
    fn s_get_5_ranges_are_half_open() {
        let range = TimeRange { min: Timestamp(0), max: Timestamp(20) };
        assert!(range.contains(Timestamp(10)) && !range.contains(Timestamp(20)));
        assert!(TimeRange::as_of(Timestamp(20)).contains(Timestamp(20)));
        assert!(TimeRange::ALL.contains(Timestamp::LATEST));
    }
}
