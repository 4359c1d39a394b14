//! How far a copy is: remembered in a small file, and told.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};

use super::digest::Digest;
use crate::aside::remember;
use crate::exit::{Exit, Failure};
use crate::progress::ProgressLog;

/// How far one table is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TableState {
    /// The last row of the source that is durable in the target; empty before the first.
    pub(super) at: Vec<u8>,
    pub(super) is_done: bool,
    pub(super) cells: u64,
    /// Of the rows up to there.
    pub(super) digest: Digest,
    /// The digest's earliest time of cells: older ones may expire before they are compared.
    #[serde(default)]
    pub(super) lasting_from: u64,
}

/// The file's content.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Saved {
    from: String,
    to: String,
    /// Whether the target held rows of an earlier copy: its names are compared then, by whoever goes on, too.
    #[serde(default)]
    into_filled: bool,
    /// By the target's names.
    tables: BTreeMap<String, TableState>,
}

/// What is remembered of a copy.
#[derive(Debug)]
pub(super) struct Memory {
    file: PathBuf,
    saved: Saved,
}

impl Memory {
    /// Reads the file; one that is not there means that nothing was copied.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is of another copy.
    pub(super) fn load(file: &Path, from: &str, to: &str) -> Result<Self, Failure> {
        let fail = |why: String| Failure::new(Exit::Failure, format!("cannot use {}: {why}", file.display()));
        let saved = match std::fs::read(file) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|cause| fail(cause.to_string()))?,
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
                Saved { from: from.to_owned(), to: to.to_owned(), ..Saved::default() }
            }
            Err(cause) => return Err(fail(cause.to_string())),
        };
        if (saved.from.as_str(), saved.to.as_str()) != (from, to) {
            return Err(fail(format!(
                "it is of a copy from {} to {}; remove it, or name another by --progress",
                saved.from, saved.to
            )));
        }
        Ok(Self { file: file.to_owned(), saved })
    }

    /// Whether nothing was copied before.
    pub(super) fn is_new(&self) -> bool {
        self.saved.tables.is_empty()
    }

    /// Remembers that the target may hold rows of an earlier copy.
    pub(super) const fn set_into_filled(&mut self) {
        self.saved.into_filled = true;
    }

    /// Whether the target may hold rows of an earlier copy.
    pub(super) const fn is_into_filled(&self) -> bool {
        self.saved.into_filled
    }

    /// Rows that are remembered.
    pub(super) fn rows(&self) -> u64 {
        self.saved.tables.values().map(|state| state.digest.rows).sum()
    }

    /// How far a table is.
    pub(super) fn of(&self, table: &str) -> TableState {
        self.saved.tables.get(table).cloned().unwrap_or_default()
    }

    /// Remembers how far a table is. Written aside and renamed: a copy that is killed meanwhile leaves the file as it was.
    pub(super) fn advance(&mut self, table: &str, state: &TableState) -> Result<(), Failure> {
        self.saved.tables.insert(table.to_owned(), state.clone());
        remember(&self.file, &self.saved)
    }

    /// Removes the file.
    pub(super) fn forget(self) -> Result<(), Failure> {
        match std::fs::remove_file(&self.file) {
            Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => {
                Err(Failure::new(Exit::Failure, format!("cannot remove {}: {cause}", self.file.display())))
            }
            _ => Ok(()),
        }
    }
}

/// Progress as a person sees it.
#[derive(Debug)]
pub(super) struct Shown {
    bar: ProgressBar,
    log: ProgressLog,
    began: Instant,
    rows: u64,
}

impl Shown {
    pub(super) fn new() -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}");
        let bar = if is_terminal { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        let bar = bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        Self { bar, log: ProgressLog::new(), began: Instant::now(), rows: 0 }
    }

    /// So many more rows are done.
    pub(super) fn tell(&mut self, doing: &str, rows: u64, regions: (usize, usize)) {
        self.rows += rows;
        let rate = u128::from(self.rows) * 1000 / self.began.elapsed().as_millis().max(1);
        let line = format!("{doing}: region {} of {}, {} rows in all, {rate} rows/s", regions.0, regions.1, self.rows);
        self.bar.set_message(line.clone());
        self.bar.tick();
        self.log.tell(|| line);
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
