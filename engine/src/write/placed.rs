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

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::table::regions_of;

    #[test]
    fn each_row_is_placed_once_and_in_its_order() {
        let regions = regions_of([b"c", b"f", b"k"].map(|start| start.to_vec()).into());
        let placed = Placed::new(&regions, &[3, 0, 3, 1, 0, 3]);
        let found = placed.regions.iter().map(|(region, rows)| (region.start().clone(), placed.rows(rows).to_vec()));
        let expected = [("", vec![1, 4]), ("c", vec![3]), ("k", vec![0, 2, 5])];
        assert_eq!(found.collect::<Vec<_>>(), expected.map(|(start, rows)| (Bytes::from(start), rows)));
    }
}
