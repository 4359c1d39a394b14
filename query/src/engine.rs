//! The query engine: a request in, its series out.

use std::sync::{Arc, Mutex};

use basalt_schema::Schema;

use crate::answer::{SeriesAnnotation, SubAnswer};
use crate::cancel::{Budget, Cancel, Limits};
use crate::dataset::{Computed, Dataset};
use crate::delete::Deleter;
use crate::expression::{ExpressionPlan, OutputAnswer};
use crate::fetch::{fetch, global_annotations};
use crate::gexp::Formulas;
use crate::group::{compute, describe, group};
use crate::last::{LastPoint, LastRequest};
use crate::plan::Plan;
use crate::request::{Query, SubQueryPlan};
use crate::{Options, QueryRequest, Result};

/// Answers queries over a schema. Cheap to clone.
#[derive(Debug, Clone)]
pub struct QueryEngine {
    schema: Arc<Schema>,
    options: Options,
    limits: Limits,
    /// Deletes take turns ([`Deleter::turn`]).
    deletes: Arc<Mutex<()>>,
}

impl QueryEngine {
    /// An engine over `schema`'s tables.
    pub fn new(schema: Arc<Schema>, options: Options, limits: Limits) -> Self {
        Self { schema, options, limits, deletes: Arc::default() }
    }

    /// How it reads requests.
    pub fn options(&self) -> Options {
        self.options
    }

    /// Checks a request and answers it: one answer a sub query, in request order. Where the request says so, what was
    /// read is deleted then; whether that is allowed is the caller's to know.
    ///
    /// *Cost*: waits for the store on the calling thread and on threads of its own; never call it where async tasks run.
    ///
    /// # Errors
    /// `Invalid`: the request is wrong, or over a budget. `Throttled`: over its time. `Unavailable`: cancelled.
    /// The store's own.
    pub fn run(&self, request: &QueryRequest, now_ms: i64, cancel: &Cancel) -> Result<Vec<SubAnswer>> {
        self.run_checked(&request.check(now_ms, self.options)?, cancel)
    }

    /// [`QueryEngine::run`] of a request that is checked already.
    ///
    /// # Errors
    /// As [`QueryEngine::run`].
    pub fn run_checked(&self, query: &Query, cancel: &Cancel) -> Result<Vec<SubAnswer>> {
        let budget = Budget::new(self.limits.lifted(query), cancel);
        let plans = self.plans(query, &budget)?;
        let computed = self.compute_all(query, &plans, &budget)?;
        let named = |(sub, computed)| self.named(sub, computed);
        let answers = query.sub_queries.iter().zip(computed).map(named).collect::<Result<_>>()?;
        if query.delete {
            self.delete(query, &plans, &budget)?;
        }
        Ok(answers)
    }

    fn delete(&self, query: &Query, plans: &[Plan], budget: &Budget) -> Result<()> {
        let whole_rows = self.options.compat.strict;
        let deleter = Deleter { schema: &self.schema, query, budget, whole_rows, turn: &self.deletes };
        plans.iter().try_for_each(|plan| deleter.run(plan))
    }

    /// Answers a request of `/api/query/gexp` whose check gave these formulas and this query.
    ///
    /// # Errors
    /// As [`QueryEngine::run`]; also a formula whose parameters make no sense.
    pub fn run_formulas(&self, formulas: &Formulas, query: &Query, cancel: &Cancel) -> Result<Vec<SubAnswer>> {
        let budget = Budget::new(self.limits.lifted(query), cancel);
        let computed = self.compute_all(query, &self.plans(query, &budget)?, &budget)?;
        formulas.evaluate(&self.schema, query, &computed, self.options, &budget)
    }

    /// Answers a request of `/api/query/exp`.
    ///
    /// # Errors
    /// As [`QueryEngine::run`]; also an expression that cannot be read, has no such input, or joins nothing.
    pub fn run_expressions(&self, request: &ExpressionPlan, cancel: &Cancel) -> Result<Vec<OutputAnswer>> {
        let budget = Budget::new(self.limits.lifted(request.query()), cancel);
        let computed = self.compute_all(request.query(), &self.plans(request.query(), &budget)?, &budget)?;
        request.evaluate(&self.schema, computed, self.options, &budget)
    }

    /// The newest points of series.
    ///
    /// # Errors
    /// `Invalid`: an unknown name, a broken TSUID, a metric without tags to look back for. A budget; the store's own.
    pub fn last(&self, request: &LastRequest, now_ms: i64, cancel: &Cancel) -> Result<Vec<LastPoint>> {
        request.run(&self.schema, now_ms, self.options, &Budget::new(self.limits, cancel))
    }

    /// The global annotations of a request's range, by time.
    ///
    /// # Errors
    /// As [`QueryEngine::run`].
    pub fn global_annotations(&self, query: &Query, cancel: &Cancel) -> Result<Vec<SeriesAnnotation>> {
        global_annotations(&self.schema, query.start_ms, query.end_ms, &Budget::new(self.limits, cancel))
    }

    /// Every sub query is planned before any is read, so that a wrong name costs nothing.
    fn plans(&self, query: &Query, budget: &Budget) -> Result<Vec<Plan>> {
        let plan = |sub| Plan::new(&self.schema, query, sub, self.options, budget);
        query.sub_queries.iter().map(plan).collect()
    }

    /// Every sub query's output series, before they have names.
    fn compute_all(&self, query: &Query, plans: &[Plan], budget: &Budget) -> Result<Vec<Computed>> {
        let compute = |(sub, plan)| self.compute(query, sub, plan, budget);
        query.sub_queries.iter().zip(plans).map(compute).collect()
    }

    fn compute(&self, query: &Query, sub: &SubQueryPlan, plan: &Plan, budget: &Budget) -> Result<Computed> {
        let fetched = fetch(&self.schema, plan, query.annotations, budget)?;
        let mut stats = fetched.stats;
        let data = fetched.series;
        let groups = group(&self.schema, plan, &data);
        let points = compute(&groups, plan, sub, &data, self.options, budget)?;
        let describe = |(group, points)| describe(&self.schema, group, plan, &data, points);
        let datasets: Vec<Dataset> = groups.iter().zip(points).map(describe).collect();
        stats.series = data.iter().filter(|data| !data.span.is_empty()).count() as u64;
        stats.emitted_points = datasets.iter().map(|dataset| dataset.points.len() as u64).sum();
        Ok(Computed { datasets, stats })
    }

    fn named(&self, sub: &SubQueryPlan, computed: Computed) -> Result<SubAnswer> {
        let series = computed.datasets.into_iter().map(|dataset| dataset.named(&self.schema)).collect::<Result<_>>()?;
        Ok(SubAnswer { index: sub.index, nan_as_null: sub.nan_is_null(), series, stats: computed.stats })
    }
}

#[cfg(test)]
mod tests;
