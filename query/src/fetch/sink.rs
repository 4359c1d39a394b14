//! The sink of a task's rows: decodes them, and downsamples each at once where that can be done row by row.

use std::collections::HashMap;
use std::time::Instant;

use basalt_schema::{BaseTime, Histogram, RowCell, RowPoints, Schema, histogram_offset_ms};
use basalt_store::{Packed, RowBatch, RowView};
use foldhash::fast::RandomState;

use super::mend::mend_appends;
use super::notes::annotation;
use super::rollup_row::take_row;
use super::{Reader, TaskAnswer};
use crate::Result;
use crate::answer::ScanStats;
use crate::downsample::RowDownsample;
use crate::series_data::{POINT_BYTES, SeriesData, histogram_bytes, note_bytes};

/// Takes a task's rows.
#[derive(Debug)]
pub(super) struct Sink<'a> {
    reader: &'a Reader<'a>,
    /// Tag bytes of a series → its place in `series`.
    places: HashMap<&'a [u8], usize, RandomState>,
    series: Vec<(usize, SeriesData)>,
    scratch: RowPoints,
    /// Makes buckets of each row, where that can be done row by row.
    downsample: Option<RowDownsample>,
    /// How many points and buckets are kept.
    kept: u64,
    stats: ScanStats,
    began: Instant,
}

impl<'a> Sink<'a> {
    pub(super) fn new(reader: &'a Reader<'a>, slots: impl ExactSizeIterator<Item = usize>) -> Self {
        let metric_bytes = reader.schema.layout().widths.metric.bytes();
        let downsample = reader.row_downsample();
        let is_downsampled = downsample.is_some();
        let mut places = HashMap::with_capacity_and_hasher(slots.len(), RandomState::default());
        let mut series = Vec::with_capacity(slots.len());
        for slot in slots {
            let tsuid = reader.plan.series.get(slot);
            if let Some(tags) = tsuid.and_then(|tsuid| tsuid.as_bytes().get(metric_bytes..)) {
                places.insert(tags, series.len());
                series.push((slot, SeriesData { is_downsampled, ..SeriesData::default() }));
            }
        }
        let (scratch, stats) = (RowPoints::default(), ScanStats::default());
        Self { reader, places, series, scratch, downsample, kept: 0, stats, began: Instant::now() }
    }

    /// Decodes those rows of a batch whose series are wanted, and charges the budget for them.
    pub(super) fn take(&mut self, batch: &RowBatch) -> Result<()> {
        if self.downsample.is_some() && self.reader.has_misfit() {
            // All rows will be read again, without this downsampling.
            return Ok(());
        }
        let began = Instant::now();
        let (read_before, kept_before) = (self.stats.points_read(), self.kept);
        for row in batch.rows() {
            self.take_row(&row)?;
        }
        self.stats.rows += batch.len() as u64;
        self.stats.cells += batch.cells_count() as u64;
        self.stats.bytes += batch.data_bytes() as u64;
        self.stats.decode_time += began.elapsed();
        self.reader.budget.reserve((self.kept - kept_before).saturating_mul(POINT_BYTES))?;
        self.reader.budget.spend(self.stats.points_read() - read_before, batch.data_bytes() as u64)
    }

    fn take_row(&mut self, row: &RowView<'_>) -> Result<()> {
        let key = self.reader.schema.layout().decode(row.key())?;
        let Some((_, data)) = self.places.get(key.tags_bytes()).and_then(|place| self.series.get_mut(*place)) else {
            self.stats.cells_left_out += row.packed().map_or(row.cells().len(), |_| 1) as u64;
            return Ok(());
        };
        self.stats.rows_kept += 1;
        let base_ms = i64::from(key.base().seconds()) * 1000;
        if let Some(points) = row.packed() {
            self.stats.points += match &points {
                Packed::Points(points) => points.words.len() as u64,
                Packed::Summary(summary) => {
                    let count = u64::from(summary.count);
                    self.stats.points_unread += if self.reader.strict { 0 } else { count.saturating_sub(1) };
                    count
                }
            };
            self.kept += take_packed(self.reader, &mut self.downsample, key.base(), &points, data) as u64;
            return Ok(());
        }
        if let Some(read) = &self.reader.plan.read {
            let taken = take_row(read, key.base(), row, data)? as u64;
            self.stats.points += taken;
            self.kept += taken;
            return Ok(());
        }
        if self.reader.plan.histograms {
            let read = row.cells().filter_map(|cell| histogram(self.reader.schema, &RowCell::from(cell)));
            let mut read: Vec<_> = read.map(|(offset_ms, one)| (base_ms + i64::from(offset_ms), one)).collect();
            read.sort_by_key(|(time_ms, _)| *time_ms);
            // A time in seconds and the same in milliseconds are one instant; the first cell is kept.
            read.dedup_by_key(|(time_ms, _)| *time_ms);
            self.stats.points += read.len() as u64;
            self.kept += read.len() as u64;
            self.reader.budget.reserve(read.iter().map(|(_, one)| histogram_bytes(one)).sum())?;
            data.histograms.extend(read);
        } else {
            self.scratch.decode(row.cells().map(RowCell::from), self.reader.schema.config().duplicates())?;
            if self.reader.plan.mend_before_ms.is_some_and(|before_ms| base_ms < before_ms) {
                mend_appends(self.reader.schema, row);
            }
            self.kept += match &mut self.downsample {
                None => data.span.extend_row(base_ms, &self.scratch),
                Some(downsample) => {
                    let taken = downsample.take(key.base(), &self.scratch, (&mut data.span, &mut data.counts));
                    taken.unwrap_or_else(|| self.reader.note_misfit())
                }
            } as u64;
            self.stats.points += self.scratch.len() as u64;
        }
        if self.reader.annotations {
            for cell in row.cells() {
                if let Some(note) = annotation(base_ms, &cell)? {
                    self.reader.budget.reserve(note_bytes(&note))?;
                    data.annotations.push(note);
                }
            }
        }
        Ok(())
    }

    pub(super) fn finish(mut self, name: String) -> TaskAnswer {
        if let Some(downsample) = &self.downsample {
            self.series.iter_mut().for_each(|(_, data)| downsample.finish((&mut data.span, &mut data.counts)));
        }
        self.stats.store_time = self.began.elapsed().saturating_sub(self.stats.decode_time);
        TaskAnswer { name, series: self.series, stats: self.stats }
    }
}

/// The histogram of a cell, with its offset in the row; `None` for a cell of points, or of a codec that is not known.
fn histogram(schema: &Schema, cell: &RowCell<'_>) -> Option<(u32, Histogram)> {
    let offset_ms = histogram_offset_ms(cell.qualifier)?;
    let (id, bytes) = cell.value.split_first()?;
    // OpenTSDB passes over what it cannot decode.
    let known = schema.config().histogram_id == Some(*id);
    Histogram::decode(bytes).ok().filter(|_| known).map(|histogram| (offset_ms, histogram))
}

/// Takes a row that came by columns, so has only points; gives how many points or buckets are kept.
fn take_packed(
    reader: &Reader<'_>,
    downsample: &mut Option<RowDownsample>,
    base: BaseTime,
    row: &Packed<'_>,
    data: &mut SeriesData,
) -> usize {
    let out = (&mut data.span, &mut data.counts);
    let taken = match (row, downsample) {
        (Packed::Points(points), None) => Some(out.0.extend_packed(i64::from(base.seconds()) * 1000, points)),
        (Packed::Points(points), Some(downsample)) => downsample.take_packed(base, points, out),
        (Packed::Summary(summary), Some(downsample)) => downsample.take_summary(base, summary, out),
        // Summaries are not asked for without a downsampling.
        (Packed::Summary(_), None) => None,
    };
    taken.unwrap_or_else(|| reader.note_misfit())
}
