//! Points in by every door, points out by a query, and the accounting between.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::daemon::{Daemon, run};

/// Two points of two series at one instant.
const BATCH: &str = r#"[{"metric":"it.m","timestamp":1356998400,"value":1,"tags":{"host":"a"}},
 {"metric":"it.m","timestamp":1356998400,"value":2.5,"tags":{"host":"b"}}]"#;
/// One good point and two bad ones.
const MIXED: &str = r#"[{"metric":"it.m","timestamp":1356998460,"value":7,"tags":{"host":"a"}},
 {"metric":"it.m","timestamp":1356998460,"value":7},
 {"metric":"it.m","timestamp":1356998460,"value":"x","tags":{"host":"a"}}]"#;

const ALL: &str = "/api/query?start=1356998000&end=1356999000&m=sum:it.m{host=*}";

#[test]
fn what_is_put_is_answered() {
    let daemon = Daemon::memory();
    let put = daemon.post("/api/put", BATCH);
    assert_eq!((put.status, put.text().as_str()), (204, ""));
    let query = daemon.get(ALL);
    assert_eq!(
        query.text(),
        r#"[{"metric":"it.m","tags":{"host":"a"},"aggregateTags":[],"dps":{"1356998400":1}},{"metric":"it.m","tags":{"host":"b"},"aggregateTags":[],"dps":{"1356998400":2.5}}]"#
    );
    let body =
        r#"{"start":1356998000,"end":1356999000,"msResolution":true,"queries":[{"aggregator":"sum","metric":"it.m"}]}"#;
    let query = daemon.post("/api/query?arrays", body);
    assert_eq!(query.text(), r#"[{"metric":"it.m","tags":{},"aggregateTags":["host"],"dps":[[1356998400000,3.5]]}]"#);
    assert_eq!(daemon.get("/api/suggest?type=metrics&q=it").text(), r#"["it.m"]"#);
    assert_eq!(daemon.post("/api/suggest", r#"{"type":"tagv","max":"1"}"#).text(), r#"["a"]"#);
}

/// `W-PUT-SUMMARY`, `W-PUT-DETAILS`, `W-PUT-ERRORS`.
#[test]
fn the_good_points_of_a_mixed_batch_are_stored_and_the_bad_told() {
    let daemon = Daemon::memory();
    let plain = daemon.post("/api/put", MIXED);
    assert_eq!(plain.status, 400);
    assert_eq!(plain.json()["error"]["message"], "One or more data points had errors");
    let summary = daemon.post("/api/put?summary", MIXED);
    assert_eq!((summary.status, summary.text().as_str()), (400, r#"{"success":1,"failed":2}"#));
    let details = daemon.post("/api/put?details", MIXED);
    assert_eq!(details.status, 400);
    assert_eq!(details.json()["errors"][0]["error"], "Missing tags");
    assert_eq!(details.json()["errors"][1]["error"], "Unable to parse value to a number");
    assert_eq!(details.json()["errors"][1]["datapoint"]["value"], "x");
    assert_eq!(daemon.get(ALL).json()[0]["dps"]["1356998460"], 7);
}

/// `W-PUT-GZIP`, `W-PUT-CHUNKED`.
#[test]
fn a_body_may_be_zipped_and_chunked_and_has_a_bound() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(&folder.path().join("data"), "memory", "[http]\nmax_body_bytes = 10000\n");
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(BATCH.as_bytes()).unwrap();
    let headers = [("Content-Encoding", "gzip"), ("Transfer-Encoding", "chunked")];
    let zipped = daemon.client().request("POST", "/api/put?details", &headers, &encoder.finish().unwrap()).unwrap();
    assert_eq!((zipped.status, zipped.text().as_str()), (200, r#"{"success":2,"failed":0,"errors":[]}"#));
    let large = format!("[{}]", " ".repeat(10_000));
    for headers in [&[][..], &[("Transfer-Encoding", "chunked")][..]] {
        let refused = daemon.client().request("POST", "/api/put", headers, large.as_bytes()).unwrap();
        assert_eq!(refused.status, 413);
    }
}

/// `T-PUT`, `T-PUT-ERR`: the reply to `version` comes after the puts before it, whose errors stand
/// before it.
/// `H-PORTSHARE`: on the port that serves HTTP.
#[test]
fn telnet_puts_are_silent_when_good_and_told_when_bad() {
    let daemon = Daemon::memory();
    let said =
        daemon.talk("put it.m 1356998400 4  host=a\r\nput it.m 1356998460 x host=a\nput it.m 1356998460 5\nversion\n");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "put: invalid value: Invalid character 'x' in x");
    assert_eq!(lines[1], "put: illegal argument: not enough arguments (need least 4, got 3)");
    assert!(lines[2].starts_with("net.opentsdb"), "{said}");
    assert_eq!(daemon.get(ALL).json()[0]["dps"]["1356998400"], 4);
}

/// Received = stored + rejected + failed, for each door.
#[test]
fn every_point_is_accounted_for() {
    let daemon = Daemon::memory();
    daemon.post("/api/put", BATCH);
    daemon.post("/api/put?details", MIXED);
    daemon.post("/api/put", "[{]");
    daemon.talk("put it.m 1356998400 4 host=a\nput it.m\nput it.m 1356998400 y host=a\n");
    let page = daemon.get("/metrics").text();
    let sum = |name: &str, door: &str| -> u64 {
        let lines = page.lines().filter(|line| line.starts_with(name) && line.contains(&format!("door=\"{door}\"")));
        lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
    };
    for (door, received, stored, rejected) in [("http", 5, 3, 2), ("telnet", 3, 1, 2)] {
        assert_eq!(sum("basalt_points_received_total", door), received, "{page}");
        assert_eq!(sum("basalt_points_stored_total", door), stored, "{page}");
        assert_eq!(sum("basalt_points_rejected_total", door), rejected, "{page}");
        assert_eq!(sum("basalt_points_failed_total", door), 0, "{page}");
    }
    assert_eq!(daemon.metric("basalt_put_bodies_refused_total"), 1);
}

/// An answer of many pieces is whole and reads the same as a small one.
#[test]
fn a_long_answer_streams() {
    let daemon = Daemon::memory();
    let points = |hour: u64| {
        let of = |second| {
            let time = 1_356_998_400 + hour * 3_600 + second;
            format!(r#"{{"metric":"it.long","timestamp":{time},"value":{second},"tags":{{"h":"a"}}}}"#)
        };
        format!("[{}]", (0..3_600).map(of).collect::<Vec<_>>().join(","))
    };
    for hour in 0..5 {
        assert_eq!(daemon.post("/api/put", &points(hour)).status, 204);
    }
    let answer = daemon.get("/api/query?start=1356998400&end=1357099999&m=sum:it.long");
    assert_eq!(answer.header("transfer-encoding"), Some("chunked"));
    assert_eq!(answer.json()[0]["dps"].as_object().unwrap().len(), 5 * 3_600);
}

/// `C-IMPORT`: blocks are acknowledged, progress is remembered, bad lines are told.
#[test]
fn import_goes_on_where_it_was() {
    let daemon = Daemon::memory();
    let folder = tempfile::tempdir().unwrap();
    let (file, state) = (folder.path().join("dump"), folder.path().join("state"));
    let import = |skip: &[&str]| {
        let url = format!("http://127.0.0.1:{}", daemon.port());
        let mut arguments = vec!["import", text(&file), "--url", &url, "--resume", text(&state)];
        arguments.extend_from_slice(skip);
        let output = run(&arguments);
        (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    };
    let two = "it.m 1356998400 1 host=a\nit.m 1356998460 2 host=a\n";
    std::fs::write(&file, two).unwrap();
    let (code, said) = import(&[]);
    assert!(code == Some(0) && said.contains("2 points stored"), "{said}");
    std::fs::write(&file, format!("{two}it.m 1356998520 x host=a\n")).unwrap();
    let (code, said) = import(&[]);
    assert!(code == Some(1) && said.contains("Unable to parse value to a number"), "{said}");
    // A line that was refused may be mended.
    let three = format!("{two}it.m 1356998520 3 host=a\n");
    std::fs::write(&file, &three).unwrap();
    let (code, said) = import(&[]);
    assert!(code == Some(0) && said.contains("1 points stored, 0 refused, 2 lines done before"), "{said}");
    std::fs::write(&file, format!("{three}it.m 1356998580 x host=a\n")).unwrap();
    let (code, said) = import(&["--skip-errors"]);
    assert!(code == Some(0) && said.contains("0 points stored, 1 refused, 3 lines done before"), "{said}");
    assert_eq!(daemon.get(ALL).json()[0]["dps"]["1356998460"], 2);
}

/// `C-IMPORT`: what is stored when a signal comes is told and remembered. The rate leaves hours of work.
#[test]
fn an_interrupted_import_says_how_it_goes_on() {
    let daemon = Daemon::memory();
    let folder = tempfile::tempdir().unwrap();
    let (file, state) = (folder.path().join("dump"), folder.path().join("state"));
    let lines: Vec<String> = (0..200_000).map(|at| format!("it.cut {} 1 host=a\n", 1_356_998_400 + at)).collect();
    std::fs::write(&file, lines.concat()).unwrap();
    let url = format!("http://127.0.0.1:{}", daemon.port());
    let arguments = ["import", text(&file), "--url", &url, "--resume", text(&state)];
    let mut command = Command::new(env!("CARGO_BIN_EXE_basalt"));
    let child = command.args(arguments).args(["--rate", "1"]).stderr(Stdio::piped()).spawn().unwrap();
    while daemon.get("/api/suggest?type=metrics&q=it.cut").json().as_array().unwrap().is_empty() {
        std::thread::yield_now();
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let line = said.lines().last().unwrap();
    let stored = line.strip_prefix("basalt: interrupted; ").and_then(|line| line.split(' ').next()).unwrap();
    let stored: u32 = stored.parse().unwrap();
    assert_eq!(output.status.code(), Some(75), "{said}");
    assert!(line.contains("run the same again, it goes on in") && (1..200_000).contains(&stored), "{said}");
    let again = String::from_utf8(run(&arguments).stdout).unwrap();
    assert!(again.starts_with(&format!("{} points stored, 0 refused, {stored} lines", 200_000 - stored)), "{again}");
}

/// `C-IMPORT`: who is to mend a line is told which one of which file.
#[test]
fn import_tells_where_a_refused_line_is() {
    let daemon = Daemon::memory();
    let url = format!("http://127.0.0.1:{}", daemon.port());
    let folder = tempfile::tempdir().unwrap();
    let (file, data) = (folder.path().join("dump"), folder.path().join("data"));
    let check = |lines: &str, arguments: &[&str], code: i32, expected: &str| {
        std::fs::write(&file, lines).unwrap();
        let output = run(&[&["import", text(&file)][..], arguments].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(&format!("{}{expected}", file.display())), "{said}");
    };
    let third = "it.m 1356998400 1 host=a\n\nit.m 1356998460\n";
    let bad_name = "it.m 1356998400 1 host=a\nit!m 1356998460 1 host=a\n";
    for target in [["--url", &url], ["--data-dir", text(&data)]] {
        check(third, &target, 1, ", line 3: put: illegal argument: not enough arguments");
        check(third, &[&target[..], &["--skip-errors"]].concat(), 0, ", line 3: put: illegal argument: not enough");
    }
    check(bad_name, &["--data-dir", text(&data)], 1, ", line 2: put: illegal argument: Invalid metric name");
    // A server answers with the point.
    check(
        bad_name,
        &["--url", &url],
        1,
        ": Invalid metric name (\"it!m\"): illegal character: !: {\"metric\":\"it!m\"",
    );
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
