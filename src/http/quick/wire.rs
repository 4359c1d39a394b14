//! Answers as bytes: what hyper would write for the same response.

use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, DATE, HeaderName, VARY};
use axum::http::{HeaderValue, Response};
use bytes::Bytes;
use chrono::DateTime;
use http_body_util::BodyExt as _;

use crate::clock;

/// The answer to a put whose points are all stored.
#[derive(Debug)]
pub(super) struct Stored {
    /// The second of its `Date` header.
    second: u64,
    bytes: Bytes,
}

impl Stored {
    pub(super) fn new() -> Self {
        let second = clock::now_ms() / 1000;
        Self { second, bytes: Self::at(second, "") }
    }

    /// Its bytes now; `is_last` if the connection is closed behind it.
    pub(super) fn bytes(&mut self, is_last: bool) -> Bytes {
        let second = clock::now_ms() / 1000;
        if is_last {
            return Self::at(second, "Connection: close\r\n");
        }
        if second != self.second {
            *self = Self { second, bytes: Self::at(second, "") };
        }
        self.bytes.clone()
    }

    fn at(second: u64, more: &str) -> Bytes {
        let policy = super::super::POLICY;
        let date = date(second);
        format!(
            "HTTP/1.1 204 No Content\r\nX-Content-Type-Options: nosniff\r\n\
             Content-Security-Policy: {policy}\r\n{more}Date: {date}\r\n\r\n"
        )
        .into()
    }
}

fn date(second: u64) -> String {
    let time = i64::try_from(second).ok().and_then(|second| DateTime::from_timestamp(second, 0)).unwrap_or_default();
    time.format("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// Any other answer, its body uncompressed.
pub(super) async fn encode(response: Response<Body>) -> Vec<u8> {
    let (mut parts, body) = response.into_parts();
    // Bodies of answers to puts are in memory; reading one cannot fail.
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    parts.headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    parts.headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
    if let Ok(date) = HeaderValue::from_str(&date(clock::now_ms() / 1000)) {
        parts.headers.insert(DATE, date);
    }
    let mut bytes = format!("HTTP/1.1 {}\r\n", parts.status).into_bytes();
    for (name, value) in &parts.headers {
        bytes.extend_from_slice(titled(name).as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(&body);
    bytes
}

/// A header's name as hyper writes it on this server: each of its words begins with a capital.
fn titled(name: &HeaderName) -> String {
    let words = name.as_str().split('-').map(|word| {
        let (first, rest) = word.split_at_checked(1).unwrap_or_default();
        first.to_ascii_uppercase() + rest
    });
    words.collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use axum::http::header::{CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};

    use super::*;

    #[tokio::test]
    async fn an_answer_is_its_status_its_headers_and_its_body() {
        let mut response = Response::new(Body::from("{}"));
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        let text = String::from_utf8(encode(response).await).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{head}");
        for line in ["Content-Type: application/json", "X-Content-Type-Options: nosniff", "Content-Length: 2"] {
            assert!(head.lines().any(|found| found == line), "{line} in {head}");
        }
        assert_eq!(body, "{}");
    }

    #[test]
    fn dates_are_written_as_http_has_them() {
        assert_eq!(date(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
    }
}
