//! Series that others wrote: where tables are shared, the index knows what was seen and no more, so whoever needs all
//! series of a metric reads row keys first.

use std::ops::Range;

use basalt_schema::{BaseTime, DATA_FAMILY, Schema, Tsuid, Uid};
use basalt_store::{Columns, Filter, ListOperator, Scan, TableName};

use crate::Result;
use crate::cancel::Budget;
use crate::fetch::Hours;
use crate::rollup::Attempt;

/// The meta table's family.
const META_FAMILY: &[u8] = b"name";

/// Adds every series of a metric that has a row in the window.
///
/// # Errors
/// As [`within`].
pub(crate) fn of_attempt(schema: &Schema, metric: Uid, attempt: &Attempt, budget: &Budget) -> Result<()> {
    let Some(hours) = Hours::of(&attempt.window, attempt.read.as_ref()) else { return Ok(()) };
    within(schema, &attempt.table, metric, hours.from..hours.to, budget)
}

/// Adds every series of a metric that has a row of these base times.
///
/// *Cost*: a scan of the row keys of every bucket, one after the other.
///
/// # Errors
/// `Throttled`: the index is full. The store's own, a budget.
pub(crate) fn within(
    schema: &Schema,
    table: &TableName,
    metric: Uid,
    times: Range<BaseTime>,
    budget: &Budget,
) -> Result<()> {
    let layout = schema.layout();
    for salt in layout.salts() {
        let bound = |time| layout.range_start(salt, metric, time);
        let scan = Scan::range(bound(times.start), bound(times.end)).with_columns(Columns::family(DATA_FAMILY));
        keys(schema, table, scan, budget, |key| Ok(layout.decode(key)?.tsuid()))?;
    }
    Ok(())
}

/// Adds every series of a metric that the meta table tells of.
///
/// *Cost*: a scan of the metric's keys there.
///
/// # Errors
/// As [`within`].
pub(crate) fn in_meta(schema: &Schema, metric: Uid, budget: &Budget) -> Result<()> {
    let widths = schema.layout().widths;
    let scan = Scan::prefix(&metric.encode(widths.metric)).with_columns(Columns::family(META_FAMILY));
    keys(schema, &schema.tables().meta, scan, budget, |key| Tsuid::from_bytes(key, widths))
}

fn keys(
    schema: &Schema,
    table: &TableName,
    scan: Scan,
    budget: &Budget,
    read: impl Fn(&[u8]) -> basalt_schema::Result<Tsuid>,
) -> Result<()> {
    let keys_only = Filter::List(ListOperator::All, vec![Filter::FirstKeyOnly, Filter::KeyOnly]);
    let mut scanner = schema.store().scan(table, scan.with_filter(keys_only))?;
    while let Some(batch) = scanner.next_wait() {
        let batch = batch?;
        for row in batch.rows() {
            schema.index().add(&read(row.key())?)?;
        }
        budget.spend(0, batch.data_bytes() as u64)?;
    }
    Ok(())
}
