//! Where an import's points go, and what may become of a block there.

use std::time::{Duration, Instant};

use basalt_ingest::{Problem, ProblemClass};
use basalt_store::ErrorKind;

use super::block::{Block, Refused};
use crate::exit::{Exit, Failure};

/// Where points go.
pub(crate) trait Target: Sync {
    /// What tells it from other targets, for the file that remembers progress.
    fn name(&self) -> String;

    /// Stores a block; blocks are stored in the order of their tickets, which begin at 0 and leave none out.
    ///
    /// # Errors
    ///
    /// The block may be stored or not.
    fn store(&self, block: &Block) -> Result<Stored, Unstored>;

    /// How long from its first failure on a block that cannot be stored now is sent again, and the pause before each time.
    fn patience(&self) -> (Duration, Duration) {
        (Duration::ZERO, Duration::ZERO)
    }

    /// The time that patience goes by.
    fn now(&self) -> Instant {
        Instant::now()
    }

    /// Returns when all that was stored is durable.
    ///
    /// # Errors
    ///
    /// The target's own.
    fn sync(&self) -> Result<(), Failure>;

    /// Lets go of the target, with all that was stored durable.
    ///
    /// # Errors
    ///
    /// What was stored could not be closed cleanly.
    fn finish(&self) -> Result<(), Failure>;
}

/// What became of a block.
#[derive(Debug)]
pub(crate) struct Stored {
    /// Points stored.
    pub(crate) points: u64,
    /// The lines that were refused.
    pub(crate) refused: Vec<Refused>,
}

/// Why a block is not known to be stored.
#[derive(Debug)]
pub(crate) enum Unstored {
    /// The target asks to come back later: the block is sent again.
    Later(Failure),
    /// It is sent no more, and all later blocks fail too.
    Over(Failure),
}

impl Unstored {
    pub(super) fn later(line: impl Into<String>) -> Self {
        Self::Later(Failure::new(Exit::TryLater, line))
    }
}

impl From<Failure> for Unstored {
    fn from(failure: Failure) -> Self {
        Self::Over(failure)
    }
}

/// What a thread says whose work others have ended; the first failure is the one that is told.
pub(super) fn stopped() -> Failure {
    Failure::new(Exit::Failure, "the import was stopped")
}

/// Whether a good point could not be stored now. It must not count as refused: it would be skipped for good.
pub(super) fn is_for_later(problem: &Problem) -> bool {
    match problem {
        Problem::TimedOut => true,
        Problem::Storage { kind, .. } => *kind != ErrorKind::Invalid,
        other => other.class() == ProblemClass::Throttled,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_that_could_not_be_stored_now_are_told_from_bad_ones() {
        let storage = |kind| Problem::Storage { kind, text: "x".into() };
        for problem in [storage(ErrorKind::ReadOnly), storage(ErrorKind::Unavailable), Problem::TimedOut] {
            assert!(is_for_later(&problem));
        }
        assert!(is_for_later(&Problem::Throttled { text: "x".into() }));
        assert!(!is_for_later(&Problem::EmptyMetric) && !is_for_later(&storage(ErrorKind::Invalid)));
    }
}
