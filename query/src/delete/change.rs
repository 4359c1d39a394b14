//! The change that deletes points of a row: the family goes up to the newest time read, and what stays is put after that.

use basalt_schema::{DATA_FAMILY, RowCell};
use basalt_store::{CheckAndMutate, Comparison, Durability, MutationBatch, Timestamp};
use bytes::Bytes;

use crate::Result;

/// What becomes of one row.
#[derive(Debug)]
pub(super) struct Change<'a> {
    pub(super) key: &'a [u8],
    /// The cell that must still be as it was read.
    pub(super) checked: RowCell<'a>,
    /// The newest time of a cell read.
    pub(super) newest: Timestamp,
    /// The newest time in the row: of a cell read, or of a tombstone where something is put again.
    pub(super) latest: Timestamp,
    /// What is put again: qualifiers and values.
    pub(super) kept: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Change<'_> {
    /// It as a mutation that is done only if the cell is still there.
    pub(super) fn checked(&self) -> Result<CheckAndMutate> {
        let mut mutation = MutationBatch::new(Durability::Fsync);
        let mut changes = mutation.row(self.key)?;
        changes.delete_family(DATA_FAMILY, Some(self.newest))?;
        let after = Timestamp(self.latest.0.saturating_add(1));
        for (qualifier, value) in &self.kept {
            changes.put(DATA_FAMILY, qualifier, Some(after), value)?;
        }
        Ok(CheckAndMutate {
            row: Bytes::copy_from_slice(self.key),
            family: Bytes::from_static(DATA_FAMILY),
            qualifier: Bytes::copy_from_slice(self.checked.qualifier),
            comparison: Comparison::Equal,
            expected: Some(Bytes::copy_from_slice(self.checked.value)),
            mutation,
        })
    }
}
