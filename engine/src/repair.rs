//! What can be had of a damaged folder, and what cannot: dry unless told to write.
//!
//! | damaged | kept | lost |
//! |---|---|---|
//! | the log | every record that proves whole and reads, in order, as new segments | records that do not |
//! | an SSTable's block, also one whose checksum fits and whose cells do not | all other blocks, as a new file in its place | the cells of the block |
//! | an SSTable's bloom filter, or the summary of a row | every cell, as a new file | — |
//! | an SSTable's index, metadata or footer, or its length | blocks that prove whole, as a new file | what does not prove |
//! | an SSTable's header and footer both | nothing of the file | the file |
//! | a file that cannot be opened, or has another's name | the file, as it is | — |
//! | the manifest, or its copy | all, by the other of both | — |
//! | both | — | not mended: nothing else knows what the files are |
//!
//! What the disk does not give is damaged as what does not fit.
//!
//! Originals stay beside, under their names and `.damaged`. A lost cell may have been a tombstone: what it masked is seen
//! again. A repair that is interrupted is begun anew: no original goes before what takes its place is there, of the log all of it.

use std::path::{Path, PathBuf};

use crate::audit::Folder;
use crate::backup::{check_finished, check_openable};
use crate::error::{Error, Result};
use crate::io::IoOp;
use crate::loss::Loss;
use crate::manifest::{self, Catalog, Manifest};
use crate::progress::Progress;

mod files;
mod log;

/// What a repair found, and did if it was told to.
#[derive(Debug, Default)]
pub struct Repair {
    /// What is lost.
    pub losses: Vec<Loss>,
    /// What would be lost of that at which it ended early: nothing was done there.
    pub undone: Vec<Loss>,
    /// Files that could not be opened, or have another's name: they stay as they are.
    pub unopened: Vec<Loss>,
    /// What is had whole from its other copy: nothing of it is lost.
    pub mended: Vec<Error>,
    /// What it does not mend: the folder is to be restored from a backup.
    pub unmended: Vec<Error>,
    /// Originals that were put aside.
    pub kept_aside: Vec<PathBuf>,
}

impl Folder {
    /// Finds all damage; with `fix`, puts what can be had in the place of what is damaged. What is found and done is added to `repair`, also
    /// before an error.
    ///
    /// Cost: reads every byte; the log's records in memory at once, at most what the log may be long, and a segment.
    ///
    /// # Errors
    /// [`Error::Unfinished`]; with `fix`, [`Error::IsBackup`]; [`Error::Version`] and [`Error::UnknownCodec`] for a file of a later
    /// program, of which nobody here can tell what is damaged; what kept it from reading or writing.
    pub fn repair(&self, fix: bool, repair: &mut Repair, tell: &mut dyn FnMut(Progress<'_>)) -> Result<()> {
        if fix {
            check_openable(&*self.fs, &self.dir)?;
        } else {
            check_finished(&*self.fs, &self.dir)?;
        }
        let Some(catalog) = self.repair_manifest(fix, repair)? else { return Ok(()) };
        self.repair_log(&catalog, fix, repair)?;
        self.repair_files(&catalog, fix, repair, tell)
    }

    /// What the manifest says, or its copy; with `fix`, puts the one in the place of the other. `None`, which is told, if neither reads.
    fn repair_manifest(&self, fix: bool, repair: &mut Repair) -> Result<Option<Catalog>> {
        let found = self.catalog().and_then(|found| found.ok_or_else(|| Manifest::missing(&self.dir)));
        let copied = self.copied();
        let is_lost = |error: &Error| error.is_unreadable() || matches!(error, Error::NoManifest { .. });
        let (catalog, damage, name) = match (found, copied) {
            (Err(damage), Ok(Some(catalog))) if is_lost(&damage) => (catalog, damage, manifest::NAME),
            (Ok(catalog), Err(damage)) if is_lost(&damage) => (catalog, damage, manifest::COPY),
            (Ok(catalog), copied) => return copied.map(|_| Some(catalog)),
            (Err(damage @ (Error::Corrupt { .. } | Error::NoManifest { .. })), _) => {
                repair.unmended.push(damage);
                return Ok(None);
            }
            (Err(error), _) => return Err(error),
        };
        repair.mended.push(damage);
        if fix {
            self.keep_aside(&self.dir.join(name), repair)?;
            // Whoever opens it writes the copy anew.
            drop(if name == manifest::COPY {
                Manifest::open(&self.fs, &self.dir)?
            } else {
                Some(Manifest::put_back(&self.fs, &self.dir)?)
            });
        }
        Ok(Some(catalog))
    }

    /// Gives a file another name, under which nothing reads or deletes it.
    fn keep_aside(&self, path: &Path, repair: &mut Repair) -> Result<()> {
        let names = self.fs.list(&self.dir).map_err(Error::io(IoOp::List, &self.dir))?;
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if !names.iter().any(|there| there == name) {
            return Ok(());
        }
        let free = (1_u32..).map(|number| match number {
            1 => format!("{name}.damaged"),
            number => format!("{name}.damaged-{number}"),
        });
        let Some(free) = free.into_iter().find(|free| !names.contains(free)) else { return Ok(()) };
        let aside = self.dir.join(free);
        self.fs.link(path, &aside).map_err(Error::io(IoOp::Create, &aside))?;
        self.fs.sync_dir(&self.dir).map_err(Error::io(IoOp::SyncDir, &self.dir))?;
        repair.kept_aside.push(aside);
        Ok(())
    }
}
