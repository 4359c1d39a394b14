//! Queries as the server sees them: which run, what they may take, and how they end before they are done.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};

use serde_json::{Value, json};

use crate::daemon::{Daemon, run, wait_for};

/// A daemon over memory with these settings.
fn with(config: &str) -> (Daemon, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (Daemon::start(&folder.path().join("data"), "memory", config), folder)
}

/// `count` points of one series, a second apart.
fn fill(daemon: &Daemon, metric: &str, count: u64) {
    let mut client = daemon.client();
    for from in (0..count).step_by(10_000) {
        let mut body = String::from("[");
        for second in from..(from + 10_000).min(count) {
            let comma = if second == from { "" } else { "," };
            let time = 1_700_000_000 + second;
            write!(
                body,
                "{comma}{{\"metric\":\"{metric}\",\"timestamp\":{time},\"value\":{second},\"tags\":{{\"a\":\"b\"}}}}"
            )
            .unwrap();
        }
        body.push(']');
        assert_eq!(client.post("/api/put", &body).unwrap().status, 204);
    }
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// `Q-TIME-TZ`: OpenTSDB reads the zone and the calendar from bodies alone, and looks at a zone where a date is read in it.
#[test]
fn q_time_tz_counts_in_a_query_string_unless_strict() {
    let stamps = |daemon: &Daemon, path: &str| {
        let answer = daemon.get(path).json();
        keys(&answer[0]["dps"]).iter().map(|stamp| (*stamp).to_owned()).collect::<Vec<_>>()
    };
    let dates = "/api/query?start=2023/11/14-23:13:20&end=2023/11/14-23:13:21&timezone=Europe/Berlin&m=sum:m";
    let days = "/api/query?start=1699900000&end=1700100000&timezone=America/New_York&use_calendar&m=sum:1d-sum:m";
    let (ours, _folder) = with("");
    fill(&ours, "m", 1);
    assert_eq!((stamps(&ours, dates), stamps(&ours, days)), (vec!["1700000000".into()], vec!["1699938000".into()]));
    let (strict, _folder) = with("[compat]\nstrict = true\n");
    fill(&strict, "m", 1);
    assert_eq!(strict.get(dates).json(), json!([]));
    assert_eq!(stamps(&strict, days), ["1699920000"]);
    let nowhere = r#"{"start":1700000000,"timezone":"Nowhere","queries":[{"aggregator":"sum","metric":"m"}]}"#;
    let classic = "/q?start=1700000000&end=1700000001&tz=Nowhere&m=sum:m&ascii";
    for (daemon, status) in [(&ours, 400), (&strict, 200)] {
        assert_eq!((daemon.post("/api/query", nowhere).status, daemon.get(classic).status), (status, status));
    }
}

/// `Q-GROUPBY`: OpenTSDB's tables have no salt unless told, ours do; its order of series, and so the last bits of sums, are those of
/// the salt that was asked for.
#[test]
fn q_groupby_strict_goes_by_a_salt_that_was_asked_for_alone() {
    const SERIES: i32 = 24;
    let ask = |config: &str| {
        let (daemon, _folder) = with(config);
        let points: Vec<Value> = (0..SERIES)
            .map(|host| {
                let tags = json!({"host": format!("h{host:02}")});
                json!({"metric": "m", "timestamp": 1_700_000_000, "value": 1.0 / f64::from(host + 3), "tags": tags})
            })
            .collect();
        for point in points {
            assert_eq!(daemon.post("/api/put", &point.to_string()).status, 204);
        }
        let get = |m: &str| daemon.get(&format!("/api/query?start=1700000000&end=1700000001&arrays&m={m}:m")).json();
        let each = get("none");
        let hosts: Vec<i32> = each
            .as_array()
            .unwrap()
            .iter()
            .map(|series| series["tags"]["host"].as_str().unwrap().trim_start_matches('h').parse().unwrap())
            .collect();
        (hosts, get("sum")[0]["dps"][0][1].as_f64().unwrap().to_bits())
    };
    // The hash of the UIDs of metric, tag key and tag value, each counted from 1; *source*: OpenTSDB 2.4 `RowKey.prefixKeyWithSalt`.
    let salt = |host: &i32| {
        let uids = [0, 0, 1, 0, 0, 1, 0, 0, *host + 1];
        uids.iter().fold(1_i32, |hash, byte| hash.wrapping_mul(31).wrapping_add(*byte)) % 20
    };
    let by_tsuid: Vec<i32> = (0..SERIES).collect();
    let mut by_salt = by_tsuid.clone();
    by_salt.sort_by_key(|host| salt(host).abs());
    let (plain, strict) = (ask(""), ask("[compat]\nstrict = true\n"));
    assert_eq!(plain.0, by_tsuid);
    assert_eq!(strict, plain);
    let salted = ask("[compat]\nstrict = true\n[schema]\nsalt_width = 1\nsalt_buckets = 20\n");
    assert_eq!(salted.0, by_salt);
    assert_ne!(salted.1, plain.1);
}

/// `O-STATS-QUERY`: the members that OpenTSDB 2.4.1 has, for queries that were answered and that were refused.
#[test]
fn o_stats_query_tells_what_ended() {
    let daemon = Daemon::memory();
    fill(&daemon, "m", 10);
    for _ in 0..2 {
        let headers = [("Cookie", "secret"), ("X-A", "b")];
        let path = "/api/query?start=1700000000&end=1700000100&m=sum:m";
        assert_eq!(daemon.client().request("GET", path, &headers, b"").unwrap().status, 200);
    }
    assert_eq!(daemon.get("/api/query?start=1700000000&end=1700000100&m=sum:nosuch").status, 400);
    // The thread that answered notes the end after the answer, so that the ends come in any order.
    wait_for("the ends of all queries", || {
        let told = daemon.get("/api/stats/query").json();
        let completed = told["completed"].as_array().unwrap();
        completed.len() == 2 && completed.iter().any(|query| query["executed"] == 2)
    });
    let told = daemon.get("/api/stats/query").json();
    assert_eq!(keys(&told), ["completed", "running"]);
    assert_eq!(told["running"], json!([]));
    let completed = told["completed"].as_array().unwrap();
    assert_eq!(completed.len(), 2, "{told}");
    let of = |code: u64| completed.iter().find(|query| query["httpResponse"]["code"] == code).unwrap();
    let (refused, answered) = (of(400), of(200));
    for query in [refused, answered] {
        let members = [
            "exception",
            "executed",
            "httpResponse",
            "numRunningQueries",
            "query",
            "queryCompletedTimestamp",
            "queryStartTimestamp",
            "requestHeaders",
            "sentToClient",
            "stats",
            "user",
        ];
        assert_eq!(keys(query), members);
        let members = [
            "delete",
            "end",
            "globalAnnotations",
            "msResolution",
            "noAnnotations",
            "options",
            "padding",
            "queries",
            "showQuery",
            "showStats",
            "showSummary",
            "showTSUIDs",
            "start",
            "timezone",
            "useCalendar",
        ];
        assert_eq!(keys(&query["query"]), members);
    }
    assert_eq!(answered["httpResponse"], json!({"code": 200, "reasonPhrase": "OK"}));
    assert_eq!((&answered["exception"], &answered["sentToClient"]), (&json!("null"), &json!(true)));
    assert_eq!(answered["stats"]["emittedDPs"], 10);
    assert!(answered["stats"]["totalTime"].is_f64());
    let headers = &answered["requestHeaders"];
    assert_eq!((&headers["cookie"], &headers["x-a"]), (&json!("*******"), &json!("b")));
    assert_eq!(refused["httpResponse"], json!({"code": 400, "reasonPhrase": "Bad Request"}));
    assert_eq!(refused["exception"], "No such name for 'metrics': 'nosuch'");
}

/// Forty sub queries of a metric.
fn subs(metric: &str) -> String {
    (1..=40).fold(String::new(), |mut subs, step| {
        write!(subs, "&m=sum:{step}s-sum:{metric}").unwrap();
        subs
    })
}

/// Asks for far more than socket and channel hold and reads nothing, so that the query stays under way.
fn stall(daemon: &Daemon, metric: &str) -> std::net::TcpStream {
    let mut stream = daemon.connect();
    let subs = subs(metric);
    std::io::Write::write_fmt(
        &mut stream,
        format_args!("GET /api/query?start=1700000000&end=1700999999{subs} HTTP/1.1\r\nHost: x\r\n\r\n"),
    )
    .unwrap();
    wait_for("the stalled query", || daemon.metric("basalt_queries_running") == 1);
    stream
}

/// `Q-TIMEOUT`, `O-STATS-QUERY`: `tsd.query.allow_simultaneous_duplicates`, and a client that hangs up.
#[test]
fn q_timeout_a_running_query_is_told_and_ends_with_its_client() {
    let (daemon, _folder) = with("[query]\nallow_duplicates = false\n");
    fill(&daemon, "m", 100_000);
    let stream = stall(&daemon, "m");
    let told = daemon.get("/api/stats/query").json();
    let [running] = told["running"].as_array().unwrap().as_slice() else { panic!("{told}") };
    assert_eq!(keys(running), ["elapsed", "headers", "query", "queryStart", "remote", "user"]);
    assert_eq!(running["query"]["queries"].as_array().unwrap().len(), 40);
    assert!(running["remote"].as_str().unwrap().starts_with("127.0.0.1:"));
    let subs = subs("m");
    let twin = daemon.get(&format!("/api/query?start=1700000000&end=1700999999{subs}"));
    assert_eq!(twin.status, 400);
    assert!(twin.json()["error"]["message"].as_str().unwrap().starts_with("Query is already executing for endpoint: "));
    drop(stream);
    wait_for("the end of the query", || daemon.metric("basalt_queries_running") == 0);
    assert_eq!(daemon.metric("basalt_queries_total{outcome=\"cancelled\"}"), 1);
    assert_eq!(daemon.get("/api/stats/query").json()["running"], json!([]));
}

/// `Q-TIMEOUT`: `tsd.query.timeout`, which OpenTSDB has and does not heed.
#[test]
fn q_timeout_a_query_over_its_time_is_408() {
    let (daemon, _folder) = with("[query]\ntimeout_ms = 1\n");
    fill(&daemon, "m", 300_000);
    let told = daemon.get("/api/query?start=1700000000&end=1700999999&m=sum:m");
    assert_eq!(told.status, 408, "{}", told.text());
    let message = told.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("The query did not finish within 1 ms"), "{message}");
}

/// `Q-LIMIT`, `P-LIMITS`: in OpenTSDB's words, by metric, read again while the server runs.
#[test]
fn q_limit_budgets_are_413_and_a_metric_may_have_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let limits = folder.path().join("limits.json");
    std::fs::write(&limits, r#"[{"regex":"^free\\.","dataPointsLimit":0}]"#).unwrap();
    let config = format!(
        "tsd.network.port = 0\ntsd.query.limits.data_points.default = 5\ntsd.query.limits.bytes.default = 2097152\n\
         tsd.query.limits.data_points.allow_override = true\ntsd.query.limits.overrides.config = {}\n\
         tsd.query.limits.overrides.interval = 5\n",
        limits.display()
    );
    let file = folder.path().join("opentsdb.conf");
    std::fs::write(&file, config).unwrap();
    let mut command = Daemon::command(&folder.path().join("data"), "memory");
    command.arg("--config").arg(&file);
    let daemon = Daemon::spawn(command);
    for metric in ["m", "free.m"] {
        fill(&daemon, metric, 10);
    }
    let ask = |metric: &str, lift: bool| {
        let body = json!({"start": 1_700_000_000, "end": 1_700_000_100, "overrideDataPointLimit": lift,
            "queries": [{"aggregator": "sum", "metric": metric}]});
        daemon.post("/api/query", &body.to_string())
    };
    let refused = ask("m", false);
    assert_eq!(refused.status, 413);
    let words = "Sorry, you have attempted to fetch more than our limit of 5 data points. Please try filtering using \
                 more tags or decrease your time range.";
    assert_eq!(refused.json()["error"]["message"], words);
    assert_eq!(ask("m", true).status, 200);
    assert_eq!(ask("free.m", false).status, 200);
    std::fs::write(&limits, r#"[{"regex":"m$","dataPointsLimit":10,"byteLimit":9}]"#).unwrap();
    wait_for("the new limits", || ask("m", false).text().contains("our maximum amount of 0MB from storage"));
    std::fs::write(&limits, "{").unwrap();
    std::fs::write(&limits, r#"[{"regex":"m$","dataPointsLimit":10}]"#).unwrap();
    wait_for("the next limits", || ask("m", false).status == 200);
    std::fs::write(&limits, "{").unwrap();
    let output = run(&["serve", "--store", "memory", "--config", &file.display().to_string()]);
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("limits.json"), "{output:?}");
}

/// `Q-LIMIT`: `query.max_series`, which the error names.
#[test]
fn q_limit_series_have_a_bound_that_a_setting_lifts() {
    for (setting, status) in [("max_series = 2", 413), ("max_series = 3", 200), ("max_series = 0", 200), ("", 200)] {
        let (daemon, _folder) = with(&format!("[query]\n{setting}\n"));
        let points: Vec<Value> = ["a", "b", "c"]
            .map(|host| json!({"metric": "m", "timestamp": 1_700_000_000, "value": 1, "tags": {"host": host}}))
            .into();
        assert_eq!(daemon.post("/api/put", &Value::from(points).to_string()).status, 204);
        let told = daemon.get("/api/query?start=1700000000&end=1700000100&m=sum:m");
        assert_eq!(told.status, status, "{setting}: {}", told.text());
        assert_eq!(told.text().contains("our limit of 2 series (query.max_series)"), status == 413, "{}", told.text());
    }
}

/// `Q-LIMIT`: one query that does not fit is told so for good; one that does not fit beside another may come again.
#[test]
fn q_limit_all_queries_together_have_a_bound_of_memory() {
    let (daemon, _folder) = with("[query]\nmemory_bytes = 18000000\n[server]\nidle_timeout_ms = 60000\n");
    fill(&daemon, "big", 600_000);
    fill(&daemon, "small", 100_000);
    let told = daemon.get("/api/query?start=1700000000&end=1700999999&m=sum:big");
    assert_eq!(told.status, 413, "{}", told.text());
    assert!(told.json()["error"]["message"].as_str().unwrap().contains("query.memory_bytes"));
    let small = "/api/query?start=1700000000&end=1700999999&m=sum:small&m=sum:1s-sum:small&m=sum:2s-sum:small";
    assert_eq!(daemon.get(small).status, 200);
    let mut held = Vec::new();
    let refused = loop {
        let mut stream = daemon.connect();
        std::io::Write::write_fmt(&mut stream, format_args!("GET {small} HTTP/1.1\r\nHost: x\r\n\r\n")).unwrap();
        // Answered it waits for no room any more: of two that do, one may wait for longer than a query may take.
        stream.read_exact(&mut [0; 12]).unwrap();
        held.push(stream);
        assert!(held.len() < 100, "nothing is ever refused");
        let told = daemon.get(small);
        if told.status != 200 {
            break told;
        }
    };
    assert_eq!((refused.status, refused.header("Retry-After").is_some()), (503, true), "{}", refused.text());
    drop(held);
    wait_for("memory given back", || daemon.get(small).status == 200);
}

/// `Q-LIMIT`: what expressions answer is held until it is written, and given back where nobody reads it.
#[test]
fn q_limit_tables_of_expressions_are_held_while_they_are_written() {
    const POINTS: u64 = 300_000;
    let (daemon, _folder) = with("[server]\nidle_timeout_ms = 60000\n");
    fill(&daemon, "m", POINTS);
    let expressions: Vec<Value> = ["a", "b", "c", "d"].map(|id| json!({ "id": id, "expr": "m * 1.5" })).into();
    let body = json!({ "time": { "start": "1700000000", "end": "1700999999", "aggregator": "sum" },
        "metrics": [{ "id": "m", "metric": "m" }], "expressions": expressions })
    .to_string();
    let mut stream = daemon.connect();
    let head = format!("POST /api/query/exp HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all((head + &body).as_bytes()).unwrap();
    // Once it begins all is computed; far more than sockets hold is still to be written.
    let mut begun = [0; 512];
    stream.read_exact(&mut begun).unwrap();
    assert!(begun.starts_with(b"HTTP/1.1 200 "));
    // Four tables, of each point a time and a value.
    assert_eq!(daemon.metric("basalt_query_memory_bytes") / (4 * 16 * POINTS), 1);
    drop(stream);
    wait_for("memory given back", || daemon.metric("basalt_query_memory_bytes") == 0);
}

/// `Q-SHOWSTATS`, `Q-SHOWSUMMARY`: OpenTSDB's documented members beyond those that 2.4.1 fills in, unless strict.
#[test]
fn q_showsummary_counts_what_was_read() {
    let daemon = Daemon::memory();
    fill(&daemon, "m", 10);
    let told = daemon.get("/api/query?start=1700000000&end=1700000100&m=sum:m&show_summary&show_stats").json();
    assert_eq!(told[0]["stats"]["emittedDPs"], 10);
    assert!(told[0]["stats"]["bytesFromStorage"].as_u64().unwrap() > 0);
    let summary = &told[1]["statsSummary"];
    assert_eq!((&summary["dpsPostFilter"], &summary["rowsPostFilter"]), (&json!(10), &json!(1)));
    let scans = summary["queryIdx_00"]["scannerStats"].as_object().unwrap();
    assert_eq!(scans.values().map(|scan| scan["dpsPostFilter"].as_u64().unwrap()).sum::<u64>(), 10);
    assert!(scans["scannerIdx_00"]["scannerId"].is_string());
}

/// `Q-LIMIT`, `query.max_points`: an hour whose summary is enough is as much work as one point; strictly each counts, as in OpenTSDB.
#[test]
fn an_hour_that_its_summary_stands_for_counts_as_one_point() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let filled = Daemon::start(&data, "embedded", "");
    fill(&filled, "m", 2_000);
    assert!(filled.terminate().success());
    assert!(run(&["compact", "--data-dir", data.to_str().unwrap()]).status.success());
    let hour = "/api/query?start=1699999200&end=1700002799&m=sum:";
    for (mode, of_hour) in [("", 200), ("[compat]\nstrict = true\n", 413)] {
        let daemon = Daemon::start(&data, "embedded", &format!("[query]\nmax_points = 100\n{mode}"));
        assert_eq!(daemon.get(&format!("{hour}1h-count:m")).status, of_hour, "{mode}");
        assert_eq!(daemon.get(&format!("{hour}10m-count:m")).status, 413, "{mode}");
        assert!(daemon.terminate().success());
    }
}
