//! One request made to hurt, and those whose head does.

use std::io::{self, BufReader, Read, Write};
use std::time::Duration;

use crate::daemon::Daemon;
use crate::http::Client;

/// How long a refusal may take on a busy machine; the lab asserts less.
const PATIENCE: Duration = Duration::from_secs(20);

/// A request: its head as bytes, its body as often as told.
pub(super) struct Attack {
    pub(super) name: String,
    pub(super) head: Vec<u8>,
    /// Written again and again until this many bytes are gone or nobody takes them.
    pub(super) body: Vec<u8>,
    pub(super) repeat: usize,
    /// What may answer it.
    pub(super) statuses: &'static [u16],
}

/// A bad request, or one that is too much.
pub(super) const REFUSED: &[u16] = &[400, 413];

impl Attack {
    /// A request with a body of known length; `headers` end with a line end each.
    pub(super) fn post(name: &str, path: &str, headers: &str, body: Vec<u8>) -> Self {
        let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n{headers}\r\n", body.len());
        Self { name: format!("{path}: {name}"), head: head.into(), body, repeat: 1, statuses: REFUSED }
    }

    pub(super) fn get(name: &str, target: &str) -> Self {
        let head = format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n");
        Self { name: name.to_owned(), head: head.into(), body: Vec::new(), repeat: 0, statuses: REFUSED }
    }

    pub(super) fn answered_by(self, statuses: &'static [u16]) -> Self {
        Self { statuses, ..self }
    }

    /// Sends it on a connection of its own and reads the status. A server may answer and close before it has read all:
    /// then writing fails, and the answer is there all the same.
    pub(super) fn make(&self, daemon: &Daemon) -> io::Result<u16> {
        let mut stream = daemon.connect();
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let _all_taken =
            stream.write_all(&self.head).is_ok() && (0..self.repeat).all(|_| stream.write_all(&self.body).is_ok());
        let mut status = [0; 12];
        BufReader::new(stream).read_exact(&mut status)?;
        String::from_utf8_lossy(&status[9..]).parse().map_err(io::Error::other)
    }
}

/// `count` texts, one after another.
pub(super) fn each(count: usize, text: impl Fn(usize) -> String) -> String {
    (0..count).map(text).collect::<Vec<_>>().concat()
}

/// Heads that are too long, or too many lines.
pub(super) fn heads() -> Vec<Attack> {
    const TOO_LARGE: &[u16] = &[400, 414, 431];
    let raw = |name: &str, head: String| Attack {
        name: name.to_owned(),
        head: head.into(),
        body: Vec::new(),
        repeat: 0,
        statuses: TOO_LARGE,
    };
    let long = "a".repeat(1 << 20);
    let lines = each(100_000, |place| format!("X-{place}: y\r\n"));
    let same = "Content-Length: 5\r\n".repeat(100_000);
    let pairs = each(20_000, |place| format!("a{place}&"));
    vec![
        raw("a URI of 1 MB", format!("GET /api/version?{long} HTTP/1.1\r\nHost: x\r\n\r\n")),
        raw("a path of 1 MB", format!("GET /{long} HTTP/1.1\r\nHost: x\r\n\r\n")),
        raw("a method of 1 MB", format!("{} / HTTP/1.1\r\nHost: x\r\n\r\n", long.to_uppercase())),
        raw("a header of 1 MB", format!("GET /api/version HTTP/1.1\r\nHost: x\r\nX-A: {long}\r\n\r\n")),
        raw("a header's name of 1 MB", format!("GET /api/version HTTP/1.1\r\nHost: x\r\n{long}: y\r\n\r\n")),
        raw("100,000 headers", format!("GET /api/version HTTP/1.1\r\nHost: x\r\n{lines}\r\n")),
        raw("100,000 lengths", format!("POST /api/put HTTP/1.1\r\nHost: x\r\n{same}\r\n")),
        raw(
            "two lengths",
            "POST /api/put HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n".into(),
        ),
        raw("no number for a length", "POST /api/put HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n".into()),
        raw("a length beyond 64 bits", format!("POST /api/put HTTP/1.1\r\nContent-Length: {}\r\n\r\n", "9".repeat(30))),
        raw("NUL in the head", "GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n".into()),
        raw("a chunk's size beyond 64 bits", {
            let size = "F".repeat(40);
            format!("POST /api/put HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{size}\r\n")
        }),
        Attack::get("20,000 parameters in 130 KB", &format!("/api/version?{pairs}")).answered_by(TOO_LARGE),
        Attack::get("an origin of 60 KB", &format!("/api/version?{}", "b".repeat(60_000))).answered_by(&[200]),
    ]
}

/// Whether the daemon serves somebody else, on a connection of its own.
pub(super) fn serves(daemon: &Daemon) -> bool {
    let body = r#"{"metric":"other","timestamp":1700000000,"value":1,"tags":{"a":"b"}}"#;
    let Ok(mut client) = Client::connect(daemon.port()) else { return false };
    client.post("/api/put", body).is_ok_and(|answer| answer.status == 204)
        && client.get("/api/query?start=1699999999&end=1700000100&m=sum:other").is_ok_and(|answer| answer.status == 200)
}
