//! Which times some cells have or reach.

use basalt_store::{CellKind, CellRef, TimeRange};

/// From the smallest to the largest time, both in. A tombstone over a column or a family reaches down to time 0, so
/// that a range that it hides cells of never passes it by. The default holds no time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeSpan {
    /// The smallest time.
    pub(crate) min: u64,
    /// The largest time: the newest cell's own.
    pub(crate) max: u64,
}

impl Default for TimeSpan {
    fn default() -> Self {
        Self { min: u64::MAX, max: 0 }
    }
}

impl TimeSpan {
    /// Widens to a cell.
    pub(super) fn include(&mut self, cell: &CellRef<'_>) {
        let reaches_down = matches!(cell.kind, CellKind::DeleteColumn | CellKind::DeleteFamily);
        self.min = self.min.min(if reaches_down { 0 } else { cell.timestamp.0 });
        self.max = self.max.max(cell.timestamp.0);
    }

    /// Widened to another one.
    pub(super) fn with(self, other: TimeSpan) -> TimeSpan {
        TimeSpan { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    /// Whether a cell of these may be in the range, or hide one that is.
    pub(crate) fn overlaps(&self, range: TimeRange) -> bool {
        self.min < range.max.0 && self.max >= range.min.0
    }
}
