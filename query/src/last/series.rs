//! The series that a request wants. Those of many metrics have the same tags: a set of tags is kept once, and what is made of
//! it is made once.

use std::collections::HashMap;
use std::sync::Arc;

use basalt_schema::{KeyLayout, MetricSalting, Salt, TagsHash, Uid};
use foldhash::fast::RandomState;

/// Series are sorted by slots for all sets where there are at most so many a series.
const SLOTS_A_SERIES: usize = 4;

/// A series whose newest point is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) metric: Uid,
    /// The number of its set of tags.
    pub(super) tags: u32,
    /// When it was last written, if that is known; seconds.
    pub(super) counted_s: Option<u32>,
}

/// Sets of tags by their numbers, each the bytes of its pairs. Ascending, so that numbers compare as the sets do.
#[derive(Debug, Default)]
pub(super) struct TagSets {
    sets: Vec<Arc<[u8]>>,
    hashes: Vec<TagsHash>,
}

/// Sets of tags as they are met, numbered in that order.
#[derive(Debug, Default)]
pub(super) struct MetSets {
    sets: Vec<Arc<[u8]>>,
    numbers: HashMap<Arc<[u8]>, u32, RandomState>,
    /// Those of the series index, by its numbers of them: most series share their tags with one of another metric.
    indexed: HashMap<u32, u32, RandomState>,
}

impl MetSets {
    /// The number of a set.
    pub(super) fn number(&mut self, tags: &[u8]) -> u32 {
        if let Some(number) = self.numbers.get(tags) {
            return *number;
        }
        let (number, tags) = (number(self.sets.len()), Arc::from(tags));
        self.sets.push(Arc::clone(&tags));
        self.numbers.insert(tags, number);
        number
    }

    /// The number of a set that the series index has a number of.
    pub(super) fn number_indexed(&mut self, set: u32, tags: &[u8]) -> u32 {
        if let Some(number) = self.indexed.get(&set) {
            return *number;
        }
        let number = self.number(tags);
        self.indexed.insert(set, number);
        number
    }

    /// A set.
    pub(super) fn get(&self, number: u32) -> &[u8] {
        self.sets.get(number as usize).map_or(&[], |tags| tags)
    }

    /// The sets in order; who wants one gets its new number.
    pub(super) fn sort(self, wanted: &mut [Wanted]) -> TagSets {
        let mut sets: Vec<(Arc<[u8]>, usize)> = self.sets.into_iter().zip(0..).collect();
        sets.sort_unstable();
        let mut numbers = vec![0; sets.len()];
        for (new, (_, old)) in sets.iter().enumerate() {
            if let Some(of_old) = numbers.get_mut(*old) {
                *of_old = number(new);
            }
        }
        for series in wanted {
            series.tags = numbers.get(series.tags as usize).copied().unwrap_or_default();
        }
        let hashes = sets.iter().map(|(tags, _)| TagsHash::of(tags)).collect();
        TagSets { sets: sets.into_iter().map(|(tags, _)| tags).collect(), hashes }
    }
}

impl TagSets {
    /// A set.
    pub(super) fn get(&self, number: u32) -> &[u8] {
        self.sets.get(number as usize).map_or(&[], |tags| tags)
    }

    /// Sorts series by their tags. `slots` is kept for its memory.
    ///
    /// *Cost*: a step a set where many of the sets are theirs and no two have the same, as the series of a metric; else that of
    /// comparing.
    pub(super) fn sort_series(&self, series: &mut [Wanted], slots: &mut Vec<Option<Wanted>>) {
        slots.clear();
        if self.len() / SLOTS_A_SERIES <= series.len() {
            slots.resize(self.len(), None);
        }
        // Fast path: each to the slot of its set, in whose order they are taken again.
        let is_alone = |of: &Wanted| slots.get_mut(of.tags as usize).is_some_and(|slot| slot.replace(*of).is_none());
        if !series.iter().all(is_alone) {
            series.sort_unstable_by_key(|series| series.tags);
            return;
        }
        for (place, of) in series.iter_mut().zip(slots.iter().flatten()) {
            *place = *of;
        }
    }

    /// The sets by their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.sets.iter().map(|tags| &**tags)
    }

    /// How many sets.
    pub(super) fn len(&self) -> usize {
        self.sets.len()
    }

    /// The bucket of a series.
    pub(super) fn salt_of(&self, series: &Wanted, layout: KeyLayout) -> Salt {
        self.salt_in(layout.salting.of_metric(&series.metric.encode(layout.widths.metric)), series.tags)
    }

    /// The bucket of a metric's series with a set of tags.
    pub(super) fn salt_in(&self, salting: MetricSalting, set: u32) -> Salt {
        salting.salt_of(self.hashes.get(set as usize).copied().unwrap_or_default())
    }
}

/// A count that is bounded by that of the series.
fn number(count: usize) -> u32 {
    assert!(u32::try_from(count).is_ok(), "BUG: {count} sets of tags");
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By slots and by comparing: few of many sets, all of them, and two series of one set.
    #[test]
    fn series_stand_in_the_order_of_their_tags() {
        let mut met = MetSets::default();
        let of = |number: u8| Wanted { metric: Uid::ZERO, tags: number.into(), counted_s: Some(number.into()) };
        for number in 0..100_u8 {
            assert_eq!(met.number(&[99 - number]), u32::from(number));
        }
        let mut all: Vec<Wanted> = (0..100).map(of).collect();
        let sets = met.sort(&mut all);
        let mut slots = Vec::new();
        for wanted in [vec![3, 99, 5], (0..100).rev().collect(), (0..60).chain(20..30).collect(), vec![]] {
            let mut series: Vec<Wanted> = wanted.iter().map(|number: &u8| of(*number)).collect();
            let mut sorted = series.clone();
            sorted.sort_by_key(|series| series.tags);
            sets.sort_series(&mut series, &mut slots);
            assert_eq!(series, sorted, "{wanted:?}");
        }
        let given = |series: &Wanted| [u8::try_from(99 - series.counted_s.unwrap()).unwrap()];
        assert!(all.iter().all(|series| sets.get(series.tags) == given(series)));
    }
}
