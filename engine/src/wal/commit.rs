//! Who waits for which write, and what readers may see.
//!
//! Every write takes a sequence number and stays *open* until it is applied to
//! the memtables and as durable as it asked to be. Within a region writes become
//! visible in sequence order only: the region's read point moves over a write
//! when all before it have settled, so nothing a reader saw can be lost, and one
//! region never waits for another.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use basalt_store::Durability;

use crate::error::Result;

/// Up to which sequence number a region's readers see.
#[derive(Debug, Default)]
pub(crate) struct ReadPoint {
    /// Release on moving, acquire on reading: what a reader then finds in the
    /// memtable was put there before.
    visible: AtomicU64,
    /// The region's open writes in order. Rank: below the WAL's state.
    open: Mutex<VecDeque<u64>>,
}

impl ReadPoint {
    pub(crate) fn new(visible: u64) -> ReadPoint {
        ReadPoint { visible: AtomicU64::new(visible), open: Mutex::default() }
    }

    pub(crate) fn visible(&self) -> u64 {
        self.visible.load(Ordering::Acquire)
    }

    fn open_at(&self, sequence: u64) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).push_back(sequence);
    }

    /// Moves over every leading write that has settled; answers which.
    fn advance(&self, settled: impl Fn(u64) -> bool) -> Vec<u64> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut passed = Vec::new();
        while let Some(sequence) = open.front().copied().filter(|sequence| settled(*sequence)) {
            assert!(sequence > self.visible(), "BUG: a read point moves back to {sequence}");
            open.pop_front();
            self.visible.store(sequence, Ordering::Release);
            passed.push(sequence);
        }
        passed
    }
}

/// Called once with how the write went.
pub(crate) type Answer = Box<dyn FnOnce(Result<()>) + Send>;

/// When a write is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerWhen {
    /// As durable as asked, and seen by readers.
    Visible,
    /// As durable as asked: for read-modify-writes, which see one another anyway.
    Settled,
}

struct Open {
    level: Durability,
    applied: bool,
    settled: bool,
    /// Regions whose read point has not passed this write.
    hidden_in: usize,
    regions: Vec<Arc<ReadPoint>>,
    when: AnswerWhen,
    answer: Option<Answer>,
}

/// The open writes, oldest first, numbered without gap.
#[derive(Default)]
pub(super) struct Commits {
    /// Sequence number of the front of `open`.
    first: u64,
    open: VecDeque<Open>,
    /// Everything up to here was handed to the operating system.
    written: u64,
    /// Everything up to here is on disk.
    synced: u64,
}

impl fmt::Debug for Commits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Commits")
            .field("first", &self.first)
            .field("open", &self.open.len())
            .field("written", &self.written)
            .field("synced", &self.synced)
            .finish()
    }
}

impl Commits {
    /// Starts after `last`, all of it durable.
    pub(super) fn after(last: u64) -> Commits {
        Commits { first: last + 1, open: VecDeque::new(), written: last, synced: last }
    }

    pub(super) fn next_sequence(&self) -> u64 {
        self.first + self.open.len() as u64
    }

    /// Whether readers of `region` see all its writes up to `sequence`.
    pub(super) fn is_past(region: &ReadPoint, sequence: u64) -> bool {
        let open = region.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.front().is_none_or(|first| *first > sequence)
    }

    /// Opens a write and gives it its number.
    pub(super) fn open(&mut self, level: Durability, regions: Vec<Arc<ReadPoint>>) -> u64 {
        let sequence = self.next_sequence();
        for region in &regions {
            region.open_at(sequence);
        }
        self.open.push_back(Open {
            level,
            applied: false,
            settled: false,
            hidden_in: regions.len(),
            regions,
            when: AnswerWhen::Visible,
            answer: None,
        });
        sequence
    }

    /// The memtables hold it; `answer` is called by whoever gets the answers back.
    pub(super) fn applied(&mut self, sequence: u64, when: AnswerWhen, answer: Answer) -> Vec<Answer> {
        if let Some(open) = self.get_mut(sequence) {
            assert!(!open.applied, "BUG: write {sequence} is applied twice");
            (open.applied, open.when, open.answer) = (true, when, Some(answer));
        }
        self.settle(sequence..=sequence)
    }

    pub(super) fn written(&mut self, up_to: u64) -> Vec<Answer> {
        // Numbers without a record (syncs, unlogged writes) may have moved it further.
        let from = self.first.max(self.written + 1);
        self.written = self.written.max(up_to);
        self.settle(from..=up_to)
    }

    pub(super) fn synced_to(&mut self, up_to: u64) -> Vec<Answer> {
        self.written = self.written.max(up_to);
        self.synced = self.synced.max(up_to);
        self.settle(self.first..=up_to)
    }

    /// Takes every answer that is owed, to be called with an error.
    pub(super) fn take_answers(&mut self) -> Vec<Answer> {
        self.open.iter_mut().filter_map(|open| open.answer.take()).collect()
    }

    fn get_mut(&mut self, sequence: u64) -> Option<&mut Open> {
        let index = usize::try_from(sequence.checked_sub(self.first)?).ok()?;
        self.open.get_mut(index)
    }

    /// Settles those of the range that are ready; answers what became due.
    fn settle(&mut self, range: std::ops::RangeInclusive<u64>) -> Vec<Answer> {
        let mut due = Vec::new();
        for sequence in range {
            self.settle_one(sequence, &mut due);
        }
        while self.open.front().is_some_and(|open| open.settled && open.hidden_in == 0) {
            self.open.pop_front();
            self.first += 1;
        }
        due
    }

    fn settle_one(&mut self, sequence: u64, due: &mut Vec<Answer>) {
        let (written, synced) = (self.written, self.synced);
        let Some(open) = self.get_mut(sequence) else { return };
        let durable = match open.level {
            Durability::Skip | Durability::Async => true,
            Durability::Os => sequence <= written,
            Durability::Fsync => sequence <= synced,
        };
        if open.settled || !open.applied || !durable {
            return;
        }
        open.settled = true;
        if open.when == AnswerWhen::Settled || open.hidden_in == 0 {
            due.extend(open.answer.take());
        }
        for region in std::mem::take(&mut open.regions) {
            let passed = region.advance(|sequence| self.is_settled(sequence));
            for sequence in passed {
                self.show(sequence, due);
            }
        }
    }

    fn is_settled(&self, sequence: u64) -> bool {
        let index = sequence.checked_sub(self.first).and_then(|index| usize::try_from(index).ok());
        index.is_none_or(|index| self.open.get(index).is_some_and(|open| open.settled))
    }

    /// One more region shows the write.
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
        let first = commits.open(Durability::Fsync, vec![Arc::clone(&region)]);
        let second = commits.open(Durability::Async, vec![Arc::clone(&region)]);
        let (tell_second, second_told) = answer();
        call(commits.applied(second, AnswerWhen::Visible, tell_second));
        assert_eq!(region.visible(), 10);
        let (tell_first, first_told) = answer();
        call(commits.applied(first, AnswerWhen::Visible, tell_first));
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
        let write = commits.open(Durability::Fsync, vec![Arc::clone(&region)]);
        call(commits.synced_to(write));
        assert_eq!(region.visible(), 0);
        let (tell, told) = answer();
        call(commits.applied(write, AnswerWhen::Visible, tell));
        assert_eq!((region.visible(), told.try_recv().is_ok()), (write, true));
    }

    #[test]
    fn regions_do_not_wait_for_each_other() {
        let (a, b) = (Arc::new(ReadPoint::new(0)), Arc::new(ReadPoint::new(0)));
        let mut commits = Commits::after(0);
        let slow = commits.open(Durability::Fsync, vec![Arc::clone(&a)]);
        let quick = commits.open(Durability::Os, vec![Arc::clone(&b)]);
        let both = commits.open(Durability::Os, vec![Arc::clone(&a), Arc::clone(&b)]);
        let told: Vec<_> = [slow, quick, both]
            .map(|sequence| {
                let (tell, told) = answer();
                call(commits.applied(sequence, AnswerWhen::Visible, tell));
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
    fn a_read_modify_write_is_answered_before_it_is_seen() {
        let region = Arc::new(ReadPoint::new(0));
        let mut commits = Commits::after(0);
        commits.open(Durability::Fsync, vec![Arc::clone(&region)]);
        let step = commits.open(Durability::Async, vec![Arc::clone(&region)]);
        let (tell, told) = answer();
        call(commits.applied(step, AnswerWhen::Settled, tell));
        assert!(told.try_recv().is_ok());
        assert_eq!(region.visible(), 0);
    }
}
