//! The data folder as a place: what must not lie in it. Looked at before anything is written.

use std::io;
use std::path::{Path, PathBuf, absolute};

use crate::config::Config;
use crate::exit::{Exit, Failure};

/// Refuses a target of a backup that lies in the data folder: what takes the folder would take the backup too.
///
/// # Errors
///
/// Exit code 1.
pub(crate) fn check_target(config: &Config, target: &Path) -> Result<(), Failure> {
    let dir = &config.store.data_dir;
    let is_inside = place(dir).and_then(|dir| Ok(place(target)?.starts_with(dir)));
    if !is_inside.unwrap_or(false) {
        return Ok(());
    }
    let (target, dir) = (target.display(), dir.display());
    let line = format!("{target} lies in the data folder {dir} and would be lost with it: name a folder elsewhere");
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
    fn a_backup_does_not_go_into_the_folder_itself() {
        let folder = tempfile::tempdir().unwrap();
        let (data, link) = (folder.path().join("data"), folder.path().join("link"));
        std::fs::create_dir(&data).unwrap();
        std::os::unix::fs::symlink(&data, &link).unwrap();
        let config = config(&data);
        for target in [data.join("monday"), data.join("a/b/c"), link.join("monday"), data.clone()] {
            assert_eq!(check_target(&config, &target).unwrap_err().exit, Exit::Failure, "{target:?}");
        }
        for target in [folder.path().join("monday"), folder.path().join("data2/x")] {
            check_target(&config, &target).unwrap();
        }
    }
}
