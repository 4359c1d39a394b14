//! How the log begins: behind what was read of it, with a segment or without room for one, or while it is read.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex};

use super::commit::Commits;
use super::replay::Replayed;
use super::segment::{LogPos, SEGMENT_HEADER_BYTES, Segment, SegmentId};
use super::unmade::unmade;
use super::writer::Writer;
use super::{State, Wal, WalOptions, WalStats};
use crate::error::Result;
use crate::health::Condition;
use crate::io::FileSystem;
use crate::reserve::Reserve;

impl Wal {
    /// Opens the log after what was read of it ([`Replayed`]); new records go into a new segment.
    ///
    /// # Errors
    /// Any I/O error; `DiskFull` when there is no room for a segment.
    pub(crate) fn open(
        fs: Arc<dyn FileSystem>,
        options: WalOptions,
        condition: Arc<Condition>,
        reserve: Arc<Reserve>,
        replayed: Replayed,
    ) -> Result<Wal> {
        let segment = Segment::make(&*fs, &options.dir, replayed.next, options.segment_bytes)?;
        Ok(Wal::begin(fs, options, condition, reserve, (replayed, segment)))
    }

    /// As [`Wal::open`]; but where there is no room for a segment writes are refused until there is, and the segment is made then.
    ///
    /// # Errors
    /// Any I/O error but want of room.
    pub(crate) fn open_in_any_room(
        fs: Arc<dyn FileSystem>,
        options: WalOptions,
        condition: Arc<Condition>,
        reserve: Arc<Reserve>,
        replayed: Replayed,
    ) -> Result<Wal> {
        let segment = match Segment::make(&*fs, &options.dir, replayed.next, options.segment_bytes) {
            Err(error) if error.is_want_of_room() => {
                condition.set_no_room(&error);
                unmade(replayed.next)
            }
            made => made?,
        };
        Ok(Wal::begin(fs, options, condition, reserve, (replayed, segment)))
    }

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

    fn begin(
        fs: Arc<dyn FileSystem>,
        options: WalOptions,
        condition: Arc<Condition>,
        reserve: Arc<Reserve>,
        (replayed, segment): (Replayed, Segment),
    ) -> Wal {
        let dir = options.dir.clone();
        let writer = Writer::new(fs, dir, options.segment_bytes, segment, replayed.sealed, replayed.end);
        writer.mark_begun();
        Wal {
            condition,
            reserve,
            state: Mutex::new(State {
                commits: Commits::after(replayed.last_sequence),
                queue: Vec::new(),
                queued_bytes: 0,
                wake_at: 1,
                wants_write: false,
                wants_sync: false,
                has_unheld: false,
                unsynced_records: 0,
                is_called: false,
                unsynced_since: None,
                unmarked_since: None,
                closed: false,
                has_ended: false,
            }),
            work: Condvar::new(),
            logged: Arc::new(AtomicU64::new(replayed.last_sequence)),
            stats: WalStats::of(&writer),
            writer: Mutex::new(writer),
            options,
        }
    }
}
