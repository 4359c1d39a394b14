//! HTTP/1.1: paths in OpenTSDB's words, its JSON in and out.
//!
//! ```text
//! hyper ─ origin ─ path ─ mode ─ router ─ handler ─ answer or ApiError ─ jsonp ─ gzip ─ dress for old paths ─ headers
//! ```
//!
//! Plain puts take a shorter road to the same answers: [`quick`].
//!
//! Handlers parse, call a crate, and write what it says. Which status an outcome has is chosen in
//! [`error`] alone.

mod admin;
mod annotation;
mod answer;
mod asker;
mod assets;
mod backup;
mod body;
mod call;
mod charset;
mod classic;
mod compact;
mod content;
mod cors;
mod error;
mod expression;
mod fields;
mod form;
mod gate;
mod graph;
mod health;
mod json;
mod jsonp;
mod last;
mod logs;
mod looks;
mod mode;
pub(crate) mod number;
pub(crate) mod page;
mod params;
mod process;
mod put;
mod query;
mod query_stats;
pub(crate) mod quick;
mod route;
mod scrub;
mod search;
mod service;
mod stats;
mod store;
mod stream;
mod suggest;
mod tree;
mod ts_meta;
mod uid;
mod uid_meta;
mod unread;
mod whole;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::HttpBody as _;
use axum::extract::Request;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_SECURITY_POLICY, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Version};
use axum::middleware::{from_fn, map_request};
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use tower::Service as _;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;

use crate::app::App;
pub(crate) use admin::HEADER as ADMIN_HEADER;
pub(crate) use asker::Ends;
pub(crate) use content::body_of;
pub(crate) use error::report_lines;
pub(crate) use error::{ApiError, ROLE_TOO_LOW, not_open, not_ready};
use params::Params;
pub(crate) use route::ends_with_its_asker;

/// Nothing but our own pages may load, and nothing from elsewhere.
const POLICY: &str = "default-src 'self'; frame-ancestors 'none'";

/// The endpoints with everything that all of them share.
pub(crate) fn router(app: &Arc<App>) -> Router {
    packed(route::table(app).layer(CatchPanicLayer::custom(error::panicked)).layer(from_fn(jsonp::wrap)))
}

/// Packs answers as clients ask for it. Whoever wants none of our codings gets them plain: the layer would make a 406 of each, also
/// of the answer to a put that is stored. The list of queries tells headers, so that others stay as they came.
fn packed(router: Router) -> Router {
    let or_plain = async |mut request: Request| {
        if refuses_plain(request.headers()) {
            request.headers_mut().append(ACCEPT_ENCODING, HeaderValue::from_static("identity;q=0.001"));
        }
        request
    };
    router.layer(CompressionLayer::new()).layer(map_request(or_plain))
}

/// Whether answers as they are get no weight.
fn refuses_plain(headers: &HeaderMap) -> bool {
    let refuses = |element: &str| {
        let (coding, weight) = element.split_once(';').unwrap_or((element, ""));
        let is_plain = ["*", "identity"].iter().any(|name| coding.trim().eq_ignore_ascii_case(name));
        is_plain && weight.contains('0') && !weight.contains(|digit| matches!(digit, '1'..='9'))
    };
    let texts = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(',')).any(refuses)
}

/// Answers one request.
pub(crate) async fn answer(
    app: Arc<App>,
    router: Router,
    ends: Ends,
    request: hyper::Request<Incoming>,
) -> Result<Response, Infallible> {
    let started = Instant::now();
    app.metrics.http_requests.add(1);
    let (mut request, unread) = unread::lend(request);
    request.extensions_mut().insert(ends);
    let mut response = respond(&app, router, request).await;
    unread.settle(app.config.http.max_body_bytes, &mut response).await;
    app.metrics.http_latency.record(started.elapsed());
    Ok(response)
}

/// The answer, with what all of them have; nothing keeps the request.
async fn respond(app: &App, router: Router, request: Request) -> Response {
    let classic = (!route::is_api(request.uri().path())).then(|| {
        request.uri().query().unwrap_or_default().split(params::BETWEEN).any(|piece| piece.starts_with("json"))
    });
    // Counted references, not copies.
    let (method, uri, version) = (request.method().clone(), request.uri().clone(), request.version());
    let (origin, jsonp) = (cors::Origin::of(&app.config, &request), jsonp::asked(&request));
    let (mut response, headers) = match origin {
        Ok(cors::Origin::Preflight(response)) => (response, HeaderMap::new()),
        Ok(cors::Origin::Served(headers)) => (dispatch(app, router, request).await, headers),
        Err(refused) => (refused.into_response(), HeaderMap::new()),
    };
    if let Some((as_json, error)) = classic.zip(response.extensions_mut().remove::<ApiError>()) {
        let is_method = error.status() == StatusCode::METHOD_NOT_ALLOWED && route::is_for_operators(uri.path());
        response = if is_method { ApiError::only_read() } else { error.classic(as_json) };
    }
    for (name, value) in &headers {
        response.headers_mut().append(name.clone(), value.clone());
    }
    if version == Version::HTTP_10 && response.body().size_hint().exact().is_none() {
        // Its end is that of the connection, which hyper promises to keep in an answer of HTTP/1.1.
        *response.version_mut() = version;
    }
    error::report(app, &method, uri.path(), &mut response);
    dress(response.headers_mut(), !(jsonp && app.config.http.cors_domains == "*"));
    response
}

/// Adds what every answer tells browsers.
fn dress(headers: &mut HeaderMap, nosniff: bool) {
    if nosniff {
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    }
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
}

async fn dispatch(app: &App, mut router: Router, mut request: Request) -> Response {
    match admit(app, &mut request) {
        Ok(()) => router.call(request).await.unwrap_or_else(|never: Infallible| match never {}),
        Err(error) => jsonp::refusal(&request, error),
    }
}

/// Gives a request that an endpoint may serve its asker's role and the endpoint's plain name.
fn admit(app: &App, request: &mut Request) -> Result<(), ApiError> {
    body::refuse_chunked(&app.config, request.headers())?;
    if route::is_api(request.uri().path()) {
        check_call(request)?;
    }
    let plain = route::plain(request.uri())?;
    let role = gate::admit(app, plain.path(), request)?;
    request.extensions_mut().insert(role);
    if !mode::serves(&app.config, plain.path()) {
        return Err(ApiError::no_endpoint());
    }
    *request.uri_mut() = plain;
    Ok(())
}

/// Refuses what OpenTSDB refuses before it looks at the endpoint.
fn check_call(request: &Request) -> Result<(), ApiError> {
    if !matches!(*request.method(), Method::GET | Method::POST | Method::PUT | Method::DELETE) {
        return Err(ApiError::method(request.method()));
    }
    match Params::of(request.uri())?.last("serializer") {
        None | Some("json") => Ok(()),
        Some(other) => Err(ApiError::bad_with(
            "Requested serializer was not found",
            format!("Could not find a serializer with the name: {other}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::header::CONTENT_ENCODING;
    use axum::routing::get;
    use http_body_util::BodyExt as _;
    use tower::ServiceExt as _;

    use super::*;

    async fn check(wanted: &str, coding: Option<&str>) {
        let router = packed(Router::new().route("/", get(async || "a text".repeat(100))));
        let request = Request::builder().uri("/").header(ACCEPT_ENCODING, wanted).body(Body::empty()).unwrap();
        let response = router.oneshot(request).await.unwrap();
        let found = response.headers().get(CONTENT_ENCODING).map(|coding| coding.to_str().unwrap());
        assert_eq!((response.status(), found), (StatusCode::OK, coding), "{wanted}");
    }

    #[tokio::test]
    async fn an_answer_is_packed_as_its_client_asks_for() {
        for wanted in [
            "*;q=0",
            "gzip;q=0",
            "gzip;q=0, *;q=0",
            "identity",
            "identity;q=0",
            "br",
            "br, *;q=0",
            "IDENTITY; q=0.0",
            "",
        ] {
            check(wanted, None).await;
        }
        for wanted in ["gzip", "*", "gzip, *;q=0", "gzip, identity;q=0", "br, gzip;q=0.5", "deflate;q=0.5, gzip"] {
            check(wanted, Some("gzip")).await;
        }
        check("deflate", Some("deflate")).await;
        check("gzip;q=0, *", Some("deflate")).await;
    }

    /// `O-STATS-QUERY` tells them.
    #[tokio::test]
    async fn the_headers_of_a_request_stay_as_they_came() {
        let told = async |headers: HeaderMap| {
            let values = headers.get_all(ACCEPT_ENCODING).iter().map(|value| value.to_str().unwrap());
            values.collect::<Vec<_>>().join("+")
        };
        for wanted in ["gzip", "*", "br", "", "identity", "gzip;q=0", "gzip, identity;q=0.5, *;q=0.01"] {
            let router = packed(Router::new().route("/", get(told)));
            let request = Request::builder().uri("/").header(ACCEPT_ENCODING, wanted).body(Body::empty()).unwrap();
            let response = router.oneshot(request).await.unwrap();
            let text = response.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(text, wanted);
        }
    }
}
