//! What is derived from a store's rows and dear to derive again, kept beside its tables.

use std::fmt::Debug;

use crate::{Result, SeqNo, TableName};

/// A log of records beside a store's tables, each told to hold for all changes up to a number.
///
/// What was derived is brought back by reading the log, then looking at the rows changed after the number of its last record
/// ([`Scan::after`](crate::Scan::after)). So a log that lost its end, or all of it, costs a longer look and nothing else.
///
/// The rows of a table may be put back to what they were, by a snapshot that is restored or cloned, a table may be emptied or
/// dropped, and get a longer TTL, which shows rows again that are in files still. Then each log that is of it is emptied and its
/// epoch raised: whoever derived something looks at all rows again.
pub trait SideLog: Send + Sync + Debug {
    /// Says of which tables' rows the log is, there or not. Until then it counts as of all, and so does one that nobody has open.
    fn is_of(&self, tables: &[&TableName]);

    /// Grows when older rows of its tables came back, or their rows went, since the store was opened.
    fn epoch(&self) -> u64;

    /// Every change up to this number is on disk: no crash takes it back, and no later change is given such a number.
    fn synced(&self) -> SeqNo;

    /// Gives `visit` the records, oldest first, up to the first one that is damaged or that `visit` answers false to; that one and
    /// those behind it are cut off. Answers whether there were any such bytes.
    ///
    /// # Errors
    /// `Unavailable`: it could not be read, or cut.
    fn read(&self, visit: &mut dyn FnMut(SeqNo, &[u8]) -> bool) -> Result<bool>;

    /// Adds a record that holds for all changes up to `upto`. On disk when it returns; after an error it is not there.
    /// Answers false, and does nothing, if the epoch is another.
    ///
    /// # Errors
    /// `ReadOnly`: no room. `Unavailable`.
    fn append(&self, epoch: u64, upto: SeqNo, payload: &[u8]) -> Result<bool>;

    /// Puts these records in the place of all others: all at once, and on disk when it returns. Answers as
    /// [`SideLog::append`].
    ///
    /// # Errors
    /// As [`SideLog::append`].
    fn replace(&self, epoch: u64, upto: SeqNo, payloads: &mut dyn Iterator<Item = Vec<u8>>) -> Result<bool>;
}
