//! Queries of rollups from end to end over the memory store. What is recorded from OpenTSDB is in `golden.rs`.

use basalt_schema::{BaseTime, Door, RollupSettings, Rollups, SchemaConfig, Value};
use basalt_store::ErrorKind;

use crate::fixture::{Fixture, text};
use crate::{Cancel, GetParameters, Limits, QueryRequest, SubQuery};

const ROLLUPS: &str = r#"{"aggregationIds":{"sum":0,"count":1},"intervals":[
    {"table":"tsdb","preAggregationTable":"pre","interval":"1m","rowSpan":"1h","defaultInterval":true},
    {"table":"hours","preAggregationTable":"pre-hours","interval":"1h","rowSpan":"1d","delaySla":"2h"},
    {"table":"days","preAggregationTable":"pre-days","interval":"1d","rowSpan":"1n"},
    {"table":"months","preAggregationTable":"pre-months","interval":"1n","rowSpan":"1y"}]}"#;
/// A clock two hours, the delay, after the middle of the second hour.
const SPLIT_NOW_S: i64 = 1_700_003_000 + 7_200;

/// Three hours of points, and of sums that differ from them.
fn rolled_up(split_queries: bool) -> Fixture {
    let settings = RollupSettings { split_queries, ..RollupSettings::default() };
    let rollups = Rollups::parse(ROLLUPS, settings).unwrap();
    let mut fixture = Fixture::of(SchemaConfig { rollups: Some(rollups.clone()), ..SchemaConfig::default() });
    for hour in 0..3u8 {
        let second = 1_699_999_200 + u32::from(hour) * 3600;
        fixture.put(&format!("m {second} 1 host=a"));
        roll(&fixture, "1h", ("m", &[("host", "a")]), second, 10 + hour);
    }
    fixture
}

/// Stores a sum of an interval.
fn roll(fixture: &Fixture, interval: &str, (metric, tags): (&str, &[(&str, &str)]), second: u32, value: u8) {
    let rollups = fixture.schema.config().rollups.as_ref().unwrap();
    let (rollup, sum) = (rollups.by_name(interval).unwrap(), rollups.aggregate("sum").unwrap());
    let (kind, _) = Value::Int(1).encode(Door::Http).unwrap();
    let (base, qualifier) = rollup.column(second, sum, kind).unwrap();
    let tsuid = fixture.schema.resolve(metric, tags).unwrap();
    let key = fixture.schema.layout().series_key(&tsuid).row_key(BaseTime::from_be_bytes(base.to_be_bytes()));
    fixture.store_in(rollup.table(), &key, &qualifier, &[value]);
    fixture.schema.index().add(&tsuid).unwrap();
}

fn request(metric: &str, start: &str, end: &str) -> QueryRequest {
    QueryRequest {
        start: Some(start.to_owned()),
        end: Some(end.to_owned()),
        queries: vec![SubQuery::from_metric_text(metric).unwrap()],
        ..QueryRequest::default()
    }
}

/// The points of the only series, if there is one.
fn told(fixture: &Fixture, strict: bool, request: &QueryRequest, now_s: i64) -> String {
    let answers = fixture.engine(strict, Limits::default()).run(request, now_s * 1000, &Cancel::new()).unwrap();
    assert!(answers[0].series.len() <= 1);
    answers[0].series.first().map(text).unwrap_or_default()
}

/// The points of the only series that a formula gives.
fn told_of_formula(fixture: &Fixture, formula: &str, now_s: i64) -> String {
    let engine = fixture.engine(false, Limits::default());
    let parameters = GetParameters { start: Some("1699999200"), end: Some("1700010000"), ..GetParameters::default() };
    let (request, formulas) = QueryRequest::from_formulas(&parameters, &[formula], engine.options()).unwrap();
    let query = request.check(now_s * 1000, engine.options()).unwrap().for_formulas();
    text(&engine.run_formulas(&formulas, &query, &Cancel::new()).unwrap()[0].series[0])
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
        told(&fixture, strict, &request(metric, "1699999200", "1700006410"), 1_800_000_000)
    };
    let rates = "sum:3h-sum-zero:rate:rollup_fallback_raw:n{host=a}";
    assert_eq!(told(true, rates), "1700002800 2.0, 1700006400 -3.0");
    assert_eq!(told(true, "sum:3h-sum:rollup_fallback_raw:n"), "1699999200 3600.0, 1700002800 10800.0, 1700006400 1.0");
    // Three hours that were asked for begin an hour before the start.
    assert_eq!(told(false, "sum:3h-sum:rollup_fallback_raw:n"), "1700006400 1.0");
}

/// `Q-ROLLUP`: of a zone's days the rollups of UTC's days say nothing; those of hours do, where the zone is whole hours off.
#[test]
fn q_rollup_buckets_of_a_calendar_are_made_of_rollups_that_begin_with_them() {
    let fixture = rolled_up(false);
    roll(&fixture, "1d", ("m", &[("host", "a")]), 1_699_920_000, 100);
    let told = |strict: bool, zone: &str| {
        let timezone = Some(zone.to_owned());
        let request = QueryRequest { timezone, ..request("sum:1dc-sum:m", "1699840000", "1700100000") };
        told(&fixture, strict, &request, 1_800_000_000)
    };
    assert_eq!(told(false, "UTC"), "1699920000 100.0");
    assert_eq!(told(false, "Europe/London"), "1699920000 100.0", "where it is winter");
    assert_eq!(told(false, "America/New_York"), "1699938000 33.0");
    assert_eq!(told(false, "Asia/Kolkata"), "1699986600 3.0");
    assert_eq!(told(true, "America/New_York"), "1699851600 100.0");
}

/// `Q-ROLLUP`: a year has 12 months of 30 days, and some days more.
#[test]
fn q_rollup_the_row_of_the_end_is_read() {
    let fixture = rolled_up(false);
    roll(&fixture, "1n", ("m", &[("host", "a")]), 1_704_067_200, 7);
    let request = request("sum:30d-sum:m", "2023/12/01", "2024/01/03");
    assert_eq!(told(&fixture, false, &request, 1_800_000_000), "1702944000 7.0");
    assert_eq!(told(&fixture, true, &request, 1_800_000_000), "");
}

/// `Q-ROLLUP-SPLIT`: what is newer than the rollups' delay comes from the points themselves, and so does all of the bucket
/// that holds the split: rollups would make a part of it.
#[test]
fn q_rollup_split_what_is_newer_than_the_delay_is_read_from_points() {
    let fixture = rolled_up(true);
    let told = |metric: &str, now_s: i64| told(&fixture, false, &request(metric, "1699999200", "1700010000"), now_s);
    // Rollups are complete until two hours before the clock.
    assert_eq!(told("sum:1h-sum:m", 1_700_020_000), "1699999200 10.0, 1700002800 11.0, 1700006400 12.0");
    assert_eq!(told("sum:1h-sum:m", SPLIT_NOW_S), "1699999200 10.0, 1700002800 1.0, 1700006400 1.0");
    assert_eq!(told("sum:1h-sum:m", 1_699_990_000), "1699999200 1.0, 1700002800 1.0, 1700006400 1.0");
    assert_eq!(told("sum:2h-sum:m", SPLIT_NOW_S), "1699999200 2.0, 1700006400 1.0");
    // A rate from the bucket before on, of points as well.
    assert_eq!(told("sum:1h-sum:rate:m", SPLIT_NOW_S), "1700002800 0.0, 1700006400 0.0");
    // Formulas are answered over all rows read; the last one's rollups reach past the split.
    let formula = told_of_formula(&fixture, "scale(sum:1h-sum:m,1)", SPLIT_NOW_S);
    assert_eq!(formula, "1699999200 10.0, 1700002800 1.0, 1700006400 1.0");
    let formula = told_of_formula(&fixture, "scale(sum:1h-sum:m,1)", 1_700_008_200);
    assert_eq!(formula, "1699999200 1.0, 1700002800 1.0, 1700006400 1.0");
}

/// `Q-ROLLUP-SPLIT`: buckets of a calendar too.
#[test]
fn q_rollup_split_the_bucket_that_holds_it_is_of_points_alone() {
    let fixture = rolled_up(true);
    roll(&fixture, "1h", ("m", &[("host", "a")]), 1_699_963_200, 5);
    for metric in ["sum:6h-sum:m", "sum:6hc-sum:m"] {
        let told = |start: &str| told(&fixture, false, &request(metric, start, "1700010000"), SPLIT_NOW_S);
        assert_eq!(told("1699963200"), "1699963200 5.0, 1699984800 2.0, 1700006400 1.0", "{metric}");
        assert_eq!(told("1699990000"), "1700006400 1.0", "{metric}");
    }
}

/// `Q-ROLLUP-SPLIT`: also where buckets depend on where a range begins, as hours do behind a change of clocks.
#[test]
fn q_rollup_split_hours_behind_a_change_of_clocks_are_counted_as_one() {
    let fixture = rolled_up(true);
    roll(&fixture, "1h", ("m", &[("host", "a")]), 1_699_984_800, 5);
    for strict in [false, true] {
        let told = |start: &str| {
            let timezone = Some("America/New_York".to_owned());
            let request = QueryRequest { timezone, ..request("sum:6hc-sum:m", start, "1700010000") };
            told(&fixture, strict, &request, SPLIT_NOW_S)
        };
        // Clocks went back on 5 November.
        assert_eq!(told("2023/11/03"), "1699977600 5.0, 1699999200 3.0", "{strict}");
        assert_eq!(told("2023/11/10"), "1699981200 15.0, 1700002800 2.0", "{strict}");
    }
}

/// `Q-ROLLUP-SPLIT`: and as several weeks and months do.
#[test]
fn q_rollup_split_several_weeks_and_months_are_counted_as_one() {
    let mut fixture = rolled_up(true);
    // Noons of 10 May, 24 October, 7, 13 and 15 November 2023; the last is after the split.
    for second in [1_683_720_000, 1_698_148_800, 1_699_358_400, 1_699_876_800, 1_700_049_600] {
        fixture.put(&format!("n {second} 1 host=a"));
        fixture.put(&format!("w {second} 1 host=a"));
        roll(&fixture, "1h", ("w", &[("host", "a")]), second, 10);
    }
    let told = |metric: &str, start: &str| {
        let timezone = Some("America/New_York".to_owned());
        told(&fixture, false, &QueryRequest { timezone, ..request(metric, start, "1700060000") }, SPLIT_NOW_S)
    };
    let of_15_october = "1697342400 10.0, 1698552000 10.0, 1699765200 2.0";
    assert_eq!(told("sum:2wc-sum:w", "2023/10/03"), of_15_october);
    assert_eq!(told("sum:2wc-sum:w", "2023/10/10"), "1697947200 10.0, 1699156800 3.0");
    assert_eq!(told("sum:2wc-sum-zero:w", "2023/09/19"), format!("1696132800 0.0, {of_15_october}"));
    // Months that five do not divide a year into, from November 2022 on.
    assert_eq!(told("sum:5nc-sum:w", "2022/12/15"), "1680321600 10.0, 1693540800 4.0");
    // A rate is one of points from the split on.
    let rate = 1.0 / 1_213_200.0;
    assert_eq!(told("sum:2wc-sum:rate:w", "2023/10/03"), format!("1698552000 0.0, 1699765200 {rate:?}"));
    // A scan of points begins in another week than one of rollups.
    let of_points = "1697342400 1.0, 1698552000 1.0, 1699765200 2.0";
    assert_eq!(told("sum:2wc-sum:rollup_fallback_raw:n", "2023/10/03"), of_points);
}

/// `Q-ROLLUP-SPLIT`: what is older falls back as a query that is not split does.
#[test]
fn q_rollup_split_what_is_older_falls_back() {
    let mut fixture = rolled_up(true);
    for hour in 0..3 {
        fixture.put(&format!("n {} 1 host=a", 1_699_999_200 + hour * 3600));
    }
    let told = |metric: &str| told(&fixture, false, &request(metric, "1699999200", "1700010000"), SPLIT_NOW_S);
    assert_eq!(told("sum:1h-sum:n"), "1700002800 1.0, 1700006400 1.0");
    let all = "1699999200 1.0, 1700002800 1.0, 1700006400 1.0";
    assert_eq!(told("sum:1h-sum:rollup_fallback:n"), all);
    assert_eq!(told("sum:1h-sum:rollup_fallback_raw:n"), all);
    assert_eq!(told_of_formula(&fixture, "scale(sum:1h-sum:rollup_fallback_raw:n,1)", SPLIT_NOW_S), all);
}

/// `Q-ROLLUP-SPLIT`: a group that is of one host before the split and of another after it is of no one host.
#[test]
fn q_rollup_split_a_tag_that_differs_is_aggregated() {
    let mut fixture = rolled_up(true);
    roll(&fixture, "1h", ("p", &[("host", "a"), ("dc", "x")]), 1_699_999_200, 10);
    fixture.put("p 1700006400 1 host=b");
    for (strict, tags, aggregated) in [(false, "dc=x", "host"), (true, "host=b dc=x", "")] {
        let request = request("sum:1h-sum:p", "1699999200", "1700010000");
        let engine = fixture.engine(strict, Limits::default());
        let answers = engine.run(&request, SPLIT_NOW_S * 1000, &Cancel::new()).unwrap();
        let [series] = answers[0].series.as_slice() else { panic!("{answers:?}") };
        let found: Vec<String> = series.tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!((found.join(" ").as_str(), series.aggregate_tags.join(" ").as_str()), (tags, aggregated));
        assert_eq!(text(series), "1699999200 10.0, 1700006400 1.0");
    }
}

/// `Q-ROLLUP`, `Q-DELETE`: points that were read in place of rollups are deleted, rollups are not.
#[test]
fn q_rollup_points_read_in_their_place_are_deleted() {
    for (split_queries, metric, now_s, left) in [
        (false, "sum:1h-sum:rollup_fallback_raw:n", 1_800_000_000, ""),
        (true, "sum:1h-sum:m", SPLIT_NOW_S, "1699999200 1"),
        (true, "sum:1h-sum:rollup_fallback_raw:n", SPLIT_NOW_S, ""),
        (true, "sum:1h-sum:m", 1_699_990_000, ""),
    ] {
        let mut fixture = rolled_up(split_queries);
        fixture.put("n 1700000000 5 host=a");
        let request = QueryRequest { delete: true, ..request(metric, "1699999200", "1700010000") };
        told(&fixture, false, &request, now_s);
        let name = metric.rsplit(':').next().unwrap();
        let points = fixture.ask("1699999200", "1700010000", &format!("sum:{name}")).unwrap();
        assert_eq!(points.first().map(text).unwrap_or_default(), left, "{metric} at {now_s}");
    }
}
