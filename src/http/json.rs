//! JSON in bodies and in answers of known size.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use serde::{Deserialize as _, Serialize};
use serde_json::value::RawValue;

use super::body;
use super::content::{JSON, body_of};
use super::error::ApiError;
use crate::bodies::BodyPool;

/// Values of a body that is read into a tree: some 20 MB of memory. A put has bounds of its own.
const VALUES_MAX: usize = 100_000;

/// What becomes of that which follows the JSON of a body, which OpenTSDB does not look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rest {
    /// It is an error: it may be a part of what is to be changed.
    Refused,
    /// It is left alone, such as the NUL of a client that sends it with its text.
    Left,
}

/// The JSON of a body, as it was written.
///
/// # Errors
///
/// What is wrong with it, for people.
pub(crate) fn value(body: &[u8], rest: Rest) -> Result<Box<RawValue>, String> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let value = Box::<RawValue>::deserialize(&mut reader).map_err(|cause| cause.to_string())?;
    if rest == Rest::Refused {
        reader.end().map_err(|cause| format!("Something follows the JSON: {cause}"))?;
    }
    Ok(value)
}

/// Refuses a body that would become far more in memory than it is as text, such as a list of ten million zeros.
///
/// *Cost*: one pass over the bytes. What is no JSON at all passes or not; reading it tells.
///
/// # Errors
///
/// 413: more values than a request may have.
pub(crate) fn check_size(body: &[u8]) -> Result<(), ApiError> {
    // Every value but the first follows a comma, or opens what it is in.
    let (mut values, mut in_text, mut escaped) = (1_usize, false, false);
    for byte in body {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b',' | b'[' | b'{' if !in_text => values += 1,
            _ => {}
        }
    }
    if values > VALUES_MAX { Err(ApiError::too_many("JSON values", values, VALUES_MAX)) } else { Ok(()) }
}

/// `value` as a successful answer.
pub(crate) fn ok(value: &impl Serialize) -> Result<Response, ApiError> {
    let body = serde_json::to_vec(value).map_err(|cause| ApiError::internal(cause.to_string()))?;
    Ok(body_of(JSON, Body::from(body)))
}

/// The same of a text that may be long: it counts as bodies do, from when it is written until it is sent.
///
/// # Errors
///
/// 503: there is no room beside the others.
pub(crate) fn counted(pool: &Arc<BodyPool>, value: &impl Serialize) -> Result<Response, ApiError> {
    let text = body::kept(pool, |to| Ok(serde_json::to_writer(to, value)?));
    let full = || {
        pool.refused.add(1);
        ApiError::answer_too_large(pool.bytes_max())
    };
    Ok(body_of(JSON, text.ok_or_else(full)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, expected: Option<u16>) {
        assert_eq!(check_size(body.as_bytes()).err().map(|error| error.status().as_u16()), expected);
    }

    #[test]
    fn an_answer_without_room_may_be_asked_for_again() {
        let answer = |bytes_max| {
            let pool = BodyPool::new(bytes_max);
            let status =
                counted(&pool, &"x".repeat(1 << 20)).map_or_else(|error| error.status(), |found| found.status());
            (status.as_u16(), pool.refused.get())
        };
        assert_eq!((answer((1 << 20) + 1), answer((1 << 20) + 2)), ((503, 1), (200, 0)));
    }

    #[test]
    fn values_are_counted_and_signs_within_texts_are_not() {
        check("", None);
        check(&format!("[{}0]", "0,".repeat(VALUES_MAX - 3)), None);
        check(&format!("[{}0]", "0,".repeat(VALUES_MAX)), Some(413));
        check(&"[".repeat(VALUES_MAX), Some(413));
        check(&format!("{{{}}}", "\"a\":1,".repeat(VALUES_MAX)), Some(413));
        check(&format!("\"{}\"", ",".repeat(2 * VALUES_MAX)), None);
        check(&format!("\"\\\"{}\"", "[{,".repeat(VALUES_MAX)), None);
        check(&format!("[\"\\\\\",{}0]", "0,".repeat(VALUES_MAX)), Some(413));
    }
}
