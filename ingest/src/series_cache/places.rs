//! Where spellings lie, by half of their fingerprints: 8 bytes a slot, where a map of whole ones would take 25.
//!
//! A plain table of words, linear probing: the half above, the place and one below, 0 where there is none. A half may stand
//! for several places; who asks looks at each. What is taken off closes its gap, so that no look-up passes over what is gone.

/// Slots of a table that begins.
const SLOTS_MIN: usize = 16;

/// Places by words of 32 bits. *Cost*: 8 bytes a slot, of which half to three quarters are in use.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// A quarter of them at least are 0.
    slots: Vec<u64>,
    count: usize,
}

impl Places {
    /// The place under a word that is the one sought, as `is_it` says.
    #[inline]
    pub(super) fn find(&self, word: u32, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        self.slot_of(word, is_it).and_then(|slot| taken(*self.slots.get(slot)?)).map(|(_, place)| place)
    }

    /// Adds a place that is not there.
    pub(super) fn insert(&mut self, word: u32, place: u32) {
        assert!(place < u32::MAX, "BUG: a place that is none");
        self.count += 1;
        if self.count * 4 > self.slots.len() * 3 {
            let slots = (self.slots.len() * 3 / 2).max(SLOTS_MIN);
            for slot in std::mem::replace(&mut self.slots, vec![0; slots]) {
                if let Some((word, _)) = taken(slot) {
                    self.put(word, slot);
                }
            }
        }
        self.put(word, u64::from(word) << 32 | (u64::from(place) + 1));
    }

    /// Takes a place off.
    pub(super) fn remove(&mut self, word: u32, place: u32) {
        let Some(mut gap) = self.slot_of(word, |other| other == place) else { return };
        self.count -= 1;
        let mut at = gap;
        loop {
            at = self.behind(at);
            let slot = self.slots.get(at).copied().unwrap_or(0);
            let Some((word, _)) = taken(slot) else { break };
            // It may lie in the gap if its probing passes there: if the gap is no further from it than from its home.
            let home = self.home(word);
            if self.distance(home, at) >= self.distance(gap, at) {
                self.set(gap, slot);
                gap = at;
            }
        }
        self.set(gap, 0);
    }

    fn slot_of(&self, word: u32, is_it: impl Fn(u32) -> bool) -> Option<usize> {
        let mut at = self.home(word);
        // Ends: a quarter of the slots at least are 0.
        loop {
            let (found, place) = taken(*self.slots.get(at)?)?;
            if found == word && is_it(place) {
                return Some(at);
            }
            at = self.behind(at);
        }
    }

    fn put(&mut self, word: u32, slot: u64) {
        let mut at = self.home(word);
        while self.slots.get(at).is_some_and(|slot| *slot != 0) {
            at = self.behind(at);
        }
        self.set(at, slot);
    }

    fn set(&mut self, at: usize, slot: u64) {
        if let Some(place) = self.slots.get_mut(at) {
            *place = slot;
        }
    }

    /// Where a word's probing begins: words are random.
    #[inline]
    fn home(&self, word: u32) -> usize {
        usize::try_from((u64::from(word) * self.slots.len() as u64) >> 32).unwrap_or(0)
    }

    #[inline]
    const fn behind(&self, at: usize) -> usize {
        if at + 1 >= self.slots.len() { 0 } else { at + 1 }
    }

    /// How many slots on from one to another.
    const fn distance(&self, from: usize, to: usize) -> usize {
        if from <= to { to - from } else { to + self.slots.len() - from }
    }
}

/// Word and place of a slot that is not empty.
fn taken(slot: u64) -> Option<(u32, u32)> {
    let place = u32::try_from(slot & u64::from(u32::MAX)).ok()?.checked_sub(1)?;
    Some((u32::try_from(slot >> 32).ok()?, place))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Words that crowd: runs of slots close up round the table's end, and hold several homes.
    #[test]
    fn places_are_found_while_others_come_and_go() {
        let word = |place: u32| match place % 4 {
            0 => place,
            1 => place % 7,
            2 => u32::MAX - place % 9,
            _ => place.wrapping_mul(0x9E37_79B9),
        };
        let (mut places, mut expected) = (Places::default(), BTreeSet::new());
        assert_eq!(places.find(7, |_| true), None);
        for step in 0..40_000_u32 {
            // Of a thousand places some are there, by a walk that comes back to each.
            let place = step.wrapping_mul(2_654_435_761) >> 8 & 1023;
            if expected.remove(&place) {
                places.remove(word(place), place);
            } else {
                places.insert(word(place), place);
                expected.insert(place);
            }
            let asked = step & 1023;
            let found = places.find(word(asked), |other| other == asked);
            assert_eq!(found, expected.contains(&asked).then_some(asked), "step {step}");
        }
        let all = (0..1024).filter(|place| places.find(word(*place), |other| other == *place).is_some());
        assert!(all.eq(expected.iter().copied()));
        assert_eq!(places.count, expected.len());
        places.remove(7, 5000);
        assert_eq!(places.count, expected.len());
    }
}
