//! What went wrong in the server itself: told in the log with the request that met it, which hears of it in fewer words.
//!
//! Errors are made where nobody knows the request any more, so what is to be told rides along with the answer until it
//! leaves. Lines of telnet have no answer that it could ride with: [`report_lines`].

use axum::http::{Method, StatusCode};
use axum::response::Response;
use basalt_ingest::Problem;
use basalt_store::{ErrorKind, with_causes};

use crate::app::App;
use crate::metrics::Metrics;

/// What nobody expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    kind: ErrorKind,
    /// In one line, the first cause last.
    causes: String,
}

impl Trouble {
    /// The trouble that a failure of this kind may be, if it may be one: not what a request did wrong, and no bound that is told once
    /// where it is reached.
    pub(super) fn of(kind: ErrorKind, causes: impl Into<String>) -> Option<Self> {
        let is_trouble = match kind {
            ErrorKind::Corrupt | ErrorKind::Bug | ErrorKind::Unavailable | ErrorKind::ReadOnly => true,
            ErrorKind::Invalid | ErrorKind::NotFound | ErrorKind::Conflict | ErrorKind::Throttled => false,
        };
        is_trouble.then(|| Self { kind, causes: causes.into() })
    }

    /// The trouble that a point met, if it is one.
    pub(super) fn of_point(problem: &Problem) -> Option<Self> {
        match problem {
            // A table of ours that is gone, which no sender has asked for by name.
            Problem::Storage { kind: ErrorKind::NotFound, text } => Self::of(ErrorKind::Unavailable, &**text),
            Problem::Storage { kind, text } => Self::of(*kind, &**text),
            _ => None,
        }
    }

    /// As [`Trouble::of`] with all causes of an error.
    pub(super) fn caused(kind: ErrorKind, cause: &dyn std::error::Error) -> Option<Self> {
        Self::of(kind, with_causes(cause))
    }

    /// Whether it is a state of the store that is told once where it begins, as a full disk is; a table that is set READONLY is none.
    fn is_told(&self, app: &App) -> bool {
        self.kind == ErrorKind::ReadOnly && app.open_store().not_ready().is_some()
    }

    fn count(&self, metrics: &Metrics) {
        if self.kind == ErrorKind::Corrupt {
            metrics.corruption.add(1);
        }
    }

    /// Whether it passes without a mend of the store.
    const fn passes(&self) -> bool {
        matches!(self.kind, ErrorKind::Unavailable | ErrorKind::ReadOnly)
    }
}

/// Counts an answer with 500, and logs and counts the trouble that an answer to this request stands for, if any: once, as it is
/// taken off the answer.
pub(crate) fn report(app: &App, method: &Method, path: &str, response: &mut Response) {
    if response.status() == StatusCode::INTERNAL_SERVER_ERROR {
        app.metrics.http_failed.add(1);
    }
    let Some(trouble) = response.extensions_mut().remove::<Trouble>().filter(|trouble| !trouble.is_told(app)) else {
        return;
    };
    trouble.count(&app.metrics);
    let (passes, status) = (trouble.passes(), response.status().as_u16());
    let Trouble { kind, causes } = trouble;
    if passes {
        tracing::warn!(%method, path, status, ?kind, causes, "a request failed");
    } else {
        tracing::error!(%method, path, status, ?kind, causes, "a request failed");
    }
}

/// Logs and counts, once for all of them, the trouble that lines which put something met, if any: their sender need not read what
/// is answered.
pub(crate) fn report_lines(app: &App, command: &str, refused: &[(usize, Problem)]) {
    let ours = refused.iter().filter_map(|(_, problem)| Trouble::of_point(problem));
    let mut ours = ours.filter(|trouble| !trouble.is_told(app));
    let Some(trouble) = ours.next() else { return };
    trouble.count(&app.metrics);
    let (passes, lines) = (trouble.passes(), 1 + ours.count());
    let Trouble { kind, causes } = trouble;
    if passes {
        tracing::warn!(command, lines, ?kind, causes, "lines were not stored");
    } else {
        tracing::error!(command, lines, ?kind, causes, "lines were not stored");
    }
}
