//! `/q`, the classic query: lines of text, counts or a picture (`O-Q-ASCII`, `O-Q-JSON`, `O-Q-PNG`), else the way to the
//! page.
//!
//! Parameters of a graph are typed values ([`plot`]), drawn in this process ([`draw`]): no text of a request reaches a
//! program, and none is written to a file.

mod draw;
mod format;
mod look;
mod plot;
mod scale;

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderValue, Uri};
use axum::response::{IntoResponse, Response};
use basalt_query::{Cancel, Number, QueryRequest, Series, SeriesAnnotation, SubAnswer, parse_zone};
use basalt_schema::Annotation;
use chrono_tz::Tz;
use serde_json::json;

use super::error::ApiError;
use super::number::write_double;
use super::params::Params;
use super::query::{self, Form};
use super::{content, page};
use crate::app::App;
use crate::clock;
use crate::register::Asker;
pub(super) use draw::DrawError;
use look::Look;

/// A piece of lines is handed on when it is at least this long.
const PIECE_BYTES: usize = 64 << 10;

/// Answers `/q`.
pub(crate) async fn classic(
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

/// A graph to be drawn of an answer.
#[derive(Debug)]
pub(crate) struct Picture {
    look: Look,
    /// Which sub queries are drawn against the axis on the right.
    right: Vec<bool>,
    zone: Tz,
    /// How long the picture may be shown again.
    pub(crate) max_age_s: i64,
}

impl Picture {
    /// Draws the answers of a range of time, global annotations among them.
    ///
    /// # Errors
    ///
    /// As [`DrawError`].
    pub(crate) fn draw(
        &self,
        answers: &[SubAnswer],
        globals: &[SeriesAnnotation],
        (start_ms, end_ms): (i64, i64),
        cancel: &Cancel,
    ) -> Result<Vec<u8>, DrawError> {
        let all = answers.iter().flat_map(|answer| answer.series.iter().map(|series| (answer.index, series)));
        let mut notes: Vec<(i64, String)> =
            all.clone().flat_map(|(_, series)| &series.annotations).chain(globals).filter_map(note).collect();
        notes.sort();
        notes.dedup();
        let lines = all.map(|(index, series)| draw::Line {
            name: name(series),
            points: &series.points,
            right: self.right.get(index).copied().unwrap_or(false),
        });
        let graph = draw::Graph {
            look: &self.look,
            lines: lines.filter(|line| !line.is_empty()).collect(),
            notes,
            start_s: start_ms / 1_000,
            end_s: (end_ms / 1_000).max(start_ms / 1_000 + 1),
            zone: self.zone,
        };
        graph.png(cancel)
    }
}

/// `metric{key=value, …}`.
fn name(series: &Series) -> String {
    let tags: Vec<String> = series.tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
    if tags.is_empty() { series.metric.to_string() } else { format!("{}{{{}}}", series.metric, tags.join(", ")) }
}

fn note(note: &SeriesAnnotation) -> Option<(i64, String)> {
    let told = Annotation::decode(&note.json).ok()?;
    Some((note.start_ms / 1_000, told.description))
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
