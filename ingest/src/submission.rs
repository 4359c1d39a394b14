//! A batch under way, and what comes of it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use basalt_store::{Applied, ErrorKind, Pending};

use crate::inflight::Permit;
use crate::report::{PointError, PutReport};
use crate::stage::StagedRows;
use crate::{Door, IngestStats, Problem};

/// Points handed in and not yet answered: `.await` it, or [`Submission::wait`] on a thread, for the [`PutReport`].
///
/// The report comes when every point in it is as durable as was asked, or known not to be stored. Dropped before that,
/// its points count as timed out: they may be stored yet.
#[derive(Debug)]
#[must_use = "the report says what was stored"]
pub struct Submission {
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    pending: Pending<Applied>,
    staged: StagedRows,
    /// The points rejected already.
    errors: Vec<PointError>,
    door: Door,
    stats: Arc<IngestStats>,
    /// Held until the points are answered.
    _permit: Permit,
}

/// What a [`Submission`] is made of.
#[derive(Debug)]
pub(crate) struct SubmissionParts {
    pub(crate) pending: Pending<Applied>,
    pub(crate) staged: StagedRows,
    pub(crate) errors: Vec<PointError>,
    pub(crate) door: Door,
    pub(crate) stats: Arc<IngestStats>,
    pub(crate) permit: Permit,
}

impl Submission {
    pub(crate) fn new(parts: SubmissionParts) -> Self {
        let SubmissionParts { pending, staged, errors, door, stats, permit } = parts;
        Self { open: Some(Open { pending, staged, errors, door, stats, _permit: permit }) }
    }

    /// Waits on this thread.
    ///
    /// # Panics
    /// On a thread that runs async tasks: there, `.await` it.
    pub fn wait(mut self) -> PutReport {
        let Some(Open { pending, staged, errors, door, stats, _permit }) = self.open.take() else {
            return PutReport::default();
        };
        close(&staged, errors, door, &stats, &outcome(pending.wait(), &staged))
    }

    /// Gives up waiting: every point that was not rejected is told as timed out, and may be stored yet.
    pub fn time_out(mut self) -> PutReport {
        self.give_up().unwrap_or_default()
    }

    fn give_up(&mut self) -> Option<PutReport> {
        let Open { staged, errors, door, stats, .. } = self.open.take()?;
        let outcome = staged.points().iter().map(|index| (*index, Problem::TimedOut)).collect::<Vec<_>>();
        Some(close(&staged, errors, door, &stats, &outcome))
    }
}

impl Future for Submission {
    type Output = PutReport;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<PutReport> {
        let Some(open) = &mut self.open else { return Poll::Ready(PutReport::default()) };
        let Poll::Ready(answer) = Pin::new(&mut open.pending).poll(cx) else { return Poll::Pending };
        let Some(Open { staged, errors, door, stats, .. }) = self.open.take() else {
            return Poll::Ready(PutReport::default());
        };
        Poll::Ready(close(&staged, errors, door, &stats, &outcome(answer, &staged)))
    }
}

impl Drop for Submission {
    fn drop(&mut self) {
        // The counts must balance; the report has nobody to read it.
        drop(self.give_up());
    }
}

/// The points that failed, with why.
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

/// A store's error as one point's problem.
pub(crate) fn store_problem(error: &basalt_store::Error) -> Problem {
    let text = error.to_string().into();
    match error.kind() {
        ErrorKind::Throttled => Problem::Throttled { text },
        kind => Problem::Storage { kind, text },
    }
}

fn close(
    staged: &StagedRows,
    mut errors: Vec<PointError>,
    door: Door,
    stats: &IngestStats,
    failures: &[(usize, Problem)],
) -> PutReport {
    let rejected = errors.iter().filter(|error| error.problem.class().is_rejection()).count() as u64;
    let failed = errors.len() as u64 - rejected + failures.len() as u64;
    assert!(failures.len() as u64 <= staged.points_count(), "BUG: more points failed than were written");
    errors.extend(failures.iter().map(|(index, problem)| PointError { index: *index, problem: problem.clone() }));
    let report = PutReport { stored: staged.points_count() - failures.len() as u64, rejected, failed, errors };
    stats.settle_report(door, &report);
    report
}
