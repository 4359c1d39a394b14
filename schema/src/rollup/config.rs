//! What rollups there are: the JSON that `tsd.rollups.config` names, checked as OpenTSDB checks it.

use std::collections::BTreeMap;

use basalt_store::TableName;
use serde::Deserialize;

use super::{Rollup, RollupAggregate, RowSpan};

/// Values that a row may hold, by OpenTSDB's own rules; 12 bits allow fewer ([`Rollup::SLOTS_MAX`]).
const SLOTS_MIN: u32 = 12;
const SLOTS_MAX: u32 = 7774;
/// The largest ID of an aggregate.
const ID_MAX: i64 = 127;

/// OpenTSDB's names of aggregators, as it looks them up.
const AGGREGATORS: &[&str] = &[
    "sum", "min", "max", "avg", "none", "median", "mult", "dev", "diff", "count", "zimsum", "mimmin", "mimmax",
    "first", "last", "pfsum", "p50", "p75", "p90", "p95", "p99", "p999", "ep50r3", "ep75r3", "ep90r3", "ep95r3",
    "ep99r3", "ep999r3", "ep50r7", "ep75r7", "ep90r7", "ep95r7", "ep99r7", "ep999r7",
];

/// The settings beside the JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollupSettings {
    /// Key of the tag that tells how series were joined (`tsd.rollups.agg_tag_key`).
    pub tag_key: String,
    /// Its value on rollups of single series (`tsd.rollups.raw_agg_tag_value`).
    pub raw_tag_value: String,
    /// Whether rollups of single series are tagged at all (`tsd.rollups.tag_raw`).
    pub tag_raw: bool,
    /// Refuse averages and deviations, which cannot be joined again (`tsd.rollups.block_derived`).
    pub block_derived: bool,
    /// Newer than a rollup's delay is read from the points themselves (`tsd.rollups.split_query.enable`).
    pub split_queries: bool,
}

impl Default for RollupSettings {
    fn default() -> Self {
        Self {
            tag_key: "_aggregate".into(),
            raw_tag_value: "RAW".into(),
            tag_raw: false,
            block_derived: true,
            split_queries: false,
        }
    }
}

/// All rollups that are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rollups {
    intervals: Vec<Rollup>,
    aggregates: Vec<RollupAggregate>,
    settings: RollupSettings,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConfigBody {
    aggregation_ids: Option<BTreeMap<String, i64>>,
    intervals: Option<Vec<IntervalBody>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct IntervalBody {
    table: String,
    pre_aggregation_table: String,
    interval: String,
    row_span: String,
    default_interval: bool,
    delay_sla: Option<String>,
}

impl Rollups {
    /// Reads the configuration.
    ///
    /// # Errors
    /// What is wrong with it, in OpenTSDB's words.
    pub fn parse(json: &str, settings: RollupSettings) -> Result<Self, String> {
        let body: ConfigBody =
            serde_json::from_str(json).map_err(|error| format!("Unable to parse the rollup configuration: {error}"))?;
        let intervals = body.intervals.filter(|intervals| !intervals.is_empty());
        let intervals = intervals.ok_or("Rollup config given but no intervals were found.")?;
        let ids = body.aggregation_ids.filter(|ids| !ids.is_empty());
        let ids = ids.ok_or("Rollup config given but no aggegation ID mappings found.")?;
        let mut rollups: Vec<Rollup> = Vec::with_capacity(intervals.len());
        for interval in &intervals {
            let rollup = interval.check()?;
            if rollups.iter().any(|other| other.name == rollup.name) {
                return Err(format!("Only one interval of each type can be configured: {}", interval.interval));
            }
            if rollup.is_default && rollups.iter().any(|other| other.is_default) {
                let name = &interval.interval;
                return Err(format!("Multiple default intervals configured. Only one is allowed: {name}"));
            }
            rollups.push(rollup);
        }
        let mut aggregates: Vec<RollupAggregate> = Vec::with_capacity(ids.len());
        for (name, id) in &ids {
            let in_range = u8::try_from(*id).ok().filter(|id| i64::from(*id) <= ID_MAX);
            let id = in_range.ok_or_else(|| format!("ID for aggregator must be between 0 and 127: {name}={id}"))?;
            let name = name.to_lowercase();
            if aggregates.iter().any(|other| other.id == id) {
                return Err(format!("Multiple mappings for the ID '{id}' are not allowed."));
            }
            if !AGGREGATORS.contains(&&*name) {
                return Err(format!("No such aggregator: {name}"));
            }
            aggregates.push(RollupAggregate { id, name: name.into() });
        }
        Ok(Self { intervals: rollups, aggregates, settings })
    }

    /// The interval of a name: `1h`.
    pub fn by_name(&self, name: &str) -> Option<&Rollup> {
        self.intervals.iter().find(|rollup| &*rollup.name == name)
    }

    /// All intervals, in the order of the configuration.
    pub fn iter(&self) -> impl Iterator<Item = &Rollup> {
        self.intervals.iter()
    }

    /// The interval whose table is that of the points themselves.
    pub fn default_rollup(&self) -> Option<&Rollup> {
        self.intervals.iter().find(|rollup| rollup.is_default)
    }

    /// The intervals that fit a number of seconds or divide it, longest first.
    pub fn fitting(&self, seconds: u32) -> Vec<&Rollup> {
        let mut fitting: Vec<&Rollup> =
            self.intervals.iter().filter(|rollup| seconds.is_multiple_of(rollup.interval_s)).collect();
        fitting.sort_by_key(|rollup| std::cmp::Reverse(rollup.interval_s));
        fitting
    }

    /// The aggregate of a name in any case, if values of it are kept.
    pub fn aggregate(&self, name: &str) -> Option<&RollupAggregate> {
        let name = name.to_lowercase();
        self.aggregates.iter().find(|aggregate| *aggregate.name == *name)
    }

    /// Whether there is an aggregator of this name at all.
    pub fn knows_aggregator(&self, lower: &str) -> bool {
        AGGREGATORS.contains(&lower)
    }

    /// Whether values of this aggregator are refused since they cannot be joined again.
    pub fn blocks(&self, aggregator: &str) -> bool {
        self.settings.block_derived && matches!(&*aggregator.to_uppercase(), "AVG" | "DEV")
    }

    /// Key of the tag that tells how series were joined.
    pub fn tag_key(&self) -> &str {
        &self.settings.tag_key
    }

    /// The tag's value on rollups of single series.
    pub fn raw_tag_value(&self) -> &str {
        &self.settings.raw_tag_value
    }

    /// Whether rollups of single series are tagged.
    pub const fn tag_raw(&self) -> bool {
        self.settings.tag_raw
    }

    /// Whether what is newer than a rollup's delay is read from the points themselves.
    pub const fn split_queries(&self) -> bool {
        self.settings.split_queries
    }
}

impl IntervalBody {
    fn check(&self) -> Result<Rollup, String> {
        let (span_count, span_unit) = duration_parts(&self.row_span)?;
        if self.table.is_empty() {
            return Err("The rollup table cannot be null or empty".into());
        }
        if self.pre_aggregation_table.is_empty() {
            return Err("The pre-aggregate rollup table cannot be null or empty".into());
        }
        if span_unit != "h" && span_count > 1 {
            return Err("Multipliers are only usable with the 'h' unit".into());
        }
        if span_count > 1 && !span_count.is_multiple_of(2) {
            return Err("The multiplier must be 1 or an even value".into());
        }
        let span = match span_unit {
            "ms" => return Err("Milliseconds are not supported".into()),
            "h" if span_count <= u32::MAX / 3600 => RowSpan::Hours(span_count),
            "d" => RowSpan::Day,
            "n" => RowSpan::Month,
            "y" => RowSpan::Year,
            other => return Err(format!("Unrecogznied span '{other}'")),
        };
        let interval_s = duration_s(&self.interval)?;
        if interval_s == 0 {
            return Err(format!("Interval is too small: {}", self.interval));
        }
        if interval_s >= span.seconds_max() {
            return Err(format!("Interval [{interval_s}] is too large for the span [{span_unit}]"));
        }
        let slots = span.seconds_max() / interval_s;
        if slots > SLOTS_MAX {
            return Err(format!(
                "Too many intervals [{slots}] in the span. Must be smaller than [{SLOTS_MAX}] to fit in 14 bits"
            ));
        }
        if slots < SLOTS_MIN {
            return Err(format!("Not enough intervals [{slots}] for the span. Must be at least [{SLOTS_MIN}]"));
        }
        let delay = self.delay_sla.as_deref().filter(|delay| !delay.is_empty()).map(duration_s).transpose()?;
        if delay == Some(0) {
            return Err("Milliseconds are not supported as the maximum delay".into());
        }
        let table = |name: &str| name.parse::<TableName>().map_err(|error| error.to_string());
        Ok(Rollup {
            name: self.interval.as_str().into(),
            interval_s,
            span,
            table: table(&self.table)?,
            preaggregate_table: table(&self.pre_aggregation_table)?,
            is_default: self.default_interval,
            delay_s: delay.unwrap_or_default(),
        })
    }
}

/// `6h` as 6 and `h`.
fn duration_parts(text: &str) -> Result<(u32, &str), String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (count, unit) = text.split_at(digits);
    match count.parse() {
        Ok(count) if count > 0 && !unit.is_empty() => Ok((count, unit)),
        _ => Err(format!("Invalid duration (number): {text}")),
    }
}

/// A duration's seconds, with months of 30 days and years of 365.
fn duration_s(text: &str) -> Result<u32, String> {
    let (count, unit) = duration_parts(text)?;
    let unit_s = match unit {
        "ms" => return Ok(count / 1000),
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        "n" => 30 * 86_400,
        "y" => 365 * 86_400,
        _ => return Err(format!("Invalid duration (suffix): {text}")),
    };
    count.checked_mul(unit_s).ok_or_else(|| format!("Invalid duration (number): {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(interval: &str, span: &str) -> String {
        format!(r#"{{"table":"t","preAggregationTable":"p","interval":"{interval}","rowSpan":"{span}"}}"#)
    }

    fn check(ids: &str, intervals: &str, expected: &str) {
        let json = format!(r#"{{"aggregationIds":{ids},"intervals":[{intervals}],"other":1}}"#);
        let told = Rollups::parse(&json, RollupSettings::default()).map(|_| ()).unwrap_err();
        assert!(told.starts_with(expected), "{told}");
    }

    #[test]
    fn s_rollup_config_is_checked_as_opentsdb_checks_it() {
        let ids = r#"{"sum":0}"#;
        check(ids, "", "Rollup config given but no intervals were found.");
        check("{}", &interval("1h", "1d"), "Rollup config given but no aggegation ID mappings found.");
        check(r#"{"sum":128}"#, &interval("1h", "1d"), "ID for aggregator must be between 0 and 127: sum=128");
        check(r#"{"sum":1,"max":1}"#, &interval("1h", "1d"), "Multiple mappings for the ID '1' are not allowed.");
        check(r#"{"nosuch":1}"#, &interval("1h", "1d"), "No such aggregator");
        let twice = format!("{},{}", interval("1h", "1d"), interval("1h", "1n"));
        check(ids, &twice, "Only one interval of each type can be configured");
        check(ids, &interval("1h", "2d"), "Multipliers are only usable with the 'h' unit");
        check(ids, &interval("1m", "3h"), "The multiplier must be 1 or an even value");
        check(ids, &interval("1h", "1w"), "Unrecogznied span 'w'");
        check(ids, &interval("1h", "1h"), "Interval [3600] is too large for the span [h]");
        check(ids, &interval("1s", "1d"), "Too many intervals [86400] in the span. Must be smaller than [7774]");
        check(ids, &interval("1h", "6h"), "Not enough intervals [6] for the span. Must be at least [12]");
        check(ids, &interval("x", "6h"), "Invalid duration (number): x");
        check(ids, r#"{"preAggregationTable":"p","interval":"1h","rowSpan":"1d"}"#, "The rollup table cannot be");
        check(ids, r#"{"table":"t","interval":"1h","rowSpan":"1d"}"#, "The pre-aggregate rollup table cannot be");
        let default =
            r#"{"table":"t","preAggregationTable":"p","interval":"1m","rowSpan":"1h","defaultInterval":true}"#;
        let second = default.replace("1m", "2m");
        check(ids, &format!("{default},{second}"), "Multiple default intervals configured. Only one is allowed");
        assert!(Rollups::parse("[", RollupSettings::default()).is_err());
    }

    #[test]
    fn s_rollup_config_the_longest_fitting_interval_comes_first() {
        let intervals = [interval("1m", "1h"), interval("1h", "1n"), interval("10m", "1d")].join(",");
        let json = format!(r#"{{"aggregationIds":{{"SUM":0}},"intervals":[{intervals}]}}"#);
        let rollups = Rollups::parse(&json, RollupSettings::default()).unwrap();
        let names = |seconds| rollups.fitting(seconds).into_iter().map(Rollup::name).collect::<Vec<_>>();
        assert_eq!(names(86_400), ["1h", "10m", "1m"]);
        assert_eq!(names(600), ["10m", "1m"]);
        assert!(names(30).is_empty());
        assert_eq!(rollups.aggregate("Sum").map(RollupAggregate::name), Some("sum"));
        assert!(rollups.blocks("Avg") && !rollups.blocks("sum"));
    }
}
