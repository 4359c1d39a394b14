//! A data row decoded: the points of all its cells, one an instant, in time order.
//!
//! A row may hold plain, compacted and appended cells at once, and two of them may tell of one instant: a second `S` and a
//! millisecond `1000·S` are the same one. The newest write wins: by the cell's time, then by its sequence number, then a
//! lone point over a joined cell, then that which OpenTSDB takes ([`ties`]); within a cell the later point. *Source*: OpenTSDB 2.4
//! `CompactionQueue`, `RowSeq` with `tsd.storage.fix_duplicates = true` (rules S-DUP-NEWEST, S-DUP-SMS).

mod joined;
pub(crate) mod ties;

use std::cmp::Reverse;

use basalt_store::{SeqNo, Timestamp};

use self::joined::ascend;
use self::ties::Placed;
use crate::value::decode_word;
use crate::{ColumnKind, Damage, Duplicates, LargerOrSmaller, PointKind, Result, RowCell, StoredPoint, Value};

/// The points of one row as a struct of arrays; reused from row to row, it stops allocating.
///
/// *Shape*: three arrays of one length; offsets strictly ascending.
///
/// ```
/// use basalt_schema::{Duplicates, RowCell, RowPoints, Value};
/// use basalt_store::{SeqNo, Timestamp};
/// let cell = RowCell {
///     qualifier: &[0x00, 0x00, 0x00, 0x10],
///     value: &[42, 43, 0],
///     timestamp: Timestamp(1),
///     seq: SeqNo(0),
/// };
/// let mut points = RowPoints::default();
/// points.decode([cell], Duplicates::NewestWins)?;
/// assert_eq!(points.offsets_ms(), &[0, 1000]);
/// assert_eq!(points.value(1), Some(Value::Int(43)));
/// # Ok::<(), basalt_schema::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct RowPoints {
    offsets_ms: Vec<u32>,
    values: Vec<u64>,
    kinds: Vec<PointKind>,
    /// Where each cell's points end, and when it was written.
    cells: Vec<CellSpan>,
    /// Scratch of the slow path.
    slots: Vec<Slot>,
}

/// When a cell was written; the greater wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Written {
    pub(crate) timestamp: Timestamp,
    pub(crate) seq: SeqNo,
    pub(crate) lone: bool,
}

#[derive(Debug, Clone, Copy)]
struct CellSpan {
    written: Written,
    points_end: usize,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    offset_ms: u32,
    kind: PointKind,
    value: u64,
    written: Written,
    /// Which of the row's cells that have points it lies in.
    cell: usize,
    position: usize,
}

impl RowPoints {
    /// Milliseconds into the row, strictly ascending.
    pub fn offsets_ms(&self) -> &[u32] {
        &self.offsets_ms
    }

    /// Raw 64-bit words: integers sign-extended, floats widened to 64 bits ([`Value::from_word`]).
    pub fn values(&self) -> &[u64] {
        &self.values
    }

    /// Integer or float, and how it was stored.
    pub fn kinds(&self) -> &[PointKind] {
        &self.kinds
    }

    /// How many points.
    pub fn len(&self) -> usize {
        self.offsets_ms.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.offsets_ms.is_empty()
    }

    /// The value at `index`.
    pub fn value(&self, index: usize) -> Option<Value> {
        Some(Value::from_word(*self.kinds.get(index)?, *self.values.get(index)?))
    }

    /// Empties it and keeps its memory.
    pub fn clear(&mut self) {
        self.offsets_ms.clear();
        self.values.clear();
        self.kinds.clear();
        self.cells.clear();
        self.slots.clear();
    }

    /// Replaces the points by those of `cells`: all cells of one row, at most one version a column. Cells that hold no
    /// points (annotations, histograms, unknown columns) are passed over.
    ///
    /// *Cost*: one pass when the cells come in time order, as a compacted row does; else a sort. No allocation once warm.
    ///
    /// # Errors
    /// `Corrupt`: a cell that does not hold what its qualifier says. The points are unspecified then.
    pub fn decode<'a>(&mut self, cells: impl IntoIterator<Item = RowCell<'a>>, duplicates: Duplicates) -> Result<()> {
        self.clear();
        let mut ascending = true;
        for cell in cells {
            let before = self.offsets_ms.len();
            // Fast path: a folded row.
            let joined = ColumnKind::of(cell.qualifier) == ColumnKind::Compacted;
            if !(joined && self.push_joined(cell.qualifier, cell.value)) {
                self.walk(&cell)?;
            }
            let (earlier, added) = self.offsets_ms.split_at(before);
            ascending &= ascend(earlier.last().copied(), added);
            self.end_cell(&cell);
        }
        // Fast path: what is in order has no duplicates either.
        if !ascending {
            self.resolve(duplicates);
        }
        Ok(())
    }

    /// Adds the points of a cell one by one.
    fn walk(&mut self, cell: &RowCell<'_>) -> Result<()> {
        let mut readable = true;
        cell.for_each_point(|point| readable &= self.push(point))?;
        if readable { Ok(()) } else { Err(cell.corrupt(Damage::ValueLength)) }
    }

    /// Adds a point; false if no value has its length.
    fn push(&mut self, point: StoredPoint<'_>) -> bool {
        let kind = point.qualifier.kind;
        let Some(word) = decode_word(kind, point.value) else {
            return false;
        };
        self.offsets_ms.push(point.qualifier.offset_ms);
        self.values.push(word);
        self.kinds.push(kind);
        true
    }

    fn end_cell(&mut self, cell: &RowCell<'_>) {
        let lone = ColumnKind::of(cell.qualifier) == ColumnKind::Point;
        let written = Written { timestamp: cell.timestamp, seq: cell.seq, lone };
        self.cells.push(CellSpan { written, points_end: self.values.len() });
    }

    /// Slow path: sorts the points by time and, within an instant, newest first; keeps the first of each instant.
    fn resolve(&mut self, duplicates: Duplicates) {
        let mut spans = self.cells.iter().enumerate();
        let mut span = spans.next();
        let points = self.offsets_ms.iter().zip(&self.values).zip(&self.kinds);
        for (position, ((offset_ms, value), kind)) in points.enumerate() {
            while span.is_some_and(|(_, span)| span.points_end <= position) {
                span = spans.next();
            }
            let Some((cell, CellSpan { written, .. })) = span else { break };
            let (offset_ms, kind, value, written) = (*offset_ms, *kind, *value, *written);
            self.slots.push(Slot { offset_ms, kind, value, written, cell, position });
        }
        assert_eq!(self.slots.len(), self.values.len(), "BUG: points beyond the cells they came from");
        self.slots.sort_unstable_by_key(|slot| (slot.offset_ms, Reverse((slot.written, slot.position))));
        let is_tie = |newer: &Slot, older: &Slot| {
            (newer.offset_ms, newer.written) == (older.offset_ms, older.written) && newer.cell != older.cell
        };
        if self.slots.iter().zip(self.slots.iter().skip(1)).any(|(newer, older)| is_tie(newer, older)) {
            self.break_ties();
        }
        match duplicates {
            Duplicates::ByValue(kept) => keep_by_value(&mut self.slots, kept),
            Duplicates::NewestWins => self.slots.dedup_by_key(|slot| slot.offset_ms),
        }
        self.offsets_ms.clear();
        self.values.clear();
        self.kinds.clear();
        self.offsets_ms.extend(self.slots.iter().map(|slot| slot.offset_ms));
        self.values.extend(self.slots.iter().map(|slot| slot.value));
        self.kinds.extend(self.slots.iter().map(|slot| slot.kind));
    }

    /// Puts first of each instant what OpenTSDB would take.
    fn break_ties(&mut self) {
        self.slots.sort_unstable_by_key(|slot| slot.position);
        let place = |slot: &Slot| Placed { cell: slot.cell, offset_ms: slot.offset_ms, written: slot.written };
        let turns = ties::turns(&self.slots.iter().map(place).collect::<Vec<_>>());
        self.slots
            .sort_unstable_by_key(|slot| (slot.offset_ms, Reverse(slot.written), turns.get(slot.position).copied()));
    }
}

/// Keeps of each instant the larger or the smaller value, compared as doubles; of equal ones the first.
fn keep_by_value(slots: &mut Vec<Slot>, kept: LargerOrSmaller) {
    let double = |slot: &Slot| match Value::from_word(slot.kind, slot.value) {
        #[expect(clippy::cast_precision_loss, reason = "they are compared as OpenTSDB compares them")]
        Value::Int(value) => value as f64,
        Value::Float(value) => value,
    };
    slots.dedup_by(|next, first| {
        let same = next.offset_ms == first.offset_ms;
        let wins = match kept {
            LargerOrSmaller::Larger => double(next) > double(first),
            LargerOrSmaller::Smaller => double(next) < double(first),
        };
        if same && wins {
            *first = *next;
        }
        same
    });
}

#[cfg(test)]
mod tests;
