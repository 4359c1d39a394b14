//! `/logs` (`O-LOGS`): the last lines of the log, and its level where that may be changed.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, Method};
use axum::response::Response;

use super::content::{self, TEXT};
use super::cors;
use super::error::ApiError;
use super::json;
use super::params::Params;
use crate::app::App;
use crate::log;

/// The newest line first; `json` as a list; `level=` sets the level, of one part of the program if `logger=` names it.
///
/// Anybody may set it in OpenTSDB, and by a mere GET, which any page can make a browser send.
pub(crate) async fn recent(
    State(app): State<Arc<App>>,
    method: Method,
    headers: HeaderMap,
    params: Params,
) -> Result<Response, ApiError> {
    if params.has("json") {
        return json::ok(&log::lines()).map(content::plain_type);
    }
    let Some(level) = params.last("level") else {
        let mut text = String::new();
        for line in log::lines() {
            text.push_str(&line);
            text.push('\n');
        }
        return Ok(content::body_of(TEXT, text));
    };
    if !app.config.log.allow_change {
        return Err(ApiError::forbidden("The log level may not be changed (log.allow_change=false)"));
    }
    cors::check_posted(&app.config, &method, &headers)?;
    let logger = params.given("logger").filter(|name| *name != "ROOT");
    let level = log::set_level(level, logger).map_err(ApiError::bad)?;
    let count = if logger.is_some() { 1 } else { log::PARTS.len() };
    let plural = if count == 1 { "" } else { "s" };
    Ok(content::body_of(TEXT, format!("Set the log level to {level} on {count} logger{plural}.\n")))
}
