//! Small endpoints about the server itself.

use std::sync::Arc;

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use serde_json::{Map, Value, json};

use super::error::ApiError;
use super::json::{self, TEXT};
use crate::app::App;
use crate::config::as_opentsdb;
use crate::version;

/// Names of all aggregators.
pub(crate) async fn aggregators() -> Result<Response, ApiError> {
    json::ok(&["sum"])
}

/// Who answers.
pub(crate) async fn version() -> Result<Response, ApiError> {
    json::ok(&version::members())
}

/// The elder `/version`: two lines, or the members when the address ends in `json`.
pub(crate) async fn version_lines(uri: Uri) -> Result<Response, ApiError> {
    if uri.query().is_some_and(|query| query.ends_with("json")) {
        return json::ok(&version::members());
    }
    Ok(json::body_of(TEXT, version::lines()))
}

/// OpenTSDB's settings with the values in force here.
pub(crate) async fn config(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    json::ok(&as_opentsdb(&app.config))
}

/// The filter types with what they do and how they are written.
pub(crate) async fn filters() -> Result<Response, ApiError> {
    let describe = |(name, text, description): &(&str, &str, &str)| {
        let body = json!({ "type": name, "tagk": "host", "filter": text, "groupBy": false });
        let examples = format!("host={name}({text})  {body}");
        ((*name).to_owned(), json!({ "examples": examples, "description": description }))
    };
    json::ok(&Value::Object(FILTERS.iter().map(describe).collect::<Map<_, _>>()))
}

/// Filter type, an example's text, what it does.
const FILTERS: &[(&str, &str, &str)] = &[
    ("literal_or", "web01|web02", "Keeps series whose tag value is one of the values between the pipes."),
    ("iliteral_or", "web01|web02", "Keeps series whose tag value is one of the values, whatever the case."),
    ("not_literal_or", "web01|web02", "Keeps series that have the tag with none of the values."),
    ("not_iliteral_or", "web01|web02", "Keeps series that have the tag with none of the values, whatever the case."),
    ("wildcard", "web*.lga", "Keeps series whose tag value fits the pattern; a star stands for any run of characters."),
    ("iwildcard", "web*.lga", "Keeps series whose tag value fits the pattern, whatever the case."),
    (
        "regexp",
        "web[0-9]+",
        "Keeps series in whose tag value the regular expression is found, anywhere unless anchored.",
    ),
    ("not_key", "", "Keeps series that do not have the tag key at all; the text must be empty."),
];

/// Forgets cached names.
pub(crate) async fn dropcaches(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    app.drop_caches();
    json::ok(&json!({ "message": "Caches dropped", "status": "200" }))
}
