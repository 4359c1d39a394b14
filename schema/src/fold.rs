//! The fold: the point cells of one row joined into one. OpenTSDB's "compaction", as a pure function.
//!
//! Rules: the points are those that a reader of the cells sees (the newest win, unless cells bear the times of points), in time order, each on the bytes it was
//! stored on; the cell's time and sequence number are the newest of its parts. Annotations, histograms and unknown columns
//! are none of its business. A row with an append cell stays as it is: its points take their age from the whole cell, and
//! joining the cells beside it could change which of two writes is the newer.
//!
//! The caller must pass every cell of the row written between the oldest and the newest of `cells`: a joined cell has one
//! time for all its points. Folding again what was folded changes nothing.

use basalt_store::{SeqNo, Timestamp};

use crate::compacted::is_clean;
use crate::value::stored_bytes;
use crate::{ColumnKind, CompactedCell, Duplicates, Qualifier, Result, RowCell, RowPoints, StoredPoint, Value};

/// Folds rows; reused from row to row, it stops allocating.
///
/// ```
/// use basalt_schema::{Duplicates, RowCell, RowFold};
/// use basalt_store::{SeqNo, Timestamp};
/// let cell = |qualifier, value| RowCell { qualifier, value, timestamp: Timestamp(1), seq: SeqNo(1) };
/// let mut fold = RowFold::default();
/// let cells = [cell(&[0, 0], &[42]), cell(&[0xF0, 0, 0x7D, 0], &[43])];
/// let folded = fold.fold(&cells, Duplicates::NewestWins)?.unwrap();
/// assert_eq!(folded.qualifier, &[0, 0, 0xF0, 0, 0x7D, 0]);
/// assert_eq!(folded.value, &[42, 43, 1]);
/// # Ok::<(), basalt_schema::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct RowFold {
    points: RowPoints,
    cell: CompactedCell,
}

impl RowFold {
    /// The one cell that stands for the point cells among `cells` (those that [`RowFold::joins`]); all others stay.
    /// `None` when nothing is to be done.
    ///
    /// # Errors
    /// `Corrupt`: a point cell that does not hold what its qualifier says; the row is then kept as it is.
    pub fn fold(&mut self, cells: &[RowCell<'_>], duplicates: Duplicates) -> Result<Option<RowCell<'_>>> {
        // Fast paths: points as a flush finds them, and a row that is folded.
        if let Some((timestamp, seq)) = self.join_in_order(cells.iter().copied()) {
            return Ok(Some(self.joined_at(timestamp, seq)));
        }
        if let [cell] = cells
            && is_clean(cell.qualifier, cell.value)
        {
            return Ok(None);
        }
        let mut joined = cells.iter().filter(|cell| Self::joins(cell.qualifier));
        let appended = cells.iter().any(|cell| ColumnKind::of(cell.qualifier) == ColumnKind::Appended);
        let Some(first) = joined.next() else { return Ok(None) };
        let alone = joined.next().is_none();
        if appended || (alone && ColumnKind::of(first.qualifier) == ColumnKind::Point) {
            return Ok(None);
        }
        self.points.decode(cells.iter().filter(|cell| Self::joins(cell.qualifier)).copied(), duplicates)?;
        if !self.join() || (alone && self.cell.qualifier() == first.qualifier && self.cell.value() == first.value) {
            return Ok(None);
        }
        let parts = || cells.iter().filter(|cell| Self::joins(cell.qualifier));
        let timestamp = parts().map(|cell| cell.timestamp).max().unwrap_or(Timestamp(0));
        Ok(Some(self.joined_at(timestamp, parts().map(|cell| cell.seq).max().unwrap_or(SeqNo(0)))))
    }

    /// The one cell that stands for several, if these are lone points in time order, each with the bytes that it would have if it was
    /// written anew; `None` where only [`RowFold::fold`] tells.
    ///
    /// *Cost*: a copy of their bytes.
    pub fn fold_in_order<'a>(&mut self, cells: impl ExactSizeIterator<Item = RowCell<'a>>) -> Option<RowCell<'_>> {
        self.join_in_order(cells).map(|(timestamp, seq)| self.joined_at(timestamp, seq))
    }

    /// Joins such cells; their newest time and number.
    fn join_in_order<'a>(&mut self, cells: impl ExactSizeIterator<Item = RowCell<'a>>) -> Option<(Timestamp, SeqNo)> {
        let (mut timestamp, mut seq) = (Timestamp(0), SeqNo(0));
        let is_several = cells.len() > 1;
        let parts = cells.map(|cell| {
            (timestamp, seq) = (timestamp.max(cell.timestamp), seq.max(cell.seq));
            (cell.qualifier, cell.value)
        });
        (is_several && self.cell.join(parts)).then(|| {
            self.cell.seal();
            (timestamp, seq)
        })
    }

    fn joined_at(&self, timestamp: Timestamp, seq: SeqNo) -> RowCell<'_> {
        RowCell { qualifier: self.cell.qualifier(), value: self.cell.value(), timestamp, seq }
    }

    /// Whether a column is one that a fold joins: a plain or a compacted cell of points.
    pub fn joins(qualifier: &[u8]) -> bool {
        matches!(ColumnKind::of(qualifier), ColumnKind::Point | ColumnKind::Compacted)
    }

    /// Writes the points into the cell; false if one of them cannot be written back bit for bit (a 4-byte NaN).
    fn join(&mut self) -> bool {
        self.cell.clear();
        let points = self.points.offsets_ms().iter().zip(self.points.values()).zip(self.points.kinds());
        for ((offset_ms, word), kind) in points {
            if matches!(Value::from_word(*kind, *word), Value::Float(value) if value.is_nan())
                && kind.value_bytes() == 4
            {
                return false;
            }
            let value = stored_bytes(*kind, *word);
            self.cell.push(StoredPoint { qualifier: Qualifier { offset_ms: *offset_ms, kind: *kind }, value: &value });
        }
        self.cell.seal();
        self.cell.points_count() > 0
    }
}

#[cfg(test)]
mod tests;
