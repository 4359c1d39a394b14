//! Bodies made to hurt: deep, wide, long, or much larger than they look.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};

use super::attack::{Attack, each};

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
        ("a number of 1,000,000 digits", format!("{{\"startTime\":{}}}", "9".repeat(1_000_000))),
        ("an exponent of 100,000 digits", format!("[{{\"value\":1e{}}}]", "9".repeat(100_000))),
        ("a text without an end", format!("{{\"metric\":\"{}", "a".repeat(1_000_000))),
        ("broken escapes", format!("{{\"metric\":\"{}\"}}", "\\ud800".repeat(100_000))),
        ("blanks only", " ".repeat(10_000_000)),
    ];
    let bytes = texts.into_iter().map(|(name, text)| (name, text.into_bytes()));
    let raw = [("no UTF-8", vec![0xFF; 100_000]), ("zeros", vec![0; 1_000_000])];
    bytes.chain(raw).map(move |(name, body)| Attack::post(name, path, "", body).answered_by(REFUSED))
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
