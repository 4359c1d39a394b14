//! The newest points of series, over real sockets (`L-LAST`, `L-BACKSCAN`).
//!
//! The forms are those that a real OpenTSDB wrote of points of its day; here the points are old and looked back for.

use std::io::{ErrorKind, Read as _, Write as _};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

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

/// Queries by every path are logged where they take too long.
#[test]
fn a_slow_query_is_logged_whatever_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(&folder.path().join("data"), "memory", "[log]\nslow_query_ms = 0\n");
    assert_eq!(daemon.post("/api/put", BATCH).status, 204);
    assert_eq!(daemon.get(&format!("/api/query/last?timeseries=it.last&back_scan={HOURS}")).status, 200);
    let expression = r#"{"time":{"start":"1356990000","end":"1356999000","aggregator":"sum"},
        "metrics":[{"id":"a","metric":"it.last"}],"expressions":[{"id":"e","expr":"a * 2"}]}"#;
    let answer = daemon.post("/api/query/exp", expression);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(daemon.get("/api/query?start=1356990000&end=1356999000&m=sum:it.last").status, 200);
    // A line is written after its answer.
    let end = Instant::now() + Duration::from_mins(1);
    for of in ["path=/api/query/last", "path=/api/query/exp", "metrics="] {
        let is_slow = |line: &str| line.contains("slow query") && line.contains(of);
        while !daemon.get("/logs").text().lines().any(is_slow) {
            assert!(Instant::now() < end, "{of}: {}", daemon.get("/logs").text());
        }
    }
}

/// A long answer is sent in chunks, which are what the series tell one by one; what fails before is a page of its own; and who
/// stops reading gets an answer without an end, never a shorter one that looks whole.
#[test]
fn a_long_answer_comes_in_chunks_and_is_cut_where_nobody_reads() {
    const SERIES: usize = 12_000;
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(&folder.path().join("data"), "memory", "[server]\nidle_timeout_ms = 5000\n");
    let host = |n: usize| format!("{n:05}{}", "h".repeat(200));
    let points: Vec<Value> = (0..SERIES)
        .map(|n| json!({"metric": "it.long", "timestamp": 1_356_998_400, "value": n, "tags": {"host": host(n)}}))
        .collect();
    for some in points.chunks(1_000) {
        assert_eq!(daemon.post("/api/put", &json!(some).to_string()).status, 204);
    }
    let path = format!("/api/query/last?timeseries=it.long&resolve&back_scan={HOURS}");
    let long = daemon.get(&path);
    assert_eq!((long.status, long.header("Transfer-Encoding")), (200, Some("chunked")));
    let told = long.json();
    assert_eq!(told.as_array().unwrap().len(), SERIES);
    for n in [0, 1, 5_999, SERIES - 1] {
        let one =
            daemon.get(&format!("/api/query/last?timeseries=it.long%7Bhost={}%7D&resolve&back_scan={HOURS}", host(n)));
        assert!(one.header("Transfer-Encoding").is_none());
        let (one, at) = (one.text(), usize::from(n > 0));
        let inner = one.strip_prefix('[').and_then(|one| one.strip_suffix(']')).unwrap();
        assert!(long.text().contains(&format!("{}{inner}", ["[", ","][at])), "{inner}");
    }
    let wrong = daemon.get(&format!("{path}&timeseries=it.nobody"));
    assert_eq!((wrong.status, wrong.json()["error"]["code"].as_u64()), (400, Some(400)));
    // More answers than sockets hold: the server's patience ends while one of them is written.
    let mut stopped = daemon.connect();
    stopped.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
    stopped.write_all(request.repeat(20).as_bytes()).unwrap();
    let until = Instant::now() + Duration::from_mins(1);
    while daemon.metric("basalt_connections_open") > 1 {
        assert!(Instant::now() < until, "a reader that stopped keeps its connection");
    }
    let mut got = Vec::new();
    match stopped.read_to_end(&mut got) {
        Ok(_) => {}
        Err(cause) => assert_eq!(cause.kind(), ErrorKind::ConnectionReset),
    }
    let (wholes, begun) = (
        got.windows(5).filter(|end| end == b"0\r\n\r\n").count(),
        got.windows(8).filter(|head| head == b"HTTP/1.1").count(),
    );
    // What was written last may have ended with an answer.
    assert!(wholes < 20 && (wholes..=wholes + 1).contains(&begun), "{wholes} whole of {begun} answers");
}
