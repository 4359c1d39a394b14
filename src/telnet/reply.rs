//! What telnet says, word for word OpenTSDB's where it has words. The only file that chooses telnet
//! texts; its HTTP twin is `http/error.rs`.

use basalt_ingest::Problem;

use crate::version;

/// To `help`: the commands, a space behind each.
pub(crate) fn help<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words.fold("available commands: ".to_owned(), |text, word| text + word + " ") + "\n"
}

/// After `auth` with a token that is known, or where everybody is let in.
pub(crate) const AUTHENTICATED: &str = "AUTH_SUCCESS\r\n";

/// After `auth` with any other, and to all else before it, as OpenTSDB takes every first line for one.
pub(crate) const NOT_AUTHENTICATED: &str = "AUTH_FAIL\r\n";

/// To what the sender's role does not have.
pub(crate) const FORBIDDEN: &str = "forbidden: the role of your token does not allow this\n";

/// After `diediedie`.
pub(crate) const DYING: &str = "Cleaning up and exiting now.\n";

/// After `dropcaches`.
pub(crate) const CACHES_DROPPED: &str = "Caches dropped.\n";

/// To `version`.
pub(crate) fn version() -> String {
    version::lines()
}

/// To a `put`, `rollup` or `histogram` that is not stored.
pub(crate) fn put_error(command: &str, problem: &Problem) -> String {
    format!("{}\n", problem.telnet_text(command))
}

/// To a histogram where no codec of them is configured.
pub(crate) const NO_HISTOGRAMS: &str = "histogram: illegal argument: Histogram storage has not been enabled. Check the \
    'tsd.core.histograms.config' configuration.\n";

/// To a command that is none. A word from outside is cut at 256 characters.
pub(crate) fn unknown(command: &str) -> String {
    let shown: String = command.chars().take(256).collect();
    format!("unknown command: {shown}.  Try `help'.\n")
}

/// Before a connection is closed because of an endless line.
pub(crate) fn line_too_long(limit: usize) -> String {
    format!("error: line longer than {limit} bytes, closing the connection\n")
}
