//! What an import is to do, and what it did.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What is to be done.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) resume: Option<PathBuf>,
    /// Points a second.
    pub(crate) rate: Option<u64>,
    pub(crate) skip_errors: bool,
    /// It is to end, though work is left. Relaxed: a wish.
    pub(crate) ends: Arc<AtomicBool>,
}

impl Job {
    /// Whether it is to end.
    pub(super) fn ends(&self) -> bool {
        self.ends.load(Ordering::Relaxed)
    }
}

/// What was done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    pub(crate) stored: u64,
    pub(crate) refused: u64,
    /// Lines that an earlier run had done.
    pub(crate) skipped: u64,
    pub(crate) took: Duration,
}

impl Sum {
    /// Points stored a second.
    #[expect(clippy::cast_precision_loss, reason = "a figure for people, of three digits")]
    pub(crate) fn rate(&self) -> f64 {
        self.stored as f64 / self.took.as_secs_f64().max(0.001)
    }
}
