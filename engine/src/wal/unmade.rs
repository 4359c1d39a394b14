//! What stands for a segment until there is room to make it, or while the log is read.

use std::io;
use std::sync::Arc;

use super::segment::{LogPos, SEGMENT_HEADER_BYTES, Segment, SegmentId};
use super::{Replayed, Wal, WalOptions};
use crate::health::Condition;
use crate::io::{File, FileSystem};
use crate::reserve::Reserve;

/// Segment `id` without a file: it has no room for a record, so the log makes it before it writes one.
pub(super) fn unmade(id: SegmentId) -> Segment {
    Segment { id, file: Arc::new(NoFile), len: SEGMENT_HEADER_BYTES }
}

impl Wal {
    /// The log while it is read back, from segment `first` up to a number: all of that is on disk, and nothing is written to it.
    pub(crate) fn of_replay(
        fs: Arc<dyn FileSystem>,
        options: WalOptions,
        condition: Arc<Condition>,
        reserve: Arc<Reserve>,
        (first, last_sequence): (SegmentId, u64),
    ) -> Wal {
        let end = LogPos::new(first, SEGMENT_HEADER_BYTES);
        let replayed = Replayed { last_sequence, end, sealed: Vec::new(), next: first, cut: None };
        Wal::begin(fs, options, condition, reserve, (replayed, unmade(first)))
    }
}

/// Nothing is in it, and nothing goes in.
#[derive(Debug)]
struct NoFile;

impl File for NoFile {
    fn read_at(&self, _offset: u64, _buf: &mut [u8]) -> io::Result<usize> {
        Ok(0)
    }

    fn write_at(&self, _offset: u64, _bytes: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn set_len(&self, _len: u64) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(0)
    }
}
