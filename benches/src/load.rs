//! The client: some connections, one request in flight on each, bodies ready in memory, so that it costs the server's cores little.
//! Lines are written as fast as they are taken; the server closes when it is through with them.

use std::io::{IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// By which protocol points are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Door {
    /// `/api/put`.
    Json,
    /// Lines of `put`.
    Telnet,
    /// InfluxDB's line protocol over HTTP, the ten metrics of a host in one line.
    Line,
}

impl std::fmt::Display for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Json => "put",
            Self::Telnet => "telnet",
            Self::Line => "lines",
        })
    }
}

/// Request bodies by connection.
#[derive(Debug)]
pub(crate) struct Bodies {
    /// Points in all of them.
    pub(crate) points: usize,
    pub(crate) door: Door,
    /// The bodies of each connection in order.
    pub(crate) of: Vec<Vec<Vec<u8>>>,
}

impl Bodies {
    /// The first of them, of every connection the same share, for a server that would take too long for all.
    pub(crate) fn share(&self, one_in: usize) -> Self {
        let of: Vec<Vec<Vec<u8>>> =
            self.of.iter().map(|of| of.iter().take(of.len().div_ceil(one_in)).cloned().collect()).collect();
        let (kept, all) = (of.iter().map(Vec::len).sum::<usize>(), self.of.iter().map(Vec::len).sum::<usize>());
        // Only a connection's last body may hold less than a batch.
        let points = if one_in == 1 { self.points } else { self.points * kept / all.max(1) };
        Self { points, door: self.door, of }
    }
}

/// Sends everything and returns how long it took until the last answer; any answer but 204 is an error.
pub(crate) fn send(port: u16, path: &str, bodies: &Bodies) -> Result<Duration> {
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            bodies.of.iter().map(|of| scope.spawn(move || connection(port, path, bodies.door, of))).collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(result) => result,
            Err(_) => bail!("a connection's thread panicked"),
        })
    })?;
    Ok(begun.elapsed())
}

fn connection(port: u16, path: &str, door: Door, bodies: &[Vec<u8>]) -> Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).context("cannot connect")?;
    stream.set_nodelay(true)?;
    let mut answer = Vec::with_capacity(4096);
    if door == Door::Telnet {
        bodies.iter().try_for_each(|lines| stream.write_all(lines))?;
        stream.shutdown(Shutdown::Write)?;
        stream.read_to_end(&mut answer)?;
        ensure!(answer.is_empty(), "refused: {}", String::from_utf8_lossy(&answer));
        return Ok(());
    }
    for body in bodies {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        write_together(&mut stream, head.as_bytes(), body)?;
        read_no_content(&mut stream, &mut answer)?;
    }
    Ok(())
}

/// Writes head and body at once, as clients do that have both: a server is woken once for them.
fn write_together(stream: &mut TcpStream, head: &[u8], body: &[u8]) -> Result<()> {
    let written = stream.write_vectored(&[IoSlice::new(head), IoSlice::new(body)])?;
    stream.write_all(head.get(written..).unwrap_or_default())?;
    stream.write_all(&body[written.saturating_sub(head.len())..])?;
    Ok(())
}

/// Reads one answer, which must be a 204 without a body.
fn read_no_content(stream: &mut TcpStream, answer: &mut Vec<u8>) -> Result<()> {
    answer.clear();
    let mut piece = [0; 4096];
    while !answer.windows(4).any(|w| w == b"\r\n\r\n") {
        let got = stream.read(&mut piece)?;
        ensure!(got > 0, "the server closed the connection");
        answer.extend_from_slice(&piece[..got]);
    }
    ensure!(answer.starts_with(b"HTTP/1.1 204"), "not a 204: {}", String::from_utf8_lossy(answer));
    Ok(())
}
