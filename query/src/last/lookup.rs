//! Rows looked up backwards in time, for many series at once.

use std::collections::HashMap;

use basalt_schema::{BaseTime, DATA_FAMILY, RowCell, RowPoints, Schema, Tsuid, Value};
use basalt_store::{Columns, Get, RowView};
use bytes::Bytes;

use crate::Result;
use crate::answer::{Number, Point};
use crate::cancel::Budget;

/// Rows of one get, and the most hours of one series in it.
const GET_ROWS: usize = 128;
/// The meta table's family and the column of a series' counter. Its cell's time is that of the last write.
const META_FAMILY: &[u8] = b"name";
const COUNTER_QUALIFIER: &[u8] = b"ts_ctr";

/// A series whose newest point is wanted.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) tsuid: Tsuid,
    /// When it was last written, if that is known; seconds.
    pub(super) counted_s: Option<u32>,
}

/// When the meta table says that a series was written last; seconds.
pub(super) fn counted_s(schema: &Schema, tsuid: &Tsuid) -> Result<Option<u32>> {
    let key = Bytes::copy_from_slice(tsuid.as_bytes());
    let get = Get::rows(vec![key]).with_columns(Columns::column(META_FAMILY, COUNTER_QUALIFIER));
    let batch = schema.store().get(&schema.tables().meta, get).wait()?;
    let cell = batch.rows().next().and_then(|row| row.cells().next());
    Ok(cell.and_then(|cell| u32::try_from(cell.timestamp.0 / 1000).ok()))
}

#[derive(Debug)]
pub(super) struct Lookup<'a> {
    pub(super) schema: &'a Schema,
    pub(super) now_ms: i64,
    /// How many hours before the first to look into.
    pub(super) hours: u64,
    pub(super) budget: &'a Budget,
}

/// A series not found yet: its place, and the next hour to look into.
#[derive(Debug, Clone, Copy)]
struct Open {
    place: usize,
    next: BaseTime,
    left: u64,
}

impl Lookup<'_> {
    /// The newest point of each, in their order.
    ///
    /// *Cost*: a row a series and hour, until the first with a point; the hours of a get double, since who was not seen
    /// for long is not likely to be in the next hour.
    pub(super) fn run(&self, wanted: &[Wanted]) -> Result<Vec<Option<Point>>> {
        let now_s = u32::try_from(self.now_ms / 1000).unwrap_or(u32::MAX);
        let mut found: Vec<Option<Point>> = wanted.iter().map(|_| None).collect();
        let begin = |(place, wanted): (usize, &Wanted)| Open {
            place,
            next: BaseTime::of_seconds(wanted.counted_s.unwrap_or(now_s)),
            left: self.hours.saturating_add(1),
        };
        let mut open: Vec<Open> = wanted.iter().enumerate().map(begin).collect();
        let mut hours = 1;
        while !open.is_empty() {
            for chunk in open.chunks_mut(GET_ROWS / hours) {
                self.look(chunk, hours, wanted, &mut found)?;
            }
            open.retain(|open| open.left > 0 && found.get(open.place).is_some_and(Option::is_none));
            hours = (hours * 2).min(GET_ROWS);
        }
        Ok(found)
    }

    /// Looks into the next `hours` of some series.
    fn look(&self, chunk: &mut [Open], hours: usize, wanted: &[Wanted], found: &mut [Option<Point>]) -> Result<()> {
        let mut keys = Vec::with_capacity(chunk.len() * hours);
        let mut places: HashMap<&[u8], Vec<usize>> = HashMap::new();
        for open in chunk {
            let Some(Wanted { tsuid, .. }) = wanted.get(open.place) else {
                continue;
            };
            places.entry(tsuid.as_bytes()).or_default().push(open.place);
            let series = self.schema.layout().series_key(tsuid);
            for _ in 0..hours {
                if open.left == 0 {
                    break;
                }
                keys.push(Bytes::from(series.row_key(open.next)));
                open.left -= 1;
                match open.next.seconds().checked_sub(BaseTime::SPAN_S) {
                    Some(before) => open.next = BaseTime::of_seconds(before),
                    None => open.left = 0,
                }
            }
        }
        let get = Get::rows(keys).with_columns(Columns::family(DATA_FAMILY));
        let batch = self.schema.store().get(&self.schema.tables().data, get).wait()?;
        let mut scratch = RowPoints::default();
        let mut decoded = 0;
        for row in batch.rows() {
            let Some((tsuid, point)) = self.newest_of(&row, &mut scratch)? else {
                continue;
            };
            decoded += scratch.len() as u64;
            for place in places.get(tsuid.as_bytes()).into_iter().flatten() {
                if let Some(kept) = found.get_mut(*place)
                    && kept.is_none_or(|kept| kept.time_ms < point.time_ms)
                {
                    *kept = Some(point);
                }
            }
        }
        self.budget.spend(decoded, batch.data_bytes() as u64)
    }

    /// A row's series and its newest point; a row may hold annotations alone.
    fn newest_of(&self, row: &RowView<'_>, scratch: &mut RowPoints) -> Result<Option<(Tsuid, Point)>> {
        let key = self.schema.layout().decode(row.key())?;
        scratch.decode(row.cells().map(RowCell::from), self.schema.config().duplicates())?;
        let newest = scratch.offsets_ms().last().copied().zip(scratch.value(scratch.len().saturating_sub(1)));
        Ok(newest.map(|(offset_ms, value)| {
            let number = match value {
                Value::Int(value) => Number::Integer(value),
                Value::Float(value) => Number::Double(value),
            };
            (key.tsuid(), Point { time_ms: i64::from(key.base().seconds()) * 1000 + i64::from(offset_ms), number })
        }))
    }
}
