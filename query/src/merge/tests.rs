//! Aggregation across series, on points given by hand.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::aggregate::to_double;

fn span(points: &[(i64, Number)]) -> Span {
    let mut span = Span::default();
    for (time_ms, number) in points {
        span.push(*time_ms, *number);
    }
    span
}

fn ints(points: &[(i64, i64)]) -> Span {
    span(&points.iter().map(|(time, value)| (*time, Number::Integer(*value))).collect::<Vec<_>>())
}

fn run(name: &str, spans: &[Span], rate: bool, range: (i64, i64)) -> Result<Vec<(i64, Number)>> {
    let members: Vec<Member<'_>> = spans.iter().map(|span| Member { span, before_first: None }).collect();
    let aggregator = Aggregator::by_name(name).unwrap();
    let (start_ms, end_ms) = range;
    let merge = Merge { aggregator, rate, rule: PercentileRule::AsNamed, start_ms, end_ms };
    Ok(merge.run(&members, &|_| Ok(()))?.into_iter().map(|point| (point.time_ms, point.number)).collect())
}

fn check_ints(name: &str, spans: &[Span], expected: &[(i64, i64)]) {
    let expected: Vec<_> = expected.iter().map(|(time, value)| (*time, Number::Integer(*value))).collect();
    assert_eq!(run(name, spans, false, (0, i64::MAX)).unwrap(), expected, "{name}");
}

#[test]
fn q_interp_lerp_on_integers_is_cut() {
    let spans = [ints(&[(1000, 10), (4000, 20)]), ints(&[(1000, 1), (2000, 1), (3000, 1), (4000, 1)])];
    check_ints("sum", &spans, &[(1000, 11), (2000, 14), (3000, 17), (4000, 21)]);
    let falling = [ints(&[(1000, -10), (4000, -20)]), ints(&[(2000, 0)])];
    check_ints("sum", &falling, &[(1000, -10), (2000, -13), (4000, -20)]);
}

#[test]
fn q_interp_edge_a_series_is_silent_beyond_its_ends() {
    let spans = [ints(&[(1000, 1), (5000, 1)]), ints(&[(2000, 10), (3000, 10)])];
    check_ints("sum", &spans, &[(1000, 1), (2000, 11), (3000, 11), (5000, 1)]);
    check_ints("count", &spans, &[(1000, 1), (2000, 2), (3000, 2), (5000, 1)]);
}

#[test]
fn q_interp_of_each_kind() {
    let spans = [ints(&[(1000, 4), (3000, 8)]), ints(&[(2000, 1)])];
    check_ints("sum", &spans, &[(1000, 4), (2000, 7), (3000, 8)]);
    check_ints("zimsum", &spans, &[(1000, 4), (2000, 1), (3000, 8)]);
    check_ints("pfsum", &spans, &[(1000, 4), (2000, 5), (3000, 8)]);
    check_ints("mimmin", &spans, &[(1000, 4), (2000, 1), (3000, 8)]);
    check_ints("mimmax", &spans, &[(1000, 4), (2000, 1), (3000, 8)]);
    check_ints("first", &spans, &[(1000, 4), (2000, 0), (3000, 8)]);
    check_ints("last", &spans, &[(1000, 4), (2000, 1), (3000, 8)]);
}

#[test]
fn integers_hold_while_no_double_is_in_play() {
    // At 1000 the coming value of the first series is an integer and that of the second a double.
    let mixed = span(&[
        (2000, Number::Integer(3)),
        (3000, Number::Double(0.5)),
        (4000, Number::Integer(5)),
        (5000, Number::Integer(6)),
    ]);
    let alone = run("sum", std::slice::from_ref(&mixed), false, (0, i64::MAX)).unwrap();
    assert_eq!(
        alone,
        [
            (2000, Number::Double(3.0)),
            (3000, Number::Double(0.5)),
            (4000, Number::Integer(5)),
            (5000, Number::Integer(6))
        ]
    );
    // A series that has not begun counts by its first value.
    let late = [ints(&[(1000, 1), (6000, 1)]), span(&[(5000, Number::Double(0.5))])];
    let found = run("sum", &late, false, (0, i64::MAX)).unwrap();
    assert_eq!(found, [(1000, Number::Double(1.0)), (5000, Number::Double(1.5)), (6000, Number::Integer(1))]);
}

#[test]
fn q_trim_stamps_outside_are_not_given_but_take_part() {
    let spans = [ints(&[(1000, 0), (3000, 20)]), ints(&[(2000, 0)])];
    let found = run("sum", &spans, false, (1500, 2500)).unwrap();
    assert_eq!(found, [(2000, Number::Integer(10))]);
}

#[test]
fn q_rate_hold_the_latest_rate_is_held() {
    let rates = |points: &[(i64, f64)]| {
        span(&points.iter().map(|(time, value)| (*time, Number::Double(*value))).collect::<Vec<_>>())
    };
    let spans = [rates(&[(1000, 1.0), (4000, 5.0)]), rates(&[(2000, 10.0), (3000, 20.0), (5000, 1.0)])];
    let found = run("sum", &spans, true, (0, i64::MAX)).unwrap();
    let expected = [(1000, 1.0), (2000, 11.0), (3000, 21.0), (4000, 25.0), (5000, 1.0)];
    assert_eq!(found, expected.map(|(time, value)| (time, Number::Double(value))));
}

#[test]
fn an_infinite_value_is_refused() {
    let huge = span(&[(1000, Number::Double(f64::MAX))]);
    let error = run("squareSum", &[huge], false, (0, i64::MAX)).unwrap_err();
    assert!(matches!(error, Error::Infinite { time_ms: 1000 }), "{error}");
}

/// The latest point of a series in play, and the coming one.
type Sides = (Option<(i64, Number)>, Option<(i64, Number)>);

/// What the module says, worked out for each instant from the points alone.
fn by_definition(merge: Merge, members: &[Member<'_>]) -> Vec<(i64, Number)> {
    let mut instants: Vec<i64> = members.iter().flat_map(|member| member.span.times().to_vec()).collect();
    instants.sort_unstable();
    instants.dedup();
    let answered = instants.into_iter().filter(|now_ms| (merge.start_ms..=merge.end_ms).contains(now_ms));
    let at = |now_ms: i64| {
        let sides = members.iter().map(|Member { span, before_first }| {
            let latest = span.times().iter().rposition(|time_ms| *time_ms <= now_ms);
            let coming = span.times().iter().position(|time_ms| *time_ms > now_ms);
            let point = |at: usize| (span.times()[at], span.number(at));
            // Silent behind its last point, whose value is in play no longer.
            let latest = latest.map(point).filter(|(time_ms, _)| coming.is_some() || *time_ms == now_ms);
            let held = before_first.filter(|_| span.times().first().is_some_and(|first_ms| now_ms < *first_ms));
            let latest = latest.or(held.map(|value| (i64::MIN, Number::Double(value))));
            (latest, coming.map(point))
        });
        let sides: Vec<Sides> = sides.collect();
        let is_double = |point: &Option<(i64, Number)>| matches!(point, Some((_, Number::Double(_))));
        let method = merge.aggregator.interpolation();
        if !merge.rate && !sides.iter().any(|(latest, coming)| is_double(latest) || is_double(coming)) {
            let value = |(latest, coming): &Sides| {
                let (x0, Number::Integer(y0)) = (*latest)? else { return None };
                let Some((x1, Number::Integer(y1))) = coming.filter(|_| x0 != now_ms) else { return Some(y0) };
                Some(match method {
                    Interpolation::Linear => y0 + (now_ms - x0) * (y1 - y0) / (x1 - x0),
                    Interpolation::Zero => 0,
                    Interpolation::Max => i64::MAX,
                    Interpolation::Min => i64::MIN,
                    Interpolation::Previous => y0,
                })
            };
            let mut values: Vec<i64> = sides.iter().filter_map(value).collect();
            return Number::Integer(merge.aggregator.of_integers(&mut values));
        }
        let value = |(latest, coming): &Sides| {
            let (x0, y0) = (*latest)?;
            let y0 = y0.as_double();
            let Some((x1, y1)) = coming.filter(|_| x0 != now_ms && !merge.rate) else { return Some(y0) };
            Some(match method {
                Interpolation::Linear => y0 + to_double(now_ms - x0) * (y1.as_double() - y0) / to_double(x1 - x0),
                Interpolation::Zero => 0.0,
                Interpolation::Max => f64::MAX,
                Interpolation::Min => -f64::MAX,
                Interpolation::Previous => y0,
            })
        };
        let mut values: Vec<f64> = sides.iter().filter_map(value).collect();
        Number::Double(merge.aggregator.of_doubles(&mut values, merge.rule))
    };
    answered.map(|now_ms| (now_ms, at(now_ms))).collect()
}

/// What is held before the first point, how late the member begins, and of each point: the step, whether it is a double, the value.
type Row = (Option<f64>, i64, Vec<(i64, bool, i64)>);

fn row(points_max: usize) -> impl Strategy<Value = Row> {
    let held =
        prop_oneof![Just(None), Just(Some(f64::NAN)), (-9_i32..9).prop_map(|value| Some(f64::from(value) / 7.0))];
    (held, -2_i64..20, vec((1_i64..5, any::<bool>(), -1_000_000_i64..1_000_000), 0..points_max))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// `Q-INTERP-LERP` and its kin: few members of many points or many of few, of whatever instants and kinds, beginning and
    /// ending anywhere.
    #[test]
    fn members_of_any_instants_are_aggregated_by_definition(
        rows in prop_oneof![3 => vec(row(12), 0..6), 2 => vec(row(4), 0..40), 1 => vec(row(3), 260..300)],
        is_of_integers: bool,
        rate: bool,
        (start_ms, end_ms) in (-1_i64..30, prop_oneof![-1_i64..30, Just(i64::MAX)]),
        parts_len in 1_u64..6,
    ) {
        let of_row = |(_, first_ms, row): &Row| {
            let mut time_ms = *first_ms;
            let point = |(step, is_double, value): &(i64, bool, i64)| {
                time_ms += step;
                let number = match value % 10 {
                    0 => f64::NAN,
                    1 => -0.0,
                    _ => to_double(*value) / 7.0,
                };
                (time_ms, if *is_double && !is_of_integers { Number::Double(number) } else { Number::Integer(*value) })
            };
            span(&row.iter().map(point).collect::<Vec<_>>())
        };
        let spans: Vec<Span> = rows.iter().map(of_row).collect();
        // Rates alone have a value before their first.
        let held = rows.iter().map(|(before_first, ..)| before_first.filter(|_| rate));
        let members = spans.iter().zip(held).map(|(span, before_first)| Member { span, before_first });
        let members: Vec<Member<'_>> = members.collect();
        for name in Aggregator::names() {
            let aggregator = Aggregator::by_name(name).unwrap();
            let merge = Merge { aggregator, rate, rule: PercentileRule::AsNamed, start_ms, end_ms };
            let expected = by_definition(merge, &members);
            let parts = merge.parts(&members, parts_len);
            let found = parts.iter().map(|part| part.run_any(&members, &|_| Ok(()))).collect::<Result<Vec<_>>>();
            let found = match found {
                Ok(found) => found.concat(),
                Err(error) => {
                    let infinite = expected.iter().find(|(_, number)| number.as_double().is_infinite());
                    let at_ms = infinite.map(|(time_ms, _)| *time_ms);
                    prop_assert!(matches!(error, Error::Infinite { time_ms } if Some(time_ms) == at_ms), "{}", name);
                    continue;
                }
            };
            let found: Vec<_> = found.into_iter().map(|point| (point.time_ms, point.number)).collect();
            prop_assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{}", name);
        }
    }

    /// One series alone comes through as it is, but that an integer beside a coming double is written as one.
    #[test]
    fn one_series_alone_keeps_its_values(values in vec((any::<bool>(), -1_000_000_i64..1_000_000), 1..40)) {
        let number = |(is_double, value): &(bool, i64)| {
            if *is_double { Number::Double(to_double(*value) / 8.0) } else { Number::Integer(*value) }
        };
        let points: Vec<_> = (0..).step_by(250).zip(values.iter().map(number)).collect();
        for name in ["sum", "zimsum", "pfsum", "min", "max", "mimmin", "mimmax", "avg", "median", "mult", "first", "last", "none", "p50"] {
            let found = run(name, &[span(&points)], false, (0, i64::MAX)).unwrap();
            prop_assert_eq!(found.len(), points.len());
            for ((_, found), (_, given)) in found.iter().zip(&points) {
                prop_assert_eq!(found.as_double().to_bits(), (0.0 + given.as_double()).to_bits(), "{}", name);
            }
        }
    }

    /// Members of the same instants come out alike by the fast path and by the slow one, to the last bit.
    #[test]
    fn members_of_shared_instants_are_aggregated_alike_both_ways(
        rows in vec((any::<bool>(), vec(prop_oneof![any::<i64>(), -9_i64..9], 12)), 1..6),
        rate: bool,
        (start_ms, end_ms) in (-1_i64..13_000, -1_i64..13_000),
        parts_len in 1_u64..6,
    ) {
        let number = |is_double, value: &i64| match value {
            -9 if is_double => Number::Double(f64::NAN),
            -8 if is_double => Number::Double(-0.0),
            -7 if is_double => Number::Double(f64::MAX),
            -6 if is_double => Number::Double(f64::NEG_INFINITY),
            value if is_double => Number::Double(to_double(*value) / 8.0),
            value => Number::Integer(*value),
        };
        let row = |(is_double, row): &(bool, Vec<i64>)| {
            span(&(0..).step_by(1000).zip(row.iter().map(|value| number(*is_double, value))).collect::<Vec<_>>())
        };
        let mut spans: Vec<Span> = rows.iter().map(row).collect();
        spans.push(Span::default());
        let members: Vec<Member<'_>> = spans.iter().map(|span| Member { span, before_first: None }).collect();
        for name in Aggregator::names() {
            let aggregator = Aggregator::by_name(name).unwrap();
            let merge = Merge { aggregator, rate, rule: PercentileRule::AsNamed, start_ms, end_ms };
            let spans = aligned::spans(&members).unwrap();
            let parts = merge.parts(&members, parts_len);
            let in_parts = parts.iter().map(|part| part.run_aligned(&spans, &|_| Ok(()))).collect::<Result<Vec<_>>>();
            let [fast, slow] = [in_parts.map(|parts| parts.concat()), merge.run_any(&members, &|_| Ok(()))];
            // NaN is not itself; its text is.
            prop_assert_eq!(format!("{fast:?}"), format!("{slow:?}"), "{}", name);
        }
    }

    /// A sum at an instant where every series has a point is the plain sum, in whatever order the series come.
    #[test]
    fn sums_at_shared_instants_need_no_interpolation(rows in vec(vec(-1000_i64..1000, 12), 1..8)) {
        let spans: Vec<Span> = rows.iter().map(|row| ints(&(0..).step_by(1000).zip(row.iter().copied()).collect::<Vec<_>>())).collect();
        let expected: Vec<_> = (0..12_usize).map(|at| {
            let sum = rows.iter().map(|row| row[at]).sum();
            (i64::try_from(at).unwrap() * 1000, Number::Integer(sum))
        }).collect();
        prop_assert_eq!(run("sum", &spans, false, (0, i64::MAX)).unwrap(), expected);
    }
}

#[test]
fn members_that_differ_in_instants_or_within_themselves_go_the_slow_way() {
    let check = |spans: &[Span], before_first| {
        let members: Vec<Member<'_>> = spans.iter().map(|span| Member { span, before_first }).collect();
        assert!(aligned::spans(&members).is_none());
    };
    check(&[ints(&[(1000, 1)]), ints(&[(1001, 1)])], None);
    check(&[ints(&[(1000, 1)]), ints(&[(1000, 1), (2000, 1)])], None);
    check(&[span(&[(1000, Number::Integer(1)), (2000, Number::Double(1.0))])], None);
    check(&[ints(&[(1000, 1)])], Some(1.0));
}

#[test]
fn several_threads_share_what_is_much_and_their_walks_are_charged() {
    let row = |first_ms: i64| ints(&(0..2_000).map(|at| (first_ms + at * 97, at % 7)).collect::<Vec<_>>());
    let spans: Vec<Span> = (0..60).map(row).collect();
    let members: Vec<Member<'_>> = spans.iter().map(|span| Member { span, before_first: None }).collect();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
    let taken = std::sync::atomic::AtomicU64::new(0);
    let take = |bytes| {
        taken.fetch_add(bytes, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    };
    let aggregator = Aggregator::Avg;
    let merge = Merge { aggregator, rate: false, rule: PercentileRule::AsNamed, start_ms: 500, end_ms: i64::MAX };
    let in_parts = pool.install(|| merge.run(&members, &take)).unwrap();
    let looks = taken.into_inner() - 3 * 60 * WALK_BYTES;
    assert!(looks >= 4 * OUTPUT_BYTES && looks.is_multiple_of(OUTPUT_BYTES));
    assert_eq!(in_parts, merge.run_any(&members, &|_| Ok(())).unwrap());
    // Little is not cut.
    assert_eq!(pool.install(|| merge.parts_len(&members[..5], false)), 1);
    assert_eq!(pool.install(|| merge.parts_len(&members, true)), 1);
}

#[test]
fn nothing_gives_nothing() {
    assert!(run("sum", &[], false, (0, i64::MAX)).unwrap().is_empty());
    assert!(run("sum", &[Span::default()], true, (0, i64::MAX)).unwrap().is_empty());
}
