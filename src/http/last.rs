//! `/api/query/last`: the newest points of series (`L-LAST`, `L-BACKSCAN`).

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use basalt_query::{LastPoint, LastRequest, Number};

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
    out.push(b'[');
    for (place, point) in points.iter().enumerate() {
        out.extend_from_slice(if place > 0 { b",{" } else { b"{" });
        if let Some(names) = &point.names {
            out.extend_from_slice(b"\"metric\":");
            text(&mut out, &names.metric);
            out.extend_from_slice(b",\"tags\":{");
            let mut tags: Vec<(&str, &str)> = names.tags.iter().map(|(key, tag)| (&**key, &**tag)).collect();
            tags.sort_unstable();
            for (place, (key, tag)) in tags.into_iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                text(&mut out, key);
                out.push(b':');
                text(&mut out, tag);
            }
            out.extend_from_slice(b"},");
        }
        out.extend_from_slice(b"\"timestamp\":");
        write_integer(&mut out, point.time_ms);
        out.extend_from_slice(b",\"tsuid\":");
        text(&mut out, &point.tsuid);
        out.extend_from_slice(b",\"value\":\"");
        match point.number {
            Number::Integer(integer) => write_integer(&mut out, integer),
            Number::Double(double) => write_double_bare(&mut out, double),
        }
        out.extend_from_slice(b"\"}");
    }
    out.push(b']');
    out
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
    use serde_json::json;

    use super::*;

    /// `L-LAST`: the members and forms that the real OpenTSDB wrote.
    #[test]
    fn a_point_is_written_as_opentsdb_writes_it() {
        let tags = vec![("host".into(), "a\"".into()), ("dc".into(), "x".into())];
        let names = LastNames { metric: "m".into(), tags };
        let point = LastPoint { names: None, time_ms: 1_007, number: Number::Double(1e-4), tsuid: "0A".to_owned() };
        let named = LastPoint { names: Some(names), number: Number::Integer(-3), ..point.clone() };
        let expected = json!([
            { "timestamp": 1007, "value": "1.0E-4", "tsuid": "0A" },
            { "timestamp": 1007, "value": "-3", "tsuid": "0A", "metric": "m", "tags": { "dc": "x", "host": "a\"" } },
            { "timestamp": 1007, "value": "NaN", "tsuid": "0A" },
        ]);
        let nan = LastPoint { number: Number::Double(f64::NAN), ..point.clone() };
        assert_eq!(String::from_utf8(write(&[point, named, nan])).unwrap(), expected.to_string());
        assert_eq!(write(&[]), b"[]");
    }
}
