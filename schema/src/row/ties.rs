//! Which of two values of one instant readers take where nothing tells which is newer: cells of a store without sequence numbers,
//! written in one millisecond.
//!
//! OpenTSDB merges a row's columns by a heap that knows no order among those, so that it takes the one that the heap happens to have on
//! top. That depends on all of the row's columns, but not on chance. Both daemons over one table must take the same, so the heap is
//! built here step by step as there. *Source*: OpenTSDB 2.4 `CompactionQueue.defaultMergeDataPoints`, `ColumnDatapointIterator`; Java's
//! `PriorityQueue` (a binary heap: Williams, "Algorithm 232: Heapsort", CACM 1964).

use std::cmp::Reverse;

use super::Written;

/// A point of a row, in the order of its cells and within them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placed {
    /// Which cell of the row it lies in, counted from 0; they come in order.
    pub(crate) cell: usize,
    pub(crate) offset_ms: u32,
    pub(crate) written: Written,
}

/// The turn at which the merge comes to each point; of two at one instant, that which comes first is kept.
///
/// *Cost*: n log n; allocates.
#[expect(clippy::indexing_slicing, reason = "positions are those of `points`")]
pub(crate) fn turns(points: &[Placed]) -> Vec<usize> {
    let mut columns: Vec<Vec<usize>> = Vec::new();
    for (position, point) in points.iter().enumerate() {
        match columns.last_mut().filter(|column| column.first().is_some_and(|first| points[*first].cell == point.cell))
        {
            Some(column) => column.push(position),
            None => columns.push(vec![position]),
        }
    }
    // An append cell is put in order first, the later point of an instant before the earlier. Taken from the end.
    for column in &mut columns {
        column.sort_by_key(|position| Reverse((points[*position].offset_ms, Reverse(*position))));
    }
    let mut heap = Heap::default();
    let mut entry = |column: usize| {
        let position = columns.get_mut(column)?.pop()?;
        Some(Entry { column, position, rank: (points[position].offset_ms, Reverse(points[position].written)) })
    };
    (0..points.len()).filter_map(&mut entry).for_each(|first| heap.add(first));
    let mut turns = vec![usize::MAX; points.len()];
    let mut turn = 0;
    while let Some(Entry { column, position, .. }) = heap.remove() {
        turns[position] = turn;
        turn += 1;
        if let Some(next) = entry(column) {
            heap.add(next);
        }
    }
    turns
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    column: usize,
    position: usize,
    rank: (u32, Reverse<Written>),
}

/// Java's `PriorityQueue`: where a standard library's heap would do as well, it is the order among equals that is asked for.
#[derive(Debug, Default)]
struct Heap(Vec<Entry>);

impl Heap {
    #[expect(clippy::indexing_slicing, reason = "a parent's place is below its child's")]
    fn add(&mut self, entry: Entry) {
        let mut at = self.0.len();
        self.0.push(entry);
        while at > 0 {
            let parent = (at - 1) / 2;
            if entry.rank >= self.0[parent].rank {
                break;
            }
            self.0.swap(at, parent);
            at = parent;
        }
    }

    #[expect(clippy::indexing_slicing, reason = "the places are compared with the heap's length first")]
    fn remove(&mut self) -> Option<Entry> {
        let last = self.0.pop()?;
        let Some(top) = self.0.first_mut() else { return Some(last) };
        let top = std::mem::replace(top, last);
        let mut at = 0;
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            let is_right = right < self.0.len() && self.0[left].rank > self.0[right].rank;
            let child = if is_right { right } else { left };
            if child >= self.0.len() || last.rank <= self.0[child].rank {
                break;
            }
            self.0.swap(at, child);
            at = child;
        }
        Some(top)
    }
}

#[cfg(test)]
mod tests {
    use basalt_store::{SeqNo, Timestamp};

    use super::*;

    /// Each line a row's columns, `written:offsets`, and the column of which OpenTSDB's merge keeps each instant's point, as its
    /// loop over Java's own queue answered.
    const TAKEN: [&str; 12] = [
        "1:8 1:8 1:8 1:3 1:1,2,3,7 2:8 1:1 1:2,3 1:1 1:8 => 4 7 3 4 5",
        "2:1 1:0 1:5 1:2 2:2,5,7 1:7 1:5 1:2 => 1 0 4 4 4",
        "1:8 1:4 => 1 0",
        "1:1,3,7 2:1,3,4,7 1:0 2:3 1:4 2:0 => 5 1 1 1 1",
        "1:0,7 1:5 1:1 2:3 1:5 1:1 1:1 => 0 6 3 1 0",
        "1:2 2:1 1:0,5 1:8 1:4 1:4 1:7 1:8 1:4 => 2 1 0 8 2 6 3",
        "1:1,2 2:0 1:0,1 1:0 1:1 1:1 1:2,5 1:0,6 => 1 0 6 6 7",
        "1:8 1:2,6,7 1:0 1:0 2:5 1:2 1:1,3,6 2:7 2:4,6,8 => 2 6 1 6 8 4 8 7 8",
        "1:1,5,8 1:1 1:7 2:0 1:1 1:2 2:2 => 3 0 6 0 2 0",
        "2:4,7 1:2 1:2 1:4 2:6 2:4 => 1 0 4 0",
        "1:0 1:5 1:4 => 0 2 1",
        "1:0,2,5 2:1,3,7 1:1 => 0 1 0 1 0 1",
    ];

    fn check(line: &str) {
        let (columns, expected) = line.split_once(" => ").unwrap();
        let point = |(cell, column): (usize, &str)| {
            let (written, offsets) = column.split_once(':').unwrap();
            let written = Written { timestamp: Timestamp(written.parse().unwrap()), seq: SeqNo(0), lone: true };
            let offsets: Vec<u32> = offsets.split(',').map(|offset| offset.parse().unwrap()).collect();
            offsets.into_iter().map(move |offset_ms| Placed { cell, offset_ms, written })
        };
        let points: Vec<Placed> = columns.split(' ').enumerate().flat_map(point).collect();
        let mut taken: Vec<(usize, Placed)> = turns(&points).into_iter().zip(points).collect();
        taken.sort_by_key(|(turn, _)| *turn);
        taken.dedup_by_key(|(_, point)| point.offset_ms);
        let taken: Vec<String> = taken.iter().map(|(_, point)| point.cell.to_string()).collect();
        assert_eq!(taken.join(" "), expected, "{line}");
    }

    /// S-DUP-NEWEST, of cells that are equally new.
    #[test]
    fn of_equally_new_points_the_one_that_opentsdb_takes_is_kept() {
        for line in TAKEN {
            check(line);
        }
    }
}
