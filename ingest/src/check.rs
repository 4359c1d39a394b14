//! The checks of one point, in OpenTSDB's order: fields, value, time, number of tags, names.
//!
//! The order is part of the answer: of a point that breaks several rules the first is reported. Names are checked last. They
//! are not checked for a known series, as only a series whose names passed is remembered.

use std::borrow::Cow;

use basalt_schema::{NameRole, NameRules, PointTime, Value, tags_text};

use crate::java_text::bytes_text;
use crate::number::{parse_value, short_integer};
use crate::raw_point::{Form, RawPoint, RawTags, Tag};
use crate::raw_text::RawText;
use crate::{Door, Problem};

/// What is stored of a point besides its series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Measured {
    pub(crate) time: PointTime,
    pub(crate) value: Value,
}

/// What [`check_measured`] gives for an integer value of a known series, which therefore has a metric and tags; `None` for any
/// other point.
#[inline]
pub(crate) fn known_integer(point: &RawPoint<'_>) -> Option<Measured> {
    let spelled = point.spelled.filter(|_| point.timestamp > 0)?;
    let value = match spelled.value {
        Some(value) => value.get(),
        // A text with escapes is not only digits.
        None => short_integer(point.value?.raw().as_bytes())?,
    };
    Some(Measured { time: PointTime::from_number(point.timestamp).ok()?, value: Value::Int(value) })
}

/// Checks a point's fields, value and time.
pub(crate) fn check_measured(point: &RawPoint<'_>, door: Door) -> Result<Measured, Problem> {
    if point.form == Form::Null {
        return Err(Problem::NullPoint);
    }
    let Some(metric) = point.metric.filter(|metric| !metric.is_empty()) else { return Err(Problem::EmptyMetric) };
    if point.timestamp <= 0 {
        return Err(Problem::InvalidTimestamp { timestamp: point.timestamp });
    }
    let Some(value) = point.value.filter(|value| !value.is_empty()) else { return Err(Problem::EmptyValue) };
    // Of a line, missing tags are reported only after its value is checked.
    if point.form == Form::Object && has_no_tags(point.tags) {
        return Err(Problem::NoTags { metric: metric.decode().into() });
    }
    let value = parse_value(&value.decode()).map_err(Problem::NotANumber)?;
    if let Value::Float(number) = value
        && !number.is_finite()
    {
        let value = if number > 0.0 { "Infinity" } else { "-Infinity" };
        return Err(Problem::NotFinite { value, metric: metric.decode().into(), timestamp: point.timestamp });
    }
    match PointTime::from_number(point.timestamp) {
        Ok(time) => Ok(Measured { time, value }),
        Err(_) => Err(time_too_large(point, metric, printed_value(value, door))),
    }
}

/// A value's bytes as Java prints them, and its flags: `[1]/0`.
pub(crate) fn printed_value(value: Value, door: Door) -> String {
    let printed = value.encode(door.float_width()).map(|(kind, bytes)| {
        let float = if kind.is_float() { 8 } else { 0 };
        format!("{}/{}", bytes_text(&bytes), float + bytes.len() - 1)
    });
    printed.unwrap_or_default()
}

fn has_no_tags(tags: RawTags<'_>) -> bool {
    match tags {
        RawTags::Absent => true,
        // The object is well-formed: the closing brace or a tag follows the opening brace and blanks.
        RawTags::Object(text) => text.bytes().skip(1).find(|byte| !byte.is_ascii_whitespace()) == Some(b'}'),
        RawTags::Words(_) => tags.decode().is_empty(),
    }
}

pub(crate) fn time_too_large(point: &RawPoint<'_>, metric: RawText<'_>, value: String) -> Problem {
    Problem::TimestampTooLarge {
        timestamp: point.timestamp,
        value: value.into(),
        metric: metric.decode().into(),
        tags: printed_tags(&point.tags.decode()),
    }
}

fn printed_tags(tags: &[Tag<'_>]) -> Box<str> {
    tags_text(tags.iter().map(|(key, value)| (&**key, value.as_deref()))).into()
}

/// The names of a series, checked.
#[derive(Debug)]
pub(crate) struct SeriesNames<'a> {
    pub(crate) metric: Cow<'a, str>,
    pub(crate) tags: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

/// Checks the names of a point: how many tags, the metric, then each tag.
///
/// `point` passed [`check_measured`].
pub(crate) fn check_names<'a>(
    point: &RawPoint<'a>,
    rules: &NameRules,
    name_bytes_max: usize,
) -> Result<SeriesNames<'a>, Problem> {
    let metric = metric_of(point);
    let tags = point.tags.decode();
    if tags.is_empty() {
        return Err(Problem::NoTags { metric: metric.into() });
    }
    if tags.len() > rules.tags_max() {
        return Err(Problem::TooManyTags { found: tags.len(), max: rules.tags_max(), tags: printed_tags(&tags) });
    }
    let check = |role, name: &str, words: &dyn Fn() -> String| check_name(rules, name_bytes_max, role, name, words);
    let metric = check_metric(metric, rules, name_bytes_max)?;
    let mut checked = Vec::with_capacity(tags.len());
    for (key, value) in tags {
        check(NameRole::TagName, &key, &|| format!("tag name with value [{}]", value.as_deref().unwrap_or("null")))?;
        let role = || format!("tag value with key [{key}]");
        let Some(value) = value else {
            return Err(Problem::InvalidName { role: role().into(), reason: ": null".into() });
        };
        check(NameRole::TagValue, &value, &role)?;
        checked.push((key, value));
    }
    Ok(SeriesNames { metric, tags: checked })
}

/// A point's metric, not checked yet.
pub(crate) fn metric_of<'a>(point: &RawPoint<'a>) -> Cow<'a, str> {
    point.metric.map(RawText::decode).unwrap_or_default()
}

/// Checks only a metric, for a point whose tags passed [`check_names`] with another metric.
pub(crate) fn check_metric<'a>(
    metric: Cow<'a, str>,
    rules: &NameRules,
    name_bytes_max: usize,
) -> Result<Cow<'a, str>, Problem> {
    check_name(rules, name_bytes_max, NameRole::Metric, &metric, &|| "metric name".into())?;
    Ok(metric)
}

fn check_name(
    rules: &NameRules,
    name_bytes_max: usize,
    role: NameRole,
    name: &str,
    words: &dyn Fn() -> String,
) -> Result<(), Problem> {
    let reason = match rules.check(role, name) {
        Ok(()) if name.len() <= name_bytes_max => return Ok(()),
        Ok(()) => format!(": {} bytes, and {name_bytes_max} are allowed", name.len()),
        Err(basalt_schema::Error::IllegalCharacter { character, .. }) => {
            format!(" (\"{name}\"): illegal character: {character}")
        }
        Err(_) => ": empty string".into(),
    };
    Err(Problem::InvalidName { role: words().into(), reason: reason.into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{IngestLimits, parse_put, parse_put_line};

    fn problem(point: &RawPoint<'_>, door: Door) -> Option<Problem> {
        check_measured(point, door).err().or_else(|| check_names(point, &NameRules::default(), 64).err())
    }

    fn check(fields: &str, expected: &str) {
        let body = format!("{{{fields}}}");
        let points = parse_put(&body, &IngestLimits::default()).unwrap();
        let found = problem(&points[0], Door::Http).map(|problem| problem.http_text());
        assert_eq!(found.as_deref(), Some(expected).filter(|text| !text.is_empty()), "{body}");
    }

    fn check_line(line: &str, expected: &str) {
        let point = parse_put_line(line).unwrap();
        let found = problem(&point, Door::Telnet).map(|problem| problem.telnet_text("put"));
        assert_eq!(found.as_deref(), Some(expected).filter(|text| !text.is_empty()), "{line}");
    }

    #[test]
    fn w_put_errors_fields_in_opentsdbs_order() {
        check("", "Metric name was empty");
        check(r#""metric":"","timestamp":0"#, "Metric name was empty");
        check(r#""metric":"a b","timestamp":0"#, "Invalid timestamp");
        check(r#""metric":"a b","timestamp":-5,"value":1"#, "Invalid timestamp");
        check(r#""metric":"a b","timestamp":1"#, "Empty value");
        check(r#""metric":"a b","timestamp":1,"value":"""#, "Empty value");
        check(r#""metric":"a b","timestamp":1,"value":"x""#, "Missing tags");
        check(r#""metric":"a b","timestamp":1,"value":"x","tags":{ }"#, "Missing tags");
        check(r#""metric":"a b","timestamp":1,"value":"x","tags":{"a b":"c"}"#, "Unable to parse value to a number");
        check(
            r#""metric":"a b","timestamp":10000000000000,"value":1e999,"tags":{"a b":"c"}"#,
            "value is NaN or Infinite: Infinity for metric=a b timestamp=10000000000000",
        );
        check(
            r#""metric":"m","timestamp":10000000000000,"value":1.5,"tags":{"h1":"a b"}"#,
            "bad timestamp=10000000000000 when trying to add value=[63, -8, 0, 0, 0, 0, 0, 0]/15 to metric=m, tags={h1=a b}",
        );
        check(
            r#""metric":"m","timestamp":10000000000000,"value":-300,"tags":{"h1":"a"}"#,
            "bad timestamp=10000000000000 when trying to add value=[-2, -44]/1 to metric=m, tags={h1=a}",
        );
        check(
            r#""metric":"a b","timestamp":1,"value":1,"tags":{"h1":"a","h2":"a","h3":"a","h4":"a","host":"a","dc":"a","rack":"a","zone":"a","cpu":"a"}"#,
            "Too many tags: 9 maximum allowed: 8, tags: {rack=a, zone=a, host=a, h1=a, cpu=a, h2=a, h3=a, h4=a, dc=a}",
        );
    }

    #[test]
    fn w_put_errors_names() {
        let check = |metric: &str, tags: &str, expected: &str| {
            check(&format!(r#""metric":"{metric}","timestamp":1,"value":1,"tags":{tags}"#), expected);
        };
        check("m", r#"{"host":"a"}"#, "");
        check("a b", r#"{"c d":"e f"}"#, "Invalid metric name (\"a b\"): illegal character:  ");
        check("m", r#"{"e":"f","a b":"c d"}"#, "Invalid tag name with value [c d] (\"a b\"): illegal character:  ");
        check("m", r#"{"host":"a,"}"#, "Invalid tag value with key [host] (\"a,\"): illegal character: ,");
        check("m", r#"{"host":null}"#, "Invalid tag value with key [host]: null");
        check("m", r#"{"host":""}"#, "Invalid tag value with key [host]: empty string");
        check("m", r#"{"":"a"}"#, "Invalid tag name with value [a]: empty string");
        check("m", r#"{"":null}"#, "Invalid tag name with value [null]: empty string");
        check("a\\nb", r#"{"a":"b"}"#, "Invalid metric name (\"a\nb\"): illegal character: \n");
        check("\\ud83d", r#"{"a":"b"}"#, "Invalid metric name (\"\u{fffd}\"): illegal character: \u{fffd}");
        check(&"m".repeat(65), r#"{"a":"b"}"#, "Invalid metric name: 65 bytes, and 64 are allowed");
    }

    #[test]
    fn t_put_err_values_then_names() {
        check_line("put m 1700000000 1 host=a", "");
        check_line("put m 1700000000 x ", "put: invalid value: Invalid character 'x' in x");
        check_line("put a 1700000000 2 ", "put: illegal argument: Need at least one tag (metric=a, tags={})");
        check_line("put m 1700000000 1.2.3 host=a", "put: invalid value: multiple points");
        check_line(
            "put m 1700000000 -1e999 host=a",
            "put: illegal argument: value is NaN or Infinite: -Infinity for metric=m timestamp=1700000000",
        );
        check_line(
            "put m 10000000000000 1.5 host=a",
            "put: illegal argument: bad timestamp=10000000000000 when trying to add value=[63, -64, 0, 0]/11 to metric=m, \
             tags={host=a}",
        );
        check_line(
            "put m 1700000000 1 host=a, dc=b",
            "put: illegal argument: Invalid tag value with key [host] (\"a,\"): illegal character: ,",
        );
        check_line("put m!t 1 1 a=b", "put: illegal argument: Invalid metric name (\"m!t\"): illegal character: !");
        check_line(
            "put m 1700000000 1 a=1 b=1 c=1 d=1 e=1 f=1 g=1 h=1 i=1",
            "put: illegal argument: Too many tags: 9 maximum allowed: 8, tags: \
             {a=1, b=1, c=1, d=1, e=1, f=1, g=1, h=1, i=1}",
        );
    }

    #[test]
    fn a_null_is_told_as_one() {
        assert_eq!(problem(&RawPoint::NULL, Door::Http), Some(Problem::NullPoint));
    }
}
