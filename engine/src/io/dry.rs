//! A file system that is read and never changed: what is written to it is forgotten.
//!
//! Recovery cuts, writes and deletes as it reads. Over this one it can be asked whether it would succeed, on a folder
//! that stays as it is.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::{File, FileLock, FileSystem};

/// Reads through to the file system below; answers every change with success and does nothing.
#[derive(Debug)]
pub(crate) struct DryFs(pub(crate) Arc<dyn FileSystem>);

/// A file of it; one that was made here is empty for ever.
#[derive(Debug)]
struct DryFile(Option<Arc<dyn File>>);

impl File for DryFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        self.0.as_ref().map_or(Ok(0), |file| file.read_at(offset, buf))
    }

    fn write_at(&self, _offset: u64, _bytes: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn set_len(&self, _len: u64) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        self.0.as_ref().map_or(Ok(0), |file| file.len())
    }

    fn preallocate(&self, _len: u64) -> io::Result<()> {
        Ok(())
    }
}

impl FileSystem for DryFs {
    fn create_dir_all(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    fn create(&self, _path: &Path) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(DryFile(None)))
    }

    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.create(path)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(DryFile(Some(self.0.open(path)?))))
    }

    fn open_rw(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.open(path)
    }

    fn rename(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Ok(())
    }

    fn link(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Ok(())
    }

    fn remove(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.0.list(dir)
    }

    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn FileLock>> {
        self.0.lock(path)
    }
}
