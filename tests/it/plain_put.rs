//! Puts as collectors send them, which are answered without the router: they and what comes between them on a connection
//! are answered as by the router.

use std::io::Write as _;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::auth::with_tokens;
use crate::daemon::Daemon;
use crate::http::{Client, Response, TIMEOUT};

/// The bytes of a request.
fn request(target: &str, headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("POST {target} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {length}\r\n\r\n{body}").into_bytes()
}

fn point(time: u64, value: &str) -> String {
    format!(r#"[{{"metric":"plain","timestamp":{time},"value":{value},"tags":{{"host":"a"}}}}]"#)
}

const TIME: u64 = 1_700_000_000;

/// How many points there are.
fn count(daemon: &Daemon) -> u64 {
    let end = TIME + 3_000;
    let told = daemon.get(&format!("/api/query?start={TIME}&end={end}&m=sum:plain&arrays=true"));
    told.json()[0]["dps"].as_array().map_or(0, |points| points.len() as u64)
}

/// What tells an answer apart: all but its date, and whether the router may compress it.
fn told(response: &Response) -> (u16, Vec<(String, String)>, String) {
    let mut headers = response.headers.clone();
    headers.retain(|(name, _)| name != "Date");
    headers.sort();
    (response.status, headers, response.text())
}

#[test]
fn a_plain_put_is_answered_as_the_router_answers_it() {
    let daemon = Daemon::memory();
    let bodies = [
        point(TIME, "1"),
        point(TIME, "\"x\""),
        format!("[{},{}]", point(TIME, "2").replace(['[', ']'], ""), r#"{"metric":"plain"}"#),
        "[]".to_owned(),
        "no json".to_owned(),
        "{}".to_owned(),
        "\u{0}".to_owned(),
    ];
    for body in bodies {
        let (mut plain, mut routed) = (daemon.client(), daemon.client());
        plain.raw(&request("/api/put", "", &body)).unwrap();
        // The same endpoint under a name that only the router knows.
        routed.raw(&request("/api/v1/put", "", &body)).unwrap();
        let (plain, routed) = (plain.read("POST").unwrap(), routed.read("POST").unwrap());
        assert_eq!(told(&plain), told(&routed), "{body}");
        assert!(plain.header("Date").is_some_and(|date| date.ends_with(" GMT")), "{body}");
    }
    assert_eq!(count(&daemon), 1);
}

/// How many puts took the short road; `token` may read.
fn plain_count(daemon: &Daemon, token: &str) -> u64 {
    let authorization = format!("Bearer {token}");
    let page = daemon.client().request("GET", "/metrics", &[("Authorization", &authorization)], b"").unwrap().text();
    let value = page.lines().find_map(|line| line.strip_prefix("basalt_http_puts_plain_total "));
    value.unwrap().parse().unwrap()
}

/// Headers of puts where tokens are asked for, and the answer's status; 204 takes the short road.
fn senders(tokens: &[String]) -> Vec<(String, u16)> {
    let [guest, reader, putonly, writer, administrator] = tokens else { panic!("{tokens:?}") };
    let basic = |name: &str, token: &str| format!("Basic {}", STANDARD.encode(format!("{name}:{token}")));
    let of = |value: &str, status: u16| (format!("Authorization: {value}\r\n"), status);
    vec![
        (String::new(), 401),
        of("", 401),
        of("Bearer", 401),
        of("Bearer 00", 401),
        of("Basic ====", 401),
        of(writer, 401),
        of(&format!("Digest {writer}"), 401),
        of(&format!("Bearer {writer}\u{e9}"), 401),
        of(&basic("reader", writer), 401),
        of(&format!("Bearer {guest}"), 403),
        of(&format!("Bearer {reader}"), 403),
        of(&basic("reader", reader), 403),
        of(&format!("Bearer {putonly}"), 204),
        of(&format!("bearer   {writer}"), 204),
        of(&format!("Bearer {administrator}"), 204),
        of(&basic("putonly", putonly), 204),
    ]
}

/// `P-AUTH`.
#[test]
fn a_plain_put_with_a_token_is_answered_as_the_router_answers_it() {
    let folder = tempfile::tempdir().unwrap();
    let (daemon, tokens) = with_tokens(folder.path(), "");
    let (reader, writer) = (&tokens[1], &tokens[3]);
    let good = format!("Authorization: Bearer {writer}\r\n");
    for (headers, status) in senders(&tokens) {
        let before = plain_count(&daemon, reader);
        let (mut plain, mut routed) = (daemon.client(), daemon.client());
        // What was asked before by somebody who may changes nothing for those after them.
        for headers in [good.as_str(), &headers, &headers] {
            let (body, failing) = (point(TIME, "1"), point(TIME, "\"x\""));
            for body in [body, failing] {
                plain.raw(&request("/api/put", headers, &body)).unwrap();
                routed.raw(&request("/api/v1/put", headers, &body)).unwrap();
                let (plain, routed) = (plain.read("POST").unwrap(), routed.read("POST").unwrap());
                assert_eq!(told(&plain), told(&routed), "{headers}");
                let stored = if body.contains('x') { 400 } else { 204 };
                let expected = if headers == good || status == 204 { stored } else { status };
                assert_eq!(plain.status, expected, "{headers}");
            }
        }
        let expected = if status == 204 { 6 } else { 2 };
        assert_eq!(plain_count(&daemon, reader) - before, expected, "{headers}");
    }
    // Two are hyper's to choose from.
    let (mut client, before) = (daemon.client(), plain_count(&daemon, reader));
    client.raw(&request("/api/put", &format!("{good}Authorization: Bearer 00\r\n"), &point(TIME, "1"))).unwrap();
    assert_eq!(client.read("POST").unwrap().status, 204);
    assert_eq!(plain_count(&daemon, reader), before);
}

#[test]
fn where_nobody_is_asked_a_token_says_nothing() {
    let daemon = Daemon::memory();
    let mut client = daemon.client();
    for authorization in ["", "Authorization: Bearer x\r\n", "Authorization: \r\n"] {
        client.raw(&request("/api/put", authorization, &point(TIME, "1"))).unwrap();
        assert_eq!(client.read("POST").unwrap().status, 204, "{authorization}");
    }
    assert_eq!(plain_count(&daemon, "x"), 3);
}

/// `P-AUTH`: of a connection that was served by a token, the next put is asked again once the file says so.
#[test]
fn a_token_that_is_taken_away_stores_nothing_more() {
    let folder = tempfile::tempdir().unwrap();
    let (daemon, tokens) = with_tokens(folder.path(), "");
    let (reader, writer) = (&tokens[1], &tokens[3]);
    let headers = format!("Authorization: Bearer {writer}\r\n");
    let put = |client: &mut Client, time: u64| {
        client.raw(&request("/api/put", &headers, &point(time, "1"))).unwrap();
        client.read("POST").unwrap().status
    };
    let file = folder.path().join("tokens");
    // At once: a file that is empty for a moment has nobody in it.
    #[expect(clippy::disallowed_methods, reason = "no crash is to be survived here")]
    let replace = |text: &str| {
        let beside = folder.path().join("tokens.new");
        std::fs::write(&beside, text).unwrap();
        std::fs::rename(&beside, &file).unwrap();
    };
    let until = |status: u16| {
        let end = Instant::now() + TIMEOUT;
        // Asked of the router: the connections under test ask nothing meanwhile.
        let authorization = format!("Bearer {writer}");
        let ask = || daemon.client().request("POST", "/api/v1/put", &[("Authorization", &authorization)], b"[]");
        while ask().unwrap().status != status {
            assert!(Instant::now() < end, "never {status}");
        }
    };
    let text = std::fs::read_to_string(&file).unwrap();
    for (word, refused) in [("# writer", 401), ("writer reader", 403)] {
        let (mut client, mut other) = (daemon.client(), daemon.client());
        assert_eq!((put(&mut client, TIME), put(&mut other, TIME)), (204, 204));
        replace(&text.replace("writer writer", word));
        until(refused);
        let before = plain_count(&daemon, reader);
        assert_eq!(put(&mut client, TIME + 1), refused);
        assert_eq!(plain_count(&daemon, reader), before);
        // Given back, it is good again, though its connection is the router's now.
        replace(&text);
        until(400);
        assert_eq!((put(&mut client, TIME), put(&mut other, TIME)), (204, 204));
        assert_eq!(plain_count(&daemon, reader), before + 1);
    }
}

#[test]
fn puts_sent_at_once_are_answered_in_order_and_what_follows_them_too() {
    let daemon = Daemon::memory();
    let mut client = daemon.client();
    let mut bytes = Vec::new();
    for n in 0..20 {
        bytes.extend(request("/api/put", "", &point(TIME + n, if n % 3 == 1 { "\"x\"" } else { "1" })));
    }
    bytes.extend(b"GET /api/version HTTP/1.1\r\nHost: localhost\r\n\r\n");
    bytes.extend(request("/api/put?details", "", &point(TIME + 20, "1")));
    bytes.extend(request("/api/put", "", &point(TIME + 21, "1")));
    client.raw(&bytes).unwrap();
    for n in 0..20 {
        assert_eq!(client.read("POST").unwrap().status, if n % 3 == 1 { 400 } else { 204 }, "{n}");
    }
    assert!(client.read("GET").unwrap().text().contains("version"));
    assert_eq!(client.read("POST").unwrap().text(), r#"{"success":1,"failed":0,"errors":[]}"#);
    assert_eq!(client.read("POST").unwrap().status, 204);
    assert_eq!(count(&daemon), 15);
}

/// A head over the bound is refused by whoever reads it, also where a large buffer is at hand.
#[test]
fn a_head_over_the_bound_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let config = "server.worker_threads = 1\n[http]\nmax_header_bytes = 8192\n";
    let daemon = Daemon::start(&folder.path().join("data"), "memory", config);
    let mut large = daemon.client();
    let points = vec![point(TIME, "1").replace(['[', ']'], ""); 2_000].join(",");
    let asked = |header_bytes: usize| {
        let header = format!("X: {}\r\n", "a".repeat(header_bytes));
        let mut client = daemon.client();
        client.raw(&request("/api/put", &header, &point(TIME, "1"))).unwrap();
        client.read("POST").unwrap().status
    };
    for _ in 0..2 {
        assert_eq!((asked(7_000), asked(10_000)), (204, 431));
        assert_eq!(large.post("/api/put", &format!("[{points}]")).unwrap().status, 204);
    }
}

/// With two threads of puts the second answers for the first when many come at once.
#[test]
fn puts_of_many_senders_at_once_are_each_answered_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(&folder.path().join("data"), "embedded", "server.worker_threads = 2\n");
    let mut clients: Vec<Client> = (0..64).map(|_| daemon.client()).collect();
    let value = |n: u64, sender: usize| if (n + sender as u64).is_multiple_of(5) { "\"x\"" } else { "1" };
    let mut stored = 0;
    for n in 0..30 {
        for (sender, client) in clients.iter_mut().enumerate() {
            let value = value(n, sender);
            stored += u64::from(value == "1");
            let time = TIME + n * 64 + sender as u64;
            // Sometimes two at once, so that an answer must wait for the one before it.
            let last = if n % 4 == 0 { request("/api/put", "", &point(time, "2")) } else { Vec::new() };
            client.raw(&[request("/api/put", "", &point(time, value)), last].concat()).unwrap();
            stored += u64::from(n % 4 == 0 && value != "1");
        }
        for (sender, client) in clients.iter_mut().enumerate() {
            let status = if value(n, sender) == "1" { 204 } else { 400 };
            assert_eq!(client.read("POST").unwrap().status, status, "{n}, {sender}");
            if n % 4 == 0 {
                assert_eq!(client.read("POST").unwrap().status, 204, "{n}, {sender}");
            }
        }
    }
    assert_eq!(count(&daemon), stored);
    // What comes behind a lent answer on a connection is still read and answered.
    for client in &mut clients {
        assert_eq!(client.get("/api/version").unwrap().status, 200);
    }
}

#[test]
fn a_put_may_come_in_pieces_and_a_large_one_too() {
    let daemon = Daemon::memory();
    let bytes = request("/api/put", "", &point(TIME, "1"));
    for cut in [1, 4, 20, bytes.len() - 60, bytes.len() - 1] {
        let mut client = daemon.client();
        client.raw(&bytes[..cut]).unwrap();
        // What was sent is taken before the rest comes.
        assert_eq!(daemon.get("/readyz").status, 200);
        client.raw(&bytes[cut..]).unwrap();
        assert_eq!(client.read("POST").unwrap().status, 204, "{cut}");
        assert_eq!(client.get("/api/version").unwrap().status, 200, "{cut}");
    }
    for points in [1_000, 9_000, 20_000, 40_000] {
        let all: Vec<String> = (0..points).map(|n| point(TIME + n % 2_000, "3").replace(['[', ']'], "")).collect();
        let body = format!("[{}]", all.join(","));
        assert_eq!(daemon.client().post("/api/put", &body).unwrap().status, 204, "{}", body.len());
    }
    assert_eq!(count(&daemon), 2_000);
}

#[test]
fn headers_that_mean_something_keep_their_meaning() {
    let daemon = Daemon::memory();
    let mut client = daemon.client();
    let body = point(TIME, "1");
    client
        .raw(
            format!(
                "POST /api/put HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
                body.len()
            )
            .as_bytes(),
        )
        .unwrap();
    assert_eq!(client.read("HEAD").unwrap().status, 100);
    client.raw(body.as_bytes()).unwrap();
    assert_eq!(client.read("POST").unwrap().status, 204);
    let mut zipped = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    zipped.write_all(point(TIME + 1, "1").as_bytes()).unwrap();
    let zipped = zipped.finish().unwrap();
    let gzip = [("Content-Encoding", "gzip")];
    assert_eq!(daemon.client().request("POST", "/api/put", &gzip, &zipped).unwrap().status, 204);
    let chunked = [("Transfer-Encoding", "chunked")];
    let body = point(TIME + 2, "1");
    assert_eq!(daemon.client().request("POST", "/api/put", &chunked, body.as_bytes()).unwrap().status, 204);
    let mut client: Client = daemon.client();
    client.raw(&request("/api/put", "Connection: close\r\n", &point(TIME + 3, "1"))).unwrap();
    let told = client.read("POST").unwrap();
    assert_eq!((told.status, told.header("Connection")), (204, Some("close")));
    assert!(client.read("POST").is_err(), "it is closed");
    assert_eq!(count(&daemon), 4);
}

#[test]
fn a_lost_terminal_ends_nothing() {
    let daemon = Daemon::memory();
    let told = std::process::Command::new("kill").args(["-HUP", &daemon.pid().to_string()]).status().unwrap();
    assert!(told.success());
    assert_eq!(daemon.post("/api/put", &point(TIME, "1")).status, 204);
    assert!(daemon.terminate().success());
}

#[test]
fn a_server_that_ends_closes_connections_that_wait_for_their_next_put() {
    let daemon = Daemon::memory();
    let (mut idle, mut half) = (daemon.client(), daemon.client());
    assert_eq!(idle.post("/api/put", &point(TIME, "1")).unwrap().status, 204);
    let bytes = request("/api/put", "", &point(TIME + 1, "1"));
    assert_eq!(half.post("/api/put", &point(TIME, "1")).unwrap().status, 204);
    half.raw(&bytes[..bytes.len() - 1]).unwrap();
    assert_eq!(daemon.get("/readyz").status, 200);
    let ending = std::thread::spawn(move || daemon.terminate());
    assert!(idle.read("POST").is_err(), "closed");
    half.raw(&bytes[bytes.len() - 1..]).unwrap();
    let last = half.read("POST").unwrap();
    assert_eq!((last.status, last.header("Connection")), (204, Some("close")));
    assert!(ending.join().unwrap().success());
}

/// Nor for the rest of a head, whatever came before it on the connection: a port scan must not make every restart slow.
#[test]
fn a_server_that_ends_waits_for_no_request_that_has_not_come() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut command = Daemon::command(folder.path(), "memory");
    command.stderr(std::fs::File::create(&log).unwrap());
    let daemon = Daemon::spawn(command);
    let mut waiting = Vec::new();
    for (target, rest) in [
        ("", "GET /api/ver"),
        ("", "POST /api/pu"),
        ("/api/put", "POST /api/pu"),
        ("/api/put?details", "G"),
        ("/api/put", "\r\n"),
    ] {
        let mut client = daemon.client();
        if !target.is_empty() {
            client.raw(&request(target, "", &point(TIME, "1"))).unwrap();
            assert!(client.read("POST").unwrap().status < 300);
        }
        client.raw(rest.as_bytes()).unwrap();
        waiting.push(client);
    }
    assert_eq!(daemon.get("/readyz").status, 200);
    assert!(daemon.terminate().success());
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains("stopped cleanly") && !log.contains("still open"), "{log}");
}

/// A relay that passes on that its client has said everything, or a sender that ends: what is stored counts as stored.
#[test]
fn a_put_goes_to_its_end_though_its_sender_leaves() {
    let folder = tempfile::tempdir().unwrap();
    // Its log is synced while the sender leaves.
    let daemon = Daemon::start(&folder.path().join("data"), "embedded", "");
    for host in 0..20 {
        let mut stream = daemon.connect();
        let body = point(TIME, "1").replace("\"a\"", &format!("\"{host}\""));
        stream.write_all(&request("/api/put?details", "", &body)).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        drop(std::io::Read::read(&mut stream, &mut [0; 64]));
    }
    let count = |what: &str| daemon.metric(&format!("basalt_points_{what}}}"));
    let (mut received, mut stored, mut failed) = (1, 0, 0);
    while received > stored + failed {
        // Each is a page of its own, and points come in meanwhile: what came in is read behind what became of it.
        stored = count("stored_total{door=\"http\"");
        failed = count("failed_total{door=\"http\",reason=\"timed_out\"");
        received = count("received_total{door=\"http\"");
    }
    assert_eq!((stored, failed), (received, 0));
}
