//! How the points of a body are laid out: a collector writes all alike, byte for byte, but for what they say.
//!
//! ```text
//! {"metric":"sys.cpu","timestamp":1700000000,"value":42,"tags":{"host":"a"}}
//! └ lead ──┘       └ lead ──────┘          └ lead ─┘  └ lead ─┘            └ end
//! ```
//!
//! What lies between the values is read once and compared from then on, so that no name of a field is looked at again. A
//! point that is laid out in any other way is no business of this module.

use std::ops::Range;
use std::sync::LazyLock;

use crate::lead::{Lead, RepeatedTime};
use crate::number::{few_digits, leading_digits};
use crate::raw_point::{Form, RawPoint, RawTags};
use crate::raw_text::RawText;
use crate::scanner::{Scanner, Token, special};
use crate::series_cache::{HashedTags, KnownGuard};
use crate::spelling::SmallValue;

/// Fields of a point.
const FIELDS: usize = 4;

/// Layouts that are looked for in a body.
const LOOKS_MAX: u32 = 4;

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
    fields: [(Lead<'a>, Field); FIELDS],
    /// What lies behind the last value.
    end: Lead<'a>,
}

/// What the point before said, and the next may say again.
#[derive(Debug, Clone, Copy, Default)]
struct Before<'a> {
    time: RepeatedTime<'a>,
    tags: Option<HashedTags<'a>>,
}

/// A point of which the next differs in metric and value alone, as senders write those of a host one after the other.
#[derive(Debug, Clone, Copy)]
struct Repeated<'a> {
    /// What lies before the metric, between it and the value, and behind the value.
    pieces: [&'a str; 3],
    is_quoted: bool,
    timestamp: i64,
    tags: HashedTags<'a>,
}

/// After so many points in a row that repeat nothing it is no longer looked for.
const MISSES_MAX: u32 = 8;

/// What is known of how a body's points are laid out.
#[derive(Debug)]
pub(super) struct Layouts<'a> {
    layout: Option<Layout<'a>>,
    repeated: Option<Repeated<'a>>,
    /// Points since the last that repeated the one before it.
    misses: u32,
    before: Before<'a>,
    /// How often another is looked for: a body whose points are all laid out otherwise is not read twice.
    looks_left: u32,
}

impl<'a> Layouts<'a> {
    /// Begins with the layout that most bodies have, so that the first point of those is read like the others.
    pub(super) fn new() -> Self {
        static USUAL: LazyLock<Option<Layout<'static>>> =
            LazyLock::new(|| Layout::of(r#"{"metric":"m","timestamp":1,"value":1,"tags":{"k":"v"}}"#));
        Self { layout: *USUAL, repeated: None, misses: 0, before: Before::default(), looks_left: LOOKS_MAX }
    }

    /// Reads the point that is next, if it is laid out as the one before, into one that says nothing yet; gives its bytes.
    /// Where it is not, the point is half read.
    #[inline]
    pub(super) fn read(&mut self, rest: &'a str, known: &KnownGuard<'_>, point: &mut RawPoint<'a>) -> Option<usize> {
        // Fast path: metric and value alone are others.
        if let Some(bytes) = self.repeated.as_ref().and_then(|repeated| repeated.read(rest, known, point)) {
            self.misses = 0;
            return Some(bytes);
        }
        let read = self.layout.as_ref()?.read(rest, (known, &mut self.before), point)?;
        self.misses += 1;
        let tags = self.before.tags.filter(|_| self.misses < MISSES_MAX);
        self.repeated = tags.and_then(|tags| read.repeated(rest, point.timestamp, tags));
        Some(read.bytes)
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
        let mut fields = [(Lead::default(), Field::Metric); FIELDS];
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
            *field = (Lead::of(text.get(from..value_at + quote)?), kind);
            from = scanner.offset() - quote;
        }
        let ended = !scanner.more(b'}').ok()? && scanner.is_done();
        ended.then_some(Self { fields, end: Lead::of(text.get(from..)?) })
    }

    /// Reads the point that `rest` begins with, if it is laid out so; its tags are taken for those of a known spelling.
    ///
    /// Field by field into its place: a point that is put together and then moved waits for its own bytes.
    #[inline]
    fn read(
        &self,
        rest: &'a str,
        (known, before): (&KnownGuard<'_>, &mut Before<'a>),
        point: &mut RawPoint<'a>,
    ) -> Option<Read> {
        point.form = Form::Object;
        let (mut left, mut metric, mut read, mut small) = (rest, "", Read::default(), None);
        for (lead, field) in &self.fields {
            left = lead.strip(left)?;
            let bytes = left.as_bytes();
            let end = match field {
                Field::Metric | Field::Quoted => quoted_bytes(bytes)?,
                Field::Timestamp => {
                    let (time, end) = before.time.read(left, || time(bytes))?;
                    point.timestamp = time;
                    end
                }
                Field::Number => {
                    let (end, number) = number(bytes)?;
                    small = number;
                    end
                }
                Field::Tags => {
                    // Fast path: they are those of the point before.
                    let again = before.tags.filter(|before| bytes.starts_with(before.text.as_bytes()));
                    let tags = if let Some(tags) = again {
                        tags
                    } else {
                        let object = bytes.starts_with(b"{").then_some(bytes)?;
                        let end = memchr::memchr(b'}', object)? + 1;
                        *before.tags.insert(known.hashed(Form::Object, left.get(..end)?))
                    };
                    point.tags = RawTags::Object(tags.text);
                    point.spelled = Some(known.guess_with(metric, tags));
                    tags.text.len()
                }
            };
            let (text, behind) = left.split_at_checked(end)?;
            let at = rest.len() - left.len();
            match field {
                Field::Metric => {
                    (metric, point.metric, read.metric) = (text, Some(RawText::plain(text)), at..at + end);
                }
                Field::Timestamp | Field::Tags => {}
                Field::Number | Field::Quoted => {
                    (point.value, read.value) = (Some(RawText::plain(text)), at..at + end);
                    read.is_quoted = *field == Field::Quoted;
                }
            }
            left = behind;
        }
        left = self.end.strip(left)?;
        point.spelled = point.spelled.map(|spelled| spelled.with_value(small));
        read.bytes = rest.len() - left.len();
        Some(read)
    }
}

/// Where a point's metric and value lie in its text.
#[derive(Debug, Default)]
struct Read {
    metric: Range<usize>,
    value: Range<usize>,
    is_quoted: bool,
    bytes: usize,
}

impl Read {
    /// What the next point may repeat; `None` where the value lies before the metric.
    fn repeated<'a>(&self, text: &'a str, timestamp: i64, tags: HashedTags<'a>) -> Option<Repeated<'a>> {
        let Self { metric, value, is_quoted, bytes } = self;
        let pieces = [text.get(..metric.start)?, text.get(metric.end..value.start)?, text.get(value.end..*bytes)?];
        Some(Repeated { pieces, is_quoted: *is_quoted, timestamp, tags })
    }
}

impl<'a> Repeated<'a> {
    /// Reads the point that `rest` begins with, if it differs in metric and value alone; else nothing of it is read.
    #[inline]
    fn read(&self, rest: &'a str, known: &KnownGuard<'_>, point: &mut RawPoint<'a>) -> Option<usize> {
        let [before, between, behind] = self.pieces;
        let left = rest.strip_prefix(before)?;
        let (metric, left) = left.split_at_checked(quoted_bytes(left.as_bytes())?)?;
        let left = left.strip_prefix(between)?;
        let bytes = left.as_bytes();
        let (end, small) = if self.is_quoted { (quoted_bytes(bytes)?, None) } else { number(bytes)? };
        let (value, left) = left.split_at_checked(end)?;
        let left = left.strip_prefix(behind)?;
        *point = RawPoint {
            form: Form::Object,
            metric: Some(RawText::plain(metric)),
            timestamp: self.timestamp,
            value: Some(RawText::plain(value)),
            tags: RawTags::Object(self.tags.text),
            spelled: Some(known.guess_with(metric, self.tags).with_value(small)),
        };
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
#[inline]
fn time(bytes: &[u8]) -> Option<(i64, usize)> {
    leading_digits(bytes).filter(|(_, count)| *count == 1 || bytes.first() != Some(&b'0'))
}

/// Bytes of a number as JSON has it, without exponent, and the number if it is small; what lies behind it is for the caller to look
/// at.
#[inline]
fn number(bytes: &[u8]) -> Option<(usize, Option<SmallValue>)> {
    // Fast path: a few digits.
    match few_digits(bytes) {
        Some((number, count)) if bytes.get(count) != Some(&b'.') && (count == 1 || bytes.first() != Some(&b'0')) => {
            Some((count, SmallValue::new(number)))
        }
        _ => Some((long_number_bytes(bytes)?, None)),
    }
}

fn long_number_bytes(bytes: &[u8]) -> Option<usize> {
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
