//! Answers of a content type.

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

/// OpenTSDB's content type under `/api`, letter for letter.
pub(crate) const JSON: &str = "application/json; charset=UTF-8";

/// Plain text.
pub(crate) const TEXT: &str = "text/plain; charset=UTF-8";

/// An answer of JSON with the type that JSON has on the paths older than `/api`.
pub(crate) fn plain_type(mut response: Response) -> Response {
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A successful answer of any type.
pub(crate) fn body_of(content_type: &'static str, body: impl Into<Body>) -> Response {
    ([(CONTENT_TYPE, content_type)], body.into()).into_response()
}
