//! The enabled trees, kept in memory for series that come in.
//!
//! Read again after any change made here, and after five minutes for those that other daemons made. OpenTSDB waits the
//! five minutes for its own changes too.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::trial::CompiledTree;
use super::{Tree, TreeSync};
use crate::{Result, Schema, TsMeta, Tsuid};

/// How old what is kept may be.
const AGE_MS_MAX: u64 = 300_000;

/// Trees as they were read, and when. The lock guards these and the count of changes; it is a leaf, held for no read of the store.
#[derive(Debug, Default)]
pub(crate) struct LiveTrees(Mutex<Live>);

#[derive(Debug, Default)]
struct Live {
    /// Changes made here so far: what was read before the last of them is not kept after it.
    changes_count: u64,
    kept: Option<Kept>,
}

#[derive(Debug)]
struct Kept {
    read_ms: u64,
    trees: Arc<[CompiledTree]>,
}

impl LiveTrees {
    /// They are read again at the next use. Called after a change is made.
    pub(crate) fn forget(&self) {
        let mut live = self.lock();
        live.changes_count += 1;
        live.kept = None;
    }

    /// What is kept; `Err` tells [`LiveTrees::keep`] how many changes there were before the trees are read now.
    fn kept(&self, now_ms: u64) -> std::result::Result<Arc<[CompiledTree]>, u64> {
        let live = self.lock();
        let fresh = live.kept.as_ref().filter(|kept| now_ms.saturating_sub(kept.read_ms) < AGE_MS_MAX);
        fresh.map(|kept| Arc::clone(&kept.trees)).ok_or(live.changes_count)
    }

    /// Keeps what was read, unless a change was made meanwhile: the read may have been before it.
    fn keep(&self, changes_count: u64, read_ms: u64, trees: &Arc<[CompiledTree]>) {
        let mut live = self.lock();
        if live.changes_count == changes_count {
            live.kept = Some(Kept { read_ms, trees: Arc::clone(trees) });
        }
    }

    fn lock(&self) -> MutexGuard<'_, Live> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Schema {
    /// Puts a new series into every enabled tree. Durable with the next write at level `Fsync`.
    pub(crate) fn grow_live_trees(&self, tsuid: &Tsuid, meta: &TsMeta) -> Result<()> {
        let now_ms = self.config().clock.now().0;
        let trees = match self.live_trees().kept(now_ms) {
            Ok(trees) => trees,
            Err(changes_count) => {
                let trees = self.trees()?;
                let enabled = |tree: &&Tree| tree.enabled;
                let trees: Arc<[_]> = trees.iter().filter(enabled).map(CompiledTree::new).collect();
                self.live_trees().keep(changes_count, now_ms, &trees);
                trees
            }
        };
        self.grow_all(&trees, tsuid, meta, &mut TreeSync::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_that_were_read_before_a_change_are_not_kept_after_it() {
        let trees: Arc<[CompiledTree]> = Arc::from(Vec::new());
        let live = LiveTrees::default();
        let before = live.kept(0).unwrap_err();
        live.forget();
        live.keep(before, 0, &trees);
        let after = live.kept(0).unwrap_err();
        live.keep(after, 0, &trees);
        assert!(live.kept(AGE_MS_MAX - 1).is_ok());
        assert_eq!(live.kept(AGE_MS_MAX).unwrap_err(), after);
    }
}
