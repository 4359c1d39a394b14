//! `/api/query/last`: the newest points of series (`L-LAST`, `L-BACKSCAN`).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use basalt_query::{LastPoint, LastRequest, Number, TagNames};

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
        let points = queries.last(&request?, now_ms, cancel)?;
        Ok(write(&points))
    })
    .await
}

/// About how long a point is, with names and without.
const NAMED_BYTES: usize = 320;
const BARE_BYTES: usize = 128;

/// Values are texts, as OpenTSDB's; members and tags stand in the order of their names.
fn write(points: &[LastPoint]) -> Vec<u8> {
    let named = points.first().is_some_and(|point| point.names.is_some());
    let mut out = Vec::with_capacity(points.len() * if named { NAMED_BYTES } else { BARE_BYTES } + 2);
    let mut tags_written = TagsWritten::default();
    out.push(b'[');
    for (place, point) in points.iter().enumerate() {
        out.extend_from_slice(if place > 0 { b",{" } else { b"{" });
        if let Some(names) = &point.names {
            out.extend_from_slice(b"\"metric\":");
            text(&mut out, &names.metric);
            tags_written.put(&mut out, &names.tags);
        }
        out.extend_from_slice(b"\"timestamp\":");
        write_integer(&mut out, point.time_ms);
        out.extend_from_slice(b",\"tsuid\":\"");
        point.tsuid.show_into(&mut out);
        out.extend_from_slice(b"\",\"value\":\"");
        match point.number {
            Number::Integer(integer) => write_integer(&mut out, integer),
            Number::Double(double) => write_double_bare(&mut out, double),
        }
        out.extend_from_slice(b"\"}");
    }
    out.push(b']');
    out
}

/// Where in an answer each list of tags was written first, by where it lies in memory: the series of a host share theirs.
#[derive(Default)]
struct TagsWritten(HashMap<*const [TagNames], Range<usize>>);

impl TagsWritten {
    fn put(&mut self, out: &mut Vec<u8>, tags: &Arc<[TagNames]>) {
        let start = out.len();
        match self.0.entry(Arc::as_ptr(tags)) {
            Entry::Occupied(written) => out.extend_from_within(written.get().clone()),
            Entry::Vacant(new) => {
                write_tags(out, tags);
                new.insert(start..out.len());
            }
        }
    }
}

fn write_tags(out: &mut Vec<u8>, names: &[TagNames]) {
    let mut sorted: Vec<(&str, &str)> = names.iter().map(|(key, tag)| (&**key, &**tag)).collect();
    sorted.sort_unstable();
    out.push(b',');
    tags(out, sorted);
    out.push(b',');
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
    use basalt_query::LastNames;
    use basalt_schema::{Tsuid, UidWidths};
    use serde_json::json;

    use super::*;

    /// `L-LAST`: the members and forms that the real OpenTSDB wrote.
    #[test]
    fn a_point_is_written_as_opentsdb_writes_it() {
        let tags =
            |host: &str| -> Arc<[TagNames]> { vec![("host".into(), host.into()), ("dc".into(), "x".into())].into() };
        let (quoted, other) = (tags("a\""), tags("b"));
        let named =
            |metric: &str, tags: &Arc<[TagNames]>| Some(LastNames { metric: metric.into(), tags: Arc::clone(tags) });
        let tsuid = Tsuid::parse("00000A000001000001", UidWidths::default()).unwrap();
        let point = LastPoint { names: None, time_ms: 1_007, number: Number::Double(1e-4), tsuid };
        let of = |names| LastPoint { names, number: Number::Integer(-3), ..point.clone() };
        let many = [of(named("m", &quoted)), of(named("m", &other)), of(named("n", &quoted))];
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
        let nan = LastPoint { number: Number::Double(f64::NAN), ..point.clone() };
        assert_eq!(String::from_utf8(write(&[point, nan])).unwrap(), expected.to_string());
        assert_eq!(write(&[]), b"[]");
    }
}
