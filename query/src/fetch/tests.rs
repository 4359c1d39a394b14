//! Reading, where rows are not as writers of ours make them, or not as many as expected.

use basalt_schema::BaseTime;

use super::*;
use crate::fixture::{Fixture, text};
use crate::{Limits, SubQuery};

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
