//! The log: its records that prove whole, in new segments.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::Repair;
use crate::audit::{Folder, count};
use crate::error::{Error, Result};
use crate::io::{IoOp, publish};
use crate::loss::Loss;
use crate::manifest::Catalog;
use crate::mutation::LoggedBatch;
use crate::record::{self, Record, Step};
use crate::side_log::forget_all;
use crate::wal::{LogPos, MARK, SEGMENT_HEADER_BYTES, SegmentId, header_id, segment_header, too_large};

/// A position in the log has four bytes for the place in a segment.
const SEGMENT_BYTES_MAX: usize = u32::MAX as usize;

/// What a disk does not give of a segment is found in pieces of so many bytes.
const PAGE_BYTES: usize = 4096;

/// The log as far as it reads.
#[derive(Debug, Default)]
struct Salvaged {
    /// Closed records with their sequence numbers, ascending.
    records: Vec<(u64, Vec<u8>)>,
    segments: Vec<PathBuf>,
    /// Where the longest of them ends, as far as a record's place can be.
    segment_bytes_max: usize,
}

/// Bytes of a segment that the disk does not give, and why.
type Unread = (Range<usize>, Error);

/// A segment that was written to take the place of one that is damaged, or behind such.
struct NewSegment {
    aside: PathBuf,
    target: PathBuf,
}

impl Folder {
    /// Finds damage of the log; with `fix`, puts its records that prove whole in its place.
    pub(super) fn repair_log(&self, catalog: &Catalog, fix: bool, repair: &mut Repair) -> Result<()> {
        let first = catalog.marks.log_start;
        let damage = match self.read_log(catalog, &mut |_, _| {}) {
            Ok(_) => return Ok(()),
            Err(error) if error.is_unreadable() => error,
            Err(error) => return Err(error),
        };
        let before = repair.losses.len();
        let mut salvaged = self.salvage_log(first, &mut repair.losses)?;
        if repair.losses.len() == before {
            // What is not there: nothing tells how much it was.
            repair.losses.push(Loss::of(damage, 0, 0));
        }
        if !fix {
            return Ok(());
        }
        let mut written = Vec::new();
        if let Err(error) = self.write_log(first, &mut salvaged, &mut written) {
            for segment in &written {
                drop(self.fs.remove(&segment.aside));
            }
            repair.undone = repair.losses.split_off(before);
            return Err(error);
        }
        // First: of a shorter log the numbers are given out again, after which nobody sees that a side log is from before.
        forget_all(&*self.fs, &self.dir)?;
        for segment in &salvaged.segments {
            self.keep_aside(segment, repair)?;
        }
        self.put_log(&written, &salvaged.segments)
    }

    /// Reads every record that proves whole, and notes what lies between.
    fn salvage_log(&self, first: SegmentId, losses: &mut Vec<Loss>) -> Result<Salvaged> {
        let names = self.fs.list(&self.dir).map_err(Error::io(IoOp::List, &self.dir))?;
        let mut ids: Vec<SegmentId> = names.iter().filter_map(|name| SegmentId::of_name(name)).collect();
        ids.retain(|id| *id >= first);
        ids.sort_unstable();
        let mut salvaged = Salvaged::default();
        let mut expected = first;
        for id in ids {
            if expected < id {
                self.check_absent(expected)?;
                losses.push(Loss::of(expected.missing(&self.dir), 0, 0));
            }
            expected = id.next();
            let path = id.path(&self.dir);
            let (bytes, unread) = self.read_segment(&path)?;
            if let Some(own) = header_id(&bytes, &path)?.filter(|own| *own != id) {
                return Err(Error::Misnamed { file: path, name: own.name().into() });
            }
            let len = bytes.len().next_multiple_of(record::ALIGN_BYTES).min(SEGMENT_BYTES_MAX);
            salvaged.segment_bytes_max = salvaged.segment_bytes_max.max(len);
            let before = losses.len();
            salvage_segment(&bytes, id, &path, &mut salvaged, losses);
            for (page, cause) in unread {
                let meets =
                    |loss: &&mut Loss| loss.offset < page.end as u64 && page.start as u64 <= loss.offset + loss.bytes;
                if let Some(loss) = losses.iter_mut().skip(before).find(meets) {
                    loss.damage = cause;
                }
            }
            salvaged.segments.push(path);
        }
        self.check_absent(expected)?;
        Ok(salvaged)
    }

    /// Refuses a segment that is not listed and has its name taken, as by a folder: no file could be put there.
    fn check_absent(&self, id: SegmentId) -> Result<()> {
        let path = id.path(&self.dir);
        match self.fs.open(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(Error::io(IoOp::Open, &path)(source)),
            _ => Ok(()),
        }
    }

    /// Writes segments of the salvaged records aside, all of them before any original goes: a disk that has no room for them is told as it
    /// was. Each is filled, up to the length of the longest of the originals: so it holds at least what the one in whose place it comes does,
    /// and an interruption costs nothing. `written` gets them, also the one that is not whole.
    fn write_log(&self, first: SegmentId, salvaged: &mut Salvaged, written: &mut Vec<NewSegment>) -> Result<()> {
        let (mut id, mut synced) = (first, LogPos::new(first, SEGMENT_HEADER_BYTES));
        let mut records = salvaged.records.iter_mut().peekable();
        loop {
            let mut bytes = segment_header(id);
            while let Some((sequence, record)) = records.next_if(|(_, record)| {
                bytes.len() as u64 == SEGMENT_HEADER_BYTES || bytes.len() + record.len() <= salvaged.segment_bytes_max
            }) {
                record::stamp(record, id.0.into(), bytes.len() as u64, *sequence, synced.0);
                bytes.extend_from_slice(record);
                synced = LogPos::new(id, bytes.len() as u64);
            }
            let target = id.path(&self.dir);
            let aside = target.with_extension("tmp");
            let file = self.fs.create(&aside).map_err(Error::io(IoOp::Create, &aside))?;
            written.push(NewSegment { aside: aside.clone(), target });
            file.write_at(0, &bytes).map_err(Error::io(IoOp::Write, &aside))?;
            file.sync_data().map_err(Error::io(IoOp::SyncData, &aside))?;
            if records.peek().is_none() {
                return Ok(());
            }
            id = id.next();
        }
    }

    /// Puts the new segments in the place of the originals, first ones first.
    fn put_log(&self, written: &[NewSegment], originals: &[PathBuf]) -> Result<()> {
        for NewSegment { aside, target } in written {
            let file = self.fs.open(aside).map_err(Error::io(IoOp::Open, aside))?;
            publish(&*self.fs, &*file, aside, target)?;
        }
        // Last first: with a gap between segments the log would not read.
        for segment in originals.iter().rev().filter(|original| !written.iter().any(|new| new.target == **original)) {
            self.fs.remove(segment).map_err(Error::io(IoOp::Remove, segment))?;
            self.fs.sync_dir(&self.dir).map_err(Error::io(IoOp::SyncDir, &self.dir))?;
        }
        Ok(())
    }

    /// A segment. Where the disk does not give its bytes there are some that no record has, told with why.
    fn read_segment(&self, path: &Path) -> Result<(Vec<u8>, Vec<Unread>)> {
        let file = self.fs.open(path).map_err(Error::io(IoOp::Open, path))?;
        let len = file.len().map_err(Error::io(IoOp::Len, path))?;
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
        let mut unread = Vec::new();
        if file.read_exact_at(0, &mut bytes).is_err() {
            for (page, place) in bytes.chunks_mut(PAGE_BYTES).zip((0..).step_by(PAGE_BYTES)) {
                if let Err(source) = file.read_exact_at(place as u64, page) {
                    page.fill(0xff);
                    unread.push((place..place + page.len(), Error::io(IoOp::Read, path)(source)));
                }
            }
        }
        Ok((bytes, unread))
    }
}

/// Takes the records of a segment that prove whole and read.
fn salvage_segment(bytes: &[u8], id: SegmentId, path: &Path, salvaged: &mut Salvaged, losses: &mut Vec<Loss>) {
    let number = u64::from(id.0);
    let mut offset = usize::try_from(SEGMENT_HEADER_BYTES).unwrap_or(usize::MAX);
    let mut last = salvaged.records.last().map_or(0, |(sequence, _)| *sequence);
    loop {
        let damage = match record::read(bytes, number, offset) {
            Step::Record(found) if found.kind == MARK => {
                offset = found.end;
                continue;
            }
            Step::Record(found) => {
                if count(&found).is_none() {
                    let (at, lost_bytes) = (offset as u64, (found.end - offset) as u64);
                    losses.push(Loss::of(LoggedBatch::unreadable(path, at, found.kind), at, lost_bytes));
                } else if found.sequence > record::SEQUENCE_MAX {
                    let lost_bytes = (found.end - offset) as u64;
                    losses.push(Loss::of(too_large(path, offset, found.sequence), offset as u64, lost_bytes));
                } else if found.sequence > last {
                    // One that was salvaged before an interruption comes again.
                    let record = bytes.get(offset..found.end.min(bytes.len())).unwrap_or_default().to_vec();
                    last = found.sequence;
                    salvaged.records.push((last, padded(record)));
                }
                offset = found.end;
                continue;
            }
            Step::End => None,
            Step::Damaged(damage) => Some(damage),
        };
        let next = next_record(bytes, number, offset);
        let end = next.map_or(bytes.len(), |(next, _)| next);
        let written = bytes.get(offset..end).unwrap_or_default().iter().rposition(|byte| *byte != 0);
        // A mark that does not know of more is behind what was not written over, in a segment that is used again.
        let here = LogPos::new(id, offset as u64).0;
        let is_gap = next.is_some_and(|(_, found)| found.kind != MARK || found.synced > here);
        if let Some(written) = written.filter(|_| damage.is_some() || is_gap) {
            let damage = damage.unwrap_or(record::Damage { what: "record header", expected: 1, found: 0 });
            let record::Damage { what, expected, found } = damage;
            let damage = Error::Corrupt { file: path.to_path_buf(), offset: offset as u64, what, expected, found };
            let lost_bytes = next.map_or(written + 1, |(next, _)| next - offset);
            losses.push(Loss::of(damage, offset as u64, lost_bytes as u64));
        }
        match next {
            Some((next, _)) => offset = next,
            None => return,
        }
    }
}

/// A record that ends within its padding, filled up.
fn padded(mut record: Vec<u8>) -> Vec<u8> {
    record.resize(record.len().next_multiple_of(record::ALIGN_BYTES), 0);
    record
}

/// The first place behind `offset` where a record proves whole: where a damaged one ends is found by trying.
fn next_record(bytes: &[u8], number: u64, offset: usize) -> Option<(usize, Record<'_>)> {
    let from = offset.next_multiple_of(record::ALIGN_BYTES);
    (from..bytes.len()).step_by(record::ALIGN_BYTES).skip_while(|at| *at <= offset).find_map(|at| {
        match record::read(bytes, number, at) {
            Step::Record(found) => Some((at, found)),
            Step::End | Step::Damaged(_) => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a segment that is used again and has a mark only, what lies between is of the segment before.
    #[test]
    fn what_the_mark_behind_it_does_not_know_of_is_no_loss() {
        let check = |synced: LogPos, losses_count| {
            let mut bytes = vec![0; 8192];
            bytes[64..4096].fill(7);
            let mark = record::mark(MARK, 2, 4096, 9, synced.0);
            bytes[4096..4096 + mark.len()].copy_from_slice(&mark);
            let (mut salvaged, mut losses) = (Salvaged::default(), Vec::new());
            salvage_segment(&bytes, SegmentId(2), Path::new("2.wal"), &mut salvaged, &mut losses);
            assert_eq!(losses.len(), losses_count, "{losses:?}");
        };
        check(LogPos::new(SegmentId(1), 500), 0);
        check(LogPos::new(SegmentId(2), 4096), 1);
    }
}
