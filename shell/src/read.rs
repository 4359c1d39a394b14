//! Commands that read cells.

use basalt_store::{CellKind, CellView, Filter, Get, ListOperator, RowView, Scan, TableName, TimeRange, Timestamp};
use bytes::Bytes;
use serde_json::json;

use super::arguments::{Arguments, Options};
use super::column::{Column, Converter, Selected};
use super::error::{Error, Place, Result};
use super::filter;
use super::print::Printer;
use super::session::Session;
use super::value::{Data, Pair, Value};
use super::write::timestamp;

const GET_OPTIONS: &str = "COLUMN, TIMESTAMP, TIMERANGE, VERSIONS, FILTER, MAXLENGTH, FORMATTER";
const SCAN_OPTIONS: &str = "COLUMNS, TIMESTAMP, TIMERANGE, VERSIONS, FILTER, MAXLENGTH, FORMATTER, LIMIT, STARTROW, \
                            STOPROW, ROWPREFIXFILTER, REVERSED, RAW, CACHE_BLOCKS";
pub(super) const GET_OPTIONS_NOTE: &str = "Options: COLUMN, TIMESTAMP, TIMERANGE => [FROM, BEFORE], VERSIONS, FILTER \
    => \"PrefixFilter('a')\", MAXLENGTH, FORMATTER.\nA column 'f:q:toLong' prints its value as a number; also toInt, \
    toShort, toFloat, toDouble, toBoolean, toString, toHex.";
pub(super) const SCAN_OPTIONS_NOTE: &str = "Options: COLUMNS, LIMIT, STARTROW, STOPROW, ROWPREFIXFILTER, TIMESTAMP, \
    TIMERANGE => [FROM, BEFORE], VERSIONS, REVERSED, RAW (deleted cells and their markers too), FILTER, CACHE_BLOCKS, \
    MAXLENGTH, FORMATTER.\nFILTER is a string in HBase's filter language: \"SingleColumnValueFilter('f', \
    'q', =, 'binary:v') AND PageFilter(10)\", with AND, OR, SKIP, WHILE and brackets; a name that is none lists them all.";

/// How cells are shown.
#[derive(Debug, Default)]
struct Look {
    selected: Selected,
    formatter: Converter,
    /// How many characters of a cell are shown.
    length_max: Option<usize>,
}

impl Look {
    /// `family:qualifier`
    fn column(&self, at: Place, cell: &CellView<'_>) -> Result<String> {
        Ok(format!("{}:{}", self.formatter.print(cell.family, at)?, self.formatter.print(cell.qualifier, at)?))
    }

    fn value(&self, at: Place, cell: &CellView<'_>) -> Result<String> {
        self.selected.converter(cell.family, cell.qualifier).unwrap_or(self.formatter).print(cell.value, at)
    }

    /// The cell's time and value, or which marker it is.
    fn cell(&self, at: Place, cell: &CellView<'_>, printer: &Printer<'_>) -> Result<String> {
        let time = printer.time(cell.timestamp.0);
        let text = match cell.kind {
            CellKind::Put => format!("timestamp={time}, value={}", self.value(at, cell)?),
            marker => format!("timestamp={time}, type={marker:?}"),
        };
        Ok(match self.length_max {
            Some(most) => text.chars().take(most).collect(),
            None => text,
        })
    }

    /// Prints a row's cells; `with_row` as a scan does.
    fn print(&self, session: &mut Session<'_>, at: Place, row: &RowView<'_>, with_row: bool) -> Result<()> {
        let key = self.formatter.print(row.key(), at)?;
        for cell in row.cells() {
            let column = self.column(at, &cell)?;
            if session.printer.style.json {
                let value = if cell.kind == CellKind::Put { Some(self.value(at, &cell)?) } else { None };
                let object = json!({"row": key, "column": column, "timestamp": cell.timestamp.0,
                    "type": format!("{:?}", cell.kind), "value": value});
                session.print(at, |printer| printer.answer("", || object))?;
            } else {
                let text = self.cell(at, &cell, &session.printer)?;
                let line =
                    if with_row { format!(" {key} column={column}, {text}") } else { format!(" {column} {text}") };
                session.print(at, |printer| printer.line(&line))?;
            }
        }
        Ok(())
    }
}

/// `get`
pub(super) fn get(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let at = arguments.at;
    let table = arguments.table()?;
    let row = arguments.required("row")?.bytes("the row")?;
    let mut options = get_options(&mut arguments)?;
    let mut get = Get::row(row);
    let look = look(&mut options)?;
    get.columns = look.selected.columns();
    get.time_range = time_range(&mut options)?;
    get.versions = versions(&mut options)?;
    get.filter = filter(&mut options)?;
    options.end(GET_OPTIONS)?;
    let rows = session.store.get(&table, get).wait().map_err(Error::store(at))?;
    session.print(at, |printer| printer.line("COLUMN  CELL"))?;
    for row in rows.rows() {
        look.print(session, at, &row, false)?;
    }
    session.print(at, |printer| printer.count(rows.len() as u64))
}

/// The options of a get: a dictionary, or columns.
fn get_options(arguments: &mut Arguments) -> Result<Options> {
    let at = arguments.at;
    let mut rest = arguments.rest();
    if rest.len() <= 1 && rest.first().is_none_or(|only| matches!(only.data, Data::Map(_))) {
        return rest.pop().map_or(Ok(Options::new(Vec::new())), |only| only.map("get").map(Options::new));
    }
    let columns = rest.into_iter().flat_map(Value::list).collect();
    let value = Value { at, data: Data::List(columns) };
    Ok(Options::new(vec![Pair { at, name: "COLUMN".to_owned(), value }]))
}

/// `get_counter`
pub(super) fn get_counter(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let at = arguments.at;
    let table = arguments.table()?;
    let row = arguments.required("row")?.bytes("the row")?;
    let column = Column::of(&arguments.required("column")?)?;
    arguments.end()?;
    let qualifier = column.qualifier.unwrap_or_default();
    let get = Get::row(row).with_columns(basalt_store::Columns::column(column.family, qualifier));
    let rows = session.store.get(&table, get).wait().map_err(Error::store(at))?;
    let Some(cell) = rows.rows().next().and_then(|row| row.cells().next()) else {
        return session.print(at, |printer| {
            printer.answer("No counter found at specified coordinates", || json!({"counter": null}))
        });
    };
    let bytes = cell.value.try_into().map_err(|_| basalt_store::Error::NotACounter { length: cell.value.len() });
    let counter = i64::from_be_bytes(bytes.map_err(Error::store(at))?);
    session.print(at, |printer| printer.answer(&format!("COUNTER VALUE = {counter}"), || json!({"counter": counter})))
}

/// `scan`
pub(super) fn scan(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let at = arguments.at;
    let table = arguments.table()?;
    let mut options = arguments.options()?;
    let look = look(&mut options)?;
    let mut scan = scan_options(&mut options)?;
    scan.columns = look.selected.columns();
    scan.versions = versions(&mut options)?;
    scan.raw = flag(&mut options, "RAW", false)?;
    options.end(SCAN_OPTIONS)?;
    session.print(at, |printer| printer.line("ROW  COLUMN+CELL"))?;
    let rows = each_row(session, at, &table, scan, |session, row, _| look.print(session, at, row, true))?;
    session.print(at, |printer| printer.count(rows))
}

/// `count`
pub(super) fn count(session: &mut Session<'_>, mut arguments: Arguments) -> Result<()> {
    let at = arguments.at;
    let table = arguments.table()?;
    let interval = arguments.optional();
    let mut options = arguments.options()?;
    let interval = interval.or(options.take("INTERVAL"));
    let interval: u64 = interval.map_or(Ok(1_000), |interval| interval.number("INTERVAL", 1))?;
    let look = look(&mut options)?;
    let mut scan = scan_options(&mut options)?;
    scan.columns = look.selected.columns();
    let mut filters: Vec<Filter> = scan.filter.take().into_iter().collect();
    // One that judges rows must see their other cells.
    if !filters.iter().any(Filter::judges_whole_rows) {
        filters.push(Filter::FirstKeyOnly);
    }
    filters.push(Filter::KeyOnly);
    scan.filter = Some(Filter::List(ListOperator::All, filters));
    options.end(&format!("INTERVAL, CACHE, {SCAN_OPTIONS}"))?;
    let rows = each_row(session, at, &table, scan, |session, row, count| {
        if !count.is_multiple_of(interval) {
            return Ok(());
        }
        let key = look.formatter.print(row.key(), at)?;
        session.print(at, |printer| printer.line(&format!("Current count: {count}, row: {key}")))
    })?;
    session.print(at, |printer| printer.answer(&format!("{rows} row(s)"), || json!({"rows": rows})))
}

/// Shows each row of a scan with its number, from 1; answers how many there were.
fn each_row<'a>(
    session: &mut Session<'a>,
    at: Place,
    table: &TableName,
    scan: Scan,
    mut show: impl FnMut(&mut Session<'a>, &RowView<'_>, u64) -> Result<()>,
) -> Result<u64> {
    let mut scanner = session.store.scan(table, scan).map_err(Error::store(at))?;
    let mut rows = 0;
    while let Some(batch) = scanner.next_wait() {
        for row in batch.map_err(Error::store(at))?.rows() {
            rows += 1;
            show(session, &row, rows)?;
        }
    }
    Ok(rows)
}

/// What scan and count both take: which rows, which times, which filter.
fn scan_options(options: &mut Options) -> Result<Scan> {
    let mut key = |name| options.take(name).map(|key| Ok((key.at, key.bytes(name)?))).transpose();
    let (start, stop, prefix) = (key("STARTROW")?, key("STOPROW")?, key("ROWPREFIXFILTER")?);
    let reversed = flag(options, "REVERSED", false)?;
    let mut scan = match (start, stop, prefix) {
        (start, stop, None) => {
            let key = |key: Option<(Place, Bytes)>| key.map(|(_, key)| key).unwrap_or_default();
            Scan::range(key(start), key(stop))
        }
        (None, None, Some((_, prefix))) => prefixed(&prefix, reversed),
        (Some((at, _)), ..) | (_, Some((at, _)), _) => {
            return Err(Error::wrong(at, "ROWPREFIXFILTER cannot be combined with STARTROW or STOPROW"));
        }
    };
    scan.reversed = reversed;
    scan.limit_rows = options.take("LIMIT").map(|limit| limit.number("LIMIT", 1)).transpose()?;
    scan.time_range = time_range(options)?;
    scan.filter = filter(options)?;
    scan.cache_blocks = flag(options, "CACHE_BLOCKS", true)?;
    // How many rows HBase sends at a time: batches are sized in bytes here.
    options.take("CACHE").map(|cache| cache.number::<u32>("CACHE", 1)).transpose()?;
    Ok(scan)
}

/// The rows that begin so, in either direction.
fn prefixed(prefix: &[u8], reversed: bool) -> Scan {
    let mut scan = Scan::prefix(prefix);
    if reversed {
        std::mem::swap(&mut scan.start, &mut scan.stop);
        (scan.start_inclusive, scan.stop_inclusive) = (false, true);
    }
    scan
}

fn look(options: &mut Options) -> Result<Look> {
    let mut look = Look::default();
    for name in ["COLUMN", "COLUMNS"] {
        let columns = options.take(name).map(Value::list).unwrap_or_default();
        columns.iter().try_for_each(|column| look.selected.push(column))?;
    }
    if let Some(formatter) = options.take("FORMATTER") {
        look.formatter = Converter::of(&formatter)?;
    }
    look.length_max = options.take("MAXLENGTH").map(|length| length.number("MAXLENGTH", 0)).transpose()?;
    Ok(look)
}

fn versions(options: &mut Options) -> Result<u32> {
    options.take("VERSIONS").map_or(Ok(1), |versions| versions.number("VERSIONS", 1))
}

fn flag(options: &mut Options, name: &str, default: bool) -> Result<bool> {
    options.take(name).map_or(Ok(default), |flag| flag.boolean(name))
}

/// `TIMERANGE`, half-open, or the one time of `TIMESTAMP`.
fn time_range(options: &mut Options) -> Result<TimeRange> {
    match (options.take("TIMESTAMP"), options.take("TIMERANGE")) {
        (None, None) => Ok(TimeRange::ALL),
        (Some(time), None) => {
            let min = timestamp(&time)?;
            Ok(TimeRange { min, max: Timestamp(min.0.saturating_add(1)) })
        }
        (None, Some(range)) => {
            let at = range.at;
            match &range.list()[..] {
                [min, max] => {
                    let (min, max) = (timestamp(min)?, timestamp(max)?);
                    if max < min {
                        return Err(Error::wrong(at, "TIMERANGE ends before it begins"));
                    }
                    Ok(TimeRange { min, max })
                }
                _ => Err(Error::wrong(at, "TIMERANGE is a list of two times, the second one out: [FROM, BEFORE]")),
            }
        }
        (Some(time), Some(_)) => Err(Error::wrong(time.at, "only one of TIMESTAMP and TIMERANGE can be given")),
    }
}

fn filter(options: &mut Options) -> Result<Option<Filter>> {
    let Some(value) = options.take("FILTER") else { return Ok(None) };
    filter::parse(&value.bytes("FILTER")?).map(Some).map_err(|reason| Error::wrong(value.at, reason))
}
