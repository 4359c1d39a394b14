//! Cells as `KeyValueCodec` frames them, both ways.
//!
//! ```text
//! length u32 │ key length u32 │ value length u32 │ row length u16 │ row │ family length u8 │ family │ qualifier
//!            │ time u64 │ kind u8 │ value
//! ```
//!
//! The first length counts everything after it; the qualifier has what of the key the others leave.

use basalt_store::{CellKind, CellMutation, CellRef, SeqNo, Timestamp};
use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::error::{Error, Result};
use crate::pb::client::Cell as MessageCell;

/// Bytes of a key besides row, family and qualifier: two lengths, time, kind.
const KEY_FIXED_BYTES: usize = 2 + 1 + 8 + 1;

/// Adds a change of a row. Without a time it carries the largest, which the server replaces by its own.
///
/// # Errors
/// `TooLarge`: a cell that the frame's lengths cannot tell.
pub(crate) fn encode(row: &[u8], cell: &CellMutation<'_>, out: &mut BytesMut) -> Result<()> {
    let CellMutation { family, qualifier, value, .. } = cell;
    let key_len = KEY_FIXED_BYTES + row.len() + family.len() + qualifier.len();
    let len = 8 + key_len + value.len();
    let over = |_| Error::TooLarge { what: "a cell", bytes: len as u64, limit: u64::from(u32::MAX) };
    out.reserve(4 + len);
    out.put_u32(u32::try_from(len).map_err(over)?);
    out.put_u32(u32::try_from(key_len).map_err(over)?);
    out.put_u32(u32::try_from(value.len()).map_err(over)?);
    out.put_u16(u16::try_from(row.len()).map_err(over)?);
    out.put_slice(row);
    out.put_u8(u8::try_from(family.len()).map_err(over)?);
    out.put_slice(family);
    out.put_slice(qualifier);
    out.put_u64(cell.timestamp.unwrap_or(Timestamp::LATEST).0);
    out.put_u8(cell.kind.code());
    out.put_slice(value);
    Ok(())
}

/// A cell of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) row: Bytes,
    pub(crate) family: Bytes,
    pub(crate) qualifier: Bytes,
    pub(crate) timestamp: Timestamp,
    pub(crate) kind: CellKind,
    pub(crate) value: Bytes,
}

impl Cell {
    /// The cell as the contract has it.
    pub(crate) fn view(&self) -> CellRef<'_> {
        let Self { row, family, qualifier, timestamp, kind, value } = self;
        CellRef { row, family, qualifier, timestamp: *timestamp, kind: *kind, seq: SeqNo(0), value }
    }

    /// One that outlives what it was read from.
    pub(crate) fn copy_of(cell: &CellRef<'_>) -> Self {
        let CellRef { row, family, qualifier, timestamp, kind, value, .. } = *cell;
        let [row, family, qualifier, value] = [row, family, qualifier, value].map(Bytes::copy_from_slice);
        Self { row, family, qualifier, timestamp, kind, value }
    }

    /// A cell that came within a message.
    ///
    /// # Errors
    /// `Malformed`: a kind that is none.
    pub(crate) fn of_message(cell: MessageCell) -> Result<Self> {
        let kind = match cell.kind {
            None => CellKind::Put,
            Some(code) => kind(u8::try_from(code).unwrap_or(0))?,
        };
        Ok(Self {
            row: cell.row.unwrap_or_default(),
            family: cell.family.unwrap_or_default(),
            qualifier: cell.qualifier.unwrap_or_default(),
            timestamp: Timestamp(cell.timestamp.unwrap_or(0)),
            kind,
            value: cell.value.unwrap_or_default(),
        })
    }
}

fn kind(code: u8) -> Result<CellKind> {
    CellKind::from_code(code).map_err(|_| Error::malformed("a cell", format!("its kind is {code}")))
}

/// The cells of a block, read one after the other. Cheap: each is slices of the block.
#[derive(Debug, Clone)]
pub(crate) struct Cells(pub(crate) Bytes);

impl Cells {
    /// The next cell; `None` at the block's end.
    ///
    /// # Errors
    /// `Malformed`: lengths that do not fit, or a kind that is none.
    pub(crate) fn next(&mut self) -> Result<Option<Cell>> {
        let mut rest = &self.0[..];
        let Some(cell) = next(&mut rest)? else { return Ok(None) };
        let of = |slice: &[u8]| self.0.slice_ref(slice);
        let CellRef { row, family, qualifier, timestamp, kind, value, .. } = cell;
        let (row, family, qualifier, value) = (of(row), of(family), of(qualifier), of(value));
        let read = self.0.len() - rest.len();
        self.0.advance(read);
        Ok(Some(Cell { row, family, qualifier, timestamp, kind, value }))
    }

    /// So many cells, all there.
    ///
    /// # Errors
    /// `Malformed`: also where the block ends before.
    pub(crate) fn take(&mut self, count: usize) -> Result<Vec<Cell>> {
        // A count from outside reserves nothing.
        let mut cells = Vec::new();
        for _ in 0..count {
            cells.push(self.next()?.ok_or_else(short)?);
        }
        Ok(cells)
    }
}

/// Fast path: the next cell of a block that is borrowed, which counts no reference; `None` at its end.
///
/// # Errors
/// `Malformed`: as [`Cells::next`].
#[inline]
pub(crate) fn next<'a>(block: &mut &'a [u8]) -> Result<Option<CellRef<'a>>> {
    if block.is_empty() {
        return Ok(None);
    }
    let (parts, rest) = split(block).ok_or_else(short)?;
    *block = rest;
    let Parts { row, family, qualifier, time, code, value } = parts;
    let (timestamp, kind) = (Timestamp(time), kind(code)?);
    Ok(Some(CellRef { row, family, qualifier, timestamp, kind, seq: SeqNo(0), value }))
}

/// What a framed cell is made of.
struct Parts<'a> {
    row: &'a [u8],
    family: &'a [u8],
    qualifier: &'a [u8],
    time: u64,
    code: u8,
    value: &'a [u8],
}

/// The first cell's parts, and what follows it. `None`: lengths that do not fit.
#[inline]
fn split(block: &[u8]) -> Option<(Parts<'_>, &[u8])> {
    let (len, rest) = block.split_first_chunk()?;
    let (cell, rest) = rest.split_at_checked(number(*len))?;
    let (key_len, cell) = cell.split_first_chunk()?;
    let (value_len, cell) = cell.split_first_chunk()?;
    let (key, value) = cell.split_at_checked(number(*key_len))?;
    let value = value.get(..number(*value_len))?;
    let (row_len, key) = key.split_first_chunk()?;
    let (row, key) = key.split_at_checked(u16::from_be_bytes(*row_len).into())?;
    let (family_len, key) = key.split_first()?;
    let (family, key) = key.split_at_checked((*family_len).into())?;
    let (key, code) = key.split_last_chunk::<1>()?;
    let (qualifier, time) = key.split_last_chunk()?;
    let [code] = *code;
    Some((Parts { row, family, qualifier, time: u64::from_be_bytes(*time), code, value }, rest))
}

#[inline]
fn number(bytes: [u8; 4]) -> usize {
    u32::from_be_bytes(bytes) as usize
}

fn short() -> Error {
    Error::malformed("a cell", "it ends early")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(timestamp: Option<Timestamp>) -> CellMutation<'static> {
        CellMutation {
            family: b"t",
            family_index: 0,
            qualifier: b"\x01\x02",
            timestamp,
            kind: CellKind::Put,
            value: b"v",
        }
    }

    /// The bytes that HBase's own `KeyValueCodec` writes for this put (row `r`, `t:\x01\x02`, time 5, value `v`).
    #[test]
    fn a_cell_is_framed_as_a_key_value() {
        let mut out = BytesMut::new();
        encode(b"r", &change(Some(Timestamp(5))), &mut out).unwrap();
        let expected = b"\0\0\0\x19\0\0\0\x10\0\0\0\x01\0\x01r\x01t\x01\x02\0\0\0\0\0\0\0\x05\x04v";
        assert_eq!(&out[..], expected);
    }

    #[test]
    fn no_time_is_the_largest_which_the_server_replaces() {
        let mut out = BytesMut::new();
        encode(b"r", &change(None), &mut out).unwrap();
        let cell = Cells(out.freeze()).next().unwrap().unwrap();
        assert_eq!(cell.timestamp, Timestamp::LATEST);
    }

    #[test]
    fn cells_are_read_back_in_order() {
        let mut out = BytesMut::new();
        for time in [1, 2] {
            encode(b"row", &change(Some(Timestamp(time))), &mut out).unwrap();
        }
        let mut cells = Cells(out.freeze());
        for time in [1, 2] {
            let cell = cells.next().unwrap().unwrap();
            let view = cell.view();
            assert_eq!(
                (view.row, view.family, view.qualifier, view.value),
                (&b"row"[..], &b"t"[..], &b"\x01\x02"[..], &b"v"[..])
            );
            assert_eq!(view.timestamp, Timestamp(time));
        }
        assert_eq!(cells.next().unwrap(), None);
    }

    /// Bytes from outside never panic: every beginning of a block, and each byte of it turned.
    #[test]
    fn a_damaged_block_is_malformed_or_another_cell() {
        let mut out = BytesMut::new();
        encode(b"row", &change(Some(Timestamp(1))), &mut out).unwrap();
        let whole = out.freeze();
        for end in 1..whole.len() {
            assert!(Cells(whole.slice(..end)).next().is_err(), "{end} bytes");
        }
        for at in 0..whole.len() {
            let mut turned = whole.to_vec();
            turned[at] ^= 0x80;
            let mut cells = Cells(turned.into());
            while let Ok(Some(_)) = cells.next() {}
        }
    }
}
