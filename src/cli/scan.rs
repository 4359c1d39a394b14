//! `basalt scan`: rows as they are stored, or as lines fit for `basalt import`.

use std::fmt::Write as _;

use basalt_schema::{
    ColumnKind, DATA_FAMILY, PointKind, RowCell, RowKey, RowPoints, Schema, SeriesNames, StoredPoint, Value,
    annotation_offset_ms,
};
use basalt_store::{CellView, Durability, MutationBatch, RowView};
use clap::Args;

use super::folder::with_rows;
use super::rows::Rows;
use super::words::Words;
use super::{ToolSources, java, print};
use crate::exit::{Exit, Failure};
use crate::progress::meanwhile;
use crate::store::failed;

/// `basalt scan`.
#[derive(Debug, Args)]
#[command(after_help = "\
A query is written as for `basalt query`; its rows are whole hours, its function is not used.
Without --import each row is shown by its key (bytes as signed decimals), metric, base time and
tags, then each of its cells: qualifier, value, seconds into the row, l or f, time. With it a line
is `metric time value k=v …`, and of several points at one time the one that a query sees is
printed.

Examples:
  basalt scan 1h-ago sum sys.cpu.user host=web01
  basalt scan --import 2013/01/01-00:00 2014/01/01-00:00 sum sys.cpu.user | gzip > cpu.gz
  basalt scan --delete 2013/01/01-00:00 2013/01/02-00:00 sum old.metric      deletes whole rows

Exit codes: 0 done, 1 unknown name or failure, 2 wrong command line, 3 wrong configuration, or one
with which nothing is deleted, 4 folder in use, 5 damaged data, 75 the disk is full: the rows that
were printed last are not deleted.")]
pub(super) struct ScanTool {
    /// The query
    #[arg(required = true, value_name = "WORD")]
    words: Vec<String>,
    /// Print lines fit for `basalt import`
    #[arg(long)]
    import: bool,
    /// Delete every row once it is printed; means --import
    #[arg(long)]
    delete: bool,
    #[command(flatten)]
    sources: ToolSources,
}

impl ScanTool {
    pub(super) fn run(self) -> Result<(), Failure> {
        let config = self.sources.load()?;
        let words = Words::parse(&self.words, &config)?;
        with_rows(&config, |opened| {
            let schema = &*opened.schema;
            if self.delete && schema.config().data_times.is_some() {
                let cause = basalt_query::Error::DeleteWithPointTimes;
                return Err(Failure::config(format!("cannot delete rows: {cause}")));
            }
            let all = Rows::of_all(schema, &words)?;
            meanwhile("reading the rows", || all.iter().try_for_each(|rows| self.dump(schema, rows)))
        })
    }

    fn dump(&self, schema: &Schema, rows: &Rows) -> Result<(), Failure> {
        let import = self.import || self.delete;
        rows.for_each(schema, &mut |rows| {
            let mut text = String::new();
            for row in rows {
                if import {
                    as_lines(schema, row, &mut text)?;
                } else {
                    as_stored(schema, row, &mut text);
                }
            }
            // What is deleted was printed before.
            print(&text)?;
            if self.delete { delete(schema, rows) } else { Ok(()) }
        })
    }
}

/// Deletes what was read of each row, and nothing newer.
fn delete(schema: &Schema, rows: &[RowView<'_>]) -> Result<(), Failure> {
    let failing = |cause: basalt_store::Error| failed("cannot delete rows", &cause.into());
    let mut batch = MutationBatch::new(Durability::Fsync);
    for row in rows {
        let newest = row.cells().map(|cell| cell.timestamp).max();
        let mut changes = batch.row(row.key()).map_err(failing)?;
        changes.delete_family(DATA_FAMILY, newest).map_err(failing)?;
    }
    if batch.is_empty() {
        return Ok(());
    }
    let applied = schema.store().apply(&schema.tables().data, batch).wait().map_err(failing)?;
    applied.all_stored().map_err(failing)
}

fn names(schema: &Schema, key: &RowKey<'_>) -> Result<SeriesNames, basalt_schema::Error> {
    schema.names(&key.tsuid())
}

fn tags(names: &SeriesNames) -> Vec<(&str, &str)> {
    names.tags.iter().map(|(key, value)| (&**key, &**value)).collect()
}

/// A row in OpenTSDB's raw form. What is damaged is shown as it lies there.
fn as_stored(schema: &Schema, row: &RowView<'_>, text: &mut String) {
    let head = java::bytes(row.key());
    let Ok(key) = schema.layout().decode(row.key()) else {
        writeln!(text, "{head} [not a row of points]").unwrap_or_default();
        return;
    };
    let base = key.base().seconds();
    let date = java::date(i64::from(base) * 1000);
    let metric = schema.uids().of(basalt_schema::UidKind::Metric).name(key.metric());
    let metric = metric.map_or_else(|cause| cause.to_string(), |name| name.to_string());
    let tags = names(schema, &key).map_or_else(|cause| cause.to_string(), |names| java::map(&tags(&names)));
    writeln!(text, "{head} {metric} {base} ({date}) {tags}").unwrap_or_default();
    for cell in row.cells() {
        cell_as_stored(&cell, i64::from(base), text);
    }
}

fn cell_as_stored(cell: &CellView<'_>, base: i64, text: &mut String) {
    let (qualifier, value) = (java::bytes(cell.qualifier), java::bytes(cell.value));
    let kind = ColumnKind::of(cell.qualifier);
    let indent = if kind == ColumnKind::Point { "" } else { "    " };
    let mut shown = String::new();
    let read = points_of(cell);
    for point in read.iter().flatten() {
        writeln!(shown, "{indent}{}", point_as_stored(point, base)).unwrap_or_default();
    }
    match (read, kind) {
        (Err(cause), _) => writeln!(text, "  {qualifier}\t{value}\t[{cause}]"),
        (Ok(_), ColumnKind::Point) => write!(text, "  {shown}"),
        (Ok(points), ColumnKind::Compacted | ColumnKind::Appended) => {
            write!(text, "  {qualifier}\t{value} = {} values:\n{shown}", points.len())
        }
        (Ok(_), ColumnKind::Annotation) => {
            let offset = i64::from(annotation_offset_ms(cell.qualifier).unwrap_or(0));
            let json = String::from_utf8_lossy(cell.value);
            let (delta, time) = (offset / 1000, base * 1000 + offset);
            writeln!(text, "  {qualifier}\t{value}\t{delta}\t{json}\t{time}\t({})", java::date(time))
        }
        (Ok(_), _) => writeln!(text, "  {value}\t[Not a data point]"),
    }
    .unwrap_or_default();
}

/// A cell's points in order of time, as OpenTSDB's scan has them: of an append cell the last written of each time.
fn points_of<'a>(cell: &CellView<'a>) -> Result<Vec<StoredPoint<'a>>, basalt_schema::Error> {
    let mut points = Vec::new();
    RowCell::from(*cell).for_each_point(|point| points.push(point))?;
    points.sort_by_key(|point| point.qualifier.offset_ms);
    if ColumnKind::of(cell.qualifier) == ColumnKind::Appended {
        // The sort is stable, so the last of each time is the last written.
        points.reverse();
        points.dedup_by_key(|point| point.qualifier.offset_ms);
        points.reverse();
    }
    Ok(points)
}

/// Seconds, or milliseconds where the point was written in them; into the row and since 1970.
fn times(offset_ms: u32, kind: PointKind, base: i64) -> (i64, i64) {
    let offset = i64::from(offset_ms);
    if kind.is_millis() { (offset, base * 1000 + offset) } else { (offset / 1000, base + offset / 1000) }
}

fn point_as_stored(point: &StoredPoint<'_>, base: i64) -> String {
    let (delta, time) = times(point.qualifier.offset_ms, point.qualifier.kind, base);
    format!(
        "{}\t{}\t{delta}\t{}\t{time}\t({})",
        java::bytes(&point.qualifier.encode()),
        java::bytes(point.value),
        if point.qualifier.kind.is_float() { 'f' } else { 'l' },
        java::date(base * 1000 + i64::from(point.qualifier.offset_ms))
    )
}

/// A row's points as lines for `import`, which takes the later line for the newer point: cell by cell as OpenTSDB has them, or,
/// where two are of one time, those that readers see in order of time.
fn as_lines(schema: &Schema, row: &RowView<'_>, text: &mut String) -> Result<(), Failure> {
    let unreadable = |cause: basalt_schema::Error| failed(&format!("row {}", java::bytes(row.key())), &cause);
    let key = schema.layout().decode(row.key()).map_err(unreadable)?;
    if !row.cells().any(|cell| is_points(&cell)) {
        return Ok(());
    }
    let names = names(schema, &key).map_err(unreadable)?;
    let mut suffix = String::new();
    for (key, value) in java::hash_order(&tags(&names)) {
        write!(suffix, " {key}={value}").unwrap_or_default();
    }
    let mut stored = Vec::new();
    for cell in row.cells() {
        for StoredPoint { qualifier, value } in points_of(&cell).map_err(unreadable)? {
            let Some(value) = Value::decode(qualifier.kind, value) else {
                let line = format!("row {}: a value of a length that no value has", java::bytes(row.key()));
                return Err(Failure::new(Exit::Damage, line));
            };
            stored.push((qualifier.offset_ms, qualifier.kind, value));
        }
    }
    let mut seen = RowPoints::default();
    seen.decode(row.cells().map(RowCell::from), schema.config().duplicates()).map_err(unreadable)?;
    if seen.len() < stored.len() {
        let points = seen.offsets_ms().iter().zip(seen.kinds()).zip(seen.values());
        stored = points.map(|((offset, kind), word)| (*offset, *kind, Value::from_word(*kind, *word))).collect();
    }
    let base = i64::from(key.base().seconds());
    for (offset_ms, kind, value) in stored {
        let value = match value {
            Value::Int(value) => value.to_string(),
            Value::Float(value) => java::double(value),
        };
        writeln!(text, "{} {} {value}{suffix}", names.metric, times(offset_ms, kind, base).1).unwrap_or_default();
    }
    Ok(())
}

fn is_points(cell: &CellView<'_>) -> bool {
    matches!(ColumnKind::of(cell.qualifier), ColumnKind::Point | ColumnKind::Compacted | ColumnKind::Appended)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use basalt_schema::{BaseTime, SchemaConfig, TagPair, Tsuid, UidKind};
    use basalt_store::{ManualClock, MemoryStore, Scan, Timestamp};

    use super::*;

    /// The lines of a row of these cells, written in this order.
    fn check(cells: &[(&[u8], &[u8])], expected: &[&str]) {
        let store = Arc::new(MemoryStore::new(Arc::new(ManualClock::new(Timestamp(1)))));
        let schema = Schema::open(store, SchemaConfig::default()).unwrap();
        let uid = |kind, name| schema.uids().of(kind).uid_or_create(name).unwrap();
        let (metric, key, value) = (uid(UidKind::Metric, "m"), uid(UidKind::Tagk, "h"), uid(UidKind::Tagv, "a"));
        let tsuid = Tsuid::new(metric, &[TagPair { key, value }], schema.layout().widths);
        let row = schema.layout().series_key(&tsuid).row_key(BaseTime::of_seconds(1_356_998_400));
        for (time, (qualifier, value)) in (1..).zip(cells) {
            let mut batch = MutationBatch::new(Durability::Async);
            batch.row(&row).unwrap().put(DATA_FAMILY, qualifier, Some(Timestamp(time)), value).unwrap();
            schema.store().apply(&schema.tables().data, batch).wait().unwrap();
        }
        let mut scanner = schema.store().scan(&schema.tables().data, Scan::all()).unwrap();
        let mut text = String::new();
        while let Some(batch) = scanner.next_wait() {
            batch.unwrap().rows().for_each(|row| as_lines(&schema, &row, &mut text).unwrap());
        }
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }

    /// `C-SCAN`: `import` takes the later line for the newer point, so the older ones may not come behind it.
    #[test]
    fn of_points_at_one_time_the_newest_is_dumped() {
        let folded: (&[u8], &[u8]) = (&[0, 0, 0, 0x10], &[1, 2, 0]);
        check(&[folded, (&[0, 0], &[9])], &["m 1356998400 9 h=a", "m 1356998401 2 h=a"]);
        check(&[(&[0, 0], &[9]), folded], &["m 1356998400 1 h=a", "m 1356998401 2 h=a"]);
        check(&[(&[0, 0], &[9]), (&[0xF0, 0, 0, 0], &[8])], &["m 1356998400000 8 h=a"]);
    }

    /// `C-SCAN`: all others come as OpenTSDB dumps them.
    #[test]
    fn points_of_different_times_are_dumped_cell_by_cell() {
        let cells: [(&[u8], &[u8]); 2] = [(&[0, 0x10], &[1]), (&[0xF0, 0, 0x10, 0], &[2])];
        check(&cells, &["m 1356998401 1 h=a", "m 1356998400064 2 h=a"]);
    }
}
