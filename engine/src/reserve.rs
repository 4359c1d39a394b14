//! A file of nothing that holds space back, so that a full disk can still be
//! flushed, compacted and closed: releasing it is what a flush does first.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};
use crate::io::{FileSystem, IoOp};

const NAME: &str = "RESERVE";

#[derive(Debug)]
pub(crate) struct Reserve {
    fs: Arc<dyn FileSystem>,
    path: PathBuf,
    bytes: u64,
    /// Leaf lock.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether the file is there, whole.
    held: bool,
    /// How many make room with the space now; it is not taken back before they are done.
    lent: usize,
}

/// The space is lent until this is dropped.
#[derive(Debug)]
pub(crate) struct Lent<'a>(&'a Reserve);

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.0.state().lent -= 1;
    }
}

impl Reserve {
    pub(crate) fn new(fs: Arc<dyn FileSystem>, dir: &Path, bytes: u64) -> Reserve {
        Reserve { fs, path: dir.join(NAME), bytes, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the space, unless it is taken already.
    ///
    /// # Errors
    /// `DiskFull` while it is lent; a full disk, or any I/O error, and what was taken of it is given back.
    pub(crate) fn fill(&self) -> Result<()> {
        let mut state = self.state();
        if state.lent > 0 {
            return Err(Error::DiskFull);
        }
        if state.held || self.bytes == 0 {
            return Ok(());
        }
        // Opened, not created, so that a reserve that is whole is not written again.
        let opened = self.fs.open_rw(&self.path).or_else(|_| self.fs.create(&self.path));
        let file = opened.map_err(Error::io(IoOp::Create, &self.path))?;
        if let Err(source) = file.preallocate(self.bytes) {
            self.fs.remove(&self.path).map_err(Error::io(IoOp::Remove, &self.path))?;
            return Err(Error::io(IoOp::Write, &self.path)(source));
        }
        state.held = true;
        Ok(())
    }

    /// Whether somebody makes room with the space now.
    pub(crate) fn is_lent(&self) -> bool {
        self.state().lent > 0
    }

    /// Gives the space to whoever needs it to make room, until the answer is dropped.
    ///
    /// # Errors
    /// Any I/O error.
    pub(crate) fn lend(&self) -> Result<Lent<'_>> {
        let mut state = self.state();
        if std::mem::take(&mut state.held) {
            self.fs.remove(&self.path).map_err(Error::io(IoOp::Remove, &self.path))?;
        }
        state.lent += 1;
        Ok(Lent(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::SimFs;

    #[test]
    fn lent_space_is_not_taken_back_before_it_is_used() {
        let fs = SimFs::new(1);
        let reserve = Reserve::new(Arc::new(fs.clone()), Path::new("/d"), 1000);
        reserve.fill().unwrap();
        assert_eq!(fs.used_bytes(), 1000);
        let lent = reserve.lend().unwrap();
        assert!(fs.used_bytes() == 0 && reserve.is_lent());
        assert!(reserve.fill().unwrap_err().is_disk_full());
        drop(lent);
        assert!(!reserve.is_lent());
        fs.set_capacity(500);
        assert!(reserve.fill().unwrap_err().is_disk_full());
        assert_eq!(fs.used_bytes(), 0, "what could be taken of it was given back");
        fs.set_capacity(1000);
        reserve.fill().unwrap();
    }
}
