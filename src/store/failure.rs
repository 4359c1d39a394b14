//! Failures of the store and the tables as ends of the process: the exit code and the line of each.

use std::sync::Arc;

use basalt_store::{ErrorKind, with_causes};
use rustix::io::Errno;

use crate::exit::{Exit, Failure};

/// A failure of the tables as an end of the process.
pub(super) fn no_tables(cause: &basalt_schema::Error) -> Failure {
    let exit = match cause.kind() {
        ErrorKind::Invalid => Exit::Config,
        // It is named by the settings, and nobody makes it but an operator.
        _ if matches!(cause, basalt_schema::Error::Store(basalt_store::Error::UnknownNamespace { .. })) => Exit::Config,
        kind => exit_of_cause(kind, cause),
    };
    Failure::new(exit, format!("cannot open the tables: {}", with_causes(cause)))
}

/// The engine's failure as an end of the process.
pub(crate) fn refused(cause: &basalt_engine::Error) -> Failure {
    let todo = match cause {
        basalt_engine::Error::NoManifest { .. } => {
            ": `basalt repair --fix` writes it anew from MANIFEST.copy; without that keep the folder, and restore a backup into a new one \
             with `basalt restore BACKUP NEW_FOLDER`"
        }
        _ if cause.kind() == ErrorKind::Corrupt && !cause.is_of_later_program() => {
            "; `basalt repair` tells what can be had"
        }
        _ => "",
    };
    Failure::new(exit_of_engine(cause), with_causes(cause) + todo)
}

/// A failure of the store or the tables as an end of the process, with what was tried before it.
pub(crate) fn failed(tried: &str, cause: &basalt_schema::Error) -> Failure {
    let exit = exit_of_cause(cause.kind(), cause);
    Failure::new(exit, format!("{tried}: {}", with_causes(cause)))
}

/// The exit code of the engine's failure.
fn exit_of_engine(cause: &basalt_engine::Error) -> Exit {
    match cause {
        basalt_engine::Error::Locked { .. } => Exit::Locked,
        _ if cause.is_disk_full() => Exit::TryLater,
        basalt_engine::Error::Poisoned { .. } => Exit::Disk,
        _ if cause.is_sync_failure() => Exit::Disk,
        // A disk that cannot be read is not better later.
        basalt_engine::Error::Io { source, .. } if Errno::from_io_error(source) == Some(Errno::IO) => Exit::Disk,
        basalt_engine::Error::Io { .. } => Exit::Failure,
        _ => exit_of(cause.kind()),
    }
}

/// The exit code of a failure of this kind, whatever crate it is of: the engine's own says more than its kind.
pub(crate) fn exit_of_cause(kind: ErrorKind, cause: &(dyn std::error::Error + 'static)) -> Exit {
    type Shared = Arc<dyn std::error::Error + Send + Sync>;
    let mut causes = std::iter::successors(Some(cause), |cause| cause.source());
    let engine = causes.find_map(|cause| match cause.downcast_ref::<Shared>() {
        Some(shared) => shared.downcast_ref(),
        None => cause.downcast_ref(),
    });
    engine.map_or_else(|| exit_of(kind), exit_of_engine)
}

/// The exit code of a failure of this kind.
pub(crate) fn exit_of(kind: ErrorKind) -> Exit {
    match kind {
        ErrorKind::Corrupt => Exit::Damage,
        ErrorKind::ReadOnly | ErrorKind::Throttled | ErrorKind::Unavailable => Exit::TryLater,
        _ => Exit::Failure,
    }
}
