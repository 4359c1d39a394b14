//! `basalt backup` and `basalt restore`.

use std::io::{BufWriter, IsTerminal as _};
use std::path::{Path, PathBuf};

use basalt_engine::io::OsFs;
use basalt_engine::{BackedUp, Progress};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use super::folder::{BY_FLAG, check_folder};
use super::{Sources, print};
use crate::exit::{Exit, Failure};
use crate::remote::Server;
use crate::store::{Plain, refused};

/// `basalt backup`.
#[derive(Debug, Args)]
#[command(after_help = "\
A backup holds everything up to one change, of all tables and snapshots. Every file is read and
proved first; on the same disk files are linked, not copied. TARGET must be absent or empty, and is
no backup before the command says so. With --url a running server takes it while it serves; else the
folder must be free.

Examples:
  basalt backup --url http://127.0.0.1:4242 /backup/monday
  basalt backup --data-dir /var/lib/basalt /backup/monday

Exit codes: 0 done, 1 no such folder, or TARGET holds something, 4 folder in use, 5 damaged data, 75
disk full.")]
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
            let target = std::path::absolute(&self.target)
                .map_err(|cause| Failure::new(Exit::Failure, format!("cannot name the target: {cause}")))?;
            let mut out = BufWriter::new(std::io::stdout().lock());
            return Server::at(url)?.ask("/store/backup", target.as_os_str().as_encoded_bytes(), &mut out);
        }
        let config = self.sources.load()?;
        check_folder(&config.store.data_dir, BY_FLAG)?;
        let plain = Plain::open(&config)?;
        let done = self.take(&plain);
        plain.close()?;
        print(&backed_up(&done?, &self.target))
    }

    fn take(&self, plain: &Plain) -> Result<BackedUp, Failure> {
        let engine = plain.engine().ok_or_else(|| Failure::config("only the embedded store can be backed up"))?;
        let bar = bar();
        let done = engine.backup(&self.target, &mut |progress| show(&bar, &progress));
        bar.finish_and_clear();
        done.map_err(|cause| refused(&cause))
    }
}

/// `basalt restore`.
#[derive(Debug, Args)]
#[command(after_help = "\
Copies a backup into a data folder, which must be absent or empty. Every byte is held against the
backup's own list: a damaged backup is refused by the file's name, and nothing of it stays.

Examples:
  basalt restore /backup/monday /var/lib/basalt

Exit codes: 0 done, 1 no backup, or DIR holds something, 4 folder in use, 5 the backup is damaged,
75 disk full.")]
pub(super) struct Restore {
    /// Folder that `basalt backup` wrote
    backup: PathBuf,
    /// Data folder to be
    #[arg(value_name = "DIR")]
    target: PathBuf,
}

impl Restore {
    pub(super) fn run(self) -> Result<(), Failure> {
        let holds_something = |dir: &Path| {
            std::fs::read_dir(dir).is_ok_and(|entries| entries.flatten().any(|entry| entry.path().is_dir()))
        };
        if holds_something(&self.target) {
            return Err(Failure::new(Exit::Failure, format!("{} is not empty", self.target.display())));
        }
        let absent = |dir: &&Path| !dir.as_os_str().is_empty() && !dir.exists();
        let made: Vec<&Path> = self.target.ancestors().take_while(absent).collect();
        let bar = bar();
        let done = basalt_engine::restore(&OsFs, &self.backup, &self.target, &mut |progress| show(&bar, &progress));
        bar.finish_and_clear();
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

/// What a backup is told as.
pub(crate) fn backed_up(done: &BackedUp, target: &Path) -> String {
    let BackedUp { files_count, bytes, sequence, .. } = done;
    format!("backed up {files_count} files, {bytes} bytes, up to change {sequence}, into {}\n", target.display())
}

/// A bar of bytes, for a terminal.
pub(super) fn bar() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg} {wide_bar} {bytes}/{total_bytes} {eta}");
    ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// Moves a bar.
pub(super) fn show(bar: &ProgressBar, progress: &Progress<'_>) {
    bar.set_length(progress.bytes_total);
    bar.set_position(progress.bytes_done);
    bar.set_message(progress.file.to_owned());
}
