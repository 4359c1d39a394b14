use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::*;
use crate::Number;
use crate::fixture::Fixture;
use crate::get_size::GET_BYTES;
use crate::{Cancel, Limits};

const NOW_MS: i64 = 1_700_003_000_000;

fn fixture() -> Fixture {
    Fixture::with(&[
        "l.a 1700002900 1 host=a dc=x",
        "l.a 1700002950 2 host=a dc=x",
        "l.a 1699996000 2.5 host=b dc=x",
        "l.a 1690000000000 7 host=c",
    ])
}

fn check(strict: bool, timeseries: &str, back_scan: &str, expected: &[(&str, i64, f64)]) {
    let request = LastRequest::from_get(&[timeseries], &[], true, Some(back_scan)).unwrap();
    let found = fixture().engine(strict, Limits::default()).last(&request, NOW_MS, &Cancel::new()).unwrap();
    let told: Vec<(String, i64, f64)> = found
        .points
        .iter()
        .map(|point| {
            assert_eq!(found.metrics[point.metric].name.as_deref(), Some("l.a"));
            let host = host_of(&found, point);
            (host, point.time_ms / 1000, point.number.as_double())
        })
        .collect();
    let expected: Vec<(String, i64, f64)> =
        expected.iter().map(|(host, time, v)| ((*host).into(), *time, *v)).collect();
    assert_eq!(told, expected, "{timeseries} {back_scan}");
}

fn host_of(found: &LastAnswer, point: &LastPoint) -> String {
    let mut names = found.tags[point.tags].names.as_ref().unwrap().iter().map(|place| &found.names[*place]);
    names.find(|(key, _)| &**key == "host").unwrap().1.to_string()
}

/// A metric that is named again and again means its series as often, which are refused before they are listed.
#[test]
fn a_request_means_so_many_series_however_it_names_them() {
    let limits = Limits { series_max: 7, ..Limits::default() };
    let engine = fixture().engine(false, limits);
    let ask = |metrics: &[&str], tsuids: &[&str]| {
        let request = LastRequest::from_get(metrics, tsuids, true, Some("10000")).unwrap();
        engine.last(&request, NOW_MS, &Cancel::new()).map(|found| found.points.len())
    };
    assert_eq!(ask(&["l.a"; 2], &[]).unwrap(), 6);
    assert!(matches!(ask(&["l.a"; 3], &[]), Err(Error::TooManySeries { limit: 7 })));
    let tsuid = "000001000001000001";
    assert!(matches!(ask(&["l.a"; 2], &[tsuid; 2]), Err(Error::TooManySeries { limit: 7 })));
}

/// `Q-LIMIT`: by all that is kept of a series until it is told.
#[test]
fn series_count_as_memory_with_their_tags_and_points() {
    let mut fixture = Fixture::with(&[]);
    for host in 0..100 {
        fixture.put(&format!("l.m 1700002900 1 host=h{host}"));
    }
    let ask = |memory_bytes| {
        let engine = fixture.engine(false, Limits { memory_bytes, ..Limits::default() });
        let request = LastRequest::from_get(&["l.m"], &[], true, Some("1")).unwrap();
        engine.last(&request, NOW_MS, &Cancel::new()).map(|found| found.points.len())
    };
    assert_eq!(ask(50_000).unwrap(), 100);
    assert!(matches!(ask(20_000), Err(Error::TooMuchMemory { limit_bytes: 20_000 })));
}

/// `L-LAST`: tags that are not given widen.
#[test]
fn l_last_this_hour_alone_unless_told_to_look_back() {
    check(false, "l.a", "0", &[("a", 1_700_002_950, 2.0)]);
    check(false, "l.a{dc=x}", "0", &[("a", 1_700_002_950, 2.0)]);
    check(false, "l.a{host=b}", "0", &[]);
}

/// `L-BACKSCAN`: as many hours back, and no more.
/// `L-LAST`: numbers and flags are the texts that they are written as.
#[test]
fn l_last_names_may_be_numbers_and_flags() {
    let body = br#"{"queries":[{"metric":8,"tags":{"a":8080,"b":true,"c":1.50,"d":null},"tsuids":[1]}]}"#;
    let request = LastRequest::from_json(body).unwrap();
    let query = &request.queries[0];
    let values: Vec<&str> = query.tags.iter().flatten().map(|(_, value)| value.as_str()).collect();
    assert_eq!(
        (query.metric.as_deref(), values, query.tsuids.as_slice()),
        (Some("8"), vec!["8080", "true", "1.50", ""], ["1".to_owned()].as_slice())
    );
    assert!(LastRequest::from_json(br#"{"queries":[{"metric":"m","tags":{"a":[1]}}]}"#).is_err());
}

#[test]
fn l_backscan_hours_are_counted() {
    check(false, "l.a{dc=x}", "1", &[("a", 1_700_002_950, 2.0)]);
    check(false, "l.a{dc=x}", "2", &[("a", 1_700_002_950, 2.0), ("b", 1_699_996_000, 2.5)]);
    check(false, "l.a{host=c}", "2778", &[]);
    check(false, "l.a{host=c}", "2779", &[("c", 1_690_000_000, 7.0)]);
    check(false, "l.a{host=c}", "2000000000", &[("c", 1_690_000_000, 7.0)]);
}

/// `L-BACKSCAN`: hours below zero are refused of whatever series are meant, after what is wrong with their names.
#[test]
fn l_backscan_is_zero_or_more() {
    let fixture = fixture();
    let ask = |strict, metric: &[&str], tsuids: &[&str]| {
        let request = LastRequest::from_get(metric, tsuids, true, Some("-1")).unwrap();
        let found = fixture.engine(strict, Limits::default()).last(&request, NOW_MS, &Cancel::new());
        found.map(|found| found.points.len()).map_err(|error| error.to_string())
    };
    let refused = Err("Backscan must be zero or a positive number".to_owned());
    assert_eq!(ask(false, &["l.a"], &[]), refused);
    assert_eq!(ask(false, &["l.a{host=a,dc=x}"], &[]), refused);
    assert_eq!(ask(true, &["l.a"], &[]), Ok(0), "without meta counters a metric means no series");
    assert_eq!(ask(true, &["l.a"], &["000001000001000001"]), refused);
    let illegal = Err("contains illegal character for hexBinary: zz".to_owned());
    assert_eq!(ask(true, &["l.a"], &["zz"]), illegal);
    let counted = fixture.schema.find("l.a", &[("host", "c")]).unwrap();
    let mut batch = basalt_store::MutationBatch::default();
    batch.row(counted.as_bytes()).unwrap().put(b"name", b"ts_ctr", None, &[0; 8]).unwrap();
    fixture.schema.store().apply(&fixture.schema.tables().meta, batch).wait().unwrap();
    assert_eq!(ask(true, &["l.a"], &[]), refused);
}

/// Strictly a look back wants the whole series, and without meta counters a metric alone finds nothing.
#[test]
fn l_last_strictly_nothing_widens() {
    check(true, "l.a", "0", &[]);
    check(true, "l.a{dc=x}", "2", &[]);
    check(true, "l.a{dc=x,host=b}", "2", &[("b", 1_699_996_000, 2.5)]);
    let request = LastRequest::from_get(&["l.a"], &[], false, Some("1")).unwrap();
    let refused = fixture().engine(true, Limits::default()).last(&request, NOW_MS, &Cancel::new());
    assert_eq!(refused.unwrap_err().to_string(), "Tags cannot be null or empty when getting a TSUID");
}

#[test]
fn l_last_series_are_named_by_tsuid_too() {
    let fixture = fixture();
    let tsuid = fixture.schema.find("l.a", &[("host", "c")]).unwrap().to_string();
    let ask = |ids: &str, back_scan| {
        let request = LastRequest::from_get(&[], &[ids], false, Some(back_scan)).unwrap();
        fixture.engine(true, Limits::default()).last(&request, NOW_MS, &Cancel::new())
    };
    let twice = ask(&format!("{tsuid},{}", tsuid.to_lowercase()), "3000").unwrap();
    assert_eq!((twice.points.len(), twice.points[0]), (2, twice.points[1]));
    assert_eq!(twice.points[0].number, Number::Integer(7));
    let ([metric], [tags]) = (&twice.metrics[..], &twice.tags[..]) else { panic!("one series: {twice:?}") };
    let id: Vec<u8> = metric.uid.iter().chain(&tags.uids).copied().collect();
    assert_eq!(Tsuid::from_bytes(&id, fixture.schema.layout().widths).unwrap().to_string(), tsuid);
    assert_eq!((&metric.name, &tags.names), (&None, &None));
    assert!(ask("FFFFFF000001000001", "0").unwrap().points.is_empty());
    for (ids, message) in [
        ("", "UID was empty"),
        (",", "Metric cannot be null or empty"),
        ("zz", "contains illegal character for hexBinary: zz"),
        ("000001", "TSUID must not be null and must have a metric and at least one tag pair"),
    ] {
        assert_eq!(ask(ids, "0").unwrap_err().to_string(), message);
    }
}

/// Series of several metrics that share their tags and came in other orders; and those named one by one, as they are named.
#[test]
fn l_last_series_are_told_by_their_tsuids_or_as_they_are_named() {
    let hosts = ["e", "c", "a", "d", "b"];
    let mut fixture = Fixture::new(basalt_schema::Salting::EMBEDDED);
    let mut puts: Vec<String> = hosts.iter().map(|host| format!("l.a 1700002900 1 host={host}")).collect();
    puts.extend(hosts.iter().rev().map(|host| format!("l.b 1700002950 2 host={host} dc=x")));
    puts.extend(hosts.iter().rev().map(|host| format!("l.c 1700002960 3 host={host}")));
    for put in &puts {
        fixture.put(put);
    }
    let tsuid = |metric, host| fixture.schema.find(metric, &[("host", host)]).unwrap().to_string();
    let listed = [tsuid("l.c", "b"), tsuid("l.a", "c"), tsuid("l.c", "b"), tsuid("l.a", "e")].join(",");
    for back_scan in ["0", "3"] {
        let request = LastRequest::from_get(&["l.c", "l.a", "l.b{host=d}", "l.b"], &[&listed], true, Some(back_scan));
        let found = fixture.engine(false, Limits::default()).last(&request.unwrap(), NOW_MS, &Cancel::new()).unwrap();
        let told: Vec<String> = found
            .points
            .iter()
            .map(|point| {
                let metric = found.metrics[point.metric].name.as_deref().unwrap();
                format!("{metric} {} {:?}", host_of(&found, point), point.number)
            })
            .collect();
        // UIDs are given out in the order in which names come.
        let all = |metric: &str, value| hosts.map(|host| format!("{metric} {host} Integer({value})"));
        let mut expected = [all("l.c", 3), all("l.a", 1)].concat();
        expected.push("l.b d Integer(2)".to_owned());
        expected.extend(all("l.b", 2));
        expected.extend(
            ["l.c b Integer(3)", "l.a c Integer(1)", "l.c b Integer(3)", "l.a e Integer(1)"].map(str::to_owned),
        );
        assert_eq!(told, expected, "{back_scan} hours back");
        // Five hosts, and a data center that is told once for all.
        assert_eq!((found.metrics.len(), found.tags.len(), found.names.len()), (3, 10, 6));
    }
}

/// Strictly, of series that a metric means those alone that are counted, wherever a request names them; and their counters are
/// read by the hundred.
#[test]
fn l_last_counters_are_read_together() {
    let mut fixture = Fixture::new(basalt_schema::Salting::EMBEDDED);
    let mut batch = basalt_store::MutationBatch::default();
    let mut listed = Vec::new();
    for host in 0..300 {
        let (metric, name) = (["l.a", "l.b"][host % 2], format!("h{host}"));
        fixture.put(&format!("{metric} 1700002900 {host} host={name}"));
        let tsuid = fixture.schema.find(metric, &[("host", &name)]).unwrap();
        if host % 3 == 0 {
            let time = Some(basalt_store::Timestamp(1_700_002_900_000));
            batch.row(tsuid.as_bytes()).unwrap().put(b"name", b"ts_ctr", time, &[0; 8]).unwrap();
        }
        listed.push(tsuid.to_string());
    }
    fixture.schema.store().apply(&fixture.schema.tables().meta, batch).wait().unwrap();
    let ask = |strict, metrics: &[&str], tsuids: &[&str]| {
        let request = LastRequest::from_get(metrics, tsuids, true, None).unwrap();
        fixture.take_meta_gets();
        let found = fixture.engine(strict, Limits::default()).last(&request, NOW_MS, &Cancel::new()).unwrap();
        let told: Vec<Number> = found.points.iter().map(|point| point.number).collect();
        (told, fixture.take_meta_gets())
    };
    let numbers = |hosts: Vec<i64>| hosts.into_iter().map(Number::Integer).collect::<Vec<_>>();
    let counted = |odd: i64| (0..300).filter(move |host| host % 3 == 0 && host % 2 == odd);
    let [h0, h1, h2] = [0, 1, 2].map(|host: usize| listed[host].as_str());
    let named = numbers(counted(1).chain(counted(0)).chain([1, 0, 1, 2]).collect());
    assert_eq!(ask(true, &["l.b", "l.a"], &[&[h1, h0, h1].join(","), h2]), (named, 3));
    let all = numbers((0..300).collect());
    assert_eq!(ask(true, &[], &[&listed.join(",")]), (all.clone(), 3));
    let each: Vec<&str> = listed.iter().map(String::as_str).collect();
    assert_eq!(ask(false, &[], &each), (all, 3));
}

/// What another daemon wrote since the start, in this hour and before, and what the meta table alone tells of.
#[test]
fn l_last_series_of_others_are_found_in_shared_tables() {
    let fixture = Fixture::with(&["l.b 1700002900 1 host=a"]);
    let shared = fixture.another(true);
    fixture.put_unseen("l.b", ("host", "b"), 1_700_002_950, 2);
    fixture.put_unseen("l.b", ("host", "c"), 1_699_996_000, 3);
    fixture.put_unseen("l.b", ("host", "d"), 1_690_000_000, 4);
    let ask = |strict, back_scan| {
        let options = Options { compat: crate::Compat { strict }, ..Options::default() };
        let engine = crate::QueryEngine::new(Arc::clone(&shared), options, Limits::default());
        let request = LastRequest::from_get(&["l.b"], &[], false, Some(back_scan)).unwrap();
        let found = engine.last(&request, NOW_MS, &Cancel::new()).unwrap();
        found.points.iter().map(|point| point.number).collect::<Vec<_>>()
    };
    assert_eq!(ask(false, "0"), [1, 2].map(Number::Integer));
    assert_eq!(ask(false, "2"), [1, 2, 3].map(Number::Integer));
    let counted = fixture.schema.find("l.b", &[("host", "d")]).unwrap();
    let mut batch = basalt_store::MutationBatch::default();
    let time = basalt_store::Timestamp(1_690_000_000_000);
    batch.row(counted.as_bytes()).unwrap().put(b"name", b"ts_ctr", Some(time), &[0; 8]).unwrap();
    fixture.schema.store().apply(&fixture.schema.tables().meta, batch).wait().unwrap();
    assert_eq!(ask(true, "0"), [Number::Integer(4)]);
}

/// `L-BACKSCAN`, of so many series that their rows are scanned: each is found in whichever hour it ended, also behind the
/// hour that another bucket's series end in, and none beyond the hours asked for.
#[test]
fn l_backscan_many_series_are_found_wherever_they_end() {
    let mut fixture = Fixture::new(basalt_schema::Salting::EMBEDDED);
    let hours_back = |host: i64| match host {
        17 => 0,
        _ if host % 7 == 0 => 5,
        _ if host % 3 == 0 => 3,
        _ => 2,
    };
    for host in 0..400 {
        for hour in [hours_back(host), 6] {
            let time_s = NOW_MS / 1000 - hour * 3600 - host % 50;
            fixture.put(&format!("l.many {time_s} {} host=h{host}", host * 10 + hour));
        }
    }
    let engine = fixture.engine(false, Limits::default());
    for back_scan in [1, 3, 4, 5, 9] {
        let request = LastRequest::from_get(&["l.many"], &[], true, Some(&back_scan.to_string())).unwrap();
        let found = engine.last(&request, NOW_MS, &Cancel::new()).unwrap();
        let mut told: Vec<(String, Number)> =
            found.points.iter().map(|point| (host_of(&found, point), point.number)).collect();
        told.sort_by(|a, b| a.0.cmp(&b.0));
        let hour = |time_s: i64| time_s.div_euclid(3600);
        let is_within =
            |host: &i64| hour(NOW_MS / 1000) - hour(NOW_MS / 1000 - hours_back(*host) * 3600 - host % 50) <= back_scan;
        let mut expected: Vec<(String, Number)> = (0..400)
            .filter(is_within)
            .map(|host| (format!("h{host}"), Number::Integer(host * 10 + hours_back(host))))
            .collect();
        expected.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(told, expected, "{back_scan} hours back");
        let twice = LastRequest::from_get(&["l.many", "l.many{host=h3}", "l.many"], &[], true, Some("9")).unwrap();
        let all = LastRequest::from_get(&["l.many"], &[], true, Some("9")).unwrap();
        let [twice, all] = [twice, all].map(|request| engine.last(&request, NOW_MS, &Cancel::new()).unwrap().points);
        assert_eq!((&twice[..400], &twice[401..]), (&all[..], &all[..]));
        assert_eq!(twice[400].number, Number::Integer(33));
    }
}

/// Hours without a row of the metric cost nothing, others as many rows as series are still looked for.
#[test]
fn l_backscan_rows_that_are_looked_for_are_bounded() {
    let mut fixture = fixture();
    for hour in 0..40 {
        fixture.put(&format!("l.b {} {hour} host=a", 1_690_000_000 + hour * 3600));
    }
    // Of the same bucket as the other, so that its hours lie between.
    let salt = |fixture: &Fixture, host: &str| {
        let tsuid = fixture.schema.resolve("l.b", &[("host", host)]).unwrap();
        fixture.schema.layout().series_key(&tsuid).salt()
    };
    let twin = (0..1_000).map(|n| format!("t{n}")).find(|host| salt(&fixture, host) == salt(&fixture, "a")).unwrap();
    fixture.put(&format!("l.b 1690000000 7 host={twin}"));
    let tsuid = fixture.schema.resolve("l.b", &[("host", &twin)]).unwrap();
    let look = |rows_left, hours| {
        let budget = Budget::new(Limits::default(), &Cancel::new(), &crate::memory::MemoryPool::new(0));
        let (metric, tags) = tsuid.parts(fixture.schema.layout().widths);
        let mut wish = Wish::default();
        wish.add(metric, tags);
        let (wanted, sets) = wish.in_order();
        let lookup = Lookup::new(&fixture.schema, NOW_MS, hours, &budget, &sets);
        let lookup = Lookup { rows_left: AtomicU64::new(rows_left), ..lookup };
        lookup.run(&wanted).map(|found| found[0].map(|point| point.time_ms))
    };
    // 2,738 hours of nothing, then gets of 1, 2, 4, 8, 16 and 32 rows.
    assert_eq!(look(63, 5_000).unwrap(), Some(1_690_000_000_000));
    assert!(matches!(look(62, 5_000), Err(Error::TooManyLookUps { .. })));
    assert_eq!(look(0, 10).unwrap(), None);
}

/// `Q-LIMIT`: rows that come as cells may be large: few of them are asked for at once, and are memory meanwhile.
#[test]
fn q_limit_large_rows_are_looked_into_few_at_a_time() {
    const ROW_BYTES: usize = 256 << 10;
    let mut fixture = Fixture::new(basalt_schema::Salting::EMBEDDED);
    let note = format!(r#"{{"description":"{}"}}"#, "x".repeat(ROW_BYTES));
    let hosts: Vec<String> = (0..40).map(|host| format!("h{host}")).collect();
    let mut tsuids = Vec::new();
    for host in &hosts {
        fixture.put(&format!("l.a 1700002900 1 host={host}"));
        fixture.annotate("l.a", ("host", host), 1_700_002_901, &note);
        tsuids.push(fixture.schema.find("l.a", &[("host", host)]).unwrap().to_string());
    }
    let ask = |memory_bytes| {
        let engine = fixture.engine(false, Limits { memory_bytes, ..Limits::default() });
        let request = LastRequest::from_get(&[], &[&tsuids.join(",")], false, None).unwrap();
        fixture.take_gets();
        let found = engine.last(&request, NOW_MS, &Cancel::new()).map(|found| found.points.len());
        assert_eq!(engine.memory_used_bytes(), 0);
        (found, fixture.take_gets())
    };
    let (found, (gets, get_bytes)) = ask(0);
    assert_eq!(found.unwrap(), hosts.len());
    assert!(get_bytes < (GET_BYTES + ROW_BYTES) as u64 && gets < 10, "{gets} {get_bytes}");
    assert!(matches!(ask(1 << 20).0, Err(Error::TooMuchMemory { .. })));
}

#[test]
fn l_backscan_a_long_way_back_is_charged_and_can_be_cancelled() {
    let cancel = Cancel::new();
    cancel.cancel();
    let request = LastRequest::from_get(&["l.a{host=c}"], &[], false, Some("100000")).unwrap();
    let stopped = fixture().engine(false, Limits::default()).last(&request, NOW_MS, &cancel);
    assert!(matches!(stopped, Err(Error::Cancelled)));
}

#[test]
fn texts_that_are_no_series_are_refused() {
    for (text, message) in [
        ("l.a{host=a", "Missing '}' at the end of: l.a{host=a"),
        ("l.a{host}", "When parsing tag 'host': invalid tag: host"),
        ("l.a{host=a,}", "When parsing tag '': invalid tag: "),
    ] {
        assert_eq!(LastRequest::from_get(&[text], &[], false, None).unwrap_err().to_string(), message);
    }
    assert!(LastRequest::from_get(&["l.a"], &[], false, Some("x")).is_err());
    assert!(LastRequest::from_json(b"[]").is_err() && LastRequest::from_json(b"{\"foo\":1}").is_err());
}

/// `L-LAST`: a key with two values is refused in OpenTSDB's words, and the same tag twice is one.
#[test]
fn l_last_a_key_has_one_value() {
    let read = |text: &str| LastRequest::from_get(&[text], &[], true, None);
    let refused = |text: &str| read(text).unwrap_err().to_string();
    assert_eq!(read("m{host=a,host=a}").unwrap(), read("m{host=a}").unwrap());
    assert_eq!(
        refused("m{host=a,dc=x,host=b}"),
        "When parsing tag 'host=b': duplicate tag: host=b, tags={host=a, dc=x}"
    );
}
