//! The operating system's files: the only caller of `std::fs` in the crate.

use std::fs;
use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, FileExt, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::{File, FileLock, FileSystem};

/// Real files, through `pread`, `pwrite` and `fdatasync`.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsFs;

#[derive(Debug)]
struct OsFile(fs::File);

impl File for OsFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(buf, offset)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    #[cfg(target_os = "linux")]
    #[expect(unsafe_code, reason = "a call that no library wraps")]
    fn start_sync(&self, offset: u64, len: u64) {
        let (Ok(offset), Ok(len)) = (libc::off64_t::try_from(offset), libc::off64_t::try_from(len)) else { return };
        // SAFETY: the call reads no memory of ours, and the descriptor is open as long as `self.0` is.
        let _answer = unsafe { libc::sync_file_range(self.0.as_raw_fd(), offset, len, libc::SYNC_FILE_RANGE_WRITE) };
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
}

/// Folders that are locked here. Leaf lock.
static LOCKED: Mutex<Vec<Weak<Folder>>> = Mutex::new(Vec::new());

/// A folder that is open, and the name that it was locked by.
#[derive(Debug)]
struct Folder {
    open: fs::File,
    path: PathBuf,
}

/// Advisory locks of the kernel's, on the file and on its folder; they die with the process, however it ends.
#[derive(Debug)]
struct OsLock {
    held: fs::File,
    folder: fs::File,
    /// The lock's folder is open as long as it is held: a sync of it must not fail for want of a descriptor.
    _dir: Arc<Folder>,
}

impl FileLock for OsLock {}

impl Drop for OsLock {
    /// A process that was begun meanwhile may have copies of the descriptors for a moment, and a lock ends with the last of them unless
    /// it is told to. The folder first: who has the name is not to find the folder held.
    fn drop(&mut self) {
        for file in [&self.folder, &self.held] {
            // What cannot be unlocked ends with its descriptors.
            drop(file.unlock());
        }
    }
}

impl FileSystem for OsFs {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        // A folder is there for good when the one that holds it was synced: whoever makes some syncs all of those.
        let missing: Vec<&Path> =
            dir.ancestors().take_while(|dir| !dir.as_os_str().is_empty() && !dir.is_dir()).collect();
        // Who may read a store's files reads its points past all tokens: a folder that is made is its user's own.
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(|cause| match cause.kind() {
            // The system says "File exists", also of a link to nothing.
            io::ErrorKind::AlreadyExists => {
                io::Error::new(io::ErrorKind::NotADirectory, "what has this name is no folder")
            }
            _ => cause,
        })?;
        missing.into_iter().rev().try_for_each(|made| self.sync_dir(parent(made)))
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.check_locked(parent(path))?;
        let file = fs::OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
        Ok(Arc::new(OsFile(file)))
    }

    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.check_locked(parent(path))?;
        Ok(Arc::new(OsFile(fs::OpenOptions::new().read(true).write(true).create_new(true).open(path)?)))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        // A folder opens, and does not read: then it would be a damaged file, and not one that is left alone.
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "what has this name is no file"));
        }
        Ok(Arc::new(OsFile(fs::File::open(path)?)))
    }

    fn open_rw(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        self.check_locked(parent(path))?;
        Ok(Arc::new(OsFile(fs::OpenOptions::new().read(true).write(true).open(path)?)))
    }

    #[expect(clippy::disallowed_methods, reason = "who gives a file its name for good calls publish, which also syncs")]
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.check_locked(parent(to))?;
        fs::rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        [from, to].into_iter().try_for_each(|path| self.check_locked(parent(path)))?;
        fs::hard_link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.check_locked(parent(path))?;
        fs::remove_file(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            if entry.file_type()?.is_file()
                && let Ok(name) = entry.file_name().into_string()
            {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        match locked(dir)? {
            Some(folder) => folder.open.sync_all(),
            None => fs::File::open(dir)?.sync_all(),
        }
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn FileLock>> {
        Ok(Box::new(OsLock::take(path)?))
    }

    fn check_locked(&self, dir: &Path) -> io::Result<()> {
        let held: Vec<_> = all_locked().into_iter().filter(|folder| folder.path == dir).collect();
        // Where nobody can tell, what is done next tells.
        if held.is_empty() || held.iter().any(|folder| is_named(&folder.open, dir).unwrap_or(true)) {
            return Ok(());
        }
        Err(io::Error::other("the folder was moved, removed or replaced while it was in use: bring it back first"))
    }
}

impl OsLock {
    fn take(path: &Path) -> io::Result<Self> {
        // Who may open it, to read only, may hold it, and keep the store from being opened.
        let made = fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
        // Read only here, it may be held where it can be written.
        let file = made.or_else(|cause| match cause.kind() {
            io::ErrorKind::ReadOnlyFilesystem => fs::File::open(path).map_err(|_| cause),
            _ => Err(cause),
        })?;
        // Who made it may take it away while it is held: without its name it holds nobody off.
        if !is_locked_now(&file)? || !is_named(&file, path)? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let dir = parent(path);
        // The name may have been taken from one that is held: the folder is held too, by a descriptor that nobody else keeps open. Not
        // every file system knows that, as NFS.
        let folder = fs::File::open(dir)?;
        if !is_locked_now(&folder).unwrap_or(true) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let dir = Arc::new(Folder { open: fs::File::open(dir)?, path: dir.to_path_buf() });
        let mut locked = LOCKED.lock().unwrap_or_else(PoisonError::into_inner);
        locked.retain(|open| open.strong_count() > 0);
        locked.push(Arc::downgrade(&dir));
        Ok(Self { held: file, folder, _dir: dir })
    }
}

/// Locks a file or a folder; false where another has it.
fn is_locked_now(file: &fs::File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(fs::TryLockError::WouldBlock) => Ok(false),
        Err(fs::TryLockError::Error(source)) => Err(source),
    }
}

/// A folder that is open, as it is locked.
fn locked(dir: &Path) -> io::Result<Option<Arc<Folder>>> {
    for folder in all_locked() {
        // By what it is, not by name: another folder may have come in its place.
        if is_named(&folder.open, dir)? {
            return Ok(Some(folder));
        }
    }
    Ok(None)
}

fn all_locked() -> Vec<Arc<Folder>> {
    LOCKED.lock().unwrap_or_else(PoisonError::into_inner).iter().filter_map(Weak::upgrade).collect()
}

/// The folder that a name is in.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether `path` still means this file.
fn is_named(file: &fs::File, path: &Path) -> io::Result<bool> {
    let held = file.metadata()?;
    match fs::metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (held.dev(), held.ino())),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(cause) => Err(cause),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::publish;

    #[test]
    fn a_name_that_is_taken_by_no_folder_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        for taken in [&file, &link] {
            assert_eq!(OsFs.create_dir_all(taken).unwrap_err().to_string(), "what has this name is no folder");
        }
        OsFs.create_dir_all(dir.path()).unwrap();
    }

    #[test]
    fn a_lock_that_ends_is_free_whoever_has_copies_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        let lock = OsLock::take(&path).unwrap();
        // As a process has them that was forked and is not executed yet.
        let copies = [&lock.held, &lock.folder].map(|file| file.try_clone().unwrap());
        assert_eq!(OsFs.lock(&path).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(lock);
        OsFs.lock(&path).unwrap();
        drop(copies);
    }

    #[test]
    fn what_is_no_file_is_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let (socket, absent) = (dir.path().join("socket"), dir.path().join("absent"));
        let _bound = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for taken in [dir.path(), &socket] {
            assert_eq!(OsFs.open(taken).unwrap_err().to_string(), "what has this name is no file");
        }
        assert_eq!(OsFs.open(&absent).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn what_is_made_for_a_store_is_for_its_user_alone() {
        let dir = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        let (there, new) = (dir.path().join("a"), dir.path().join("a/b/c"));
        fs::DirBuilder::new().mode(0o755).create(&there).unwrap();
        let before = mode(&there);
        OsFs.create_dir_all(&new).unwrap();
        let _lock = OsFs.lock(&new.join("LOCK")).unwrap();
        assert_eq!((mode(&there.join("b")), mode(&new), mode(&new.join("LOCK"))), (0o700, 0o700, 0o600));
        OsFs.create_dir_all(&there).unwrap();
        assert_eq!(mode(&there), before, "one that is there stays as it is");
    }

    #[test]
    fn second_lock_of_a_folder_would_block() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        let held = OsFs.lock(&path).unwrap();
        assert_eq!(OsFs.lock(&path).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(held);
        OsFs.lock(&path).unwrap();
    }

    /// As by who takes it for one that was left behind.
    #[test]
    fn a_folder_stays_locked_without_its_lock_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        let held = OsFs.lock(&path).unwrap();
        for _ in 0..2 {
            OsFs.remove(&path).unwrap();
            assert_eq!(OsFs.lock(&path).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        }
        // Who syncs a folder, this one or another, has it open for a while.
        let syncing = locked(dir.path()).unwrap();
        drop(held);
        OsFs.lock(&path).unwrap();
        drop(syncing);
    }

    #[test]
    fn a_locked_folder_is_synced_without_opening_it() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let lock = OsFs.lock(&one.path().join("LOCK")).unwrap();
        assert!(locked(one.path()).unwrap().is_some() && locked(other.path()).unwrap().is_none());
        OsFs.sync_dir(one.path()).unwrap();
        OsFs.sync_dir(other.path()).unwrap();
        drop(lock);
        assert!(locked(one.path()).unwrap().is_none());
    }

    /// A store was begun anew in a folder of the old one's name, and the old one, on its way out, deleted the log of the new one.
    #[test]
    fn a_locked_folder_that_lost_its_name_changes_nothing_in_the_one_that_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let (store, moved) = (dir.path().join("store"), dir.path().join("moved"));
        fs::create_dir(&store).unwrap();
        let (log, other) = (store.join("log"), store.join("other"));
        let _lock = OsFs.lock(&store.join("LOCK")).unwrap();
        OsFs.create_new(&log).unwrap();
        OsFs.rename(&store, &moved).unwrap();
        assert!(OsFs.check_locked(&store).is_err(), "nothing has the name");
        fs::create_dir(&store).unwrap();
        fs::write(&log, "of another").unwrap();
        let refused = [
            OsFs.create(&log).map(drop),
            OsFs.create_new(&other).map(drop),
            OsFs.open_rw(&log).map(drop),
            OsFs.rename(&log, &other),
            OsFs.link(&log, &other),
            OsFs.remove(&log),
        ];
        for refused in refused {
            assert!(refused.unwrap_err().to_string().starts_with("the folder was moved"));
        }
        assert_eq!(
            (OsFs.list(&store).unwrap(), fs::read(&log).unwrap()),
            (vec!["log".to_owned()], b"of another".to_vec())
        );
        // Who has it now is not held off.
        let _new = OsFs.lock(&store.join("LOCK")).unwrap();
        OsFs.remove(&log).unwrap();
    }

    #[test]
    fn a_lock_that_lost_its_name_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("LOCK");
        drop(OsFs.lock(&path).unwrap());
        let file = fs::File::open(&path).unwrap();
        assert!(is_named(&file, &path).unwrap());
        OsFs.remove(&path).unwrap();
        assert!(!is_named(&file, &path).unwrap());
        let _other = OsFs.lock(&path).unwrap();
        assert!(!is_named(&file, &path).unwrap());
    }

    #[test]
    fn a_file_that_is_there_is_not_made_anew() {
        let dir = tempfile::tempdir().unwrap();
        let (one, other) = (dir.path().join("a"), dir.path().join("b"));
        OsFs.create_new(&one).unwrap().write_at(0, b"x").unwrap();
        OsFs.link(&one, &other).unwrap();
        for refused in [OsFs.create_new(&other).map(drop), OsFs.link(&one, &other)] {
            assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        }
        assert_eq!(OsFs.open(&one).unwrap().len().unwrap(), 1);
    }

    #[test]
    fn published_file_has_its_bytes_and_no_aside() {
        let dir = tempfile::tempdir().unwrap();
        let (aside, target) = (dir.path().join("a.tmp"), dir.path().join("a"));
        let file = OsFs.create(&aside).unwrap();
        file.preallocate(10).unwrap();
        file.write_at(2, b"xyz").unwrap();
        publish(&OsFs, &*file, &aside, &target).unwrap();
        assert_eq!(OsFs.list(dir.path()).unwrap(), ["a"]);
        let mut bytes = [9_u8; 10];
        OsFs.open(&target).unwrap().read_exact_at(0, &mut bytes).unwrap();
        assert_eq!(&bytes, b"\0\0xyz\0\0\0\0\0");
        assert!(OsFs.open(&target).unwrap().read_exact_at(5, &mut bytes).is_err());
    }
}
