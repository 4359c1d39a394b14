//! Pages of other origins (`H-CORS`): who may ask, and the browser's question before it asks.
//!
//! Off unless `http.cors_domains` names origins. An origin that is not named is refused before
//! anything is done: a browser would only hide the answer, not undo a put.

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ORIGIN, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::response::Response;

use super::error::ApiError;
use crate::config::Config;

/// Takes a POST that no page of another origin had a browser send: a form is sent without a question, and with the credentials
/// that the browser keeps. Behind a proxy that gives another `Host` on, only `Sec-Fetch-Site` tells. Under `strict` all is taken.
///
/// # Errors
///
/// 405 for another method; 403 for another page, unless origins are named: then the others were refused before.
pub(crate) fn check_posted(config: &Config, method: &Method, headers: &HeaderMap) -> Result<(), ApiError> {
    if config.compat.strict {
        return Ok(());
    }
    if method != Method::POST {
        return Err(ApiError::method(method));
    }
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let origin = text("origin").unwrap_or("null");
    let is_other = match text("sec-fetch-site") {
        Some(site) => !matches!(site, "same-origin" | "none"),
        None => text("origin").is_some() && origin.split_once("://").map(|(_, host)| host) != text("host"),
    };
    if is_other && config.http.cors_domains.is_empty() {
        return Err(ApiError::origin_refused(origin, false));
    }
    Ok(())
}

/// What a request's origin means.
#[derive(Debug)]
pub(crate) enum Origin {
    /// Serve it, and add these headers to the answer.
    Served(HeaderMap),
    /// The browser only asks whether it may; this is the whole answer.
    Preflight(Response),
}

impl Origin {
    /// Looks at method and `Origin` of a request.
    ///
    /// # Errors
    ///
    /// 405 for `OPTIONS` that is no such question, or while no origin is named; 403 for an origin
    /// that is not named (200 under `strict`).
    pub(crate) fn of(config: &Config, request: &Request) -> Result<Self, ApiError> {
        let (http, strict) = (&config.http, config.compat.strict);
        let asks = request.method() == Method::OPTIONS;
        let origin = request.headers().get(ORIGIN).filter(|origin| !origin.is_empty());
        let Some(origin) = origin.filter(|_| !http.cors_domains.is_empty()) else {
            return if asks { Err(ApiError::method(&Method::OPTIONS)) } else { Ok(Self::Served(HeaderMap::new())) };
        };
        let known = |named: &str| named == "*" || named.as_bytes().eq_ignore_ascii_case(origin.as_bytes());
        if !http.cors_domains.split(',').any(|named| known(named.trim())) {
            return Err(ApiError::origin_refused(&String::from_utf8_lossy(origin.as_bytes()), strict));
        }
        let mut headers = HeaderMap::new();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, PUT, DELETE"));
        if let Ok(allowed) = HeaderValue::from_str(&http.cors_headers) {
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
        }
        // The answer differs by origin: no cache may give it to another.
        headers.insert(VARY, HeaderValue::from_static("Origin"));
        if !asks {
            return Ok(Self::Served(headers));
        }
        let mut response = Response::new(Body::empty());
        *response.headers_mut() = headers;
        Ok(Self::Preflight(response))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_of_another_page_is_told_from_a_tool_and_from_our_own_page() {
        let is_refused = |domains: &str, told: &[(&'static str, &str)]| {
            let mut config = Config::default();
            config.http.cors_domains = domains.to_owned();
            let headers: HeaderMap =
                told.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
            check_posted(&config, &Method::POST, &headers).is_err()
        };
        let host = ("host", "tsdb:4242");
        for own in [
            &[host][..],
            &[host, ("origin", "http://tsdb:4242")],
            &[host, ("origin", "https://outside"), ("sec-fetch-site", "same-origin")],
            &[host, ("sec-fetch-site", "none")],
        ] {
            assert!(!is_refused("", own), "{own:?}");
        }
        for other in [
            &[host, ("origin", "http://evil")][..],
            &[host, ("origin", "http://evil.tsdb:4242")],
            &[host, ("origin", "null")],
            &[host, ("sec-fetch-site", "cross-site")],
            &[host, ("sec-fetch-site", "same-site"), ("origin", "http://tsdb:4242")],
        ] {
            assert!(is_refused("", other), "{other:?}");
            assert!(!is_refused("http://evil", other), "{other:?}");
        }
    }

    /// The status chosen here (0: served) and the origin allowed.
    fn check(domains: &str, method: Method, origin: &str, expected: (u16, &str)) {
        let mut config = Config::default();
        config.http.cors_domains = domains.to_owned();
        let mut request = Request::new(Body::empty());
        *request.method_mut() = method;
        if !origin.is_empty() {
            request.headers_mut().insert(ORIGIN, origin.parse().unwrap());
        }
        let (status, headers) = match Origin::of(&config, &request) {
            Ok(Origin::Served(headers)) => (0, headers),
            Ok(Origin::Preflight(response)) => (response.status().as_u16(), response.headers().clone()),
            Err(error) => (error.status().as_u16(), HeaderMap::new()),
        };
        let allowed = headers.get(ACCESS_CONTROL_ALLOW_ORIGIN).map_or("", |value| value.to_str().unwrap());
        assert_eq!((status, allowed), expected, "{domains} {origin}");
    }

    /// `H-CORS`.
    #[test]
    fn only_named_origins_are_served() {
        check("", Method::GET, "http://x", (0, ""));
        check("", Method::OPTIONS, "http://x", (405, ""));
        check("http://x, http://y", Method::GET, "", (0, ""));
        check("http://x, http://y", Method::OPTIONS, "", (405, ""));
        check("http://x, http://y", Method::GET, "HTTP://Y", (0, "HTTP://Y"));
        check("http://x, http://y", Method::OPTIONS, "http://x", (200, "http://x"));
        check("http://x, http://y", Method::POST, "http://x.evil", (403, ""));
        check("*", Method::DELETE, "http://any", (0, "http://any"));
    }
}
