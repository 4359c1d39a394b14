//! Bodies made to hurt: deep, wide, long, or much larger than they look.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};

use super::attack::{Attack, each};
use super::slow::{start, wait};
use super::{GROWTH_KIB_MAX, memory_kib};
use crate::daemon::Daemon;
use crate::http::{Client, Response};

/// Everything that reads a body.
const PATHS: [&str; 15] = [
    "/api/put",
    "/api/put?details",
    "/api/rollup",
    "/api/histogram",
    "/api/query",
    "/api/query/last",
    "/api/query/exp",
    "/api/suggest",
    "/api/uid/assign",
    "/api/uid/rename",
    "/api/uid/uidmeta",
    "/api/uid/tsmeta",
    "/api/annotation",
    "/api/annotation/bulk",
    "/api/search/lookup",
];

/// A refusal by an endpoint that may not be there yet.
const REFUSED: &[u16] = &[400, 404, 413, 501];

pub(super) fn all() -> impl Iterator<Item = Attack> {
    PATHS.into_iter().flat_map(|path| deep_and_wide(path).chain(large(path))).chain(points())
}

fn deep_and_wide(path: &'static str) -> impl Iterator<Item = Attack> {
    let texts = [
        ("lists 1,000,000 deep", "[".repeat(1_000_000)),
        ("objects 1,000,000 deep", "{\"a\":".repeat(1_000_000)),
        ("lists 100,000 deep, closed", "[".repeat(100_000) + &"]".repeat(100_000)),
        ("an unknown member 100,000 deep", format!("{{\"z\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000))),
        ("a member 100,000 deep", format!("{{\"queries\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000))),
        ("10,000,000 numbers", format!("[{}0]", "0,".repeat(10_000_000))),
        ("10,000,000 numbers in a member", format!("{{\"queries\":[{}0]}}", "0,".repeat(10_000_000))),
        ("7,000,000 lists", format!("[{}[]]", "[],".repeat(7_000_000))),
        ("500,000 members", format!("{{{}\"z\":0}}", each(500_000, |n| format!("\"a{n}\":0,")))),
        ("an exponent of 100,000 digits", format!("[{{\"value\":1e{}}}]", "9".repeat(100_000))),
        ("a text without an end", format!("{{\"metric\":\"{}", "a".repeat(1_000_000))),
        ("broken escapes", format!("{{\"metric\":\"{}\"}}", "\\ud800".repeat(100_000))),
        ("blanks only", " ".repeat(10_000_000)),
    ];
    let bytes = texts.into_iter().map(|(name, text)| (name, text.into_bytes()));
    let raw = [("no UTF-8", vec![0xFF; 100_000]), ("zeros", vec![0; 1_000_000])];
    let refused = bytes.chain(raw).map(move |(name, body)| Attack::post(name, path, "", body).answered_by(REFUSED));
    // A look-up passes it over, as it does not know the member.
    let long = format!("{{\"startTime\":{}}}", "9".repeat(1_000_000)).into_bytes();
    let statuses = if path == "/api/search/lookup" { &[200] } else { REFUSED };
    refused.chain([Attack::post("a number of 1,000,000 digits", path, "", long).answered_by(statuses)])
}

/// Members of 10 MiB of zeros: each 10 KB of the body is 10 MiB inflated.
fn bomb() -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&vec![0; 10 << 20]).unwrap();
    encoder.finish().unwrap().repeat(1_000)
}

fn large(path: &'static str) -> Vec<Attack> {
    let mut deflate = ZlibEncoder::new(Vec::new(), Compression::best());
    deflate.write_all(&vec![b' '; 256 << 20]).unwrap();
    let mut attacks = vec![
        Attack::post("10 MB of gzip that are 10 GB", path, "Content-Encoding: gzip\r\n", bomb()),
        Attack::post("256 MB of blanks deflated", path, "Content-Encoding: deflate\r\n", deflate.finish().unwrap()),
        Attack::post("gzip that is none", path, "Content-Encoding: gzip\r\n", vec![b'x'; 1_000_000]),
        Attack::post("gzip in gzip", path, "Content-Encoding: gzip, gzip\r\n", vec![b'x'; 100]),
        Attack::post("33 MB announced and sent", path, "", vec![b' '; 33 << 20]),
    ];
    let announced = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", 1_u64 << 30);
    let chunked = format!("POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (name, head, piece) in [
        ("1 GB announced", announced, vec![b' '; 1 << 20]),
        ("1 GB in chunks", chunked, [&b"100000\r\n"[..], &vec![b' '; 1 << 20], b"\r\n"].concat()),
    ] {
        let name = format!("{path}: {name}");
        attacks.push(Attack { name, head: head.into(), body: piece, repeat: 1 << 10, statuses: REFUSED });
    }
    attacks.into_iter().map(|attack| attack.answered_by(REFUSED)).collect()
}

/// Points that are too much in a way of their own.
fn points() -> impl Iterator<Item = Attack> {
    let tags = |count: usize| each(count, |n| format!("\"k{n}\":\"v\",")) + "\"a\":\"b\"";
    let point = |metric: &str, time: &str, value: &str, tags: &str| {
        format!("[{{\"metric\":\"{metric}\",\"timestamp\":{time},\"value\":{value},\"tags\":{{{tags}}}}}]")
    };
    let one = "\"a\":\"b\"";
    let digits = "7".repeat(1_000_000);
    let name = "n".repeat(1_000_000);
    let texts = [
        ("100,000 tags", point("m", "1700000000", "1", &tags(100_000))),
        ("a metric of 1 MB", point(&name, "1700000000", "1", one)),
        ("a tag value of 1 MB", point("m", "1700000000", "1", &format!("\"a\":\"{name}\""))),
        ("a tag key of 1 MB", point("m", "1700000000", "1", &format!("\"{name}\":\"a\""))),
        ("a value of 1,000,000 digits", point("m", "1700000000", &digits, one)),
        ("a text of 1,000,000 digits", point("m", "1700000000", &format!("\"{digits}\""), one)),
        ("a fraction of 1,000,000 digits", point("m", "1700000000", &format!("\"0.{digits}e{digits}\""), one)),
        ("a time of 1,000,000 digits", point("m", &digits, "1", one)),
        ("a negative time", point("m", "-9223372036854775808", "1", one)),
        ("a time beyond 64 bits", point("m", "9223372036854775808", "1", one)),
        ("1,000,000 points", format!("[{}{{}}]", "{},".repeat(1_000_000))),
    ];
    let refused = texts.into_iter().map(|(name, text)| Attack::post(name, "/api/put", "", text.into_bytes()));
    // Of a repeated member the last counts, as in OpenTSDB: this one is a point.
    let repeated = point("m", "1700000000", "1", &(format!("{one},").repeat(100_000) + one));
    let taken = Attack::post("one tag 100,000 times", "/api/put", "", repeated.into_bytes()).answered_by(&[204]);
    refused.chain([taken])
}

const MIB: usize = 1 << 20;

/// Bodies of 4 MiB, two of which fit.
const TWO_FIT: &str =
    "[http]\nmax_body_bytes = 4194304\nbodies_bytes_max = 8388608\n[server]\nidle_timeout_ms = 60000\n";

/// A put of one point in a body of `bytes`.
fn padded(time: usize, bytes: usize) -> Vec<u8> {
    let point = format!(r#"[{{"metric":"held","timestamp":{},"value":1,"tags":{{"a":"b"}}}}]"#, 1_700_000_000 + time);
    let blanks = bytes - point.len();
    [point.into_bytes(), vec![b' '; blanks]].concat()
}

/// A request with such a body, zipped or for the fast path.
fn put(time: usize, bytes: usize, is_zipped: bool) -> Vec<u8> {
    let (mut body, mut headers) = (padded(time, bytes), "");
    if is_zipped {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&body).unwrap();
        (body, headers) = (encoder.finish().unwrap(), "Content-Encoding: gzip\r\n");
    }
    let head = format!("POST /api/put HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
    [head.into_bytes(), body].concat()
}

/// Sends it without its last byte.
fn hold(daemon: &Daemon, request: &[u8]) -> Client {
    let mut client = daemon.client();
    client.raw(&request[..request.len() - 1]).unwrap();
    client
}

/// The answer to it, and whether it is the last of its connection.
fn refusal(mut client: Client) -> (Response, bool) {
    let told = client.read("POST").unwrap();
    let is_last = told.header("Connection") == Some("close");
    assert_eq!(client.get("/api/version").is_err(), is_last);
    (told, is_last)
}

fn held_bytes(daemon: &Daemon) -> usize {
    usize::try_from(daemon.metric("basalt_http_body_bytes")).unwrap()
}

fn points_count(daemon: &Daemon) -> usize {
    let told = daemon.get("/api/query?start=1700000000&end=1700100000&m=sum:held&arrays=true").json();
    told[0]["dps"].as_array().unwrap().len()
}

/// Bodies that wait for their last byte: what does not fit beside them is refused, as what is too large is, and no more than that.
#[test]
fn large_bodies_together_have_a_bound() {
    let (daemon, _folder) = start(TWO_FIT);
    let (large, is_last) = refusal(hold(&daemon, &put(0, 5 * MIB, true)));
    assert_eq!((large.status, is_last, held_bytes(&daemon)), (413, true, 0));
    let before = memory_kib(&daemon, "VmRSS");
    let requests: Vec<Vec<u8>> = (0..3).map(|time| put(time, 4 * MIB, true)).collect();
    let held: Vec<Client> = requests[..2].iter().map(|request| hold(&daemon, request)).collect();
    wait("all is held", || held_bytes(&daemon) == 8 * MIB);
    for _ in 0..60 {
        let mut client = daemon.client();
        client.raw(&requests[2]).unwrap();
        let (told, is_last) = refusal(client);
        assert_eq!((told.status, told.header("Retry-After"), is_last), (503, Some("1"), false), "{}", told.text());
        let error = &told.json()["error"];
        assert_eq!((&error["code"], &error["message"]), (&503.into(), &"Please throttle".into()));
        assert!(error["details"].as_str().unwrap().contains("http.bodies_bytes_max"), "{error}");
    }
    assert!(memory_kib(&daemon, "VmRSS") < before + GROWTH_KIB_MAX);
    // Small ones need no room, and the fast path has no more of it. Those that are small however little memory there is.
    let small_bytes = (64 << 10) - 1;
    for (time, is_zipped) in [(3, true), (4, false)] {
        let mut small = daemon.client();
        small.raw(&put(time, small_bytes, is_zipped)).unwrap();
        assert_eq!(small.read("POST").unwrap().status, 204);
    }
    assert_eq!(refusal(hold(&daemon, &put(5, MIB * 3 / 2, false))).0.status, 503);
    assert_eq!((daemon.metric("basalt_http_bodies_refused_total"), held_bytes(&daemon)), (61, 8 * MIB));
    for (mut client, request) in held.into_iter().zip(&requests) {
        client.raw(&request[request.len() - 1..]).unwrap();
        assert_eq!(client.read("POST").unwrap().status, 204);
        assert_eq!(client.get("/api/version").unwrap().status, 200);
    }
    wait("all is given back", || held_bytes(&daemon) == 0);
    assert_eq!(points_count(&daemon), 4);
    let mut client = daemon.client();
    for request in requests.iter().rev() {
        client.raw(request).unwrap();
        assert_eq!(client.read("POST").unwrap().status, 204);
    }
    assert_eq!(points_count(&daemon), 5);
}

/// On the fast path a body has a share from when it is large until it is answered, however its sender leaves.
#[test]
fn large_bodies_of_plain_puts_have_a_share() {
    let (daemon, _folder) = start(TWO_FIT);
    let request = put(0, MIB * 3 / 2, false);
    let mut held: Vec<Client> = (0..3).map(|_| hold(&daemon, &request)).collect();
    // Who sent for over a second is served by hyper, whose share is rounded up.
    wait("all are held", || (3 * request.len()..=6 * MIB).contains(&held_bytes(&daemon)));
    for mut client in held.drain(..2) {
        client.raw(&request[request.len() - 1..]).unwrap();
        assert_eq!(client.read("POST").unwrap().status, 204);
    }
    wait("two are answered", || held_bytes(&daemon) <= 2 * MIB);
    drop(held);
    wait("all is given back", || held_bytes(&daemon) == 0);
    assert_eq!(daemon.metric("basalt_http_bodies_refused_total"), 0);
}

/// Senders that come again, on the connection that they have, get through, however many they are.
#[test]
fn large_bodies_that_come_again_are_taken() {
    let (daemon, _folder) = start(TWO_FIT);
    std::thread::scope(|scope| {
        for sender in 0..12 {
            let daemon = &daemon;
            scope.spawn(move || {
                let (request, mut client) = (put(sender, 4 * MIB, sender % 2 == 0), daemon.client());
                wait("it is taken", || {
                    client.raw(&request).unwrap();
                    match client.read("POST").unwrap().status {
                        204 => true,
                        503 => false,
                        other => panic!("{other}"),
                    }
                });
            });
        }
    });
    wait("all is given back", || held_bytes(&daemon) == 0);
    assert_eq!(points_count(&daemon), 12);
}
