//! The cells of a row: what its points become in the batch.
//!
//! Of several points of one row and offset only the last goes into the batch, whatever its width. Their cells would have the
//! same time, and no store should have to decide which of two such cells wins. Where cells bear the times of their points the last
//! of each column does, as when they come one by one: of several columns of an instant the settings choose (rule S-DTCS).

use basalt_schema::{CompactedCell, PointCell, Qualifier, StoredPoint};
use basalt_store::{BatchFamily, MutationBatch, RowBuilder, Timestamp};

/// A point on its way into a batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct StagedPoint {
    /// Place of its row in [`Stage::rows`].
    pub(super) row: u32,
    /// Its index among the points handed in.
    pub(super) index: u32,
    pub(super) cell: PointCell,
}

/// How the points of a row become cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PointCells {
    /// One cell for each point.
    Each,
    /// One cell for each point, with the point's own time (rule S-DTCS).
    EachAtItsTime,
    /// One cell for all of them.
    Joined,
}

impl StagedPoint {
    pub(super) const fn index(&self) -> usize {
        self.index as usize
    }

    const fn offset_ms(&self) -> u32 {
        self.cell.qualifier.offset_ms
    }

    /// What tells its column from others of its row.
    const fn column(&self) -> (u32, bool, bool, usize) {
        let Qualifier { offset_ms, kind } = self.cell.qualifier;
        (offset_ms, kind.is_millis(), kind.is_float(), kind.value_bytes())
    }

    fn time(&self) -> Timestamp {
        Timestamp(u64::from(self.cell.base.seconds()) * 1000 + u64::from(self.offset_ms()))
    }
}

/// The last of a row's points at each offset, in time order.
fn last_of_each_instant(points: &mut [StagedPoint]) -> impl Iterator<Item = &StagedPoint> {
    // Fast path: the points are in time order.
    if !points.is_sorted_by(|a, b| a.offset_ms() < b.offset_ms()) {
        // Slow path: the sort is stable, so the last point of an offset is the last that arrived.
        points.sort_by_key(StagedPoint::offset_ms);
    }
    points.chunk_by(|a, b| a.offset_ms() == b.offset_ms()).filter_map(<[_]>::last)
}

/// The last of a row's points in each column.
fn last_of_each_column(points: &mut [StagedPoint]) -> impl Iterator<Item = &StagedPoint> {
    // The sort is stable, as above.
    points.sort_by_key(StagedPoint::column);
    points.chunk_by(|a, b| a.column() == b.column()).filter_map(<[_]>::last)
}

/// Fills the next planned row; gives how many of its points were put.
#[inline]
pub(super) fn seal_row(
    batch: &mut MutationBatch,
    points: &mut [StagedPoint],
    how: (BatchFamily, PointCells),
    joined: &mut CompactedCell,
) -> basalt_store::Result<usize> {
    match batch.next_planned()? {
        Some(mut row) => put_points(&mut row, points, how, joined),
        None => Ok(0),
    }
}

/// Puts the points of a row, the last of each instant or column; gives how many.
#[inline]
fn put_points(
    row: &mut RowBuilder<'_>,
    points: &mut [StagedPoint],
    (family, cells): (BatchFamily, PointCells),
    joined: &mut CompactedCell,
) -> basalt_store::Result<usize> {
    // Fast path: nearly all rows have one point.
    if let ([point], PointCells::Each) = (&*points, cells) {
        return put_one(row, point, family, None).map(|()| 1);
    }
    match cells {
        PointCells::Each => put_each(row, last_of_each_instant(points), family, |_| None),
        PointCells::EachAtItsTime => put_each(row, last_of_each_column(points), family, |point| Some(point.time())),
        PointCells::Joined => put_joined(row, last_of_each_instant(points), family, joined),
    }
}

/// Puts one cell for each point; gives how many.
fn put_each<'p>(
    row: &mut RowBuilder<'_>,
    mut points: impl Iterator<Item = &'p StagedPoint>,
    family: BatchFamily,
    time: impl Fn(&StagedPoint) -> Option<Timestamp>,
) -> basalt_store::Result<usize> {
    points.try_fold(0, |count, point| {
        put_one(row, point, family, time(point))?;
        Ok(count + 1)
    })
}

/// Puts a point's cell.
#[inline]
fn put_one(
    row: &mut RowBuilder<'_>,
    point: &StagedPoint,
    family: BatchFamily,
    time: Option<Timestamp>,
) -> basalt_store::Result<()> {
    row.put_in(family, &point.cell.qualifier_bytes(), time, &point.cell.value())?;
    Ok(())
}

/// Puts points as one cell, made in `joined`; gives how many.
fn put_joined<'p>(
    row: &mut RowBuilder<'_>,
    points: impl Iterator<Item = &'p StagedPoint>,
    family: BatchFamily,
    joined: &mut CompactedCell,
) -> basalt_store::Result<usize> {
    joined.clear();
    for point in points {
        joined.push(StoredPoint { qualifier: point.cell.qualifier, value: &point.cell.value() });
    }
    joined.seal();
    row.put_in(family, joined.qualifier(), None, joined.value())?;
    Ok(joined.points_count())
}
