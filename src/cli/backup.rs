//! `basalt backup` and `basalt restore`.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use basalt_engine::io::OsFs;
use basalt_engine::{BackedUp, Progress};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use super::folder::{BY_FLAG, check_folder, closing};
use super::{Sources, print, start_log};
use crate::config::StoreKind;
use crate::exit::{Exit, Failure};
use crate::progress::{ProgressLog, meanwhile};
use crate::remote::Server;
use crate::store::{OpenStore, backed_up, check_no_folders, check_outside, check_target, refused};

/// What becomes of other stores.
const ONLY_EMBEDDED: &str = "only the embedded store can be backed up";

/// `basalt backup`.
#[derive(Debug, Args)]
#[command(after_help = "\
A backup holds everything up to one change, of all tables and snapshots. Every file is read and
proved first; on the same disk files are linked, not copied. TARGET must be absent or empty, outside
of the data folder, and is no backup before the command says so. After a failure what was written is
removed; where the command was cut off, delete TARGET. With --url a running server takes it while it
serves; else the folder must be free.

Examples:
  basalt backup --url http://127.0.0.1:4242 /backup/monday
  basalt backup --data-dir /var/lib/basalt /backup/monday

Exit codes: 0 done, 1 no such folder, or a TARGET that holds something or lies in the folder, 4
folder in use, 5 damaged data, 75 disk full.")]
pub(super) struct Backup {
    #[command(flatten)]
    sources: Sources,
    /// Have this running server take the backup, on its own machine
    #[arg(long, value_name = "URL", conflicts_with_all = ["data_dir", "config"])]
    url: Option<String>,
    /// Folder to write the backup into
    target: PathBuf,
}

impl Backup {
    pub(super) fn run(self) -> Result<(), Failure> {
        if let Some(url) = &self.url {
            start_log(self.sources.log_level.as_deref(), &[])?;
            let target = std::path::absolute(&self.target)
                .map_err(|cause| Failure::new(Exit::Failure, format!("cannot name the target: {cause}")))?;
            let server = Server::at(url)?;
            let mut told = Vec::new();
            let outcome = meanwhile("the server takes the backup", || {
                server.ask("/store/backup", target.as_os_str().as_encoded_bytes(), &mut told)
            });
            print(&String::from_utf8_lossy(&told))?;
            return outcome;
        }
        let config = self.sources.load()?;
        // Before a folder is missed, or a cluster asked.
        if config.store.kind != StoreKind::Embedded {
            return Err(Failure::config(ONLY_EMBEDDED));
        }
        check_folder(&config.store.data_dir, BY_FLAG)?;
        check_target(&config, &self.target)?;
        let store = OpenStore::open(&config)?;
        let done = self.take(&store);
        closing(|| store.close())?;
        print(&backed_up(&done?, &self.target))
    }

    fn take(&self, store: &OpenStore) -> Result<BackedUp, Failure> {
        let engine = store.engine().ok_or_else(|| Failure::config(ONLY_EMBEDDED))?;
        let mut shown = Shown::new("backed up");
        let done = engine.backup(&self.target, &mut |progress| shown.tell(&progress));
        drop(shown);
        done.map_err(|cause| refused(&cause))
    }
}

/// `basalt restore`.
#[derive(Debug, Args)]
#[command(after_help = "\
Copies a backup into a data folder, which must be absent or empty, and outside of the backup. Every
byte is held against the backup's own list: a damaged backup is refused by the file's name, and
nothing of it stays.

Examples:
  basalt restore /backup/monday /var/lib/basalt

Exit codes: 0 done, 1 no backup, or a DIR that holds something or lies in the backup, 4 folder in
use, 5 the backup is damaged, 75 disk full.")]
pub(super) struct Restore {
    /// Folder that `basalt backup` wrote
    backup: PathBuf,
    /// Data folder to be
    #[arg(value_name = "DIR")]
    target: PathBuf,
}

impl Restore {
    pub(super) fn run(self) -> Result<(), Failure> {
        if !self.backup.is_dir() {
            return Err(Failure::new(Exit::Failure, format!("there is no folder {}", self.backup.display())));
        }
        check_outside(("backup", &self.backup), &self.target)?;
        check_no_folders(&self.target)?;
        let absent = |dir: &&Path| !dir.as_os_str().is_empty() && !dir.exists();
        let made: Vec<&Path> = self.target.ancestors().take_while(absent).collect();
        let mut shown = Shown::new("restored");
        let done = basalt_engine::restore(&OsFs, &self.backup, &self.target, &mut |progress| shown.tell(&progress));
        drop(shown);
        if done.is_err() {
            // Only folders that are empty go; the first that is not keeps those around it.
            made.iter().try_for_each(std::fs::remove_dir).unwrap_or_default();
        }
        let BackedUp { files_count, bytes, sequence, .. } = done.map_err(|cause| refused(&cause))?;
        let (backup, target) = (self.backup.display(), self.target.display());
        print(&format!(
            "restored {files_count} files, {bytes} bytes, up to change {sequence}, from {backup} to {target}\n"
        ))
    }
}

/// How far work on files is, of which it tells: a bar of bytes on a terminal, else lines.
#[derive(Debug)]
pub(super) struct Shown {
    /// What was done with the files.
    done: &'static str,
    bar: ProgressBar,
    log: ProgressLog,
}

impl Shown {
    /// Work that begins.
    pub(super) fn new(done: &'static str) -> Self {
        let style = ProgressStyle::with_template("{msg} {wide_bar} {bytes}/{total_bytes} {eta}");
        let bar = if std::io::stderr().is_terminal() { ProgressBar::new(0) } else { ProgressBar::hidden() };
        let bar = bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { done, bar, log: ProgressLog::new() }
    }

    /// A file more is done.
    pub(super) fn tell(&mut self, progress: &Progress<'_>) {
        self.bar.set_length(progress.bytes_total);
        self.bar.set_position(progress.bytes_done);
        self.bar.set_message(progress.file.to_owned());
        self.log.tell(|| line(self.done, progress));
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn line(done: &str, progress: &Progress<'_>) -> String {
    let Progress { file, bytes_done, bytes_total } = progress;
    let part = bytes_done.saturating_mul(100).checked_div(*bytes_total).unwrap_or(100);
    format!("{part} %, {bytes_done} of {bytes_total} bytes {done}, the last of {file}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_how_far_it_is() {
        let progress = Progress { file: "sst-1.sst", bytes_done: 30, bytes_total: 90 };
        assert_eq!(line("proved", &progress), "33 %, 30 of 90 bytes proved, the last of sst-1.sst");
        let empty = Progress { file: "sst-1.sst", bytes_done: 0, bytes_total: 0 };
        assert!(line("proved", &empty).starts_with("100 %"));
    }
}
