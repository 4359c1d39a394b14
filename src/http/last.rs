//! `/api/query/last`: the newest points of series (`L-LAST`, `L-BACKSCAN`).

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use basalt_query::{LastPoint, LastRequest, Number};
use serde_json::json;

use super::call::Call;
use super::error::ApiError;
use super::number::write_double;
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

/// Values are texts, as OpenTSDB's.
fn write(points: &[LastPoint]) -> Vec<u8> {
    let one = |point: &LastPoint| {
        let value = match point.number {
            Number::Integer(value) => value.to_string(),
            Number::Double(value) => {
                let mut text = Vec::new();
                write_double(&mut text, value);
                String::from_utf8_lossy(&text).trim_matches('"').to_owned()
            }
        };
        let mut out = json!({ "timestamp": point.time_ms, "value": value, "tsuid": point.tsuid });
        if let (Some(out), Some(names)) = (out.as_object_mut(), &point.names) {
            let tags = names.tags.iter().map(|(key, value)| (key.to_string(), json!(**value)));
            out.insert("metric".to_owned(), json!(*names.metric));
            out.insert("tags".to_owned(), tags.collect::<serde_json::Map<_, _>>().into());
        }
        out
    };
    json!(points.iter().map(one).collect::<Vec<_>>()).to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use basalt_query::LastNames;

    use super::*;

    /// `L-LAST`: the members and forms that the real OpenTSDB wrote.
    #[test]
    fn a_point_is_written_as_opentsdb_writes_it() {
        let names = LastNames { metric: "m".into(), tags: vec![("host".into(), "a".into())] };
        let point = LastPoint { names: None, time_ms: 1_007, number: Number::Double(1e-4), tsuid: "0A".to_owned() };
        let named = LastPoint { names: Some(names), number: Number::Integer(-3), ..point.clone() };
        let expected = json!([
            { "timestamp": 1007, "value": "1.0E-4", "tsuid": "0A" },
            { "timestamp": 1007, "value": "-3", "tsuid": "0A", "metric": "m", "tags": { "host": "a" } },
        ]);
        let written: serde_json::Value = serde_json::from_slice(&write(&[point, named])).unwrap();
        assert_eq!(written, expected);
        assert_eq!(write(&[]), b"[]");
    }
}
