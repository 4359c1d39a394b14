//! Histograms: a put body whose points have buckets, and the telnet line of one (rules W-HISTO-HTTP, T-HISTO).
//!
//! ```text
//! {"metric":…,"timestamp":…,"tags":{…},"buckets":{"0,1.75":12,"1.75,3.5":16},"underflow":0,"overflow":1}
//! {"metric":…,"timestamp":…,"tags":{…},"id":42,"value":"<the codec's bytes in base 64>"}
//! histogram <metric> <time> [<id>] <value> <key>=<value> …        value without an id: 0,1.75=12:1.75,3.5=16:u=0:o=1
//! ```
//!
//! *Source*: OpenTSDB 2.4 `HistogramPojo`, `HistogramDataPointRpc`.

use basalt_schema::{Bounds, Histogram, HistogramDamage, PointTime};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::check::time_too_large;
use crate::java_text::{bytes_pretty, bytes_text, from_base64};
use crate::number::{NumberError, parse_integer};
use crate::put_body::{BodyItem, integer, parse_body};
use crate::put_line::{check_tags, parse_time, without_end};
use crate::raw_point::{Form, RawPoint, RawTags};
use crate::raw_text::RawText;
use crate::scanner::{Scanner, Token};
use crate::{IngestLimits, Problem, Result};

/// Words that a line must have besides the command. OpenTSDB counts the command where it says so.
const WORDS_MIN: usize = 4;
const WORDS_TOLD: usize = 5;
/// Bytes of a histogram that is given as bytes.
const BYTES_MIN: usize = 6;

/// A histogram as it was sent.
#[derive(Debug, Clone, PartialEq)]
pub struct RawHistogram<'a> {
    /// Metric, time and tags; the value is the codec's bytes as text, or the buckets of a line.
    pub point: RawPoint<'a>,
    /// The codec of the bytes.
    pub id: i64,
    /// Bounds and counts; of more than a cell counts the first ones, and one.
    pub buckets: Option<Vec<(RawText<'a>, i64)>>,
    /// Measurements below all buckets.
    pub underflow: i64,
    /// Measurements above all buckets.
    pub overflow: i64,
}

/// Parses a body of histograms.
///
/// # Errors
/// As [`crate::parse_put`].
///
/// ```
/// use basalt_ingest::{IngestLimits, parse_histograms};
/// let body = r#"{"metric":"web.latency","timestamp":1346846400,"buckets":{"0,1.75":12},"tags":{"host":"web01"}}"#;
/// let histograms = parse_histograms(body, &IngestLimits::default())?;
/// assert_eq!(histograms[0].buckets.as_ref().map(Vec::len), Some(1));
/// # Ok::<(), basalt_ingest::Error>(())
/// ```
pub fn parse_histograms<'a>(text: &'a str, limits: &IngestLimits) -> Result<Vec<RawHistogram<'a>>> {
    parse_body(text, limits, None)
}

impl<'a> BodyItem<'a> for RawHistogram<'a> {
    const NULL: Self = Self { point: RawPoint::NULL, id: 0, buckets: None, underflow: 0, overflow: 0 };

    fn point(&mut self) -> &mut RawPoint<'a> {
        &mut self.point
    }

    fn field(&mut self, name: &str, scanner: &mut Scanner<'a>) -> Result<bool> {
        match name {
            "id" => self.id = integer(scanner)?,
            "underflow" => self.underflow = integer(scanner)?,
            "overflow" => self.overflow = integer(scanner)?,
            "buckets" => self.buckets = buckets(scanner)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn buckets<'a>(scanner: &mut Scanner<'a>) -> Result<Option<Vec<(RawText<'a>, i64)>>> {
    match scanner.token()? {
        Token::Null => return Ok(None),
        Token::ObjectStart => {}
        _ => return scanner.refuse("an object of buckets"),
    }
    let mut buckets = Vec::new();
    if scanner.take(b'}') {
        return Ok(Some(buckets));
    }
    loop {
        let bucket = (scanner.field_name()?, integer(scanner)?);
        if buckets.len() <= Histogram::BUCKETS_MAX {
            buckets.push(bucket);
        }
        if !scanner.more(b'}')? {
            return Ok(Some(buckets));
        }
    }
}

/// Parses a telnet line that begins with `histogram`; its end may be on it.
///
/// # Errors
/// What is wrong, in the order in which OpenTSDB looks.
pub fn parse_histogram_line(line: &str) -> std::result::Result<RawHistogram<'_>, Problem> {
    let line = without_end(line);
    let (_, words) = line.split_once(' ').ok_or(Problem::NotEnoughWords { found: 0, least: WORDS_TOLD })?;
    let mut split = words.splitn(WORDS_MIN, ' ');
    let (Some(metric), Some(time), Some(third), Some(rest)) = (split.next(), split.next(), split.next(), split.next())
    else {
        return Err(Problem::NotEnoughWords { found: words.split(' ').count(), least: WORDS_TOLD });
    };
    if metric.is_empty() {
        return Err(Problem::EmptyMetric);
    }
    let timestamp = parse_time(time)?;
    if timestamp <= 0 {
        return Err(Problem::InvalidTimestamp { timestamp });
    }
    let id = third.parse::<i32>().ok();
    let (value, tags) = if id.is_some() { rest.split_once(' ').unwrap_or((rest, "")) } else { (third, rest) };
    if value.is_empty() {
        return Err(Problem::Illegal { text: "empty histogram value".into() });
    }
    check_tags(tags)?;
    let tags = RawTags::Words(tags);
    let (metric, value) = (Some(RawText::plain(metric)), Some(RawText::plain(value)));
    let point = RawPoint { form: Form::Line, metric, timestamp, value, tags, spelled: None };
    // A line without an id is of the simple codec, with its buckets in words.
    Ok(RawHistogram { point, id: id.map_or(IN_WORDS, i64::from), buckets: None, underflow: 0, overflow: 0 })
}

/// The id of a line's histogram, where it has none: it has its buckets in words.
const IN_WORDS: i64 = i64::MIN;

/// Checks a histogram and gives its time and its cell's value; `simple` is the ID of the simple codec.
pub(crate) fn check_histogram(
    histogram: &RawHistogram<'_>,
    simple: u8,
) -> std::result::Result<(PointTime, Vec<u8>), Problem> {
    let point = &histogram.point;
    if point.form == Form::Null {
        return Err(Problem::NullPoint);
    }
    let metric = point.metric.filter(|metric| !metric.is_empty()).ok_or(Problem::EmptyMetric)?;
    if point.timestamp <= 0 {
        return Err(Problem::InvalidTimestamp { timestamp: point.timestamp });
    }
    if point.form == Form::Object && point.tags.decode().is_empty() {
        return Err(Problem::NoTags { metric: metric.decode().into() });
    }
    check_count(histogram.buckets.as_ref().map_or(0, Vec::len))?;
    let read = read(histogram, simple)?;
    check_count(read.buckets_count())?;
    let value = read.encode(simple);
    match PointTime::from_number(point.timestamp) {
        Ok(time) => Ok((time, value)),
        Err(_) => Err(time_too_large(point, metric, format!("{}/0", bytes_text(&value)))),
    }
}

/// As many buckets as a cell counts.
fn check_count(count: usize) -> std::result::Result<(), Problem> {
    if count <= Histogram::BUCKETS_MAX {
        return Ok(());
    }
    let text = format!("Too many buckets: {count} maximum allowed: {}", Histogram::BUCKETS_MAX);
    Err(Problem::Illegal { text: text.into() })
}

fn read(histogram: &RawHistogram<'_>, simple: u8) -> std::result::Result<Histogram, Problem> {
    let illegal = |text: String| Problem::Illegal { text: text.into() };
    let value = histogram.point.value.filter(|value| !value.is_empty());
    let Some(value) = value else {
        let buckets = histogram.buckets.as_deref().filter(|buckets| !buckets.is_empty());
        let empty = "Histogram buckets cannot be null or empty if 'value' is empty.";
        return of_buckets(histogram, buckets.ok_or_else(|| illegal(empty.into()))?);
    };
    if histogram.point.form == Form::Line && histogram.id == IN_WORDS {
        return of_words(value.raw());
    }
    if histogram.point.form == Form::Object && !(0..=255).contains(&histogram.id) {
        return Err(illegal("Invalid type. Must be from 0 to 255.".into()));
    }
    if histogram.id != i64::from(simple) {
        return Err(illegal(format!("No codec found mapped to ID {}", histogram.id)));
    }
    let bytes = from_base64(&value.decode());
    let too_short = || illegal(format!("Byte array shorter than 6 bytes detected: {}", bytes_pretty(&bytes)));
    if bytes.len() < BYTES_MIN {
        return Err(too_short());
    }
    Histogram::decode(&bytes).map_err(|damage| match damage {
        HistogramDamage::TooShort => too_short(),
        _ => Problem::Unreadable,
    })
}

fn of_buckets(histogram: &RawHistogram<'_>, buckets: &[(RawText<'_>, i64)]) -> std::result::Result<Histogram, Problem> {
    let mut read = Histogram::default();
    (read.underflow, read.overflow) = (histogram.underflow, histogram.overflow);
    for (text, count) in buckets {
        let text = text.decode();
        let bounds = bounds(&text)?
            .ok_or_else(|| Problem::Illegal { text: format!("Unable to parse bucket bounds: {text}").into() })?;
        read.set(bounds, *count);
    }
    Ok(read)
}

/// `0,1.75=12:1.75,3.5=16:u=0:o=1`
fn of_words(text: &str) -> std::result::Result<Histogram, Problem> {
    let mut read = Histogram::default();
    for bucket in text.split(':') {
        let improper = |what| Problem::Illegal { text: format!("Improperly formatted {what}: {bucket}").into() };
        let (bounds_text, count) =
            bucket.split_once('=').filter(|(_, count)| !count.contains('=')).ok_or_else(|| improper("bucket"))?;
        let not_a_count = |_| Problem::NotANumber(NumberError::NotAFloat(count.into()));
        let count = parse_integer(count).map_err(not_a_count)?;
        match bounds_text {
            "u" | "U" => read.underflow = count,
            "o" | "O" => read.overflow = count,
            text => read.set(bounds(text)?.ok_or_else(|| improper("bounds"))?, count),
        }
    }
    Ok(read)
}

/// Two numbers with a comma between them; `None` if there are not two.
fn bounds(text: &str) -> std::result::Result<Option<Bounds>, Problem> {
    let Some((lower, upper)) = text.split_once(',').filter(|(_, upper)| !upper.contains(',')) else { return Ok(None) };
    let number = |text: &str| {
        let bare = text.trim().strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(text.trim());
        let digit = bare.bytes().any(|byte| byte.is_ascii_digit());
        let read =
            if digit || matches!(bare, "NaN" | "Infinity" | "-Infinity") { bare.parse::<f32>().ok() } else { None };
        read.ok_or_else(|| Problem::NotANumber(NumberError::NotAFloat(text.into())))
    };
    Ok(Some(Bounds { lower: number(lower)?, upper: number(upper)? }))
}

/// A histogram as the details of a put show it.
#[derive(Debug, Clone, Copy)]
pub struct HistogramEcho<'a>(pub &'a RawHistogram<'a>);

impl Serialize for HistogramEcho<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let RawHistogram { point, id, buckets, underflow, overflow } = self.0;
        if point.form == Form::Null {
            return serializer.serialize_none();
        }
        let mut map = serializer.serialize_map(None)?;
        crate::report::echo_into(point, &mut map)?;
        map.serialize_entry("id", id)?;
        if let Some(buckets) = buckets {
            map.serialize_entry("buckets", &BucketsEcho(buckets))?;
        }
        map.serialize_entry("underflow", underflow)?;
        map.serialize_entry("overflow", overflow)?;
        map.end()
    }
}

struct BucketsEcho<'a>(&'a [(RawText<'a>, i64)]);

impl Serialize for BucketsEcho<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(bounds, count)| (bounds.decode(), count)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(line: &str) -> std::result::Result<Vec<u8>, String> {
        let read = parse_histogram_line(line).and_then(|histogram| check_histogram(&histogram, 42));
        read.map(|(_, value)| value).map_err(|problem| problem.telnet_text("histogram"))
    }

    #[test]
    fn t_histo_a_line_and_a_body_make_one_cell() {
        let body = r#"{"metric":"m","timestamp":1,"tags":{"a":"b"},"buckets":{"1,2.5":4,"0,1":3},"underflow":5}"#;
        let histograms = parse_histograms(body, &IngestLimits::default()).unwrap();
        let (_, value) = check_histogram(&histograms[0], 42).unwrap();
        assert_eq!(line("histogram m 1 0,1=3:1,2.5=4:u=5 a=b\r\n"), Ok(value.clone()));
        assert_eq!(line("histogram m 1 42 AAIAAAAAP4AAAAM/gAAAQCAAAAQFAA== a=b"), Ok(value));
        for (text, told) in [
            ("histogram m 1 0,1 a=b", "histogram: illegal argument: Improperly formatted bucket: 0,1"),
            ("histogram m 1 0=1 a=b", "histogram: illegal argument: Improperly formatted bounds: 0=1"),
            ("histogram m 1 0,1=x a=b", "histogram: invalid value: For input string: \"x\""),
            ("histogram m 1 7 AAIA a=b", "histogram: illegal argument: No codec found mapped to ID 7"),
        ] {
            assert_eq!(line(text), Err(told.into()));
        }
    }

    /// `W-HISTO-HTTP`: no number of a body stands for a line's words.
    #[test]
    fn w_histo_http_ids_of_codecs_are_one_byte() {
        for id in [i64::MIN, -1, 256] {
            let body = format!(r#"{{"metric":"m","timestamp":1,"tags":{{"a":"b"}},"id":{id},"value":"0,1=3"}}"#);
            let histograms = parse_histograms(&body, &IngestLimits::default()).unwrap();
            let told = check_histogram(&histograms[0], 42).unwrap_err().http_text();
            assert_eq!(told, "Invalid type. Must be from 0 to 255.");
        }
    }

    #[test]
    fn w_histo_http_more_buckets_than_a_cell_counts_are_refused_and_not_kept() {
        const MAX: usize = Histogram::BUCKETS_MAX;
        for (count, distinct) in [(MAX + 1, MAX + 1), (2 * MAX, 2 * MAX), (2 * MAX, 9), (MAX, MAX)] {
            let bucket = |at: usize| format!("\"{},{}\":1", at % distinct, at % distinct + 1);
            let buckets = (0..count).map(bucket).collect::<Vec<_>>().join(",");
            let body = format!(r#"{{"metric":"m","timestamp":1,"tags":{{"a":"b"}},"buckets":{{{buckets}}}}}"#);
            let histograms = parse_histograms(&body, &IngestLimits::default()).unwrap();
            assert_eq!(histograms[0].buckets.as_ref().unwrap().len(), count.min(MAX + 1));
            let told = check_histogram(&histograms[0], 42).map_err(|problem| problem.http_text());
            let expected = "Too many buckets: 32768 maximum allowed: 32767";
            assert_eq!(told.err().as_deref(), (count > MAX).then_some(expected));
        }
    }
}
