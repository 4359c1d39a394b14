//! Commands that change cells.

use basalt_store::{Append, Durability, Filter, Increment, ListOperator, MutationBatch, Scan, TableName, Timestamp};
use bytes::Bytes;
use serde_json::json;

use super::arguments::{Arguments, Options};
use super::binary::string_binary;
use super::column::Column;
use super::error::{Error, Place, Result};
use super::session::Session;
use super::value::{Data, Value};

/// How many rows `deleteall` by prefix changes with one batch.
const DELETE_ROWS_COUNT: usize = 1_000;

/// `put`
pub(super) fn put(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let at = arguments.at;
    let table = arguments.table()?;
    let row = arguments.required("row")?.bytes("the row")?;
    let column = Column::of(&arguments.required("column")?)?;
    let value = arguments.required("value")?.bytes("the value")?;
    let time = time(&mut arguments)?;
    arguments.options()?.end("")?;
    let mut batch = MutationBatch::new(Durability::default());
    batch
        .row(&row)
        .and_then(|mut cells| cells.put(&column.family, column.qualifier(), time, &value).map(drop))
        .map_err(Error::store(at))?;
    session.apply(at, &table, batch)
}

/// `delete`
pub(super) fn delete(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let at = arguments.at;
    let table = arguments.table()?;
    let row = arguments.required("row")?.bytes("the row")?;
    let column = arguments.required("column")?;
    let place = column.at;
    let column = Column::of(&column)?;
    let time = time(&mut arguments)?;
    arguments.options()?.end("")?;
    let mut batch = MutationBatch::new(Durability::default());
    let mut cells = batch.row(&row).map_err(Error::store(at))?;
    let marked = match (&column.qualifier, time) {
        (Some(qualifier), _) => cells.delete(&column.family, qualifier, time),
        (None, Some(time)) => cells.delete_family_version(&column.family, time),
        (None, None) => {
            return Err(Error::wrong(
                place,
                "one version of a family needs its time; deleteall deletes a whole family",
            ));
        }
    };
    marked.map(drop).map_err(Error::store(at))?;
    session.apply(at, &table, batch)
}

/// `deleteall`
pub(super) fn deleteall(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let at = arguments.at;
    let table = arguments.table()?;
    let target = arguments.required("row")?;
    let column = arguments.optional().filter(|column| !matches!(&column.data, Data::Text(text) if text.is_empty()));
    let column = column.as_ref().map(Column::of).transpose()?;
    let time = time(&mut arguments)?;
    arguments.options()?.end("")?;
    let families = session.described(at, &table)?.families.into_iter().map(|family| family.name).collect();
    let delete = RowDelete { families, column, time };
    let Data::Map(pairs) = target.data else {
        let mut batch = MutationBatch::new(Durability::default());
        delete.push(&mut batch, &target.bytes("the row")?).map_err(Error::store(at))?;
        return session.apply(at, &table, batch);
    };
    let mut options = Options::new(pairs);
    let Some(prefix) = options.take("ROWPREFIXFILTER") else {
        return Err(Error::wrong(target.at, "ROWPREFIXFILTER => 'PREFIX' is expected here"));
    };
    // How many rows HBase deletes at a time.
    options.take("CACHE");
    options.end("ROWPREFIXFILTER")?;
    delete_prefix(session, at, &table, &prefix.bytes("ROWPREFIXFILTER")?, &delete)
}

/// What `deleteall` deletes of a row.
struct RowDelete {
    /// The table's families.
    families: Vec<Bytes>,
    /// Only this column, or this family.
    column: Option<Column>,
    time: Option<Timestamp>,
}

impl RowDelete {
    fn push(&self, batch: &mut MutationBatch, row: &[u8]) -> basalt_store::Result<()> {
        let mut cells = batch.row(row)?;
        match &self.column {
            Some(Column { family, qualifier: Some(qualifier) }) => {
                cells.delete_column(family, qualifier, self.time)?;
            }
            Some(Column { family, qualifier: None }) => {
                cells.delete_family(family, self.time)?;
            }
            None => {
                for family in &self.families {
                    cells.delete_family(family, self.time)?;
                }
            }
        }
        Ok(())
    }
}

/// Deletes the rows that begin so, as they come by.
fn delete_prefix(session: &Session<'_>, at: Place, table: &TableName, prefix: &[u8], delete: &RowDelete) -> Result<()> {
    if prefix.is_empty() {
        return Err(Error::wrong(at, "an empty prefix is every row: truncate the table"));
    }
    let keys_only = Filter::List(ListOperator::All, vec![Filter::FirstKeyOnly, Filter::KeyOnly]);
    let scan = Scan::prefix(prefix).with_filter(keys_only);
    let mut scanner = session.store.scan(table, scan).map_err(Error::store(at))?;
    let mut batch = MutationBatch::new(Durability::default());
    while let Some(rows) = scanner.next_wait() {
        for row in rows.map_err(Error::store(at))?.rows() {
            delete.push(&mut batch, row.key()).map_err(Error::store(at))?;
            if batch.rows().len() >= DELETE_ROWS_COUNT {
                let full = std::mem::replace(&mut batch, MutationBatch::new(Durability::default()));
                session.apply(at, table, full)?;
            }
        }
    }
    if batch.is_empty() { Ok(()) } else { session.apply(at, table, batch) }
}

/// `incr`
pub(super) fn incr(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let at = arguments.at;
    let table = arguments.table()?;
    let row = arguments.required("row")?.bytes("the row")?;
    let column = Column::of(&arguments.required("column")?)?;
    let amount = arguments.optional().map_or(Ok(1), |amount| amount.integer("the amount"))?;
    arguments.options()?.end("")?;
    let qualifier = column.qualifier.unwrap_or_default();
    let increment = Increment { row, family: column.family, qualifier, amount, durability: Durability::default() };
    let counter = session.store.increment(&table, increment).wait().map_err(Error::store(at))?;
    session.print(at, |printer| printer.answer(&format!("COUNTER VALUE = {counter}"), || json!({"counter": counter})))
}

/// `append`
pub(super) fn append(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let at = arguments.at;
    let table = arguments.table()?;
    let row = arguments.required("row")?.bytes("the row")?;
    let column = Column::of(&arguments.required("column")?)?;
    let value = arguments.required("value")?.bytes("the value")?;
    arguments.options()?.end("")?;
    let qualifier = column.qualifier.unwrap_or_default();
    let append = Append { row, family: column.family, qualifier, value, durability: Durability::default() };
    let value = session.store.append(&table, append).wait().map_err(Error::store(at))?;
    let value = string_binary(&value);
    session.print(at, |printer| printer.answer(&format!("CURRENT VALUE = {value}"), || json!({"value": value})))
}

/// The time that may come next.
fn time(arguments: &mut Arguments) -> Result<Option<Timestamp>> {
    arguments.optional().as_ref().map(timestamp).transpose()
}

/// A value as a cell's time.
pub(super) fn timestamp(value: &Value) -> Result<Timestamp> {
    value.number("TIMESTAMP", 0).map(Timestamp)
}
