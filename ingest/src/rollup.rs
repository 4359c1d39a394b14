//! Rollups and pre-aggregates: one number made of many points, with the way in which it was made (rules W-ROLLUP-HTTP, T-ROLLUP).
//!
//! ```text
//! {"metric":…,"timestamp":…,"value":…,"tags":{…},"interval":"1h","aggregator":"sum","groupByAggregator":"max"}
//! rollup [<interval>-<aggregator>][:<group-by aggregator>] <metric> <time> <value> <key>=<value> …
//! ```
//!
//! *Source*: OpenTSDB 2.4 `RollUpDataPoint`, `RollupDataPointRpc`, `TSDB.addAggregatePointInternal`.

use std::borrow::Cow;

use basalt_schema::{PointTime, Rollup, RollupAggregate, Rollups, Value, tags_text};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::check::{Measured, check_measured, printed_value, time_too_large};
use crate::put_body::{BodyItem, parse_body, scalar};
use crate::put_line::{parse_put_line, without_end};
use crate::raw_point::{Form, RawPoint};
use crate::raw_text::RawText;
use crate::scanner::Scanner;
use crate::{Door, IngestLimits, Problem, Result};

/// Words that a line must have besides the command; the number is also in OpenTSDB's error text.
const WORDS_MIN: usize = 5;
const WORDS_TOLD: usize = 7;

/// A rollup or pre-aggregate as it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawRollup<'a> {
    /// Metric, time, value and tags.
    pub point: RawPoint<'a>,
    /// The interval that it stands for; `None` for a point that was only aggregated across series.
    pub interval: Option<RawText<'a>>,
    /// The aggregator over the points of the interval.
    pub aggregator: Option<RawText<'a>>,
    /// The aggregator over series.
    pub group_by: Option<RawText<'a>>,
}

/// Parses a body of rollups.
///
/// # Errors
/// As [`crate::parse_put`].
pub fn parse_rollups<'a>(text: &'a str, limits: &IngestLimits) -> Result<Vec<RawRollup<'a>>> {
    parse_body(text, limits, None)
}

impl<'a> BodyItem<'a> for RawRollup<'a> {
    const NULL: Self = Self { point: RawPoint::NULL, interval: None, aggregator: None, group_by: None };

    fn point(&mut self) -> &mut RawPoint<'a> {
        &mut self.point
    }

    fn field(&mut self, name: &str, scanner: &mut Scanner<'a>) -> Result<bool> {
        match name {
            "interval" => self.interval = scalar(scanner)?,
            "aggregator" => self.aggregator = scalar(scanner)?,
            "groupByAggregator" => self.group_by = scalar(scanner)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Parses a telnet line that begins with `rollup`; its end may be on it.
///
/// # Errors
/// What is wrong, in the order in which OpenTSDB looks.
pub fn parse_rollup_line(line: &str) -> std::result::Result<RawRollup<'_>, Problem> {
    let line = without_end(line);
    let (_, words) = line.split_once(' ').ok_or(Problem::NotEnoughWords { found: 0, least: WORDS_TOLD })?;
    let found = words.split(' ').count();
    if found < WORDS_MIN {
        return Err(Problem::NotEnoughWords { found, least: WORDS_TOLD });
    }
    let (kind, _) = words.split_once(' ').unwrap_or_default();
    // Empty parts at the end are none, and a third one counts for nothing.
    let kind = kind.trim_end_matches(':');
    if kind.is_empty() {
        return Err(illegal("Missing interval or aggregator"));
    }
    let mut parts = kind.split(':');
    let (time_part, group_by) = (parts.next().unwrap_or_default(), parts.next());
    let (interval, aggregator, group_by) = match time_part.split_once('-') {
        Some((interval, aggregator)) => (Some(interval), Some(aggregator), group_by),
        // One word alone is the group-by aggregator; OpenTSDB drops it where a second one follows.
        None => (None, None, group_by.or(Some(time_part))),
    };
    // The rest is a put line.
    let point = parse_put_line(words)?;
    let (group_by, aggregator) = (group_by.map(RawText::plain), aggregator.or(group_by).map(RawText::plain));
    Ok(RawRollup { point, interval: interval.map(RawText::plain), aggregator, group_by })
}

/// A rollup that was checked except for its names.
#[derive(Debug)]
pub(crate) struct CheckedRollup<'r> {
    pub(crate) time: PointTime,
    pub(crate) value: Value,
    /// Where it goes.
    pub(crate) target: Target<'r>,
    /// A tag added to its own; it replaces one of the same key.
    pub(crate) tag: Option<(String, String)>,
}

/// Where a rollup goes.
#[derive(Debug)]
pub(crate) struct Target<'r> {
    pub(crate) table: &'r basalt_store::TableName,
    /// Interval and aggregate; `None` for an ordinary point of the pre-aggregates.
    pub(crate) of: Option<(&'r Rollup, &'r RollupAggregate)>,
}

/// The texts of a rollup, decoded.
struct RollupTexts {
    metric: String,
    tags: Vec<(String, String)>,
    interval: Option<String>,
    aggregator: Option<String>,
    group_by: Option<String>,
}

impl RollupTexts {
    fn of(rollup: &RawRollup<'_>) -> Self {
        let text = |text: Option<RawText<'_>>| text.map(|text| text.decode().into_owned());
        let tags = rollup.point.tags.decode().into_iter();
        Self {
            metric: text(rollup.point.metric).unwrap_or_default(),
            tags: tags.map(|(key, value)| (key.into_owned(), value.map(Cow::into_owned).unwrap_or_default())).collect(),
            interval: text(rollup.interval).filter(|interval| !interval.is_empty()),
            aggregator: text(rollup.aggregator),
            group_by: text(rollup.group_by),
        }
    }

    fn tags_text(&self) -> String {
        tags_text(self.tags.iter().map(|(key, value)| (&**key, Some(&**value))))
    }

    /// The end of OpenTSDB's error text.
    fn shown(&self) -> String {
        format!("{} {}", self.metric, self.tags_text())
    }
}

fn illegal(text: impl Into<Box<str>>) -> Problem {
    Problem::Illegal { text: text.into() }
}

/// Checks a rollup in OpenTSDB's order.
pub(crate) fn check_rollup<'r>(
    rollup: &RawRollup<'_>,
    rollups: Option<&'r Rollups>,
    door: Door,
) -> std::result::Result<CheckedRollup<'r>, Problem> {
    let Measured { time, value } = match check_measured(&rollup.point, door) {
        // A missing value is reported before the checks below, a value that is not a number after them.
        Err(Problem::NotANumber(error)) => return Err(missing(rollup).unwrap_or(Problem::NotANumber(error))),
        measured => measured?,
    };
    if let Some(problem) = missing(rollup) {
        return Err(problem);
    }
    let mut texts = RollupTexts::of(rollup);
    let rollups = rollups.ok_or_else(|| illegal("No rollup or aggregations were configured"))?;
    if texts.group_by.as_deref() == Some("") {
        return Err(illegal(format!(
            "Cannot write a group by data point without specifying the aggregation function. Metric={} tags={}",
            texts.metric,
            texts.tags_text()
        )));
    }
    if time.is_millis() {
        let metric = rollup.point.metric.unwrap_or(RawText::plain(""));
        return Err(time_too_large(&rollup.point, metric, printed_value(value, door)));
    }
    let tag = tag_of(&mut texts, rollups)?;
    let is_group = texts.group_by.is_some();
    let target = target(rollups, texts.interval.as_deref(), texts.aggregator.as_deref(), is_group)?;
    if let Some(aggregator) = texts.aggregator.as_deref().filter(|aggregator| rollups.blocks(aggregator)) {
        let (upper, shown) = (aggregator.to_uppercase(), texts.shown());
        return Err(illegal(format!("Derived rollup aggregations are not allowed {upper} with metric {shown}")));
    }
    Ok(CheckedRollup { time, value, target, tag })
}

/// The tag that says how series were aggregated, added to the others.
fn tag_of(texts: &mut RollupTexts, rollups: &Rollups) -> std::result::Result<Option<(String, String)>, Problem> {
    let key = rollups.tag_key();
    let given = texts.tags.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone());
    let value = match (given, &texts.group_by) {
        (Some(given), group_by) => {
            let wanted = group_by.as_deref().unwrap_or("null");
            if !given.eq_ignore_ascii_case(wanted) {
                return Err(illegal(format!(
                    "Given tag value for {key} of {given} did not match the group by aggregator of {wanted} for {}",
                    texts.shown()
                )));
            }
            Some(wanted.to_uppercase())
        }
        (None, Some(group_by)) => Some(group_by.to_uppercase()),
        (None, None) => rollups.tag_raw().then(|| rollups.raw_tag_value().to_owned()),
    };
    let tag = value.map(|value| (key.to_owned(), value));
    if let Some(tag) = &tag {
        texts.tags.retain(|(name, _)| name != key);
        texts.tags.push(tag.clone());
    }
    let Some(group_by) = &texts.group_by else { return Ok(tag) };
    let refuse = |what: &str| Err(illegal(format!("{what} {group_by} with metric {}", texts.shown())));
    if !rollups.knows_aggregator(&group_by.to_lowercase()) {
        return refuse("Invalid group by aggregator");
    }
    if rollups.blocks(group_by) {
        return refuse("Derived group by aggregations are not allowed");
    }
    Ok(tag)
}

/// The first field that a body's rollup must have and does not, as a problem.
fn missing(rollup: &RawRollup<'_>) -> Option<Problem> {
    let absent = |text: Option<RawText<'_>>| text.is_none_or(RawText::is_empty);
    if !absent(rollup.group_by) || rollup.point.form != Form::Object {
        return None;
    }
    let word = if absent(rollup.interval) {
        "Missing interval"
    } else if absent(rollup.aggregator) {
        "Missing aggregator"
    } else {
        return None;
    };
    Some(illegal(word))
}

fn target<'r>(
    rollups: &'r Rollups,
    interval: Option<&str>,
    aggregator: Option<&str>,
    is_group: bool,
) -> std::result::Result<Target<'r>, Problem> {
    let Some(name) = interval else {
        if !is_group {
            return Err(Problem::Late { text: "Interval cannot be null for a non-group by point".into() });
        }
        let default = rollups.default_rollup();
        let default = default.ok_or_else(|| illegal("No default rollup interval is configured"))?;
        return Ok(Target { table: default.preaggregate_table(), of: None });
    };
    let rollup = rollups.by_name(name).ok_or_else(|| Problem::UnknownRollup {
        interval: format!("No rollups configured for the interval: {name}").into(),
    })?;
    let aggregator = aggregator.filter(|name| !name.is_empty());
    let aggregator = aggregator.ok_or_else(|| illegal("Aggregator cannot be null or empty."))?;
    let aggregate = rollups
        .aggregate(aggregator)
        .ok_or_else(|| illegal(format!("No ID found mapping to aggregator: {aggregator}")))?;
    let table = if is_group { rollup.preaggregate_table() } else { rollup.table() };
    Ok(Target { table, of: Some((rollup, aggregate)) })
}

/// A rollup as the details of its put show it, with the tags that were sent.
#[derive(Debug, Clone, Copy)]
pub struct RollupEcho<'a>(pub &'a RawRollup<'a>);

impl Serialize for RollupEcho<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let RawRollup { point, interval, aggregator, group_by } = self.0;
        if point.form == Form::Null {
            return serializer.serialize_none();
        }
        let mut map = serializer.serialize_map(None)?;
        crate::report::echo_into(point, &mut map)?;
        for (name, text) in [("interval", interval), ("aggregator", aggregator), ("groupByAggregator", group_by)] {
            if let Some(text) = text {
                map.serialize_entry(name, &text.decode())?;
            }
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use basalt_schema::RollupSettings;

    use super::*;

    fn rollups() -> Rollups {
        let json = r#"{"aggregationIds":{"sum":0},"intervals":[
            {"table":"t","preAggregationTable":"p","interval":"1m","rowSpan":"1h","defaultInterval":true},
            {"table":"t1","preAggregationTable":"p1","interval":"1h","rowSpan":"1d"}]}"#;
        Rollups::parse(json, RollupSettings::default()).unwrap()
    }

    /// The table that a line goes to, and its tag; or what is wrong.
    fn check(line: &str, expected: &str) {
        let rollups = rollups();
        let told = parse_rollup_line(line).and_then(|rollup| check_rollup(&rollup, Some(&rollups), Door::Telnet));
        let told = match &told {
            Ok(checked) => {
                let tag = checked.tag.as_ref().map_or("", |(_, value)| value);
                format!("{} {} {tag}", checked.target.table, checked.target.of.is_some())
            }
            Err(problem) => problem.telnet_text("rollup"),
        };
        assert_eq!(told, expected, "{line}");
    }

    #[test]
    fn t_rollup_a_line_goes_to_the_table_of_its_kind() {
        check("rollup 1h-sum m 1700000000 5 host=a", "t1 true ");
        check("rollup 1h-sum:max m 1700000000 5 host=a", "p1 true MAX");
        check("rollup sum m 1700000000 5 host=a", "p false SUM");
        check("rollup 1h:sum m 1700000000 5 host=a", "p false SUM");
        check("rollup 1h-sum: m 1700000000 5 host=a", "t1 true ");
        check("rollup 1h-sum:: m 1700000000 5 host=a", "t1 true ");
        check("rollup sum: m 1700000000 5 host=a", "p false SUM");
        check("rollup 1h-sum:max:x m 1700000000 5 host=a", "p1 true MAX");
        check("rollup 1h-: m 1700000000 5 host=a", "rollup: illegal argument: Aggregator cannot be null or empty.");
        check(
            "rollup 1h: m 1700000000 5 host=a",
            "rollup: illegal argument: Invalid group by aggregator 1h with metric m {_aggregate=1H, host=a}",
        );
        check("rollup 1h-sum m 1700000000 5", "rollup: illegal argument: not enough arguments (need least 7, got 4)");
        check(
            "rollup 2h-sum m 1700000000 5 host=a",
            "rollup: No such rollup: No rollups configured for the interval: 2h",
        );
        check(
            "rollup - m 1700000000 5 host=a",
            "rollup: HBase error: Interval cannot be null for a non-group by point",
        );
        check("rollup : m 1700000000 5 host=a", "rollup: illegal argument: Missing interval or aggregator");
    }

    #[test]
    fn w_rollup_http_without_rollups_nothing_is_taken() {
        let body = r#"{"metric":"m","timestamp":1,"value":1,"tags":{"a":"b"},"interval":"1h","aggregator":"sum"}"#;
        let points = parse_rollups(body, &IngestLimits::default()).unwrap();
        let problem = check_rollup(&points[0], None, Door::Http).unwrap_err();
        assert_eq!(problem.http_text(), "No rollup or aggregations were configured");
    }
}
