//! Where the rows of listed tags lie, so that a server seeks to them instead of looking at all of a metric's.
//!
//! ```text
//! of an hour, tags ascending by UID:   rows that begin with a key below k │ k v1 .. │ .. │ k v2 .. │ ..
//!                                      may have k later: a pattern tells  │ wanted  │ no │ wanted  │ no
//! ```
//!
//! The key with the least UID of those that a filter lists values for is the one that is looked for: often it is the first that was
//! given out, and then nothing lies before it.

use basalt_schema::{BaseTime, Salt, Schema, Uid};
use basalt_store::{RowRange, Scan};
use bytes::Bytes;

use crate::piece::Piece;

/// Ranges of a scan; a request carries them all.
const RANGES_MAX: usize = 512;
/// The least UID that is given out; nothing has a smaller one.
const UID_MIN: u64 = 1;

/// Values of one key, one of which a wanted row has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) tagk: Uid,
    /// Ascending, each once.
    pub(crate) values: Vec<Uid>,
}

/// The rows of some hours of a metric that may have a listed tag.
#[derive(Debug)]
pub(crate) struct RowRanges<'a> {
    schema: &'a Schema,
    metric: Uid,
    bases: Vec<BaseTime>,
    listed: &'a Listed,
}

impl<'a> RowRanges<'a> {
    /// `None` where they were too many for a request.
    pub(crate) fn new(
        schema: &'a Schema,
        metric: Uid,
        bases: impl Iterator<Item = BaseTime>,
        listed: &'a Listed,
    ) -> Option<Self> {
        let hours_max = RANGES_MAX / (listed.values.len() + 1);
        let bases: Vec<BaseTime> = bases.take(hours_max + 1).collect();
        (bases.len() <= hours_max).then_some(Self { schema, metric, bases, listed })
    }

    /// Those within a piece, ascending; what a piece holds beside them is not wanted.
    pub(crate) fn within(&self, piece: &Piece) -> Vec<RowRange> {
        let all = self.bases.iter().flat_map(|base| self.of_hour(piece.salt, *base));
        let within = all.map(|RowRange { start, stop }| RowRange {
            start: start.max(Bytes::copy_from_slice(&piece.start)),
            stop: stop.min(Bytes::copy_from_slice(&piece.stop)),
        });
        within.filter(|range| range.start < range.stop).collect()
    }

    fn of_hour(&self, salt: Salt, base: BaseTime) -> Vec<RowRange> {
        let layout = self.schema.layout();
        let hour = layout.range_start(salt, self.metric, base);
        let mut key = hour.clone();
        self.listed.tagk.encode_into(layout.widths.tagk, &mut key);
        let mut ranges = Vec::with_capacity(self.listed.values.len() + 1);
        if self.listed.tagk.number() > UID_MIN {
            ranges.push(RowRange { start: hour.into(), stop: Bytes::copy_from_slice(&key) });
        }
        ranges.extend(self.listed.values.iter().map(|value| {
            let mut pair = key.clone();
            value.encode_into(layout.widths.tagv, &mut pair);
            let Scan { start, stop, .. } = Scan::prefix(&pair);
            RowRange { start, stop }
        }));
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;
    use crate::piece::pieces;
    use crate::{Cancel, Limits, Options, QueryEngine, QueryRequest, SubQuery};
    use basalt_schema::{Salting, UidKind};
    use std::sync::Arc;

    const START_S: u32 = 1_699_999_200;

    /// Which of the fixture's rows lie within the ranges of two hours for these values of a key.
    fn found(fixture: &Fixture, tagk: &str, values: &[&str]) -> Vec<String> {
        let schema = &fixture.schema;
        let uid = |kind, name: &str| schema.uids().of(kind).uid(name).unwrap();
        let mut values: Vec<Uid> = values.iter().map(|value| uid(UidKind::Tagv, value)).collect();
        values.sort_unstable();
        let listed = Listed { tagk: uid(UidKind::Tagk, tagk), values };
        let metric = uid(UidKind::Metric, "m");
        let bases = [START_S, START_S + 3600].map(BaseTime::of_seconds);
        let ranges = RowRanges::new(schema, metric, bases.into_iter(), &listed).unwrap();
        let times = bases[0]..BaseTime::of_seconds(START_S + 7200);
        let within: Vec<RowRange> =
            pieces(schema, metric, &times).iter().flat_map(|piece| ranges.within(piece)).collect();
        assert!(within.windows(2).all(|two| two[0].stop <= two[1].start), "{within:?}");
        let mut found = Vec::new();
        for (_, tsuid) in schema.index().tsuids(&schema.index().series(metric)) {
            for base in bases {
                let row = schema.layout().series_key(&tsuid).row_key(base);
                if within.iter().any(|range| range.start <= row && row < range.stop) {
                    let pair = tsuid.pairs(schema.layout().widths).last().unwrap();
                    found.push(schema.uids().of(UidKind::Tagv).name(pair.value).unwrap().to_string());
                }
            }
        }
        found
    }

    #[test]
    fn rows_of_the_listed_values_are_within_and_so_is_what_a_lower_key_begins() {
        let mut fixture = Fixture::new(Salting::NONE);
        for (host, dc) in [("a", "x"), ("b", "y"), ("c", "z")] {
            fixture.put(&format!("m 1700000000 1 host={host}"));
            fixture.put(&format!("m 1700000000 1 host={host} dc={dc}"));
        }
        fixture.put("m 1700000000 1 dc=w");
        assert_eq!(found(&fixture, "host", &["b"]), ["b", "b", "y", "y"], "nothing has a key before it");
        assert_eq!(found(&fixture, "host", &["a", "c"]), ["a", "a", "x", "x", "c", "c", "z", "z"]);
        assert_eq!(found(&fixture, "host", &[]), [""; 0]);
        let all_hosts = ["a", "a", "x", "x", "b", "b", "y", "y", "c", "c", "z", "z"];
        assert_eq!(found(&fixture, "dc", &["w"]), [&all_hosts[..], &["w", "w"]].concat());
        assert_eq!(found(&fixture, "dc", &["x"]), all_hosts);
    }

    /// Over shared tables rows are looked for by ranges, in pieces and by patterns, and put together again; the one daemon of
    /// a table knows all series. One hour is cut by series, five are by time; one series of eight lacks a tag that is asked
    /// for, and from the third hour on values are doubles.
    #[test]
    fn answers_are_those_of_a_daemon_that_knows_every_series() {
        let mut fixture = Fixture::new(Salting::NONE);
        for hour in 0..5 {
            for host in 0..40 {
                let dc = if host % 8 == 0 { String::new() } else { format!(" dc=d{}", host % 3) };
                let half = if hour < 2 { "" } else { ".5" };
                for minute in [3, 17, 59] {
                    let time = START_S + hour * 3600 + minute * 60 + host;
                    fixture.put(&format!("m {time} {}{half} host=h{host}{dc}", hour * 100 + host + minute));
                }
            }
        }
        let known = fixture.another(false);
        let ask = |schema: &Arc<Schema>, hours: u32, text: &str| {
            let request = QueryRequest {
                start: Some(START_S.to_string()),
                end: Some((START_S + hours * 3600 - 1).to_string()),
                queries: vec![SubQuery::from_metric_text(text).unwrap()],
                ..QueryRequest::default()
            };
            let engine = QueryEngine::new(Arc::clone(schema), Options::default(), Limits::default());
            let answers = engine.run(&request, 0, &Cancel::new()).unwrap();
            format!("{:?}", answers[0].series)
        };
        for asked in [
            "sum:m",
            "none:m",
            "sum:10m-avg:m",
            "sum:2h-sum:m",
            "sum:rate:m",
            "sum:m{host=h3}",
            "sum:m{host=h3|h17}",
            "sum:m{dc=d1}",
            "sum:m{host=*,dc=d2}",
            "sum:m{host=h1|h2|h3,dc=d1|d2}",
            "sum:m{dc=*}",
            "sum:m{host=wildcard(h1*)}",
        ] {
            for hours in [1, 2, 5] {
                let expected = ask(&known, hours, asked);
                assert!(expected.contains("time_ms"), "{asked}: {expected}");
                let shared = fixture.another(true);
                // Asked twice, since what is known by then is asked for otherwise.
                for _ in 0..2 {
                    assert_eq!(ask(&shared, hours, asked), expected, "{asked}, {hours} hours");
                }
            }
        }
    }

    #[test]
    fn what_does_not_fit_a_request_is_not_cut() {
        let fixture = Fixture::with(&["m 1700000000 1 host=a"]);
        let listed = Listed { tagk: Uid::ZERO, values: vec![Uid::ZERO; 15] };
        let of = |hours: u32| {
            let bases = (0..hours).map(|hour| BaseTime::of_seconds(START_S + hour * 3600));
            RowRanges::new(&fixture.schema, Uid::ZERO, bases, &listed).is_some()
        };
        assert!(of(32));
        assert!(!of(33));
    }
}
