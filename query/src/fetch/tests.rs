//! Reading, where rows are not as writers of ours make them, or not as many as expected.

use basalt_schema::BaseTime;

use super::*;
use crate::fixture::{Fixture, text};
use crate::get_size::{GET_BYTES, GET_ROWS_UNKNOWN};
use crate::series_data::POINT_BYTES;
use crate::{Error, Limits, SubQuery};

/// A row with a point beyond its hour: its buckets are made of all points, as ever, and each point is charged once.
#[test]
fn a_point_beyond_its_rows_hour_is_downsampled_where_it_lies() {
    let fixture = Fixture::with(&["b.m 1699999200 1 host=a", "b.m 1700002800 10 host=a", "b.m 1700006400 5 host=a"]);
    let tsuid = fixture.schema.find("b.m", &[("host", "a")]).unwrap();
    let key = fixture.schema.layout().series_key(&tsuid).row_key(BaseTime::of_seconds(1_699_999_200));
    // 3,700 seconds into the row.
    let qualifier = (0xF000_0000_u32 | (3_700_000 << 6)).to_be_bytes();
    fixture.store(&key, &qualifier, &[7]);
    let ask = |points_max| {
        let limits = Limits { points_max, ..Limits::default() };
        let sub = SubQuery::from_metric_text("sum:1h-sum:b.m").unwrap();
        fixture.ask_with("1699999200", "1700009999", sub, limits)
    };
    // The point at the next row's start lies before the latest and is dropped, as without downsampling.
    assert_eq!(text(&ask(4).unwrap()[0]), "1699999200 1.0, 1700002800 7.0, 1700006400 5.0");
    assert!(matches!(ask(3), Err(Error::TooManyPoints { limit: 3 })));
}

/// A scan that is expected to be short goes on where it is not.
#[test]
fn a_bucket_of_more_rows_than_expected_is_read_to_its_end() {
    let mut fixture = Fixture::with(&[]);
    let hosts: Vec<String> = (0..9_000).map(|host| format!("h{host}")).collect();
    for host in &hosts {
        fixture.put_unseen("b.n", ("host", host), 1_700_000_000, 1);
    }
    for host in &hosts[8_990..] {
        fixture.put(&format!("b.n 1700000001 2 host={host}"));
    }
    let series = fixture.ask("1699999200", "1700002799", "sum:b.n").unwrap();
    assert_eq!(text(&series[0]), "1700000000 10, 1700000001 20");
}

/// `Q-LIMIT`: they are all kept until the last is read.
#[test]
fn global_annotations_count_as_memory() {
    let fixture = Fixture::with(&[]);
    for second in 0..1_000 {
        fixture.annotate_globally(1_700_000_000 + second, r#"{"description":"deployed"}"#);
    }
    let ask = |memory_bytes| {
        let engine = fixture.engine(false, Limits { memory_bytes, ..Limits::default() });
        let request = crate::QueryRequest {
            start: Some("1700000000".into()),
            queries: vec![SubQuery::from_metric_text("sum:m").unwrap()],
            ..crate::QueryRequest::default()
        };
        let query = request.check(1_700_001_000_000, engine.options()).unwrap();
        let found = engine.global_annotations(&query, &crate::Cancel::new()).map(|(notes, held)| {
            // As long as they are told, and what is made of them.
            assert!(engine.memory_used_bytes() > 2 * notes.iter().map(|note| note.json.len() as u64).sum::<u64>());
            drop(held);
            notes.len()
        });
        assert_eq!(engine.memory_used_bytes(), 0);
        found
    };
    assert_eq!(ask(1 << 20).unwrap(), 1_000);
    assert!(matches!(ask(1 << 14), Err(Error::TooMuchMemory { limit_bytes: 16_384 })));
}

/// Few series of a metric over fifty years: hours in which it has no rows are not asked for, and where it has few rows they are
/// scanned.
#[test]
fn few_series_of_a_sparse_metric_are_scanned() {
    const SERIES: i64 = 40;
    let mut fixture = Fixture::new(basalt_schema::Salting::EMBEDDED);
    for host in 0..SERIES {
        for third in 0..3 {
            fixture.put(&format!("m {} {third} host=h{host}", 200_000_000 + (host + third * SERIES) * 12_000_000));
        }
    }
    fixture.take_counts();
    let series = fixture.ask("100000000", "1700000000", "none:m{host=h3|h5}").unwrap();
    assert_eq!(text(&series[0]), "236000000 0, 716000000 1, 1196000000 2");
    assert_eq!((series.len(), series[1].points.len()), (2, 3));
    let (asked, scanned) = fixture.take_counts();
    assert_eq!(asked, 0);
    assert!(scanned <= 4 * 120, "{scanned}");
}

/// Series that come and go, over a range that is not long: none is asked for in the hours of all others.
#[test]
fn many_series_of_short_lives_are_scanned() {
    let mut fixture = Fixture::new(basalt_schema::Salting::EMBEDDED);
    for host in 1_000..3_400 {
        fixture.put(&format!("m {} 1 host=h{host}", 1_700_000_000 + host % 200 * 3600));
    }
    fixture.take_counts();
    let series = fixture.ask("1700000000", "1700719999", "sum:0all-sum:m{}{host=regexp(h1[0-5]..)}").unwrap();
    assert_eq!(text(&series[0]), "1700000000 600.0");
    let (asked, scanned) = fixture.take_counts();
    assert_eq!(asked, 0);
    assert!(scanned <= 2 * 2_400, "{scanned}");
}

#[test]
fn few_series_are_got_in_the_hours_that_there_are() {
    for is_shared in [false, true] {
        let config = basalt_schema::SchemaConfig { salting: basalt_schema::Salting::NONE, ..Default::default() };
        let mut fixture = Fixture::of(config);
        for host in 10..34 {
            for hour in (0..400_i64).chain(200_000..200_400) {
                fixture.put(&format!("m {} 1 host=h{host}", 500_000_400 + hour * 3600));
            }
        }
        let schema = fixture.another(is_shared);
        let engine = crate::QueryEngine::new(schema, Options::default(), Limits::default());
        let tsuid = fixture.schema.find("m", &[("host", "h12")]).unwrap().to_string();
        let ask = |end: &str| {
            let request = crate::QueryRequest {
                start: Some("100000000".into()),
                end: Some(end.into()),
                queries: vec![SubQuery::from_tsuid_text(&format!("sum:{tsuid}")).unwrap()],
                ..crate::QueryRequest::default()
            };
            fixture.take_counts();
            let answers = engine.run(&request, 0, &crate::Cancel::new()).unwrap();
            (answers[0].series[0].points.len(), fixture.take_counts())
        };
        let (points, (asked, scanned)) = ask("1700000000");
        assert_eq!(points, 800);
        assert!((800..=2_000).contains(&asked), "{asked}");
        assert!(scanned <= 8 * 256, "{scanned}");
        // A range that ends within the hours asks for none behind it.
        let (points, (asked, _)) = ask("500543000");
        assert_eq!((points, asked), (151, 151));
    }
}

/// Sums of doubles over buckets of several rows are not their rows' sums: all rows are read again, and none after the first such.
#[test]
fn gets_end_where_rows_do_not_fit() {
    let config = basalt_schema::SchemaConfig { salting: basalt_schema::Salting::NONE, ..Default::default() };
    let mut fixture = Fixture::of(config);
    let hours = 4 * i64::try_from(GET_ROWS).unwrap();
    for host in 0..40 {
        for hour in 0..hours {
            fixture.put(&format!("m {} 0.5 host=h{host}", 500_018_400 + hour * 3600));
        }
    }
    fixture.take_counts();
    let series = fixture.ask("500000000", "1700000000", "sum:6h-sum:m{host=h7}").unwrap();
    assert_eq!(text(&series[0]).matches(" 3.0").count(), GET_ROWS * 4 / 6);
    let (asked, _) = fixture.take_counts();
    // Some hours beside those that have rows are asked for, too.
    assert!(asked < 3 * 4 * GET_ROWS as u64, "{asked}");
}

/// Where an hour has more rows than are looked at, there are taken to be as many as the metric has series.
#[test]
fn hours_of_many_series_are_not_taken_for_short() {
    let config = basalt_schema::SchemaConfig { salting: basalt_schema::Salting::NONE, ..Default::default() };
    let mut fixture = Fixture::of(config);
    for host in 100..400 {
        for hour in 0..130 {
            fixture.put(&format!("m {} 1 host=h{host}", 500_000_400 + hour * 3600));
        }
    }
    fixture.take_counts();
    let series = fixture.ask("100000000", "1700000000", "none:m{}{host=regexp(h1[0-6].)}").unwrap();
    assert_eq!(series.iter().map(|series| series.points.len()).sum::<usize>(), 70 * 130);
    let (asked, scanned) = fixture.take_counts();
    assert!((70 * 130..=70 * 400).contains(&asked) && scanned <= 1_000, "{asked} {scanned}");
}

/// `Q-LIMIT`: a get asks for as many rows as the last one's size lets expect to be some MiB, and what it gives is memory.
#[test]
fn q_limit_gets_of_large_rows_ask_for_few() {
    const ROW_BYTES: usize = 256 << 10;
    const ROWS: usize = 40;
    let config = basalt_schema::SchemaConfig { salting: basalt_schema::Salting::NONE, ..Default::default() };
    let ask_of = |there: Range<usize>, note_bytes: usize, memory_bytes: u64| {
        let mut fixture = Fixture::of(config.clone());
        let note = format!(r#"{{"description":"{}"}}"#, "x".repeat(note_bytes));
        let time = |hour: usize| 500_000_400 + i64::try_from(hour).unwrap() * 3600;
        for hour in 0..there.end {
            (0..8).filter(|host| *host != 3).for_each(|host| fixture.put(&format!("m {} 1 host=h{host}", time(hour))));
        }
        for hour in there.clone() {
            fixture.put(&format!("m {} 1 host=h3", time(hour)));
            fixture.annotate("m", ("host", "h3"), time(hour), &note);
        }
        fixture.take_gets();
        let request = crate::QueryRequest {
            start: Some("500000400".into()),
            end: Some((time(there.end) - 1).to_string()),
            queries: vec![SubQuery::from_metric_text("none:m{host=h3}").unwrap()],
            no_annotations: true,
            ..crate::QueryRequest::default()
        };
        let engine = fixture.engine(false, Limits { memory_bytes, ..Limits::default() });
        let answers = engine.run(&request, 0, &crate::Cancel::new());
        let points = answers.map(|answers| answers[0].series[0].points.len());
        assert_eq!(engine.memory_used_bytes(), 0);
        (points, fixture.take_gets())
    };
    let ask = |note_bytes, memory_bytes| ask_of(0..ROWS, note_bytes, memory_bytes);
    let (points, (gets, bytes_max)) = ask(ROW_BYTES, 0);
    assert_eq!(points.unwrap(), ROWS);
    assert!(bytes_max < (GET_BYTES + ROW_BYTES) as u64 && gets < 10, "{gets} {bytes_max}");
    // Also behind hours without rows.
    let (points, (gets, bytes_max)) = ask_of(40..120, ROW_BYTES, 0);
    assert_eq!(points.unwrap(), 80);
    assert!(bytes_max <= (GET_ROWS_UNKNOWN * (ROW_BYTES + 1000)) as u64 && gets < 20, "{gets} {bytes_max}");
    // Of small rows the first get asks for few.
    let (points, (gets, _)) = ask(100, 0);
    assert_eq!((points.unwrap(), gets), (ROWS, 3));
    // Nothing that is kept of the rows takes so much.
    assert!(matches!(ask(ROW_BYTES, 1 << 20).0, Err(Error::TooMuchMemory { limit_bytes: 1_048_576 })));
    assert_eq!(ask(100, 1 << 20).0.unwrap(), ROWS);
}

/// `Q-LIMIT`: what was kept of rows that are read again is given back before.
#[test]
fn q_limit_rows_that_are_read_again_count_once() {
    let mut fixture = Fixture::with(&[]);
    for second in 0..2_000 {
        fixture.put(&format!("b.m {} 1 host=a", 1_699_999_200 + second));
    }
    let taken = |sub: &str| {
        let engine = fixture.engine(false, Limits::default());
        let request = crate::QueryRequest {
            start: Some("1699999200".into()),
            end: Some("1700009999".into()),
            queries: vec![SubQuery::from_metric_text(sub).unwrap()],
            ..crate::QueryRequest::default()
        };
        let query = request.check(0, engine.options()).unwrap();
        let pool = crate::memory::MemoryPool::new(0);
        let budget = Budget::new(Limits::default(), &crate::Cancel::new(), &pool);
        let plan = Plan::new(&fixture.schema, &query, &query.sub_queries[0], engine.options(), &budget).unwrap();
        let before = budget.reserved();
        fetch(&fixture.schema, &plan, false, engine.options(), &budget).unwrap();
        budget.reserved() - before
    };
    let fitting = taken("sum:1s-sum:b.m");
    assert!(fitting > 2_000 * POINT_BYTES, "{fitting}");
    let tsuid = fixture.schema.find("b.m", &[("host", "a")]).unwrap();
    let key = fixture.schema.layout().series_key(&tsuid).row_key(BaseTime::of_seconds(1_700_002_800));
    // 3,700 seconds into the row behind.
    fixture.store(&key, &(0xF000_0000_u32 | (3_700_000 << 6)).to_be_bytes(), &[7]);
    assert_eq!(taken("sum:1s-sum:b.m"), fitting + POINT_BYTES);
}
