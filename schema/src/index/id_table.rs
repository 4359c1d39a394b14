//! Numbers of series by a word of 32 bits: half a hash, or a UID. Several may stand under one word.
//!
//! A plain table, linear probing: the word above, the number and one below, 0 where there is none. It grows without a look
//! at what the words stand for. Nothing is ever taken off.

/// Slots of a table that begins.
const SLOTS_MIN: usize = 4;

/// Numbers by words. *Cost*: 8 bytes a slot, of which half to three quarters are in use.
#[derive(Debug, Clone, Default)]
pub(super) struct IdTable {
    slots: Vec<u64>,
    count: usize,
}

impl IdTable {
    /// The numbers under a word.
    pub(super) fn of(&self, word: u32) -> impl Iterator<Item = u32> + '_ {
        let mut place = home(word, self.slots.len());
        // Ends: a quarter of the slots at least are empty.
        std::iter::from_fn(move || {
            loop {
                let (found, number) = taken(*self.slots.get(place)?)?;
                place = behind(place, self.slots.len());
                if found == word {
                    return Some(number);
                }
            }
        })
    }

    /// Adds a number under a word; twice stands there twice.
    pub(super) fn insert(&mut self, word: u32, number: u32) {
        assert!(number < u32::MAX, "BUG: a number that is none");
        self.count += 1;
        if self.count * 4 > self.slots.len() * 3 {
            let slots = (self.slots.len() * 3 / 2).max(SLOTS_MIN);
            for slot in std::mem::replace(&mut self.slots, vec![0; slots]) {
                if let Some((word, _)) = taken(slot) {
                    self.put(word, slot);
                }
            }
        }
        self.put(word, u64::from(word) << 32 | (u64::from(number) + 1));
    }

    fn put(&mut self, word: u32, slot: u64) {
        let mut place = home(word, self.slots.len());
        while self.slots.get(place).is_some_and(|slot| *slot != 0) {
            place = behind(place, self.slots.len());
        }
        if let Some(free) = self.slots.get_mut(place) {
            *free = slot;
        }
    }

    /// Bytes of memory.
    pub(super) const fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u64>()
    }

    /// Every word with every number under it, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.slots.iter().filter_map(|slot| taken(*slot))
    }
}

/// Where a word's probing begins: words that count up are spread evenly, and the order of places is kept by a larger table.
fn home(word: u32, slots: usize) -> usize {
    let spread = u64::from(word.wrapping_mul(0x9E37_79B9));
    usize::try_from((spread * slots as u64) >> 32).unwrap_or(0)
}

const fn behind(place: usize, slots: usize) -> usize {
    if place + 1 == slots { 0 } else { place + 1 }
}

/// Word and number of a slot that is not empty.
fn taken(slot: u64) -> Option<(u32, u32)> {
    let number = u32::try_from(slot & u64::from(u32::MAX)).ok()?.checked_sub(1)?;
    Some((u32::try_from(slot >> 32).ok()?, number))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn numbers_are_found_under_their_words_however_many_share_them() {
        let mut table = IdTable::default();
        assert_eq!(table.of(7).count(), 0);
        // Words that count up, words that are alike, and those at both ends.
        let word = |number: u32| match number % 3 {
            0 => number,
            1 => number % 5,
            _ => u32::MAX - number % 50,
        };
        for number in 0..3000 {
            table.insert(word(number), number);
        }
        for asked in (0..3000).map(word) {
            let found: BTreeSet<u32> = table.of(asked).collect();
            assert!(found.iter().copied().eq((0..3000).filter(|number| word(*number) == asked)), "{asked}");
        }
        assert_eq!(table.of(3001).count(), 0);
        assert_eq!(table.iter().count(), 3000);
        assert!(table.slots.len() * 3 >= 3000 * 4 && table.slots.len() < 3000 * 2 + SLOTS_MIN);
    }
}
