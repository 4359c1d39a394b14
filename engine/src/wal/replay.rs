//! Reading the log back after whatever happened.
//!
//! The log is whole up to the first place that does not read. Above the position
//! that later records or the mark behind the log know to have been synced, that is
//! a torn tail: it is cut off and told in one log line. Below it, bytes that were
//! on disk have changed, and the log is refused: what it held was acknowledged.
//!
//! A segment is entered only after the one before was synced to its end, and its
//! first record says where that end was. So a gap between two segments shows too.
//! And it is published whole: one that is shorter than its header was cut since.

use std::collections::VecDeque;
use std::path::Path;

use super::segment::{LogPos, MARK, SEGMENT_HEADER_BYTES, SegmentId, check_header};
use crate::error::{Error, Result};
use crate::io::{FileSystem, IoOp};
use crate::record::{self, Damage, Record, Step};

/// A log's segments are read whole, and places in them are told in 32 bits; a larger file is not a segment.
const SEGMENT_BYTES_MAX: u64 = u32::MAX as u64;

/// A segment that holds records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sealed {
    pub(crate) id: SegmentId,
    pub(crate) last_sequence: u64,
    pub(crate) bytes: u64,
}

/// A torn tail that was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) at: LogPos,
    pub(crate) bytes: u64,
}

/// What the log held.
#[derive(Debug)]
pub(crate) struct Replayed {
    pub(crate) last_sequence: u64,
    pub(crate) end: LogPos,
    /// Segments that hold records, oldest first.
    pub(crate) sealed: Vec<Sealed>,
    /// The segment to write next.
    pub(crate) next: SegmentId,
    #[cfg_attr(not(test), expect(dead_code, reason = "told in the log; tests ask for it"))]
    pub(crate) cut: Option<Cut>,
}

/// Takes each record of the log in order.
pub(crate) type Visit<'a> = dyn FnMut(Record<'_>) -> Result<()> + 'a;

/// Reads the log in `dir` from segment `first` on, gives every record to `visit`,
/// makes what it read durable and cuts what is torn.
///
/// # Errors
/// Those of [`Replay::begin`], [`Replay::read`] and [`Replay::finish`].
pub(crate) fn replay(fs: &dyn FileSystem, dir: &Path, first: SegmentId, visit: &mut Visit<'_>) -> Result<Replayed> {
    let mut log = Replay::begin(fs, dir, first)?;
    log.read(visit, &|| false)?;
    log.finish()
}

/// The ids to read, ascending and without gap; older segments are deleted.
fn segment_ids(fs: &dyn FileSystem, dir: &Path, first: SegmentId) -> Result<Vec<SegmentId>> {
    let names = fs.list(dir).map_err(Error::io(IoOp::List, dir))?;
    let mut ids: Vec<SegmentId> = names.iter().filter_map(|name| SegmentId::of_name(name)).collect();
    ids.sort_unstable();
    let (old, ids): (Vec<_>, Vec<_>) = ids.into_iter().partition(|id| *id < first);
    for id in old {
        let path = id.path(dir);
        fs.remove(&path).map_err(Error::io(IoOp::Remove, &path))?;
    }
    let mut expected = first;
    for id in &ids {
        if *id != expected {
            break;
        }
        expected = expected.next();
    }
    let all = ids.last().map_or(first, |last| last.next().max(first.next()));
    if expected < all {
        let file = expected.path(dir);
        return Err(Error::Corrupt {
            file,
            offset: 0,
            what: "segment length",
            expected: SEGMENT_HEADER_BYTES,
            found: 0,
        });
    }
    Ok(ids)
}

/// A log that is being read, or was.
pub(crate) struct Replay<'a> {
    fs: &'a dyn FileSystem,
    dir: &'a Path,
    first: SegmentId,
    /// Not read yet, oldest first.
    left: VecDeque<SegmentId>,
    last_sequence: u64,
    /// Where the log ends as far as it was read.
    end: LogPos,
    sealed: Vec<Sealed>,
    /// Bytes behind the end of a segment that are neither record nor zero.
    torn: Option<(Cut, Damage)>,
    /// What the segment before held: its memory is used again for the next, as the system clears what it gives anew.
    bytes: Vec<u8>,
}

impl<'a> Replay<'a> {
    /// Begins with the log in `dir`, from segment `first` on. No record is changed, no tail cut, until it is [finished](Replay::finish).
    ///
    /// # Errors
    /// `Corrupt` for a missing segment; any I/O error.
    pub(crate) fn begin(fs: &'a dyn FileSystem, dir: &'a Path, first: SegmentId) -> Result<Replay<'a>> {
        let left = segment_ids(fs, dir, first)?.into();
        let end = LogPos::new(first, SEGMENT_HEADER_BYTES);
        Ok(Replay { fs, dir, first, left, last_sequence: 0, end, sealed: Vec::new(), torn: None, bytes: Vec::new() })
    }

    /// Gives every record that is left to `visit`, whether that is all. Where it `may_pause` it does behind a segment, of which all is
    /// on disk then.
    ///
    /// # Errors
    /// `Corrupt` for damage below what was known synced; what `visit` answers; any I/O error.
    pub(crate) fn read(&mut self, visit: &mut Visit<'_>, may_pause: &dyn Fn() -> bool) -> Result<bool> {
        while let Some(id) = self.left.pop_front() {
            self.segment(id, visit)?;
            if may_pause() && self.is_behind_synced()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The last number that was read.
    pub(crate) fn last_sequence(&self) -> u64 {
        self.last_sequence
    }

    /// Whether the next segment says that all that was read is on disk.
    fn is_behind_synced(&mut self) -> Result<bool> {
        let Some(next) = self.left.front() else { return Ok(false) };
        read_whole(self.fs, &next.path(self.dir), &mut self.bytes)?;
        Ok(records(&self.bytes, *next).next().is_some_and(|first| first.synced == self.end.0))
    }

    /// Gives the records that are left to `visit`, as far as they read, until it answers false. They are read again by
    /// [`Replay::read`], which judges what does not.
    ///
    /// # Errors
    /// Any I/O error.
    pub(crate) fn look_ahead(&self, visit: &mut dyn FnMut(Record<'_>) -> bool) -> Result<()> {
        let mut bytes = Vec::new();
        for id in &self.left {
            read_whole(self.fs, &id.path(self.dir), &mut bytes)?;
            if !records(&bytes, *id).all(&mut *visit) {
                break;
            }
        }
        Ok(())
    }

    fn segment(&mut self, id: SegmentId, visit: &mut Visit<'_>) -> Result<()> {
        let path = id.path(self.dir);
        let mut bytes = std::mem::take(&mut self.bytes);
        read_whole(self.fs, &path, &mut bytes)?;
        check_header(&bytes, id, &path)?;
        let start = usize::try_from(SEGMENT_HEADER_BYTES).unwrap_or(usize::MAX);
        let mut offset = start;
        let stop = loop {
            match record::read(&bytes, u64::from(id.0), offset) {
                // What was to be written over it is not here.
                Step::Record(record) if record.kind == MARK => break None,
                Step::Record(record) => {
                    if offset == start {
                        self.enter(id, record.synced)?;
                    }
                    self.record(&path, offset, record, visit)?;
                    assert!(record.end > offset, "BUG: a record of no bytes");
                    offset = record.end;
                }
                Step::End => break None,
                Step::Damaged(damage) => break Some(damage),
            }
        };
        self.stop(id, &bytes, offset, stop)?;
        self.bytes = bytes;
        Ok(())
    }

    /// The first record of a segment says where the one before it ended.
    fn enter(&self, id: SegmentId, synced: u64) -> Result<()> {
        if id > self.first && synced != self.end.0 {
            return Err(self.lost_below(LogPos(synced)));
        }
        Ok(())
    }

    /// The log was on disk up to `synced`, and reads up to `self.end` only.
    ///
    /// A segment without a record that reads ends nowhere: if the log was on disk in it, that is the damaged one.
    fn lost_below(&self, synced: LogPos) -> Error {
        let reached = LogPos::new(synced.segment(), SEGMENT_HEADER_BYTES).max(self.end);
        Error::Corrupt {
            file: reached.segment().path(self.dir),
            offset: reached.offset(),
            what: "synced log position",
            expected: synced.0,
            found: self.end.0,
        }
    }

    fn record(&mut self, path: &Path, offset: usize, record: Record<'_>, visit: &mut Visit<'_>) -> Result<()> {
        if record.sequence <= self.last_sequence {
            return Err(Error::Corrupt {
                file: path.to_path_buf(),
                offset: offset as u64,
                what: "record sequence",
                expected: self.last_sequence + 1,
                found: record.sequence,
            });
        }
        if record.sequence > record::SEQUENCE_MAX {
            return Err(too_large(path, offset, record.sequence));
        }
        self.last_sequence = record.sequence;
        visit(record)
    }

    /// Judges the place where a segment stopped to read.
    fn stop(&mut self, id: SegmentId, bytes: &[u8], offset: usize, damage: Option<Damage>) -> Result<()> {
        let begun = offset as u64 > SEGMENT_HEADER_BYTES;
        let here = LogPos::new(id, offset as u64);
        let synced = LogPos(record::known_synced(bytes, u64::from(id.0), offset));
        if synced > here {
            let damage = damage.unwrap_or(Damage { what: "record header", expected: synced.0, found: 0 });
            return Err(Error::Corrupt {
                file: id.path(self.dir),
                offset: offset as u64,
                what: damage.what,
                expected: damage.expected,
                found: damage.found,
            });
        }
        if !begun && id > self.first && synced > self.end {
            return Err(self.lost_below(synced));
        }
        if let Some(damage) = damage {
            let written = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            let cut = Cut { at: here, bytes: written.saturating_sub(offset) as u64 };
            self.torn.get_or_insert((cut, damage));
        }
        if begun {
            self.end = here;
            self.sealed.push(Sealed { id, last_sequence: self.last_sequence, bytes: offset as u64 });
        }
        Ok(())
    }

    /// Leaves a log that ends where it was read to, durable, and cuts what is torn.
    ///
    /// Empty segments behind the end stay: new ones are published over them. To
    /// delete them could leave a gap, if only some of the deletions last.
    ///
    /// # Errors
    /// Any I/O error.
    pub(crate) fn finish(mut self) -> Result<Replayed> {
        let last = self.sealed.last().map(|sealed| sealed.id);
        if let Some(sealed) = self.sealed.last() {
            let path = sealed.id.path(self.dir);
            let file = self.fs.open_rw(&path).map_err(Error::io(IoOp::Open, &path))?;
            file.set_len(sealed.bytes).map_err(Error::io(IoOp::SetLen, &path))?;
            // Written once more: after a failed sync the system takes bytes for written that are in its memory only,
            // and a sync of them does nothing.
            read_whole(self.fs, &path, &mut self.bytes)?;
            let start = usize::try_from(SEGMENT_HEADER_BYTES).unwrap_or(usize::MAX);
            let records = self.bytes.get(start..).unwrap_or_default();
            file.write_at(SEGMENT_HEADER_BYTES, records).map_err(Error::io(IoOp::Write, &path))?;
            file.sync_data().map_err(Error::io(IoOp::SyncData, &path))?;
        }
        if let Some((Cut { at, bytes }, damage)) = self.torn {
            let offset = at.offset();
            tracing::warn!(file = %at.segment().path(self.dir).display(), offset, bytes, damage.what, "cut a torn log tail");
        }
        Ok(Replayed {
            last_sequence: self.last_sequence,
            end: self.end,
            next: last.map_or(self.first, SegmentId::next),
            sealed: self.sealed,
            cut: self.torn.map(|(cut, _)| cut),
        })
    }
}

/// The records of a segment, as far as they read.
fn records(bytes: &[u8], id: SegmentId) -> impl Iterator<Item = Record<'_>> {
    let mut offset = usize::try_from(SEGMENT_HEADER_BYTES).unwrap_or(usize::MAX);
    std::iter::from_fn(move || match record::read(bytes, u64::from(id.0), offset) {
        Step::Record(record) if record.kind != MARK => {
            offset = record.end;
            Some(record)
        }
        _ => None,
    })
}

/// A record with a number that none has.
pub(crate) fn too_large(path: &Path, offset: usize, sequence: u64) -> Error {
    Error::Corrupt {
        file: path.to_path_buf(),
        offset: offset as u64,
        what: "record sequence",
        expected: record::SEQUENCE_MAX,
        found: sequence,
    }
}

/// Reads a file to its end; what `bytes` held before is gone.
fn read_whole(fs: &dyn FileSystem, path: &Path, bytes: &mut Vec<u8>) -> Result<()> {
    let file = fs.open(path).map_err(Error::io(IoOp::Open, path))?;
    let len = file.len().map_err(Error::io(IoOp::Len, path))?;
    if len > SEGMENT_BYTES_MAX {
        let file = path.to_path_buf();
        return Err(Error::Corrupt {
            file,
            offset: 0,
            what: "segment length",
            expected: SEGMENT_BYTES_MAX,
            found: len,
        });
    }
    bytes.resize(usize::try_from(len).unwrap_or(usize::MAX), 0);
    file.read_exact_at(0, bytes).map_err(Error::io(IoOp::Read, path))
}
