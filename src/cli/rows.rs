//! The data rows that a command line's queries select, read straight from the table.

use basalt_query::{Aggregator, FilterKind, Matcher, SubQuery};
use basalt_schema::{BaseTime, DATA_FAMILY, KeyLayout, Salt, Schema, Uid, UidKind};
use basalt_store::{Columns, ErrorKind, RowBatch, RowView, Scan};

use super::words::Words;
use crate::exit::{Exit, Failure};
use crate::store::failed;

/// The rows of one metric, some hours and some tags.
#[derive(Debug)]
pub(super) struct Rows {
    layout: KeyLayout,
    metric: Uid,
    from: BaseTime,
    to: BaseTime,
    tags: Vec<(Uid, Values)>,
}

/// What a row's tag of some key may be.
#[derive(Debug)]
enum Values {
    Any,
    OneOf(Vec<Uid>),
    /// Those whose names are taken.
    Named(Matcher),
    /// The row may not have the key.
    Absent,
}

impl Rows {
    /// Those of each query, all of which are looked at before rows of any are: some callers delete.
    ///
    /// # Errors
    ///
    /// Exit code 1: a name that is unknown, a regular expression that cannot be read. Exit code 2: an end before the start, or a
    /// function that is none, as where a word was left out and another stands in its place.
    pub(super) fn of_all(schema: &Schema, words: &Words) -> Result<Vec<Self>, Failure> {
        let Words { start_ms, end_ms, queries, .. } = words;
        if end_ms < start_ms {
            return Err(Failure::new(Exit::Usage, "END lies before START; see --help"));
        }
        for name in queries.iter().filter_map(|query| query.aggregator.as_deref()) {
            if Aggregator::by_name(name).is_none() {
                let line = format!("FUNC is left out before METRIC, or unknown: `{name}` is no function; see --help");
                return Err(Failure::new(Exit::Usage, line));
            }
        }
        queries.iter().map(|query| Self::of(schema, words, query)).collect()
    }

    /// Those of one query: whole hours from the start's to the end's.
    fn of(schema: &Schema, words: &Words, query: &SubQuery) -> Result<Self, Failure> {
        let uid = |kind: UidKind, name: &str| schema.uids().of(kind).uid(name);
        let unknown = |cause: basalt_schema::Error| failed("cannot select rows", &cause);
        let metric = uid(UidKind::Metric, query.metric.as_deref().unwrap_or_default()).map_err(unknown)?;
        let mut tags = Vec::new();
        for filter in &query.filters {
            let key = match uid(UidKind::Tagk, filter.tagk()) {
                // Nothing has it.
                Err(cause) if cause.kind() == ErrorKind::NotFound && filter.kind() == FilterKind::NotKey => continue,
                key => key.map_err(unknown)?,
            };
            let values = match filter.kind() {
                FilterKind::NotKey => Values::Absent,
                FilterKind::LiteralOr => {
                    let names = filter.text().split('|').filter(|name| !name.is_empty());
                    Values::OneOf(
                        names.map(|name| uid(UidKind::Tagv, name)).collect::<Result<_, _>>().map_err(unknown)?,
                    )
                }
                _ if filter.is_any_value() => Values::Any,
                _ => {
                    let matcher = Matcher::compile(filter, words.compat);
                    Values::Named(matcher.map_err(|cause| Failure::new(Exit::Failure, cause.to_string()))?)
                }
            };
            tags.push((key, values));
        }
        let base = |ms: i64| BaseTime::of_seconds(u32::try_from(ms / 1000).unwrap_or(u32::MAX));
        let last = base(words.end_ms);
        Ok(Self { layout: schema.layout(), metric, from: base(words.start_ms), to: last.next().unwrap_or(last), tags })
    }

    /// One scan a bucket.
    fn scans(&self) -> impl Iterator<Item = Scan> + '_ {
        self.layout.salts().map(|salt: Salt| {
            let start = self.layout.range_start(salt, self.metric, self.from);
            let stop = self.layout.range_start(salt, self.metric, self.to);
            Scan::range(start, stop)
        })
    }

    /// Whether a row has the tags that were asked for. Of a value without a name nobody can tell.
    ///
    /// # Errors
    ///
    /// The store's own.
    fn has(&self, schema: &Schema, row: &RowView<'_>) -> Result<bool, Failure> {
        let Ok(key) = self.layout.decode(row.key()) else { return Ok(true) };
        for (tagk, values) in &self.tags {
            let value = key.pairs().find(|pair| pair.key == *tagk).map(|pair| pair.value);
            let has = match (values, value) {
                (Values::Absent, value) => value.is_none(),
                (_, None) => false,
                (Values::Any, Some(_)) => true,
                (Values::OneOf(values), Some(value)) => values.contains(&value),
                (Values::Named(matcher), Some(value)) => match schema.uids().of(UidKind::Tagv).name(value) {
                    Ok(name) => matcher.takes(&name),
                    Err(cause) if cause.kind() == ErrorKind::NotFound => false,
                    Err(cause) => return Err(failed("cannot select rows", &cause)),
                },
            };
            if !has {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Calls `each` with the rows of each batch, in key order within each bucket.
    ///
    /// # Errors
    ///
    /// The store's own, and those of `each`, which end the scan.
    pub(super) fn for_each(
        &self,
        schema: &Schema,
        each: &mut dyn FnMut(&[RowView<'_>]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.scans().try_for_each(|scan| {
            batches(schema, scan, &mut |batch| {
                let selected = batch.rows().filter_map(|row| match self.has(schema, &row) {
                    Ok(has) => has.then_some(Ok(row)),
                    Err(cause) => Some(Err(cause)),
                });
                each(&selected.collect::<Result<Vec<_>, _>>()?)
            })
        })
    }
}

/// The data family's cells, whose blocks need not stay in the cache.
fn uncached(scan: Scan) -> Scan {
    Scan { cache_blocks: false, ..scan.with_columns(Columns::family(DATA_FAMILY)) }
}

/// Every row of the data table, batch by batch.
///
/// # Errors
///
/// As [`Rows::for_each`].
pub(super) fn batches(
    schema: &Schema,
    scan: Scan,
    each: &mut dyn FnMut(&RowBatch) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let failing = |cause: basalt_store::Error| failed("cannot read the data table", &cause.into());
    let mut scanner = schema.store().scan(&schema.tables().data, uncached(scan)).map_err(failing)?;
    while let Some(batch) = scanner.next_wait().transpose().map_err(failing)? {
        each(&batch)?;
    }
    Ok(())
}
