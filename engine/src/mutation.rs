//! A batch as the log holds it: rows and cells with every time resolved.
//!
//! Byte map: `docs/formats/wal.md`, payload of type 1. Each row has a sequence
//! number of its own, counted back from the record's, so that of two entries of
//! one row in one batch the later one wins.

use basalt_store::{CellKind, SeqNo, Timestamp};

use crate::field::{Fields, put_string, put_varint};
use crate::id::{FamilyId, TableId};
use crate::record;

/// The record type of a batch.
pub(crate) const MUTATIONS: u8 = 1;
/// Where the number of rows lies in the payload: behind table id and server time.
const ROWS: usize = record::HEADER_BYTES + 4 + 8;
/// The number of rows is written at this width, whatever it is, since it is known last.
const ROWS_BYTES: usize = 4;

/// Builds the record of one batch.
#[derive(Debug)]
pub(crate) struct MutationWriter {
    out: Vec<u8>,
    rows: u32,
}

impl MutationWriter {
    /// Begins a record; `bytes` is a guess at its size.
    pub(crate) fn begin(table: TableId, server_time: Timestamp, bytes: usize) -> MutationWriter {
        let mut out = Vec::with_capacity(bytes + ROWS + ROWS_BYTES);
        record::begin(&mut out, MUTATIONS);
        out.extend_from_slice(&table.0.to_le_bytes());
        out.extend_from_slice(&server_time.0.to_le_bytes());
        out.extend_from_slice(&[0; ROWS_BYTES]);
        MutationWriter { out, rows: 0 }
    }

    /// Begins a row of `cells` cells, which follow.
    pub(crate) fn row(&mut self, key: &[u8], cells: usize) {
        self.rows += 1;
        put_string(&mut self.out, key);
        put_varint(&mut self.out, cells as u64);
    }

    /// Adds a cell to the row begun last.
    pub(crate) fn cell(&mut self, cell: &LoggedCell<'_>) {
        put_varint(&mut self.out, cell.family.0.into());
        self.out.push(cell.kind.code());
        put_varint(&mut self.out, cell.timestamp.0);
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
    rows_left: u32,
    /// The number of the last row.
    sequence: u64,
    fields: Fields<'a>,
}

impl<'a> LoggedBatch<'a> {
    /// Reads the head of a payload; `None` for bytes that no writer made.
    pub(crate) fn decode(payload: &'a [u8], sequence: u64) -> Option<LoggedBatch<'a>> {
        let mut fields = Fields::new(payload);
        let table = TableId(fields.u32()?);
        let server_time = Timestamp(fields.u64()?);
        let rows_left = fields.u32()?;
        // Numbers are counted back from the record's own.
        (sequence >= u64::from(rows_left)).then_some(LoggedBatch { table, server_time, rows_left, sequence, fields })
    }

    /// The next row: its key, its number, its cells; `None` in place of the row where it does not read.
    ///
    /// `Some(None)` is the end of the batch.
    #[expect(clippy::option_option, reason = "one caller, which takes it apart at once")]
    pub(crate) fn next_row(&mut self, cells: &mut Vec<LoggedCell<'a>>) -> Option<Option<(&'a [u8], SeqNo)>> {
        cells.clear();
        if self.rows_left == 0 {
            return self.fields.is_empty().then_some(None);
        }
        self.rows_left -= 1;
        let key = self.fields.string()?;
        let count = self.fields.varint()?;
        for _ in 0..count {
            cells.push(self.cell()?);
        }
        Some(Some((key, SeqNo(self.sequence - u64::from(self.rows_left)))))
    }

    fn cell(&mut self) -> Option<LoggedCell<'a>> {
        Some(LoggedCell {
            family: FamilyId(u32::try_from(self.fields.varint()?).ok()?),
            kind: CellKind::from_code(self.fields.u8()?).ok()?,
            timestamp: Timestamp(self.fields.varint()?),
            qualifier: self.fields.string()?,
            value: self.fields.string()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_comes_back_with_a_number_a_row() {
        let cell = |family, kind, value| LoggedCell {
            family: FamilyId(family),
            kind,
            timestamp: Timestamp(1 << 40),
            qualifier: b"q",
            value,
        };
        let put = cell(1, CellKind::Put, &b"value"[..]);
        let delete = cell(200, CellKind::DeleteFamily, &b""[..]);
        let mut writer = MutationWriter::begin(TableId(3), Timestamp(77), 0);
        writer.row(b"r1", 2);
        writer.cell(&put);
        writer.cell(&delete);
        writer.row(b"r2", 1);
        writer.cell(&put);
        assert_eq!(writer.rows(), 2);
        let record = writer.finish();
        let payload = &record[record::HEADER_BYTES..record::HEADER_BYTES + payload_len(&record)];

        let mut batch = LoggedBatch::decode(payload, 10).unwrap();
        assert_eq!((batch.table, batch.server_time), (TableId(3), Timestamp(77)));
        let mut cells = Vec::new();
        assert_eq!(batch.next_row(&mut cells), Some(Some((&b"r1"[..], SeqNo(9)))));
        assert_eq!(cells, [put, delete]);
        assert_eq!(batch.next_row(&mut cells), Some(Some((&b"r2"[..], SeqNo(10)))));
        assert_eq!(cells, [put]);
        assert_eq!(batch.next_row(&mut cells), Some(None));
        for cut in 0..payload.len() {
            assert!(end_of(&payload[..cut]).is_none(), "a payload cut at {cut} reads whole");
        }
    }

    /// What comes after the rows of a payload that may be cut.
    fn end_of(payload: &[u8]) -> Option<()> {
        let mut batch = LoggedBatch::decode(payload, 10)?;
        let mut cells = Vec::new();
        while batch.next_row(&mut cells)?.is_some() {}
        Some(())
    }

    fn payload_len(record: &[u8]) -> usize {
        u32::from_le_bytes(record[8..12].try_into().unwrap()) as usize
    }
}
