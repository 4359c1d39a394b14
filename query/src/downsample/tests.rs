//! Downsampling by the epoch and by calendars.

use basalt_schema::{BaseTime, Door, Duplicates, PointTime, RowCell, RowPoints, Value, point_cell};
use basalt_store::{SeqNo, Timestamp};
use proptest::prelude::*;

use super::*;
use crate::aggregate::PercentileRule;
use crate::answer::Number;
use crate::span::Span;
use crate::window::Window;
use crate::zone::parse_zone;

const HOUR: i64 = 1_356_998_400;

fn span(points: &[(i64, i64)]) -> Span {
    let mut span = Span::default();
    for (seconds, value) in points {
        span.push(seconds * 1000, Number::Integer(*value));
    }
    span
}

fn run(text: &str, zone: &str, points: &[(i64, i64)], range: (i64, i64)) -> Vec<(i64, f64)> {
    run_as(Compat::default(), text, zone, points, range)
}

fn run_as(compat: Compat, text: &str, zone: &str, points: &[(i64, i64)], range: (i64, i64)) -> Vec<(i64, f64)> {
    let spec = Downsample::parse(text, parse_zone(zone).unwrap(), false, compat).unwrap();
    let window = Window::new(range.0 * 1000, range.1 * 1000, spec.fixed_ms());
    // As the fan-out reads: whole hours.
    let read = |(seconds, _): &&(i64, i64)| (window.scan_start_ms..window.scan_end_ms).contains(&(seconds * 1000));
    let points: Vec<(i64, i64)> = points.iter().filter(read).copied().collect();
    let found = downsample(&span(&points), &spec, &window, PercentileRule::AsNamed);
    (0..found.len()).map(|at| (found.times()[at] / 1000, found.double(at))).collect()
}

fn check(text: &str, points: &[(i64, i64)], range: (i64, i64), expected: &[(i64, f64)]) {
    assert_eq!(run(text, "UTC", points, range), expected, "{text}");
}

#[test]
fn q_ds_basic_buckets_are_aligned_to_the_epoch() {
    let points = [(HOUR + 10, 1), (HOUR + 59, 3), (HOUR + 60, 5), (HOUR + 200, 7)];
    let range = (HOUR + 30, HOUR + 100);
    check("1m-sum", &points, range, &[(HOUR, 4.0), (HOUR + 60, 5.0), (HOUR + 180, 7.0)]);
    check("1m-avg", &points, range, &[(HOUR, 2.0), (HOUR + 60, 5.0), (HOUR + 180, 7.0)]);
    check("1h-first", &points, range, &[(HOUR, 1.0)]);
    check("1h-count", &points, range, &[(HOUR, 4.0)]);
    check("1m-sum", &[], range, &[]);
}

#[test]
fn q_ds_units() {
    let day = 86_400;
    let at = |text: &str| run(text, "UTC", &[(HOUR + 5000, 1)], (0, 2 * HOUR))[0].0;
    assert_eq!(at("500ms-sum"), HOUR + 5000);
    assert_eq!(at("30s-sum"), HOUR + 4980);
    assert_eq!(at("1h-sum"), HOUR + 3600);
    assert_eq!(at("1d-sum"), HOUR);
    // The epoch was a Thursday; so weeks are.
    assert_eq!(at("1w-sum"), HOUR - HOUR % (7 * day));
    assert_eq!(at("1n-sum"), HOUR - HOUR % (30 * day));
    assert_eq!(at("1y-sum"), HOUR - HOUR % (365 * day));
}

#[test]
fn q_ds_fill() {
    let points = [(HOUR + 60, 1), (HOUR + 180, 3)];
    let range = (HOUR, HOUR + 240);
    let found = run("10m-sum-zero", "UTC", &points, range);
    assert_eq!(found.len(), 6, "every bucket of the scan");
    assert_eq!(found[0], (HOUR, 4.0));
    assert!(found[1..].iter().all(|(_, value)| *value == 0.0));
    let found = run("1m-sum-nan", "UTC", &points, range);
    assert_eq!(found.len(), 60);
    assert!(found[0].1.is_nan() && found[2].1.is_nan());
    assert_eq!((found[1], found[3]), ((HOUR + 60, 1.0), (HOUR + 180, 3.0)));
    assert_eq!(run("1m-sum-null", "UTC", &points, range).len(), 60);
    let spec = Downsample::parse("1m-sum-nan", Tz::UTC, false, Compat::default()).unwrap();
    let window = Window::new(HOUR * 1000, (HOUR + 240) * 1000, spec.fixed_ms());
    assert!(grid_len(&spec, &window) >= 60);
}

#[test]
fn q_ds_all_ends_before_the_end() {
    let points = [(HOUR + 9, 100), (HOUR + 10, 1), (HOUR + 19, 2), (HOUR + 20, 4)];
    check("0all-sum", &points, (HOUR + 10, HOUR + 20), &[(HOUR + 10, 3.0)]);
    check("1all-max-nan", &points, (HOUR + 10, HOUR + 20), &[(HOUR + 10, 2.0)]);
    check("0all-sum", &points, (HOUR + 11, HOUR + 19), &[]);
}

#[test]
fn what_begins_before_the_scan_does_not_count() {
    // Eleven minutes do not tile an hour: the scan begins within a bucket, whose points are left out.
    let points = [(HOUR - 3600, 1), (HOUR - 3421, 2), (HOUR - 3420, 4), (HOUR, 8)];
    let found = run("11m-sum", "UTC", &points, (HOUR, HOUR + 60));
    assert_eq!(found, [(HOUR - 3420, 4.0), (HOUR - 120, 8.0)]);
}

#[test]
fn q_ds_cal_days_follow_the_zone() {
    // 11 March 2012 had 23 hours in New York.
    let zone = "America/New_York";
    let midnight = |text: &str| {
        let context = crate::TimeContext { now_ms: 0, zone: parse_zone(zone).unwrap(), compat: Compat::default() };
        crate::parse_time(text, &context).unwrap() / 1000
    };
    let days = [midnight("2012/03/10"), midnight("2012/03/11"), midnight("2012/03/12"), midnight("2012/03/13")];
    assert_eq!([days[1] - days[0], days[2] - days[1]], [86_400, 82_800]);
    let points: Vec<(i64, i64)> = (0..72).map(|hour| (days[0] + hour * 3600, 1)).collect();
    let found = run("1dc-sum", zone, &points, (days[0], days[3]));
    assert_eq!(found, [(days[0], 24.0), (days[1], 23.0), (days[2], 24.0), (days[3], 1.0)]);
    let filled = run("1dc-count-zero", zone, &points[24..26], (days[0], days[3]));
    // The scan begins within the day before, which is trimmed later.
    assert_eq!(filled[1..], [(days[0], 0.0), (days[1], 2.0), (days[2], 0.0), (days[3], 0.0)]);
}

#[test]
fn q_ds_cal_months_and_years() {
    let new_year = 1_356_998_400;
    let (february, march) = (new_year + 31 * 86_400, new_year + 59 * 86_400);
    let points = [(new_year + 5, 1), (february - 1, 2), (february, 4), (march, 8)];
    let range = (new_year, march + 100);
    assert_eq!(run("1nc-sum", "UTC", &points, range), [(new_year, 3.0), (february, 4.0), (march, 8.0)]);
    assert_eq!(run("2nc-sum", "UTC", &points, range), [(new_year, 7.0), (march, 8.0)]);
    assert_eq!(run("1yc-sum", "UTC", &points, (0, march)), [(new_year, 15.0)]);
}

#[test]
fn specifiers_are_read_in_any_shape_that_opentsdb_takes() {
    let parse = |text: &str| Downsample::parse(text, Tz::UTC, false, Compat::default());
    assert_eq!(parse("10m-avg").unwrap().interval, Interval::Fixed(600_000));
    assert_eq!(parse("all-avg").unwrap().interval, Interval::All);
    assert_eq!(parse("1m-avg-NaN").unwrap().fill, Fill::Nan);
    assert!(matches!(parse("1dc-avg").unwrap().interval, Interval::Calendar { .. }));
    assert!(matches!(
        Downsample::parse("1d-avg", Tz::UTC, true, Compat::default()).unwrap().interval,
        Interval::Calendar { .. }
    ));
    for bad in ["", "1m", "1m-", "1m-avg-nan-x", "1x-avg", "0m-avg", "1m-AVG", "1m-avg-scalar", "999999999dc-avg"] {
        assert!(parse(bad).is_err(), "{bad}");
    }
}

/// `Q-DS-UNITS`: what OpenTSDB makes of a unit that it does not know; a calendar's it minds.
#[test]
fn q_ds_units_strictly_the_last_letter_is_the_unit() {
    let parse = |text: &str| Downsample::parse(text, Tz::UTC, false, Compat { strict: true });
    assert_eq!(parse("1.5h-avg").unwrap().interval, Interval::Fixed(3_600_000));
    assert_eq!(parse("10mins-avg").unwrap().interval, Interval::Fixed(10_000));
    assert!(Downsample::parse("10mins-avg", Tz::UTC, false, Compat::default()).is_err());
    assert_eq!(parse("60MS-avg").unwrap().interval, Interval::Fixed(60_000));
    assert!(matches!(parse("1Hc-avg").unwrap().interval, Interval::Calendar { .. }));
    assert_eq!(parse("1dayc-avg").unwrap_err().to_string(), "For input string: \"1da\"");
}

/// An hour's points from two days before 10 March 2012 in New York for forty days, counted by `text` from that day on.
fn new_york(text: &str, days: i64) -> Vec<(i64, f64)> {
    new_york_as(Compat { strict: true }, text, days)
}

fn new_york_as(compat: Compat, text: &str, days: i64) -> Vec<(i64, f64)> {
    const START: i64 = 1_331_355_600;
    let points: Vec<(i64, i64)> = (-48..960).map(|hour| (START + hour * 3600, 1)).collect();
    let range = (START, START + days * 86_400);
    let found = run_as(compat, text, "America/New_York", &points, range);
    found.into_iter().filter(|(time, _)| (range.0..=range.1).contains(time)).collect()
}

/// As OpenTSDB 2.4.1 answered, asked with these points, `timezone` and these specifiers.
#[test]
fn q_ds_cal_as_recorded() {
    let days = new_york("1dc-count", 20);
    assert_eq!((days.len(), days[1], days[20]), (21, (1_331_442_000, 23.0), (1_333_080_000, 20.0)));
    let filled = new_york("1dc-count-zero", 20);
    assert_eq!(filled, days[..20], "the scan's end falls into the last day, which is then not filled");
    let weeks = [(1_331_442_000, 167.0), (1_332_043_200, 168.0), (1_332_648_000, 168.0)];
    assert_eq!(new_york("1wc-count", 20), weeks);
    assert_eq!(new_york("1wc-count-zero", 20), weeks);
    assert_eq!(new_york("2wc-count", 20), [(1_331_442_000, 335.0), (1_332_648_000, 336.0)]);
    assert_eq!(new_york("1nc-count", 20), []);
    let three_days = new_york("3dc-count", 20);
    assert_eq!(three_days[..2], [(1_331_355_600, 71.0), (1_331_611_200, 72.0)]);
    assert_eq!((three_days.len(), three_days[6]), (7, (1_332_907_200, 72.0)));
    assert_eq!(new_york("1hc-count", 3).len(), 73);
    let seven_hours = new_york("7hc-count", 3);
    assert_eq!(seven_hours[..2], [(1_331_359_200, 7.0), (1_331_384_400, 7.0)]);
    assert_eq!(seven_hours[10], (1_331_611_200, 2.0));
    let five_days = [(1_331_442_000, 119.0), (1_331_870_400, 120.0), (1_332_302_400, 120.0)];
    assert_eq!(new_york("5dc-count-zero", 20), five_days);
}

/// A fill adds empty buckets, and takes none away: not the last, nor those of a series that begins in the middle.
#[test]
fn q_ds_cal_a_fill_keeps_every_bucket() {
    for text in ["1dc-count", "1wc-count", "2wc-count", "3dc-count", "1hc-count", "7hc-count", "6hc-count", "5dc-count"]
    {
        let plain = new_york_as(Compat::default(), text, 20);
        assert_eq!(new_york_as(Compat::default(), &format!("{text}-zero"), 20), plain, "{text}");
    }
    let (new_year, day) = (1_451_606_400, 86_400);
    let one = [(new_year + day + 43_200, 7)];
    for (text, zone) in [("2dc-sum", "UTC"), ("3dc-sum", "UTC"), ("6hc-sum", "America/New_York"), ("2nc-sum", "UTC")] {
        let ask = |text: &str| run(text, zone, &one, (new_year, new_year + 9 * day));
        let mut filled = ask(&format!("{text}-zero"));
        filled.retain(|(_, value)| *value > 0.0);
        assert_eq!((filled.len(), filled), (1, ask(text)), "{text}");
    }
    // In any zone west of UTC, and of any length: the bucket that holds the end.
    let end = new_year + 40 * day + 7_200;
    for text in ["1dc-sum-zero", "1wc-sum-zero", "1nc-sum-zero", "1yc-sum-zero", "2hc-sum-zero"] {
        let found = run(text, "America/New_York", &[(end - 60, 5)], (new_year, end));
        assert_eq!(found.last().map(|(_, value)| *value), Some(5.0), "{text}: {found:?}");
    }
}

/// Samoa's clock went from the end of 29 December 2011 to 31 December.
#[test]
fn q_ds_cal_a_day_that_a_zone_skipped_has_no_bucket() {
    let (last_year, day) = (1_325_239_200, 86_400);
    let range = (last_year - day, last_year + day + 3_600);
    let mut found = run("1dc-sum-zero", "Pacific/Apia", &[(last_year + 7_200, 5)], range);
    found.retain(|(at, _)| *at >= range.0);
    assert_eq!(found, [(last_year - day, 0.0), (last_year, 5.0), (last_year + day, 0.0)]);
}

/// Points of some hours as rows, in order of time.
fn rows(points: &[(i64, Number)]) -> Vec<(BaseTime, RowPoints)> {
    let mut rows: Vec<(BaseTime, Vec<basalt_schema::PointCell>)> = Vec::new();
    for (time_ms, number) in points {
        let value = match number {
            Number::Integer(value) => Value::Int(*value),
            Number::Double(value) => Value::Float(*value),
        };
        let cell = point_cell(PointTime::from_number(*time_ms).unwrap(), value, Door::Http).unwrap();
        match rows.last_mut().filter(|(base, _)| *base == cell.base) {
            Some((_, cells)) => cells.push(cell),
            None => rows.push((cell.base, vec![cell])),
        }
    }
    let row = |(base, cells): (BaseTime, Vec<basalt_schema::PointCell>)| {
        let mut points = RowPoints::default();
        let cells: Vec<_> = cells.iter().map(|cell| (cell.qualifier_bytes(), cell.value())).collect();
        let cells =
            cells.iter().map(|(qualifier, value)| RowCell { qualifier, value, timestamp: Timestamp(1), seq: SeqNo(0) });
        points.decode(cells, Duplicates::NewestWins).unwrap();
        (base, points)
    };
    rows.into_iter().map(row).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Rows downsampled one by one are what all of their points downsampled together are, to the last bit.
    #[test]
    fn rows_alone_give_the_buckets_of_all_points(
        points in proptest::collection::btree_map(0_i64..4 * 3_600_000, (any::<bool>(), any::<i64>(), 0_u32..64), 1..80),
        interval in prop_oneof![Just("1h"), Just("1m"), Just("90s"), Just("250ms"), Just("20m")],
        function in prop_oneof![Just("sum"), Just("avg"), Just("max"), Just("first"), Just("dev"), Just("p95")],
        fill in prop_oneof![Just(""), Just("-nan"), Just("-zero")],
    ) {
        let number = |(is_double, value, shift): &(bool, i64, u32)| {
            let value = value >> shift;
            if *is_double { Number::Double(crate::aggregate::to_double(value) / 8.0) } else { Number::Integer(value) }
        };
        let points: Vec<_> = points.iter().map(|(offset, of)| (HOUR * 1000 + offset, number(of))).collect();
        let mut all = Span::default();
        for (time_ms, number) in &points {
            all.push(*time_ms, *number);
        }
        let spec = Downsample::parse(&format!("{interval}-{function}{fill}"), parse_zone("UTC").unwrap(), false, Compat::default()).unwrap();
        let window = Window::new(HOUR * 1000, (HOUR + 4 * 3600) * 1000 - 1, spec.fixed_ms());
        let expected = downsample(&all, &spec, &window, PercentileRule::AsNamed);
        let mut of_rows = RowDownsample::new(&spec, PercentileRule::AsNamed).unwrap();
        let mut found = Span::default();
        for (base, row) in rows(&points) {
            let before = found.len();
            let taken = of_rows.take(base, &row, (&mut found, &mut Vec::new()));
            prop_assert_eq!(taken, Some(found.len() - before));
        }
        if spec.fill != Fill::None {
            found = filled(&found, &spec, &window);
        }
        prop_assert_eq!(found.times(), expected.times());
        prop_assert_eq!(found.words(), expected.words());
    }
}

#[test]
fn rows_are_not_downsampled_alone_where_buckets_reach_into_others() {
    let of = |text: &str| {
        let spec = Downsample::parse(text, parse_zone("UTC").unwrap(), false, Compat::default()).unwrap();
        RowDownsample::new(&spec, PercentileRule::AsNamed)
    };
    for text in ["2h-dev", "7m-sum", "1mc-sum", "1hc-sum", "3dc-sum", "0all-sum", "1d-p95", "90m-sum"] {
        assert!(of(text).is_none(), "{text}");
    }
    let mut of_rows = of("1h-sum").unwrap();
    let (base, later) = (BaseTime::of_seconds(1_356_998_400), BaseTime::of_seconds(1_357_002_000));
    let row = rows(&[(HOUR * 1000, Number::Integer(1))]).remove(0).1;
    let mut span = Span::default();
    let mut take = |base, row: &RowPoints| of_rows.take(base, row, (&mut span, &mut Vec::new()));
    assert_eq!(take(later, &row), Some(1));
    assert_eq!(take(base, &row), None, "it comes before the last");
    let mut beyond = RowPoints::default();
    let cell = RowCell { qualifier: &[0xFD, 0xBB, 0xA0, 0x00], value: &[1], timestamp: Timestamp(1), seq: SeqNo(0) };
    beyond.decode([cell], Duplicates::NewestWins).unwrap();
    assert_eq!(beyond.offsets_ms(), [3_600_000]);
    assert_eq!(take(later.next().unwrap(), &beyond), None, "it reaches beyond its hour");
    assert_eq!(span.len(), 1);
}
