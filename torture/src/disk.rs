//! File systems of our own: a small tmpfs, or ext4 and XFS in an image file. They take root.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::daemon::pause;
use crate::verdict::skip;

/// Of an image, which is sparse; XFS takes no less than 300 MiB.
const IMAGE_BYTES: u64 = 512 << 20;
const UNMOUNTED_WITHIN: Duration = Duration::from_secs(20);

/// A mounted file system; unmounted at the end.
#[derive(Debug)]
pub(crate) struct Disk {
    at: PathBuf,
    /// Where its bytes are, unless in memory.
    image: Option<PathBuf>,
}

impl Disk {
    /// A tmpfs of so many MiB, mounted at `at`, or a skip.
    pub(crate) fn memory(at: &Path, mib: u64) -> Result<Disk> {
        std::fs::create_dir_all(at)?;
        let size = format!("size={mib}m");
        let mounted = run("mount", &["-t", "tmpfs", "-o", &size, "tmpfs"], &[at]);
        match mounted {
            Ok(_) => Ok(Disk { at: at.to_path_buf(), image: None }),
            Err(error) => skip(format!("a tmpfs cannot be mounted here: {error:#}")),
        }
    }

    /// A file system of `kind` in an image below `scratch`, or a skip.
    pub(crate) fn image(kind: &str, scratch: &Path) -> Result<Disk> {
        let image = scratch.join(format!("{kind}.img"));
        let at = scratch.join(kind);
        std::fs::create_dir_all(&at)?;
        File::create(&image)?.set_len(IMAGE_BYTES)?;
        let made = run(&format!("mkfs.{kind}"), &["-q"], &[&image]);
        let disk = Disk { at, image: Some(image) };
        match made.and_then(|_| disk.mount()) {
            Ok(()) => Ok(disk),
            Err(error) => skip(format!("{kind} cannot be mounted here: {error:#}")),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.at
    }

    /// Mounts the image again.
    pub(crate) fn mount(&self) -> Result<()> {
        let image = self.image.as_deref().context("no image")?;
        run("mount", &["-o", "loop"], &[image, &self.at]).map(drop)
    }

    pub(crate) fn unmount(&self) -> Result<()> {
        let begun = Instant::now();
        loop {
            match run("umount", &[], &[&self.at]) {
                Ok(_) => return Ok(()),
                // The last of a killed process may still be going.
                Err(_) if begun.elapsed() < UNMOUNTED_WITHIN => pause(Duration::from_millis(20)),
                Err(error) => return Err(error),
            }
        }
    }

    /// What a neighbour does: writes until there are only so many bytes left.
    pub(crate) fn fill(&self, leave_bytes: u64) -> Result<()> {
        let mut file = File::create(self.ballast())?;
        let ballast = vec![0x5a; 64 << 10];
        while file.write_all(&ballast).is_ok() {}
        while file.write_all(ballast.get(..1).unwrap_or_default()).is_ok() {}
        let len = file.metadata()?.len();
        Ok(file.set_len(len.saturating_sub(leave_bytes))?)
    }

    /// The neighbour goes.
    pub(crate) fn free(&self) -> Result<()> {
        Ok(std::fs::remove_file(self.ballast())?)
    }

    fn ballast(&self) -> PathBuf {
        self.at.join("ballast")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(run("umount", &["-l"], &[&self.at]));
    }
}

/// Runs a tool to its end; answers what it said.
pub(crate) fn run(tool: &str, arguments: &[&str], paths: &[&Path]) -> Result<String> {
    let paths = paths.iter().map(|path| path.as_os_str());
    let all: Vec<&OsStr> = arguments.iter().map(OsStr::new).chain(paths).collect();
    let output = Command::new(tool).args(all).output().with_context(|| format!("cannot run {tool}"))?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    ensure!(output.status.success(), "{tool}: {said}");
    Ok(said)
}
