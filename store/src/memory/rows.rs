//! Rows in memory: sorted maps of cells, one for each row and family.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use bytes::Bytes;

use crate::{Advance, CellKind, CellRef, Result, Retention, RowBatchBuilder, RowReader, SeqNo, Timestamp};

/// A table's rows by key.
pub(super) type Rows = BTreeMap<Bytes, Row>;

/// A row's cells by family.
pub(super) type Row = BTreeMap<Bytes, FamilyCells>;

/// A cell's place among its row and family's; the derived order is cell order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CellKey {
    pub(super) qualifier: Bytes,
    pub(super) timestamp: Reverse<Timestamp>,
    /// The kind's code, larger first.
    kind: Reverse<u8>,
    /// The sequence number where writes of one address are told apart, larger first; else 0, since no reader ever sees
    /// but the last written.
    written: Reverse<u64>,
}

impl CellKey {
    pub(super) fn new(qualifier: &[u8], timestamp: Timestamp, kind: CellKind) -> Self {
        let qualifier = Bytes::copy_from_slice(qualifier);
        Self { qualifier, timestamp: Reverse(timestamp), kind: Reverse(kind.code()), written: Reverse(0) }
    }

    /// The same place, beside others of its address.
    pub(super) fn written_as(mut self, seq: SeqNo) -> Self {
        self.written = Reverse(seq.0);
        self
    }

    /// Before every cell of a column.
    fn first_of(qualifier: &[u8]) -> Self {
        let qualifier = Bytes::copy_from_slice(qualifier);
        let (timestamp, kind) = (Reverse(Timestamp(u64::MAX)), Reverse(u8::MAX));
        Self { qualifier, timestamp, kind, written: Reverse(u64::MAX) }
    }
}

/// The rest of a cell.
#[derive(Debug, Clone)]
pub(super) struct CellData {
    pub(super) kind: CellKind,
    pub(super) seq: SeqNo,
    pub(super) value: Bytes,
}

/// A row's cells of one family, in cell order.
#[derive(Debug, Clone, Default)]
pub(super) struct FamilyCells(BTreeMap<CellKey, CellData>);

impl FamilyCells {
    /// Adds a cell in place of one with its place.
    pub(super) fn insert(&mut self, key: CellKey, data: CellData) {
        self.0.insert(key, data);
    }

    /// Cells, seen or not.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Bytes of qualifiers and values.
    pub(super) fn data_bytes(&self) -> u64 {
        self.0.iter().map(|(key, data)| (key.qualifier.len() + data.value.len()) as u64).sum()
    }

    /// The time of the oldest put.
    pub(super) fn earliest_put(&self) -> Option<Timestamp> {
        self.0.iter().filter(|(_, data)| !data.kind.is_tombstone()).map(|(key, _)| key.timestamp.0).min()
    }

    /// The newest tombstone of these times over a column.
    pub(super) fn tombstone_over(&self, qualifier: &[u8], times: &RangeInclusive<Timestamp>) -> Option<Timestamp> {
        let is_over = |key: &CellKey, kind: CellKind| {
            kind.is_tombstone_over(&key.qualifier, qualifier) && times.contains(&key.timestamp.0)
        };
        self.0.iter().filter(|(key, data)| is_over(key, data.kind)).map(|(key, _)| key.timestamp.0).max()
    }

    /// Drops what retention lets go; says whether any cell stays.
    pub(super) fn compact(&mut self, retention: &mut Retention) -> bool {
        retention.begin_row();
        self.0.retain(|key, data| retention.judge(&cell(&[], &[], key, data)).keeps());
        !self.0.is_empty()
    }

    /// Feeds the cells to a reader that has begun the family; says whether the row goes on after it.
    fn feed(&self, row: &[u8], family: &[u8], reader: &mut RowReader, out: &mut RowBatchBuilder) -> Result<bool> {
        let mut cells = self.0.range::<CellKey, _>(..);
        while let Some((key, data)) = cells.next() {
            match reader.feed(&cell(row, family, key, data), out)? {
                Advance::NextCell => {}
                // Worth a seek only where a few columns of a wide row are wanted.
                Advance::NextColumn => {
                    if let Some(wanted) = reader.wanted().filter(|&wanted| wanted > &key.qualifier[..]) {
                        cells = self.0.range(CellKey::first_of(wanted)..);
                    }
                }
                Advance::NextFamily => break,
                Advance::NextRow => return Ok(false),
            }
        }
        Ok(true)
    }
}

fn cell<'a>(row: &'a [u8], family: &'a [u8], key: &'a CellKey, data: &'a CellData) -> CellRef<'a> {
    CellRef {
        row,
        family,
        qualifier: &key.qualifier,
        timestamp: key.timestamp.0,
        kind: data.kind,
        seq: data.seq,
        value: &data.value,
    }
}

/// Reads a row that the reader has begun; `families` are the names the reader's selection stands for, in its order.
/// Says whether it is part of the answer.
pub(super) fn read_row(
    key: &[u8],
    row: &Row,
    families: &[Bytes],
    reader: &mut RowReader,
    out: &mut RowBatchBuilder,
) -> Result<bool> {
    for (position, family) in families.iter().enumerate() {
        reader.begin_family(position);
        if let Some(cells) = row.get(family)
            && !cells.feed(key, family, reader, out)?
        {
            break;
        }
    }
    Ok(reader.end_row(out))
}
