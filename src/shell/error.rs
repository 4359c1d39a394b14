//! What stops a command: where in the script it stands, and why.

use std::{fmt, io};

use crate::exit::{Exit, Failure};

/// The shell's result.
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// A place in a script; both count from 1, columns in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) line: u32,
    pub(crate) column: u32,
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
    /// A daemon says so, with the place in its words, and how the process should end.
    Told(String, Exit),
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

    /// What a daemon said of a command, and the exit code it would end with.
    pub(crate) fn told(line: String, exit: Option<u8>) -> Self {
        let exit = [Exit::Damage, Exit::TryLater].into_iter().find(|known| Some(*known as u8) == exit);
        Self { at: Place { line: 1, column: 1 }, cause: Cause::Told(line, exit.unwrap_or(Exit::Failure)) }
    }

    /// Whether a person at a terminal may go on after it.
    pub(crate) const fn is_passing(&self) -> bool {
        !matches!(self.cause, Cause::Output(_))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Cause::Told(line, _) = &self.cause {
            return out.write_str(line);
        }
        write!(out, "{}: ", self.at)?;
        match &self.cause {
            Cause::Wrong(line) | Cause::Told(line, _) => out.write_str(line),
            Cause::Store(cause) => out.write_str(&crate::store::with_causes(cause)),
            Cause::Output(cause) => write!(out, "cannot write to standard output: {cause}"),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let exit = match &error.cause {
            Cause::Store(cause) => crate::store::exit_of(cause.kind()),
            Cause::Told(_, exit) => *exit,
            Cause::Wrong(_) | Cause::Output(_) => Exit::Failure,
        };
        Self::new(exit, error.to_string())
    }
}
