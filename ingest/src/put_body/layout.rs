//! How the points of a body are laid out: a collector writes all alike, byte for byte, but for what they say.
//!
//! ```text
//! {"metric":"sys.cpu","timestamp":1700000000,"value":42,"tags":{"host":"a"}}
//! └ lead ──┘       └ lead ──────┘          └ lead ─┘  └ lead ─┘            └ end
//! ```
//!
//! What lies between the values is read once and compared from then on, so that no name of a field is looked at again. A
//! point that is laid out in any other way is no business of this module.

use crate::raw_point::{Form, RawPoint, RawTags, RawText};
use crate::scanner::{Scanner, Token, special};
use crate::series_cache::{HashedTags, KnownGuard};

/// Fields of a point.
const FIELDS: usize = 4;

/// Layouts that are looked for in a body.
const LOOKS_MAX: u32 = 4;

/// More digits could be more than a time can hold.
const TIME_DIGITS_MAX: usize = 18;

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Metric,
    /// Digits alone.
    Timestamp,
    /// A number.
    Number,
    /// A value in quotes.
    Quoted,
    Tags,
}

/// The layout of a point that was read.
#[derive(Debug, Clone, Copy)]
struct Layout<'a> {
    /// Each field once, the metric before the tags, and what lies before its value; quotes do not belong to a value.
    fields: [(&'a str, Field); FIELDS],
    /// What lies behind the last value.
    end: &'a str,
}

/// What is known of how a body's points are laid out.
#[derive(Debug)]
pub(super) struct Layouts<'a> {
    layout: Option<Layout<'a>>,
    /// Of the point before.
    tags: Option<HashedTags<'a>>,
    /// How often another is looked for: a body whose points are all laid out otherwise is not read twice.
    looks_left: u32,
}

impl<'a> Layouts<'a> {
    pub(super) const fn new() -> Self {
        Self { layout: None, tags: None, looks_left: LOOKS_MAX }
    }

    /// Reads the point that is next, if it is laid out as the one before, into one that says nothing yet; gives its bytes.
    /// Where it is not, the point is half read.
    #[inline]
    pub(super) fn read(&mut self, rest: &'a str, known: &KnownGuard<'_>, point: &mut RawPoint<'a>) -> Option<usize> {
        self.layout.as_ref()?.read(rest, (known, &mut self.tags), point)
    }

    /// Looks at a point that was laid out otherwise.
    pub(super) fn learn(&mut self, text: &'a str) {
        if let Some(left) = self.looks_left.checked_sub(1) {
            (self.layout, self.looks_left) = (Layout::of(text), left);
        }
    }
}

impl<'a> Layout<'a> {
    /// The layout of `text`, a point; `None` where it is none, has other fields than a point's four, any of them twice or in a
    /// form that collectors do not use, or the tags before the metric.
    fn of(text: &'a str) -> Option<Self> {
        let mut scanner = Scanner::new(text);
        let mut fields = [("", Field::Metric); FIELDS];
        let (mut from, mut seen) = (0, [false; FIELDS]);
        scanner.expect(b'{', "'{'").ok()?;
        for (place, field) in fields.iter_mut().enumerate() {
            if place > 0 && !scanner.more(b'}').ok()? {
                return None;
            }
            let name = scanner.field_name().ok()?;
            scanner.skip_blanks();
            let value_at = scanner.offset();
            let token = scanner.token().ok()?;
            let (kind, number) = match (name.raw(), token) {
                ("metric", Token::String(_)) => (Field::Metric, 0),
                ("timestamp", Token::Integer(_)) => (Field::Timestamp, 1),
                ("value", Token::Integer(_) | Token::Float(_)) => (Field::Number, 2),
                ("value", Token::String(_)) => (Field::Quoted, 2),
                // The metric makes a spelling with them.
                ("tags", Token::ObjectStart) if seen.first() == Some(&true) => (Field::Tags, 3),
                _ => return None,
            };
            scanner.skip(token).ok()?;
            if std::mem::replace(seen.get_mut(number)?, true) {
                return None;
            }
            let quote = usize::from(matches!(kind, Field::Metric | Field::Quoted));
            *field = (text.get(from..value_at + quote)?, kind);
            from = scanner.offset() - quote;
        }
        let ended = !scanner.more(b'}').ok()? && scanner.is_done();
        ended.then_some(Self { fields, end: text.get(from..)? })
    }

    /// Reads the point that `rest` begins with, if it is laid out so; its tags are taken for those of a known spelling.
    ///
    /// Field by field into its place: a point that is put together and then moved waits for its own bytes.
    #[inline]
    fn read(
        &self,
        rest: &'a str,
        (known, before): (&KnownGuard<'_>, &mut Option<HashedTags<'a>>),
        point: &mut RawPoint<'a>,
    ) -> Option<usize> {
        point.form = Form::Object;
        let (mut left, mut metric) = (rest, "");
        for (lead, field) in &self.fields {
            left = left.strip_prefix(lead)?;
            let bytes = left.as_bytes();
            let end = match field {
                Field::Metric | Field::Quoted => quoted_bytes(bytes)?,
                Field::Timestamp => {
                    let (time, end) = time(bytes)?;
                    point.timestamp = time;
                    end
                }
                Field::Number => number_bytes(bytes)?,
                Field::Tags => {
                    // Fast path: they are those of the point before.
                    let again = before.filter(|before| bytes.starts_with(before.text.as_bytes()));
                    let tags = if let Some(tags) = again {
                        tags
                    } else {
                        let end = memchr::memchr(b'}', bytes).filter(|_| bytes.first() == Some(&b'{'))? + 1;
                        *before.insert(known.hashed(Form::Object, left.get(..end)?))
                    };
                    point.tags = RawTags::Object(tags.text);
                    point.spelled = Some(known.guess_with(metric, tags));
                    tags.text.len()
                }
            };
            let (text, behind) = left.split_at_checked(end)?;
            match field {
                Field::Metric => (metric, point.metric) = (text, Some(RawText::plain(text))),
                Field::Timestamp | Field::Tags => {}
                Field::Number | Field::Quoted => point.value = Some(RawText::plain(text)),
            }
            left = behind;
        }
        left = left.strip_prefix(self.end)?;
        Some(rest.len() - left.len())
    }
}

/// Bytes up to the quote that ends a string without escapes. Strings at the very end of a text are not looked at.
fn quoted_bytes(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    for chunk in bytes.chunks_exact(8) {
        let special = special(u64::from_le_bytes(*chunk.first_chunk()?));
        if special != 0 {
            at += (special.trailing_zeros() / 8) as usize;
            return (bytes.get(at) == Some(&b'"')).then_some(at);
        }
        at += 8;
    }
    None
}

/// A time of digits alone, as JSON has them, and how many these are.
fn time(bytes: &[u8]) -> Option<(i64, usize)> {
    let (mut time, mut count) = (0_i64, 0);
    for byte in bytes {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        if count == TIME_DIGITS_MAX || (count == 1 && time == 0) {
            return None;
        }
        time = time * 10 + i64::from(digit);
        count += 1;
    }
    (count > 0).then_some((time, count))
}

/// Bytes of a number as JSON has it, without exponent; what lies behind it is for the caller to look at.
fn number_bytes(bytes: &[u8]) -> Option<usize> {
    let digits =
        |from: usize| bytes.get(from..).map_or(0, |rest| rest.iter().take_while(|b| b.is_ascii_digit()).count());
    let sign = usize::from(bytes.first() == Some(&b'-'));
    let whole = digits(sign);
    let end = sign + whole;
    if whole == 0 || (whole > 1 && bytes.get(sign) == Some(&b'0')) {
        return None;
    }
    if bytes.get(end) != Some(&b'.') {
        return Some(end);
    }
    let fraction = digits(end + 1);
    (fraction > 0).then_some(end + 1 + fraction)
}

#[cfg(test)]
mod tests;
