//! An answer's rows and cells as a struct of arrays over shared memory: no allocation a cell, cheap to move.

use bytes::Bytes;

use crate::{CellKind, CellRef, Cost, Error, Packed, PackedRows, Result, SeqNo, Timestamp};

/// Key, qualifier and value of a row of one small cell.
const SMALL_ROW_BYTES: usize = 64;

/// Rows and their cells, in the order of the scan or get. Built by a [`RowBatchBuilder`].
#[derive(Debug, Clone, Default)]
pub struct RowBatch {
    data: Bytes,
    families: Vec<Bytes>,
    rows: Vec<RowEntry>,
    cells: Vec<CellEntry>,
    packed: PackedRows,
    cost: Cost,
}

#[derive(Debug, Clone, Copy)]
struct RowEntry {
    key: Span,
    first_cell: u32,
    /// Its place among the packed rows, if it is one.
    packed: Option<u32>,
    last_piece: bool,
}

#[derive(Debug, Clone, Copy)]
struct CellEntry {
    qualifier: Span,
    value: Span,
    timestamp: Timestamp,
    seq: SeqNo,
    family: u16,
    kind: CellKind,
}

/// A piece of a batch's `data`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    start: u32,
    len: u32,
}

impl Span {
    /// Appends `bytes` to `data` and says where they lie.
    ///
    /// # Errors
    /// `Invalid` when `data` would pass 4 GiB.
    #[inline]
    pub(crate) fn push(data: &mut Vec<u8>, bytes: &[u8]) -> Result<Self> {
        Self::push_both(data, bytes, &[])
    }

    /// Appends two, one behind the other.
    ///
    /// # Errors
    /// As [`Span::push`].
    #[inline]
    pub(crate) fn push_both(data: &mut Vec<u8>, first: &[u8], second: &[u8]) -> Result<Self> {
        let (start, len) = (data.len(), first.len() + second.len());
        let span = Self::between(start, start + len)?;
        data.reserve(len);
        data.extend_from_slice(first);
        data.extend_from_slice(second);
        Ok(span)
    }

    /// What was appended to `data` since it was so long.
    ///
    /// # Errors
    /// As [`Span::push`].
    #[inline]
    pub(crate) fn since(data: &[u8], start: usize) -> Result<Self> {
        Self::between(start, data.len())
    }

    #[inline]
    fn between(start: usize, end: usize) -> Result<Self> {
        match (u32::try_from(start), u32::try_from(end)) {
            (Ok(start), Ok(end)) => Ok(Self { start, len: end - start }),
            _ => Err(Error::TooLarge { what: "batch", size: end as u64, limit: u64::from(u32::MAX) }),
        }
    }

    /// The bytes.
    #[inline]
    pub(crate) fn of(self, data: &[u8]) -> &[u8] {
        let start = self.start as usize;
        data.get(start..start + self.len as usize).unwrap_or_default()
    }
}

impl RowBatch {
    /// What was examined for it; of a scan's batch, since the batch before.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// How many rows, or pieces of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// How many cells; a packed row is one.
    pub fn cells_count(&self) -> usize {
        self.cells.len() + self.packed.len()
    }

    /// Bytes of keys, qualifiers and values, and of packed rows.
    pub fn data_bytes(&self) -> usize {
        self.data.len() + self.packed.data_bytes()
    }

    /// Bytes of memory that it takes: its data, and where its rows and cells lie in them.
    pub fn memory_bytes(&self) -> usize {
        self.data_bytes() + size_of_val(&self.rows[..]) + size_of_val(&self.cells[..])
    }

    /// The rows in order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = RowView<'_>> {
        (0..self.rows.len()).map(|index| RowView { batch: self, index })
    }

    /// The row at `index`, below [`RowBatch::len`].
    pub fn row(&self, index: usize) -> Option<RowView<'_>> {
        (index < self.rows.len()).then_some(RowView { batch: self, index })
    }
}

/// A row of a batch.
#[derive(Debug, Clone, Copy)]
pub struct RowView<'a> {
    batch: &'a RowBatch,
    index: usize,
}

impl<'a> RowView<'a> {
    /// The row key.
    #[inline]
    pub fn key(&self) -> &'a [u8] {
        self.batch.rows.get(self.index).map_or(&[], |row| row.key.of(&self.batch.data))
    }

    /// Bytes of the cells as HBase's `KeyValue`s: see [`CellRef::key_value_bytes`].
    pub fn key_value_bytes(&self) -> u64 {
        self.cells().map(|cell| cell.of_row(self.key()).key_value_bytes()).sum()
    }

    /// Whether this is the row's last piece; true unless the scan asked for rows in pieces.
    pub fn is_last_piece(&self) -> bool {
        self.batch.rows.get(self.index).is_none_or(|row| row.last_piece)
    }

    /// The row's points by columns, or what they are together, if they came so; it has no cells then. Only a read that asks for it gets such rows.
    #[inline]
    pub fn packed(&self) -> Option<Packed<'a>> {
        let place = self.batch.rows.get(self.index)?.packed?;
        self.batch.packed.row(place as usize)
    }

    /// The row's cells in cell order.
    #[inline]
    pub fn cells(&self) -> impl ExactSizeIterator<Item = CellView<'a>> + use<'a> {
        let batch = self.batch;
        let from = batch.rows.get(self.index).map_or(0, |row| row.first_cell as usize);
        let to = batch.rows.get(self.index + 1).map_or(batch.cells.len(), |row| row.first_cell as usize);
        batch.cells.get(from..to).unwrap_or_default().iter().map(move |cell| CellView {
            family: batch.families.get(usize::from(cell.family)).map_or(&[], |f| &f[..]),
            qualifier: cell.qualifier.of(&batch.data),
            timestamp: cell.timestamp,
            kind: cell.kind,
            seq: cell.seq,
            value: cell.value.of(&batch.data),
        })
    }
}

/// A cell of a row of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellView<'a> {
    /// Column family.
    pub family: &'a [u8],
    /// Qualifier.
    pub qualifier: &'a [u8],
    /// Time.
    pub timestamp: Timestamp,
    /// Value, or which tombstone (raw scans only).
    pub kind: CellKind,
    /// Sequence number: of two columns with one time the larger was written later. 0 from a store that cannot tell.
    pub seq: SeqNo,
    /// Value.
    pub value: &'a [u8],
}

impl<'a> CellView<'a> {
    /// The cell with the key of its row.
    pub fn of_row(&self, row: &'a [u8]) -> CellRef<'a> {
        let Self { family, qualifier, timestamp, kind, seq, value } = *self;
        CellRef { row, family, qualifier, timestamp, kind, seq, value }
    }
}

/// Collects rows and cells into a [`RowBatch`].
#[derive(Debug, Default)]
pub struct RowBatchBuilder {
    data: Vec<u8>,
    families: Vec<Bytes>,
    rows: Vec<RowEntry>,
    cells: Vec<CellEntry>,
    packed: PackedRows,
    cost: Cost,
}

impl RowBatchBuilder {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty one with room for so many rows of a small cell; it grows beyond that as it must.
    ///
    /// Cost: three allocations, some 130 bytes a row; none where there is no row.
    pub fn with_room(rows: usize) -> Self {
        Self {
            data: Vec::with_capacity(rows * SMALL_ROW_BYTES),
            rows: Vec::with_capacity(rows),
            cells: Vec::with_capacity(rows),
            ..Self::default()
        }
    }

    /// An empty one with room for so many rows of which a summary or one point is packed; it grows beyond that as it must.
    ///
    /// Cost: three allocations, some 170 bytes a row; none where there is no row.
    pub fn with_packed_room(rows: usize) -> Self {
        Self {
            data: Vec::with_capacity(rows * SMALL_ROW_BYTES),
            rows: Vec::with_capacity(rows),
            packed: PackedRows::with_room(rows),
            ..Self::default()
        }
    }

    /// Begins a row; the cells that follow are its.
    ///
    /// # Errors
    /// `Invalid` when the batch would pass 4 GiB.
    #[inline]
    pub fn begin_row(&mut self, key: &[u8]) -> Result<()> {
        let key = Span::push(&mut self.data, key)?;
        let first_cell = u32::try_from(self.cells.len()).map_err(|_| Self::full())?;
        self.rows.push(RowEntry { key, first_cell, packed: None, last_piece: true });
        Ok(())
    }

    /// Says that the row begun last goes on in a later piece.
    pub fn mark_partial(&mut self) {
        if let Some(row) = self.rows.last_mut() {
            row.last_piece = false;
        }
    }

    /// Adds a cell to the row begun last; `cell.row` is not looked at.
    ///
    /// # Errors
    /// `Invalid` when the batch would pass 4 GiB or 65,536 families.
    #[inline]
    pub fn push(&mut self, cell: CellRef<'_>) -> Result<()> {
        debug_assert!(!self.rows.is_empty(), "BUG: a cell before its row");
        let family = self.family(cell.family)?;
        let qualifier = Span::push(&mut self.data, cell.qualifier)?;
        let value = Span::push(&mut self.data, cell.value)?;
        let CellRef { timestamp, kind, seq, .. } = cell;
        self.cells.push(CellEntry { qualifier, value, timestamp, seq, family, kind });
        Ok(())
    }

    /// Gives the row begun last, which has no cell, its points by columns: `pack` adds them to the packed rows, or says
    /// false and adds nothing. Says whether it did.
    ///
    /// # Panics
    /// When `pack` adds another number of rows than it says.
    pub fn push_packed(&mut self, pack: impl FnOnce(&mut PackedRows) -> bool) -> bool {
        let place = self.packed.len();
        let (Ok(number), Some(row)) = (u32::try_from(place), self.rows.last_mut()) else { return false };
        let is_packed = pack(&mut self.packed);
        assert_eq!(self.packed.len(), place + usize::from(is_packed), "BUG: a row is packed once");
        row.packed = is_packed.then_some(number);
        is_packed
    }

    /// Takes back the row begun last when it got no cell; says whether it did.
    #[inline]
    pub fn drop_empty_row(&mut self) -> bool {
        let is_empty = |row: &RowEntry| row.first_cell as usize == self.cells.len() && row.packed.is_none();
        let empty = self.rows.last().is_some_and(is_empty);
        if empty {
            self.drop_row();
        }
        empty
    }

    /// Takes back the row begun last, with its cells and their bytes.
    pub fn drop_row(&mut self) {
        if let Some(row) = self.rows.pop() {
            self.cells.truncate(row.first_cell as usize);
            self.data.truncate(row.key.start as usize);
            if let Some(place) = row.packed {
                self.packed.truncate(place as usize);
            }
        }
    }

    /// How many rows so far.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no row yet.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Says what was examined for the rows so far.
    pub fn set_cost(&mut self, cost: Cost) {
        self.cost = cost;
    }

    /// Bytes of keys, qualifiers and values, and of packed rows so far.
    #[inline]
    pub fn data_bytes(&self) -> usize {
        self.data.len() + self.packed.data_bytes()
    }

    /// The batch so far; the builder begins anew, with room for as much again.
    pub fn take(&mut self) -> RowBatch {
        let anew = Self {
            data: Vec::with_capacity(self.data.capacity()),
            families: Vec::with_capacity(self.families.len()),
            rows: Vec::with_capacity(self.rows.capacity()),
            cells: Vec::with_capacity(self.cells.capacity()),
            packed: self.packed.anew(),
            cost: Cost::default(),
        };
        std::mem::replace(self, anew).finish()
    }

    /// The batch.
    pub fn finish(self) -> RowBatch {
        let Self { data, families, rows, cells, packed, cost } = self;
        RowBatch { data: data.into(), families, rows, cells, packed, cost }
    }

    /// The index of a family, which is nearly always the one before.
    #[inline]
    fn family(&mut self, name: &[u8]) -> Result<u16> {
        let at = self.families.iter().rposition(|f| f == name).unwrap_or_else(|| {
            self.families.push(Bytes::copy_from_slice(name));
            self.families.len() - 1
        });
        u16::try_from(at).map_err(|_| Self::full())
    }

    fn full() -> Error {
        Error::TooLarge { what: "batch", size: u64::from(u32::MAX), limit: u64::from(u32::MAX) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_their_cells() {
        let cell = |family, qualifier, value| CellRef {
            row: b"",
            family,
            qualifier,
            timestamp: Timestamp(5),
            kind: CellKind::Put,
            seq: SeqNo(1),
            value,
        };
        let mut builder = RowBatchBuilder::new();
        builder.begin_row(b"r1").unwrap();
        builder.push(cell(b"f", b"a", b"1")).unwrap();
        builder.push(cell(b"g", b"b", b"")).unwrap();
        builder.begin_row(b"empty").unwrap();
        assert!(builder.drop_empty_row());
        assert!(!builder.drop_empty_row());
        let bytes = builder.data_bytes();
        builder.begin_row(b"dropped").unwrap();
        builder.push(cell(b"f", b"a", b"1")).unwrap();
        builder.drop_row();
        assert_eq!(builder.data_bytes(), bytes, "a dropped row leaves nothing");
        builder.begin_row(b"r2").unwrap();
        builder.push(cell(b"f", b"", b"3")).unwrap();
        let batch = builder.finish();
        assert!(batch.memory_bytes() >= batch.data_bytes() + 3 * 40, "{}", batch.memory_bytes());
        let told: Vec<_> = batch
            .rows()
            .map(|row| (row.key(), row.cells().map(|c| (c.family, c.qualifier, c.value)).collect::<Vec<_>>()))
            .collect();
        let (f, g) = (&b"f"[..], &b"g"[..]);
        assert_eq!(
            told,
            [
                (&b"r1"[..], vec![(f, &b"a"[..], &b"1"[..]), (g, &b"b"[..], &b""[..])]),
                (&b"r2"[..], vec![(f, &b""[..], &b"3"[..])]),
            ]
        );
    }
}
