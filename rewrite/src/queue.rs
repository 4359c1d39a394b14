//! Rows that wait to be rewritten: which series has been written to in which hour, and from when on its row may be folded.
//!
//! *Shape*: one bitmap of series an hour and due time, some two bytes a row. *Bound*: rows; a row that finds it full is not
//! taken, and stays in single cells, which every reader reads.

use std::collections::BTreeMap;

use basalt_schema::{BaseTime, SeriesId};
use roaring::RoaringBitmap;

/// When rows of an hour are due, in seconds since the epoch, then the hour: the order in which they are taken.
type Place = (u64, BaseTime);

/// What became of a row that was to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Queued {
    /// It waits.
    New,
    /// It waited already.
    Known,
    /// There is no room.
    Full,
}

/// The queue itself; its owner locks it.
#[derive(Debug)]
pub(crate) struct Queue {
    waiting: BTreeMap<Place, RoaringBitmap>,
    rows: u64,
    rows_max: u64,
}

impl Queue {
    pub(crate) const fn new(rows_max: u64) -> Self {
        Self { waiting: BTreeMap::new(), rows: 0, rows_max }
    }

    /// Has a row wait until `due_s`.
    pub(crate) fn push(&mut self, due_s: u64, base: BaseTime, series: SeriesId) -> Queued {
        let is_full = self.rows >= self.rows_max;
        if is_full && !self.waiting.get(&(due_s, base)).is_some_and(|waiting| waiting.contains(series.0)) {
            return Queued::Full;
        }
        if !self.waiting.entry((due_s, base)).or_default().insert(series.0) {
            return Queued::Known;
        }
        self.rows += 1;
        Queued::New
    }

    /// Takes up to `rows_max` rows of one hour that are due; of those that are, the longest due come first.
    pub(crate) fn pop(&mut self, now_s: u64, rows_max: u64) -> Option<(BaseTime, RoaringBitmap)> {
        let mut first = self.waiting.first_entry().filter(|first| first.key().0 <= now_s)?;
        let base = first.key().1;
        let mut taken = first.get().clone();
        if let Some(beyond) = usize::try_from(rows_max).ok().and_then(|max| taken.iter().nth(max)) {
            taken.remove_range(beyond..);
            first.get_mut().remove_range(..beyond);
        } else {
            first.remove();
        }
        assert!(taken.len() <= self.rows, "BUG: more rows were taken than waited");
        self.rows -= taken.len();
        Some((base, taken))
    }

    /// Whether a row is due.
    pub(crate) fn is_due(&self, now_s: u64) -> bool {
        self.waiting.first_key_value().is_some_and(|((due_s, _), _)| *due_s <= now_s)
    }

    /// How many of the rows that wait are due. *Cost*: a look at each hour of late rows, some dozens.
    pub(crate) fn due(&self, now_s: u64) -> u64 {
        self.waiting.iter().take_while(|((due_s, _), _)| *due_s <= now_s).map(|(_, rows)| rows.len()).sum()
    }

    /// How many rows wait.
    pub(crate) const fn len(&self) -> u64 {
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: BaseTime = BaseTime::of_seconds(3600);
    const NEXT: BaseTime = BaseTime::of_seconds(7200);

    fn taken(queue: &mut Queue, now_s: u64, max: u64) -> Option<(BaseTime, Vec<u32>)> {
        queue.pop(now_s, max).map(|(base, series)| (base, series.iter().collect()))
    }

    #[test]
    fn rows_come_when_they_are_due_the_longest_due_first() {
        let mut queue = Queue::new(100);
        for (due, base, series) in [(20, NEXT, 1), (10, HOUR, 9), (10, HOUR, 3), (10, HOUR, 5), (10, HOUR, 3)] {
            let known = base == HOUR && series == 3 && queue.len() == 4;
            let told = queue.push(due, base, SeriesId(series));
            assert_eq!(told, if known { Queued::Known } else { Queued::New });
        }
        assert_eq!((queue.len(), queue.is_due(9), queue.is_due(10)), (4, false, true));
        assert_eq!([9, 10, 19, 20].map(|now_s| queue.due(now_s)), [0, 3, 3, 4]);
        assert_eq!(taken(&mut queue, 9, 10), None);
        assert_eq!(taken(&mut queue, 30, 2), Some((HOUR, vec![3, 5])));
        assert_eq!(taken(&mut queue, 30, 2), Some((HOUR, vec![9])));
        assert_eq!(queue.len(), 1);
        assert_eq!(taken(&mut queue, 30, 2), Some((NEXT, vec![1])));
        assert_eq!((taken(&mut queue, 30, 2), queue.len()), (None, 0));
    }

    #[test]
    fn a_full_queue_takes_no_row_but_those_it_has() {
        let mut queue = Queue::new(2);
        assert_eq!(queue.push(1, HOUR, SeriesId(1)), Queued::New);
        assert_eq!(queue.push(1, HOUR, SeriesId(2)), Queued::New);
        assert_eq!(queue.push(1, HOUR, SeriesId(3)), Queued::Full);
        assert_eq!(queue.push(1, NEXT, SeriesId(1)), Queued::Full);
        assert_eq!(queue.push(1, HOUR, SeriesId(1)), Queued::Known);
        assert_eq!(taken(&mut queue, 1, 1), Some((HOUR, vec![1])));
        assert_eq!(queue.push(1, HOUR, SeriesId(3)), Queued::New, "there is room again");
        assert_eq!(queue.len(), 2);
    }
}
