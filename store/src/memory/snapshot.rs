//! Snapshots in memory: a copy of the table.

use bytes::Bytes;

use super::rows::Rows;
use crate::{SnapshotInfo, TableDescriptor};

/// A table as it was.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) info: SnapshotInfo,
    pub(super) image: Image,
}

/// All that a table consists of.
#[derive(Debug, Clone)]
pub(super) struct Image {
    pub(super) descriptor: TableDescriptor,
    pub(super) splits: Vec<Bytes>,
    pub(super) rows: Rows,
}
