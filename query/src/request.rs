//! What a client asks: the request as JSON or query string gives it, before anything is looked up.
//!
//! A request holds texts and flags as they came. [`QueryRequest::check`] reads the texts and refuses what makes no
//! sense; names meet UIDs only in the plan. *Source*: OpenTSDB 2.4 `TSQuery`, `TSSubQuery`, `RateOptions`.

mod check;
mod echo;
mod grammar;
pub(crate) mod json;

pub use check::{HistogramQuery, Query, Source, SubQueryPlan};
pub use grammar::GetParameters;
pub(crate) use grammar::split_list;

use serde::Deserialize;

use crate::filter::TagFilter;

/// How many sub queries a request may have.
pub const SUB_QUERIES_MAX: usize = 256;

/// How many filters all of them may have together.
pub const FILTERS_MAX: usize = 512;

/// Percentiles of a sub query. OpenTSDB has no bound; each of them is a series of its own for each group.
pub(crate) const PERCENTILES_MAX: usize = 256;

/// A request of `/api/query`.
///
/// Built by [`QueryRequest::from_json`], [`QueryRequest::from_get`], or by hand.
///
/// ```
/// use basalt_query::QueryRequest;
/// let body = br#"{"start":"1h-ago","queries":[{"aggregator":"sum","metric":"sys.cpu","tags":{"host":"*"}}]}"#;
/// let request = QueryRequest::from_json(body)?;
/// assert_eq!(request.queries[0].metric.as_deref(), Some("sys.cpu"));
/// assert!(request.queries[0].filters[0].group_by);
/// # Ok::<(), basalt_query::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the wire format")]
pub struct QueryRequest {
    /// First instant; any form that [`parse_time`](crate::parse_time) reads.
    #[serde(deserialize_with = "json::text")]
    pub start: Option<String>,
    /// Last instant, itself included; the clock when absent or empty.
    #[serde(deserialize_with = "json::text")]
    pub end: Option<String>,
    /// Zone of dates and of calendar downsampling.
    #[serde(deserialize_with = "json::text")]
    pub timezone: Option<String>,
    /// The sub queries, answered in this order.
    #[serde(deserialize_with = "json::sub_queries")]
    pub queries: Vec<SubQuery>,
    /// The body says nothing of `queries`, or `null`: OpenTSDB crashes over it before it looks at anything else.
    #[serde(skip)]
    pub lacks_queries: bool,
    /// Taken and without effect, as in OpenTSDB.
    #[serde(deserialize_with = "json::flag")]
    pub padding: bool,
    /// Leave annotations out.
    #[serde(deserialize_with = "json::flag")]
    pub no_annotations: bool,
    /// Add global annotations of the range.
    #[serde(deserialize_with = "json::flag")]
    pub global_annotations: bool,
    /// List each group's TSUIDs.
    #[serde(rename = "showTSUIDs", deserialize_with = "json::flag")]
    pub show_tsuids: bool,
    /// Write times in milliseconds.
    #[serde(deserialize_with = "json::flag")]
    pub ms_resolution: bool,
    /// Echo the sub query beside each series.
    #[serde(deserialize_with = "json::flag")]
    pub show_query: bool,
    /// Write statistics beside each series.
    #[serde(deserialize_with = "json::flag")]
    pub show_stats: bool,
    /// Append a summary of statistics.
    #[serde(deserialize_with = "json::flag")]
    pub show_summary: bool,
    /// Delete what was read. Whether that is allowed is the daemon's to check, for bodies too.
    #[serde(deserialize_with = "json::flag")]
    pub delete: bool,
    /// Downsample by the calendar of `timezone`.
    #[serde(deserialize_with = "json::flag")]
    pub use_calendar: bool,
    /// Lift the budget of bytes where the configuration allows it.
    #[serde(deserialize_with = "json::flag")]
    pub override_byte_limit: bool,
    /// Lift the budget of points where the configuration allows it.
    #[serde(deserialize_with = "json::flag")]
    pub override_data_point_limit: bool,
    /// Answer every point of the hours read, beside those of the range: what OpenTSDB's `/q` writes as lines.
    #[serde(skip)]
    pub whole_window: bool,
    /// Write points as `[[time, value], …]`. By the query string only, on POST too.
    #[serde(skip)]
    pub arrays: bool,
}

/// One metric or list of series of a request, and what to do with it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(try_from = "json::OrderedBody")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the wire format")]
pub struct SubQuery {
    /// Name of the function across series.
    pub aggregator: Option<String>,
    /// Name of the metric; not looked at when there are TSUIDs.
    pub metric: Option<String>,
    /// Series by id, hex.
    pub tsuids: Vec<String>,
    /// Downsampling specifier, such as `1m-avg-nan`.
    pub downsample: Option<String>,
    /// Change a second instead of values.
    pub rate: bool,
    /// How to treat counters.
    pub rate_options: Option<RateOptions>,
    /// Filters of tags; of a body's `filters` and `tags` whichever comes last, if both say something.
    pub filters: Vec<TagFilter>,
    /// One of a body's `filters` is `not_key`: OpenTSDB, which does not register it, refuses the whole body for it.
    pub names_not_key: bool,
    /// Of a body's `filters` and `tags` the last is empty and the other is not: OpenTSDB then has no filter at all.
    pub clears_filters: bool,
    /// Only series with exactly the filtered tag keys.
    pub explicit_tags: bool,
    /// Read the pre-aggregated table.
    pub pre_aggregate: bool,
    /// How rollups are used.
    pub rollup_usage: Option<String>,
    /// Percentiles of histograms.
    pub percentiles: Vec<f64>,
    /// Buckets of histograms.
    pub show_histogram_buckets: bool,
    /// The body says `useFuzzyFilter: false`. Without effect but in the echo, and that it makes another sub query.
    pub no_fuzzy_filter: bool,
    /// The body says `useMultiGets: false`. As `no_fuzzy_filter`.
    pub no_multi_gets: bool,
}

/// How the change of a value is made a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct RateOptions {
    /// The values only grow, but for a rollover at `counter_max`. OpenTSDB reads it by both names.
    #[serde(alias = "isCounter", deserialize_with = "json::flag")]
    pub counter: bool,
    /// The value before the rollover to zero.
    #[serde(deserialize_with = "json::integer")]
    pub counter_max: i64,
    /// A rate above this, met at a rollover, is a reset and given as 0. Zero: never.
    #[serde(deserialize_with = "json::integer")]
    pub reset_value: i64,
    /// Leave the point of a rollover out.
    #[serde(deserialize_with = "json::flag")]
    pub drop_resets: bool,
}

impl Default for RateOptions {
    fn default() -> Self {
        Self { counter: false, counter_max: i64::MAX, reset_value: 0, drop_resets: false }
    }
}

/// How rollup tables are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RollupUsage {
    /// Raw points only.
    Raw,
    /// The best rollup, and nothing else when it is empty.
    #[default]
    NoFallback,
    /// The best rollup, then finer ones.
    Fallback,
    /// The best rollup, then raw points.
    FallbackRaw,
}

impl RollupUsage {
    /// Its name as a query's echo tells it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Raw => "ROLLUP_RAW",
            Self::NoFallback => "ROLLUP_NOFALLBACK",
            Self::Fallback => "ROLLUP_FALLBACK",
            Self::FallbackRaw => "ROLLUP_FALLBACK_RAW",
        }
    }

    /// Reads `ROLLUP_RAW` and its like in any case; anything else is the default, as in OpenTSDB.
    pub fn parse(text: &str) -> Self {
        match text.to_ascii_uppercase().as_str() {
            "ROLLUP_RAW" => Self::Raw,
            "ROLLUP_FALLBACK" => Self::Fallback,
            "ROLLUP_FALLBACK_RAW" => Self::FallbackRaw,
            _ => Self::NoFallback,
        }
    }
}

#[cfg(test)]
mod tests;
