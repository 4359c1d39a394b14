//! A batch under way, and its outcome.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use basalt_store::{Applied, ErrorKind, Pending};
use bytes::Bytes;

use crate::inflight::Permit;
use crate::report::{PointError, PutReport};
use crate::stage::StagedRows;
use crate::{Door, IngestStats, Problem};

/// Points handed in and not yet answered: `.await` it, or [`Submission::wait`] on a thread, for the [`PutReport`].
///
/// The report comes when every point in it is as durable as was asked, or known not to be stored. If it is dropped before
/// that, its points count as timed out: they may still be stored.
#[derive(Debug)]
#[must_use = "the report says what was stored"]
pub struct Submission {
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    parts: Vec<Part>,
    /// How many of the parts have answered; these are the first ones.
    answered: usize,
    /// The points of the parts that failed, each with the problem.
    failures: Vec<(usize, Problem)>,
    errors: Vec<PointError>,
    door: Door,
    stats: Arc<IngestStats>,
    _permit: Permit,
}

/// One change under way, and the points it stands for.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) work: Work,
    pub(crate) staged: StagedRows,
}

/// What the store was asked to do.
#[derive(Debug)]
pub(crate) enum Work {
    /// A batch of rows.
    Batch(Pending<Applied>),
    /// An append to one row.
    Append(Pending<Bytes>),
}

impl Part {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Vec<(usize, Problem)>> {
        match &mut self.work {
            Work::Batch(pending) => Pin::new(pending).poll(cx).map(|answer| outcome(answer, &self.staged)),
            Work::Append(pending) => Pin::new(pending).poll(cx).map(|answer| appended(answer, &self.staged)),
        }
    }

    fn wait(self) -> (StagedRows, Vec<(usize, Problem)>) {
        let failures = match self.work {
            Work::Batch(pending) => outcome(pending.wait(), &self.staged),
            Work::Append(pending) => appended(pending.wait(), &self.staged),
        };
        (self.staged, failures)
    }
}

/// What a [`Submission`] is made of.
#[derive(Debug)]
pub(crate) struct SubmissionParts {
    pub(crate) parts: Vec<Part>,
    pub(crate) errors: Vec<PointError>,
    pub(crate) door: Door,
    pub(crate) stats: Arc<IngestStats>,
    pub(crate) permit: Permit,
}

impl Submission {
    pub(crate) fn new(parts: SubmissionParts) -> Self {
        let SubmissionParts { parts, errors, door, stats, permit } = parts;
        let (answered, failures) = (0, Vec::new());
        Self { open: Some(Open { parts, answered, failures, errors, door, stats, _permit: permit }) }
    }

    /// Waits on this thread.
    ///
    /// # Panics
    /// On a thread that runs async tasks: there, `.await` it.
    pub fn wait(mut self) -> PutReport {
        let Some(mut open) = self.open.take() else { return PutReport::default() };
        let mut points = open.answered_points();
        for part in open.parts.split_off(open.answered) {
            let (staged, failures) = part.wait();
            points += staged.points_count();
            open.failures.extend(failures);
        }
        open.close(points)
    }

    /// Gives up waiting: every point that was not rejected is reported as timed out, and may still be stored.
    pub fn time_out(mut self) -> PutReport {
        self.give_up().unwrap_or_default()
    }

    fn give_up(&mut self) -> Option<PutReport> {
        let mut open = self.open.take()?;
        let waiting = open.parts.iter().skip(open.answered);
        let points = waiting.flat_map(|part| part.staged.points()).map(|index| (*index, Problem::TimedOut));
        open.failures.extend(points.collect::<Vec<_>>());
        let points = open.points();
        Some(open.close(points))
    }
}

impl Future for Submission {
    type Output = PutReport;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<PutReport> {
        let Some(open) = &mut self.open else { return Poll::Ready(PutReport::default()) };
        // One part after the other: all have answered when the last has, and each wake-up is for one part.
        while let Some(part) = open.parts.get_mut(open.answered) {
            let Poll::Ready(failures) = part.poll(cx) else { return Poll::Pending };
            open.failures.extend(failures);
            open.answered += 1;
        }
        let Some(open) = self.open.take() else { return Poll::Ready(PutReport::default()) };
        let points = open.points();
        Poll::Ready(open.close(points))
    }
}

impl Drop for Submission {
    fn drop(&mut self) {
        // This keeps the counts balanced; nobody reads the report.
        drop(self.give_up());
    }
}

/// The points that failed, each with the problem.
fn outcome(answer: basalt_store::Result<Applied>, staged: &StagedRows) -> Vec<(usize, Problem)> {
    match answer {
        Ok(applied) => {
            let rows = applied.failed.iter();
            rows.flat_map(|failure| {
                let points = staged.points_of(failure.row).iter();
                points.map(|index| (*index, store_problem(&failure.error)))
            })
            .collect()
        }
        Err(error) => staged.points().iter().map(|index| (*index, store_problem(&error))).collect(),
    }
}

fn appended(answer: basalt_store::Result<Bytes>, staged: &StagedRows) -> Vec<(usize, Problem)> {
    outcome(answer.map(|_| Applied::default()), staged)
}

/// A store's error as one point's problem.
pub(crate) fn store_problem(error: &basalt_store::Error) -> Problem {
    let text = error.to_string().into();
    match error.kind() {
        ErrorKind::Throttled => Problem::Throttled { text },
        kind => Problem::Storage { kind, text },
    }
}

impl Open {
    fn points(&self) -> u64 {
        self.parts.iter().map(|part| part.staged.points_count()).sum()
    }

    fn answered_points(&self) -> u64 {
        self.parts.iter().take(self.answered).map(|part| part.staged.points_count()).sum()
    }

    /// The report on `points` points that were handed to the store, and on those that never were.
    fn close(mut self, points: u64) -> PutReport {
        let rejected = self.errors.iter().filter(|error| error.problem.class().is_rejection()).count() as u64;
        let failures = std::mem::take(&mut self.failures);
        let failed = self.errors.len() as u64 - rejected + failures.len() as u64;
        assert!(failures.len() as u64 <= points, "BUG: more points failed than were written");
        let stored = points - failures.len() as u64;
        let mut errors = std::mem::take(&mut self.errors);
        errors.extend(failures.into_iter().map(|(index, problem)| PointError { index, problem }));
        let report = PutReport { stored, rejected, failed, errors };
        self.stats.settle_report(self.door, &report);
        report
    }
}
