//! A metric's rows in ranges that are scanned at once: a server reads a range on one thread, and others have nothing to do.
//!
//! ```text
//! bucket ─ from .. to ──┬─ hours .. ─┬─ rows below a series of the hour
//!                       └─ .. hours  └─ rows from it on
//! ```
//!
//! Hours are kept together where there are enough of them; fewer are cut where series lie that are known, so that about as
//! many rows are on each side. A wrong guess makes pieces uneven and no answer wrong: every row lies in one piece.

use std::ops::Range;

use basalt_schema::{BaseTime, Salt, Schema, SeriesId, Uid};

/// Ranges of one query, unless its table has more buckets.
const PIECES: u32 = 4;
/// Known series of an hour that a range of their own is worth.
const SERIES_PER_PIECE: u64 = 16;

/// Rows of one bucket, from the first key to before the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) salt: Salt,
    pub(crate) start: Vec<u8>,
    pub(crate) stop: Vec<u8>,
}

/// The pieces of a metric's rows of these base times: bucket by bucket, ascending within each.
///
/// *Cost*: a look at a few of the metric's series.
pub(crate) fn pieces(schema: &Schema, metric: Uid, times: &Range<BaseTime>) -> Vec<Piece> {
    let layout = schema.layout();
    let buckets = u32::try_from(layout.salts().len()).unwrap_or(u32::MAX).max(1);
    let wanted = (PIECES / buckets).max(1);
    let cuts = time_cuts(times, wanted);
    let of_each = wanted / u32::try_from(cuts.len()).unwrap_or(u32::MAX).max(1);
    let tags = if of_each > 1 { tag_cuts(schema, metric, of_each) } else { Vec::new() };
    let mut pieces = Vec::new();
    for salt in layout.salts() {
        let bound = |time| layout.range_start(salt, metric, time);
        let mut starts: Vec<Vec<u8>> = Vec::new();
        for &cut in &cuts {
            starts.push(bound(cut));
            starts.extend(tags.iter().map(|tags| [&bound(cut)[..], tags].concat()));
        }
        let stops = starts.iter().skip(1).cloned().chain([bound(times.end)]).collect::<Vec<_>>();
        pieces.extend(starts.into_iter().zip(stops).map(|(start, stop)| Piece { salt, start, stop }));
    }
    pieces
}

/// Where ranges of whole hours begin, up to `wanted` of them.
fn time_cuts(times: &Range<BaseTime>, wanted: u32) -> Vec<BaseTime> {
    let first = times.start.seconds();
    let hours = times.end.seconds().saturating_sub(first).div_ceil(BaseTime::SPAN_S);
    let count = hours.clamp(1, wanted.max(1));
    let hour = |cut: u32| u32::try_from(u64::from(hours) * u64::from(cut) / u64::from(count)).unwrap_or(hours);
    (0..count).map(|cut| BaseTime::from_be_bytes((first + hour(cut) * BaseTime::SPAN_S).to_be_bytes())).collect()
}

/// Tags that cut the known series of a metric into `wanted` parts of about one size, or fewer where they are few.
fn tag_cuts(schema: &Schema, metric: Uid, wanted: u32) -> Vec<Vec<u8>> {
    /// Series looked at for each part.
    const SAMPLES: u64 = 16;
    let index = schema.index();
    let ids = index.series(metric);
    let parts = (ids.len() / SERIES_PER_PIECE).min(wanted.into());
    let samples = (parts * SAMPLES).min(ids.len());
    let at = |sample: u64| ids.select(u32::try_from(ids.len() * sample / samples).ok()?);
    let mut tsuids: Vec<_> = (0..samples).filter_map(|sample| index.tsuid(SeriesId(at(sample)?))).collect();
    tsuids.sort_unstable();
    tsuids.dedup();
    let tags = schema.layout().widths.metric.bytes()..;
    let cut = |part: u64| {
        let place = usize::try_from(tsuids.len() as u64 * part / parts).ok()?;
        Some(tsuids.get(place)?.as_bytes().get(tags.clone())?.to_vec())
    };
    let mut cuts: Vec<_> = (1..parts).filter_map(cut).collect();
    cuts.dedup();
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;
    use basalt_schema::{Salting, UidKind};

    /// The pieces of so many hours from 1,699,999,200 on, of a metric with so many known series.
    fn cut(salting: Salting, hours: u32, series: u64) -> (Fixture, Vec<Piece>) {
        let mut fixture = Fixture::new(salting);
        for host in 0..series {
            fixture.put(&format!("m 1700000000 1 host=h{host}"));
        }
        let schema = &fixture.schema;
        let metric = schema.uids().of(UidKind::Metric).uid("m").unwrap();
        let start = 1_699_999_200;
        let times = BaseTime::of_seconds(start)..BaseTime::of_seconds(start + hours * BaseTime::SPAN_S);
        let cut = pieces(schema, metric, &times);
        let layout = schema.layout();
        // Whatever is cut, each bucket's rows are all there, once each.
        for salt in layout.salts() {
            let of: Vec<&Piece> = cut.iter().filter(|piece| piece.salt == salt).collect();
            assert_eq!(of.first().unwrap().start, layout.range_start(salt, metric, times.start));
            assert_eq!(of.last().unwrap().stop, layout.range_start(salt, metric, times.end));
            assert!(of.iter().all(|piece| piece.start < piece.stop), "{of:?}");
            assert!(of.windows(2).all(|two| two[0].stop == two[1].start), "{of:?}");
        }
        (fixture, cut)
    }

    #[test]
    fn pieces_are_hours_first_and_series_then() {
        let count = |hours, series| cut(Salting::NONE, hours, series).1.len();
        assert_eq!(count(48, 1), 4, "twelve hours each");
        assert_eq!(count(5, 1), 4);
        assert_eq!(count(1, 1), 1, "of few series an hour is not cut");
        assert_eq!(count(1, 32), 2);
        assert_eq!(count(1, 100), 4);
        assert_eq!(count(2, 100), 4);
        assert_eq!(count(3, 100), 3);
    }

    #[test]
    fn many_buckets_are_pieces_enough() {
        let salting = Salting::new(1, 20).unwrap();
        assert_eq!(cut(salting, 48, 100).1.len(), 20);
    }

    #[test]
    fn known_series_are_spread_over_the_pieces_of_an_hour() {
        let (fixture, pieces) = cut(Salting::NONE, 1, 100);
        let schema = &fixture.schema;
        let metric = schema.uids().of(UidKind::Metric).uid("m").unwrap();
        let rows: Vec<Vec<u8>> = schema
            .index()
            .tsuids(&schema.index().series(metric))
            .into_iter()
            .map(|(_, tsuid)| schema.layout().series_key(&tsuid).row_key(BaseTime::of_seconds(1_700_000_000)))
            .collect();
        let of = |piece: &Piece| rows.iter().filter(|row| piece.start <= **row && **row < piece.stop).count();
        let counts: Vec<usize> = pieces.iter().map(of).collect();
        assert_eq!(counts.iter().sum::<usize>(), 100);
        assert!(counts.iter().all(|count| (20..=30).contains(count)), "{counts:?}");
    }
}
