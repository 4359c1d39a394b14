//! Groups: which series become one output series, what it is called, and its points.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use basalt_schema::{Schema, Tsuid, Uid};
use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};

use crate::aggregate::PercentileRule;
use crate::answer::{Point, SeriesAnnotation};
use crate::cancel::Budget;
use crate::dataset::Dataset;
use crate::downsample::{Fill, buckets_len, downsample, downsample_rollups, filled, grid_len, of_doubles};
use crate::merge::{Member, Merge};
use crate::plan::{Grouping, Plan};
use crate::rate::rates;
use crate::request::SubQueryPlan;
use crate::series_data::SeriesData;
use crate::span::Span;
use crate::{Error, Options, Result};

/// Points that are worth handing to other threads; below, waking them takes longer than the work.
const PARALLEL_POINTS_MIN: u64 = 1 << 15;
/// Groups that are worth it, however few points they have.
const PARALLEL_GROUPS_MIN: usize = 128;
/// Groups that a thread takes at once, where there are many.
const GROUPS_AT_ONCE: usize = 16;
/// Memory charged for a point of a member that is made ready: a span's, with room to grow.
const PREPARED_POINT_BYTES: u64 = 33;

/// The members of an output series: indexes into the plan's series, ascending, all of them with points or annotations.
#[derive(Debug, Default)]
pub(crate) struct Group {
    members: Vec<usize>,
    /// What tells it from the other groups of its plan: values, or a series.
    key: Vec<Uid>,
}

impl Group {
    /// The places of its members among the plan's series.
    pub(crate) fn members(&self) -> &[usize] {
        &self.members
    }
}

/// Sorts the series that have anything into groups, in the order of the answer.
///
/// A series that begins after the scan's end makes its group and is no member of it: see `Window::with_row_after`.
/// Strictly, so do rollups that give no value.
pub(crate) fn group(schema: &Schema, plan: &Plan, data: &[SeriesData], strict: bool) -> Vec<Group> {
    let present = data
        .iter()
        .enumerate()
        .filter(|(_, data)| !data.is_empty() || !data.annotations.is_empty() || strict && data.has_rollups);
    let starts_late =
        |data: &SeriesData| data.span.times().first().is_some_and(|first| *first > plan.window.scan_end_ms);
    let present = present.map(|(slot, data)| (slot, (!starts_late(data)).then_some(slot)));
    match &plan.grouping {
        Grouping::Each => present
            .map(|(slot, member)| Group { members: member.into_iter().collect(), key: vec![Uid::new(slot as u64)] })
            .collect(),
        Grouping::Together => {
            let members: Vec<Option<usize>> = present.map(|(_, member)| member).collect();
            if members.is_empty() {
                return Vec::new();
            }
            vec![Group { members: members.into_iter().flatten().collect(), key: Vec::new() }]
        }
        Grouping::By(keys) => {
            // Ordered by the values' UIDs, which is the order of their bytes, all being of one width.
            let mut groups: BTreeMap<Vec<Uid>, Group> = BTreeMap::new();
            for (slot, member) in present {
                let Some(values) = plan.series.get(slot).and_then(|tsuid| values_of(schema, tsuid, keys)) else {
                    continue;
                };
                groups.entry(values).or_default().members.extend(member);
            }
            groups.into_iter().map(|(key, group)| Group { key, ..group }).collect()
        }
    }
}

/// The values of these keys, if the series has them all.
fn values_of(schema: &Schema, tsuid: &Tsuid, keys: &[Uid]) -> Option<Vec<Uid>> {
    let mut values = Vec::with_capacity(keys.len());
    for key in keys {
        values.push(tsuid.pairs(schema.layout().widths).find(|pair| pair.key == *key)?.value);
    }
    Some(values)
}

/// The output series of every group, in the groups' order. Kernels only: nothing here waits, so it may run on rayon's
/// threads.
///
/// # Errors
/// `Invalid`: an infinite value, or fill policies that would make up too many points. A budget.
pub(crate) fn compute(
    schema: &Schema,
    groups: &[Group],
    (plan, sub): (&Plan, &SubQueryPlan),
    data: &[SeriesData],
    options: Options,
    budget: &Budget,
) -> Result<Vec<Dataset>> {
    let kernel = Kernel { plan, sub, data, options, budget };
    kernel.refuse_overfilling()?;
    let dataset = |group| kernel.dataset(schema, group);
    // Fast path: little work is not worth a hand-over, and of a single group its members are.
    let is_little = groups.len() < PARALLEL_GROUPS_MIN && kernel.work(data.iter()) < PARALLEL_POINTS_MIN;
    if groups.len() <= 1 || is_little {
        return groups.iter().map(dataset).collect();
    }
    groups.par_iter().with_min_len(GROUPS_AT_ONCE.min(groups.len() / 8 + 1)).map(dataset).collect()
}

struct Kernel<'a> {
    plan: &'a Plan,
    sub: &'a SubQueryPlan,
    data: &'a [SeriesData],
    options: Options,
    budget: &'a Budget,
}

impl Kernel<'_> {
    fn refuse_overfilling(&self) -> Result<()> {
        let Some(downsample) = &self.plan.downsample else {
            return Ok(());
        };
        let filled = self.data.iter().filter(|data| !data.span.is_empty()).count() as u64;
        let limit = self.budget.limits().made_up_points_max();
        let over = grid_len(downsample, &self.plan.window).saturating_mul(filled) > limit;
        if over { Err(Error::TooManyMadeUp { limit }) } else { Ok(()) }
    }

    /// The output series of a group. Its memory stays reserved.
    fn dataset(&self, schema: &Schema, group: &Group) -> Result<Dataset> {
        let (points, charged) = self.points(group)?;
        let dataset = describe(schema, group, self.plan, self.data, points, self.options.compat.strict);
        self.budget.exchange(charged, dataset.bytes())?;
        Ok(dataset)
    }

    /// Downsamples and rates each member, then aggregates them. Gives what was reserved for that, too.
    fn points(&self, group: &Group) -> Result<(Vec<Point>, u64)> {
        self.budget.check()?;
        let series = |slot: &usize| self.data.get(*slot).filter(|data| !data.span.is_empty());
        let series: Vec<&SeriesData> = group.members.iter().filter_map(series).collect();
        let scratch_bytes = self.scratch_bytes(&series);
        self.budget.reserve(scratch_bytes)?;
        let prepared: Vec<Prepared<'_>> = if self.work(series.iter().copied()) < PARALLEL_POINTS_MIN {
            series.into_iter().map(|data| self.prepare(data)).collect::<Result<_>>()?
        } else {
            series.into_par_iter().map(|data| self.prepare(data)).collect::<Result<_>>()?
        };
        let members: Vec<Member<'_>> = prepared
            .iter()
            .map(|prepared| Member { span: prepared.span(), before_first: prepared.before_first() })
            .collect();
        let merge = Merge {
            aggregator: self.sub.aggregator,
            rate: self.sub.rate.is_some(),
            rule: self.rule(),
            start_ms: *self.plan.answered.start(),
            end_ms: *self.plan.answered.end(),
        };
        // Relaxed: a counter that orders nothing.
        let charged = AtomicU64::new(scratch_bytes);
        let points = merge.run(&members, &|bytes| {
            self.budget.check()?;
            self.budget.reserve(bytes)?;
            charged.fetch_add(bytes, Ordering::Relaxed);
            Ok(())
        })?;
        Ok((points, charged.into_inner()))
    }

    /// How many points are looked at or made up to make series ready.
    fn work<'b>(&self, series: impl Iterator<Item = &'b SeriesData>) -> u64 {
        let filled = self.plan.downsample.as_ref().map_or(0, |spec| grid_len(spec, &self.plan.window));
        series.map(|data| (data.span.len() as u64).saturating_add(filled)).fold(0, u64::saturating_add)
    }

    /// What the members take between being read and being aggregated.
    fn scratch_bytes(&self, series: &[&SeriesData]) -> u64 {
        let window = &self.plan.window;
        let made = self.plan.downsample.as_ref().map(|spec| (grid_len(spec, window), buckets_len(spec, window)));
        let points = |data: &&SeriesData| match made {
            Some((0, buckets)) => buckets.min(data.span.len() as u64),
            Some((filled, _)) => filled,
            None if self.sub.rate.is_some() => data.span.len() as u64,
            None => 0,
        };
        series.iter().map(points).sum::<u64>().saturating_mul(PREPARED_POINT_BYTES)
    }

    /// A member ready to be aggregated. Looks at the budget: a group may have very many, and each may be filled.
    fn prepare<'a>(&self, data: &'a SeriesData) -> Result<Prepared<'a>> {
        self.budget.check()?;
        let window = &self.plan.window;
        // Rows joined by hours have the first bucket of a calendar too, which may begin before the scan and then counts for nothing.
        let is_begun =
            data.is_downsampled && data.span.times().first().is_some_and(|first| *first < window.scan_start_ms);
        let cut = is_begun.then(|| {
            let mut span = data.span.clone();
            span.drop_before(window.scan_start_ms);
            span
        });
        let span = cut.as_ref().unwrap_or(&data.span);
        let downsampled = match (&self.plan.downsample, &self.plan.read) {
            (Some(spec), _) if data.is_downsampled => (spec.fill != Fill::None).then(|| filled(span, spec, window)),
            (Some(spec), Some(_)) => {
                Some(downsample_rollups(span, &data.counts, spec, window, of_doubles(span, spec, self.rule())))
            }
            (Some(spec), None) => Some(downsample(span, spec, window, self.rule())),
            (None, _) => None,
        };
        Ok(match &self.sub.rate {
            Some(options) => {
                let rates = rates(downsampled.as_ref().unwrap_or(span), options, window.scan_start_ms);
                let before_first = rates.before_first.filter(|_| self.options.compat.strict);
                Prepared::Made { span: rates.span, before_first }
            }
            None => match downsampled.or(cut) {
                Some(mut span) => {
                    span.drop_before(window.scan_start_ms);
                    Prepared::Made { span, before_first: None }
                }
                None => Prepared::Raw(&data.span),
            },
        })
    }

    fn rule(&self) -> PercentileRule {
        self.options.percentile_rule()
    }
}

/// A member ready to be aggregated.
#[derive(Debug)]
enum Prepared<'a> {
    Raw(&'a Span),
    Made { span: Span, before_first: Option<f64> },
}

impl Prepared<'_> {
    fn span(&self) -> &Span {
        match self {
            Self::Raw(span) => span,
            Self::Made { span, .. } => span,
        }
    }

    fn before_first(&self) -> Option<f64> {
        match self {
            Self::Raw(_) => None,
            Self::Made { before_first, .. } => *before_first,
        }
    }
}

impl Group {
    /// The annotations that were read of its members, of all hours read.
    fn notes<'a>(&'a self, data: &'a [SeriesData]) -> impl Iterator<Item = &'a SeriesAnnotation> {
        self.members.iter().filter_map(|slot| data.get(*slot)).flat_map(|data| &data.annotations)
    }
}

/// Says what an output series is of and gives it its annotations.
///
/// Members without points lend their annotations only; a group of nothing else has no name, as in OpenTSDB.
pub(crate) fn describe(
    schema: &Schema,
    group: &Group,
    plan: &Plan,
    data: &[SeriesData],
    points: Vec<Point>,
    strict: bool,
) -> Dataset {
    let named: Vec<&Tsuid> = group
        .members
        .iter()
        .filter(|slot| data.get(**slot).is_some_and(|data| !data.is_empty()))
        .filter_map(|slot| plan.series.get(*slot))
        .collect();
    let annotations = annotations(group, plan, data);
    // OpenTSDB drops what is out of the range when the list has begun.
    let lists_annotations = strict && group.notes(data).next().is_some();
    let mut dataset =
        Dataset { annotations, lists_annotations, points, group: group.key.clone(), ..Dataset::default() };
    if named.is_empty() {
        return dataset;
    }
    dataset.metrics.insert(plan.metric);
    // Fast path: one member alone, whose tags are those of the group. A row that no writer makes may have a key twice.
    if let [only] = named.as_slice() {
        let widths = schema.layout().widths;
        dataset.tags.reserve(only.as_bytes().len() / widths.pair_bytes());
        dataset.tags.extend(only.pairs(widths).map(|pair| (pair.key, pair.value)));
        if dataset.tags.is_sorted_by(|(before, _), (key, _)| before < key) {
            dataset.tsuids = vec![only.to_string()];
            return dataset;
        }
        dataset.tags.clear();
    }
    for (key, value) in common_tags(schema, &named) {
        match value {
            Some(value) => {
                dataset.tags.push((key, value));
            }
            None => {
                dataset.aggregated.insert(key);
            }
        }
    }
    // Upper-case hex sorts as the bytes do.
    dataset.tsuids = named.iter().map(ToString::to_string).collect();
    dataset
}

/// Every key of the members, with its value if all members that have the key agree on it.
fn common_tags(schema: &Schema, members: &[&Tsuid]) -> BTreeMap<Uid, Option<Uid>> {
    let mut tags = BTreeMap::new();
    for tsuid in members {
        for pair in tsuid.pairs(schema.layout().widths) {
            let value = tags.entry(pair.key).or_insert(Some(pair.value));
            if *value != Some(pair.value) {
                *value = None;
            }
        }
    }
    tags
}

fn annotations(group: &Group, plan: &Plan, data: &[SeriesData]) -> Vec<SeriesAnnotation> {
    let in_range = |note: &&SeriesAnnotation| (plan.window.start_ms..=plan.window.end_ms).contains(&note.start_ms);
    let mut notes: Vec<SeriesAnnotation> = group.notes(data).filter(in_range).cloned().collect();
    notes.sort_by_key(|note| note.start_ms);
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;
    use crate::memory::MemoryPool;
    use crate::{Cancel, GetParameters, Limits, QueryRequest};

    /// `Q-TIMEOUT`: one group may have all series, so the look before it is not enough.
    #[test]
    fn q_timeout_each_member_of_a_group_is_stopped() {
        let fixture = Fixture::with(&["m 1700000000 1 h=a"]);
        let options = Options::default();
        let parameters =
            GetParameters { start: Some("1970/01/02"), metrics: &["sum:2dc-avg:m"], ..GetParameters::default() };
        let query = QueryRequest::from_get(&parameters).unwrap().check(1_700_000_000_000, options).unwrap();
        let (cancel, sub) = (Cancel::new(), &query.sub_queries[0]);
        let budget = Budget::new(Limits::default(), &cancel, &MemoryPool::new(0));
        let plan = Plan::new(&fixture.schema, &query, sub, options, &budget).unwrap();
        let kernel = Kernel { plan: &plan, sub, data: &[], options, budget: &budget };
        let mut data = SeriesData::default();
        data.span.push(1_700_000_000_000, crate::Number::Integer(1));
        assert_eq!(kernel.prepare(&data).unwrap().span().len(), 1);
        cancel.cancel();
        assert!(matches!(kernel.prepare(&data), Err(Error::Cancelled)));
    }
}
