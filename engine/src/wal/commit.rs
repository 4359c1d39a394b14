//! Open writes, their answers, and what readers may see.
//!
//! Every write takes a sequence number and is *open* until it *settles*: until the memtables
//! hold it and it is as durable as it asked to be. It is answered when readers see it, so a
//! client reads its own writes once they are answered. Within a region writes become visible
//! in sequence order only: the region's read point moves over a write when that write and all
//! before it in the region have settled. So nothing that a reader saw can be lost, and no
//! region waits for another.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use basalt_store::Durability;

use crate::error::Result;

/// The newest sequence number that a region's readers see.
#[derive(Debug, Default)]
pub(crate) struct ReadPoint {
    /// Release when it moves, acquire when it is read: all cells up to it are then
    /// in the memtable for that reader.
    visible: AtomicU64,
    /// The region's open writes in order. Rank: below the WAL's state.
    open: Mutex<VecDeque<u64>>,
}

impl ReadPoint {
    pub(crate) fn new(visible: u64) -> ReadPoint {
        ReadPoint { visible: AtomicU64::new(visible), open: Mutex::default() }
    }

    /// Sets the point after recovery, before any write: readers see everything up to here.
    pub(crate) fn start_at(&self, sequence: u64) {
        self.visible.store(sequence, Ordering::Release);
    }

    pub(crate) fn visible(&self) -> u64 {
        self.visible.load(Ordering::Acquire)
    }

    fn open_at(&self, sequence: u64) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).push_back(sequence);
    }

    /// Moves over the leading writes that have settled, and adds them to `passed`.
    fn advance(&self, settled: impl Fn(u64) -> bool, passed: &mut Vec<u64>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(sequence) = open.front().copied().filter(|sequence| settled(*sequence)) {
            assert!(sequence > self.visible(), "BUG: a read point moves back to {sequence}");
            open.pop_front();
            self.visible.store(sequence, Ordering::Release);
            passed.push(sequence);
        }
    }
}

/// Called once, with the outcome of the write.
pub(crate) type Answer = Box<dyn FnOnce(Result<()>) + Send>;

struct Open {
    /// The last of the write's numbers; it identifies the write.
    sequence: u64,
    numbers: u64,
    level: Durability,
    applied: bool,
    settled: bool,
    /// How many regions' read points have not passed this write.
    hidden_in: usize,
    regions: Vec<Arc<ReadPoint>>,
    answer: Option<Answer>,
}

/// The open writes, oldest first.
#[derive(Default)]
pub(super) struct Commits {
    /// The last number given.
    last: u64,
    /// Ascending by number.
    open: VecDeque<Open>,
    /// Every record up to here was handed to the operating system.
    written: u64,
    /// Every record up to here is on disk.
    synced: u64,
}

impl fmt::Debug for Commits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Commits")
            .field("last", &self.last)
            .field("open", &self.open.len())
            .field("written", &self.written)
            .field("synced", &self.synced)
            .finish()
    }
}

impl Commits {
    /// Starts after `last`; everything up to it is durable.
    pub(super) fn after(last: u64) -> Commits {
        Commits { last, open: VecDeque::new(), written: last, synced: last }
    }

    pub(super) fn last_sequence(&self) -> u64 {
        self.last
    }

    /// Everything up to here is on disk.
    pub(super) fn synced(&self) -> u64 {
        self.synced
    }

    /// Every write up to here is in the memtables, synced or not.
    pub(super) fn applied_to(&self) -> u64 {
        let first = self.open.iter().find(|open| !open.applied);
        first.map_or(self.last, |open| open.sequence - open.numbers)
    }

    /// Opens a write, gives it as many numbers as it asks for, and answers the last.
    pub(super) fn open(&mut self, numbers: u64, level: Durability, regions: Vec<Arc<ReadPoint>>) -> u64 {
        assert!(numbers > 0, "BUG: a write without a number");
        self.last += numbers;
        let sequence = self.last;
        for region in &regions {
            region.open_at(sequence);
        }
        self.open.push_back(Open {
            sequence,
            numbers,
            level,
            applied: false,
            settled: false,
            hidden_in: regions.len(),
            regions,
            answer: None,
        });
        sequence
    }

    /// Notes that the memtables hold the write. The caller must call the answers that this gives back.
    pub(super) fn applied(&mut self, sequence: u64, answer: Answer) -> Vec<Answer> {
        if let Some(open) = self.get_mut(sequence) {
            assert!(!open.applied, "BUG: write {sequence} is applied twice");
            (open.applied, open.answer) = (true, Some(answer));
        }
        self.settle(sequence..=sequence)
    }

    pub(super) fn written(&mut self, up_to: u64) -> Vec<Answer> {
        // Numbers without a record (syncs, unlogged writes) may have moved `written` further already.
        let from = self.written + 1;
        self.written = self.written.max(up_to);
        self.settle(from..=up_to)
    }

    pub(super) fn synced_to(&mut self, up_to: u64) -> Vec<Answer> {
        self.written = self.written.max(up_to);
        self.synced = self.synced.max(up_to);
        self.settle(0..=up_to)
    }

    /// Takes every answer that is owed, to be called with an error.
    pub(super) fn take_answers(&mut self) -> Vec<Answer> {
        self.open.iter_mut().filter_map(|open| open.answer.take()).collect()
    }

    fn get_mut(&mut self, sequence: u64) -> Option<&mut Open> {
        let index = self.open.partition_point(|open| open.sequence < sequence);
        self.open.get_mut(index).filter(|open| open.sequence == sequence)
    }

    /// Settles the writes of the range that are ready; gives back the answers that became due.
    fn settle(&mut self, range: std::ops::RangeInclusive<u64>) -> Vec<Answer> {
        let mut due = Vec::new();
        let from = self.open.partition_point(|open| open.sequence < *range.start());
        let to = self.open.partition_point(|open| open.sequence <= *range.end());
        for index in from..to {
            self.settle_one(index, &mut due);
        }
        while self.open.front().is_some_and(|open| open.settled && open.hidden_in == 0) {
            self.open.pop_front();
        }
        due
    }

    fn settle_one(&mut self, index: usize, due: &mut Vec<Answer>) {
        let (written, synced) = (self.written, self.synced);
        let Some(open) = self.open.get_mut(index) else { return };
        let durable = match open.level {
            Durability::Skip | Durability::Async => true,
            Durability::Os => open.sequence <= written,
            Durability::Fsync => open.sequence <= synced,
        };
        if open.settled || !open.applied || !durable {
            return;
        }
        open.settled = true;
        if open.hidden_in == 0 {
            due.extend(open.answer.take());
        }
        let mut passed = Vec::new();
        for region in std::mem::take(&mut open.regions) {
            region.advance(|sequence| self.is_settled(sequence), &mut passed);
        }
        for sequence in passed {
            self.show(sequence, due);
        }
    }

    fn is_settled(&self, sequence: u64) -> bool {
        let index = self.open.partition_point(|open| open.sequence < sequence);
        self.open.get(index).is_none_or(|open| open.sequence > sequence || open.settled)
    }

    /// Counts one more region whose readers see the write.
    fn show(&mut self, sequence: u64, due: &mut Vec<Answer>) {
        let Some(open) = self.get_mut(sequence) else { return };
        assert!(open.hidden_in > 0, "BUG: write {sequence} is shown more often than it has regions");
        open.hidden_in -= 1;
        if open.hidden_in == 0 {
            due.extend(open.answer.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    fn answer() -> (Answer, Receiver<Result<()>>) {
        let (sender, receiver) = channel();
        (Box::new(move |result| sender.send(result).unwrap()), receiver)
    }

    fn call(answers: Vec<Answer>) {
        for answer in answers {
            answer(Ok(()));
        }
    }

    #[test]
    fn a_write_is_seen_after_its_sync_and_after_its_elders() {
        let region = Arc::new(ReadPoint::new(10));
        let mut commits = Commits::after(10);
        let first = commits.open(1, Durability::Fsync, vec![Arc::clone(&region)]);
        let second = commits.open(1, Durability::Async, vec![Arc::clone(&region)]);
        let (tell_second, second_told) = answer();
        call(commits.applied(second, tell_second));
        assert_eq!(region.visible(), 10);
        let (tell_first, first_told) = answer();
        call(commits.applied(first, tell_first));
        assert!(first_told.try_recv().is_err() && second_told.try_recv().is_err());
        call(commits.synced_to(second));
        assert_eq!(region.visible(), second);
        assert!(first_told.try_recv().is_ok() && second_told.try_recv().is_ok());
        assert!(commits.open.is_empty());
    }

    #[test]
    fn a_sync_before_the_memtable_shows_nothing_yet() {
        let region = Arc::new(ReadPoint::new(0));
        let mut commits = Commits::after(0);
        let write = commits.open(1, Durability::Fsync, vec![Arc::clone(&region)]);
        call(commits.synced_to(write));
        assert_eq!(region.visible(), 0);
        let (tell, told) = answer();
        call(commits.applied(write, tell));
        assert_eq!((region.visible(), told.try_recv().is_ok()), (write, true));
    }

    #[test]
    fn regions_do_not_wait_for_each_other() {
        let (a, b) = (Arc::new(ReadPoint::new(0)), Arc::new(ReadPoint::new(0)));
        let mut commits = Commits::after(0);
        let slow = commits.open(1, Durability::Fsync, vec![Arc::clone(&a)]);
        let quick = commits.open(1, Durability::Os, vec![Arc::clone(&b)]);
        let both = commits.open(1, Durability::Os, vec![Arc::clone(&a), Arc::clone(&b)]);
        let told: Vec<_> = [slow, quick, both]
            .map(|sequence| {
                let (tell, told) = answer();
                call(commits.applied(sequence, tell));
                told
            })
            .into();
        call(commits.written(both));
        assert_eq!((a.visible(), b.visible()), (0, both));
        assert!(told[1].try_recv().is_ok(), "region b shows its own");
        assert!(told[2].try_recv().is_err(), "region a hides the write to both");
        call(commits.synced_to(both));
        assert_eq!(a.visible(), both);
        assert!(told[2].try_recv().is_ok());
    }

    #[test]
    fn who_is_answered_reads_what_they_wrote() {
        let region = Arc::new(ReadPoint::new(0));
        let mut commits = Commits::after(0);
        let slow = commits.open(1, Durability::Async, vec![Arc::clone(&region)]);
        let step = commits.open(1, Durability::Async, vec![Arc::clone(&region)]);
        let (tell_step, step_told) = answer();
        call(commits.applied(step, tell_step));
        assert!(step_told.try_recv().is_err(), "its elder hides it");
        let (tell_slow, _slow_told) = answer();
        call(commits.applied(slow, tell_slow));
        assert_eq!((region.visible(), step_told.try_recv().is_ok()), (step, true));
    }
}
