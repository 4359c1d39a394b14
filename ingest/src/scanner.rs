//! A JSON scanner over a put body. It borrows from the text, builds no tree, and reads each byte once.
//!
//! It accepts what Jackson accepts as OpenTSDB configures it: strict JSON (RFC 8259) and the numbers `NaN`, `Infinity`,
//! `+Infinity`, `-Infinity`, `+INF`, `-INF`. Strings may hold any escape of JSON and no control character. Depth is
//! bounded by [`IngestLimits::NESTING_DEPTH_MAX`](crate::IngestLimits::NESTING_DEPTH_MAX): nesting is kept in the bits
//! of one word, not on the stack.

use crate::raw_text::RawText;
use crate::{Error, IngestLimits, Result};

/// One JSON value, or the beginning of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token<'a> {
    /// A string, without its quotes.
    String(RawText<'a>),
    /// A number without fraction and exponent, as written.
    Integer(&'a str),
    /// Any other number, as written; also those that are not finite.
    Float(&'a str),
    /// `true` or `false`, as written.
    Bool(&'a str),
    /// `null`.
    Null,
    /// `{`.
    ObjectStart,
    /// `[`.
    ArrayStart,
}

/// A position in a text.
///
/// Invariant: `at` never passes the text's length, and is on a character's first byte wherever text is cut.
#[derive(Debug)]
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The byte at which it stands.
    pub(crate) const fn offset(&self) -> usize {
        self.at
    }

    /// The text from `from` up to its position.
    pub(crate) fn since(&self, from: usize) -> &'a str {
        let cut = self.text.get(from..self.at);
        debug_assert!(cut.is_some(), "BUG: {from}..{} is no piece of the text", self.at);
        cut.unwrap_or_default()
    }

    pub(crate) const fn refuse<T>(&self, expected: &'static str) -> Result<T> {
        Err(Error::Json { offset: self.at, expected })
    }

    /// Passes blanks.
    pub(crate) fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// The text from the next character that is no blank.
    pub(crate) fn rest(&mut self) -> &'a str {
        self.skip_blanks();
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Passes `bytes` bytes; a character must begin behind them.
    pub(crate) fn pass(&mut self, bytes: usize) {
        debug_assert!(self.text.is_char_boundary(self.at + bytes), "BUG: no character begins there");
        self.at += bytes;
    }

    /// Whether nothing is left.
    pub(crate) const fn is_done(&self) -> bool {
        self.at >= self.text.len()
    }

    /// Passes blanks and `byte`, if `byte` is next behind the blanks.
    pub(crate) fn take(&mut self, byte: u8) -> bool {
        self.skip_blanks();
        let taken = self.peek() == Some(byte);
        self.at += usize::from(taken);
        taken
    }

    /// Passes blanks and `byte`, which must be next behind them.
    pub(crate) fn expect(&mut self, byte: u8, expected: &'static str) -> Result<()> {
        if self.take(byte) { Ok(()) } else { self.refuse(expected) }
    }

    /// After an element: passes a comma and says true, or passes `end` and says false.
    pub(crate) fn more(&mut self, end: u8) -> Result<bool> {
        if self.take(b',') {
            Ok(true)
        } else if self.take(end) {
            Ok(false)
        } else {
            self.refuse("',' or the end of the object or array")
        }
    }

    /// A field's name and the colon after it.
    pub(crate) fn field_name(&mut self) -> Result<RawText<'a>> {
        self.expect(b'"', "a field name in double quotes")?;
        let name = self.string()?;
        self.expect(b':', "':'")?;
        Ok(name)
    }

    /// The next value, or its first bracket.
    pub(crate) fn token(&mut self) -> Result<Token<'a>> {
        self.skip_blanks();
        let from = self.at;
        match self.peek() {
            Some(b'"') => {
                self.at += 1;
                self.string().map(Token::String)
            }
            Some(b'{') => {
                self.at += 1;
                Ok(Token::ObjectStart)
            }
            Some(b'[') => {
                self.at += 1;
                Ok(Token::ArrayStart)
            }
            Some(b'-' | b'+' | b'0'..=b'9') => self.number(from),
            Some(b't') => self.word("true").map(Token::Bool),
            Some(b'f') => self.word("false").map(Token::Bool),
            Some(b'n') => self.word("null").map(|_| Token::Null),
            Some(b'N') => self.word("NaN").map(Token::Float),
            Some(b'I') => self.word("Infinity").map(Token::Float),
            _ => self.refuse("a value"),
        }
    }

    /// Passes the rest of a value whose first token was `token`.
    pub(crate) fn skip(&mut self, token: Token<'a>) -> Result<()> {
        // Bit 0 is the innermost bracket: 1 for an object.
        let mut nesting: u128 = match token {
            Token::ObjectStart => 1,
            Token::ArrayStart => 0,
            _ => return Ok(()),
        };
        let mut depth: u32 = 1;
        let mut may_end = true;
        while depth > 0 {
            let in_object = nesting & 1 == 1;
            let end = if in_object { b'}' } else { b']' };
            // Right behind an opening bracket its end may come; behind an element, a comma or the end.
            let ended = if may_end { self.take(end) } else { !self.more(end)? };
            may_end = false;
            if ended {
                depth -= 1;
                nesting >>= 1;
                continue;
            }
            if in_object {
                self.field_name()?;
            }
            let opened = match self.token()? {
                Token::ObjectStart => 1,
                Token::ArrayStart => 0,
                _ => continue,
            };
            if depth == IngestLimits::NESTING_DEPTH_MAX {
                return self.refuse("less nesting");
            }
            nesting = nesting << 1 | opened;
            depth += 1;
            may_end = true;
        }
        Ok(())
    }

    /// Passes an object of scalars whose `{` was passed, and hands each tag to `tag`.
    pub(crate) fn scalars(&mut self, mut tag: impl FnMut(RawText<'a>, Option<RawText<'a>>)) -> Result<()> {
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            self.skip_blanks();
            let key = self.field_name()?;
            let value = match self.token()? {
                Token::String(text) => Some(text),
                Token::Integer(text) | Token::Float(text) | Token::Bool(text) => Some(RawText::plain(text)),
                Token::Null => None,
                Token::ObjectStart | Token::ArrayStart => return self.refuse("a tag's value, not an object or array"),
            };
            tag(key, value);
            if !self.more(b'}')? {
                return Ok(());
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Passes the rest of a string whose opening quote was passed.
    fn string(&mut self) -> Result<RawText<'a>> {
        let from = self.at;
        let mut escaped = false;
        loop {
            self.pass_plain();
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    self.at += 1;
                    self.escape()?;
                }
                Some(0x20..) => self.at += 1,
                Some(_) => return self.refuse("an escape, not a bare control character"),
                None => return self.refuse("'\"'"),
            }
        }
        let raw = self.since(from);
        self.at += 1;
        Ok(if escaped { RawText::escaped(raw) } else { RawText::plain(raw) })
    }

    /// Passes whole words of eight characters that a string may hold as they are, up to the first other one.
    fn pass_plain(&mut self) {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        for chunk in rest.chunks_exact(8) {
            let Some(chunk) = chunk.first_chunk::<8>() else { return };
            let special = special(u64::from_le_bytes(*chunk));
            if special != 0 {
                self.at += (special.trailing_zeros() / 8) as usize;
                return;
            }
            self.at += 8;
        }
    }

    /// Passes an escape whose backslash was passed.
    fn escape(&mut self) -> Result<()> {
        let kind = self.peek();
        self.at += usize::from(kind.is_some());
        match kind {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(()),
            Some(b'u') => {
                let digits = self.text.as_bytes().get(self.at..self.at + 4);
                if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                    return self.refuse("four hexadecimal digits");
                }
                self.at += 4;
                Ok(())
            }
            _ => {
                self.at -= usize::from(kind.is_some());
                self.refuse("an escape of JSON")
            }
        }
    }

    /// Passes exactly `word`, which no letter or digit may follow.
    fn word(&mut self, word: &'static str) -> Result<&'a str> {
        let from = self.at;
        let rest = self.text.as_bytes().get(from..).unwrap_or_default();
        if !rest.starts_with(word.as_bytes()) {
            return self.refuse("a value");
        }
        self.at += word.len();
        if self.peek().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80)
        {
            self.at = from;
            return self.refuse("a value");
        }
        Ok(self.since(from))
    }

    /// Passes a number that begins at `from`, where the scanner stands.
    fn number(&mut self, from: usize) -> Result<Token<'a>> {
        let signed = self.peek();
        if let Some(b'+' | b'-') = signed {
            self.at += 1;
            if self.peek() == Some(b'I') {
                let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
                self.word(if rest.starts_with(b"INF") { "INF" } else { "Infinity" })?;
                return Ok(Token::Float(self.since(from)));
            }
        }
        if signed == Some(b'+') {
            return self.refuse("a number without '+'");
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
            if self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                return self.refuse("a number without leading zeroes");
            }
        } else {
            self.digits()?;
        }
        let mut whole = true;
        if self.peek() == Some(b'.') {
            whole = false;
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            whole = false;
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        let text = self.since(from);
        Ok(if whole { Token::Integer(text) } else { Token::Float(text) })
    }

    /// Passes one digit or more.
    fn digits(&mut self) -> Result<()> {
        let from = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == from { self.refuse("a digit") } else { Ok(()) }
    }
}

/// Sets the top bit of the first byte that is a quote, a backslash or a control character; bits above it mean nothing.
pub(crate) const fn special(word: u64) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    let (quote, backslash) = (word ^ (ONES * b'"' as u64), word ^ (ONES * b'\\' as u64));
    let zero = (quote.wrapping_sub(ONES) & !quote) | (backslash.wrapping_sub(ONES) & !backslash);
    (zero | (word.wrapping_sub(ONES * 0x20) & !word)) & (ONES * 0x80)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skipped(text: &str) -> Result<()> {
        let mut scanner = Scanner::new(text);
        let token = scanner.token()?;
        scanner.skip(token)?;
        scanner.skip_blanks();
        if scanner.is_done() { Ok(()) } else { scanner.refuse("the end") }
    }

    #[test]
    fn values_are_skipped_or_refused() {
        for good in [
            "{}",
            "[]",
            " [ ] ",
            r#"{"a":[1,{"b":null}],"c":"A\n\"\\"}"#,
            "[[[]],{},{\"\":0}]",
            "-0.5e+10",
            "true",
            "NaN",
            "+INF",
            "-INF",
            "-Infinity",
            "+Infinity",
            "Infinity",
            "\"é\"",
        ] {
            assert!(skipped(good).is_ok(), "{good} {:?}", skipped(good));
        }
        for bad in [
            "",
            "{",
            "[",
            "]",
            "[,]",
            "[1,]",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{a:1}",
            "{'a':1}",
            "[1 2]",
            "[1}",
            "{\"a\":1]",
            "01",
            "-",
            "+1",
            "1.",
            ".5",
            "1e",
            "1e+",
            "nul",
            "nulls",
            "truE",
            "Nan",
            "INF",
            "-inf",
            "+",
            "\"a",
            "\"\n\"",
            "\"\\q\"",
            "\"\\u12g4\"",
            "\"\\u12",
            "\"\\",
            "tru",
            "1x",
            "nullé",
            "-é",
        ] {
            assert!(skipped(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn strings_of_any_length_end_at_their_quote() {
        for length in 0..40 {
            for (end, is_string) in [("\"", true), ("\\\"\"", true), ("\u{1f}\"", false), ("\\x\"", false), ("", false)]
            {
                for filler in ["a", "é", "\u{7f}", "!", "["] {
                    let text = format!("\"{}{end}", filler.repeat(length));
                    assert_eq!(skipped(&text).is_ok(), is_string, "{text}");
                }
            }
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth: usize| skipped(&format!("{}{}", "[".repeat(depth), "]".repeat(depth)));
        let max = IngestLimits::NESTING_DEPTH_MAX as usize;
        assert!(nested(max).is_ok());
        assert!(matches!(nested(max + 1), Err(Error::Json { expected: "less nesting", .. })));
        assert!(skipped(&"[{\"a\":".repeat(100_000)).is_err());
    }
}
