//! Which HTTP status means what, and the shape of every error answer. The only file that chooses a
//! status; its telnet twin is `telnet/reply.rs`.
//!
//! Under `/api` an error is OpenTSDB's envelope `{"error":{"code","message","details"?}}`; on the
//! older paths it is a page for people, or `{"err":…}` when the request says `json`.

use axum::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::json::JSON;

/// Seconds after which a client that was turned away may come back.
const RETRY_AFTER_S: u32 = 1;

/// An answer that is not what was asked for.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    message: String,
    details: Option<String>,
    /// Seconds, for a client that may come back.
    retry_after: Option<u32>,
}

impl ApiError {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), details: None, retry_after: None }
    }

    fn details(mut self, details: impl Into<String>) -> Self {
        self.details = Some(details.into());
        self
    }

    /// 400: the request is wrong and stays wrong.
    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// 400 with OpenTSDB's second sentence.
    pub(crate) fn bad_with(message: impl Into<String>, details: impl Into<String>) -> Self {
        Self::bad(message).details(details)
    }

    /// 400: a query parameter is absent or empty. The markup is OpenTSDB's.
    pub(crate) fn missing_parameter(name: &str) -> Self {
        Self::bad(format!("Missing parameter <code>{name}</code>"))
    }

    /// 400: a body was needed; `/api/put` says it in other words.
    pub(crate) fn missing_body() -> Self {
        Self::bad_with("Missing message content", "Supply valid JSON formatted data in the body of your request")
    }

    /// 400: the body is no JSON of the expected shape.
    pub(crate) fn bad_json(cause: impl ToString) -> Self {
        Self::bad_with("Unable to parse the given JSON", cause.to_string())
    }

    /// 404 for a path that leads nowhere.
    pub(crate) fn no_endpoint() -> Self {
        Self::new(StatusCode::NOT_FOUND, "Endpoint not found")
    }

    /// 405; `OPTIONS` has words of its own.
    pub(crate) fn method(method: &Method) -> Self {
        let scope = if method == Method::OPTIONS { "" } else { " for this endpoint" };
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "Method not allowed")
            .details(format!("The HTTP method [{method}] is not permitted{scope}"))
    }

    /// 501: `/api/v2` and above.
    pub(crate) fn version(asked: u64) -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, "Requested API version is greater than the max implemented")
            .details(format!("API version [{asked}] is greater than the max [1]"))
    }

    /// 501: an endpoint of OpenTSDB's that is not built yet.
    pub(crate) fn not_built(endpoint: &str) -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, "Endpoint not implemented")
            .details(format!("{endpoint} is part of OpenTSDB 2.4 and not yet of this version of Basalt"))
    }

    /// 413: a body over the bound.
    pub(crate) fn body_too_large(limit: usize) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "Request body too large")
            .details(format!("The body has more than {limit} bytes after decompression; send smaller batches"))
    }

    /// 408: the client stopped in the middle of its body.
    pub(crate) fn body_stalled() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "The request body did not arrive in time")
    }

    /// 503: too much is under way; nothing was done.
    pub(crate) fn overloaded(what: &str) -> Self {
        let mut error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "Please throttle")
            .details(format!("{what}; nothing of this request was done, send it again"));
        error.retry_after = Some(RETRY_AFTER_S);
        error
    }

    /// 500: a broken promise of ours.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    /// The status chosen.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// OpenTSDB's envelope, its members in OpenTSDB's order.
    fn envelope(&self) -> String {
        let details = self.details.as_ref().map_or_else(String::new, |text| format!(",\"details\":{}", json!(text)));
        format!("{{\"error\":{{\"code\":{},\"message\":{}{details}}}}}", self.status.as_u16(), json!(self.message))
    }

    fn dressed(&self, content_type: &'static str, body: String) -> Response {
        self.dressed_as(self.status, content_type, body)
    }

    fn dressed_as(&self, status: StatusCode, content_type: &'static str, body: String) -> Response {
        let mut response = (status, [(CONTENT_TYPE, content_type)], body).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response.headers_mut().remove(ALLOW);
        response
    }

    /// The answer on paths older than `/api`: 404 and 5xx keep their status, all else is 400, as in
    /// OpenTSDB.
    pub(crate) fn classic(&self, as_json: bool) -> Response {
        let not_found = self.status == StatusCode::NOT_FOUND;
        let message = if not_found { "Page Not Found" } else { self.message.as_str() };
        let status = if not_found || self.status.is_server_error() { self.status } else { StatusCode::BAD_REQUEST };
        if as_json {
            return self.dressed_as(status, "application/json", json!({ "err": message }).to_string());
        }
        self.dressed_as(status, "text/html; charset=UTF-8", super::page::error(status.as_u16(), message))
    }
}

impl IntoResponse for ApiError {
    /// Under `/api`; the error itself rides along for [`ApiError::classic`].
    fn into_response(self) -> Response {
        let mut response = self.dressed(JSON, self.envelope());
        response.extensions_mut().insert(self);
        response
    }
}

/// The answer to a request whose handler panicked.
pub(crate) fn panicked(_: Box<dyn std::any::Any + Send>) -> Response {
    ApiError::internal("An internal error was caught; the log says more").into_response()
}

/// 503: alive, but not serving; for load balancers, which read the status only.
pub(crate) fn not_ready(reason: &Value) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, [(CONTENT_TYPE, JSON)], reason.to_string()).into_response()
}
