//! A server as our own tools reach it: where it is, and its answers off a blocking connection.

use std::io::{self, BufRead, BufReader, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::time::Duration;

use serde::Deserialize;

use crate::exit::{Exit, Failure};

/// Where our own tools find the token that they show a server.
pub(crate) const TOKEN_VARIABLE: &str = "BASALT_TOKEN";
/// What whoever is not known to a server is told to do.
pub(crate) const TOKEN_ADVICE: &str = "; set BASALT_TOKEN to a token of this server";
/// How long a connection may take to be there.
pub(crate) const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// The longest answer that is kept whole.
const ANSWER_BYTES_MAX: u64 = 256 << 20;
/// What is kept of an answer that is only counted: enough for a refusal's words.
const BEGINNING_BYTES: u64 = 64 << 10;
/// Room that is made for an answer on its head's word.
const ROOM_BYTES_MAX: u64 = 16 << 20;
/// The longest line of a head.
const LINE_BYTES_MAX: u64 = 16 << 10;
/// The most that an answer's head and trailers have together.
const HEAD_BYTES_MAX: u64 = 256 << 10;

/// `HOST:PORT` of `http://HOST:PORT`, `http://HOST` or either without the scheme; port 4242 unless told.
///
/// # Errors
///
/// An address that is none.
pub(crate) fn address(url: &str) -> Result<String, Failure> {
    let host = url.strip_prefix("http://").unwrap_or(url).trim_end_matches('/');
    if host.is_empty() || host.contains('/') {
        return Err(Failure::new(Exit::Usage, format!("`{url}` is no server: http://HOST:PORT is expected")));
    }
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
    Ok(if has_port { host.to_owned() } else { format!("{host}:4242") })
}

/// A connection that waits for a server at most so long.
///
/// # Errors
///
/// Nobody listens there.
pub(crate) fn connect(address: &str, patience: Duration) -> Result<TcpStream, Failure> {
    let fail = |cause| unreachable(address, &cause);
    let stream = reach(address, patience).map_err(fail)?;
    stream
        .set_nodelay(true)
        .and_then(|()| stream.set_read_timeout(Some(patience)))
        .and_then(|()| stream.set_write_timeout(Some(patience)))
        .map_err(fail)?;
    Ok(stream)
}

/// As [`connect`], with what reads its answers.
///
/// # Errors
///
/// As [`connect`].
pub(crate) fn open(address: &str, patience: Duration) -> Result<(TcpStream, Reader), Failure> {
    let stream = connect(address, patience)?;
    let read = stream.try_clone().map_err(|cause| unreachable(address, &cause))?;
    Ok((stream, Reader::new(read)))
}

/// Tries each of the host's addresses for so long; without a bound of ours a host that drops packets is waited for for minutes.
fn reach(address: &str, patience: Duration) -> io::Result<TcpStream> {
    let mut failed = io::Error::other("the name has no address");
    for place in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&place, patience.min(CONNECT_PATIENCE)) {
            Ok(stream) => return Ok(stream),
            Err(cause) => failed = cause,
        }
    }
    Err(failed)
}

/// Why there is no connection, and what to look at.
pub(crate) fn unreachable(address: &str, cause: &io::Error) -> Failure {
    Failure::new(Exit::Failure, format!("cannot reach {address}: {cause}; is the server running there?"))
}

/// The head of a POST of JSON, with the token that the environment has.
pub(crate) fn post_head(address: &str, path: &str, more: &str, body_bytes: usize) -> String {
    let token =
        std::env::var(TOKEN_VARIABLE).map_or_else(|_| String::new(), |t| format!("Authorization: Bearer {t}\r\n"));
    format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n{token}{more}Content-Length: {body_bytes}\r\n\r\n"
    )
}

/// Sends a head and its body in one piece as far as it goes: the server is woken once for both.
pub(crate) fn send(stream: &mut TcpStream, head: &[u8], body: &[u8]) -> io::Result<()> {
    let sent = match stream.write_vectored(&[IoSlice::new(head), IoSlice::new(body)]) {
        // By a signal, before a byte was taken.
        Err(cause) if cause.kind() == io::ErrorKind::Interrupted => 0,
        sent => sent?,
    };
    stream.write_all(head.get(sent..).unwrap_or_default())?;
    stream.write_all(body.get(sent.saturating_sub(head.len())..).unwrap_or_default())
}

/// One answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The whole of it, or its beginning where it was only counted.
    pub(crate) body: Vec<u8>,
    /// How long it is.
    pub(crate) body_bytes: u64,
    /// No other comes on its connection.
    pub(crate) closes: bool,
}

/// An error's answer of a server as a whole.
#[derive(Debug, Deserialize)]
pub(crate) struct Refused {
    error: Refusal,
}

#[derive(Debug, Deserialize)]
struct Refusal {
    message: String,
    details: Option<String>,
}

impl Refused {
    /// What an error's answer says; none if the body is something else.
    pub(crate) fn told(body: &[u8]) -> Option<String> {
        let Refusal { message, details } = serde_json::from_slice::<Self>(body).ok()?.error;
        Some(details.map_or_else(|| message.clone(), |details| format!("{message}: {details}")))
    }
}

/// A body as far as it is read.
struct Body {
    bytes: Vec<u8>,
    length: u64,
    /// Whether all of it is kept, or only its beginning.
    is_whole: bool,
}

/// Answers in the order of their requests.
#[derive(Debug)]
pub(crate) struct Reader(BufReader<TcpStream>);

impl Reader {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self(BufReader::with_capacity(64 << 10, stream))
    }

    /// Whether the connection is open and nothing came unasked, as it must be before a request.
    pub(crate) fn is_silent(&self) -> bool {
        let stream = self.0.get_ref();
        let peeked = stream.set_nonblocking(true).and_then(|()| stream.peek(&mut [0]));
        let has_nothing = peeked.is_err_and(|cause| cause.kind() == io::ErrorKind::WouldBlock);
        stream.set_nonblocking(false).is_ok() && has_nothing && self.0.buffer().is_empty()
    }

    /// Ends the connection, for who writes on it too.
    pub(crate) fn shut(&self) {
        // Where it cannot be, it is over already.
        drop(self.0.get_ref().shutdown(Shutdown::Both));
    }

    /// Reads the next answer, its length told or in chunks.
    ///
    /// # Errors
    ///
    /// The connection's; what is no HTTP; an answer, or a head, that is too long.
    pub(crate) fn answer(&mut self) -> io::Result<Answer> {
        self.read(Body { bytes: Vec::new(), length: 0, is_whole: true })
    }

    /// As [`Self::answer`], of any length: only the beginning of the body is kept.
    ///
    /// # Errors
    ///
    /// The connection's; what is no HTTP; a head that is too long.
    pub(crate) fn counted(&mut self) -> io::Result<Answer> {
        self.read(Body { bytes: Vec::new(), length: 0, is_whole: false })
    }

    fn read(&mut self, mut body: Body) -> io::Result<Answer> {
        let mut head_room = HEAD_BYTES_MAX;
        let status = self.line(&mut head_room)?;
        let status = status.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.ok_or_else(|| io::Error::other("the answer is no HTTP"))?;
        let (mut length, mut chunked, mut closes) = (0, false, false);
        loop {
            let line = self.line(&mut head_room)?.to_ascii_lowercase();
            match line.split_once(':').map(|(name, value)| (name, value.trim())) {
                Some(("content-length", value)) => length = value.parse().map_err(io::Error::other)?,
                Some(("transfer-encoding", value)) => chunked = value == "chunked",
                Some(("connection", value)) => closes = value == "close",
                Some(_) => {}
                None if line.is_empty() => break,
                None => return Err(io::Error::other("the answer's head is no HTTP")),
            }
        }
        if !chunked {
            let room = if body.is_whole { ROOM_BYTES_MAX } else { BEGINNING_BYTES };
            body.bytes.reserve_exact(usize::try_from(length.min(room)).unwrap_or(0));
            self.add(&mut body, length)?;
            return Ok(Answer { status, body: body.bytes, body_bytes: body.length, closes });
        }
        loop {
            let mut chunk_room = LINE_BYTES_MAX;
            let size = u64::from_str_radix(self.line(&mut chunk_room)?.trim(), 16).map_err(io::Error::other)?;
            if size == 0 {
                break;
            }
            self.add(&mut body, size)?;
            self.line(&mut chunk_room)?;
        }
        // Trailers tell nothing that is asked for here; the empty line behind them ends the answer.
        while !self.line(&mut head_room)?.is_empty() {}
        Ok(Answer { status, body: body.bytes, body_bytes: body.length, closes })
    }

    /// The next line without its end. Its bytes are taken off `room`.
    fn line(&mut self, room: &mut u64) -> io::Result<String> {
        let bytes_max = LINE_BYTES_MAX.min(*room);
        let mut line = Vec::new();
        let read = self.0.by_ref().take(bytes_max).read_until(b'\n', &mut line)? as u64;
        *room -= read;
        match line.pop() {
            Some(b'\n') => Ok(String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned()),
            _ if read == bytes_max => Err(io::Error::other("the answer's head is too long")),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Reads so many bytes of `body`, unless it would be too long with them.
    fn add(&mut self, body: &mut Body, length: u64) -> io::Result<()> {
        let kept_max = if body.is_whole { ANSWER_BYTES_MAX } else { BEGINNING_BYTES };
        let kept = length.min(kept_max.saturating_sub(body.bytes.len() as u64));
        if body.is_whole && kept < length {
            return Err(io::Error::other("the answer is too long"));
        }
        let mut read = self.0.by_ref().take(kept).read_to_end(&mut body.bytes)? as u64;
        if read == kept && kept < length {
            read += io::copy(&mut self.0.by_ref().take(length - kept), &mut io::sink())?;
        }
        body.length = body.length.saturating_add(read);
        if read == length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

impl Answer {
    /// The beginning of what was said, for a person.
    pub(crate) fn said(&self) -> String {
        let text = Refused::told(&self.body).unwrap_or_else(|| String::from_utf8_lossy(&self.body).into_owned());
        let advice = if self.status == 401 { TOKEN_ADVICE } else { "" };
        text.chars().take(400).chain(advice.chars()).collect()
    }

    /// Why a request was refused, if it was.
    pub(crate) fn refusal(&self) -> Option<String> {
        (self.status / 100 != 2).then(|| format!("{} {}", self.status, self.said()))
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_refusal_is_told_in_the_servers_words() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut server = listener.accept().unwrap().0;
        let mut reader = Reader::new(stream);
        for (said, refusal, closes) in [
            ("HTTP/1.1 204 No Content\r\nConnection: keep-alive\r\n\r\n", None, false),
            ("HTTP/1.1 400 Bad Request\r\nContent-Length: 3\r\n\r\nbad", Some("400 bad"), false),
            (
                "HTTP/1.1 503 Later\r\nConnection: Close\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nwait\r\n0\r\n\r\n",
                Some("503 wait"),
                true,
            ),
        ] {
            server.write_all(said.as_bytes()).unwrap();
            let answer = reader.answer().unwrap();
            assert_eq!((answer.refusal().as_deref(), answer.closes), (refusal, closes));
        }
    }

    #[test]
    fn an_errors_answer_is_told_by_its_message() {
        for (status, body, expected) in [
            (401, r#"{"error":{"code":401,"message":"no"}}"#, "401 no; set BASALT_TOKEN to a token of this server"),
            (413, r#"{"error":{"code":413,"message":"large","details":"9 MB","trace":"t"}}"#, "413 large: 9 MB"),
            (400, r#"{"failed":1}"#, r#"400 {"failed":1}"#),
        ] {
            let answer = Answer { status, body: body.into(), body_bytes: body.len() as u64, closes: false };
            assert_eq!(answer.refusal().as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_connection_that_ended_or_says_something_unasked_is_not_silent() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut reader = Reader::new(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        let mut server = listener.accept().unwrap().0;
        assert!(reader.is_silent());
        server.write_all(b"HTTP/1.1 408 Request Timeout\r\n\r\n").unwrap();
        while reader.is_silent() {
            std::thread::yield_now();
        }
        assert_eq!(reader.answer().unwrap().status, 408);
        assert!(reader.is_silent());
        drop(server);
        while reader.is_silent() {
            std::thread::yield_now();
        }
    }

    /// What the reader makes of two answers.
    fn read(said: &[u8]) -> io::Result<Vec<Answer>> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut reader = Reader::new(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        let mut server = listener.accept().unwrap().0;
        std::thread::scope(move |scope| {
            // Writing ends with an error where the reader gave up and is gone.
            scope.spawn(move || server.write_all(said).is_ok());
            Ok(vec![reader.answer()?, reader.answer()?])
        })
    }

    #[test]
    fn an_answer_of_any_length_is_bounded() {
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let line = format!("X-More: {}\r\n", "x".repeat(1_000));
        for said in [
            format!("{chunked}1\r\nx\r\nffffffffffffffff\r\n"),
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", u64::MAX),
            format!("HTTP/1.1 200 OK\r\n{}", line.repeat(1_000)),
            format!("{chunked}0\r\n{}", line.repeat(1_000)),
            format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(100_000)),
        ] {
            let cause = read(said.as_bytes()).unwrap_err().to_string();
            assert!(cause.ends_with("is too long"), "{cause}: {said:.60}");
        }
    }

    /// Longer than what is kept whole, its length told and in chunks; the connection goes on behind it.
    #[test]
    fn an_answer_that_is_counted_has_any_length() {
        let length = ANSWER_BYTES_MAX + 1;
        for (head, before, behind) in [
            (format!("Content-Length: {length}"), String::new(), ""),
            ("Transfer-Encoding: chunked".to_owned(), format!("2\r\n[{{\r\n{:x}\r\n", length - 2), "\r\n0\r\n\r\n"),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let mut reader = Reader::new(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
            let mut server = listener.accept().unwrap().0;
            let written = if before.is_empty() { length } else { length - 2 };
            let head = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{before}");
            // The reader goes with a panic, and writing ends.
            std::thread::scope(move |scope| {
                scope.spawn(move || {
                    server.write_all(head.as_bytes()).unwrap();
                    io::copy(&mut io::repeat(b'x').take(written), &mut server).unwrap();
                    server.write_all(format!("{behind}HTTP/1.1 204 No Content\r\n\r\n").as_bytes()).unwrap();
                });
                let answer = reader.counted().unwrap();
                assert_eq!((answer.body_bytes, answer.body.len() as u64), (length, BEGINNING_BYTES));
                assert_eq!(reader.counted().unwrap().status, 204);
            });
        }
    }

    #[test]
    fn an_answer_ends_behind_its_trailers() {
        let first = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n0\r\nA: 1\r\nB: 2\r\n\r\n";
        let second = "HTTP/1.1 204 No Content\r\n\r\n";
        let answers = read(format!("{first}{second}").as_bytes()).unwrap();
        assert_eq!(answers.iter().map(|answer| answer.status).collect::<Vec<_>>(), [200, 204]);
        assert_eq!(answers[0].body, b"one");
    }

    #[test]
    fn a_server_is_named_by_host_and_port() {
        for (url, expected) in
            [("http://a:1/", "a:1"), ("a", "a:4242"), ("http://[::1]", "[::1]:4242"), ("[::1]:5", "[::1]:5")]
        {
            assert_eq!(address(url).unwrap(), expected, "{url}");
        }
        for url in ["", "http://", "http://a/b", "https://a"] {
            assert!(address(url).is_err(), "{url}");
        }
    }
}
