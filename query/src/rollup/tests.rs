//! Queries of rollups from end to end over the memory store. What is recorded from OpenTSDB is in `golden.rs`.

use basalt_schema::{BaseTime, Door, RollupSettings, Rollups, SchemaConfig, Value};
use basalt_store::ErrorKind;

use crate::fixture::{Fixture, text};
use crate::{Cancel, GetParameters, Limits, QueryRequest, SubQuery};

const ROLLUPS: &str = r#"{"aggregationIds":{"sum":0,"count":1},"intervals":[
    {"table":"tsdb","preAggregationTable":"pre","interval":"1m","rowSpan":"1h","defaultInterval":true},
    {"table":"hours","preAggregationTable":"pre-hours","interval":"1h","rowSpan":"1d","delaySla":"2h"}]}"#;

/// Three hours of points, and of sums that differ from them.
fn rolled_up(split_queries: bool) -> Fixture {
    let settings = RollupSettings { split_queries, ..RollupSettings::default() };
    let rollups = Rollups::parse(ROLLUPS, settings).unwrap();
    let mut fixture = Fixture::of(SchemaConfig { rollups: Some(rollups.clone()), ..SchemaConfig::default() });
    let (hours, sum) = (rollups.by_name("1h").unwrap(), rollups.aggregate("sum").unwrap());
    let (kind, _) = Value::Int(1).encode(Door::Http).unwrap();
    for hour in 0..3u8 {
        let second = 1_699_999_200 + u32::from(hour) * 3600;
        fixture.put(&format!("m {second} 1 host=a"));
        let tsuid = fixture.schema.resolve("m", &[("host", "a")]).unwrap();
        let (base, qualifier) = hours.column(second, sum, kind).unwrap();
        let base = BaseTime::from_be_bytes(base.to_be_bytes());
        let key = fixture.schema.layout().series_key(&tsuid).row_key(base);
        fixture.store_in(hours.table(), &key, &qualifier, &[10 + hour]);
    }
    fixture
}

/// `Q-ROLLUP`: rollups are read where they are kept, and a rollup that is not kept is told by name.
#[test]
fn q_rollup_the_longest_fitting_interval_is_read() {
    let fixture = rolled_up(false);
    let told = |metric: &str| text(&fixture.ask("1699999200", "1700010000", metric).unwrap()[0]);
    assert_eq!(told("sum:1h-sum:m"), "1699999200 10.0, 1700002800 11.0, 1700006400 12.0");
    assert_eq!(told("sum:2h-sum:m"), "1699999200 21.0, 1700006400 12.0");
    assert_eq!(told("sum:1h-sum:rollup_raw:m"), "1699999200 1.0, 1700002800 1.0, 1700006400 1.0");
    assert_eq!(told("sum:1m-sum:m"), "1699999200 1.0, 1700002800 1.0, 1700006400 1.0");
    for (metric, words) in [
        ("sum:1h-max:m", "No ID found mapping to aggregator: max"),
        ("sum:1h-dev:m", "No ID found mapping to aggregator: dev"),
        ("sum:1h-mult:m", "No ID found mapping to aggregator: multiply"),
        ("sum:1h-mult:m{nokey=*}", "No such name for 'tagk': 'nokey'"),
    ] {
        assert_eq!(fixture.ask("1699999200", "1700006400", metric).unwrap_err().to_string(), words);
    }
}

/// `Q-ROLLUP`: a rollup that cannot be read is told, as a point is; it is no time without one.
#[test]
fn q_rollup_a_damaged_value_is_no_hole() {
    let fixture = rolled_up(false);
    let tsuid = fixture.schema.resolve("m", &[("host", "a")]).unwrap();
    let rollups = fixture.schema.config().rollups.clone().unwrap();
    let (hours, sum) = (rollups.by_name("1h").unwrap(), rollups.aggregate("sum").unwrap());
    // Told as two bytes, and one is there.
    let (kind, _) = Value::Int(300).encode(Door::Http).unwrap();
    let (base, qualifier) = hours.column(1_699_999_200, sum, kind).unwrap();
    let key = fixture.schema.layout().series_key(&tsuid).row_key(BaseTime::from_be_bytes(base.to_be_bytes()));
    fixture.store_in(hours.table(), &key, &qualifier, &[9]);
    let error = fixture.ask("1699999200", "1700010000", "sum:1h-sum:m").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}

/// `Q-ROLLUP`, strictly: points are read and downsampled by the interval of the rollup that was given up for them. What
/// lies before the hour of the start has no part in rates, nor what lies after that of the end in what is interpolated.
#[test]
fn q_rollup_points_are_read_by_the_interval_of_the_rollup_given_up() {
    let mut fixture = rolled_up(false);
    for line in [
        "n 1699995660 7200 host=a",
        "n 1699999260 3600 host=a",
        "n 1700002860 10800 host=a",
        "n 1700017200 10800 host=a",
        "n 1700006460 1 host=b",
    ] {
        fixture.put(line);
    }
    let told = |strict: bool, metric: &str| {
        let request = QueryRequest {
            start: Some("1699999200".to_owned()),
            end: Some("1700006410".to_owned()),
            queries: vec![SubQuery::from_metric_text(metric).unwrap()],
            ..QueryRequest::default()
        };
        let engine = fixture.engine(strict, Limits::default());
        text(&engine.run(&request, 1_800_000_000_000, &Cancel::new()).unwrap()[0].series[0])
    };
    let rates = "sum:3h-sum-zero:rate:rollup_fallback_raw:n{host=a}";
    assert_eq!(told(true, rates), "1700002800 2.0, 1700006400 -3.0");
    assert_eq!(told(true, "sum:3h-sum:rollup_fallback_raw:n"), "1699999200 3600.0, 1700002800 10800.0, 1700006400 1.0");
    // Three hours that were asked for begin an hour before the start.
    assert_eq!(told(false, "sum:3h-sum:rollup_fallback_raw:n"), "1700006400 1.0");
}

/// `Q-ROLLUP-SPLIT`: what is newer than the rollups' delay comes from the points themselves.
#[test]
fn q_rollup_split_what_is_newer_than_the_delay_is_read_from_points() {
    let fixture = rolled_up(true);
    let request = QueryRequest {
        start: Some("1699999200".to_owned()),
        end: Some("1700010000".to_owned()),
        queries: vec![SubQuery::from_metric_text("sum:1h-sum:m").unwrap()],
        ..QueryRequest::default()
    };
    let told = |now_s: i64| {
        let engine = fixture.engine(false, Limits::default());
        text(&engine.run(&request, now_s * 1000, &Cancel::new()).unwrap()[0].series[0])
    };
    // Rollups are complete until two hours before the clock.
    assert_eq!(told(1_700_020_000), "1699999200 10.0, 1700002800 11.0, 1700006400 12.0");
    assert_eq!(told(1_700_003_000 + 7200), "1699999200 10.0, 1700002800 11.0, 1700006400 1.0");
    assert_eq!(told(1_699_990_000), "1699999200 1.0, 1700002800 1.0, 1700006400 1.0");
    // Formulas are answered over all rows read; the last one's rollups reach past the split.
    let engine = fixture.engine(false, Limits::default());
    let parameters = GetParameters { start: Some("1699999200"), end: Some("1700010000"), ..GetParameters::default() };
    let (request, formulas) =
        QueryRequest::from_formulas(&parameters, &["scale(sum:1h-sum:m,1)"], engine.options()).unwrap();
    let query = request.check(1_700_008_200_000, engine.options()).unwrap().for_formulas();
    let answers = engine.run_formulas(&formulas, &query, &Cancel::new()).unwrap();
    assert_eq!(text(&answers[0].series[0]), "1699999200 10.0, 1700002800 1.0, 1700006400 1.0");
}

/// `Q-ROLLUP`, `Q-DELETE`: points that were read in place of rollups are deleted, rollups are not.
#[test]
fn q_rollup_points_read_in_their_place_are_deleted() {
    for (split_queries, metric, now_s, left) in [
        (false, "sum:1h-sum:rollup_fallback_raw:n", 1_800_000_000, ""),
        (true, "sum:1h-sum:m", 1_700_003_000 + 7200, "1699999200 1, 1700002800 1"),
        (true, "sum:1h-sum:m", 1_699_990_000, ""),
    ] {
        let mut fixture = rolled_up(split_queries);
        fixture.put("n 1700000000 5 host=a");
        let request = QueryRequest {
            start: Some("1699999200".to_owned()),
            end: Some("1700010000".to_owned()),
            delete: true,
            queries: vec![SubQuery::from_metric_text(metric).unwrap()],
            ..QueryRequest::default()
        };
        let engine = fixture.engine(false, Limits::default());
        engine.run(&request, now_s * 1000, &Cancel::new()).unwrap();
        let name = metric.rsplit(':').next().unwrap();
        let points = fixture.ask("1699999200", "1700010000", &format!("sum:{name}")).unwrap();
        assert_eq!(points.first().map(text).unwrap_or_default(), left, "{metric} at {now_s}");
    }
}
