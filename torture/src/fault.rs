//! Faults under the real daemon: a library of our own that is loaded before the system's.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use anyhow::Result;

use crate::daemon::Program;
use crate::disk::run;
use crate::verdict::skip;

/// What is to fail, as `fault/shim.c` numbers it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Failing {
    Nothing = 0,
    NextSync = 1,
    EverySync = 2,
    NextWrite = 3,
    EveryWrite = 4,
}

/// The words shared with the library.
#[derive(Debug)]
pub(crate) struct Faults {
    control: File,
}

impl Faults {
    /// Compiles the library and has the program start with it; a skip where there is no C compiler.
    pub(crate) fn under(program: &mut Program) -> Result<Faults> {
        let (source, library) = (program.scratch().join("shim.c"), program.scratch().join("shim.so"));
        std::fs::write(&source, include_str!("fault/shim.c"))?;
        if let Err(error) = run("cc", &["-shared", "-fPIC", "-O1", "-o"], &[&library, &source]) {
            return skip(format!("the faults' library cannot be compiled: {error:#}"));
        }
        let control = program.scratch().join("faults");
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&control)?;
        file.set_len(4096)?;
        program.environment.push(("LD_PRELOAD".to_owned(), library));
        program.environment.push(("TORTURE_FAULTS".to_owned(), control));
        Ok(Faults { control: file })
    }

    /// From now on: what fails, and after how many such calls.
    pub(crate) fn set(&self, failing: Failing, after_calls: i64) -> Result<()> {
        for word in 3..7 {
            self.write(word, 0)?;
        }
        self.write(1, after_calls)?;
        self.write(0, failing as i64)
    }

    /// Adds so much to the wall clock.
    pub(crate) fn set_clock(&self, seconds: i64) -> Result<()> {
        self.write(2, seconds)
    }

    /// When the first call failed, in nanoseconds since 1970; `None` while none has.
    pub(crate) fn failed_at_ns(&self) -> Result<Option<u64>> {
        Ok(u64::try_from(self.read(3)?).ok().filter(|at| *at > 0))
    }

    /// How often the file whose sync failed was synced again.
    pub(crate) fn retried(&self) -> Result<i64> {
        self.read(5)
    }

    /// The name of the file whose call failed first, while it is there.
    pub(crate) fn failed_file(&self, folder: &Path) -> Result<String> {
        let inode = self.read(6)?;
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            if i64::try_from(entry.metadata()?.ino()) == Ok(inode) {
                return Ok(entry.file_name().to_string_lossy().into_owned());
            }
        }
        Ok(format!("inode {inode}, which is gone"))
    }

    fn write(&self, word: u64, value: i64) -> Result<()> {
        Ok(self.control.write_all_at(&value.to_le_bytes(), word * 8)?)
    }

    fn read(&self, word: u64) -> Result<i64> {
        let mut bytes = [0; 8];
        self.control.read_exact_at(&mut bytes, word * 8)?;
        Ok(i64::from_le_bytes(bytes))
    }
}
