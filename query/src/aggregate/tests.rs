//! Each aggregator on integers and doubles. Values were worked out by hand from the rules in the reference.

use super::*;

fn ints(name: &str, values: &[i64], expected: i64) {
    let aggregator = Aggregator::by_name(name).unwrap();
    assert_eq!(aggregator.of_integers(&mut values.to_vec()), expected, "{name} of {values:?}");
}

fn doubles(name: &str, values: &[f64], expected: f64) {
    let aggregator = Aggregator::by_name(name).unwrap();
    let found = aggregator.of_doubles(&mut values.to_vec(), PercentileRule::AsNamed);
    assert!(
        found.to_bits() == expected.to_bits()
            || (found.is_nan() && expected.is_nan())
            || (found - expected).abs() < 1e-12,
        "{name} of {values:?} is {found}, not {expected}"
    );
}

const NAN: f64 = f64::NAN;

#[test]
fn all_thirty_five_names() {
    assert_eq!(Aggregator::names().len(), 17 + 18);
    assert!(Aggregator::names().is_sorted());
    assert!(Aggregator::names().all(|name| Aggregator::by_name(name).is_some()));
    assert!(Aggregator::by_name("SUM").is_none() && Aggregator::by_name("").is_none());
}

#[test]
fn q_agg_sum() {
    ints("sum", &[1, 2, 3], 6);
    ints("sum", &[i64::MAX, 1], i64::MIN);
    ints("zimsum", &[1, -2], -1);
    ints("pfsum", &[5], 5);
    doubles("sum", &[1.5, NAN, 2.0], 3.5);
    doubles("sum", &[NAN, NAN], NAN);
    doubles("sum", &[-0.0], 0.0);
    doubles("zimsum", &[0.5, 0.25], 0.75);
    doubles("pfsum", &[NAN, 1.0], 1.0);
}

#[test]
fn q_agg_squaresum() {
    ints("squareSum", &[3, -4], 25);
    ints("squareSum", &[1 << 32], 0);
    doubles("squareSum", &[0.5, NAN, 2.0], 4.25);
    doubles("squareSum", &[NAN], NAN);
}

#[test]
fn q_agg_minmax() {
    ints("min", &[3, -4, 7], -4);
    ints("max", &[3, -4, 7], 7);
    doubles("min", &[NAN, 3.0, -4.0], -4.0);
    doubles("max", &[3.0, NAN, 7.5], 7.5);
    doubles("min", &[NAN], NAN);
    doubles("max", &[NAN, NAN], NAN);
    doubles("min", &[f64::INFINITY], NAN);
}

#[test]
fn q_agg_mim() {
    ints("mimmin", &[i64::MAX, 4], 4);
    ints("mimmax", &[i64::MIN, 4], 4);
    doubles("mimmin", &[f64::MAX, 4.0], 4.0);
    doubles("mimmax", &[-f64::MAX, 4.0], 4.0);
}

#[test]
fn q_agg_avg() {
    ints("avg", &[1, 2], 1);
    ints("avg", &[-1, -2], -1);
    ints("avg", &[7], 7);
    doubles("avg", &[1.0, 2.0, NAN], 1.5);
    doubles("avg", &[NAN], NAN);
}

#[test]
fn q_agg_count() {
    ints("count", &[9, 9, 9], 3);
    doubles("count", &[NAN, 0.0, 1.0], 2.0);
    doubles("count", &[NAN], 0.0);
}

#[test]
fn q_agg_dev() {
    ints("dev", &[2, 4, 4, 4, 5, 5, 7, 9], 2);
    ints("dev", &[1, 2], 0);
    ints("dev", &[5], 0);
    doubles("dev", &[2.0, 4.0, NAN, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0], 2.0);
    doubles("dev", &[1.0, 2.0], 0.5);
    doubles("dev", &[NAN, 2.0], 0.0);
    doubles("dev", &[NAN, NAN], NAN);
}

#[test]
fn q_agg_median() {
    ints("median", &[5, 1, 3], 3);
    ints("median", &[4, 1, 3, 2], 3);
    doubles("median", &[4.0, NAN, 1.0, 3.0, 2.0], 3.0);
    doubles("median", &[NAN], NAN);
}

#[test]
fn q_agg_mult() {
    ints("mult", &[3, -4], -12);
    ints("mult", &[i64::MAX, 2], -2);
    doubles("mult", &[1.5, 2.0], 3.0);
    doubles("mult", &[1.5, NAN], NAN);
}

#[test]
fn q_agg_diff() {
    ints("diff", &[10, 5, 7], -3);
    ints("diff", &[10], 0);
    doubles("diff", &[NAN, 10.0, 4.0], -6.0);
    doubles("diff", &[10.0, NAN], NAN);
    doubles("diff", &[NAN, 10.0], 0.0);
    doubles("diff", &[NAN], NAN);
}

#[test]
fn q_agg_firstlast() {
    ints("first", &[4, 5], 4);
    ints("last", &[4, 5], 5);
    doubles("first", &[NAN, 5.0], NAN);
    doubles("last", &[4.0, 5.0], 5.0);
    ints("none", &[4], 4);
}

#[test]
fn q_agg_pct() {
    let ten: Vec<f64> = (1..=10).map(f64::from).collect();
    doubles("p50", &ten, 5.5);
    doubles("p75", &ten, 8.25);
    doubles("p90", &ten, 9.9);
    doubles("p95", &ten, 10.0);
    doubles("p99", &ten, 10.0);
    doubles("p999", &ten, 10.0);
    doubles("p50", &[NAN, 4.0], 4.0);
    doubles("p50", &[NAN], NAN);
    ints("p50", &[10, 1, 2, 3, 4, 5, 6, 7, 8, 9], 5);
    ints("p90", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 9);
    ints("p99", &[-3], -3);
}

#[test]
fn q_agg_pctr3r7() {
    let ten: Vec<f64> = (1..=10).map(f64::from).collect();
    doubles("ep50r3", &ten, 5.0);
    doubles("ep75r3", &ten, 8.0);
    doubles("ep50r7", &ten, 5.5);
    doubles("ep90r7", &ten, 9.1);
    doubles("ep999r7", &ten, 9.991);
    ints("ep75r3", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 8);
    ints("ep75r7", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 7);
    let strict = Aggregator::by_name("ep50r3").unwrap().of_doubles(&mut ten.clone(), PercentileRule::Plain);
    assert!((strict - 5.5).abs() < 1e-12, "OpenTSDB forgets the suffix on doubles");
}
