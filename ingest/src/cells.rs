//! Histograms and rollups on their way to the store: each becomes one cell, in the table that it belongs to.
//!
//! They are rare compared with points. So their series are not remembered by spelling; the UID caches give the UIDs of their names.
//! As of points, all of a row are one entry of the batch: it is stored or refused whole, and of one column the last counts.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use basalt_schema::{BaseTime, ColumnKind, DATA_FAMILY, Rollup, RollupAggregate, Rollups, Tsuid, point_cell};
use basalt_store::{Applied, MutationBatch, Pending, TableName};

use crate::check::{SeriesNames, check_names};
use crate::histogram::{RawHistogram, check_histogram};
use crate::inflight::Permit;
use crate::ingest::{Ingest, schema_problem};
use crate::report::PointError;
use crate::rollup::{RawRollup, check_rollup};
use crate::stage::StagedRows;
use crate::submission::{Part, Submission, SubmissionParts, Work};
use crate::{Door, Problem, Result};

/// A cell, and the table and row it goes to.
struct Placed {
    table: TableName,
    key: Vec<u8>,
    qualifier: Vec<u8>,
    value: Vec<u8>,
    /// Its series, where that is noted as one of points is; of rollups OpenTSDB notes none.
    noted: Option<Tsuid>,
}

/// A row's key, and its cells in the order of arrival, each with its point's index.
type Row<'a> = (&'a [u8], Vec<&'a (usize, Placed)>);

impl Ingest {
    /// Checks histograms, resolves their series, and hands the good ones to the store.
    ///
    /// # Errors
    /// As [`Ingest::submit`].
    pub fn submit_histograms(&self, histograms: &[RawHistogram<'_>], door: Door) -> Result<Submission> {
        let permit = self.permit_of(histograms.iter().map(|histogram| &histogram.point), door)?;
        Ok(self.submit_permitted_histograms(histograms, door, permit))
    }

    /// Does the same as [`Ingest::submit_histograms`] with a permit that the points have already.
    pub fn submit_permitted_histograms(
        &self,
        histograms: &[RawHistogram<'_>],
        door: Door,
        permit: Permit,
    ) -> Submission {
        self.submit_cells(histograms.len(), door, permit, |index| match histograms.get(index) {
            Some(histogram) => self.place_histogram(histogram).map_err(|problem| late(problem, door)),
            None => Err(Problem::NullPoint),
        })
    }

    /// Checks rollups, resolves their series, and hands the good ones to the store.
    ///
    /// # Errors
    /// As [`Ingest::submit`].
    pub fn submit_rollups(&self, rollups: &[RawRollup<'_>], door: Door) -> Result<Submission> {
        let permit = self.permit_of(rollups.iter().map(|rollup| &rollup.point), door)?;
        Ok(self.submit_permitted_rollups(rollups, door, permit))
    }

    /// Does the same as [`Ingest::submit_rollups`] with a permit that the points have already.
    pub fn submit_permitted_rollups(&self, rollups: &[RawRollup<'_>], door: Door, permit: Permit) -> Submission {
        self.submit_cells(rollups.len(), door, permit, |index| match rollups.get(index) {
            Some(rollup) => self.place_rollup(rollup, door),
            None => Err(Problem::NullPoint),
        })
    }

    fn submit_cells(
        &self,
        count: usize,
        door: Door,
        permit: Permit,
        place: impl Fn(usize) -> std::result::Result<Placed, Problem>,
    ) -> Submission {
        self.stats().receive(door, count as u64);
        let _writing = self.schema().index().writing();
        let mut tables: BTreeMap<TableName, Vec<(usize, Placed)>> = BTreeMap::new();
        let mut errors = Vec::new();
        let mut unavailable = None;
        for index in 0..count {
            match unavailable.clone().map_or_else(|| place(index), Err) {
                Ok(placed) => tables.entry(placed.table.clone()).or_default().push((index, placed)),
                Err(problem) => {
                    // Asked no more, as each try may wait for as long as the first.
                    unavailable = problem.is_unavailable().then(|| problem.clone());
                    errors.push(PointError { index, problem });
                }
            }
        }
        self.note(tables.values().flatten().filter_map(|(_, placed)| placed.noted.as_ref()));
        let parts = tables.into_iter().map(|(table, cells)| self.write_cells(&table, &cells, door)).collect();
        Submission::new(SubmissionParts { parts, errors, door, stats: self.shared_stats(), permit })
    }

    fn write_cells(&self, table: &TableName, cells: &[(usize, Placed)], door: Door) -> Part {
        let (mut batch, mut made) = (MutationBatch::new(self.limits().durability), Ok(()));
        let mut staged = StagedRows::default();
        for (key, cells) in by_row(cells) {
            staged.add_row(cells.iter().map(|(index, _)| *index));
            let columns: BTreeMap<_, _> = cells.iter().map(|(_, cell)| (&cell.qualifier, &cell.value)).collect();
            staged.superseded += (cells.len() - columns.len()) as u64;
            made = made.and_then(|()| {
                let mut row = batch.row(key)?;
                columns
                    .into_iter()
                    .try_for_each(|(column, value)| row.put(DATA_FAMILY, column, None, value).map(|_| ()))
            });
        }
        let pending = match made {
            Ok(()) => self.store().apply(table, batch),
            Err(error) => Pending::<Applied>::ready(Err(error)),
        };
        self.stats().supersede(door, staged.superseded);
        Part { work: Work::Batch(pending), staged }
    }

    /// Meta objects and counters of series, where these are kept; durable with the cells.
    fn note<'a>(&self, series: impl Iterator<Item = &'a Tsuid>) {
        let mut counts = BTreeMap::<&Tsuid, u32>::new();
        for tsuid in series {
            *counts.entry(tsuid).or_default() += 1;
        }
        if counts.is_empty() {
            return;
        }
        for tsuid in counts.keys() {
            self.schema().note_series(tsuid);
        }
        let counts: Vec<_> = counts.into_iter().map(|(tsuid, count)| (tsuid.clone(), count)).collect();
        self.schema().note_points(&counts);
    }

    fn place_histogram(&self, histogram: &RawHistogram<'_>) -> std::result::Result<Placed, Problem> {
        // The daemon refuses histograms where no codec is configured, so this is not reached there.
        let id = self.schema().config().histogram_id.ok_or(Problem::Unreadable)?;
        let (time, value) = check_histogram(histogram, id)?;
        let names = check_names(&histogram.point, self.schema().rules(), self.limits().name_bytes_max)?;
        let (base, qualifier) = basalt_schema::histogram_column(time);
        let (tsuid, key) = self.row_of(&names, base)?;
        let table = self.schema().tables().data.clone();
        Ok(Placed { table, key, qualifier: qualifier.to_vec(), value, noted: Some(tsuid) })
    }

    fn place_rollup(&self, rollup: &RawRollup<'_>, door: Door) -> std::result::Result<Placed, Problem> {
        let checked = check_rollup(rollup, self.schema().config().rollups.as_ref(), door)?;
        let mut names = check_names(&rollup.point, self.schema().rules(), self.limits().name_bytes_max)?;
        if let Some((key, value)) = checked.tag {
            names.tags.retain(|(name, _)| **name != *key);
            names.tags.push((Cow::Owned(key), Cow::Owned(value)));
        }
        let table = checked.target.table.clone();
        let cell =
            point_cell(checked.time, checked.value, door.float_width()).map_err(|error| schema_problem(&error))?;
        let Some((interval, aggregate)) = checked.target.of else {
            let (_, key) = self.row_of(&names, cell.base)?;
            let (qualifier, value) = (cell.qualifier_bytes().to_vec(), cell.value().to_vec());
            return Ok(Placed { table, key, qualifier, value, noted: None });
        };
        let seconds = u32::try_from(rollup.point.timestamp).unwrap_or(u32::MAX);
        let column = interval.column(seconds, aggregate, cell.qualifier.kind);
        let (base, qualifier) = column.map_err(|slot| no_slot(interval, slot))?;
        if self.holds_points(&table) && ColumnKind::of(&qualifier) != ColumnKind::Unknown {
            return Err(no_rollup_beside_points(aggregate, &table));
        }
        let (_, key) = self.row_of(&names, BaseTime::from_be_bytes(base.to_be_bytes()))?;
        Ok(Placed { table, key, qualifier: qualifier.to_vec(), value: cell.value().to_vec(), noted: None })
    }

    /// Whether readers look for points in this table: its own, or the pre-aggregates without an interval.
    fn holds_points(&self, table: &TableName) -> bool {
        let config = self.schema().config();
        let default = config.rollups.as_ref().and_then(Rollups::default_rollup);
        *table == self.schema().tables().data || default.is_some_and(|default| default.preaggregate_table() == table)
    }

    /// A series, and the key of its row. The series is added to the index first.
    fn row_of(&self, names: &SeriesNames<'_>, base: BaseTime) -> std::result::Result<(Tsuid, Vec<u8>), Problem> {
        let schema = self.schema();
        let tags: Vec<(&str, &str)> = names.tags.iter().map(|(key, value)| (&**key, &**value)).collect();
        let tsuid = schema.resolve(&names.metric, &tags).map_err(|error| schema_problem(&error))?;
        schema.index().add(&tsuid).map_err(|error| schema_problem(&error))?;
        let key = schema.layout().series_key(&tsuid).row_key(base);
        Ok((tsuid, key))
    }

    fn shared_stats(&self) -> Arc<crate::IngestStats> {
        Arc::clone(self.stats_handle())
    }
}

/// Cells by row, in the order of their first cells.
fn by_row(cells: &[(usize, Placed)]) -> Vec<Row<'_>> {
    let (mut rows, mut places) = (Vec::<Row<'_>>::new(), HashMap::new());
    for cell in cells {
        let key = &*cell.1.key;
        let place = *places.entry(key).or_insert(rows.len());
        match rows.get_mut(place) {
            Some((_, cells)) => cells.push(cell),
            None => rows.push((key, vec![cell])),
        }
    }
    rows
}

/// A rollup whose row has no slot for it.
fn no_slot(interval: &Rollup, slot: u32) -> Problem {
    let (name, slots, most) = (interval.name(), interval.slots_count(), Rollup::SLOTS_MAX);
    let text = if slot >= slots {
        format!("Offset of {slot} was greater than the configured intervals {slots}")
    } else {
        format!(
            "Offset of {slot} has no place in a row, which has {most}: give the rollups of {name} a shorter rowSpan, with \
             new tables, or a longer interval"
        )
    };
    Problem::Illegal { text: text.into() }
}

/// A rollup that would lie among points and be read as an annotation, as appended points or as a histogram: a row with a damaged one
/// of these fails its queries.
fn no_rollup_beside_points(aggregate: &RollupAggregate, table: &TableName) -> Problem {
    let (name, id) = (aggregate.name(), aggregate.id());
    let text = format!(
        "Rollups of {name} have no place in {table}, which holds points: with the ID {id} they are read there as annotations, \
         appended points or histograms. Give the interval tables of its own"
    );
    Problem::Illegal { text: text.into() }
}

/// Over telnet OpenTSDB reports faults of a histogram's content and names as errors of its store.
fn late(problem: Problem, door: Door) -> Problem {
    if door != Door::Telnet || !problem.class().is_rejection() {
        return problem;
    }
    match problem {
        Problem::UnknownName { text } | Problem::Illegal { text } => Problem::Late { text },
        other => Problem::Late { text: other.argument_text().into() },
    }
}
