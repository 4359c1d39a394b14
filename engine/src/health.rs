//! Whether the engine may take writes, told in one place for all its threads.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use basalt_store::with_causes;

use crate::error::{Error, Result};

/// The engine's state, as a health page tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Health {
    /// Reads and writes are served.
    Ok,
    /// Reads are served; writes are refused until there is space, then taken again.
    DiskFull,
    /// Reads are served; nothing more is acknowledged until a restart.
    Poisoned {
        /// The first failure, in words.
        reason: Arc<str>,
    },
}

/// Called once, with the reason, when the engine is poisoned; must not block.
pub type PoisonHook = Arc<dyn Fn(&str) + Send + Sync>;

/// The state behind [`Health`], shared by WAL, flush and compaction.
pub(crate) struct Condition {
    /// Set once, never cleared: a failed sync is not undone by a good one.
    poisoned: OnceLock<Arc<str>>,
    /// Relaxed: a writer that reads it a moment late is refused a moment late.
    disk_full: AtomicBool,
    hook: Option<PoisonHook>,
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condition").field("health", &self.health()).finish_non_exhaustive()
    }
}

impl Condition {
    pub(crate) fn new(hook: Option<PoisonHook>) -> Condition {
        Condition { poisoned: OnceLock::new(), disk_full: AtomicBool::new(false), hook }
    }

    pub(crate) fn health(&self) -> Health {
        match self.poisoned.get() {
            Some(reason) => Health::Poisoned { reason: Arc::clone(reason) },
            None if self.disk_full.load(Ordering::Relaxed) => Health::DiskFull,
            None => Health::Ok,
        }
    }

    /// Whether a write may be taken.
    ///
    /// # Errors
    /// `Poisoned` or `DiskFull`.
    pub(crate) fn check(&self) -> Result<()> {
        self.check_alive()?;
        if self.disk_full.load(Ordering::Relaxed) { Err(Error::DiskFull) } else { Ok(()) }
    }

    /// Whether anything may still be made durable.
    ///
    /// # Errors
    /// `Poisoned`.
    pub(crate) fn check_alive(&self) -> Result<()> {
        match self.poisoned.get() {
            Some(reason) => Err(Error::Poisoned { reason: Arc::clone(reason) }),
            None => Ok(()),
        }
    }

    /// Refuses every later write and tells the daemon; the first reason stays.
    pub(crate) fn poison(&self, error: &Error) {
        let reason: Arc<str> = with_causes(error).into();
        if self.poisoned.set(Arc::clone(&reason)).is_ok() {
            tracing::error!(%reason, "nothing more is acknowledged: restart to recover");
            if let Some(hook) = &self.hook {
                hook(&reason);
            }
        }
    }

    /// Refuses writes until there is room; `cause` is what there was none for.
    pub(crate) fn set_no_room(&self, cause: &Error) {
        if cause.is_out_of_descriptors() && !self.is_disk_full() {
            let cause = with_causes(cause);
            tracing::warn!(
                cause,
                "no descriptor is left for the log: writes wait as on a full disk; raise LimitNOFILE"
            );
        }
        self.set_disk_full(true);
    }

    pub(crate) fn set_disk_full(&self, full: bool) {
        if self.disk_full.swap(full, Ordering::Relaxed) != full {
            if full {
                tracing::warn!("the disk is full: writes are refused until there is space");
            } else {
                tracing::info!("there is space again: writes are taken");
            }
        }
    }

    pub(crate) fn is_disk_full(&self) -> bool {
        self.disk_full.load(Ordering::Relaxed)
    }
}
