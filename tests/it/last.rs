//! The newest points of series, over real sockets (`L-LAST`, `L-BACKSCAN`).
//!
//! The forms are those that a real OpenTSDB wrote of points of its day; here the points are old and looked back for.

use crate::daemon::Daemon;

const BATCH: &str = r#"[{"metric":"it.last","timestamp":1356998400,"value":1,"tags":{"host":"a","dc":"x"}},
 {"metric":"it.last","timestamp":1356998430007,"value":0.1,"tags":{"host":"a","dc":"x"}},
 {"metric":"it.last","timestamp":1356990000,"value":7,"tags":{"host":"b","dc":"x"}}]"#;

/// Hours from any now of this century's first half back to the points.
const HOURS: u32 = 400_000;

#[test]
fn the_newest_points_are_told_by_get_and_post() {
    let daemon = Daemon::memory();
    assert_eq!(daemon.post("/api/put", BATCH).status, 204);
    let back = |series: &str| daemon.get(&format!("/api/query/last?{series}&back_scan={HOURS}")).json();
    let a = back("timeseries=it.last%7Bhost=a,dc=x%7D");
    assert_eq!((&a[0]["timestamp"], &a[0]["value"]), (&1_356_998_430_007_u64.into(), &"0.1".into()));
    assert!(a[0].get("metric").is_none() && a[0].get("tags").is_none());
    let named = back(&format!("resolve&tsuids={}", a[0]["tsuid"].as_str().unwrap()));
    assert_eq!((&named[0]["metric"], &named[0]["tags"]["host"]), (&"it.last".into(), &"a".into()));
    // Tags that are not given widen, which OpenTSDB does by its meta table alone.
    assert_eq!(back("timeseries=it.last%7Bdc=x%7D").as_array().unwrap().len(), 2);
    let body = format!(r#"{{"queries":[{{"metric":"it.last","tags":{{"host":"b"}}}}],"backScan":{HOURS}}}"#);
    let b = daemon.post("/api/query/last", &body).json();
    assert_eq!((b.as_array().unwrap().len(), &b[0]["value"]), (1, &"7".into()));
    assert_eq!(daemon.get("/api/query/last?timeseries=it.last").text(), "[]");
}
