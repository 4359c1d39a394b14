//! Starts the real binary on a port of its own choosing and ends it by its pid.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::http::Client;

/// A running `basalt serve`; killed if it is dropped alive.
#[derive(Debug)]
pub(crate) struct Daemon {
    child: Child,
    port: u16,
}

impl Daemon {
    /// Starts it on `data` with a store (`memory` or `embedded`) and waits for its first line.
    ///
    /// `config` is the text of a TOML file; empty for none.
    pub(crate) fn start(data: &Path, store: &str, config: &str) -> Self {
        let mut command = Self::command(data, store);
        if !config.is_empty() {
            let file = data.with_extension("toml");
            std::fs::write(&file, config).unwrap();
            command.arg("--config").arg(file);
        }
        Self::spawn(command)
    }

    /// The command line without a configuration file.
    pub(crate) fn command(data: &Path, store: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_basalt"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--store", store, "--data-dir"]).arg(data);
        command
    }

    /// Runs a command line that serves, its log to the test's own standard error.
    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().strip_prefix("listening on http://127.0.0.1:").and_then(|port| port.parse().ok());
        let Some(port) = port else {
            drop(child.kill());
            panic!("the first line is {line:?}, exit {:?}", child.wait());
        };
        Self { child, port }
    }

    /// Where it listens.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A new connection to it.
    pub(crate) fn client(&self) -> Client {
        Client::connect(self.port).unwrap()
    }

    /// `kill -9`, and waits until it is gone.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM, and its exit status.
    pub(crate) fn terminate(mut self) -> ExitStatus {
        let told = Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        assert!(told.success());
        self.child.wait().unwrap()
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
