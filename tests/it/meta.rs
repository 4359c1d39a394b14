//! Meta objects where the default answers otherwise than OpenTSDB. What is the same is in `golden`.

use crate::daemon::Daemon;

const PUT: &str = r#"[{"metric":"n.m","timestamp":1356998400,"value":1,"tags":{"host":"a"}},
 {"metric":"n.m","timestamp":1356998400,"value":1,"tags":{"host":"b"}}]"#;

/// `M-TSMETA`: made with a time, found by any value of a tag, gone once deleted.
#[test]
fn a_series_meta_object_is_made_found_and_deleted() {
    let daemon = Daemon::memory();
    assert_eq!(daemon.post("/api/put", PUT).status, 204);
    let made = daemon.post("/api/uid/tsmeta?m=n.m%7Bhost=a%7D&create=true", r#"{"units":"%"}"#);
    assert_eq!(made.status, 200, "{}", made.text());
    assert!(made.json()["created"].as_i64().unwrap() > 1_700_000_000);
    let found = daemon.get("/api/uid/tsmeta?m=n.m%7Bhost=*%7D").json();
    assert_eq!((&found[0]["units"], &found[0]["tags"][1]["name"]), (&"%".into(), &"a".into()));
    assert_eq!(found.as_array().unwrap().len(), 1);
    let path = format!("/api/uid/tsmeta?tsuid={}", found[0]["tsuid"].as_str().unwrap());
    assert_eq!(daemon.client().request("DELETE", &path, &[], b"").unwrap().status, 204);
    assert_eq!(daemon.get(&path).status, 404);
    assert_eq!(daemon.get("/api/uid/tsmeta?m=n.m").json(), serde_json::json!([]));
}

/// `M-UIDMETA`, `M-TSMETA`: OpenTSDB answers 500 to most of these.
#[test]
fn bad_requests_are_the_clients_fault() {
    let daemon = Daemon::memory();
    assert_eq!(daemon.post("/api/put", PUT).status, 204);
    for query in ["uid=xyz&type=metric", "uid=1&type=metric", "uid=000001&type=bogus", "uid=0000000000000001&type=tagk"]
    {
        assert_eq!(daemon.get(&format!("/api/uid/uidmeta?{query}")).status, 400, "{query}");
    }
    for query in ["tsuid=", "tsuid=xyz", "tsuid=0000", "m=n.m%7Bhost"] {
        assert_eq!(daemon.get(&format!("/api/uid/tsmeta?{query}")).status, 400, "{query}");
    }
    assert_eq!(daemon.get("/api/uid/tsmeta?m=n.m%7Bnosuch=*%7D").status, 404);
    let unknown = r#"{"tsuid":"000009000001000001","units":"x"}"#;
    assert_eq!(daemon.post("/api/uid/tsmeta", unknown).status, 404);
}

/// Each of these would hold a thread and the disk for minutes.
#[test]
fn one_call_does_a_bounded_number_of_things() {
    let daemon = Daemon::memory();
    let list = |item: &str, count: usize| format!("[{}]", vec![item; count].join(","));
    let tags = |count| format!(r#"{{"metric":"n.m","tags":{}}}"#, list(r#"{"key":"host","value":"a"}"#, count));
    let names = |count| format!(r#"{{"tagv":{}}}"#, list("\"x y\"", count));
    let notes = |count| list(r#"{"startTime":1356998400}"#, count);
    for (path, over, within, status) in [
        ("/api/search/lookup", tags(1_001), tags(1_000), 404),
        ("/api/uid/assign", names(10_001), names(10_000), 400),
        ("/api/annotation/bulk", notes(10_001), notes(10_000), 200),
    ] {
        assert_eq!(daemon.post(path, &over).status, 413, "{path}");
        assert_eq!(daemon.post(path, &within).status, status, "{path}");
    }
    let tsuids = list("\"000001000001000001\"", 10_001);
    let body = format!(r#"{{"startTime":1,"endTime":2,"tsuids":{tsuids}}}"#);
    let deleted = daemon.client().request("DELETE", "/api/annotation/bulk", &[], body.as_bytes()).unwrap();
    assert_eq!(deleted.status, 413);
    let deep = format!(r#"{{"startTime":{}1{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(daemon.post("/api/annotation", &deep).status, 400);
}
