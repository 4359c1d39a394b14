//! A request read and found sensible: texts have become times, functions and filters; names are still names.

use chrono_tz::Tz;

use super::{PERCENTILES_MAX, QueryRequest, RateOptions, RollupUsage, SUB_QUERIES_MAX, SubQuery};
use crate::downsample::{Downsample, Fill};
use crate::error::{FilterFault, HistogramFault};
use crate::filter::{FilterKind, TagFilter, fault};
use crate::float_text::float_text;
use crate::limits::Limits;
use crate::time::{TimeContext, parse_time};
use crate::zone::parse_zone;
use crate::{Aggregator, Compat, Error, Options, Result};

/// The largest instant that OpenTSDB takes.
const TIME_MS_MAX: i64 = 9_999_999_999_999;

/// A checked request.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the wire format")]
pub struct Query {
    /// First instant that is answered, ms.
    pub start_ms: i64,
    /// Last instant that is answered, ms, itself included; after `start_ms`.
    pub end_ms: i64,
    /// The clock when the request was checked, ms.
    pub now_ms: i64,
    /// What is read is to be deleted.
    pub delete: bool,
    /// Whether annotations are wanted.
    pub annotations: bool,
    /// The budget of points does not hold.
    pub override_points: bool,
    /// The budget of bytes does not hold.
    pub override_bytes: bool,
    /// Stamps outside of `start_ms..=end_ms` are answered too, those of all hours read: what expressions compute with.
    pub(crate) whole_window: bool,
    /// Where buckets of a calendar are counted from, ms; `None`: from where a scan begins.
    pub(crate) buckets_from_ms: Option<i64>,
    /// The sub queries in request order.
    pub sub_queries: Vec<SubQueryPlan>,
}

/// A checked sub query.
#[derive(Debug, Clone)]
pub struct SubQueryPlan {
    /// Its place in the request.
    pub index: usize,
    /// Function across series.
    pub aggregator: Aggregator,
    /// Which series.
    pub source: Source,
    /// Filters, joined by AND.
    pub filters: Vec<TagFilter>,
    /// Only series with exactly the filtered keys.
    pub explicit_tags: bool,
    /// Downsampling.
    pub downsample: Option<Downsample>,
    /// Rate.
    pub rate: Option<RateOptions>,
    /// Histograms are asked, and not points.
    pub histogram: Option<HistogramQuery>,
    /// How rollups are used.
    pub rollups: RollupUsage,
    /// What was joined across series before it was written.
    pub pre_aggregate: bool,
}

/// What is asked of histograms.
#[derive(Debug, Clone, PartialEq)]
pub struct HistogramQuery {
    /// Percentiles, each from 0 to 100, ascending.
    pub percentiles: Vec<f32>,
    /// Whether the counts of buckets are asked.
    pub buckets: bool,
}

/// Where a sub query's series come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// All of a metric that pass the filters.
    Metric(String),
    /// A list, hex.
    Tsuids(Vec<String>),
}

impl QueryRequest {
    /// Reads the texts and refuses what makes no sense, in OpenTSDB's order and words.
    ///
    /// # Errors
    /// `Invalid`: what is wrong, or what this build does not answer yet.
    pub fn check(&self, now_ms: i64, options: Options) -> Result<Query> {
        if options.compat.strict && self.lacks_queries {
            return Err(Error::NullQueries);
        }
        if options.compat.strict && self.queries.iter().any(|sub| sub.names_not_key) {
            let reason = fault(FilterKind::NotKey.name(), FilterFault::UnknownType).to_string();
            return Err(Error::Json { reason: reason.into() });
        }
        let zone = self.zone(options)?;
        let context = TimeContext { now_ms, zone: zone.unwrap_or(options.default_zone), compat: options.compat };
        let start = self.start.as_deref().filter(|text| !text.is_empty()).ok_or(Error::MissingStart)?;
        if options.compat.strict {
            // Before any text is looked into: OpenTSDB does not get further than the sub query's own text.
            self.queries.iter().flat_map(|sub| &sub.filters).try_for_each(refuse_not_key)?;
        }
        let start_ms = parse_time(start, &context)?;
        let end_ms = match self.end.as_deref().filter(|text| !text.is_empty()) {
            Some(text) => parse_time(text, &context)?,
            None => now_ms,
        };
        if end_ms <= start_ms {
            return Err(Error::EndNotAfterStart { start_ms, end_ms });
        }
        if self.queries.is_empty() {
            return Err(Error::MissingQueries);
        }
        if self.queries.len() > SUB_QUERIES_MAX {
            return Err(Error::TooMany { what: "sub queries", limit: SUB_QUERIES_MAX });
        }
        let sub_queries = self
            .queries
            .iter()
            .enumerate()
            .map(|(index, sub)| sub.check(index, zone.unwrap_or(Tz::UTC), self.use_calendar, options.compat))
            .collect::<Result<Vec<_>>>()?;
        [start_ms, end_ms].into_iter().try_for_each(refuse_out_of_range)?;
        Ok(Query {
            start_ms,
            end_ms,
            now_ms,
            delete: self.delete,
            annotations: !self.no_annotations,
            override_points: self.override_data_point_limit,
            override_bytes: self.override_byte_limit,
            whole_window: self.whole_window,
            buckets_from_ms: None,
            sub_queries,
        })
    }

    /// The zone named, if any. An unknown one is refused; OpenTSDB does not notice it unless a date or a downsample
    /// needs it.
    fn zone(&self, options: Options) -> Result<Option<Tz>> {
        let Some(name) = self.timezone.as_deref().filter(|name| !name.is_empty()) else {
            return Ok(None);
        };
        let by_date = [&self.start, &self.end].into_iter().flatten().any(|text| text.contains(['/', ':']));
        let by_downsample = self.queries.iter().any(|sub| sub.downsample.is_some());
        match parse_zone(name) {
            Err(_) if options.compat.strict && !by_date && !by_downsample => Ok(None),
            Err(_) if !by_date && by_downsample => Err(Error::UnknownDownsampleTimezone),
            zone => zone.map(Some),
        }
    }
}

impl Query {
    /// Limits without those that the request lifts and may lift.
    pub(crate) fn lift(&self, mut limits: Limits) -> Limits {
        if limits.points_may_be_lifted && self.override_points {
            limits.points_max = 0;
        }
        if limits.bytes_may_be_lifted && self.override_bytes {
            limits.bytes_max = 0;
        }
        limits
    }
}

impl SubQueryPlan {
    /// The list that the series come from; empty if a metric is named.
    pub(crate) fn tsuids(&self) -> &[String] {
        match &self.source {
            Source::Metric(_) => &[],
            Source::Tsuids(texts) => texts,
        }
    }

    /// Whether NaN is printed as `null`.
    pub(crate) fn nan_is_null(&self) -> bool {
        self.downsample.is_some_and(|downsample| downsample.fill == Fill::Null)
    }
}

fn refuse_out_of_range(time_ms: i64) -> Result<()> {
    if (0..=TIME_MS_MAX).contains(&time_ms) { Ok(()) } else { Err(Error::TimeOutOfRange { time_ms }) }
}

/// OpenTSDB documents `not_key` and does not know it.
fn refuse_not_key(filter: &TagFilter) -> Result<()> {
    if filter.kind() != FilterKind::NotKey {
        return Ok(());
    }
    let what = if filter.group_by { "tag" } else { "filter" };
    let text = format!("{}=not_key()", filter.tagk()).into();
    Err(Error::InTag { what, text, source: Box::new(fault(filter.kind_name(), FilterFault::UnknownType)) })
}

impl SubQuery {
    fn check(&self, index: usize, zone: Tz, use_calendar: bool, compat: Compat) -> Result<SubQueryPlan> {
        let name = self.aggregator.as_deref().filter(|name| !name.is_empty()).ok_or(Error::MissingAggregator)?;
        let aggregator = Aggregator::by_name(name).ok_or_else(|| Error::UnknownAggregator { name: name.into() })?;
        let source = if self.tsuids.is_empty() {
            let metric = self.metric.as_deref().filter(|metric| !metric.is_empty()).ok_or(Error::MissingMetric)?;
            Source::Metric(metric.to_owned())
        } else {
            Source::Tsuids(self.tsuids.clone())
        };
        let downsample = match self.downsample.as_deref().filter(|text| !text.is_empty()) {
            Some(text) => Some(Downsample::parse(text, zone, use_calendar, compat)?),
            None => None,
        };
        let histogram = self.histogram(aggregator, downsample)?;
        Ok(SubQueryPlan {
            index,
            aggregator,
            source,
            filters: if compat.strict && self.clears_filters { Vec::new() } else { self.filters.clone() },
            explicit_tags: self.explicit_tags,
            downsample,
            rate: self.rate.then(|| self.rate_options.unwrap_or_default()),
            histogram,
            rollups: self.rollup_usage.as_deref().map(RollupUsage::parse).unwrap_or_default(),
            pre_aggregate: self.pre_aggregate,
        })
    }

    /// The percentiles as they are answered and echoed, ascending.
    pub(super) fn percentiles_in_order(&self) -> Vec<f64> {
        let mut percentiles = self.percentiles.clone();
        percentiles.sort_by(f64::total_cmp);
        percentiles
    }

    /// What is asked of histograms, if anything is. Sums are all that they have.
    fn histogram(&self, aggregator: Aggregator, downsample: Option<Downsample>) -> Result<Option<HistogramQuery>> {
        if self.percentiles.is_empty() && !self.show_histogram_buckets {
            return Ok(None);
        }
        if self.percentiles.len() > PERCENTILES_MAX {
            return Err(Error::TooMany { what: "percentiles", limit: PERCENTILES_MAX });
        }
        let refuse = |fault| Err(Error::Histogram { fault });
        if !matches!(aggregator, Aggregator::None | Aggregator::Sum) {
            return refuse(HistogramFault::Aggregator);
        }
        if downsample.is_some_and(|downsample| downsample.function != Aggregator::Sum) {
            return refuse(HistogramFault::Downsample);
        }
        #[expect(clippy::cast_possible_truncation, reason = "a percentile is a float of 32 bits in OpenTSDB")]
        let percentiles: Vec<f32> = self.percentiles_in_order().iter().map(|percentile| *percentile as f32).collect();
        if let Some(wrong) = percentiles.iter().find(|percentile| **percentile < 0.0 || **percentile > 100.0) {
            return refuse(HistogramFault::Percentile(float_text(*wrong).into()));
        }
        Ok(Some(HistogramQuery { percentiles, buckets: self.show_histogram_buckets }))
    }
}
