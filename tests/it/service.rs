//! Manners of the HTTP door and the endpoints about the server itself.

use std::time::Instant;

use basalt_store::{Durability, FamilyDescriptor, ManualClock, MutationBatch, Store as _, TableDescriptor, Timestamp};

use crate::daemon::Daemon;
use crate::http::TIMEOUT;

/// A daemon over memory with these settings.
fn with(config: &str) -> (Daemon, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (Daemon::start(&folder.path().join("data"), "memory", config), folder)
}

/// `H-CORS`.
#[test]
fn a_named_origin_may_ask_and_another_is_refused_before_anything_is_done() {
    let (daemon, _folder) = with("[http]\ncors_domains = \"http://a.example, http://b.example\"\n");
    let mut client = daemon.client();
    let ask = |client: &mut crate::http::Client, method: &str, origin: &str, path: &str, body: &[u8]| {
        client.request(method, path, &[("Origin", origin)], body).unwrap()
    };
    let told = ask(&mut client, "OPTIONS", "http://b.example", "/api/put", b"");
    assert_eq!((told.status, told.body.len()), (200, 0));
    assert_eq!(told.header("Access-Control-Allow-Origin"), Some("http://b.example"));
    assert_eq!(told.header("Access-Control-Allow-Methods"), Some("GET, POST, PUT, DELETE"));
    assert!(told.header("Access-Control-Allow-Headers").unwrap().contains("Content-Type"));
    let told = ask(&mut client, "GET", "http://a.example", "/api/version", b"");
    assert_eq!((told.status, told.header("Access-Control-Allow-Origin")), (200, Some("http://a.example")));
    let point = br#"{"metric":"m","timestamp":1700000000,"value":1,"tags":{"a":"b"}}"#;
    let told = ask(&mut client, "POST", "http://evil.example", "/api/put", point);
    assert_eq!((told.status, told.header("Access-Control-Allow-Origin")), (403, None));
    assert_eq!(told.json()["error"]["message"], "CORS domain not allowed");
    assert_eq!(told.json()["error"]["details"], "The domain [http://evil.example] is not permitted access");
    assert_eq!(daemon.get("/api/suggest?type=metrics").text(), "[]");
    // Errors of the older paths, too: a page could not read why.
    for (path, status) in [("/q?start=1&m=sum:none&json", 400), ("/suggest?type=x", 400), ("/nosuch", 404)] {
        let told = ask(&mut client, "GET", "http://a.example", path, b"");
        assert_eq!(
            (told.status, told.header("Access-Control-Allow-Origin")),
            (status, Some("http://a.example")),
            "{path}"
        );
    }
}

/// Of an answer in pieces HTTP/1.0 has no other end.
#[test]
fn the_end_of_a_long_answer_of_http_1_0_is_that_of_its_connection() {
    let daemon = Daemon::memory();
    let point = |time| format!(r#"{{"metric":"m","timestamp":{time},"value":1,"tags":{{"a":"b"}}}}"#);
    let points: Vec<String> = (1_356_998_400..1_357_018_400).map(point).collect();
    assert_eq!(daemon.post("/api/put", &format!("[{}]", points.join(","))).status, 204);
    for (range, is_kept) in [("1356998400&end=1356998402", true), ("1356998400&end=1357018400", false)] {
        let mut stream = daemon.connect();
        let head =
            format!("GET /api/query?start={range}&m=sum:m HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n");
        std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
        let mut told = [0; 4096];
        let length = std::io::Read::read(&mut stream, &mut told).unwrap();
        let told = String::from_utf8_lossy(&told[..length]).to_lowercase();
        assert_eq!(told.contains("connection: keep-alive"), is_kept, "{told}");
        assert_eq!(told.contains("content-length: "), is_kept, "{told}");
    }
}

/// `H-JSONP`: errors and compressed answers are wrapped too; what is no name is refused.
#[test]
fn json_comes_back_as_the_argument_of_the_callback() {
    let daemon = Daemon::memory();
    for path in ["/api/version?jsonp=cb", "/api/nosuch?jsonp=cb", "/api/put?jsonp=cb", "/api/v1x/query?jsonp=cb"] {
        let told = daemon.client().request("GET", path, &[("Accept-Encoding", "gzip")], b"").unwrap();
        let text = told.text();
        assert!(text.starts_with("cb({") && text.ends_with("})"), "{path}: {text}");
        assert_eq!(told.header("Content-Type"), Some("application/json; charset=UTF-8"));
        assert_eq!(told.header("X-Content-Type-Options"), Some("nosniff"));
    }
    let told = daemon.get("/api/version?jsonp=%3Cscript%3Ealert(1)%3C/script%3E//");
    assert_eq!(told.status, 400);
    assert!(!told.text().contains("script"));
    let (open, _folder) = with("[http]\ncors_domains = \"*\"\n");
    assert_eq!(open.get("/api/version?jsonp=cb").header("X-Content-Type-Options"), None);
}

/// `H-OVERRIDE`.
#[test]
fn a_get_may_mean_a_delete() {
    let daemon = Daemon::memory();
    let told = daemon.get("/api/query?start=1h-ago&m=sum:x&method_override=delete");
    assert_eq!(told.status, 400);
    assert!(told.json()["error"]["details"].as_str().unwrap().starts_with("Deleting data is not enabled"));
    let told = daemon.get("/api/query?start=1h-ago&m=sum:x&method_override=patch");
    assert_eq!(told.status, 405);
    assert_eq!(told.json()["error"]["message"], "Unknown or unsupported method override value");
}

/// `H-MODE`, `T-HELP`: what a mode lacks is not there, on HTTP and telnet alike.
#[test]
fn a_read_only_server_takes_no_points_and_a_write_only_one_gives_none() {
    let (daemon, _folder) = with("[server]\nmode = \"ro\"\n");
    assert_eq!(daemon.post("/api/put", "[]").status, 404);
    assert_eq!(daemon.get("/api/suggest?type=metrics").status, 200);
    assert_eq!(daemon.talk("put m 1700000000 1 a=b\n"), "unknown command: put.  Try `help'.\n");
    assert_eq!(daemon.talk("help\n"), "available commands: stats dropcaches version exit help status \n");
    let (daemon, _folder) = with("[server]\nmode = \"wo\"\n");
    assert_eq!(daemon.get("/api/query?start=1h-ago&m=sum:x").status, 404);
    assert_eq!(daemon.talk("put m 1700000000 1 a=b\n"), "");
    assert_eq!(daemon.get("/api/version").status, 200);
}

/// `O-SERIALIZERS`, `O-STATUS`: OpenTSDB 2.4 documents the one and lacks both.
#[test]
fn serializers_and_status_are_told_unless_strict() {
    let daemon = Daemon::memory();
    let told = daemon.get("/api/serializers").json();
    assert_eq!(
        (&told[0]["serializer"], &told[0]["request_content_type"]),
        (&"json".into(), &"application/json".into())
    );
    assert_eq!(daemon.get("/api/status").text(), "{\"status\":\"ok\"}");
    assert_eq!(daemon.talk("status\n"), "ok\n");
    let (strict, _folder) = with("[compat]\nstrict = true\n");
    assert_eq!(strict.get("/api/serializers").status, 404);
    assert_eq!(strict.get("/api/status").status, 404);
}

/// `Q-DELETE`, `S-DELETE-ROW`: exact by default, on both stores, durable, and only where it is allowed.
#[test]
fn a_query_deletes_the_points_it_answers_where_that_is_allowed() {
    let body = r#"{"start":1700000000,"end":1700000010,"delete":true,"queries":[{"metric":"m","aggregator":"sum"}]}"#;
    let points = r#"[{"metric":"m","timestamp":1700000000,"value":1,"tags":{"a":"b"}},
        {"metric":"m","timestamp":1700000010,"value":2,"tags":{"a":"b"}},
        {"metric":"m","timestamp":1700000020,"value":3,"tags":{"a":"b"}}]"#;
    for store in ["memory", "embedded"] {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let daemon = Daemon::start(&data, store, "");
        assert_eq!(daemon.post("/api/put", points).status, 204);
        assert_eq!(daemon.post("/api/query", body).status, 400, "a body is no way around the switch");
        for path in ["?start=1699999999&m=sum:m&method_override=delete", "?m=sum:m&method_override=delete"] {
            let refused = daemon.get(&format!("/api/query{path}"));
            assert!(refused.status == 400 && refused.text().contains("Deleting data is not enabled"), "{path}");
        }
        let ask =
            |daemon: &Daemon| daemon.get("/api/query?start=1699999999&end=1700000100&m=sum:m").json()[0]["dps"].clone();
        if store == "embedded" {
            drop(daemon);
            let daemon = Daemon::start(&data, store, "[query]\nallow_delete = true\n");
            assert_eq!(daemon.post("/api/query", body).json()[0]["dps"].as_object().unwrap().len(), 2);
            assert_eq!(ask(&daemon), serde_json::json!({"1700000020": 3}));
            daemon.kill();
            let daemon = Daemon::start(&data, store, "");
            assert_eq!(ask(&daemon), serde_json::json!({"1700000020": 3}));
        } else {
            assert_eq!(ask(&daemon).as_object().unwrap().len(), 3);
        }
    }
}

/// `O-Q-ASCII`, `O-Q-JSON`, `O-UI`.
#[test]
fn the_classic_query_answers_in_lines_and_counts() {
    let daemon = Daemon::memory();
    let points = r#"[{"metric":"m","timestamp":1700000000,"value":1,"tags":{"a":"b"}},
        {"metric":"m","timestamp":1700000010,"value":2.5,"tags":{"a":"c"}}]"#;
    assert_eq!(daemon.post("/api/put", points).status, 204);
    let told = daemon.get("/q?start=1700000000&end=1700000100&m=sum:m%7Ba=*%7D&ascii");
    assert_eq!((told.status, told.header("Content-Type")), (200, Some("text/plain")));
    assert_eq!(told.text(), "m 1700000000 1 a=b\nm 1700000010 2.5 a=c\n");
    let told = daemon.get("/q?start=1700000000&end=1700000100&m=sum:m&json&wxh=800x600").json();
    assert_eq!((&told["plotted"], &told["points"]), (&2.into(), &2.into()));
    assert_eq!(told["etags"], serde_json::json!([["a"]]));
    assert!(told["timing"].is_u64());
    let told = daemon.get("/q?start=1h-ago&m=sum:m");
    assert_eq!((told.status, told.header("Location")), (302, Some("/#start=1h-ago&m=sum:m")));
}

/// CVE-2018-12972, CVE-2020-35476, CVE-2023-25826, CVE-2023-36812, CVE-2018-13003: whatever stands in any parameter of
/// any form, the answer is a bad request or a plain one, and no page repeats it as markup.
#[test]
fn no_parameter_of_the_classic_paths_reaches_a_shell_or_a_page() {
    let daemon = Daemon::memory();
    let mut client = daemon.client();
    let canary = std::env::temp_dir().join(format!("basalt-canary-{}", std::process::id()));
    let touch = format!("touch {}", canary.display());
    let payloads = [
        format!("[33:system('{touch}')]"),
        format!("`{touch}`"),
        format!("out right top\nsystem \"{touch}\""),
        "<script>alert(1)</script>".to_owned(),
        "\"><img src=x onerror=alert(1)>".to_owned(),
    ];
    let names = "start end m o tz wxh yrange y2range ylabel y2label yformat y2format xformat ylog y2log key nokey title \
                 bgcolor fgcolor smooth style nocache ignore";
    for form in ["&ascii", "&json", "&png", ""] {
        for name in names.split_whitespace() {
            for payload in &payloads {
                let escaped = payload.bytes().fold(String::new(), |escaped, byte| escaped + &format!("%{byte:02X}"));
                let path = format!("/q?start=1h-ago&m=sum:m&{name}={escaped}{form}");
                let told = client.get(&path).unwrap();
                assert!([200, 302, 400, 501].contains(&told.status), "{path}: {}", told.status);
                let page = told.header("Content-Type").is_some_and(|kind| kind.starts_with("text/html"));
                assert!(!page || !told.text().contains("<script") && !told.text().contains("<img"), "{path}");
            }
        }
    }
    for path in ["/suggest?type=", "/logs?level=", "/stats?x=", "/version?x=", "/nosuch?", "/s/"] {
        let told = client.get(&format!("{path}%3Cscript%3Ealert(1)%3C/script%3E")).unwrap();
        assert!(!told.text().contains("<script"), "{path}");
    }
    assert!(!canary.exists());
}

/// `O-STATS-JVM`.
#[test]
fn the_process_is_told_in_the_members_of_a_java_machine() {
    let daemon = Daemon::memory();
    let told = daemon.get("/api/stats/jvm").json();
    assert!(told["memory"]["heapMemoryUsage"]["used"].as_u64().unwrap() > 0, "{told}");
    assert!(told["runtime"]["startTime"].as_u64().unwrap() > 1_700_000_000_000, "{told}");
    assert!(told["os"]["systemLoadAverage"].is_number() && told["gc"].is_object() && told["pools"].is_object());
    let told = daemon.get("/api/stats/threads").json();
    assert!(told[0]["threadID"].is_u64() && told[0]["state"].is_string() && told[0]["stack"].is_array(), "{told}");
    assert_eq!(daemon.get("/api/stats/region_clients").text(), "[]");
    assert_eq!(daemon.client().request("PUT", "/api/stats/jvm", &[], b"").unwrap().status, 405);
}

/// `/metrics` tells how things stand: each name has one head, which the page for operators has by its type, and what is known
/// of a daemon at rest is right.
#[test]
fn metrics_tell_how_things_stand() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(&folder.path().join("data"), "embedded", "");
    let put = r#"{"metric":"m","timestamp":1700000000,"value":1,"tags":{"a":"b"}}"#;
    assert_eq!(daemon.post("/api/put", put).status, 204);
    assert_eq!(daemon.get("/api/query?start=1699999999&end=1700000009&m=sum:m").status, 200);
    // The thread that answered notes the end after the answer.
    let until = Instant::now() + TIMEOUT;
    while daemon.metric("basalt_queries_running") > 0 {
        assert!(Instant::now() < until, "the query does not end");
    }
    let page = daemon.get("/metrics").text();
    let value = |name: &str| {
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} is not in {page}")).parse::<f64>().unwrap()
    };
    for (name, least, most) in [
        (concat!("basalt_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"}"), 1.0, 1.0),
        ("basalt_health{state=\"ok\"}", 1.0, 1.0),
        ("basalt_health{state=\"disk_full\"}", 0.0, 0.0),
        ("basalt_health{state=\"poisoned\"}", 0.0, 0.0),
        ("process_start_time_seconds", 1.7e9, 1e11),
        ("process_resident_memory_bytes", 1e6, 1e11),
        ("process_cpu_seconds_total", 0.0, 1e6),
        ("basalt_queries_running", 0.0, 0.0),
        ("basalt_queries_waiting", 0.0, 0.0),
        ("basalt_query_memory_bytes", 0.0, 1e9),
        ("basalt_http_body_bytes", 0.0, 0.0),
        ("basalt_http_bodies_refused_total", 0.0, 0.0),
        ("basalt_inflight_points", 0.0, 0.0),
        ("basalt_inflight_bytes", 0.0, 0.0),
        ("basalt_known_spellings", 1.0, 1.0),
        ("basalt_series", 1.0, 1.0),
        ("basalt_uids{kind=\"metrics\"}", 1.0, 1.0),
        ("basalt_uids{kind=\"tagv\"}", 1.0, 1.0),
        ("basalt_uids_max{kind=\"tagv\"}", 16_777_215.0, 16_777_215.0),
        ("basalt_uids_kept{kind=\"metrics\"}", 1.0, 2.0),
        ("basalt_uids_kept{kind=\"tagv\"}", 1.0, 2.0),
        ("basalt_put_seconds_bucket{le=\"+Inf\"}", 1.0, 1.0),
        ("basalt_put_seconds_bucket{le=\"60\"}", 1.0, 1.0),
        ("basalt_put_seconds_count", 1.0, 1.0),
        ("basalt_put_seconds_sum", 1e-6, 60.0),
        ("basalt_splits_total", 0.0, 0.0),
        ("basalt_file_index_bytes", 0.0, 1e6),
        ("basalt_flush_failures_total", 0.0, 0.0),
        ("basalt_compaction_failures_total", 0.0, 0.0),
        ("basalt_scrubbed_bytes_total", 0.0, 1e6),
        ("basalt_scrub_damages_total", 0.0, 0.0),
        ("basalt_batches_refused_for_memory_total", 0.0, 0.0),
        ("basalt_block_cache_hits_total", 0.0, 1e6),
        ("basalt_block_cache_misses_total", 0.0, 1e6),
    ] {
        assert!((least..=most).contains(&value(name)), "{name}: {}", value(name));
    }
    let stats = daemon.get("/api/stats").json();
    let is_kept =
        |stat: &&serde_json::Value| stat["metric"] == "tsd.uid.cache-size" && stat["tags"]["kind"] == "metrics";
    assert_ne!(stats.as_array().unwrap().iter().find(is_kept).unwrap()["value"], "0", "the metric's name or its UID");
    let mut heads: Vec<&str> = page.lines().filter(|line| line.starts_with("# TYPE ")).collect();
    let count = heads.len();
    heads.sort_unstable();
    heads.dedup();
    assert_eq!(heads.len(), count, "{page}");
    let tables = include_str!("../../docs/operations.md");
    for head in heads {
        let (name, kind) = head.strip_prefix("# TYPE ").unwrap().split_once(' ').unwrap();
        assert!(tables.contains(&format!("\n| `{name}` | {kind} | ")), "docs/operations.md has no {kind} {name}");
    }
}

/// The log says what was started with which settings, what the log of the store gave back, what its threads do, and the end.
#[test]
fn the_log_tells_a_life() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let put = r#"{"metric":"m","timestamp":1700000000,"value":1,"tags":{"a":"b"}}"#;
    let daemon = Daemon::start(&data, "embedded", "");
    assert_eq!(daemon.post("/api/put", put).status, 204);
    daemon.kill();
    let mut command = Daemon::command(&data, "embedded");
    let log = std::fs::File::create(folder.path().join("log")).unwrap();
    command.args(["--log-level", "info,basalt_engine=debug"]).stderr(log);
    let daemon = Daemon::spawn(command);
    assert!(daemon.terminate().success());
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    let lines: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let line = |message: &str| {
        let found = lines.iter().find(|line| line["message"].as_str().unwrap().starts_with(message));
        found.unwrap_or_else(|| panic!("`{message}` is not in {log}"))
    };
    let starting = line("starting");
    assert_eq!((&starting["version"], &starting["store"]), (&env!("CARGO_PKG_VERSION").into(), &"embedded".into()));
    assert_eq!(starting["data_dir"], data.to_str().unwrap());
    line("setting `log.level` is `info,basalt_engine=debug`, from flag --log-level");
    line("rows are not rewritten: the store folds rows by itself");
    let replayed = line("log replayed");
    assert!(replayed["bytes"].as_u64().unwrap() > 0 && replayed["took_ms"].is_u64(), "{replayed}");
    let flushed = line("flushed");
    assert!(flushed["bytes"].as_u64().unwrap() > 0 && flushed["region"].is_u64(), "{flushed}");
    assert!(lines.iter().any(|line| line["message"] == "flushed" && line["table"] == "tsdb"), "{log}");
    line("stopped cleanly");
}

/// Its TTLs would count from then on, and its deletes wait, for years after a clock stood too late for a moment.
#[test]
fn a_start_tells_of_a_clock_behind_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut options = basalt_engine::EngineOptions::new(&data);
    // The year 2100.
    options.clock = std::sync::Arc::new(ManualClock::new(Timestamp(4_102_444_800_000)));
    let engine = basalt_engine::Engine::open(options).unwrap();
    engine.create_table(TableDescriptor::new("t".parse().unwrap(), vec![FamilyDescriptor::new("f")]), &[]).unwrap();
    let mut batch = MutationBatch::new(Durability::Fsync);
    batch.row(b"row").unwrap().put(b"f", b"q", None, b"v").unwrap();
    assert!(engine.apply(&"t".parse().unwrap(), batch).wait().unwrap().failed.is_empty());
    engine.close().unwrap();
    let told = || {
        let mut command = Daemon::command(&data, "embedded");
        command.stderr(std::fs::File::create(folder.path().join("log")).unwrap());
        let daemon = Daemon::spawn(command);
        let page = daemon.get("/metrics").text();
        let behind = page.lines().find_map(|line| line.strip_prefix("basalt_clock_behind_seconds ")).unwrap();
        assert!(behind.parse::<f64>().unwrap() > 1e8, "{behind}");
        assert!(daemon.terminate().success());
        std::fs::read_to_string(folder.path().join("log")).unwrap()
    };
    for log in [told(), told()] {
        assert!(log.contains(r#""level":"WARN","message":"the clock is behind the times"#), "{log}");
    }
}
