//! A telnet connection that points are written to. Nothing answers a `put` but an error line where it was refused: these are
//! read between the requests, as a server drops what nobody reads, and heard out at the end.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use crate::exit::{Exit, Failure};
use crate::peer;

/// What is kept of a line.
const LINE_BYTES_MAX: usize = 400;
/// Bytes that are read at once.
const PIECE_BYTES: usize = 16 << 10;
/// What a server says to whom it does not know.
const NOT_AUTHENTICATED: &str = "AUTH_FAIL";

/// A connection, and the line that it is in the middle of.
#[derive(Debug)]
pub(super) struct Telnet {
    stream: TcpStream,
    line: Vec<u8>,
}

/// What a server said.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) bytes: u64,
    pub(super) lines: u64,
    pub(super) first: String,
}

impl Telnet {
    /// Connects to `HOST:PORT`, and shows a token.
    ///
    /// # Errors
    ///
    /// Nobody listens there, or the token is refused. A server that knows no `auth` needs none.
    pub(super) fn connect(address: &str, patience: Duration, token: Option<&str>) -> Result<Self, Failure> {
        let mut telnet = Self { stream: peer::connect(address, patience)?, line: Vec::new() };
        let Some(token) = token else { return Ok(telnet) };
        let answer = telnet.authenticate(token).map_err(|cause| peer::unreachable(address, &cause))?;
        if token.contains(char::is_whitespace) || answer.first == NOT_AUTHENTICATED {
            let line = format!("{address} refuses the token that {} has", peer::TOKEN_VARIABLE);
            return Err(Failure::new(Exit::Failure, line));
        }
        Ok(telnet)
    }

    /// The answer to `auth`.
    fn authenticate(&mut self, token: &str) -> io::Result<Said> {
        self.stream.write_all(format!("auth {token}\n").as_bytes())?;
        let mut said = Said::default();
        while said.lines == 0 {
            if self.read(&mut said)? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(said)
    }

    /// Writes lines.
    pub(super) fn put(&mut self, lines: &[u8]) -> io::Result<()> {
        self.stream.write_all(lines)
    }

    /// What has come by now.
    pub(super) fn said(&mut self) -> Said {
        let mut said = Said::default();
        if self.stream.set_nonblocking(true).is_ok() {
            // An end, or an error, is the next write's.
            while self.read(&mut said).is_ok_and(|read| read > 0) {}
        }
        // One that stayed so would fail the next write.
        self.stream.set_nonblocking(false).unwrap_or_default();
        said
    }

    /// Hears the server out, which closes when it has taken everything; the error with which it ended else.
    pub(super) fn rest(&mut self) -> (Said, io::Result<()>) {
        let mut said = Said::default();
        let ended = self.stream.shutdown(Shutdown::Write).and_then(|()| {
            while self.read(&mut said)? > 0 {}
            Ok(())
        });
        self.end_line(&mut said);
        (said, ended)
    }

    /// Reads what there is into `said`; how many bytes there were.
    fn read(&mut self, said: &mut Said) -> io::Result<usize> {
        let mut piece = [0; PIECE_BYTES];
        let read = loop {
            match self.stream.read(&mut piece) {
                Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        said.bytes += read as u64;
        for byte in piece.iter().take(read) {
            match byte {
                b'\n' => self.end_line(said),
                b'\r' => {}
                _ if self.line.len() < LINE_BYTES_MAX => self.line.push(*byte),
                _ => {}
            }
        }
        Ok(read)
    }

    fn end_line(&mut self, said: &mut Said) {
        if self.line.is_empty() {
            return;
        }
        if said.lines == 0 {
            said.first = String::from_utf8_lossy(&self.line).into_owned();
        }
        said.lines += 1;
        self.line.clear();
    }
}

impl Said {
    /// Why points were refused, for a person.
    pub(super) fn why(self) -> String {
        let advice = if self.first == NOT_AUTHENTICATED { peer::TOKEN_ADVICE } else { "" };
        self.first + advice
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::net::TcpListener;

    use super::*;

    const PATIENCE: Duration = Duration::from_mins(1);

    #[test]
    fn a_token_is_shown_first_and_its_answer_read() {
        for (answer, is_let_in) in
            [("AUTH_SUCCESS\r\n", true), ("AUTH_FAIL\r\n", false), ("unknown command: auth.  Try `help'.\n", true)]
        {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap().to_string();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let mut input = BufReader::new(listener.accept().unwrap().0);
                    let mut line = String::new();
                    input.read_line(&mut line).unwrap();
                    assert_eq!(line, "auth secret\n");
                    input.get_mut().write_all(answer.as_bytes()).unwrap();
                });
                let telnet = Telnet::connect(&address, PATIENCE, Some("secret"));
                assert_eq!(telnet.is_ok(), is_let_in, "{answer}");
                let refused =
                    telnet.err().is_none_or(|failure| failure.line.contains("the token that BASALT_TOKEN has"));
                assert!(refused, "{answer}");
            });
        }
    }

    #[test]
    fn what_is_said_is_counted_by_lines_in_whatever_pieces_it_comes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut telnet = Telnet::connect(&listener.local_addr().unwrap().to_string(), PATIENCE, None).unwrap();
        let mut server = listener.accept().unwrap().0;
        let (long, mut lines, mut bytes) = ("y".repeat(1_000), 0, 0);
        for (piece, expected) in [("put: a\nput", 1), (": b\r\n\r\n", 1), (&long, 0)] {
            server.write_all(piece.as_bytes()).unwrap();
            let (before, end) = (lines, bytes + piece.len() as u64);
            while bytes < end {
                let said = telnet.said();
                (lines, bytes) = (lines + said.lines, bytes + said.bytes);
            }
            assert_eq!(lines - before, expected, "{piece}");
        }
        drop(server);
        let (said, ended) = telnet.rest();
        assert_eq!((said.lines, said.first.len()), (1, LINE_BYTES_MAX));
        ended.unwrap();
    }
}
