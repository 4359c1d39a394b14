//! A data folder opened by a tool, in this process, without a server.

use crate::config::{Config, StoreKind};
use crate::exit::{Exit, Failure};
use crate::store::Opened;

/// Opens the folder that the configuration names, does `work` on it and closes it again, whatever became of the work.
///
/// # Errors
///
/// Exit code 4 when a server has the folder; 1 when there is none, which a tool does not make; as [`Opened::open`];
/// the work's own.
pub(super) fn with_folder<T>(config: &Config, work: impl FnOnce(&Opened) -> Result<T, Failure>) -> Result<T, Failure> {
    let path = &config.store.data_dir;
    if config.store.kind == StoreKind::Embedded && !path.is_dir() {
        let line = format!("there is no data folder {}: name it with --data-dir", path.display());
        return Err(Failure::new(Exit::Failure, line));
    }
    let opened = Opened::open(config)?;
    let done = work(&opened);
    opened.close()?;
    done
}

/// A failure of the store or the tables as an end of the process, with what was tried before it.
pub(super) fn failed(tried: &str, cause: &basalt_schema::Error) -> Failure {
    Failure::new(crate::store::exit_of(cause.kind()), format!("{tried}: {}", basalt_store::with_causes(cause)))
}
