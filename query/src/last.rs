//! The newest points of series (`/api/query/last`).
//!
//! A series is looked for in the row of this hour, then backwards as far as `back_scan` says. Where the meta
//! table counts the series' points, the time of its counter says which hour to begin with. *Source*: OpenTSDB 2.4
//! `QueryRpc.handleLastDataPointQuery`, `TSUIDQuery`.

mod answer;
mod lookup;
mod series;

pub use answer::{LastAnswer, LastMetric, LastPoint, LastTags};

use std::collections::BTreeMap;
use std::ops::Range;

use basalt_schema::{BaseTime, Schema, TagPair, Tsuid, Uid, UidKind};
use serde::Deserialize;

use crate::cancel::Budget;
use crate::discover;
use crate::error::LastFault;
use crate::names;
use crate::request::split_list;
use crate::{Error, NamedSeries, Options, Result};
use answer::Teller;
use lookup::Lookup;
use series::{MetSets, TagSets, Wanted};

/// Memory charged for a series: its place, its set of tags, and what is found and told of it.
const SERIES_BYTES: u64 = 400;

/// A request of `/api/query/last`.
///
/// ```
/// use basalt_query::LastRequest;
/// let request = LastRequest::from_json(br#"{"queries":[{"metric":"sys.cpu","tags":{"host":"a"}}],"backScan":24}"#)?;
/// assert_eq!(request.back_scan, 24);
/// # Ok::<(), basalt_query::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct LastRequest {
    /// Which series.
    #[serde(deserialize_with = "crate::request::json::list")]
    pub queries: Vec<LastQuery>,
    /// Tell metric and tags too.
    #[serde(deserialize_with = "crate::request::json::flag")]
    pub resolve_names: bool,
    /// How many hours before this one to look into.
    #[serde(deserialize_with = "crate::request::json::integer")]
    pub back_scan: i64,
}

/// Some series of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LastQuery {
    /// Name of the metric; not looked at when there are TSUIDs.
    #[serde(deserialize_with = "crate::request::json::text")]
    pub metric: Option<String>,
    /// Tags that the series must have; it may have more.
    #[serde(deserialize_with = "crate::request::json::texts_by_name")]
    pub tags: Option<BTreeMap<String, String>>,
    /// Series by id, hex.
    #[serde(deserialize_with = "crate::request::json::texts")]
    pub tsuids: Vec<String>,
}

impl LastRequest {
    /// Reads the body of a POST.
    ///
    /// # Errors
    /// `Invalid`: no JSON of such a request.
    pub fn from_json(body: &[u8]) -> Result<Self> {
        if body.trim_ascii_start().first().is_some_and(|first| *first != b'{') {
            return Err(Error::Json { reason: "the body is not an object".into() });
        }
        crate::request::json::read(body).map_err(|error| Error::Json { reason: error.to_string().into() })
    }

    /// Reads the query string of a GET, percent-decoded: each `timeseries`, each `tsuids`, and the two flags.
    ///
    /// # Errors
    /// `Invalid`: a series' text that cannot be read, or a `back_scan` that is no number.
    pub fn from_get(timeseries: &[&str], tsuids: &[&str], resolve: bool, back_scan: Option<&str>) -> Result<Self> {
        let back_scan = match back_scan {
            Some(text) => text.parse::<i32>().map_err(|_| Error::Last(LastFault::BackScan))?.into(),
            None => 0,
        };
        let named = timeseries.iter().map(|text| LastQuery::from_text(text));
        let listed = tsuids.iter().map(|text| Ok(LastQuery { tsuids: split_list(text), ..LastQuery::default() }));
        let queries = named.chain(listed).collect::<Result<_>>()?;
        Ok(Self { queries, resolve_names: resolve, back_scan })
    }

    /// The newest points.
    pub(crate) fn run(&self, schema: &Schema, now_ms: i64, options: Options, budget: &Budget) -> Result<LastAnswer> {
        if self.queries.is_empty() {
            return Err(Error::MissingSubQueries);
        }
        let (back_scan, strict) = (self.back_scan, options.compat.strict);
        let mut finder = Finder { schema, now_ms, back_scan, strict, budget, wish: Wish::default() };
        for query in &self.queries {
            finder.add_series(query)?;
        }
        if self.back_scan < 1 {
            finder.add_counted()?;
        }
        // OpenTSDB finds it wrong when it looks for a series, which it does once it knows them all.
        if self.back_scan < 0 && !finder.wish.wanted.is_empty() {
            return Err(Error::Last(LastFault::NegativeBackScan));
        }
        let (wanted, sets) = finder.wish.in_order();
        let hours = u64::try_from(self.back_scan).unwrap_or(0);
        let found = Lookup::new(schema, now_ms, hours, budget, &sets).run(&wanted)?;
        Teller::new(schema, &sets, self.resolve_names).tell(&wanted, found)
    }
}

impl LastQuery {
    /// Reads `metric` or `metric{key=value,…}`.
    fn from_text(text: &str) -> Result<Self> {
        let NamedSeries { metric, tags } = text.parse()?;
        Ok(Self { metric: Some(metric), tags: Some(tags.into_iter().collect()), tsuids: Vec::new() })
    }
}

/// The series of a request in its order, but for those that a metric and some tags mean: of these TSUIDs tell the order.
#[derive(Debug, Default)]
struct Wish {
    wanted: Vec<Wanted>,
    sets: MetSets,
    meant_together: Vec<Range<usize>>,
}

impl Wish {
    fn add(&mut self, metric: Uid, tags: &[u8]) {
        self.wanted.push(Wanted { metric, tags: self.sets.number(tags), counted_s: None });
    }

    fn add_indexed(&mut self, metric: Uid, set: u32, tags: &[u8]) {
        self.wanted.push(Wanted { metric, tags: self.sets.number_indexed(set, tags), counted_s: None });
    }

    /// Leaves those out that a metric and some tags mean and that nothing counts.
    fn drop_uncounted(&mut self) {
        let wanted = std::mem::take(&mut self.wanted);
        let mut rest = wanted.into_iter();
        let mut taken = 0;
        for range in &mut self.meant_together {
            self.wanted.extend(rest.by_ref().take(range.start - taken));
            let first = self.wanted.len();
            let counted = |series: &Wanted| series.counted_s.is_some();
            self.wanted.extend(rest.by_ref().take(range.len()).filter(counted));
            taken = range.end;
            *range = first..self.wanted.len();
        }
        self.wanted.extend(rest);
    }

    fn in_order(mut self) -> (Vec<Wanted>, TagSets) {
        let sets = self.sets.sort(&mut self.wanted);
        let mut slots = Vec::new();
        for range in self.meant_together {
            // Of one metric, whose sets of tags are numbered in order.
            sets.sort_series(self.wanted.get_mut(range).unwrap_or_default(), &mut slots);
        }
        (self.wanted, sets)
    }
}

/// Which series a request means.
struct Finder<'a> {
    schema: &'a Schema,
    now_ms: i64,
    back_scan: i64,
    strict: bool,
    budget: &'a Budget,
    wish: Wish,
}

impl Finder<'_> {
    fn add_series(&mut self, query: &LastQuery) -> Result<()> {
        if query.tsuids.is_empty() {
            return self.add_named(query);
        }
        let widths = self.schema.layout().widths;
        for text in &query.tsuids {
            if text.is_empty() {
                return Err(Error::Last(LastFault::EmptyTsuid));
            }
            if !text.bytes().all(|letter| letter.is_ascii_hexdigit()) {
                return Err(Error::Last(LastFault::NotHex(text.as_str().into())));
            }
            if text.len() < 2 * (widths.metric.bytes() + widths.tagk.bytes() + widths.tagv.bytes()) {
                return Err(Error::Last(LastFault::ShortTsuid));
            }
            self.reserve(1)?;
            let tsuid = Tsuid::parse(text, widths).map_err(|_| Error::InvalidTsuid { text: text.as_str().into() })?;
            let (metric, tags) = tsuid.parts(widths);
            self.wish.add(metric, tags);
        }
        Ok(())
    }

    /// Adds when series were counted last. OpenTSDB widens to those alone that are; strictly, so do we.
    fn add_counted(&mut self) -> Result<()> {
        lookup::add_counted(self.schema, &self.wish.sets, &mut self.wish.wanted, self.budget)?;
        if self.strict {
            self.wish.drop_uncounted();
        }
        Ok(())
    }

    /// Refuses more series than a request may mean, before they are listed. A series counts as often as it is named.
    fn reserve(&self, more: u64) -> Result<()> {
        self.budget.check()?;
        self.budget.limits().check_series(more.saturating_add(self.wish.wanted.len() as u64))?;
        self.budget.reserve(more.saturating_mul(SERIES_BYTES))
    }

    /// Series by metric and tags, widened to those with more tags. OpenTSDB widens by the meta table alone, and looking
    /// back it wants all tags; strictly, so do we.
    fn add_named(&mut self, query: &LastQuery) -> Result<()> {
        let metric = query.metric.as_deref().filter(|name| !name.is_empty()).ok_or(Error::Last(LastFault::NoMetric))?;
        let no_tags = BTreeMap::new();
        let tags = query.tags.as_ref().unwrap_or(&no_tags);
        let exactly = self.strict && self.back_scan > 0;
        if exactly && tags.is_empty() {
            return Err(Error::Last(LastFault::NoTags));
        }
        let metric = names::uid(self.schema, UidKind::Metric, metric)?;
        let mut pairs = Vec::with_capacity(tags.len());
        for (key, value) in tags {
            pairs.push(TagPair {
                key: names::uid(self.schema, UidKind::Tagk, key)?,
                value: names::uid(self.schema, UidKind::Tagv, value)?,
            });
        }
        if exactly {
            self.reserve(1)?;
            let widths = self.schema.layout().widths;
            self.wish.add(metric, Tsuid::new(metric, &pairs, widths).parts(widths).1);
            return Ok(());
        }
        if self.schema.config().is_shared {
            self.discover(metric)?;
        }
        let index = self.schema.index();
        let mut ids = index.series(metric);
        for pair in pairs {
            ids &= index.with_tag(metric, pair);
        }
        self.reserve(ids.len())?;
        let first = self.wish.wanted.len();
        index.each_tags(&ids, |set, tags| self.wish.add_indexed(metric, set, tags));
        self.wish.meant_together.push(first..self.wish.wanted.len());
        Ok(())
    }

    /// Adds the series that others wrote to the index: those with a row in the hours looked into, and without a look back
    /// those that the meta table counts.
    fn discover(&self, metric: Uid) -> Result<()> {
        if self.back_scan < 1 {
            discover::in_meta(self.schema, metric, self.budget)?;
        }
        let now = BaseTime::of_seconds(u32::try_from(self.now_ms / 1000).unwrap_or(u32::MAX));
        let back_s = u64::try_from(self.back_scan).unwrap_or(0).saturating_mul(BaseTime::SPAN_S.into());
        let first_s = u64::from(now.seconds()).saturating_sub(back_s);
        let first = BaseTime::of_seconds(u32::try_from(first_s).unwrap_or_default());
        discover::within(self.schema, metric, first..lookup::after(now), self.budget)
    }
}

#[cfg(test)]
mod tests;
