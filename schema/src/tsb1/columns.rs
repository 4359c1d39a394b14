//! A stored block read by columns, without a detour through the bytes of cells.
//!
//! What is told once a row (keys, write times, counts, heads) is decoded when a block is opened; what is told once a point
//! when the first point is asked for, and kept. Then a row costs its own points alone.
//!
//! Invariant: a row gives as points what decoding its cell gives, or says that only the cell will do.

use std::ops::Range;
use std::sync::OnceLock;

use basalt_store::{PackedRows, Packing, RowSummary, SeqNo, Timestamp};

use super::decimal::Exception;
use super::head::{Head, RowPlanes, VERBATIM, read_exceptions};
use super::image::{Base, ROW_BYTES_MIN};
use super::keys::Keys;
use super::number::Input;
use super::section::{Coder, Sections, Streams, id, plane_id};
use super::summary::Summary;
use super::{
    BYTES_MORE_MAX, POINT_BYTES_MIN, Scratch, Tsb1, keys_bytes_max, streams_bytes_max, streams_count, with_scratch,
};

/// Streams that have a byte a point.
const POINT_STREAMS: usize = id::POINTS_END - id::OF_POINTS;
/// The most planes of a row's values.
const PLANES_MAX: usize = 8;

/// A block of rows of points, open.
///
/// ```
/// use basalt_schema::Tsb1;
/// assert!(Tsb1.open(vec![1, 0], 100).is_none());
/// ```
#[derive(Debug)]
pub struct Tsb1Block {
    stored: Vec<u8>,
    key_bytes: Box<[u8]>,
    rows: Box<[Row]>,
    exceptions: Box<[Exception]>,
    /// How many bytes the rows take of each stream of points; where each begins in `points`.
    starts: Box<[usize; POINT_STREAMS + 1]>,
    /// Where the sections begin in `stored`, and how many streams they may be of.
    sections_at: usize,
    streams_count: usize,
    image_bytes: usize,
    /// All streams of points one after the other, decoded when they are asked for; `None`: they make no sense.
    points: OnceLock<Option<Vec<u8>>>,
}

/// One row: its head, and where what is not in it begins. First what a look at a row without its points takes, so that it lies
/// in one place of memory.
#[derive(Debug)]
#[repr(C)]
struct Row {
    /// Where its key lies in `key_bytes`.
    key: (u32, u32),
    written: Base,
    summary: Option<RowSummary>,
    head: Head,
    exceptions: (u32, u32),
    times_at: u32,
    values_at: u32,
    told_at: u32,
}

impl Tsb1 {
    /// Opens what [`Tsb1::encode_into`] wrote of an image of so many bytes. `None` where a row is no lone cell of points, where
    /// rows would take far more memory than the image, or where `stored` makes no sense: [`Tsb1::decode_into`] knows which.
    ///
    /// Any bytes may come. *Cost*: some 50 ns a row; no point is decoded.
    pub fn open(self, stored: Vec<u8>, image_bytes: usize) -> Option<Tsb1Block> {
        with_scratch(image_bytes, |scratch| Opening::default().open(scratch, stored, image_bytes))
    }
}

impl Tsb1Block {
    /// How many rows.
    pub fn rows_count(&self) -> usize {
        self.rows.len()
    }

    /// A row's key; empty for a row that is none.
    pub fn row_key(&self, row: usize) -> &[u8] {
        let (start, end) = self.rows.get(row).map(|row| row.key).unwrap_or_default();
        self.key_bytes.get(start as usize..end as usize).unwrap_or_default()
    }

    /// Time and sequence number of a row's cell.
    pub fn written(&self, row: usize) -> (Timestamp, SeqNo) {
        let Base { timestamp, seq } = self.rows.get(row).map(|row| row.written).unwrap_or_default();
        (Timestamp(timestamp), SeqNo(seq))
    }

    /// Bytes of memory that it keeps once its points are decoded.
    pub fn memory_bytes(&self) -> usize {
        let points = self.starts.last().copied().unwrap_or(0);
        let rows = size_of_val(&*self.rows) + size_of_val(&*self.exceptions) + self.key_bytes.len();
        self.stored.capacity() + points + rows + size_of_val(&*self.starts) + size_of::<Self>()
    }

    /// Adds a row to packed ones; false where only its cell will do, and where its bytes make no sense.
    ///
    /// *Cost*: a nanosecond or two a point; for the first row asked for, those of decoding the block.
    pub fn pack(&self, row: usize, packing: Packing, out: &mut PackedRows) -> bool {
        let Some(row) = self.rows.get(row) else { return false };
        match (packing, row.summary) {
            (Packing::Cells, _) => return false,
            (Packing::Summaries | Packing::Newest, Some(summary)) => {
                out.push_summary(summary);
                return true;
            }
            (Packing::Summaries | Packing::Newest, None) | (Packing::Points, _) => {}
        }
        let (Some(is_float), Some(exceptions)) = (row.head.is_float(), self.exceptions_of(row)) else { return false };
        let filled = self.with_planes(row, |planes| {
            out.push(row.head.count, is_float, |offsets_ms, words| {
                row.head.points_into(planes, exceptions, offsets_ms, words)
            })
        });
        filled == Some(true)
    }

    /// Writes qualifier and value of a row's cell, which replace what the two hold; false where its bytes make no sense.
    pub fn cell(&self, row: usize, qualifier: &mut Vec<u8>, value: &mut Vec<u8>) -> bool {
        let Some(row) = self.rows.get(row) else { return false };
        let Some(exceptions) = self.exceptions_of(row) else { return false };
        let given = self.with_planes(row, |planes| {
            with_scratch(self.image_bytes, |scratch| {
                let loaded = scratch.model.load(&row.head, planes, exceptions);
                loaded.and_then(|()| scratch.model.give(qualifier, value)).is_some()
            })
        });
        given == Some(true)
    }

    fn exceptions_of(&self, row: &Row) -> Option<&[Exception]> {
        let (from, to) = row.exceptions;
        self.exceptions.get(from as usize..to as usize)
    }

    /// Hands on the bytes of a row's points; `None` where they cannot be decoded.
    fn with_planes<T>(&self, row: &Row, with: impl FnOnce(&RowPlanes<'_>) -> T) -> Option<T> {
        let points = self.points.get_or_init(|| self.decode_points()).as_ref()?;
        let head = &row.head;
        let planes_of = |first, width: u8, at, count| {
            let mut planes: [&[u8]; PLANES_MAX] = [&[]; PLANES_MAX];
            for (plane, out) in planes.iter_mut().enumerate().take(width.into()) {
                *out = self.bytes_of(points, plane_id(first, width.into()) + plane, at, count)?;
            }
            Some(planes)
        };
        let times = planes_of(id::TIME_PLANES, head.time_width, row.times_at, head.times_count())?;
        let values = planes_of(id::VALUE_PLANES, head.value_width, row.values_at, head.values_count())?;
        let told = if head.is_told() { self.bytes_of(points, id::KINDS, row.told_at, head.count)? } else { &[] };
        Some(with(&RowPlanes {
            times: times.get(..head.time_width.into())?,
            values: values.get(..head.value_width.into())?,
            told,
        }))
    }

    /// Bytes of a stream of points.
    fn bytes_of<'a>(&self, points: &'a [u8], stream: usize, at: u32, count: usize) -> Option<&'a [u8]> {
        let start = self.starts.get(stream - id::OF_POINTS)? + at as usize;
        points.get(start..start.checked_add(count)?)
    }

    fn decode_points(&self) -> Option<Vec<u8>> {
        let mut points = vec![0; self.starts.last().copied()?];
        let stored = self.stored.get(self.sections_at..)?;
        with_scratch(self.image_bytes, |scratch| {
            let mut sections = Sections::new(stored, self.streams_count, streams_bytes_max(self.image_bytes));
            while let Some(section) = sections.next()? {
                let Some(stream) = point_stream(section.id) else { continue };
                let (start, end) = (*self.starts.get(stream)?, *self.starts.get(stream + 1)?);
                // What is stored is used up; what is not are zeros.
                let bytes = points.get_mut(start..end)?.get_mut(..section.length)?;
                scratch.coder.decode(&section, bytes)?;
            }
            Some(())
        })?;
        Some(points)
    }
}

/// A block that is being opened.
#[derive(Debug, Default)]
struct Opening {
    rows: Vec<Row>,
    exceptions: Vec<Exception>,
    /// Bytes that the rows so far take of the streams of points.
    used: UsedBytes,
}

/// How far rows have read the streams of points. Planes of one width are read together.
#[derive(Debug)]
struct UsedBytes([usize; POINT_STREAMS]);

impl Default for UsedBytes {
    fn default() -> Self {
        Self([0; POINT_STREAMS])
    }
}

impl UsedBytes {
    /// Takes `count` bytes of each of `width` streams from `first` on; where they begin in each of them.
    fn take(&mut self, first: usize, width: usize, count: usize) -> Option<u32> {
        let start = first - id::OF_POINTS;
        let streams = self.0.get_mut(start..start + width)?;
        let at = streams.first().copied().unwrap_or(0);
        for stream in streams {
            *stream = stream.checked_add(count)?;
        }
        u32::try_from(at).ok()
    }
}

impl Opening {
    fn open(mut self, scratch: &mut Scratch, stored: Vec<u8>, image_bytes: usize) -> Option<Tsb1Block> {
        let Scratch { streams, coder, keys, .. } = scratch;
        let mut input = Input::new(&stored);
        let streams_count = streams_count(input.array()?)?;
        let rows = input.length().filter(|rows| *rows > 0 && *rows <= image_bytes / ROW_BYTES_MIN)?;
        let base = Base { timestamp: input.varint()?, seq: input.varint()? };
        let sections_at = stored.len() - input.rest().len();
        let bytes_max = streams_bytes_max(image_bytes);
        let of_points = heads_of(Sections::new(input.rest(), streams_count, bytes_max), streams, coder)?;
        keys.decode(rows, keys_bytes_max(image_bytes), streams)?;
        self.read_rows(rows, image_bytes, base, keys, streams)?;
        let fits = |(section, used): (&usize, &usize)| section <= used;
        if !streams.are_read() || !of_points.iter().zip(&self.used.0).all(fits) {
            return None;
        }
        let mut starts = Box::new([0; POINT_STREAMS + 1]);
        let mut end = 0_usize;
        for (start, used) in starts.iter_mut().skip(1).zip(self.used.0) {
            end = end.checked_add(used).filter(|end| *end <= bytes_max)?;
            *start = end;
        }
        Some(Tsb1Block {
            key_bytes: keys.bytes().into(),
            rows: self.rows.into(),
            exceptions: self.exceptions.into(),
            starts,
            sections_at,
            streams_count,
            image_bytes,
            points: OnceLock::new(),
            stored,
        })
    }

    fn read_rows(
        &mut self,
        rows: usize,
        image_bytes: usize,
        base: Base,
        keys: &Keys,
        streams: &mut Streams,
    ) -> Option<()> {
        // Rows without a byte in any stream may be told by the million.
        let is_bounded = |bytes: &usize| *bytes <= image_bytes.saturating_add(BYTES_MORE_MAX);
        rows.checked_mul(size_of::<Row>()).filter(is_bounded)?;
        self.rows.reserve_exact(rows);
        let mut points_left = image_bytes / POINT_BYTES_MIN;
        for row in 0..rows {
            let form = streams.byte(id::FORMS);
            if form == VERBATIM {
                return None;
            }
            let head = Head::read(form, points_left, streams)?;
            points_left -= head.count;
            let from = u32::try_from(self.exceptions.len()).ok()?;
            if head.has_exceptions {
                read_exceptions(head.count, streams, &mut self.exceptions)?;
            }
            let mut planes = |first, width: u8, count| match width {
                0 => Some(0),
                width => self.used.take(plane_id(first, width.into()), width.into(), count),
            };
            let times_at = planes(id::TIME_PLANES, head.time_width, head.times_count())?;
            let values_at = planes(id::VALUE_PLANES, head.value_width, head.values_count())?;
            let told_at = if head.is_told() { self.used.take(id::KINDS, 1, head.count)? } else { 0 };
            let timestamp = base.timestamp.wrapping_add(streams.number(id::TIMESTAMPS)?);
            let seq = base.seq.wrapping_add(streams.number(id::SEQS)?);
            let exceptions = (from, u32::try_from(self.exceptions.len()).ok()?);
            let summary = Summary::read(&head, streams)?.and_then(|summary| summary.told(&head));
            let written = Base { timestamp, seq };
            let Range { start, end } = keys.range(row);
            let key = (u32::try_from(start).ok()?, u32::try_from(end).ok()?);
            self.rows.push(Row { key, written, summary, head, exceptions, times_at, values_at, told_at });
        }
        Some(())
    }
}

/// Decodes the streams that are read once a row, and walks over the others: how many bytes each of those has.
fn heads_of(mut sections: Sections<'_>, streams: &mut Streams, coder: &mut Coder) -> Option<[usize; POINT_STREAMS]> {
    streams.clear();
    let mut of_points = [0; POINT_STREAMS];
    while let Some(section) = sections.next()? {
        match point_stream(section.id) {
            None => streams.fill(&section, coder)?,
            Some(stream) => *of_points.get_mut(stream)? = section.length,
        }
    }
    Some(of_points)
}

/// A stream's place among those of points, if it is one.
fn point_stream(stream: usize) -> Option<usize> {
    stream.checked_sub(id::OF_POINTS).filter(|stream| *stream < POINT_STREAMS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many as the image has room for, and not a byte of any of them.
    #[test]
    fn rows_that_are_counted_and_not_told_take_no_memory() {
        let image_bytes: usize = 64 << 20;
        let mut opening = Opening::default();
        let rows = image_bytes / ROW_BYTES_MIN;
        assert!(
            opening.read_rows(rows, image_bytes, Base::default(), &Keys::default(), &mut Streams::default()).is_none()
        );
        assert_eq!(opening.rows.capacity(), 0);
    }
}
