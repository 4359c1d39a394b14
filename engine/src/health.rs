//! Whether the engine may take writes, told in one place for all its threads.

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
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
    /// As on a full disk: the log has no descriptor left to open a file with.
    NoDescriptors,
    /// Reads are served; nothing more is acknowledged until a restart.
    Poisoned {
        /// The first failure, in words.
        reason: Arc<str>,
    },
}

/// What writes wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lack {
    Space,
    Descriptors,
}

/// Called once, with the reason, when the engine is poisoned; must not block.
pub type PoisonHook = Arc<dyn Fn(&str) + Send + Sync>;

/// The state behind [`Health`], shared by WAL, flush and compaction.
pub(crate) struct Condition {
    /// Set once, never cleared: a failed sync is not undone by a good one.
    poisoned: OnceLock<Arc<str>>,
    /// Relaxed: a writer that reads it a moment late is refused a moment late.
    lack: AtomicU8,
    /// What writes wait for on a full disk, at most.
    room_bytes: u64,
    hook: Option<PoisonHook>,
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condition").field("health", &self.health()).finish_non_exhaustive()
    }
}

impl Condition {
    pub(crate) fn new(room_bytes: u64, hook: Option<PoisonHook>) -> Condition {
        Condition { poisoned: OnceLock::new(), lack: AtomicU8::new(0), room_bytes, hook }
    }

    pub(crate) fn health(&self) -> Health {
        match self.poisoned.get() {
            Some(reason) => Health::Poisoned { reason: Arc::clone(reason) },
            None => match self.lack() {
                None => Health::Ok,
                Some(Lack::Space) => Health::DiskFull,
                Some(Lack::Descriptors) => Health::NoDescriptors,
            },
        }
    }

    /// Whether a write may be taken.
    ///
    /// # Errors
    /// `Poisoned`, `DiskFull` or `NoDescriptors`.
    pub(crate) fn check(&self) -> Result<()> {
        self.check_alive()?;
        match self.lack() {
            None => Ok(()),
            Some(Lack::Space) => Err(Error::DiskFull),
            Some(Lack::Descriptors) => Err(Error::NoDescriptors),
        }
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
        self.set_lack(Some(if cause.is_out_of_descriptors() { Lack::Descriptors } else { Lack::Space }));
    }

    /// Refuses writes, or takes them again.
    pub(crate) fn set_lack(&self, lack: Option<Lack>) {
        if self.lack.swap(word(lack), Ordering::Relaxed) == word(lack) {
            return;
        }
        match lack {
            Some(Lack::Space) => tracing::warn!(
                "the disk is full: writes are refused until the reserve and the log fit, with up to {} MiB",
                self.room_bytes.div_ceil(1 << 20)
            ),
            Some(Lack::Descriptors) => tracing::warn!(
                "no descriptor is left to open a file of the log with: writes are refused until there is one; raise LimitNOFILE"
            ),
            None => tracing::info!("there is room again: writes are taken"),
        }
    }

    pub(crate) fn lack(&self) -> Option<Lack> {
        match self.lack.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(Lack::Space),
            _ => Some(Lack::Descriptors),
        }
    }
}

/// What stands for it in the atomic.
const fn word(lack: Option<Lack>) -> u8 {
    match lack {
        None => 0,
        Some(Lack::Space) => 1,
        Some(Lack::Descriptors) => 2,
    }
}
