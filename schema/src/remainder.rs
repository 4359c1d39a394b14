//! What stays of a row when the points of some instants are deleted: pure bytes, like the fold.
//!
//! The points that stay are those that a reader sees (newest wins), joined into one cell; annotations, histograms and
//! unknown columns stay as they are. All cells of the row are passed, so that a deleted point cannot uncover an older one.

use std::ops::RangeInclusive;

use crate::value::stored_bytes;
use crate::{ColumnKind, CompactedCell, Duplicates, Qualifier, Result, RowCell, RowPoints, StoredPoint};

/// The cells that stay, as qualifier and value.
#[derive(Debug, Default)]
pub struct RowRemainder {
    points: RowPoints,
    joined: CompactedCell,
}

impl RowRemainder {
    /// Takes the points with these offsets, in ms, from the row of `cells`.
    ///
    /// ```
    /// use basalt_schema::{Duplicates, RowCell, RowRemainder};
    /// use basalt_store::{SeqNo, Timestamp};
    /// let row = [RowCell { qualifier: &[0, 0, 0, 0x10], value: &[42, 43, 0], timestamp: Timestamp(1), seq: SeqNo(0) }];
    /// let mut remainder = RowRemainder::default();
    /// assert_eq!(remainder.take(&row, Duplicates::NewestWins, 0..=999)?, 1);
    /// assert_eq!(remainder.cells(&row).collect::<Vec<_>>(), [(&[0, 0x10][..], &[43][..])]);
    /// # Ok::<(), basalt_schema::Error>(())
    /// ```
    ///
    /// Returns how many points are deleted. *Cost*: one decode of the row.
    ///
    /// # Errors
    /// `Corrupt`: a cell that does not hold what its qualifier says; nothing is to be deleted then.
    pub fn take(
        &mut self,
        cells: &[RowCell<'_>],
        duplicates: Duplicates,
        offsets_ms: RangeInclusive<u32>,
    ) -> Result<usize> {
        self.points.decode(cells.iter().copied(), duplicates)?;
        self.joined.clear();
        let mut deleted_count = 0;
        let points = self.points.offsets_ms().iter().zip(self.points.values()).zip(self.points.kinds());
        for ((offset_ms, word), kind) in points {
            if offsets_ms.contains(offset_ms) {
                deleted_count += 1;
                continue;
            }
            let value = stored_bytes(*kind, *word);
            let qualifier = Qualifier { offset_ms: *offset_ms, kind: *kind };
            self.joined.push(StoredPoint { qualifier, value: &value });
        }
        self.joined.seal();
        Ok(deleted_count)
    }

    /// What stays of `cells`, which are those given to [`RowRemainder::take`].
    pub fn cells<'a>(&'a self, cells: &'a [RowCell<'a>]) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let joined = (self.joined.points_count() > 0).then(|| (self.joined.qualifier(), self.joined.value()));
        let others = cells.iter().filter(|cell| !holds_points(cell.qualifier));
        joined.into_iter().chain(others.map(|cell| (cell.qualifier, cell.value)))
    }
}

fn holds_points(qualifier: &[u8]) -> bool {
    matches!(ColumnKind::of(qualifier), ColumnKind::Point | ColumnKind::Compacted | ColumnKind::Appended)
}

#[cfg(test)]
mod tests {
    use basalt_store::{SeqNo, Timestamp};

    use super::*;

    fn cell<'a>(qualifier: &'a [u8], value: &'a [u8], time: u64) -> RowCell<'a> {
        RowCell { qualifier, value, timestamp: Timestamp(time), seq: SeqNo(0) }
    }

    fn check(row: &[RowCell<'_>], offsets_ms: RangeInclusive<u32>, deleted: usize, expected: &[(&[u8], &[u8])]) {
        let mut remainder = RowRemainder::default();
        assert_eq!(remainder.take(row, Duplicates::NewestWins, offsets_ms).unwrap(), deleted);
        assert_eq!(remainder.cells(row).collect::<Vec<_>>(), expected);
    }

    /// `S-DELETE-ROW`: plain, compacted and appended points alike; what is no point stays.
    #[test]
    fn points_of_the_range_go_and_all_else_stays() {
        let row = [
            cell(&[0x00, 0x00], &[1], 5),
            cell(&[0x00, 0x10, 0x00, 0x20], &[2, 3, 0], 6),
            cell(&[0x01, 0x00, 0x01], b"{}", 7),
            cell(&[0x05, 0x00, 0x00], &[0x00, 0x30, 4, 0xF0, 0x03, 0xE8, 0x00, 5], 8),
            cell(&[0x06, 0x00, 0x01], &[9], 9),
        ];
        let kept: [(&[u8], &[u8]); 2] = [(&[0x01, 0x00, 0x01], b"{}"), (&[0x06, 0x00, 0x01], &[9])];
        check(
            &row,
            1000..=2000,
            2,
            &[(&[0x00, 0x00, 0x00, 0x30, 0xF0, 0x03, 0xE8, 0x00], &[1, 4, 5, 1]), kept[0], kept[1]],
        );
        check(&row, 0..=3_599_999, 5, &kept);
        check(
            &row,
            1..=999,
            0,
            &[
                (&[0x00, 0x00, 0x00, 0x10, 0x00, 0x20, 0x00, 0x30, 0xF0, 0x03, 0xE8, 0x00], &[1, 2, 3, 4, 5, 1]),
                kept[0],
                kept[1],
            ],
        );
    }

    #[test]
    fn an_overwritten_value_does_not_come_back() {
        let row = [cell(&[0x00, 0x00], &[1], 5), cell(&[0x00, 0x07], &[0, 0, 0, 0, 0, 0, 0, 2], 6)];
        check(&row, 0..=0, 1, &[]);
        check(&row, 1000..=2000, 0, &[(&[0x00, 0x07], &[0, 0, 0, 0, 0, 0, 0, 2])]);
        let mut remainder = RowRemainder::default();
        let broken = [cell(&[0x00, 0x03], &[1], 1), cell(&[0, 0x10, 0, 0x23], &[1, 0], 2)];
        assert!(remainder.take(&broken, Duplicates::NewestWins, 0..=1).is_err());
    }
}
