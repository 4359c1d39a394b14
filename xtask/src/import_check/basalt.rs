//! Basalt as it is run here: built optimised, importing, and serving on a port of the system's choice.

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::golden::client::{Client, Request};

/// How long a server may take to close its folder.
const STOP_MAX: Duration = Duration::from_mins(2);
/// The pause between two looks at what another process does.
const PAUSE: Duration = Duration::from_millis(20);

/// Builds the binary and says where it is.
pub(crate) fn build() -> Result<PathBuf> {
    build_with(&["--release"])?;
    Ok(target().join("release/basalt"))
}

/// The same without optimising, as tests do.
pub(crate) fn build_unoptimised() -> Result<PathBuf> {
    build_with(&[])?;
    Ok(unoptimised())
}

/// The binary that the tests were built with.
pub(crate) fn unoptimised() -> PathBuf {
    target().join("debug/basalt")
}

fn build_with(options: &[&str]) -> Result<()> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = Command::new(cargo);
    command.args(["build", "--bin", "basalt"]).args(options).current_dir(crate::workspace());
    let status = command.status()?;
    ensure!(status.success(), "cargo build: {status}");
    Ok(())
}

/// Where cargo builds.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| crate::workspace().join("target"), PathBuf::from)
}

/// Waits a moment for another process.
pub(crate) fn pause() {
    #[expect(clippy::disallowed_methods, reason = "another process tells nobody how far it is")]
    std::thread::sleep(PAUSE);
}

/// A tool run to its end: how it ended, what it printed, what it said beside, how long it took by the clock on the wall.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) took: Duration,
}

/// Runs a tool of `program`.
pub(crate) fn tool(program: &Path, args: &[&str]) -> Result<Ran> {
    let began = Instant::now();
    let output = Command::new(program).args(args).output().with_context(|| program.display().to_string())?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(Ran { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr), took: began.elapsed() })
}

/// A path as an argument.
pub(crate) fn word(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is no text", path.display()))
}

/// A server on a free port; killed if it is dropped unstopped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Server {
    /// Starts it on the folder `data`.
    pub(crate) fn start(program: &Path, data: &Path, config: &Path) -> Result<Self> {
        let mut command = Command::new(program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(data).arg("--config").arg(config);
        let log = std::fs::File::create(data.with_extension("log"))?;
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn()?;
        let output = child.stdout.take().context("no output of Basalt")?;
        let mut server = Self { child, address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)) };
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let port = line.trim().rsplit(':').next().and_then(|port| port.parse().ok());
        server.address.set_port(port.with_context(|| format!("Basalt did not start: {line:?}"))?);
        Ok(server)
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks for a JSON answer.
    pub(crate) fn get(&self, target: &str) -> Result<Value> {
        let response = Client::new(self.address).send(&Request { method: "GET", target, ..Request::default() })?;
        let text = String::from_utf8_lossy(&response.body);
        ensure!(response.status == 200, "GET {target}: {} {text}", response.status);
        Ok(serde_json::from_str(&text)?)
    }

    /// Asks it to end, and waits until its folder is closed.
    pub(crate) fn stop(mut self) -> Result<()> {
        let told = Command::new("kill").arg(self.child.id().to_string()).status()?;
        ensure!(told.success(), "cannot signal {}", self.child.id());
        let until = Instant::now() + STOP_MAX;
        while self.child.try_wait()?.is_none() {
            if Instant::now() > until {
                bail!("Basalt did not end within {} s", STOP_MAX.as_secs());
            }
            pause();
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nothing is left to tell at this point if it is gone already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
