//! Formulas over queries (`/api/query/gexp`), in the manner of Graphite: `scale(sum:1m-avg:sys.cpu{host=*},100)`.
//!
//! ```text
//! exp texts ─ grammar ─► Formulas ─ evaluate over the sub queries' series ─► answers, trimmed to the range
//!                          └ metric texts ─► QueryRequest
//! ```
//!
//! Functions compute over all hours that were read and not over the range alone. What is inside of a time shift is asked
//! of a range that lies earlier by as much. *Source*: OpenTSDB 2.4 `parser.jj`, `net.opentsdb.query.expression`.

mod call;
mod function;
mod grammar;
mod highest;
mod moving;

use std::collections::{BTreeMap, BTreeSet};

use basalt_schema::Schema;

use crate::answer::{Held, SubAnswer};
use crate::cancel::Budget;
use crate::dataset::{Computed, Dataset};
use crate::names::Names;
use crate::request::{GetParameters, Query, QueryRequest, SUB_QUERIES_MAX, SubQuery, SubQueryPlan};
use crate::{Error, Options, Result};
use call::{Call, Flow};
use function::Function;
use grammar::{Argument, Tree};

/// The formulas of a request.
#[derive(Debug, Clone)]
pub struct Formulas(Vec<Formula>);

/// A function and what it is applied to.
#[derive(Debug, Clone)]
struct Formula {
    function: Function,
    inputs: Vec<Input>,
    /// Further parameters, as written.
    texts: Vec<String>,
}

#[derive(Debug, Clone)]
enum Input {
    /// The place of a sub query.
    Query(usize),
    Formula(Formula),
}

/// One reading of a sub query: its place, and how long before the request's range it is asked, ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reading {
    pub(crate) query: usize,
    pub(crate) earlier_ms: i64,
}

/// What each reading came to.
pub(crate) type Read = BTreeMap<Reading, Computed>;

impl QueryRequest {
    /// Reads the query string of `/api/query/gexp`: `exp` texts beside what `/api/query` takes.
    ///
    /// # Errors
    /// `Invalid`: a text that cannot be read, a function nobody knows or of too few or too many series, no series at all.
    pub fn from_formulas(parameters: &GetParameters<'_>, texts: &[&str], options: Options) -> Result<(Self, Formulas)> {
        let trees = texts.iter().map(|text| grammar::parse(text)).collect::<Result<Vec<_>>>()?;
        let mut metrics = parameters.metrics.to_vec();
        for tree in &trees {
            tree.add_metrics(&mut metrics);
        }
        let request = Self::from_get(&GetParameters { metrics: &metrics, ..*parameters })?;
        let formulas = trees.iter().map(|tree| Formula::new(tree, &request.queries, options)).collect::<Result<_>>()?;
        Ok((request, Formulas(formulas)))
    }
}

impl Query {
    /// The query with which formulas compute.
    #[must_use]
    pub fn for_formulas(mut self) -> Self {
        self.whole_window = true;
        self
    }

    /// The same asked of a range that lies earlier by so much; never before 1970.
    pub(crate) fn earlier(&self, by_ms: i64) -> Self {
        let start_ms = self.start_ms.saturating_sub(by_ms).max(0);
        let end_ms = self.end_ms.saturating_sub(by_ms).max(start_ms.saturating_add(1));
        Self { start_ms, end_ms, ..self.clone() }
    }
}

impl Formula {
    fn new(tree: &Tree<'_>, queries: &[SubQuery], options: Options) -> Result<Self> {
        let mut formula =
            Self { function: Function::by_name(tree.name, options)?, inputs: Vec::new(), texts: Vec::new() };
        for argument in &tree.arguments {
            match argument {
                Argument::Text(text) => formula.texts.push((*text).to_owned()),
                Argument::Tree(tree) => formula.inputs.push(Input::Formula(Self::new(tree, queries, options)?)),
                Argument::Metric(text) => {
                    // It is among them: the request was made of these very texts.
                    let sub = SubQuery::from_metric_text(text)?;
                    formula.inputs.extend(queries.iter().position(|query| *query == sub).map(Input::Query));
                }
            }
        }
        formula.function.check_inputs(formula.inputs.len())?;
        Ok(formula)
    }

    /// By how much its inputs are shifted; a shift that cannot be read is told when it is applied.
    fn shift_ms(&self, strict: bool) -> i64 {
        self.function.shift_ms(&self.texts, strict).unwrap_or_default()
    }

    /// Adds what it needs, itself wanted so much earlier. Trees are as deep as the grammar allows, so this may recur.
    fn add_readings(&self, earlier_ms: i64, strict: bool, found: &mut BTreeSet<Reading>) {
        let earlier_ms = earlier_ms.saturating_add(self.shift_ms(strict));
        for input in &self.inputs {
            match input {
                Input::Query(query) => {
                    found.insert(Reading { query: *query, earlier_ms });
                }
                Input::Formula(formula) => formula.add_readings(earlier_ms, strict, found),
            }
        }
    }

    /// As deep as [`Formula::add_readings`].
    fn evaluate(&self, read: &Read, earlier_ms: i64, context: &Call<'_>) -> Result<Vec<Flow>> {
        let by_ms = self.shift_ms(context.strict);
        let earlier_ms = earlier_ms.saturating_add(by_ms);
        let [start_ms, end_ms] = [context.range.start(), context.range.end()].map(|end| end.saturating_sub(by_ms));
        let inner = Call { range: start_ms..=end_ms, ..*context };
        let inputs = self.inputs.iter().map(|input| match input {
            Input::Formula(formula) => formula.evaluate(read, earlier_ms, &inner),
            Input::Query(query) => {
                let computed = read.get(&Reading { query: *query, earlier_ms });
                let datasets = computed.map(|computed| computed.datasets.as_slice()).unwrap_or_default();
                context.budget.reserve(datasets.iter().map(Dataset::bytes).sum())?;
                Ok(datasets.iter().map(|data| Flow { query: *query, data: data.clone() }).collect())
            }
        });
        let inputs = inputs.collect::<Result<Vec<Vec<Flow>>>>()?;
        context.budget.check()?;
        self.function.apply(inputs, &self.texts, context)
    }
}

impl Formulas {
    /// What has to be read to evaluate them.
    ///
    /// # Errors
    /// `Invalid`: too many, as each is a sub query of its own.
    pub(crate) fn readings(&self, strict: bool) -> Result<BTreeSet<Reading>> {
        let mut found = BTreeSet::new();
        for formula in &self.0 {
            formula.add_readings(0, strict, &mut found);
            if found.len() > SUB_QUERIES_MAX {
                return Err(Error::TooMany { what: "sub queries", limit: SUB_QUERIES_MAX });
            }
        }
        Ok(found)
    }

    /// The answers in the order of the formulas; each a run of series that came from one sub query.
    ///
    /// # Errors
    /// `Invalid`: parameters that make no sense. A budget.
    pub(crate) fn evaluate(
        &self,
        schema: &Schema,
        query: &Query,
        read: &Read,
        options: Options,
        budget: &Budget,
    ) -> Result<Vec<SubAnswer>> {
        let context = Call { range: query.start_ms..=query.end_ms, strict: options.compat.strict, budget };
        let mut answers: Vec<SubAnswer> = Vec::new();
        let mut names = Names::new(schema);
        for formula in &self.0 {
            let flows = formula.evaluate(read, 0, &context)?;
            names.load_values(|| flows.iter().flat_map(|flow| flow.data.tag_values()))?;
            for flow in flows {
                let mut series = flow.data.named(&mut names)?;
                // An alias may be much longer with the tags' values in it.
                budget.reserve(series.metric.len() as u64)?;
                series.points.retain(|point| context.range.contains(&point.time_ms));
                let earliest = Reading { query: flow.query, earlier_ms: 0 };
                let computed = read.range(earliest..).next().filter(|(reading, _)| reading.query == flow.query);
                let computed = computed.map(|(_, computed)| computed);
                match answers.last_mut() {
                    Some(answer) if answer.index == flow.query => answer.series.push(series),
                    _ => answers.push(SubAnswer {
                        index: flow.query,
                        nan_as_null: query.sub_queries.get(flow.query).is_some_and(SubQueryPlan::nan_is_null),
                        rollup: computed.and_then(|computed| computed.rollup.clone()),
                        series: vec![series],
                        stats: computed.map(|computed| computed.stats).unwrap_or_default(),
                        steps: computed.map(|computed| computed.steps.clone()).unwrap_or_default(),
                        held: Held::default(),
                    }),
                }
            }
        }
        Ok(answers)
    }
}

#[cfg(test)]
mod tests;
