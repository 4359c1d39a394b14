//! The mark behind a log that rests.

use super::*;
use crate::wal::segment::MARK;
use crate::wal::thread::MARK_AFTER;

/// A log of some records that are on disk, with a mark behind them or without.
fn rested(is_marked: bool) -> (SimFs, u64) {
    let fs = SimFs::new(6);
    let (wal, _) = open_sim(&fs, 16 << 10).unwrap();
    for number in 0..5 {
        put(&wal, &payload(number, 300), Durability::Fsync);
        wal.write_group(false);
    }
    if is_marked {
        wal.writer().mark();
    }
    (fs.process_kill(), wal.writer().bytes())
}

/// Without the mark nothing tells that the last record was ever whole.
#[test]
fn damage_to_the_last_record_is_told_where_a_mark_lies_behind_it() {
    let (marked, end) = rested(true);
    let begin = end - closed_record(&payload(4, 300)).len() as u64;
    for offset in begin..begin + (record::HEADER_BYTES + 308) as u64 {
        let fs = marked.snapshot();
        fs.flip_bit(&path(1), offset, 3).unwrap();
        let told = open_sim(&fs, 16 << 10).unwrap_err();
        assert!(matches!(&told, Error::Corrupt { file, offset, .. } if *file == path(1) && *offset == begin), "{told}");
    }
    let zeros = vec![0; usize::try_from(end - begin).unwrap()];
    for (fs, is_told) in [(marked, true), (rested(false).0, false)] {
        fs.open_rw(&path(1)).unwrap().write_at(begin, &zeros).unwrap();
        assert_eq!(open_sim(&fs, 16 << 10).is_err(), is_told);
    }
}

#[test]
fn records_go_over_a_mark_wherever_they_end() {
    for len in (3300..4200).step_by(8).chain([12 << 10, 16_000]) {
        let fs = SimFs::new(7);
        let (wal, _) = open_sim(&fs, 16 << 10).unwrap();
        for number in 0..6 {
            put(&wal, &payload(number, if number == 2 { len } else { 0 }), Durability::Fsync);
            wal.write_group(false);
            wal.writer().mark();
            let (_, held, cut) =
                open_from(Arc::new(fs.snapshot()), options(Path::new("/d"), 16 << 10), (FIRST, 0)).unwrap();
            assert_eq!((held.len() as u64, cut), (number + 1, None), "{len} bytes");
        }
    }
}

/// A power loss may take the zeros that were written over the mark, and leave the records before them.
#[test]
fn a_log_ends_before_a_mark() {
    let (fs, end) = rested(true);
    let mark = record::mark(MARK, 1, end, 5, end | 1 << 32);
    fs.open_rw(&path(1)).unwrap().write_at(end, &mark).unwrap();
    assert_eq!(open_sim(&fs, 16 << 10).unwrap().1.len(), 5);
}

/// What a life read stays vouched for, though the next one writes nothing.
#[test]
fn a_start_marks_what_it_read() {
    let (fs, end) = rested(false);
    drop(open_sim(&fs, 16 << 10).unwrap());
    let fs = fs.process_kill();
    assert_eq!(open_sim(&fs.snapshot(), 16 << 10).unwrap().1.len(), 5);
    fs.flip_bit(&path(1), end - 20, 0).unwrap();
    assert!(matches!(open_sim(&fs, 16 << 10), Err(Error::Corrupt { file, .. }) if file == path(1)));
}

#[test]
fn a_log_that_rests_is_marked_once() {
    let fs = SimFs::new(8);
    let (wal, _) = open_sim(&fs, 16 << 10).unwrap();
    let calls_to_mark = || {
        let before = fs.calls();
        wal.mark_if_resting();
        fs.calls() - before
    };
    put(&wal, &payload(1, 4096), Durability::Fsync);
    wal.write_group(false);
    assert!(wal.state().unmarked_since.is_some());
    // However long this thread was held up since.
    wal.state().unmarked_since = Some(Instant::now() + Duration::from_hours(1));
    assert_eq!(calls_to_mark(), 0, "it does not rest yet");
    wal.state().unmarked_since = Instant::now().checked_sub(MARK_AFTER);
    assert_eq!(wal.wait_for_work(), Some(false), "which is work");
    assert_eq!([calls_to_mark(), calls_to_mark()], [1, 0]);
    let mut kind = [0; 1];
    fs.open(&path(1)).unwrap().read_exact_at(8192 + 12, &mut kind).unwrap();
    assert_eq!(kind, [MARK]);
}
