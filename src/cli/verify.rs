//! `basalt verify` and `basalt repair`: the damage of a folder, told and mended.

use std::fmt::Write as _;

use basalt_engine::io::IoOp;
use basalt_engine::{AuditedFile, Error, FileKind, Folder, Loss};
use basalt_store::with_causes;
use clap::Args;

use super::backup::Shown;
use super::folder::{BY_FLAG, check_folder};
use super::{Sources, print, start_log};
use crate::exit::{Exit, Failure};
use crate::progress::meanwhile;
use crate::remote::Server;
use crate::store::{folder_options, refused};

/// `basalt verify`.
#[derive(Debug, Args)]
#[command(after_help = "\
Reads every byte of manifest, log and files, and proves checksums, order, counts, filters and
summaries of rows. Nothing is changed; the folder must be free. While a server runs on it, --url has
that server read and prove all but its log, from the same machine only, while it serves: once a week
finds a byte that went bad while a backup still has it. Where the server asks for tokens, an
administrator's is taken from BASALT_TOKEN.

Examples:
  basalt verify
  basalt verify --data-dir /var/lib/basalt
  basalt verify --url http://127.0.0.1:4242

Exit codes: 0 all is as it was written, 1 no such folder or server, or the token was refused, 2 a
URL that is none, 4 folder in use, 5 damage, told by file and offset, 75 server busy.")]
pub(super) struct Verify {
    #[command(flatten)]
    sources: Sources,
    /// Have this running server prove its files
    #[arg(long, value_name = "URL", conflicts_with_all = ["data_dir", "config"])]
    url: Option<String>,
}

impl Verify {
    pub(super) fn run(self) -> Result<(), Failure> {
        if let Some(url) = &self.url {
            start_log(self.sources.log_level.as_deref(), &[])?;
            let server = Server::at(url)?;
            let mut told = Vec::new();
            let outcome = meanwhile("the server proves its files", || server.ask("/store/verify", b"", &mut told));
            print(&String::from_utf8_lossy(&told))?;
            return outcome;
        }
        let folder = open(&self.sources)?;
        let mut shown = Shown::new("read");
        let files = folder.audit(true, &mut |progress| shown.tell(&progress));
        drop(shown);
        let files = files.map_err(|cause| refused(&cause))?;
        let mut text = String::new();
        for damage in files.iter().filter_map(|file| file.damage.as_ref()) {
            writeln!(text, "{}", with_causes(damage)).unwrap_or_default();
        }
        let proved = files.iter().filter(|file| file.damage.is_none() && file.kind != FileKind::Unnamed);
        let (count, bytes) = proved.fold((0, 0), |(count, bytes), file| (count + 1, bytes + file.bytes));
        writeln!(text, "{count} files, {bytes} bytes: proved").unwrap_or_default();
        print(&text)?;
        end_by(&files)
    }
}

/// The end of a look at a folder with these files.
pub(super) fn end_by(files: &[AuditedFile]) -> Result<(), Failure> {
    let (later, damaged): (Vec<_>, Vec<_>) =
        files.iter().filter_map(|file| file.damage.as_ref()).partition(|damage| damage.is_of_later_program());
    let mut ends = Vec::new();
    if !damaged.is_empty() {
        let count = damaged.len();
        ends.push(format!("{count} files are damaged; `basalt repair` tells what can be had of them"));
    }
    if !later.is_empty() {
        ends.push(format!("{} files are of a later program: use that one", later.len()));
    }
    if ends.is_empty() { Ok(()) } else { Err(Failure::new(Exit::Damage, ends.join("; "))) }
}

/// `basalt repair`.
#[derive(Debug, Args)]
#[command(after_help = "\
Tells what is lost of a damaged folder, and with --fix puts all that can be had in the place of what
is damaged or cannot be read. The originals stay beside, with .damaged behind their names. A lost
cell may have been a delete: what it hid is seen again. Where there is a backup, restore it rather.
A file that cannot be opened, or that is another by its header than its name says, is told and left
alone. Of MANIFEST and MANIFEST.copy one is written anew from the other; where both are damaged it
is told and not mended: see docs/formats/manifest.md. --fix refuses a backup: delete the file BACKUP
in a copy of it, and mend the copy.

Examples:
  basalt verify --data-dir /var/lib/basalt
  basalt repair --data-dir /var/lib/basalt
  basalt repair --data-dir /var/lib/basalt --fix

Exit codes: 0 nothing is damaged, or it is mended; 1 no such folder, or
a backup; 4 folder in use, 5 damage that is not mended (yet), 75 the disk is full.")]
pub(super) struct Repair {
    #[command(flatten)]
    sources: Sources,
    /// Do it; without, only tell
    #[arg(long)]
    fix: bool,
}

impl Repair {
    pub(super) fn run(self) -> Result<(), Failure> {
        let folder = open(&self.sources)?;
        let mut shown = Shown::new("read");
        let mut done = basalt_engine::Repair::default();
        let ended = folder.repair(self.fix, &mut done, &mut |progress| shown.tell(&progress));
        drop(shown);
        let mut text = String::new();
        for damage in &done.mended {
            let verb = if self.fix { "was" } else { "can be" };
            let line =
                format!("{}: it {verb} written anew from its other copy, and nothing is lost", with_causes(damage));
            writeln!(text, "{line}").unwrap_or_default();
        }
        for loss in &done.losses {
            writeln!(text, "{}", told(loss, self.fix)).unwrap_or_default();
        }
        for loss in &done.undone {
            writeln!(text, "{}", told(loss, false)).unwrap_or_default();
        }
        for kept in &done.unopened {
            let cause = with_causes(&kept.damage);
            writeln!(text, "{cause}: {} bytes cannot be had, and stay as they are", kept.bytes).unwrap_or_default();
        }
        for damage in &done.unmended {
            writeln!(text, "{damage}; this is not mended: restore a backup").unwrap_or_default();
        }
        for original in &done.kept_aside {
            writeln!(text, "kept {}", original.display()).unwrap_or_default();
        }
        if let Err(cause) = ended {
            // What lies behind it is not known: no sum is told.
            print(&text)?;
            return Err(ended_by(&cause));
        }
        let cells: u64 = done.losses.iter().filter_map(|loss| loss.cells_count).sum();
        let bytes: u64 = done.losses.iter().map(|loss| loss.bytes).sum();
        let (count, verb) = (done.losses.len(), if self.fix { "lost" } else { "would be lost" });
        writeln!(text, "{count} places, {bytes} bytes, {cells} cells that are known of: {verb}").unwrap_or_default();
        print(&text)?;
        if !done.unmended.is_empty() {
            return Err(Failure::new(Exit::Damage, "the folder cannot be mended: restore a backup"));
        }
        if !self.fix && count + done.mended.len() > 0 {
            return Err(Failure::new(Exit::Damage, "nothing was changed; --fix mends it with this loss"));
        }
        if !done.unopened.is_empty() {
            let line = format!("{} files cannot be had as they are, and were left alone", done.unopened.len());
            return Err(Failure::new(Exit::Damage, line));
        }
        Ok(())
    }
}

/// Why a repair ended early, with what to do about a segment of the log that cannot be opened, as where a folder has its name.
fn ended_by(cause: &Error) -> Failure {
    match cause {
        Error::Io { op: IoOp::Open, path, .. } if path.extension().is_some_and(|kind| kind == "log") => {
            let todo = "mend what keeps it from being opened, or move it away, after which it counts as lost";
            Failure::new(Exit::Damage, format!("{}: {todo}", with_causes(cause)))
        }
        _ => refused(cause),
    }
}

fn told(loss: &Loss, is_done: bool) -> String {
    let verb = if is_done { "lost" } else { "would lose" };
    let cells = loss.cells_count.map_or("an unknown number of cells".to_owned(), |cells| format!("{cells} cells"));
    let (first, last) = (loss.rows.0.escape_ascii(), loss.rows.1.escape_ascii());
    let rows = if loss.rows.1.is_empty() { String::new() } else { format!(" of rows {first} to {last}") };
    let table = loss.table.as_ref().map_or_else(String::new, |table| format!(" of table {table}"));
    format!("{}: {verb} {} bytes, {cells}{rows}{table}", place(loss), loss.bytes)
}

/// What is wrong, and where.
fn place(loss: &Loss) -> String {
    match &loss.damage {
        cause @ Error::Io { .. } => format!("{}, at offset {}", with_causes(cause), loss.offset),
        damage => damage.to_string(),
    }
}

/// The folder that is named, locked.
fn open(sources: &Sources) -> Result<Folder, Failure> {
    let config = sources.load()?;
    check_folder(&config.store.data_dir, BY_FLAG)?;
    Folder::open(folder_options(&config)).map_err(|cause| refused(&cause))
}

/// The folder that is named, for a look.
pub(super) fn open_folder(sources: &Sources) -> Result<Folder, Failure> {
    open(sources)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A repair has nothing to mend of what is not damaged.
    #[test]
    fn files_of_a_later_program_are_not_told_as_damaged() {
        let with = |damage| AuditedFile {
            name: "MANIFEST".to_owned(),
            kind: FileKind::Manifest,
            bytes: 0,
            rows_count: 0,
            cells_count: 0,
            blocks_count: 0,
            owners: Vec::new(),
            damage,
        };
        let version = |found| with(Some(Error::Version { file: PathBuf::new(), found, supported: 4 }));
        let codec = with(Some(Error::UnknownCodec { file: PathBuf::new(), codec: "TSB2".into() }));
        let check = |files: &[AuditedFile], expected: &str| {
            let told = end_by(files).map_or_else(|failure| failure.line, |()| String::new());
            assert_eq!(told, expected);
        };
        let damaged = "1 files are damaged; `basalt repair` tells what can be had of them";
        check(&[with(None)], "");
        check(&[with(None), version(0)], damaged);
        check(&[version(5), codec], "2 files are of a later program: use that one");
        check(&[version(5), version(0)], &format!("{damaged}; 1 files are of a later program: use that one"));
    }
}
