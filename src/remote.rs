//! A running daemon that does what an operator's tool asks: commands are sent whole to its `/store` and the paths below
//! it, and what comes back is printed.

use std::io::{self, Write};

use basalt_shell::{Elsewhere, Failed, Next, Reason, Style};
use basalt_store::ErrorKind;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::StatusCode;
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::exit::{Exit, Failure};
use crate::peer::{CONNECT_PATIENCE, Refused};

/// The longest last object of an answer.
const TOLD_BYTES_MAX: usize = 1 << 20;

/// A running daemon that an operator's tool asks.
#[derive(Debug)]
pub(crate) struct Server {
    address: String,
    runtime: Runtime,
}

/// A running daemon as the shell's runner.
pub(crate) struct Remote<'a> {
    server: Server,
    out: &'a mut dyn Write,
    style: Style,
}

impl std::fmt::Debug for Remote<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Remote").field("server", &self.server).finish_non_exhaustive()
    }
}

/// The last object of an answer.
#[derive(Debug, Deserialize)]
struct Ending {
    end: Option<bool>,
    exit: Option<u8>,
    failed: Option<String>,
}

impl Server {
    /// A daemon at `http://HOST:PORT`; port 4242 unless told. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// An address that is none.
    pub(crate) fn at(url: &str) -> Result<Self, Failure> {
        let address = crate::peer::address(url)?;
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|cause| Failure::new(Exit::Failure, format!("cannot start: {cause}")))?;
        Ok(Self { address, runtime })
    }

    /// Has the daemon do something of an operator's, and prints what it answers to `out`.
    ///
    /// # Errors
    ///
    /// What the daemon tells, with its exit code; no daemon there, or one that ends meanwhile.
    pub(crate) fn ask(&self, path: &str, body: &[u8], out: &mut dyn Write) -> Result<(), Failure> {
        let told = self.exchange(path, body, out).map_err(|cause| match cause {
            Lost::Output(cause) => Failure::output(&cause),
            Lost::Server(exit, cause) => Failure::new(exit, cause),
        })?;
        let Some(failed) = told.failed else { return Ok(()) };
        Err(Failure::new(exit_told(told.exit), failed))
    }

    fn exchange(&self, path: &str, body: &[u8], out: &mut dyn Write) -> Result<Ending, Lost> {
        self.runtime.block_on(exchange(&self.address, path, body, out))
    }
}

impl<'a> Remote<'a> {
    /// A shell's runner that prints to `out`; the rest as [`Server::at`].
    ///
    /// # Errors
    ///
    /// An address that is none.
    pub(crate) fn new(url: &str, out: &'a mut dyn Write, style: Style) -> Result<Self, Failure> {
        Ok(Self { server: Server::at(url)?, out, style })
    }
}

impl Elsewhere for Remote<'_> {
    fn run(&mut self, commands: &[u8], line: u32) -> Result<Next, Failed> {
        let Self { server, out, style } = self;
        let path = format!("/store?line={line}{}{}", flag("json", style.json), flag("epoch", style.epoch));
        let told = server.exchange(&path, commands, *out).map_err(|cause| match cause {
            Lost::Output(cause) => Failed::output(line, cause),
            Lost::Server(exit, cause) => Failed::not_done(line, &cause, exit as u8),
        })?;
        match told.failed {
            Some(failed) => Err(Failed::told(failed, told.exit)),
            None if told.end == Some(true) => Ok(Next::End),
            None => Ok(Next::Command),
        }
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

impl From<Failed> for Failure {
    fn from(failed: Failed) -> Self {
        if let Some(cause) = failed.unprinted().filter(|cause| cause.kind() == io::ErrorKind::BrokenPipe) {
            return Self::output(cause);
        }
        let exit = match failed.reason() {
            // A table that is disabled is so later too.
            Reason::Store(ErrorKind::Unavailable) | Reason::Wrong | Reason::Output => Exit::Failure,
            Reason::Store(kind) => crate::store::exit_of(kind),
            Reason::Told(code) => exit_told(code),
        };
        Self::new(exit, failed.to_string())
    }
}

/// The exit code that somebody else would end with.
fn exit_told(code: Option<u8>) -> Exit {
    let codes = [Exit::Usage, Exit::Config, Exit::Locked, Exit::Damage, Exit::Disk, Exit::TryLater];
    codes.into_iter().find(|exit| code == Some(*exit as u8)).unwrap_or(Exit::Failure)
}

fn flag(name: &str, is_set: bool) -> String {
    if is_set { format!("&{name}") } else { String::new() }
}

/// Why there is no whole answer.
enum Lost {
    Output(io::Error),
    /// One sentence that names the server and says what to do.
    Server(Exit, String),
}

impl Lost {
    fn unreachable(address: &str, cause: &dyn std::fmt::Display) -> Self {
        Self::Server(Exit::Failure, format!("cannot reach {address}: {cause}; is the server running there?"))
    }

    fn broken(address: &str, cause: &dyn std::fmt::Display) -> Self {
        let advice = "look into the server's log, then run this again: what was done stays";
        Self::Server(Exit::Failure, format!("{address}: the answer broke off ({cause}); {advice}"))
    }

    /// What an answer means that is no success.
    fn refused(address: &str, status: StatusCode, body: &[u8]) -> Self {
        let Some(told) = Refused::told(body) else {
            return Self::Server(Exit::Failure, format!("{address}: {status}: is this a Basalt server?"));
        };
        let exit = if status == StatusCode::SERVICE_UNAVAILABLE { Exit::TryLater } else { Exit::Failure };
        let mut line = format!("{address}: {status}: {told}");
        if status == StatusCode::UNAUTHORIZED || told.starts_with(crate::http::ROLE_TOO_LOW) {
            line += "; set BASALT_TOKEN to an administrator's token";
        }
        Self::Server(exit, line)
    }
}

async fn exchange(address: &str, path: &str, commands: &[u8], out: &mut dyn Write) -> Result<Ending, Lost> {
    let unreachable = |cause: &dyn std::fmt::Display| Lost::unreachable(address, cause);
    let broken = |cause: &dyn std::fmt::Display| Lost::broken(address, cause);
    let connected = timeout(CONNECT_PATIENCE, TcpStream::connect(address)).await;
    let stream = connected.unwrap_or_else(|late| Err(late.into())).map_err(|cause| unreachable(&cause))?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|cause| unreachable(&cause))?;
    let mut request = hyper::Request::post(path)
        .header(HOST, address)
        .header(CONTENT_TYPE, "text/plain")
        .header(crate::http::ADMIN_HEADER, "shell");
    if let Ok(token) = std::env::var(crate::peer::TOKEN_VARIABLE) {
        request = request.header(AUTHORIZATION, format!("Bearer {token}"));
    }
    let request = request.body(Full::new(Bytes::copy_from_slice(commands))).map_err(|cause| {
        let advice = "is BASALT_TOKEN as `basalt token` printed it?";
        Lost::Server(Exit::Failure, format!("cannot ask {address}: {cause}; {advice}"))
    })?;
    // The connection is driven beside its request; it ends with it.
    let driver = tokio::spawn(connection);
    let response = sender.send_request(request).await.map_err(|cause| broken(&cause))?;
    let status = response.status();
    let mut body = response.into_body();
    let mut last = Last::default();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|cause| broken(&cause))?;
        let Ok(data) = frame.into_data() else { continue };
        if status.is_success() {
            last.take(&data, out).map_err(Lost::Output)?;
        } else if last.bytes.len() + data.len() <= TOLD_BYTES_MAX {
            last.bytes.extend_from_slice(&data);
        } else {
            return Err(broken(&"its end is too long"));
        }
    }
    driver.abort();
    out.flush().map_err(Lost::Output)?;
    if !status.is_success() {
        return Err(Lost::refused(address, status, &last.bytes));
    }
    serde_json::from_slice(&last.bytes).map_err(|_| broken(&"its end is missing"))
}

/// What stands behind the last NUL byte of an answer; all else is printed.
#[derive(Debug, Default)]
struct Last {
    /// Behind the last one so far, without it.
    bytes: Vec<u8>,
    /// Whether there was one, which is not printed.
    is_behind: bool,
}

impl Last {
    /// Takes the next piece of an answer. A NUL byte that another one follows was printed too, as a value is that has one.
    fn take(&mut self, piece: &[u8], out: &mut dyn Write) -> io::Result<()> {
        let nul = piece.iter().rposition(|byte| *byte == 0);
        let is_too_long = self.bytes.len() + piece.len() > TOLD_BYTES_MAX;
        if self.is_behind && (nul.is_some() || is_too_long) {
            out.write_all(&[0])?;
            out.write_all(&self.bytes)?;
            self.bytes.clear();
            self.is_behind = false;
        }
        let (printed, told) = match nul {
            Some(at) => (piece.get(..at), piece.get(at + 1..)),
            None if self.is_behind => (None, Some(piece)),
            None => (Some(piece), None),
        };
        out.write_all(printed.unwrap_or_default())?;
        self.bytes.extend_from_slice(told.unwrap_or_default());
        self.is_behind |= nul.is_some();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is printed of an answer in pieces, and its end.
    fn check(pieces: &[&[u8]], printed: &[u8], told: &[u8]) {
        let (mut last, mut out) = (Last::default(), Vec::new());
        for piece in pieces {
            last.take(piece, &mut out).unwrap();
        }
        assert_eq!((&*out, &*last.bytes), (printed, told), "{pieces:?}");
    }

    /// `toString` prints a value's bytes as they are, NUL bytes among them.
    #[test]
    fn an_answer_ends_behind_its_last_nul() {
        check(&[b"a\n\0{}"], b"a\n", b"{}");
        check(&[b"a", b"\n\0", b"{", b"}"], b"a\n", b"{}");
        check(&[b"a\0b\0c\n\0{}"], b"a\0b\0c\n", b"{}");
        check(&[b"a\0", b"b", b"c\n", b"\0{}"], b"a\0bc\n", b"{}");
        check(&[b"\0", b"\0", b"\0{}"], b"\0\0", b"{}");
        check(&[b"a\n"], b"a\n", b"");
        let long = vec![b'x'; TOLD_BYTES_MAX];
        check(&[b"\0a", &long, b"\0{}"], &[&b"\0a"[..], &long].concat(), b"{}");
    }
}
