//! The query string: repeated names kept in order, the last one counts where one is wanted.

use axum::extract::FromRequestParts;
use axum::http::Uri;
use axum::http::request::Parts;

use super::error::ApiError;

/// What parts two parameters (`H-QUERY-STRING`).
pub(super) const BETWEEN: [char; 2] = ['&', ';'];

/// The decoded parameters of a request, in the order they came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Params(Vec<(String, String)>);

impl Params {
    /// Decodes `uri`'s query string. The URI's own bound limits how many there are.
    ///
    /// # Errors
    ///
    /// 400 on a broken percent escape.
    pub(crate) fn of(uri: &Uri) -> Result<Self, ApiError> {
        let pieces = uri.query().unwrap_or_default().split(BETWEEN).filter(|piece| !piece.is_empty());
        let pairs = pieces.map(|piece| {
            let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
            Ok((decode(name)?, decode(value)?))
        });
        pairs.collect::<Result<_, _>>().map(Self)
    }

    /// The last value of `name`.
    pub(crate) fn last(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// All values of `name`, in order.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// All values, whatever their names.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(|(_, value)| value.as_bytes())
    }

    /// Whether `name` is there, with whatever value: OpenTSDB's switches work so.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.last(name).is_some()
    }

    /// The last value of `name`, unless it is empty.
    pub(crate) fn given(&self, name: &str) -> Option<&str> {
        self.last(name).filter(|value| !value.is_empty())
    }

    /// The same, to be kept.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.given(name).map(str::to_owned)
    }

    /// The last value of `name`, which must not be empty.
    pub(crate) fn required(&self, name: &str) -> Result<&str, ApiError> {
        self.given(name).ok_or_else(|| ApiError::missing_parameter(name))
    }
}

impl<S: Sync> FromRequestParts<S> for Params {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Self::of(&parts.uri)
    }
}

/// Percent escapes and `+` for a blank. Bytes that are no UTF-8 become U+FFFD, as in OpenTSDB, and match no name.
fn decode(text: &str) -> Result<String, ApiError> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => {
                let (high, low) = (bytes.next().and_then(digit), bytes.next().and_then(digit));
                let broken = || ApiError::bad(format!("Bad query string: {text}"));
                high.zip(low).map(|(high, low)| high << 4 | low).ok_or_else(broken)?
            }
            plain => plain,
        });
    }
    Ok(String::from_utf8(decoded).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(query: &str) -> Params {
        Params::of(&format!("/api/x?{query}").parse().unwrap()).unwrap()
    }

    #[test]
    fn the_last_of_a_repeated_name_counts_and_all_are_kept() {
        let found = params("m=a&m=b%7Bhost%3D*%7D&flag&x=1+2&&=");
        assert_eq!(found.last("m"), Some("b{host=*}"));
        assert_eq!(found.all("m").collect::<Vec<_>>(), ["a", "b{host=*}"]);
        assert!(found.has("flag") && !found.has("nope"));
        assert_eq!(found.last("x"), Some("1 2"));
        assert!(found.required("flag").is_err());
    }

    #[test]
    fn h_query_string_semicolons_part_parameters_too() {
        let found = params("type=metrics;q=a;b&;&m=x%3By");
        assert_eq!((found.last("type"), found.last("q")), (Some("metrics"), Some("a")));
        assert_eq!((found.has("b"), found.last("m")), (true, Some("x;y")));
    }

    #[test]
    fn h_query_string_bytes_that_are_no_utf_8_are_told_as_such() {
        let found = params("a=%ff&q=caf%E9+x&u=%C3%A9");
        assert_eq!(
            (found.last("a"), found.last("q"), found.last("u")),
            (Some("\u{fffd}"), Some("caf\u{fffd} x"), Some("é"))
        );
    }

    #[test]
    fn a_broken_escape_is_refused() {
        for query in ["a=%", "a=%1", "a=%zz", "a=%u00e9"] {
            assert!(Params::of(&format!("/x?{query}").parse().unwrap()).is_err(), "{query}");
        }
    }
}
