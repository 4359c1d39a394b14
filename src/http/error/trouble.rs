//! What went wrong in the server itself: told in the log with the request that met it, which hears of it in fewer words.
//!
//! Errors are made where nobody knows the request any more, so what is to be told rides along with the answer until it
//! leaves.

use axum::http::{Method, StatusCode};
use axum::response::Response;
use basalt_store::{ErrorKind, with_causes};

use crate::metrics::Metrics;

/// What nobody expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    kind: ErrorKind,
    /// In one line, the first cause last.
    causes: String,
}

impl Trouble {
    /// The trouble that a failure of this kind is, if it is one: not what a request did wrong, and no state that is told
    /// once where it begins (a bound, a full disk).
    pub(super) fn of(kind: ErrorKind, causes: impl Into<String>) -> Option<Self> {
        let is_trouble = match kind {
            ErrorKind::Corrupt | ErrorKind::Bug | ErrorKind::Unavailable => true,
            ErrorKind::Invalid
            | ErrorKind::NotFound
            | ErrorKind::Conflict
            | ErrorKind::Throttled
            | ErrorKind::ReadOnly => false,
        };
        is_trouble.then(|| Self { kind, causes: causes.into() })
    }

    /// As [`Trouble::of`] with all causes of an error.
    pub(super) fn caused(kind: ErrorKind, cause: &dyn std::error::Error) -> Option<Self> {
        Self::of(kind, with_causes(cause))
    }
}

/// Counts an answer with 500, and logs and counts the trouble that an answer to this request stands for, if any: once, as it is
/// taken off the answer.
pub(crate) fn report(metrics: &Metrics, method: &Method, path: &str, response: &mut Response) {
    if response.status() == StatusCode::INTERNAL_SERVER_ERROR {
        metrics.http_failed.add(1);
    }
    let Some(Trouble { kind, causes }) = response.extensions_mut().remove() else { return };
    let status = response.status().as_u16();
    if kind == ErrorKind::Corrupt {
        metrics.corruption.add(1);
    }
    if kind == ErrorKind::Unavailable {
        tracing::warn!(%method, path, status, ?kind, causes, "a request failed");
    } else {
        tracing::error!(%method, path, status, ?kind, causes, "a request failed");
    }
}
