//! HTTP/1.1 over one kept connection: a request, its status and its body.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// How long any answer is waited for.
pub(crate) const TIMEOUT: Duration = Duration::from_mins(1);

#[derive(Debug)]
pub(crate) struct Client {
    stream: BufReader<TcpStream>,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) retry_after: bool,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Connects to a port of this machine.
pub(crate) fn connect(port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    Ok(stream)
}

impl Client {
    pub(crate) fn connect(port: u16) -> io::Result<Client> {
        Ok(Client { stream: BufReader::new(connect(port)?) })
    }

    pub(crate) fn get(&mut self, path: &str) -> io::Result<Answer> {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
    }

    /// POSTs JSON text.
    pub(crate) fn post(&mut self, path: &str, body: &str) -> io::Result<Answer> {
        let head = "Host: localhost\r\nContent-Type: application/json\r\nContent-Length:";
        self.ask(&format!("POST {path} HTTP/1.1\r\n{head} {}\r\n\r\n{body}", body.len()))
    }

    fn ask(&mut self, request: &str) -> io::Result<Answer> {
        self.stream.get_mut().write_all(request.as_bytes())?;
        let first = self.line()?;
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(format!("no answer: {first:?}")))?;
        let mut answer = Answer { status, retry_after: false, body: Vec::new() };
        let (mut length, mut is_chunked) = (0, false);
        loop {
            let line = self.line()?.to_ascii_lowercase();
            match line.split_once(':').map(|(name, value)| (name, value.trim())) {
                Some(("content-length", value)) => length = value.parse().map_err(io::Error::other)?,
                Some(("transfer-encoding", value)) => is_chunked = value == "chunked",
                Some(("retry-after", _)) => answer.retry_after = true,
                Some(_) => {}
                None => break,
            }
        }
        if is_chunked {
            while self.chunk(&mut answer.body)? {}
        } else {
            self.take(length, &mut answer.body)?;
        }
        Ok(answer)
    }

    /// Reads a chunk; false at the last one, which is empty.
    fn chunk(&mut self, body: &mut Vec<u8>) -> io::Result<bool> {
        let size = usize::from_str_radix(self.line()?.trim(), 16).map_err(io::Error::other)?;
        self.take(size, body)?;
        self.line()?;
        Ok(size > 0)
    }

    fn take(&mut self, length: usize, body: &mut Vec<u8>) -> io::Result<()> {
        let read = (&mut self.stream).take(length as u64).read_to_end(body)?;
        if read == length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        match self.stream.read_line(&mut line)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(line.trim_end_matches(['\r', '\n']).to_owned()),
        }
    }
}
