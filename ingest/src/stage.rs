//! The making of a batch: points are grouped by row, and the rows go into one [`MutationBatch`].
//!
//! ```text
//! points in order of arrival ─► (row, offset, qualifier, value) ─ by row ─► batch: the key of each new row at once, then all cells
//! ```
//!
//! Where points are appended (rule S-APPEND-WRITE), the points of a row are one append in the order of arrival. Where they
//! are joined, they are one cell in time order, as in a rewritten row.
//!
//! Of several points of one row and offset only the last goes into the batch, whatever its width. Their cells would have the
//! same time, and no store should have to decide which of two such cells wins. Where cells bear the times of their points the last
//! of each column does, as when they come one by one: of several columns of an instant the settings choose (rule S-DTCS).

use std::collections::HashMap;
use std::hash::BuildHasher;

use basalt_schema::{
    APPEND_QUALIFIER, BaseTime, CompactedCell, DATA_FAMILY, PointCell, Qualifier, QualifierBytes, RowHandles, SeriesId,
    StoredPoint, ValueBytes, append_point_into,
};
use basalt_store::{Append, BatchFamily, Durability, MutationBatch, RowBuilder, Timestamp};
use bytes::Bytes;
use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::series_cache::KnownSeries;

/// Roughly the bytes of a row key: that of a series of nine tags.
const KEY_BYTES: usize = 64;

/// Bytes of a qualifier and a value, at most.
const POINT_BYTES: usize = size_of::<QualifierBytes>() + size_of::<ValueBytes>();

/// A point on its way into a batch.
#[derive(Debug, Clone, Copy)]
struct StagedPoint {
    /// Place of its row in [`Stage::rows`].
    row: u32,
    /// Its index among the points handed in.
    index: u32,
    cell: PointCell,
}

/// A row's series and hour.
type RowOf = (SeriesId, BaseTime);

/// Points put to their rows.
#[derive(Debug)]
pub(crate) struct Stage {
    points: Vec<StagedPoint>,
    rows: Vec<RowOf>,
    /// The batch, which has the keys of the rows so far.
    batch: MutationBatch,
    handles: RowHandles,
    /// The place behind the row that was used last.
    next: usize,
    /// Places of rows by a hash of series and hour. It holds a first part of the rows, and none while guesses find every row.
    places: HashTable<u32>,
    hashes: RandomState,
}

/// Which points each row of a finished batch stands for.
#[derive(Debug, Default)]
pub(crate) struct StagedRows {
    /// How many points were replaced by others of the same row and offset, or column. They are stored, or fail, with their row.
    pub(crate) superseded: u64,
    /// Indices of points, row by row.
    indices: Vec<usize>,
    /// Where each row's part of `indices` ends.
    row_ends: Vec<usize>,
}

impl Stage {
    pub(crate) fn with_capacity(points: usize, durability: Durability, handles: RowHandles) -> Self {
        Self {
            points: Vec::with_capacity(points),
            rows: Vec::with_capacity(points),
            batch: MutationBatch::with_capacity(durability, points, points, points * (KEY_BYTES + POINT_BYTES)),
            handles,
            next: 0,
            places: HashTable::new(),
            hashes: RandomState::default(),
        }
    }

    /// Adds the point with this index. Indices must ascend.
    ///
    /// # Errors
    /// `Invalid`: its row key is over the store's bounds.
    #[inline]
    pub(crate) fn push(&mut self, index: usize, series: &KnownSeries, cell: PointCell) -> basalt_store::Result<()> {
        let row = self.row(series, cell.base)?;
        self.next = row + 1;
        self.points.push(StagedPoint { row: width(row), index: width(index), cell });
        Ok(())
    }

    /// The place of a series' row; adds the row if it is not there.
    #[inline]
    fn row(&mut self, series: &KnownSeries, base: BaseTime) -> basalt_store::Result<usize> {
        let of = (series.id, base);
        // Fast path: senders write series in the order in which they wrote them first. While rows ascend, each is new.
        if self.places.is_empty() && self.rows.last() < Some(&of) {
            return self.add_row(series, base);
        }
        // Guess: the row behind the last one, the same row again, or the first row, when all series come again.
        let is_it = |place: &usize| self.rows.get(*place) == Some(&of);
        let guessed = [self.next, self.next.wrapping_sub(1), 0].into_iter().find(is_it);
        guessed.map_or_else(|| self.row_by_hash(series, base), Ok)
    }

    fn row_by_hash(&mut self, series: &KnownSeries, base: BaseTime) -> basalt_store::Result<usize> {
        let Self { rows, places, hashes, .. } = self;
        let hash = |of: RowOf| hashes.hash_one(u64::from(of.0.0) << 32 | u64::from(of.1.seconds()));
        let hash_of = |place: &u32| rows.get(*place as usize).map_or(0, |of| hash(*of));
        if places.is_empty() {
            places.reserve(self.points.capacity(), hash_of);
        }
        for place in width(places.len())..width(rows.len()) {
            places.insert_unique(hash_of(&place), place, hash_of);
        }
        let of = (series.id, base);
        let known = places.find(hash(of), |place| rows.get(*place as usize) == Some(&of)).copied();
        known.map_or_else(|| self.add_row(series, base), |place| Ok(place as usize))
    }

    #[inline]
    fn add_row(&mut self, series: &KnownSeries, base: BaseTime) -> basalt_store::Result<usize> {
        self.batch.plan_row(self.handles.of(series.id, base), |key| series.key.encode_into(base, key))?;
        self.rows.push((series.id, base));
        Ok(self.rows.len() - 1)
    }

    /// The rows, each once.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (SeriesId, BaseTime)> + '_ {
        self.rows.iter().copied()
    }

    /// How many points each series has in the batch, in no order.
    pub(crate) fn points_of_series(&self) -> HashMap<SeriesId, u32, RandomState> {
        let mut counts = HashMap::default();
        for point in &self.points {
            if let Some((series, _)) = self.rows.get(point.row as usize) {
                *counts.entry(*series).or_default() += 1;
            }
        }
        counts
    }

    /// One append for each row, with the points that it stands for. The store makes each append one change of one cell.
    pub(crate) fn seal_appends(mut self) -> Vec<(StagedRows, Append)> {
        self.points.sort_by_key(|point| point.row);
        let mut appends = Vec::with_capacity(self.rows.len());
        for (row, points) in self.points.chunk_by(|a, b| a.row == b.row).enumerate() {
            let indices: Vec<_> = points.iter().map(StagedPoint::index).collect();
            let staged = StagedRows { superseded: 0, row_ends: vec![indices.len()], indices };
            let mut value = Vec::with_capacity(points.len() * 12);
            for point in points {
                let (qualifier, bytes) = (point.cell.qualifier, point.cell.value());
                append_point_into(StoredPoint { qualifier, value: &bytes }, &mut value);
            }
            let append = Append {
                row: Bytes::copy_from_slice(self.batch.key(row).unwrap_or_default()),
                family: Bytes::from_static(DATA_FAMILY),
                qualifier: Bytes::from_static(&APPEND_QUALIFIER),
                value: value.into(),
                durability: self.batch.durability(),
            };
            appends.push((staged, append));
        }
        appends
    }

    /// Makes the batch. It says which points the rows stand for, even if the batch cannot be made.
    ///
    /// # Errors
    /// `Invalid`: a batch over the store's bounds; nothing is then written.
    pub(crate) fn seal(mut self, cells: PointCells) -> (StagedRows, basalt_store::Result<MutationBatch>) {
        // Rows come in the order of their first points; a row's points stay in the order of arrival.
        if !self.points.is_sorted_by_key(|point| point.row) {
            self.points.sort_by_key(|point| point.row);
        }
        let indices = self.points.iter().map(StagedPoint::index).collect();
        let mut rows = StagedRows { superseded: 0, indices, row_ends: Vec::with_capacity(self.rows.len()) };
        let Self { mut points, mut batch, rows: of_rows, .. } = self;
        let (mut made, mut end, mut joined) = (batch.family(DATA_FAMILY), 0, CompactedCell::default());
        for points in points.chunk_by_mut(|a, b| a.row == b.row) {
            end += points.len();
            rows.row_ends.push(end);
            if let Ok(family) = made {
                let kept = seal_row(&mut batch, points, (family, cells), &mut joined);
                rows.superseded += kept.as_ref().map_or(0, |kept| (points.len() - kept) as u64);
                made = kept.map(|_| family);
            }
        }
        debug_assert_eq!(rows.row_ends.len(), of_rows.len(), "BUG: a row without points");
        (rows, made.map(|_| batch))
    }
}

/// A number of rows or points.
#[inline]
fn width(count: usize) -> u32 {
    let number = u32::try_from(count).unwrap_or(u32::MAX);
    assert!(number < u32::MAX, "BUG: a batch of 2^32 points passed the bound on them");
    number
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
    const fn index(&self) -> usize {
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
fn seal_row(
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

impl StagedRows {
    /// Adds the next row of the batch, which stands for these points.
    pub(crate) fn add_row(&mut self, indices: impl Iterator<Item = usize>) {
        self.indices.extend(indices);
        self.row_ends.push(self.indices.len());
    }

    /// How many points it stands for.
    pub(crate) fn points_count(&self) -> u64 {
        self.indices.len() as u64
    }

    /// The points of a row of the batch.
    pub(crate) fn points_of(&self, row: usize) -> &[usize] {
        let end = self.row_ends.get(row).copied().unwrap_or_default();
        let start = row.checked_sub(1).and_then(|before| self.row_ends.get(before)).copied().unwrap_or_default();
        self.indices.get(start..end).unwrap_or_default()
    }

    /// All points.
    pub(crate) fn points(&self) -> &[usize] {
        &self.indices
    }
}

#[cfg(test)]
mod tests {
    use basalt_schema::{
        Door, KeyLayout, PointTime, Salting, SeriesIndex, TagPair, Tsuid, Uid, UidWidths, Value, point_cell,
    };
    use proptest::prelude::*;

    use super::*;

    fn series(tagv: u64) -> KnownSeries {
        let layout = KeyLayout { salting: Salting::NONE, widths: UidWidths::default() };
        let pair = TagPair { key: Uid::new(1), value: Uid::new(tagv) };
        let key = layout.series_key(&Tsuid::new(Uid::new(1), &[pair], layout.widths));
        KnownSeries { id: SeriesId(u32::try_from(tagv).unwrap()), key }
    }

    /// A row's place, a qualifier, a value.
    type Cell = (usize, Vec<u8>, Vec<u8>);

    /// Points `(series, time, value)`, and the cells they become.
    fn sealed(points: &[(u64, i64, Value)], cells: PointCells) -> (StagedRows, Vec<Cell>) {
        let handles = SeriesIndex::new(UidWidths::default(), 1).row_handles();
        let mut stage = Stage::with_capacity(points.len(), Durability::Fsync, handles);
        for (index, (tagv, time, value)) in points.iter().enumerate() {
            let cell = point_cell(PointTime::from_number(*time).unwrap(), *value, Door::Http).unwrap();
            stage.push(index, &series(*tagv), cell).unwrap();
        }
        let (rows, batch) = stage.seal(cells);
        let batch = batch.unwrap();
        let cells = batch
            .rows()
            .enumerate()
            .flat_map(|(place, row)| row.cells().map(move |c| (place, c.qualifier.to_vec(), c.value.to_vec())));
        let cells = cells.collect();
        (rows, cells)
    }

    const HOUR: i64 = 1_699_999_200;

    #[test]
    fn a_row_is_one_entry_whatever_order_its_points_come_in() {
        let int = Value::Int;
        let points = [
            (1, HOUR, int(1)),
            (2, HOUR, int(2)),
            (1, HOUR + 3600, int(3)),
            (1, HOUR + 2, int(4)),
            (1, HOUR + 1, int(5)),
        ];
        let (rows, cells) = sealed(&points, PointCells::Each);
        assert_eq!(
            cells,
            [
                (0, vec![0, 0], vec![1]),
                (0, vec![0, 0x10], vec![5]),
                (0, vec![0, 0x20], vec![4]),
                (1, vec![0, 0], vec![2]),
                (2, vec![0, 0], vec![3])
            ]
        );
        assert_eq!((rows.points_of(0), rows.points_of(1), rows.points_of(2)), (&[0, 3, 4][..], &[1][..], &[2][..]));
        assert_eq!((rows.points_count(), rows.superseded), (5, 0));
        assert!(rows.points_of(3).is_empty());
    }

    #[test]
    fn of_points_at_one_instant_the_last_is_written() {
        let points = [
            (1, HOUR + 1, Value::Int(1)),
            (1, HOUR, Value::Int(7)),
            (1, HOUR + 1, Value::Float(2.5)),
            // The same instant in milliseconds, as the last word.
            (1, (HOUR + 1) * 1000, Value::Int(3)),
        ];
        let (rows, cells) = sealed(&points, PointCells::Each);
        assert_eq!(cells, [(0, vec![0, 0], vec![7]), (0, vec![0xF0, 0, 0xFA, 0], vec![3])]);
        assert_eq!((rows.points_count(), rows.superseded), (4, 2));
    }

    /// S-DTCS: of 300 and 7 at one instant either may be the answer, so both are written, and of two of one width the last.
    #[test]
    fn s_dtcs_of_points_at_one_instant_the_last_of_each_width_is_written() {
        let int = Value::Int;
        let points = [
            (1, HOUR + 1, int(300)),
            (1, HOUR, int(9)),
            (1, HOUR + 1, int(8)),
            (1, HOUR + 1, int(7)),
            (2, HOUR, int(1)),
        ];
        let (rows, cells) = sealed(&points, PointCells::EachAtItsTime);
        assert_eq!(
            cells,
            [
                (0, vec![0, 0], vec![9]),
                (0, vec![0, 0x10], vec![7]),
                (0, vec![0, 0x11], vec![1, 0x2C]),
                (1, vec![0, 0], vec![1]),
            ]
        );
        assert_eq!((rows.points_count(), rows.superseded), (5, 1));
    }

    /// S-COMPACT-WRITE, S-COMPACT-MIXED: one byte of the value says whether seconds and milliseconds are mixed; a lone point has none.
    #[test]
    fn joined_points_are_a_cell_as_of_a_rewritten_row() {
        let points = [
            (1, HOUR + 2, Value::Int(4)),
            (2, HOUR, Value::Int(2)),
            (1, HOUR + 1, Value::Int(5)),
            (1, HOUR + 1, Value::Int(6)),
            (3, HOUR, Value::Int(7)),
            (3, HOUR * 1000 + 1, Value::Int(8)),
        ];
        let (rows, cells) = sealed(&points, PointCells::Joined);
        assert_eq!(
            cells,
            [
                (0, vec![0, 0x10, 0, 0x20], vec![6, 4, 0]),
                (1, vec![0, 0], vec![2]),
                (2, vec![0, 0, 0xF0, 0, 0, 0x40], vec![7, 8, 1]),
            ]
        );
        assert_eq!((rows.points_of(0), rows.points_count(), rows.superseded), (&[0, 2, 3][..], 6, 1));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        /// Rows that ascend for a while, as senders write them, then do not, and come again.
        #[test]
        fn points_find_their_rows_in_any_order(
            ascending in proptest::collection::btree_set(1..40_u64, 0..9),
            rest in proptest::collection::vec((1..40_u64, 0..3_i64), 0..40),
        ) {
            let all = ascending.into_iter().map(|series| (series, 0)).chain(rest);
            let all = all.enumerate().map(|(at, (series, hour))| {
                (series, HOUR + hour * 3600 + i64::try_from(at).unwrap(), Value::Int(1))
            });
            let all: Vec<_> = all.collect();
            let row_of = |point: &(u64, i64, Value)| (point.0, (point.1 - HOUR) / 3600);
            let mut expected: Vec<(_, Vec<usize>)> = Vec::new();
            for (at, point) in all.iter().enumerate() {
                match expected.iter_mut().find(|(row, _)| *row == row_of(point)) {
                    Some((_, points)) => points.push(at),
                    None => expected.push((row_of(point), vec![at])),
                }
            }
            let (rows, cells) = sealed(&all, PointCells::Each);
            prop_assert_eq!(cells.len(), all.len());
            for (place, (_, points)) in expected.iter().enumerate() {
                prop_assert_eq!(rows.points_of(place), &points[..]);
            }
            prop_assert!(rows.points_of(expected.len()).is_empty());
        }
    }

    #[test]
    fn no_points_make_an_empty_batch() {
        let (rows, cells) = sealed(&[], PointCells::Each);
        assert_eq!((rows.points_count(), cells.len()), (0, 0));
    }
}
