//! A small HTTP/1.1 client over one kept connection, plain enough to send what no proper client would.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use flate2::read::GzDecoder;

/// How long a test waits for any answer.
pub(crate) const TIMEOUT: Duration = Duration::from_mins(1);

/// One connection.
#[derive(Debug)]
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

/// An answer, its body unchunked and unzipped.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    /// The value of a header; its name in any case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    /// The body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.text()))
    }
}

impl Client {
    /// Connects to a port of this machine.
    pub(crate) fn connect(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// GETs a path.
    pub(crate) fn get(&mut self, path: &str) -> io::Result<Response> {
        self.request("GET", path, &[], b"")
    }

    /// POSTs JSON text.
    pub(crate) fn post(&mut self, path: &str, body: &str) -> io::Result<Response> {
        self.request("POST", path, &[("Content-Type", "application/json")], body.as_bytes())
    }

    /// Sends a request with a Content-Length (unless `headers` say Transfer-Encoding) and reads its answer.
    pub(crate) fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<Response> {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n");
        for (name, value) in headers {
            head.extend([name, ": ", value, "\r\n"]);
        }
        let chunked = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("Transfer-Encoding"));
        if !chunked && (!body.is_empty() || method != "GET") {
            head.extend(["Content-Length: ", &body.len().to_string(), "\r\n"]);
        }
        head += "\r\n";
        let mut whole = head.into_bytes();
        if chunked {
            for piece in body.chunks(1000) {
                whole.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
                whole.extend_from_slice(piece);
                whole.extend_from_slice(b"\r\n");
            }
            whole.extend_from_slice(b"0\r\n\r\n");
        } else {
            whole.extend_from_slice(body);
        }
        self.raw(&whole)?;
        self.read(method)
    }

    /// Sends bytes as they are.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Reads the answer to a request of `method`.
    pub(crate) fn read(&mut self, method: &str) -> io::Result<Response> {
        let status_line = self.line()?;
        let status = status_line.split(' ').nth(1).and_then(|s| s.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(format!("not an answer: {status_line:?}")))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or_else(|| io::Error::other(line.clone()))?;
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
        let mut response = Response { status, headers, body: Vec::new() };
        if method != "HEAD" && status != 204 && status != 304 {
            response.body = self.body(&response)?;
        }
        if response.header("Content-Encoding") == Some("gzip") {
            let mut plain = Vec::new();
            GzDecoder::new(&response.body[..]).read_to_end(&mut plain)?;
            response.body = plain;
        }
        Ok(response)
    }

    fn body(&mut self, response: &Response) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        if response.header("Transfer-Encoding").is_some_and(|v| v.eq_ignore_ascii_case("chunked")) {
            loop {
                let size = self.line()?;
                let size = usize::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
                let from = body.len();
                body.resize(from + size, 0);
                self.stream.read_exact(&mut body[from..])?;
                self.line()?;
                if size == 0 {
                    return Ok(body);
                }
            }
        }
        match response.header("Content-Length").and_then(|v| v.parse::<usize>().ok()) {
            Some(length) => {
                body.resize(length, 0);
                self.stream.read_exact(&mut body)?;
            }
            None => {
                self.stream.read_to_end(&mut body)?;
            }
        }
        Ok(body)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    }
}
