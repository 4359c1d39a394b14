//! The laws that the parsers of known points, rollups and histograms keep for any text. Fuzzing and property tests share them.
//!
//! Each law takes any bytes, and panics where a parser breaks it. This module is compiled only for tests and for `--cfg fuzzing`.

use basalt_schema::{KeyLayout, Salting, SeriesId, Tsuid, Uid, UidWidths};
use serde::Serialize;

use crate::histogram::check_histogram;
use crate::put_body::parse_known;
use crate::put_lines::parse_known_block;
use crate::series_cache::{KnownSeries, SeriesCache};
use crate::{
    Form, HistogramEcho, IngestLimits, RawPoint, Result, RollupEcho, decode_text, parse_histogram_line,
    parse_histograms, parse_put, parse_put_line, parse_rollup_line, parse_rollups,
};

/// A law: any bytes are read or refused.
pub type Law = fn(&[u8]);

/// All laws of this crate by the names of their fuzz targets.
pub const LAWS: [(&str, Law); 4] =
    [("histogram", histogram), ("put_block", put_block), ("put_known", put_known), ("rollup", rollup)];

/// The codec that histograms are checked against.
const CODEC: u8 = 42;

/// Bodies and lines of histograms. One that is right makes a cell of its codec.
fn histogram(bytes: &[u8]) {
    let text = decode_text(bytes);
    let body = parse_histograms(&text, &limits());
    if let Ok(histograms) = &body {
        for one in histograms {
            echoes(&one.point, &HistogramEcho(one));
        }
    }
    taken(&body);
    for one in body.into_iter().flatten().chain(parse_histogram_line(&text)) {
        match check_histogram(&one, CODEC) {
            Ok((_, value)) => assert_eq!(value.first(), Some(&CODEC), "BUG: a cell of another codec"),
            Err(problem) => assert!(!problem.telnet_text("histogram").is_empty(), "BUG: refused without a word"),
        }
    }
}

/// Put bodies whose series are all known, or none of them: they read the same as where no series is looked up.
fn put_known(bytes: &[u8]) {
    let text = decode_text(bytes);
    let points = parse_put(&text, &limits());
    taken(&points);
    let told = told(points);
    let known = cache(told.as_deref().unwrap_or_default());
    for cache in [known, cache(&[])] {
        assert_eq!(self::told(parse_known(&text, &limits(), &cache.read(1))), told, "BUG: other points: {text}");
    }
}

/// Blocks of lines whose series are all known, or none of them: a block reads the same as its lines one by one.
fn put_block(bytes: &[u8]) {
    let text = decode_text(bytes);
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let points: Vec<_> = lines.iter().map(|line| parse_put_line(line)).collect();
    let good: Vec<_> = points.iter().flatten().copied().collect();
    for cache in [cache(&good), cache(&[])] {
        let Some(read) = parse_known_block(bytes, &cache.read(1)) else { continue };
        let read: Vec<_> = read.into_iter().map(|point| Ok(RawPoint { spelled: None, ..point })).collect();
        assert_eq!(read, points, "BUG: other points: {text}");
        assert!(lines.iter().all(|line| line.ends_with('\n')), "BUG: a line without its end: {text}");
    }
}

/// The points that were read, without the places where their series were found.
pub(crate) fn told(read: Result<Vec<RawPoint<'_>>>) -> std::result::Result<Vec<RawPoint<'_>>, String> {
    read.map(|points| points.into_iter().map(|point| RawPoint { spelled: None, ..point }).collect())
        .map_err(|error| format!("{error:?}"))
}

/// A cache that knows the spellings of these points, under generation 1.
pub(crate) fn cache(points: &[RawPoint<'_>]) -> SeriesCache {
    let layout = KeyLayout { salting: Salting::NONE, widths: UidWidths::default() };
    let key = layout.series_key(&Tsuid::new(Uid::new(1), &[], layout.widths));
    let cache = SeriesCache::new(1_000);
    for point in points {
        cache.insert(cache.fingerprint_of(point), 1, KnownSeries { id: SeriesId(0), key: key.clone() });
    }
    cache
}

/// Bodies and lines of rollups.
fn rollup(bytes: &[u8]) {
    let text = decode_text(bytes);
    let body = parse_rollups(&text, &limits());
    if let Ok(rollups) = &body {
        for one in rollups {
            echoes(&one.point, &RollupEcho(one));
        }
    }
    taken(&body);
    match parse_rollup_line(&text) {
        Ok(one) => assert!(one.point.timestamp > 0, "BUG: a line at no time"),
        Err(problem) => assert!(!problem.telnet_text("rollup").is_empty(), "BUG: refused without a word"),
    }
}

fn limits() -> IngestLimits {
    IngestLimits { body_points_max: 1_000, ..IngestLimits::default() }
}

/// A point that was taken can be echoed, and its echo is `null` only if it was `null`.
fn echoes(point: &RawPoint<'_>, echo: &impl Serialize) {
    let told = serde_json::to_value(echo).ok();
    assert_eq!(told.map(|told| told.is_null()), Some(point.form == Form::Null), "BUG: another echo");
}

fn taken<T>(body: &Result<Vec<T>>) {
    match body {
        Ok(all) => assert!((1..=1_000).contains(&all.len()), "BUG: a body of {} points", all.len()),
        Err(error) => assert!(!error.message_and_details().0.is_empty(), "BUG: refused without a word"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FIELDS: &str = concat!(
        r#"\[?(\{("(metric|timestamp|value|tags|interval|aggregator|groupByAggregator|id|buckets|underflow|overflow)":"#,
        r#"("a"|1|-1|1\.5|null|\{\}|\{"a":"b"\}|\{"0,1\.5":[0-9]{1,20}\}|"1m"|"sum"|42|"AAIA"|\[\]),){0,9}"x":1\},?){0,2}\]?"#
    );

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn any_text_of_rollups_and_histograms_is_read_or_refused(
            bytes in proptest::collection::vec(any::<u8>(), 0..60),
            object in FIELDS,
            line in "(histogram|rollup) m? ?[1-9]{0,4} (42|0,1=[0-9]{1,20}|0,1=3:1,2\\.5=4:u=5:o=|1m-sum:?|sum)[ :,=]{0,2}[0-9aA/=+-]{0,12} ?(a=b)?",
        ) {
            for (_, law) in LAWS {
                law(&bytes);
                law(object.as_bytes());
                law(line.as_bytes());
            }
        }
    }
}
