//! The JSON of `/api/query`, written piece by piece (`Q-MS`, `Q-ARRAYS`, `Q-NUMFMT`, `Q-NAN-OUT`).

mod points;

use basalt_query::{Number, Point, QueryRequest, Series, SeriesAnnotation, SubAnswer};
use std::time::{Duration, Instant};

use basalt_schema::Annotation;
use serde::Serialize;
use serde_json::json;

use self::points::PointHead;
use super::number::{write_double, write_integer};
use super::query_stats::QueryStats;

/// The first piece is handed on when it is at least this long, so that a short answer is on its way early.
const FIRST_PIECE_BYTES: usize = 64 << 10;
/// Each piece is twice as long as the one before, up to this: handing one on takes as long as thousands of points.
const PIECE_BYTES: usize = 512 << 10;
/// Room for what is written between two looks.
const ROOM_BYTES: usize = 64 << 10;
/// How many points come between two looks at the piece's length.
const POINTS_AT_ONCE: usize = 1_024;

/// An answer to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer<'a> {
    request: &'a QueryRequest,
    answers: &'a [SubAnswer],
    /// Global annotations of the range, told beside each series.
    globals: &'a [SeriesAnnotation],
    strict: bool,
    /// When the request came.
    began: Instant,
}

/// Where pieces go.
struct Pieces<F> {
    /// Says whether anybody still reads.
    sink: F,
    /// How long the coming piece is at least.
    bytes: usize,
}

impl<'a> Answer<'a> {
    /// `strict` writes a second twice where two points share it, as OpenTSDB does.
    pub(crate) fn new(request: &'a QueryRequest, answers: &'a [SubAnswer], strict: bool, began: Instant) -> Self {
        Self { request, answers, globals: &[], strict, began }
    }

    /// Adds global annotations.
    pub(crate) fn with_globals(self, globals: &'a [SeriesAnnotation]) -> Self {
        Self { globals, ..self }
    }

    /// Hands pieces to `sink` and gives back the last one; `None` when nobody reads any more. An
    /// answer shorter than a piece never meets the sink. `written` gets the time that each sub query's series took.
    pub(crate) fn write(self, written: &mut Vec<Duration>, sink: impl FnMut(Vec<u8>) -> bool) -> Option<Vec<u8>> {
        let mut pieces = Pieces { sink, bytes: FIRST_PIECE_BYTES };
        let mut out = vec![b'['];
        // The same beside each series, so written once.
        let mut globals = Vec::new();
        if !self.request.no_annotations {
            notes(&mut globals, "globalAnnotations", self.globals, self.strict);
        }
        for answer in self.answers {
            let began = Instant::now();
            for series in &answer.series {
                if out.last() != Some(&b'[') || out.len() > 1 {
                    separate(&mut out);
                }
                self.series(&mut out, answer, (series, &globals), &mut pieces)?;
                // Series may have no point at which it is handed on.
                pieces.hand_on(&mut out)?;
            }
            written.push(began.elapsed());
        }
        if self.request.show_summary {
            separate(&mut out);
            let summary = self.stats(written).summary(self.began.elapsed());
            value(&mut out, &json!({ "statsSummary": summary }));
        }
        out.push(b']');
        Some(out)
    }

    fn series(
        &self,
        out: &mut Vec<u8>,
        answer: &SubAnswer,
        (series, globals): (&Series, &[u8]),
        pieces: &mut Pieces<impl FnMut(Vec<u8>) -> bool>,
    ) -> Option<()> {
        let began = Instant::now();
        out.extend_from_slice(b"{\"metric\":");
        text(out, &series.metric);
        out.push(b',');
        tags(out, series.tags.iter().map(|(key, tag)| (&**key, &**tag)));
        out.extend_from_slice(b",\"aggregateTags\":[");
        for (place, key) in series.aggregate_tags.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            text(out, key);
        }
        out.push(b']');
        if self.request.show_query
            && let Some(sub) = self.request.queries.get(answer.index)
        {
            member(out, "query", &sub.echo(answer.index, answer.rollup.as_deref()));
        }
        if self.request.show_tsuids {
            member(out, "tsuids", &series.tsuids);
        }
        if !self.request.no_annotations {
            if series.lists_annotations && series.annotations.is_empty() {
                out.extend_from_slice(b",\"annotations\":[]");
            }
            notes(out, "annotations", &series.annotations, self.strict);
            for part in globals.chunks(PIECE_BYTES) {
                out.extend_from_slice(part);
                pieces.hand_on(out)?;
            }
        }
        out.extend_from_slice(b",\"dps\":");
        self.points(out, answer.nan_as_null, &series.points, pieces)?;
        if self.request.show_stats {
            member(out, "stats", &self.stats(&[]).of_series(answer, series, began.elapsed()));
        }
        out.push(b'}');
        Some(())
    }

    fn points(
        &self,
        out: &mut Vec<u8>,
        nan_as_null: bool,
        points: &[Point],
        pieces: &mut Pieces<impl FnMut(Vec<u8>) -> bool>,
    ) -> Option<()> {
        let arrays = self.request.arrays;
        out.push(if arrays { b'[' } else { b'{' });
        let (opening, between): (&[u8], &[u8]) = if arrays { (b",[", b",") } else { (b",\"", b"\":") };
        let mut head = PointHead::new(opening, between);
        let mut first = true;
        let mut rest = points;
        while let Some((point, after)) = rest.split_first() {
            rest = after;
            // Before a point is left out, which all looked at here might be.
            if rest.len().is_multiple_of(POINTS_AT_ONCE) {
                pieces.hand_on(out)?;
            }
            let time = self.time(point);
            // Parsers keep the last of two members of one name, so only the last is written.
            if !arrays && !self.strict && after.first().is_some_and(|next| self.time(next) == time) {
                continue;
            }
            head.write(out, time, first);
            first = false;
            number(out, point.number, nan_as_null);
            if arrays {
                out.push(b']');
            }
        }
        out.push(if arrays { b']' } else { b'}' });
        Some(())
    }

    /// The point's time as it is printed.
    fn time(&self, point: &Point) -> i64 {
        if self.request.ms_resolution { point.time_ms } else { point.time_ms / 1_000 }
    }

    fn stats<'b>(&self, written: &'b [Duration]) -> QueryStats<'b>
    where
        'a: 'b,
    {
        QueryStats { answers: self.answers, written, strict: self.strict }
    }
}

impl<F: FnMut(Vec<u8>) -> bool> Pieces<F> {
    /// Hands on what is long enough to be a piece; `None` when nobody reads any more.
    fn hand_on(&mut self, out: &mut Vec<u8>) -> Option<()> {
        if out.len() < self.bytes {
            return Some(());
        }
        self.bytes = PIECE_BYTES.min(self.bytes * 2);
        let piece = std::mem::replace(out, Vec::with_capacity(self.bytes + ROOM_BYTES));
        (self.sink)(piece).then_some(())
    }
}

/// Annotations by time; nothing when there are none. One that is no annotation of OpenTSDB's is told as stored.
///
/// OpenTSDB sorts by the number as sent, so that seconds come before milliseconds: `strict` does too.
fn notes(out: &mut Vec<u8>, name: &str, notes: &[SeriesAnnotation], strict: bool) {
    if notes.is_empty() {
        return;
    }
    let mut decoded: Vec<_> = notes.iter().map(|note| (note, Annotation::decode(&note.json).ok())).collect();
    if strict {
        decoded.sort_by_key(|(_, note)| note.as_ref().map(|note| note.start_time));
    }
    for (place, (stored, note)) in decoded.into_iter().enumerate() {
        out.push(b',');
        if place == 0 {
            value(out, name);
            out.extend_from_slice(b":[");
        }
        match note {
            Some(note) => value(out, &note),
            None => out.extend_from_slice(&stored.json),
        }
    }
    out.push(b']');
}

fn number(out: &mut Vec<u8>, number: Number, nan_as_null: bool) {
    match number {
        Number::Integer(integer) => write_integer(out, integer),
        Number::Double(double) if double.is_nan() && nan_as_null => out.extend_from_slice(b"null"),
        Number::Double(double) => write_double(out, double),
    }
}

/// A comma, unless something is just opened.
fn separate(out: &mut Vec<u8>) {
    if out.last() != Some(&b'[') {
        out.push(b',');
    }
}

fn member(out: &mut Vec<u8>, name: &str, text: &impl Serialize) {
    out.push(b',');
    value(out, name);
    out.push(b':');
    value(out, text);
}

/// Appends the member `tags`.
pub(super) fn tags<'t>(out: &mut Vec<u8>, tags: impl IntoIterator<Item = (&'t str, &'t str)>) {
    out.extend_from_slice(b"\"tags\":{");
    for (place, (key, tag)) in tags.into_iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        text(out, key);
        out.push(b':');
        text(out, tag);
    }
    out.push(b'}');
}

/// Appends a text as JSON.
pub(super) fn text(out: &mut Vec<u8>, text: &str) {
    // Fast path: nearly every name is written as it is.
    let is_plain = !text.bytes().any(|byte| byte < b' ' || byte == b'"' || byte == b'\\');
    if !is_plain {
        return value(out, text);
    }
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// Appends a value as JSON.
pub(super) fn value(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    // Into a Vec, and without maps of odd keys, this cannot fail.
    serde_json::to_writer(out, value).unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(request: &QueryRequest, strict: bool, points: &[(i64, Number)], expected_dps: &str) {
        let points = points.iter().map(|(time_ms, number)| Point { time_ms: *time_ms, number: *number }).collect();
        let series = Series { metric: "m".into(), tags: vec![("a".into(), "b\"".into())], points, ..Series::default() };
        let answers = [SubAnswer { nan_as_null: strict, series: vec![series], ..SubAnswer::default() }];
        let written = Answer::new(request, &answers, strict, Instant::now()).write(&mut Vec::new(), |_| true).unwrap();
        let head = r#"[{"metric":"m","tags":{"a":"b\""},"aggregateTags":[],"dps":"#;
        assert_eq!(String::from_utf8(written).unwrap(), format!("{head}{expected_dps}}}]"));
    }

    const POINTS: [(i64, Number); 3] =
        [(1_000, Number::Integer(1)), (1_500, Number::Double(2.0)), (2_000, Number::Double(f64::NAN))];

    /// `Q-MS`, `Q-ARRAYS`, `Q-NUMFMT`, `Q-NAN-OUT`.
    #[test]
    fn points_are_written_as_opentsdb_writes_them() {
        let ms = QueryRequest { ms_resolution: true, ..QueryRequest::default() };
        check(&ms, false, &POINTS, r#"{"1000":1,"1500":2.0,"2000":"NaN"}"#);
        let arrays = QueryRequest { arrays: true, ..QueryRequest::default() };
        check(&arrays, true, &POINTS, "[[1,1],[1,2.0],[2,null]]");
        check(&ms, false, &[], "{}");
    }

    /// A second that two points share: the last is what every parser keeps; OpenTSDB writes both.
    #[test]
    fn a_second_is_written_once_unless_strict() {
        check(&QueryRequest::default(), false, &POINTS, r#"{"1":2.0,"2":"NaN"}"#);
        check(&QueryRequest::default(), true, &POINTS, r#"{"1":1,"1":2.0,"2":null}"#);
    }

    /// `Q-ANNOT`.
    #[test]
    fn annotations_stand_before_the_points() {
        let note = |text: &str| SeriesAnnotation { start_ms: 1, json: text.as_bytes().into() };
        let stored = note(r#"{"startTime":5,"endTime":0,"description":"d","notes":"","custom":null}"#);
        let series = vec![Series { annotations: vec![stored, note("[1]")], ..Series::default() }];
        let answers = [SubAnswer { series, ..SubAnswer::default() }];
        let globals = [note("7")];
        let mut request = QueryRequest::default();
        let told = Answer::new(&request, &answers, false, Instant::now())
            .with_globals(&globals)
            .write(&mut Vec::new(), |_| true)
            .unwrap();
        let expected = r#""aggregateTags":[],"annotations":[{"tsuid":"","description":"d","notes":"","startTime":5,"endTime":0},[1]],"globalAnnotations":[7],"dps":{}}]"#;
        assert!(String::from_utf8(told).unwrap().ends_with(expected));
        request.no_annotations = true;
        let told = Answer::new(&request, &answers, false, Instant::now())
            .with_globals(&globals)
            .write(&mut Vec::new(), |_| true)
            .unwrap();
        assert!(String::from_utf8(told).unwrap().ends_with(r#""aggregateTags":[],"dps":{}}]"#));
    }

    /// `Q-LIMIT`: beside each series, and never a piece as long as all of them.
    #[test]
    fn many_global_annotations_go_in_pieces() {
        let note = || SeriesAnnotation { start_ms: 1, json: format!("\"{}\"", "x".repeat(9_998)).as_bytes().into() };
        let globals: Vec<SeriesAnnotation> = std::iter::repeat_with(note).take(300).collect();
        let answers = [SubAnswer { series: vec![Series::default(), Series::default()], ..SubAnswer::default() }];
        let (mut bytes, mut longest) = (0, 0);
        let request = QueryRequest::default();
        let answer = Answer::new(&request, &answers, false, Instant::now()).with_globals(&globals);
        let rest = answer.write(&mut Vec::new(), |piece| {
            (bytes, longest) = (bytes + piece.len(), longest.max(piece.len()));
            true
        });
        assert!(bytes + rest.unwrap().len() > 6_000_000 && longest <= 2 * PIECE_BYTES, "{longest} of {bytes}");
    }

    /// `Q-LIMIT`: the first and the last have a second of their own, so that of each pair the one that is not written comes at
    /// every multiple of points.
    #[test]
    fn points_that_share_a_second_go_in_pieces() {
        let at = |place: i64| Point { time_ms: 1_700_000_000_500 + place * 500, number: Number::Integer(1) };
        let series = vec![Series { points: (0..400_000).map(at).collect(), ..Series::default() }];
        let answers = [SubAnswer { series, ..SubAnswer::default() }];
        let (mut bytes, mut longest) = (0, 0);
        let request = QueryRequest::default();
        let rest = Answer::new(&request, &answers, false, Instant::now()).write(&mut Vec::new(), |piece| {
            (bytes, longest) = (bytes + piece.len(), longest.max(piece.len()));
            true
        });
        let rest = rest.unwrap().len();
        assert!(bytes + rest > 3_000_000 && longest.max(rest) <= 2 * PIECE_BYTES, "{longest} and {rest} of {bytes}");
    }

    /// As the JSON library writes them.
    #[test]
    fn texts_are_escaped_where_they_must_be() {
        for plain in ["", "host_1", "é/ü", "a\"b", "back\\slash", "line\nbreak", "\u{7f}\u{1f}", "\u{2028}"] {
            let mut out = Vec::new();
            text(&mut out, plain);
            assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(plain).unwrap());
        }
    }

    #[test]
    fn nothing_found_is_an_empty_list_and_nobody_reading_ends_it() {
        let request = QueryRequest { ms_resolution: true, ..QueryRequest::default() };
        assert_eq!(Answer::new(&request, &[], false, Instant::now()).write(&mut Vec::new(), |_| true).unwrap(), b"[]");
        let points = (0..200_000).map(|time_ms| Point { time_ms, number: Number::Integer(1) }).collect();
        let series = vec![Series { points, ..Series::default() }];
        let answers = [SubAnswer { series, ..SubAnswer::default() }];
        assert!(Answer::new(&request, &answers, false, Instant::now()).write(&mut Vec::new(), |_| false).is_none());
        let mut bytes = 0;
        let last = Answer::new(&request, &answers, false, Instant::now()).write(&mut Vec::new(), |piece| {
            bytes += piece.len();
            piece.len() < PIECE_BYTES + ROOM_BYTES
        });
        assert!(bytes > PIECE_BYTES && last.unwrap().ends_with(b"}}]"));
    }

    #[test]
    fn series_without_points_come_in_pieces_too() {
        const SERIES: usize = 30_000;
        let (request, series) = (QueryRequest::default(), vec![Series::default(); SERIES]);
        let answers = [SubAnswer { series, ..SubAnswer::default() }];
        let globals = [SeriesAnnotation { start_ms: 1, json: b"7".as_slice().into() }];
        let answer = Answer::new(&request, &answers, false, Instant::now()).with_globals(&globals);
        let mut pieces: Vec<Vec<u8>> = Vec::new();
        let last = answer.write(&mut Vec::new(), |piece| {
            pieces.push(piece);
            true
        });
        let bytes_at_least = (0..).map(|place| PIECE_BYTES.min(FIRST_PIECE_BYTES << place));
        assert!(pieces.len() > 5);
        for (piece, bytes) in pieces.iter().zip(bytes_at_least) {
            assert!((bytes..bytes + ROOM_BYTES).contains(&piece.len()), "{} of {bytes}", piece.len());
        }
        pieces.extend(last);
        let whole: serde_json::Value = serde_json::from_slice(&pieces.concat()).unwrap();
        let series = whole.as_array().unwrap();
        assert_eq!(series.len(), SERIES);
        let one = json!({ "metric": "", "tags": {}, "aggregateTags": [], "globalAnnotations": [7], "dps": {} });
        assert!(series.iter().all(|series| *series == one));
        assert!(answer.write(&mut Vec::new(), |_| false).is_none());
    }
}
