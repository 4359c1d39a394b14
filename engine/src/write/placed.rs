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
