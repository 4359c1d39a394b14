//! A row under check: its points, by the order in which readers take them, and what mends it.

use std::collections::{BTreeMap, BTreeSet};

use basalt_store::Timestamp;

use super::value;
use crate::row::Written;
use crate::row::ties::{Placed, turns};
use crate::{CompactedCell, RowCell, StoredPoint, Value};

/// What mends a row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowMend {
    /// The whole row goes.
    pub delete_row: bool,
    /// Columns that go.
    pub deletes: BTreeSet<Vec<u8>>,
    /// Columns that are put, with value and time, the store's own where there is none; none is among `deletes`.
    pub puts: BTreeMap<Vec<u8>, (Vec<u8>, Option<Timestamp>)>,
}

impl RowMend {
    /// Whether the row stays as it is.
    pub fn is_empty(&self) -> bool {
        !self.delete_row && self.deletes.is_empty() && self.puts.is_empty()
    }

    pub(super) fn delete(&mut self, qualifier: &[u8]) {
        if !self.puts.contains_key(qualifier) {
            self.deletes.insert(qualifier.to_vec());
        }
    }
}

/// A point of a row and the cell that it lies in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dp<'a> {
    pub(super) cell: RowCell<'a>,
    pub(super) point: StoredPoint<'a>,
    pub(super) compacted: bool,
    pub(super) position: usize,
}

impl Dp<'_> {
    /// When it was written; the greater is the newer, by the same order as readers' ([`crate::row`]).
    pub(super) fn written(&self) -> Written {
        Written { timestamp: self.cell.timestamp, seq: self.cell.seq, lone: !self.compacted }
    }

    /// Its value as readers compare it; those that cannot be read give way anyway.
    pub(super) fn double(&self) -> f64 {
        match Value::decode(self.point.qualifier.kind, self.point.value) {
            #[expect(clippy::cast_precision_loss, reason = "readers compare them so")]
            Some(Value::Int(value)) => value as f64,
            Some(Value::Float(value)) => value,
            None => 0.0,
        }
    }

    /// Whether it cannot be known what its value was.
    pub(super) fn is_bad(&self) -> bool {
        matches!(value::check(self.point.qualifier.kind, self.point.value), value::Verdict::Bad { .. })
    }
}

/// The row under check.
#[derive(Debug, Default)]
pub(super) struct Row<'a> {
    pub(super) points: BTreeMap<u32, Vec<Dp<'a>>>,
    pub(super) points_count: usize,
    pub(super) has_compacted: bool,
    /// An append cell has one time for all its points: which of them is newer than another cell's must not change.
    pub(super) has_appended: bool,
    /// An error that may not be mended: the row is not folded.
    pub(super) unmended: bool,
    /// Duplicates that go with the fold.
    pub(super) duplicates_folded: u64,
    /// Errors of compacted cells that only a fold mends.
    pub(super) compacts_folded: u64,
    pub(super) folded: CompactedCell,
    pub(super) mend: RowMend,
}

impl<'a> Row<'a> {
    pub(super) fn take(&mut self, cell: RowCell<'a>, point: StoredPoint<'a>, compacted: bool) {
        let dp = Dp { cell, point, compacted, position: self.points_count };
        self.points_count += 1;
        self.points.entry(point.qualifier.offset_ms).or_default().push(dp);
    }
}

/// The turn of each point as readers take them; empty where no instant has two.
pub(super) fn turns_of(points: &BTreeMap<u32, Vec<Dp<'_>>>) -> Vec<usize> {
    if points.values().all(|same| same.len() == 1) {
        return Vec::new();
    }
    let mut dps: Vec<_> = points.values().flatten().collect();
    dps.sort_by_key(|dp| dp.position);
    let mut cell = 0;
    let place = |(at, dp): (usize, &&Dp<'_>)| {
        let before = at.checked_sub(1).and_then(|before| dps.get(before));
        cell += usize::from(before.is_some_and(|before| before.cell.qualifier != dp.cell.qualifier));
        Placed { cell, offset_ms: dp.point.qualifier.offset_ms, written: dp.written() }
    };
    turns(&dps.iter().enumerate().map(place).collect::<Vec<_>>())
}
