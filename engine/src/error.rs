//! What can go wrong in the engine, as data.

use std::io;
use std::path::{Path, PathBuf};

use basalt_store::ErrorKind;

use crate::io::IoOp;

/// The crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of the embedded engine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused an operation on a file.
    #[error("cannot {op} {}", path.display())]
    Io {
        /// What was tried.
        op: IoOp,
        /// On which file or folder.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },

    /// A file holds bytes that were not written there.
    #[error("{} is damaged at offset {offset}: {what} is {}, not {}", file.display(), shown(what, *found), shown(what, *expected))]
    Corrupt {
        /// The damaged file.
        file: PathBuf,
        /// Where the damage was noticed, in bytes from the file's start.
        offset: u64,
        /// The field that does not fit.
        what: &'static str,
        /// What it should have been.
        expected: u64,
        /// What it was.
        found: u64,
    },

    /// What a file tells of the points of a row together is not what they are.
    #[error("{} is damaged at offset {offset}: the summary of row {} is not that of its points", file.display(), row.escape_ascii())]
    WrongSummary {
        /// The damaged file.
        file: PathBuf,
        /// Where the row's block begins.
        offset: u64,
        /// The row's key.
        row: Box<[u8]>,
    },

    /// A file that is named elsewhere is not there.
    #[error("{} is missing: it had {bytes} bytes", file.display())]
    Missing {
        /// The file.
        file: PathBuf,
        /// How long it should be.
        bytes: u64,
    },

    /// A file whose header is sound is another than its name says.
    #[error("{} is {name} by its own header: give it that name", file.display())]
    Misnamed {
        /// The file.
        file: PathBuf,
        /// The name that it was written under.
        name: Box<str>,
    },

    /// A file was written by a later Basalt.
    #[error("{} has format version {found}; this program reads up to {supported}", file.display())]
    Version {
        /// The file.
        file: PathBuf,
        /// Its format version.
        found: u32,
        /// The newest version known here.
        supported: u32,
    },

    /// A data folder has files and does not say what they are.
    #[error("{} lost its file MANIFEST, without which nobody can tell what its other files hold", dir.display())]
    NoManifest {
        /// The data folder.
        dir: PathBuf,
    },

    /// A file's blocks are laid out by an encoding that is not registered here.
    #[error("{} has blocks of encoding {codec}, which this program does not know", file.display())]
    UnknownCodec {
        /// The file.
        file: PathBuf,
        /// The encoding's name.
        codec: Box<str>,
    },

    /// Another process owns the data folder.
    #[error("{} is in use by another process", dir.display())]
    Locked {
        /// The data folder.
        dir: PathBuf,
    },

    /// The disk is full: reads go on, writes resume by themselves with space.
    #[error("the disk is full; writes resume when space is freed")]
    DiskFull,

    /// The process has as many files and connections open as the system lets it: as on a full disk, until some are closed.
    #[error(
        "no file of the log can be opened, as too many files and connections are open; writes resume when some are closed: \
         raise LimitNOFILE"
    )]
    NoDescriptors,

    /// A sync failed or a worker died: nothing more is acknowledged until the
    /// process has restarted through recovery.
    #[error("the engine has stopped writing: {reason}")]
    Poisoned {
        /// The first failure, in words.
        reason: std::sync::Arc<str>,
    },

    /// A thread of the engine's own died: a bug of ours.
    #[error("a {worker} thread died")]
    WorkerDied {
        /// Which.
        worker: &'static str,
    },

    /// The system lets the process start no more threads.
    #[error(
        "no {worker} thread can be started: {source}; raise the limit of processes (`ulimit -u`), of address space (`ulimit -v`) \
         or of tasks (TasksMax of systemd, the container's)"
    )]
    NoThread {
        /// What it was to do.
        worker: &'static str,
        /// What the system said.
        source: io::Error,
    },

    /// Too many bytes wait to be written; try again shortly.
    #[error("{queued_bytes} bytes wait to be written, the limit is {limit_bytes}")]
    Throttled {
        /// Bytes waiting.
        queued_bytes: u64,
        /// The bound on them.
        limit_bytes: u64,
    },

    /// A file whose name is not that of an SSTable.
    #[error("{} is no SSTable by its name, sst-NUMBER.sst", file.display())]
    NoSstable {
        /// The file.
        file: PathBuf,
    },

    /// A folder to be filled holds something.
    #[error("{} is not empty", dir.display())]
    NotEmpty {
        /// The folder.
        dir: PathBuf,
    },

    /// A folder to be filled holds a backup without its index.
    #[error("{} holds a backup that is being written, or was cut off: delete the folder unless one is", dir.display())]
    HalfBackedUp {
        /// The folder.
        dir: PathBuf,
    },

    /// A folder that should be a backup has no index.
    #[error("{} is no backup: it has no file BACKUP, which is written last", dir.display())]
    NoBackup {
        /// The folder.
        dir: PathBuf,
    },

    /// A backup was to be opened as a store.
    #[error("{} is a backup: restore it into another folder", dir.display())]
    IsBackup {
        /// The folder.
        dir: PathBuf,
    },

    /// A restore into the folder was interrupted.
    #[error("the restore into {} was interrupted: restore again", dir.display())]
    Unfinished {
        /// The folder.
        dir: PathBuf,
    },

    /// As many scans as may be are under way, or no thread can be started for one more; try again shortly.
    #[error("too many scans at once ({scans_max} at most), or no thread for one more; try again")]
    NoScan {
        /// The bound.
        scans_max: usize,
    },

    /// A table was dropped, emptied or restored while it was read.
    #[error("table '{table}' was dropped, emptied or restored while it was read: ask again")]
    TableReplaced {
        /// The table.
        table: Box<str>,
    },

    /// The engine was closed.
    #[error("the engine is closed")]
    Closed,

    /// The caller asked for something the store refuses.
    #[error(transparent)]
    Store(#[from] basalt_store::Error),
}

impl Error {
    /// Adapts an [`io::Error`] met while doing `op` to `path`.
    pub(crate) fn io(op: IoOp, path: &Path) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io { op, path: path.to_path_buf(), source }
    }

    pub(crate) fn no_thread(worker: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::NoThread { worker, source }
    }

    /// The file that it tells of.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Error::Io { path: file, .. }
            | Error::Corrupt { file, .. }
            | Error::WrongSummary { file, .. }
            | Error::Missing { file, .. }
            | Error::Misnamed { file, .. }
            | Error::Version { file, .. }
            | Error::UnknownCodec { file, .. } => Some(file),
            _ => None,
        }
    }

    /// Whether a place of a file cannot be had: its bytes are not what was written, or the disk does not give them.
    pub(crate) fn is_unreadable(&self) -> bool {
        matches!(self, Error::Corrupt { .. } | Error::WrongSummary { .. } | Error::Io { op: IoOp::Read, .. })
    }

    /// Whether a later program wrote what does not read here: it is not damaged.
    pub fn is_of_later_program(&self) -> bool {
        match self {
            Error::Version { found, supported, .. } => found > supported,
            Error::UnknownCodec { .. } => true,
            _ => false,
        }
    }

    /// Whether this is a failed sync, after which nothing may be acknowledged.
    pub fn is_sync_failure(&self) -> bool {
        matches!(self, Error::Io { op: IoOp::SyncData | IoOp::SyncDir, .. })
    }

    /// Whether a full disk (or a quota) is the cause.
    pub fn is_disk_full(&self) -> bool {
        match self {
            Error::DiskFull => true,
            Error::Io { source, .. } => {
                matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
            }
            _ => false,
        }
    }

    /// Whether no descriptor was left to open a file with: nothing was changed.
    pub(crate) fn is_out_of_descriptors(&self) -> bool {
        match self {
            Error::NoDescriptors => true,
            Error::Io { op: IoOp::Create | IoOp::Open, source, .. } => {
                matches!(source.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
            }
            _ => false,
        }
    }

    /// Whether there was no room, on the disk or among open files: it is tried again, and nothing is unknown.
    pub(crate) fn is_want_of_room(&self) -> bool {
        self.is_disk_full() && !self.is_sync_failure() || self.is_out_of_descriptors()
    }

    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Corrupt { .. }
            | Error::WrongSummary { .. }
            | Error::Missing { .. }
            | Error::Misnamed { .. }
            | Error::Version { .. }
            | Error::NoManifest { .. }
            | Error::UnknownCodec { .. }
            | Error::Unfinished { .. } => ErrorKind::Corrupt,
            Error::NoSstable { .. }
            | Error::NotEmpty { .. }
            | Error::HalfBackedUp { .. }
            | Error::NoBackup { .. }
            | Error::IsBackup { .. } => ErrorKind::Invalid,
            Error::Locked { .. } => ErrorKind::Conflict,
            Error::DiskFull | Error::NoDescriptors | Error::Poisoned { .. } => ErrorKind::ReadOnly,
            Error::Throttled { .. } | Error::NoScan { .. } => ErrorKind::Throttled,
            Error::WorkerDied { .. } => ErrorKind::Bug,
            Error::Store(error) => error.kind(),
            error @ Error::Io { .. } if error.is_disk_full() => ErrorKind::ReadOnly,
            Error::Io { .. } | Error::NoThread { .. } | Error::TableReplaced { .. } | Error::Closed => {
                ErrorKind::Unavailable
            }
        }
    }
}

impl From<Error> for basalt_store::Error {
    /// The contract's own words where it has them; the engine's error with its kind elsewhere.
    fn from(error: Error) -> basalt_store::Error {
        match error {
            Error::Store(error) => error,
            Error::Closed => basalt_store::Error::Closed,
            Error::Throttled { .. } => basalt_store::Error::Throttled { what: "the write queue" },
            Error::DiskFull | Error::NoDescriptors | Error::Poisoned { .. } => {
                basalt_store::Error::ReadOnly { reason: error.to_string().into() }
            }
            Error::Corrupt { file, offset, what, expected, found } => basalt_store::Error::Corrupt {
                file: file.display().to_string().into(),
                offset,
                expected: format!("{what} {}", shown(what, expected)).into(),
                found: shown(what, found).into(),
            },
            other => basalt_store::Error::backend(other.kind(), other),
        }
    }
}

/// A number of a damaged place as people read it: checksums and magic words by their bits, lengths and counts as such.
fn shown(what: &str, number: u64) -> String {
    let is_bits = what.contains("checksum") || what.contains("magic");
    if is_bits { format!("{number:#x}") } else { number.to_string() }
}

const _: () = assert!(size_of::<Error>() < 128);

#[cfg(test)]
mod tests {
    use super::*;

    /// A length that is told by its bits is no length to whoever looks at the file.
    #[test]
    fn lengths_are_told_in_decimal_and_checksums_by_their_bits() {
        let check = |what, told: &str, to_store: &str| {
            let error = Error::Corrupt { file: PathBuf::from("f"), offset: 24, what, expected: 30_353, found: 1_000 };
            assert_eq!(error.to_string(), format!("f is damaged at offset 24: {told}"));
            assert_eq!(basalt_store::Error::from(error).to_string(), format!("f is damaged at byte 24: {to_store}"));
        };
        check("file length", "file length is 1000, not 30353", "expected file length 30353, found 1000");
        check(
            "section checksum",
            "section checksum is 0x3e8, not 0x7691",
            "expected section checksum 0x7691, found 0x3e8",
        );
    }

    /// An operator's limit, no bug: it may be tried again once that is raised.
    #[test]
    fn want_of_a_thread_names_the_limits() {
        let error = Error::no_thread("replay")(io::Error::from_raw_os_error(libc::EAGAIN));
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let told = error.to_string();
        assert!(told.starts_with("no replay thread can be started: ") && told.contains("`ulimit -u`"), "{told}");
    }
}
