//! Which command a line is.

/// A line's meaning; `put` keeps the line for `ingest`, which reads it whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command<'a> {
    /// One point.
    Put,
    /// One rollup or pre-aggregate.
    Rollup,
    /// One histogram.
    Histogram,
    /// Who answers.
    Version,
    /// Numbers.
    Stats,
    /// The commands.
    Help,
    /// One word about the server, as OpenTSDB 2.5 has it.
    Status,
    /// Forget cached names.
    DropCaches,
    /// Who the sender is.
    Auth,
    /// End the daemon.
    DieDieDie,
    /// Close the connection.
    Exit,
    /// What whoever sends it may not do.
    Refused,
    /// None of ours, by its first word.
    Unknown(&'a [u8]),
}

/// The first words of all commands, in the order in which OpenTSDB's `help` has its own.
pub(crate) const WORDS: [&str; 11] =
    ["stats", "dropcaches", "version", "exit", "help", "put", "rollup", "histogram", "diediedie", "status", "auth"];

impl<'a> Command<'a> {
    /// Reads a line's first word. Only lower case counts: upper case would have been HTTP.
    pub(crate) fn of(line: &'a [u8]) -> Self {
        // Fast path: nearly all lines.
        if line.starts_with(b"put ") {
            return Self::Put;
        }
        let word = line.split(|byte| *byte == b' ').next().unwrap_or_default();
        match word {
            b"put" => Self::Put,
            b"rollup" => Self::Rollup,
            b"histogram" => Self::Histogram,
            b"version" => Self::Version,
            b"stats" => Self::Stats,
            b"help" => Self::Help,
            b"status" => Self::Status,
            b"dropcaches" => Self::DropCaches,
            b"auth" => Self::Auth,
            b"diediedie" => Self::DieDieDie,
            b"exit" => Self::Exit,
            other => Self::Unknown(other),
        }
    }
}
