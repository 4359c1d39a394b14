//! Writers that fill a ledger until the daemon is gone or they are told to stop.

use std::io::{self, BufRead, BufReader, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::daemon::pause;
use crate::http::{Client, connect};
use crate::ledger::{Epoch, Ledger, TELNET_WRITERS, json, lines, now_ns};

/// Between a refusal and the next try.
pub(crate) const AFTER_REFUSAL: Duration = Duration::from_millis(5);

/// The writers of one round.
#[derive(Debug)]
pub(crate) struct Load<'a> {
    pub(crate) port: u16,
    pub(crate) epoch: &'a Epoch,
    /// Relaxed both: a flag and a count that nothing else hangs on.
    pub(crate) stop: AtomicBool,
    pub(crate) refused: AtomicU64,
}

/// What a writer says at its end: fine, or something that no daemon may do.
type Said<'scope> = ScopedJoinHandle<'scope, Result<()>>;

impl<'a> Load<'a> {
    pub(crate) fn new(port: u16, epoch: &'a Epoch) -> Load<'a> {
        Load { port, epoch, stop: AtomicBool::new(false), refused: AtomicU64::new(0) }
    }

    /// Starts the writers.
    pub(crate) fn start<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) -> Vec<Said<'scope>> {
        let writers = self.epoch.writers();
        writers.map(|(writer, ledger)| scope.spawn(move || self.write(writer, ledger))).collect()
    }

    /// Waits for the writers' end and takes what they say.
    pub(crate) fn join(said: Vec<Said<'_>>) -> Result<()> {
        for writer in said {
            writer.join().map_err(|_| anyhow::anyhow!("a writer panicked"))??;
        }
        Ok(())
    }

    fn write(&self, writer: u64, ledger: &Ledger) -> Result<()> {
        // Gone before the first request.
        let Ok(mut connection) = Connection::open(self.port, writer) else { return Ok(()) };
        let metric = self.epoch.metric(writer);
        while !self.stop.load(Ordering::Relaxed) {
            let from = ledger.send();
            let sent_ns = now_ns();
            match connection.put(&metric, writer, from) {
                Ok(204) => ledger.acknowledge(sent_ns),
                Ok(503) => {
                    ensure!(connection.may_retry(), "a 503 without Retry-After");
                    // Nothing was promised, so the same points are sent again.
                    self.refused.fetch_add(1, Ordering::Relaxed);
                    pause(AFTER_REFUSAL);
                }
                Ok(status) => ensure!(status == 500, "a put of whole points is answered with {status}"),
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }
}

enum Connection {
    /// With whether the last answer said when to come again.
    Http(Client, bool),
    Telnet(BufReader<std::net::TcpStream>),
}

impl Connection {
    fn open(port: u16, writer: u64) -> io::Result<Connection> {
        Ok(if writer < TELNET_WRITERS {
            Connection::Telnet(BufReader::new(connect(port)?))
        } else {
            Connection::Http(Client::connect(port)?, false)
        })
    }

    /// Telnet has no word for it.
    fn may_retry(&self) -> bool {
        matches!(self, Connection::Http(_, true) | Connection::Telnet(_))
    }

    /// Sends a request; answers its status, for telnet the one that it would be.
    fn put(&mut self, metric: &str, writer: u64, from: u64) -> io::Result<u16> {
        match self {
            Connection::Http(client, retry_after) => {
                let answer = client.post("/api/put", &json(metric, writer, from))?;
                *retry_after = answer.retry_after;
                Ok(answer.status)
            }
            Connection::Telnet(stream) => {
                stream.get_mut().write_all(lines(metric, writer, from).as_bytes())?;
                told(stream)
            }
        }
    }
}

/// Errors of the puts, if any, then the two lines of `version`.
fn told(stream: &mut BufReader<std::net::TcpStream>) -> io::Result<u16> {
    let mut status = 204;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if line.starts_with("put: ") {
            status = 503;
        } else if line.starts_with("Built ") {
            return Ok(status);
        }
    }
}
