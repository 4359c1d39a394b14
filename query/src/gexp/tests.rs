use crate::fixture::{Fixture, text};
use crate::{Cancel, GetParameters, Limits, Options, QueryRequest, Result, Series};

fn fixture() -> Fixture {
    Fixture::with(&[
        "g.a 1700000000 1 host=a",
        "g.a 1700000060 5 host=a",
        "g.a 1700000120 2 host=b",
        "g.b 1700000060 10 host=a",
        "g.b 1700000120 20 host=b",
        "g.b 1700000180 30 host=b",
    ])
}

fn ask(strict: bool, formulas: &[&str], start: &str) -> Result<Vec<Series>> {
    let fixture = fixture();
    let engine = fixture.engine(strict, Limits::default());
    let parameters = GetParameters { start: Some(start), end: Some("1700000600"), ..GetParameters::default() };
    let (request, formulas) = QueryRequest::from_formulas(&parameters, formulas, engine.options())?;
    let query = request.check(0, engine.options())?.for_formulas();
    let answers = engine.run_formulas(&formulas, &query, &Cancel::new())?;
    Ok(answers.into_iter().flat_map(|answer| answer.series).collect())
}

fn check(strict: bool, formula: &str, expected: &[&str]) {
    let series = ask(strict, &[formula], "1699999990").unwrap();
    let found: Vec<String> = series.iter().map(|series| format!("{}: {}", series.metric, text(series))).collect();
    assert_eq!(found, expected, "{formula}");
}

/// `E-GEXP`, where OpenTSDB's own way is a mistake: series are computed by their times, not by their places.
#[test]
fn e_gexp_series_are_combined_by_time() {
    let formula = "sumSeries(sum:g.a{host=*},sum:g.b{host=*})";
    check(false, formula, &["g.a: 1700000000 1.0, 1700000060 15.0", "g.a: 1700000120 22.0, 1700000180 30.0"]);
    let by_place = "sumSeries(sum:g.a{host=a},sum:g.a{host=a},sum:g.b{host=b})";
    check(false, by_place, &["g.a: 1700000000 2.0, 1700000060 10.0", "g.b: 1700000120 20.0, 1700000180 30.0"]);
}

/// `E-GEXP`: OpenTSDB refuses every unit of a time shift, and an alias of negative values loses their signs.
#[test]
fn e_gexp_the_saner_defaults() {
    check(false, "timeShift(sum:g.a{host=a},'1min')", &["g.a: 1700000060 1, 1700000120 5"]);
    check(false, "alias(scale(sum:g.a{host=a},-1),x)", &["x: 1700000000 -1, 1700000060 -5"]);
    check(true, "alias(scale(sum:g.a{host=a},-1),x)", &["x: 1700000000 1, 1700000060 5"]);
    check(false, "firstDiff(sum:g.a{host=a})", &["g.a: 1700000000 0.0, 1700000060 4.0"]);
    check(false, "scale(2,sum:g.a{host=*}{host=literal_or(b)})", &["g.a: 1700000120 4"]);
}

/// `E-GEXP`: what is shifted into the range is read where it lies, however far before the range that is.
#[test]
fn e_gexp_a_shift_brings_points_from_before_the_range() {
    let shifted = |formula: &str, start: i64, end: i64| {
        let fixture = fixture();
        let engine = fixture.engine(false, Limits::default());
        let (start, end) = (start.to_string(), end.to_string());
        let parameters = GetParameters { start: Some(&start), end: Some(&end), ..GetParameters::default() };
        let (request, formulas) = QueryRequest::from_formulas(&parameters, &[formula], engine.options()).unwrap();
        let query = request.check(0, engine.options()).unwrap().for_formulas();
        let answers = engine.run_formulas(&formulas, &query, &Cancel::new()).unwrap();
        answers.iter().flat_map(|answer| answer.series.iter().map(text)).collect::<Vec<_>>()
    };
    let (day, week) = (1_700_000_000 + 86_400, 1_700_000_000 + 7 * 86_400);
    assert_eq!(shifted("shift(sum:g.a{host=a},'2min')", 1_700_000_100, 1_700_000_600), ["1700000120 1, 1700000180 5"]);
    assert_eq!(shifted("timeShift(sum:g.a{host=a},'1day')", day, day + 3_600), ["1700086400 1, 1700086460 5"]);
    assert_eq!(shifted("timeShift(sum:g.a{host=a},'24hr')", day + 30, day + 60), ["1700086460 5"]);
    assert_eq!(shifted("timeShift(sum:0all-sum:g.a{host=a},'1week')", week - 10, week + 300), ["1700604790 6.0"]);
    assert_eq!(
        shifted("shift(scale(shift(sum:g.a{host=a},'23hr'),2),'1hr')", day, day + 60),
        ["1700086400 2, 1700086460 10"]
    );
    assert_eq!(
        shifted("movingAverage(timeShift(sum:g.a{host=a},'1day'),2)", day - 10, day + 90),
        ["1700086400 0.0, 1700086460 3.0"]
    );
    assert_eq!(
        shifted("timeShift(movingAverage(sum:g.a{host=a},2),'1day')", day - 10, day + 90),
        ["1700086400 0.0, 1700086460 3.0"]
    );
    let both = "difference(sum:g.a{host=a},timeShift(sum:g.a{host=a},'1min'))";
    assert_eq!(shifted(both, 1_700_000_000, 1_700_000_100), ["1700000000 1.0, 1700000060 4.0"]);
    assert_eq!(shifted("timeShift(sum:g.a,'2147483647weeks')", 1, 5), Vec::<String>::new());
}

/// `E-GEXP`: each time that is shifted to is a sub query of its own, and they are bounded as such.
#[test]
fn e_gexp_shifts_are_bounded() {
    let formulas: Vec<String> = (1..=300).map(|seconds| format!("shift(sum:g.a,'{seconds}sec')")).collect();
    let texts: Vec<&str> = formulas.iter().map(String::as_str).collect();
    assert!(ask(false, &texts[..256], "1699999990").is_ok());
    let error = ask(false, &texts, "1699999990").unwrap_err();
    assert!(matches!(error, crate::Error::TooMany { what: "sub queries", .. }), "{error}");
}

/// `E-GEXP`: the one that ends first does not borrow another's rank.
#[test]
fn e_gexp_the_highest_are_those_with_the_highest_values() {
    let names = |strict| {
        let series = ask(strict, &["highestCurrent(sum:g.b{host=*},1)"], "1699999990").unwrap();
        series[0].tags[0].1.to_string()
    };
    assert_eq!((names(false), names(true)), ("b".to_owned(), "a".to_owned()));
}

/// `E-GEXP`, strictly: a series without points is none of the highest, but has a place among those of the highest maximum.
#[test]
fn e_gexp_the_highest_current_leave_out_what_has_no_points() {
    let of = |strict, name: &str| {
        let formula = format!("{name}(movingAverage(sum:g.a{{host=b}},10),3)");
        ask(strict, &[formula.as_str()], "1700000130").unwrap().len()
    };
    assert_eq!((of(true, "highestCurrent"), of(false, "highestCurrent")), (0, 1));
}

#[test]
fn e_gexp_one_query_may_be_in_several_formulas() {
    let series = ask(false, &["scale(sum:g.a,2)", "scale(sum:g.a,3)"], "1699999990").unwrap();
    assert_eq!(series.len(), 2);
    assert!(ask(false, &[], "1699999990").is_err());
}

/// `E-GEXP`: how many series a function takes is told before any of them is read.
#[test]
fn e_gexp_too_many_series_are_refused_unread() {
    let refused = |formula: &str| {
        let parameters = GetParameters { start: Some("1700000000"), ..GetParameters::default() };
        let made = QueryRequest::from_formulas(&parameters, &[formula], Options::default());
        made.err().map(|error| error.to_string())
    };
    let sum = |count: usize| format!("sumSeries({})", vec!["sum:g.a"; count].join(","));
    let told = |count: usize| Some(format!("Must have 2 to 26 series, got {count} instead"));
    assert_eq!(refused(&sum(1)), told(1));
    assert_eq!(refused(&sum(2)), None);
    assert_eq!(refused(&sum(26)), None);
    assert_eq!(refused(&sum(27)), told(27));
    assert_eq!(refused(&format!("scale({},2)", sum(27))), told(27));
}
