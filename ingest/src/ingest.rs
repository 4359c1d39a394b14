//! The facade: points in, a report out.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;

use basalt_schema::{BaseTime, Schema, SeriesId, TagPair, Tsuid, UidKind, point_cell};
use basalt_store::{Applied, ErrorKind, Lane, Pending, Store};

use crate::check::{Measured, SeriesNames, check_measured, check_metric, check_names, known_integer, metric_of};
use crate::inflight::{Inflight, Permit};
use crate::put_body::parse_known;
use crate::put_line::parse_known_lines;
use crate::put_lines::parse_known_block;
use crate::raw_point::{RawPoint, RawTags};
use crate::report::PointError;
use crate::series_cache::{KnownSeries, SeriesCache};
use crate::spelling::Fingerprint;
use crate::stage::{PointCells, Stage};
use crate::submission::{Part, Submission, SubmissionParts, Work, store_problem};
use crate::{Door, Error, IngestLimits, IngestStats, Outcome, Problem, ProblemClass, Result};

/// Takes points in. A process has one, which all doors share by `Arc` or by reference.
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
    listener: Option<Arc<dyn RowListener>>,
}

/// Is told which rows points go to, when the points are handed to the store, so before they are stored.
pub trait RowListener: Send + Sync + Debug {
    /// Rows of one batch, each once.
    fn rows_written(&self, rows: &mut dyn Iterator<Item = (SeriesId, BaseTime)>);
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
            listener: None,
            schema,
            store,
            limits,
        }
    }

    /// The same, with a listener that is told which rows points go to. It is not told of rows that points are appended to.
    #[must_use]
    pub fn with_listener(self, listener: Arc<dyn RowListener>) -> Self {
        Self { listener: Some(listener), ..self }
    }

    /// The bounds.
    pub const fn limits(&self) -> &IngestLimits {
        &self.limits
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
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

    /// Forgets the spellings of some series, which may leave the index then. *Cost*: a look at all spellings; those who add one wait for
    /// 4,096 at a time.
    pub fn forget(&self, goes: &dyn Fn(SeriesId) -> bool) {
        self.series.forget(goes);
    }

    /// Counts a line that was no point: received and rejected.
    pub fn reject_line(&self, door: Door, problem: &Problem) {
        self.stats.receive(door, 1);
        self.stats.settle(door, Outcome::Not(problem.class()), 1);
    }

    /// Counts points that nobody may look up the names of now, as `limit` others are at it, and gives the error to answer with.
    pub fn turn_away(&self, points: usize, limit: usize, door: Door) -> Error {
        self.stats.receive(door, points as u64);
        self.stats.settle(door, Outcome::Not(ProblemClass::Throttled), points as u64);
        Error::Throttled { what: "puts with new names", limit: limit as u64 }
    }

    /// Parses a put body as [`parse_put`](crate::parse_put) does, and looks up the spellings of series while it reads: the tags of
    /// a known spelling are not parsed.
    ///
    /// *Cost*: one pass, one allocation a body; a look-up a point.
    ///
    /// # Errors
    /// As [`parse_put`](crate::parse_put).
    pub fn parse_put<'a>(&self, text: &'a str) -> Result<Vec<RawPoint<'a>>> {
        parse_known(text, &self.limits, &self.series.read(self.schema.uids().generation()))
    }

    /// Parses lines as [`parse_put_line`](crate::parse_put_line) does, each by itself; the tags of known spellings are not
    /// parsed.
    pub fn parse_put_lines<'a>(
        &self,
        lines: impl Iterator<Item = &'a str> + Clone,
    ) -> Vec<std::result::Result<RawPoint<'a>, Problem>> {
        parse_known_lines(lines, &self.series.read(self.schema.uids().generation()))
    }

    /// Parses a block of whole put lines as [`Ingest::parse_put_lines`] does;
    /// `None` unless each is a put of a series that is known by its spelling.
    pub fn parse_known_block<'a>(&self, block: &'a [u8]) -> Option<Vec<RawPoint<'a>>> {
        parse_known_block(block, &self.series.read(self.schema.uids().generation()))
    }

    /// Checks points, resolves their series, and hands the good ones to the store as one batch.
    ///
    /// One bad point is one entry of the report and does not affect the others. *Cost*: for a point of a known series, one look-up
    /// and no I/O. For a new series the names are looked up in the UID table, or added to it, which blocks: on a thread of tokio,
    /// call this inside `block_in_place`, or call [`Ingest::submit_known`] first. Once the store was unavailable it is asked for no
    /// other name of the batch: all points of unknown spellings after that fail alike.
    ///
    /// # Errors
    /// `Throttled`: too much is under way. No point is taken; all count as failed.
    pub fn submit(&self, points: &[RawPoint<'_>], door: Door) -> Result<Submission> {
        Ok(self.submit_permitted(points, door, self.permit_of(points.iter(), door)?))
    }

    /// Does the same as [`Ingest::submit`] with a permit that the points have already.
    pub fn submit_permitted(&self, points: &[RawPoint<'_>], door: Door, permit: Permit) -> Submission {
        let _writing = self.schema.index().writing();
        let (stage, errors) = self.stage(points, door);
        self.stats.receive(door, points.len() as u64);
        self.hand_over((stage, errors), (door, None), permit)
    }

    /// Counts points as under way before they are submitted: whoever keeps them and waits for something takes the permit first.
    ///
    /// # Errors
    /// As [`Ingest::submit`].
    pub fn permit_of<'p, 't: 'p>(
        &self,
        points: impl ExactSizeIterator<Item = &'p RawPoint<'t>>,
        door: Door,
    ) -> Result<Permit> {
        let count = points.len() as u64;
        let bytes = points.map(|point| point.text_bytes() as u64).sum();
        self.inflight.take(count, bytes).inspect_err(|_| {
            self.stats.receive(door, count);
            self.stats.settle(door, Outcome::Not(ProblemClass::Throttled), count);
        })
    }

    /// Does the same as [`Ingest::submit`] if that needs no read of the store. If it may need one, does nothing and gives `None`.
    ///
    /// # Errors
    /// As [`Ingest::submit`].
    pub fn submit_known(&self, points: &[RawPoint<'_>], door: Door) -> Result<Option<Submission>> {
        self.submit_if_known(points, door, None)
    }

    /// As [`Ingest::submit_known`], but the store may leave the points until an [`Ingest::push`] of this lane, which the caller must
    /// call.
    ///
    /// # Errors
    /// As [`Ingest::submit`].
    pub fn submit_held(&self, points: &[RawPoint<'_>], door: Door, lane: Lane) -> Result<Option<Submission>> {
        self.submit_if_known(points, door, Some(lane))
    }

    /// Makes the store apply and sync what was submitted as held in this lane. *Cost*: blocks for a write to disk.
    pub fn push(&self, lane: Lane) {
        self.store.push(lane);
    }

    fn submit_if_known(&self, points: &[RawPoint<'_>], door: Door, held: Option<Lane>) -> Result<Option<Submission>> {
        let config = self.schema.config();
        // Both write rows that they must read first.
        if config.appends || config.realtime.counts() {
            return Ok(None);
        }
        let permit = self.permit_of(points.iter(), door)?;
        let _writing = self.schema.index().writing();
        let Some((stage, errors)) = self.stage_known(points, door) else { return Ok(None) };
        self.stats.receive(door, points.len() as u64);
        Ok(Some(self.hand_over((stage, errors), (door, held), permit)))
    }

    fn hand_over(
        &self,
        (stage, errors): (Stage, Vec<PointError>),
        (door, held): (Door, Option<Lane>),
        permit: Permit,
    ) -> Submission {
        if self.schema.config().realtime.counts() {
            self.note_points(&stage);
        }
        let parts = self.write(stage, door, held);
        let stats = Arc::clone(&self.stats);
        Submission::new(SubmissionParts { parts, errors, door, stats, permit })
    }

    /// Hands staged points to the store: as one batch, or as one append for each row.
    fn write(&self, stage: Stage, door: Door, held: Option<Lane>) -> Vec<Part> {
        let (config, table) = (self.schema.config(), &self.schema.tables().data);
        if config.appends {
            let appends = stage.seal_appends().into_iter();
            return appends
                .map(|(staged, append)| Part { work: Work::Append(self.store.append(table, append)), staged })
                .collect();
        }
        if let Some(listener) = &self.listener {
            listener.rows_written(&mut stage.rows());
        }
        let cells = match (config.data_times, config.joins) {
            (Some(_), _) => PointCells::EachAtItsTime,
            (None, true) => PointCells::Joined,
            (None, false) => PointCells::Each,
        };
        let (staged, batch) = stage.seal(cells);
        let pending = match batch {
            Ok(batch) if batch.is_empty() => Pending::ready(Ok(Applied::default())),
            Ok(mut batch) => {
                if let Some(lane) = held {
                    batch.hold(lane);
                }
                self.store.apply(table, batch)
            }
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

    /// Stages the good points by row, and says what is wrong with the others.
    fn stage(&self, points: &[RawPoint<'_>], door: Door) -> (Stage, Vec<PointError>) {
        let mut staging = Staging::new(self, points, door);
        let mut resolver = Resolver::new(self, staging.generation);
        while let Some((index, point, measured)) = staging.next_unknown() {
            let resolved = resolver.series(point);
            staging.place(index, measured, resolved.as_ref().map_err(Clone::clone));
        }
        (staging.stage, staging.errors)
    }

    /// The same while no series is new.
    fn stage_known(&self, points: &[RawPoint<'_>], door: Door) -> Option<(Stage, Vec<PointError>)> {
        let mut staging = Staging::new(self, points, door);
        staging.next_unknown().is_none().then_some((staging.stage, staging.errors))
    }
}

/// Points on their way to their rows.
struct Staging<'a, 't> {
    ingest: &'a Ingest,
    points: std::iter::Enumerate<std::slice::Iter<'a, RawPoint<'t>>>,
    door: Door,
    /// Read before any name is resolved: a change of names after that makes the series resolved here stale.
    generation: u64,
    stage: Stage,
    errors: Vec<PointError>,
}

impl<'a, 't> Staging<'a, 't> {
    fn new(ingest: &'a Ingest, points: &'a [RawPoint<'t>], door: Door) -> Self {
        let generation = ingest.schema.uids().generation();
        let handles = ingest.schema.index().row_handles();
        let stage = Stage::with_capacity(points.len(), ingest.limits.durability, handles);
        Self { ingest, points: points.iter().enumerate(), door, generation, stage, errors: Vec::new() }
    }

    /// Moves to the next good point whose spelling is not known, and stages the good points before it.
    fn next_unknown(&mut self) -> Option<(usize, &'a RawPoint<'t>, Measured)> {
        let known = self.ingest.series.read(self.generation);
        while let Some((index, point)) = self.points.next() {
            // Fast path, for most points: an integer of a known series needs no other check.
            let measured = match known_integer(point) {
                Some(measured) => measured,
                None => match check_measured(point, self.door) {
                    Ok(measured) => measured,
                    Err(problem) => {
                        self.errors.push(PointError { index, problem });
                        continue;
                    }
                },
            };
            match known.series_of(point) {
                Some(series) => self.place(index, measured, Ok(series)),
                None => return Some((index, point, measured)),
            }
        }
        None
    }

    #[inline]
    fn place(
        &mut self,
        index: usize,
        Measured { time, value }: Measured,
        series: std::result::Result<&KnownSeries, Problem>,
    ) {
        let placed = series.and_then(|series| {
            let cell = point_cell(time, value, self.door.float_width()).map_err(|error| schema_problem(&error))?;
            self.stage.push(index, series, cell).map_err(|error| store_problem(&error))
        });
        if let Err(problem) = placed {
            self.errors.push(PointError { index, problem });
        }
    }
}

/// Resolves the series of spellings that are not known.
struct Resolver<'a, 't> {
    ingest: &'a Ingest,
    generation: u64,
    /// Spellings that have no series, so that the store is asked for each once a batch and not once a point.
    unresolved: HashMap<Fingerprint, Problem>,
    /// The store was away: it is asked no more for this batch, as each try may wait for as long as the first.
    unavailable: Option<Problem>,
    /// Tags that were resolved, by their text: a host sends all its metrics with the same tags.
    tags: HashMap<RawTags<'t>, Vec<TagPair>, foldhash::fast::RandomState>,
}

impl<'a, 't> Resolver<'a, 't> {
    fn new(ingest: &'a Ingest, generation: u64) -> Self {
        Self { ingest, generation, unresolved: HashMap::new(), unavailable: None, tags: HashMap::default() }
    }

    /// Checks and resolves a point's names, and remembers the series that they give.
    fn series(&mut self, point: &RawPoint<'t>) -> std::result::Result<KnownSeries, Problem> {
        let cache = &self.ingest.series;
        let fingerprint = cache.fingerprint_of(point);
        if let Some(problem) = self.unresolved.get(&fingerprint).or(self.unavailable.as_ref()) {
            return Err(problem.clone());
        }
        let resolved = self.resolve(point);
        match &resolved {
            Ok(series) => cache.insert(fingerprint, self.generation, series.clone()),
            Err(problem) if problem.is_unavailable() => self.unavailable = Some(problem.clone()),
            Err(problem) => drop(self.unresolved.insert(fingerprint, problem.clone())),
        }
        resolved
    }

    fn resolve(&mut self, point: &RawPoint<'t>) -> std::result::Result<KnownSeries, Problem> {
        let schema = &self.ingest.schema;
        let tsuid = self.tsuid(point)?;
        // The series goes into the index before any row of it is written: a row whose series is not there would not be found.
        let id = schema.index().add(&tsuid).map_err(|error| schema_problem(&error))?;
        schema.note_series(&tsuid);
        Ok(KnownSeries { id, key: schema.layout().series_key(&tsuid) })
    }

    fn tsuid(&mut self, point: &RawPoint<'t>) -> std::result::Result<Tsuid, Problem> {
        let Ingest { schema, limits, .. } = self.ingest;
        let (rules, widths) = (schema.rules(), schema.layout().widths);
        let uid_of =
            |metric: &str| schema.uid_for_write(UidKind::Metric, metric).map_err(|error| schema_problem(&error));
        // Fast path: tags that passed with another metric of this batch.
        if let Some(pairs) = self.tags.get(&point.tags) {
            let metric = check_metric(metric_of(point), rules, limits.name_bytes_max)?;
            return Ok(Tsuid::new(uid_of(&metric)?, pairs, widths));
        }
        let SeriesNames { metric, tags } = check_names(point, rules, limits.name_bytes_max)?;
        let tags: Vec<(&str, &str)> = tags.iter().map(|(key, value)| (&**key, &**value)).collect();
        let metric = uid_of(&metric)?;
        let pairs = schema.pairs_for_write(&tags).map_err(|error| schema_problem(&error))?;
        let tsuid = Tsuid::new(metric, &pairs, widths);
        self.tags.insert(point.tags, pairs);
        Ok(tsuid)
    }
}

/// A schema's error as one point's problem.
pub(crate) fn schema_problem(error: &basalt_schema::Error) -> Problem {
    use basalt_schema::Error;
    let text = error.to_string().into();
    match (error, error.kind()) {
        (Error::Store(error), _) => store_problem(error),
        // The same happens when the point is sent again.
        (Error::NameFiltered { .. } | Error::UidsExhausted { .. }, _) => Problem::NameRefused { text },
        (_, ErrorKind::NotFound) => Problem::UnknownName { text },
        (_, ErrorKind::Throttled) => Problem::Throttled { text },
        // What the tables can never hold, such as a rollup whose aggregation tag is one too many.
        (_, ErrorKind::Invalid) => Problem::Illegal { text },
        (_, kind) => Problem::Storage { kind, text },
    }
}

#[cfg(test)]
mod tests;
