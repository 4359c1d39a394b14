//! Rows that were read while the series of a query were looked for, kept for the fan-out.
//!
//! Rows of plain points are kept by columns. They are so taken apart by the many threads that read them, while servers read
//! on, and take 12 bytes a point; in the end one thread does little more than copy them.

use basalt_schema::{Duplicates, RowCell, RowFold, RowPoints, Salt};
use basalt_store::{Result, RowBatch, RowBatchBuilder, RowView};

/// The rows of an attempt, by bucket and ascending within each.
#[derive(Debug, Default)]
pub(crate) struct Held(Vec<(Salt, Vec<RowBatch>)>);

impl Held {
    /// The rows of pieces, each with its place among them. Workers end in any order; a series' rows are wanted by time.
    pub(crate) fn of_pieces(mut pieces: Vec<(usize, Salt, Vec<RowBatch>)>) -> Self {
        pieces.sort_unstable_by_key(|(place, ..)| *place);
        Self(pieces.into_iter().map(|(_, salt, rows)| (salt, rows)).collect())
    }

    /// Those of a bucket.
    pub(crate) fn of(&self, salt: Salt) -> impl Iterator<Item = &RowBatch> {
        self.0.iter().filter(move |(of, _)| *of == salt).flat_map(|(_, rows)| rows)
    }

    /// All of them.
    #[cfg(test)]
    pub(crate) fn all(&self) -> &[(Salt, Vec<RowBatch>)] {
        &self.0
    }
}

/// How rows are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Not at all.
    Nothing,
    /// As they came: rollups and histograms are read by cells.
    Cells,
    /// By columns, where a row is plain points, integers or floats.
    Points,
}

/// The batch with its rows of plain points by columns; `points` is working memory.
///
/// *Cost*: some tens of nanoseconds a cell.
///
/// # Errors
/// As [`RowBatchBuilder::push`].
pub(crate) fn by_columns(batch: &RowBatch, duplicates: Duplicates, points: &mut RowPoints) -> Result<RowBatch> {
    let mut builder = RowBatchBuilder::new();
    for row in batch.rows() {
        builder.begin_row(row.key())?;
        let is_packed = decode(&row, duplicates, points).is_some_and(|is_float| {
            builder.push_packed(|rows| {
                rows.push(points.len(), is_float, |offsets_ms, words| {
                    offsets_ms.copy_from_slice(points.offsets_ms());
                    words.copy_from_slice(points.values());
                    true
                })
            })
        });
        if !is_packed {
            row.cells().try_for_each(|cell| builder.push(cell.of_row(row.key())))?;
        }
    }
    builder.set_cost(batch.cost());
    Ok(builder.finish())
}

/// Decodes a row, and says whether its points are floats. `None`: they are not of one sort, or it has other cells, or some that
/// cannot be read, of which whoever wants the row must tell.
fn decode(row: &RowView<'_>, duplicates: Duplicates, points: &mut RowPoints) -> Option<bool> {
    if !row.cells().all(|cell| RowFold::joins(cell.qualifier)) {
        return None;
    }
    points.decode(row.cells().map(RowCell::from), duplicates).ok()?;
    let is_float = points.kinds().first()?.is_float();
    points.kinds().iter().all(|kind| kind.is_float() == is_float).then_some(is_float)
}

#[cfg(test)]
mod tests {
    use basalt_schema::DATA_FAMILY;
    use basalt_store::{CellKind, CellRef, Packed, SeqNo, Timestamp};

    use super::*;

    /// A qualifier and a value.
    type Cell<'a> = (&'a [u8], &'a [u8]);
    /// Offsets and words.
    type Points = (Vec<u32>, Vec<u64>);

    /// A row of these cells, kept by columns: its points' offsets and words, and how many cells it still has.
    fn kept(cells: &[Cell<'_>]) -> (Option<Points>, usize) {
        let mut builder = RowBatchBuilder::new();
        builder.begin_row(b"row").unwrap();
        for (qualifier, value) in cells {
            let (family, timestamp, seq) = (DATA_FAMILY, Timestamp(1), SeqNo(0));
            builder
                .push(CellRef { row: b"row", family, qualifier, timestamp, kind: CellKind::Put, seq, value })
                .unwrap();
        }
        let batch = by_columns(&builder.finish(), Duplicates::NewestWins, &mut RowPoints::default()).unwrap();
        let row = batch.row(0).unwrap();
        assert_eq!((batch.len(), row.key()), (1, &b"row"[..]));
        let points = match row.packed() {
            Some(Packed::Points(points)) => Some((points.offsets_ms.to_vec(), points.words.to_vec())),
            _ => None,
        };
        (points, row.cells().len())
    }

    #[test]
    fn plain_points_are_kept_by_columns_and_all_else_by_cells() {
        let (one, two): (Cell<'_>, Cell<'_>) = ((&[0, 0], &[5]), (&[0, 0x10, 0, 0x20], &[6, 7, 0]));
        assert_eq!(kept(&[one, two]), (Some((vec![0, 1000, 2000], vec![5, 6, 7])), 0));
        // A float among integers, an annotation, an append cell, a value of no float's length.
        let others: [Cell<'_>; 4] =
            [(&[0, 0x3B], &[0, 0, 0, 0]), (&[1, 0, 0], b"{}"), (&[5, 0, 0], &[0, 0, 5]), (&[0, 0x3B], &[1, 2, 3])];
        for other in others {
            assert_eq!(kept(&[one, other]), (None, 2), "{other:?}");
        }
    }
}
