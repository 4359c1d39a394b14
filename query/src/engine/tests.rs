//! Requests answered from end to end over the memory store. What is recorded from OpenTSDB is in `golden.rs`; here are
//! the choices that are ours, and what no recording shows.

use std::sync::Arc;

use basalt_schema::{Bounds, Histogram, PointTime, Salting, Schema, SchemaConfig, histogram_column};

use crate::fixture::{Fixture, text};
use crate::{
    Cancel, Error, ExpressionRequest, GetParameters, LastPoint, LastRequest, Limits, Options, QueryEngine,
    QueryRequest, Series, SubQuery, TagFilter,
};

const START: &str = "1699999200";
const END: &str = "1700006400";

fn hosts(count: usize) -> Fixture {
    let mut fixture = Fixture::new(Salting::EMBEDDED);
    for host in 0..count {
        for hour in 0..2 {
            fixture.put(&format!("m {} {host} host=h{host} dc=d{}", 1_699_999_200 + hour * 3600, host % 3));
        }
    }
    fixture
}

#[test]
fn q_nosuchname_an_unknown_tag_value_is_an_empty_answer() {
    let fixture = Fixture::with(&["m 1700000000 1 host=a"]);
    assert_eq!(fixture.ask(START, END, "sum:m{host=nobody}").unwrap(), []);
    assert_eq!(fixture.ask(START, END, "sum:m{host=nobody|a}").unwrap().len(), 1);
    let error = fixture.ask(START, END, "sum:m{rack=a}").unwrap_err();
    assert_eq!(error.to_string(), "No such name for 'tagk': 'rack'");
    let error = fixture.ask(START, END, "sum:nothing").unwrap_err();
    assert_eq!(error.to_string(), "No such name for 'metrics': 'nothing'");
    let request = QueryRequest {
        start: Some(START.to_owned()),
        queries: vec![SubQuery::from_metric_text("sum:m{host=nobody}").unwrap()],
        ..QueryRequest::default()
    };
    let strict = fixture.engine(true, Limits::default()).run(&request, 1_800_000_000_000, &Cancel::new());
    assert_eq!(strict.unwrap_err().to_string(), "No such name for 'tagv': 'nobody'");
}

/// `Q-FILTER-LITERALOR`: a value without a character is none; strictly it is a name that is missing, unless it is the last.
#[test]
fn q_filter_literalor_an_empty_value_is_none() {
    let fixture = Fixture::with(&["m 1700000000 1 host=a"]);
    for (text, groups, is_missing) in [
        ("sum:m{host=a||b}", 1, true),
        ("sum:m{host=|a}", 1, true),
        ("sum:m{host=a||}", 1, false),
        ("sum:m{host=||}", 0, false),
        ("sum:m{host=a|*}", 0, false),
    ] {
        assert_eq!(fixture.ask(START, END, text).unwrap().len(), groups, "{text}");
        let request = QueryRequest {
            start: Some(START.to_owned()),
            queries: vec![SubQuery::from_metric_text(text).unwrap()],
            ..QueryRequest::default()
        };
        let strict = fixture.engine(true, Limits::default()).run(&request, 1_800_000_000_000, &Cancel::new());
        assert_eq!(strict.is_err_and(|error| error.to_string() == "Missing UID name"), is_missing, "{text}");
    }
}

/// `Q-DS-CALENDAR`: the first bucket counts for nothing where it begins before the scan, also in rows that are joined by hours.
#[test]
fn a_week_that_begins_before_the_scan_is_in_no_number() {
    for [ten, thirty, hundred] in [["10", "30", "100"], ["10.0", "30.0", "100.0"]] {
        let lines = [
            format!("m 1704456000 {ten} host=a"),
            format!("m 1705320000 {thirty} host=a"),
            format!("m 1704715200 {hundred} host=b"),
            format!("m 1705320000 {hundred} host=b"),
        ];
        let fixture = Fixture::with(&lines.each_ref().map(String::as_str));
        let ask = |sub: &str| {
            let answer = fixture.ask("2024/01/06", "2024/01/20", sub).unwrap();
            answer.iter().map(text).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(ask("sum:1wc-sum:m"), "1704585600 100.0, 1705190400 130.0", "{ten}");
        assert_eq!(ask("first:1wc-sum:m"), "1704585600 100.0, 1705190400 30.0", "{ten}");
        assert_eq!(ask("count:1wc-sum-nan:m"), ask("count:1wc-sum-null:m"), "{ten}");
    }
    let fixture = Fixture::with(&["m 1704456000 50 a=b", "m 1704715200 40 a=b", "m 1705320000 45 a=b"]);
    let rates = fixture.ask("2024/01/06", "2024/01/20", "sum:1wc-max:rate{dropcounter}:m").unwrap();
    assert_eq!(rates.iter().map(|series| series.points.len()).sum::<usize>(), 1);
}

/// `Q-FILTER`, strictly: of the key with the least UID all lists are joined; of a later one only the last filter may bring
/// one, and in the request the braces that group come last.
#[test]
fn q_filter_of_a_later_key_the_last_filter_alone_brings_a_list() {
    let fixture =
        Fixture::with(&["m 1700000000 1 host=a dc=x", "m 1700000000 2 host=b dc=y", "m 1700000000 4 host=c dc=z"]);
    let check = |strict: bool, sub: &str, expected: &str| {
        let request = QueryRequest {
            start: Some(START.to_owned()),
            queries: vec![SubQuery::from_metric_text(sub).unwrap()],
            ..QueryRequest::default()
        };
        let answers = fixture.engine(strict, Limits::default()).run(&request, 1_800_000_000_000, &Cancel::new());
        let sums: Vec<String> = answers.unwrap()[0].series.iter().map(text).collect();
        assert_eq!(sums.join(", "), expected, "{sub}, strict {strict}");
    };
    check(true, "sum:m{host=a}{host=literal_or(b)}", "1700000000 1, 1700000000 2");
    check(false, "sum:m{host=a}{host=literal_or(b)}", "");
    check(true, "sum:m{dc=x}{host=*,dc=literal_or(y)}", "1700000000 1");
    check(true, "sum:m{dc=*}{host=*,dc=literal_or(y)}", "1700000000 1, 1700000000 2, 1700000000 4");
    check(true, "sum:m{dc=literal_or(y)}{host=*,dc=*}", "1700000000 2");
    check(false, "sum:m{dc=*}{host=*,dc=literal_or(y)}", "1700000000 2");
}

/// A daemon that opened the tables before a point was written, and one that reads them alone.
#[test]
fn what_others_wrote_since_is_found_in_shared_tables() {
    let fixture = Fixture::with(&["m 1700000000 1 host=a"]);
    let (alone, shared) = (fixture.another(false), fixture.another(true));
    fixture.put_unseen("m", ("host", "b"), 1_700_000_000, 2);
    let ask = |schema: &Arc<Schema>, sub: SubQuery| {
        let request = QueryRequest { start: Some(START.to_owned()), queries: vec![sub], ..QueryRequest::default() };
        let engine = QueryEngine::new(Arc::clone(schema), Options::default(), Limits::default());
        let answer = engine.run(&request, 1_800_000_000_000, &Cancel::new()).unwrap();
        answer[0].series.first().map(text).unwrap_or_default()
    };
    let named = || SubQuery::from_metric_text("sum:m").unwrap();
    let tsuid = fixture.schema.find("m", &[("host", "b")]).unwrap().to_string();
    let listed = || SubQuery::from_tsuid_text(&format!("sum:{tsuid}")).unwrap();
    assert_eq!(ask(&alone, named()), "1700000000 1");
    assert_eq!(ask(&shared, listed()), "1700000000 2");
    assert!(shared.index().is_empty(), "a series that is listed is got by key");
    assert_eq!(ask(&shared, named()), "1700000000 3");
}

#[test]
fn gets_and_scans_answer_alike() {
    // One of 40 series is got by key, all of them are scanned.
    let fixture = hosts(40);
    let all = fixture.ask(START, END, "sum:m{host=*}").unwrap();
    assert_eq!(all.len(), 40);
    for series in &all {
        let host = &*series.tags[0].1;
        let one = fixture.ask(START, END, &format!("sum:m{{host={host}}}")).unwrap();
        assert_eq!(one, std::slice::from_ref(series));
        assert_eq!(series.points.len(), 2);
    }
    let third = fixture.ask(START, END, "count:m{dc=d1}").unwrap();
    assert_eq!(text(&third[0]), "1699999200 13, 1700002800 13");
}

/// Rows that are kept while series are looked for, under what the cluster was told of the filters, give what the index gives.
#[test]
fn shared_tables_answer_as_others_do() {
    let fixture = hosts(40);
    let shared = fixture.another(true);
    let engine = QueryEngine::new(Arc::clone(&shared), Options::default(), Limits::default());
    for question in [
        "sum:m",
        "sum:m{host=*}",
        "sum:m{host=h7}",
        "sum:m{host=h7|h8|h9}{dc=*}",
        "sum:m{dc=d1,host=wildcard(h1*)}",
        "sum:m{}{host=not_literal_or(h1)}",
        "sum:1h-avg:rate:m{}{dc=regexp(d[01])}",
        "sum:m{host=nosuch}",
        "sum:explicit_tags:m{host=*,dc=*}",
    ] {
        let request = QueryRequest {
            start: Some(START.to_owned()),
            end: Some(END.to_owned()),
            queries: vec![SubQuery::from_metric_text(question).unwrap()],
            ..QueryRequest::default()
        };
        let answer = engine.run(&request, 1_800_000_000_000, &Cancel::new()).unwrap();
        assert_eq!(answer[0].series, fixture.ask(START, END, question).unwrap(), "{question}");
    }
    assert_eq!(shared.index().len(), 40);
}

#[test]
fn salted_and_unsalted_answer_alike() {
    let ask = |salting| {
        let mut fixture = Fixture::new(salting);
        for host in 0..20 {
            fixture.put(&format!("m {} {host}.5 host=h{host} dc=d{}", 1_700_000_000 + host * 7, host % 2));
        }
        fixture.ask(START, END, "sum:m{dc=*}").unwrap()
    };
    assert_eq!(ask(Salting::NONE), ask(Salting::EMBEDDED));
}

#[test]
fn q_rate_hold_a_late_series_adds_nothing_before_its_first_rate() {
    let fixture = Fixture::with(&[
        "c 1700000000 0 host=a",
        "c 1700000010 10 host=a",
        "c 1700000020 20 host=a",
        "c 1700000030 30 host=a",
        "c 1700000018 5000000000000 host=b",
        "c 1700000025 5000000000070 host=b",
    ]);
    let found = fixture.ask(START, END, "sum:rate:c").unwrap();
    assert_eq!(text(&found[0]), "1700000010 1.0, 1700000020 1.0, 1700000025 11.0, 1700000030 1.0");
}

#[test]
fn q_filter_notkey_takes_the_series_without_the_key() {
    let fixture = Fixture::with(&["m 1700000000 1 host=a", "m 1700000000 2 host=b rack=r", "m 1700000000 4 dc=d"]);
    let sum = |metric: &str| fixture.ask(START, END, metric).unwrap().first().map(text);
    assert_eq!(sum("sum:m{}{rack=not_key()}").as_deref(), Some("1700000000 5"));
    assert_eq!(sum("sum:m{}{rack=not_key(),host=*}").as_deref(), Some("1700000000 1"));
    assert_eq!(sum("sum:m{}{unknown=not_key()}").as_deref(), Some("1700000000 7"));
}

#[test]
fn q_limit_points_bytes_series() {
    let fixture = hosts(8);
    let ask = |limits| fixture.ask_with(START, END, SubQuery::from_metric_text("sum:m").unwrap(), limits);
    let error = ask(Limits { points_max: 15, ..Limits::default() }).unwrap_err();
    assert!(matches!(error, Error::TooManyPoints { limit: 15 }), "{error}");
    assert!(ask(Limits { points_max: 16, ..Limits::default() }).is_ok());
    let error = ask(Limits { bytes_max: 10, ..Limits::default() }).unwrap_err();
    assert!(matches!(error, Error::TooManyBytes { .. }), "{error}");
    let error = ask(Limits { series_max: 7, ..Limits::default() }).unwrap_err();
    assert!(matches!(error, Error::TooManySeries { limit: 7 }), "{error}");
    assert!(error.to_string().contains("query.max_series"), "{error}");
    assert!(ask(Limits { series_max: 8, ..Limits::default() }).is_ok());
    assert!(ask(Limits { series_max: 0, ..Limits::default() }).is_ok());
    assert!(ask(Limits { scans_at_once_max: 1, ..Limits::default() }).is_ok());
}

/// `Q-LIMIT`: series count that pass the filters, also where a request lists them.
#[test]
fn q_limit_series_that_filters_leave_out_do_not_count() {
    let fixture = hosts(8);
    let all = fixture.ask(START, END, "sum:m").unwrap().remove(0).tsuids;
    let ask = |sub| fixture.ask_with(START, END, sub, Limits { series_max: 3, ..Limits::default() });
    assert_eq!(ask(SubQuery::from_metric_text("sum:m{dc=d0}").unwrap()).unwrap()[0].tsuids.len(), 3);
    let listed = SubQuery { metric: None, tsuids: all, ..SubQuery::from_metric_text("sum:m{dc=d0}").unwrap() };
    assert_eq!(ask(listed.clone()).unwrap()[0].tsuids.len(), 3);
    let unfiltered = SubQuery { filters: Vec::new(), ..listed };
    assert!(matches!(ask(unfiltered), Err(Error::TooManySeries { limit: 3 })));
}

/// `Q-LIMIT`: without a bound of their own, series are bounded by the memory that they take, whether they have points or not.
#[test]
fn q_limit_series_are_bounded_by_memory_where_they_have_no_other_bound() {
    let fixture = hosts(100);
    let ask = |start, end, memory_bytes| {
        let limits = Limits { series_max: 0, memory_bytes, ..Limits::default() };
        fixture.ask_with(start, end, SubQuery::from_metric_text("sum:m").unwrap(), limits)
    };
    assert!(matches!(ask("1600000000", "1600000100", 60_000), Err(Error::TooMuchMemory { limit_bytes: 60_000 })));
    assert!(ask("1600000000", "1600000100", 70_000).unwrap().is_empty());
    assert_eq!(ask(START, END, 1 << 20).unwrap()[0].tsuids.len(), 100);
}

#[test]
fn a_fill_policy_may_not_make_up_points_without_end() {
    let fixture = Fixture::with(&["m 1700000000 1 host=a"]);
    let error = fixture.ask("1600000000", "1700001000", "sum:1ms-sum-zero:m").unwrap_err();
    assert!(matches!(error, Error::TooManyMadeUp { limit: 67_108_864 }), "{error}");
    assert!(error.to_string().contains("the fill policy or the expressions"), "{error}");
    assert_eq!(fixture.ask("1600000000", "1700001000", "sum:1ms-sum:m").unwrap()[0].points.len(), 1);
}

#[test]
fn q_timeout_a_cancelled_query_is_not_answered() {
    let fixture = hosts(4);
    let cancel = Cancel::new();
    cancel.cancel();
    let request = QueryRequest {
        start: Some(START.to_owned()),
        queries: vec![SubQuery::from_metric_text("sum:m").unwrap()],
        ..QueryRequest::default()
    };
    let error = fixture.engine(false, Limits::default()).run(&request, 1_800_000_000_000, &cancel).unwrap_err();
    assert!(matches!(error, Error::Cancelled), "{error}");
}

#[test]
fn q_annot_of_series_and_global() {
    let fixture = Fixture::with(&["m 1700000000 1 host=a", "m 1700000000 2 host=b"]);
    fixture.annotate("m", ("host", "b"), 1_700_000_050, "{\"second\":1}");
    fixture.annotate("m", ("host", "a"), 1_700_000_005_500, "{\"first\":1}");
    fixture.annotate("m", ("host", "a"), 1_700_002_000, "{\"beyond\":1}");
    fixture.annotate_globally(1_700_000_100, "{\"global\":1}");
    let found = fixture.ask(START, "1700000200", "sum:m").unwrap();
    let notes: Vec<_> = found[0].annotations.iter().map(|note| (note.start_ms, &*note.json)).collect();
    assert_eq!(notes, [(1_700_000_005_500, &b"{\"first\":1}"[..]), (1_700_000_050_000, b"{\"second\":1}")]);
    let engine = fixture.engine(false, Limits::default());
    let request = |no_annotations| QueryRequest {
        start: Some(START.to_owned()),
        no_annotations,
        queries: vec![SubQuery::from_metric_text("sum:m").unwrap()],
        ..QueryRequest::default()
    };
    let now_ms = 1_700_000_200_000;
    let query = request(false).check(now_ms, engine.options()).unwrap();
    let (global, _held) = engine.global_annotations(&query, &Cancel::new()).unwrap();
    assert_eq!(global.len(), 1);
    assert_eq!(global[0].start_ms, 1_700_000_100_000);
    let bare = engine.run(&request(true), now_ms, &Cancel::new()).unwrap();
    assert!(bare[0].series[0].annotations.is_empty());
}

#[test]
fn an_annotation_that_is_no_json_never_gets_into_an_answer() {
    let fixture = Fixture::with(&["m 1700000000 1 host=a"]);
    fixture.annotate("m", ("host", "a"), 1_700_000_050, "}, broken");
    let error = fixture.ask(START, END, "sum:m").unwrap_err();
    assert!(matches!(error, Error::CorruptAnnotation { start_ms: 1_700_000_050_000, .. }), "{error}");
}

#[test]
fn a_series_of_annotations_alone_has_no_name() {
    let fixture = Fixture::with(&["m 1700000000 1 host=a"]);
    fixture.annotate("m", ("host", "b"), 1_700_000_050, "{}");
    let found = fixture.ask(START, END, "sum:m{host=*}").unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!((&*found[1].metric, found[1].annotations.len(), found[1].points.len()), ("", 1, 0));
}

#[test]
fn q_get_tsuid_filters_hold_for_lists_too() {
    let fixture = Fixture::with(&["m 1700000000 1 host=a", "m 1700000000 2 host=b"]);
    let mut sub = SubQuery::from_tsuid_text("sum:000001000001000001,000001000001000002").unwrap();
    let found = fixture.ask_with(START, END, sub.clone(), Limits::default()).unwrap();
    assert_eq!(text(&found[0]), "1700000000 3");
    sub.filters = SubQuery::from_metric_text("sum:m{}{host=b}").unwrap().filters;
    let found = fixture.ask_with(START, END, sub.clone(), Limits::default()).unwrap();
    assert_eq!(
        (text(&found[0]).as_str(), found[0].tsuids.as_slice()),
        ("1700000000 2", &["000001000001000002".to_owned()][..])
    );
    // Whoever reads adds no series.
    sub.tsuids.push("000001000001000099".to_owned());
    assert_eq!(fixture.ask_with(START, END, sub, Limits::default()).unwrap(), found);
    assert_eq!(fixture.schema.index().len(), 2);
    let error = fixture.ask_with(START, END, SubQuery::from_tsuid_text("sum:zz").unwrap(), Limits::default());
    assert!(matches!(error, Err(Error::InvalidTsuid { .. })));
}

/// `Q-HISTO`: series are summed bucket by bucket, percentiles and buckets are series of their own, and points are not.
#[test]
fn q_histo_percentiles_and_buckets_are_series() {
    let mut fixture = Fixture::of(SchemaConfig { histogram_id: Some(7), ..SchemaConfig::default() });
    fixture.put("m 1700000000 1 host=a");
    for (host, second, counts) in [("a", 0, [1, 9]), ("b", 0, [9, 1]), ("b", 70, [0, 4])] {
        let mut histogram = Histogram::default();
        histogram.set(Bounds { lower: 0.0, upper: 1.0 }, counts[0]);
        histogram.set(Bounds { lower: 1.0, upper: 2.5 }, counts[1]);
        let tsuid = fixture.schema.resolve("m", &[("host", host)]).unwrap();
        fixture.schema.index().add(&tsuid).unwrap();
        let (base, qualifier) = histogram_column(PointTime::from_number(1_700_000_000 + second).unwrap());
        let key = fixture.schema.layout().series_key(&tsuid).row_key(base);
        fixture.store(&key, &qualifier, &histogram.encode(7));
    }
    let told = |metric: &str| {
        let series = fixture.ask("1699999990", "1700000990", metric).unwrap();
        series.iter().map(|series| format!("{}: {}", series.metric, text(series))).collect::<Vec<_>>()
    };
    assert_eq!(
        told("sum:percentiles[50,99.9]:m"),
        ["m_pct_50.0: 1700000000 0.5, 1700000070 1.75", "m_pct_99.9: 1700000000 1.75, 1700000070 1.75"]
    );
    assert_eq!(
        told("sum:show-histogram-buckets:m"),
        [
            "m_UNDERFLOW: 1700000000 0, 1700000070 0",
            "m_0.0_1.0: 1700000000 10, 1700000070 0",
            "m_1.0_2.5: 1700000000 10, 1700000070 4",
            "m_OVERFLOW: 1700000000 0, 1700000070 0"
        ]
    );
    assert_eq!(told("sum:1h-sum:percentiles[99]:m{host=b}"), ["m_pct_99.0: "]);
    assert_eq!(told("sum:1m-sum:percentiles[99]:m{host=b}"), ["m_pct_99.0: 1700000040 1.75"]);
    assert_eq!(told("none:percentiles[20]:m").len(), 2);
    assert_eq!(told("sum:m"), ["m: 1700000000 1"]);
    fixture.annotate("m", ("host", "c"), 1_700_000_050, "{}");
    assert_eq!(told("sum:percentiles[99]:m{host=c}"), ["_pct_99.0: "]);
    for (metric, words) in [
        ("avg:percentiles[50]:m", "Only NONE or SUM aggregation function supported for histogram query"),
        ("sum:1m-avg:percentiles[50]:m", "Only SUM downsampling aggregation supported for histogram query"),
        ("sum:percentiles[100.5]:m", "Invalid percentile parameters: 100.5"),
        ("sum:pre-agg:m", "Pre-aggregates are kept only where rollups are configured"),
    ] {
        assert_eq!(fixture.ask(START, END, metric).unwrap_err().to_string(), words);
    }
}

/// `Q-LIMIT`: all queries share a bound of memory; an answer holds its part until it is dropped.
#[test]
fn q_limit_the_memory_of_all_queries_is_bounded() {
    let fixture = hosts(40);
    let request = QueryRequest {
        start: Some(START.to_owned()),
        end: Some(END.to_owned()),
        queries: vec![SubQuery::from_metric_text("none:m").unwrap()],
        ..QueryRequest::default()
    };
    let ask = |engine: &QueryEngine| engine.run(&request, 1_800_000_000_000, &Cancel::new());
    let engine = fixture.engine(false, Limits { memory_bytes: 4_000, ..Limits::default() });
    assert!(matches!(ask(&engine), Err(Error::TooMuchMemory { limit_bytes: 4_000 })));
    assert_eq!(engine.memory_used_bytes(), 0);
    // While groups are made, each takes memory by the thousand points: this much suffices for two at once.
    let engine = fixture.engine(false, Limits { memory_bytes: 1 << 20, ..Limits::default() });
    let mut answers = Vec::new();
    let refused = loop {
        match ask(&engine) {
            Ok(answer) => answers.push(answer),
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, Error::MemoryTaken { limit_bytes: 1_048_576, .. }), "{refused}");
    assert!(!answers.is_empty());
    drop(answers);
    assert_eq!(engine.memory_used_bytes(), 0);
    ask(&engine).unwrap();
}

/// `Q-LIMIT`: series take memory without any point in the range, too.
#[test]
fn q_limit_series_without_points_count_as_memory() {
    const SERIES: usize = 2_000;
    let mut fixture = Fixture::new(Salting::EMBEDDED);
    for host in 0..SERIES {
        fixture.put(&format!("m 1700000000 1 host=h{host}"));
    }
    // Behind the points, in their hour.
    let ask = |metrics: &[&str], memory_bytes: u64| {
        let request = QueryRequest {
            start: Some("1700000001".to_owned()),
            end: Some("1700000100".to_owned()),
            queries: metrics.iter().map(|metric| SubQuery::from_metric_text(metric).unwrap()).collect(),
            ..QueryRequest::default()
        };
        let engine = fixture.engine(false, Limits { memory_bytes, ..Limits::default() });
        (engine.run(&request, 1_800_000_000_000, &Cancel::new()), engine)
    };
    let (answers, engine) = ask(&["none:60s-avg:m"], 0);
    let answers = answers.unwrap();
    let series = &answers[0].series;
    assert_eq!(series.len(), SERIES);
    assert!(series.iter().all(|series| series.points.is_empty()));
    let taken = SERIES * (size_of::<Series>() + 2 * size_of::<Arc<str>>() + series[0].tsuids[0].len());
    assert!(engine.memory_used_bytes() >= taken as u64, "{} of {taken}", engine.memory_used_bytes());
    drop(answers);
    assert_eq!(engine.memory_used_bytes(), 0);
    let refused = |(answers, engine): (crate::Result<_>, QueryEngine)| {
        assert!(matches!(answers, Err(Error::TooMuchMemory { .. })), "{answers:?}");
        assert_eq!(engine.memory_used_bytes(), 0);
    };
    refused(ask(&["none:60s-avg:m"], 1 << 20));
    // One fits and two do not: what the first came to is still held.
    assert!(ask(&["none:60s-avg:m"], 5 << 19).0.is_ok());
    refused(ask(&["none:60s-avg:m", "none:61s-avg:m"], 5 << 19));
}

/// `Q-LIMIT`: every percentile of a group names all of its members.
#[test]
fn q_limit_percentiles_count_as_memory_by_their_members() {
    const SERIES: usize = 300;
    let fixture = Fixture::of(SchemaConfig { histogram_id: Some(7), ..SchemaConfig::default() });
    let mut histogram = Histogram::default();
    histogram.set(Bounds { lower: 0.0, upper: 1.0 }, 1);
    let (base, qualifier) = histogram_column(PointTime::from_number(1_700_000_000).unwrap());
    for host in 0..SERIES {
        let tsuid = fixture.schema.resolve("m", &[("host", &format!("h{host}"))]).unwrap();
        fixture.schema.index().add(&tsuid).unwrap();
        let key = fixture.schema.layout().series_key(&tsuid).row_key(base);
        fixture.store(&key, &qualifier, &histogram.encode(7));
    }
    let ask = |count: usize| {
        let percentiles = (1..=count).map(|at| at.to_string()).collect::<Vec<_>>().join(",");
        let sub = SubQuery::from_metric_text(&format!("sum:percentiles[{percentiles}]:m")).unwrap();
        fixture.ask_with(START, END, sub, Limits { memory_bytes: 1 << 20, ..Limits::default() })
    };
    assert_eq!(ask(10).unwrap().len(), 10);
    assert!(matches!(ask(100), Err(Error::TooMuchMemory { limit_bytes: 1_048_576 })));
}

/// `P-LIMITS`: by metric, also where the series are named by their TSUIDs; budgets are a sub query's.
#[test]
fn p_limits_a_metric_has_limits_of_its_own() {
    let fixture = hosts(3);
    let engine = fixture.engine(false, Limits { points_max: 5, points_may_be_lifted: true, ..Limits::default() });
    let ask = |text: &str, lift: bool| {
        let request = QueryRequest {
            start: Some(START.to_owned()),
            end: Some(END.to_owned()),
            queries: vec![SubQuery::from_metric_text(text).unwrap()],
            override_data_point_limit: lift,
            ..QueryRequest::default()
        };
        engine.run(&request, 1_800_000_000_000, &Cancel::new())
    };
    assert!(matches!(ask("sum:m", false), Err(Error::TooManyPoints { limit: 5 })));
    assert!(ask("sum:m", true).is_ok());
    engine.overrides().replace(r#"[{"regex":"^m$","dataPointsLimit":6}]"#).unwrap();
    assert!(ask("sum:m", false).is_ok());
    engine.overrides().replace(r#"[{"regex":"^m$","dataPointsLimit":4}]"#).unwrap();
    assert!(matches!(ask("sum:m", false), Err(Error::TooManyPoints { limit: 4 })));
    let tsuid = ask("none:m", true).unwrap()[0].series[0].tsuids[0].clone();
    let request = QueryRequest {
        start: Some(START.to_owned()),
        end: Some(END.to_owned()),
        queries: vec![SubQuery { aggregator: Some("sum".to_owned()), tsuids: vec![tsuid], ..SubQuery::default() }; 4],
        ..QueryRequest::default()
    };
    let answers = engine.run(&request, 1_800_000_000_000, &Cancel::new());
    assert!(answers.is_ok(), "each sub query has its own budget: {answers:?}");
    engine.overrides().replace(r#"[{"regex":"m","byteLimit":1}]"#).unwrap();
    let refused = engine.run(&request, 1_800_000_000_000, &Cancel::new());
    assert!(matches!(refused, Err(Error::TooManyBytes { limit_bytes: 1 })));
}

/// `Q-FILTER-REGEXP`: over tables that others write, too, where rows are read before the series are known.
#[test]
fn q_filter_regexp_one_that_does_not_compile_costs_no_rows() {
    let shared = Fixture::with(&["m 1700000000 1 host=a"]).another(true);
    let ask = |expression: &str| {
        let filters = vec![TagFilter::new("regexp", "host", expression, false).unwrap()];
        let request = QueryRequest {
            start: Some(START.to_owned()),
            queries: vec![SubQuery { filters, ..SubQuery::from_metric_text("sum:m").unwrap() }],
            ..QueryRequest::default()
        };
        let engine = QueryEngine::new(Arc::clone(&shared), Options::default(), Limits::default());
        engine.run(&request, 1_800_000_000_000, &Cancel::new())
    };
    assert!(matches!(ask(r"\p{Foo}"), Err(Error::Filter { .. })));
    assert!(shared.index().is_empty());
    assert!(ask("a").is_ok() && !shared.index().is_empty());
}

/// `Q-FILTER-REGEXP`, `Q-TIMEOUT`: to compile one may take seconds, and a request has many.
#[test]
fn q_timeout_no_filter_is_compiled_for_a_client_that_left() {
    let fixture = Fixture::with(&["m 1700000000 1 host=a"]);
    // Refused when it is compiled.
    let filters = vec![TagFilter::new("regexp", "host", r"\pL{2000}", false).unwrap()];
    let request = QueryRequest {
        start: Some(START.to_owned()),
        queries: vec![SubQuery { filters, ..SubQuery::from_metric_text("sum:m").unwrap() }],
        ..QueryRequest::default()
    };
    let (engine, cancel) = (fixture.engine(false, Limits::default()), Cancel::new());
    let ask = || engine.run(&request, 1_800_000_000_000, &cancel).unwrap_err();
    assert!(matches!(ask(), Error::Filter { .. }));
    cancel.cancel();
    assert!(matches!(ask(), Error::Cancelled));
    // Nor is it gone on with behind one, also where the metric has no values of the key.
    let mut fixture = fixture;
    fixture.put("n 1700000000 1 dc=a");
    let filter = |text| TagFilter::new("regexp", "dc", text, false).unwrap();
    let mut filters = vec![filter(r"\pL{12}"); 50];
    filters.push(filter(r"\pL{2000}"));
    let sub = SubQuery { filters, ..SubQuery::from_metric_text("sum:m").unwrap() };
    let late = fixture.ask_with(START, END, sub, Limits { deadline_ms: 1, ..Limits::default() });
    assert!(matches!(late, Err(Error::DeadlineExceeded { .. })), "{late:?}");
}

/// `Q-FILTER-REGEXP`, `Q-FILTER-NOTLITERALOR`, `Q-FILTER-ILITERALOR`: a get for each of millions of values took longer than a query may.
#[test]
fn q_filter_values_beyond_those_in_memory_are_read_many_at_once() {
    let mut fixture = Fixture::of(SchemaConfig { uid_cache_entries: 16, ..SchemaConfig::default() });
    for host in 0..200 {
        fixture.put(&format!("m 1700000000 1 host=h{host:03}"));
    }
    for (filter, expected) in [("regexp(h1.5)", 10), ("not_literal_or(h007)", 199), ("iliteral_or(H007|h100)", 2)] {
        fixture.fail_name_get(50);
        let found = fixture.ask(START, END, &format!("sum:m{{}}{{host={filter}}}")).unwrap();
        assert_eq!(found.iter().map(text).collect::<Vec<_>>(), [format!("1700000000 {expected}")]);
    }
}

/// A get for each name of an answer was a call of a cluster each, and an answer may have a million groups.
#[test]
fn the_names_of_many_groups_are_read_at_once() {
    let mut fixture = Fixture::of(SchemaConfig { uid_cache_entries: 16, ..SchemaConfig::default() });
    for host in 0..200 {
        fixture.put(&format!("m 1700000000 1 host=h{host:03}"));
    }
    let (engine, cancel) = (fixture.engine(false, Limits::default()), Cancel::new());
    let check = |what: &str, hosts: Vec<String>| {
        let expected: Vec<String> = (0..200).map(|host| format!("h{host:03}")).collect();
        assert_eq!(hosts, expected, "{what}");
        fixture.fail_name_get(50);
    };
    let hosts = |found: &[Series]| found.iter().map(|series| series.tags[0].1.to_string()).collect();
    for metric in ["sum:m{host=*}", "sum:m{host=*}", "none:m"] {
        check(metric, hosts(&fixture.ask(START, END, metric).unwrap()));
    }
    let parameters = GetParameters { start: Some(START), end: Some(END), ..GetParameters::default() };
    let (request, formulas) =
        QueryRequest::from_formulas(&parameters, &["scale(sum:m{host=*},2)"], engine.options()).unwrap();
    let query = request.check(0, engine.options()).unwrap().for_formulas();
    check("gexp", hosts(&engine.run_formulas(&formulas, &query, &cancel).unwrap()[0].series));
    let body = r#"{"time":{"start":"1699999990","end":"1700000600","aggregator":"sum"},
        "filters":[{"id":"f","tags":[{"type":"wildcard","tagk":"host","filter":"*","groupBy":true}]}],
        "metrics":[{"id":"a","metric":"m","filter":"f"}],"expressions":[{"id":"e","expr":"a + 1"}]}"#;
    let plan = ExpressionRequest::from_json(body.as_bytes()).unwrap().check(0, engine.options()).unwrap();
    let answers = engine.run_expressions(&plan, &cancel).unwrap();
    check("exp", answers[0].series.iter().map(|series| series.tags[0].1.to_string()).collect());
    let request = LastRequest::from_get(&["m"], &[], true, Some("1")).unwrap();
    let last = engine.last(&request, 1_700_000_100_000, &cancel).unwrap();
    let host = |point: &LastPoint| last.names[last.tags[point.tags].names.as_ref().unwrap()[0]].1.to_string();
    check("last", last.points.iter().map(host).collect());
}
