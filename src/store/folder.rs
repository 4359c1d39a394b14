//! The data folder as a place: which disk it is on, and what must not lie in it. Looked at before anything is written.

use std::io;
use std::path::{Path, PathBuf, absolute};

use rustix::fs::statvfs;

use crate::config::{Config, StoreKind};
use crate::exit::{Exit, Failure};

/// Refuses a reserve that the whole disk has no room for: it would be written until the disk is full, again and again.
///
/// # Errors
///
/// Exit code 3.
pub(super) fn check_reserve(config: &Config) -> Result<(), Failure> {
    let reserve = config.store.reserve_bytes;
    if config.store.kind != StoreKind::Embedded || reserve == 0 {
        return Ok(());
    }
    // Where the disk does not tell, the folder will.
    let dir = &config.store.data_dir;
    let Ok(disk) = place(dir).and_then(|there| Ok(statvfs(&there)?)) else { return Ok(()) };
    let bytes = disk.f_blocks.saturating_mul(disk.f_frsize);
    if bytes == 0 || reserve < bytes {
        return Ok(());
    }
    let dir = dir.display();
    let line = format!("setting `store.reserve_bytes`: {reserve} bytes are more than the disk of {dir} has, {bytes}");
    Err(Failure::config(line))
}

/// What a full disk needs before writes are taken again.
#[derive(Debug)]
pub(super) struct DiskSpace {
    /// The data folder.
    pub(super) dir: PathBuf,
    /// Bytes, at most.
    pub(super) bytes_max: u64,
}

impl DiskSpace {
    /// The full disk in words: what is free and what is needed.
    pub(super) fn lack(&self) -> String {
        let free = statvfs(&self.dir).map_or_else(
            |_| String::new(),
            |disk| format!("{} MiB are free; ", disk.f_bavail.saturating_mul(disk.f_frsize) >> 20),
        );
        let wanted = self.bytes_max.div_ceil(1 << 20);
        format!(
            "the disk is full: {free}writes are taken by themselves when the reserve and the log fit, with up to {wanted} MiB"
        )
    }
}

/// Refuses a target of a backup that lies in the data folder, or holds more than files.
///
/// # Errors
///
/// Exit code 1.
pub(crate) fn check_target(config: &Config, target: &Path) -> Result<(), Failure> {
    check_outside(("data folder", &config.store.data_dir), target)?;
    check_no_folders(target)
}

/// Refuses a target that holds what the engine does not look at, which sees files alone: folders and links.
///
/// # Errors
///
/// Exit code 1.
pub(crate) fn check_no_folders(target: &Path) -> Result<(), Failure> {
    let is_other = |entry: std::fs::DirEntry| !entry.file_type().is_ok_and(|kind| kind.is_file());
    if std::fs::read_dir(target).is_ok_and(|entries| entries.flatten().any(is_other)) {
        return Err(Failure::new(Exit::Failure, format!("{} is not empty", target.display())));
    }
    Ok(())
}

/// Refuses a target that lies in what it is made of: what takes the folder would take it too.
///
/// # Errors
///
/// Exit code 1.
pub(crate) fn check_outside((what, dir): (&str, &Path), target: &Path) -> Result<(), Failure> {
    let is_inside = place(dir).and_then(|dir| Ok(place(target)?.starts_with(dir)));
    if !is_inside.unwrap_or(false) {
        return Ok(());
    }
    let (target, dir) = (target.display(), dir.display());
    let line = format!("{target} lies in the {what} {dir} and would be lost with it: name a folder elsewhere");
    Err(Failure::new(Exit::Failure, line))
}

/// Where a path is, or where it would be made: the nearest of its folders that is there, with no link in its name.
fn place(path: &Path) -> io::Result<PathBuf> {
    let path = absolute(path)?;
    let there = path.ancestors().find(|dir| dir.exists()).unwrap_or(Path::new("/"));
    there.canonicalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(dir: &Path) -> Config {
        let mut config = Config::default();
        config.store.data_dir = dir.to_path_buf();
        config
    }

    #[test]
    fn a_reserve_that_no_disk_has_is_refused_before_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        // Made at the first start.
        let mut config = config(&folder.path().join("a/b"));
        check_reserve(&config).unwrap();
        config.store.reserve_bytes = 1 << 60;
        let failure = check_reserve(&config).unwrap_err();
        assert_eq!(failure.exit, Exit::Config);
        assert!(failure.line.contains("setting `store.reserve_bytes`: 1152921504606846976 bytes"), "{failure}");
        config.store.kind = StoreKind::Memory;
        check_reserve(&config).unwrap();
    }

    #[test]
    fn a_full_disk_is_told_with_what_is_free_and_what_it_needs() {
        let folder = tempfile::tempdir().unwrap();
        let disk = DiskSpace { dir: folder.path().join("absent"), bytes_max: (64 << 20) - 1 };
        let needs = "writes are taken by themselves when the reserve and the log fit, with up to 64 MiB";
        assert_eq!(disk.lack(), format!("the disk is full: {needs}"));
        let said = DiskSpace { dir: folder.path().to_owned(), ..disk }.lack();
        let free = said.strip_prefix("the disk is full: ").and_then(|rest| rest.strip_suffix(needs)).unwrap();
        assert!(free.strip_suffix(" MiB are free; ").is_some_and(|free| free.parse::<u64>().is_ok()), "{said}");
    }

    #[test]
    fn a_backup_goes_neither_into_the_folder_nor_among_others() {
        let folder = tempfile::tempdir().unwrap();
        let (data, link) = (folder.path().join("data"), folder.path().join("link"));
        std::fs::create_dir(&data).unwrap();
        std::os::unix::fs::symlink(&data, &link).unwrap();
        let config = config(&data);
        for target in [data.join("monday"), data.join("a/b/c"), link.join("monday"), data.clone()] {
            assert_eq!(check_target(&config, &target).unwrap_err().exit, Exit::Failure, "{target:?}");
        }
        // Its files would lie among the folders that are there.
        let (folders, links) = (folder.path().join("folders"), folder.path().join("links"));
        std::fs::create_dir_all(folders.join("monday")).unwrap();
        std::fs::create_dir(&links).unwrap();
        std::os::unix::fs::symlink("nowhere", links.join("monday")).unwrap();
        for target in [folders, links] {
            let line = check_target(&config, &target).unwrap_err().line;
            assert_eq!(line, format!("{} is not empty", target.display()));
            check_target(&config, &target.join("tuesday")).unwrap();
        }
        for target in [folder.path().join("monday"), folder.path().join("data2/x")] {
            check_target(&config, &target).unwrap();
        }
    }
}
