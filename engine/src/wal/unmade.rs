//! What stands for a segment until there is room to make it, or while the log is read.

use std::io;
use std::sync::Arc;

use super::segment::{SEGMENT_HEADER_BYTES, Segment, SegmentId};
use crate::io::File;

/// Segment `id` without a file: it has no room for a record, so the log makes it before it writes one.
pub(super) fn unmade(id: SegmentId) -> Segment {
    Segment { id, file: Arc::new(NoFile), len: SEGMENT_HEADER_BYTES }
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
