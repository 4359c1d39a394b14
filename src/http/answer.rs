//! The JSON of `/api/query`, written piece by piece (`Q-MS`, `Q-ARRAYS`, `Q-NUMFMT`, `Q-NAN-OUT`).

use basalt_query::{Number, Point, QueryRequest, Series, SubAnswer};
use serde::Serialize;
use serde_json::json;

use super::number::write_double;

/// A piece is handed on when it is at least this long.
const PIECE_BYTES: usize = 64 << 10;
/// How many points are written between two looks at the piece's length.
const POINTS_AT_ONCE: usize = 1_024;

/// An answer to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer<'a> {
    request: &'a QueryRequest,
    answers: &'a [SubAnswer],
    strict: bool,
}

/// What a writer of pieces says: whether anybody still reads.
trait Sink: FnMut(Vec<u8>) -> bool {}
impl<F: FnMut(Vec<u8>) -> bool> Sink for F {}

impl<'a> Answer<'a> {
    /// `strict` writes a second twice where two points share it, as OpenTSDB does.
    pub(crate) fn new(request: &'a QueryRequest, answers: &'a [SubAnswer], strict: bool) -> Self {
        Self { request, answers, strict }
    }

    /// Hands pieces to `sink` and gives back the last one; `None` when nobody reads any more. An
    /// answer shorter than a piece never meets the sink.
    pub(crate) fn write(self, mut sink: impl FnMut(Vec<u8>) -> bool) -> Option<Vec<u8>> {
        let mut out = vec![b'['];
        for answer in self.answers {
            for series in &answer.series {
                if out.last() != Some(&b'[') || out.len() > 1 {
                    separate(&mut out);
                }
                self.series(&mut out, answer, series, &mut sink)?;
            }
        }
        if self.request.show_summary {
            separate(&mut out);
            value(&mut out, &json!({ "statsSummary": self.summary() }));
        }
        out.push(b']');
        Some(out)
    }

    fn series(&self, out: &mut Vec<u8>, answer: &SubAnswer, series: &Series, sink: &mut impl Sink) -> Option<()> {
        out.extend_from_slice(b"{\"metric\":");
        value(out, &*series.metric);
        out.extend_from_slice(b",\"tags\":{");
        for (place, (key, tag)) in series.tags.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            value(out, &**key);
            out.push(b':');
            value(out, &**tag);
        }
        out.extend_from_slice(b"},\"aggregateTags\":[");
        for (place, key) in series.aggregate_tags.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            value(out, &**key);
        }
        out.push(b']');
        if self.request.show_query
            && let Some(sub) = self.request.queries.get(answer.index)
        {
            member(out, "query", &sub.echo(answer.index));
        }
        if self.request.show_tsuids {
            member(out, "tsuids", &series.tsuids);
        }
        self.annotations(out, series);
        out.extend_from_slice(b",\"dps\":");
        self.points(out, answer.nan_as_null, &series.points, sink)?;
        if self.request.show_stats {
            member(out, "stats", &stats(answer));
        }
        out.push(b'}');
        Some(())
    }

    fn annotations(&self, out: &mut Vec<u8>, series: &Series) {
        if self.request.no_annotations || series.annotations.is_empty() {
            return;
        }
        out.extend_from_slice(b",\"annotations\":[");
        for (place, note) in series.annotations.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            out.extend_from_slice(&note.json);
        }
        out.push(b']');
    }

    fn points(&self, out: &mut Vec<u8>, nan_as_null: bool, points: &[Point], sink: &mut impl Sink) -> Option<()> {
        let arrays = self.request.arrays;
        out.push(if arrays { b'[' } else { b'{' });
        let mut first = true;
        let mut rest = points;
        while let Some((point, after)) = rest.split_first() {
            rest = after;
            let time = self.time(point);
            // Parsers keep the last of two members of one name, so only the last is written.
            if !arrays && !self.strict && after.first().is_some_and(|next| self.time(next) == time) {
                continue;
            }
            if !first {
                out.push(b',');
            }
            first = false;
            let (before, between, behind): (&[u8], &[u8], &[u8]) =
                if arrays { (b"[", b",", b"]") } else { (b"\"", b"\":", b"") };
            out.extend_from_slice(before);
            value(out, &time);
            out.extend_from_slice(between);
            number(out, point.number, nan_as_null);
            out.extend_from_slice(behind);
            if rest.len().is_multiple_of(POINTS_AT_ONCE) && out.len() >= PIECE_BYTES {
                let piece = std::mem::replace(out, Vec::with_capacity(PIECE_BYTES * 2));
                sink(piece).then_some(())?;
            }
        }
        out.push(if arrays { b']' } else { b'}' });
        Some(())
    }

    /// The point's time as it is printed.
    fn time(&self, point: &Point) -> i64 {
        if self.request.ms_resolution { point.time_ms } else { point.time_ms / 1_000 }
    }

    fn summary(&self) -> serde_json::Value {
        let sum = |pick: fn(&SubAnswer) -> u64| self.answers.iter().map(pick).sum::<u64>();
        json!({
            "rowsFromStorage": sum(|answer| answer.stats.rows),
            "columnsFromStorage": sum(|answer| answer.stats.cells),
            "bytesFromStorage": sum(|answer| answer.stats.bytes),
            "dpsPostFilter": sum(|answer| answer.stats.points),
            "emittedDPs": sum(|answer| answer.stats.emitted_points),
        })
    }
}

fn stats(answer: &SubAnswer) -> serde_json::Value {
    json!({
        "rowsFromStorage": answer.stats.rows,
        "columnsFromStorage": answer.stats.cells,
        "bytesFromStorage": answer.stats.bytes,
        "dpsPostFilter": answer.stats.points,
        "emittedDPs": answer.stats.emitted_points,
    })
}

fn number(out: &mut Vec<u8>, number: Number, nan_as_null: bool) {
    match number {
        Number::Integer(integer) => value(out, &integer),
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

fn value(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    // Into a Vec, and without maps of odd keys, this cannot fail.
    serde_json::to_writer(out, value).unwrap_or_default();
}
