//! The data rows that a command line's queries select, read straight from the table.

use basalt_query::{FilterKind, SubQuery};
use basalt_schema::{BaseTime, DATA_FAMILY, KeyLayout, Salt, Schema, Uid, UidKind};
use basalt_store::{Columns, RowBatch, RowView, Scan};

use super::folder::failed;
use super::words::Words;
use crate::exit::Failure;

/// The rows of one metric, some hours and some tags.
#[derive(Debug)]
pub(super) struct Rows {
    layout: KeyLayout,
    metric: Uid,
    from: BaseTime,
    to: BaseTime,
    /// Tag key and the values that it may have; none: any.
    tags: Vec<(Uid, Option<Vec<Uid>>)>,
}

impl Rows {
    /// Those of one query: whole hours from the start's to the end's.
    ///
    /// # Errors
    ///
    /// Exit code 1: a name that is unknown.
    pub(super) fn of(schema: &Schema, words: &Words, query: &SubQuery) -> Result<Self, Failure> {
        let uid = |kind: UidKind, name: &str| schema.uids().of(kind).uid(name);
        let unknown = |cause: basalt_schema::Error| failed("cannot select rows", &cause);
        let metric = uid(UidKind::Metric, query.metric.as_deref().unwrap_or_default()).map_err(unknown)?;
        let mut tags = Vec::new();
        for filter in &query.filters {
            let key = uid(UidKind::Tagk, filter.tagk()).map_err(unknown)?;
            // As OpenTSDB's scanner: literals select rows, all else asks for the key only.
            let values = match filter.kind() {
                FilterKind::LiteralOr => {
                    let names = filter.text().split('|').filter(|name| !name.is_empty());
                    Some(names.map(|name| uid(UidKind::Tagv, name)).collect::<Result<_, _>>().map_err(unknown)?)
                }
                _ => None,
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

    /// Whether a row has the tags that were asked for.
    fn has(&self, row: &RowView<'_>) -> bool {
        let Ok(key) = self.layout.decode(row.key()) else { return true };
        self.tags.iter().all(|(tagk, values)| {
            key.pairs().any(|pair| pair.key == *tagk && values.as_ref().is_none_or(|v| v.contains(&pair.value)))
        })
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
            batches(schema, scan, &mut |batch| each(&batch.rows().filter(|row| self.has(row)).collect::<Vec<_>>()))
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
