//! What works over all files of a folder tell of themselves.

/// How far a backup, a restore or a check is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress<'a> {
    /// The file that was done last.
    pub file: &'a str,
    /// Bytes of all files done.
    pub bytes_done: u64,
    /// Bytes of all files.
    pub bytes_total: u64,
}
