//! Which regions take which rows of a change.

use std::ops::Range;
use std::sync::Arc;

use crate::region::Region;
use crate::table::Regions;

/// Which regions take which rows.
#[derive(Debug)]
pub(super) struct Placed {
    /// In key order, those that have rows, each with the place of its rows among `rows`.
    pub(super) regions: Vec<(Arc<Region>, Range<usize>)>,
    /// Indexes of rows, region by region, ascending in each.
    rows: Vec<usize>,
}

impl Placed {
    /// Of rows, whose regions' indexes these are.
    pub(super) fn new(regions: &Regions, of_rows: &[usize]) -> Placed {
        // How many rows each has, then where they begin, then where they end.
        let mut ends = vec![0; regions.len()];
        for region in of_rows {
            if let Some(count) = ends.get_mut(*region) {
                *count += 1;
            }
        }
        let mut begin = 0;
        for end in &mut ends {
            begin += std::mem::replace(end, begin);
        }
        let mut rows = vec![0; of_rows.len()];
        for (index, region) in of_rows.iter().enumerate() {
            let Some(end) = ends.get_mut(*region) else { continue };
            if let Some(row) = rows.get_mut(*end) {
                *row = index;
            }
            *end += 1;
        }
        let mut begin = 0;
        let ranges = ends.into_iter().map(|end| std::mem::replace(&mut begin, end)..end);
        let placed = regions.iter().zip(ranges).filter(|(_, rows)| !rows.is_empty());
        Placed { regions: placed.map(|(region, rows)| (Arc::clone(region), rows)).collect(), rows }
    }

    /// The indexes of a region's rows.
    pub(super) fn rows(&self, of: &Range<usize>) -> &[usize] {
        self.rows.get(of.clone()).unwrap_or_default()
    }
}

/// Where regions start, as numbers that order as the keys do; none where a start is longer than a number.
#[derive(Debug)]
pub(crate) struct Starts(Vec<u64>);

impl Starts {
    pub(crate) fn of(regions: &Regions) -> Starts {
        let are_short = regions.iter().all(|region| region.start().len() <= size_of::<u64>());
        let heads = regions.iter().filter(|_| are_short).map(|region| crate::heads::head(region.start(), 0));
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
mod tests {
    use basalt_store::{TableDescriptor, TableState};
    use bytes::Bytes;

    use super::*;
    use crate::id::{RegionId, TableId};
    use crate::io::{Rng, SplitMix};
    use crate::key_range::KeyRange;
    use crate::table::{Shape, Table};

    /// Those that begin with nothing and with each of these.
    fn regions(mut starts: Vec<Vec<u8>>) -> Regions {
        starts.push(Vec::new());
        starts.sort();
        starts.dedup();
        let ends = starts.iter().skip(1).cloned().chain([Vec::new()]);
        let regions = starts.iter().cloned().zip(ends).zip(1..).map(|((start, end), id)| {
            let range = KeyRange { start: start.into(), end: end.into() };
            Arc::new(Region::new(RegionId(id), Arc::new(range), Vec::new(), Arc::default()))
        });
        let descriptor = TableDescriptor::new("t".parse().unwrap(), Vec::new());
        let shape = Shape { descriptor, state: TableState::default(), families: Vec::new() };
        Table::new(TableId(1), shape, regions.collect()).regions()
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

    #[test]
    fn each_row_is_placed_once_and_in_its_order() {
        let regions = regions([b"c", b"f", b"k"].map(|start| start.to_vec()).into());
        let placed = Placed::new(&regions, &[3, 0, 3, 1, 0, 3]);
        let found = placed.regions.iter().map(|(region, rows)| (region.start().clone(), placed.rows(rows).to_vec()));
        let expected = [("", vec![1, 4]), ("c", vec![3]), ("k", vec![0, 2, 5])];
        assert_eq!(found.collect::<Vec<_>>(), expected.map(|(start, rows)| (Bytes::from(start), rows)));
    }
}
