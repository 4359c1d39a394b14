//! How the program ends: one exit code and, when it failed, one line.
//!
//! Scripts and service units act on the code; people act on the line. A failure carries both from
//! where it happened to `main`, which alone prints it and ends the process.

use std::fmt;
use std::io;
use std::process::ExitCode;

/// Why the process ends. The numbers are a promise to scripts and are documented in `--help`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Anything without a code of its own: the port is taken, a request failed.
    Failure = 1,
    /// The command line cannot be understood.
    Usage = 2,
    /// A configuration file, a `BASALT_…` variable or a combination of settings is wrong.
    Config = 3,
    /// Another process holds the data folder.
    Locked = 4,
    /// A file of the data folder is damaged.
    Damage = 5,
    /// What was written cannot be made durable: a sync failed, or a thread that writes died. Or the disk cannot be read.
    Disk = 74,
    /// The same command may succeed later: the disk is full, HBase does not answer, or the server is busy.
    TryLater = 75,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// An end that is not success: the code for scripts, the line for people.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit code of the process.
    pub(crate) exit: Exit,
    /// One sentence without a line break: what failed, on what, and what to do. Empty where nobody is to be told.
    pub(crate) line: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.line)
    }
}

impl std::error::Error for Failure {}

impl Failure {
    /// A failure with `exit` as its code and `line` as its only words.
    pub(crate) fn new(exit: Exit, line: impl Into<String>) -> Self {
        Self { exit, line: line.into() }
    }

    /// Standard output that cannot be written. Whoever reads it and stops, as `head` does, has what he wanted, and is told nothing.
    pub(crate) fn output(cause: &io::Error) -> Self {
        let is_left = cause.kind() == io::ErrorKind::BrokenPipe;
        let line = if is_left { String::new() } else { format!("cannot write to standard output: {cause}") };
        Self::new(Exit::Failure, line)
    }

    /// A failure of a setting or of a configuration file. What a file holds may have line breaks: they become blanks.
    pub(crate) fn config(line: impl Into<String>) -> Self {
        Self::new(Exit::Config, line.into().replace(['\n', '\r'], " "))
    }
}
