//! What stops a command: where in the script it stands, and why.

use std::{fmt, io};

use basalt_store::{ErrorKind, with_causes};

/// The shell's result.
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// A place in a script; both count from 1, columns in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The line, from 1.
    pub line: u32,
    /// The byte in the line, from 1.
    pub column: u32,
}

impl Place {
    /// Where a script begins.
    pub(crate) const BEGIN: Self = Self { line: 1, column: 1 };
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "line {}, column {}", self.line, self.column)
    }
}

/// Why a command was not done.
#[derive(Debug)]
pub(crate) struct Error {
    at: Place,
    cause: Cause,
}

#[derive(Debug)]
enum Cause {
    /// The script is wrong here.
    Wrong(String),
    /// The store refused or failed.
    Store(basalt_store::Error),
    /// Nobody reads the answers any more.
    Output(io::Error),
    /// Someone else says so, with the place in their words, and the exit code they would end with.
    Told(String, Option<u8>),
}

impl Error {
    /// The script is wrong at this place.
    pub(crate) fn wrong(at: Place, line: impl Into<String>) -> Self {
        Self { at, cause: Cause::Wrong(line.into()) }
    }

    /// Puts the place to a failure of the store.
    pub(crate) fn store(at: Place) -> impl Fn(basalt_store::Error) -> Self {
        move |cause| Self { at, cause: Cause::Store(cause) }
    }

    /// Puts the place to a failure to print.
    pub(crate) fn output(at: Place) -> impl Fn(io::Error) -> Self {
        move |cause| Self { at, cause: Cause::Output(cause) }
    }
}

/// A command that failed, with its place.
#[derive(Debug)]
pub struct Failed(pub(crate) Error);

/// What kind of failure it was, for an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The script is wrong.
    Wrong,
    /// The store refused or failed.
    Store(ErrorKind),
    /// Nobody reads the answers any more: the shell cannot go on.
    Output,
    /// Someone else said so, and would end with this exit code if they told one.
    Told(Option<u8>),
}

impl Failed {
    /// Someone else's words on a command, its place in them, and the exit code they would end with.
    pub fn told(line: String, exit: Option<u8>) -> Self {
        Self(Error { at: Place::BEGIN, cause: Cause::Told(line, exit) })
    }

    /// Commands that begin on this line were not done; who was to do them would end with this exit code.
    pub fn not_done(line: u32, why: &str, exit: u8) -> Self {
        Self::told(format!("{}: {why}", Place { line, column: 1 }), Some(exit))
    }

    /// What the commands that begin on this line answer cannot be printed.
    pub fn output(line: u32, cause: io::Error) -> Self {
        Self(Error::output(Place { line, column: 1 })(cause))
    }

    /// Why the answers cannot be printed, if that is what failed.
    pub fn unprinted(&self) -> Option<&io::Error> {
        match &self.0.cause {
            Cause::Output(cause) => Some(cause),
            _ => None,
        }
    }

    /// What kind of failure it was.
    pub fn reason(&self) -> Reason {
        match &self.0.cause {
            Cause::Wrong(_) => Reason::Wrong,
            Cause::Store(cause) => Reason::Store(cause.kind()),
            Cause::Output(_) => Reason::Output,
            Cause::Told(_, exit) => Reason::Told(*exit),
        }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl std::error::Error for Failed {}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Cause::Told(line, _) = &self.cause {
            return out.write_str(line);
        }
        write!(out, "{}: ", self.at)?;
        match &self.cause {
            Cause::Wrong(line) | Cause::Told(line, _) => out.write_str(line),
            Cause::Store(cause) => out.write_str(&with_causes(cause)),
            Cause::Output(cause) => write!(out, "cannot write to standard output: {cause}"),
        }
    }
}
