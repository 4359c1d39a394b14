//! Numbers by a word of 32 bits: series by half a hash or by a UID, spellings by half a fingerprint. Several may stand under one word;
//! words are random, or spread as evenly.
//!
//! A plain table, linear probing: the word above, the number and one below, 0 where there is none. It grows without a look
//! at what the words stand for. What is taken off closes its gap, so that no look-up passes over what is gone.

/// Slots of a table that begins.
const SLOTS_MIN: usize = 4;

/// Numbers by words. *Cost*: 8 bytes a slot, of which half to three quarters are in use.
///
/// ```
/// let mut table = basalt_schema::IdTable::default();
/// table.insert(7, 1);
/// table.insert(7, 2);
/// assert!(table.of(7).any(|number| number == 2));
/// table.remove(7, 2);
/// assert!(table.of(7).eq([1]));
/// ```
#[derive(Debug, Clone, Default)]
pub struct IdTable {
    /// A quarter of them at least are 0.
    slots: Vec<u64>,
    count: usize,
}

impl IdTable {
    /// The numbers under a word.
    #[inline]
    pub fn of(&self, word: u32) -> impl Iterator<Item = u32> + '_ {
        self.places_of(word).map(|(_, number)| number)
    }

    /// Adds a number under a word; twice stands there twice.
    ///
    /// # Panics
    /// The number is `u32::MAX`.
    pub fn insert(&mut self, word: u32, number: u32) {
        assert!(number < u32::MAX, "BUG: a number that is none");
        self.count += 1;
        if self.count * 4 > self.slots.len() * 3 {
            self.resize(self.slots.len() * 3 / 2);
        }
        self.put(word, u64::from(word) << 32 | (u64::from(number) + 1));
    }

    /// Gives back what numbers took that were taken off, where they were most. *Cost*: then as of adding the others.
    pub fn shrink(&mut self) {
        if self.slots.len() > SLOTS_MIN && self.count * 3 < self.slots.len() {
            self.resize(self.count * 2);
        }
    }

    fn resize(&mut self, slots: usize) {
        for slot in std::mem::replace(&mut self.slots, vec![0; slots.max(SLOTS_MIN)]) {
            if let Some((word, _)) = taken(slot) {
                self.put(word, slot);
            }
        }
    }

    /// Takes a number off from under a word, if it is there.
    pub fn remove(&mut self, word: u32, number: u32) {
        let Some((mut gap, _)) = self.places_of(word).find(|(_, other)| *other == number) else { return };
        self.count -= 1;
        let mut place = gap;
        loop {
            place = self.behind(place);
            let slot = self.slots.get(place).copied().unwrap_or(0);
            let Some((word, _)) = taken(slot) else { break };
            // It may lie in the gap if its probing passes there: if the gap is no further from it than from its home.
            if self.distance(self.home(word), place) >= self.distance(gap, place) {
                self.set(gap, slot);
                gap = place;
            }
        }
        self.set(gap, 0);
    }

    /// Whether it has none.
    pub(super) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes of memory.
    pub(super) const fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u64>()
    }

    /// Every word with every number under it, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.slots.iter().filter_map(|slot| taken(*slot))
    }

    /// The numbers under a word, each with its place.
    #[inline]
    fn places_of(&self, word: u32) -> impl Iterator<Item = (usize, u32)> + '_ {
        let mut next = self.home(word);
        // Ends: a quarter of the slots at least are 0.
        std::iter::from_fn(move || {
            loop {
                let place = next;
                let (found, number) = taken(*self.slots.get(place)?)?;
                next = self.behind(place);
                if found == word {
                    return Some((place, number));
                }
            }
        })
    }

    fn put(&mut self, word: u32, slot: u64) {
        let mut place = self.home(word);
        while self.slots.get(place).is_some_and(|slot| *slot != 0) {
            place = self.behind(place);
        }
        self.set(place, slot);
    }

    fn set(&mut self, place: usize, slot: u64) {
        if let Some(there) = self.slots.get_mut(place) {
            *there = slot;
        }
    }

    /// Where a word's probing begins. A larger table keeps the order of places.
    #[inline]
    fn home(&self, word: u32) -> usize {
        usize::try_from((u64::from(word) * self.slots.len() as u64) >> 32).unwrap_or(0)
    }

    #[inline]
    const fn behind(&self, place: usize) -> usize {
        if place + 1 >= self.slots.len() { 0 } else { place + 1 }
    }

    /// How many slots on from one to another.
    const fn distance(&self, from: usize, to: usize) -> usize {
        if from <= to { to - from } else { to + self.slots.len() - from }
    }
}

/// Word and number of a slot that is not empty.
#[inline]
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
    /// Words that crowd: runs of slots close up round the table's end, and hold several homes.
    #[test]
    fn numbers_are_found_while_others_come_and_go() {
        let word = |number: u32| match number % 4 {
            0 => number,
            1 => number % 7,
            2 => u32::MAX - number % 9,
            _ => number.wrapping_mul(0x9E37_79B9),
        };
        let (mut table, mut expected) = (IdTable::default(), BTreeSet::new());
        for step in 0..40_000_u32 {
            // Of a thousand numbers some are there, by a walk that comes back to each.
            let number = step.wrapping_mul(2_654_435_761) >> 8 & 1023;
            if expected.remove(&number) {
                table.remove(word(number), number);
            } else {
                table.insert(word(number), number);
                expected.insert(number);
            }
            let asked = step & 1023;
            assert_eq!(table.of(word(asked)).any(|other| other == asked), expected.contains(&asked), "step {step}");
        }
        let all: BTreeSet<u32> = table.iter().map(|(_, number)| number).collect();
        assert_eq!(all, expected);
        assert_eq!(table.count, expected.len());
        table.remove(7, 5000);
        assert_eq!(table.count, expected.len());
        for number in 9..1024 {
            table.remove(word(number), number);
        }
        let slots = table.slots.len();
        table.shrink();
        assert!(table.slots.len() < slots / 9);
        assert!((0..9).all(|number| table.of(word(number)).any(|other| other == number) == expected.contains(&number)));
    }
}
