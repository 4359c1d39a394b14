//! The program under test as a process, ended by its own pid.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::http::Client;
use crate::verdict::skip;

/// Memtables so small that a fraction of a second flushes and compacts.
pub(crate) const MEMTABLES_BYTES: u64 = 1 << 20;
/// Lines of its log that are told when it does not do as it should.
const LOG_LINES_TOLD: usize = 8;

/// The binary, and where its configuration and log lie.
#[derive(Debug)]
pub(crate) struct Program {
    binary: PathBuf,
    scratch: tempfile::TempDir,
    /// Added to its environment.
    pub(crate) environment: Vec<(String, PathBuf)>,
}

/// A running `basalt serve`; killed if it is dropped alive.
#[derive(Debug)]
pub(crate) struct Daemon {
    child: Child,
    port: u16,
    /// From its start to its first line.
    pub(crate) opened_in: Duration,
    log: PathBuf,
}

impl Program {
    /// The binary that was named, or the one beside this program.
    pub(crate) fn find(named: Option<&Path>) -> Result<Program> {
        let beside = || {
            let me = std::env::current_exe().ok()?;
            // A test's own program lies one folder deeper.
            let folders = me.ancestors().skip(1).take(2);
            folders.map(|folder| folder.join("basalt")).find(|binary| binary.is_file())
        };
        let Some(binary) = named.map(Path::to_path_buf).or_else(beside) else {
            return skip("no `basalt` beside this program; name one with --basalt");
        };
        let scratch = tempfile::tempdir()?;
        let program = Program { binary, scratch, environment: Vec::new() };
        program.configure(MEMTABLES_BYTES, "")?;
        Ok(program)
    }

    /// A folder for whatever the rig needs, gone at the end.
    pub(crate) fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// Bounds the memtables of daemons that start from now on, and adds lines to their section `store`.
    pub(crate) fn configure(&self, memtables_bytes: u64, lines: &str) -> Result<()> {
        let each = memtables_bytes / 16;
        let bounds = format!("memtable_bytes = {each}\nmemtables_bytes = {memtables_bytes}\n");
        let config = format!("[store]\nwal_segment_bytes = 262144\n{bounds}{lines}");
        Ok(std::fs::write(self.scratch().join("config.toml"), config)?)
    }

    pub(crate) fn serve(&self, data: &Path) -> Result<Daemon> {
        let begun = Instant::now();
        let log = self.scratch().join("log");
        let mut command = Command::new(&self.binary);
        command.args(["serve", "--listen", "127.0.0.1:0", "--log-level", "warn", "--data-dir"]).arg(data);
        command.arg("--config").arg(self.scratch().join("config.toml"));
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(&log)?);
        let mut child = command.spawn().with_context(|| format!("cannot start {}", self.binary.display()))?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        let port = line.trim().strip_prefix("listening on http://127.0.0.1:").and_then(|port| port.parse().ok());
        let mut daemon = Daemon { child, port: port.unwrap_or(0), opened_in: begun.elapsed(), log };
        if port.is_none() {
            let status = daemon.ends_within(Duration::from_secs(5));
            bail!("it does not open: {status:?}; {}", daemon.told());
        }
        Ok(daemon)
    }

    /// Runs another command to its end; answers its exit code and what it said.
    pub(crate) fn run(&self, arguments: &[&OsStr]) -> Result<(Option<i32>, String)> {
        let output = Command::new(&self.binary).args(arguments).stdin(Stdio::null()).output()?;
        let said = [output.stdout, output.stderr].concat();
        Ok((output.status.code(), String::from_utf8_lossy(&said).into_owned()))
    }
}

impl Daemon {
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn client(&self) -> Result<Client> {
        Ok(Client::connect(self.port)?)
    }

    /// The last lines of its log.
    pub(crate) fn told(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().rev().take(LOG_LINES_TOLD).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
    }

    /// `kill -9`, and waits until it is gone.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// Waits for its end by itself.
    pub(crate) fn ends_within(&mut self, bound: Duration) -> Option<ExitStatus> {
        let begun = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if begun.elapsed() < bound => pause(Duration::from_millis(2)),
                _ => return None,
            }
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

/// Lets time pass; perhaps less than was asked.
pub(crate) fn pause(time: Duration) {
    std::thread::park_timeout(time);
}
