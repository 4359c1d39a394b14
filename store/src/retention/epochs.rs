//! Which puts of a row and family are seen where tombstones mask only what was written before them
//! (`NEW_VERSION_BEHAVIOR`, rule U-4).
//!
//! Writes are told apart by their sequence numbers. A tombstone ends an *epoch*: the time since the tombstone before it.
//! A put is hidden when a later tombstone masks it, when a later put has its address, and when at the end of any epoch
//! of its life VERSIONS newer puts were there: a version that was in excess once stays so, and one that was deleted
//! since still counts for the time before. Source of behaviour: HBase 2.6, `NewVersionBehaviorTracker`, HBASE-15968.
//! Where that tracker forgets a put (one of several of one change, one that was overwritten before a later tombstone)
//! the rule as promised is taken: else a compaction would change answers, which the behaviour is there to prevent.

use std::collections::VecDeque;

use crate::{CellKind, CellRef, SeqNo, Timestamp};

/// The number that the last epoch ends with, which has no tombstone yet.
const NOW: SeqNo = SeqNo(u64::MAX);

/// A put's time between being written and being overwritten.
#[derive(Debug, Clone, Copy)]
struct Life {
    from: SeqNo,
    /// `None`: it was not.
    until: Option<SeqNo>,
}

/// The puts met so far that were there within an epoch.
#[derive(Debug, Clone, Default)]
struct There {
    lives: Vec<Life>,
    /// How many of them were there at its end.
    at_end_count: usize,
}

impl There {
    fn add(&mut self, life: Life, end: SeqNo) {
        self.at_end_count += usize::from(life.until.is_none_or(|until| until > end));
        self.lives.push(life);
    }

    /// The earlier part of this epoch, up to a tombstone met now.
    fn until(&self, end: SeqNo) -> Self {
        let mut part = Self::default();
        self.lives.iter().filter(|life| life.from < end).for_each(|life| part.add(*life, end));
        part
    }
}

/// A tombstone, and what was there before it.
#[derive(Debug, Clone)]
struct Epoch {
    seq: SeqNo,
    timestamp: Timestamp,
    /// Whether it masks all times up to its own; else that one time.
    is_wide: bool,
    there: There,
}

impl Epoch {
    fn masks(&self, put: &CellRef<'_>) -> bool {
        if self.is_wide { put.timestamp <= self.timestamp } else { put.timestamp == self.timestamp }
    }
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Epochs {
    /// The family's tombstones of this row, by number; their puts are not noted here.
    family: VecDeque<Epoch>,
    /// The family's and the column's, by number. Cells come the newest first, so that most tombstones go in at the front.
    column: VecDeque<Epoch>,
    /// After the last of them.
    now: There,
    /// Time and number of the put before, which has overwritten the next if that has its time.
    last_put: Option<(Timestamp, SeqNo)>,
}

impl Epochs {
    /// Forgets a row.
    pub(super) fn clear(&mut self) {
        self.family.clear();
        self.enter_column();
    }

    /// Forgets a column.
    pub(super) fn enter_column(&mut self) {
        self.column.clone_from(&self.family);
        self.now = There::default();
        self.last_put = None;
    }

    /// Notes a tombstone of the column the walk is in, or of the family: it splits an epoch.
    pub(super) fn add(&mut self, cell: &CellRef<'_>) {
        let place = self.column.partition_point(|epoch| epoch.seq < cell.seq);
        let there = self.column.get(place).map_or(&self.now, |epoch| &epoch.there).until(cell.seq);
        let is_wide = matches!(cell.kind, CellKind::DeleteFamily | CellKind::DeleteColumn);
        let epoch = Epoch { seq: cell.seq, timestamp: cell.timestamp, is_wide, there };
        if super::is_family_wide(cell.kind) {
            let place = self.family.partition_point(|epoch| epoch.seq < cell.seq);
            self.family.insert(place, Epoch { there: There::default(), ..epoch.clone() });
        }
        self.column.insert(place, epoch);
    }

    /// Whether a put is hidden; puts come in cell order, each once, after the tombstones that sort before them.
    ///
    /// Cost: a few steps for each tombstone of the column or the family that was written later.
    pub(super) fn hides(&mut self, put: &CellRef<'_>, versions_max: u32) -> bool {
        let until = self.last_put.filter(|(time, _)| *time == put.timestamp).map(|(_, seq)| seq);
        self.last_put = Some((put.timestamp, put.seq));
        let life = Life { from: put.seq, until };
        let versions_max = usize::try_from(versions_max).unwrap_or(usize::MAX);
        for epoch in self.column.iter_mut().filter(|epoch| epoch.seq >= put.seq) {
            // Noted though it may be in excess at the end: a tombstone met later may end the epoch before it was.
            let in_excess = epoch.there.at_end_count >= versions_max && until.is_none_or(|until| until > epoch.seq);
            epoch.there.add(life, epoch.seq);
            if in_excess || epoch.masks(put) {
                return true;
            }
        }
        let in_excess = self.now.at_end_count >= versions_max;
        self.now.add(life, NOW);
        in_excess || until.is_some()
    }
}
