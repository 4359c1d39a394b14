//! What is done to files, by name: errors tell it, and by it the engine decides.

use std::fmt;

/// What was being done to a file when it failed.
///
/// The operation decides what the engine does next: a failed sync poisons, a
/// failed write with a full disk turns it read-only, a failed read fails alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IoOp {
    /// Making a folder or a file.
    Create,
    /// Opening an existing file.
    Open,
    /// Reading at an offset.
    Read,
    /// Writing at an offset.
    Write,
    /// Cutting or growing a file.
    SetLen,
    /// Asking a file for its length.
    Len,
    /// Forcing a file's bytes to disk.
    SyncData,
    /// Forcing a folder's names to disk.
    SyncDir,
    /// Giving a file another name.
    Rename,
    /// Deleting a name.
    Remove,
    /// Listing a folder.
    List,
    /// Taking the lock of the data folder.
    Lock,
}

impl fmt::Display for IoOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IoOp::Create => "create",
            IoOp::Open => "open",
            IoOp::Read => "read",
            IoOp::Write => "write",
            IoOp::SetLen => "resize",
            IoOp::Len => "measure",
            IoOp::SyncData => "sync",
            IoOp::SyncDir => "sync folder",
            IoOp::Rename => "rename",
            IoOp::Remove => "remove",
            IoOp::List => "list",
            IoOp::Lock => "lock",
        })
    }
}
