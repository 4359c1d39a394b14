//! One family of a memtable as a stream of rows, forward. A row whose cells are points can be given by columns; it is copied into
//! cells only when a reader asks for them.

use std::cmp::Ordering;
use std::sync::Arc;

use basalt_store::{CellKind, CellRef, PackedPoint, PackedRows, Packing, RowPut, Timestamp};

use super::arena::Arena;
use super::cursor::{From, MemtableCursor};
use super::entry::Entry;
use super::family::FamilyCells;
use super::rows::Rows;
use super::slot::{Ends, Slot};
use crate::error::Result;
use crate::merge::{CellSource, Step};
use crate::sstable::BlockCodec;

/// Rows whose keys are copied at first: most seeks want one row.
const ROWS_AHEAD: usize = 2;
/// Each further copy takes this many times as many rows, up to [`ROWS_AHEAD_MAX`].
const ROWS_GROWTH: usize = 4;
const ROWS_AHEAD_MAX: usize = 128;

/// A row of more cells is copied out in pieces, since writers wait while a row is read under the lock.
const CELLS_MAX: usize = 8192;

/// Walks one family of a memtable row by row. It sees what its read point allows.
#[derive(Debug)]
pub(crate) struct MemtableRowCursor {
    /// The cells of the row that it stands on, once the row is unpacked.
    cells: MemtableCursor,
    is_unpacked: bool,
    /// Tells which point a cell is; without it no row is given by columns.
    codec: Option<Arc<dyn BlockCodec>>,
    /// Whether only one row is wanted, as for a get.
    one_row: bool,
    ahead: Ahead,
}

/// The next rows, copied out under one lock.
#[derive(Debug, Default)]
struct Ahead {
    /// The keys of the rows, one behind the other.
    keys: Vec<u8>,
    rows: Vec<AheadRow>,
    /// The row that the cursor stands on.
    at: usize,
    /// Whether the memtable has rows behind the last of these.
    more: bool,
}

#[derive(Debug, Clone, Copy)]
struct AheadRow {
    /// The row's number in the memtable, which never changes.
    number: u32,
    key_end: usize,
}

/// What is known of a row's points so far.
struct Points {
    is_float: bool,
    /// The offset of the last point.
    before: Option<u32>,
    /// The times at which the points were written.
    oldest: Timestamp,
    newest: Timestamp,
}

impl Points {
    /// Takes the next point; false if it is of another kind or not later than the one before. Where this holds for all points, no
    /// two cells are of one column, and no two points are at one instant.
    fn take(&mut self, point: PackedPoint, written: Timestamp) -> bool {
        let is_next = point.is_float == self.is_float && self.before.is_none_or(|before| before < point.offset_ms);
        self.before = Some(point.offset_ms);
        (self.oldest, self.newest) = (self.oldest.min(written), self.newest.max(written));
        is_next
    }
}

impl Ahead {
    fn key(&self, at: usize) -> Option<&[u8]> {
        let start = at.checked_sub(1).and_then(|before| self.rows.get(before)).map_or(0, |before| before.key_end);
        self.keys.get(start..self.rows.get(at)?.key_end)
    }

    /// Moves to the first row at or behind a key, if the rows copied out hold it; false if they do not.
    fn pass_to(&mut self, key: &[u8]) -> bool {
        let is_ahead = |at| self.key(at).is_some_and(|row| row >= key);
        let is_here = self.key(self.at).is_some_and(|row| row <= key) && is_ahead(self.rows.len().wrapping_sub(1));
        if is_here {
            self.at = (self.at..self.rows.len()).find(|at| is_ahead(*at)).unwrap_or(self.rows.len());
        }
        is_here
    }
}

impl MemtableRowCursor {
    /// A cursor over the family that `cells` walks forward. It stands nowhere yet. `one_row` is for a get.
    pub(crate) fn new(cells: MemtableCursor, codec: Arc<dyn BlockCodec>, one_row: bool) -> MemtableRowCursor {
        MemtableRowCursor { codec: Some(codec), one_row, ..MemtableRowCursor::whole(cells) }
    }

    /// The same over all rows, for a flush, and never by columns.
    pub(crate) fn whole(cells: MemtableCursor) -> MemtableRowCursor {
        let cells = cells.of_one_row(true);
        MemtableRowCursor { cells, is_unpacked: false, codec: None, one_row: false, ahead: Ahead::default() }
    }

    /// The cells of the row that it stands on, if the row is unpacked.
    pub(crate) fn cells_mut(&mut self) -> Option<&mut MemtableCursor> {
        self.is_unpacked.then_some(&mut self.cells)
    }

    /// Adds the row that it stands on to `out` as points. Answers how many cells the row has, at most 8,192; 0, with nothing added,
    /// if the row can be given only as cells.
    ///
    /// It is added as points if every cell is a put of one point, all are visible and of one kind, and `keeps` accepts the oldest
    /// and the newest time at which they were written. With [`Packing::Newest`], and where a few cells tell which one that is, only
    /// the newest point is added.
    pub(crate) fn pack(
        &self,
        packing: Packing,
        keeps: impl Fn(Timestamp, Timestamp) -> bool,
        out: &mut PackedRows,
    ) -> usize {
        let Some(AheadRow { number, .. }) = self.ahead.rows.get(self.ahead.at) else { return 0 };
        let packed = self.cells.with_family(|FamilyCells { rows, arena, .. }| {
            let (_, slot) = rows.row(*number, arena).filter(|(_, slot)| slot.len() <= CELLS_MAX)?;
            // Fast path: the newest point, which no other cell of the row can change.
            if packing == Packing::Newest
                && let Some((point, written)) = self.newest(slot, rows, arena)
                && keeps(written, written)
            {
                out.push_point(point);
                return Some(slot.len());
            }
            let cells = || slot.cells_from(rows.runs(), |_| Ordering::Greater);
            let (first, _) = self.point(cells().next()?, arena)?;
            let is_float = first.is_float;
            let mut points = Points { is_float, before: None, oldest: Timestamp::LATEST, newest: Timestamp(0) };
            let fill = |offsets_ms: &mut [u32], words: &mut [u64]| {
                let mut places = cells().zip(offsets_ms).zip(words);
                let are_points = places.all(|((entry, offset_ms), word)| {
                    let point = self.point(entry, arena).filter(|(point, written)| points.take(*point, *written));
                    point.inspect(|(point, _)| (*offset_ms, *word) = (point.offset_ms, point.word)).is_some()
                });
                are_points && keeps(points.oldest, points.newest)
            };
            let count = slot.len();
            out.push(count, is_float, fill).then_some(count)
        });
        packed.unwrap_or(0)
    }

    /// The newest point of a row and the time at which it was written, if a few of the row's cells tell it.
    fn newest(&self, slot: &Slot, rows: &Rows, arena: &Arena) -> Option<(PackedPoint, Timestamp)> {
        let Ends { first, before_last, last } = slot.ends_if_plain(rows.runs())?;
        let (newest, written) = self.point(last, arena)?;
        let is_older = |entry| self.point(entry, arena).is_some_and(|(point, _)| point.offset_ms < newest.offset_ms);
        before_last
            .is_none_or(|before| is_older(before) && self.point(first, arena).is_some())
            .then_some((newest, written))
    }

    /// The point in a cell and the time at which it was written; `None` if the cell is not visible or not one point.
    fn point(&self, entry: &Entry, arena: &Arena) -> Option<(PackedPoint, Timestamp)> {
        let (written, sequence) = entry.stamped(arena);
        if entry.kind != CellKind::Put || sequence.0 > self.cells.read_point() {
            return None;
        }
        let (qualifier, value) = entry.bytes(arena);
        self.codec.as_ref()?.point(qualifier, value).map(|point| (point, written))
    }

    /// Copies out rows from a key on, or from behind it; from the first row on if there is no key.
    fn look_ahead(&mut self, from: Option<&[u8]>, is_behind: bool) {
        let Ahead { mut keys, mut rows, .. } = std::mem::take(&mut self.ahead);
        let wanted = if self.one_row { 1 } else { (rows.len() * ROWS_GROWTH).clamp(ROWS_AHEAD, ROWS_AHEAD_MAX) };
        keys.clear();
        rows.clear();
        let (mut more, read_point) = (false, self.cells.read_point());
        self.cells.with_family(|cells| {
            let FamilyCells { rows: all, arena, .. } = cells;
            let is_seen = |entry: &Entry| entry.stamped(arena).1.0 <= read_point;
            for number in all.numbers_from(from, arena) {
                let Some((key, slot)) = all.row(number, arena) else { continue };
                let is_from = Some(key) == from;
                if self.one_row && !is_from {
                    break;
                }
                if (is_behind && is_from) || !slot.has_any(all.runs(), is_seen) {
                    continue;
                }
                keys.extend_from_slice(key);
                rows.push(AheadRow { number, key_end: keys.len() });
                if rows.len() == wanted {
                    more = !self.one_row;
                    break;
                }
            }
            Some(())
        });
        self.ahead = Ahead { keys, rows, at: 0, more };
        self.is_unpacked = false;
    }

    fn next_row(&mut self) {
        self.is_unpacked = false;
        self.ahead.at += 1;
        if self.ahead.at >= self.ahead.rows.len() && self.ahead.more {
            let last = self.ahead.key(self.ahead.rows.len() - 1).map(<[u8]>::to_vec);
            self.look_ahead(last.as_deref(), true);
        }
    }
}

impl CellSource for MemtableRowCursor {
    fn cell(&self) -> Option<CellRef<'_>> {
        if self.is_unpacked { self.cells.cell() } else { None }
    }

    fn row(&self) -> Option<&[u8]> {
        self.ahead.key(self.ahead.at)
    }

    fn unpack(&mut self) -> Result<()> {
        if let Some(row) = self.ahead.key(self.ahead.at).filter(|_| !self.is_unpacked) {
            self.cells.fill(&From::Column(row, &[]));
            self.is_unpacked = true;
        }
        Ok(())
    }

    fn lend_row(&self, take: &mut dyn FnMut(&[u8], &[RowPut<'_>]) -> bool) -> bool {
        let Some(AheadRow { number, .. }) = self.ahead.rows.get(self.ahead.at).filter(|_| !self.is_unpacked) else {
            return false;
        };
        let taken = self.cells.with_family(|FamilyCells { rows, arena, .. }| {
            let (key, slot) =
                rows.row(*number, arena).filter(|(_, slot)| slot.is_plain() && slot.len() <= CELLS_MAX)?;
            let mut puts = Vec::with_capacity(slot.len());
            slot.cells_from(rows.runs(), |_| Ordering::Greater).for_each(|entry| {
                let ((qualifier, value), (timestamp, seq)) = (entry.bytes(arena), entry.stamped(arena));
                puts.push(RowPut { qualifier, timestamp, seq, value });
            });
            let are_seen = puts.iter().all(|put| put.seq.0 <= self.cells.read_point());
            are_seen.then(|| take(key, &puts))
        });
        taken.unwrap_or(false)
    }

    fn advance(&mut self) -> Result<Step> {
        if self.is_unpacked {
            self.cells.advance()?;
            if self.cells.cell().is_some() {
                return Ok(Step::SameRow);
            }
        }
        self.next_row();
        Ok(Step::OtherRow)
    }

    fn rewind(&mut self) -> Result<()> {
        self.ahead.rows.clear();
        self.look_ahead(None, false);
        Ok(())
    }

    fn seek(&mut self, row: &[u8], qualifier: &[u8]) -> Result<()> {
        if !self.ahead.pass_to(row) {
            self.ahead.rows.clear();
            self.look_ahead(Some(row), false);
        }
        self.is_unpacked = false;
        if !qualifier.is_empty() && self.row() == Some(row) {
            self.cells.seek(row, qualifier)?;
            self.is_unpacked = true;
            if self.cells.cell().is_none() {
                self.next_row();
            }
        }
        Ok(())
    }
}
