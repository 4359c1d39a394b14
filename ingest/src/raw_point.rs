//! A point as it was sent: names and numbers are still text, borrowed from the body or line.

use std::borrow::Cow;

use crate::raw_text::RawText;
use crate::scanner::Scanner;
use crate::spelling::Spelled;

/// The form in which a point was written. It is part of a series' spelling, as the same bytes mean other names in another form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// An object of a put body.
    Object,
    /// A `null` in a put body's array.
    Null,
    /// A put or import line.
    Line,
}

/// One tag: its key, and its value unless that was `null`.
pub type Tag<'a> = (Cow<'a, str>, Option<Cow<'a, str>>);

/// A point's tags, not parsed: a series whose spelling is known never needs that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RawTags<'a> {
    /// None were given, or `null`.
    Absent,
    /// A JSON object of scalars, well-formed, with its braces.
    Object(&'a str),
    /// The words of a line, `key=value` each, well-formed, separated by blanks.
    Words(&'a str),
}

impl<'a> RawTags<'a> {
    /// The text as it was written.
    #[inline]
    pub const fn raw(self) -> &'a str {
        match self {
            Self::Absent => "",
            Self::Object(text) | Self::Words(text) => text,
        }
    }

    /// The tags in the order written; a key written twice has its first place and its last value.
    /// *Cost*: an allocation.
    pub fn decode(self) -> Vec<Tag<'a>> {
        let mut tags = Vec::new();
        match self {
            Self::Absent => {}
            Self::Object(text) => {
                let mut scanner = Scanner::new(text);
                let tag = |key: RawText<'a>, value: Option<RawText<'a>>| {
                    tags.push((key.decode(), value.map(RawText::decode)));
                };
                let read = scanner.expect(b'{', "'{'").and_then(|()| scanner.scalars(tag));
                debug_assert!(read.is_ok(), "BUG: tags were not checked when the body was parsed");
            }
            Self::Words(text) => {
                let pairs = text.split(' ').filter_map(|word| word.split_once('='));
                tags.extend(pairs.map(|(key, value)| (key.into(), Some(value.into()))));
            }
        }
        last_of_each_key(tags)
    }
}

/// Keeps, of tags with one key, the last value in the first one's place.
fn last_of_each_key(tags: Vec<Tag<'_>>) -> Vec<Tag<'_>> {
    /// Up to this many tags, comparing each with each is faster than a map; senders have no more.
    const FEW: usize = 16;
    let mut kept: Vec<Tag<'_>> = Vec::with_capacity(tags.len());
    let mut places = std::collections::HashMap::new();
    for (key, value) in tags {
        let place = if kept.len() <= FEW {
            kept.iter().position(|(known, _)| *known == key)
        } else {
            if places.is_empty() {
                places.extend(kept.iter().enumerate().map(|(place, (known, _))| (known.clone(), place)));
            }
            places.get(&key).copied()
        };
        if let Some(tag) = place.and_then(|place| kept.get_mut(place)) {
            tag.1 = value;
            continue;
        }
        if !places.is_empty() {
            places.insert(key.clone(), kept.len());
        }
        kept.push((key, value));
    }
    kept
}

/// A point as it was sent.
///
/// *Shape*: 120 bytes, borrowed from the text. *Bounds*: those of the body or line it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawPoint<'a> {
    /// How it was written.
    pub form: Form,
    /// Metric; `None` when absent or `null`.
    pub metric: Option<RawText<'a>>,
    /// Seconds or milliseconds since the epoch, whatever was sent; 0 when absent.
    pub timestamp: i64,
    /// Value as text; `None` when absent or `null`.
    pub value: Option<RawText<'a>>,
    /// Tags.
    pub tags: RawTags<'a>,
    /// The place where the spelling of its series was found, if that was looked up while the point was read.
    pub(crate) spelled: Option<Spelled>,
}

impl RawPoint<'_> {
    /// A `null` among points.
    pub const NULL: Self =
        Self { form: Form::Null, metric: None, timestamp: 0, value: None, tags: RawTags::Absent, spelled: None };

    /// The bytes of its text, by which it is counted while it is under way.
    #[inline]
    pub fn text_bytes(&self) -> usize {
        let text = |text: Option<RawText<'_>>| text.map_or(0, |text| text.raw().len());
        text(self.metric) + text(self.value) + self.tags.raw().len() + size_of::<i64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(tags: RawTags<'_>, expected: &[(&str, Option<&str>)]) {
        let tags = tags.decode();
        let told: Vec<_> = tags.iter().map(|(key, value)| (&**key, value.as_deref())).collect();
        assert_eq!(told, expected);
    }

    #[test]
    fn tags_are_decoded_in_order_and_the_last_of_a_key_wins() {
        check(RawTags::Absent, &[]);
        check(RawTags::Object("{ }"), &[]);
        check(
            RawTags::Object(r#"{"b":1.50,"a" : "x\u0041", "n":null,"t":true,"b":"z"}"#),
            &[("b", Some("z")), ("a", Some("xA")), ("n", None), ("t", Some("true"))],
        );
        check(RawTags::Words("host=a  dc=b host=a"), &[("host", Some("a")), ("dc", Some("b"))]);
    }

    #[test]
    fn many_tags_take_no_square_of_time() {
        let words: Vec<String> = (0..50_000).map(|n| format!("k{}={n}", n % 40_000)).collect();
        let tags = RawTags::Words(&words.join(" ")).decode().len();
        assert_eq!(tags, 40_000);
    }
}
