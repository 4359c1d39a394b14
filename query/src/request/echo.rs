//! A sub query as `showQuery` echoes it, and a request as error answers dump it. *Source*: OpenTSDB 2.4 `TSSubQuery`
//! as its serializer writes it, `TSQuery.toString`.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};

use super::{QueryRequest, RateOptions, RollupUsage, SubQuery};
use crate::filter::TagFilter;

impl SubQuery {
    /// The sub query as `showQuery` writes it; `index` is its place in the request, `rollup` the interval of the rollups
    /// that answered it.
    pub fn echo<'a>(&'a self, index: usize, rollup: Option<&'a str>) -> impl Serialize + 'a {
        Echo { sub: self, index, rollup }
    }
}

impl QueryRequest {
    /// The request as a list of running queries tells it.
    ///
    /// *Source*: OpenTSDB 2.4 `TSQuery` as `/api/stats/query` writes it.
    pub fn echo(&self) -> impl Serialize + '_ {
        RequestEcho(self)
    }
}

struct RequestEcho<'a>(&'a QueryRequest);

impl Serialize for RequestEcho<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let request = self.0;
        let subs: Vec<_> =
            request.queries.iter().enumerate().map(|(index, sub)| Echo { sub, index, rollup: None }).collect();
        let mut out = serializer.serialize_struct("Query", 15)?;
        out.serialize_field("start", &request.start)?;
        out.serialize_field("end", &request.end)?;
        out.serialize_field("timezone", &request.timezone)?;
        out.serialize_field("options", &Option::<()>::None)?;
        out.serialize_field("padding", &request.padding)?;
        out.serialize_field("queries", &subs)?;
        out.serialize_field("delete", &request.delete)?;
        out.serialize_field("globalAnnotations", &request.global_annotations)?;
        out.serialize_field("noAnnotations", &request.no_annotations)?;
        out.serialize_field("showTSUIDs", &request.show_tsuids)?;
        out.serialize_field("msResolution", &request.ms_resolution)?;
        out.serialize_field("showQuery", &request.show_query)?;
        out.serialize_field("showStats", &request.show_stats)?;
        out.serialize_field("showSummary", &request.show_summary)?;
        out.serialize_field("useCalendar", &request.use_calendar)?;
        out.end()
    }
}

struct Echo<'a> {
    sub: &'a SubQuery,
    index: usize,
    rollup: Option<&'a str>,
}

impl Serialize for Echo<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let sub = self.sub;
        let tags: BTreeMap<&str, String> = sub
            .filters
            .iter()
            .filter(|filter| filter.group_by)
            .map(|filter| (filter.tagk(), format!("{}({})", filter.kind_name(), filter.text())))
            .collect();
        let mut out = serializer.serialize_struct("SubQuery", 17)?;
        out.serialize_field("aggregator", &sub.aggregator)?;
        out.serialize_field("metric", &sub.metric)?;
        out.serialize_field("tsuids", &(!sub.tsuids.is_empty()).then_some(&sub.tsuids))?;
        out.serialize_field("downsample", &sub.downsample)?;
        out.serialize_field("rate", &sub.rate)?;
        out.serialize_field("filters", &sub.filters)?;
        out.serialize_field("percentiles", &(!sub.percentiles.is_empty()).then(|| sub.percentiles_in_order()))?;
        out.serialize_field("index", &self.index)?;
        out.serialize_field("rateOptions", &sub.rate_options)?;
        out.serialize_field("filterTagKs", &Option::<()>::None)?;
        out.serialize_field("explicitTags", &sub.explicit_tags)?;
        out.serialize_field("useFuzzyFilter", &!sub.no_fuzzy_filter)?;
        out.serialize_field("preAggregate", &sub.pre_aggregate)?;
        let rollup_usage = sub.rollup_usage.as_deref().map(|text| RollupUsage::parse(text).name());
        out.serialize_field("rollupUsage", &rollup_usage)?;
        out.serialize_field("rollupTable", self.rollup.unwrap_or("raw"))?;
        out.serialize_field("showHistogramBuckets", &sub.show_histogram_buckets)?;
        out.serialize_field("useMultiGets", &!sub.no_multi_gets)?;
        out.serialize_field("tags", &tags)?;
        out.serialize_field("histogramQuery", &(sub.show_histogram_buckets || !sub.percentiles.is_empty()))?;
        out.end()
    }
}

impl Serialize for TagFilter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("TagFilter", 4)?;
        out.serialize_field("tagk", self.tagk())?;
        out.serialize_field("filter", self.text())?;
        out.serialize_field("group_by", &self.group_by)?;
        out.serialize_field("type", self.kind_name())?;
        out.end()
    }
}

impl Serialize for RateOptions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("RateOptions", 4)?;
        out.serialize_field("counter", &self.counter)?;
        out.serialize_field("counterMax", &self.counter_max)?;
        out.serialize_field("resetValue", &self.reset_value)?;
        out.serialize_field("dropResets", &self.drop_resets)?;
        out.end()
    }
}
