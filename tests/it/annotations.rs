//! Annotations and look-ups where the default answers otherwise than OpenTSDB. What is the same is in `golden`.

use serde_json::json;

use crate::daemon::Daemon;

const PUT: &str = r#"[{"metric":"n.m","timestamp":1356998400,"value":1,"tags":{"host":"a","dc":"x"}},
 {"metric":"n.m","timestamp":1356998400,"value":1,"tags":{"host":"b","dc":"x"}},
 {"metric":"n.m","timestamp":1356998400,"value":1,"tags":{"host":"c","dc":"y"}}]"#;
const BULK: &str = r#"[{"startTime":1356998410,"description":"second"},{"startTime":1356998409500,"description":"ms"},
 {"startTime":1356998500,"endTime":1356999999,"description":"long"},{"startTime":1357002000,"description":"next hour"}]"#;

fn descriptions(answer: &serde_json::Value) -> Vec<&str> {
    answer.as_array().unwrap().iter().map(|note| note["description"].as_str().unwrap()).collect()
}

/// `M-LOOKUP`.
#[test]
fn a_lookup_has_pages_and_its_total_counts_all() {
    let daemon = Daemon::memory();
    assert_eq!(daemon.post("/api/put", PUT).status, 204);
    let page = daemon.post("/api/search/lookup", r#"{"metric":"n.m","limit":1,"startIndex":2}"#).json();
    assert_eq!((&page["results"][0]["tags"]["host"], &page["totalResults"]), (&"c".into(), &3.into()));
    assert_eq!(page["results"].as_array().unwrap().len(), 1);
    for name in ["start_index", "startIndex"] {
        assert_eq!(
            daemon.get(&format!("/api/search/lookup?m=n.m&limit=1&{name}=2")).json()["results"],
            page["results"]
        );
    }
    assert_eq!(daemon.get("/api/search/lookup?m=n.m&start_index=x").status, 400);
    let both = daemon.get("/api/search/lookup?m=n.m%7B*=a,dc=x%7D").json();
    assert_eq!((&both["results"][0]["tags"]["host"], &both["totalResults"]), (&"a".into(), &1.into()));
    let any = daemon.get("/api/search/lookup?m=n.m%7B*=*%7D");
    assert_eq!((any.status, any.json()["totalResults"].as_u64()), (200, Some(3)));
    assert_eq!(daemon.post("/api/search/lookup", "{").status, 400);
    assert_eq!(daemon.client().request("PUT", "/api/search/lookup?m=n.m", &[], b"").unwrap().status, 405);
}

/// `A-ANNOTS`: a range is by start, whatever the resolution, and answered by time.
#[test]
fn a_range_of_global_annotations_is_by_their_start() {
    let daemon = Daemon::memory();
    assert_eq!(daemon.post("/api/annotation/bulk", BULK).status, 200);
    let range = |query: &str| daemon.get(&format!("/api/annotations?{query}")).json();
    assert_eq!(descriptions(&range("start_time=1356998400&end_time=1356998600")), ["ms", "second", "long"]);
    assert_eq!(descriptions(&range("start_time=1356998409500&end_time=1356998410")), ["ms", "second"]);
    assert_eq!(descriptions(&range("start_time=1356998409501&end_time=1356998409900")).len(), 0);
    assert_eq!(descriptions(&range("start_time=1356998410")), ["second", "long", "next hour"]);
    let one = daemon.get("/api/annotation?start_time=1356998409500");
    assert_eq!(one.json()["description"], "ms");
}

/// `A-ANNOTS`: what is yet to come is beyond the end that nobody named.
#[test]
fn a_range_without_an_end_ends_now() {
    let daemon = Daemon::memory();
    let notes = r#"[{"startTime":1356998410,"description":"past"},{"startTime":4000000000,"description":"to come"}]"#;
    assert_eq!(daemon.post("/api/annotation/bulk", notes).status, 200);
    let range = |query: &str| daemon.get(&format!("/api/annotations?{query}")).json();
    assert_eq!(descriptions(&range("start_time=1356998400")), ["past"]);
    assert_eq!(descriptions(&range("start_time=1356998400&end_time=4000000001")), ["past", "to come"]);
    assert_eq!(range("start_time=4000000000"), serde_json::json!([]));
    assert_eq!(range("start_time=4000000000000"), serde_json::json!([]));
}

/// `A-ANNOT`: OpenTSDB answers 500 to each of these, or takes it and breaks the queries of the metric.
#[test]
fn bad_requests_are_the_clients_fault() {
    let daemon = Daemon::memory();
    assert_eq!(daemon.post("/api/put", PUT).status, 204);
    for path in ["start_time=abc", "start_time=1356998400&end_time=x", "start_time=1356998400&tsuid=0000"] {
        assert_eq!(daemon.get(&format!("/api/annotation?{path}")).status, 400, "{path}");
    }
    assert_eq!(daemon.get("/api/annotations?start_time=1356998500&end_time=1356998400").status, 400);
    let unknown = r#"{"startTime":1356998400,"tsuid":"000001000001000099","description":"x"}"#;
    for body in ["{", "[]", r#"{"startTime":"abc"}"#, r#"{"startTime":99999999999999,"notes":"x"}"#, unknown] {
        assert_eq!(daemon.post("/api/annotation", body).status, 400, "{body}");
    }
    let query = daemon.get("/api/query?start=1356998000&end=1356999000&m=sum:n.m");
    assert_eq!(query.status, 200, "{}", query.text());
}

/// `A-ANNOTS`: OpenTSDB has written the first by then.
#[test]
fn one_bad_annotation_of_many_refuses_all() {
    let daemon = Daemon::memory();
    let no_series = r#"{"startTime":1356998401,"tsuid":"000001000001000099","description":"bad"}"#;
    for bad in [r#"{"description":"no start"}"#, no_series] {
        let body = format!(r#"[{{"startTime":1356998400,"description":"good"}},{bad}]"#);
        assert_eq!(daemon.post("/api/annotation/bulk", &body).status, 400, "{bad}");
        assert_eq!(daemon.get("/api/annotation?start_time=1356998400").status, 404, "{bad}");
    }
}

/// `A-ANNOTS`: where rows are salted OpenTSDB finds nothing to delete; here they are by default.
#[test]
fn annotations_of_a_salted_series_are_deleted_by_range_and_shown_by_queries_until_then() {
    let daemon = Daemon::memory();
    assert_eq!(daemon.post("/api/put", PUT).status, 204);
    let lookup = daemon.get("/api/search/lookup?m=n.m%7Bhost=b%7D").json();
    let tsuid = lookup["results"][0]["tsuid"].as_str().unwrap();
    let note = format!(r#"{{"startTime":1356998401,"tsuid":"{tsuid}","description":"deploy"}}"#);
    assert_eq!(daemon.post("/api/annotation", &note).json()["description"], "deploy");
    let annotations = || {
        daemon.get("/api/query?start=1356998000&end=1356999000&m=sum:n.m%7Bhost=b%7D").json()[0]["annotations"].clone()
    };
    assert_eq!(descriptions(&annotations()), ["deploy"]);
    let body = format!(r#"{{"startTime":"1356998000","endTime":"1356999000","tsuids":["{tsuid}"]}}"#);
    let delete = |body: &str| daemon.client().request("DELETE", "/api/annotation/bulk", &[], body.as_bytes()).unwrap();
    // An end that is not understood is not now.
    let refused = delete(&body.replace("endTime", "endtime"));
    assert!(refused.status == 400 && refused.text().contains("Unrecognized field"), "{}", refused.text());
    assert_eq!(descriptions(&annotations()), ["deploy"]);
    let deleted = delete(&body);
    assert_eq!(deleted.json()["totalDeleted"], 1);
    assert!(annotations().is_null());
}

/// `A-ANNOT`: the notes of a body share the waits for the disk, also those of one cell, and are all there after a kill.
#[test]
fn a_annot_many_notes_share_their_syncs() {
    const NOTES: u64 = 2_000;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let daemon = Daemon::start(&data, "embedded", "");
    let note = |at| json!({ "startTime": 1_700_000_000 + at, "description": format!("note {at}") });
    let mut notes: Vec<_> = (0..NOTES).map(note).collect();
    notes.push(json!({ "startTime": 1_700_000_000, "notes": "later" }));
    let before = daemon.metric("basalt_wal_syncs_total");
    let told = daemon.post("/api/annotation/bulk", &serde_json::Value::from(notes).to_string());
    assert_eq!((told.status, told.json().as_array().unwrap().len() as u64), (200, NOTES + 1), "{}", told.text());
    let syncs = daemon.metric("basalt_wal_syncs_total") - before;
    assert!(syncs < NOTES / 4, "{syncs} syncs");
    drop(daemon);
    let daemon = Daemon::start(&data, "embedded", "");
    let kept = daemon.get("/api/annotations?start_time=1700000000&end_time=1700010000").json();
    assert_eq!(kept.as_array().unwrap().len() as u64, NOTES);
    assert_eq!((&kept[0]["description"], &kept[0]["notes"]), (&json!("note 0"), &json!("later")));
}

/// `A-ANNOT`: as do the deletes of a range, whose notes are in a row for each hour.
#[test]
fn a_annot_the_deletes_of_a_range_share_their_syncs() {
    const HOURS: u64 = 1_500;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let daemon = Daemon::start(&data, "embedded", "");
    let note = |hour| json!({ "startTime": 1_600_000_000 + 3_600 * hour, "description": "note" });
    let notes: Vec<_> = (0..HOURS).map(note).collect();
    assert_eq!(daemon.post("/api/annotation/bulk", &serde_json::Value::from(notes).to_string()).status, 200);
    let before = daemon.metric("basalt_wal_syncs_total");
    // All but the first and the last.
    let (start, end) = (1_600_000_001_u64, 1_600_000_000 + 3_600 * (HOURS - 1) - 1);
    let range = json!({ "startTime": start * 1_000, "endTime": end * 1_000, "global": true }).to_string();
    let told = daemon.client().request("DELETE", "/api/annotation/bulk", &[], range.as_bytes()).unwrap();
    assert_eq!((told.status, &told.json()["totalDeleted"]), (200, &json!(HOURS - 2)), "{}", told.text());
    let syncs = daemon.metric("basalt_wal_syncs_total") - before;
    assert!(syncs < HOURS / 4, "{syncs} syncs");
    daemon.kill();
    let daemon = Daemon::start(&data, "embedded", "");
    let kept = daemon.get("/api/annotations?start_time=1600000000").json();
    assert_eq!(kept.as_array().unwrap().len(), 2);
}
