//! Small endpoints about the server itself.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, Method, Uri};
use axum::response::Response;
use basalt_query::{Aggregator, filter_descriptions};
use serde_json::{Map, Value, json};

use super::content::{self, TEXT};
use super::cors;
use super::error::ApiError;
use super::json;
use super::page;
use crate::app::App;
use crate::config::as_opentsdb;
use crate::version;

/// Names of all aggregators.
pub(crate) async fn aggregators() -> Result<Response, ApiError> {
    json::ok(&Aggregator::names().collect::<Vec<_>>())
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
    Ok(content::body_of(TEXT, version::lines()))
}

/// OpenTSDB's settings with the values in force here.
pub(crate) async fn config(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    json::ok(&as_opentsdb(&app.config))
}

/// The filter types with what they do and how they are written. OpenTSDB knows `not_key` in its
/// documentation only, so under `strict` it is left out.
pub(crate) async fn filters(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    let known = filter_descriptions().filter(|filter| !(app.config.compat.strict && filter.name == "not_key"));
    let told = known.map(|filter| {
        (filter.name.to_owned(), json!({ "examples": filter.examples, "description": filter.description }))
    });
    json::ok(&Value::Object(told.collect::<Map<_, _>>()))
}

/// The one wire format. Documented by OpenTSDB and absent from it, so under `strict` it is not there.
pub(crate) async fn serializers(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    if app.config.compat.strict {
        return Err(ApiError::no_endpoint());
    }
    json::ok(&json!([{
        "serializer": "json",
        "class": "net.opentsdb.tsd.HttpJsonSerializer",
        "request_content_type": "application/json",
        "response_content_type": content::JSON,
        "parsers": ["AnnotationV1", "PutV1", "QueryV1", "SuggestV1", "UidAssignV1"],
        "formatters": ["AggregatorsV1", "AnnotationV1", "ConfigV1", "DropCachesV1", "ErrorV1", "NotFoundV1", "PutV1",
            "QueryV1", "SerializersV1", "StatsV1", "SuggestV1", "UidAssignV1", "VersionV1"],
    }]))
}

/// One word about the server, as OpenTSDB 2.5 has it: `ok`, or `error` while it refuses writes or
/// queries. 2.4 does not know it, so under `strict` it is not there.
pub(crate) async fn status(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    if app.config.compat.strict {
        return Err(ApiError::no_endpoint());
    }
    json::ok(&json!({ "status": app.status_word() }))
}

/// Forgets cached names.
pub(crate) async fn dropcaches(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    app.drop_caches().await?;
    json::ok(&json!({ "message": "Caches dropped", "status": "200" }))
}

/// Ends the daemon as SIGTERM does, where that is allowed (`server.allow_diediedie`); else the path leads nowhere, as in
/// OpenTSDB with `tsd.no_diediedie`. OpenTSDB takes a mere GET, which any page can make a browser send.
pub(crate) async fn diediedie(
    State(app): State<Arc<App>>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    if !app.config.server.allow_diediedie {
        return Err(ApiError::no_endpoint());
    }
    cors::check_posted(&app.config, &method, &headers)?;
    app.ask_to_end("/diediedie");
    Ok(content::body_of("text/html; charset=UTF-8", page::killed()))
}
