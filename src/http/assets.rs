//! Files that pages load: below `/s/`, and the sign of the tab (`O-UI`). They are part of the program, so no path of a
//! request is ever opened.

use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderValue, Uri};
use axum::response::Response;

use super::content;
use super::error::ApiError;

/// Name, content type, content.
const FILES: &[(&str, &str, &[u8])] = &[
    ("graph.css", "text/css; charset=UTF-8", include_bytes!("assets/graph.css")),
    ("graph.js", "text/javascript; charset=UTF-8", include_bytes!("assets/graph.js")),
    ("favicon.ico", "image/x-icon", include_bytes!("assets/favicon.ico")),
];

/// A file below `/s/`.
pub(crate) async fn below(uri: Uri) -> Result<Response, ApiError> {
    // As it was sent: no file's name needs an escape, whatever one may stand for.
    file(uri.path().strip_prefix("/s/").unwrap_or_default())
}

/// The sign of the tab, where browsers look for it unasked.
pub(crate) async fn favicon() -> Result<Response, ApiError> {
    file("favicon.ico")
}

fn file(wanted: &str) -> Result<Response, ApiError> {
    let (_, kind, bytes) = FILES.iter().find(|(name, _, _)| *name == wanted).ok_or_else(ApiError::no_endpoint)?;
    let mut response = content::body_of(kind, *bytes);
    // Not OpenTSDB's year: the names stay when the program is exchanged.
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("max-age=3600"));
    Ok(response)
}
