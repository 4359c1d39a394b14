//! `/api/query/exp`: expressions over metrics (`E-EXP`, `E-EXP-JOIN`, `E-EXP-NEST`).

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use basalt_query::{ExpressionRequest, OutputAnswer, OutputSeries};
use serde_json::{Map, Value, json};

use super::call::Call;
use super::error::ApiError;
use super::number::write_double;
use super::whole;
use crate::app::App;
use crate::clock;

/// A JSON body.
pub(crate) async fn post(State(app): State<Arc<App>>, call: Call) -> Result<Response, ApiError> {
    if call.body.is_empty() {
        return Err(ApiError::missing_body());
    }
    let now_ms = i64::try_from(clock::now_ms()).unwrap_or(i64::MAX);
    let options = app.query_options;
    whole::answer(app, move |queries, cancel| {
        let request = ExpressionRequest::from_json(&call.body)?;
        let plan = request.check(now_ms, options)?;
        Ok(write(&request, &queries.run_expressions(&plan, cancel)?))
    })
    .await
}

/// The outputs, and the request as it was understood.
fn write(request: &ExpressionRequest, outputs: &[OutputAnswer]) -> Vec<u8> {
    let mut out = b"{\"outputs\":[".to_vec();
    for (place, output) in outputs.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        write_output(&mut out, output);
    }
    out.extend_from_slice(b"],\"query\":");
    out.extend_from_slice(json!(request).to_string().as_bytes());
    out.push(b'}');
    out
}

fn write_output(out: &mut Vec<u8>, output: &OutputAnswer) {
    out.extend_from_slice(format!("{{\"id\":{}", json!(output.id)).as_bytes());
    if let Some(alias) = &output.alias {
        out.extend_from_slice(format!(",\"alias\":{}", json!(alias)).as_bytes());
    }
    out.extend_from_slice(b",\"dps\":[");
    for (place, (time_ms, values)) in output.rows.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        out.extend_from_slice(format!("[{time_ms}").as_bytes());
        for value in values {
            out.push(b',');
            write_double(out, *value);
        }
        out.push(b']');
    }
    let meta = json!({
        "firstTimestamp": output.first_ms,
        "lastTimestamp": output.last_ms,
        "setCount": output.rows.len(),
        "series": output.series.len(),
    });
    out.extend_from_slice(format!("],\"dpsMeta\":{meta}").as_bytes());
    if !output.series.is_empty() {
        out.extend_from_slice(format!(",\"meta\":{}", columns(output)).as_bytes());
    }
    out.push(b'}');
}

/// What stands in each place of a row.
fn columns(output: &OutputAnswer) -> Value {
    let metrics: Vec<&str> = output.metrics.iter().map(|name| &**name).collect();
    let series = |(place, series): (usize, &OutputSeries)| {
        let tags: Map<String, Value> =
            series.tags.iter().map(|(key, value)| (key.to_string(), json!(**value))).collect();
        let aggregated: Vec<&str> = series.aggregated.iter().map(|key| &**key).collect();
        json!({ "index": place + 1, "metrics": metrics, "commonTags": tags, "aggregatedTags": aggregated })
    };
    let first = std::iter::once(json!({ "index": 0, "metrics": ["timestamp"] }));
    first.chain(output.series.iter().enumerate().map(series)).collect()
}
