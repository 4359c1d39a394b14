//! Pages, pictures and files for people; the log; the ways to end the server.

use std::io::{BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use crate::daemon::Daemon;

/// A daemon over memory with these settings.
fn with(config: &str) -> (Daemon, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (Daemon::start(&folder.path().join("data"), "memory", config), folder)
}

/// Width and height of a PNG, which begins with them.
fn size(png: &[u8]) -> (u32, u32) {
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    let side = |from: usize| u32::from_be_bytes(png[from..from + 4].try_into().unwrap());
    (side(16), side(20))
}

/// `O-Q-PNG`: a picture of its size, other pictures for other wishes, and nothing but pictures.
#[test]
fn o_q_png_a_query_is_drawn() {
    let daemon = Daemon::memory();
    let points: Vec<String> = (0..60)
        .map(|step| {
            let (time, value) = (1_700_000_000 + step * 60, (step * 7) % 50);
            format!(r#"{{"metric":"m","timestamp":{time},"value":{value},"tags":{{"a":"b"}}}}"#)
        })
        .collect();
    assert_eq!(daemon.post("/api/put", &format!("[{}]", points.join(","))).status, 204);
    let note = r#"{"startTime":1700001000,"description":"deployed"}"#;
    assert_eq!(daemon.post("/api/annotation", note).status, 200);
    let ask = "/q?start=1700000000&end=1700003600&m=sum:m&wxh=640x400&png";
    let told = daemon.get(ask);
    assert_eq!((told.status, told.header("Content-Type")), (200, Some("image/png")));
    assert_eq!(told.header("Cache-Control"), Some("max-age=86400"));
    assert_eq!(size(&told.body), (640, 400));
    for wish in [
        "&title=CPU",
        "&yrange=[0:100]",
        "&ylog",
        "&bgcolor=x202020",
        "&global_annotations",
        "&o=axis%20x1y2",
        "&tz=Asia/Tokyo",
    ] {
        let other = daemon.get(&format!("{ask}{wish}"));
        assert_eq!(other.status, 200, "{wish}: {}", other.text());
        assert_ne!(other.body, told.body, "{wish}");
    }
    assert_eq!(size(&daemon.get("/q?start=1700000000&end=1700003600&m=sum:m&png").body), (1_024, 768));
    assert_eq!(daemon.get("/q?start=1h-ago&m=sum:m&png").header("Cache-Control"), Some("max-age=3"));
    for (wish, status) in
        [("&wxh=9999x9999", 400), ("&yrange=[2:1]", 400), ("&o=with%20lines", 400), ("&m=sum:nosuch", 400)]
    {
        let told = daemon.get(&format!("{ask}{wish}"));
        assert_eq!(told.status, status, "{wish}");
        assert!(told.header("Content-Type").unwrap().starts_with("text/html"));
    }
}

/// `O-UI`: the page and what it loads are part of the program; nothing else is there, however it is spelled.
#[test]
fn o_ui_the_page_loads_its_own_files_and_no_path_is_opened() {
    let daemon = Daemon::memory();
    let page = daemon.get("/").text();
    for (path, kind) in [
        ("/s/graph.css", "text/css"),
        ("/s/graph.js", "text/javascript"),
        ("/s/favicon.ico", "image/x-icon"),
        ("/favicon.ico", "image/x-icon"),
    ] {
        assert!(page.contains(path) || kind == "image/x-icon", "{path}");
        let told = daemon.get(path);
        assert_eq!(told.status, 200, "{path}");
        assert!(told.header("Content-Type").unwrap().starts_with(kind) && !told.body.is_empty(), "{path}");
    }
    assert!(!page.contains("<script>") && !page.contains("onload="), "the policy forbids scripts within pages");
    let mut client = daemon.client();
    for dots in ["..", "%2e%2e", "%252e%252e", "..%2f..", "..%5c..", ".%00.", "%c0%ae%c0%ae", "....//"] {
        for file in ["/etc/passwd", "Cargo.toml", "graph.css%00.js"] {
            let told = client.get(&format!("/s/{dots}/{dots}/{file}")).unwrap();
            assert!([400, 404].contains(&told.status), "{dots} {file}: {}", told.status);
            assert!(!told.text().contains("root:"), "{dots} {file}");
        }
    }
    assert_eq!(client.get("/s").unwrap().status, 404);
    assert_eq!(client.get("/s/").unwrap().status, 404);
}

/// `O-LOGS`: the newest first, as lines and as a list; the level only where an operator allows it, and not by a GET.
#[test]
fn o_logs_the_last_lines_are_told() {
    let daemon = Daemon::memory();
    let told = daemon.get("/logs");
    assert_eq!((told.status, told.header("Content-Type")), (200, Some("text/plain; charset=UTF-8")));
    let line = told.text().lines().find(|line| line.contains("ready")).unwrap().to_owned();
    let columns: Vec<&str> = line.split('\t').collect();
    assert!(columns[0].parse::<u64>().unwrap() > 1_700_000_000, "{line}");
    assert_eq!((columns[1], columns.len()), ("INFO", 5), "{line}");
    let list = daemon.get("/logs?json");
    assert_eq!(list.header("Content-Type"), Some("application/json"));
    assert!(list.json().as_array().unwrap().iter().any(|found| *found == *line));
    let refused = daemon.client().post("/logs?level=debug", "").unwrap();
    assert_eq!(refused.status, 403, "{}", refused.text());

    let (daemon, _folder) = with("[log]\nallow_change = true\n");
    assert_eq!(daemon.get("/logs?level=debug").status, 400, "a page may make a browser send a GET");
    let put = || daemon.post("/api/put", "[{}]").status;
    let is_told = || daemon.get("/logs").text().contains("put with errors");
    assert_eq!((put(), is_told()), (400, false));
    let told = daemon.post("/logs?level=debug&logger=basalt", "");
    assert_eq!(told.text(), "Set the log level to DEBUG on 1 logger.\n");
    assert_eq!((put(), is_told()), (400, true));
    assert!(daemon.post("/logs?level=info", "").text().starts_with("Set the log level to INFO on "));
    for bad in ["/logs?level=nope", "/logs?level=info&logger=nope", "/logs?level=%3Cscript%3E"] {
        let told = daemon.post(bad, "");
        assert!(told.status == 400 && !told.text().contains("<script>"), "{bad}: {}", told.text());
    }
}

/// Waits for the end of a process that was asked to end.
fn ends(mut daemon: Daemon) {
    let until = Instant::now() + Duration::from_mins(1);
    while daemon.exit_code().is_none() {
        assert!(Instant::now() < until, "it does not end");
        std::thread::yield_now();
    }
    assert_eq!(daemon.exit_code(), Some(0));
}

/// `diediedie` of anybody ends OpenTSDB; here it is not there unless an operator allows it, and a GET never suffices.
#[test]
fn diediedie_ends_the_server_where_that_is_allowed() {
    let daemon = Daemon::memory();
    assert_eq!((daemon.get("/diediedie").status, daemon.post("/diediedie", "").status), (404, 404));
    assert_eq!(daemon.talk("diediedie\n"), "unknown command: diediedie.  Try `help'.\n");
    let (daemon, _folder) = with("[server]\nallow_diediedie = true\n");
    assert_eq!(daemon.get("/diediedie").status, 400);
    let told = daemon.post("/diediedie", "");
    assert!(told.status == 200 && told.text().contains("Cleaning up and exiting now."), "{}", told.text());
    ends(daemon);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("opentsdb.conf");
    std::fs::write(&file, "tsd.no_diediedie = false\ntsd.network.port = 0\n").unwrap();
    let mut command = Daemon::command(&folder.path().join("data"), "memory");
    command.arg("--config").arg(&file);
    let daemon = Daemon::spawn(command);
    assert!(daemon.talk("diediedie\n").starts_with("Cleaning up and exiting now.\n"));
    ends(daemon);
}

/// A client that reads nothing, one that never ends its request, and one that never ends its line hold up the end by the
/// time to drain, and no longer.
#[test]
fn stalled_clients_hold_up_the_end_no_longer_than_the_time_to_drain() {
    for store in ["memory", "embedded"] {
        let folder = tempfile::tempdir().unwrap();
        let config = "[server]\nshutdown_timeout_ms = 500\n[query]\ntimeout_ms = 0\n";
        let daemon = Daemon::start(&folder.path().join("data"), store, config);
        let points: Vec<String> = (0..100_000)
            .map(|second| {
                format!(
                    r#"{{"metric":"m","timestamp":{},"value":{second},"tags":{{"a":"b"}}}}"#,
                    1_700_000_000 + second
                )
            })
            .collect();
        for some in points.chunks(10_000) {
            assert_eq!(daemon.post("/api/put", &format!("[{}]", some.join(","))).status, 204);
        }
        let mut reads_nothing = daemon.connect();
        let subs = (1..=20).fold(String::new(), |subs, step| subs + &format!("&m=sum:{step}s-sum:m"));
        let head = format!("GET /api/query?start=1700000000&end=1700999999{subs} HTTP/1.1\r\nHost: x\r\n\r\n");
        reads_nothing.write_all(head.as_bytes()).unwrap();
        let mut ends_nothing = daemon.connect();
        ends_nothing.write_all(b"POST /api/put HTTP/1.1\r\nContent-Length: 100\r\n\r\n[").unwrap();
        let mut in_a_line = daemon.connect();
        in_a_line.write_all(b"put m 17000").unwrap();
        while daemon.metric("basalt_queries_running") == 0 {
            std::thread::yield_now();
        }
        let began = Instant::now();
        assert_eq!(daemon.terminate().code(), Some(0), "{store}");
        // Below the minute after which an idle connection is closed anyway.
        assert!(began.elapsed() < Duration::from_secs(35), "{store}: {:?}", began.elapsed());
        drop(in_a_line.read(&mut [0]));
    }
}

/// The names of `/api/stats` of a real OpenTSDB 2.4.1 but those of its HBase client: name, key of a tag, its values.
const STATS: &str = "connectionmgr.connections type open,rejected,total|connectionmgr.exceptions type \
    closed,reset,timeout,unknown|rpc.received type \
    telnet,http,http_plugin,put|rpc.exceptions|http.latency_50pct type \
    all,graph,gnuplot|http.latency_75pct type all,graph,gnuplot|http.latency_90pct type \
    all,graph,gnuplot|http.latency_95pct type all,graph,gnuplot|http.graph.requests cache \
    disk,miss|rpc.forbidden type telnet,http|rpc.unauthorized type telnet,http|rpc.errors type \
    hbase_errors,invalid_values,illegal_arguments,unknown_metrics,socket_writes_blocked|http.query.unauthorized|http.query.forbidden|http.query.invalid_requests|http.query.exceptions|http.query.success|uid.cache-hit \
    kind metrics,tagk,tagv|uid.cache-miss kind metrics,tagk,tagv|uid.cache-size kind \
    metrics,tagk,tagv|uid.random-collisions kind metrics,tagk,tagv|uid.rejected-assignments kind \
    metrics,tagk,tagv|uid.ids-used kind metrics,tagk,tagv|uid.ids-available kind \
    metrics,tagk,tagv|uid.filter.rejected kind raw,aggregate|jvm.ramfree|jvm.ramused|hbase.latency_50pct \
    method put,scan|hbase.latency_75pct method put,scan|hbase.latency_90pct method \
    put,scan|hbase.latency_95pct method put,scan|datapoints.added type \
    all|compaction.count|compaction.duplicates type \
    identical,variant|compaction.queue.size|compaction.errors rpc \
    read,put,delete|compaction.writes|compaction.deletes";

/// `O-STATS`: an answer with 500 is an exception, whatever it was asked.
#[test]
fn o_stats_exceptions_are_answers_with_500() {
    let (daemon, _folder) = with("[compat]\nstrict = true\n");
    let exceptions = || {
        let told = daemon.get("/api/stats").json();
        let one = told.as_array().unwrap().iter().find(|stat| stat["metric"] == "tsd.rpc.exceptions").unwrap();
        one["value"].as_str().unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(daemon.get("/api/query?start=x&m=sum:m").status, 400);
    assert_eq!(exceptions(), 0);
    assert_eq!(daemon.get("/api/uid/uidmeta?uid=zz&type=metric").status, 500);
    assert_eq!(exceptions(), 1);
    assert!(daemon.get("/metrics").text().contains("basalt_http_failed_total 1\n"));
}

/// `O-STATS`: every name with its tags, values as texts; the port and the host's domain where they are asked for.
#[test]
fn o_stats_every_name_is_told() {
    let (daemon, _folder) = with("[server]\nstats_with_port = true\nstats_canonical = true\n");
    let told = daemon.get("/api/stats").json();
    let told = told.as_array().unwrap();
    for stat in told {
        assert!(stat["value"].as_str().unwrap().parse::<u64>().is_ok() && stat["timestamp"].is_u64(), "{stat}");
        assert!(stat["tags"]["host"].is_string(), "{stat}");
        assert_eq!(stat["tags"]["port"], daemon.port().to_string(), "{stat}");
    }
    let names = told.iter().map(|stat| stat["metric"].as_str().unwrap()).collect::<Vec<_>>();
    assert!(!names.iter().any(|name| name.starts_with("tsd.jvm.thread")), "in lines alone");
    assert_eq!(names.iter().filter(|name| **name == "tsd.datapoints.added").count(), 1, "a sum counts points once");
    let class = |name: &str, tag: &str, value: &str| {
        let mut found = told.iter().filter(|stat| stat["metric"] == name && stat["tags"][tag] == value);
        found.next().unwrap()["tags"]["class"].clone()
    };
    assert_eq!(class("tsd.datapoints.added", "type", "all"), "TSDB");
    assert_eq!(class("tsd.hbase.latency_50pct", "method", "put"), "IncomingDataPoints");
    assert_eq!(class("tsd.hbase.latency_95pct", "method", "scan"), "TsdbQuery");
    for line in STATS.split('|') {
        let words: Vec<&str> = line.split(' ').collect();
        let is_named = |stat: &&serde_json::Value| stat["metric"] == format!("tsd.{}", words[0]);
        for value in words.get(2).unwrap_or(&"").split(',') {
            let has_tag = |stat: &serde_json::Value| words.len() == 1 || stat["tags"][words[1]] == value;
            assert!(told.iter().filter(is_named).any(has_tag), "{line}: {value}");
        }
    }
    let lines = daemon.talk("stats\n");
    assert!(lines.lines().all(|line| line.ends_with(&format!(" port={}", daemon.port()))));
    let value =
        |name: &str| lines.lines().find_map(|line| line.strip_prefix(name)?.split(' ').nth(1)?.parse::<u64>().ok());
    assert!(value("tsd.jvm.thread.count ").unwrap() > 1);
    let states = ["new", "runnable", "blocked", "waiting", "timed_waiting", "terminated"];
    assert!(states.iter().all(|state| lines.contains(&format!(" state={state} "))));
}

/// `P-RT`: what is stored is told by every door, what is refused is not, and a listener that is away holds up nothing.
#[test]
fn p_rt_what_is_stored_is_published() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("points");
    let config = folder.path().join("opentsdb.conf");
    let text = format!(
        "tsd.network.port = 0\ntsd.rtpublisher.enable = true\ntsd.rtpublisher.plugin = file:{}\n",
        path.display()
    );
    std::fs::write(&config, text).unwrap();
    let mut command = Daemon::command(&folder.path().join("data"), "memory");
    command.arg("--config").arg(&config);
    let daemon = Daemon::spawn(command);
    let good = r#"{"metric":"m","timestamp":1700000000,"value":1.5,"tags":{"a":"b"}}"#;
    let bad = r#"{"metric":"m m","timestamp":1700000000,"value":1,"tags":{"a":"b"}}"#;
    assert_eq!(daemon.post("/api/put", &format!("[{bad},{good}]")).status, 400);
    assert_eq!(daemon.talk("put m 1700000001 2 a=b\nput m nope 2 a=b\n").lines().count(), 1);
    assert_eq!(daemon.post("/api/annotation", r#"{"startTime":1700000002,"description":"d"}"#).status, 200);
    let until = Instant::now() + Duration::from_mins(1);
    while daemon.metric("basalt_published_total") < 3 {
        assert!(Instant::now() < until, "not published");
    }
    let lines = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(
        (&lines[0]["metric"], &lines[0]["value"], &lines[0]["tags"]["a"]),
        (&"m".into(), &"1.5".into(), &"b".into())
    );
    assert_eq!((&lines[1]["timestamp"], &lines[2]["description"]), (&1_700_000_001.into(), &"d".into()));
    assert_eq!(daemon.metric("basalt_publish_dropped_total"), 0);
}

/// `P-RT`: the log says why nothing is published, once, and when it is again.
#[test]
fn p_rt_the_log_says_why_nothing_is_published() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("points.sock");
    let config = format!("[publish]\nenable = true\nto = 'unix:{}'\n", path.display());
    let daemon = Daemon::start(&folder.path().join("data"), "memory", &config);
    let put = |time: u32, counter: &str, value: u64| {
        let point = format!(r#"{{"metric":"m","timestamp":{time},"value":1,"tags":{{"a":"b"}}}}"#);
        assert_eq!(daemon.post("/api/put", &point).status, 204);
        let until = Instant::now() + Duration::from_mins(1);
        while daemon.metric(counter) < value {
            assert!(Instant::now() < until, "{counter} is not {value}");
        }
    };
    let told = |words: &str| {
        let (logs, target) = (daemon.get("/logs").text(), format!("unix:{}", path.display()));
        logs.lines()
            .filter(|line| line.contains(words) && line.contains(&target))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    put(1_700_000_000, "basalt_publish_dropped_total", 1);
    put(1_700_000_001, "basalt_publish_dropped_total", 2);
    let lines = told("cannot publish to");
    assert!(matches!(&lines[..], [line] if line.contains("\tWARN\t") && line.contains("No such file")), "{lines:?}");
    assert!(told("takes lines again").is_empty());
    let _listener = UnixListener::bind(&path).unwrap();
    put(1_700_000_002, "basalt_published_total", 1);
    assert_eq!((told("cannot publish to").len(), told("takes lines again").len()), (1, 1));
}

/// `P-RT`: what is acknowledged when a server ends is published, to a listener that begins to read then.
#[test]
fn p_rt_an_end_waits_for_a_slow_listener() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("points.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let config = format!("[publish]\nenable = true\nto = 'unix:{}'\n", path.display());
    let daemon = Daemon::start(&folder.path().join("data"), "memory", &config);
    // Many times what a socket holds.
    let points: Vec<String> = (0..20_000)
        .map(|n| format!(r#"{{"metric":"m","timestamp":{},"value":1,"tags":{{"a":"b"}}}}"#, 1_700_000_000 + n))
        .collect();
    for some in points.chunks(1_000) {
        assert_eq!(daemon.post("/api/put", &format!("[{}]", some.join(","))).status, 204);
    }
    let (stream, _) = listener.accept().unwrap();
    let port = daemon.port();
    let reading = std::thread::spawn(move || {
        while TcpStream::connect(("127.0.0.1", port)).is_ok() {
            std::thread::yield_now();
        }
        let mut read = String::new();
        BufReader::new(stream).read_to_string(&mut read).map(|_| read)
    });
    assert!(daemon.terminate().success());
    let read = reading.join().unwrap().unwrap();
    assert_eq!((read.lines().count(), read.ends_with('\n')), (points.len(), true));
}

/// `T-AUTH`: OpenTSDB's own plugin lets everybody in; it swallows the first line whatever it is, which is not copied.
#[test]
fn t_auth_everybody_is_let_in_where_that_is_asked_for() {
    let (daemon, _folder) = with("[server]\nauth_allow_all = true\n");
    let said = daemon.talk("auth basic a b c\nput m 1700000000 1 a=b\nnosuch\n");
    assert_eq!(said, "AUTH_SUCCESS\r\nunknown command: nosuch.  Try `help'.\n");
    assert_eq!(daemon.talk("put m 1700000001 1 a=b\n"), "");
    assert_eq!(
        daemon.get("/api/query?start=1700000000&end=1700000009&m=sum:m").json()[0]["dps"].as_object().unwrap().len(),
        2
    );
    assert_eq!(Daemon::memory().talk("auth basic a b c\n"), "unknown command: auth.  Try `help'.\n");
}
