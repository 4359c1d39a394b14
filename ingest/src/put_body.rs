//! The body of `POST /api/put`: one object or an array of them.
//!
//! *Source*: OpenTSDB 2.4 `HttpJsonSerializer.parsePutV1`, `IncomingDataPoint`, and Jackson 2.9's coercions as a
//! running 2.4.1 shows them: any scalar is read as a text; a time may be a numeric string, a fraction (cut) or `null`
//! (0); unknown fields are skipped; of a field written twice the last counts.
//!
//! It differs in one thing: text after the points is refused. OpenTSDB ignores such text. So of several objects side by
//! side it takes the first, loses the others, and answers success.

use crate::number::parse_integer;
use crate::raw_point::{Form, RawPoint, RawTags};
use crate::raw_text::RawText;
use crate::scanner::{Scanner, Token};
use crate::series_cache::KnownGuard;
use crate::spelling::Spelled;
use crate::{Error, IngestLimits, Result};

mod layout;

use layout::Layouts;

/// Parses a put body. The points are as they were sent, unchecked, and borrow from `text`.
///
/// *Cost*: one pass, one allocation a body.
///
/// # Errors
/// `Invalid`: an empty body, one that is not JSON or not a put, or one with too many points. Nothing of the body is then taken.
///
/// ```
/// use basalt_ingest::{IngestLimits, parse_put};
/// let body = r#"[{"metric":"sys.cpu","timestamp":1346846400,"value":"18.5","tags":{"host":"web01"}}]"#;
/// let points = parse_put(body, &IngestLimits::default())?;
/// assert_eq!(points[0].timestamp, 1_346_846_400);
/// assert_eq!(points[0].value.unwrap().decode(), "18.5");
/// # Ok::<(), basalt_ingest::Error>(())
/// ```
pub fn parse_put<'a>(text: &'a str, limits: &IngestLimits) -> Result<Vec<RawPoint<'a>>> {
    parse_body(text, limits, None)
}

/// Parses a put body as [`parse_put`] does; the tags of known spellings are not parsed.
///
/// The body is first read as if every spelling were known. Then all spellings are looked up together, which costs a fraction of
/// looking each up by itself. If one is not known, or anything else is wrong, that result is dropped and the body is read again.
pub(crate) fn parse_known<'a>(
    text: &'a str,
    limits: &IngestLimits,
    known: &KnownGuard<'_>,
) -> Result<Vec<RawPoint<'a>>> {
    if let Ok(mut points) = parse_body::<RawPoint<'_>>(text, limits, Some(KnownSpellings { known, guess: true }))
        && known.find_all(points.iter_mut().filter_map(|point| point.spelled.as_mut()))
    {
        return Ok(points);
    }
    parse_body(text, limits, Some(KnownSpellings { known, guess: false }))
}

/// Roughly the bytes of a point's text. A body of shorter ones costs one more allocation.
const POINT_TEXT_BYTES: usize = 160;

/// The known spellings, and whether to read every spelling as if it were known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownSpellings<'k> {
    known: &'k KnownGuard<'k>,
    guess: bool,
}

/// An element of a body: a point, perhaps with more fields than a point has.
pub(crate) trait BodyItem<'a>: Sized {
    /// The element that stands for `null`.
    const NULL: Self;

    /// The point in it.
    fn point(&mut self) -> &mut RawPoint<'a>;

    /// Reads a field that a point does not have; false if the field is to be skipped.
    fn field(&mut self, name: &str, scanner: &mut Scanner<'a>) -> Result<bool>;
}

impl<'a> BodyItem<'a> for RawPoint<'a> {
    const NULL: Self = RawPoint::NULL;

    fn point(&mut self) -> &mut Self {
        self
    }

    fn field(&mut self, _: &str, _: &mut Scanner<'a>) -> Result<bool> {
        Ok(false)
    }
}

/// Parses a body of points, or of elements that hold a point.
pub(crate) fn parse_body<'a, T: BodyItem<'a>>(
    text: &'a str,
    limits: &IngestLimits,
    known: Option<KnownSpellings<'_>>,
) -> Result<Vec<T>> {
    // Java's `trim` removes every character up to the blank, also a zero byte.
    let text = text.trim_matches(|c: char| c <= ' ');
    let mut scanner = Scanner::new(text);
    let points = match text.as_bytes().first() {
        None => return Err(Error::EmptyBody),
        Some(b'{') => {
            scanner.expect(b'{', "'{'")?;
            vec![item(&mut scanner, known)?]
        }
        Some(b'[') => {
            scanner.expect(b'[', "'['")?;
            array(&mut scanner, (text.len() / POINT_TEXT_BYTES, limits.body_points_max), known)?
        }
        Some(_) => return Err(Error::NotPoints),
    };
    scanner.skip_blanks();
    if scanner.is_done() { Ok(points) } else { scanner.refuse("nothing after the points: send several as an array") }
}

fn array<'a, T: BodyItem<'a>>(
    scanner: &mut Scanner<'a>,
    (points_about, points_max): (usize, usize),
    known: Option<KnownSpellings<'_>>,
) -> Result<Vec<T>> {
    if scanner.take(b']') {
        return Err(Error::NoPoints);
    }
    let mut points = Vec::with_capacity(points_about.min(points_max));
    let mut layouts = known.filter(|known| known.guess).map(|known| (known.known, Layouts::new()));
    loop {
        if points.len() == points_max {
            return Err(Error::TooManyPoints { max: points_max });
        }
        let rest = scanner.rest();
        points.push(T::NULL);
        let Some(next) = points.last_mut() else { return scanner.refuse("a data point") };
        // Fast path: the object has the same layout as the one before.
        let read = layouts.as_mut().and_then(|(known, layouts)| layouts.read(rest, known, next.point()));
        if let Some(bytes) = read {
            scanner.pass(bytes);
        } else {
            let from = scanner.offset();
            *next = match scanner.token()? {
                Token::ObjectStart => item(scanner, known)?,
                Token::Null => T::NULL,
                _ => return scanner.refuse("a data point"),
            };
            if let Some((_, layouts)) = &mut layouts {
                layouts.learn(scanner.since(from));
            }
        }
        if !scanner.more(b']')? {
            return Ok(points);
        }
    }
}

/// Reads an element behind its `{`.
fn item<'a, T: BodyItem<'a>>(scanner: &mut Scanner<'a>, known: Option<KnownSpellings<'_>>) -> Result<T> {
    let mut item = T::NULL;
    item.point().form = Form::Object;
    if scanner.take(b'}') {
        return Ok(item);
    }
    loop {
        let name = scanner.field_name()?;
        match &*name.decode() {
            // A guess must not be overwritten: the text that it skipped was never checked.
            "metric" | "tags" if item.point().spelled.is_some() && known.is_some_and(|known| known.guess) => {
                return scanner.refuse("each field once");
            }
            "metric" => {
                let metric = scalar(scanner)?;
                let point = item.point();
                (point.metric, point.spelled) = (metric, None);
            }
            "timestamp" => item.point().timestamp = integer(scanner)?,
            "value" => item.point().value = scalar(scanner)?,
            "tags" => {
                let point = item.point();
                let spelled = known.zip(point.metric).and_then(|(known, metric)| known_tags(scanner, metric, known));
                (point.tags, point.spelled) = match spelled {
                    Some((tags, spelled)) => (tags, Some(spelled)),
                    None => (tags(scanner)?, None),
                };
            }
            other => {
                if !item.field(other, scanner)? {
                    let token = scanner.token()?;
                    scanner.skip(token)?;
                }
            }
        }
        if !scanner.more(b'}')? {
            return Ok(item);
        }
    }
}

/// A text, or a scalar that is read as one.
pub(crate) fn scalar<'a>(scanner: &mut Scanner<'a>) -> Result<Option<RawText<'a>>> {
    Ok(match scanner.token()? {
        Token::String(text) => Some(text),
        Token::Integer(text) | Token::Float(text) | Token::Bool(text) => Some(RawText::plain(text)),
        Token::Null => None,
        Token::ObjectStart | Token::ArrayStart => return scanner.refuse("a text or number, not an object or array"),
    })
}

/// An integer, or a scalar that is read as one.
pub(crate) fn integer(scanner: &mut Scanner<'_>) -> Result<i64> {
    let read = match scanner.token()? {
        Token::Null => Some(0),
        Token::Integer(text) => text.parse().ok(),
        Token::Float(text) => cut_fraction(text),
        Token::String(text) => match text.decode().trim_matches(|c: char| c <= ' ') {
            "" | "null" => Some(0),
            digits => parse_integer(digits).ok(),
        },
        Token::Bool(_) | Token::ObjectStart | Token::ArrayStart => None,
    };
    match read {
        Some(time) => Ok(time),
        None => scanner.refuse("a whole number"),
    }
}

/// A number's whole part; `None` when 64 bits cannot hold it.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked, and the fraction is to be cut")]
fn cut_fraction(text: &str) -> Option<i64> {
    /// 2^63, the first number that is too large.
    const TOO_LARGE: f64 = 9_223_372_036_854_775_808.0;
    let number = match text {
        "NaN" => return Some(0),
        "Infinity" | "+Infinity" | "-Infinity" | "+INF" | "-INF" => return None,
        _ => text.parse::<f64>().ok()?,
    };
    (-TOO_LARGE..TOO_LARGE).contains(&number).then_some(number as i64)
}

/// Skips tags that are a known spelling together with the metric. The object checked when the spelling was new had the same
/// bytes, so it ended at the same brace: the first one, unless a name has a brace.
fn known_tags<'a>(
    scanner: &mut Scanner<'a>,
    metric: RawText<'_>,
    KnownSpellings { known, guess }: KnownSpellings<'_>,
) -> Option<(RawTags<'a>, Spelled)> {
    let rest = scanner.rest();
    // Not looked for behind what is no object: the next brace may be the body's last byte, for each such field anew.
    if !rest.starts_with('{') {
        return None;
    }
    let end = memchr::memchr(b'}', rest.as_bytes())?;
    let text = rest.get(..=end)?;
    let (form, metric) = (Form::Object, metric.raw());
    let spelled = if guess { known.guess(form, metric, text) } else { known.find(form, metric, text)? };
    scanner.pass(text.len());
    Some((RawTags::Object(text), spelled))
}

fn tags<'a>(scanner: &mut Scanner<'a>) -> Result<RawTags<'a>> {
    scanner.skip_blanks();
    let from = scanner.offset();
    match scanner.token()? {
        Token::Null => Ok(RawTags::Absent),
        Token::ObjectStart => {
            scanner.scalars(|_, _| {})?;
            Ok(RawTags::Object(scanner.since(from)))
        }
        _ => scanner.refuse("an object of tags"),
    }
}

#[cfg(test)]
mod tests;
