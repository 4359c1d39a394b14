//! Meta objects where the default answers otherwise than OpenTSDB. What is the same is in `golden`.

use crate::daemon::{Daemon, run};

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
    let deep = format!(r#"{{"startTime":{}1{}}}"#, "[".repeat(50_000), "]".repeat(50_000));
    assert_eq!(daemon.post("/api/annotation", &deep).status, 400);
}

/// A daemon over the memory store with more settings.
fn daemon(settings: &str) -> (tempfile::TempDir, Daemon) {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(&folder.path().join("data"), "memory", settings);
    (folder, daemon)
}

/// `S-TSMETA`, `S-UIDMETA`: objects and counters come with points, and come back once deleted.
#[test]
fn meta_data_is_kept_as_points_come() {
    let (_folder, daemon) = daemon("[meta]\nrealtime_uid = true\nrealtime_ts = true\ntsuid_incrementing = true\n");
    for _ in 0..2 {
        assert_eq!(daemon.post("/api/put", PUT).status, 204);
    }
    let path = "/api/uid/tsmeta?tsuid=000001000001000001";
    let found = daemon.get(path).json();
    assert_eq!(found["totalDatapoints"], 2);
    assert!(found["created"].as_i64().unwrap() > 1_700_000_000, "{found}");
    assert!(found["metric"]["created"].as_i64().unwrap() > 1_700_000_000, "{found}");
    assert!(found["lastReceived"].as_i64().unwrap() > 1_700_000_000, "{found}");
    assert_eq!(daemon.client().request("DELETE", path, &[], b"").unwrap().status, 204);
    assert_eq!(daemon.get(path).status, 404);
    assert_eq!(daemon.post("/api/put", PUT).status, 204);
    assert_eq!(daemon.get(path).json()["totalDatapoints"], 3);
    // A point does not wait for them, and the operator is told.
    assert_eq!(daemon.metric("basalt_meta_failures_total"), 0);
    let url = format!("http://127.0.0.1:{}", daemon.port());
    assert!(run(&["shell", "--url", &url, "-e", "alter 'tsdb-meta', READONLY => 'true'"]).status.success());
    assert_eq!(daemon.post("/api/put", PUT).status, 204);
    assert_ne!(daemon.metric("basalt_meta_failures_total"), 0);
}

/// `M-TREE`: what OpenTSDB answers 500, 304 or nothing to.
#[test]
fn trees_answer_bad_requests_and_keep_failures() {
    let (_folder, daemon) = daemon("[meta]\nrealtime_ts = true\ntree_processing = true\n");
    let made = daemon.post("/api/tree", r#"{"name":"T","enabled":true,"strictMatch":true,"storeFailures":true}"#);
    assert!(made.json()["created"].as_i64().unwrap() > 1_700_000_000, "{}", made.text());
    for body in ["{", "[]", r#"{"treeId":1,"level":-1,"type":"METRIC"}"#, r#"{"treeId":1,"type":"nope"}"#] {
        assert_eq!(daemon.post("/api/tree/rule", body).status, 400, "{body}");
    }
    let look = r#"{"treeId":1,"type":"METRIC","regex":"(?=a)b"}"#;
    assert_eq!(daemon.post("/api/tree/rule", look).status, 400, "lookaround is not known here");
    let rules = r#"[{"treeId":1,"level":0,"type":"METRIC","separator":"\\."},{"treeId":1,"level":1,"type":"TAGK","field":"dc"}]"#;
    assert_eq!(daemon.post("/api/tree/rules", rules).status, 204);
    assert_eq!(daemon.post("/api/tree/rules", rules).status, 204, "what changes nothing is no failure");
    let bad = r#"[{"treeId":1,"level":5,"type":"METRIC"},{"treeId":1,"level":6,"type":"TAGK"}]"#;
    let replaced = daemon.client().request("PUT", "/api/tree/rules", &[], bad.as_bytes()).unwrap();
    assert_eq!(replaced.status, 400);
    assert_eq!(daemon.get("/api/tree?treeid=1").json()["rules"].as_object().unwrap().len(), 2, "none is lost by it");
    assert_eq!(daemon.post("/api/put", PUT).status, 204);
    let missed = daemon.get("/api/tree/notmatched?treeid=1").json();
    assert_eq!(missed.as_object().unwrap().len(), 2);
    assert_eq!(missed["000001000001000001"], "[1:1:0:TAGK]");
    let point = r#"{"metric":"a.b","timestamp":1356998400,"value":1,"tags":{"dc":"lga","host":"HOST"}}"#;
    for host in ["x", "y"] {
        assert_eq!(daemon.post("/api/put", &point.replace("HOST", host)).status, 204);
    }
    let taken = daemon.get("/api/tree/collisions?treeid=1").json();
    assert_eq!(taken.as_object().unwrap().len(), 1, "{taken}");
    let root = daemon.get("/api/tree/branch?treeid=1").json();
    let branch = root["branches"][0]["branchId"].as_str().unwrap();
    assert_eq!(daemon.get(&format!("/api/tree/branch?branch={branch}")).json()["branches"][0]["displayName"], "b");
}

/// `P-UIDFILTER`, `S-UID-RANDOM`: a refused name is told to its point, and harms no other.
#[test]
fn names_are_filtered_and_metrics_drawn_at_random() {
    let settings =
        "[uid]\nrandom_metrics = true\nfilter = true\nmetric_patterns = '^n\\.'\ntagv_patterns = '^.$,^[a-c]'\n";
    let (_folder, daemon) = daemon(settings);
    let put = PUT.replacen("n.m", "bad", 1);
    let told = daemon.post("/api/put?details", &put);
    assert_eq!(told.status, 400);
    assert_eq!((&told.json()["success"], &told.json()["failed"]), (&1.into(), &1.into()));
    let error = told.json()["errors"][0]["error"].to_string();
    assert!(error.contains("Blocked by UID filter"), "{error}");
    let assigned = daemon.get("/api/uid/assign?tagv=c,d,cc");
    assert_eq!(assigned.status, 400);
    assert_eq!(assigned.json()["tagv_errors"].as_object().unwrap().len(), 2);
    let stats = daemon.get("/api/stats").json();
    let refused = |kind: &str| {
        let is_it = |stat: &&serde_json::Value| {
            stat["metric"] == "tsd.uid.rejected-assignments" && stat["tags"]["kind"] == kind
        };
        stats.as_array().unwrap().iter().find(is_it).unwrap()["value"].clone()
    };
    assert_eq!([refused("metrics"), refused("tagv")], ["1", "2"], "O-STATS");
    let found = daemon.get("/api/search/lookup?m=n.m").json();
    let tsuid = found["results"][0]["tsuid"].as_str().unwrap();
    assert_eq!(tsuid.len(), 18);
    assert!(!tsuid.starts_with("000001"), "one in 16 million");
}
