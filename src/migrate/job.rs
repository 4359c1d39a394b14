//! What a copy is of: the two ends, and how it is done.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use basalt_schema::SchemaConfig;
use basalt_store::{Store, Timestamp, with_causes};

use crate::exit::Failure;
use crate::store::exit_of_cause;

/// [`Job::patience`] of the command.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// A store with tables of OpenTSDB's, as one of the two ends.
#[derive(Debug)]
pub(crate) struct End {
    /// What a person calls it.
    pub(crate) name: String,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) schema: SchemaConfig,
}

/// What is to be done.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) source: End,
    pub(crate) target: End,
    /// The file that remembers how far the copy is.
    pub(crate) progress: PathBuf,
    /// Rows of the target that are there already are no reason to stop.
    pub(crate) into_filled: bool,
    /// Compare only what both ends hold.
    pub(crate) only_verify: bool,
    /// When it began.
    pub(crate) now: Timestamp,
    /// How long rows that find no room in the target are sent again.
    pub(crate) patience: Duration,
}

/// A store's error with the end that it is of.
pub(super) fn at(end: &End, cause: &basalt_store::Error) -> Failure {
    Failure::new(exit_of_cause(cause.kind(), cause), format!("{}: {}", end.name, with_causes(cause)))
}
