//! What the table itself says of names and UIDs, past what is kept in memory.

use std::sync::Arc;

use basalt_store::{Columns, Get, RowBatch, Scan};
use bytes::Bytes;

use super::{COUNTER_ROW, UidTable};
use crate::tables::{UID_ID_FAMILY, UID_NAME_FAMILY};
use crate::{Error, Result, Uid};

/// So many UIDs are worth a scan where every fourth number at least between the first and the last is among them.
const SCAN_UIDS_MIN: usize = 64;
const SCAN_PART: u64 = 4;

impl UidTable {
    /// What the forward map says, past the cache.
    pub(super) fn stored_uid(&self, name: &str) -> Result<Option<Uid>> {
        Ok(self.stored_forward(name)?.map(|(uid, _)| uid))
    }

    /// The UID that the forward map says, and the row that says it.
    pub(super) fn stored_forward(&self, name: &str) -> Result<Option<(Uid, Vec<u8>)>> {
        if name.is_empty() {
            return Err(Error::EmptyName { role: self.role() });
        }
        // The row of this name holds the counters.
        if name.as_bytes() == COUNTER_ROW {
            return Ok(None);
        }
        for row in [Some(name.as_bytes().to_vec()), latin_1(name)].into_iter().flatten() {
            let Some(cell) = self.stored_cell(&row, UID_ID_FAMILY)? else { continue };
            return match Uid::decode(&cell) {
                Some(uid) if cell.len() == self.width.bytes() => Ok(Some((uid, row))),
                _ => Err(self.corrupt("the UID", &row, Some(&cell), self.width.bytes())),
            };
        }
        Ok(None)
    }

    /// What the reverse map says, past the cache.
    pub(super) fn stored_name(&self, uid: Uid) -> Result<Option<Arc<str>>> {
        if uid > self.width.uid_max() {
            return Ok(None);
        }
        let cell = self.stored_cell(&uid.encode(self.width), UID_NAME_FAMILY)?;
        Ok(cell.map(|cell| decode_name(&cell).into()))
    }

    /// The value of this kind's cell of a row and family.
    pub(super) fn stored_cell(&self, row: &[u8], family: &'static [u8]) -> Result<Option<Vec<u8>>> {
        let columns = Columns::column(family, self.kind.qualifier());
        let get = Get::row(Bytes::copy_from_slice(row)).with_columns(columns);
        let batch: RowBatch = self.store.get(&self.table, get).wait()?;
        Ok(batch.row(0).and_then(|row| row.cells().next()).map(|cell| cell.value.to_vec()))
    }

    /// The names of some UIDs, ascending, by the reverse map.
    pub(super) fn stored_names(&self, uids: &[Uid]) -> Result<Vec<(Uid, Arc<str>)>> {
        let mut found = Vec::with_capacity(uids.len());
        if let ([first, .., last], true) = (uids, are_close(uids)) {
            let key = |uid: &Uid| Bytes::copy_from_slice(&uid.encode(self.width));
            let mut scan = Scan::range(key(first), key(last));
            (scan.stop_inclusive, scan.columns) = (true, self.name_column());
            let mut scanner = self.store.scan(&self.table, scan)?;
            while let Some(batch) = scanner.next_wait().transpose()? {
                let names = self.names_of(&batch).filter(|(uid, _)| uids.binary_search(uid).is_ok());
                found.extend(names);
            }
        } else {
            let rows = uids.iter().map(|uid| Bytes::copy_from_slice(&uid.encode(self.width))).collect();
            let batch = self.store.get(&self.table, Get::rows(rows).with_columns(self.name_column())).wait()?;
            found.extend(self.names_of(&batch));
        }
        Ok(found)
    }

    fn name_column(&self) -> Columns {
        Columns::column(UID_NAME_FAMILY, self.kind.qualifier())
    }

    /// What rows of the reverse map say. A key of another length is none of its rows.
    fn names_of<'a>(&self, batch: &'a RowBatch) -> impl Iterator<Item = (Uid, Arc<str>)> + 'a {
        let width = self.width.bytes();
        batch.rows().filter(move |row| row.key().len() == width).filter_map(|row| {
            let name = decode_name(row.cells().next()?.value);
            Some((Uid::decode(row.key())?, name.into()))
        })
    }

    pub(super) fn corrupt(&self, what: &'static str, row: &[u8], cell: Option<&[u8]>, expected: usize) -> Error {
        Error::CorruptUid {
            kind: self.kind,
            what,
            name: decode_name(row).into(),
            length: cell.map_or(0, <[u8]>::len),
            expected,
        }
    }
}

/// Whether a scan from the first of some UIDs, which ascend, to the last reads few others.
fn are_close(uids: &[Uid]) -> bool {
    let (Some(first), Some(last)) = (uids.first(), uids.last()) else { return false };
    let span = last.number().saturating_sub(first.number());
    uids.len() >= SCAN_UIDS_MIN && span < (uids.len() as u64).saturating_mul(SCAN_PART)
}

/// A stored name. Bytes that are no UTF-8 were written by OpenTSDB, as Latin-1.
///
/// ```
/// use basalt_schema::decode_name;
/// assert_eq!(decode_name("Zürich".as_bytes()), "Zürich");
/// assert_eq!(decode_name(b"Z\xFCrich"), "Zürich");
/// ```
pub fn decode_name(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(name) => name.to_owned(),
        Err(_) => bytes.iter().copied().map(char::from).collect(),
    }
}

/// A name as OpenTSDB would store it, where that is read as this name and is other bytes than ours.
pub(super) fn latin_1(name: &str) -> Option<Vec<u8>> {
    let bytes: Vec<u8> = name.chars().map(|letter| u8::try_from(letter).ok()).collect::<Option<_>>()?;
    std::str::from_utf8(&bytes).is_err().then_some(bytes)
}
