//! A connection to the server that is measured, opened anew where it ended.
//!
//! Servers and proxies close connections, with an answer or when nothing came for a while: that costs a new one, and no
//! request. A request that is lost on its way is not sent again, for nobody knows whether it was taken. After some in a row
//! the server is held to be gone.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::Duration;

use crate::exit::Failure;
use crate::peer::{self, Answer, Reader};

/// Requests in a row that are lost when the server is gone.
const LOST_MAX: u32 = 5;
/// What is waited after the second request in a row that is lost; twice as long after the third, and so on.
const PAUSE: Duration = Duration::from_millis(100);

/// A connection, and how it fares.
#[derive(Debug)]
pub(crate) struct Link<'a> {
    address: &'a str,
    /// How long the server may take for one answer.
    patience: Duration,
    /// `None` where it ended.
    open: Option<(TcpStream, Reader)>,
    /// Requests in a row that were lost, or refused by an answer that closes, as a server does that starts or ends.
    lost: u32,
}

impl<'a> Link<'a> {
    /// Connects to `HOST:PORT`.
    ///
    /// # Errors
    ///
    /// Nobody listens there.
    pub(crate) fn connect(address: &'a str, patience: Duration) -> Result<Self, Failure> {
        Ok(Self { address, patience, open: Some(peer::open(address, patience)?), lost: 0 })
    }

    /// Sends a request and reads its answer, of whose body it keeps the beginning, on a new connection where the last one ended.
    ///
    /// # Errors
    ///
    /// Why it was refused or lost.
    pub(crate) fn ask(&mut self, head: &[u8], body: &[u8]) -> Result<Answer, String> {
        let kept = self.open.take().filter(|(_, reader)| reader.is_silent());
        let answer = self.answered(kept, head, body);
        let is_well = answer.as_ref().is_ok_and(|answer| !answer.closes || answer.refusal().is_none());
        self.lost = if is_well { 0 } else { self.lost + 1 };
        let answer = answer?;
        answer.refusal().map_or(Ok(answer), Err)
    }

    /// Whether so many requests were lost in a row, or one was waited for so long, that no more need be sent.
    pub(crate) fn is_gone(&self) -> bool {
        self.lost >= LOST_MAX
    }

    /// Waits after requests that were lost. Not in [`Self::ask`], whose time is the server's.
    pub(crate) fn rest(&self) {
        if !self.is_gone() {
            std::thread::park_timeout(PAUSE * self.lost.saturating_sub(1));
        }
    }

    /// An answer, after which the connection is kept if both sides keep it.
    fn answered(&mut self, kept: Option<(TcpStream, Reader)>, head: &[u8], body: &[u8]) -> Result<Answer, String> {
        let (mut stream, mut reader) =
            kept.map_or_else(|| peer::open(self.address, self.patience), Ok).map_err(|failure| failure.line)?;
        let answer = peer::send(&mut stream, head, body).and_then(|()| reader.counted()).map_err(|cause| {
            if !matches!(cause.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) {
                return format!("connection to {} lost: {cause}", self.address);
            }
            self.lost = LOST_MAX;
            format!("no answer of {} within {} s", self.address, self.patience.as_secs())
        })?;
        self.open = (!answer.closes).then_some((stream, reader));
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::TcpListener;

    use super::*;

    const PATIENCE: Duration = Duration::from_mins(1);
    const TAKEN: &str = "HTTP/1.1 204 No Content\r\n\r\n";
    const TAKEN_AND_CLOSED: &str = "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
    const LATER: &str = "HTTP/1.1 503 Later\r\nConnection: close\r\nContent-Length: 4\r\n\r\nwait";

    /// A server that gives these answers, each on a connection of its own that it closes then; nobody listens behind the last.
    fn serve(answers: &'static [&'static str]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            let mut listener = Some(listener);
            for (index, answer) in answers.iter().enumerate() {
                let mut stream = listener.as_ref().unwrap().accept().unwrap().0;
                let mut input = BufReader::new(stream.try_clone().unwrap());
                let mut line = String::new();
                while line != "\r\n" {
                    line.clear();
                    assert_ne!(input.read_line(&mut line).unwrap(), 0);
                }
                if index + 1 == answers.len() {
                    listener = None;
                }
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        address
    }

    /// What becomes of a request: its status, or the beginning of why it has none.
    fn ask(link: &mut Link<'_>) -> String {
        match link.ask(b"GET / HTTP/1.1\r\n\r\n", b"") {
            Ok(answer) => answer.status.to_string(),
            Err(why) => why.chars().take(12).collect(),
        }
    }

    #[test]
    fn a_connection_that_ends_with_its_answer_costs_no_request() {
        let address = serve(&[TAKEN_AND_CLOSED, TAKEN_AND_CLOSED, TAKEN_AND_CLOSED]);
        let mut link = Link::connect(&address, PATIENCE).unwrap();
        assert_eq!([ask(&mut link), ask(&mut link), ask(&mut link)], ["204", "204", "204"]);
    }

    #[test]
    fn a_connection_that_ended_while_it_was_idle_costs_no_request() {
        let address = serve(&[TAKEN, TAKEN]);
        let mut link = Link::connect(&address, PATIENCE).unwrap();
        assert_eq!(ask(&mut link), "204");
        while link.open.as_ref().unwrap().1.is_silent() {
            std::thread::yield_now();
        }
        assert_eq!((ask(&mut link).as_str(), link.lost), ("204", 0));
    }

    #[test]
    fn a_request_that_is_lost_fails_alone() {
        let address = serve(&["", TAKEN]);
        let mut link = Link::connect(&address, PATIENCE).unwrap();
        assert_eq!((ask(&mut link).as_str(), link.lost), ("connection t", 1));
        assert_eq!((ask(&mut link).as_str(), link.lost), ("204", 0));
    }

    #[test]
    fn a_server_that_is_gone_or_takes_nothing_is_given_up() {
        let address = serve(&[TAKEN_AND_CLOSED, LATER]);
        let mut link = Link::connect(&address, PATIENCE).unwrap();
        assert_eq!([ask(&mut link), ask(&mut link)], ["204", "503 wait"]);
        for _ in 1..LOST_MAX {
            assert!(!link.is_gone());
            assert_eq!(ask(&mut link), "cannot reach");
        }
        assert!(link.is_gone());
    }

    #[test]
    fn a_server_that_does_not_answer_is_given_up_at_once() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let mut link = Link::connect(&address, Duration::from_millis(50)).unwrap();
        assert_eq!(ask(&mut link), "no answer of");
        assert!(link.is_gone());
    }
}
