//! The query engine: a request in, its series out.

use std::sync::{Arc, Mutex};

use basalt_schema::Schema;

use crate::answer::{SeriesAnnotation, SubAnswer};
use crate::cancel::{Budget, Cancel, Limits};
use crate::delete::Deleter;
use crate::downsample::Fill;
use crate::fetch::{fetch, global_annotations};
use crate::group::{compute, describe, group};
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
        // Every sub query is planned before any is read, so that a wrong name costs nothing.
        let plan = |sub| Plan::new(&self.schema, query, sub, self.options, &budget);
        let plans = query.sub_queries.iter().map(plan).collect::<Result<Vec<_>>>()?;
        let answer = |(sub, plan)| self.answer(query, sub, plan, &budget);
        let answers = query.sub_queries.iter().zip(&plans).map(answer).collect::<Result<_>>()?;
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

    /// The global annotations of a request's range, by time.
    ///
    /// # Errors
    /// As [`QueryEngine::run`].
    pub fn global_annotations(&self, query: &Query, cancel: &Cancel) -> Result<Vec<SeriesAnnotation>> {
        global_annotations(&self.schema, query.start_ms, query.end_ms, &Budget::new(self.limits, cancel))
    }

    fn answer(&self, query: &Query, sub: &SubQueryPlan, plan: &Plan, budget: &Budget) -> Result<SubAnswer> {
        let fetched = fetch(&self.schema, plan, query.annotations, budget)?;
        let mut stats = fetched.stats;
        let data = fetched.series;
        let groups = group(&self.schema, plan, &data);
        let points = compute(&groups, plan, sub, &data, self.options, budget)?;
        let describe = |(group, points)| describe(&self.schema, group, plan, &data, points);
        let series = groups.iter().zip(points).map(describe).collect::<Result<Vec<_>>>()?;
        stats.series = data.iter().filter(|data| !data.span.is_empty()).count() as u64;
        stats.emitted_points = series.iter().map(|series| series.points.len() as u64).sum();
        let nan_as_null = sub.downsample.is_some_and(|downsample| downsample.fill == Fill::Null);
        Ok(SubAnswer { index: sub.index, nan_as_null, series, stats })
    }
}

#[cfg(test)]
mod tests;
