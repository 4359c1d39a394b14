//! Tells rows of a block apart by two bytes of their keys' hashes.
//!
//! The keys of many open blocks lie all over memory, and each step of a search by halves waits for one of them. Marks lie one
//! behind the other, hundreds in a few cache lines; as a rule one key is looked at then, that of the row.

use std::hash::{BuildHasher, Hasher};

/// Marks that are compared at once.
const LANES: usize = 32;

/// A mark for each row.
#[derive(Debug)]
pub(super) struct RowMarks(Box<[u16]>);

impl RowMarks {
    /// Marks of rows in their order.
    pub(super) fn of<'a>(keys: impl Iterator<Item = &'a [u8]>) -> Self {
        Self(keys.map(mark).collect())
    }

    /// Bytes of memory that they take.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.0)
    }

    /// The rows that may have this key: the one that has it, and one in 65,536 others.
    pub(super) fn candidates(&self, key: &[u8]) -> impl Iterator<Item = usize> {
        let wanted = mark(key);
        let lanes = self.0.chunks(LANES).enumerate().filter(move |(_, marks)| marks.contains(&wanted));
        lanes.flat_map(move |(lane, marks)| {
            let equal = marks.iter().enumerate().filter(move |(_, mark)| **mark == wanted);
            equal.map(move |(place, _)| lane * LANES + place)
        })
    }
}

/// A fixed seed: keys of one mark cost time only, and simulations repeat.
fn mark(key: &[u8]) -> u16 {
    let mut hasher = foldhash::fast::FixedState::default().build_hasher();
    hasher.write(key);
    (hasher.finish() >> (u64::BITS - u16::BITS)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_among_the_few_that_may_have_its_key() {
        // As many that some marks are alike, and not whole lanes.
        let keys: Vec<_> = (0..2011_u32).map(|row| format!("row {row}")).collect();
        let marks = RowMarks::of(keys.iter().map(String::as_bytes));
        let candidates: Vec<Vec<_>> = keys.iter().map(|key| marks.candidates(key.as_bytes()).collect()).collect();
        assert!(candidates.iter().enumerate().all(|(row, found)| found.contains(&row) && found.is_sorted()));
        assert!(candidates.iter().any(|found| found.len() > 1));
        assert!(candidates.iter().map(Vec::len).sum::<usize>() < 2 * keys.len());
    }
}
