//! Batches of changes, grouped by row, with the durability that they must have when they are answered.

use std::num::NonZeroU64;

use bytes::Bytes;

use crate::batch::Span;
use crate::{CellKind, Error, Result, Timestamp};

/// Longest row key in bytes (HBase: `Short.MAX_VALUE`).
const ROW_KEY_BYTES_MAX: usize = i16::MAX as usize;

/// What an answered write has survived. HBase's levels, named for what they do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Durability {
    /// Not logged: lost when the process ends, unless flushed before (`SKIP_WAL`).
    Skip,
    /// Queued for the log, and written within a stated time (`ASYNC_WAL`).
    Async,
    /// Handed to the operating system: survives `kill -9`, not power loss (`SYNC_WAL`).
    Os,
    /// On disk: survives power loss (`FSYNC_WAL`).
    #[default]
    Fsync,
}

/// A number that stands for a row key, so that a store finds a row it was given lately without a look at the key.
///
/// As long as the process lives, a handle and a key of a table belong together: a writer gives no other key with the handle,
/// and no other handle with the key. The key may also come without its handle. A store may ignore handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RowHandle(pub NonZeroU64);

/// Whose push a held batch waits for. Each thread that pushes has a lane of its own: what waits in one lane is applied in its order,
/// and different lanes are applied at the same time, in no order between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lane(pub u16);

/// Changes to rows. The changes of one row are atomic, across families too. Rows are independent of each other, and applied in order.
///
/// *Shape*: each row key once, with the row's cells after it; where rows are planned, all keys first. Everything lies in one buffer.
/// *Bounds*: 4 GiB; stores have lower bounds. *Cost*: a copy of the bytes; no allocation a cell in a batch that is used again.
///
/// ```
/// # use basalt_store::{MutationBatch, Durability};
/// let mut batch = MutationBatch::new(Durability::Fsync);
/// batch.row(b"com.cnn.www")?.put(b"anchor", b"cnnsi.com", None, b"CNN")?;
/// assert_eq!(batch.rows().len(), 1);
/// # Ok::<(), basalt_store::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct MutationBatch {
    durability: Durability,
    held: Option<Lane>,
    has_tombstones: bool,
    data: Vec<u8>,
    families: Vec<Bytes>,
    rows: Vec<RowEntry>,
    cells: Vec<CellEntry>,
    /// How many of the planned rows have had their turn.
    taken: usize,
}

/// A family of a batch, valid for that batch only.
#[derive(Debug, Clone, Copy)]
pub struct BatchFamily(u16);

#[derive(Debug, Clone, Copy)]
struct RowEntry {
    key: Span,
    first_cell: u32,
    handle: Option<RowHandle>,
}

#[derive(Debug, Clone, Copy)]
struct CellEntry {
    /// Where its qualifier and value lie, one behind the other.
    bytes: Span,
    qualifier_bytes: u32,
    timestamp: Option<Timestamp>,
    family: u16,
    kind: CellKind,
}

impl MutationBatch {
    /// An empty batch of this durability.
    pub fn new(durability: Durability) -> Self {
        Self { durability, ..Self::default() }
    }

    /// An empty one with room for so many rows and cells, and bytes of keys, qualifiers and values.
    pub fn with_capacity(durability: Durability, rows: usize, cells: usize, bytes: usize) -> Self {
        Self {
            durability,
            data: Vec::with_capacity(bytes),
            rows: Vec::with_capacity(rows),
            cells: Vec::with_capacity(cells),
            ..Self::default()
        }
    }

    /// Its durability.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// Promises that the caller calls [`Store::push`](crate::Store::push) of this lane soon after it applies the batch, perhaps once
    /// for several batches. The store need not change anything before that push, and may then make one change of several batches.
    pub fn hold(&mut self, lane: Lane) {
        self.held = Some(lane);
    }

    /// The lane whose push follows.
    pub fn held(&self) -> Option<Lane> {
        self.held
    }

    /// The families that its cells name, each once.
    pub fn families(&self) -> &[Bytes] {
        &self.families
    }

    /// Begins a row, or goes on with it when its key was the last one begun.
    ///
    /// # Errors
    /// `Invalid`: an empty key (rule S-MAP-6), one over 32,767 bytes, or a full batch.
    #[inline]
    pub fn row(&mut self, key: &[u8]) -> Result<RowBuilder<'_>> {
        self.row_of(key, None)
    }

    /// As [`MutationBatch::row`], with the handle that stands for the key.
    ///
    /// # Errors
    /// As [`MutationBatch::row`].
    #[inline]
    pub fn row_of(&mut self, key: &[u8], handle: Option<RowHandle>) -> Result<RowBuilder<'_>> {
        check_key(key.len())?;
        // Fast path: comparing two handles is enough.
        let is_last = self.rows.last().is_some_and(|row| match (row.handle, handle) {
            (Some(last), Some(this)) => last == this,
            _ => row.key.of(&self.data) == key,
        });
        if !is_last {
            let first_cell = u32::try_from(self.cells.len()).map_err(|_| full())?;
            let key = Span::push(&mut self.data, key)?;
            self.rows.push(RowEntry { key, first_cell, handle });
        }
        Ok(RowBuilder(self))
    }

    /// Plans a row. `write` appends its key; its cells are added when it has its turn, by [`MutationBatch::next_planned`].
    ///
    /// This is for callers that know all rows before the cells of the first: each key is then written where it stays. The caller may
    /// call [`MutationBatch::row`] again only after all planned rows have had their turn.
    ///
    /// # Errors
    /// As [`MutationBatch::row`].
    #[inline]
    pub fn plan_row(&mut self, handle: Option<RowHandle>, write: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        let start = self.data.len();
        write(&mut self.data);
        let key = check_key(self.data.len() - start).and_then(|()| Span::since(&self.data, start));
        let key = key.inspect_err(|_| self.data.truncate(start))?;
        self.rows.push(RowEntry { key, first_cell: PLANNED, handle });
        Ok(())
    }

    /// The next planned row; `None` when all of them have had their turn.
    ///
    /// # Errors
    /// `Invalid`: a full batch.
    #[inline]
    pub fn next_planned(&mut self) -> Result<Option<RowBuilder<'_>>> {
        let first_cell = u32::try_from(self.cells.len()).map_err(|_| full())?;
        let Some(row) = self.rows.get_mut(self.taken).filter(|row| row.first_cell == PLANNED) else { return Ok(None) };
        row.first_cell = first_cell;
        self.taken += 1;
        Ok(Some(RowBuilder(self)))
    }

    /// The key of a row, planned or begun.
    pub fn key(&self, row: usize) -> Option<&[u8]> {
        self.rows.get(row).map(|row| row.key.of(&self.data))
    }

    /// The rows in the order in which they were begun. A key may come more than once; its changes are applied in that order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = RowMutation<'_>> {
        self.rows.iter().enumerate().map(|(index, row)| {
            let next = self.rows.get(index + 1).filter(|next| next.first_cell != PLANNED);
            let end = next.map_or(self.cells.len(), |next| next.first_cell as usize);
            RowMutation { batch: self, row, end }
        })
    }

    /// Whether the batch has a tombstone.
    pub fn has_tombstones(&self) -> bool {
        self.has_tombstones
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// How many cells.
    pub fn cells_count(&self) -> usize {
        self.cells.len()
    }

    /// Bytes of keys, qualifiers and values.
    pub fn data_bytes(&self) -> usize {
        self.data.len()
    }

    /// Empties it and keeps its memory and durability.
    pub fn clear(&mut self) {
        (self.has_tombstones, self.taken) = (false, 0);
        self.data.clear();
        self.rows.clear();
        self.cells.clear();
    }

    /// A family of this batch, for [`RowBuilder::put_in`]: a family of many cells is then looked up once.
    ///
    /// # Errors
    /// `Invalid`: more than 65,536 families.
    #[inline]
    pub fn family(&mut self, name: &[u8]) -> Result<BatchFamily> {
        let at = self.families.iter().rposition(|f| f == name).unwrap_or_else(|| {
            self.families.push(Bytes::copy_from_slice(name));
            self.families.len() - 1
        });
        u16::try_from(at).map(BatchFamily).map_err(|_| full())
    }
}

/// Stands in place of a row's first cell until the row has its turn. No batch has that many cells.
const PLANNED: u32 = u32::MAX;

/// Whether a row can have a key: 1 to 32,767 bytes.
///
/// # Errors
/// `Invalid`.
pub fn check_row_key(key: &[u8]) -> Result<()> {
    check_key(key.len())
}

#[inline]
fn check_key(bytes: usize) -> Result<()> {
    match bytes {
        0 => Err(Error::InvalidArgument { what: "row key", reason: "it is empty".into() }),
        1..=ROW_KEY_BYTES_MAX => Ok(()),
        _ => Err(Error::TooLarge { what: "row key", size: bytes as u64, limit: ROW_KEY_BYTES_MAX as u64 }),
    }
}

fn full() -> Error {
    Error::TooLarge { what: "batch", size: u64::from(u32::MAX), limit: u64::from(u32::MAX) }
}

/// Adds changes to the row begun last.
#[derive(Debug)]
pub struct RowBuilder<'a>(&'a mut MutationBatch);

impl RowBuilder<'_> {
    /// A value; no time means the server's own (rule S-MAP-11).
    ///
    /// # Errors
    /// `Invalid`: a full batch.
    #[inline]
    pub fn put(&mut self, family: &[u8], qualifier: &[u8], time: Option<Timestamp>, value: &[u8]) -> Result<&mut Self> {
        self.push(CellKind::Put, family, qualifier, time, value)
    }

    /// As [`RowBuilder::put`], into a family that was looked up.
    ///
    /// # Errors
    /// As [`RowBuilder::put`].
    #[inline]
    pub fn put_in(
        &mut self,
        family: BatchFamily,
        qualifier: &[u8],
        time: Option<Timestamp>,
        value: &[u8],
    ) -> Result<&mut Self> {
        self.push_in(CellKind::Put, family, qualifier, time, value)
    }

    /// A tombstone over one version: that of `time` (S-DEL-2), or without one the newest that a reader saw just before
    /// the row entry (U-9); the entry's second such tombstone over a column takes the second newest, and so on. Where
    /// there is none it gets the server's own time, and hides nothing older that comes later. In a family with VERSIONS = 1 one that
    /// found its version becomes a [`RowBuilder::delete_column`] of that time, so that nothing older comes back (U-10).
    ///
    /// # Errors
    /// `Invalid`: a full batch.
    pub fn delete(&mut self, family: &[u8], qualifier: &[u8], time: Option<Timestamp>) -> Result<&mut Self> {
        self.push(CellKind::Delete, family, qualifier, time, &[])
    }

    /// A tombstone over a column's versions at or below `time`, the server's own without one (S-DEL-3).
    ///
    /// # Errors
    /// `Invalid`: a full batch.
    pub fn delete_column(&mut self, family: &[u8], qualifier: &[u8], time: Option<Timestamp>) -> Result<&mut Self> {
        self.push(CellKind::DeleteColumn, family, qualifier, time, &[])
    }

    /// A tombstone over a family's versions at or below `time`, the server's own without one (S-DEL-4).
    ///
    /// # Errors
    /// `Invalid`: a full batch.
    pub fn delete_family(&mut self, family: &[u8], time: Option<Timestamp>) -> Result<&mut Self> {
        self.push(CellKind::DeleteFamily, family, &[], time, &[])
    }

    /// A tombstone over a family's versions of exactly `time`.
    ///
    /// # Errors
    /// `Invalid`: a full batch.
    pub fn delete_family_version(&mut self, family: &[u8], time: Timestamp) -> Result<&mut Self> {
        self.push(CellKind::DeleteFamilyVersion, family, &[], Some(time), &[])
    }

    #[inline]
    fn push(
        &mut self,
        kind: CellKind,
        family: &[u8],
        qualifier: &[u8],
        time: Option<Timestamp>,
        value: &[u8],
    ) -> Result<&mut Self> {
        let family = self.0.family(family)?;
        self.push_in(kind, family, qualifier, time, value)
    }

    #[inline]
    fn push_in(
        &mut self,
        kind: CellKind,
        BatchFamily(family): BatchFamily,
        qualifier: &[u8],
        time: Option<Timestamp>,
        value: &[u8],
    ) -> Result<&mut Self> {
        if time.is_some_and(|t| t > Timestamp::LATEST) {
            return Err(Error::InvalidArgument { what: "timestamp", reason: "it is over 2^63 - 1".into() });
        }
        let batch = &mut *self.0;
        let bytes = Span::push_both(&mut batch.data, qualifier, value)?;
        let qualifier_bytes = u32::try_from(qualifier.len()).map_err(|_| full())?;
        let timestamp = time.filter(|t| *t != Timestamp::LATEST);
        batch.has_tombstones |= kind != CellKind::Put;
        batch.cells.push(CellEntry { bytes, qualifier_bytes, timestamp, family, kind });
        Ok(self)
    }
}

/// One row's changes.
#[derive(Debug, Clone, Copy)]
pub struct RowMutation<'a> {
    batch: &'a MutationBatch,
    row: &'a RowEntry,
    /// Where its cells end.
    end: usize,
}

impl<'a> RowMutation<'a> {
    /// The row key, 1 to 32,767 bytes.
    #[inline]
    pub fn key(&self) -> &'a [u8] {
        self.row.key.of(&self.batch.data)
    }

    /// The handle that stands for its key, if it came with one.
    #[inline]
    pub fn handle(&self) -> Option<RowHandle> {
        self.row.handle
    }

    /// Its changes in the order they were added.
    #[inline]
    pub fn cells(&self) -> impl ExactSizeIterator<Item = CellMutation<'a>> + use<'a> {
        let batch = self.batch;
        let from = self.row.first_cell as usize;
        batch.cells.get(from..self.end).unwrap_or_default().iter().map(move |cell| {
            let bytes = cell.bytes.of(&batch.data);
            let (qualifier, value) = bytes.split_at_checked(cell.qualifier_bytes as usize).unwrap_or_default();
            CellMutation {
                family: batch.families.get(usize::from(cell.family)).map_or(&[], |f| &f[..]),
                family_index: usize::from(cell.family),
                qualifier,
                timestamp: cell.timestamp,
                kind: cell.kind,
                value,
            }
        })
    }
}

/// One change of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellMutation<'a> {
    /// Column family.
    pub family: &'a [u8],
    /// Its index in [`MutationBatch::families`], so that a store looks each up once a batch.
    pub family_index: usize,
    /// Qualifier; empty for the two family tombstones.
    pub qualifier: &'a [u8],
    /// Time; `None` for the server's own.
    pub timestamp: Option<Timestamp>,
    /// Put, or which tombstone.
    pub kind: CellKind,
    /// Value; empty for tombstones.
    pub value: &'a [u8],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_group_while_their_key_repeats() {
        let mut batch = MutationBatch::new(Durability::Os);
        for (row, qualifier) in [(b"a", b"1"), (b"a", b"2"), (b"b", b"1"), (b"a", b"3")] {
            batch.row(row).unwrap().put(b"f", qualifier, None, b"v").unwrap();
        }
        let told: Vec<_> = batch.rows().map(|row| (row.key(), row.cells().len())).collect();
        assert_eq!(told, [(&b"a"[..], 2), (&b"b"[..], 1), (&b"a"[..], 1)]);
        assert_eq!(batch.families().len(), 1);
    }

    #[test]
    fn planned_rows_get_their_cells_in_turn() {
        let mut batch = MutationBatch::new(Durability::Os);
        let handle = NonZeroU64::new(7).map(RowHandle);
        for key in [b"a", b"b", b"c"] {
            batch.plan_row(handle.filter(|_| key == b"b"), |data| data.extend_from_slice(key)).unwrap();
        }
        let too_long = vec![0; ROW_KEY_BYTES_MAX + 1];
        for wrong in [&too_long[..], b""] {
            assert!(batch.plan_row(None, |data| data.extend_from_slice(wrong)).is_err());
        }
        assert_eq!(batch.data_bytes(), 3, "what is refused leaves nothing");
        let family = batch.family(b"f").unwrap();
        let mut told = Vec::new();
        for count in [2, 0, 1] {
            let mut row = batch.next_planned().unwrap().unwrap();
            for _ in 0..count {
                row.put_in(family, b"q", None, b"v").unwrap();
            }
            told.push(batch.rows().map(|row| row.cells().len()).collect::<Vec<_>>());
        }
        assert_eq!(told, [[2, 0, 0], [2, 0, 0], [2, 0, 1]], "rows that wait for their turn have none");
        assert!(batch.next_planned().unwrap().is_none());
        let rows: Vec<_> = batch.rows().map(|row| (row.key(), row.handle())).collect();
        assert_eq!(rows, [(&b"a"[..], None), (b"b", handle), (b"c", None)]);
        assert_eq!((batch.key(2), batch.key(3)), (Some(&b"c"[..]), None));
        // Another begins behind them.
        batch.row(b"c").unwrap().put(b"f", b"q", None, b"v").unwrap();
        assert_eq!(batch.rows().map(|row| row.cells().len()).collect::<Vec<_>>(), [2, 0, 2]);
        batch.clear();
        batch.plan_row(None, |data| data.push(1)).unwrap();
        assert!(batch.next_planned().unwrap().is_some());
    }

    #[test]
    fn a_batch_knows_its_tombstones() {
        let mut batch = MutationBatch::default();
        batch.row(b"a").unwrap().put(b"f", b"q", None, b"v").unwrap();
        assert!(!batch.has_tombstones());
        batch.row(b"a").unwrap().delete(b"f", b"q", None).unwrap();
        batch.row(b"b").unwrap().put(b"f", b"q", None, b"v").unwrap();
        assert!(batch.has_tombstones());
        batch.clear();
        assert!(!batch.has_tombstones());
    }

    #[test]
    fn s_map_6_an_empty_key_is_refused() {
        let mut batch = MutationBatch::default();
        assert!(batch.row(b"").is_err());
        assert!(batch.row(&vec![0; ROW_KEY_BYTES_MAX + 1]).is_err());
        assert!(batch.row(&vec![0; ROW_KEY_BYTES_MAX]).is_ok());
    }
}
