//! A batch as the log holds it: rows and cells with every time resolved.
//!
//! Byte map: `docs/formats/wal.md`, payloads of types 1 and 2. Each row has a sequence
//! number of its own, counted back from the record's, so that of two entries of
//! one row in one batch the later one wins.
//!
//! Rows of a batch are often much alike: those of one host's series differ in their
//! metric alone. So a key says what of it is not that of the row before (type 2). Type 1,
//! which has whole keys and times, is read and no longer written.

use std::path::Path;

use basalt_store::{CellKind, SeqNo, Timestamp};

use crate::error::Error;
use crate::field::{Fields, put_string, put_varint, put_varints};
use crate::id::{FamilyId, TableId};
use crate::record;

/// The record type of a batch with whole keys and times, as version 1 of the log has it.
const WHOLE_KEYS: u8 = 1;
/// The record type of a batch.
pub(crate) const MUTATIONS: u8 = 2;
/// Where the number of rows lies in the payload: behind table id and server time.
const ROWS: usize = record::HEADER_BYTES + 4 + 8;
/// The number of rows is written at this width, whatever it is, since it is known last.
const ROWS_BYTES: usize = 4;

/// Builds the record of one batch.
#[derive(Debug)]
pub(crate) struct MutationWriter<'a> {
    out: Vec<u8>,
    rows: u32,
    server_time: Timestamp,
    /// The key of the row begun last.
    key: &'a [u8],
    /// How many bytes it shared with the one before, at its beginning and at its end.
    shared: (usize, usize),
}

impl<'a> MutationWriter<'a> {
    /// Begins a record; `bytes` is a guess at its size.
    pub(crate) fn begin(table: TableId, server_time: Timestamp, bytes: usize) -> MutationWriter<'a> {
        let mut out = Vec::with_capacity(bytes + ROWS + ROWS_BYTES);
        record::begin(&mut out, MUTATIONS);
        out.extend_from_slice(&table.0.to_le_bytes());
        out.extend_from_slice(&server_time.0.to_le_bytes());
        out.extend_from_slice(&[0; ROWS_BYTES]);
        MutationWriter { out, rows: 0, server_time, key: &[], shared: (0, 0) }
    }

    /// Begins a row of `cells` cells, which follow.
    pub(crate) fn row(&mut self, key: &'a [u8], cells: usize) {
        self.rows += 1;
        let before = std::mem::replace(&mut self.key, key);
        // Fast path: it differs from the one before where that did from its own.
        if !is_shared(before, key, self.shared) {
            let prefix = common_prefix(before, key);
            let (before, rest) = (before.get(prefix..).unwrap_or_default(), key.get(prefix..).unwrap_or_default());
            self.shared = (prefix, common_suffix(before, rest));
        }
        let (prefix, suffix) = self.shared;
        let own = key.get(prefix..key.len() - suffix).unwrap_or_default();
        // Fast path: salt and metric alone are others.
        if let Some(bytes) = few_bytes(own)
            && (prefix | suffix | cells) < 0x80
        {
            let (len, cells) = (own.len(), (cells as u64) << (24 + 8 * own.len()));
            let head = prefix as u64 | (suffix as u64) << 8 | (len as u64) << 16;
            return put_word(&mut self.out, head | u64::from(bytes) << 24 | cells, 4 + len);
        }
        put_varints(&mut self.out, [prefix, suffix, own.len()].map(|count| count as u64));
        self.out.extend_from_slice(own);
        put_varint(&mut self.out, cells as u64);
    }

    /// Adds a cell to the row begun last.
    pub(crate) fn cell(&mut self, cell: &LoggedCell<'_>) {
        let has_time = cell.timestamp != self.server_time;
        // Fast path: a point of a small value.
        let (qualifier_len, value_len) = (cell.qualifier.len(), cell.value.len());
        if let Some((qualifier, value)) = few_bytes(cell.qualifier).zip(few_bytes(cell.value))
            && qualifier_len + value_len <= FEW_BYTES
            && cell.family.0 < 0x40
            && !has_time
        {
            let head = u64::from(cell.family.0) << 1 | u64::from(cell.kind.code()) << 8 | (qualifier_len as u64) << 16;
            let value = (value_len as u64 | u64::from(value) << 8) << (24 + 8 * qualifier_len);
            let len = 4 + qualifier_len + value_len;
            return put_word(&mut self.out, head | u64::from(qualifier) << 24 | value, len);
        }
        put_varint(&mut self.out, u64::from(cell.family.0) << 1 | u64::from(has_time));
        self.out.push(cell.kind.code());
        if has_time {
            put_varint(&mut self.out, cell.timestamp.0);
        }
        put_string(&mut self.out, cell.qualifier);
        put_string(&mut self.out, cell.value);
    }

    /// How many rows there are: how many sequence numbers the record takes.
    pub(crate) fn rows(&self) -> u64 {
        self.rows.into()
    }

    /// The closed record.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        if let Some(place) = self.out.get_mut(ROWS..ROWS + ROWS_BYTES) {
            place.copy_from_slice(&self.rows.to_le_bytes());
        }
        record::close(&mut self.out);
        self.out
    }
}

/// With their lengths and numbers, so many bytes are a word.
const FEW_BYTES: usize = 4;

/// Bytes that are few as a number, the first the lowest.
#[inline]
fn few_bytes(bytes: &[u8]) -> Option<u32> {
    Some(match *bytes {
        [] => 0,
        [a] => u32::from(a),
        [a, b] => u32::from(u16::from_le_bytes([a, b])),
        [a, b, c] => u32::from_le_bytes([a, b, c, 0]),
        [a, b, c, d] => u32::from_le_bytes([a, b, c, d]),
        _ => return None,
    })
}

/// Appends the first bytes of a word.
#[inline]
fn put_word(out: &mut Vec<u8>, word: u64, bytes: usize) {
    let len = out.len() + bytes;
    out.extend_from_slice(&word.to_le_bytes());
    out.truncate(len);
}

/// A cell of a logged row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LoggedCell<'a> {
    pub(crate) family: FamilyId,
    pub(crate) kind: CellKind,
    pub(crate) timestamp: Timestamp,
    pub(crate) qualifier: &'a [u8],
    pub(crate) value: &'a [u8],
}

/// A logged batch, read back.
#[derive(Debug)]
pub(crate) struct LoggedBatch<'a> {
    pub(crate) table: TableId,
    pub(crate) server_time: Timestamp,
    has_whole_keys: bool,
    rows_left: u32,
    /// The number of the last row.
    sequence: u64,
    fields: Fields<'a>,
    /// The key of the row read last, and what will be that of the next.
    key: Vec<u8>,
    spare: Vec<u8>,
}

impl<'a> LoggedBatch<'a> {
    /// What is wrong with a record whose checksum fits over a payload that does not read: written so, by us or a later program.
    pub(crate) fn unreadable(file: &Path, offset: u64, kind: u8) -> Error {
        let (file, what) = (file.to_path_buf(), "log record kind");
        Error::Corrupt { file, offset, what, expected: MUTATIONS.into(), found: kind.into() }
    }

    /// Reads the head of a record's payload; `None` for bytes that no writer made.
    pub(crate) fn decode(kind: u8, payload: &'a [u8], sequence: u64) -> Option<LoggedBatch<'a>> {
        let mut fields = Fields::new(payload);
        let table = TableId(fields.u32()?);
        let server_time = Timestamp(fields.u64()?);
        let rows_left = fields.u32()?;
        let has_whole_keys = kind == WHOLE_KEYS;
        let (key, spare) = (Vec::new(), Vec::new());
        // Numbers are counted back from the record's own.
        (matches!(kind, WHOLE_KEYS | MUTATIONS) && sequence >= u64::from(rows_left)).then_some(LoggedBatch {
            table,
            server_time,
            has_whole_keys,
            rows_left,
            sequence,
            fields,
            key,
            spare,
        })
    }

    /// The next row: its key, its number, its cells; `None` in place of the row where it does not read.
    ///
    /// `Some(None)` is the end of the batch.
    #[expect(clippy::option_option, reason = "the caller takes it apart at once")]
    pub(crate) fn next_row(&mut self, cells: &mut Vec<LoggedCell<'a>>) -> Option<Option<(&[u8], SeqNo)>> {
        let Some(sequence) = self.begin_row()? else { return Some(None) };
        self.cells_into(cells)?;
        Some(Some((&self.key, sequence)))
    }

    /// The same without the cells, which are read or skipped next; [`LoggedBatch::key`] is the row's.
    #[expect(clippy::option_option, reason = "the caller takes it apart at once")]
    #[inline]
    pub(crate) fn begin_row(&mut self) -> Option<Option<SeqNo>> {
        if self.rows_left == 0 {
            return self.fields.is_empty().then_some(None);
        }
        self.rows_left -= 1;
        self.read_key()?;
        Some(Some(SeqNo(self.sequence - u64::from(self.rows_left))))
    }

    /// The key of the row that was begun last.
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    /// Reads the cells of the row that was begun; `None` where they do not read.
    #[inline]
    pub(crate) fn cells_into(&mut self, cells: &mut Vec<LoggedCell<'a>>) -> Option<()> {
        cells.clear();
        if let Some(lone) = self.lone_cell() {
            cells.push(lone);
            return Some(());
        }
        let count = self.fields.varint()?;
        for _ in 0..count {
            cells.push(self.cell()?);
        }
        Some(())
    }

    /// Skips the cells of the row that was begun; `None` where it cannot be told where they end. What they are is not looked at.
    #[inline]
    pub(crate) fn skip_cells(&mut self) -> Option<()> {
        if self.lone_cell().is_some() {
            return Some(());
        }
        let count = self.fields.varint()?;
        for _ in 0..count {
            let family = self.fields.varint()?;
            self.fields.u8()?;
            if self.has_whole_keys || family & 1 == 1 {
                self.fields.varint()?;
            }
            self.fields.string()?;
            self.fields.string()?;
        }
        Some(())
    }

    /// Fast path: a row of one cell, of which all numbers are small. `None` for any other, which is still to be read.
    #[inline]
    fn lone_cell(&mut self) -> Option<LoggedCell<'a>> {
        let (head, rest) = self.fields.peek().split_first_chunk()?;
        let [1, family @ ..0x80, kind, qualifier @ ..0x80] = *head else { return None };
        let (qualifier, rest) = rest.split_at_checked(qualifier.into())?;
        let [value @ ..0x80, rest @ ..] = rest else { return None };
        let (value, rest) = rest.split_at_checked((*value).into())?;
        if self.has_whole_keys || family & 1 == 1 {
            return None;
        }
        let (family, timestamp) = (FamilyId((family >> 1).into()), self.server_time);
        let kind = CellKind::from_code(kind).ok()?;
        self.fields = Fields::new(rest);
        Some(LoggedCell { family, kind, timestamp, qualifier, value })
    }

    #[inline]
    fn read_key(&mut self) -> Option<()> {
        // Fast path: a key as long as the one before, of which the numbers are small; most often salt and metric are others.
        if let Some(([prefix @ ..0x80, suffix @ ..0x80, len @ ..0x80], rest)) = self.fields.peek().split_first_chunk()
            && let (prefix, suffix, len) = (usize::from(*prefix), usize::from(*suffix), usize::from(*len))
            && prefix + len + suffix == self.key.len()
            && !self.has_whole_keys
            && let Some((between, rest)) = rest.split_at_checked(len)
            && let Some(differs) = self.key.get_mut(prefix..prefix + len)
        {
            match (differs.first_chunk_mut(), between) {
                (Some(differs), [a, b, c, d]) => *differs = [*a, *b, *c, *d],
                _ => differs.copy_from_slice(between),
            }
            self.fields = Fields::new(rest);
            return Some(());
        }
        self.read_any_key()
    }

    fn read_any_key(&mut self) -> Option<()> {
        let (mut prefix, mut suffix) = (0, 0);
        if !self.has_whole_keys {
            prefix = usize::try_from(self.fields.varint()?).ok()?;
            suffix = usize::try_from(self.fields.varint()?).ok()?;
        }
        let between = self.fields.string()?;
        // What is shared at the end lies behind what is shared at the beginning.
        let (front, rest) = self.key.split_at_checked(prefix)?;
        let (_, back) = rest.split_at_checked(rest.len().checked_sub(suffix)?)?;
        self.spare.clear();
        for piece in [front, between, back] {
            self.spare.extend_from_slice(piece);
        }
        std::mem::swap(&mut self.key, &mut self.spare);
        Some(())
    }

    fn cell(&mut self) -> Option<LoggedCell<'a>> {
        let family = self.fields.varint()?;
        let (family, has_time) = if self.has_whole_keys { (family, true) } else { (family >> 1, family & 1 == 1) };
        Some(LoggedCell {
            family: FamilyId(u32::try_from(family).ok()?),
            kind: CellKind::from_code(self.fields.u8()?).ok()?,
            timestamp: if has_time { Timestamp(self.fields.varint()?) } else { self.server_time },
            qualifier: self.fields.string()?,
            value: self.fields.string()?,
        })
    }
}

/// Whether two keys of one length share just so many bytes at their beginning and at their end, and no more.
#[inline]
fn is_shared(a: &[u8], b: &[u8], (prefix, suffix): (usize, usize)) -> bool {
    let end = a.len().saturating_sub(suffix);
    let differs = |at: usize| a.get(at) != b.get(at);
    differs(prefix)
        && differs(end.wrapping_sub(1))
        && a.get(..prefix) == b.get(..prefix)
        && a.get(end..) == b.get(end..)
}

/// How many bytes both begin with.
fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    // Eight at a time: what one host's series share is long.
    let words = a.chunks_exact(8).zip(b.chunks_exact(8)).take_while(|(a, b)| a == b).count() * 8;
    let (a, b) = (a.get(words..).unwrap_or_default(), b.get(words..).unwrap_or_default());
    words + a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// How many bytes both end with.
fn common_suffix(a: &[u8], b: &[u8]) -> usize {
    // Eight at a time: what series share is long.
    let words = a.rchunks_exact(8).zip(b.rchunks_exact(8)).take_while(|(a, b)| a == b).count() * 8;
    let (a, b) = (a.get(..a.len() - words).unwrap_or_default(), b.get(..b.len() - words).unwrap_or_default());
    words + a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests;
