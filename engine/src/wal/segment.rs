//! One file of the log: its name, its header, its making.
//!
//! A segment is made beforehand: header, then zeros over its whole length,
//! synced and published before the first record goes in. So a header that does
//! not read is damage, never a crash's doing; a write inside a segment meets
//! neither a full disk nor a change of the file's length, which makes the sync
//! cheap; and an id is never used for two logs' bytes without the header saying so.
//!
//! Or it is made of an old one whose records nobody needs any more (as `PostgreSQL` and
//! `RocksDB` do): a new header and zeros at the log's end, in place of writing
//! all of it twice. What it held stays behind those zeros and is no record of the
//! new segment, as each is bound to the id of the one that it was written for.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::header::{HEADER_BYTES, Header};
use crate::io::{File, FileSystem, IoOp, publish};
use crate::record;

/// Where the records begin.
pub(crate) const SEGMENT_HEADER_BYTES: u64 = HEADER_BYTES as u64;
const HEADER: Header = Header {
    magic: b"BasltWAL",
    version_min: 1,
    version: 3,
    names: ["segment length", "segment magic", "segment header checksum"],
};
/// The record type of the mark behind a log that rests: it has no bytes, and the log ends before it.
pub(crate) const MARK: u8 = 3;
const PREFIX: &str = "wal-";
const SUFFIX: &str = ".log";

/// Names a segment; they count up by one, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SegmentId(pub(crate) u32);

impl SegmentId {
    /// No log comes so far. A name with a larger number is not a segment's: none would come after the last of them.
    pub(crate) const MAX: SegmentId = SegmentId(u32::MAX >> 1);

    pub(crate) fn next(self) -> SegmentId {
        SegmentId(self.0 + 1)
    }

    /// Its name in the folder.
    pub(crate) fn name(self) -> String {
        format!("{PREFIX}{:010}{SUFFIX}", self.0)
    }

    pub(crate) fn path(self, dir: &Path) -> PathBuf {
        dir.join(self.name())
    }

    /// What a log says that must have it and has not.
    pub(crate) fn missing(self, dir: &Path) -> Error {
        Error::Corrupt { file: self.path(dir), offset: 0, what: "log segments", expected: 1, found: 0 }
    }

    /// The id in a file's name; `None` for any other file.
    pub(crate) fn of_name(name: &str) -> Option<SegmentId> {
        let digits = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
        digits.parse().ok().map(SegmentId).filter(|id| id.0 > 0 && *id <= SegmentId::MAX)
    }
}

/// A place in the log: segment in the upper half, offset in the lower.
///
/// Positions compare as the log was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct LogPos(pub(crate) u64);

impl LogPos {
    pub(crate) fn new(segment: SegmentId, offset: u64) -> LogPos {
        assert!(u32::try_from(offset).is_ok(), "BUG: offset {offset} in a log segment");
        LogPos(u64::from(segment.0) << 32 | offset)
    }

    pub(crate) fn segment(self) -> SegmentId {
        SegmentId(u32::try_from(self.0 >> 32).unwrap_or(0))
    }

    pub(crate) fn offset(self) -> u64 {
        self.0 & u64::from(u32::MAX)
    }
}

/// An open segment.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    pub(crate) id: SegmentId,
    pub(crate) file: Arc<dyn File>,
    pub(crate) len: u64,
}

impl Segment {
    /// Makes and publishes segment `id`, `len` bytes long.
    ///
    /// A full disk leaves nothing behind but perhaps an aside, which the next
    /// try overwrites.
    pub(crate) fn make(fs: &dyn FileSystem, dir: &Path, id: SegmentId, len: u64) -> Result<Segment> {
        let target = id.path(dir);
        let aside = target.with_extension("tmp");
        let file = fs.create(&aside).map_err(Error::io(IoOp::Create, &aside))?;
        file.write_at(0, &header(id)).map_err(Error::io(IoOp::Write, &aside))?;
        if let Err(source) = file.preallocate(len) {
            // Give back what was taken, or a full disk would stay full by our own doing.
            fs.remove(&aside).map_err(Error::io(IoOp::Remove, &aside))?;
            return Err(Error::io(IoOp::Write, &aside)(source));
        }
        publish(fs, &*file, &aside, &target)?;
        Ok(Segment { id, file, len })
    }

    /// Makes and publishes segment `id` of segment `old`, `len` bytes long, of which the log no longer says that it is its own.
    ///
    /// *Cost*: a write of 64 bytes, two renames and two syncs, and no space.
    pub(super) fn reuse(fs: &dyn FileSystem, dir: &Path, old: SegmentId, id: SegmentId, len: u64) -> Result<Segment> {
        let (from, target) = (old.path(dir), id.path(dir));
        // First: where no descriptor is left, the old segment stays what it is.
        let file = fs.open_rw(&from).map_err(Error::io(IoOp::Open, &from))?;
        // Under a name that a start sweeps away, before it is no longer what the one it has says.
        let aside = target.with_extension("tmp");
        fs.rename(&from, &aside).map_err(Error::io(IoOp::Rename, &from))?;
        let mut start = header(id);
        start.extend_from_slice(&[0; record::HEADER_BYTES]);
        file.write_at(0, &start).map_err(Error::io(IoOp::Write, &aside))?;
        publish(fs, &*file, &aside, &target)?;
        Ok(Segment { id, file, len })
    }
}

/// The bytes that segment `id` begins with.
pub(crate) fn header(id: SegmentId) -> Vec<u8> {
    HEADER.encode(id.0, 0)
}

/// The id by which the header of the segment that `bytes` begin is sound, whatever its name says.
///
/// # Errors
/// `Version`: nobody here can tell what of it is damaged.
pub(crate) fn header_id(bytes: &[u8], path: &Path) -> Result<Option<SegmentId>> {
    match HEADER.check(bytes, path) {
        Err(error @ Error::Version { .. }) => Err(error),
        checked => Ok(checked.ok().map(|(_, id, _)| SegmentId(id))),
    }
}

/// Checks the header of the segment that `bytes` begin.
pub(super) fn check_header(bytes: &[u8], id: SegmentId, path: &Path) -> Result<()> {
    let (_, found, _) = HEADER.check(bytes, path)?;
    if found != id.0 {
        let (file, expected, found) = (path.to_path_buf(), id.0.into(), found.into());
        return Err(Error::Corrupt { file, offset: 12, what: "segment id", expected, found });
    }
    Ok(())
}
