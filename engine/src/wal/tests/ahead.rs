//! What is written ahead: before the change is in the memtables, and before the sync.

use super::*;
use crate::health::Lack;

/// Written with the queue's other records, on disk and answered with the sync, which has it counted among those that share it.
#[test]
fn what_is_written_ahead_is_answered_by_the_sync() {
    let fs = SimFs::new(1);
    let (wal, _) = open_sim(&fs, 4096).unwrap();
    let queued = put(&wal, b"queued", Durability::Fsync).1;
    let calls = fs.calls();
    let ahead = put_ahead(&wal, b"ahead");
    assert_eq!(fs.calls() - calls, 1, "one write for both");
    assert!([&queued, &ahead].iter().all(|told| told.try_recv().is_err()));
    assert_eq!(wal.write_group(false), 2);
    assert!([&queued, &ahead].iter().all(|told| told.try_recv().unwrap().is_ok()));
    assert_eq!(fs.calls() - calls, 2, "and one sync");
    assert_eq!(wal.write_group(true), 0);
    // Another thread's sync may come before the change is in the memtables: it is answered when it is.
    let (sender, early) = channel();
    let sequence = wal.append(write(closed_record(b"early"), Durability::Fsync)).unwrap();
    wal.write_ahead();
    wal.write_group(false);
    assert_eq!(wal.state().commits.synced(), sequence);
    wal.applied(sequence, Box::new(move |result| drop(sender.send(result))));
    assert!(early.try_recv().unwrap().is_ok());
    put_ahead(&wal, b"written");
    assert_eq!(open_sim(&fs.process_kill(), 4096).unwrap().1.len(), 4, "the system has what was written");
}

#[test]
fn a_write_that_fails_ahead_is_final() {
    let fs = SimFs::new(1);
    let (wal, _) = open_sim(&fs, 4096).unwrap();
    fs.set_fault(Some(Fault { after_calls: 0, kind: FaultKind::Eio, span: FaultSpan::Once }));
    let lost = put_ahead(&wal, b"lost");
    assert!(matches!(lost.try_recv().unwrap(), Err(Error::Poisoned { .. })));
    let calls = fs.calls();
    wal.write_group(true);
    assert_eq!(fs.calls(), calls, "nothing is written or synced any more");
}

/// Exactly what was written, wherever the log goes on in a segment of its own.
#[test]
fn what_is_written_ahead_is_set_out_for_the_disk() {
    let fs = SimFs::new(1);
    let (wal, _) = open_sim(&fs, 4096).unwrap();
    wal.write_ahead();
    assert_eq!(fs.set_out(), [], "nothing was written");
    let (mut expected, mut end) = (Vec::new(), SEGMENT_HEADER_BYTES);
    for (segment, len) in [(1, 500), (1, 900), (1, 100), (2, 3000), (2, 8), (3, 2000)] {
        let payload = payload(1, len);
        let is_first = segment > 1 && expected.last().is_none_or(|(last, _)| *last != path(segment));
        let begin = if is_first { 0 } else { end };
        end = begin.max(SEGMENT_HEADER_BYTES) + closed_record(&payload).len() as u64;
        expected.push((path(segment), begin..end));
        put_ahead(&wal, &payload);
        assert_eq!(fs.set_out(), expected);
        wal.write_group(false);
        wal.make_ready();
    }
    assert_eq!(fs.set_out(), expected, "a sync needs no more");
}

/// What was queued before stays so; on a disk that is full it waits for space, in order.
#[test]
fn nothing_is_written_ahead_when_nothing_may_be_or_another_thread_writes() {
    let fs = SimFs::new(1);
    let (wal, _) = open_sim(&fs, 4096).unwrap();
    let waiting = put(&wal, b"waiting", Durability::Fsync).1;
    let calls = fs.calls();
    let files = wal.writer();
    wal.write_ahead();
    drop(files);
    wal.condition.set_lack(Some(Lack::Space));
    wal.write_ahead();
    assert_eq!((wal.state().queue.len(), fs.calls()), (1, calls));
    wal.condition.set_lack(None);
    wal.condition.poison(&Error::Poisoned { reason: "a test".into() });
    wal.write_ahead();
    assert_eq!(fs.calls(), calls);
    wal.write_group(true);
    assert!(matches!(waiting.try_recv().unwrap(), Err(Error::Poisoned { .. })));
}

/// Entering a segment syncs the one before. A disk that has no room for it only then has failed to sync: that is final.
#[test]
fn a_sync_that_fails_for_want_of_room_is_final() {
    let ahead = |wal: &Wal, payload: &[u8]| put_ahead(wal, payload);
    let grouped = |wal: &Wal, payload: &[u8]| {
        let told = put(wal, payload, Durability::Fsync).1;
        wal.write_group(false);
        told
    };
    for put_one in [&ahead as &dyn Fn(&Wal, &[u8]) -> Receiver<Result<()>>, &grouped] {
        let fs = SimFs::new(1);
        let (wal, _) = open_sim(&fs, 4096).unwrap();
        wal.make_ready();
        let before = put(&wal, &payload(1, 3000), Durability::Async).0;
        wal.write_group(false);
        fs.set_fault(Some(Fault { after_calls: 0, kind: FaultKind::EnospcOfSync, span: FaultSpan::Once }));
        let lost = put_one(&wal, &payload(2, 3000));
        assert!(matches!(lost.try_recv().unwrap(), Err(Error::Poisoned { .. })));
        wal.write_group(true);
        assert!(wal.condition.check_alive().is_err() && wal.state().commits.synced() < before);
    }
}
