//! The manifest's copy: the same bytes in a second file, from which a repair puts back a manifest that is damaged or gone.
//!
//! An edit is synced in the manifest, then in the copy, and then acted upon. So the copy by itself is a state from which nothing is missing:
//! at most it lacks an edit that nobody acted on, and never has it one that the manifest lacks. It is behind by more than that nowhere: a
//! copy that finds no room is deleted, and written whole with the next edit that finds some.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use super::{Catalog, Found, Manifest, NAME, corrupt, undecided};
use crate::error::{Error, Result};
use crate::io::{File, FileSystem, IoOp, publish};

/// Its name in the folder.
pub(crate) const COPY: &str = "MANIFEST.copy";
/// Its name until it is published.
pub(super) const ASIDE: &str = "MANIFEST.copy.tmp";

impl Manifest {
    /// The catalog as the copy has it; `None` where there is no copy. Changes nothing.
    ///
    /// # Errors
    /// `Corrupt` or `Version`; any I/O error.
    pub(crate) fn copied(fs: &Arc<dyn FileSystem>, dir: &Path) -> Result<Option<Catalog>> {
        match Manifest::read(fs, dir, COPY) {
            Err(Error::Io { op: IoOp::Open, source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
            read => Ok(Some(read?.manifest.catalog)),
        }
    }

    /// Writes the manifest anew as its copy has it.
    ///
    /// # Errors
    /// As [`Manifest::copied`].
    pub(crate) fn put_back(fs: &Arc<dyn FileSystem>, dir: &Path) -> Result<Manifest> {
        let Manifest { generation, catalog, .. } = Manifest::read(fs, dir, COPY)?.manifest;
        Manifest::write_anew(fs, dir, generation + 1, catalog)
    }

    /// Proves that the copy has no edit that lacks here: it was on disk here before. A copy that does not read is told.
    ///
    /// # Errors
    /// `Corrupt`, of the manifest.
    pub(super) fn check_copy(&self) -> Result<()> {
        match Manifest::read(&self.fs, &self.dir, COPY) {
            Ok(Found { manifest: copy, .. }) => {
                let [there, here] = [&copy, self].map(|of| (of.generation, of.sequence));
                let lacks = || corrupt(&self.dir.join(NAME), self.offset(), "last edit", there.1, here.1);
                if there > here { Err(lacks()) } else { Ok(()) }
            }
            Err(error) => {
                tracing::warn!(%error, "the manifest's copy is damaged");
                Ok(())
            }
        }
    }

    /// Writes the copy whole. Where there is no room for it, there is none.
    ///
    /// # Errors
    /// Any I/O error but want of room.
    pub(super) fn copy_anew(&mut self) -> Result<()> {
        match self.write_copy() {
            Ok(copy) => {
                self.copy = Some(copy);
                Ok(())
            }
            Err(error) if error.is_want_of_room() => self.drop_copy(&error),
            Err(error) => Err(error),
        }
    }

    /// Brings the edit into the copy that begins at `offset` in the manifest, where it is on disk.
    ///
    /// # Errors
    /// Any I/O error but want of room.
    pub(super) fn copy_edit(&mut self, offset: u64) -> Result<()> {
        let Some(copy) = &self.copy else { return self.copy_anew() };
        let path = self.dir.join(COPY);
        let record = usize::try_from(offset).ok().and_then(|offset| self.bytes.get(offset..)).unwrap_or_default();
        let written = copy.write_at(offset, record).map_err(Error::io(IoOp::Write, &path));
        match written.and_then(|()| copy.sync_data().map_err(Error::io(IoOp::SyncData, &path))) {
            Err(error) if error.is_want_of_room() => self.drop_copy(&error),
            done => done,
        }
    }

    fn write_copy(&self) -> Result<Arc<dyn File>> {
        let (aside, path) = (self.dir.join(ASIDE), self.dir.join(COPY));
        let copy = self.fs.create(&aside).map_err(Error::io(IoOp::Create, &aside))?;
        copy.write_at(0, &self.marked()).map_err(Error::io(IoOp::Write, &aside))?;
        publish(&*self.fs, &*copy, &aside, &path)?;
        Ok(copy)
    }

    /// An old copy is worse than none.
    fn drop_copy(&mut self, why: &Error) -> Result<()> {
        if self.copy.take().is_some() {
            tracing::warn!(%why, "the manifest has no copy until there is room");
        }
        drop(self.fs.remove(&self.dir.join(ASIDE)));
        let path = self.dir.join(COPY);
        match self.fs.remove(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => {
                removed.map_err(undecided(IoOp::Remove, &path))?;
                self.fs.sync_dir(&self.dir).map_err(Error::io(IoOp::SyncDir, &self.dir))
            }
        }
    }
}
