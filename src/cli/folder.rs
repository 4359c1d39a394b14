//! A data folder opened by a tool, in this process, without a server.

use std::path::Path;

use super::passes_cluster_over;
use crate::config::{Config, StoreKind};
use crate::exit::{Exit, Failure};
use crate::progress::meanwhile;
use crate::store::OpenTables;

/// How most tools are told their folder.
pub(super) const BY_FLAG: &str = "name it with --data-dir";
/// So too where the settings name a cluster, which may be what was meant.
const OR_CLUSTER: &str = "name it with --data-dir, or work on the tables in HBase with --store hbase";

/// Refuses a folder that holds no store, with how to name the right one: a tool neither makes a folder nor begins a store in
/// one that holds something else. One that lacks its manifest alone is the engine's to judge.
///
/// # Errors
///
/// Exit code 1.
pub(super) fn check_folder(path: &Path, hint: &str) -> Result<(), Failure> {
    let shown = path.display();
    if !path.is_dir() {
        return Err(Failure::new(Exit::Failure, format!("there is no data folder {shown}: {hint}")));
    }
    let is_ours = |name: &str| {
        matches!(name, "MANIFEST" | "BACKUP" | "RESTORING") || name.starts_with("sst-") || name.starts_with("wal-")
    };
    let names = std::fs::read_dir(path)
        .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect::<std::io::Result<Vec<_>>>())
        .map_err(|cause| Failure::new(Exit::Failure, format!("cannot list {shown}: {cause}")))?;
    if names.iter().any(|name| name.to_str().is_some_and(is_ours)) {
        return Ok(());
    }
    Err(Failure::new(Exit::Failure, format!("{shown} is no data folder, it has no file MANIFEST: {hint}")))
}

/// As [`check_folder`] for a tool that may be the first to write: a folder that is empty was made for a store.
///
/// # Errors
///
/// Exit code 1.
pub(super) fn check_home(path: &Path, hint: &str) -> Result<(), Failure> {
    let is_empty = std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    if is_empty { Ok(()) } else { check_folder(path, hint) }
}

/// Opens the folder that the configuration names, does `work` on its tables and closes it again, whatever became of the work. For
/// tools that read or mend: neither a folder nor a table is made.
///
/// # Errors
///
/// Exit code 4 when a server has the folder; 1 when there is none; as [`OpenTables::open_existing`]; the work's own.
pub(super) fn with_folder<T>(
    config: &Config,
    work: impl FnOnce(&OpenTables) -> Result<T, Failure>,
) -> Result<T, Failure> {
    if config.store.kind == StoreKind::Embedded {
        check_folder(&config.store.data_dir, hint(config))?;
    }
    work_on(&OpenTables::open_existing(config)?, work)
}

/// As [`with_folder`] for a tool that asks for no series, and does not wait until they are read.
///
/// # Errors
///
/// As [`with_folder`].
pub(super) fn with_rows<T>(
    config: &Config,
    work: impl FnOnce(&OpenTables) -> Result<T, Failure>,
) -> Result<T, Failure> {
    if config.store.kind == StoreKind::Embedded {
        check_folder(&config.store.data_dir, hint(config))?;
    }
    work_on(&OpenTables::open_without_series(config)?, work)
}

/// As [`with_rows`] for a tool that gives names their UIDs, and may be the first to write: it makes the tables.
///
/// # Errors
///
/// As [`with_folder`]; of tables as [`OpenTables::open`].
pub(super) fn with_home<T>(
    config: &Config,
    work: impl FnOnce(&OpenTables) -> Result<T, Failure>,
) -> Result<T, Failure> {
    if config.store.kind == StoreKind::Embedded {
        check_home(&config.store.data_dir, hint(config))?;
    }
    work_on(&OpenTables::open_to_assign(config)?, work)
}

fn hint(config: &Config) -> &'static str {
    if passes_cluster_over(config) { OR_CLUSTER } else { BY_FLAG }
}

/// Closes a folder, which writes into files what its log held and what was written since.
///
/// # Errors
///
/// Those of `close`.
pub(super) fn closing(close: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    meanwhile("closing the data folder, which writes what is in memory into files", close)
}

fn work_on<T>(opened: &OpenTables, work: impl FnOnce(&OpenTables) -> Result<T, Failure>) -> Result<T, Failure> {
    let done = work(opened);
    closing(|| opened.close())?;
    done
}
