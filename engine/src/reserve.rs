//! A file of nothing that holds space back, so that a full disk can still be
//! flushed, compacted and closed: releasing it is what a flush does first.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{Error, Result};
use crate::io::{FileSystem, IoOp};

const NAME: &str = "RESERVE";

#[derive(Debug)]
pub(crate) struct Reserve {
    fs: Arc<dyn FileSystem>,
    path: PathBuf,
    bytes: u64,
    /// Whether the file is there, whole. Leaf lock.
    held: Mutex<bool>,
}

impl Reserve {
    pub(crate) fn new(fs: Arc<dyn FileSystem>, dir: &Path, bytes: u64) -> Reserve {
        Reserve { fs, path: dir.join(NAME), bytes, held: Mutex::new(false) }
    }

    /// Takes the space, unless it is taken already.
    ///
    /// # Errors
    /// A full disk, or any I/O error; what was taken of it is given back.
    pub(crate) fn fill(&self) -> Result<()> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if *held || self.bytes == 0 {
            return Ok(());
        }
        // Opened, not created, so that a reserve that is whole is not written again.
        let opened = self.fs.open_rw(&self.path).or_else(|_| self.fs.create(&self.path));
        let file = opened.map_err(Error::io(IoOp::Create, &self.path))?;
        if let Err(source) = file.preallocate(self.bytes) {
            self.fs.remove(&self.path).map_err(Error::io(IoOp::Remove, &self.path))?;
            return Err(Error::io(IoOp::Write, &self.path)(source));
        }
        *held = true;
        Ok(())
    }

    /// Gives the space to whoever needs it to make room.
    ///
    /// # Errors
    /// Any I/O error.
    pub(crate) fn release(&self) -> Result<()> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut *held) {
            self.fs.remove(&self.path).map_err(Error::io(IoOp::Remove, &self.path))?;
        }
        Ok(())
    }
}
