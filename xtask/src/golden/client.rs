//! A plain HTTP and telnet client on `std` sockets.
//!
//! Small on purpose: it sends exactly the bytes it is told (odd methods, broken bodies, raw `{}` in a target), keeps
//! its connection alive as real clients do, and reads answers by length, by chunks or to the end.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, bail};

/// How long one answer may take before the server counts as stuck: longer than Basalt waits for HBase, which is a minute.
const TIMEOUT: Duration = Duration::from_secs(90);
/// Answers larger than this are a fault of the scenario or of the server.
const BODY_BYTES_MAX: u64 = 64 << 20;
/// A chunked request is cut in pieces of this size, so that more than one is sent.
const CHUNK_BYTES: usize = 100;

/// An HTTP request as it goes out.
#[derive(Debug, Default)]
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    pub(crate) headers: &'a [(String, String)],
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) gzip: bool,
    pub(crate) chunked: bool,
}

/// An HTTP answer, its body unpacked.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    /// The value of a header, by its lower-case name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// One server; its connection is kept alive between requests.
#[derive(Debug)]
pub(crate) struct Client {
    address: SocketAddr,
    connection: Option<BufReader<TcpStream>>,
    timeout: Duration,
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self::patient(address, TIMEOUT)
    }

    /// One that waits for so long for a piece of an answer.
    pub(crate) fn patient(address: SocketAddr, timeout: Duration) -> Self {
        Self { address, connection: None, timeout }
    }

    /// Sends one request and reads its answer.
    ///
    /// # Errors
    /// When the server cannot be reached, hangs up, or answers what is not HTTP.
    pub(crate) fn send(&mut self, request: &Request<'_>) -> anyhow::Result<Response> {
        let bytes = encode(request)?;
        let kept = self.connection.take();
        let reused = kept.is_some();
        let first = self.exchange(kept, request.method, &bytes);
        // A server may close a kept connection between two requests; only then is the request sent twice.
        match first {
            Err(error) if reused && is_closed(&error) => self.exchange(None, request.method, &bytes),
            answer => answer,
        }
    }

    fn exchange(&mut self, kept: Option<BufReader<TcpStream>>, method: &str, bytes: &[u8]) -> anyhow::Result<Response> {
        let mut connection = match kept {
            Some(connection) => connection,
            None => BufReader::new(connect(self.address, self.timeout)?),
        };
        connection.get_mut().write_all(bytes)?;
        let (response, keep) = read_response(&mut connection, method)?;
        self.connection = keep.then_some(connection);
        Ok(response)
    }

    /// Sends telnet lines, then `exit`, and returns all that came back.
    ///
    /// `before_exit` is waited for between the two: OpenTSDB answers some errors late and drops them at `exit`.
    ///
    /// # Errors
    /// When the server cannot be reached or does not hang up after `exit`.
    pub(crate) fn telnet(&self, lines: &[u8], before_exit: impl FnOnce()) -> anyhow::Result<String> {
        let mut stream = connect(self.address, self.timeout)?;
        stream.write_all(lines)?;
        before_exit();
        stream.write_all(b"exit\n")?;
        let mut reply = Vec::new();
        stream.take(BODY_BYTES_MAX).read_to_end(&mut reply).context("telnet: no hang-up after exit")?;
        Ok(String::from_utf8_lossy(&reply).into_owned())
    }
}

fn connect(address: SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, timeout)?;
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn is_closed(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
        matches!(error.kind(), BrokenPipe | ConnectionReset | ConnectionAborted | UnexpectedEof)
    })
}

fn encode(request: &Request<'_>) -> anyhow::Result<Vec<u8>> {
    let mut out = format!("{} {} HTTP/1.1\r\nHost: localhost\r\n", request.method, request.target).into_bytes();
    for (name, value) in request.headers {
        out.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    let Some(plain) = &request.body else {
        out.extend_from_slice(b"\r\n");
        return Ok(out);
    };
    if !request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
        out.extend_from_slice(b"Content-Type: application/json\r\n");
    }
    let packed;
    let body = if request.gzip {
        out.extend_from_slice(b"Content-Encoding: gzip\r\n");
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(plain)?;
        packed = encoder.finish()?;
        &packed
    } else {
        plain
    };
    if request.chunked {
        out.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
        for piece in body.chunks(CHUNK_BYTES) {
            out.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            out.extend_from_slice(piece);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"0\r\n\r\n");
    } else {
        out.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
        out.extend_from_slice(body);
    }
    Ok(out)
}

/// Reads one answer; the flag says whether the connection may be used again.
fn read_response(input: &mut impl BufRead, method: &str) -> anyhow::Result<(Response, bool)> {
    let status_line = read_line(input)?;
    let status = status_line.split(' ').nth(1).and_then(|word| word.parse().ok());
    let Some(status) = status.filter(|_| status_line.starts_with("HTTP/1.")) else {
        bail!("not an HTTP status line: {status_line:?}");
    };
    let mut headers = Vec::new();
    loop {
        let line = read_line(input)?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut response = Response { status, headers, body: Vec::new() };
    let closes = response.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
    let mut keep = !closes;
    let empty = method == "HEAD" || status == 204 || status == 304;
    if response.header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        response.body = read_chunks(input)?;
    } else if let Some(length) = response.header("content-length") {
        let length: u64 = length.parse().context("Content-Length")?;
        anyhow::ensure!(length <= BODY_BYTES_MAX, "an answer of {length} bytes");
        input.take(if empty { 0 } else { length }).read_to_end(&mut response.body)?;
    } else if !empty {
        keep = false;
        input.take(BODY_BYTES_MAX).read_to_end(&mut response.body)?;
    }
    let packed = response.body.as_slice();
    let unpacked = match response.header("content-encoding") {
        Some("gzip") => Some(unpack(flate2::read::GzDecoder::new(packed)).context("the answer's gzip")?),
        Some("deflate") => Some(unpack(flate2::read::ZlibDecoder::new(packed)).context("the answer's deflate")?),
        _ => None,
    };
    response.body = unpacked.unwrap_or(response.body);
    Ok((response, keep))
}

fn unpack(packed: impl Read) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    packed.take(BODY_BYTES_MAX).read_to_end(&mut body)?;
    Ok(body)
}

fn read_chunks(input: &mut impl BufRead) -> anyhow::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = read_line(input)?;
        let length = line.split(';').next().unwrap_or_default();
        let length = u64::from_str_radix(length.trim(), 16).with_context(|| format!("chunk size {line:?}"))?;
        anyhow::ensure!(length <= BODY_BYTES_MAX, "a chunk of {length} bytes");
        let before = body.len();
        input.take(length).read_to_end(&mut body)?;
        anyhow::ensure!((body.len() - before) as u64 == length, "the answer ends within a chunk");
        read_line(input)?;
        if length == 0 {
            return Ok(body);
        }
    }
}

/// One line without its end. An end of input before the line's end is an error, which a keep-alive caller may retry.
fn read_line(input: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    input.take(1 << 16).read_until(b'\n', &mut line)?;
    if line.pop() != Some(b'\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}
