//! A log for which there is no room.

use super::*;
use crate::health::Lack;

#[test]
fn a_full_disk_refuses_writes_and_resumes_by_itself() {
    refuses_and_resumes(|wal, payload| put(wal, payload, Durability::Fsync).1);
}

#[test]
fn a_full_disk_that_is_met_ahead_refuses_when_the_log_is_synced() {
    refuses_and_resumes(put_ahead);
}

fn refuses_and_resumes(put: impl Fn(&Wal, &[u8]) -> Receiver<Result<()>>) {
    let fs = SimFs::new(6);
    let (wal, _) = open_sim(&fs, 4096).unwrap();
    wal.make_ready();
    fs.set_capacity(fs.used_bytes());
    let mut answers = Vec::new();
    while wal.condition.lack().is_none() {
        answers.push(put(&wal, &payload(answers.len() as u64, 500)));
        wal.write_group(false);
        wal.make_ready();
    }
    let (refused, taken): (Vec<_>, Vec<_>) = answers.into_iter().partition(|told| told.recv().unwrap().is_err());
    assert_eq!((refused.len(), taken.len()), (1, 14));
    assert!(matches!(wal.append(write(Vec::new(), Durability::Os)), Err(Error::DiskFull)));
    fs.set_capacity(u64::MAX);
    wal.write_group(false);
    wal.make_ready();
    put(&wal, b"after");
    wal.write_group(false);
    let (_, held) = open_sim(&fs.power_loss(LossMode::Hostile), 4096).unwrap();
    assert_eq!(held.len(), 16, "the refused record waited and was written after all");
    assert_eq!(held[15].1, b"after");
}

#[test]
fn who_applies_after_the_log_has_ended_on_a_full_disk_is_refused() {
    let fs = SimFs::new(6);
    let (wal, _) = open_sim(&fs, 4096).unwrap();
    fs.set_capacity(fs.used_bytes());
    // Larger than what the segment has room for.
    let sequence = wal.append(write(closed_record(&payload(1, 5000)), Durability::Fsync)).unwrap();
    wal.close();
    wal.run(|| {});
    let (sender, told) = channel();
    wal.applied(sequence, Box::new(move |result| drop(sender.send(result))));
    assert!(matches!(told.try_recv().unwrap(), Err(Error::DiskFull)));
}

/// It writes zeros until the disk is full, and then gives them back.
#[test]
fn who_makes_room_waits_for_a_segment_that_there_is_none_for() {
    let (wal, _) = open_sim(&SimFs::new(8), 4096).unwrap();
    let (sender, told) = channel();
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let writer = wal.writer();
        scope.spawn(|| {
            sender.send(()).unwrap();
            wal.wake();
            done.lock().unwrap().push("room is made");
        });
        told.recv().unwrap();
        (0..1000).for_each(|_| std::thread::yield_now());
        done.lock().unwrap().push("zeros are given back");
        drop(writer);
    });
    assert_eq!(done.into_inner().unwrap(), ["zeros are given back", "room is made"]);
}

/// Also those that are kept to be used again.
#[test]
fn a_full_disk_gets_the_segments_that_nobody_needs() {
    let fs = SimFs::new(8);
    let (wal, _) = open_sim(&fs, 4096).unwrap();
    let written = fill(&wal, 60);
    let names = || fs.list(Path::new("/d")).unwrap().len();
    wal.remove_before(wal.first_needed(*written.last().unwrap())).unwrap();
    assert_eq!(names(), writer::RETIRED_MAX + 2);
    wal.condition.set_lack(Some(Lack::Space));
    wal.make_ready();
    assert_eq!(names(), 2);
}

/// Of what cannot be opened nothing is unknown: the segment that is there takes records, and when it is full the log waits.
#[test]
fn a_log_that_can_open_no_file_waits_until_it_can() {
    let fs = SimFs::new(6);
    let (wal, _) = open_sim(&fs, 4096).unwrap();
    wal.make_ready();
    fs.set_fault(Some(Fault { after_calls: 0, kind: FaultKind::Emfile, span: FaultSpan::FromThenOn }));
    let (mut taken, mut without_spare) = (0, 0);
    let refused = loop {
        let told = put(&wal, &payload(taken, 300), Durability::Fsync).1;
        wal.write_group(false);
        wal.make_ready();
        match told.recv().unwrap() {
            Ok(()) => taken += 1,
            Err(error) => break error,
        }
        without_spare += u64::from(!wal.writer().is_prepared());
    };
    assert!(matches!(refused, Error::NoDescriptors) && without_spare > 5, "{refused}, {without_spare} of {taken}");
    assert!(matches!(wal.append(write(Vec::new(), Durability::Os)), Err(Error::NoDescriptors)));
    fs.set_fault(None);
    wal.write_group(false);
    wal.make_ready();
    assert_eq!(fill(&wal, 40).len(), 40);
    let (_, held) = open_sim(&fs.power_loss(LossMode::Hostile), 4096).unwrap();
    assert_eq!(held.len() as u64, taken + 1 + 40, "the refused record waited and was written after all");
}

#[test]
fn an_old_segment_that_cannot_be_opened_or_renamed_is_used_again_later() {
    for kind in [FaultKind::Emfile, FaultKind::Enospc] {
        let fs = SimFs::new(6);
        let at_once = WalOptions { retry_interval: Duration::ZERO, ..options(Path::new("/d"), 4096) };
        let (wal, _) = open_on(Arc::new(fs.clone()), at_once).unwrap();
        let written = fill(&wal, 60);
        wal.remove_before(wal.first_needed(*written.last().unwrap())).unwrap();
        let used = fs.used_bytes();
        while wal.writer().is_prepared() {
            drop(put(&wal, &payload(1, 300), Durability::Fsync));
            wal.write_group(false);
        }
        fs.set_fault(Some(Fault { after_calls: 0, kind, span: FaultSpan::FromThenOn }));
        (0..writer::RETIRED_MAX).for_each(|_| wal.make_ready());
        fs.set_fault(None);
        wal.make_ready();
        assert!(wal.writer().is_prepared());
        assert_eq!(fs.used_bytes(), used, "no segment is made anew");
    }
}

/// Each try writes zeros until the disk is full, and all writers wait for it.
#[test]
fn a_segment_that_there_is_no_room_for_is_not_tried_with_every_write() {
    for (retry_interval, is_tried) in [(Duration::from_hours(1), false), (Duration::ZERO, true)] {
        let fs = SimFs::new(6);
        let seldom = WalOptions { retry_interval, ..options(Path::new("/d"), 4096) };
        let (wal, _) = open_on(Arc::new(fs.clone()), seldom).unwrap();
        fs.set_capacity(fs.used_bytes() + 1000);
        wal.make_ready();
        for _ in 0..3 {
            let calls = fs.calls();
            let told = put(&wal, &payload(1, 300), Durability::Fsync).1;
            wal.write_group(false);
            wal.make_ready();
            told.recv().unwrap().unwrap();
            assert_eq!(fs.calls() - calls > 2, is_tried, "more than a write and a sync");
        }
        let told = hold(&wal, &payload(1, 300));
        wal.push();
        told.recv().unwrap().unwrap();
        assert_eq!(wal.state().is_called, is_tried, "nor is the writer thread woken for it");
        assert!(wal.condition.lack().is_none() && !wal.writer().is_prepared());
        // What needs it makes it.
        fs.set_capacity(u64::MAX);
        let told = put(&wal, &payload(1, 3500), Durability::Fsync).1;
        wal.write_group(false);
        told.recv().unwrap().unwrap();
        wal.make_ready();
        assert_eq!(wal.writer().is_prepared(), is_tried);
    }
}

/// They were refused, and ask again; the writer thread tries it.
#[test]
fn pushes_do_not_try_a_full_disk_again() {
    let fs = SimFs::new(6);
    let (wal, _) = open_sim(&fs, 4096).unwrap();
    fs.set_capacity(fs.used_bytes());
    let refused = hold(&wal, &payload(1, 5000));
    wal.push();
    assert!(matches!(refused.recv().unwrap(), Err(Error::DiskFull)));
    let calls = fs.calls();
    wal.push();
    assert_eq!(fs.calls(), calls);
    fs.set_capacity(u64::MAX);
    wal.write_group(false);
    wal.make_ready();
    assert!(wal.condition.lack().is_none());
}
