use crate::fixture::{Fixture, text};
use crate::{Cancel, GetParameters, Limits, QueryRequest, Result, Series};

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

/// Points before the range are there to be shifted into it.
#[test]
fn e_gexp_a_shift_brings_points_from_before_the_range() {
    let series = ask(false, &["shift(sum:g.a{host=a},'2min')"], "1700000100").unwrap();
    assert_eq!(text(&series[0]), "1700000120 1, 1700000180 5");
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
