//! `/q`, the classic query: lines of text, counts or a picture (`O-Q-ASCII`, `O-Q-JSON`, `O-Q-PNG`), else the way to the
//! page.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderValue, Uri};
use axum::response::{IntoResponse, Response};
use basalt_query::{QueryRequest, parse_zone};

use super::error::{self, ApiError};
use super::form::Form;
use super::graph::{Picture, plot};
use super::params::Params;
use super::query;
use super::{content, page};
use crate::app::App;
use crate::clock;
use crate::register::Asker;

/// Answers `/q`.
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    asker: Asker,
    uri: Uri,
    params: Params,
) -> Result<Response, ApiError> {
    if !["ascii", "json", "png"].iter().any(|form| params.has(form)) {
        return Ok(to_page(&uri, app.config.compat.strict));
    }
    let look = plot::read(&params)?;
    let from_params = || query::from_params(&params, false, app.config.compat.strict);
    let (mut request, seat) = query::read(&app, query::is_small(params.texts()), from_params).await?;
    request.timezone = params.last("tz").map(str::to_owned).or(request.timezone);
    let form = if params.has("ascii") {
        Form::Lines
    } else if params.has("json") {
        Form::Counts
    } else {
        let zone = params.last("tz").map(parse_zone).transpose();
        let zone = zone.map_err(|cause| ApiError::of_query(&cause, app.config.compat.strict))?;
        let zone = zone.unwrap_or(app.query_options.default_zone);
        let right = plot::on_the_right(&params);
        Form::Picture(Arc::new(Picture { look, right, zone, max_age_s: max_age_s(&app, &params, &request) }))
    };
    request.whole_window = app.config.compat.strict && matches!(form, Form::Lines);
    query::run(app, asker, request, seat, form).await
}

/// How long a picture of this range may be shown again: a day if it lies in the past for good, else a thousandth of the
/// range. *Source*: OpenTSDB 2.4 `GraphHandler.computeMaxAge`.
fn max_age_s(app: &App, params: &Params, request: &QueryRequest) -> i64 {
    let now_ms = clock::signed_now_ms();
    let Ok(query) = request.check(now_ms, app.query_options) else { return 0 };
    let is_fixed =
        |name| params.last(name).is_some_and(|text: &str| !text.is_empty() && text != "now" && !text.ends_with("-ago"));
    if query.end_ms > now_ms || params.has("nocache") {
        return 0;
    }
    if query.end_ms < now_ms - 3_600_000 && is_fixed("start") && is_fixed("end") {
        return 86_400;
    }
    (query.end_ms - query.start_ms) / 1_000 / 1_024
}

/// The built-in page with the query behind a `#`. OpenTSDB answers so with a 200, which `strict` keeps.
fn to_page(uri: &Uri, strict: bool) -> Response {
    let target = uri.query().map_or_else(|| "/".to_owned(), |query| format!("/#{query}"));
    let body = format!(
        "<!DOCTYPE html><html><head><meta http-equiv=\"refresh\" content=\"0; url={}\"></head></html>",
        page::escape(&target)
    );
    let mut response = content::body_of("text/html; charset=UTF-8", body).into_response();
    if let Ok(target) = HeaderValue::from_str(&target) {
        response.headers_mut().insert(LOCATION, target);
    }
    if strict { response } else { error::found(response) }
}
