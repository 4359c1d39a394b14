//! A request of `/api/query/exp` found sensible, in OpenTSDB's order and words.

use std::collections::{HashMap, HashSet};

use super::join::Rule;
use super::program::Program;
use super::request::{Downsampler, Expression, ExpressionRequest, FilterSet, Join, Metric, Operator, Output, Time};
use crate::duration::parse_duration_as;
use crate::error::ExpressionFault;
use crate::time::{TimeContext, parse_time};
use crate::zone::parse_zone;
use crate::{Aggregator, Error, Options, Query, QueryRequest, Result, SUB_QUERIES_MAX, SubQuery};

/// How many expressions a request may have. Metrics are bounded as sub queries are.
const EXPRESSIONS_MAX: usize = 256;

/// A checked request: what to read and what to compute with it.
#[derive(Debug, Clone)]
pub struct ExpressionPlan {
    pub(super) query: Query,
    /// In the order of the query's sub queries.
    pub(super) metrics: Vec<MetricPlan>,
    /// In the order of the request.
    pub(super) expressions: Vec<Node>,
    /// Places of the expressions, each after those that it needs.
    pub(super) order: Vec<usize>,
    pub(super) outputs: Vec<OutputPlan>,
}

#[derive(Debug, Clone)]
pub(super) struct MetricPlan {
    pub(super) id: String,
    pub(super) fill: f64,
}

/// An expression.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) id: String,
    pub(super) program: Program,
    /// In the order of the program's variables.
    pub(super) inputs: Vec<Source>,
    pub(super) rule: Rule,
    pub(super) fill: f64,
}

/// Where series come from: a place in [`ExpressionPlan::metrics`] or [`ExpressionPlan::expressions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Metric(usize),
    Expression(usize),
}

#[derive(Debug, Clone)]
pub(super) struct OutputPlan {
    pub(super) id: String,
    pub(super) alias: Option<String>,
    pub(super) source: Source,
}

impl ExpressionPlan {
    /// What is read.
    pub fn query(&self) -> &Query {
        &self.query
    }
}

fn fault<T>(fault: ExpressionFault) -> Result<T> {
    Err(Error::Expression(fault))
}

/// A part that makes no sense: what is wrong with it goes into the details.
fn within(what: impl Into<Box<str>>, error: &str) -> Error {
    Error::Expression(ExpressionFault::Part { what: what.into(), reason: error.into() })
}

impl ExpressionRequest {
    /// Checks the request.
    ///
    /// # Errors
    /// `Invalid`: what is wrong.
    pub fn check(&self, now_ms: i64, options: Options) -> Result<ExpressionPlan> {
        let Some(time) = &self.time else {
            return fault(ExpressionFault::Missing("time"));
        };
        check_time(time, now_ms, options).map_err(|error| within("time", &error))?;
        let metrics = self.metrics.as_deref().unwrap_or_default();
        let expressions = self.expressions.as_deref().unwrap_or_default();
        let filters = self.filters.as_deref().unwrap_or_default();
        if metrics.is_empty() {
            return fault(ExpressionFault::Missing("or empty metrics"));
        }
        // Before anything is made for each.
        if metrics.len() > SUB_QUERIES_MAX {
            return fault(ExpressionFault::TooMany { what: "metrics", limit: SUB_QUERIES_MAX });
        }
        if expressions.len() > EXPRESSIONS_MAX {
            return fault(ExpressionFault::TooMany { what: "expressions", limit: EXPRESSIONS_MAX });
        }
        let mut ids = HashSet::new();
        refuse_repeated("duplicated metric id", metrics.iter().map(|metric| &metric.id), &mut ids)?;
        refuse_repeated("duplicated filter id", filters.iter().map(|filter| &filter.id), &mut HashSet::new())?;
        let expression_ids = expressions.iter().map(|expression| &expression.id);
        refuse_repeated("Duplicated variable or expression id", expression_ids, &mut ids)?;
        for (index, metric) in metrics.iter().enumerate() {
            check_metric(metric, now_ms, options)
                .map_err(|error| within(format!("metric at index {index}"), &error))?;
        }
        for (index, filter) in filters.iter().enumerate() {
            check_id(filter.id.as_deref()).map_err(|error| within(format!("filter at index {index}"), &error))?;
        }
        for (index, Expression { id, expr, .. }) in expressions.iter().enumerate() {
            let empty = expr.as_deref().unwrap_or_default().is_empty();
            let checked = if empty { Err("missing or empty expr".to_owned()) } else { check_id(id.as_deref()) };
            checked.map_err(|error| within(format!("expression at index {index}"), &error))?;
        }
        self.plan(time, now_ms, options)
    }

    /// The plan of a request whose parts are sensible each for itself.
    fn plan(&self, time: &Time, now_ms: i64, options: Options) -> Result<ExpressionPlan> {
        let metrics = self.metrics.as_deref().unwrap_or_default();
        let queries = metrics.iter().map(|metric| self.sub_query(metric, time)).collect::<Result<Vec<_>>>()?;
        let request = QueryRequest {
            start: time.start.clone(),
            end: time.end.clone(),
            timezone: time.timezone.clone(),
            queries,
            no_annotations: true,
            ..QueryRequest::default()
        };
        let expressions = self.nodes(options)?;
        let order = order_of_needs(&expressions)?;
        let query = request.check(now_ms, options).map_err(|error| {
            // Whatever it is, here OpenTSDB finds it before it looks at data.
            Error::Expression(ExpressionFault::Query(Box::new(error)))
        })?;
        let plan = |metric: &Metric| MetricPlan {
            id: metric.id.clone().unwrap_or_default(),
            fill: metric.fill_policy.map_or(0.0, |policy| policy.value),
        };
        let metrics: Vec<MetricPlan> = metrics.iter().map(plan).collect();
        let outputs = self.output_plans(&metrics, &expressions);
        Ok(ExpressionPlan { query: query.for_formulas(), metrics, expressions, order, outputs })
    }

    fn sub_query(&self, metric: &Metric, time: &Time) -> Result<SubQuery> {
        let mut sub = SubQuery {
            aggregator: metric.aggregator.clone().or_else(|| time.aggregator.clone()),
            metric: metric.name.clone(),
            rate: time.rate,
            ..SubQuery::default()
        };
        if let Some(Downsampler { interval: Some(interval), aggregator: Some(aggregator), .. }) = &time.downsampler {
            sub.downsample = Some(format!("{interval}-{aggregator}"));
        }
        let Some(wanted) = metric.filter.as_deref().filter(|id| !id.is_empty()) else {
            return Ok(sub);
        };
        let Some(filters) = self.filters.as_deref() else {
            return fault(ExpressionFault::NoFilters(wanted.into()));
        };
        let Some(FilterSet { tags, explicit_tags, .. }) =
            filters.iter().find(|filter| filter.id.as_deref() == Some(wanted))
        else {
            let metric = metric.id.as_deref().unwrap_or_default().into();
            return fault(ExpressionFault::UnknownFilter { filter: wanted.into(), metric });
        };
        sub.filters = tags.clone().unwrap_or_default();
        sub.explicit_tags = *explicit_tags;
        Ok(sub)
    }

    fn nodes(&self, options: Options) -> Result<Vec<Node>> {
        let (metrics, expressions) =
            (self.metrics.as_deref().unwrap_or_default(), self.expressions.as_deref().unwrap_or_default());
        let metrics = metrics.iter().enumerate().map(|(place, metric)| (&metric.id, Source::Metric(place)));
        let nested = expressions.iter().enumerate().map(|(place, other)| (&other.id, Source::Expression(place)));
        let sources: HashMap<&str, Source> =
            metrics.chain(nested).filter_map(|(id, source)| Some((id.as_deref()?, source))).collect();
        // All are read before any is looked into, so that of two mistakes OpenTSDB's is told.
        let read = |expression: &Expression| {
            Program::parse(expression.expr.as_deref().unwrap_or_default(), options.compat.strict)
        };
        let programs = expressions.iter().map(read).collect::<Result<Vec<_>>>()?;
        expressions.iter().zip(programs).map(|(expression, program)| node(expression, program, &sources)).collect()
    }

    /// The outputs asked for, or every expression, or where there is none every metric. Unknown ids give nothing.
    fn output_plans(&self, metrics: &[MetricPlan], expressions: &[Node]) -> Vec<OutputPlan> {
        let expression = |place: usize| (expressions.get(place).map(|node| node.id.clone()), Source::Expression(place));
        let metric = |place: usize| (metrics.get(place).map(|metric| metric.id.clone()), Source::Metric(place));
        let sources = (0..expressions.len()).map(expression).chain((0..metrics.len()).map(metric));
        let all = sources.filter_map(|(id, source)| Some(OutputPlan { id: id?, alias: None, source }));
        let all: Vec<OutputPlan> = all.collect();
        let asked = self.outputs.as_deref().unwrap_or_default();
        if asked.is_empty() {
            let count = if expressions.is_empty() { metrics.len() } else { expressions.len() };
            return all.into_iter().take(count).collect();
        }
        let find = |Output { id, alias }: &Output| {
            let found = all.iter().find(|output| Some(&output.id) == id.as_ref())?;
            Some(OutputPlan { alias: alias.clone(), ..found.clone() })
        };
        asked.iter().filter_map(find).collect()
    }
}

fn node(expression: &Expression, program: Program, sources: &HashMap<&str, Source>) -> Result<Node> {
    let text = expression.expr.as_deref().unwrap_or_default();
    let input = |variable: &String| {
        let missing = || ExpressionFault::MissingInput { expression: text.into(), variable: variable.as_str().into() };
        sources.get(variable.as_str()).copied().ok_or_else(|| Error::Expression(missing()))
    };
    let inputs = program.variables().iter().map(input).collect::<Result<Vec<_>>>()?;
    if inputs.is_empty() {
        return fault(ExpressionFault::NoVariables);
    }
    let join = expression.join.clone().unwrap_or(Join { operator: Some(Operator::Union), ..Join::default() });
    let operator = join.operator.ok_or(Error::Expression(ExpressionFault::NoJoinOperator))?;
    let rule = Rule {
        intersect: operator == Operator::Intersection,
        filtered_tags: join.use_query_tags,
        aggregated_keys: join.include_agg_tags,
    };
    let fill = expression.fill_policy.map_or(f64::NAN, |policy| policy.value);
    Ok(Node { id: expression.id.clone().unwrap_or_default(), program, inputs, rule, fill })
}

/// Each expression after those that it needs.
fn order_of_needs(nodes: &[Node]) -> Result<Vec<usize>> {
    for (place, node) in nodes.iter().enumerate() {
        if node.inputs.contains(&Source::Expression(place)) {
            return fault(ExpressionFault::SelfReference(node.id.as_str().into()));
        }
    }
    let mut order: Vec<usize> = Vec::with_capacity(nodes.len());
    while order.len() < nodes.len() {
        let is_ready = |node: &Node| {
            node.inputs.iter().all(|input| !matches!(input, Source::Expression(place) if !order.contains(place)))
        };
        let open = || nodes.iter().enumerate().filter(|(place, _)| !order.contains(place));
        let Some((place, _)) = open().find(|(_, node)| is_ready(node)) else {
            let last = open().next_back().map(|(_, node)| node.id.as_str()).unwrap_or_default();
            return fault(ExpressionFault::Circular(last.into()));
        };
        order.push(place);
    }
    Ok(order)
}

fn refuse_repeated<'a>(
    what: &'static str,
    ids: impl Iterator<Item = &'a Option<String>>,
    seen: &mut HashSet<&'a Option<String>>,
) -> Result<()> {
    for id in ids {
        if !seen.insert(id) {
            return fault(ExpressionFault::Repeated { what, id: id.as_deref().unwrap_or("null").into() });
        }
    }
    Ok(())
}

/// Letters and digits, and not one digit alone.
fn check_id(id: Option<&str>) -> std::result::Result<(), String> {
    let Some(id) = id.filter(|id| !id.is_empty()) else {
        return Err("missing or empty id".to_owned());
    };
    if let Some(letter) = id.chars().find(|letter| !letter.is_alphanumeric()) {
        return Err(format!("Invalid id (\"{id}\"): illegal character: {letter}"));
    }
    if id.len() == 1 && id.starts_with(|letter: char| letter.is_ascii_digit()) {
        return Err("The ID cannot be an integer".to_owned());
    }
    Ok(())
}

fn check_aggregator(name: &str) -> std::result::Result<(), String> {
    Aggregator::by_name(&name.to_lowercase()).map(drop).ok_or_else(|| "Invalid aggregator".to_owned())
}

fn check_metric(metric: &Metric, now_ms: i64, options: Options) -> std::result::Result<(), String> {
    if metric.name.as_deref().unwrap_or_default().is_empty() {
        return Err("missing or empty metric".to_owned());
    }
    check_id(metric.id.as_deref())?;
    if let Some(offset) = metric.time_offset.as_deref().filter(|text| !text.is_empty()) {
        let context = TimeContext { now_ms, zone: options.default_zone, compat: options.compat };
        parse_time(offset, &context).map_err(|error| error.to_string())?;
    }
    match metric.aggregator.as_deref().filter(|name| !name.is_empty()) {
        Some(name) => check_aggregator(name),
        None => Ok(()),
    }
}

fn check_time(time: &Time, now_ms: i64, options: Options) -> std::result::Result<(), String> {
    let zone = time.timezone.as_deref().filter(|name| !name.is_empty()).and_then(|name| parse_zone(name).ok());
    let context = TimeContext { now_ms, zone: zone.unwrap_or(options.default_zone), compat: options.compat };
    let Some(start) = time.start.as_deref().filter(|text| !text.is_empty()) else {
        return Err("missing or empty start".to_owned());
    };
    for text in [Some(start), time.end.as_deref()].into_iter().flatten().filter(|text| !text.is_empty()) {
        parse_time(text, &context).map_err(|error| error.to_string())?;
    }
    if let Some(downsampler) = &time.downsampler {
        let Some(interval) = downsampler.interval.as_deref().filter(|text| !text.is_empty()) else {
            return Err("Missing or empty interval".to_owned());
        };
        parse_duration_as(interval, options.compat).map_err(|error| error.to_string())?;
        let name = downsampler.aggregator.as_deref().filter(|text| !text.is_empty());
        check_aggregator(name.ok_or("Missing or empty aggregator")?)?;
    }
    let name = time.aggregator.as_deref().filter(|text| !text.is_empty());
    check_aggregator(name.ok_or("Missing or empty aggregator")?)
}
