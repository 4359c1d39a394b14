//! The files of an open engine, read whole from the disk and proved while it works, so that a byte that went bad in a file that
//! nobody reads is heard of while a backup still has it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use basalt_store::with_causes;

use crate::core::Core;
use crate::data_folder::open_file;
use crate::error::{Error, Result};
use crate::io::{Rng, SplitMix};
use crate::manifest::{Catalog, FileEntry};
use crate::progress::Progress;
use crate::sstable::Sstable;

/// What is read in a second of a file that nobody asked to have proved: little beside what requests read.
const BYTES_PER_SECOND: u32 = 8 << 20;

/// How soon an engine without files looks whether there are any.
const LOOK_INTERVAL: Duration = Duration::from_mins(10);

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
    /// Proves the manifest, its copy, and every file that a region or a snapshot names. One that is not named any more when its turn comes is
    /// passed over. The log is not read: its bytes are in files soon.
    ///
    /// # Errors
    /// [`Error::Closed`]: the engine closes. Want of descriptors. Damage is in the answer, file by file.
    pub(crate) fn scrub(&self, tell: &mut dyn FnMut(Progress<'_>)) -> Result<Scrubbed> {
        let mut found = Scrubbed::default();
        let files = self.prove_manifest(&mut found)?.all_files();
        let bytes_total = files.values().map(|file| file.bytes).sum();
        let mut bytes_done = 0;
        for file in files.values() {
            self.prove(file, &mut found, |table| table.verify_while(|_| self.jobs.check_goes_on(0)))?;
            bytes_done += file.bytes;
            let path = file.id.path(&self.dir);
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            tell(Progress { file: name, bytes_done, bytes_total });
        }
        Ok(found)
    }

    /// Scrubs until the engine closes, so that each file has its turn once in an interval. It begins at a moment of the first one that chance
    /// gives: else a file whose turn is late would never have it where the program starts more often.
    pub(crate) fn keep_scrubbing(&self, interval: Duration) {
        let nanos = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
        let mut begin = Duration::from_nanos(SplitMix::new(self.clock.now().0).below(nanos));
        loop {
            let sleep = |time| self.jobs.sleep(time);
            let done = self.scrub_slowly(interval, std::mem::take(&mut begin), &sleep).or_else(|error| {
                if !matches!(error, Error::Closed) {
                    tracing::warn!(error = with_causes(&error), "a scrub was given up; another begins");
                }
                sleep(LOOK_INTERVAL)
            });
            if done.is_err() {
                return;
            }
        }
    }

    /// Scrubs once, from a moment of the interval on: each file has its turn when so much of that has gone by as it and the files before it
    /// have of all bytes. A bloom filter that memory has no room for is left out.
    ///
    /// # Errors
    /// As [`Core::scrub`]; those of `sleep`. Damage is logged and counted.
    pub(crate) fn scrub_slowly(
        &self,
        interval: Duration,
        begin: Duration,
        sleep: &dyn Fn(Duration) -> Result<()>,
    ) -> Result<()> {
        let mut found = Scrubbed::default();
        let files = self.prove_manifest(&mut found)?.all_files();
        let bytes_total: u64 = files.values().map(|file| file.bytes).sum();
        if bytes_total == 0 {
            return sleep(interval.min(LOOK_INTERVAL));
        }
        let (mut now, mut bytes) = (begin, 0);
        for file in files.values() {
            bytes += file.bytes;
            let turn = share(interval, bytes, bytes_total);
            let Some(wait) = turn.checked_sub(now) else { continue };
            sleep(wait)?;
            now = turn;
            let pause = |bytes: usize| sleep(Duration::from_secs(bytes as u64) / BYTES_PER_SECOND);
            self.prove(file, &mut found, |table| table.verify_but_filter(pause))?;
        }
        Ok(())
    }

    /// Proves the manifest and its copy; answers what it names.
    fn prove_manifest(&self, found: &mut Scrubbed) -> Result<Catalog> {
        let manifest = self.manifest();
        manifest.prove().try_for_each(|proved| self.count(found, proved))?;
        Ok(manifest.catalog().clone())
    }

    /// Proves a file, unless nothing names it any more.
    fn prove(&self, file: &FileEntry, found: &mut Scrubbed, verify: impl FnOnce(&Sstable) -> Result<()>) -> Result<()> {
        let Some(opened) = self.open_named(file) else { return Ok(()) };
        self.count(found, opened.and_then(|table| verify(&table)).map(|()| file.bytes))
    }

    /// Opens a file that is still named. What lets go of it then deletes its name: who has it open reads on.
    fn open_named(&self, file: &FileEntry) -> Option<Result<Sstable>> {
        let _hold = self.hold_files();
        let is_named = self.manifest().catalog().names_file(file.id);
        is_named.then(|| open_file(&*self.fs, &self.dir, file, &self.codecs, &self.cache))
    }

    fn count(&self, found: &mut Scrubbed, proved: Result<u64>) -> Result<()> {
        match proved {
            Ok(bytes) => {
                found.files_count += 1;
                found.bytes += bytes;
                self.counters.scrubbed_bytes.fetch_add(bytes, Ordering::Relaxed);
            }
            Err(error) if matches!(error, Error::Closed) || error.is_out_of_descriptors() => return Err(error),
            Err(error) => {
                tracing::error!(
                    error = with_causes(&error),
                    "a scrub met damage: `basalt repair` of the stopped server tells what can be had, a backup may have it whole"
                );
                self.counters.scrub_damages.fetch_add(1, Ordering::Relaxed);
                found.damages.push(error);
            }
        }
        Ok(())
    }
}

/// The part of an interval that so many of all bytes have.
fn share(interval: Duration, bytes: u64, bytes_total: u64) -> Duration {
    let nanos = interval.as_nanos().saturating_mul(bytes.into()) / u128::from(bytes_total);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
