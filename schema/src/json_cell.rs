//! One cell of JSON: read, changed, deleted.
//!
//! A change is a check-and-put against the bytes that were read, so that of two writers at once neither is lost: who comes
//! second reads again and changes what is there now. OpenTSDB's fails the second.

use basalt_store::{
    CheckAndMutate, Columns, Comparison, Durability, Get, MutationBatch, Pending, Store, TableName, Timestamp,
};
use bytes::Bytes;

use crate::{Error, Result};

/// How often a change is tried against other writers.
const EDIT_ATTEMPTS: u32 = 4;

/// How often one is tried against a tombstone of its own millisecond, which is over long before.
const HIDDEN_ATTEMPTS: u32 = 10_000;

/// What becomes of members that an edit does not give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditMode {
    /// They stay.
    Merge,
    /// They are emptied.
    Replace,
}

/// Where a cell is.
#[derive(Debug)]
pub(crate) struct JsonCell<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) table: &'a TableName,
    pub(crate) row: Vec<u8>,
    pub(crate) family: &'static [u8],
    pub(crate) qualifier: Vec<u8>,
    /// What it holds, for errors.
    pub(crate) what: &'static str,
}

impl JsonCell<'_> {
    /// Its bytes.
    pub(crate) fn read(&self) -> Result<Option<Vec<u8>>> {
        Ok(self.stored()?.map(|(bytes, _)| bytes))
    }

    /// Stores what `change` makes of the bytes that are there, and gives back what else it made. Durable when it returns.
    ///
    /// # Errors
    /// `Conflict`: others changed it at every attempt. `change`'s and the store's own.
    pub(crate) fn edit<T>(&self, change: impl FnMut(Option<&[u8]>) -> Result<(Vec<u8>, T)>) -> Result<T> {
        self.edit_at(Durability::Fsync, change)
    }

    /// As [`JsonCell::edit`], as durable as this says when it returns.
    pub(crate) fn edit_at<T>(
        &self,
        durability: Durability,
        mut change: impl FnMut(Option<&[u8]>) -> Result<(Vec<u8>, T)>,
    ) -> Result<T> {
        let (mut lost, mut hidden) = (0, 0);
        while lost < EDIT_ATTEMPTS && hidden < HIDDEN_ATTEMPTS {
            let before = self.read()?;
            let (bytes, made) = change(before.as_deref())?;
            if !self.put(before, &bytes, durability)? {
                lost += 1;
            } else if self.read()?.is_some() {
                return Ok(made);
            } else {
                // A tombstone of this very millisecond hides the put. The next millisecond's is seen.
                hidden += 1;
                std::thread::yield_now();
            }
        }
        Err(Error::EditLost { what: self.what, attempts: lost + hidden })
    }

    /// Begins the first attempt of an edit and does not wait for the disk. What `change` made is stored if the answer is yes and
    /// the cell is [there](JsonCell::read) then; otherwise [`JsonCell::edit`] is to try again.
    ///
    /// # Errors
    /// `change`'s and the store's own.
    pub(crate) fn begin_edit<T>(
        &self,
        change: impl FnOnce(Option<&[u8]>) -> Result<(Vec<u8>, T)>,
    ) -> Result<(Pending<bool>, T)> {
        let before = self.read()?;
        let (bytes, made) = change(before.as_deref())?;
        Ok((self.begin_put(before, &bytes, Durability::Fsync)?, made))
    }

    /// Deletes it; whether it was there. Durable when it returns.
    ///
    /// The tombstone carries the cell's own time. One of the server's would hide a put of the same millisecond.
    pub(crate) fn delete(&self) -> Result<bool> {
        let Some((_, time)) = self.stored()? else { return Ok(false) };
        let mut batch = MutationBatch::new(Durability::Fsync);
        batch.row(&self.row)?.delete_column(self.family, &self.qualifier, Some(time))?;
        self.store.apply(self.table, batch).wait()?.all_stored()?;
        Ok(true)
    }

    /// Puts it if there is none; whether there was none.
    pub(crate) fn put_if_absent(&self, value: &[u8], durability: Durability) -> Result<bool> {
        self.put(None, value, durability)
    }

    fn stored(&self) -> Result<Option<(Vec<u8>, Timestamp)>> {
        let get = Get::row(self.row.clone()).with_columns(Columns::column(self.family, self.qualifier.clone()));
        let batch = self.store.get(self.table, get).wait()?;
        let found = batch.row(0).and_then(|row| row.cells().next());
        Ok(found.map(|cell| (cell.value.to_vec(), cell.timestamp)))
    }

    /// Whether the cell still held `expected`.
    fn put(&self, expected: Option<Vec<u8>>, value: &[u8], durability: Durability) -> Result<bool> {
        Ok(self.begin_put(expected, value, durability)?.wait()?)
    }

    fn begin_put(&self, expected: Option<Vec<u8>>, value: &[u8], durability: Durability) -> Result<Pending<bool>> {
        let mut mutation = MutationBatch::new(durability);
        mutation.row(&self.row)?.put(self.family, &self.qualifier, None, value)?;
        let check = CheckAndMutate {
            row: self.row.clone().into(),
            family: Bytes::from_static(self.family),
            qualifier: self.qualifier.clone().into(),
            comparison: Comparison::Equal,
            expected: expected.map(Bytes::from),
            mutation,
        };
        Ok(self.store.check_and_mutate(self.table, check))
    }
}
