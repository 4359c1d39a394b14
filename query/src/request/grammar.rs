//! The query string of a GET: `m=`, `tsuid=` and the flags beside them, percent-decoded already.
//!
//! ```text
//! m      := agg ":" part* metric [ "{" filters that group "}" [ "{" other filters "}" ] ]
//! tsuid  := agg ":" part* hex ("," hex)*
//! part   := ( interval "-" function [ "-" fill ] | "rate" [ "{" options "}" ] | "explicit_tags" | "pre-agg"
//!           | "rollup_…" | "percentiles[" p ("," p)* "]" | "show-histogram-buckets" ) ":"
//! ```
//!
//! Parts are told apart by how they begin and may come in any order; unknown ones are ignored, as in OpenTSDB.
//! *Source*: OpenTSDB 2.4 `QueryRpc.parseQuery`, `Tags.parseWithMetricAndFilters`.

use super::{FILTERS_MAX, QueryRequest, RateOptions, SUB_QUERIES_MAX, SubQuery};
use crate::error::{FilterFault, GrammarFault};
use crate::filter::{TagFilter, fault as filter_fault};
use crate::{Error, Result};

/// The fewest and the most parts between colons.
const PARTS_MIN: usize = 2;
const PARTS_MAX: usize = 5;

/// The parameters of a GET, percent-decoded.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the query string")]
pub struct GetParameters<'a> {
    /// `start`
    pub start: Option<&'a str>,
    /// `end`
    pub end: Option<&'a str>,
    /// `m`, each time it is given
    pub metrics: &'a [&'a str],
    /// `tsuid`, each time it is given
    pub tsuids: &'a [&'a str],
    /// `timezone`; OpenTSDB reads it from bodies only.
    pub timezone: Option<&'a str>,
    /// `use_calendar`; OpenTSDB reads it from bodies only.
    pub use_calendar: bool,
    /// `padding`
    pub padding: bool,
    /// `no_annotations`
    pub no_annotations: bool,
    /// `global_annotations`
    pub global_annotations: bool,
    /// `show_tsuids`
    pub show_tsuids: bool,
    /// `ms`
    pub ms: bool,
    /// `show_query`
    pub show_query: bool,
    /// `show_stats`
    pub show_stats: bool,
    /// `show_summary`
    pub show_summary: bool,
    /// `arrays`
    pub arrays: bool,
    /// The method is DELETE.
    pub delete: bool,
}

impl QueryRequest {
    /// Reads the query string of a GET: TSUIDs first, then metrics; sub queries that are the same are asked once.
    ///
    /// # Errors
    /// `Invalid`: none of both, or a text that cannot be read.
    pub fn from_get(parameters: &GetParameters<'_>) -> Result<Self> {
        if parameters.start.is_none_or(str::is_empty) {
            return Err(Error::MissingParameter { name: "start" });
        }
        let mut queries: Vec<SubQuery> = Vec::new();
        let tsuids = parameters.tsuids.iter().map(|text| SubQuery::from_tsuid_text(text));
        let metrics = parameters.metrics.iter().map(|text| SubQuery::from_metric_text(text));
        let mut filters = 0;
        for sub in tsuids.chain(metrics) {
            let sub: SubQuery = sub?;
            filters += sub.filters.len();
            if queries.len() == SUB_QUERIES_MAX {
                return Err(Error::TooMany { what: "sub queries", limit: SUB_QUERIES_MAX });
            }
            if filters > FILTERS_MAX {
                return Err(Error::TooMany { what: "filters", limit: FILTERS_MAX });
            }
            queries.push(sub);
        }
        if queries.is_empty() {
            return Err(Error::MissingSubQueries);
        }
        drop_repeated(&mut queries);
        Ok(Self {
            whole_window: false,
            start: parameters.start.map(str::to_owned),
            end: parameters.end.map(str::to_owned),
            timezone: parameters.timezone.map(str::to_owned),
            queries,
            lacks_queries: false,
            padding: parameters.padding,
            no_annotations: parameters.no_annotations,
            global_annotations: parameters.global_annotations,
            show_tsuids: parameters.show_tsuids,
            ms_resolution: parameters.ms,
            show_query: parameters.show_query,
            show_stats: parameters.show_stats,
            show_summary: parameters.show_summary,
            delete: parameters.delete,
            use_calendar: parameters.use_calendar,
            override_byte_limit: false,
            override_data_point_limit: false,
            arrays: parameters.arrays,
        })
    }
}

/// Sub queries that are the same are asked once.
pub(super) fn drop_repeated(queries: &mut Vec<SubQuery>) {
    let mut kept: Vec<SubQuery> = Vec::with_capacity(queries.len());
    for sub in queries.drain(..) {
        if !kept.contains(&sub) {
            kept.push(sub);
        }
    }
    *queries = kept;
}

impl SubQuery {
    /// Reads an `m=` text.
    ///
    /// # Errors
    /// `Invalid`: too few or too many parts, or one that cannot be read.
    pub fn from_metric_text(text: &str) -> Result<Self> {
        let mut sub = Self::default();
        let metric = sub.read_parts(text, GrammarFault::EmptyMetricQuery)?;
        sub.metric = Some(parse_metric(metric, &mut sub.filters)?);
        Ok(sub)
    }

    /// Reads a `tsuid=` text.
    ///
    /// # Errors
    /// `Invalid`: too few or too many parts, or one that cannot be read.
    pub fn from_tsuid_text(text: &str) -> Result<Self> {
        let mut sub = Self::default();
        let list = sub.read_parts(text, GrammarFault::EmptyTsuidQuery)?;
        sub.tsuids = split_list(list);
        if sub.tsuids.is_empty() {
            return Err(grammar(text, GrammarFault::EmptyTsuidQuery));
        }
        Ok(sub)
    }

    /// Reads all parts but the last, which it gives back.
    fn read_parts<'a>(&mut self, text: &'a str, empty: GrammarFault) -> Result<&'a str> {
        if text.is_empty() {
            return Err(grammar(text, empty));
        }
        let parts: Vec<&str> = text.split(':').collect();
        let (PARTS_MIN..=PARTS_MAX, [aggregator, middle @ .., last]) = (parts.len(), parts.as_slice()) else {
            let few = parts.len() < PARTS_MIN;
            return Err(grammar(text, if few { GrammarFault::TooFewParts } else { GrammarFault::TooManyParts }));
        };
        self.aggregator = Some((*aggregator).to_owned());
        if middle.contains(&"") {
            return Err(grammar(text, GrammarFault::EmptyPart));
        }
        for part in middle {
            self.read_part(part)?;
        }
        Ok(last)
    }

    fn read_part(&mut self, part: &str) -> Result<()> {
        let lower = part.to_lowercase();
        if lower.starts_with("rate") {
            self.rate = true;
            if part.contains('{') {
                self.rate_options = Some(parse_rate_options(part)?);
            }
        } else if part.starts_with(|c: char| c.is_ascii_digit()) {
            self.downsample = Some(part.to_owned());
        } else if lower == "pre-agg" {
            self.pre_aggregate = true;
        } else if lower.starts_with("rollup_") {
            self.rollup_usage = Some(part.to_owned());
        } else if lower.starts_with("percentiles") {
            self.percentiles = parse_percentiles(part)?;
        } else if lower.starts_with("show-histogram-buckets") {
            self.show_histogram_buckets = true;
        } else if lower.starts_with("explicit_tags") {
            self.explicit_tags = true;
        }
        Ok(())
    }
}

fn grammar(text: &str, fault: GrammarFault) -> Error {
    Error::Grammar { text: text.into(), fault }
}

/// `rate{counter[,max[,reset]]}`, `rate{dropcounter,…}`; any of the fields may be empty, and any other first word means
/// no counter.
fn parse_rate_options(part: &str) -> Result<RateOptions> {
    let inner = part
        .get("rate{".len()..part.len().saturating_sub(1))
        .filter(|_| part.is_char_boundary(part.len().saturating_sub(1)))
        .ok_or_else(|| grammar(part, GrammarFault::RateSpec))?;
    let fields: Vec<&str> = inner.split(',').collect();
    let number = |index: usize, default: i64, fault: GrammarFault| match fields.get(index) {
        None | Some(&"") => Ok(default),
        Some(text) => text.parse().map_err(|_| grammar(text, fault)),
    };
    if fields.len() > 3 {
        return Err(grammar(part, GrammarFault::RateOptions(fields.len())));
    }
    let word = fields.first().copied().unwrap_or_default();
    Ok(RateOptions {
        counter: word.ends_with("counter"),
        counter_max: number(1, i64::MAX, GrammarFault::CounterMax)?,
        reset_value: number(2, 0, GrammarFault::ResetValue)?,
        drop_resets: word == "dropcounter",
    })
}

/// `percentiles[99.9,99]`; what follows the bracket is ignored, as in OpenTSDB.
fn parse_percentiles(part: &str) -> Result<Vec<f64>> {
    let (Some(open), Some(end)) = (part.find('['), part.find(']')) else {
        return Err(grammar(part, GrammarFault::Percentiles));
    };
    let unreadable = || grammar(part, GrammarFault::Percentile);
    let list = part.get(open + 1..end).ok_or_else(unreadable)?;
    list.split(',').map(|number| number.trim().parse().map_err(|_| unreadable())).collect()
}

/// A list of TSUIDs. As of Java's split, empty ones at the end are forgotten, and of an empty text it is left.
pub(crate) fn split_list(list: &str) -> Vec<String> {
    match list.trim_end_matches(',') {
        "" if list.is_empty() => vec![String::new()],
        "" => Vec::new(),
        ids => ids.split(',').map(str::to_owned).collect(),
    }
}

/// Reads a metric with its braces; filters of the second braces come first, as in OpenTSDB.
fn parse_metric(text: &str, filters: &mut Vec<TagFilter>) -> Result<String> {
    if text.is_empty() {
        return Err(grammar(text, GrammarFault::EmptyMetric));
    }
    let Some((metric, braces)) = text.split_once('{') else {
        return Ok(text.to_owned());
    };
    let inner = braces.strip_suffix('}').ok_or_else(|| grammar(text, GrammarFault::MissingBrace))?;
    // `inner` is the first braces alone, or has the end of the first and the start of the second in it.
    let (grouping, other) = match inner.split_once('}') {
        None => (inner, None),
        Some((grouping, rest)) => {
            let (_, other) = rest.rsplit_once('{').ok_or_else(|| grammar(text, GrammarFault::MissingBrace))?;
            (grouping, Some(other))
        }
    };
    if inner.split(',').nth(FILTERS_MAX).is_some() {
        return Err(Error::TooMany { what: "filters", limit: FILTERS_MAX });
    }
    for tag in other.unwrap_or_default().split(',').take_while(|tag| !tag.is_empty()) {
        filters.push(parse_tag(tag).map_err(|source| in_tag("filter", tag, source))?);
    }
    for tag in grouping.split(',') {
        if tag.is_empty() && (other.is_some() || grouping.is_empty()) {
            break;
        }
        let filter = parse_tag(tag).map_err(|source| in_tag("tag", tag, source))?;
        TagFilter::add_grouping(filters, filter);
    }
    Ok(metric.to_owned())
}

fn in_tag(what: &'static str, tag: &str, source: Error) -> Error {
    Error::InTag { what, text: tag.into(), source: Box::new(source) }
}

/// `key=value` with exactly one equals sign.
fn parse_tag(tag: &str) -> Result<TagFilter> {
    match tag.split_once('=') {
        Some((key, value)) if !key.is_empty() && !value.is_empty() && !value.contains('=') => {
            TagFilter::from_value(key, value)
        }
        _ => Err(filter_fault(tag, FilterFault::Pair)),
    }
}
