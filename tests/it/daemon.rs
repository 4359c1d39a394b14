//! Starts the real binary on a port of its own choosing and ends it by its pid.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use crate::http::{Client, Response, TIMEOUT};

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

    /// Starts it with the memory store and no configuration file.
    pub(crate) fn memory() -> Self {
        Self::spawn(Self::command(Path::new("basalt-data"), "memory"))
    }

    /// The command line without a configuration file.
    pub(crate) fn command(data: &Path, store: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_basalt"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--store", store, "--data-dir"]).arg(data);
        command
    }

    /// Runs a command line that serves, its log to the test's own standard error unless the command says otherwise.
    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().strip_prefix("listening on http://127.0.0.1:").and_then(|port| port.parse().ok());
        let Some(port) = port else {
            drop(child.kill());
            panic!("the first line is {line:?}, exit {:?}", child.wait());
        };
        Self { child, port }
    }

    /// Runs a command line that serves and takes the port from its log, which nobody reads from then on.
    pub(crate) fn spawn_unread(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let port = said.find_map(|line| line.split_once(r#""listen":"127.0.0.1:"#)?.1.split('"').next()?.parse().ok());
        let Some(port) = port else { panic!("it ended: {:?}", child.wait()) };
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

    /// A new connection to it, for anything but HTTP.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        stream
    }

    /// GETs a path on a connection of its own.
    pub(crate) fn get(&self, path: &str) -> Response {
        self.client().get(path).unwrap()
    }

    /// POSTs JSON text on a connection of its own.
    pub(crate) fn post(&self, path: &str, body: &str) -> Response {
        self.client().post(path, body).unwrap()
    }

    /// Sends telnet lines, then `exit`, and gives everything said until the close.
    pub(crate) fn talk(&self, lines: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(lines.as_bytes()).unwrap();
        stream.write_all(b"exit\n").unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        said
    }

    /// The value of one line of `/metrics`, by its name and labels; 0 if the line is not there.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let page = self.get("/metrics").text();
        let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.map_or(0, |value| value.parse().unwrap())
    }

    /// `kill -9`, and waits until it is gone.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Its exit code once it has ended by itself.
    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        self.child.try_wait().unwrap().and_then(|status| status.code())
    }

    /// SIGTERM, and its exit status.
    pub(crate) fn terminate(mut self) -> ExitStatus {
        let told = Command::new("kill").arg(self.pid().to_string()).status().unwrap();
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

/// Waits until `is` holds.
pub(crate) fn wait_for(what: &str, is: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_mins(1);
    while !is() {
        assert!(Instant::now() < until, "{what} did not come");
        std::thread::yield_now();
    }
}

/// Runs the binary to its end.
pub(crate) fn run(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

/// The program with these arguments and nothing to read.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_basalt"));
    command.args(arguments).stdin(Stdio::null());
    command
}
