//! `/q`, the classic query: lines of text or counts (`O-Q-ASCII`, `O-Q-JSON`), else the way to the page.
//!
//! Parameters of a graph are typed values ([`plot`]): no text of a request reaches anything that draws, and none is
//! written to a file. Pictures are not drawn yet.

mod plot;

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderValue, Uri};
use axum::response::{IntoResponse, Response};
use basalt_query::{Number, Series, SubAnswer};
use serde_json::json;

use super::error::ApiError;
use super::number::write_double;
use super::params::Params;
use super::query::{self, Form};
use super::{json, page};
use crate::app::App;
use crate::register::Asker;

/// A piece of lines is handed on when it is at least this long.
const PIECE_BYTES: usize = 64 << 10;

/// Answers `/q`.
pub(crate) async fn classic(
    State(app): State<Arc<App>>,
    asker: Asker,
    uri: Uri,
    params: Params,
) -> Result<Response, ApiError> {
    let form = if params.has("ascii") {
        Form::Lines
    } else if params.has("json") {
        Form::Counts
    } else if params.has("png") {
        return Err(ApiError::not_built("/q?png"));
    } else {
        return Ok(to_page(&uri, app.config.compat.strict));
    };
    let mut request = query::from_params(&params, false, app.config.compat.strict)?;
    request.timezone = params.last("tz").map(str::to_owned).or(request.timezone);
    plot::check(&params)?;
    query::run(app, asker, request, form).await
}

/// The built-in page with the query behind a `#`. OpenTSDB answers so with a 200, which `strict` keeps.
fn to_page(uri: &Uri, strict: bool) -> Response {
    let target = uri.query().map_or_else(|| "/".to_owned(), |query| format!("/#{query}"));
    let body = format!(
        "<!DOCTYPE html><html><head><meta http-equiv=\"refresh\" content=\"0; url={}\"></head></html>",
        page::escape(&target)
    );
    let mut response = json::body_of("text/html; charset=UTF-8", body).into_response();
    if let Ok(target) = HeaderValue::from_str(&target) {
        response.headers_mut().insert(LOCATION, target);
    }
    if strict { response } else { super::error::found(response) }
}

/// Writes `metric second value tag=value …` lines, doubles as Java does, NaN left out. Pieces go to `sink` as those of
/// an answer of the API do; the last one is given back, `None` when nobody reads any more.
pub(crate) fn lines(answers: &[SubAnswer], mut sink: impl FnMut(Vec<u8>) -> bool) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for series in answers.iter().flat_map(|answer| &answer.series) {
        let tags: String = series.tags.iter().flat_map(|(key, value)| [" ", &**key, "=", &**value]).collect();
        for point in &series.points {
            if matches!(point.number, Number::Double(value) if value.is_nan()) {
                continue;
            }
            out.extend_from_slice(format!("{} {} ", series.metric, point.time_ms / 1_000).as_bytes());
            match point.number {
                Number::Integer(value) => out.extend_from_slice(value.to_string().as_bytes()),
                Number::Double(value) => write_double(&mut out, value),
            }
            out.extend_from_slice(tags.as_bytes());
            out.push(b'\n');
            if out.len() >= PIECE_BYTES {
                sink(std::mem::take(&mut out)).then_some(())?;
            }
        }
    }
    Some(out)
}

/// What a page shows beside the graph: points drawn and read, the keys aggregated over by sub query, milliseconds taken.
pub(crate) fn counts(answers: &[SubAnswer], took_ms: u64) -> Vec<u8> {
    let drawn = |series: &Series| {
        series.points.iter().filter(|point| !matches!(point.number, Number::Double(value) if value.is_nan())).count()
    };
    let keys = |answer: &SubAnswer| {
        let mut keys: Vec<String> = answer
            .series
            .iter()
            .flat_map(|series| series.aggregate_tags.iter().map(|key| (**key).to_owned()))
            .collect();
        keys.sort();
        keys.dedup();
        keys
    };
    let told = json!({
        "plotted": answers.iter().flat_map(|answer| &answer.series).map(drawn).sum::<usize>(),
        "points": answers.iter().map(|answer| answer.stats.points).sum::<u64>(),
        "etags": answers.iter().map(keys).collect::<Vec<_>>(),
        "timing": took_ms,
    });
    told.to_string().into_bytes()
}
