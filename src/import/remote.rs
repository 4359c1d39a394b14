//! A running server, by its `/api/put?details`, which answers for every point, whatever `telnet.return_errors` says.
//!
//! Requests follow each other on one connection without waiting for answers, as many as blocks are under way: the server
//! takes them in their order, and always has the next one at hand.

mod answer;

use std::borrow::Cow;
use std::io::Write;
use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use basalt_ingest::{RawPoint, RawTags, RawText};
use serde::{Serialize, Serializer};

use super::block::{self, Block, Lines};
use super::turns::Turns;
use super::{Stored, Target};
use crate::exit::{Exit, Failure};
use crate::peer::{self, Answer, Reader};

/// How long a server may take for one block.
const PATIENCE: Duration = Duration::from_mins(2);
/// How often a block that the server cannot store now is sent again.
const TRIES: u32 = 60;
/// The pause before each time, as the server asks for by `Retry-After`.
const PAUSE: Duration = Duration::from_secs(1);

/// A connection to a server.
pub(crate) struct Remote {
    address: String,
    /// Locked in turns, so that nobody ever waits for it. The lower rank: `reader` may be taken with it held.
    writer: Mutex<TcpStream>,
    writes: Turns,
    /// As `writer`.
    reader: Mutex<Reader>,
    reads: Turns,
}

impl Remote {
    /// Connects to `http://HOST:PORT` or plain `HOST:PORT`; port 4242 unless told.
    pub(crate) fn connect(url: &str) -> Result<Self, Failure> {
        let address = peer::address(url)?;
        let (writer, reader) = peer::open(&address, PATIENCE)?;
        let (writer, reader) = (Mutex::new(writer), Mutex::new(reader));
        Ok(Self { writer, writes: Turns::new(), reader, reads: Turns::new(), address })
    }

    fn lost(&self, cause: &std::io::Error) -> Failure {
        let line = format!("connection to {} lost: {cause}; the last blocks may be stored or not", self.address);
        Failure::new(Exit::Failure, line)
    }

    fn write(&self, ticket: u64, request: &[u8]) -> Result<(), Failure> {
        let turn = self.writes.take(ticket).ok_or_else(super::stopped)?;
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if self.reads.is_next(ticket) {
            // All answers are there, so the server may have closed the connection for want of requests.
            let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
            if !reader.is_silent() {
                (*writer, *reader) = peer::open(&self.address, PATIENCE)?;
            }
        }
        writer.write_all(request).map_err(|cause| self.lost(&cause))?;
        turn.pass();
        Ok(())
    }

    fn read(&self, ticket: u64) -> Result<Answer, Failure> {
        let turn = self.reads.take(ticket).ok_or_else(super::stopped)?;
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = reader.answer().map_err(|cause| self.lost(&cause))?;
        turn.pass();
        Ok(answer)
    }
}

/// A point as the body has it.
#[derive(Serialize)]
struct Put<'a> {
    metric: Cow<'a, str>,
    timestamp: i64,
    /// A text, so that no digit is lost on the way.
    value: Cow<'a, str>,
    tags: Tags<'a>,
}

/// Tags in the order of the line.
struct Tags<'a>(RawTags<'a>);

impl Serialize for Tags<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.decode())
    }
}

/// The request that puts `points`.
fn request(address: &str, points: &[RawPoint<'_>]) -> Result<Vec<u8>, Failure> {
    let text =
        |text: Option<RawText<'_>>| text.map_or(Cow::Borrowed(""), |text| Cow::Owned(text.decode().into_owned()));
    let puts = points.iter().map(|point| Put {
        metric: text(point.metric),
        timestamp: point.timestamp,
        value: text(point.value),
        tags: Tags(point.tags),
    });
    let mut body = Vec::with_capacity(points.len() * 200);
    serde_json::Serializer::new(&mut body)
        .collect_seq(puts)
        .map_err(|cause| Failure::new(Exit::Failure, format!("cannot write points as JSON: {cause}")))?;
    let head = peer::post_head(address, "/api/put?details", "", body.len());
    Ok([head.into_bytes(), body].concat())
}

impl Target for Remote {
    fn name(&self) -> String {
        self.address.clone()
    }

    fn store(&self, block: &Block) -> Result<Stored, Failure> {
        let text = block.text();
        let Lines { points, problems, .. } = block::read(&text);
        let mut refused: Vec<_> =
            problems.iter().map(|(before, problem)| block.refused(Some(*before), problem)).collect();
        // A block of comments has its turns all the same.
        let request = if points.is_empty() { Vec::new() } else { request(&self.address, &points)? };
        self.write(block.ticket, &request)?;
        if points.is_empty() {
            self.reads.take(block.ticket).ok_or_else(super::stopped)?.pass();
            return Ok(Stored { points: 0, refused });
        }
        let answer = self.read(block.ticket)?;
        refused.extend(answer::refused(&answer, points.len()).map_err(|failure| failure.of(&self.address))?);
        Ok(Stored { points: (points.len() + problems.len() - refused.len()) as u64, refused })
    }

    fn patience(&self) -> (u32, Duration) {
        (TRIES, PAUSE)
    }

    fn sync(&self) -> Result<(), Failure> {
        // What is answered is as durable as `store.durability` of the server says; no request of a writer's makes it more so.
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::net::TcpListener;

    use super::*;

    const STORED: &str = r#"{"success":1,"failed":0,"errors":[]}"#;

    /// Answers one put on each of so many connections and closes them.
    fn serve(listener: &TcpListener, connections: usize) {
        for _ in 0..connections {
            let mut stream = listener.accept().unwrap().0;
            let mut input = BufReader::new(stream.try_clone().unwrap());
            let (mut line, mut length) = (String::new(), 0);
            while line != "\r\n" {
                line.clear();
                assert_ne!(input.read_line(&mut line).unwrap(), 0);
                length = line.strip_prefix("Content-Length: ").map_or(length, |value| value.trim().parse().unwrap());
            }
            input.read_exact(&mut vec![0; length]).unwrap();
            write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{STORED}", STORED.len()).unwrap();
        }
    }

    /// A server closes a connection on which nothing comes for a while, as when the input pauses.
    #[test]
    fn a_connection_that_was_closed_during_a_pause_is_opened_anew() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let remote = Remote::connect(&listener.local_addr().unwrap().to_string()).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || serve(&listener, 2));
            for ticket in 0..2 {
                let text = b"m 1356998400 1 h=a\n".to_vec();
                let block = Block { ticket, text, lines_before: 0, lines_end: 1, bytes_end: 1 };
                assert_eq!(remote.store(&block).unwrap().points, 1);
                while remote.reader.lock().unwrap().is_silent() {
                    std::thread::yield_now();
                }
            }
        });
    }
}
