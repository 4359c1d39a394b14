//! Rows by a hash of their keys, so that one that is there is found without a search. Rows are never taken off.
//!
//! A plain table of words, linear probing: half a hash beside the row's number, so that a key is looked at where
//! these halves are equal only.

/// Words of a table that begins.
const WORDS_MIN: usize = 16;

/// Numbers of rows by the hashes of their keys.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Upper half of the hash above, number of the row and one below; 0 where there is none. A power of two of them.
    words: Vec<u64>,
    rows: u32,
}

impl Index {
    /// How many rows it has.
    pub(super) fn len(&self) -> u32 {
        self.rows
    }

    /// The row of this hash whose key is the one sought, as `is_it` says.
    pub(super) fn get(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let mut place = hash;
        // Ends: a third of the words at least are 0.
        loop {
            let word = *self.words.get(self.wrapped(place))?;
            let row = row_of(word)?;
            if (word ^ hash) >> 32 == 0 && is_it(row) {
                return Some(row);
            }
            place = place.wrapping_add(1);
        }
    }

    /// Adds a row that is not there; `hash_of` answers the hash of one that is.
    pub(super) fn insert(&mut self, hash: u64, row: u32, hash_of: impl Fn(u32) -> u64) {
        self.rows += 1;
        if self.rows as usize * 3 > self.words.len() * 2 {
            let words = (self.words.len() * 2).max(WORDS_MIN);
            for word in std::mem::replace(&mut self.words, vec![0; words]) {
                if let Some(row) = row_of(word) {
                    self.put(hash_of(row), row);
                }
            }
        }
        self.put(hash, row);
    }

    fn put(&mut self, hash: u64, row: u32) {
        let mut place = hash;
        while self.words.get(self.wrapped(place)).is_some_and(|word| *word != 0) {
            place = place.wrapping_add(1);
        }
        let place = self.wrapped(place);
        if let Some(word) = self.words.get_mut(place) {
            *word = hash >> 32 << 32 | (u64::from(row) + 1);
        }
    }

    fn wrapped(&self, place: u64) -> usize {
        usize::try_from(place & (self.words.len() as u64).wrapping_sub(1)).unwrap_or(0)
    }
}

fn row_of(word: u64) -> Option<u32> {
    u32::try_from(word & u64::from(u32::MAX)).ok()?.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_although_hashes_are_alike() {
        // Few hashes, many rows: probing goes far, and round the end.
        let hash_of = |row: u32| u64::from(row % 3).wrapping_sub(2) << 33 | u64::from(row % 5).wrapping_sub(3) >> 32;
        let mut index = Index::default();
        assert_eq!(index.get(7, |_| true), None);
        for row in 0..1000 {
            assert_eq!(index.get(hash_of(row), |other| other == row), None);
            index.insert(hash_of(row), row, hash_of);
        }
        for row in 0..1000 {
            assert_eq!(index.get(hash_of(row), |other| other == row), Some(row));
        }
        assert!(index.words.iter().filter(|word| **word == 0).count() * 3 >= index.words.len());
    }
}
