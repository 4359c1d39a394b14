//! Which HTTP status means what, and the shape of every error answer. The only file that chooses a
//! status, with its child [`outcome`]; its telnet twin is `telnet/reply.rs`.
//!
//! Under `/api` an error is OpenTSDB's envelope `{"error":{"code","message","details"?}}`; on the
//! older paths it is a page for people, or `{"err":…}` when the request says `json`.

mod outcome;
mod trouble;

use axum::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use basalt_store::ErrorKind;
use serde_json::{Value, json};

use super::content::JSON;
use crate::app::Undone;
use trouble::Trouble;

pub(crate) use outcome::{done, edited, found, put_outcome, uid_outcome};
pub(crate) use trouble::{report, report_lines};

/// OpenTSDB's words where no codec of histograms is configured.
const NO_HISTOGRAMS: &str =
    "Histogram storage has not been enabled. Check the 'tsd.core.histograms.config' configuration.";
/// A token that is known, of a role that may not: what our own tools tell apart from other 403s.
pub(crate) const ROLE_TOO_LOW: &str = "The role of your token does not allow this";
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
    /// What the log is to say.
    trouble: Option<Trouble>,
}

impl ApiError {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), details: None, retry_after: None, trouble: None }
    }

    fn details(mut self, details: impl Into<String>) -> Self {
        self.details = Some(details.into());
        self
    }

    fn caused(mut self, kind: ErrorKind, cause: &dyn std::error::Error) -> Self {
        self.trouble = Trouble::caused(kind, cause);
        self
    }

    /// 400: the request is wrong and stays wrong.
    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// 401: nobody known asks.
    pub(crate) fn unauthorized() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "A token is needed: `Authorization: Bearer TOKEN`, or Basic with a name and a token",
        )
    }

    /// 403: somebody known asks for what their role has not.
    pub(crate) fn not_allowed() -> Self {
        Self::forbidden(ROLE_TOO_LOW)
    }

    /// 403: not for whoever asked.
    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, message)
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
    pub(crate) fn bad_json(cause: &str) -> Self {
        Self::bad_with("Unable to parse the given JSON", cause)
    }

    /// As [`ApiError::bad_json`]; OpenTSDB answers 500 on some endpoints, which `strict` keeps.
    pub(crate) fn bad_body(cause: String, strict: bool) -> Self {
        if strict { Self::stumble(cause) } else { Self::bad_json(&cause) }
    }

    /// 400 whose second sentence is the first, as OpenTSDB passes on what its parsers throw.
    pub(crate) fn bad_twice(message: String) -> Self {
        Self::bad(message.clone()).details(message)
    }

    /// 400; OpenTSDB stumbles over some bad requests with 500, which `strict` keeps.
    pub(crate) fn fault(message: String, strict: bool) -> Self {
        if strict { Self::stumble(message) } else { Self::bad(message) }
    }

    /// 404: the thing asked for is not there.
    pub(crate) fn not_found(message: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
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

    /// 405: a `method_override` that is no method.
    pub(crate) fn override_refused(message: &str) -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, message)
    }

    /// 400: a `sync_timeout` that is no number; OpenTSDB stumbles over it with 500, which `strict` keeps.
    pub(crate) fn sync_timeout(text: &str, strict: bool) -> Self {
        if strict {
            return Self::stumble(format!("For input string: \"{text}\""));
        }
        Self::bad("Unable to parse 'sync_timeout' as a number of milliseconds")
    }

    /// 405, or under `strict` OpenTSDB's 400: a method that searches do not take.
    pub(crate) fn search_method(method: &Method, strict: bool) -> Self {
        if strict { Self::bad(format!("Unsupported method: {method}")) } else { Self::method(method) }
    }

    /// 501: a path below `/api/uid` that leads nowhere, in OpenTSDB's words.
    pub(crate) fn no_uid_endpoint() -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, "Other UID endpoints have not been implemented yet")
    }

    /// 403: a page of an origin that is not named. OpenTSDB says the same with a 200, which a
    /// program takes for a put that was stored; that is kept under `strict`.
    pub(crate) fn origin_refused(origin: &str, strict: bool) -> Self {
        let status = if strict { StatusCode::OK } else { StatusCode::FORBIDDEN };
        Self::new(status, "CORS domain not allowed").details(format!("The domain [{origin}] is not permitted access"))
    }

    /// 501: `/api/v2` and above.
    pub(crate) fn version(asked: u64) -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, "Requested API version is greater than the max implemented")
            .details(format!("API version [{asked}] is greater than the max [1]"))
    }

    /// 503: histograms where no codec of them is configured.
    pub(crate) fn no_histograms() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, NO_HISTOGRAMS)
    }

    /// 413: a body over the bound.
    pub(crate) fn body_too_large(limit: usize) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "Request body too large")
            .details(format!("The body has more than {limit} bytes after decompression; send smaller batches"))
    }

    /// 503: it does not fit beside the bodies of other requests.
    pub(crate) fn bodies_too_large(bytes_max: usize) -> Self {
        Self::overloaded(&format!(
            "The body does not fit beside those of other requests, which together may hold {bytes_max} bytes \
             (http.bodies_bytes_max): send smaller batches, or raise that setting"
        ))
    }

    /// 503: no room for an answer among the bodies of all requests.
    pub(crate) fn answer_too_large(bytes_max: usize) -> Self {
        Self::overloaded(&format!(
            "The answer does not fit beside the bodies of other requests, which together may hold {bytes_max} bytes \
             (http.bodies_bytes_max): ask for less, or raise that setting"
        ))
    }

    /// 413: more things in one call than are done in one.
    pub(crate) fn too_many(what: &str, found: usize, max: usize) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, format!("Too many {what}: {found}"))
            .details(format!("At most {max} are taken in one call; nothing of this one was done"))
    }

    /// 408: the client stopped in the middle of its body.
    pub(crate) fn body_stalled() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "The request body did not arrive in time")
    }

    /// 503: too much is under way; nothing was done.
    pub(crate) fn overloaded(what: &str) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "Please throttle")
            .details(format!("{what}; nothing of this request was done, send it again"))
            .with_retry()
    }

    /// 500: a broken promise of ours.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        let mut error = Self::stumble(message);
        error.trouble = Trouble::of(ErrorKind::Bug, error.message.clone());
        error
    }

    /// 500: what OpenTSDB stumbles over though the request is at fault.
    pub(crate) fn stumble(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    /// 400: a query that deletes what it reads, where that is not allowed.
    pub(crate) fn delete_refused() -> Self {
        Self::bad_with("Bad request", "Deleting data is not enabled (tsd.http.query.allow_delete=false)")
    }

    /// A query that was refused or failed. OpenTSDB answers 500 to some bad requests; that is kept
    /// only under `compat.strict`.
    pub(crate) fn of_query(cause: &basalt_query::Error, strict: bool) -> Self {
        use basalt_query::Error;
        let status = match cause {
            Error::TooManyPoints { .. }
            | Error::TooManyMadeUp { .. }
            | Error::TooManyBytes { .. }
            | Error::TooManySeries { .. }
            | Error::TooManyLookUps { .. }
            | Error::TooMuchMemory { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Error::DeadlineExceeded { .. } => StatusCode::REQUEST_TIMEOUT,
            _ if strict && cause.is_server_error_in_opentsdb() => StatusCode::INTERNAL_SERVER_ERROR,
            // A metric nobody knows is the request's fault, in OpenTSDB as here.
            Error::UnknownName { .. } => StatusCode::BAD_REQUEST,
            _ => status_of(cause.kind()),
        };
        let mut error = Self::new(status, cause.to_string());
        error.details = cause.details();
        // Nobody waits for a query that was cancelled.
        if !matches!(cause, Error::Cancelled) {
            error = error.caused(cause.kind(), cause);
        }
        error.with_retry()
    }

    /// A put body, or a whole batch of points, was not taken.
    pub(crate) fn of_ingest(cause: &basalt_ingest::Error) -> Self {
        if cause.kind() == ErrorKind::Throttled {
            return Self::overloaded(&cause.to_string());
        }
        let status = match cause {
            basalt_ingest::Error::TooManyPoints { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            _ => status_of(cause.kind()),
        };
        let (message, details) = cause.message_and_details();
        let mut error = Self::new(status, message);
        error.details = details;
        error.caused(cause.kind(), cause).with_retry()
    }

    /// The schema or the store below it failed.
    pub(crate) fn of_schema(cause: &basalt_schema::Error) -> Self {
        use basalt_schema::Error;
        let message = cause.to_string();
        match cause {
            Error::TooManyAnnotations { .. }
            | Error::TooManyMetas { .. }
            | Error::TooManyBranches { .. }
            | Error::TooManyTreeFailures { .. }
            | Error::TooMuchText { .. } => Self::new(StatusCode::PAYLOAD_TOO_LARGE, message),
            Error::InvalidTreeId | Error::UnnamedTree | Error::InvalidTreeRule { .. } => Self::bad_twice(message),
            Error::EditLost { .. } => Self::stumble(message),
            _ => Self::new(status_of(cause.kind()), message).caused(cause.kind(), cause).with_retry(),
        }
    }

    /// As [`ApiError::of_schema`], of an edit of `what`.
    pub(crate) fn of_edit(cause: &basalt_schema::Error, what: &str) -> Self {
        match cause {
            basalt_schema::Error::EditLost { .. } => Self::stumble(format!("Failed to save the {what} to storage"))
                .details("This may be caused by another process modifying storage data"),
            _ => Self::of_schema(cause),
        }
    }

    /// A name's meta object could not be read or written; 404 for a UID that is unknown.
    pub(crate) fn of_uid_meta(cause: &basalt_schema::Error) -> Self {
        Self::of_meta(cause, "Could not find the requested UID", "UIDMeta")
    }

    /// A series' meta object could not be read or written; 404 with `unknown` for a name or UID that is unknown.
    pub(crate) fn of_ts_meta(cause: &basalt_schema::Error, unknown: &str) -> Self {
        Self::of_meta(cause, unknown, "TSMeta")
    }

    fn of_meta(cause: &basalt_schema::Error, unknown: &str, what: &str) -> Self {
        use basalt_schema::Error;
        match cause {
            Error::NoSuchId { .. } | Error::NoSuchName { .. } => Self::not_found(unknown).details(cause.to_string()),
            _ => Self::of_edit(cause, what),
        }
    }

    /// 400: OpenTSDB's whole answer where one of several look-ups failed.
    pub(crate) fn group_failed() -> Self {
        Self::bad_twice("At least one of the Deferreds failed, first exception:".into())
    }

    /// A lookup of series failed; 404 for a name that is unknown.
    pub(crate) fn of_lookup(cause: &basalt_schema::Error) -> Self {
        if cause.kind() != ErrorKind::NotFound {
            return Self::of_schema(cause);
        }
        Self::not_found("Unable to resolve one or more UIDs").details(cause.to_string())
    }

    fn with_retry(mut self) -> Self {
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            self.retry_after = Some(RETRY_AFTER_S);
        }
        self
    }

    /// The first sentence.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Whether it is the server's own, and told in the log.
    pub(crate) fn is_trouble(&self) -> bool {
        self.trouble.is_some()
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

    fn dressed(&self, content_type: &'static str, body: impl IntoResponse) -> Response {
        self.dressed_as(self.status, content_type, body)
    }

    fn dressed_as(&self, status: StatusCode, content_type: &'static str, body: impl IntoResponse) -> Response {
        let mut response = (status, [(CONTENT_TYPE, content_type)], body).into_response();
        if let Some(trouble) = &self.trouble {
            response.extensions_mut().insert(trouble.clone());
        }
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(r#"Basic realm="basalt""#));
        }
        response.headers_mut().remove(ALLOW);
        response
    }

    /// 405 of an endpoint of ours that can only be read: a line of text, since OpenTSDB has no page for it.
    pub(crate) fn only_read() -> Response {
        let headers = [(ALLOW, "GET, HEAD"), (CONTENT_TYPE, "text/plain; charset=utf-8")];
        (StatusCode::METHOD_NOT_ALLOWED, headers, "this is only read: GET or HEAD\n").into_response()
    }

    /// The answer on paths older than `/api`: 401, 403, 404 and 5xx keep their status, all else is 400, as in
    /// OpenTSDB.
    pub(crate) fn classic(&self, as_json: bool) -> Response {
        let not_found = self.status == StatusCode::NOT_FOUND;
        let message = if not_found { "Page Not Found" } else { self.message.as_str() };
        let refused = matches!(self.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let kept = not_found || refused || self.status.is_server_error();
        let status = if kept { self.status } else { StatusCode::BAD_REQUEST };
        if as_json {
            return self.dressed_as(status, "application/json", json!({ "err": message }).to_string());
        }
        self.dressed_as(status, "text/html; charset=UTF-8", super::page::error(status.as_u16(), message))
    }
}

impl From<basalt_schema::Error> for ApiError {
    fn from(cause: basalt_schema::Error) -> Self {
        Self::of_schema(&cause)
    }
}

impl From<Undone> for ApiError {
    fn from(cause: Undone) -> Self {
        match cause {
            Undone::Full(what) => Self::overloaded(what),
            Undone::Panicked(cause) => Self::internal(cause),
        }
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

/// What a kind of failure is in HTTP where nothing more is known about it.
fn status_of(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::Invalid | ErrorKind::NotFound | ErrorKind::Conflict => StatusCode::BAD_REQUEST,
        ErrorKind::Throttled | ErrorKind::Unavailable | ErrorKind::ReadOnly => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::Corrupt | ErrorKind::Bug => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// The answer to a request whose handler panicked.
pub(crate) fn panicked(_: Box<dyn std::any::Any + Send>) -> Response {
    ApiError::internal("An internal error was caught; the log says more").into_response()
}

/// 503: alive, and the store is still being opened: in two words, and what it takes so long for.
pub(crate) fn not_open(message: &'static str, details: &str) -> Response {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, message).details(details).with_retry().into_response()
}

/// 503: alive, but not serving; for load balancers, which read the status only.
pub(crate) fn not_ready(reason: &Value) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, [(CONTENT_TYPE, JSON)], reason.to_string()).into_response()
}

#[cfg(test)]
mod tests;
