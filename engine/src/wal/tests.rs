use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;
use crate::io::{Fault, FaultKind, FaultSpan, FileSystem, LossMode, OsFs, Rng, SimFs, SplitMix};
use crate::record;

const FIRST: SegmentId = SegmentId(1);

mod ahead;
mod mark;
mod room;

fn options(dir: &Path, segment_bytes: u64) -> WalOptions {
    WalOptions {
        dir: dir.to_path_buf(),
        segment_bytes,
        queue_bytes_max: 1 << 20,
        sync_interval: Duration::from_millis(50),
        retry_interval: Duration::from_millis(5),
    }
}

fn payload(number: u64, len: usize) -> Vec<u8> {
    let mut rng = SplitMix::new(number);
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.resize_with(8 + len, || rng.next_u64().to_le_bytes()[0]);
    bytes
}

fn closed_record(payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    record::begin(&mut bytes, 1);
    bytes.extend_from_slice(payload);
    record::close(&mut bytes);
    bytes
}

/// Every record's sequence and payload.
type Held = Vec<(u64, Vec<u8>)>;

fn open_on(fs: Arc<dyn FileSystem>, options: WalOptions) -> Result<(Wal, Held)> {
    let (wal, held, _) = open_from(fs, options, (FIRST, 0))?;
    Ok((wal, held))
}

/// Of a log that begins with a segment, after a sequence number. Also answers what was cut off it.
fn open_from(
    fs: Arc<dyn FileSystem>,
    options: WalOptions,
    (first, after): (SegmentId, u64),
) -> Result<(Wal, Held, Option<replay::Cut>)> {
    let mut held = Held::new();
    let mut replayed = replay(&*fs, &options.dir, first, &mut |record| {
        held.push((record.sequence, record.payload.to_vec()));
        Ok(())
    })?;
    replayed.last_sequence = replayed.last_sequence.max(after);
    let cut = replayed.cut;
    let reserve = Arc::new(Reserve::new(Arc::clone(&fs), &options.dir, 0));
    let wal = Wal::open(fs, options, Arc::new(Condition::new(0, None)), reserve, replayed)?;
    Ok((wal, held, cut))
}

fn open_sim(fs: &SimFs, segment_bytes: u64) -> Result<(Wal, Held)> {
    open_on(Arc::new(fs.clone()), options(Path::new("/d"), segment_bytes))
}

fn write(record: Vec<u8>, level: Durability) -> Write {
    Write { record, numbers: 1, level, held: false, regions: Vec::new() }
}

/// Appends and applies, and gives the answer's other end.
fn put(wal: &Wal, payload: &[u8], level: Durability) -> (u64, Receiver<Result<()>>) {
    let (sender, receiver) = channel();
    let sequence = wal.append(write(closed_record(payload), level)).unwrap();
    wal.applied(sequence, Box::new(move |result| drop(sender.send(result))));
    (sequence, receiver)
}

/// As [`put`], and the log is written before the change is applied.
fn put_ahead(wal: &Wal, payload: &[u8]) -> Receiver<Result<()>> {
    let (sender, receiver) = channel();
    let sequence = wal.append(write(closed_record(payload), Durability::Fsync)).unwrap();
    wal.write_ahead();
    wal.applied(sequence, Box::new(move |result| drop(sender.send(result))));
    receiver
}

fn path(segment: u32) -> PathBuf {
    SegmentId(segment).path(Path::new("/d"))
}

#[test]
fn many_writers_share_syncs_and_all_is_there_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let fs: Arc<dyn FileSystem> = Arc::new(OsFs);
    let (wal, _) = open_on(Arc::clone(&fs), options(dir.path(), 64 << 10)).unwrap();
    std::thread::scope(|scope| {
        let writer_thread = scope.spawn(|| wal.run(|| {}));
        let writers: Vec<_> = (0..8_u64)
            .map(|writer| {
                let wal = &wal;
                scope.spawn(move || {
                    for number in 0..50 {
                        let (_, told) = put(wal, &payload(writer * 1000 + number, 200), Durability::Fsync);
                        told.recv().unwrap().unwrap();
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        wal.close();
        writer_thread.join().unwrap();
    });
    let syncs = wal.stats.syncs.load(Ordering::Relaxed);
    assert!(syncs < 400, "{syncs} syncs for 400 writes");
    drop(wal);
    let (_, held) = open_on(fs, options(dir.path(), 64 << 10)).unwrap();
    let mut numbers: Vec<u64> =
        held.iter().map(|(_, payload)| u64::from_le_bytes(payload[..8].try_into().unwrap())).collect();
    numbers.sort_unstable();
    let expected: Vec<u64> = (0..8).flat_map(|writer| (0..50).map(move |number| writer * 1000 + number)).collect();
    assert_eq!(numbers, expected);
    assert!(held.is_sorted_by(|a, b| a.0 < b.0));
}

#[test]
fn levels_are_answered_when_they_say() {
    let fs = SimFs::new(1);
    let (wal, _) = open_sim(&fs, 4096).unwrap();
    let skipped = put(&wal, b"", Durability::Skip).1;
    let in_memory = put(&wal, b"a", Durability::Async).1;
    let written = put(&wal, b"b", Durability::Os).1;
    let synced = put(&wal, b"c", Durability::Fsync).1;
    assert!(skipped.try_recv().is_ok() && in_memory.try_recv().is_ok());
    assert!(written.try_recv().is_err() && synced.try_recv().is_err());
    let calls = fs.calls();
    wal.write_group(false);
    assert!(written.try_recv().is_ok() && synced.try_recv().is_ok());
    assert_eq!(fs.calls() - calls, 2, "one write, one sync");
    let os_only = put(&wal, b"d", Durability::Os).1;
    wal.write_group(false);
    assert!(os_only.try_recv().is_ok());
    assert_eq!(fs.calls() - calls, 3, "one more write, no sync");
}

#[test]
fn a_full_queue_throttles_and_drains() {
    let fs = SimFs::new(1);
    let (wal, _) = open_sim(&fs, 1 << 20).unwrap();
    for number in 0..3 {
        put(&wal, &payload(number, 300 << 10), Durability::Fsync);
    }
    let refused = wal.append(write(closed_record(&payload(3, 300 << 10)), Durability::Fsync));
    assert!(matches!(refused, Err(Error::Throttled { .. })));
    wal.write_group(false);
    put(&wal, &payload(4, 300 << 10), Durability::Fsync);
}

#[test]
fn a_record_larger_than_a_segment_gets_one_of_its_own() {
    let fs = SimFs::new(1);
    let (wal, _) = open_sim(&fs, 4096).unwrap();
    let sizes = [10_000, 100, 10_000, 20_000, 3_900];
    for (number, len) in sizes.iter().enumerate() {
        put(&wal, &payload(number as u64, *len), Durability::Fsync);
        wal.write_group(false);
        wal.make_ready();
    }
    let (_, held) = open_sim(&fs.power_loss(LossMode::Hostile), 4096).unwrap();
    assert_eq!(held.iter().map(|(_, payload)| payload.len() - 8).collect::<Vec<_>>(), sizes);
}

/// The gate cuts at every tenth byte, `BASALT_WAL_CUT_EVERY=1` at each.
#[test]
fn a_log_cut_anywhere_opens_with_all_records_before_the_cut() {
    let every = std::env::var("BASALT_WAL_CUT_EVERY").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    let fs = SimFs::new(1);
    let (wal, _) = open_sim(&fs, 128 << 10).unwrap();
    let mut ends = Vec::new();
    let mut offset = SEGMENT_HEADER_BYTES;
    for number in 0..1000_u64 {
        let payload = payload(number, usize::try_from(number % 50).unwrap());
        // A record is whole without the zeros that pad it.
        ends.push(offset + (record::HEADER_BYTES + payload.len()) as u64);
        offset += closed_record(&payload).len() as u64;
        put(&wal, &payload, Durability::Fsync);
        wal.write_group(false);
    }
    let mut log = vec![0; usize::try_from(offset).unwrap()];
    fs.open(&path(1)).unwrap().read_exact_at(0, &mut log).unwrap();
    // Shorter than its header no crash leaves it.
    let from = log.len().saturating_sub(64 << 10).max(usize::try_from(SEGMENT_HEADER_BYTES).unwrap());
    for cut in (from..=log.len()).step_by(every) {
        let fs = SimFs::new(2);
        fs.create(&path(1)).unwrap().write_at(0, &log[..cut]).unwrap();
        let mut count = 0;
        let replayed = replay(&fs, Path::new("/d"), FIRST, &mut |_| {
            count += 1;
            Ok(())
        })
        .unwrap();
        let before = ends.iter().filter(|end| **end <= cut as u64).count();
        assert_eq!(count, before, "cut at {cut}");
        let end = usize::try_from(replayed.end.0 & u64::from(u32::MAX)).unwrap();
        let rest = log[..cut].get(end..).unwrap_or_default();
        assert_eq!(replayed.cut.is_some(), rest.iter().any(|byte| *byte != 0), "cut at {cut}: {:?}", replayed.cut);
    }
}

/// Below the synced mark every flip is told with file and offset.
#[test]
fn damage_below_the_synced_mark_is_refused() {
    let fs = SimFs::new(3);
    let (wal, _) = open_sim(&fs, 8 << 10).unwrap();
    for number in 0..60 {
        put(&wal, &payload(number, 300), Durability::Fsync);
        wal.write_group(false);
    }
    let end_of_first = wal.writer().bytes() % (8 << 10);
    drop(wal);
    let mut rng = SplitMix::new(4);
    for _ in 0..300 {
        let fs = fs.snapshot();
        let segment = 1 + u32::try_from(rng.below(2)).unwrap();
        let offset = rng.below(7000);
        fs.flip_bit(&path(segment), offset, rng.next_u64().to_le_bytes()[0]).unwrap();
        match open_sim(&fs, 8 << 10) {
            Err(Error::Corrupt { file, offset: told, .. }) => {
                assert_eq!(file, path(segment));
                assert!(told <= offset + 8, "damage at {offset} told at {told}");
            }
            Ok((_, held)) => panic!("a flip at {offset} of segment {segment} was not noticed: {} records", held.len()),
            Err(other) => panic!("{other}"),
        }
    }
    assert!(end_of_first > 0);
}

#[test]
fn a_missing_segment_is_refused() {
    for missing in [1, 2] {
        let fs = SimFs::new(3);
        let (wal, _) = open_sim(&fs, 4096).unwrap();
        for number in 0..40 {
            put(&wal, &payload(number, 300), Durability::Fsync);
            wal.write_group(false);
        }
        let fs = fs.process_kill();
        fs.remove(&path(missing)).unwrap();
        assert!(matches!(open_sim(&fs, 4096), Err(Error::Corrupt { file, .. }) if file == path(missing)));
    }
}

/// It was published whole, so it was cut since: it is not an empty one, least of all where it is the only one.
#[test]
fn a_segment_shorter_than_its_header_is_refused() {
    for (segment, len) in [(1, 0), (1, 31), (2, 0), (2, 31)] {
        let fs = SimFs::new(3);
        let (wal, _) = open_sim(&fs, 4096).unwrap();
        let first = put(&wal, &payload(1, 300), Durability::Fsync).1;
        wal.write_group(false);
        first.recv().unwrap().unwrap();
        if segment == 2 {
            wal.make_ready();
        }
        let fs = fs.process_kill();
        fs.open_rw(&path(segment)).unwrap().set_len(len).unwrap();
        let told = open_sim(&fs, 4096).unwrap_err();
        let Error::Corrupt { file, what: "segment length", found, .. } = &told else { panic!("{told}") };
        assert_eq!((file, *found), (&path(segment), len));
    }
}

/// Places in it are told in 32 bits.
#[test]
fn a_file_of_four_gibibytes_is_no_segment() {
    let dir = tempfile::tempdir().unwrap();
    let file = OsFs.create(&FIRST.path(dir.path())).unwrap();
    file.write_at(0, &segment_header(FIRST)).unwrap();
    file.set_len(1 << 32).unwrap();
    let read = replay(&OsFs, dir.path(), FIRST, &mut |_| Ok(()));
    assert!(matches!(read, Err(Error::Corrupt { what: "segment length", found, .. }) if found == 1 << 32));
}

/// The checksums may fit: no write would come behind the last number.
#[test]
fn the_last_sequence_numbers_are_refused() {
    let check = |sequence, fits| {
        let fs = SimFs::new(3);
        let (mut bytes, mut record) = (segment_header(FIRST), closed_record(b"last"));
        record::stamp(&mut record, FIRST.0.into(), SEGMENT_HEADER_BYTES, sequence, LogPos::new(FIRST, 32).0);
        bytes.extend_from_slice(&record);
        fs.create(&path(1)).unwrap().write_at(0, &bytes).unwrap();
        let read = replay(&fs, Path::new("/d"), FIRST, &mut |_| Ok(()));
        match read {
            Ok(replayed) => assert!(fits && replayed.last_sequence == sequence),
            Err(error) => assert!(!fits && error.to_string().contains("record sequence"), "{error}"),
        }
    };
    check(record::SEQUENCE_MAX, true);
    check(record::SEQUENCE_MAX + 1, false);
    check(u64::MAX, false);
}

/// The one that is empty is named, not the one before it, which is whole.
#[test]
fn a_segment_that_lost_all_its_records_is_named() {
    let fs = SimFs::new(3);
    let (wal, _) = open_sim(&fs, 4096).unwrap();
    for number in 0..40 {
        put(&wal, &payload(number, 300), Durability::Fsync);
        wal.write_group(false);
    }
    let fs = fs.process_kill();
    fs.open_rw(&path(2)).unwrap().set_len(SEGMENT_HEADER_BYTES).unwrap();
    let told = open_sim(&fs, 4096).unwrap_err();
    assert!(matches!(&told, Error::Corrupt { file, offset: SEGMENT_HEADER_BYTES, .. } if *file == path(2)), "{told}");
}

/// Nothing after it is acknowledged, and it is not tried again.
#[test]
fn a_failed_sync_is_final() {
    let fs = SimFs::new(5);
    let (wal, _) = open_sim(&fs, 4096).unwrap();
    let (_, before) = put(&wal, b"kept", Durability::Fsync);
    wal.write_group(false);
    before.recv().unwrap().unwrap();
    fs.set_fault(Some(Fault { after_calls: 1, kind: FaultKind::Eio, span: FaultSpan::Once }));
    let (_, lost) = put(&wal, b"lost", Durability::Fsync);
    let calls = fs.calls();
    wal.write_group(false);
    assert!(matches!(lost.recv().unwrap(), Err(Error::Poisoned { .. })));
    assert!(matches!(wal.append(write(Vec::new(), Durability::Os)), Err(Error::Poisoned { .. })));
    wal.write_group(true);
    assert_eq!(fs.calls() - calls, 2, "the sync is not tried again");
    let (_, held) = open_sim(&fs.power_loss(LossMode::Hostile), 4096).unwrap();
    assert_eq!(held[0].1, b"kept");
}

/// A flush syncs the log on its own thread. While its sync fails, the log's writer waits for the files: what it then wrote
/// and synced would be acknowledged over the hole that the failed sync left. Found by `basalt-torture fsync`.
#[test]
fn who_waited_while_a_sync_failed_syncs_no_more() {
    for seed in 0..20 {
        let fs = SimFs::new(seed);
        let (wal, _) = open_sim(&fs, 4096).unwrap();
        let (_, late) = put(&wal, b"late", Durability::Fsync);
        let (calls, has_begun) = (fs.calls(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let files = wal.writer();
            let waiting = scope.spawn(|| {
                has_begun.store(true, Ordering::Release);
                wal.write_group(true);
            });
            // Then a few more, until it waits; on a busy machine each may last as long as a time slice.
            let mut left = 50;
            while left > 0 {
                left -= u32::from(has_begun.load(Ordering::Acquire));
                std::thread::yield_now();
            }
            wal.condition.poison(&Error::Poisoned { reason: "a failed sync".into() });
            drop(files);
            waiting.join().unwrap();
        });
        assert_eq!(fs.calls(), calls, "nothing is written or synced any more");
        assert!(matches!(late.recv().unwrap(), Err(Error::Poisoned { .. })));
    }
}

/// What a failed sync left in the system's memory alone is on disk before a later life builds on it.
#[test]
fn what_a_failed_sync_left_is_written_again_at_the_next_open() {
    for seed in 0..20 {
        let fs = SimFs::new(seed);
        let (wal, _) = open_sim(&fs, 4096).unwrap();
        fs.set_fault(Some(Fault { after_calls: 1, kind: FaultKind::Eio, span: FaultSpan::Once }));
        let (_, lost) = put(&wal, &payload(1, 900), Durability::Fsync);
        wal.write_group(false);
        assert!(lost.recv().unwrap().is_err());
        let fs = fs.process_kill();
        let (wal, seen) = open_sim(&fs, 4096).unwrap();
        put(&wal, b"after", Durability::Fsync);
        wal.write_group(false);
        let (_, held) = open_sim(&fs.power_loss(LossMode::Hostile), 4096).unwrap();
        assert_eq!(held.len(), seen.len() + 1, "seed {seed}");
        assert!(held.starts_with(&seen), "seed {seed}");
    }
}

#[test]
fn steady_writes_do_not_put_off_the_sync_of_the_interval() {
    let fs = SimFs::new(1);
    let soon = WalOptions { sync_interval: Duration::ZERO, ..options(Path::new("/d"), 4096) };
    let (wal, _) = open_on(Arc::new(fs.clone()), soon).unwrap();
    put(&wal, b"first", Durability::Async);
    wal.write_group(false);
    put(&wal, b"second", Durability::Os);
    assert_eq!(wal.wait_for_work(), Some(true), "the first waits for a sync, and more is queued");
    wal.write_group(true);
    put(&wal, b"third", Durability::Os);
    assert_eq!(wal.wait_for_work(), Some(false), "nothing waits for a sync yet");
    let (_, held) = open_sim(&fs.power_loss(LossMode::Ordered), 4096).unwrap();
    assert_eq!(held.len(), 2);
}

/// A sync ends what was counted before it; what was queued while it ran woke nobody, and may be the last for long.
#[test]
fn the_time_of_what_is_queued_during_a_sync_is_counted() {
    let soon = WalOptions { sync_interval: Duration::ZERO, ..options(Path::new("/d"), 4096) };
    let (wal, _) = open_on(Arc::new(SimFs::new(1)), soon).unwrap();
    put(&wal, b"first", Durability::Async);
    wal.write_group(false);
    put(&wal, b"second", Durability::Async);
    wal.sync_group(&mut wal.writer(), 1);
    assert!(wal.state().unsynced_since.is_some() && wal.state().queue.len() == 1);
    assert_eq!(wal.wait_for_work(), Some(true));
    wal.write_group(true);
    assert!(wal.state().unsynced_since.is_none() && wal.state().queue.is_empty());
}

/// Else the writer thread would go round without an end.
#[test]
fn what_was_queued_when_the_log_was_poisoned_is_given_up() {
    let (wal, _) = open_sim(&SimFs::new(1), 4096).unwrap();
    let (_, told) = put(&wal, b"late", Durability::Fsync);
    wal.condition.poison(&Error::Poisoned { reason: "a test".into() });
    wal.write_group(true);
    assert!(matches!(told.recv().unwrap(), Err(Error::Poisoned { .. })));
    assert!(wal.state().queue.is_empty() && !wal.state().wants_sync);
}

/// Fills a few segments, with a sync a record.
fn fill(wal: &Wal, records: u64) -> Vec<u64> {
    let one = |number| {
        let (sequence, told) = put(wal, &payload(number, 300), Durability::Fsync);
        wal.write_group(false);
        wal.make_ready();
        told.recv().unwrap().unwrap();
        sequence
    };
    (0..records).map(one).collect()
}

#[test]
fn segments_that_nobody_needs_are_used_again() {
    let (fs, bytes) = (SimFs::new(8), 16 << 10);
    let (wal, _) = open_sim(&fs, bytes).unwrap();
    let written = fill(&wal, 200);
    let first = wal.first_needed(written[190]);
    wal.remove_before(first).unwrap();
    let (used, calls) = (fs.used_bytes(), fs.calls());
    let written = [&written[190..], &fill(&wal, 160)].concat();
    assert_eq!(fs.used_bytes(), used, "no segment is made anew");
    // Of each: rename, mark, sync, rename, sync of the folder, and the sync before it is entered.
    assert_eq!(fs.calls() - calls, 160 * 2 + 3 * 6, "nor written over");
    // What lies behind the end is of an earlier life, and the end is found all the same.
    let fs = fs.process_kill();
    let from = (first, 0);
    let (wal, held, cut) = open_from(Arc::new(fs.clone()), options(Path::new("/d"), bytes), from).unwrap();
    assert_eq!(cut, None);
    let sequences: Vec<_> = held.iter().map(|(sequence, _)| *sequence).collect();
    assert!(sequences.ends_with(&written));
    // Those of a life before were cut at their end: they are deleted.
    let written = fill(&wal, 1);
    wal.remove_before(wal.first_needed(written[0] - 1)).unwrap();
    assert_eq!(fs.list(Path::new("/d")).unwrap().len(), 2);
}

#[test]
fn no_more_segments_are_kept_than_a_flush_frees() {
    let fs = SimFs::new(9);
    let (wal, _) = open_sim(&fs, 4096).unwrap();
    let names = || fs.list(Path::new("/d")).unwrap().len();
    let written = fill(&wal, 100);
    wal.remove_before(wal.first_needed(*written.last().unwrap())).unwrap();
    assert_eq!(names(), writer::RETIRED_MAX + 2);
    wal.close();
    wal.trim().unwrap();
    assert_eq!(names(), 1);
}

/// A record that ends where a page does, before what was there in the segment's life before.
#[test]
fn the_end_of_a_log_is_marked_wherever_it_is() {
    for len in [4015, 4016, 4023, 4024, 4025, 8000, 8112, 8113] {
        let fs = SimFs::new(8);
        let (wal, _) = open_sim(&fs, 8 << 10).unwrap();
        let written = fill(&wal, 60);
        let first = wal.first_needed(*written.last().unwrap());
        wal.remove_before(first).unwrap();
        // Each in a segment of its own: the one made before, then one that is used again.
        for len in [7000, len] {
            put(&wal, &payload(1, len), Durability::Fsync);
            wal.write_group(false);
            wal.make_ready();
        }
        let from = (first, 0);
        let (_, held, cut) = open_from(Arc::new(fs.process_kill()), options(Path::new("/d"), 8 << 10), from).unwrap();
        assert_eq!((held.last().unwrap().1.len(), cut), (8 + len, None));
    }
}

/// One history: groups of writes until a crash at a random step, reopened a few times.
fn history(seed: u64) {
    let mut rng = SplitMix::new(seed);
    let mut fs = SimFs::new(seed);
    let mut acked: Vec<(u64, Vec<u8>)> = Vec::new();
    let mut written: Vec<(u64, Vec<u8>)> = Vec::new();
    // Where the log begins, as the manifest would say, and behind which number it is needed.
    let (mut first, mut after) = (FIRST, 0);
    let open = |fs: &SimFs, from| open_from(Arc::new(fs.clone()), options(Path::new("/d"), 2048), from);
    for life in 0..3 {
        let kind = if rng.chance(1, 4) { FaultKind::Eio } else { FaultKind::Crash };
        fs.set_fault(Some(Fault { after_calls: rng.below(60), kind, span: FaultSpan::FromThenOn }));
        if let Ok((wal, mut held, _)) = open(&fs, (first, after)) {
            held.retain(|(sequence, _)| *sequence > after);
            check(&held, &acked, &written, seed, life);
            written.clone_from(&held);
            acked = held;
            while wal.condition.check().is_ok() {
                write_some(&wal, &mut rng, &mut acked, &mut written);
                if let Some((sequence, _)) = acked.last().filter(|_| rng.chance(1, 3)) {
                    (first, after) = (wal.first_needed(*sequence), *sequence);
                    drop(wal.remove_before(first));
                    acked.clear();
                    written.retain(|(sequence, _)| *sequence > after);
                }
                wal.make_ready();
            }
        }
        let mode = if rng.chance(1, 3) { LossMode::Ordered } else { LossMode::Hostile };
        fs = fs.power_loss(mode);
    }
    let (_, mut held, _) = open(&fs, (first, after)).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    held.retain(|(sequence, _)| *sequence > after);
    check(&held, &acked, &written, seed, 3);
}

fn check(held: &Held, acked: &Held, written: &Held, seed: u64, life: u32) {
    assert!(written.starts_with(held), "seed {seed}, life {life}: what is there is a prefix of what was written");
    assert!(held.starts_with(acked), "seed {seed}, life {life}: {} acknowledged, {} there", acked.len(), held.len());
}

fn write_some(wal: &Wal, rng: &mut SplitMix, acked: &mut Held, written: &mut Held) {
    let mut group = Vec::new();
    for _ in 0..=rng.below(4) {
        let len = usize::try_from(rng.below(900)).unwrap();
        let payload = payload(rng.next_u64(), len);
        let (sequence, told) = put(wal, &payload, Durability::Fsync);
        written.push((sequence, payload.clone()));
        group.push((sequence, payload, told));
    }
    wal.write_group(false);
    let told = group.into_iter().filter(|(_, _, told)| told.try_recv().is_ok_and(|told| told.is_ok()));
    acked.extend(told.map(|(sequence, payload, _)| (sequence, payload)));
}

/// The log alone; `BASALT_SIM_HISTORIES` sets the count.
#[test]
fn what_was_acknowledged_survives_any_crash() {
    let count = std::env::var("BASALT_SIM_HISTORIES").ok().and_then(|text| text.parse().ok()).unwrap_or(300);
    for seed in 0..count {
        history(seed);
    }
}

/// Appends and applies a write that a push follows.
fn hold(wal: &Wal, payload: &[u8]) -> Receiver<Result<()>> {
    let (sender, receiver) = channel();
    hold_for(wal, payload, sender);
    receiver
}

fn hold_for(wal: &Wal, payload: &[u8], tell: Sender<Result<()>>) {
    let held = Write { held: true, ..write(closed_record(payload), Durability::Fsync) };
    let sequence = wal.append(held).unwrap();
    wal.applied(sequence, Box::new(move |result| drop(tell.send(result))));
}

#[test]
fn a_push_syncs_all_that_is_held_once() {
    let fs = SimFs::new(1);
    let (wal, _) = open_sim(&fs, 4096).unwrap();
    let held: Vec<_> = (0..3).map(|number| hold(&wal, &payload(number, 10))).collect();
    assert!(held.iter().all(|told| told.try_recv().is_err()));
    let calls = fs.calls();
    wal.push();
    assert!(held.iter().all(|told| told.try_recv().unwrap().is_ok()));
    wal.push();
    assert_eq!(fs.calls() - calls, 2, "one write, one sync");
    fs.set_fault(Some(Fault { after_calls: 1, kind: FaultKind::Eio, span: FaultSpan::Once }));
    let lost = hold(&wal, b"lost");
    wal.push();
    assert!(matches!(lost.try_recv().unwrap(), Err(Error::Poisoned { .. })));
    let (_, kept) = open_sim(&fs.power_loss(LossMode::Hostile), 4096).unwrap();
    assert!(kept.len() >= 3);
}

#[test]
fn who_calls_the_writer_thread_has_it_append_and_sync() {
    let (wal, _) = open_sim(&SimFs::new(1), 4096).unwrap();
    let (tell, told) = channel();
    let append = || hold_for(&wal, &payload(1, 10), tell.clone());
    std::thread::scope(|scope| {
        let writer_thread = scope.spawn(|| wal.run(append));
        // Sooner or later it sleeps by then.
        let all_told = (0..100).all(|_| {
            wal.call();
            told.recv_timeout(Duration::from_secs(10)).is_ok_and(|told| told.is_ok())
        });
        wal.close();
        writer_thread.join().unwrap();
        assert!(all_told);
    });
}

/// Those who push, those who wait for the writer thread, and those for whom it appends, over segments that it makes.
#[test]
fn pushes_and_the_writer_thread_share_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let fs: Arc<dyn FileSystem> = Arc::new(OsFs);
    let (wal, _) = open_on(Arc::clone(&fs), options(dir.path(), 16 << 10)).unwrap();
    let (leave, left) = channel::<(Vec<u8>, Sender<_>)>();
    let left = Mutex::new(left);
    let append = || left.lock().unwrap().try_iter().for_each(|(payload, tell)| hold_for(&wal, &payload, tell));
    let one = |writer: u64, number: u64| {
        let payload = payload(writer * 1000 + number, 200);
        match writer % 3 {
            0 => put(&wal, &payload, Durability::Fsync).1,
            1 => {
                let told = if number.is_multiple_of(2) { hold(&wal, &payload) } else { put_ahead(&wal, &payload) };
                wal.push();
                told
            }
            _ => {
                let (tell, told) = channel();
                leave.send((payload, tell)).unwrap();
                wal.call();
                told
            }
        }
    };
    let one = &one;
    std::thread::scope(|scope| {
        let writer_thread = scope.spawn(|| wal.run(append));
        let writers: Vec<_> = (0..6_u64)
            .map(|writer| scope.spawn(move || (0..50).for_each(|n| one(writer, n).recv().unwrap().unwrap())))
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        wal.close();
        writer_thread.join().unwrap();
    });
    drop(wal);
    let (_, held) = open_on(fs, options(dir.path(), 16 << 10)).unwrap();
    assert_eq!(held.len(), 300);
    assert!(held.is_sorted_by(|a, b| a.0 < b.0));
}

/// A segment that is shorter than the one before it ends where its own bytes end.
#[test]
fn a_short_segment_behind_a_long_one_ends_with_its_own_bytes() {
    let fs = SimFs::new(3);
    let dir = Path::new("/d");
    fs.create_dir_all(dir).unwrap();
    let (mut sequence, mut synced) = (0, 0);
    for (id, lengths) in [(1, &[900, 900, 900][..]), (2, &[10]), (3, &[500, 10])] {
        let mut bytes = segment_header(SegmentId(id));
        for len in lengths {
            sequence += 1;
            let (offset, mut record) = (bytes.len() as u64, closed_record(&payload(sequence, *len)));
            record::stamp(&mut record, u64::from(id), offset, sequence, synced);
            bytes.extend_from_slice(&record);
        }
        synced = LogPos::new(SegmentId(id), bytes.len() as u64).0;
        let file = fs.create(&SegmentId(id).path(dir)).unwrap();
        file.write_at(0, &bytes).unwrap();
    }
    let mut held = Vec::new();
    let replayed = replay(&fs, dir, FIRST, &mut |record| {
        held.push((record.sequence, record.payload.to_vec()));
        Ok(())
    });
    let replayed = replayed.unwrap();
    assert_eq!((replayed.cut, replayed.last_sequence, replayed.end.0), (None, 6, synced));
    let expected = [900, 900, 900, 10, 500, 10].iter().zip(1..).map(|(len, number)| (number, payload(number, *len)));
    assert_eq!(held, expected.collect::<Held>());
}
