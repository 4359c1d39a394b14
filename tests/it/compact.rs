//! `basalt compact --url`: a running server flushes and compacts, and says how it went.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};

use crate::auth::with_tokens;
use crate::daemon::{Daemon, run};

fn url(daemon: &Daemon) -> String {
    format!("http://127.0.0.1:{}", daemon.port())
}

/// The exit code, what stands on standard output, and what on standard error.
fn told(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// `compact`, with this token in its environment.
fn with_token(url: &str, token: &str) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_basalt"));
    command.args(["compact", "--url", url]).env("BASALT_TOKEN", token).stdin(Stdio::null());
    told(&command.output().unwrap())
}

#[test]
fn a_running_server_compacts_and_serves_on() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let daemon = Daemon::start(&data, "embedded", "");
    let url = url(&daemon);
    let shell = |command: &str| {
        let output = run(&["shell", "--url", &url, "--json", "-e", command]);
        told(&output).1
    };
    let files = || {
        let listed = shell("list_regions 'tsdb'");
        let objects = listed.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        objects.map(|region| region["files"].as_u64().unwrap()).sum::<u64>()
    };
    // Two files of one region, and points that are in memory still.
    for second in 0..3 {
        daemon.talk(&format!("put c.m {} {second} host=a\n", 1_356_998_400 + second));
        if second < 2 {
            shell("flush 'tsdb'");
        }
    }
    assert_eq!(files(), 2);
    let (code, out, err) = told(&run(&["compact", "--url", &url, "--table", "tsdb"]));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert!(out.starts_with("tsdb: ") && out.ends_with(" in files\n") && out.lines().count() == 1, "{out}");
    assert_eq!(files(), 1);
    let region: serde_json::Value = serde_json::from_str(shell("list_regions 'tsdb'").lines().next().unwrap()).unwrap();
    assert_eq!(region["memtable_bytes"], 0);
    let answer = daemon.get("/api/query?start=1356998400&end=1356998403&m=sum:c.m").json();
    assert_eq!(answer[0]["dps"], serde_json::json!({"1356998400": 0, "1356998401": 1, "1356998402": 2}));

    let (code, out, _) = told(&run(&["compact", "--url", &url]));
    assert_eq!(code, Some(0));
    let tables: Vec<&str> = out.lines().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(tables, ["tsdb", "tsdb-meta", "tsdb-tree", "tsdb-uid"]);
    // The same lines as of the folder.
    assert!(daemon.terminate().success());
    let (code, alone, _) = told(&run(&["compact", "--data-dir", data.to_str().unwrap()]));
    let shape = |out: &str| out.chars().filter(|letter| !letter.is_ascii_digit()).collect::<String>();
    assert_eq!((code, shape(&alone)), (Some(0), shape(&out)));
}

#[test]
fn what_is_no_server_and_what_is_no_table_is_told() {
    let daemon = Daemon::memory();
    let url = url(&daemon);
    let (code, out, err) = told(&run(&["compact", "--url", &url, "--table", "nope"]));
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert_eq!(err, "basalt: there is no table `nope`; there are: tsdb, tsdb-meta, tsdb-tree, tsdb-uid\n");
    let (code, _, err) = told(&run(&["compact", "--url", "https://localhost/x"]));
    assert_eq!(code, Some(2));
    assert!(err.contains("http://HOST:PORT is expected"), "{err}");
    let (code, _, err) = told(&run(&["compact", "--url", &url, "--data-dir", "x"]));
    assert_eq!((code, err.contains("cannot be used with")), (Some(2), true), "{err}");
    assert!(daemon.terminate().success());
    let (code, _, err) = told(&run(&["compact", "--url", &url]));
    assert_eq!(code, Some(1));
    assert!(err.contains("cannot reach 127.0.0.1:") && err.contains("is the server running there?"), "{err}");
}

#[test]
fn a_token_that_is_refused_is_told_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let (daemon, tokens) = with_tokens(folder.path(), "");
    let url = url(&daemon);
    for (token, status) in [("00", "401"), (tokens[3].as_str(), "403")] {
        let (code, out, err) = with_token(&url, token);
        assert_eq!((code, out.as_str()), (Some(1), ""), "{err}");
        assert!(err.contains(status) && err.contains("set BASALT_TOKEN to an administrator's token"), "{err}");
    }
    let (code, out, err) = with_token(&url, &tokens[4]);
    assert_eq!((code, out.lines().count()), (Some(0), 4), "{err}");
}

/// A whole answer, as a server of this test gives it.
fn whole(status: &str, said: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{said}", said.len()).into_bytes()
}

/// A server that lists two tables, compacts the first, answers this to the second, and ends.
fn after_one_table(ending: &[u8]) -> (Option<i32>, String, String) {
    let list = whole("200 OK", "{\"table\":\"a\"}\n{\"table\":\"b\"}\n\0{\"end\":false}");
    let first = whole("200 OK", "a: 2 bytes in files and memory, now 1 in files\n\0{\"end\":false}");
    answered(&["compact"], vec![list, first, ending.to_vec()])
}

/// What a command says to a server that gives these answers, and ends.
fn answered(words: &[&str], answers: Vec<Vec<u8>>) -> (Option<i32>, String, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        for answer in answers {
            let mut stream = BufReader::new(listener.accept().unwrap().0);
            let (mut line, mut length) = (String::new(), 0);
            while line != "\r\n" {
                line.clear();
                stream.read_line(&mut line).unwrap();
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
            }
            stream.read_exact(&mut vec![0; length]).unwrap();
            stream.get_mut().write_all(&answer).unwrap();
        }
    });
    let output = told(&run(&[words, &["--url", &url]].concat()));
    server.join().unwrap();
    output
}

#[test]
fn a_server_that_dies_half_way_is_told_with_what_was_done() {
    let begun = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let without_end = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nb:";
    for ending in [&b""[..], begun, without_end] {
        let (code, out, err) = after_one_table(ending);
        assert_eq!(code, Some(1));
        assert_eq!(out, "a: 2 bytes in files and memory, now 1 in files\n");
        assert!(err.starts_with("basalt: cannot compact `b`: 127.0.0.1:"), "{err}");
        assert!(err.contains("the answer broke off") && err.contains("run this again"), "{err}");
    }
}

#[test]
fn a_server_that_is_busy_is_exit_75_and_a_failure_has_the_servers_own_code() {
    let busy = r#"{"error":{"code":503,"message":"Please throttle","details":"all run"}}"#;
    let (code, _, err) = after_one_table(&whole("503 Service Unavailable", busy));
    assert_eq!(code, Some(75), "{err}");
    assert!(err.contains("Please throttle: all run"), "{err}");
    let (code, _, err) = answered(&["shell", "-e", "list"], vec![whole("503 Service Unavailable", busy)]);
    assert_eq!(code, Some(75), "{err}");
    assert!(err.contains("line 1") && err.contains("Please throttle: all run"), "{err}");
    let damaged = "\0{\"exit\":5,\"failed\":\"cannot compact `b`: damage\"}";
    let (code, _, err) = after_one_table(&whole("200 OK", damaged));
    assert_eq!((code, err.as_str()), (Some(5), "basalt: cannot compact `b`: damage\n"));
}
