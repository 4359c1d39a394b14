//! The enabled trees, kept in memory for series that come in.
//!
//! Read again after any change made here, and after five minutes for those that other daemons made. OpenTSDB waits the
//! five minutes for its own changes too.

use std::sync::{Arc, Mutex, PoisonError};

use super::trial::CompiledTree;
use super::{Tree, TreeSync};
use crate::{Result, Schema, TsMeta, Tsuid};

/// How old what is kept may be.
const AGE_MS_MAX: u64 = 300_000;

/// Trees as they were read, and when.
#[derive(Debug, Default)]
pub(crate) struct LiveTrees(Mutex<Option<Kept>>);

#[derive(Debug, Clone)]
struct Kept {
    read_ms: u64,
    trees: Arc<[CompiledTree]>,
}

impl LiveTrees {
    /// They are read again at the next use.
    pub(super) fn forget(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn kept(&self, now_ms: u64) -> Option<Arc<[CompiledTree]>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        kept.filter(|kept| now_ms.saturating_sub(kept.read_ms) < AGE_MS_MAX).map(|kept| kept.trees)
    }

    fn keep(&self, read_ms: u64, trees: Arc<[CompiledTree]>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Kept { read_ms, trees });
    }
}

impl Schema {
    /// Puts a new series into every enabled tree. Durable with the next write at level `Fsync`.
    pub(crate) fn grow_live_trees(&self, tsuid: &Tsuid, meta: &TsMeta) -> Result<()> {
        let now_ms = self.config().clock.now().0;
        let trees = if let Some(trees) = self.live_trees().kept(now_ms) {
            trees
        } else {
            let trees = self.trees()?;
            let enabled = |tree: &&Tree| tree.enabled;
            let trees: Arc<[_]> = trees.iter().filter(enabled).map(CompiledTree::new).collect();
            self.live_trees().keep(now_ms, Arc::clone(&trees));
            trees
        };
        self.grow_all(&trees, tsuid, meta, &mut TreeSync::default())
    }
}
