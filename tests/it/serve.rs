//! `basalt serve`: start, routing, errors, bounds, end.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::path::Path;
use std::process::{Command, Stdio};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::daemon::{Daemon, run};

fn check_error(daemon: &Daemon, method: &str, path: &str, status: u16, body: &str) {
    let answer = daemon.client().request(method, path, &[], b"").unwrap();
    assert_eq!((answer.status, answer.text().as_str()), (status, body), "{method} {path}");
}

#[test]
fn a_started_daemon_is_ready_and_sigterm_ends_it_well() {
    let daemon = Daemon::memory();
    assert_ne!(daemon.port(), 0);
    assert_eq!(daemon.get("/healthz").status, 200);
    assert_eq!(daemon.get("/readyz").json()["status"], "ready");
    assert_eq!(daemon.terminate().code(), Some(0));
}

#[test]
fn a_silent_connection_does_not_hold_up_the_end() {
    let daemon = Daemon::memory();
    let mut silent = daemon.connect();
    let mut idle_telnet = daemon.connect();
    idle_telnet.write_all(b"help\n").unwrap();
    idle_telnet.read_exact(&mut [0; 9]).unwrap();
    assert_eq!(daemon.terminate().code(), Some(0));
    assert_eq!(silent.read(&mut [0]).unwrap_or(0), 0);
}

/// Standard error is a pipe that was full before the start: no line of the log gets out before somebody reads.
#[test]
fn nobody_waits_for_who_reads_the_log() {
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(&vec![b'x'; 64 << 10]).unwrap();
    let mut command = Daemon::command(Path::new("basalt-data"), "memory");
    command.args(["--log-level", "debug"]).stderr(writer.try_clone().unwrap());
    let daemon = Daemon::spawn(command);
    for _ in 0..50 {
        // A TLS handshake is told in the log.
        daemon.connect().write_all(&[0x16]).unwrap();
        assert_eq!(daemon.get("/api/version").status, 200);
    }
    assert_eq!(daemon.terminate().code(), Some(0));

    let mut command = Daemon::command(Path::new("basalt-data"), "memory");
    command.stderr(writer);
    let daemon = Daemon::spawn(command);
    let reading = std::thread::spawn(move || {
        let mut said = String::new();
        reader.read_to_string(&mut said).map(|_| said)
    });
    assert_eq!(daemon.terminate().code(), Some(0));
    let said = reading.join().unwrap().unwrap();
    assert!(said.contains("stopped cleanly"), "the last lines come out where they are read: {said}");
}

/// Standard output is a file on a full disk, a pipe without a reader, and one that was full before the start.
#[test]
fn nobody_waits_for_who_reads_the_address() {
    let (_reader, mut full) = std::io::pipe().unwrap();
    full.write_all(&vec![b'x'; 64 << 10]).unwrap();
    let (_, broken) = std::io::pipe().unwrap();
    let disk = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    for output in [Stdio::from(disk), broken.into(), full.into()] {
        let mut command = Daemon::command(Path::new("basalt-data"), "memory");
        command.stdout(output);
        let daemon = Daemon::spawn_unread(command);
        assert_eq!(daemon.get("/api/version").status, 200);
        assert_eq!(daemon.terminate().code(), Some(0));
    }
}

#[test]
fn a_port_in_use_is_exit_1_and_one_line() {
    let daemon = Daemon::memory();
    let output = run(&["serve", "--store", "memory", "--listen", &format!("127.0.0.1:{}", daemon.port())]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    // Where memory is scarce, the log tells of its shares before.
    let lines: Vec<&str> = said.lines().filter(|line| !line.contains("are shares of it")).collect();
    assert!(lines.len() == 1 && lines[0].contains("port in use"), "{said}");
}

/// Threads that cannot be started are met by panics of those who start them, and later by answers of 500.
#[test]
fn a_start_without_room_for_its_threads_is_exit_1_and_names_the_limit() {
    let served = Daemon::command(Path::new("basalt-data"), "memory");
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -v 600000 && exec \"$0\" \"$@\""]).arg(served.get_program()).args(served.get_args());
    // Of stacks so large the last one that fails leaves room for all else, of which a lack ends a program in no words of ours.
    limited.env("BASALT_SERVER__WORKER_THREADS", "256").env("RUST_MIN_STACK", (64 << 20).to_string());
    let output = limited.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    let last = said.lines().last().unwrap_or_default();
    assert!(last.starts_with("basalt: ") && last.contains("`ulimit -v`, now 600000 KiB"), "{said}");
}

/// `H-ROUTE-V1`, `H-404`.
#[test]
fn paths_are_read_as_opentsdb_reads_them() {
    let daemon = Daemon::memory();
    for path in ["/api/version", "/api/v1/version", "/API/Version/", "/api/version?jsonx=1", "//api//version"] {
        let answer = daemon.get(path);
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.header("content-type"), Some("application/json; charset=UTF-8"));
        assert_eq!(answer.json()["version"], "2.4.1");
    }
    let higher = r#"{"error":{"code":501,"message":"Requested API version is greater than the max implemented","details":"API version [2] is greater than the max [1]"}}"#;
    check_error(&daemon, "GET", "/api/v2/version", 501, higher);
    for path in ["/api/nope", "/api", "/api/vx/version"] {
        check_error(&daemon, "GET", path, 404, r#"{"error":{"code":404,"message":"Endpoint not found"}}"#);
    }
    check_error(&daemon, "GET", "/nope?json", 404, r#"{"err":"Page Not Found"}"#);
    assert!(daemon.get("/nope").header("content-type").unwrap().starts_with("text/html"));
}

/// `H-405`.
#[test]
fn a_method_that_is_not_for_an_endpoint_is_405_in_opentsdbs_words() {
    let daemon = Daemon::memory();
    for (method, path) in
        [("DELETE", "/api/version"), ("PATCH", "/api/version"), ("GET", "/api/put"), ("PUT", "/api/query")]
    {
        let details = format!("The HTTP method [{method}] is not permitted for this endpoint");
        let body = format!(r#"{{"error":{{"code":405,"message":"Method not allowed","details":"{details}"}}}}"#);
        check_error(&daemon, method, path, 405, &body);
    }
}

/// OpenTSDB does not look at what follows the JSON of a body, such as the NUL of a C client. Here it may be a lost part of what is to be
/// stored: a request that changes nothing leaves it alone, another one refuses it unless strict, a put always, but for a NUL.
#[test]
fn what_follows_the_json_of_a_body_is_left_alone_by_what_reads_and_refused_by_what_writes_unless_strict() {
    const POINT: &str = r#"{"metric":"m","timestamp":1700000000,"value":1,"tags":{"a":"b"}}"#;
    const READS: [(&str, &str); 6] = [
        ("/api/query", r#"{"start":1699999999,"end":1700000001,"queries":[{"aggregator":"sum","metric":"m"}]}"#),
        ("/api/query/last", r#"{"queries":[{"metric":"m"}],"resolveNames":true}"#),
        (
            "/api/query/exp",
            r#"{"time":{"start":"1699999999","end":"1700000001","aggregator":"sum"},"metrics":[{"id":"a","metric":"m"}],
                "expressions":[{"id":"e","expr":"a"}],"outputs":[{"id":"e"}]}"#,
        ),
        ("/api/suggest", r#"{"type":"metrics"}"#),
        ("/api/search/lookup", r#"{"metric":"m"}"#),
        ("/api/tree/test", r#"{"treeId":1,"tsuids":["000001000001000001"]}"#),
    ];
    // `#` is another text each time.
    const WRITES: [(&str, &str); 6] = [
        ("/api/annotation", r##"{"startTime":1700000000,"description":"#"}"##),
        ("/api/annotation/bulk", r##"[{"startTime":1700000001,"description":"#"}]"##),
        ("/api/uid/assign", r#"{"metric":["n#"]}"#),
        ("/api/tree", r##"{"treeId":1,"description":"#"}"##),
        ("/api/tree/rule", r##"{"treeId":1,"level":0,"order":0,"type":"METRIC","description":"#"}"##),
        ("/api/tree/rules", r##"[{"treeId":1,"level":0,"order":1,"type":"METRIC","description":"#"}]"##),
    ];
    for strict in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let daemon = Daemon::start(&folder.path().join("data"), "memory", &format!("[compat]\nstrict = {strict}\n"));
        assert_eq!(daemon.post("/api/put", POINT).status, 204);
        assert_eq!(daemon.post("/api/tree", r#"{"name":"t"}"#).status, 200);
        for (count, rest) in ["\0", "}", "x", " [{}]"].into_iter().enumerate() {
            for (path, body) in READS {
                let [plain, more] = [body.to_owned(), format!("{body}{rest}")].map(|body| daemon.post(path, &body));
                assert_eq!((plain.status, more.status), (200, 200), "{path} {rest:?} {strict}: {}", more.text());
            }
            for (path, body) in WRITES {
                let body = body.replace('#', &count.to_string());
                let answer = daemon.post(path, &format!("{body}{rest}"));
                let (status, text) = (answer.status, answer.text());
                if strict {
                    assert!((200..300).contains(&status), "{path} {rest:?}: {status} {text}");
                } else {
                    assert!(
                        status == 400 && text.contains("Something follows the JSON"),
                        "{path} {rest:?}: {status} {text}"
                    );
                    assert!((200..300).contains(&daemon.post(path, &body).status), "{path} {body}");
                }
            }
            let status = if rest == "\0" { 204 } else { 400 };
            assert_eq!(daemon.post("/api/put", &format!("{POINT}{rest}")).status, status, "{rest:?} {strict}");
        }
    }
}

/// No page of OpenTSDB's, which says 400: a program asks here.
#[test]
fn what_operators_read_is_only_read() {
    let daemon = Daemon::memory();
    for path in ["/healthz", "/readyz", "/metrics", "/Metrics/x?json"] {
        for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
            let answer = daemon.client().request(method, path, &[], b"").unwrap();
            assert_eq!((answer.status, answer.header("Allow")), (405, Some("GET, HEAD")), "{method} {path}");
            assert_eq!(answer.header("Content-Type"), Some("text/plain; charset=utf-8"));
            assert_eq!(answer.text(), "this is only read: GET or HEAD\n");
        }
        assert_eq!(daemon.get(path).status, 200, "{path}");
    }
    check_error(&daemon, "DELETE", "/version?json", 400, r#"{"err":"Method not allowed"}"#);
}

#[test]
fn answers_are_compressed_on_request_and_carry_safety_headers() {
    let daemon = Daemon::memory();
    let answer = daemon.client().request("GET", "/api/config", &[("Accept-Encoding", "gzip")], b"").unwrap();
    assert_eq!(answer.header("content-encoding"), Some("gzip"));
    assert_eq!(answer.json()["tsd.storage.salt.width"], "1");
    for path in ["/", "/api/version", "/api/nope", "/nope"] {
        let answer = daemon.get(path);
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert!(answer.header("content-security-policy").unwrap().contains("'self'"), "{path}");
    }
}

/// `H-GZIP-OUT`: by `deflate` what does not ask for gzip, or rather has it.
#[test]
fn answers_are_deflated_where_that_is_preferred() {
    let daemon = Daemon::memory();
    for (accepted, coding) in [
        ("deflate", Some("deflate")),
        ("br, deflate", Some("deflate")),
        ("gzip;q=0.5, deflate", Some("deflate")),
        ("deflate, gzip", Some("gzip")),
        ("identity", None),
    ] {
        let answer = daemon.client().request("GET", "/api/config", &[("Accept-Encoding", accepted)], b"").unwrap();
        assert_eq!(answer.header("content-encoding"), coding, "{accepted}");
        if coding == Some("deflate") {
            let config: Value = serde_json::from_reader(ZlibDecoder::new(&answer.body[..])).unwrap();
            assert_eq!(config["tsd.storage.salt.width"], "1");
        }
    }
}

/// `F-CONF`
#[test]
fn connections_without_a_limit_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(&folder.path().join("data"), "memory", "[server]\nmax_connections = 0\n");
    let mut held = [daemon.client(), daemon.client(), daemon.client()];
    for client in &mut held {
        assert_eq!(client.get("/healthz").unwrap().status, 200);
    }
}

#[test]
fn too_many_connections_are_closed_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(&folder.path().join("data"), "memory", "[server]\nmax_connections = 2\n");
    let mut held = [daemon.client(), daemon.client()];
    for client in &mut held {
        assert_eq!(client.get("/healthz").unwrap().status, 200);
    }
    assert_eq!(daemon.connect().read(&mut [0]).unwrap_or(0), 0);
    let page = held[0].get("/metrics").unwrap().text();
    assert!(page.contains("\nbasalt_connections_rejected_total 1\n"), "{page}");
}

/// `nc -N` and busybox's `nc` close their half behind the last byte that they send.
#[test]
fn who_sends_no_more_is_answered_all_the_same() {
    let daemon = Daemon::memory();
    let point = r#"{"metric":"m","timestamp":1700000000,"value":1,"tags":{"host":"a"}}"#;
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(point.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    let post = |path: &str, header: &str, body: &[u8]| {
        let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\n{header}Content-Length: {}\r\n\r\n", body.len());
        [head.as_bytes(), body].concat()
    };
    let asked = [
        (post("/api/put", "", point.as_bytes()), 204),
        (post("/api/put?summary", "", point.as_bytes()), 200),
        (post("/api/put", "Content-Encoding: gzip\r\n", &packed), 204),
        (b"GET /api/suggest?type=metrics HTTP/1.0\r\n\r\n".to_vec(), 200),
        (b"GET /metrics HTTP/1.0\r\n\r\n".to_vec(), 200),
        (b"GET /api/query?start=1700000000&m=sum:m HTTP/1.0\r\n\r\n".to_vec(), 200),
    ];
    for (request, status) in asked {
        let mut stream = daemon.connect();
        stream.write_all(&request).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut told = String::new();
        stream.read_to_string(&mut told).unwrap();
        let request = String::from_utf8_lossy(&request);
        assert_eq!(told.split(' ').nth(1), Some(status.to_string().as_str()), "{request}: {told}");
    }
}
