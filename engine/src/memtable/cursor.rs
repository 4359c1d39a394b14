//! One family of a memtable as a stream of cells for the merge.

use std::cmp::Ordering;
use std::sync::Arc;

use basalt_store::{CellKind, CellRef, SeqNo, Timestamp};
use bytes::Bytes;

use super::Memtable;
use super::entry::Entry;
use super::family::FamilyCells;
use super::slot::Slot;
use crate::error::Result;
use crate::id::FamilyId;
use crate::merge::{CellSource, Direction, Step};

/// About how many bytes are copied out under one lock.
const PIECE_BYTES: usize = 32 * 1024;
/// The same for the first piece of a get: most gets want one cell, and a counter's row has a version for each increment.
const GET_BYTES: usize = 128;
/// Each further piece of a get is this many times as large, up to [`PIECE_BYTES`].
const GET_GROWTH: usize = 4;

/// Walks one family of a memtable. It sees what its read point allows.
#[derive(Debug)]
pub(crate) struct MemtableCursor {
    memtable: Arc<Memtable>,
    family: FamilyId,
    family_name: Bytes,
    direction: Direction,
    /// Cells with a later number are not visible.
    read_point: u64,
    /// Whether only one row is wanted: a get copies no more than it asks for.
    one_row: bool,
    /// A piece is full when it has this many bytes.
    piece_bytes: usize,
    piece: Piece,
    /// The cell of the piece that the cursor stands on.
    at: usize,
}

/// Cells copied out, in the order of the walk.
#[derive(Debug, Default)]
struct Piece {
    data: Vec<u8>,
    cells: Vec<Copied>,
    /// Whether the memtable has more behind the last cell.
    more: bool,
}

#[derive(Debug, Clone, Copy)]
struct Copied {
    /// Where the row key begins; cells of one row share it.
    row: usize,
    row_end: usize,
    qualifier: usize,
    value: usize,
    end: usize,
    timestamp: Timestamp,
    sequence: SeqNo,
    kind: CellKind,
}

/// Where copying begins.
pub(super) enum From<'a> {
    /// The first row of the direction.
    Start,
    /// In this row, the first cell that is not before this qualifier.
    Column(&'a [u8], &'a [u8]),
    /// The cell right behind this one.
    After(CellRef<'a>),
}

impl MemtableCursor {
    /// A cursor that stands nowhere yet: rewind or seek it.
    pub(crate) fn new(
        memtable: Arc<Memtable>,
        family: FamilyId,
        family_name: Bytes,
        direction: Direction,
        read_point: u64,
    ) -> MemtableCursor {
        MemtableCursor {
            memtable,
            family,
            family_name,
            direction,
            read_point,
            one_row: false,
            piece_bytes: PIECE_BYTES,
            piece: Piece::default(),
            at: 0,
        }
    }

    /// The same cursor for a get, of the whole row or of a column: it ends with the row that is sought.
    pub(crate) fn of_one_row(mut self, is_whole: bool) -> MemtableCursor {
        (self.one_row, self.piece_bytes) = (true, if is_whole { PIECE_BYTES } else { GET_BYTES });
        self
    }

    /// The same cursor for a scan that reads the first cells of rows and skips the rest, which need not be copied.
    pub(crate) fn of_first_cells(mut self) -> MemtableCursor {
        self.piece_bytes = GET_BYTES;
        self
    }

    /// Cells with a later number are not visible.
    pub(super) fn read_point(&self) -> u64 {
        self.read_point
    }

    /// Calls `look` with the family's cells under the memtable's read lock; `None` also if the memtable has none of the family.
    pub(super) fn with_family<T>(&self, look: impl FnOnce(&FamilyCells) -> Option<T>) -> Option<T> {
        let families = self.memtable.read();
        families.iter().find(|cells| cells.id == self.family).and_then(look)
    }

    pub(super) fn fill(&mut self, from: &From<'_>) {
        let mut piece = Piece::default();
        self.with_family(|cells| {
            self.copy(cells, from, &mut piece);
            Some(())
        });
        self.piece = piece;
        self.at = 0;
    }

    fn copy(&self, cells: &FamilyCells, from: &From<'_>, piece: &mut Piece) {
        let row = match from {
            From::Start => None,
            From::Column(row, _) => Some(*row),
            From::After(cell) => Some(cell.row),
        };
        let mut forward;
        let mut reverse;
        let rows: &mut dyn Iterator<Item = (&[u8], &Slot)> = match self.direction {
            Direction::Forward => {
                forward = cells.rows.from(row, &cells.arena);
                &mut forward
            }
            Direction::Reverse => {
                reverse = cells.rows.back_from(row, &cells.arena);
                &mut reverse
            }
        };
        for (key, slot) in rows {
            let is_first = row == Some(key);
            let enough = self.one_row && !is_first;
            if enough || !self.copy_row((key, slot), cells, from, is_first, piece) {
                return;
            }
        }
    }

    /// Copies the cells of a row; false when the piece is full.
    fn copy_row(
        &self,
        (key, slot): (&[u8], &Slot),
        FamilyCells { rows, arena, .. }: &FamilyCells,
        from: &From<'_>,
        is_first: bool,
        piece: &mut Piece,
    ) -> bool {
        let from_order = |entry: &Entry| {
            let cell = entry.cell(arena);
            match from {
                From::Column(_, qualifier) if is_first => cell.qualifier.cmp(qualifier),
                From::After(after) if is_first => {
                    // The cell itself counts as before, so that copying begins strictly behind it.
                    cell.order_in_family(after).then(Ordering::Less)
                }
                _ => Ordering::Greater,
            }
        };
        let mut row = None;
        for entry in slot.cells_from(rows.runs(), from_order) {
            let (timestamp, sequence) = entry.stamped(arena);
            if sequence.0 > self.read_point {
                continue;
            }
            if piece.data.len() >= self.piece_bytes {
                piece.more = true;
                return false;
            }
            let (row_start, row_end) = *row.get_or_insert_with(|| piece.add(key));
            let (qualifier_bytes, value_bytes) = entry.bytes(arena);
            let (qualifier, value) = piece.add(qualifier_bytes);
            let (_, end) = piece.add(value_bytes);
            let kind = entry.kind;
            piece.cells.push(Copied { row: row_start, row_end, qualifier, value, end, timestamp, sequence, kind });
        }
        true
    }
}

/// The next cells of a cursor that are puts of one row, each of them the only cell of its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LonePuts {
    pub(crate) count: usize,
    pub(crate) oldest: Timestamp,
    pub(crate) newest: Timestamp,
}

impl MemtableCursor {
    /// How many such cells come next; `None` if there are none. The cell that the cursor stands on must be the first of its column.
    pub(crate) fn lone_puts(&self) -> Option<LonePuts> {
        let cells = self.piece.cells.get(self.at..)?;
        let row = cells.first()?.row;
        let mut puts = LonePuts { count: 0, oldest: Timestamp::LATEST, newest: Timestamp(0) };
        for (place, cell) in cells.iter().enumerate() {
            let is_lone = match cells.get(place + 1) {
                Some(next) => next.row != row || self.piece.qualifier(next) != self.piece.qualifier(cell),
                None => !self.piece.more,
            };
            if cell.row != row || cell.kind != CellKind::Put || !is_lone {
                break;
            }
            puts.count += 1;
            puts.oldest = puts.oldest.min(cell.timestamp);
            puts.newest = puts.newest.max(cell.timestamp);
        }
        (puts.count > 0).then_some(puts)
    }

    /// The next `count` cells, beginning with the one that the cursor stands on.
    pub(crate) fn next_cells(&self, count: usize) -> impl Iterator<Item = CellRef<'_>> {
        (self.at..self.at + count).filter_map(|at| self.piece.cell(at, &self.family_name))
    }

    /// Skips `count` cells of the row that the cursor stands on.
    pub(crate) fn pass(&mut self, count: usize) {
        self.at += count;
    }
}

impl Piece {
    fn qualifier(&self, cell: &Copied) -> &[u8] {
        self.data.get(cell.qualifier..cell.value).unwrap_or_default()
    }

    /// Appends bytes; answers where they begin and end.
    fn add(&mut self, bytes: &[u8]) -> (usize, usize) {
        let start = self.data.len();
        self.data.extend_from_slice(bytes);
        (start, self.data.len())
    }

    fn ends_before(&self, is_before: impl Fn(&CellRef<'_>) -> bool) -> bool {
        self.cell(self.cells.len().saturating_sub(1), &[]).is_none_or(|last| is_before(&last))
    }

    /// How many cells from `at` on come before the target.
    fn count_from(&self, at: usize, is_before: impl Fn(&CellRef<'_>) -> bool) -> usize {
        let range = at..self.cells.len();
        range.take_while(|at| self.cell(*at, &[]).is_some_and(|cell| is_before(&cell))).count()
    }

    fn cell<'a>(&'a self, at: usize, family: &'a [u8]) -> Option<CellRef<'a>> {
        let copied = self.cells.get(at)?;
        Some(CellRef {
            row: self.data.get(copied.row..copied.row_end)?,
            family,
            qualifier: self.data.get(copied.qualifier..copied.value)?,
            timestamp: copied.timestamp,
            kind: copied.kind,
            seq: copied.sequence,
            value: self.data.get(copied.value..copied.end)?,
        })
    }
}

impl CellSource for MemtableCursor {
    fn cell(&self) -> Option<CellRef<'_>> {
        self.piece.cell(self.at, &self.family_name)
    }

    fn advance(&mut self) -> Result<Step> {
        let row = self.piece.cells.get(self.at).map(|cell| cell.row);
        self.at += 1;
        // Fast path: cells of one row share its key.
        if let Some(next) = self.piece.cells.get(self.at) {
            return Ok(if row == Some(next.row) { Step::SameRow } else { Step::OtherRow });
        }
        if self.piece.more {
            let last = std::mem::take(&mut self.piece);
            self.piece_bytes = (self.piece_bytes * GET_GROWTH).min(PIECE_BYTES);
            if let Some(cell) = last.cell(last.cells.len().saturating_sub(1), &[]) {
                self.fill(&From::After(cell));
            }
            return Ok(Step::Untold);
        }
        Ok(Step::OtherRow)
    }

    fn rewind(&mut self) -> Result<()> {
        self.fill(&From::Start);
        Ok(())
    }

    fn seek(&mut self, row: &[u8], qualifier: &[u8]) -> Result<()> {
        let forward = self.direction == Direction::Forward;
        let is_before = |cell: &CellRef<'_>| (cell.row, cell.qualifier) < (row, qualifier);
        // Fast path: the target lies in what was copied already.
        if forward && self.cell().is_some_and(|cell| is_before(&cell)) && !self.piece.ends_before(is_before) {
            self.at += self.piece.count_from(self.at, is_before);
            return Ok(());
        }
        self.fill(&From::Column(row, if forward { qualifier } else { &[] }));
        Ok(())
    }
}
