//! One telnet connection.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use basalt_ingest::{Door, decode_line};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::command::{Command, WORDS};
use super::lines::{Lines, TooLong};
use super::{PutKind, put_lines, put_points, reply};
use crate::app::App;
use crate::auth::{Permission, Role};
use crate::clock;
use crate::config::Mode;
use crate::stop::{Stop, stopped};

/// Bytes taken from the socket at once, at first.
const READ_BYTES_MIN: usize = 64 << 10;
/// And at most: bounds the puts of one batch, and a line whose end is there. Less where memory is scarce: what is taken is held
/// as text, as points and as cells until it is on disk.
const READ_BYTES_MAX: usize = 512 << 10;
/// Error lines kept for a peer that does not read.
const UNREAD_BYTES_MAX: usize = 64 << 10;
/// How long a reply to a command may wait for the peer to read.
const REPLY_PATIENCE: Duration = Duration::from_secs(15);

/// A connection, its unfinished line and its unread error lines.
#[derive(Debug)]
pub(crate) struct Session {
    app: Arc<App>,
    stream: TcpStream,
    lines: Lines,
    /// How much is taken from the socket at once.
    read_bytes: usize,
    read_bytes_max: usize,
    unread: Vec<u8>,
    /// What was shown by `auth`.
    shown: Option<Shown>,
    /// What the sender may do by it; `None` for nobody known.
    role: Option<Role>,
}

/// Who the sender says to be.
#[derive(Debug)]
struct Shown {
    name: Option<String>,
    token: String,
}

impl Shown {
    /// `auth TOKEN` or `auth … NAME TOKEN`.
    fn of(line: &[u8]) -> Option<Self> {
        let words: Vec<&str> = std::str::from_utf8(line).ok()?.split_ascii_whitespace().skip(1).collect();
        let (token, before) = words.split_last()?;
        Some(Self { name: before.last().map(|name| (*name).to_owned()), token: (*token).to_owned() })
    }
}

/// Whether the connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Read,
    Close,
}

impl Session {
    pub(crate) fn new(app: Arc<App>, stream: TcpStream) -> Self {
        let lines = Lines::new(app.config.telnet.max_line_bytes);
        let read_bytes_max = (app.config.connection_bytes() / 2).clamp(READ_BYTES_MIN, READ_BYTES_MAX);
        let (read_bytes, unread) = (READ_BYTES_MIN, Vec::new());
        Self { app, stream, lines, read_bytes, read_bytes_max, unread, shown: None, role: None }
    }

    /// Until the peer closes, says `exit`, stays silent too long, or the daemon stops. A stop lets
    /// the batch under way finish; lines that were not read stay with the sender.
    pub(crate) async fn run(mut self, mut stop: Stop) -> io::Result<()> {
        loop {
            let read = tokio::select! {
                read = self.read() => read?,
                () = stopped(&mut stop) => return self.stream.shutdown().await,
            };
            if read == 0 || self.execute().await? == Next::Close {
                return self.stream.shutdown().await;
            }
        }
    }

    async fn read(&mut self) -> io::Result<usize> {
        let patience = self.app.config.telnet.idle_timeout_ms;
        let reading = self.stream.read_buf(self.lines.buffer(self.read_bytes));
        let read = if patience.is_zero() {
            reading.await?
        } else {
            // Silence for that long ends the connection as the peer's own close would.
            timeout(patience, reading).await.unwrap_or(Ok(0))?
        };
        self.read_bytes = read_bytes_after(self.read_bytes, read, self.read_bytes_max);
        Ok(read)
    }

    /// Executes every whole line that has come: runs of puts as one batch each, other commands one
    /// by one between them.
    async fn execute(&mut self) -> io::Result<Next> {
        let block = self.lines.take();
        let (mut kind, mut puts) = (PutKind::Put, Vec::new());
        // Anew with all that comes, since a token may be taken away.
        self.role = self.role_now();
        // Fast path: nothing but puts of known series.
        if self.command_of(b"put ") == Command::Put
            && let Some(text) = block.text()
            && let Some(points) = self.app.ingest.parse_known_block(text)
        {
            self.app.metrics.telnet_commands.add(points.len() as u64);
            let errors = put_points(&self.app, Door::Telnet, points).await;
            self.tell(errors);
            return Ok(Next::Read);
        }
        for line in block.lines() {
            match line {
                Ok(line) if let Some(next) = kind_of(self.command_of(line)) => {
                    if next != kind {
                        self.store(kind, std::mem::take(&mut puts)).await;
                        kind = next;
                    }
                    puts.push(line);
                }
                Ok(line) => {
                    self.store(kind, std::mem::take(&mut puts)).await;
                    if self.command(line).await? == Next::Close {
                        return Ok(Next::Close);
                    }
                }
                Err(TooLong) => {
                    self.store(kind, puts).await;
                    self.say(&reply::line_too_long(self.app.config.telnet.max_line_bytes)).await?;
                    return Ok(Next::Close);
                }
            }
        }
        self.store(kind, puts).await;
        Ok(Next::Read)
    }

    /// Stores a run of puts and tells what is wrong with them.
    async fn store(&mut self, kind: PutKind, puts: Vec<&[u8]>) {
        if puts.is_empty() {
            return;
        }
        self.app.metrics.telnet_commands.add(puts.len() as u64);
        let has_histograms = !self.app.config.schema.histograms.is_empty();
        let errors = if kind == PutKind::Histogram && !has_histograms {
            vec![reply::NO_HISTOGRAMS.to_owned(); puts.len()]
        } else {
            put_lines(&self.app, Door::Telnet, kind, &puts).await
        };
        self.tell(errors);
    }

    /// Offers error lines to the peer, without waiting for it.
    fn tell(&mut self, errors: Vec<String>) {
        if !self.app.config.telnet.return_errors {
            return;
        }
        for error in errors {
            if self.unread.len() + error.len() > UNREAD_BYTES_MAX {
                self.flush_unread();
            }
            if self.unread.len() + error.len() > UNREAD_BYTES_MAX {
                self.app.metrics.telnet_errors_unread.add(1);
            } else {
                self.unread.extend_from_slice(error.as_bytes());
            }
        }
        self.flush_unread();
    }

    /// Writes as much as the socket takes now.
    fn flush_unread(&mut self) {
        // A dead peer is noticed by the next read; until then its lines are simply unread.
        while let Ok(written @ 1..) = self.stream.try_write(&self.unread) {
            self.unread.drain(..written);
        }
    }

    /// What the sender may do now; `None` for nobody known.
    fn role_now(&self) -> Option<Role> {
        if !self.app.users.are_asked() {
            return Some(Role::Administrator);
        }
        let shown = self.shown.as_ref()?;
        self.app.users.role(shown.name.as_deref(), &shown.token)
    }

    /// What a line means to this sender in this mode: without writes there is no `put` (`H-MODE`).
    fn command_of<'a>(&self, line: &'a [u8]) -> Command<'a> {
        match Command::of(line) {
            command if !self.may(command) => Command::Refused,
            command
                if self.app.config.server.mode == Mode::ReadOnly
                    && let Some(kind) = kind_of(command) =>
            {
                Command::Unknown(kind.word().as_bytes())
            }
            Command::Auth if !self.app.config.server.auth_allow_all && !self.app.users.are_asked() => {
                Command::Unknown(b"auth")
            }
            Command::DieDieDie if !self.app.config.server.allow_diediedie => Command::Unknown(b"diediedie"),
            command => command,
        }
    }

    /// Whether `help` lists a command (`T-HELP`): those that this sender may use on this server. OpenTSDB 2.4 has no
    /// `status`.
    fn takes(&self, word: &str) -> bool {
        match self.command_of(word.as_bytes()) {
            Command::Unknown(_) | Command::Refused => false,
            Command::Status => !self.app.config.compat.strict,
            _ => true,
        }
    }

    /// Whether the sender's role has what a command needs (`P-AUTH`).
    fn may(&self, command: Command<'_>) -> bool {
        let needed = match command {
            Command::Auth | Command::Exit => return true,
            Command::Put | Command::Rollup | Command::Histogram => Permission::Write,
            Command::Stats | Command::Status => Permission::Read,
            Command::DropCaches | Command::DieDieDie => Permission::Operate,
            Command::Version | Command::Help | Command::Unknown(_) | Command::Refused => return self.role.is_some(),
        };
        self.role.is_some_and(|role| role.may(needed))
    }

    /// Looks at the token that an `auth` shows.
    fn authenticate(&mut self, line: &[u8]) -> String {
        self.shown = Shown::of(line);
        self.role = self.role_now();
        if self.role.is_some() {
            return reply::AUTHENTICATED.to_owned();
        }
        let peer = self.stream.peer_addr().map(|peer| peer.to_string()).ok();
        tracing::warn!(peer, "a token was refused");
        self.refuse()
    }

    /// Counts a command that the sender may not give; what is told to them.
    fn refuse(&self) -> String {
        let refused = &self.app.metrics.telnet_refused;
        if self.role.is_none() {
            refused.unauthorized.add(1);
            return reply::NOT_AUTHENTICATED.to_owned();
        }
        refused.forbidden.add(1);
        reply::FORBIDDEN.to_owned()
    }

    async fn command(&mut self, line: &[u8]) -> io::Result<Next> {
        self.app.metrics.telnet_commands.add(1);
        let text = match self.command_of(line) {
            Command::Exit => return Ok(Next::Close),
            // Puts never come here; a later reply tells them apart.
            Command::Put | Command::Rollup | Command::Histogram => return Ok(Next::Read),
            Command::Version => reply::version(),
            Command::Help => reply::help(WORDS.into_iter().filter(|word| self.takes(word))),
            Command::Stats => {
                let mut lines = crate::stats::lines(&self.app, clock::now_ms()).await;
                lines.push(String::new());
                lines.join("\n")
            }
            Command::Auth => self.authenticate(line),
            Command::Refused => self.refuse(),
            Command::DieDieDie => {
                self.say(reply::DYING).await?;
                self.app.ask_to_end("telnet diediedie");
                return Ok(Next::Read);
            }
            Command::Status => format!("{}\n", self.app.status_word()),
            Command::DropCaches => {
                if self.app.drop_caches().await.is_err() {
                    return Ok(Next::Close);
                }
                reply::CACHES_DROPPED.to_owned()
            }
            Command::Unknown(word) => reply::unknown(&decode_line(word)),
        };
        self.say(&text).await?;
        Ok(Next::Read)
    }

    /// Writes error lines left over and then `text`, waiting for the peer at most so long.
    async fn say(&mut self, text: &str) -> io::Result<()> {
        self.unread.extend_from_slice(text.as_bytes());
        let unread = std::mem::take(&mut self.unread);
        timeout(REPLY_PATIENCE, self.stream.write_all(&unread)).await.unwrap_or(Err(io::ErrorKind::TimedOut.into()))
    }
}

/// How much to take from the socket after `read` of `room` came: who sends more than that is served in fewer and larger
/// batches, each a change of the store and a sync.
fn read_bytes_after(room: usize, read: usize, most: usize) -> usize {
    match read {
        _ if read >= room => (room * 2).min(most),
        ..READ_BYTES_MIN => READ_BYTES_MIN,
        _ => room,
    }
}

/// What kind of put a command is, if it is one.
fn kind_of(command: Command<'_>) -> Option<PutKind> {
    match command {
        Command::Put => Some(PutKind::Put),
        Command::Rollup => Some(PutKind::Rollup),
        Command::Histogram => Some(PutKind::Histogram),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_in_full_flow_is_read_in_larger_pieces_up_to_the_bound() {
        for most in [READ_BYTES_MIN, READ_BYTES_MAX] {
            let grown = (0..9).fold(READ_BYTES_MIN, |room, _| read_bytes_after(room, room, most));
            assert_eq!(grown, most);
            assert_eq!(read_bytes_after(grown, grown - 1, most), grown);
            assert_eq!(read_bytes_after(grown, READ_BYTES_MIN - 1, most), READ_BYTES_MIN);
        }
    }
}
