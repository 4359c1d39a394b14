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
