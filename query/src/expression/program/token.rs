//! The words of an expression.

use crate::error::ExpressionFault;
use crate::{Error, Result};

/// A word and the byte where it begins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Token<'a> {
    pub(super) at: usize,
    pub(super) kind: Kind<'a>,
}

/// What a word is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind<'a> {
    Integer(i64),
    /// With a point; as written, without its suffix.
    Fraction {
        digits: &'a str,
        is_double: bool,
    },
    Name(&'a str),
    /// An operator or a parenthesis; words such as `and` are spelled as their signs.
    Sign(&'static str),
}

/// Longer signs first.
const SIGNS: [&str; 18] =
    ["?:", "||", "&&", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "!", "(", ")", "?"];
const WORDS: [(&str, &str); 11] = [
    ("or", "||"),
    ("and", "&&"),
    ("not", "!"),
    ("eq", "=="),
    ("ne", "!="),
    ("lt", "<"),
    ("le", "<="),
    ("gt", ">"),
    ("ge", ">="),
    ("div", "/"),
    ("mod", "%"),
];

/// Cuts a text into words.
///
/// # Errors
/// `Invalid`: a character that begins none, or a number that is none.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>> {
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else {
            return Ok(found);
        };
        let at = text.len() - rest.len();
        let fault = || Error::Expression(ExpressionFault::Syntax { text: text.into(), at });
        let (kind, length) = if first.is_ascii_digit() {
            number(rest).ok_or_else(fault)?
        } else if is_name(first) {
            name(rest)
        } else if first == ':' {
            (Kind::Sign(":"), 1)
        } else {
            let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign)).ok_or_else(fault)?;
            (Kind::Sign(sign), sign.len())
        };
        found.push(Token { at, kind });
        rest = rest.get(length..).unwrap_or_default();
    }
}

fn is_name(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '$' | '@')
}

fn length_of(text: &str, part: impl Fn(char) -> bool) -> usize {
    text.find(|letter| !part(letter)).unwrap_or(text.len())
}

fn name(text: &str) -> (Kind<'_>, usize) {
    let length = length_of(text, is_name);
    let name = text.get(..length).unwrap_or_default();
    let word = WORDS.into_iter().find(|(word, _)| *word == name);
    (word.map_or(Kind::Name(name), |(_, sign)| Kind::Sign(sign)), length)
}

/// `12`, `12L`, `0x1F`, `017` in octal, `1.5`, `1.5f`, `1.5d`, `1.5e-3`; `None` if what follows makes it no number.
fn number(text: &str) -> Option<(Kind<'_>, usize)> {
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let length = length_of(hex, |letter| letter.is_ascii_hexdigit());
        let value = i64::from_str_radix(hex.get(..length)?, 16).ok()?;
        return ended(text, Kind::Integer(value), length + 2);
    }
    let whole = length_of(text, |letter| letter.is_ascii_digit());
    let Some(fraction) = text.get(whole..)?.strip_prefix('.') else {
        let digits = text.get(..whole)?;
        let radix = if whole > 1 && digits.starts_with('0') { 8 } else { 10 };
        let kind = i64::from_str_radix(digits, radix).map(Kind::Integer).ok()?;
        let suffix = text.get(whole..)?.starts_with(['l', 'L']);
        return ended(text, kind, whole + usize::from(suffix));
    };
    let digits = length_of(fraction, |letter| letter.is_ascii_digit());
    if digits == 0 {
        return None;
    }
    let mut length = whole + 1 + digits;
    length += exponent(text.get(length..)?);
    let kind = Kind::Fraction { digits: text.get(..length)?, is_double: text.get(length..)?.starts_with(['d', 'D']) };
    let suffix = text.get(length..)?.starts_with(['d', 'D', 'f', 'F']);
    ended(text, kind, length + usize::from(suffix))
}

/// The length of `e-3`, or 0.
fn exponent(text: &str) -> usize {
    let Some(after) = text.strip_prefix(['e', 'E']) else {
        return 0;
    };
    let digits = after.strip_prefix(['+', '-']).unwrap_or(after);
    match length_of(digits, |letter| letter.is_ascii_digit()) {
        0 => 0,
        count => text.len() - digits.len() + count,
    }
}

/// No letter may follow a number at once.
fn ended<'a>(text: &str, kind: Kind<'a>, length: usize) -> Option<(Kind<'a>, usize)> {
    let after = text.get(length..)?.chars().next();
    (!after.is_some_and(|letter| is_name(letter) || letter == '.')).then_some((kind, length))
}
