//! `jsonp=f` wraps an API's JSON in a call, `f(…)`, for scripts loaded from elsewhere (`H-JSONP`).
//!
//! The content type stays JSON as in OpenTSDB, so that browsers, told `nosniff`, run the script only
//! where `http.cors_domains` is `*`: a page of any origin could otherwise read what CORS keeps from
//! it. The callback is a name, never other text.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use super::error::ApiError;
use super::params::Params;
use super::route;

/// Longest name of a callback.
const NAME_BYTES_MAX: usize = 256;

/// Whether the request names a callback.
pub(crate) fn asked(request: &Request) -> bool {
    matches!(callback(request), Ok(Some(_)))
}

/// The callback named, if any.
fn callback(request: &Request) -> Result<Option<String>, ApiError> {
    if !route::is_api(request.uri().path()) {
        return Ok(None);
    }
    let params = Params::of(request.uri())?;
    match params.last("jsonp") {
        None | Some("") => Ok(None),
        Some(name) if is_name(name) => Ok(Some(name.to_owned())),
        Some(_) => Err(ApiError::bad_with("Invalid callback name", "A callback is made of letters, digits and _ $ .")),
    }
}

fn is_name(name: &str) -> bool {
    name.len() <= NAME_BYTES_MAX
        && !name.starts_with(|first: char| first.is_ascii_digit() || first == '.')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_$.".contains(&byte))
}

/// Serves a request and wraps its answer if a callback is named.
pub(crate) async fn wrap(request: Request, next: Next) -> Response {
    match callback(&request) {
        Ok(name) => wrapped(name, next.run(request).await),
        Err(error) => error.into_response(),
    }
}

/// The answer to a request that no endpoint is asked to serve, wrapped if a callback is named.
pub(crate) fn refusal(request: &Request, error: ApiError) -> Response {
    callback(request).map_or_else(IntoResponse::into_response, |name| wrapped(name, error.into_response()))
}

fn wrapped(name: Option<String>, mut response: Response) -> Response {
    let Some(name) = name else { return response };
    let kind = response.headers().get(CONTENT_TYPE).map_or(&b""[..], |kind| kind.as_bytes());
    if !kind.starts_with(b"application/json") {
        return response;
    }
    response.headers_mut().remove(CONTENT_LENGTH);
    response.map(|body| Body::new(Wrapped { head: Some(format!("{name}(").into()), body, tail: Some(")".into()) }))
}

/// A body between two texts.
#[derive(Debug)]
struct Wrapped {
    head: Option<Bytes>,
    body: Body,
    tail: Option<Bytes>,
}

impl HttpBody for Wrapped {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Some(head) = self.head.take() {
            return Poll::Ready(Some(Ok(Frame::data(head))));
        }
        match Pin::new(&mut self.body).poll_frame(cx) {
            Poll::Ready(None) => Poll::Ready(self.tail.take().map(|tail| Ok(Frame::data(tail)))),
            other => other,
        }
    }

    fn size_hint(&self) -> SizeHint {
        let added = [&self.head, &self.tail].into_iter().flatten().map(|text| text.len() as u64).sum::<u64>();
        let inner = self.body.size_hint();
        let mut hint = SizeHint::new();
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper + added);
        }
        hint.set_lower(inner.lower() + added);
        hint
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `H-JSONP`: as in OpenTSDB, where no name is given nothing is wrapped.
    #[test]
    fn a_callback_without_a_name_is_none() {
        for query in ["jsonp", "jsonp=", "jsonp=f&jsonp="] {
            let request = Request::get(format!("/api/query?{query}")).body(Body::empty()).unwrap();
            assert!(matches!(callback(&request), Ok(None)), "{query}");
        }
    }

    /// `H-JSONP`: nothing but a name may come back as script.
    #[test]
    fn a_callback_is_a_name() {
        for (name, good) in [
            ("cb", true),
            ("$.fn_1", true),
            ("jQuery123.cb", true),
            ("1a", false),
            (".a", false),
            ("a(b", false),
            ("alert(1)//", false),
            ("<script>", false),
            ("é", false),
        ] {
            assert_eq!(is_name(name), good, "{name}");
        }
    }
}
