//! The facade: points in, a report out.

use std::collections::HashMap;
use std::sync::Arc;

use basalt_schema::{Schema, point_cell};
use basalt_store::{Applied, ErrorKind, Pending, Store};

use crate::check::{Measured, SeriesNames, check_measured, check_names};
use crate::inflight::{Inflight, Permit};
use crate::raw_point::RawPoint;
use crate::report::PointError;
use crate::series_cache::{Fingerprint, KnownSeries, SeriesCache};
use crate::stage::{CellTimes, Stage};
use crate::submission::{Part, Submission, SubmissionParts, Work, store_problem};
use crate::{Door, IngestLimits, IngestStats, Outcome, Problem, ProblemClass, Result};

/// Takes points in. One a process; shared by `Arc` or by reference among all doors.
///
/// ```
/// use std::sync::Arc;
/// use basalt_ingest::{Door, Ingest, IngestLimits, parse_put};
/// use basalt_schema::{Schema, SchemaConfig};
/// use basalt_store::{ManualClock, MemoryStore, Store};
/// let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(ManualClock::default())));
/// let schema = Arc::new(Schema::open(Arc::clone(&store), SchemaConfig::default()).unwrap());
/// let ingest = Ingest::new(schema, store, IngestLimits::default());
/// let body = r#"{"metric":"sys.cpu","timestamp":1346846400,"value":18.5,"tags":{"host":"web01"}}"#;
/// let points = parse_put(body, ingest.limits())?;
/// let report = ingest.submit(&points, Door::Http)?.wait();
/// assert_eq!((report.stored, report.rejected, report.failed), (1, 0, 0));
/// # Ok::<(), basalt_ingest::Error>(())
/// ```
#[derive(Debug)]
pub struct Ingest {
    schema: Arc<Schema>,
    store: Arc<dyn Store>,
    limits: IngestLimits,
    series: SeriesCache,
    inflight: Arc<Inflight>,
    stats: Arc<IngestStats>,
}

/// What is under way and kept, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IngestLevels {
    /// Points under way.
    pub inflight_points: u64,
    /// Bytes of text under way.
    pub inflight_bytes: u64,
    /// Spellings of series remembered.
    pub known_series: u64,
}

impl Ingest {
    /// Ingest into the data table of `schema` on `store`.
    pub fn new(schema: Arc<Schema>, store: Arc<dyn Store>, limits: IngestLimits) -> Self {
        Self {
            series: SeriesCache::new(limits.known_series_max),
            inflight: Inflight::new(&limits),
            stats: Arc::default(),
            schema,
            store,
            limits,
        }
    }

    /// The bounds.
    pub const fn limits(&self) -> &IngestLimits {
        &self.limits
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
    }

    pub(crate) fn permit(&self, points: u64, bytes: u64) -> Result<Permit> {
        self.inflight.take(points, bytes)
    }

    pub(crate) const fn stats_handle(&self) -> &Arc<IngestStats> {
        &self.stats
    }

    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The accounting.
    pub fn stats(&self) -> &IngestStats {
        &self.stats
    }

    /// What is under way and kept.
    pub fn levels(&self) -> IngestLevels {
        let (inflight_points, inflight_bytes) = self.inflight.level();
        IngestLevels { inflight_points, inflight_bytes, known_series: self.series.len() as u64 }
    }

    /// Counts a line that was no point: received and rejected.
    pub fn reject_line(&self, door: Door, problem: &Problem) {
        self.stats.receive(door, 1);
        self.stats.settle(door, Outcome::Not(problem.class()), 1);
    }

    /// Checks points, resolves their series, and hands the good ones to the store as one batch.
    ///
    /// One bad point is one entry of the report and harms no other. *Cost*: for points of known series, a look-up and no
    /// I/O. A new series' names are looked up and made in the UID table, and that blocks: on a thread of tokio, call this
    /// inside `block_in_place`.
    ///
    /// # Errors
    /// `Throttled`: too much is under way. No point is taken; all count as failed.
    pub fn submit(&self, points: &[RawPoint<'_>], door: Door) -> Result<Submission> {
        let count = points.len() as u64;
        self.stats.receive(door, count);
        let bytes = points.iter().map(|point| point.text_bytes() as u64).sum();
        let permit = self.inflight.take(count, bytes).inspect_err(|_| {
            self.stats.settle(door, Outcome::Not(ProblemClass::Throttled), count);
        })?;
        let (stage, errors) = self.stage(points, door);
        if self.schema.config().realtime.counts() {
            self.note_points(&stage);
        }
        let parts = self.write(stage, door);
        let stats = Arc::clone(&self.stats);
        Ok(Submission::new(SubmissionParts { parts, errors, door, stats, permit }))
    }

    /// Hands staged points to the store: as one batch, or as an append a row.
    fn write(&self, stage: Stage, door: Door) -> Vec<Part> {
        let (config, table) = (self.schema.config(), &self.schema.tables().data);
        if config.appends {
            let appends = stage.seal_appends(self.limits.durability).into_iter();
            return appends
                .map(|(staged, append)| Part { work: Work::Append(self.store.append(table, append)), staged })
                .collect();
        }
        let times = if config.data_times.is_some() { CellTimes::Data } else { CellTimes::Written };
        let (staged, batch) = stage.seal(self.limits.durability, times);
        let pending = match batch {
            Ok(batch) if batch.is_empty() => Pending::ready(Ok(Applied::default())),
            Ok(batch) => self.store.apply(table, batch),
            Err(error) => Pending::ready(Err(error)),
        };
        self.stats.supersede(door, staged.superseded);
        vec![Part { work: Work::Batch(pending), staged }]
    }

    /// Counts the points of each series where that is asked for; the counters are synced with the batch.
    fn note_points(&self, stage: &Stage) {
        let counted = stage.points_of_series();
        let counted = counted.into_iter().filter_map(|(id, count)| Some((self.schema.index().tsuid(id)?, count)));
        self.schema.note_points(&counted.collect::<Vec<_>>());
    }

    /// Puts the good points to their rows, and says what is wrong with the others.
    fn stage(&self, points: &[RawPoint<'_>], door: Door) -> (Stage, Vec<PointError>) {
        let mut stage = Stage::with_capacity(points.len());
        let mut errors = Vec::new();
        let mut resolver = Resolver::new(self);
        for (index, point) in points.iter().enumerate() {
            let placed = check_measured(point, door).and_then(|Measured { time, value }| {
                let series = resolver.series(point)?;
                let cell = point_cell(time, value, door.float_width()).map_err(|error| schema_problem(&error))?;
                stage.push(index, &series, &cell);
                Ok(())
            });
            if let Err(problem) = placed {
                errors.push(PointError { index, problem });
            }
        }
        (stage, errors)
    }
}

/// Finds the series of a batch's points.
struct Resolver<'a> {
    ingest: &'a Ingest,
    /// Read before any name is resolved: what changes meanwhile makes what is resolved here stale.
    generation: u64,
    /// Spellings that have no series. Each is asked of the store once a batch, not once a point.
    unresolved: HashMap<Fingerprint, Problem>,
}

impl<'a> Resolver<'a> {
    fn new(ingest: &'a Ingest) -> Self {
        Self { ingest, generation: ingest.schema.uids().generation(), unresolved: HashMap::new() }
    }

    fn series(&mut self, point: &RawPoint<'_>) -> std::result::Result<Arc<KnownSeries>, Problem> {
        let cache = &self.ingest.series;
        let fingerprint = cache.fingerprint(point);
        // Fast path: spelled like this before.
        if let Some(series) = cache.get(fingerprint, self.generation) {
            return Ok(series);
        }
        // Slow path: names checked and resolved.
        if let Some(problem) = self.unresolved.get(&fingerprint) {
            return Err(problem.clone());
        }
        match self.resolve(point) {
            Ok(series) => {
                let series = Arc::new(series);
                cache.insert(fingerprint, Arc::clone(&series));
                Ok(series)
            }
            Err(problem) => {
                self.unresolved.insert(fingerprint, problem.clone());
                Err(problem)
            }
        }
    }

    fn resolve(&self, point: &RawPoint<'_>) -> std::result::Result<KnownSeries, Problem> {
        let Ingest { schema, limits, .. } = self.ingest;
        let SeriesNames { metric, tags } = check_names(point, schema.rules(), limits.name_bytes_max)?;
        let tags: Vec<(&str, &str)> = tags.iter().map(|(key, value)| (&**key, &**value)).collect();
        // Into the index before any row of it is written: a row without its series would not be found.
        let tsuid = schema.resolve(&metric, &tags).map_err(|error| schema_problem(&error))?;
        let id = schema.index().add(&tsuid).map_err(|error| schema_problem(&error))?;
        schema.note_series(&tsuid);
        Ok(KnownSeries { generation: self.generation, id, key: schema.layout().series_key(&tsuid) })
    }
}

/// A schema's error as one point's problem.
pub(crate) fn schema_problem(error: &basalt_schema::Error) -> Problem {
    use basalt_schema::Error;
    let text = error.to_string().into();
    match (error, error.kind()) {
        (Error::Store(error), _) => store_problem(error),
        // Sent again, the point fares no better.
        (Error::NameFiltered { .. } | Error::UidsExhausted { .. }, _) => Problem::NameRefused { text },
        (_, ErrorKind::NotFound) => Problem::UnknownName { text },
        (_, ErrorKind::Throttled) => Problem::Throttled { text },
        (_, kind) => Problem::Storage { kind, text },
    }
}

#[cfg(test)]
mod tests;
