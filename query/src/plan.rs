//! The plan of a sub query: names have become UIDs, filters a set of series, times a window of whole hours.
//!
//! Filters are answered by the series index alone: no row is read to find out whether it is wanted. An index that may
//! lack series is completed first, from the rows of the range.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use basalt_schema::{Rollup, Schema, SeriesId, SeriesIndex, Tsuid, Uid, UidKind};
use basalt_store::{Filter, TableName};
use roaring::RoaringBitmap;

use crate::cancel::Budget;
use crate::discover;
use crate::downsample::Downsample;
use crate::filter::{FilterKind, Matcher, TagFilter};
use crate::held::{Held, Keep};
use crate::names;
use crate::request::{Query, Source, SubQueryPlan};
use crate::rollup::{Attempt, RollupRead, attempts};
use crate::row_filter::{self, RowFilter};
use crate::window::Window;
use crate::{Aggregator, Error, Options, Result};

/// Series are few of their metric's if they are at most one in this many.
pub(crate) const FEW_SERIES_PART: u64 = 4;
/// How old a row is, in ms, whose append cell is put in order.
const MEND_AGE_MS: i64 = 3_600_000;

/// What a sub query reads and how the series fall into groups.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// Where it is read.
    pub(crate) table: TableName,
    /// Rollups are read, and no points.
    pub(crate) read: Option<RollupRead>,
    /// The downsampling of what is read.
    pub(crate) downsample: Option<Downsample>,
    /// What is read instead where that finds nothing.
    pub(crate) fallbacks: Vec<Attempt>,
    /// The metric of all series.
    pub(crate) metric: Uid,
    /// The series, in TSUID order.
    pub(crate) series: Vec<Tsuid>,
    /// How many series the metric has in all, so that few of many are told.
    pub(crate) metric_series: u64,
    /// What is read.
    pub(crate) window: Window,
    /// The stamps that are answered, ms.
    pub(crate) answered: RangeInclusive<i64>,
    /// All stamps of the window are.
    pub(crate) whole_window: bool,
    /// How series are grouped.
    pub(crate) grouping: Grouping,
    /// Histograms are read, and no points.
    pub(crate) histograms: bool,
    /// What a cluster is told of the rows that are wanted; it may give more.
    pub(crate) row_filter: Option<Filter>,
    /// The rows, where they were read to find the series.
    pub(crate) held: Option<Arc<Held>>,
    /// Append cells of rows older than this, ms, are put in order when they are read; none where that is not wanted.
    pub(crate) mend_before_ms: Option<i64>,
}

/// How series fall into groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Grouping {
    /// Each for itself.
    Each,
    /// All together.
    Together,
    /// By the values of these keys, ascending.
    By(Vec<Uid>),
}

impl Plan {
    /// Whether the series are few of their metric's, so that reading all of its rows would be reading mostly others.
    pub(crate) fn is_of_few_series(&self) -> bool {
        let count = self.series.len() as u64;
        count.saturating_mul(FEW_SERIES_PART) <= self.metric_series || self.metric_series == 0
    }

    /// The rollup that is read; `None` for points.
    pub(crate) fn rollup(&self) -> Option<&Rollup> {
        self.read.as_ref().map(|read| &read.rollup)
    }

    /// The plan that reads what comes next where this one found nothing.
    pub(crate) fn fallback(&self) -> Option<Self> {
        let (next, rest) = self.fallbacks.split_first()?;
        let Attempt { table, read, window, downsample } = next.clone();
        let answered = window.answered(self.whole_window);
        Some(Self { table, read, window, answered, downsample, fallbacks: rest.to_vec(), held: None, ..self.clone() })
    }

    /// The same, but stamps after `last_ms` are not answered.
    pub(crate) fn until(self, last_ms: i64) -> Self {
        let (first, last) = self.answered.into_inner();
        Self { answered: first..=last.min(last_ms), ..self }
    }

    /// The same, but stamps before `first_ms` are not answered.
    pub(crate) fn since(self, first_ms: i64) -> Self {
        let (first, last) = self.answered.into_inner();
        let window = Window { start_ms: self.window.start_ms.max(first_ms), ..self.window };
        Self { answered: first.max(first_ms)..=last, window, ..self }
    }

    /// Plans a sub query.
    ///
    /// # Errors
    /// `Invalid`: an unknown metric or tag key; when strict, an unknown tag value; TSUIDs of two metrics; too many
    /// series. The store's own.
    pub(crate) fn new(
        schema: &Schema,
        query: &Query,
        sub: &SubQueryPlan,
        options: Options,
        budget: &Budget,
    ) -> Result<Self> {
        let planner = Planner { schema, index: schema.index(), options, budget };
        let interval_ms = sub.downsample.map_or(0, |downsample| downsample.fixed_ms());
        let mut window = Window::new(query.start_ms, query.end_ms, interval_ms);
        window.buckets_from_ms = query.buckets_from_ms;
        let by_metric = sub.tsuids().is_empty();
        if options.compat.strict && by_metric && sub.explicit_tags && !sub.filters.is_empty() {
            window = window.with_row_after();
        }
        let config = schema.config();
        let data = &schema.tables().data;
        // What is wrong with it is told after unknown names, as OpenTSDB does, which looks for it when it scans.
        let attempts = attempts(config.rollups.as_ref(), data, sub, window, options.compat.strict);
        let (mut row_filter, mut held) = (None, None);
        let (metric, mut series, grouping) = match &sub.source {
            Source::Metric(name) => {
                let metric = names::uid(schema, UidKind::Metric, name)?;
                if config.is_shared {
                    // What does not compile is told before rows are read.
                    for filter in sub.filters.iter().filter(|filter| filter.kind() == FilterKind::Regexp) {
                        budget.check()?;
                        Matcher::compile(filter, options.compat)?;
                    }
                    let filter = row_filter::of(schema, metric, &sub.filters)?;
                    held = planner.discover((metric, sub), attempts.iter().flatten(), filter.as_ref())?;
                    row_filter = filter.map(|filter| filter.pattern);
                }
                let (ids, group_keys) = planner.filtered(metric, sub, options.compat.strict)?;
                let series = planner.tsuids(&ids)?;
                let grouping = if group_keys.is_empty() { Grouping::Together } else { Grouping::By(group_keys) };
                (metric, series, grouping)
            }
            Source::Tsuids(texts) => {
                let (metric, series) = planner.listed(texts, sub)?;
                (metric, series, Grouping::Together)
            }
        };
        let mut attempts = attempts?.into_iter();
        let Some(first) = attempts.next() else { return Err(Error::NoRollups) };
        if options.compat.strict && options.salt_is_theirs {
            // OpenTSDB takes series in the order of their row keys, which begin with the salt; sums of doubles show it.
            // The salt of our own default is none of its tables'.
            let layout = schema.layout();
            series.sort_by_cached_key(|tsuid| layout.series_key(tsuid).salt().0);
        }
        let grouping = if sub.aggregator == Aggregator::None { Grouping::Each } else { grouping };
        let mends = config.repair_appends && first.table == *data;
        let mend_before_ms = mends.then_some(query.now_ms - MEND_AGE_MS);
        let Attempt { table, read, window, downsample } = first;
        let answered = window.answered(query.whole_window);
        let (histograms, fallbacks) = (sub.histogram.is_some(), attempts.collect());
        // What is listed of shared tables is not held against what happens to be known of the metric: it is got by key.
        let is_listed = config.is_shared && !by_metric;
        let metric_series = if is_listed { u64::MAX } else { schema.index().series(metric).len() };
        Ok(Self {
            table,
            read,
            downsample,
            fallbacks,
            metric,
            series,
            metric_series,
            window,
            answered,
            whole_window: query.whole_window,
            grouping,
            histograms,
            row_filter,
            held,
            mend_before_ms,
        })
    }
}

/// The series of each key's lists of literals, in the order of the filters; `None` for a filter of another kind.
///
/// OpenTSDB asks the store for the listed values and does not look at a list again. Of the key with the least UID it
/// joins all lists; of any later key only the last filter counts, and where that is no list, no list does. Filters of
/// other kinds narrow in any case. *Source*: OpenTSDB 2.4 `TsdbQuery.findGroupBys`, whose first key is never forgotten.
#[derive(Debug, Default)]
struct Lists(BTreeMap<Uid, Vec<Option<RoaringBitmap>>>);

impl Lists {
    fn add(&mut self, tagk: Uid, series: Option<RoaringBitmap>) {
        self.0.entry(tagk).or_default().push(series);
    }

    fn narrow(self, ids: &mut RoaringBitmap) {
        for (place, mut filters) in self.0.into_values().enumerate() {
            if place > 0 {
                filters.drain(..filters.len().saturating_sub(1));
            }
            if let Some(listed) = filters.into_iter().flatten().reduce(|left, right| left | right) {
                *ids &= listed;
            }
        }
    }
}

/// Names that are looked up, or held against a filter, between two looks at the time.
const NAMES_AT_ONCE: usize = 1024;

#[derive(Clone, Copy)]
struct Planner<'a> {
    schema: &'a Schema,
    /// The series that filters choose among.
    index: &'a SeriesIndex,
    options: Options,
    budget: &'a Budget,
}

impl Planner<'_> {
    /// Brings the series that others wrote into the index; gives the rows of what is read first, where they were kept.
    fn discover<'a>(
        &self,
        (metric, sub): (Uid, &SubQueryPlan),
        attempts: impl Iterator<Item = &'a Attempt>,
        filter: Option<&RowFilter>,
    ) -> Result<Option<Arc<Held>>> {
        let mut held = None;
        let mut keep = if sub.histogram.is_some() { Keep::Cells } else { Keep::Points };
        for attempt in attempts {
            let rows = discover::of_attempt(self.schema, metric, attempt, (filter, keep), self.budget)?;
            held = held.or(rows.map(Arc::new));
            keep = Keep::Nothing;
        }
        Ok(held)
    }

    /// The series of a metric that pass all filters, and the keys to group by. With `by_uid` as OpenTSDB scans: it looks
    /// names up first and refuses unknown ones; of a list of TSUIDs it compares names.
    fn filtered(&self, metric: Uid, sub: &SubQueryPlan, by_uid: bool) -> Result<(RoaringBitmap, Vec<Uid>)> {
        let index = self.index;
        let mut ids = index.series(metric);
        let mut wanted_keys = BTreeSet::new();
        let mut group_keys = BTreeSet::new();
        let mut lists = Lists::default();
        // Of a list of TSUIDs it compares names once it has read the rows: `*` takes every series, a negated filter those
        // without the key too, and `explicitTags` is not looked at.
        let by_name = self.options.compat.strict && !sub.tsuids().is_empty();
        for filter in sub.filters.iter().filter(|filter| !(by_name && filter.is_any_value())) {
            self.budget.check()?;
            let lacking_passes =
                by_name && matches!(filter.kind(), FilterKind::NotLiteralOr | FilterKind::NotILiteralOr);
            if by_uid && filter.has_empty_literal() {
                return Err(Error::EmptyName);
            }
            // It looks a list's values up before the key, and so tells of them first.
            let listed = filter.literals().map(|names| self.known_values(names, by_uid)).transpose()?;
            let tagk = match names::uid(self.schema, UidKind::Tagk, filter.tagk()) {
                // A key that nobody has is absent from every series.
                Err(Error::UnknownName { .. }) if filter.kind() == FilterKind::NotKey => continue,
                Err(Error::UnknownName { .. }) if lacking_passes => continue,
                Err(Error::UnknownName { .. }) if !sub.tsuids().is_empty() => {
                    ids.clear();
                    continue;
                }
                tagk => tagk?,
            };
            if filter.kind() == FilterKind::NotKey {
                ids -= index.with_key(metric, tagk);
                continue;
            }
            wanted_keys.insert(tagk);
            if filter.group_by {
                group_keys.insert(tagk);
            }
            let listed = listed.map(|values| index.with_any_value(metric, tagk, values));
            match listed {
                Some(series) if by_uid => {
                    lists.add(tagk, Some(series));
                    continue;
                }
                Some(series) => ids &= series,
                None if lacking_passes => {
                    let lacking = index.series(metric) - index.with_key(metric, tagk);
                    ids &= self.passing(metric, tagk, filter)? | lacking;
                }
                None => ids &= self.passing(metric, tagk, filter)?,
            }
            lists.add(tagk, None);
        }
        lists.narrow(&mut ids);
        if sub.explicit_tags && !sub.filters.is_empty() && !by_name {
            for tagk in index.tag_keys(metric).into_iter().filter(|tagk| !wanted_keys.contains(tagk)) {
                ids -= index.with_key(metric, tagk);
            }
        }
        Ok((ids, group_keys.into_iter().collect()))
    }

    /// The series of a metric that have a value of this key that the filter, which is no list, takes.
    fn passing(&self, metric: Uid, tagk: Uid, filter: &TagFilter) -> Result<RoaringBitmap> {
        if filter.is_any_value() {
            return Ok(self.index.with_key(metric, tagk));
        }
        let values = self.matching_values(metric, tagk, &Matcher::compile(filter, self.options.compat)?)?;
        Ok(self.index.with_any_value(metric, tagk, values))
    }

    /// The UIDs of values given by name. An unknown one matches nothing; OpenTSDB refuses it.
    fn known_values<'a>(&self, names: impl Iterator<Item = &'a str>, by_uid: bool) -> Result<Vec<Uid>> {
        let refuse = by_uid && !self.options.skip_unresolved_tagvs;
        let mut values = Vec::new();
        for (place, name) in names.enumerate() {
            self.look_at_time(place)?;
            match names::uid(self.schema, UidKind::Tagv, name) {
                Err(Error::UnknownName { .. }) if !refuse => {}
                uid => values.push(uid?),
            }
        }
        Ok(values)
    }

    /// The values of a key that a matcher takes. A value whose name is gone matches nothing.
    fn matching_values(&self, metric: Uid, tagk: Uid, matcher: &Matcher) -> Result<Vec<Uid>> {
        let names = self.schema.uids().of(UidKind::Tagv);
        let all = self.index.tag_values(metric, tagk);
        let keeps = names.is_room_for(all.len());
        let mut values = Vec::new();
        for some in all.chunks(NAMES_AT_ONCE) {
            self.budget.check()?;
            let found = names.names_found(some, keeps)?;
            values.extend(found.into_iter().filter(|(_, name)| matcher.takes(name)).map(|(uid, _)| uid));
        }
        Ok(values)
    }

    /// Whether the query goes on, looked for now and then.
    fn look_at_time(&self, place: usize) -> Result<()> {
        if place.is_multiple_of(NAMES_AT_ONCE) { self.budget.check() } else { Ok(()) }
    }

    fn tsuids(&self, ids: &RoaringBitmap) -> Result<Vec<Tsuid>> {
        self.budget.limits().check_series(ids.len())?;
        self.reserve(ids.len())?;
        Ok(self.index.tsuids(ids).into_iter().map(|(_, tsuid)| tsuid).collect())
    }

    /// Takes the memory of a list of series before it is made.
    fn reserve(&self, series: u64) -> Result<()> {
        self.budget.reserve(series.saturating_mul(size_of::<(SeriesId, Tsuid)>() as u64))
    }

    /// The series of a list that pass the filters, in TSUID order, each once.
    ///
    /// Filters choose among those of the list alone: whatever a request lists, nothing is added to the index of all series.
    fn listed(&self, texts: &[String], sub: &SubQueryPlan) -> Result<(Uid, Vec<Tsuid>)> {
        let widths = self.schema.layout().widths;
        self.reserve(texts.len() as u64)?;
        let mut series = Vec::with_capacity(texts.len());
        for text in texts {
            let invalid = |_| Error::InvalidTsuid { text: text.as_str().into() };
            series.push(Tsuid::parse(text, widths).map_err(invalid)?);
        }
        let metric = series.first().map(|tsuid| tsuid.metric(widths)).unwrap_or_default();
        if let Some(other) = series.iter().find(|tsuid| tsuid.metric(widths) != metric) {
            let hex = |tsuid: &Tsuid| {
                let text = tsuid.to_string();
                text.get(..2 * widths.metric.bytes()).unwrap_or(&text).into()
            };
            let [first, other] = [series.first().map(hex).unwrap_or_default(), hex(other)];
            return Err(Error::TsuidsOfTwoMetrics { first, other });
        }
        series.sort_unstable();
        series.dedup();
        if !sub.filters.is_empty() {
            let index = SeriesIndex::new(widths, u32::MAX);
            series.iter().try_for_each(|tsuid| index.add(tsuid).map(drop))?;
            let (ids, _) = Planner { index: &index, ..*self }.filtered(metric, sub, false)?;
            series.retain(|tsuid| index.id(tsuid).is_some_and(|SeriesId(id)| ids.contains(id)));
        }
        self.budget.limits().check_series(series.len() as u64)?;
        Ok((metric, series))
    }
}
