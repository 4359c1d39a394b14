//! `basalt bench` against the daemon: what it says that it wrote is there.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Command, Stdio};

use crate::daemon::{Daemon, run};

/// A run's JSON report, and its standard output.
fn bench(daemon: &Daemon, words: &[&str]) -> (serde_json::Value, String) {
    let folder = tempfile::tempdir().unwrap();
    let (json, html) = (folder.path().join("r.json"), folder.path().join("r.html"));
    let url = format!("http://127.0.0.1:{}", daemon.port());
    let (kind, rest) = words.split_first().unwrap();
    let files = ["--url", &url, "--json", json.to_str().unwrap(), "--html", html.to_str().unwrap()];
    let output = run(&[&["bench", kind], &files[..], rest].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(std::fs::read_to_string(html).unwrap().contains("<svg"));
    let report = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    (report, String::from_utf8(output.stdout).unwrap())
}

fn points(daemon: &Daemon) -> u64 {
    let path = "/api/query?start=1704067200&end=1704067800&m=none:cpu.usage_user&m=none:cpu.usage_guest_nice";
    let answer = daemon.get(path).json();
    answer.as_array().unwrap().iter().map(|series| series["dps"].as_object().unwrap().len() as u64).sum()
}

const SET: [&str; 6] = ["--hosts", "7", "--span", "600", "--start", "1704067200"];

#[test]
fn what_is_written_by_every_door_is_there() {
    for door in [
        &["--batch", "33", "--late", "20"][..],
        &["--gzip", "--protocol", "json"],
        &["--protocol", "telnet"],
        &["--rate", "100000"],
    ] {
        let daemon = Daemon::memory();
        let (report, table) = bench(&daemon, &[&["ingest"], &SET[..], door].concat());
        let line = &report["lines"][0];
        assert_eq!((&line["done"], &line["failed"]), (&4_200.into(), &0.into()), "{door:?}: {report}");
        assert!(table.contains("4200"), "{table}");
        assert_eq!(points(&daemon), 2 * 7 * 60, "{door:?}");
    }
}

#[test]
fn an_end_by_time_leaves_points() {
    let daemon = Daemon::memory();
    let (report, _) = bench(&daemon, &["ingest", "--hosts", "7", "--span", "1000000000", "--seconds", "1"]);
    let done = report["lines"][0]["done"].as_u64().unwrap();
    assert!(done > 0 && done < 7 * 10 * 100_000_000, "{report}");
}

/// The first SIGINT ends a run with its report. The rate leaves hours of work, and the file of the report is there before the run.
#[test]
fn an_interrupt_costs_no_report() {
    let (daemon, folder) = (Daemon::memory(), tempfile::tempdir().unwrap());
    let json = folder.path().join("r.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_basalt"));
    command.args(["bench", "ingest", "--url", &format!("http://127.0.0.1:{}", daemon.port()), "--json"]).arg(&json);
    let child = command.args(["--hosts", "1", "--batch", "10", "--rate", "10"]).stdout(Stdio::piped()).spawn().unwrap();
    while daemon.get("/api/suggest?type=metrics").json().as_array().unwrap().is_empty() {
        std::thread::yield_now();
    }
    assert!(json.exists());
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    let report: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    assert!((10..3_600).contains(&report["lines"][0]["done"].as_u64().unwrap()), "{report}");
}

/// A file's name may be any bytes: the report has what of them is text.
#[test]
fn a_word_that_is_no_text_costs_no_report() {
    let (daemon, folder) = (Daemon::memory(), tempfile::tempdir().unwrap());
    let json = folder.path().join(OsStr::from_bytes(b"r\xff.json"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_basalt"));
    command.args(["bench", "ingest", "--url", &format!("http://127.0.0.1:{}", daemon.port())]).args(SET);
    let output = command.arg("--json").arg(&json).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    assert!(report["command"].as_str().unwrap().ends_with("r\u{fffd}.json"), "{report}");
}

#[test]
fn every_question_is_answered() {
    let daemon = Daemon::memory();
    bench(&daemon, &[&["ingest"], &SET[..]].concat());
    let (report, _) = bench(&daemon, &[&["query", "--count", "3", "--connections", "2"], &SET[..]].concat());
    let lines = report["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 12);
    for line in lines {
        let heavy =
            ["double", "lastpoint", "high-cpu-all"].iter().any(|name| line["name"].as_str().unwrap().starts_with(name));
        assert_eq!(line["done"], if heavy { 1 } else { 3 }, "{line}");
        assert_eq!(line["empty"], 0, "{line}");
        assert!(line["answer_bytes"].as_u64().unwrap() > 2 * line["done"].as_u64().unwrap(), "{line} found something");
    }
}

/// An answer of nothing is quick, and says nothing of the server. `lastpoint` looks back to whatever there is.
#[test]
fn questions_that_find_nothing_are_told() {
    let (daemon, folder) = (Daemon::memory(), tempfile::tempdir().unwrap());
    bench(&daemon, &[&["ingest"], &SET[..]].concat());
    let (json, url) = (folder.path().join("r.json"), format!("http://127.0.0.1:{}", daemon.port()));
    let kinds = ["--kinds", "single-groupby-1-1-1,lastpoint", "--count", "3", "--json", json.to_str().unwrap()];
    let elsewhere = ["--hosts", "7", "--span", "600", "--start", "1604067200"];
    let output = run(&[&["bench", "query", "--url", &url], &kinds[..], &elsewhere].concat());
    let (table, line) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{table}{line}");
    assert!(table.contains("single-groupby-1-1-1: 3 of 3 answers were empty\n"), "{table}");
    assert!(line.contains("all answers of single-groupby-1-1-1 were empty: give the --start"), "{line}");
    let report: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!((&report["lines"][0]["empty"], &report["lines"][1]["empty"]), (&3.into(), &0.into()), "{report}");
}

#[test]
fn what_cannot_be_is_said() {
    let daemon = Daemon::memory();
    let url = format!("http://127.0.0.1:{}", daemon.port());
    let output = run(&["bench", "query", "--url", &url, "--kinds", "nosuch"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("`nosuch` is no kind of question: single-groupby-1-1-1"));
    let output = run(&["bench", "ingest", "--url", &url, "--hosts", "2", "--connections", "3"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("3 --connections need as many --hosts, not 2"));
    let output = run(&["bench", "ingest", "--url", &url, "--gzip", "--protocol", "telnet"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("telnet has none"));
    let output = run(&["bench", "ingest", "--url", &url, "--json", "/nosuch/r.json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty(), "it ran: {}", String::from_utf8_lossy(&output.stdout));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write /nosuch/r.json"));
    // Nothing was written: names are unknown.
    let output = run(&["bench", "query", "--url", &url, "--kinds", "single-groupby-1-1-1", "--count", "2"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("2 of 2 requests failed, first: 400"));
    drop(daemon);
    let output = run(&["bench", "ingest", "--url", &url]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("is the server running there?"));
}

/// A server that closes each connection with its answer, and is gone with the last; its URL.
fn closing(answers: usize, body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut listener = Some(listener);
        for left in (0..answers).rev() {
            let mut stream = listener.as_ref().unwrap().accept().unwrap().0;
            let mut input = BufReader::new(stream.try_clone().unwrap());
            let (mut line, mut length) = (String::new(), 0);
            while line != "\r\n" {
                line.clear();
                assert_ne!(input.read_line(&mut line).unwrap(), 0);
                if let Some(told) = line.strip_prefix("Content-Length: ") {
                    length = told.trim().parse().unwrap();
                }
            }
            input.read_exact(&mut vec![0; length]).unwrap();
            listener = listener.filter(|_| left > 0);
            let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
            stream.write_all((head + body).as_bytes()).unwrap();
        }
    });
    url
}

/// Exit code, the report's lines, and what was said of the end.
fn ended(words: &[&str]) -> (Option<i32>, serde_json::Value, String) {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("r.json");
    let output = run(&[words, &["--json", json.to_str().unwrap()]].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    let report: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(json).expect(&said)).unwrap();
    (output.status.code(), report["lines"].clone(), said)
}

/// Ten requests of ten points, each on a connection of its own.
#[test]
fn a_proxy_that_closes_costs_no_point_and_a_server_that_goes_no_report() {
    let ten = ["--hosts", "1", "--span", "100", "--batch", "10"];
    for (answers, done, failed, gave_up, code) in [(10, 100, 0, 0, 0), (3, 30, 5, 1, 1)] {
        let url = closing(answers, "");
        let (exit, lines, said) = ended(&[&["bench", "ingest", "--url", &url], &ten[..]].concat());
        assert_eq!(exit, Some(code), "{said}");
        let line = &lines[0];
        assert_eq!((&line["done"], &line["failed"]), (&done.into(), &failed.into()), "{line}");
        assert_eq!(line["gave_up"], gave_up, "{line}");
        // Why it cannot be reached is the system's to say: another test's server may have come to its port.
        assert_eq!(said.contains("5 requests failed, first: "), code == 1, "{said}");
    }
}

#[test]
fn kinds_that_were_asked_before_a_server_went_are_told() {
    let url = closing(2, "[{}]");
    let kinds = ["--kinds", "single-groupby-1-1-1,single-groupby-1-8-1", "--count", "2"];
    let (exit, lines, said) = ended(&[&["bench", "query", "--url", &url], &kinds[..]].concat());
    assert_eq!(exit, Some(1), "{said}");
    assert_eq!((lines.as_array().unwrap().len(), &lines[0]["done"]), (1, &2.into()), "{lines}");
    assert!(said.contains("is the server running there?"), "{said}");
}
