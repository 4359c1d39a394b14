//! The files of an open engine, read whole from the disk and proved while it works, so that a byte that went bad in a file that
//! nobody reads is heard of while a backup still has it.

use crate::core::Core;
use crate::data_folder::open_file;
use crate::error::{Error, Result};
use crate::progress::Progress;

/// What a scrub found.
#[derive(Debug, Default)]
pub struct Scrubbed {
    /// Files that are as they were written.
    pub files_count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// What is wrong with others, a file each.
    pub damages: Vec<Error>,
}

impl Core {
    /// Proves the manifest, its copy, and every file that a region or a snapshot names. Of the log nothing is read: its bytes are in files soon.
    ///
    /// # Errors
    /// [`Error::Closed`]: the engine closes. Want of descriptors. Damage is in the answer, file by file.
    pub(crate) fn scrub(&self, tell: &mut dyn FnMut(Progress<'_>)) -> Result<Scrubbed> {
        let mut found = Scrubbed::default();
        let mut count = |proved: Result<u64>| match proved {
            Ok(bytes) => {
                found.files_count += 1;
                found.bytes += bytes;
                Ok(())
            }
            Err(error) if matches!(error, Error::Closed) || error.is_out_of_descriptors() => Err(error),
            Err(error) => {
                found.damages.push(error);
                Ok(())
            }
        };
        let _hold = self.hold_files();
        let catalog = {
            let manifest = self.manifest();
            manifest.prove().try_for_each(&mut count)?;
            manifest.catalog().clone()
        };
        let files = catalog.all_files();
        let bytes_total = files.values().map(|file| file.bytes).sum();
        let mut bytes_done = 0;
        for file in files.values() {
            let opened = open_file(&*self.fs, &self.dir, file, &self.codecs, &self.cache);
            let proved = opened.and_then(|table| table.verify_while(|| self.jobs.check_goes_on(0)));
            count(proved.map(|()| file.bytes))?;
            bytes_done += file.bytes;
            let path = file.id.path(&self.dir);
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            tell(Progress { file: name, bytes_done, bytes_total });
        }
        Ok(found)
    }
}
