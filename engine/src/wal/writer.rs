//! The one writer of the log: takes groups of records, stamps each record with its
//! place, writes a group with one call and syncs it with another.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::replay::Sealed;
use super::segment::{LogPos, MARK, SEGMENT_HEADER_BYTES, Segment, SegmentId};
use crate::error::{Error, Result};
use crate::io::{FileSystem, IoOp};
use crate::record;

/// Up to this many segments that no replay needs are kept for reuse: as many as a flush of a full memtable frees.
pub(super) const RETIRED_MAX: usize = 4;

/// A write is filled up to the end of a page. The system would have to read the last page before it changes a part of it, if
/// that page is no longer in memory.
const PAGE_BYTES: u64 = 4096;

/// A closed record and the number it was given.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) sequence: u64,
    pub(super) record: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Writer {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    segment_bytes: u64,
    segment: Segment,
    /// False while there is no room for it, from an open on a full disk on: the log then ends with the segment before.
    is_made: bool,
    /// Where the next record goes.
    offset: u64,
    /// Sequence number of the last record written.
    last_sequence: u64,
    /// The place up to which the log is on disk.
    synced: LogPos,
    /// Full segments, oldest first.
    sealed: Vec<Sealed>,
    /// The next segment, made beforehand so that entering it does not wait.
    spare: Option<Segment>,
    /// When there was no room for it last, if it was not made since.
    no_room_since: Option<Instant>,
    /// Old segments whose records no replay needs, kept for reuse.
    retired: Vec<SegmentId>,
    /// Records not written yet, in order; a full disk leaves them here.
    backlog: VecDeque<Queued>,
    /// The bytes of a group before they are written; a field so that its memory is used again.
    scratch: Vec<u8>,
}

/// How far a group got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Progress {
    pub(super) written: u64,
    /// Set when entering a new segment forced a sync on the way.
    pub(super) synced: Option<u64>,
}

impl Writer {
    pub(super) fn new(
        fs: Arc<dyn FileSystem>,
        dir: PathBuf,
        segment_bytes: u64,
        segment: Segment,
        sealed: Vec<Sealed>,
        end: LogPos,
    ) -> Writer {
        Writer {
            is_made: segment.len > SEGMENT_HEADER_BYTES,
            fs,
            dir,
            segment_bytes,
            segment,
            offset: SEGMENT_HEADER_BYTES,
            last_sequence: sealed.last().map_or(0, |sealed| sealed.last_sequence),
            synced: end,
            sealed,
            spare: None,
            no_room_since: None,
            retired: Vec::new(),
            backlog: VecDeque::new(),
            scratch: Vec::new(),
        }
    }

    /// Writes the backlog, then `group`.
    ///
    /// On a full disk, what was not written stays in the backlog for the next call.
    ///
    /// # Errors
    /// Disk full: try again later. Any other error: the state of the log is unknown.
    pub(super) fn write(&mut self, group: Vec<Queued>) -> (Progress, Result<()>) {
        self.backlog.extend(group);
        let mut progress = Progress { written: self.last_sequence, synced: None };
        while !self.backlog.is_empty() {
            if let Err(error) = self.write_run(&mut progress) {
                return (progress, Err(error));
            }
        }
        (progress, Ok(()))
    }

    /// As [`Writer::write`], and has what was written set out for the disk.
    ///
    /// # Errors
    /// As [`Writer::write`].
    pub(super) fn write_ahead(&mut self, group: Vec<Queued>) -> (Progress, Result<()>) {
        let (segment, from) = (self.segment.id, self.offset);
        let done = self.write(group);
        // Of a segment that was left meanwhile everything is on disk.
        let from = if self.segment.id == segment { from } else { 0 };
        // To the system no bytes mean all there are.
        if self.offset > from {
            self.segment.file.start_sync(from, self.offset - from);
        }
        done
    }

    /// Writes as much of the backlog as fits the segment; enters the next one when nothing does.
    fn write_run(&mut self, progress: &mut Progress) -> Result<()> {
        let mut fitting = 0;
        let mut end = self.offset;
        self.scratch.clear();
        for queued in &mut self.backlog {
            let next = end + queued.record.len() as u64;
            if next > self.segment.len {
                break;
            }
            record::stamp(&mut queued.record, u64::from(self.segment.id.0), end, queued.sequence, self.synced.0);
            self.scratch.extend_from_slice(&queued.record);
            (end, fitting) = (next, fitting + 1);
        }
        if fitting == 0 {
            return self.roll(progress);
        }
        self.put_zeros_behind(end);
        let path = || self.segment.id.path(&self.dir);
        self.segment
            .file
            .write_at(self.offset, &self.scratch)
            .map_err(|source| Error::io(IoOp::Write, &path())(source))?;
        self.offset = end;
        if let Some(last) = self.backlog.drain(..fitting).next_back() {
            assert!(last.sequence > self.last_sequence, "BUG: record {} is written out of order", last.sequence);
            self.last_sequence = last.sequence;
        }
        progress.written = self.last_sequence;
        Ok(())
    }

    /// Puts zeros behind a group that ends at `end`, so that no record begins there. A segment that is used again still holds its
    /// old records behind that place.
    fn put_zeros_behind(&mut self, end: u64) {
        let zeros = usize::try_from(self.page_behind(end) - end).unwrap_or(0);
        self.scratch.resize(self.scratch.len() + zeros, 0);
    }

    /// Where the page begins before which there are zeros behind a group that ends at `end`; at most the segment's end.
    fn page_behind(&self, end: u64) -> u64 {
        (end + record::HEADER_BYTES as u64).next_multiple_of(PAGE_BYTES).min(self.segment.len)
    }

    /// Says behind the log's end that all before it is on disk: by it a damaged last record is told from a torn one. On a page
    /// of its own, which what damages that record is likely to leave alone; the next records go over it.
    ///
    /// Neither synced nor needed: a power loss may take it or tear it. Then a damaged last record reads as a torn one.
    pub(super) fn mark(&self) {
        let header_bytes = record::HEADER_BYTES as u64;
        let last = self.segment.len.saturating_sub(header_bytes);
        let at = self.page_behind(self.offset).min(last - last % record::ALIGN_BYTES as u64);
        let is_synced = self.offset == SEGMENT_HEADER_BYTES || self.synced == LogPos::new(self.segment.id, self.offset);
        if !is_synced || at < self.offset + header_bytes {
            return;
        }
        let mut mark = record::mark(MARK, u64::from(self.segment.id.0), at, self.last_sequence, self.synced.0);
        // Up to the page's end, as with a group.
        mark.resize(usize::try_from(PAGE_BYTES.min(self.segment.len - at)).unwrap_or(mark.len()), 0);
        if let Err(error) = self.segment.file.write_at(at, &mark) {
            tracing::debug!(%error, "the log's end is unmarked");
        }
    }

    /// Syncs the segment and enters the next. So no record of a segment is on disk
    /// before the whole segment before it is.
    fn roll(&mut self, progress: &mut Progress) -> Result<()> {
        let wanted = self.backlog.front().map_or(0, |queued| queued.record.len() as u64) + SEGMENT_HEADER_BYTES;
        if self.offset == SEGMENT_HEADER_BYTES {
            // The record is larger than a segment. A segment that holds it replaces this
            // empty one under the same id, so that every sealed segment has records. Or it is not made yet.
            self.segment = self.make(self.segment.id, wanted)?;
            (self.is_made, self.spare) = (true, None);
            return Ok(());
        }
        let next = match self.spare.take() {
            Some(spare) => spare,
            None => self.make(self.segment.id.next(), wanted)?,
        };
        progress.synced = Some(self.sync()?);
        self.sealed.push(Sealed { id: self.segment.id, last_sequence: self.last_sequence, bytes: self.segment.len });
        self.segment = next;
        self.offset = SEGMENT_HEADER_BYTES;
        Ok(())
    }

    fn make(&self, id: SegmentId, wanted: u64) -> Result<Segment> {
        Segment::make(&*self.fs, &self.dir, id, self.segment_bytes.max(wanted))
    }

    /// Makes the next segment beforehand unless it is there, from an old segment where one is kept. First of all the present
    /// one, where an open had no room for it: there is no gap between two segments.
    ///
    /// # Errors
    /// Want of room, which [`Writer::may_prepare`] knows of then; any I/O error.
    pub(super) fn prepare(&mut self) -> Result<()> {
        let prepared = self.try_prepare();
        self.no_room_since = prepared.as_ref().is_err_and(Error::is_want_of_room).then(Instant::now);
        prepared
    }

    fn try_prepare(&mut self) -> Result<()> {
        if !self.is_made {
            self.segment = self.make(self.segment.id, 0)?;
            self.is_made = true;
            self.mark_begun();
        }
        if self.spare.is_none() {
            let id = self.segment.id.next();
            self.spare = Some(match self.retired.pop() {
                Some(old) => {
                    let reused = Segment::reuse(&*self.fs, &self.dir, old, id, self.segment_bytes);
                    // It could not be opened, or there was no room for another name.
                    if reused.as_ref().is_err_and(|error| error.file() == Some(&old.path(&self.dir))) {
                        self.retired.push(old);
                    }
                    reused?
                }
                None => self.make(id, 0)?,
            });
        }
        Ok(())
    }

    /// Whether the segment that the next record goes into is there.
    pub(super) fn is_made(&self) -> bool {
        self.is_made
    }

    /// Whether the next segment is made.
    pub(super) fn is_prepared(&self) -> bool {
        self.spare.is_some()
    }

    /// Whether the next segment is to be made now: it is not there, and there was room for it, or that is `retry` ago.
    pub(super) fn may_prepare(&self, retry: Duration) -> bool {
        self.spare.is_none() && self.no_room_since.is_none_or(|since| since.elapsed() >= retry)
    }

    /// Marks a segment into which nothing was written yet.
    ///
    /// An empty log has nothing to vouch for, and that of a backup is a file like its others.
    pub(super) fn mark_begun(&self) {
        if self.bytes() > SEGMENT_HEADER_BYTES {
            self.mark();
        }
    }

    /// Puts everything written on disk; answers the last sequence number of it.
    ///
    /// # Errors
    /// Any error is final.
    pub(super) fn sync(&mut self) -> Result<u64> {
        let path = || self.segment.id.path(&self.dir);
        self.segment.file.sync_data().map_err(|source| Error::io(IoOp::SyncData, &path())(source))?;
        // In an empty segment `synced` stays at the end of the one before, which the first record then states.
        if self.offset > SEGMENT_HEADER_BYTES {
            self.synced = LogPos::new(self.segment.id, self.offset);
        }
        Ok(self.last_sequence)
    }

    /// The oldest segment that holds a record after `sequence`. It is one that is there: a log begins with a file.
    pub(super) fn first_needed(&self, sequence: u64) -> SegmentId {
        let needed = self.sealed.iter().find(|sealed| sealed.last_sequence > sequence);
        let last = self.sealed.last().filter(|_| !self.is_made);
        needed.or(last).map_or(self.segment.id, |sealed| sealed.id)
    }

    /// Deletes the segments before `first`, or keeps them for reuse. The manifest already says that they are not needed.
    ///
    /// # Errors
    /// Any I/O error; the rest is deleted at the next try or the next open.
    pub(super) fn remove_before(&mut self, first: SegmentId) -> Result<()> {
        while let Some(oldest) = self.sealed.first().copied().filter(|sealed| sealed.id < first) {
            if oldest.bytes == self.segment_bytes && self.retired.len() < RETIRED_MAX {
                self.retired.push(oldest.id);
            } else {
                self.remove(oldest.id)?;
            }
            self.sealed.remove(0);
        }
        Ok(())
    }

    /// Deletes the segments that are kept for reuse.
    ///
    /// # Errors
    /// Any I/O error; the rest is deleted at the next open.
    pub(super) fn remove_retired(&mut self) -> Result<()> {
        while let Some(id) = self.retired.pop() {
            self.remove(id)?;
        }
        Ok(())
    }

    fn remove(&self, id: SegmentId) -> Result<()> {
        let path = id.path(&self.dir);
        self.fs.remove(&path).map_err(Error::io(IoOp::Remove, &path))
    }

    /// Gives back space that holds no records: the next segment, the old ones, and the rest of the open one. Nothing is written
    /// after this.
    ///
    /// # Errors
    /// Any I/O error; what was not deleted stays until the next open.
    pub(super) fn trim(&mut self) -> Result<()> {
        self.remove_retired()?;
        if let Some(spare) = self.spare.take() {
            self.remove(spare.id)?;
        }
        let path = self.segment.id.path(&self.dir);
        self.segment.file.set_len(self.offset).map_err(Error::io(IoOp::SetLen, &path))?;
        self.segment.len = self.offset;
        Ok(())
    }

    /// Bytes of log that hold records.
    pub(super) fn bytes(&self) -> u64 {
        self.sealed_bytes() + self.offset
    }

    /// Those in segments that nothing is written to any more.
    pub(super) fn sealed_bytes(&self) -> u64 {
        self.sealed.iter().map(|sealed| sealed.bytes).sum()
    }

    pub(super) fn has_backlog(&self) -> bool {
        !self.backlog.is_empty()
    }
}
