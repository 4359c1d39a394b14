//! What of a file cannot be had any more.

use std::path::{Path, PathBuf};

use basalt_store::TableName;
use bytes::Bytes;

use crate::error::Error;

/// Something that cannot be had any more.
#[derive(Debug)]
pub struct Loss {
    /// The damaged file.
    pub file: PathBuf,
    /// Where in it.
    pub offset: u64,
    /// Bytes of it.
    pub bytes: u64,
    /// Cells in them, where anything still tells.
    pub cells_count: Option<u64>,
    /// The rows between which they lie, both in; empty where nothing tells.
    pub rows: (Bytes, Bytes),
    /// Whose cells they were, of an SSTable: a record of the log may have been of several.
    pub table: Option<TableName>,
    /// What is wrong there.
    pub damage: Error,
}

impl Loss {
    /// So many bytes of a file; by `offset` 0 they begin where the damage was noticed.
    pub(crate) fn of(damage: Error, offset: u64, bytes: u64) -> Loss {
        let file = damage.file().map(Path::to_path_buf).unwrap_or_default();
        let offset = match &damage {
            Error::Corrupt { offset: found, .. } | Error::WrongSummary { offset: found, .. } if offset == 0 => *found,
            _ => offset,
        };
        Loss { file, offset, bytes, cells_count: None, rows: (Bytes::new(), Bytes::new()), table: None, damage }
    }
}
