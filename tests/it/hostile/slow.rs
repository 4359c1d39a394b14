//! Clients that send a byte at a time, or stop reading: they cost little, end, and harm nobody.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::attack::serves;
use super::{GROWTH_KIB_MAX, memory_given_back, memory_kib};
use crate::daemon::Daemon;

/// Between two askings of `wait`, so that whoever waits does not keep the daemon busy.
const PAUSE: Duration = Duration::from_millis(20);

/// Waits until `ask` is so.
pub(super) fn wait(what: &str, mut ask: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_mins(1);
    while !ask() {
        assert!(Instant::now() < until, "{what}");
        // Nobody wakes it.
        std::thread::park_timeout(PAUSE);
    }
}

pub(super) fn start(config: &str) -> (Daemon, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(&folder.path().join("data"), "memory", config);
    (daemon, folder)
}

/// Whether the daemon serves somebody else, who comes again after being held up for longer than a connection may be idle.
fn serves_again(daemon: &Daemon) -> bool {
    (0..3).any(|_| serves(daemon))
}

/// Whether the server has ended the connection. It blocks no more afterwards.
fn ended(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let mut rest = [0; 4096];
    loop {
        match stream.read(&mut rest) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(cause) => return cause.kind() != std::io::ErrorKind::WouldBlock,
        }
    }
}

/// Slow-loris: heads and bodies that come a byte at a time.
#[test]
fn connections_that_trickle_end_and_harm_nobody() {
    let (daemon, _folder) = start("[server]\nheader_timeout_ms = 1000\nidle_timeout_ms = 1000\n");
    assert!(serves_again(&daemon));
    let before = memory_kib(&daemon, "VmRSS");
    let openings: [&[u8]; 4] = [
        // A telnet line that has nearly the length at which it is refused.
        &[b'a'; 1_000],
        b"GET /api/version HTTP/1.1\r\nX-A: ",
        b"POST /api/put HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n[",
        b"POST /api/put HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n[\r\n",
    ];
    let mut slow: Vec<TcpStream> = (0..400).map(|_| daemon.connect()).collect();
    for (stream, opening) in slow.iter_mut().zip(openings.iter().cycle()) {
        stream.write_all(opening).unwrap();
    }
    let while_open = memory_kib(&daemon, "VmRSS");
    println!("{} connections: {before} -> {while_open} KiB", slow.len());
    assert!(while_open.saturating_sub(before) < 32 << 10);
    // Some bytes now and then do not keep a head alive for ever.
    wait("slow connections end", || {
        assert!(serves_again(&daemon), "another client");
        for stream in &mut slow {
            let _gone = stream.write_all(b"aaaaaaaa");
        }
        slow.retain_mut(|stream| !ended(stream));
        slow.is_empty()
    });
}

/// A limit of 0 is none: for the first byte, within a head, within a body, between requests, and on the road of plain puts.
#[test]
fn a_timeout_of_nought_is_forever() {
    let (daemon, _folder) = start("[server]\nheader_timeout_ms = 0\nidle_timeout_ms = 0\n");
    let put = "POST /api/put HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n[]";
    let get = "GET /api/version HTTP/1.1\r\nHost: x\r\n\r\n";
    let late = "POST /api/query HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}";
    for request in [put, get, late] {
        let mut stream = daemon.connect();
        for pass in 0..2 {
            for piece in request.as_bytes().chunks(request.len() - 1) {
                // The wait for a byte that does not come is the silence.
                stream.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
                let silent = stream.read(&mut [0]).unwrap_err().kind();
                assert!(matches!(silent, std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut), "{request}");
                stream.write_all(piece).unwrap();
            }
            stream.set_read_timeout(Some(crate::http::TIMEOUT)).unwrap();
            let mut answer = [0; 4096];
            let bytes = stream.read(&mut answer).unwrap();
            let answer = String::from_utf8_lossy(&answer[..bytes]);
            assert!(
                answer.starts_with("HTTP/1.1 ") && !answer.starts_with("HTTP/1.1 408"),
                "{pass} {request}: {answer}"
            );
        }
    }
    assert!(serves(&daemon));
}

/// A body whose pieces come slower than any line carries them.
#[test]
fn a_body_that_trickles_is_given_up() {
    let (daemon, _folder) = start("[server]\nidle_timeout_ms = 500\n");
    let mut slow = daemon.connect();
    slow.write_all(b"POST /api/put HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n").unwrap();
    wait("it is given up", || {
        let _gone = slow.write_all(b" ");
        ended(&mut slow)
    });
    assert!(serves_again(&daemon));
}

/// Readers that stop in the middle of large answers: of queries, which hold a seat, and of others.
#[test]
fn readers_that_stop_lose_their_answer_and_harm_nobody() {
    let (daemon, _folder) = start("[server]\nidle_timeout_ms = 60000\n[query]\nmax_concurrent = 2\nmax_waiting = 2\n");
    let mut other = daemon.client();
    for hour in 0..10 {
        let points: Vec<_> = (0..20_000)
            .map(|n| serde_json::json!({ "metric": "m", "timestamp": 1_700_000_000 + hour * 20_000 + n, "value": n, "tags": { "a": "b" } }))
            .collect();
        assert_eq!(other.post("/api/put", &serde_json::json!(points).to_string()).unwrap().status, 204);
    }
    let head = b"GET /api/query?start=1&end=1800000000&m=sum:m&ms&arrays HTTP/1.1\r\nHost: x\r\n\r\n";
    let mut stopped: Vec<TcpStream> = (0..8).map(|_| daemon.connect()).collect();
    for stream in &mut stopped {
        stream.write_all(head).unwrap();
    }
    // Seats come free again though nobody reads: long before the minute that an idle connection has.
    let until = Instant::now() + Duration::from_secs(30);
    while !serves(&daemon) {
        assert!(Instant::now() < until, "stopped readers hold all seats");
    }
    assert!(serves(&daemon));
    assert_eq!(daemon.get("/healthz").status, 200);
}

/// An answer that is no query's: the connection ends when its reader has stopped for as long as one may be idle.
#[test]
fn a_connection_whose_reader_stopped_ends() {
    let (daemon, _folder) = start("[server]\nidle_timeout_ms = 1000\n");
    let open = |daemon: &Daemon| daemon.metric("basalt_connections_open");
    assert!(serves_again(&daemon));
    // The connection that asks is one itself.
    wait("others close", || open(&daemon) <= 1);
    let mut stream = daemon.connect();
    // Pipelined requests whose answers are more than sockets hold; what is written counts, not what is read.
    let request = b"GET /api/config HTTP/1.1\r\nHost: x\r\n\r\n".repeat(100);
    stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
    while stream.write_all(&request).is_ok() {}
    wait("the connection is closed", || open(&daemon) <= 1);
    assert!(serves_again(&daemon));
}

/// Telnet: commands without end whose replies nobody reads, and lines without end.
#[test]
fn telnet_peers_that_do_not_read_are_bounded() {
    let (daemon, _folder) = start("[telnet]\nidle_timeout_ms = 1000\n");
    assert!(serves(&daemon));
    let before = memory_kib(&daemon, "VmRSS");
    let mut stats = daemon.connect();
    stats.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
    while stats.write_all(&b"stats\n".repeat(1000)).is_ok() {}
    let mut bad = daemon.connect();
    bad.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
    let wrong = b"put x 1 1\n".repeat(10_000);
    for _ in 0..20 {
        let _stopped = bad.write_all(&wrong);
    }
    let mut endless = daemon.connect();
    let _closed = endless.write_all(&vec![b'a'; 8 << 20]);
    assert!(serves(&daemon), "another client");
    let after = memory_given_back(&daemon, before + GROWTH_KIB_MAX);
    assert!(after <= before + GROWTH_KIB_MAX, "{before} -> {after} KiB");
}
