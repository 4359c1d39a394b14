//! Files that something let go of while others read them by name: they are deleted when nobody holds files any more.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::id::FileId;

/// Which files backups, and whoever opens one, keep from being deleted.
#[derive(Debug, Default)]
pub(crate) struct HeldFiles {
    /// Leaf lock.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Who holds all files.
    holders: usize,
    /// To be deleted after them.
    deferred: Vec<FileId>,
}

impl HeldFiles {
    /// Counts one holder more: no file is deleted until it ends.
    pub(crate) fn hold(&self) {
        self.state().holders += 1;
    }

    /// Counts one holder less; answers the files that are to be deleted now.
    pub(crate) fn end_hold(&self) -> Vec<FileId> {
        let mut state = self.state();
        assert!(state.holders > 0, "BUG: files are let go of more often than they are held");
        state.holders -= 1;
        if state.holders > 0 { Vec::new() } else { std::mem::take(&mut state.deferred) }
    }

    /// Whether somebody holds a file, which is then deleted after that.
    pub(crate) fn defer(&self, id: FileId) -> bool {
        let mut state = self.state();
        let is_held = state.holders > 0;
        if is_held {
            state.deferred.push(id);
        }
        is_held
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_deleted_after_the_last_that_holds_them() {
        let held = HeldFiles::default();
        assert!(!held.defer(FileId(1)), "nobody holds it");
        held.hold();
        held.hold();
        assert!(held.defer(FileId(2)) && held.end_hold().is_empty() && held.defer(FileId(3)));
        assert_eq!(held.end_hold(), [FileId(2), FileId(3)]);
        assert!(!held.defer(FileId(4)) && held.state().deferred.is_empty());
    }
}
