//! The cells that points become where the settings say how: appended, or under the times of the points.

use std::sync::Arc;

use basalt_schema::{DATA_FAMILY, LargerOrSmaller, Realtime, RollupSettings, Rollups, Salting, Schema, SchemaConfig};
use basalt_store::{Columns, ManualClock, MemoryStore, Scan, Store, TableName, Timestamp};
use bytes::Bytes;

use crate::{Door, Ingest, IngestLimits, PutReport, parse_histograms, parse_put, parse_rollups};

fn ingest(config: SchemaConfig) -> Ingest {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(ManualClock::default())));
    let schema = Arc::new(Schema::open(Arc::clone(&store), config).unwrap());
    Ingest::new(schema, store, IngestLimits::default())
}

fn put(ingest: &Ingest, body: &str) -> PutReport {
    let points = parse_put(body, ingest.limits()).unwrap();
    ingest.submit(&points, Door::Http).unwrap().wait()
}

/// All cells of the data table: row key, qualifier, value, in hex, and time.
fn cells(ingest: &Ingest) -> Vec<(String, Timestamp)> {
    cells_of(ingest, &ingest.schema().tables().data)
}

/// As [`cells`], of another table.
fn cells_of(ingest: &Ingest, table: &TableName) -> Vec<(String, Timestamp)> {
    let scan = Scan::range(Bytes::new(), Bytes::new()).with_columns(Columns::family(DATA_FAMILY));
    let mut scanner = ingest.store().scan(table, scan).unwrap();
    let hex = |bytes: &[u8]| bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
    let mut cells = Vec::new();
    while let Some(batch) = scanner.next_wait() {
        for row in batch.unwrap().rows() {
            let of_row = |c: basalt_store::CellView<'_>| {
                (format!("{} t {} {}", hex(row.key()), hex(c.qualifier), hex(c.value)), c.timestamp)
            };
            cells.extend(row.cells().map(of_row));
        }
    }
    cells
}

/// S-APPEND-WRITE: the puts of section 11 of the dump make the dump's cell, byte for byte, also when several come in one body.
#[test]
fn s_append_write_the_cell_is_the_servers_byte_for_byte() {
    let dump = include_str!("../../tests/golden/raw-rows.txt");
    let section = || dump.lines().skip_while(|line| !line.starts_with("=== 11.")).skip(1);
    let puts: Vec<&str> =
        section().take_while(|line| !line.starts_with("===")).filter_map(|line| line.strip_prefix("# put ")).collect();
    let expected = section().skip_while(|line| *line != "## appends-tsdb as written").nth(1).unwrap();
    assert_eq!(puts.len(), 6);
    for one_by_one in [true, false] {
        let ingest = ingest(SchemaConfig { salting: Salting::NONE, appends: true, ..SchemaConfig::default() });
        if one_by_one {
            for body in &puts {
                assert_eq!(put(&ingest, body).stored, 1);
            }
        } else {
            assert_eq!(put(&ingest, &format!("[{}]", puts.join(","))).stored, 6);
        }
        let cells: Vec<String> = cells(&ingest).into_iter().map(|(cell, _)| cell).collect();
        assert_eq!(cells, [expected]);
    }
}

/// S-APPEND-WRITE: points that cannot be stored are reported as such, and the others are stored.
#[test]
fn s_append_write_rows_are_answered_one_by_one() {
    let ingest = ingest(SchemaConfig { appends: true, ..SchemaConfig::default() });
    let point = |time: i64, value: &str| {
        format!(r#"{{"metric":"m","timestamp":{time},"value":"{value}","tags":{{"host":"a"}}}}"#)
    };
    let bodies = [point(1_700_000_000, "1"), point(1_700_010_000, "x"), point(1_700_020_000, "3")];
    let report = put(&ingest, &format!("[{}]", bodies.join(",")));
    assert_eq!((report.stored, report.rejected, report.failed), (2, 1, 0));
    assert_eq!(report.errors[0].index, 1);
    assert_eq!(cells(&ingest).len(), 2);
    assert!(put(&ingest, &point(1_700_000_001, "2")).is_all_stored());
    assert_eq!(cells(&ingest).len(), 2);
}

/// S-DTCS: a cell bears its point's time, of a second as of a millisecond.
#[test]
fn s_dtcs_cells_bear_the_times_of_their_points() {
    let data_times = Some(LargerOrSmaller::Larger);
    let ingest = ingest(SchemaConfig { salting: Salting::NONE, data_times, ..SchemaConfig::default() });
    for (time, ms) in [("1700000000", 1_700_000_000_000), ("1700003700123", 1_700_003_700_123)] {
        let body = format!(r#"{{"metric":"m{time}","timestamp":{time},"value":1,"tags":{{"host":"a"}}}}"#);
        assert!(put(&ingest, &body).is_all_stored());
        assert!(cells(&ingest).iter().any(|(_, timestamp)| *timestamp == Timestamp(ms)), "{time}");
    }
}

/// S-ROLLUP-QUAL: the 29th day of a month at 10 minutes takes no place of its first day; its points are told what to do.
#[test]
fn s_rollup_qual_a_point_without_a_slot_takes_no_others() {
    let json = r#"{"aggregationIds":{"sum":0},"intervals":[
        {"table":"t10","preAggregationTable":"p10","interval":"10m","rowSpan":"1n"}]}"#;
    let rollups = Rollups::parse(json, RollupSettings::default()).unwrap();
    let ingest =
        ingest(SchemaConfig { salting: Salting::NONE, rollups: Some(rollups.clone()), ..SchemaConfig::default() });
    let base = 1_698_796_800;
    let point = |slot: i64, value: i64| {
        let time = base + slot * 600;
        format!(
            r#"{{"metric":"m","timestamp":{time},"value":{value},"tags":{{"host":"a"}},"interval":"10m","aggregator":"sum"}}"#
        )
    };
    let body = format!("[{},{},{}]", point(0, 1), point(4095, 2), point(4096, 3));
    let points = parse_rollups(&body, ingest.limits()).unwrap();
    let report = ingest.submit_rollups(&points, Door::Http).unwrap().wait();
    assert_eq!((report.stored, report.rejected, report.failed), (2, 1, 0));
    let text = report.errors[0].problem.argument_text();
    assert_eq!(report.errors[0].index, 2);
    assert!(text.starts_with("Offset of 4096 has no place") && text.contains("a shorter rowSpan"), "{text}");
    let cells = cells_of(&ingest, rollups.by_name("10m").unwrap().table());
    let ends: Vec<&str> = cells.iter().filter_map(|(cell, _)| cell.split_once(" t ").map(|(_, end)| end)).collect();
    assert_eq!(ends, ["000000 01", "00fff0 02"]);
}

/// S-ROLLUP-QUAL: where points lie, by the settings that OpenTSDB's pages show, a count of the default interval would be read as an
/// annotation and fail each query of its hour. What harms nobody is taken, and so is all in tables of its own.
#[test]
fn s_rollup_qual_no_rollup_takes_the_place_of_another_kind_among_points() {
    let json = r#"{"aggregationIds":{"sum":0,"count":1,"min":2,"max":3,"last":5,"first":6},"intervals":[
        {"table":"tsdb","preAggregationTable":"p","interval":"1m","rowSpan":"1h","defaultInterval":true},
        {"table":"t1","preAggregationTable":"p1","interval":"1h","rowSpan":"1d"}]}"#;
    let rollups = Rollups::parse(json, RollupSettings::default()).unwrap();
    let ingest = ingest(SchemaConfig { rollups: Some(rollups), ..SchemaConfig::default() });
    for (interval, refused) in [("1m", vec!["count", "last", "first"]), ("1h", vec![])] {
        for group_by in ["", r#","groupByAggregator":"sum""#] {
            for aggregate in ["sum", "count", "min", "max", "last", "first"] {
                let body = format!(
                    r#"{{"metric":"m","timestamp":1700000000,"value":5,"tags":{{"host":"a"}},"interval":"{interval}","aggregator":"{aggregate}"{group_by}}}"#
                );
                let points = parse_rollups(&body, ingest.limits()).unwrap();
                let report = ingest.submit_rollups(&points, Door::Http).unwrap().wait();
                let is_refused = refused.contains(&aggregate);
                assert_eq!(report.rejected, u64::from(is_refused), "{body}");
                let told = |text: &str| text.starts_with(&format!("Rollups of {aggregate} have no place in"));
                assert!(report.errors.iter().all(|error| told(&error.problem.http_text())), "{:?}", report.errors);
            }
        }
    }
}

/// S-TSMETA: a series of histograms has its object and its counter as one of points has; one of rollups has neither, as in OpenTSDB.
#[test]
fn s_tsmeta_histograms_count_as_points() {
    let json = r#"{"aggregationIds":{"sum":0},"intervals":[
        {"table":"t1","preAggregationTable":"p1","interval":"1h","rowSpan":"1d"}]}"#;
    let rollups = Some(Rollups::parse(json, RollupSettings::default()).unwrap());
    let realtime = Realtime { series: true, count: true, ..Realtime::default() };
    let ingest = ingest(SchemaConfig { rollups, histogram_id: Some(0), realtime, ..SchemaConfig::default() });
    let tags = r#""timestamp":1700000000,"tags":{"host":"a"}"#;
    let histogram = format!(r#"{{"metric":"h",{tags},"buckets":{{"0,1":3}}}}"#);
    let rollup = format!(r#"{{"metric":"r",{tags},"value":5,"interval":"1h","aggregator":"sum"}}"#);
    for _ in 0..2 {
        let histograms = parse_histograms(&histogram, ingest.limits()).unwrap();
        assert!(ingest.submit_histograms(&histograms, Door::Http).unwrap().wait().is_all_stored());
        let rollups = parse_rollups(&rollup, ingest.limits()).unwrap();
        assert!(ingest.submit_rollups(&rollups, Door::Http).unwrap().wait().is_all_stored());
    }
    for (metric, counted) in [("h", Some(2)), ("r", None)] {
        let tsuid = ingest.schema().resolve(metric, &[("host", "a")]).unwrap();
        let meta = ingest.schema().ts_meta(&tsuid).unwrap();
        assert_eq!(meta.map(|meta| meta.total_datapoints), counted, "{metric}");
    }
    assert_eq!(ingest.schema().realtime_failures(), 0);
}

/// W-ROLLUP-HTTP: the tag of the aggregator counts as one of the point's; one too many is the client's fault and not the store's.
#[test]
fn w_rollup_http_the_aggregation_tag_may_be_one_too_many() {
    let json = r#"{"aggregationIds":{"sum":0},"intervals":[
        {"table":"t1","preAggregationTable":"p1","interval":"1h","rowSpan":"1d"}]}"#;
    let rollups = Some(Rollups::parse(json, RollupSettings::default()).unwrap());
    let ingest = ingest(SchemaConfig { rollups, tags_max: 2, ..SchemaConfig::default() });
    let body = |group_by: &str| {
        format!(
            r#"{{"metric":"m","timestamp":1700000000,"value":1,"tags":{{"a":"b","c":"d"}},"interval":"1h","aggregator":"sum"{group_by}}}"#
        )
    };
    for (group_by, expected) in [("", (1, 0, 0)), (r#","groupByAggregator":"sum""#, (0, 1, 0))] {
        let body = body(group_by);
        let points = parse_rollups(&body, ingest.limits()).unwrap();
        let report = ingest.submit_rollups(&points, Door::Http).unwrap().wait();
        assert_eq!((report.stored, report.rejected, report.failed), expected, "{group_by}");
        let told: Vec<String> = report.errors.iter().map(|error| error.problem.http_text()).collect();
        assert!(told.iter().all(|text| text.starts_with("Too many tags: 3 maximum allowed: 2")), "{told:?}");
    }
}
