//! `Q-DELETE`, `S-DELETE-ROW`: what goes and what stays, over the memory store.

use std::sync::Arc;

use basalt_schema::{Bounds, Histogram, PointTime, SchemaConfig, histogram_column};
use basalt_store::{Append, CheckAndMutate, Durability, MutationBatch};
use bytes::Bytes;

use super::*;
use crate::fixture::{Fixture, text};
use crate::get_size::GET_BYTES;
use crate::{Cancel, Compat, Limits, Options, QueryEngine, QueryRequest, SubQuery};

/// Far after whatever the fixture's clock says.
const NOW_MS: i64 = 1_800_000_000_000;
const HOUR: i64 = 1_699_999_200;

/// Deletes between two seconds and says what the request answered.
fn delete(fixture: &Fixture, strict: bool, from: i64, to: i64, metric: &str) -> Result<Vec<String>> {
    delete_with(fixture, strict, (from, to), metric, Limits::default())
}

fn delete_with(
    fixture: &Fixture,
    strict: bool,
    (from, to): (i64, i64),
    metric: &str,
    limits: Limits,
) -> Result<Vec<String>> {
    let request = QueryRequest {
        start: Some(from.to_string()),
        end: Some(to.to_string()),
        delete: true,
        no_annotations: true,
        queries: vec![SubQuery::from_metric_text(metric).unwrap()],
        ..QueryRequest::default()
    };
    let options = Options { compat: Compat { strict }, ..Options::default() };
    let engine = QueryEngine::new(Arc::clone(&fixture.schema), options, limits);
    let answers = engine.run(&request, NOW_MS, &Cancel::new());
    assert!(answers.is_ok() || engine.memory_used_bytes() == 0);
    let answers = answers?;
    Ok(answers[0].series.iter().map(text).collect())
}

fn left(fixture: &Fixture, metric: &str) -> Vec<String> {
    let series = fixture.ask(&HOUR.to_string(), &(HOUR + 7_200).to_string(), metric).unwrap();
    series.iter().filter(|series| !series.points.is_empty()).map(text).collect()
}

fn three_hours() -> Fixture {
    let mut fixture = Fixture::new(basalt_schema::Salting::EMBEDDED);
    for host in ["a", "b"] {
        for (second, value) in [(0, 1), (1800, 2), (3599, 3), (3600, 4), (7200, 5)] {
            fixture.put(&format!("m {} {value} host={host}", HOUR + second));
        }
    }
    fixture
}

/// The key of the first hour's row of host a.
fn row(fixture: &Fixture) -> Bytes {
    let tsuid = fixture.schema.resolve("m", &[("host", "a")]).unwrap();
    Bytes::from(fixture.schema.layout().series_key(&tsuid).row_key(BaseTime::of_seconds(1_699_999_200)))
}

/// Appends to that row.
fn append(fixture: &Fixture, value: &'static [u8]) {
    let append = Append {
        row: row(fixture),
        family: Bytes::from_static(DATA_FAMILY),
        qualifier: Bytes::from_static(&APPEND_QUALIFIER),
        value: Bytes::from_static(value),
        durability: Durability::Skip,
    };
    fixture.schema.store().append(&fixture.schema.tables().data, append).wait().unwrap();
}

/// What deletes the first half hour of that row, as it is now.
fn change(fixture: &Fixture) -> CheckAndMutate {
    let query = QueryRequest {
        start: Some(HOUR.to_string()),
        end: Some((HOUR + 1800).to_string()),
        queries: vec![SubQuery::from_metric_text("sum:m{host=a}").unwrap()],
        ..QueryRequest::default()
    };
    let query = query.check(NOW_MS, Options::default()).unwrap();
    let cancel = Cancel::new();
    let budget = Budget::new(Limits::default(), &cancel, &crate::memory::MemoryPool::new(0));
    let (turn, schema) = (Mutex::new(()), &fixture.schema);
    let plan = Plan::new(schema, &query, &query.sub_queries[0], Options::default(), &budget).unwrap();
    let deleter = Deleter { schema, query: &query, plan: &plan, budget: &budget, whole_rows: false, turn: &turn };
    let read = schema.store().get(&schema.tables().data, Get::rows(vec![row(fixture)])).wait().unwrap();
    deleter.change(&read.rows().next().unwrap()).unwrap().unwrap().checked().unwrap()
}

#[test]
fn exactly_the_points_of_the_range_go() {
    let fixture = three_hours();
    fixture.annotate("m", ("host", "a"), HOUR + 1900, r#"{"description":"stays"}"#);
    let told = delete(&fixture, false, HOUR + 1800, HOUR + 3600, "sum:m{host=a}").unwrap();
    assert_eq!(told, ["1700001000 2, 1700002799 3, 1700002800 4"]);
    assert_eq!(left(&fixture, "sum:m{host=a}"), ["1699999200 1, 1700006400 5"]);
    assert_eq!(
        left(&fixture, "count:m{host=b}"),
        ["1699999200 1, 1700001000 1, 1700002799 1, 1700002800 1, 1700006400 1"]
    );
    let noted = fixture.ask(&HOUR.to_string(), &(HOUR + 7_200).to_string(), "sum:m{host=a}").unwrap();
    assert_eq!(noted[0].annotations.len(), 1);
    // What is gone stays gone, and can be written anew.
    assert_eq!(delete(&fixture, false, HOUR + 1, HOUR + 7199, "sum:m{host=a}").unwrap(), [""]);
    let mut fixture = fixture;
    fixture.advance(10_000);
    fixture.put(&format!("m {} 9 host=a", HOUR + 1800));
    assert_eq!(left(&fixture, "sum:m{host=a}"), ["1699999200 1, 1700001000 9, 1700006400 5"]);
}

/// `Q-HISTO`: a question for histograms deletes those of its range, and no point beside them.
#[test]
fn histograms_that_were_read_go_and_points_stay() {
    let mut fixture = Fixture::of(SchemaConfig { histogram_id: Some(7), ..SchemaConfig::default() });
    fixture.put(&format!("m {HOUR} 1 host=a"));
    let tsuid = fixture.schema.resolve("m", &[("host", "a")]).unwrap();
    for second in [0, 70] {
        let mut histogram = Histogram::default();
        histogram.set(Bounds { lower: 0.0, upper: 1.0 }, 4);
        let (base, qualifier) = histogram_column(PointTime::from_number(HOUR + second).unwrap());
        fixture.store(&fixture.schema.layout().series_key(&tsuid).row_key(base), &qualifier, &histogram.encode(7));
    }
    delete(&fixture, false, HOUR, HOUR + 10, "sum:percentiles[50]:m").unwrap();
    assert_eq!(left(&fixture, "sum:percentiles[50]:m"), ["1699999270 0.5"]);
    assert_eq!(left(&fixture, "sum:m"), ["1699999200 1"]);
    // A question for points leaves histograms.
    delete(&fixture, false, HOUR, HOUR + 100, "sum:m").unwrap();
    assert_eq!(left(&fixture, "sum:percentiles[50]:m"), ["1699999270 0.5"]);
    assert!(left(&fixture, "sum:m").is_empty());
}

/// OpenTSDB's way, under `strict`: every row that the scan met, from the hour before the range to the hour after it.
#[test]
fn whole_rows_go_when_strict() {
    let fixture = three_hours();
    delete(&fixture, true, HOUR + 1800, HOUR + 1900, "sum:m{host=a}").unwrap();
    assert_eq!(left(&fixture, "sum:m{host=a}"), ["1700002800 4, 1700006400 5"]);
    assert_eq!(left(&fixture, "count:m{host=b}").len(), 1);
}

#[test]
fn a_row_of_appends_and_overwrites_is_deleted_too() {
    let mut fixture = three_hours();
    fixture.put(&format!("m {HOUR} 1.5 host=a"));
    append(&fixture, &[0x00, 0xA0, 7]);
    delete(&fixture, false, HOUR, HOUR + 1, "sum:m{host=a}").unwrap();
    assert_eq!(
        left(&fixture, "sum:m{host=a}"),
        ["1699999210 7, 1700001000 2, 1700002799 3, 1700002800 4, 1700006400 5"]
    );
}

/// A row written within the last second waits; one of the future is refused instead of waited for, and why is told: asking
/// again at once helps nobody whose clock was set back.
#[test]
fn a_row_of_the_future_is_refused() {
    let mut fixture = three_hours();
    fixture.advance(u64::try_from(NOW_MS).unwrap() + 60_000);
    fixture.put(&format!("m {} 6 host=a", HOUR + 5));
    let error = delete(&fixture, false, HOUR, HOUR + 10, "sum:m{host=a}").unwrap_err();
    let told = error.to_string();
    assert!(told.starts_with("1 rows bear times 6") && told.contains("s after this server's clock"), "{told}");
    assert_eq!(error.kind(), basalt_store::ErrorKind::Throttled);
    assert_eq!(left(&fixture, "sum:m{host=a}")[0].split(',').count(), 6);
}

/// What another writes between read and change is seen: the check fails and the row is read again.
#[test]
fn a_change_of_another_survives() {
    let mut fixture = three_hours();
    let change = change(&fixture);
    // The newest cell of the row is written again, a later point beside it.
    fixture.put(&format!("m {} 33 host=a", HOUR + 3599));
    fixture.put(&format!("m {} 44 host=a", HOUR + 2000));
    let (store, table) = (fixture.schema.store(), &fixture.schema.tables().data);
    assert!(!store.check_and_mutate(table, change).wait().unwrap());
    assert_eq!(left(&fixture, "sum:m{host=a}")[0].split(',').count(), 6);
}

/// An append takes all of its cell to a time above the tombstone, so that what is deleted of it would be answered again.
#[test]
fn an_append_between_read_and_change_is_seen_beside_newer_points() {
    let mut fixture = three_hours();
    append(&fixture, &[0x00, 0xA0, 7]);
    fixture.put(&format!("m {} 6 host=a", HOUR + 20));
    let undone = change(&fixture);
    append(&fixture, &[0x00, 0xB0, 8]);
    let (store, table) = (fixture.schema.store(), &fixture.schema.tables().data);
    assert!(!store.check_and_mutate(table, undone).wait().unwrap());
    assert!(store.check_and_mutate(table, change(&fixture)).wait().unwrap());
    assert_eq!(left(&fixture, "sum:m{host=a}"), ["1700002799 3, 1700002800 4, 1700006400 5"]);
}

/// OpenTSDB's compaction deletes the lone points of an hour at its own time, and the cell that it joins them to bears theirs.
#[test]
fn what_stays_is_seen_over_tombstones_younger_than_all_cells() {
    let fixture = three_hours();
    let tsuid = fixture.schema.resolve("m", &[("host", "a")]).unwrap();
    let key = fixture.schema.layout().series_key(&tsuid).row_key(BaseTime::of_seconds(1_699_999_200));
    let table = &fixture.schema.tables().data;
    let read = fixture.schema.store().get(table, Get::row(key.clone())).wait().unwrap();
    let row = read.row(0).unwrap();
    let cells: Vec<RowCell<'_>> = row.cells().map(RowCell::from).collect();
    let mut fold = basalt_schema::RowFold::default();
    let joined = fold.fold(&cells, basalt_schema::Duplicates::NewestWins).unwrap().unwrap();
    fixture.advance(7_200_000);
    let mut batch = MutationBatch::default();
    let mut changes = batch.row(&key).unwrap();
    changes.put(DATA_FAMILY, joined.qualifier, Some(joined.timestamp), joined.value).unwrap();
    for cell in &cells {
        changes.delete_column(DATA_FAMILY, cell.qualifier, None).unwrap();
    }
    fixture.schema.store().apply(table, batch).wait().unwrap();
    assert_eq!(left(&fixture, "sum:m{host=a}")[0].split(',').count(), 5);
    // One point of the hour stays, in a cell of its own as before.
    delete(&fixture, false, HOUR + 1, HOUR + 3599, "sum:m{host=a}").unwrap();
    assert_eq!(left(&fixture, "sum:m{host=a}"), ["1699999200 1, 1700002800 4, 1700006400 5"]);
    // And is deleted and written as any other.
    delete(&fixture, false, HOUR, HOUR + 3599, "sum:m{host=a}").unwrap();
    assert_eq!(left(&fixture, "sum:m{host=a}"), ["1700002800 4, 1700006400 5"]);
}

/// What stays would lie below it, and a write of that very time too.
#[test]
fn a_row_with_a_tombstone_of_the_future_is_refused_where_something_stays() {
    let fixture = three_hours();
    let tsuid = fixture.schema.resolve("m", &[("host", "a")]).unwrap();
    let key = fixture.schema.layout().series_key(&tsuid).row_key(BaseTime::of_seconds(1_699_999_200));
    let mut batch = MutationBatch::default();
    let time = Some(Timestamp(u64::try_from(NOW_MS).unwrap() + 60_000));
    batch.row(&key).unwrap().delete_column(DATA_FAMILY, &[0, 0x50], time).unwrap();
    fixture.schema.store().apply(&fixture.schema.tables().data, batch).wait().unwrap();
    let error = delete(&fixture, false, HOUR, HOUR + 10, "sum:m{host=a}").unwrap_err();
    assert_eq!(error.kind(), basalt_store::ErrorKind::Throttled);
    assert_eq!(left(&fixture, "sum:m{host=a}")[0].split(',').count(), 5);
    delete(&fixture, false, HOUR, HOUR + 3599, "sum:m{host=a}").unwrap();
    assert_eq!(left(&fixture, "sum:m{host=a}"), ["1700002800 4, 1700006400 5"]);
}

/// Hours of a range that hold nothing cost nothing, whether few of a metric's series are meant or all.
#[test]
fn a_delete_takes_as_long_as_there_are_rows() {
    const SERIES: i64 = 20;
    let mut fixture = Fixture::new(basalt_schema::Salting::EMBEDDED);
    for host in 0..SERIES {
        for third in 0..3 {
            let second = 200_000_000 + (host + third * SERIES) * 25_000_000;
            fixture.put(&format!("m {second} {third} host=h{host}"));
        }
    }
    let ask = |metric: &str| fixture.ask("100000000", "1700000000", metric).unwrap().first().map(text);
    fixture.take_counts();
    let gone = delete(&fixture, false, 100_000_000, 1_700_000_000, "none:m{host=h3|h5}").unwrap();
    assert_eq!(gone.iter().map(|series| series.split(',').count()).collect::<Vec<_>>(), [3, 3]);
    let (asked, scanned) = fixture.take_counts();
    assert_eq!(asked, 6, "rows of these series");
    assert!(scanned <= 3 * 60 + 6, "{scanned}");
    assert_eq!(ask("sum:0all-count:m").unwrap(), "100000000 54.0");
    fixture.take_counts();
    delete(&fixture, false, 100_000_000, 1_700_000_000, "sum:m").unwrap();
    assert_eq!(fixture.take_counts(), (54, 2 * 54));
    assert_eq!(ask("count:m"), None);
    delete(&fixture, false, 100_000_000, 1_700_000_000, "sum:m").unwrap();
    assert_eq!(fixture.take_counts(), (0, 0), "what is gone is not read again");
}

#[test]
fn rows_of_many_series_and_hours_go_and_those_of_others_stay() {
    let mut fixture = Fixture::new(basalt_schema::Salting::NONE);
    for host in 100..200 {
        for hour in 0..60 {
            fixture.put(&format!("m {} 1 host=h{host}", HOUR + hour * 3600));
        }
    }
    let end = HOUR + 60 * 3600;
    delete(&fixture, false, HOUR, HOUR + 58 * 3600 - 1, "sum:m{}{host=regexp(h1[0-6].)}").unwrap();
    let ask = |metric: &str| text(&fixture.ask(&HOUR.to_string(), &end.to_string(), metric).unwrap()[0]);
    assert_eq!(ask("sum:0all-count:m{}{host=regexp(h1[0-6].)}"), format!("{HOUR} 140.0"));
    assert_eq!(ask("sum:0all-count:m{}{host=regexp(h1[7-9].)}"), format!("{HOUR} 1800.0"));
}

/// Series that come and go are not asked for by their tags, some at a time, in all hours that others have rows in.
#[test]
fn series_of_short_lives_are_deleted_by_one_walk() {
    let mut fixture = Fixture::of(SchemaConfig { salting: basalt_schema::Salting::NONE, ..Default::default() });
    for host in 1_000..9_000 {
        fixture.put(&format!("m {} 1 host=h{host}", HOUR + host % 200 * 3_600));
    }
    fixture.take_scans();
    delete(&fixture, false, HOUR, HOUR + 200 * 3_600 - 1, "sum:0all-sum:m{}{host=regexp(h[12]...)}").unwrap();
    let scans = fixture.take_scans();
    assert!(scans < 2_000 / 64, "{scans}");
    let rest = fixture.ask(&HOUR.to_string(), &(HOUR + 200 * 3_600).to_string(), "sum:0all-count:m").unwrap();
    assert_eq!(text(&rest[0]), format!("{HOUR} 6000.0"));
}

/// `S-DTCS`: a point that is put again has its old time, so a tombstone would hide it.
#[test]
fn nothing_is_deleted_where_cells_bear_the_times_of_their_points() {
    let data_times = Some(basalt_schema::LargerOrSmaller::Larger);
    let mut fixture = Fixture::of(SchemaConfig { data_times, ..Default::default() });
    fixture.put(&format!("m {HOUR} 1 host=a"));
    for strict in [false, true] {
        let error = delete(&fixture, strict, HOUR, HOUR + 1, "sum:m").unwrap_err();
        assert!(error.to_string().contains("schema.use_otsdb_timestamp"), "{error}");
        assert_eq!(error.kind(), basalt_store::ErrorKind::Invalid);
    }
    assert_eq!(left(&fixture, "sum:m"), ["1699999200 1"]);
}

/// `Q-LIMIT`: large rows are changed a few at a time, and are memory meanwhile with what of them is put again.
#[test]
fn q_limit_large_rows_are_changed_few_at_a_time() {
    const ROW_BYTES: usize = 256 << 10;
    let mut fixture = Fixture::new(basalt_schema::Salting::EMBEDDED);
    let note = format!(r#"{{"description":"{}"}}"#, "x".repeat(ROW_BYTES));
    for hour in 0..40 {
        fixture.put(&format!("m {} {hour} host=a", HOUR + hour * 3_600));
        fixture.annotate("m", ("host", "a"), HOUR + hour * 3_600 + 9, &note);
    }
    let delete = |hours: i64, memory_bytes| {
        fixture.take_gets();
        let limits = Limits { memory_bytes, ..Limits::default() };
        let told = delete_with(&fixture, false, (HOUR, HOUR + hours * 3_600), "sum:m", limits);
        (told.map(drop), fixture.take_gets().1)
    };
    // The query itself holds a get, and little else.
    let (told, _) = delete(40, GET_BYTES as u64 + (1 << 20));
    assert!(matches!(told, Err(Error::TooMuchMemory { .. })), "{told:?}");
    let (told, get_bytes) = delete(40, 0);
    told.unwrap();
    assert!(get_bytes < (GET_BYTES + ROW_BYTES) as u64, "{get_bytes}");
    let series = fixture.ask(&HOUR.to_string(), &(HOUR + 40 * 3_600).to_string(), "sum:m").unwrap();
    assert_eq!(series.iter().map(|series| (series.points.len(), series.annotations.len())).next(), Some((0, 40)));
}
