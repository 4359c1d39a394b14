//! `/api/put` as fast as a client can: 4 connections, one request in flight on each, requests ready in memory.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

/// Sends everything, a thread for each connection's requests, and returns how long it took until the last answer. Any
/// answer but 204 is an error.
pub(super) fn send(address: SocketAddr, requests: &[Vec<Vec<u8>>]) -> Result<Duration> {
    let began = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> = requests.iter().map(|of| scope.spawn(move || connection(address, of))).collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(result) => result,
            Err(_) => bail!("a connection's thread panicked"),
        })
    })?;
    Ok(began.elapsed())
}

fn connection(address: SocketAddr, requests: &[Vec<u8>]) -> Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let (mut answer, mut piece) = (Vec::with_capacity(4096), [0; 4096]);
    for request in requests {
        stream.write_all(request)?;
        answer.clear();
        while !answer.ends_with(b"\r\n\r\n") {
            let read = stream.read(&mut piece)?;
            ensure!(read > 0, "the server closed the connection");
            answer.extend_from_slice(piece.get(..read).unwrap_or_default());
        }
        ensure!(answer.starts_with(b"HTTP/1.1 204"), "not a 204: {}", String::from_utf8_lossy(&answer));
    }
    Ok(())
}
