//! A running server, by its `/api/put?details`, which answers for every point, whatever `telnet.return_errors` says.
//!
//! Requests follow each other on one connection without waiting for answers, as many as blocks are under way: the server
//! takes them in their order, and always has the next one at hand. Where the connection ends, by an answer that closes it or
//! without one, no other comes: what was sent by then is for later, and goes out on a new one.

mod answer;

use std::borrow::Cow;
use std::io::{self, ErrorKind, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use basalt_ingest::{RawPoint, RawTags, RawText};
use serde::{Serialize, Serializer};

use super::block::{self, Block, Lines};
use super::target::{Stored, Target, Unstored, stopped};
use super::turns::Turns;
use crate::exit::{Exit, Failure};
use crate::peer::{self, Answer, Reader};

/// How long a server may take for one block.
const ANSWER_PATIENCE: Duration = Duration::from_mins(2);
/// How long a block that the server cannot store now is sent again.
const PATIENCE: Duration = Duration::from_mins(1);
/// The pause before each time, as the server asks for by `Retry-After`.
const PAUSE: Duration = Duration::from_secs(1);

/// A connection to a server.
pub(crate) struct Remote {
    address: String,
    /// Locked in turns, so that nobody ever waits for it. The lower rank: `reader` may be taken with it held.
    writer: Mutex<TcpStream>,
    writes: Turns,
    /// As `writer`: the last round in which no connection could be had, and why.
    unreachable: Mutex<Option<(u64, String)>>,
    /// As `writer`; none once the connection ended.
    reader: Mutex<Option<Reader>>,
    reads: Turns,
    patience: (Duration, Duration),
}

impl Remote {
    /// Connects to `http://HOST:PORT` or plain `HOST:PORT`; port 4242 unless told.
    pub(crate) fn connect(url: &str) -> Result<Self, Failure> {
        let address = peer::address(url)?;
        let (writer, reader) = peer::open(&address, ANSWER_PATIENCE)?;
        let (writer, reader) = (Mutex::new(writer), Mutex::new(Some(reader)));
        let (writes, reads) = (Turns::new(), Turns::new());
        Ok(Self { address, writer, writes, unreachable: Mutex::new(None), reader, reads, patience: (PATIENCE, PAUSE) })
    }

    /// A connection that ended without an answer, as where the server did, or from which none came that can be read. What the server
    /// may take yet is not sent again.
    fn lost(&self, cause: &io::Error) -> Unstored {
        let Self { address, .. } = self;
        let what = match cause.kind() {
            ErrorKind::WouldBlock => format!("no answer from {address} within {} s", ANSWER_PATIENCE.as_secs()),
            _ => format!("connection to {address} lost: {cause}"),
        };
        let line = format!("{what}; the last blocks may be stored or not");
        match cause.kind() {
            ErrorKind::UnexpectedEof
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe => Unstored::later(line),
            ErrorKind::WouldBlock
            | ErrorKind::TimedOut
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::NetworkDown => Failure::new(Exit::TryLater, line).into(),
            _ => Failure::new(Exit::Failure, line).into(),
        }
    }

    /// Bytes of a request waited as long as an answer may take, and nothing came meanwhile that says why: it is not waited for.
    fn stuck(&self) -> Unstored {
        let (Self { address, .. }, patience) = (self, ANSWER_PATIENCE.as_secs());
        let line = format!("{address} took no bytes within {patience} s; the last blocks may be stored or not");
        Failure::new(Exit::TryLater, line).into()
    }

    /// A proxy waits no longer, and the server may store the points yet: they are not sent again.
    fn gave_up(&self, answer: &Answer) -> Unstored {
        let line = format!("{}: 504 {}; the last blocks may be stored or not", self.address, answer.said());
        Failure::new(Exit::TryLater, line).into()
    }

    /// Sends a request, and gives what went wrong on its way: an answer may be there that says why.
    ///
    /// # Errors
    ///
    /// A new connection that cannot be had now (75).
    fn write(&self, Block { ticket, round, .. }: &Block, request: &[u8]) -> Result<io::Result<()>, Unstored> {
        let turn = self.writes.take(*ticket).ok_or_else(stopped)?;
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if self.reads.is_next(*ticket) {
            // All answers are there, so the server may have closed the connection, by the last of them or for want of requests.
            let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
            if !reader.as_ref().is_some_and(Reader::is_silent) {
                *reader = None;
                match self.open(*round) {
                    Ok((stream, answers)) => (*writer, *reader) = (stream, Some(answers)),
                    Err(failure) => {
                        turn.pass();
                        return Err(failure);
                    }
                }
            }
        }
        let written = writer.write_all(request);
        if written.is_err() {
            // Nothing may follow half of a request; where it cannot be shut it is closed already.
            drop(writer.shutdown(Shutdown::Write));
        }
        turn.pass();
        Ok(written)
    }

    /// A new connection. It is tried once a round: where packets are dropped all blocks would wait for it, one after another.
    fn open(&self, round: u64) -> Result<(TcpStream, Reader), Unstored> {
        let mut unreachable = self.unreachable.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, line)) = unreachable.as_ref().filter(|(tried, _)| *tried == round) {
            return Err(Unstored::later(line.clone()));
        }
        peer::open(&self.address, ANSWER_PATIENCE).map_err(|Failure { line, .. }| {
            *unreachable = Some((round, line.clone()));
            Unstored::later(line)
        })
    }

    /// The answer to a request that was `written`.
    fn read(&self, ticket: u64, written: io::Result<()>) -> Result<Answer, Unstored> {
        let turn = self.reads.take(ticket).ok_or_else(stopped)?;
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(answers) = reader.as_mut() else {
            turn.pass();
            return Err(Unstored::later(format!("{} closed the connection", self.address)));
        };
        let is_written = written.is_ok();
        let answer = match written {
            Err(cause) if cause.kind() == ErrorKind::WouldBlock && answers.is_silent() => Err(self.stuck()),
            written => answers.answer().map_err(|cause| self.lost(&written.err().unwrap_or(cause))),
        };
        let answer =
            answer.and_then(|answer| if answer.status == 504 { Err(self.gave_up(&answer)) } else { Ok(answer) });
        if matches!(answer, Err(Unstored::Over(_))) {
            // The turn is not passed, so that nothing comes behind; nor does anybody wait to send it.
            answers.shut();
            return answer;
        }
        if answer.as_ref().map_or(true, |answer| answer.closes || !is_written) {
            *reader = None;
        }
        turn.pass();
        answer
    }

    /// Has no request to be answered.
    fn skip(&self, ticket: u64) -> Result<(), Failure> {
        self.reads.take(ticket).ok_or_else(stopped)?.pass();
        Ok(())
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

    fn store(&self, block: &Block) -> Result<Stored, Unstored> {
        let text = block.text();
        let Lines { points, problems, .. } = block::read(&text);
        let mut refused: Vec<_> =
            problems.iter().map(|(before, problem)| block.refused(Some(*before), problem)).collect();
        // A block of comments has its turns all the same.
        let request = if points.is_empty() { Vec::new() } else { request(&self.address, &points)? };
        let written = self.write(block, &request).or_else(|failure| {
            self.skip(block.ticket)?;
            Err(failure)
        })?;
        if points.is_empty() {
            self.skip(block.ticket)?;
            return Ok(Stored { points: 0, refused });
        }
        let answer = self.read(block.ticket, written)?;
        refused.extend(answer::refused(&answer, points.len()).map_err(|failure| failure.of(&self.address))?);
        Ok(Stored { points: (points.len() + problems.len() - refused.len()) as u64, refused })
    }

    fn patience(&self) -> (Duration, Duration) {
        self.patience
    }

    fn sync(&self) -> Result<(), Failure> {
        // What is answered is as durable as `store.durability` of the server says; no request of a writer's makes it more so.
        Ok(())
    }

    fn finish(&self) -> Result<(), Failure> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::net::TcpListener;
    use std::sync::mpsc;

    use super::*;
    use crate::import::{Job, Sum, run};

    /// The timestamps of the next put on a connection; none at its end.
    fn put(input: &mut BufReader<TcpStream>) -> Option<Vec<i64>> {
        let (mut line, mut length) = (String::new(), 0);
        while line != "\r\n" {
            line.clear();
            if input.read_line(&mut line).unwrap_or(0) == 0 {
                return None;
            }
            length = line.strip_prefix("Content-Length: ").map_or(length, |value| value.trim().parse().unwrap());
        }
        let mut body = vec![0; length];
        input.read_exact(&mut body).unwrap();
        let points: Vec<serde_json::Value> = serde_json::from_slice(&body).unwrap();
        Some(points.iter().map(|point| point["timestamp"].as_i64().unwrap()).collect())
    }

    fn stored(stream: &mut TcpStream, points: usize) {
        let report = format!(r#"{{"success":{points},"failed":0,"errors":[]}}"#);
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{report}", report.len()).unwrap();
    }

    /// A block of one point.
    fn block(ticket: u64, round: u64) -> Block {
        let text = b"m 1356998400 1 h=a\n".to_vec();
        Block { ticket, round, text, lines_before: 0, lines_end: 1, bytes_end: 1 }
    }

    /// Answers one put on each of so many connections and closes them.
    fn serve(listener: &TcpListener, connections: usize) {
        for _ in 0..connections {
            let mut stream = listener.accept().unwrap().0;
            let points = put(&mut BufReader::new(stream.try_clone().unwrap())).unwrap().len();
            stored(&mut stream, points);
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
                assert_eq!(remote.store(&block(ticket, 0)).unwrap().points, 1);
                while remote.reader.lock().unwrap().as_ref().unwrap().is_silent() {
                    std::thread::yield_now();
                }
            }
        });
    }

    const LATER: &str = "HTTP/1.1 503 Later\r\nConnection: close\r\nContent-Length: 4\r\n\r\nwait";

    /// Ends so many connections over their first put, with an answer to it or with none, and takes all that comes on the others.
    fn serve_after(ended: usize, answer: &str, listener: &TcpListener, take: &mpsc::Sender<Vec<i64>>) {
        for connection in 0.. {
            let mut stream = listener.accept().unwrap().0;
            let mut input = BufReader::new(stream.try_clone().unwrap());
            while let Some(points) = put(&mut input) {
                if connection < ended {
                    // The next one is on its way: it is lost. A socket that is closed over bytes that nobody read is reset.
                    assert!(connection > 0 || stream.peek(&mut [0]).unwrap() > 0);
                    stream.write_all(answer.as_bytes()).unwrap();
                    break;
                }
                let count = points.len();
                take.send(points).unwrap();
                stored(&mut stream, count);
            }
        }
    }

    /// Imports points of these timestamps.
    fn send(timestamps: &std::ops::Range<i64>, remote: &Remote) -> Result<Sum, Failure> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("points");
        let lines: Vec<_> = timestamps.clone().map(|timestamp| format!("m {timestamp} 1 h=a\n")).collect();
        std::fs::write(&path, lines.concat()).unwrap();
        run(
            &Job { paths: vec![path], resume: None, rate: None, skip_errors: false, ends: std::sync::Arc::default() },
            remote,
        )
    }

    /// Imports points of these timestamps from such a server on; what became of it, and what the server took.
    fn import(
        timestamps: &std::ops::Range<i64>,
        serve: impl FnOnce(TcpListener, mpsc::Sender<Vec<i64>>) + Send + 'static,
    ) -> (Result<Sum, Failure>, Vec<i64>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut remote = Remote::connect(&listener.local_addr().unwrap().to_string()).unwrap();
        // No time has passed at the first failure, and some at the next.
        remote.patience = (Duration::from_nanos(1), Duration::ZERO);
        let (take, taken) = mpsc::channel();
        std::thread::spawn(move || serve(listener, take));
        let done = send(timestamps, &remote);
        (done, taken.try_iter().flatten().collect())
    }

    const TIMESTAMPS: std::ops::Range<i64> = 1_356_998_400..1_357_098_400;

    fn check_later(ended: &Result<Sum, Failure>, told: &str) {
        let failure = ended.as_ref().unwrap_err();
        assert!(failure.exit == Exit::TryLater && failure.line.contains(told), "{}", failure.line);
    }

    /// An answer that closes comes of a server that replays its log, with the blocks behind on the connection, which nobody reads; none of
    /// one that was ended.
    #[test]
    fn what_was_on_a_connection_that_ended_is_sent_again() {
        for (answer, told) in [(LATER, "503 wait"), ("", "lost: ")] {
            let after = |ended| move |listener, take| serve_after(ended, answer, &listener, &take);
            let (done, taken) = import(&TIMESTAMPS, after(1));
            assert_eq!(done.unwrap().stored, 100_000, "each line counts once");
            assert!(taken.ends_with(&TIMESTAMPS.collect::<Vec<_>>()), "in their order");
            let (done, taken) = import(&TIMESTAMPS, after(usize::MAX));
            check_later(&done, told);
            assert!(taken.is_empty());
        }
    }

    fn connect_impatiently(listener: &TcpListener) -> Remote {
        let mut remote = Remote::connect(&listener.local_addr().unwrap().to_string()).unwrap();
        let stream = remote.writer.get_mut().unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        stream.set_write_timeout(None).unwrap();
        remote
    }

    /// It may only be slow: what came on another connection could be stored before what it has.
    #[test]
    fn a_server_that_does_not_answer_ends_the_import() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let remote = connect_impatiently(&listener);
        let mut stream = listener.accept().unwrap().0;
        std::thread::spawn(move || io::copy(&mut stream, &mut io::sink()).is_ok());
        let done = send(&TIMESTAMPS, &remote);
        check_later(&done, "no answer from ");
        check_later(&done, "run the same again");
        listener.set_nonblocking(true).unwrap();
        assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    }

    /// Nor is it sent again where a proxy says so in its place.
    #[test]
    fn a_proxy_that_waits_no_longer_ends_the_import() {
        let (done, _) = import(&TIMESTAMPS, |listener, _| {
            let mut stream = BufReader::new(listener.accept().unwrap().0);
            put(&mut stream).unwrap();
            write!(stream.get_mut(), "HTTP/1.1 504 Late\r\nContent-Length: 4\r\n\r\nslow").unwrap();
            io::copy(&mut stream, &mut io::sink()).unwrap_or_default();
        });
        check_later(&done, "504 slow");
        check_later(&done, "run the same again");
    }

    /// Nobody takes its bytes.
    #[test]
    fn a_block_that_waits_to_be_sent_ends_with_the_one_before() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let remote = connect_impatiently(&listener);
        let text = [b"m".repeat(32 << 20).as_slice(), b" 1356998400 1 h=a\n"].concat();
        let large = Block { text, ..block(1, 0) };
        std::thread::scope(|scope| {
            let behind = scope.spawn(|| remote.store(&large));
            assert!(matches!(remote.store(&block(0, 0)), Err(Unstored::Over(_))));
            assert!(matches!(behind.join().unwrap(), Err(Unstored::Over(_))));
        });
    }

    /// Nor of the first: it is not waited for twice.
    #[test]
    fn a_server_that_takes_no_bytes_ends_the_import() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut remote = connect_impatiently(&listener);
        remote.writer.get_mut().unwrap().set_write_timeout(Some(Duration::from_millis(1))).unwrap();
        let text = [b"m".repeat(32 << 20).as_slice(), b" 1356998400 1 h=a\n"].concat();
        match remote.store(&Block { text, ..block(0, 0) }) {
            Err(Unstored::Over(failure)) => check_later(&Err(failure), "took no bytes within 120 s"),
            other => panic!("{other:?}"),
        }
    }

    /// It is the same as with a host.
    #[test]
    fn a_network_that_is_away_may_be_back() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let remote = Remote::connect(&listener.local_addr().unwrap().to_string()).unwrap();
        for kind in [ErrorKind::HostUnreachable, ErrorKind::NetworkUnreachable, ErrorKind::NetworkDown] {
            match remote.lost(&kind.into()) {
                Unstored::Over(failure) => check_later(&Err(failure), "lost: "),
                other @ Unstored::Later(_) => panic!("{other:?}"),
            }
        }
    }

    /// One that is started anew is away for a while.
    #[test]
    fn a_server_that_is_gone_is_looked_for_again() {
        let (done, _) = import(&TIMESTAMPS, |listener, _| {
            let stream = listener.accept().unwrap().0;
            drop(listener);
            put(&mut BufReader::new(stream)).unwrap();
        });
        check_later(&done, "cannot reach ");
    }

    /// Where packets are dropped each try takes seconds.
    #[test]
    fn a_server_that_is_gone_is_looked_for_once_a_round() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut remote = Remote::connect(&listener.local_addr().unwrap().to_string()).unwrap();
        drop(listener.accept().unwrap());
        let address = std::mem::replace(&mut remote.address, "127.0.0.1:1".to_owned());
        let later = |remote: &Remote, ticket| match remote.store(&block(ticket, 0)) {
            Err(Unstored::Later(failure)) => failure.line,
            other => panic!("{other:?}"),
        };
        let gone = later(&remote, 0);
        assert!(gone.contains("cannot reach 127.0.0.1:1"), "{gone}");
        remote.address = address;
        // It is there again.
        std::thread::scope(|scope| {
            scope.spawn(move || serve(&listener, 1));
            assert_eq!(later(&remote, 1), gone);
            assert_eq!(remote.store(&block(2, 1)).unwrap().points, 1);
        });
    }
}
