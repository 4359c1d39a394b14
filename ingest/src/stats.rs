//! The accounting of points: received = stored + rejected + failed, at every instant when nothing is under way.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::report::PutReport;
use crate::{Door, ProblemClass};

/// The outcome of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is stored.
    Stored,
    /// It is not stored, because of a problem of this class.
    Not(ProblemClass),
}

/// Counts of one door.
#[derive(Debug, Default)]
struct DoorStats {
    // All relaxed: the counters order nothing. They are compared only when nothing is under way.
    received: AtomicU64,
    stored: AtomicU64,
    superseded: AtomicU64,
    not: [AtomicU64; ProblemClass::ALL.len()],
}

/// Counters of points, by door and outcome. Shared by all threads; they only grow.
#[derive(Debug, Default)]
pub struct IngestStats {
    doors: [DoorStats; Door::ALL.len()],
    bodies_refused: AtomicU64,
}

/// One door's counts at an instant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DoorCounts {
    /// Points handed in.
    pub received: u64,
    /// Points stored, those superseded included.
    pub stored: u64,
    /// Points that count as stored but cannot be read: a later point of the same batch has the same series and instant.
    pub superseded: u64,
    /// Points not stored, by [`ProblemClass::index`].
    pub not: [u64; ProblemClass::ALL.len()],
}

/// All counts at an instant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IngestCounts {
    /// By [`Door::index`].
    pub doors: [DoorCounts; Door::ALL.len()],
    /// Put bodies that were refused as a whole; how many points they held is not known.
    pub bodies_refused: u64,
}

impl DoorCounts {
    /// Points that are wrong.
    pub fn rejected(&self) -> u64 {
        self.sum(ProblemClass::is_rejection)
    }

    /// Points that the store did not take.
    pub fn failed(&self) -> u64 {
        self.sum(|class| !class.is_rejection())
    }

    fn sum(&self, wanted: impl Fn(ProblemClass) -> bool) -> u64 {
        let classes = ProblemClass::ALL.iter().zip(self.not);
        classes.filter(|(class, _)| wanted(**class)).map(|(_, count)| count).sum()
    }

    /// Whether every point received is accounted for; false only while points are under way.
    pub fn is_balanced(&self) -> bool {
        self.received == self.stored + self.rejected() + self.failed()
    }
}

impl IngestStats {
    /// Counts `points` handed in at `door`.
    pub fn receive(&self, door: Door, points: u64) {
        self.door(door).received.fetch_add(points, Ordering::Relaxed);
    }

    /// Counts the outcome of `points` points that were received at `door`.
    pub fn settle(&self, door: Door, outcome: Outcome, points: u64) {
        let stats = self.door(door);
        let counter = match outcome {
            Outcome::Stored => Some(&stats.stored),
            Outcome::Not(class) => stats.not.get(class.index()),
        };
        debug_assert!(counter.is_some(), "BUG: a class without a counter");
        if let Some(counter) = counter {
            counter.fetch_add(points, Ordering::Relaxed);
        }
    }

    /// Counts the points of a report, received before.
    pub fn settle_report(&self, door: Door, report: &PutReport) {
        self.settle(door, Outcome::Stored, report.stored);
        for error in &report.errors {
            self.settle(door, Outcome::Not(error.problem.class()), 1);
        }
    }

    /// Counts superseded points; they are counted as stored too.
    pub fn supersede(&self, door: Door, points: u64) {
        self.door(door).superseded.fetch_add(points, Ordering::Relaxed);
    }

    /// Counts a body that was refused as a whole.
    pub fn refuse_body(&self) {
        self.bodies_refused.fetch_add(1, Ordering::Relaxed);
    }

    /// All counts now.
    pub fn counts(&self) -> IngestCounts {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        IngestCounts {
            doors: Door::ALL.map(|door| {
                let stats = self.door(door);
                DoorCounts {
                    received: load(&stats.received),
                    stored: load(&stats.stored),
                    superseded: load(&stats.superseded),
                    not: stats.not.each_ref().map(load),
                }
            }),
            bodies_refused: load(&self.bodies_refused),
        }
    }

    fn door(&self, door: Door) -> &DoorStats {
        let [http, telnet, import] = &self.doors;
        match door {
            Door::Http => http,
            Door::Telnet => telnet,
            Door::Import => import,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doors_are_counted_apart() {
        let stats = IngestStats::default();
        stats.receive(Door::Telnet, 3);
        stats.settle(Door::Telnet, Outcome::Stored, 1);
        stats.settle(Door::Telnet, Outcome::Not(ProblemClass::InvalidValue), 1);
        assert!(!stats.counts().doors[Door::Telnet.index()].is_balanced());
        stats.settle(Door::Telnet, Outcome::Not(ProblemClass::Storage), 1);
        let told = stats.counts().doors[Door::Telnet.index()];
        assert!(told.is_balanced());
        assert_eq!((told.stored, told.rejected(), told.failed()), (1, 1, 1));
        assert_eq!(stats.counts().doors[Door::Http.index()], DoorCounts::default());
    }

    #[test]
    fn places_are_those_of_the_lists() {
        assert!(ProblemClass::ALL.iter().enumerate().all(|(place, class)| class.index() == place));
        assert!(Door::ALL.iter().enumerate().all(|(place, door)| door.index() == place));
    }
}
