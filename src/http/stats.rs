//! `/api/stats` and its elder `/stats`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};

use super::error::ApiError;
use super::json::{self, TEXT};
use super::params::Params;
use crate::app::App;
use crate::clock;
use crate::stats::{Form, Stat, collect, lines as stat_lines, shared_tags};

/// A list of points whose values are texts, as OpenTSDB has it.
pub(crate) async fn api(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    let seconds = clock::now_ms() / 1_000;
    let point = |Stat { name, tags: own, value }: Stat| {
        let mut tags = serde_json::Map::new();
        tags.extend(shared_tags(&app).into_iter().map(|(key, text)| (key.to_owned(), text.into())));
        tags.extend(own.into_iter().map(|(key, text)| (key.to_owned(), text.into())));
        json!({ "metric": name, "timestamp": seconds, "value": value.to_string(), "tags": tags })
    };
    json::ok(&collect(&app, Form::Api).await.into_iter().map(point).collect::<Vec<Value>>())
}

/// Which queries run and which have ended (`O-STATS-QUERY`).
pub(crate) async fn queries(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    json::ok(&app.register.told())
}

/// Lines for people, or a list of the same lines with `?json`.
pub(crate) async fn lines(State(app): State<Arc<App>>, params: Params) -> Result<Response, ApiError> {
    let mut lines = stat_lines(&app, clock::now_ms()).await;
    if params.has("json") {
        return json::ok(&lines);
    }
    lines.push(String::new());
    Ok(json::body_of(TEXT, lines.join("\n")))
}
