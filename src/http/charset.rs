//! Request bodies as UTF-8, from the charset that `Content-Type` names (rule `W-PUT-CHARSET`).
//!
//! Without one a body is UTF-8, and what is no UTF-8 in it becomes U+FFFD. Java HTTP clients send ISO-8859-1 unless told
//! otherwise, and say so. OpenTSDB takes every charset that Java has, and gives no answer at all to one that it does not
//! know or that stands in quotes.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use basalt_ingest::{decode_latin1, decode_text};
use bytes::Bytes;

use super::body;
use super::error::ApiError;
use crate::app::App;
use crate::bodies::BodyPool;

/// A charset that bodies may be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charset {
    Utf8,
    Latin1,
    Ascii,
}

/// Most bytes of UTF-8 that a byte of a body becomes: those of U+FFFD.
const GROWTH_MAX: usize = 3;

/// Bytes of ISO-8859-1 or ASCII that become text at once.
const PIECE_BYTES: usize = 8 << 10;

/// Their names and aliases, as Java has them.
#[rustfmt::skip]
const NAMES: &[(Charset, &[&str])] = &[
    (Charset::Utf8, &["utf-8", "utf8", "unicode-1-1-utf-8"]),
    (Charset::Latin1, &[
        "iso-8859-1", "iso8859-1", "iso_8859-1", "iso_8859_1", "iso8859_1", "8859_1", "iso_8859-1:1987", "iso-ir-100",
        "csisolatin1", "latin1", "l1", "819", "cp819", "ibm819", "ibm-819",
    ]),
    (Charset::Ascii, &[
        "us-ascii", "ascii", "ascii7", "csascii", "iso646-us", "iso-ir-6", "iso_646.irv:1983", "iso_646.irv:1991",
        "ansi_x3.4-1968", "ansi_x3.4-1986", "646", "cp367", "ibm367", "default", "us",
    ]),
];

impl Charset {
    /// That of a `Content-Type`.
    ///
    /// # Errors
    ///
    /// The name of one that is not known here.
    pub(crate) fn of(content_type: &[u8]) -> Result<Self, &[u8]> {
        let Some(name) = named(content_type) else { return Ok(Self::Utf8) };
        let is_it = |known: &&str| name.eq_ignore_ascii_case(known.as_bytes());
        NAMES.iter().find(|(_, names)| names.iter().any(is_it)).map(|(charset, _)| *charset).ok_or(name)
    }

    /// Whether a body in it is UTF-8 already.
    fn is_utf8(self, body: &[u8]) -> bool {
        match self {
            Self::Utf8 => matches!(decode_text(body), Cow::Borrowed(_)),
            Self::Latin1 | Self::Ascii => body.is_ascii(),
        }
    }

    /// Writes a body in it as UTF-8.
    fn decode(self, body: &[u8], to: &mut dyn Write) -> io::Result<()> {
        let ascii = |byte: &u8| if byte.is_ascii() { char::from(*byte) } else { char::REPLACEMENT_CHARACTER };
        match self {
            Self::Utf8 => body.utf8_chunks().try_for_each(|chunk| {
                let replaced = if chunk.invalid().is_empty() { "" } else { "\u{fffd}" };
                to.write_all(chunk.valid().as_bytes())?;
                to.write_all(replaced.as_bytes())
            }),
            Self::Latin1 => {
                body.chunks(PIECE_BYTES).try_for_each(|piece| to.write_all(decode_latin1(piece).as_bytes()))
            }
            Self::Ascii => body
                .chunks(PIECE_BYTES)
                .try_for_each(|piece| to.write_all(piece.iter().map(ascii).collect::<String>().as_bytes())),
        }
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
/// Those of [`body::read`], for what it becomes too; 400 for a charset that is not known.
pub(crate) async fn read(app: &App, headers: &HeaderMap, body: Body) -> Result<Bytes, ApiError> {
    to_utf8(headers, body::read(app, headers, body).await?, &app.bodies)
}

/// *Cost*: a look at the body where it is UTF-8 already; else up to three times its bytes, a share of `pool` as those of any body.
fn to_utf8(headers: &HeaderMap, body: Bytes, pool: &Arc<BodyPool>) -> Result<Bytes, ApiError> {
    let content_type = headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
    let charset = match Charset::of(content_type) {
        Ok(charset) => charset,
        // Text of these bytes only is the same in whatever is not UTF-16, UTF-32 or EBCDIC. In the first two it has zeros, and in the
        // last no letter is ASCII. No body is text of them too.
        Err(_) if body.is_ascii() && !body.contains(&0) => Charset::Ascii,
        Err(name) => {
            let details = format!("`{}` is not UTF-8, ISO-8859-1 or US-ASCII", String::from_utf8_lossy(name));
            return Err(ApiError::bad_with("Unsupported charset", details));
        }
    };
    if charset.is_utf8(&body) {
        return Ok(body);
    }
    body::made(body.len() * GROWTH_MAX, pool, |to| charset.decode(&body, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(content_type: &str, expected: Result<Charset, &str>) {
        assert_eq!(Charset::of(content_type.as_bytes()), expected.map_err(str::as_bytes), "{content_type}");
    }

    /// `W-PUT-CHARSET`.
    #[test]
    fn w_put_charset_is_the_one_that_is_named() {
        for plain in ["", "application/json", "application/json;", "text/plain; x=y", "charset=latin1"] {
            check(plain, Ok(Charset::Utf8));
        }
        check("application/json; charset=UTF-8", Ok(Charset::Utf8));
        check("application/json;charset=\"utf8\"", Ok(Charset::Utf8));
        check("application/json; charset=ISO-8859-1", Ok(Charset::Latin1));
        check("text/plain;x=y; Charset= latin1 ;z", Ok(Charset::Latin1));
        check("application/json; charset=US-ASCII", Ok(Charset::Ascii));
        for unknown in ["utf-16", "", "nosuch", "\""] {
            check(&format!("application/json; charset={unknown}"), Err(unknown));
        }
    }

    /// `W-PUT-CHARSET`.
    #[test]
    fn w_put_charset_a_body_becomes_utf_8_or_is_refused() {
        let body_of = |content_type: &str, body: &'static [u8]| {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, content_type.parse().unwrap())]);
            let text = to_utf8(&headers, Bytes::from_static(body), &BodyPool::new(0));
            text.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap()).map_err(|error| error.status().as_u16())
        };
        assert_eq!(body_of("a/b", "é".as_bytes()), Ok("é".to_owned()));
        assert_eq!(body_of("a/b", b"a\xe9\xf0\x9f\xffb"), Ok("a\u{fffd}\u{fffd}\u{fffd}b".to_owned()));
        assert_eq!(body_of("a/b; charset=iso-8859-1", b"\xe9a"), Ok("éa".to_owned()));
        assert_eq!(body_of("a/b; charset=us-ascii", b"\xe9a"), Ok("\u{fffd}a".to_owned()));
        // Of a charset that is not known only what is the same in all.
        assert_eq!(body_of("a/b; charset=windows-1252", b"a"), Ok("a".to_owned()));
        assert_eq!(body_of("a/b; charset=windows-1252", b"\xe9"), Err(400));
        assert_eq!(body_of("a/b; charset=utf-16", b"\0a"), Err(400));
        assert_eq!(body_of("a/b; charset=utf-16", b""), Ok(String::new()));
    }

    #[test]
    fn what_a_body_becomes_has_its_share_of_what_all_may_hold() {
        const MIB: usize = 1 << 20;
        let pool = BodyPool::new(4 * MIB);
        let text = |bytes: usize| {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, "a/b; charset=latin1".parse().unwrap())]);
            to_utf8(&headers, Bytes::from(vec![0xe9; bytes]), &pool).map_err(|error| error.status().as_u16())
        };
        let long = text(MIB * 3 / 2).unwrap();
        assert_eq!((long.len(), pool.used_bytes()), (3 * MIB, 3 << 20));
        assert_eq!(long, "é".repeat(MIB * 3 / 2));
        assert_eq!(text(MIB).unwrap_err(), 503);
        drop(long);
        assert_eq!(pool.used_bytes(), 0);
    }
}
