//! The `m=` grammar, its JSON twin, and what is refused.

use basalt_store::ErrorKind;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::filter::FilterKind;
use crate::{Compat, Error, LastRequest, Options};

fn metric(text: &str) -> SubQuery {
    SubQuery::from_metric_text(text).unwrap()
}

fn metric_error(text: &str) -> String {
    SubQuery::from_metric_text(text).unwrap_err().to_string()
}

fn filters(sub: &SubQuery) -> Vec<(&str, FilterKind, &str, bool)> {
    sub.filters.iter().map(|f| (f.tagk(), f.kind(), f.text(), f.group_by)).collect()
}

#[test]
fn q_get_m() {
    let sub = metric("sum:1m-avg-nan:rate{counter,65535,1000}:sys.if.bytes{host=*}{dc=literal_or(lga|phx)}");
    assert_eq!(sub.aggregator.as_deref(), Some("sum"));
    assert_eq!(sub.metric.as_deref(), Some("sys.if.bytes"));
    assert_eq!(sub.downsample.as_deref(), Some("1m-avg-nan"));
    let options = RateOptions { counter: true, counter_max: 65_535, reset_value: 1000, drop_resets: false };
    assert_eq!((sub.rate, sub.rate_options), (true, Some(options)));
    let expected = [("dc", FilterKind::LiteralOr, "lga|phx", false), ("host", FilterKind::IWildcard, "*", true)];
    assert_eq!(filters(&sub), expected);
    let sub = metric("p95:explicit_tags:0all-max:web.latency{}{host=wildcard(web*)}");
    assert!(sub.explicit_tags && !sub.rate);
    assert_eq!(filters(&sub), [("host", FilterKind::Wildcard, "web*", false)]);
    assert_eq!(metric("sum:m{}").filters, []);
    assert_eq!(metric("sum:unknown part:rollup_raw:m").rollup_usage.as_deref(), Some("rollup_raw"));
    assert_eq!(metric("sum:percentiles[99.9,50]:m").percentiles, [99.9, 50.0]);
}

#[test]
fn q_rate_options_of_every_spelling() {
    let options = |text: &str| metric(&format!("sum:{text}:m")).rate_options;
    assert_eq!(options("rate"), None);
    assert_eq!(options("rate{false,,0}"), Some(RateOptions::default()));
    assert_eq!(options("rate{}"), Some(RateOptions::default()));
    assert_eq!(options("rate{counter}"), Some(RateOptions { counter: true, ..RateOptions::default() }));
    let dropping = RateOptions { counter: true, drop_resets: true, ..RateOptions::default() };
    assert_eq!(options("rate{dropcounter}"), Some(dropping));
    assert_eq!(
        options("rate{counter,,5}"),
        Some(RateOptions { counter: true, reset_value: 5, ..RateOptions::default() })
    );
}

/// `Q-RATE-COUNTER`: a counter has two names in a body, and an option that nobody knows is refused.
#[test]
fn q_rate_counter_has_two_names_in_a_body() {
    let read = |options: &str| {
        let body = format!(r#"{{"start":1,"queries":[{{"aggregator":"sum","metric":"m","rateOptions":{options}}}]}}"#);
        QueryRequest::from_json(body.as_bytes()).map(|request| request.queries[0].rate_options)
    };
    for name in ["counter", "isCounter"] {
        assert!(read(&format!(r#"{{"{name}":true}}"#)).unwrap().unwrap().counter, "{name}");
    }
    assert_eq!(read("null").unwrap(), None);
    assert!(read(r#"{"dropcounter":true}"#).is_err());
}

/// `Q-GET-M`: what makes OpenTSDB stumble within `m` is its 500, what it refuses is its 400.
#[test]
fn q_get_m_parts_that_opentsdb_stumbles_over() {
    let check = |text: &str, expected: &str, stumbles: bool| {
        let error = SubQuery::from_metric_text(text).unwrap_err();
        assert_eq!((&*error.to_string(), error.is_server_error_in_opentsdb()), (expected, stumbles), "{text}");
    };
    check("sum::m", "Invalid parameter m=sum::m (an empty :-separated part)", true);
    check("sum:1m-avg::m", "Invalid parameter m=sum:1m-avg::m (an empty :-separated part)", true);
    for part in ["percentiles[]", "percentiles[x]", "percentiles[9,]", "percentiles]["] {
        check(&format!("sum:{part}:m"), &format!("Invalid percentiles specification: {part}"), true);
    }
    for part in ["percentiles", "percentiles[9", "percentiles9]"] {
        check(&format!("sum:{part}:m"), &format!("Malformated percentile query paramater: {part}"), false);
    }
    assert_eq!(metric("sum:percentiles[9]x:m").percentiles, [9.0]);
    assert!(SubQuery::from_tsuid_text("sum::000001").unwrap_err().is_server_error_in_opentsdb());
}

#[test]
fn q_get_m_refusals() {
    assert_eq!(metric_error("m"), "Invalid parameter m=m (not enough :-separated parts)");
    assert_eq!(metric_error("a:b:c:d:e:f"), "Invalid parameter m=a:b:c:d:e:f (too many :-separated parts)");
    assert_eq!(metric_error(""), "The query string was empty");
    assert_eq!(metric_error("sum:m{host=a"), "Missing '}' at the end of: m{host=a");
    assert_eq!(metric_error("sum:m{host}"), "When parsing tag 'host': invalid tag: host");
    assert_eq!(
        metric_error("sum:m{}{host=nosuch(x)}"),
        "When parsing filter 'host=nosuch(x)': Could not find a tag value filter of the type: nosuch"
    );
    assert_eq!(
        metric_error("sum:rate{counter,1,2,3}:m"),
        "Incorrect number of values in rate options specification, must be counter[,counter max value,reset value], \
         recieved: 4 parts"
    );
    assert_eq!(metric_error("sum:rate{counter,x}:m"), "Max value of counter was not a number, received 'x'");
    assert_eq!(metric_error("sum:rate{counter,1,x}:m"), "Reset value of counter was not a number, received 'x'");
    assert_eq!(metric_error("sum:rate{:m"), "Invalid rate options specification: rate{");
    assert_eq!(metric_error("sum:rate{é:m"), "Invalid rate options specification: rate{é");
    assert_eq!(metric_error("sum:"), "Metric cannot be null or empty");
}

#[test]
fn q_post_is_the_twin_of_q_get() {
    let body = br#"{"start":1356998400,"end":"1356998460","msResolution":true,"showTSUIDs":true,"unknown":[1],
        "queries":[{"aggregator":"sum","metric":"sys.if.bytes","downsample":"1m-avg-nan","rate":true,"index":7,
        "rateOptions":{"counter":true,"counterMax":65535,"resetValue":"1000","dropResets":false},
        "filters":[{"type":"literal_or","tagk":"dc","filter":"lga|phx","groupBy":false},
                   {"type":"iwildcard","tagk":"host","filter":"*","group_by":true}]}]}"#;
    let request = QueryRequest::from_json(body).unwrap();
    assert!(request.ms_resolution && request.show_tsuids && !request.show_query);
    assert_eq!((request.start.as_deref(), request.end.as_deref()), (Some("1356998400"), Some("1356998460")));
    let twin = metric("sum:1m-avg-nan:rate{counter,65535,1000}:sys.if.bytes{host=*}{dc=literal_or(lga|phx)}");
    assert_eq!(filters(&request.queries[0]), filters(&twin));
    assert_eq!(request.queries[0].rate_options, twin.rate_options);
}

#[test]
fn q_get_tsuid_a_list_may_end_with_a_comma() {
    let sub = SubQuery::from_tsuid_text("sum:000001000001000001,000001000001000002,").unwrap();
    assert_eq!(sub.tsuids, ["000001000001000001", "000001000001000002"]);
    assert!(SubQuery::from_tsuid_text("sum:,").is_err());
}

/// `Q-RATE-COUNTER`: a largest value that is no number comes as `null` from a browser.
#[test]
fn q_rate_counter_has_a_largest_value_unless_one_is_told() {
    for (told, expected) in
        [("", i64::MAX), (r#","counterMax":null"#, 0), (r#","counterMax":"""#, 0), (r#","counterMax":"null""#, 0)]
    {
        let body = format!(
            r#"{{"start":1,"queries":[{{"aggregator":"sum","metric":"m","rateOptions":{{"counter":true{told}}}}}]}}"#
        );
        let request = QueryRequest::from_json(body.as_bytes()).unwrap();
        assert_eq!(request.queries[0].rate_options.unwrap().counter_max, expected, "{told}");
    }
}

#[test]
fn q_post_takes_nulls_and_texts() {
    let body = br#"{"start":"1h-ago","end":null,"timezone":null,"noAnnotations":"true","queries":[
        {"aggregator":"sum","metric":"m","tsuids":null,"downsample":null,"rate":null,"rateOptions":null,"tags":null,
         "filters":null,"percentiles":null}]}"#;
    let request = QueryRequest::from_json(body).unwrap();
    assert!(request.no_annotations);
    assert_eq!(
        request.queries,
        [SubQuery { aggregator: Some("sum".into()), metric: Some("m".into()), ..SubQuery::default() }]
    );
    for bad in [&b"{"[..], b"[]", br#"{"queries":[{"filters":[{"type":"x","tagk":"a","filter":"b"}]}]}"#, b""] {
        let error = QueryRequest::from_json(bad).unwrap_err();
        assert_eq!(error.to_string(), "Unable to parse the given JSON");
        assert!(error.details().is_some());
    }
}

/// `Q-POST`: numbers and flags are the texts that they are written as; `null` is none.
#[test]
fn q_post_tags_may_be_numbers_and_flags() {
    let ok = |tags: &str| {
        let body = format!(r#"{{"start":1,"queries":[{{"aggregator":"sum","metric":8,{tags}}}]}}"#);
        let request = QueryRequest::from_json(body.as_bytes())?;
        assert_eq!(request.queries[0].metric.as_deref(), Some("8"));
        let filters = &request.queries[0].filters;
        Ok::<_, Error>(filters.iter().map(|filter| filter.text().to_owned()).collect::<Vec<_>>())
    };
    let tags = r#""tags":{"a":8080,"b":true,"c":1.50,"d":1e400,"e":"x\u0041"}"#;
    assert_eq!(ok(tags).unwrap(), ["8080", "true", "1.50", "1e400", "xA"]);
    let filters =
        r#""filters":[{"type":"literal_or","tagk":"a","filter":1.50},{"type":"literal_or","tagk":7,"filter":false}]"#;
    assert_eq!(ok(filters).unwrap(), ["1.50", "false"]);
    for bad in [r#""tags":{"a":null}"#, r#""tags":{"a":[1]}"#, r#""tags":{"a":{}}"#, r#""tags":[]"#, r#""tags":"x""#] {
        assert!(ok(bad).is_err(), "{bad}");
    }
}

#[test]
fn q_filter_tags_the_last_of_tags_and_filters_counts() {
    let tagks = |body: &str| {
        let body = format!(r#"{{"start":1,"queries":[{{"aggregator":"sum","metric":"m",{body}}}]}}"#);
        let request = QueryRequest::from_json(body.as_bytes()).unwrap();
        request.queries[0].filters.iter().map(|filter| filter.tagk().to_owned()).collect::<Vec<_>>()
    };
    let filters = r#""filters":[{"type":"literal_or","tagk":"dc","filter":"a"}]"#;
    assert_eq!(tagks(&format!(r#"{filters},"tags":{{"host":"*"}}"#)), ["host"]);
    assert_eq!(tagks(&format!(r#""tags":{{"host":"*"}},{filters}"#)), ["dc"]);
    assert_eq!(tagks(&format!(r#"{filters},"tags":{{}}"#)), ["dc"]);
    assert_eq!(tagks(r#""filters":[],"tags":{"host":"*"}"#), ["host"]);
}

/// `Q-FILTER-TAGS`: strictly the last of both counts if it is empty, too.
#[test]
fn q_filter_tags_strictly_the_last_counts_empty_or_not() {
    let filters = r#""filters":[{"type":"literal_or","tagk":"dc","filter":"a"}]"#;
    let tags = r#""tags":{"host":"a"}"#;
    for (body, strictly) in [
        (format!(r#"{filters},"tags":{{}}"#), 0),
        (format!(r#"{filters},"tags":null"#), 0),
        (format!(r#"{tags},"filters":[]"#), 0),
        (format!(r#"{tags},"filters":null"#), 0),
        (format!(r#""filters":[],{tags}"#), 1),
        (format!(r#""tags":{{}},{filters}"#), 1),
        (format!("{filters},{tags}"), 1),
    ] {
        let text = format!(r#"{{"start":1,"queries":[{{"aggregator":"sum","metric":"m",{body}}}]}}"#);
        let request = QueryRequest::from_json(text.as_bytes()).unwrap();
        for (strict, expected) in [(true, strictly), (false, 1)] {
            let options = Options { compat: Compat { strict }, ..Options::default() };
            let query = request.check(1_700_000_000_000, options).unwrap();
            assert_eq!(query.sub_queries[0].filters.len(), expected, "{body}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// What a stranger sends is answered or refused, and never panics.
    #[test]
    fn no_text_panics(text in "[a-z0-9:{}()=,|*\\-_.\\[\\]é ]{0,60}") {
        let options = Options::default();
        let mut queries = Vec::new();
        queries.extend(SubQuery::from_metric_text(&format!("sum:{text}")));
        queries.extend(SubQuery::from_metric_text(&text));
        queries.extend(SubQuery::from_tsuid_text(&text));
        queries.extend(SubQuery::from_metric_text(&format!("sum:1{text}:rate{{{text}}}:m{{{text}}}{{{text}}}")));
        let request = QueryRequest { start: Some(text.clone()), end: Some(text), queries, ..QueryRequest::default() };
        drop(request.check(1, options));
    }

    #[test]
    fn no_time_panics(text in "[0-9a-z:/.\\- é]{0,20}") {
        let context = crate::TimeContext { now_ms: 1, zone: chrono_tz::Europe::Berlin, compat: Compat::default() };
        drop(crate::parse_time(&text, &context));
        drop(crate::parse_duration(&text));
    }
}

#[test]
fn q_multi_the_same_twice_is_asked_once() {
    let parameters = GetParameters {
        start: Some("1h-ago"),
        metrics: &["sum:m", "max:m", "sum:m"],
        tsuids: &["sum:000001000001000001"],
        ..GetParameters::default()
    };
    let request = QueryRequest::from_get(&parameters).unwrap();
    assert_eq!(request.queries.len(), 3);
    assert_eq!(request.queries[0].tsuids, ["000001000001000001"]);
}

#[test]
fn q_time_err_and_what_else_a_check_refuses() {
    let check = |request: &QueryRequest| request.check(1_700_000_000_000, Options::default());
    let message = |request: &QueryRequest| check(request).unwrap_err().to_string();
    let good = QueryRequest { start: Some("1h-ago".into()), queries: vec![metric("sum:m")], ..QueryRequest::default() };
    let query = check(&good).unwrap();
    assert_eq!((query.start_ms, query.end_ms), (1_699_996_400_000, 1_700_000_000_000));
    assert_eq!(message(&QueryRequest { start: None, ..good.clone() }), "Missing start time");
    assert_eq!(message(&QueryRequest { queries: vec![], ..good.clone() }), "Missing queries");
    let ended = QueryRequest { start: Some("2000".into()), end: Some("1000".into()), ..good.clone() };
    assert_eq!(message(&ended), "End time [1000000] must be greater than the start time [2000000]");
    // Found after all else: what reaches behind the epoch, or beyond what a point may have.
    for (start, end, told) in [
        ("60y-ago", "now", "Invalid timestamp: -192160000000"),
        ("1960/01/01", "1959/01/01", "End time [-347155200000] must be greater than the start time [-315619200000]"),
        ("1960/01/01", "1961/01/01", "Invalid timestamp: -315619200000"),
        ("0", "10000000000000", "Invalid timestamp: 10000000000000"),
    ] {
        let early = QueryRequest { start: Some(start.into()), end: Some(end.into()), ..good.clone() };
        assert_eq!(message(&early), told);
        let wrong = QueryRequest { queries: vec![metric("nosuch:m")], ..early };
        assert_eq!(message(&wrong).starts_with("End time"), told.starts_with("End time"));
    }
    let with = |text: &str| QueryRequest { queries: vec![metric(text)], ..good.clone() };
    assert_eq!(message(&with("nosuch:m")), "No such aggregation function: nosuch");
    assert_eq!(message(&with(":m")), "Missing the aggregation function");
    assert_eq!(
        message(&with("sum:1m:m")),
        "Invalid downsampling specifier '1m': must provide at least interval and function"
    );
    assert_eq!(message(&with("sum:1m-none:m")), "cannot use the NONE aggregator for downsampling");
    assert_eq!(message(&with("sum:1m-nosuch:m")), "No such downsampling function: nosuch");
    assert_eq!(message(&with("sum:1m-avg-x:m")), "Unrecognized fill policy: x");
    let sub = |filters: usize| {
        let filter = r#"{"type":"wildcard","tagk":"h","filter":"*"}"#;
        format!(r#"{{"aggregator":"sum","metric":"m","filters":[{}]}}"#, vec![filter; filters].join(","))
    };
    let body = |subs: usize, filters: usize| {
        QueryRequest::from_json(
            format!(r#"{{"start":1,"queries":[{}]}}"#, vec![sub(filters); subs].join(",")).as_bytes(),
        )
    };
    assert!(body(1, FILTERS_MAX).is_ok() && body(SUB_QUERIES_MAX, 1).is_ok());
    assert!(
        body(1, FILTERS_MAX + 1).is_err() && body(SUB_QUERIES_MAX + 1, 1).is_err() && body(SUB_QUERIES_MAX, 3).is_err()
    );
    let texts = |text: &str, count| {
        let texts = vec![text; count];
        let parameters = GetParameters { start: Some("1"), metrics: &texts, ..GetParameters::default() };
        QueryRequest::from_get(&parameters)
    };
    assert!(texts("sum:m{a=b}", SUB_QUERIES_MAX).is_ok() && texts("sum:m{a=b}", SUB_QUERIES_MAX + 1).is_err());
    assert!(texts("sum:m{a=*,b=*,c=*}", SUB_QUERIES_MAX).is_err());
    assert!(texts(&format!("sum:m{{{}a=b}}", "a=b,".repeat(FILTERS_MAX)), 1).is_err());
    let many = QueryRequest { queries: vec![metric("sum:m"); SUB_QUERIES_MAX + 1], ..good.clone() };
    assert!(matches!(check(&many), Err(Error::TooMany { limit: SUB_QUERIES_MAX, .. })));
    let percentiles = |count| QueryRequest {
        queries: vec![SubQuery { percentiles: vec![99.9; count], ..metric("sum:m") }],
        ..good.clone()
    };
    assert!(check(&percentiles(PERCENTILES_MAX)).is_ok());
    assert!(matches!(check(&percentiles(PERCENTILES_MAX + 1)), Err(Error::TooMany { limit: PERCENTILES_MAX, .. })));
    assert!(check(&QueryRequest { timezone: Some("Nowhere".into()), ..good.clone() }).is_err());
    assert!(check(&QueryRequest { delete: true, ..good }).unwrap().delete);
}

/// `Q-POST`: of a repeated member the last counts, at every depth.
#[test]
fn q_post_of_a_repeated_member_the_last_counts() {
    let body = br#"{"start":1,"end":5,"start":null,"start":"2","queries":[],"msResolution":false,"queries":[
        {"metric":"a","aggregator":"sum","metric":"b","filters":[{"type":"literal_or","type":"wildcard","tagk":"h","filter":"*"}],
        "rateOptions":{"counter":false,"counter":true}}],"msResolution":true}"#;
    let request = QueryRequest::from_json(body).unwrap();
    assert_eq!((request.start.as_deref(), request.ms_resolution, request.queries.len()), (Some("2"), true, 1));
    let sub = &request.queries[0];
    assert_eq!((sub.metric.as_deref(), sub.filters[0].kind_name()), (Some("b"), "wildcard"));
    assert!(sub.rate_options.unwrap().counter);
    let last = LastRequest::from_json(br#"{"backScan":1,"backScan":24,"queries":[]}"#).unwrap();
    assert_eq!(last.back_scan, 24);
    let missing = QueryRequest::from_json(br#"{"start":1,"start":2}"#).unwrap();
    assert!(missing.lacks_queries);
}

/// `Q-POST`, strictly: without a list of sub queries nothing else of a body is looked at, and OpenTSDB's status is 500.
#[test]
fn q_post_without_a_list_of_queries() {
    let check = |body: &str, strict: bool, expected: &str| {
        let request = QueryRequest::from_json(body.as_bytes()).unwrap();
        let options = Options { compat: Compat { strict }, ..Options::default() };
        let error = request.check(1_700_000_000_000, options).unwrap_err();
        assert_eq!(error.to_string(), expected, "{body}");
        let crashed = expected.starts_with("An internal");
        assert_eq!((error.is_server_error_in_opentsdb(), error.kind()), (crashed, ErrorKind::Invalid));
    };
    let crash = "An internal null pointer exception was thrown";
    let reversed = "End time [1000000] must be greater than the start time [2000000]";
    for (body, sane) in [
        (r#"{"start":1000,"end":2000}"#, "Missing queries"),
        (r#"{"start":1000,"end":2000,"queries":null}"#, "Missing queries"),
        (r#"{"start":2000,"end":1000}"#, reversed),
        ("{}", "Missing start time"),
    ] {
        check(body, true, crash);
        check(body, false, sane);
    }
    for strict in [true, false] {
        check(r#"{"start":1000,"end":2000,"queries":[]}"#, strict, "Missing queries");
        check(r#"{"start":2000,"end":1000,"queries":[]}"#, strict, reversed);
    }
}

#[test]
fn q_showquery_echoes_the_sub_query() {
    let echo = serde_json::to_value(metric("sum:rate{counter}:m{host=web*}").echo(3, None)).unwrap();
    assert_eq!(echo["index"], 3);
    assert_eq!(echo["tags"]["host"], "wildcard(web*)");
    assert_eq!(echo["filters"][0]["group_by"], true);
    assert_eq!(echo["rateOptions"]["counterMax"], i64::MAX);
    assert_eq!(echo["rollupTable"], "raw");
    let of_rollups = serde_json::to_value(metric("sum:1h-sum:rollup_fallback:m").echo(0, Some("1h"))).unwrap();
    assert_eq!((&of_rollups["rollupTable"], &of_rollups["rollupUsage"]), (&json!("1h"), &json!("ROLLUP_FALLBACK")));
}
