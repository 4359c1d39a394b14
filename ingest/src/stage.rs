//! The making of a batch: points are grouped by row, and the rows go into one [`MutationBatch`].
//!
//! ```text
//! points in order of arrival ─► (row, offset, qualifier, value) ─ by row ─► batch: the key of each new row at once, then all cells
//! ```
//!
//! Where points are appended (rule S-APPEND-WRITE), the points of a row are one append in the order of arrival. Where they
//! are joined, they are one cell in time order, as in a rewritten row.

mod row;

pub(crate) use row::PointCells;

use std::collections::HashMap;
use std::hash::BuildHasher;

use basalt_schema::{
    APPEND_QUALIFIER, BaseTime, CompactedCell, DATA_FAMILY, PointCell, QualifierBytes, RowHandles, SeriesId,
    StoredPoint, ValueBytes, append_point_into,
};
use basalt_store::{Append, Durability, MutationBatch};
use bytes::Bytes;
use foldhash::fast::RandomState;
use hashbrown::HashTable;

use row::{StagedPoint, seal_row};

use crate::series_cache::KnownSeries;

/// Roughly the bytes of a row key: that of a series of nine tags.
const KEY_BYTES: usize = 64;

/// Bytes of a qualifier and a value, at most.
const POINT_BYTES: usize = size_of::<QualifierBytes>() + size_of::<ValueBytes>();

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
mod tests;
