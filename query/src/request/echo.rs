//! A sub query as `showQuery` echoes it, and a request as error answers dump it. *Source*: OpenTSDB 2.4 `TSSubQuery`
//! as its serializer writes it, `TSQuery.toString`.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};

use super::{RateOptions, SubQuery};
use crate::filter::TagFilter;

impl SubQuery {
    /// The sub query as `showQuery` writes it; `index` is its place in the request.
    pub fn echo(&self, index: usize) -> impl Serialize + '_ {
        Echo { sub: self, index }
    }
}

struct Echo<'a> {
    sub: &'a SubQuery,
    index: usize,
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
        out.serialize_field("percentiles", &(!sub.percentiles.is_empty()).then_some(&sub.percentiles))?;
        out.serialize_field("index", &self.index)?;
        out.serialize_field("rateOptions", &sub.rate_options)?;
        out.serialize_field("filterTagKs", &Option::<()>::None)?;
        out.serialize_field("explicitTags", &sub.explicit_tags)?;
        out.serialize_field("useFuzzyFilter", &true)?;
        out.serialize_field("preAggregate", &sub.pre_aggregate)?;
        out.serialize_field("rollupUsage", &sub.rollup_usage)?;
        out.serialize_field("rollupTable", "raw")?;
        out.serialize_field("showHistogramBuckets", &sub.show_histogram_buckets)?;
        out.serialize_field("useMultiGets", &true)?;
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
