//! `/api/query/last`: the newest points of series (`L-LAST`, `L-BACKSCAN`).

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use basalt_query::{Cancel, LastAnswer, LastMetric, LastRequest, LastTags, Number, QueryEngine, TagNames};
use basalt_schema::hex_into;

use super::answer::text;
use super::call::Call;
use super::error::ApiError;
use super::number::{write_double, write_integer};
use super::params::Params;
use super::whole;
use crate::app::App;
use crate::clock;

/// The query string.
pub(crate) async fn get(State(app): State<Arc<App>>, params: Params) -> Result<Response, ApiError> {
    let timeseries: Vec<&str> = params.all("timeseries").collect();
    let tsuids: Vec<&str> = params.all("tsuids").collect();
    let request = LastRequest::from_get(&timeseries, &tsuids, params.has("resolve"), params.last("back_scan"));
    run(app, request).await
}

/// A JSON body.
pub(crate) async fn post(State(app): State<Arc<App>>, call: Call) -> Result<Response, ApiError> {
    run(app, LastRequest::from_json(call.content()?)).await
}

async fn run(app: Arc<App>, request: basalt_query::Result<LastRequest>) -> Result<Response, ApiError> {
    let now_ms = clock::signed_now_ms();
    let look = move |queries: &QueryEngine, cancel: &Cancel| queries.last(&request?, now_ms, cancel);
    whole::in_pieces(app, "/api/query/last", look, write).await
}

/// Bytes of a point's text that are its own: time and value, and what stands about them.
const OWN_BYTES: usize = 64;
/// Room behind a piece for the point that ends it.
const ROOM_BYTES: usize = 4 << 10;

/// A piece is handed on when it is at least this long, which an answer of a few thousand points is not. With shorter ones the
/// connection's thread is woken so often that it costs what writing and sending at the same time spares.
const PIECE_BYTES: usize = 1 << 20;

/// Values are texts, as OpenTSDB's; members and tags stand in the order of their names. Hands pieces to `sink` and gives back the last
/// one; `None` when nobody reads any more.
fn write(answer: &LastAnswer, sink: &mut dyn FnMut(Vec<u8>) -> bool) -> Option<Vec<u8>> {
    let metrics: Vec<PointPart> = answer.metrics.iter().map(PointPart::metric).collect();
    let mut names = Tags::new(&answer.names);
    let tags: Vec<PointPart> = answer.tags.iter().map(|tags| PointPart::tags(tags, &mut names)).collect();
    let told = || answer.points.iter().filter_map(|of| Some((of, metrics.get(of.metric)?, tags.get(of.tags)?)));
    let bytes: usize = told().map(|(_, metric, tags)| metric.bytes() + tags.bytes() + OWN_BYTES).sum();
    let mut out = Vec::with_capacity((bytes + 2).min(PIECE_BYTES + ROOM_BYTES));
    out.push(b'[');
    // Most series end together: their time is written once.
    let (mut time_ms, mut time) = (None, Vec::new());
    let mut begun = false;
    for (point, metric, tags) in told() {
        if out.len() >= PIECE_BYTES {
            let room = Vec::with_capacity(PIECE_BYTES + ROOM_BYTES);
            sink(std::mem::replace(&mut out, room)).then_some(())?;
        }
        if begun {
            out.push(b',');
        }
        begun = true;
        let ((metric, metric_id), (tags, tags_id)) = (metric.parts(), tags.parts());
        out.extend_from_slice(metric);
        out.extend_from_slice(tags);
        if time_ms != Some(point.time_ms) {
            time_ms = Some(point.time_ms);
            time.clear();
            write_integer(&mut time, point.time_ms);
        }
        out.extend_from_slice(&time);
        out.extend_from_slice(metric_id);
        out.extend_from_slice(tags_id);
        match point.number {
            Number::Integer(integer) => write_integer(&mut out, integer),
            Number::Double(double) => write_double_bare(&mut out, double),
        }
        out.extend_from_slice(b"\"}");
    }
    out.push(b']');
    Some(out)
}

/// The text of a metric, or of a set of tags, in a point: its name, which stands before the time, and its id behind.
struct PointPart {
    text: Vec<u8>,
    name_bytes: usize,
}

impl PointPart {
    fn metric(metric: &LastMetric) -> Self {
        let mut out = vec![b'{'];
        if let Some(metric) = &metric.name {
            out.extend_from_slice(b"\"metric\":");
            text(&mut out, metric);
            out.push(b',');
        }
        let name_bytes = out.len();
        out.extend_from_slice(b",\"tsuid\":\"");
        hex_into(&metric.uid, &mut out);
        Self { text: out, name_bytes }
    }

    fn tags(of: &LastTags, tags: &mut Tags<'_>) -> Self {
        let names_bytes = of.names.as_ref().map_or(0, |names| tags.bytes(names));
        let mut out = Vec::with_capacity(names_bytes + 2 * of.uids.len() + OWN_BYTES);
        if let Some(names) = &of.names {
            out.extend_from_slice(b"\"tags\":{");
            tags.write(names, &mut out);
            out.extend_from_slice(b"},");
        }
        out.extend_from_slice(b"\"timestamp\":");
        let name_bytes = out.len();
        hex_into(&of.uids, &mut out);
        out.extend_from_slice(b"\",\"value\":\"");
        Self { text: out, name_bytes }
    }

    /// What stands before the time, and what stands behind.
    fn parts(&self) -> (&[u8], &[u8]) {
        self.text.split_at_checked(self.name_bytes).unwrap_or_default()
    }

    fn bytes(&self) -> usize {
        self.text.len()
    }
}

/// The tags of an answer, each written once: many sets have the same.
struct Tags<'a> {
    /// Each with its text, `"key":"value",`.
    tags: Vec<(&'a TagNames, Vec<u8>)>,
    /// Where the tags of the set before stood in it, in the order of their names.
    order: Vec<usize>,
}

impl<'a> Tags<'a> {
    fn new(names: &'a [TagNames]) -> Self {
        let written = |(key, tag): &TagNames| {
            let mut out = Vec::with_capacity(key.len() + tag.len() + 6);
            text(&mut out, key);
            out.push(b':');
            text(&mut out, tag);
            out.push(b',');
            out
        };
        Self { tags: names.iter().map(|names| (names, written(names))).collect(), order: Vec::new() }
    }

    /// Bytes of a set's text.
    fn bytes(&self, set: &[usize]) -> usize {
        set.iter().filter_map(|tag| self.tags.get(*tag)).map(|(_, text)| text.len()).sum()
    }

    /// Appends a set's tags by their names.
    fn write(&mut self, set: &[usize], out: &mut Vec<u8>) {
        let Self { tags, order } = self;
        let names = |place: &usize| set.get(*place).and_then(|tag| tags.get(*tag)).map(|(names, _)| *names);
        let key = |place: &usize| names(place).map(|(key, _)| key);
        // Fast path: sets have the same keys, so that the order of one is that of the next.
        if order.len() != set.len() || !order.is_sorted_by(|a, b| key(a) < key(b)) {
            order.clear();
            order.extend(0..set.len());
            order.sort_unstable_by_key(names);
        }
        for (_, text) in order.iter().filter_map(|place| tags.get(*set.get(*place)?)) {
            out.extend_from_slice(text);
        }
        // The last tag has no comma behind it.
        if !set.is_empty() {
            out.pop();
        }
    }
}

/// A double without quotes, also where JSON has no number for it.
fn write_double_bare(out: &mut Vec<u8>, double: f64) {
    let from = out.len();
    write_double(out, double);
    if !double.is_finite() {
        out.remove(from);
        out.pop();
    }
}

#[cfg(test)]
mod tests {
    use basalt_query::{LastPoint, TagNames};
    use serde_json::json;

    use super::*;

    /// What is written of an answer that is no longer than a piece.
    fn whole(answer: &LastAnswer) -> Vec<u8> {
        write(answer, &mut |_| panic!("it is one piece")).unwrap()
    }

    /// `L-LAST`: the members and forms that the real OpenTSDB wrote.
    #[test]
    fn a_point_is_written_as_opentsdb_writes_it() {
        let names = |key: &str, tag: &str| -> TagNames { (key.into(), tag.into()) };
        let metric = |name: Option<&str>| LastMetric { uid: [0, 0, 10].into(), name: name.map(Into::into) };
        let tags =
            |names: Option<[usize; 2]>| LastTags { uids: [0, 0, 1, 0, 0, 1].into(), names: names.map(Into::into) };
        let point = |metric, tags, number| LastPoint { metric, tags, time_ms: 1_007 + i64::from(metric == 1), number };
        let of = |metric, tags| point(metric, tags, Number::Integer(-3));
        let many = LastAnswer {
            points: vec![of(0, 0), of(0, 1), of(1, 0)],
            metrics: vec![metric(Some("m")), metric(Some("n"))],
            tags: vec![tags(Some([0, 1])), tags(Some([2, 1]))],
            names: vec![names("host", "a\""), names("dc", "x"), names("host", "b")],
        };
        let id = "00000A000001000001";
        let expected = json!([
            { "timestamp": 1007, "value": "-3", "tsuid": id, "metric": "m", "tags": { "dc": "x", "host": "a\"" } },
            { "timestamp": 1007, "value": "-3", "tsuid": id, "metric": "m", "tags": { "dc": "x", "host": "b" } },
            { "timestamp": 1008, "value": "-3", "tsuid": id, "metric": "n", "tags": { "dc": "x", "host": "a\"" } },
        ]);
        assert_eq!(String::from_utf8(whole(&many)).unwrap(), expected.to_string());
        let expected = json!([
            { "timestamp": 1007, "value": "1.0E-4", "tsuid": id },
            { "timestamp": 1007, "value": "NaN", "tsuid": id },
        ]);
        let bare = LastAnswer {
            points: vec![point(0, 0, Number::Double(1e-4)), point(0, 0, Number::Double(f64::NAN))],
            metrics: vec![metric(None)],
            tags: vec![tags(None)],
            names: Vec::new(),
        };
        assert_eq!(String::from_utf8(whole(&bare)).unwrap(), expected.to_string());
        assert_eq!(whole(&LastAnswer::default()), b"[]");
    }

    /// A long answer goes out in pieces that are together what it is whole, and no longer where nobody reads.
    #[test]
    fn a_long_answer_comes_in_pieces_and_ends_where_nobody_reads() {
        let point = |time_ms| LastPoint { metric: 0, tags: 0, time_ms, number: Number::Integer(7) };
        let answer = |count: i64| LastAnswer {
            points: (0..count).map(point).collect(),
            metrics: vec![LastMetric { uid: [0, 0, 10].into(), name: Some("m".into()) }],
            tags: vec![LastTags { uids: [0; 600].into(), names: None }],
            names: Vec::new(),
        };
        let one = String::from_utf8(whole(&answer(1))).unwrap();
        let one = one.strip_prefix('[').and_then(|one| one.strip_suffix(']')).unwrap();
        let each = |time_ms: i64| one.replace(":0,", &format!(":{time_ms},"));
        let expected = format!("[{}]", (0..3_000).map(each).collect::<Vec<_>>().join(","));
        let mut pieces = Vec::new();
        let mut keep = |piece: Vec<u8>| {
            assert!((PIECE_BYTES..PIECE_BYTES + ROOM_BYTES).contains(&piece.len()));
            pieces.push(piece);
            true
        };
        let last = write(&answer(3_000), &mut keep).unwrap();
        assert!(pieces.len() > 2 && last.len() < PIECE_BYTES + ROOM_BYTES);
        pieces.push(last);
        assert!(String::from_utf8(pieces.concat()).unwrap() == expected, "the pieces are not the whole");
        let mut asked = 0;
        let nobody = |_| {
            asked += 1;
            asked < 2
        };
        assert_eq!((write(&answer(3_000), &mut { nobody }), asked), (None, 2));
    }

    /// Sets with other keys, as many or not; with a key twice; and none: each as if it stood alone.
    #[test]
    fn tags_stand_in_the_order_of_their_names_whatever_the_set_before_had() {
        let told = [("b", "1"), ("a", "2"), ("c", "0"), ("b", "0"), ("a", "\\")];
        let names: Vec<TagNames> = told.iter().map(|(key, tag)| ((*key).into(), (*tag).into())).collect();
        let mut tags = Tags::new(&names);
        let sets: [&[usize]; 8] = [&[0, 1, 2], &[3, 4, 2], &[2, 0, 1], &[1], &[], &[0, 3], &[3, 0], &[2, 1, 3]];
        for set in sets {
            let mut sorted: Vec<&TagNames> = set.iter().map(|tag| &names[*tag]).collect();
            sorted.sort();
            let text = |text: &str| serde_json::to_string(text).unwrap();
            let each: Vec<String> = sorted.iter().map(|(key, tag)| format!("{}:{}", text(key), text(tag))).collect();
            let mut out = Vec::new();
            tags.write(set, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), each.join(","), "{set:?}");
        }
    }
}
