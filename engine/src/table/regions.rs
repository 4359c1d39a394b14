//! Which region of a table holds a row.

use std::sync::Arc;

use crate::heads::head;
use crate::region::Region;

/// A table's regions at one moment, sorted by start; they tile the keys.
#[derive(Debug, Clone)]
pub(crate) struct Regions(Arc<[Arc<Region>]>);

impl Regions {
    /// Those that are in this order.
    pub(super) fn new(regions: Vec<Arc<Region>>) -> Regions {
        Regions(regions.into())
    }

    /// The index of the region that holds a row.
    pub(crate) fn index_of(&self, row: &[u8]) -> usize {
        self.0.partition_point(|region| &region.start()[..] <= row).saturating_sub(1)
    }

    /// The region that holds a row.
    pub(crate) fn of(&self, row: &[u8]) -> Option<&Arc<Region>> {
        self.0.get(self.index_of(row))
    }

    /// The region of the rows before a key; empty: the last region.
    pub(crate) fn before(&self, key: &[u8]) -> Option<&Arc<Region>> {
        if key.is_empty() {
            return self.0.last();
        }
        self.0.get(self.0.partition_point(|region| &region.start()[..] < key).checked_sub(1)?)
    }
}

impl std::ops::Deref for Regions {
    type Target = [Arc<Region>];

    fn deref(&self) -> &[Arc<Region>] {
        &self.0
    }
}

/// Where regions start, as numbers that order as the keys do; none where a start is longer than a number.
#[derive(Debug)]
pub(crate) struct Starts(Vec<u64>);

impl Starts {
    /// Of these regions.
    pub(crate) fn of(regions: &Regions) -> Starts {
        let are_short = regions.iter().all(|region| region.start().len() <= size_of::<u64>());
        let heads = regions.iter().filter(|_| are_short).map(|region| head(region.start(), 0));
        Starts(heads.collect())
    }

    /// The index of the region that holds a row.
    #[inline]
    pub(crate) fn index_of(&self, regions: &Regions, key: &[u8]) -> usize {
        // A shorter key may be before a start that is like it but for zeros at its end.
        match key.first_chunk() {
            Some(head) if !self.0.is_empty() => {
                // Fast path: a region for each first byte, in their order.
                let guess = usize::from(head[0]);
                let head = u64::from_be_bytes(*head);
                let is_before = |start: &u64| *start <= head;
                let is_behind = self.0.get(guess + 1).is_none_or(|next| !is_before(next));
                if is_behind && self.0.get(guess).is_some_and(is_before) {
                    return guess;
                }
                self.0.partition_point(is_before).saturating_sub(1)
            }
            _ => regions.index_of(key),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::ops::Range;

    use super::*;
    use crate::id::RegionId;
    use crate::io::{Rng, SplitMix};
    use crate::key_range::KeyRange;

    /// Those that begin with nothing and with each of these.
    pub(crate) fn regions(mut starts: Vec<Vec<u8>>) -> Regions {
        starts.push(Vec::new());
        starts.sort();
        starts.dedup();
        let ends = starts.iter().skip(1).cloned().chain([Vec::new()]);
        let regions = starts.iter().cloned().zip(ends).zip(1..).map(|((start, end), id)| {
            let range = KeyRange { start: start.into(), end: end.into() };
            Arc::new(Region::new(RegionId(id), Arc::new(range), Vec::new(), Arc::default()))
        });
        Regions::new(regions.collect())
    }

    /// Few different bytes, zeros among them.
    fn key(rng: &mut SplitMix, len_end: u64) -> Vec<u8> {
        (0..rng.below(len_end)).map(|_| [0, 1, 2, 3, 0x80, 0xFF][usize::try_from(rng.below(6)).unwrap()]).collect()
    }

    /// Starts of one byte each, as of salted tables, all of them or some; short ones, such as are told from shorter keys by zeros alone,
    /// and longer ones than fit a number.
    #[test]
    fn numbers_find_the_region_that_keys_find() {
        for seed in 0..400 {
            let mut rng = SplitMix::new(seed);
            let of_bytes = |all: Range<u8>| all.map(|byte| vec![byte]).collect::<Vec<_>>();
            let mut starts = match seed % 8 {
                0 => Vec::new(),
                1 => of_bytes(1..20),
                2 => of_bytes(1..255),
                3 => of_bytes(0..20),
                4 => of_bytes(2..4),
                _ => (0..rng.below(20)).map(|_| key(&mut rng, if seed % 8 == 7 { 12 } else { 9 })).collect(),
            };
            if rng.chance(1, 4) {
                starts.push(key(&mut rng, 9));
            }
            let regions = regions(starts);
            let starts = Starts::of(&regions);
            for _ in 0..200 {
                let mut key = key(&mut rng, 14);
                if rng.chance(1, 4) {
                    // A start or the most of it, and what that begins.
                    let start = regions[usize::try_from(rng.below(regions.len() as u64)).unwrap()].start();
                    let kept = start.len() - usize::try_from(rng.below(start.len().min(3) as u64 + 1)).unwrap();
                    key = [&start[..kept], &key[..key.len() / 4]].concat();
                }
                assert_eq!(starts.index_of(&regions, &key), regions.index_of(&key), "seed {seed}: {key:?}");
            }
        }
    }
}
