//! Commands about a table's regions.

use basalt_store::{RegionInfo, SplitAt, TableName};
use bytes::Bytes;
use serde_json::json;

use super::arguments::Arguments;
use super::binary::string_binary;
use super::error::{Error, Result};
use super::session::Session;

/// The columns of `list_regions`.
const HEAD: [&str; 5] = ["REGION_NAME", "START_KEY", "END_KEY", "SIZE", "REQ"];

/// `split`
pub(super) fn split(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let at = arguments.at;
    let named = arguments.required("table or region name")?;
    let key = arguments.optional().map(|key| key.bytes("the split key")).transpose()?;
    arguments.end()?;
    let (table, region) = region_named(&named.bytes("the name")?, &named)?;
    let where_to = match key {
        Some(key) => SplitAt::Key(key),
        None => SplitAt::MiddleOf(region),
    };
    let key = session.store.split_region(&table, &where_to).map_err(Error::store(at))?;
    let told = string_binary(&key);
    session.print(at, |printer| {
        printer.answer(&format!("Split {table} at {told}"), || json!({"table": table.to_string(), "split": told}))
    })
}

/// A table, or a region's name `table,start,id` as `list_regions` prints it: the table and a row of the region.
fn region_named(name: &Bytes, value: &super::value::Value) -> Result<(TableName, Bytes)> {
    let comma = |at: Option<usize>| at.unwrap_or(name.len());
    let first = comma(name.iter().position(|byte| *byte == b','));
    let last = comma(name.iter().rposition(|byte| *byte == b','));
    let table = String::from_utf8_lossy(name.get(..first).unwrap_or_default()).into_owned();
    let row = name.get(first + 1..last).map(Bytes::copy_from_slice).unwrap_or_default();
    Ok((table.parse().map_err(Error::store(value.at))?, row))
}

/// `list_regions`
pub(super) fn list(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let at = arguments.at;
    let table = arguments.table()?;
    arguments.end()?;
    let regions = session.store.regions(&table).map_err(Error::store(at))?;
    let rows: Vec<[String; 5]> = regions.iter().map(|region| row(&table, region)).collect();
    let widths: Vec<usize> = HEAD
        .iter()
        .enumerate()
        .map(|(i, head)| rows.iter().filter_map(|row| row.get(i)).map(String::len).fold(head.len(), usize::max))
        .collect();
    let line = |cells: &[String]| {
        let cells = cells.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join(" | ").trim_end().to_owned()
    };
    session.print(at, |printer| {
        printer.line(&line(&HEAD.map(str::to_owned)))?;
        for (region, row) in regions.iter().zip(&rows) {
            printer.answer(&line(row), || as_json(&table, region, row))?;
        }
        printer.count(rows.len() as u64)
    })
}

fn row(table: &TableName, region: &RegionInfo) -> [String; 5] {
    let (start, end) = (string_binary(&region.start), string_binary(&region.end));
    let size = region.file_bytes.saturating_add(region.memtable_bytes);
    let requests = region.reads_count.saturating_add(region.writes_count);
    [format!("{table},{start},{}", region.id), start, end, size.to_string(), requests.to_string()]
}

fn as_json(table: &TableName, region: &RegionInfo, [name, start, end, ..]: &[String; 5]) -> serde_json::Value {
    json!({
        "table": table.to_string(),
        "region": name,
        "start": start,
        "end": end,
        "file_bytes": region.file_bytes,
        "memtable_bytes": region.memtable_bytes,
        "files": region.files_count,
        "reads": region.reads_count,
        "writes": region.writes_count,
    })
}
