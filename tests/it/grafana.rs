//! What Grafana's data source and the collectors known from their sources rely on, where a recorded answer does not say
//! it: the default settings instead of strict ones, connections that stay, statuses that decide over a batch.
//!
//! Their exchanges themselves are the golden scenarios `grafana`, `grafana-variables` and `collectors`.

use std::io::{BufRead as _, BufReader, Write as _};

use serde_json::{Value, json};

use crate::daemon::Daemon;

/// Two hosts, four points each.
fn filled() -> Daemon {
    let daemon = Daemon::memory();
    let point = |host: &str, at: u64, value: u64| json!({"metric": "cpu.user", "timestamp": 1_700_000_000 + at, "value": value, "tags": {"host": host, "dc": "lga"}});
    let points: Vec<Value> = (0..4).flat_map(|n| [point("web01", n * 15, n), point("web02", n * 15, n * 10)]).collect();
    let put = daemon.post("/api/put", &json!(points).to_string());
    // scollector puts anything but exactly 204 back in its queue and sends it again.
    assert_eq!((put.status, put.text().as_str()), (204, ""));
    daemon
}

fn asked(daemon: &Daemon, path: &str, body: &Value) -> Value {
    let answer = daemon.post(path, &body.to_string());
    assert_eq!(answer.status, 200, "{body}: {}", answer.text());
    answer.json()
}

/// A variable's values are there at once, with no meta tables and by the default settings: `tag_names`, `tag_values`.
#[test]
fn variables_fill_from_the_index() {
    let daemon = filled();
    let tags = |query: &str, key: &str| -> Vec<String> {
        let found = daemon.get(&format!("/api/search/lookup?{query}&limit=1000")).json();
        let results = found["results"].as_array().unwrap();
        let mut values: Vec<String> =
            results.iter().filter_map(|r| r["tags"][key].as_str().map(str::to_owned)).collect();
        values.dedup();
        values
    };
    assert_eq!(tags("m=cpu.user", "host"), ["web01", "web02"]);
    assert_eq!(tags("m=cpu.user{host=*,dc=lga}", "host"), ["web01", "web02"]);
    assert_eq!(tags("m=cpu.user{host=web02}", "dc"), ["lga"]);
}

/// A variable that is not set yet, or whose value is gone, leaves the panel empty instead of breaking it; and version 2.3
/// of the data source reads `query.index` of every series.
#[test]
fn a_panel_is_empty_rather_than_broken() {
    let daemon = filled();
    let range = json!({"start": 1_700_000_000_000_u64, "end": 1_700_000_060_000_u64, "msResolution": true,
        "globalAnnotations": true, "showQuery": true});
    let ask = |filter: &str| {
        let mut body = range.clone();
        body["queries"] = json!([{"metric": "cpu.user", "aggregator": "sum",
            "filters": [{"type": "literal_or", "tagk": "host", "filter": filter, "groupBy": true}]}]);
        asked(&daemon, "/api/query", &body)
    };
    assert_eq!(ask("$host"), json!([]));
    let both = ask("web01|web02|gone");
    let indexes: Vec<_> = both.as_array().unwrap().iter().map(|series| series["query"]["index"].clone()).collect();
    assert_eq!(indexes, [json!(0), json!(0)]);
}

/// The server's path of version 2.4: arrays of seconds and plain numbers, also where a gap is filled with zeros, which is
/// what an alert needs: it cannot read the text `NaN`.
#[test]
fn alerts_read_pairs_of_numbers() {
    let daemon = filled();
    let body = json!({"start": 1_700_000_000, "end": 1_700_000_060, "queries": [
        {"metric": "cpu.user", "aggregator": "sum", "downsample": "5s-sum-zero", "tags": {"host": "web01"}}]});
    let answer = asked(&daemon, "/api/query?arrays=true", &body);
    let pairs = answer[0]["dps"].as_array().unwrap();
    assert!(pairs.len() >= 12, "{answer}");
    assert!(pairs.iter().all(|pair| pair[0].is_u64() && pair[1].is_number()), "{answer}");
}

/// tcollector sends `version` about once a minute and drops a host that says nothing; in between it never reads. A batch
/// with a bad point is 400, which it drops; it is never 400 for anything else.
#[test]
fn a_connection_that_stays_is_kept_alive_by_version() {
    let daemon = filled();
    let mut stream = daemon.connect();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    for round in 0..3 {
        for n in 0..200 {
            writeln!(stream, "put cpu.user {} {n} host=web03", 1_700_001_000 + round * 200 + n).unwrap();
        }
        writeln!(stream, "version").unwrap();
        let mut lines = [String::new(), String::new()];
        for line in &mut lines {
            reader.read_line(line).unwrap();
        }
        assert!(lines[0].starts_with("net.opentsdb.tools "), "{lines:?}");
        let stored =
            daemon.get("/api/query?start=1700001000&end=1700009999&m=sum:0all-count:cpu.user{host=web03}").json();
        // The reply comes after the puts before it.
        assert_eq!(stored[0]["dps"]["1700001000"].as_f64(), Some(f64::from((round + 1) * 200)), "{stored}");
    }
    let bad = json!([{"metric": "cpu.user", "timestamp": 1_700_000_999, "value": "x", "tags": {"host": "web01"}}]);
    assert_eq!(daemon.post("/api/put", &bad.to_string()).status, 400);
}

/// bosun reads `error.code`, `.message` and `.details`; the Prometheus adapter reads the body of a refused put as JSON.
#[test]
fn errors_have_the_envelope_that_clients_decode() {
    let daemon = filled();
    let body = json!({"start": 1, "end": 2, "queries": [{"metric": "no.such", "aggregator": "sum"}]});
    let refused = daemon.post("/api/query", &body.to_string());
    let error = &refused.json()["error"];
    assert_eq!((refused.status, &error["code"]), (400, &json!(400)));
    assert!(error["message"].is_string() && error["details"].is_string(), "{error}");
    let put = daemon.post("/api/put", r#"[{"metric":"a b","timestamp":1,"value":1,"tags":{"h":"a"}}]"#);
    assert_eq!((put.status, put.json()["error"]["code"].as_u64()), (400, Some(400)));
}
