use crate::fixture::Fixture;
use crate::{Cancel, Error, ExpressionFault, ExpressionRequest, Limits, Options, OutputAnswer, Result};

fn fixture() -> Fixture {
    Fixture::with(&[
        "e.a 1700000000 1 host=a",
        "e.a 1700000060 5 host=a",
        "e.a 1700000060 7 host=c",
        "e.b 1700000060 10 host=a",
        "e.b 1700000120 20 host=b",
    ])
}

/// Asks for expressions over `a` and `b` by host.
fn ask(strict: bool, expressions: &str) -> Result<Vec<OutputAnswer>> {
    let body = format!(
        r#"{{"time":{{"start":"1699999990","end":"1700000600","aggregator":"sum"}},
        "filters":[{{"id":"f","tags":[{{"type":"wildcard","tagk":"host","filter":"*","groupBy":true}}]}}],
        "metrics":[{{"id":"a","metric":"e.a","filter":"f","fillPolicy":{{"policy":"scalar","value":3}}}},
                   {{"id":"b","metric":"e.b","filter":"f"}}],
        "expressions":{expressions}}}"#
    );
    let fixture = fixture();
    let engine = fixture.engine(strict, Limits::default());
    let plan = ExpressionRequest::from_json(body.as_bytes())?.check(0, engine.options())?;
    engine.run_expressions(&plan, &Cancel::new())
}

fn check(strict: bool, expressions: &str, expected: &[(i64, &[f64])]) {
    let answers = ask(strict, expressions).unwrap();
    let found: Vec<(i64, &[f64])> =
        answers.last().unwrap().rows().map(|(time_ms, row)| (time_ms / 1000, row)).collect();
    assert_eq!(found, expected, "{expressions}");
}

/// `Q-FILTER-NOTKEY`: a key that nobody has leaves nothing out, as in `/api/query`.
#[test]
fn q_filter_notkey_of_an_unknown_key_takes_every_series() {
    let body = r#"{"time":{"start":"1699999990","end":"1700000600","aggregator":"sum"},
        "filters":[{"id":"f","tags":[{"type":"not_key","tagk":"nobody","filter":"","groupBy":false}]}],
        "metrics":[{"id":"b","metric":"e.b","filter":"f"}],"expressions":[{"id":"e","expr":"b + 1"}]}"#;
    let fixture = fixture();
    let engine = fixture.engine(false, Limits::default());
    let plan = ExpressionRequest::from_json(body.as_bytes()).unwrap().check(0, engine.options()).unwrap();
    let answers = engine.run_expressions(&plan, &Cancel::new()).unwrap();
    let found: Vec<(i64, &[f64])> = answers[0].rows().collect();
    assert_eq!(found, [(1_700_000_060_000, &[11.0][..]), (1_700_000_120_000, &[21.0][..])]);
}

/// `E-EXP`: every expression is read before one is found to lack variables.
#[test]
fn e_exp_all_expressions_are_read_first() {
    let told = |expressions: &str| ask(true, expressions).unwrap_err().to_string();
    let lacking = r#"[{"id":"e","expr":"1 + 1"}]"#;
    assert!(told(lacking).contains("any variables"), "{}", told(lacking));
    let broken = r#"[{"id":"e","expr":"1 + 1"},{"id":"f","expr":"a +"}]"#;
    assert!(!told(broken).contains("any variables"), "{}", told(broken));
}

/// `E-EXP`: an empty list of filters is a list without the one that is named; none at all is told in other words.
#[test]
fn e_exp_a_filter_is_looked_for_in_an_empty_list_too() {
    let told = |filters: &str| {
        let body = format!(
            r#"{{"time":{{"start":"1699999990","aggregator":"sum"}},{filters}
            "metrics":[{{"id":"a","metric":"e.a","filter":"f"}}],"expressions":[{{"id":"e","expr":"a + 1"}}]}}"#
        );
        let request = ExpressionRequest::from_json(body.as_bytes()).unwrap();
        request.check(0, fixture().engine(true, Limits::default()).options()).unwrap_err().to_string()
    };
    assert_eq!(told(r#""filters":[],"#), "unrecognized filter id f in metric a");
    assert_eq!(told(""), "No filter defined: f");
}

const SUM: &str = r#"[{"id":"e","expr":"a + b"}]"#;

/// `E-EXP-JOIN`: a series that one side lacks has that side's fill value; OpenTSDB's is zero whatever the policy.
#[test]
fn e_exp_join_a_missing_series_is_filled() {
    check(
        false,
        SUM,
        &[(1_700_000_000, &[1.0, 3.0, 3.0]), (1_700_000_060, &[15.0, 7.0, 3.0]), (1_700_000_120, &[3.0, 3.0, 23.0])],
    );
    check(
        true,
        SUM,
        &[(1_700_000_000, &[1.0, 3.0, 0.0]), (1_700_000_060, &[15.0, 7.0, 0.0]), (1_700_000_120, &[3.0, 3.0, 20.0])],
    );
}

/// `E-EXP-JOIN`: a row whose first variable has no series has the tags of the other; OpenTSDB's has none.
#[test]
fn e_exp_join_a_row_has_the_tags_of_who_is_there() {
    let hosts = |strict| {
        let answers = ask(strict, SUM).unwrap();
        answers[0].series.iter().map(|series| series.tags.len()).collect::<Vec<_>>()
    };
    assert_eq!((hosts(false), hosts(true)), (vec![1, 1, 1], vec![1, 1, 0]));
}

/// `E-EXP-NEST`: inputs of different instants meet at their own, where OpenTSDB takes the next that comes.
#[test]
fn e_exp_nest_instants_are_kept_apart() {
    let nested = r#"[{"id":"n","expr":"twice - a","join":{"operator":"intersection"}},
                     {"id":"twice","expr":"b * 2"}]"#;
    let answers = ask(false, nested).unwrap();
    assert_eq!(answers[0].values[0].to_bits(), f64::NAN.to_bits());
    assert_eq!(answers[0].rows().nth(1), Some((1_700_000_060_000, &[15.0][..])));
    assert_eq!(answers[1].id, "twice");
}

#[test]
fn e_exp_nest_circles_are_refused() {
    let fault = |expressions: &str| match ask(true, expressions) {
        Err(Error::Expression(fault)) => fault,
        other => panic!("{other:?}"),
    };
    assert!(matches!(fault(r#"[{"id":"e","expr":"e + a"}]"#), ExpressionFault::SelfReference(_)));
    let circle = r#"[{"id":"e","expr":"g + a"},{"id":"g","expr":"e + a"}]"#;
    assert!(matches!(fault(circle), ExpressionFault::Circular(_)));
    let nothing = r#"[{"id":"e","expr":"a + b + c"}]"#;
    assert!(matches!(fault(nothing), ExpressionFault::MissingInput { .. }));
}

/// `E-EXP`: it has no effect, and is looked at all the same.
#[test]
fn e_exp_a_time_offset_is_a_time() {
    for (offset, is_time) in
        [("1h-ago", true), ("5", true), ("2012/01/01", true), ("", true), ("1h", false), ("-5", false)]
    {
        let body = format!(
            r#"{{"time":{{"start":"1699999990","aggregator":"sum"}},"metrics":[{{"id":"a","metric":"e.a","timeOffset":"{offset}"}}]}}"#
        );
        let checked = ExpressionRequest::from_json(body.as_bytes()).unwrap().check(0, Options::default());
        let fault = |error| matches!(error, Error::Expression(ExpressionFault::Part { .. }));
        assert_eq!(checked.is_err_and(fault), !is_time, "{offset}");
    }
}

/// A few instants and series over the budget, and a client that is gone.
#[test]
fn what_is_made_up_is_bounded_and_can_be_cancelled() {
    let fixture = fixture();
    let body = br#"{"time":{"start":"1699999990","end":"1700000600","aggregator":"none"},
        "metrics":[{"id":"a","metric":"e.a"},{"id":"b","metric":"e.b"}],"expressions":[{"id":"e","expr":"a+b"}]}"#;
    let request = ExpressionRequest::from_json(body).unwrap();
    let limits = Limits { points_max: 8, ..Limits::default() };
    let engine = fixture.engine(false, limits);
    let plan = request.check(0, engine.options()).unwrap();
    assert!(matches!(engine.run_expressions(&plan, &Cancel::new()), Err(Error::TooManyMadeUp { limit: 8 })));
    let cancel = Cancel::new();
    cancel.cancel();
    assert!(matches!(engine.run_expressions(&plan, &cancel), Err(Error::Cancelled)));
}

/// `Q-LIMIT`: before a set of filters is taken for each of them.
#[test]
fn q_limit_metrics_are_as_many_as_sub_queries() {
    let check = |count: usize| {
        let metrics: Vec<String> =
            (0..count).map(|n| format!(r#"{{"id":"m{n}","metric":"e.a","filter":"f"}}"#)).collect();
        let body = format!(
            r#"{{"time":{{"start":"1699999990","end":"1700000600","aggregator":"sum"}},"metrics":[{}],
            "filters":[{{"id":"f","tags":[{{"type":"literal_or","tagk":"host","filter":"{}"}}]}}]}}"#,
            metrics.join(","),
            "a|".repeat(1 << 19)
        );
        ExpressionRequest::from_json(body.as_bytes()).unwrap().check(0, Options::default()).map(drop)
    };
    check(256).unwrap();
    let fault = check(257).unwrap_err();
    assert!(matches!(fault, Error::Expression(ExpressionFault::TooMany { what: "metrics", limit: 256 })), "{fault}");
}

/// `Q-LIMIT`: each series has an instant of its own, so that the table is the square of what is read.
#[test]
fn q_limit_a_table_keeps_its_memory_until_it_is_dropped_and_must_fit() {
    const SERIES: u64 = 128;
    let lines: Vec<String> = (0..SERIES).map(|n| format!("e.a {} 1 host=h{n}", 1_700_000_000 + n)).collect();
    let fixture = Fixture::with(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    let body = br#"{"time":{"start":"1699999990","end":"1700000600","aggregator":"none"},
        "metrics":[{"id":"a","metric":"e.a"}],"expressions":[{"id":"e","expr":"a+1"}]}"#;
    let request = ExpressionRequest::from_json(body).unwrap();
    let run = |memory_bytes| {
        let engine = fixture.engine(false, Limits { memory_bytes, ..Limits::default() });
        let plan = request.check(0, engine.options()).unwrap();
        (engine.run_expressions(&plan, &Cancel::new()), engine)
    };
    let (answers, engine) = run(0);
    let answers = answers.unwrap();
    assert_eq!((answers.len(), answers[0].rows().count() as u64), (1, SERIES));
    let table = SERIES * (SERIES + 1) * 8;
    assert!((table..2 * table).contains(&engine.memory_used_bytes()), "{}", engine.memory_used_bytes());
    drop(answers);
    assert_eq!(engine.memory_used_bytes(), 0);
    // Beside the expression's own points.
    let points = SERIES * SERIES * size_of::<crate::Point>() as u64;
    let limit_bytes = points + table;
    assert!(matches!(run(limit_bytes).0, Err(Error::TooMuchMemory { limit_bytes: found }) if found == limit_bytes));
    // And beside what the series read and made are described by.
    assert!(run(limit_bytes + SERIES * 1_200).0.is_ok());
}

/// `Q-LIMIT`: an output of series takes memory each time that it is asked for, and only so many may be.
#[test]
fn q_limit_outputs_are_bounded_and_count_as_memory() {
    const SERIES: usize = 500;
    let lines: Vec<String> = (0..SERIES).map(|n| format!("e.a 1700000000 1 host=h{n}")).collect();
    let fixture = Fixture::with(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    let ask = |outputs: usize| {
        let outputs = vec![r#"{"id":"a"}"#; outputs].join(",");
        let body = format!(
            r#"{{"time":{{"start":"1699999990","end":"1700000600","aggregator":"none"}},
            "metrics":[{{"id":"a","metric":"e.a"}}],"outputs":[{outputs}]}}"#
        );
        let engine = fixture.engine(false, Limits { memory_bytes: 2 << 20, ..Limits::default() });
        let plan = ExpressionRequest::from_json(body.as_bytes())?.check(0, engine.options())?;
        Ok((engine.run_expressions(&plan, &Cancel::new())?, engine))
    };
    let (answers, engine) = ask(10).unwrap();
    assert_eq!((answers.len(), answers[9].series.len()), (10, SERIES));
    let taken = 10 * SERIES * (size_of::<crate::OutputSeries>() + 2 * size_of::<std::sync::Arc<str>>());
    assert!(engine.memory_used_bytes() >= taken as u64, "{} of {taken}", engine.memory_used_bytes());
    assert!(matches!(ask(256), Err(Error::TooMuchMemory { limit_bytes: 2_097_152 })));
    let Err(Error::Expression(ExpressionFault::Query(cause))) = ask(257) else { panic!("257 outputs are read") };
    assert!(format!("{cause:?}").contains("256"), "{cause:?}");
}
