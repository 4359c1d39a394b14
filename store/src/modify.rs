//! Changes that follow from what is there: increments, appends, and changes on a condition.

use bytes::Bytes;

use crate::{Comparison, Durability, Error, MutationBatch, Result, RowMutation};

/// An addition to a counter.
#[derive(Debug, Clone)]
pub struct Increment {
    /// Row key.
    pub row: Bytes,
    /// Column family.
    pub family: Bytes,
    /// Qualifier.
    pub qualifier: Bytes,
    /// What to add; may be negative.
    pub amount: i64,
    /// When to answer.
    pub durability: Durability,
}

impl Increment {
    /// What a counter of these bytes becomes; absent means 0, and it wraps.
    ///
    /// # Errors
    /// `Invalid`: it is no counter.
    pub fn applied_to(&self, stored: Option<&[u8]>) -> Result<i64> {
        let counter = |bytes: &[u8]| <[u8; 8]>::try_from(bytes).map_err(|_| Error::NotACounter { length: bytes.len() });
        let before = stored.map_or(Ok([0; 8]), counter)?;
        Ok(i64::from_be_bytes(before).wrapping_add(self.amount))
    }
}

/// Bytes to append to a cell.
#[derive(Debug, Clone)]
pub struct Append {
    /// Row key.
    pub row: Bytes,
    /// Column family.
    pub family: Bytes,
    /// Qualifier.
    pub qualifier: Bytes,
    /// What to append.
    pub value: Bytes,
    /// When to answer.
    pub durability: Durability,
}

impl Append {
    /// What a value becomes; absent means empty.
    pub fn applied_to(&self, stored: Option<&[u8]>) -> Bytes {
        [stored.unwrap_or_default(), &self.value].concat().into()
    }
}

/// Changes to a row on a condition.
#[derive(Debug, Clone)]
pub struct CheckAndMutate {
    /// Row key, checked and changed.
    pub row: Bytes,
    /// Column family of the checked cell.
    pub family: Bytes,
    /// Qualifier of the checked cell.
    pub qualifier: Bytes,
    /// How the newest visible value is held against `expected`.
    pub comparison: Comparison,
    /// The expected value; `None` asks that the cell be absent, whatever `comparison` says. See
    /// [`CheckAndMutate::holds`] for the empty one.
    pub expected: Option<Bytes>,
    /// The changes, all of `row`; their durability says when to answer.
    pub mutation: MutationBatch,
}

impl CheckAndMutate {
    /// The row's changes.
    ///
    /// # Errors
    /// `Invalid`: they are none, or not of exactly the row that is checked.
    pub fn changes(&self) -> Result<RowMutation<'_>> {
        let mut rows = self.mutation.rows();
        match (rows.next(), rows.next()) {
            (Some(row), None) if row.key() == self.row && row.cells().len() > 0 => Ok(row),
            _ => {
                let reason = "its changes must be of exactly the row that is checked".into();
                Err(Error::InvalidArgument { what: "check-and-mutate", reason })
            }
        }
    }

    /// Whether the checked cell's newest visible value, or its absence, is as expected.
    ///
    /// As HBase's `checkAndMutate` has it, an empty value and no cell are one: whoever expects either is content with
    /// the other, and every comparison but `NotEqual` asks the same of them.
    pub fn holds(&self, stored: Option<&[u8]>) -> bool {
        let expected = self.expected.as_deref().unwrap_or_default();
        if expected.is_empty() {
            let is_empty = stored.unwrap_or_default().is_empty();
            let differs = self.expected.is_some() && self.comparison == Comparison::NotEqual;
            return is_empty != differs;
        }
        stored.is_some_and(|value| self.comparison.holds(value.cmp(expected)))
    }
}
