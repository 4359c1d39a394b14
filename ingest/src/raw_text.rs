//! A piece of text as it was sent, which is only decoded where somebody needs it.

use std::borrow::Cow;

/// A piece of text that may hold JSON escapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawText<'a> {
    raw: &'a str,
    escaped: bool,
}

impl<'a> RawText<'a> {
    /// Text without escapes.
    #[inline]
    pub const fn plain(raw: &'a str) -> Self {
        Self { raw, escaped: false }
    }

    /// The inside of a JSON string that has escapes, all of them well-formed.
    pub(crate) const fn escaped(raw: &'a str) -> Self {
        Self { raw, escaped: true }
    }

    /// The text as it was written, escapes and all.
    #[inline]
    pub const fn raw(self) -> &'a str {
        self.raw
    }

    /// The text with its escapes decoded. *Cost*: none without escapes, else one allocation.
    #[inline]
    pub fn decode(self) -> Cow<'a, str> {
        if self.escaped { unescape(self.raw).into() } else { self.raw.into() }
    }

    /// Whether it is empty.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.raw.is_empty()
    }
}

/// Decodes the inside of a string with well-formed escapes. Half a surrogate pair becomes U+FFFD, which no name may
/// hold: OpenTSDB refuses such names too.
fn unescape(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((before, after)) = rest.split_once('\\') {
        text.push_str(before);
        let mut chars = after.chars();
        let kind = chars.next();
        rest = chars.as_str();
        text.push(match kind {
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => unescape_unit(&mut rest),
            Some(itself) => itself,
            None => char::REPLACEMENT_CHARACTER,
        });
    }
    text.push_str(rest);
    text
}

/// The character of the four hexadecimal digits at the start of `rest`, and of the second half of a surrogate pair behind them.
fn unescape_unit(rest: &mut &str) -> char {
    let unit = |text: &str| text.get(..4).and_then(|digits| u16::from_str_radix(digits, 16).ok());
    let Some(first) = unit(rest) else { return char::REPLACEMENT_CHARACTER };
    *rest = rest.get(4..).unwrap_or_default();
    if let Some(character) = char::from_u32(u32::from(first)) {
        return character;
    }
    let after = rest.strip_prefix("\\u");
    let second = after.and_then(unit).into_iter();
    match char::decode_utf16(std::iter::once(first).chain(second)).next() {
        Some(Ok(pair)) => {
            *rest = after.and_then(|after| after.get(4..)).unwrap_or_default();
            pair
        }
        _ => char::REPLACEMENT_CHARACTER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_say_what_json_says() {
        let check = |raw: &str, expected: &str| assert_eq!(unescape(raw), expected, "{raw}");
        check(r#"a\"\\\/\b\f\n\r\tz"#, "a\"\\/\u{8}\u{c}\n\r\tz");
        check(r"\u00e9\u4E2d\ud83d\ude00!", "é中😀!");
        check(r"\ud83db", "\u{fffd}b");
        check(r"\ud83d\u0041", "\u{fffd}A");
        check(r"\ude00\ud83d\ude00", "\u{fffd}😀");
    }
}
