//! The query engine: a request in, its series out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use basalt_schema::{Schema, Uid, UidKind};

use crate::answer::{Held, Point, Series, SeriesAnnotation, SubAnswer};
use crate::cancel::{Budget, Cancel};
use crate::dataset::{Computed, Dataset, notes_bytes, texts_bytes};
use crate::delete::Deleter;
use crate::expression::{ExpressionPlan, OutputAnswer};
use crate::fetch::{fetch, global_annotations};
use crate::gate::Gate;
use crate::gexp::{Formulas, Read};
use crate::group::{compute, group};
use crate::histogram;
use crate::last::{LastAnswer, LastRequest};
use crate::limits::{LimitOverrides, Limits};
use crate::memory::MemoryPool;
use crate::names::Names;
use crate::plan::Plan;
use crate::request::{Query, RollupUsage, Source, SubQueryPlan};
use crate::rollup;
use crate::{Error, Options, QueryRequest, Result};

/// How often a request is run again for which there was no memory beside others.
const RUNS_AGAIN: usize = 2;

/// Answers queries over a schema. Cheap to clone.
#[derive(Debug, Clone)]
pub struct QueryEngine {
    schema: Arc<Schema>,
    options: Options,
    limits: Limits,
    overrides: Arc<LimitOverrides>,
    memory: Arc<MemoryPool>,
    /// Deletes take turns ([`Deleter::turn`]).
    deletes: Arc<Mutex<()>>,
    /// Where large requests wait for their turn.
    gate: Option<Arc<dyn Gate>>,
}

impl QueryEngine {
    /// An engine over `schema`'s tables.
    pub fn new(schema: Arc<Schema>, options: Options, limits: Limits) -> Self {
        let memory = MemoryPool::new(limits.memory_bytes);
        Self { schema, options, limits, overrides: Arc::default(), memory, deletes: Arc::default(), gate: None }
    }

    /// The same engine for a request that waits at `gate` if it turns out to be large, or if others hold the memory that it needs.
    #[must_use]
    pub fn behind(&self, gate: Arc<dyn Gate>) -> Self {
        Self { gate: Some(gate), ..self.clone() }
    }

    /// The limits by metric, which may be exchanged at any time.
    pub fn overrides(&self) -> &LimitOverrides {
        &self.overrides
    }

    /// Bytes of memory that all requests hold now, those of answers not yet dropped among them.
    pub fn memory_used_bytes(&self) -> u64 {
        self.memory.used_bytes()
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
    /// `Invalid`: the request is wrong, or over a budget; a delete where cells bear the times of their points. `Throttled`: over
    /// its time. `Unavailable`: cancelled. The store's own.
    pub fn run(&self, request: &QueryRequest, now_ms: i64, cancel: &Cancel) -> Result<Vec<SubAnswer>> {
        self.run_checked(&request.check(now_ms, self.options)?, cancel)
    }

    /// [`QueryEngine::run`] of a request that is checked already.
    ///
    /// # Errors
    /// As [`QueryEngine::run`].
    pub fn run_checked(&self, query: &Query, cancel: &Cancel) -> Result<Vec<SubAnswer>> {
        if query.delete {
            Deleter::check(&self.schema)?;
        }
        let ((plans, mut computed), budget) = self.run_with_room(cancel, |budget| {
            let plans = self.plans(query, budget)?;
            let computed = self.compute_all(query, &plans, budget)?;
            Ok((plans, computed))
        })?;
        let in_place: Vec<_> =
            computed.iter_mut().flat_map(|computed| std::mem::take(&mut computed.in_place)).collect();
        let mut names = Names::new(&self.schema);
        let named = |(sub, computed)| Self::named(sub, computed, &mut names);
        let answers = query.sub_queries.iter().zip(computed).map(named).collect::<Result<_>>()?;
        if query.delete {
            plans.iter().try_for_each(|plan| self.delete(query, plan, &budget))?;
            in_place.iter().try_for_each(|(plan, range_ms)| {
                let (start_ms, end_ms) = (*range_ms.start(), *range_ms.end());
                self.delete(&Query { start_ms, end_ms, ..query.clone() }, plan, &budget)
            })?;
        }
        held(answers, &budget)
    }

    fn budget(&self, cancel: &Cancel) -> Budget {
        Budget::new(self.limits, cancel, &self.memory)
    }

    /// What `run` gives, with the account that holds it. Where others hold the memory that it needs, it gives back its own, waits
    /// until there is room for twice of what it had come to, and begins anew.
    fn run_with_room<T>(&self, cancel: &Cancel, run: impl Fn(&Budget) -> Result<T>) -> Result<(T, Budget)> {
        let mut budget = self.budget(cancel).behind(self.gate.clone());
        let mut outcome = run(&budget);
        for _ in 0..RUNS_AGAIN {
            let (Some(gate), Err(Error::MemoryTaken { limit_bytes, wanted_bytes })) = (&self.gate, &outcome) else {
                break;
            };
            // Some of it may always be held.
            let room_bytes = wanted_bytes.saturating_mul(2).min(limit_bytes / 4 * 3).max(*wanted_bytes);
            budget = budget.again(&self.memory);
            gate.pass_alone(&|| budget.check().map(|()| self.memory.has_room(room_bytes)))?;
            outcome = run(&budget);
        }
        Ok((outcome?, budget))
    }

    /// Deletes what a plan read.
    fn delete(&self, query: &Query, plan: &Plan, budget: &Budget) -> Result<()> {
        let whole_rows = self.options.compat.strict;
        Deleter { schema: &self.schema, query, plan, budget, whole_rows, turn: &self.deletes }.run()
    }

    /// Answers a request of `/api/query/gexp` whose check gave these formulas and this query.
    ///
    /// # Errors
    /// As [`QueryEngine::run`]; also a formula whose parameters make no sense.
    pub fn run_formulas(&self, formulas: &Formulas, query: &Query, cancel: &Cancel) -> Result<Vec<SubAnswer>> {
        let (answers, budget) = self.run_with_room(cancel, |budget| {
            let read = self.read(formulas, query, budget)?;
            formulas.evaluate(&self.schema, query, &read, self.options, budget)
        })?;
        held(answers, &budget)
    }

    /// Every sub query that formulas need, each at its time.
    fn read(&self, formulas: &Formulas, query: &Query, budget: &Budget) -> Result<Read> {
        let readings = formulas.readings(self.options.compat.strict)?;
        let plans = self.plans(query, budget)?;
        let mut read = Read::new();
        for reading in readings {
            let (Some(sub), Some(plan)) = (query.sub_queries.get(reading.query), plans.get(reading.query)) else {
                continue;
            };
            let computed = if reading.earlier_ms == 0 {
                self.compute(query, sub, plan, budget)?
            } else {
                let query = query.earlier(reading.earlier_ms);
                let plan = Plan::new(&self.schema, &query, sub, self.options, budget)?;
                self.compute(&query, sub, &plan, budget)?
            };
            read.insert(reading, computed);
        }
        Ok(read)
    }

    /// Answers a request of `/api/query/exp`. The outputs keep their memory reserved until they are dropped.
    ///
    /// # Errors
    /// As [`QueryEngine::run`]; also an expression that cannot be read, has no such input, or joins nothing.
    pub fn run_expressions(&self, request: &ExpressionPlan, cancel: &Cancel) -> Result<Vec<OutputAnswer>> {
        let (answers, _) = self.run_with_room(cancel, |budget| {
            let computed = self.compute_all(request.query(), &self.plans(request.query(), budget)?, budget)?;
            request.evaluate(&self.schema, computed, self.options, budget)
        })?;
        Ok(answers)
    }

    /// The newest points of series.
    ///
    /// # Errors
    /// `Invalid`: an unknown name, a broken TSUID, a metric without tags to look back for. A budget; the store's own.
    pub fn last(&self, request: &LastRequest, now_ms: i64, cancel: &Cancel) -> Result<LastAnswer> {
        request.run(&self.schema, now_ms, self.options, &self.budget(cancel))
    }

    /// The global annotations of a request's range, by time.
    ///
    /// # Errors
    /// As [`QueryEngine::run`].
    pub fn global_annotations(&self, query: &Query, cancel: &Cancel) -> Result<(Vec<SeriesAnnotation>, Held)> {
        let budget = self.budget(cancel);
        let mut found = global_annotations(&self.schema, query.start_ms, query.end_ms, &budget)?;
        if self.options.compat.strict {
            // OpenTSDB leaves out what ends after the range, by the second.
            found.retain(|note| note.end_time().is_none_or(|end| end <= query.end_ms / 1000));
        }
        // Twice: whoever answers makes their text beside them.
        let held = budget.keep(notes_bytes(&found) as u64 * 2)?;
        Ok((found, held))
    }

    /// Every sub query is planned before any is read, so that a wrong name costs nothing. A function of which no rollups
    /// are kept is told only where every name is known: OpenTSDB looks for it when it scans.
    fn plans(&self, query: &Query, budget: &Budget) -> Result<Vec<Plan>> {
        let mut plans = Vec::with_capacity(query.sub_queries.len());
        let mut no_rollups = None;
        for sub in &query.sub_queries {
            match Plan::new(&self.schema, query, sub, self.options, budget) {
                Ok(plan) => plans.push(plan),
                Err(error @ Error::NoRollupAggregate { .. }) => no_rollups = no_rollups.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        no_rollups.map_or(Ok(plans), Err)
    }

    /// Every sub query's output series, before they have names.
    fn compute_all(&self, query: &Query, plans: &[Plan], budget: &Budget) -> Result<Vec<Computed>> {
        let compute = |(sub, plan)| self.compute(query, sub, plan, budget);
        query.sub_queries.iter().zip(plans).map(compute).collect()
    }

    fn compute(&self, query: &Query, sub: &SubQueryPlan, plan: &Plan, budget: &Budget) -> Result<Computed> {
        let budget = &budget.of_sub(self.limits_of(query, sub, plan)?);
        if let Some(split_ms) = rollup::split_ms(self.schema.config().rollups.as_ref(), plan.rollup(), query) {
            let computed = self.split(query, sub, (split_ms, plan.window.scan_start_ms), budget)?;
            budget.settle(bytes_of(&computed.datasets));
            return Ok(computed);
        }
        self.attempt_until_found(query, sub, plan, i64::MAX, budget)
    }

    /// The output series of what a plan reads, or where that is nothing of what it falls back to; their stamps up to `last_ms`.
    fn attempt_until_found(
        &self,
        query: &Query,
        sub: &SubQueryPlan,
        plan: &Plan,
        last_ms: i64,
        budget: &Budget,
    ) -> Result<Computed> {
        let mut computed = self.attempt(query, sub, plan, budget)?;
        let mut next = plan.fallback();
        while let Some(plan) = next.filter(|_| computed.datasets.is_empty()) {
            let plan = plan.until(last_ms);
            computed = self.attempt(query, sub, &plan, budget)?;
            next = plan.fallback();
            computed.take_in_place(query, plan);
        }
        Ok(computed)
    }

    /// What is older than the bucket of an instant from rollups, and all of that bucket and what is newer from the points
    /// themselves (rule Q-ROLLUP-SPLIT): a bucket of rollups alone would lack what is newer. Both count a calendar's buckets from
    /// `from_ms`, where a scan of the whole range begins, or they would not have the same.
    fn split(
        &self,
        query: &Query,
        sub: &SubQueryPlan,
        (split_ms, from_ms): (i64, i64),
        budget: &Budget,
    ) -> Result<Computed> {
        let plan = |query: &Query, sub: &SubQueryPlan| Plan::new(&self.schema, query, sub, self.options, budget);
        let bucket_ms =
            |time_ms| sub.downsample.map_or(time_ms, |downsample| downsample.bucket_start_ms(from_ms, time_ms));
        let start_ms = bucket_ms(split_ms).max(query.start_ms);
        let newer = Query { start_ms, buckets_from_ms: Some(from_ms), ..query.clone() };
        let points = SubQueryPlan { rollups: RollupUsage::Raw, ..sub.clone() };
        if newer.start_ms == query.start_ms {
            let plan = plan(query, &points)?;
            let mut computed = self.attempt(query, &points, &plan, budget)?;
            computed.take_in_place(query, plan);
            return Ok(computed);
        }
        let last_ms = newer.start_ms - 1;
        // A rate needs the bucket before.
        let read_from_ms = if sub.rate.is_some() { bucket_ms(last_ms) } else { newer.start_ms };
        let newer_plan = plan(&Query { start_ms: read_from_ms, ..newer.clone() }, &points)?.since(newer.start_ms);
        let older = Query { start_ms: query.start_ms, end_ms: last_ms, ..newer.clone() };
        // Where all rows read are answered, the last one's rollups may reach on.
        let older_plan = plan(&older, sub)?.until(last_ms);
        // Groups are told by the places of series, of which the later plan may have met more.
        let newer_plan = Plan { series: older_plan.series.clone(), ..newer_plan };
        let late = self.attempt(&newer, &points, &newer_plan, budget)?;
        let mut computed = self.attempt_until_found(&older, sub, &older_plan, last_ms, budget)?;
        computed.stats.add(&late.stats);
        let mut groups: BTreeMap<Vec<Uid>, Dataset> = BTreeMap::new();
        for dataset in computed.datasets.into_iter().chain(late.datasets) {
            let joined = match groups.remove(&dataset.group) {
                Some(earlier) => earlier.followed_by(dataset, self.options.compat.strict),
                None => dataset,
            };
            groups.insert(joined.group.clone(), joined);
        }
        computed.datasets = groups.into_values().collect();
        computed.take_in_place(&newer, newer_plan);
        Ok(computed)
    }

    /// The output series of what a plan reads first.
    fn attempt(&self, query: &Query, sub: &SubQueryPlan, plan: &Plan, budget: &Budget) -> Result<Computed> {
        // What is kept of an attempt before this one.
        let others_bytes = budget.reserved();
        // A series of annotations alone is one of OpenTSDB's groups, also where they are not asked for.
        let annotations = query.annotations || self.options.compat.strict;
        let fetched = fetch(&self.schema, plan, annotations, self.options, budget)?;
        let (mut stats, mut steps) = (fetched.stats, fetched.steps);
        let data = fetched.series;
        let began = Instant::now();
        let groups = group(&self.schema, plan, &data, self.options.compat.strict);
        steps.group_time = began.elapsed();
        let began = Instant::now();
        let datasets: Vec<Dataset> = if sub.histogram.is_some() {
            histogram::compute(&self.schema, &groups, plan, sub, &data, (budget, self.options.compat))?
        } else {
            compute(&self.schema, &groups, (plan, sub), &data, self.options, budget)?
        };
        steps.compute_time = began.elapsed();
        // What was read is dropped with this function; the rest is settled for the whole request in the end.
        budget.settle(others_bytes + bytes_of(&datasets));
        stats.series = data.iter().filter(|data| !data.is_empty()).count() as u64;
        stats.emitted_points = datasets.iter().map(|dataset| dataset.points.len() as u64).sum();
        let rollup = plan.rollup().map(|rollup| rollup.name().into());
        Ok(Computed { datasets, rollup, stats, steps, in_place: Vec::new() })
    }

    /// The limits of a sub query. A metric is looked up by its name only where some have limits of their own.
    fn limits_of(&self, query: &Query, sub: &SubQueryPlan, plan: &Plan) -> Result<Limits> {
        let own = match &sub.source {
            _ if self.overrides.is_empty() => None,
            Source::Metric(name) => self.overrides.of(name),
            Source::Tsuids(_) => self.overrides.of(&self.schema.uids().of(UidKind::Metric).name(plan.metric)?),
        };
        Ok(query.lift(self.limits.of_metric(own)))
    }

    fn named(sub: &SubQueryPlan, mut computed: Computed, names: &mut Names<'_>) -> Result<SubAnswer> {
        let began = Instant::now();
        names.load_values(|| computed.datasets.iter().flat_map(Dataset::tag_values))?;
        let series = computed.datasets.into_iter().map(|dataset| dataset.named(names)).collect::<Result<_>>()?;
        computed.steps.name_time = began.elapsed();
        Ok(SubAnswer {
            index: sub.index,
            nan_as_null: sub.nan_is_null(),
            rollup: computed.rollup,
            series,
            stats: computed.stats,
            steps: computed.steps,
            held: Held::default(),
        })
    }
}

fn bytes_of(datasets: &[Dataset]) -> u64 {
    datasets.iter().map(Dataset::bytes).sum()
}

/// The answers with the memory that they keep until they are dropped.
///
/// # Errors
/// A budget.
fn held(mut answers: Vec<SubAnswer>, budget: &Budget) -> Result<Vec<SubAnswer>> {
    let bytes = |series: &Series| {
        let words = series.tags.len() + series.aggregate_tags.len() + 8;
        let lists = texts_bytes(&series.tsuids) + notes_bytes(&series.annotations);
        (series.points.capacity() * size_of::<Point>() + words * 32 + series.metric.len() + lists) as u64
    };
    let held = budget.keep(answers.iter().flat_map(|answer| &answer.series).map(bytes).sum())?;
    for answer in &mut answers {
        answer.held = held.clone();
    }
    Ok(answers)
}

#[cfg(test)]
mod tests;
