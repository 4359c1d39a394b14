//! Endpoints for operators: alive, ready, numbers.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tokio::task::spawn_blocking;

use super::content;
use super::error::{self, ApiError};
use super::json;
use crate::app::App;

/// The process answers.
pub(crate) async fn healthz() -> Result<Response, ApiError> {
    uncached(json::ok(&json!({ "status": "ok" })))
}

/// Whether writes and queries are served; if not, 503 with the reason.
pub(crate) async fn readyz(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    match app.open_store().not_ready() {
        None => uncached(json::ok(&json!({ "status": "ready" }))),
        Some(reason) => Ok(error::not_ready(&json!({ "status": "not ready", "reason": reason }))),
    }
}

/// Everything counted, in Prometheus' text form.
pub(crate) async fn metrics(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    let page = spawn_blocking(move || app.metrics_page()).await;
    let page = page.map_err(|cause| ApiError::internal(cause.to_string()))?;
    Ok(content::body_of("text/plain; version=0.0.4; charset=utf-8", page))
}

fn uncached(answer: Result<Response, ApiError>) -> Result<Response, ApiError> {
    answer.map(|response| ([(CACHE_CONTROL, "no-store")], response).into_response())
}
