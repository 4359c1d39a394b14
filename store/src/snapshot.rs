//! Snapshots: a table as it was at one moment, kept under a name of its own.

use crate::{Error, Result, TableName, Timestamp};

/// A snapshot, as operators see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotInfo {
    /// Its name, unique in the store.
    pub name: Box<str>,
    /// The table it is of, which may be gone.
    pub table: TableName,
    /// When it was taken.
    pub created: Timestamp,
    /// Regions the table had.
    pub regions_count: u64,
    /// Files it keeps; 0 for stores without files.
    pub files_count: u64,
    /// Their bytes, which the table may share.
    pub file_bytes: u64,
}

/// # Errors
/// `Invalid`: a name that is empty, begins with `.` or `-`, or has a character other than letters, digits, `_`, `-`,
/// `.` (HBase's rule, which is that of tables).
pub fn check_snapshot_name(name: &str) -> Result<()> {
    let refuse = |reason| Error::InvalidName { what: "snapshot name", name: name.into(), reason };
    if name.is_empty() {
        return Err(refuse("it is empty"));
    }
    if !name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.')) {
        return Err(refuse("only letters, digits, '_', '-' and '.' are allowed"));
    }
    if name.starts_with(['.', '-']) {
        return Err(refuse("it may not begin with '.' or '-'"));
    }
    Ok(())
}
