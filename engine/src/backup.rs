//! Backups: a folder that holds the store as it was at one number of the log, and the way back.
//!
//! ```text
//! take the folder ─► hold files ─► freeze all memtables at once ─► flush ─► link or copy, check, sum ─► MANIFEST, log ─► BACKUP, last
//! ```
//!
//! Ingest goes on meanwhile. A store is backed up once at a time, and a folder is taken by one backup, of whatever process: by who
//! makes the file that will be its `BACKUP`. A folder is a backup when its `BACKUP` file is there, which names every other file with its
//! length and checksum (`docs/formats/backup.md`); it is published last, so a backup that was interrupted is none.
//! A restore reads every byte against it before the folder may be opened.

use std::path::Path;
use std::sync::{Arc, PoisonError};

use crate::core::Core;
use crate::data_folder::open_file;
use crate::error::{Error, Result};
use crate::health::Condition;
use crate::io::{File, FileSystem, IoOp};
use crate::manifest::{self, Catalog, FileEntry, Manifest};
use crate::progress::Progress;
use crate::reserve::Reserve;
use crate::table::Regions;
use crate::wal::{LogPos, Replayed, Wal, WalOptions};

mod copy;
mod index;
mod restore;

use copy::{copy, create_copy, read_through, sum};
use index::{BackupIndex, IndexedFile, check_empty};

pub use restore::restore;
pub(crate) use restore::{check_finished, check_openable};

/// The log of a backup is empty: a segment of this length.
const LOG_BYTES: u64 = 4096;

/// What a backup holds, or what a restore brought back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BackedUp {
    /// Files, the `BACKUP` file not counted.
    pub files_count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The last number of the log that is in it.
    pub sequence: u64,
    /// When it was taken, in milliseconds since the epoch.
    pub created_ms: u64,
}

impl Core {
    /// Writes a backup into `target`, which must be absent or empty. Waits for a backup that is under way.
    ///
    /// # Errors
    /// `NotEmpty`; `HalfBackedUp`, also where another backup goes into it; `Corrupt`: a file of the store is damaged; `Closed`; any I/O
    /// error. After these `target` is no backup, and what was written into it is removed.
    pub(crate) fn backup(&self, target: &Path, tell: &mut dyn FnMut(Progress<'_>)) -> Result<BackedUp> {
        let fs = &*self.fs;
        // Who asks again for what is being taken is told so at once.
        check_empty(fs, target)?;
        // Whoever takes the folder away and asks again must not meet in it what is still written to its name.
        let _one = self.backing_up.lock().unwrap_or_else(PoisonError::into_inner);
        let aside = BackupIndex::begin(fs, target)?;
        let mut made = Vec::new();
        let taken = self.fill_backup(target, &*aside, &mut made, tell);
        if taken.is_err() {
            // A disk that it filled would stay full. A folder without any file is taken again.
            BackupIndex::give_up(fs, target, &made);
        }
        taken
    }

    /// Fills a folder that was taken by `aside`. `made` gets the names of what it makes there, also before an error.
    fn fill_backup(
        &self,
        target: &Path,
        aside: &dyn File,
        made: &mut Vec<String>,
        tell: &mut dyn FnMut(Progress<'_>),
    ) -> Result<BackedUp> {
        let fs = &*self.fs;
        let _hold = self.hold_files();
        let (catalog, sequence) = self.flush_to_catalog()?;
        let files = catalog.all_files();
        let bytes_total = files.values().map(|file| file.bytes).sum();
        let created_ms = self.stamp().0;
        let mut index = BackupIndex { created_ms, sequence, files: Vec::new() };
        let mut bytes_done = 0;
        for file in files.values() {
            let entry = self.back_up_file(file, target, made)?;
            bytes_done += file.bytes;
            tell(Progress { file: &entry.name, bytes_done, bytes_total });
            index.files.push(entry);
        }
        made.extend(frame_names(&catalog));
        for name in write_frame(&self.fs, target, catalog, sequence)? {
            let (bytes, crc) = sum(fs, &target.join(&name))?;
            index.files.push(IndexedFile { name, bytes, crc });
        }
        index.publish(fs, aside, target)?;
        let bytes = index.files.iter().map(|file| file.bytes).sum();
        Ok(BackedUp { files_count: index.files.len() as u64, bytes, sequence, created_ms })
    }

    /// Flushes everything up to one number of the log; answers the catalog of those files, and the number.
    fn flush_to_catalog(&self) -> Result<(Catalog, u64)> {
        self.condition.check_alive()?;
        let _one = self.reshaping.lock().unwrap_or_else(PoisonError::into_inner);
        let tables: Vec<_> = self.all_tables().into_iter().map(|table| (table.regions(), table)).collect();
        let mut regions: Vec<Regions> = tables.iter().map(|(regions, _)| regions.clone()).collect();
        loop {
            let flushes: Vec<_> =
                regions.iter().flat_map(|regions| regions.iter()).map(|region| region.lock_flushing()).collect();
            if !regions.iter().flat_map(|regions| regions.iter()).any(|region| region.is_retired()) {
                let upto = self.freeze_all(regions.iter().flat_map(|regions| regions.iter()));
                self.wal.sync_to(upto)?;
                for ((_, table), regions) in tables.iter().zip(&regions) {
                    self.flush_frozen_regions(table, regions, upto)?;
                }
                let mut catalog = self.manifest().catalog().clone();
                catalog.marks.clock = catalog.marks.clock.max(self.last_stamp());
                catalog.marks.sequence = catalog.marks.sequence.max(upto);
                catalog.marks.next_file = catalog.marks.next_file.max(self.next_file());
                return Ok((catalog, upto));
            }
            // Split between the look and the lock.
            drop(flushes);
            regions = tables.iter().map(|(_, table)| table.regions()).collect();
        }
    }

    /// Proves a file and brings it into the backup: as another name of it on the same disk, else as a copy.
    fn back_up_file(&self, file: &FileEntry, target: &Path, made: &mut Vec<String>) -> Result<IndexedFile> {
        let from = file.id.path(&self.dir);
        let to = file.id.path(target);
        let name = to.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let go_on = || self.jobs.check_goes_on(0);
        open_file(&*self.fs, &self.dir, file, &self.codecs, &self.cache)?.verify_while(|_| go_on())?;
        let (bytes, crc) = match self.fs.link(&from, &to) {
            Ok(()) => {
                made.push(name.clone());
                read_through(&*self.fs, &to, |_, _| go_on())?
            }
            // Who has put it there? It may be the store's own file by another name.
            Err(source) if source.kind() == std::io::ErrorKind::AlreadyExists => {
                return Err(Error::io(IoOp::Create, &to)(source));
            }
            Err(_) => {
                let copied = create_copy(&*self.fs, &to)?;
                made.push(name.clone());
                copy(&*self.fs, &from, (&to, &*copied), go_on)?
            }
        };
        Ok(IndexedFile { name, bytes, crc })
    }
}

/// The names that manifest and log have while they are written, and then.
fn frame_names(catalog: &Catalog) -> [String; 4] {
    let log = catalog.marks.log_start.name();
    let aside = Path::new(&log).with_extension("tmp").display().to_string();
    [manifest::ASIDE.to_owned(), manifest::NAME.to_owned(), aside, log]
}

/// Writes manifest and log of a store that begins with a catalog; answers their names.
fn write_frame(fs: &Arc<dyn FileSystem>, target: &Path, catalog: Catalog, sequence: u64) -> Result<[String; 2]> {
    let first = catalog.marks.log_start;
    drop(Manifest::create_of(fs, target, catalog)?);
    let condition = Arc::new(Condition::new(0, None));
    let options = WalOptions {
        dir: target.to_path_buf(),
        segment_bytes: LOG_BYTES,
        queue_bytes_max: LOG_BYTES,
        sync_interval: std::time::Duration::ZERO,
        retry_interval: std::time::Duration::ZERO,
    };
    let replayed =
        Replayed { last_sequence: sequence, end: LogPos::default(), sealed: Vec::new(), next: first, cut: None };
    let reserve = Arc::new(Reserve::new(Arc::clone(fs), target, 0));
    Wal::open(Arc::clone(fs), options, condition, reserve, replayed)?.close();
    // No listing: who looks at the folder meanwhile leaves files of theirs in it, as a LOCK, and a restore would copy them.
    Ok([manifest::NAME.to_owned(), first.name()])
}
