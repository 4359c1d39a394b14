//! Request bodies as UTF-8, from the charset that `Content-Type` names (rule `W-PUT-CHARSET`).
//!
//! Without one a body is UTF-8, and what is no UTF-8 in it becomes U+FFFD. Java HTTP clients send ISO-8859-1 unless told
//! otherwise, and say so. OpenTSDB takes every charset that Java has, and gives no answer at all to one that it does not
//! know or that stands in quotes.

use std::borrow::Cow;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use basalt_ingest::{decode_latin1, decode_text};
use bytes::Bytes;

use super::body;
use super::error::ApiError;
use crate::app::App;

/// A charset that bodies may be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charset {
    Utf8,
    Latin1,
    Ascii,
}

/// Their names, as Java has them.
const NAMES: &[(&str, Charset)] = &[
    ("utf-8", Charset::Utf8),
    ("utf8", Charset::Utf8),
    ("iso-8859-1", Charset::Latin1),
    ("iso8859-1", Charset::Latin1),
    ("iso_8859-1", Charset::Latin1),
    ("iso8859_1", Charset::Latin1),
    ("latin1", Charset::Latin1),
    ("l1", Charset::Latin1),
    ("us-ascii", Charset::Ascii),
    ("ascii", Charset::Ascii),
];

impl Charset {
    /// That of a `Content-Type`; `None` for one that is not known here.
    pub(crate) fn of(content_type: &[u8]) -> Option<Self> {
        let Some(name) = named(content_type) else { return Some(Self::Utf8) };
        let known = NAMES.iter().find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes()));
        known.map(|(_, charset)| *charset)
    }

    /// A body in this charset, as UTF-8. *Cost*: a look at it where it is that already; else up to three times its bytes.
    fn decode(self, body: Bytes) -> Bytes {
        let decoded = match self {
            Self::Utf8 => match decode_text(&body) {
                Cow::Borrowed(_) => None,
                Cow::Owned(text) => Some(text),
            },
            _ if body.is_ascii() => None,
            Self::Latin1 => Some(decode_latin1(&body)),
            Self::Ascii => {
                let signs = body.iter().map(|byte| if byte.is_ascii() { char::from(*byte) } else { '\u{fffd}' });
                Some(signs.collect())
            }
        };
        decoded.map_or(body, Bytes::from)
    }
}

/// The name in `…; charset=NAME`, with or without quotes.
fn named(content_type: &[u8]) -> Option<&[u8]> {
    let mut parameters = content_type.split(|byte| *byte == b';').skip(1).map(<[u8]>::trim_ascii);
    let value = parameters.find_map(|parameter| {
        let (name, value) = parameter.split_at_checked(CHARSET.len())?;
        name.eq_ignore_ascii_case(CHARSET).then_some(value.trim_ascii())
    })?;
    Some(value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value))
}

const CHARSET: &[u8] = b"charset=";

/// Reads `body` to its end as [`body::read`] does, and gives it as UTF-8.
///
/// # Errors
///
/// Those of [`body::read`]; 400 for a charset that is not known.
pub(crate) async fn read(app: &App, headers: &HeaderMap, body: Body) -> Result<Bytes, ApiError> {
    to_utf8(headers, body::read(app, headers, body).await?)
}

fn to_utf8(headers: &HeaderMap, body: Bytes) -> Result<Bytes, ApiError> {
    // Nobody minds the charset of no body.
    if body.is_empty() {
        return Ok(body);
    }
    let content_type = headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
    let charset = Charset::of(content_type).ok_or_else(|| {
        let name = String::from_utf8_lossy(named(content_type).unwrap_or_default());
        ApiError::bad_with("Unsupported charset", format!("`{name}` is not UTF-8, ISO-8859-1 or US-ASCII"))
    })?;
    Ok(charset.decode(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(content_type: &str, expected: Option<Charset>) {
        assert_eq!(Charset::of(content_type.as_bytes()), expected, "{content_type}");
    }

    /// `W-PUT-CHARSET`.
    #[test]
    fn w_put_charset_is_the_one_that_is_named() {
        for plain in ["", "application/json", "application/json;", "text/plain; x=y", "charset=latin1"] {
            check(plain, Some(Charset::Utf8));
        }
        check("application/json; charset=UTF-8", Some(Charset::Utf8));
        check("application/json;charset=\"utf8\"", Some(Charset::Utf8));
        check("application/json; charset=ISO-8859-1", Some(Charset::Latin1));
        check("text/plain;x=y; Charset= latin1 ;z", Some(Charset::Latin1));
        check("application/json; charset=US-ASCII", Some(Charset::Ascii));
        for unknown in ["utf-16", "", "nosuch", "\""] {
            check(&format!("application/json; charset={unknown}"), None);
        }
    }

    /// `W-PUT-CHARSET`.
    #[test]
    fn w_put_charset_a_body_becomes_utf_8_or_is_refused() {
        let body_of = |content_type: &str, body: &'static [u8]| {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, content_type.parse().unwrap())]);
            let text = to_utf8(&headers, Bytes::from_static(body));
            text.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap()).map_err(|error| error.status().as_u16())
        };
        assert_eq!(body_of("a/b", "é".as_bytes()), Ok("é".to_owned()));
        assert_eq!(body_of("a/b", b"\xe9"), Ok("\u{fffd}".to_owned()));
        assert_eq!(body_of("a/b; charset=iso-8859-1", b"\xe9a"), Ok("éa".to_owned()));
        assert_eq!(body_of("a/b; charset=us-ascii", b"\xe9a"), Ok("\u{fffd}a".to_owned()));
        assert_eq!(body_of("a/b; charset=utf-16", b"a"), Err(400));
        assert_eq!(body_of("a/b; charset=utf-16", b""), Ok(String::new()));
    }
}
