//! JSON answers of known size.

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::error::ApiError;

/// OpenTSDB's content type under `/api`, letter for letter.
pub(crate) const JSON: &str = "application/json; charset=UTF-8";

/// Plain text.
pub(crate) const TEXT: &str = "text/plain; charset=UTF-8";

/// `value` as a successful answer.
pub(crate) fn ok(value: &impl Serialize) -> Result<Response, ApiError> {
    let body = serde_json::to_vec(value).map_err(|cause| ApiError::internal(cause.to_string()))?;
    Ok(body_of(JSON, Body::from(body)))
}

/// A successful answer of any type.
pub(crate) fn body_of(content_type: &'static str, body: impl Into<Body>) -> Response {
    ([(CONTENT_TYPE, content_type)], body.into()).into_response()
}
