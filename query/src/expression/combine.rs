//! Series joined in rows and computed point by point.
//!
//! Every row has a value at every instant where one of the series taken has a point; in place of a point that is not
//! there, or is not a number, its column's fill value is used. *Source*: OpenTSDB 2.4 `ExpressionIterator`,
//! `TimeSyncedIterator`, `EDPtoDPS`.

use basalt_schema::{JAVA_MAP_CAPACITY, java_map_order};

use crate::answer::{Number, Point};
use crate::cancel::Budget;
use crate::dataset::Dataset;
use crate::{Error, Result};

use super::join::{Column, Row};
use super::program::Program;

/// Instants computed between two looks at the budget.
const INSTANTS_PER_CHECK: usize = 1024;

/// What to compute over joined series.
#[derive(Debug)]
pub(crate) struct Combine<'a> {
    /// The variables' series, in the order of the program's variables.
    pub(crate) columns: &'a [Column<'a>],
    /// In which order OpenTSDB looks at the columns: places in `columns`. The first lends a row its tags.
    pub(crate) order: &'a [usize],
    pub(crate) program: &'a Program,
    /// A series that a row lacks is zero whatever its column's fill, and lends no tags; else it is filled.
    pub(crate) strict: bool,
    pub(crate) budget: &'a Budget,
}

impl Combine<'_> {
    /// A series for each row.
    ///
    /// # Errors
    /// `Invalid`: more points than may be made up. A budget.
    pub(crate) fn by_time(&self, rows: &[Row]) -> Result<Vec<Dataset>> {
        let series = rows.iter().flat_map(|row| self.members(row)).flatten();
        let times = instants(series, self.budget)?;
        let points = made_up(times.len(), rows.len(), self.budget)?;
        self.budget.reserve(points.saturating_mul(size_of::<Point>() as u64))?;
        rows.iter().map(|row| self.described(row, self.aligned(row, &times)?)).collect()
    }

    /// As [`Combine::by_time`], but each row has values at the instants of its own series alone.
    ///
    /// # Errors
    /// As [`Combine::by_time`].
    pub(crate) fn by_time_of_each(&self, rows: &[Row]) -> Result<Vec<Dataset>> {
        let each = rows.iter().map(|row| self.by_time(std::slice::from_ref(row)));
        Ok(each.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    /// As [`Combine::by_time_of_each`], but of series of one length the points of one place are taken for one instant, the
    /// earliest of theirs: what OpenTSDB's functions of several series do.
    ///
    /// # Errors
    /// As [`Combine::by_time`].
    pub(crate) fn by_place(&self, rows: &[Row]) -> Result<Vec<Dataset>> {
        let mut made = Vec::with_capacity(rows.len());
        for row in rows {
            let members: Vec<&[Point]> = self.members(row).flatten().map(|series| series.points.as_slice()).collect();
            let length = members.first().map_or(0, |points| points.len());
            if members.iter().any(|points| points.len() != length) {
                made.extend(self.by_time(std::slice::from_ref(row))?);
                continue;
            }
            self.budget.reserve(length.saturating_mul(size_of::<Point>()) as u64)?;
            let earliest =
                |place| members.iter().filter_map(|points| points.get(place)).map(|point: &Point| point.time_ms).min();
            let mut stack = Vec::new();
            let points = (0..length).filter_map(|place| {
                let value = |(column, series): (&Column<'_>, Option<&Dataset>)| {
                    let point = series.and_then(|series| series.points.get(place));
                    self.value(column, series.is_some(), point)
                };
                let values: Vec<f64> = self.columns.iter().zip(self.members(row)).map(value).collect();
                Some(Point { time_ms: earliest(place)?, number: Number::Double(self.program.run(&values, &mut stack)) })
            });
            made.push(self.described(row, points.collect())?);
        }
        Ok(made)
    }

    fn members<'b>(&'b self, row: &'b Row) -> impl Iterator<Item = Option<&'b Dataset>> {
        let pick =
            |(column, member): (&'b Column<'_>, &Option<usize>)| member.and_then(|index| column.series.get(index));
        self.columns.iter().zip(row).map(pick)
    }

    fn aligned(&self, row: &Row, times: &[i64]) -> Result<Vec<Point>> {
        let mut rests: Vec<Option<&[Point]>> =
            self.members(row).map(|series| series.map(|series| series.points.as_slice())).collect();
        let mut values = Vec::with_capacity(rests.len());
        let mut stack = Vec::new();
        let mut points = Vec::with_capacity(times.len());
        for (count, time_ms) in times.iter().enumerate() {
            if count.is_multiple_of(INSTANTS_PER_CHECK) {
                self.budget.check()?;
            }
            values.clear();
            for (column, rest) in self.columns.iter().zip(&mut rests) {
                let point = match rest {
                    Some([first, after @ ..]) if first.time_ms == *time_ms => {
                        *rest = Some(after);
                        Some(first)
                    }
                    _ => None,
                };
                values.push(self.value(column, rest.is_some(), point));
            }
            points.push(Point { time_ms: *time_ms, number: Number::Double(self.program.run(&values, &mut stack)) });
        }
        Ok(points)
    }

    fn value(&self, column: &Column<'_>, present: bool, point: Option<&Point>) -> f64 {
        if !present && self.strict {
            return 0.0;
        }
        let value = point.map_or(f64::NAN, |point| point.number.as_double());
        if value.is_nan() { column.fill } else { value }
    }

    /// The series of a row. The memory of its points is reserved already.
    fn described(&self, row: &Row, points: Vec<Point>) -> Result<Dataset> {
        let identity = self.identity(row);
        self.budget.reserve(identity.description_bytes())?;
        Ok(Dataset { points, ..identity })
    }

    /// What a row is of: the tags of its first member, the keys and metrics of all.
    fn identity(&self, row: &Row) -> Dataset {
        let members: Vec<Option<&Dataset>> = self.members(row).collect();
        let in_order = || self.order.iter().map(|place| members.get(*place).copied().flatten());
        let first = if self.strict { in_order().next().flatten() } else { in_order().flatten().next() };
        let mut dataset = Dataset { lists_annotations: self.strict, ..Dataset::default() };
        dataset.tags = first.map(|first| first.tags.clone()).unwrap_or_default();
        for member in in_order().flatten() {
            dataset.metrics.extend(&member.metrics);
            dataset.aggregated.extend(&member.aggregated);
            dataset.tsuids.extend_from_slice(&member.tsuids);
        }
        dataset.tsuids.sort_unstable();
        dataset.tsuids.dedup();
        dataset
    }
}

/// Every instant of some series, ascending. *Cost*: a sort of all their points; of series of one clock, the common case, a comparison.
/// Memory is reserved while they are looked for; what is found is the caller's to reserve.
///
/// # Errors
/// A budget.
pub(crate) fn instants<'a>(series: impl Iterator<Item = &'a Dataset>, budget: &Budget) -> Result<Vec<i64>> {
    let (mut times, mut others): (Vec<i64>, Vec<i64>) = (Vec::new(), Vec::new());
    let bytes = |instants: usize| instants.saturating_mul(size_of::<i64>()) as u64;
    let merge = |times: &mut Vec<i64>, others: &mut Vec<i64>| {
        times.append(others);
        times.sort_unstable();
        let all = times.len();
        times.dedup();
        budget.give_back(bytes(all - times.len()));
    };
    for series in series {
        budget.check()?;
        let own = series.points.iter().map(|point| point.time_ms);
        if !own.clone().eq(times.iter().copied()) {
            budget.reserve(bytes(own.len()))?;
            others.extend(own);
        }
        // Not for each series: each merge is paid for by as many instants as it goes through.
        if others.len() > times.len() {
            merge(&mut times, &mut others);
        }
    }
    merge(&mut times, &mut others);
    budget.give_back(bytes(times.len()));
    Ok(times)
}

/// How many values series have that have one at each of these instants.
///
/// # Errors
/// `Invalid`: more than may be made up.
pub(crate) fn made_up(instants: usize, series: usize, budget: &Budget) -> Result<u64> {
    let limit = budget.limits().made_up_points_max();
    let points = (instants as u64).saturating_mul(series as u64);
    if points > limit { Err(Error::TooManyMadeUp { limit }) } else { Ok(points) }
}

/// The order in which OpenTSDB looks at the inputs of a function or expression, which are given to it in the order of
/// `names`: three hash tables, one filled from the other.
pub(crate) fn order_of(names: &[&str]) -> Vec<usize> {
    let mut order: Vec<(usize, &str)> = names.iter().copied().enumerate().collect();
    for capacity in [JAVA_MAP_CAPACITY, names.len(), names.len()] {
        java_map_order(&mut order, capacity, |(_, name)| name);
    }
    order.into_iter().map(|(place, _)| place).collect()
}
