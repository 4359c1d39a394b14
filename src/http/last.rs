//! `/api/query/last`: the newest points of series (`L-LAST`, `L-BACKSCAN`).

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use basalt_query::{LastAnswer, LastMetric, LastRequest, LastTags, Number};
use basalt_schema::hex_into;

use super::answer::{tags, text};
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
    if call.body.is_empty() {
        return Err(ApiError::missing_body());
    }
    run(app, LastRequest::from_json(&call.body)).await
}

async fn run(app: Arc<App>, request: basalt_query::Result<LastRequest>) -> Result<Response, ApiError> {
    let now_ms = i64::try_from(clock::now_ms()).unwrap_or(i64::MAX);
    whole::answer(app, move |queries, cancel| {
        let answer = queries.last(&request?, now_ms, cancel)?;
        Ok(write(&answer))
    })
    .await
}

/// Bytes of a point's text that are its own: time and value, and what stands about them.
const OWN_BYTES: usize = 64;

/// Values are texts, as OpenTSDB's; members and tags stand in the order of their names.
fn write(answer: &LastAnswer) -> Vec<u8> {
    let metrics: Vec<Told> = answer.metrics.iter().map(Told::metric).collect();
    let tags: Vec<Told> = answer.tags.iter().map(Told::tags).collect();
    let told = || answer.points.iter().filter_map(|of| Some((of, metrics.get(of.metric)?, tags.get(of.tags)?)));
    let bytes: usize = told().map(|(_, metric, tags)| metric.bytes() + tags.bytes() + OWN_BYTES).sum();
    let mut out = Vec::with_capacity(bytes + 2);
    out.push(b'[');
    for (point, metric, tags) in told() {
        out.extend_from_slice(&metric.name);
        out.extend_from_slice(&tags.name);
        write_integer(&mut out, point.time_ms);
        out.extend_from_slice(&metric.id);
        out.extend_from_slice(&tags.id);
        match point.number {
            Number::Integer(integer) => write_integer(&mut out, integer),
            Number::Double(double) => write_double_bare(&mut out, double),
        }
        out.extend_from_slice(b"\"},");
    }
    // The last point has no comma behind it.
    if out.len() > 1 {
        out.pop();
    }
    out.push(b']');
    out
}

/// The text of a metric, or of a set of tags, in a point: what stands before the time, and what stands behind.
struct Told {
    name: Vec<u8>,
    id: Vec<u8>,
}

impl Told {
    fn metric(metric: &LastMetric) -> Self {
        let (mut name, mut id) = (vec![b'{'], b",\"tsuid\":\"".to_vec());
        if let Some(metric) = &metric.name {
            name.extend_from_slice(b"\"metric\":");
            text(&mut name, metric);
            name.push(b',');
        }
        hex_into(&metric.uid, &mut id);
        Self { name, id }
    }

    fn tags(of: &LastTags) -> Self {
        let mut id = Vec::with_capacity(2 * of.uids.len() + OWN_BYTES);
        let mut name = Vec::new();
        if let Some(names) = &of.names {
            let mut sorted: Vec<(&str, &str)> = names.iter().map(|(key, tag)| (&**key, &**tag)).collect();
            sorted.sort_unstable();
            // Two pairs of quotes, a colon and a comma.
            name.reserve(sorted.iter().map(|(key, tag)| key.len() + tag.len() + 6).sum::<usize>() + OWN_BYTES);
            tags(&mut name, sorted);
            name.push(b',');
        }
        name.extend_from_slice(b"\"timestamp\":");
        hex_into(&of.uids, &mut id);
        id.extend_from_slice(b"\",\"value\":\"");
        Self { name, id }
    }

    fn bytes(&self) -> usize {
        self.name.len() + self.id.len()
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

    /// `L-LAST`: the members and forms that the real OpenTSDB wrote.
    #[test]
    fn a_point_is_written_as_opentsdb_writes_it() {
        let names =
            |host: &str| -> Box<[TagNames]> { [("host".into(), host.into()), ("dc".into(), "x".into())].into() };
        let metric = |name: Option<&str>| LastMetric { uid: [0, 0, 10].into(), name: name.map(Into::into) };
        let tags = |names| LastTags { uids: [0, 0, 1, 0, 0, 1].into(), names };
        let point = |metric, tags, number| LastPoint { metric, tags, time_ms: 1_007, number };
        let of = |metric, tags| point(metric, tags, Number::Integer(-3));
        let many = LastAnswer {
            points: vec![of(0, 0), of(0, 1), of(1, 0)],
            metrics: vec![metric(Some("m")), metric(Some("n"))],
            tags: vec![tags(Some(names("a\""))), tags(Some(names("b")))],
        };
        let id = "00000A000001000001";
        let expected = json!([
            { "timestamp": 1007, "value": "-3", "tsuid": id, "metric": "m", "tags": { "dc": "x", "host": "a\"" } },
            { "timestamp": 1007, "value": "-3", "tsuid": id, "metric": "m", "tags": { "dc": "x", "host": "b" } },
            { "timestamp": 1007, "value": "-3", "tsuid": id, "metric": "n", "tags": { "dc": "x", "host": "a\"" } },
        ]);
        assert_eq!(String::from_utf8(write(&many)).unwrap(), expected.to_string());
        let expected = json!([
            { "timestamp": 1007, "value": "1.0E-4", "tsuid": id },
            { "timestamp": 1007, "value": "NaN", "tsuid": id },
        ]);
        let bare = LastAnswer {
            points: vec![point(0, 0, Number::Double(1e-4)), point(0, 0, Number::Double(f64::NAN))],
            metrics: vec![metric(None)],
            tags: vec![tags(None)],
        };
        assert_eq!(String::from_utf8(write(&bare)).unwrap(), expected.to_string());
        assert_eq!(write(&LastAnswer::default()), b"[]");
    }
}
