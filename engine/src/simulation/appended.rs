//! The append cell of a history's rows: numbers one behind the other, in the family whose rows are folded by column. A row that has one
//! is not folded, as a schema's are not.

use basalt_store::{Append, Durability, RowBuilder};

use super::folded::{self, APPENDED};
use super::told::Told;

/// The numbers of an append cell.
pub(super) fn numbers(value: &[u8]) -> Vec<u64> {
    let (numbers, _) = value.as_chunks::<{ folded::NUMBER_BYTES }>();
    numbers.iter().map(|number| u64::from_be_bytes(*number)).collect()
}

/// Appends a number.
pub(super) fn append(row: &str, number: u64, durability: Durability) -> Append {
    let (row, family, qualifier) = (row.to_owned().into(), folded::FAMILY.into(), APPENDED.into());
    Append { row, family, qualifier, value: number.to_be_bytes().to_vec().into(), durability }
}

/// Deletes the cell.
///
/// # Errors
/// Those of the mutation.
pub(super) fn delete(changes: &mut RowBuilder<'_>) -> basalt_store::Result<()> {
    changes.delete_column(folded::FAMILY, APPENDED, None)?;
    Ok(())
}

/// What was asked of a row's append cell.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// What it surely held.
    sure: Vec<u64>,
    /// What was asked since: a number more, or none at all. Each with its change.
    since: Vec<(u64, Option<u64>)>,
}

impl Ledger {
    /// A change appends a number, or deletes the cell.
    pub(super) fn ask(&mut self, change: u64, asked: Option<u64>) {
        self.since.push((change, asked));
    }

    /// The cell holds this for good after a change.
    pub(super) fn is_sure(&mut self, change: u64, held: Vec<u64>) {
        if let Some(at) = self.since.iter().position(|(asked, _)| *asked == change) {
            self.since.drain(..=at);
            self.sure = held;
        }
    }

    /// The cell holds what it surely held, or nothing since it may have been deleted, and some of what was appended after that, in
    /// order.
    ///
    /// # Errors
    /// What it holds, in words.
    pub(super) fn see(&self, found: &[u64]) -> Told {
        let deleted = |(at, (_, asked)): (usize, &(u64, Option<u64>))| asked.is_none().then_some(at + 1);
        let mut deletes = self.since.iter().enumerate().filter_map(deleted);
        if self.holds(&self.sure, 0, found) || deletes.any(|from| self.holds(&[], from, found)) {
            return Ok(());
        }
        Err(format!("{found:?} appended, not {:?} and some of {:?}", self.sure, self.since))
    }

    /// Whether `found` is `first` and some of what was appended from a place on.
    fn holds(&self, first: &[u64], from: usize, found: &[u64]) -> bool {
        let mut appended = self.since.iter().skip(from).filter_map(|(_, asked)| *asked);
        let rest = found.strip_prefix(first);
        rest.is_some_and(|rest| rest.iter().all(|number| appended.any(|one| one == *number)))
    }

    /// What is found is there for good.
    pub(super) fn keep(&mut self, found: Vec<u64>) {
        *self = Self { sure: found, since: Vec::new() };
    }
}
