//! Rows of points and of rollups of all spans, found by the hours that are occupied and without a look.

use basalt_schema::{Door, RollupSettings, Rollups, Salting, SchemaConfig, Tsuid, Value};
use proptest::prelude::*;

use super::*;
use crate::fetch::{Reader, Way};
use crate::fixture::{Fixture, text};
use crate::plan::Plan;
use crate::{Cancel, Limits, QueryRequest, SubQuery};

/// The start of a day.
const START_S: u32 = 1_499_990_400;
/// Intervals and the spans of their rows.
const SPANS: [(&str, &str); 5] = [("1m", "1h"), ("10m", "6h"), ("1h", "1d"), ("1d", "1n"), ("1n", "1y")];

fn fixture(interval: &str, span: &str, salting: Salting) -> Fixture {
    let json = format!(
        r#"{{"aggregationIds":{{"sum":0,"count":1}},"intervals":[
            {{"table":"tsdb-rollups","preAggregationTable":"pre","interval":"{interval}","rowSpan":"{span}"}}]}}"#
    );
    let rollups = Some(Rollups::parse(&json, RollupSettings::default()).unwrap());
    Fixture::of(SchemaConfig { salting, rollups, ..SchemaConfig::default() })
}

/// Stores the sum 1 of the interval that holds a second, if a row has a place for it: the last days of a year are in none of its
/// months of 30.
fn roll(fixture: &Fixture, tsuid: &Tsuid, second: u32) {
    let rollups = fixture.schema.config().rollups.as_ref().unwrap();
    let (rollup, sum) = (rollups.iter().next().unwrap(), rollups.aggregate("sum").unwrap());
    let (kind, _) = Value::Int(1).encode(Door::Http).unwrap();
    let Ok((base, qualifier)) = rollup.column(second, sum, kind) else { return };
    let key = fixture.schema.layout().series_key(tsuid).row_key(BaseTime::from_be_bytes(base.to_be_bytes()));
    fixture.store_in(rollup.table(), &key, &qualifier, &[1]);
}

fn series(fixture: &Fixture, host: u32) -> Tsuid {
    let tsuid = fixture.schema.resolve("m", &[("host", &format!("h{host}"))]).unwrap();
    fixture.schema.index().add(&tsuid).unwrap();
    tsuid
}

/// What each way reads of a sub query: gets of all rows, gets of those of occupied hours, scans.
fn by_each_way(fixture: &Fixture, sub: &str, (start, end): (u32, u32)) -> [String; 3] {
    let engine = fixture.engine(false, Limits::default());
    let request = QueryRequest {
        start: Some(start.to_string()),
        end: Some(end.to_string()),
        queries: vec![SubQuery::from_metric_text(sub).unwrap()],
        ..QueryRequest::default()
    };
    let query = request.check(0, engine.options()).unwrap();
    let pool = crate::memory::MemoryPool::new(0);
    let budget = Budget::new(Limits::default(), &Cancel::new(), &pool);
    let schema = &fixture.schema;
    let plan = Plan::new(schema, &query, &query.sub_queries[0], engine.options(), &budget).unwrap();
    let hours = Hours::of(&plan.window, plan.rollup()).unwrap();
    let start = Start::of(schema);
    let steps = Steps(hours.rollup.map_or(RowSpan::Hours(1), Rollup::span));
    let finder = Finder { schema, plan: &plan, hours, steps, budget: &budget };
    let mut salts: BTreeMap<u32, u64> = BTreeMap::new();
    for tsuid in &plan.series {
        *salts.entry(schema.layout().salt_of(tsuid).0).or_default() += 1;
    }
    let buckets = salts.into_iter().map(|(salt, series)| (salt, finder.bucket(Salt(salt), series).unwrap())).collect();
    let occupied = Occupied { buckets, steps };
    for salt in occupied.buckets.keys() {
        let bases: Vec<BaseTime> = occupied.bases(Salt(*salt)).collect();
        let all: Vec<BaseTime> = hours.iter().collect();
        assert!(bases.is_sorted_by(|before, next| before < next), "{bases:?}");
        assert!(bases.iter().all(|base| all.contains(base)), "{bases:?} of {all:?}");
    }
    let read = |way| {
        let reader = Reader {
            schema,
            plan: &plan,
            hours,
            way,
            annotations: false,
            strict: false,
            budget: &budget,
            is_near: true,
            start,
            rule: None,
            misfit: false.into(),
        };
        format!("{:?}", reader.read().unwrap().series)
    };
    [Way::Gets(None), Way::Gets(Some(occupied)), Way::Scans(None)].map(read)
}

/// Runs of rows: the first second, how far apart they are, how many, and how many series share them.
fn runs() -> impl Strategy<Value = Vec<(u32, u32, u32, u32)>> {
    let apart_s = prop_oneof![Just(3_600_u32), Just(7_200), Just(86_400), 600..40_000_000_u32];
    prop::collection::vec((1..100_000_000_u32, apart_s, 1..100_u32, 1..9_u32), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever is known of the hours, what is read is the same.
    #[test]
    fn occupied_hours_hold_all_rows_of_all_spans(
        span in prop::option::of(0..SPANS.len()),
        is_salted: bool,
        runs in runs(),
        start in 0..100_000_000_u32,
        length in 0..400_000_000_u32,
        is_rate: bool,
    ) {
        let (interval, row_span) = SPANS[span.unwrap_or_default()];
        let salting = if is_salted { Salting::EMBEDDED } else { Salting::NONE };
        let mut fixture = fixture(interval, row_span, salting);
        // Of the shortest rows a few months, as each of them is asked for by the plain way.
        let (start, length) = if span.is_none_or(|span| span < 2) { (start / 100, length / 40) } else { (start, length) };
        for (after, apart_s, count, hosts) in runs {
            let first = if span.is_none_or(|span| span < 2) { after / 10 } else { after };
            for host in 0..hosts {
                let tsuid = series(&fixture, host);
                for second in (0..count).filter_map(|place| first.checked_add(place.checked_mul(apart_s)?)) {
                    match span {
                        Some(_) => roll(&fixture, &tsuid, second),
                        None => fixture.put(&format!("m {second} 1 host=h{host}")),
                    }
                }
            }
        }
        let downsample = if span.is_some() { format!("{interval}-sum:") } else { String::new() };
        let rate = if is_rate { "rate:" } else { "" };
        let sub = format!("sum:{downsample}{rate}m{{}}{{host=regexp(h[0-4])}}");
        let [plain, occupied, scanned] = by_each_way(&fixture, &sub, (start, start + length));
        prop_assert_eq!(&occupied, &plain);
        prop_assert_eq!(&scanned, &plain);
    }
}

/// `Q-ROLLUP`: series of short lives: none is asked for in the rows of all others.
#[test]
fn q_rollup_many_series_of_short_lives_are_scanned() {
    for (interval, span, apart_s, rows) in
        [("1m", "1h", 3_600, 1_000), ("1h", "1d", 86_400, 90), ("1d", "1n", 86_400 * 31, 90)]
    {
        let fixture = fixture(interval, span, Salting::EMBEDDED);
        for host in 1_000..3_400 {
            roll(&fixture, &series(&fixture, host), START_S + host % rows * apart_s);
        }
        fixture.take_counts();
        let end = (START_S + rows * apart_s).to_string();
        let sub = format!("sum:{interval}-sum:m{{}}{{host=regexp(h1[0-5]..)}}");
        let series = fixture.ask(&START_S.to_string(), &end, &sub).unwrap();
        let sum: f64 = series[0]
            .points
            .iter()
            .map(|point| match point.number {
                crate::Number::Double(value) => value,
                crate::Number::Integer(_) => panic!("{}", text(&series[0])),
            })
            .sum();
        assert!((sum - 600.0).abs() < 0.5, "{interval}: {sum}");
        let (asked, scanned) = fixture.take_counts();
        assert_eq!(asked, 0, "{interval}");
        assert!(scanned <= 3 * 2_400, "{interval}: {scanned}");
    }
}

/// `Q-ROLLUP`: over years without rollups, few series are asked for where there are some.
#[test]
fn q_rollup_few_series_are_got_in_the_rows_that_there_are() {
    let fixture = fixture("1h", "1d", Salting::NONE);
    for host in 10..34 {
        let tsuid = series(&fixture, host);
        for day in (0..400).chain(8_000..8_400) {
            roll(&fixture, &tsuid, 500_000_400 + day * 86_400);
        }
    }
    fixture.take_counts();
    let series = fixture.ask("100000000", "1700000000", "sum:1h-sum:m{host=h12}").unwrap();
    assert_eq!(series[0].points.len(), 800);
    let (asked, scanned) = fixture.take_counts();
    assert!((800..=2_000).contains(&asked), "{asked}");
    assert!(scanned <= 8 * KEYS_AT_ONCE, "{scanned}");
}
