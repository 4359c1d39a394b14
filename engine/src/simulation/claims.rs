//! Rows that a history claims and frees by check-and-mutate, as a schema takes its UIDs: each change names what it rests on.

use std::collections::BTreeSet;

use basalt_store::{CheckAndMutate, Comparison, Durability, MutationBatch};

use super::told::Told;

pub(super) const ROWS: u64 = 3;
const FAMILY: &[u8] = b"f";
const QUALIFIER: &[u8] = b"n";

/// Who holds a row; nobody at first.
pub(super) type Holder = Option<u64>;

pub(super) fn row_key(row: u64) -> String {
    format!("claim{row}")
}

/// Gives a row to another holder if `expected` has it.
///
/// # Errors
/// Those of the mutation.
pub(super) fn change(
    row: u64,
    (expected, next): (Holder, Holder),
    durability: Durability,
) -> basalt_store::Result<CheckAndMutate> {
    let key = row_key(row);
    let mut mutation = MutationBatch::new(durability);
    let mut changes = mutation.row(key.as_bytes())?;
    match next {
        Some(next) => changes.put(FAMILY, QUALIFIER, None, &next.to_be_bytes())?,
        None => changes.delete_column(FAMILY, QUALIFIER, None)?,
    };
    let expected = expected.map(|holder| holder.to_be_bytes().to_vec().into());
    let (family, qualifier, comparison) = (FAMILY.into(), QUALIFIER.into(), Comparison::Equal);
    Ok(CheckAndMutate { row: key.into(), family, qualifier, comparison, expected, mutation })
}

#[derive(Debug)]
struct Asked {
    change: u64,
    expected: Holder,
    next: Holder,
    /// Another had it then, for good.
    is_refused: bool,
}

/// What was asked of one row.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Who surely held it.
    sure: Holder,
    /// What was asked since.
    since: Vec<Asked>,
    /// Who was seen to hold it last in this life.
    seen: Option<Holder>,
}

impl Ledger {
    pub(super) fn ask(&mut self, change: u64, (expected, next): (Holder, Holder)) {
        self.since.push(Asked { change, expected, next, is_refused: false });
    }

    /// A change was answered, and what it rests on is on disk.
    ///
    /// # Errors
    /// In words, where nothing that was asked leads to such an answer.
    pub(super) fn hear(&mut self, change: u64, was_changed: bool) -> Told {
        let Some(at) = self.since.iter().position(|asked| asked.change == change) else { return Ok(()) };
        let before = self.holders(at);
        let Some(asked) = self.since.get_mut(at) else { return Ok(()) };
        let (expected, next) = (asked.expected, asked.next);
        asked.is_refused = !was_changed;
        if was_changed && !before.contains(&expected) || !was_changed && before.iter().eq([&expected]) {
            return Err(format!("{was_changed} for {expected:?} to {next:?}, held by one of {before:?}"));
        }
        if was_changed {
            self.since.drain(..=at);
            self.sure = next;
        }
        Ok(())
    }

    /// Who may hold it.
    pub(super) fn may_hold(&self) -> Vec<Holder> {
        self.holders(self.since.len()).into_iter().collect()
    }

    /// It is held by one who may hold it.
    ///
    /// # Errors
    /// Who holds it, in words.
    pub(super) fn see(&mut self, found: Holder) -> Told {
        self.seen = Some(found);
        if self.holders(self.since.len()).contains(&found) {
            return Ok(());
        }
        Err(format!("{found:?}, not {:?} and what came of {:?}", self.sure, self.since))
    }

    /// What was seen is there for good.
    pub(super) fn keep(&mut self) {
        if let Some(sure) = self.seen {
            *self = Self { sure, ..Self::default() };
        }
    }

    /// Nothing is seen yet of what a new life shows.
    pub(super) fn forget(&mut self) {
        self.seen = None;
    }

    /// Who may have held it before a change: each that was asked may have been lost.
    fn holders(&self, before: usize) -> BTreeSet<Holder> {
        let mut holders = BTreeSet::from([self.sure]);
        for asked in self.since.iter().take(before) {
            if asked.is_refused {
                holders.remove(&asked.expected);
            } else if holders.contains(&asked.expected) {
                holders.insert(asked.next);
            }
        }
        holders
    }
}
