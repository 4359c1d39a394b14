//! Basalt over the oracle's HBase: started, killed, started again on its port, and weighed.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::golden::client::{Client, Request};
use crate::oracle;

/// Waits: another process tells nobody how far it is.
pub(crate) fn pause(time: Duration) {
    #[expect(clippy::disallowed_methods, reason = "other processes are waited for, and loads have a pace")]
    std::thread::sleep(time);
}

/// What a daemon is told that is to rewrite each row as soon as nobody can be writing to it in the same moment, whether or not
/// the configuration that it shares has OpenTSDB compact.
pub(crate) const REWRITES: &[(&str, &str)] = &[
    ("BASALT_REWRITE__ENABLE", "true"),
    ("BASALT_REWRITE__QUIET_MS", "1000"),
    ("BASALT_REWRITE__INTERVAL_MS", "100"),
    ("BASALT_REWRITE__ROWS_MIN", "10000"),
];
/// By when rows that were just written to are due in one, and for how long it is then waited for.
const DUE: Duration = Duration::from_secs(3);
const REWRITTEN_MAX: Duration = Duration::from_mins(2);
const LOOKS: Duration = Duration::from_millis(50);

/// Whether such a daemon rewrites rows of a profile's tables: what is appended lies in one cell from the start.
pub(crate) fn rewrites(profile: &str) -> bool {
    profile != "appends"
}

/// Waits until a daemon that rewrites has done so with all rows that were written to by now.
pub(crate) fn wait_rewritten(address: SocketAddr) -> Result<()> {
    pause(DUE);
    let (mut client, end) = (Client::new(address), Instant::now() + REWRITTEN_MAX);
    while Instant::now() < end {
        let answer = client.send(&Request { method: "GET", target: "/metrics", ..Request::default() })?;
        let text = String::from_utf8_lossy(&answer.body);
        let due = text.lines().find_map(|line| line.strip_prefix("basalt_rewrite_due_rows "));
        if due.context("Basalt rewrites no rows")?.trim() == "0" {
            return Ok(());
        }
        pause(LOOKS);
    }
    bail!("Basalt has rows to rewrite after {} s", REWRITTEN_MAX.as_secs())
}

/// A running daemon; killed if it is dropped.
#[derive(Debug)]
pub(crate) struct Daemon {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Daemon {
    /// One beside OpenTSDB's daemon of this profile, by the configuration file that the latter was started with; it rewrites
    /// rows at once.
    pub(crate) fn beside(program: &Path, profile: &str) -> Result<Self> {
        let config = oracle::folder().join(format!("conf/tsd-{profile}.conf"));
        let settings = [REWRITES, &[("BASALT_COMPAT__STRICT", "true")]].concat();
        Self::start(program, &config, 0, &settings, &oracle::folder().join(format!("log/basalt-{profile}.log")))
    }

    /// One on this port, or on any free one where it is 0; what it logs is added to the file.
    pub(crate) fn start(
        program: &Path,
        config: &Path,
        port: u16,
        settings: &[(impl AsRef<OsStr>, impl AsRef<OsStr>)],
        log: &Path,
    ) -> Result<Self> {
        let opened = std::fs::File::options().create(true).append(true).open(log);
        let log = opened.with_context(|| log.display().to_string())?;
        let mut command = Command::new(program);
        command.args(["serve", "--store", "hbase", "--listen", &format!("127.0.0.1:{port}"), "--config"]).arg(config);
        for (name, value) in settings {
            command.env(name, value);
        }
        let started = command.stdout(Stdio::piped()).stderr(log).spawn();
        let mut child = started.with_context(|| format!("cannot start {}", program.display()))?;
        let output = child.stdout.take().context("no output of Basalt")?;
        let mut daemon = Self { child, address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)) };
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let port = line.trim().rsplit(':').next().and_then(|port| port.parse().ok());
        daemon.address.set_port(port.with_context(|| format!("Basalt did not start: {line:?}"))?);
        Ok(daemon)
    }

    /// Kills it, as `kill -9` does, and waits until it is gone.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Whether it runs.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// The most memory that it ever held, in bytes.
    pub(crate) fn peak_bytes(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
        let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kilobytes << 10)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Nothing is left to tell at this point if it is gone already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
