//! Expressions computed one after the other, and what of them is answered.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use basalt_schema::{JAVA_MAP_CAPACITY, Schema, Uid, UidKind, java_map_order};

use super::check::{ExpressionPlan, Node, OutputPlan, Source};
use super::combine::{Combine, instants, made_up, order_of};
use super::join::{Column, Joined, join};
use crate::answer::Held;
use crate::cancel::Budget;
use crate::dataset::{Computed, Dataset};
use crate::error::ExpressionFault;
use crate::names::Names;
use crate::{Error, FilterKind, Options, Result};

/// What OpenTSDB gives as the first instant of a metric without points.
const NO_FIRST_MS: i64 = i64::MAX;

/// An output of `/api/query/exp`: a table of instants and series.
#[derive(Debug, Clone, Default)]
pub struct OutputAnswer {
    /// The metric's or expression's.
    pub id: String,
    /// As the request gave it.
    pub alias: Option<String>,
    /// Instants in ms, ascending.
    pub times_ms: Vec<i64>,
    /// A value of every series for each instant, one instant after the other.
    pub values: Vec<f64>,
    /// `firstTimestamp`: the first instant.
    pub first_ms: i64,
    /// `lastTimestamp`: the last instant.
    pub last_ms: i64,
    /// Names of the first series' metrics, sorted.
    pub metrics: Vec<Arc<str>>,
    /// What each series is.
    pub series: Vec<OutputSeries>,
    /// The request's part of the memory of all queries.
    pub held: Held,
}

impl OutputAnswer {
    /// Each instant with its values, one of every series.
    pub fn rows(&self) -> impl Iterator<Item = (i64, &[f64])> {
        self.times_ms.iter().copied().zip(self.values.chunks(self.series.len().max(1)))
    }

    /// Memory it takes. Names are shared by all.
    fn bytes(&self) -> u64 {
        let table = ((self.times_ms.capacity() + self.values.capacity()) * size_of::<f64>()) as u64;
        let series = self.series.iter().map(|series| OutputSeries::bytes(series.tags.len(), series.aggregated.len()));
        table + series.sum::<u64>()
    }
}

/// A series of an output.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OutputSeries {
    /// Tags that all of its members share.
    pub tags: Vec<(Arc<str>, Arc<str>)>,
    /// Keys of the other tags.
    pub aggregated: Vec<Arc<str>>,
}

impl OutputSeries {
    /// Memory that one takes which has so many tags and keys.
    fn bytes(tags: usize, aggregated: usize) -> u64 {
        (size_of::<Self>() + (2 * tags + aggregated) * size_of::<Arc<str>>()) as u64
    }
}

impl ExpressionPlan {
    /// Computes every expression and gives the outputs in their order.
    ///
    /// # Errors
    /// `Invalid`: an intersection of nothing, or more points than may be made up. A budget.
    pub(crate) fn evaluate(
        &self,
        schema: &Schema,
        computed: Vec<Computed>,
        options: Options,
        budget: &Budget,
    ) -> Result<Vec<OutputAnswer>> {
        let has_points = |dataset: &Dataset| !dataset.points.is_empty();
        let metrics: Vec<Vec<Dataset>> =
            computed.into_iter().map(|one| one.datasets.into_iter().filter(has_points).collect()).collect();
        let filtered = self.filtered_keys(schema)?;
        let strict = options.compat.strict;
        let mut run =
            Run { plan: self, metrics, made: vec![Vec::new(); self.expressions.len()], filtered, strict, budget };
        for place in &self.order {
            if let (Some(node), Some(made)) = (self.expressions.get(*place), run.series_of(*place)?) {
                debug_assert!(!node.inputs.is_empty(), "BUG: an expression without inputs");
                if let Some(slot) = run.made.get_mut(*place) {
                    *slot = made;
                }
            }
        }
        let answer = |output: &OutputPlan| {
            let answer = run.answer(schema, output.source)?;
            Ok(OutputAnswer { id: output.id.clone(), alias: output.alias.clone(), ..answer })
        };
        let mut answers = self.outputs.iter().map(answer).collect::<Result<Vec<_>>>()?;
        drop(run);
        let held = budget.keep(answers.iter().map(OutputAnswer::bytes).sum())?;
        for answer in &mut answers {
            answer.held = held.clone();
        }
        Ok(answers)
    }

    /// Of each metric the keys that it is filtered by.
    fn filtered_keys(&self, schema: &Schema) -> Result<Vec<BTreeSet<Uid>>> {
        let tagks = schema.uids().of(UidKind::Tagk);
        let keys = |filters: &[crate::TagFilter]| {
            // What no series has tells none from another.
            let present = filters.iter().filter(|filter| filter.kind() != FilterKind::NotKey);
            present.map(|filter| Ok(tagks.uid(filter.tagk())?)).collect::<Result<BTreeSet<Uid>>>()
        };
        self.query.sub_queries.iter().map(|sub| keys(&sub.filters)).collect()
    }

    /// The order in which OpenTSDB comes by an expression's inputs: metrics as its table of sub queries has them, then
    /// expressions. Places in `node.inputs`.
    fn inputs_in_order(&self, node: &Node) -> Vec<usize> {
        let mut metrics: Vec<(usize, &str)> =
            self.metrics.iter().map(|metric| metric.id.as_str()).enumerate().collect();
        let capacity = metrics.len();
        java_map_order(&mut metrics, capacity, |(_, id)| id);
        let place_of = |source| node.inputs.iter().position(|input| *input == source);
        let mut order: Vec<usize> =
            metrics.into_iter().filter_map(|(place, _)| place_of(Source::Metric(place))).collect();
        let names: Vec<&str> = node.program.variables().iter().map(String::as_str).collect();
        let mut inputs: Vec<(usize, &str)> = names.iter().copied().enumerate().collect();
        java_map_order(&mut inputs, JAVA_MAP_CAPACITY, |(_, name)| name);
        for (place, _) in inputs {
            if !order.contains(&place) {
                order.push(place);
            }
        }
        let in_order: Vec<&str> = order.iter().filter_map(|place| names.get(*place).copied()).collect();
        order_of(&in_order).into_iter().filter_map(|place| order.get(place).copied()).collect()
    }
}

/// The state of an evaluation.
struct Run<'a> {
    plan: &'a ExpressionPlan,
    metrics: Vec<Vec<Dataset>>,
    /// Of each expression its series, once it is computed.
    made: Vec<Vec<Dataset>>,
    filtered: Vec<BTreeSet<Uid>>,
    strict: bool,
    budget: &'a Budget,
}

impl Run<'_> {
    fn column(&self, source: Source) -> Column<'_> {
        match source {
            Source::Metric(place) => Column {
                series: self.metrics.get(place).map(Vec::as_slice).unwrap_or_default(),
                filtered: self.filtered.get(place),
                fill: self.plan.metrics.get(place).map_or(0.0, |metric| metric.fill),
            },
            Source::Expression(place) => Column {
                series: self.made.get(place).map(Vec::as_slice).unwrap_or_default(),
                filtered: None,
                fill: self.plan.expressions.get(place).map_or(f64::NAN, |node| node.fill),
            },
        }
    }

    fn series_of(&self, place: usize) -> Result<Option<Vec<Dataset>>> {
        let Some(node) = self.plan.expressions.get(place) else {
            return Ok(None);
        };
        let columns: Vec<Column<'_>> = node.inputs.iter().map(|input| self.column(*input)).collect();
        let Joined { rows, bytes } = join(&columns, node.rule, self.budget)?;
        if rows.is_empty() && node.rule.intersect && columns.iter().any(|column| !column.series.is_empty()) {
            return Err(Error::Expression(ExpressionFault::NoIntersection(node.id.as_str().into())));
        }
        let order = self.plan.inputs_in_order(node);
        let combine = Combine {
            columns: &columns,
            order: &order,
            program: &node.program,
            strict: self.strict,
            budget: self.budget,
        };
        let made = combine.by_time(&rows)?;
        drop(rows);
        self.budget.give_back(bytes);
        Ok(Some(made))
    }

    fn answer(&self, schema: &Schema, source: Source) -> Result<OutputAnswer> {
        let column = self.column(source);
        let range = self.plan.query.start_ms..=self.plan.query.end_ms;
        let (range, fill) = match source {
            // OpenTSDB fills metrics with zero whatever their policy, and answers all that it read of them.
            Source::Metric(_) if self.strict => (i64::MIN..=i64::MAX, 0.0),
            _ => (range, column.fill),
        };
        let (times_ms, values) = table(column.series, fill, &range, self.budget)?;
        let mut first_ms = times_ms.first().copied().unwrap_or(0);
        let mut last_ms = times_ms.last().copied().unwrap_or(0);
        match source {
            Source::Metric(_) if self.strict && times_ms.is_empty() => first_ms = NO_FIRST_MS,
            Source::Expression(_) if self.strict && times_ms.len() == 1 => last_ms = 0,
            _ => {}
        }
        let uids = schema.uids().of(UidKind::Metric);
        let metrics = column.series.first().map(|first| first.metrics.iter().copied().collect::<Vec<Uid>>());
        let mut metrics = uids.names(&metrics.unwrap_or_default())?;
        metrics.sort_unstable();
        let bytes = |dataset: &Dataset| OutputSeries::bytes(dataset.tags.len(), dataset.aggregated.len());
        self.budget.reserve(column.series.iter().map(bytes).sum())?;
        let mut names = Names::new(schema);
        names.load_values(|| column.series.iter().flat_map(Dataset::tag_values))?;
        let describe = |dataset: &Dataset| {
            Ok(OutputSeries { tags: names.tags(&dataset.tags)?, aggregated: names.keys(&dataset.aggregated)? })
        };
        let series = column.series.iter().map(describe).collect::<Result<_>>()?;
        Ok(OutputAnswer { times_ms, values, first_ms, last_ms, metrics, series, ..OutputAnswer::default() })
    }
}

/// All instants of a range at which a series has a point, and of each the values of all series.
///
/// # Errors
/// `Invalid`: more values than may be made up. A budget.
fn table(series: &[Dataset], fill: f64, range: &RangeInclusive<i64>, budget: &Budget) -> Result<(Vec<i64>, Vec<f64>)> {
    let mut times = instants(series.iter(), budget)?;
    times.retain(|time_ms| range.contains(time_ms));
    times.shrink_to_fit();
    let values = made_up(times.len(), series.len(), budget)?;
    budget.reserve(values.saturating_add(times.len() as u64).saturating_mul(size_of::<f64>() as u64))?;
    let mut table = vec![fill; times.len() * series.len()];
    for (place, dataset) in series.iter().enumerate() {
        budget.check()?;
        let mut points = dataset.points.iter().peekable();
        for (time_ms, values) in times.iter().zip(table.chunks_mut(series.len())) {
            while points.next_if(|point| point.time_ms < *time_ms).is_some() {}
            if let (Some(point), Some(value)) =
                (points.next_if(|point| point.time_ms == *time_ms), values.get_mut(place))
            {
                *value = point.number.as_double();
            }
        }
    }
    Ok((times, table))
}
