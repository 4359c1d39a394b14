//! Formulas over queries (`/api/query/gexp`), in the manner of Graphite: `scale(sum:1m-avg:sys.cpu{host=*},100)`.
//!
//! ```text
//! exp texts ─ grammar ─► Formulas ─ evaluate over the sub queries' series ─► answers, trimmed to the range
//!                          └ metric texts ─► QueryRequest
//! ```
//!
//! Functions compute over all hours that were read and not over the range alone, so that a time shift has something to
//! shift in. *Source*: OpenTSDB 2.4 `parser.jj`, `net.opentsdb.query.expression`.

mod fault;
mod function;
mod grammar;
mod highest;
mod moving;

pub use fault::FormulaFault;

use basalt_schema::Schema;

use crate::answer::{Held, SubAnswer};
use crate::cancel::Budget;
use crate::dataset::{Computed, Dataset};
use crate::names::Names;
use crate::request::{GetParameters, Query, QueryRequest, SubQuery, SubQueryPlan};
use crate::{Options, Result};
use function::{Call, Function};
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

/// A series on its way through formulas, and the place of the sub query it came from.
#[derive(Debug, Clone)]
struct Flow {
    query: usize,
    data: Dataset,
}

impl QueryRequest {
    /// Reads the query string of `/api/query/gexp`: `exp` texts beside what `/api/query` takes.
    ///
    /// # Errors
    /// `Invalid`: a text that cannot be read, a function nobody knows, no series at all.
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
        Ok(formula)
    }

    /// Trees are as deep as the grammar allows, so this may recur.
    fn evaluate(&self, computed: &[Computed], context: &Call<'_>) -> Result<Vec<Flow>> {
        let inputs = self.inputs.iter().map(|input| match input {
            Input::Formula(formula) => formula.evaluate(computed, context),
            Input::Query(query) => {
                let datasets = computed.get(*query).map(|computed| computed.datasets.as_slice()).unwrap_or_default();
                let copied = datasets.iter().map(|data| data.points.len() as u64).sum::<u64>();
                context.budget.reserve(copied.saturating_mul(size_of::<crate::Point>() as u64))?;
                Ok(datasets.iter().map(|data| Flow { query: *query, data: data.clone() }).collect())
            }
        });
        let inputs = inputs.collect::<Result<Vec<Vec<Flow>>>>()?;
        context.budget.check()?;
        self.function.apply(inputs, &self.texts, context)
    }
}

impl Formulas {
    /// The answers in the order of the formulas; each a run of series that came from one sub query.
    ///
    /// # Errors
    /// `Invalid`: parameters that make no sense. A budget.
    pub(crate) fn evaluate(
        &self,
        schema: &Schema,
        query: &Query,
        computed: &[Computed],
        options: Options,
        budget: &Budget,
    ) -> Result<Vec<SubAnswer>> {
        let context = Call { range: query.start_ms..=query.end_ms, strict: options.compat.strict, budget };
        let mut answers: Vec<SubAnswer> = Vec::new();
        let mut names = Names::new(schema);
        for formula in &self.0 {
            for flow in formula.evaluate(computed, &context)? {
                let mut series = flow.data.named(&mut names)?;
                series.points.retain(|point| context.range.contains(&point.time_ms));
                match answers.last_mut() {
                    Some(answer) if answer.index == flow.query => answer.series.push(series),
                    _ => answers.push(SubAnswer {
                        index: flow.query,
                        nan_as_null: query.sub_queries.get(flow.query).is_some_and(SubQueryPlan::nan_is_null),
                        rollup: computed.get(flow.query).and_then(|computed| computed.rollup.clone()),
                        series: vec![series],
                        stats: computed.get(flow.query).map(|computed| computed.stats).unwrap_or_default(),
                        steps: computed.get(flow.query).map(|computed| computed.steps.clone()).unwrap_or_default(),
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
