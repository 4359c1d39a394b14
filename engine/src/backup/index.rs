//! The `BACKUP` file: which files a backup consists of. Byte map: `docs/formats/backup.md`.
//!
//! Lines of text, so that a person can read it and `grep` it; the last line sums the others. It is made aside before anything else of
//! a backup: by that a folder is taken.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::io::{File, FileSystem, IoOp, publish};

/// The file that makes a folder a backup.
pub(super) const INDEX: &str = "BACKUP";
/// The index until it is published.
pub(super) const ASIDE: &str = "BACKUP.tmp";
/// Behind it the first line has the version.
const KIND: &str = "basalt backup ";
const VERSION: u32 = 1;
/// A longer one is none.
const INDEX_BYTES_MAX: u64 = 256 << 20;

/// What a backup consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BackupIndex {
    pub(super) created_ms: u64,
    pub(super) sequence: u64,
    pub(super) files: Vec<IndexedFile>,
}

/// A file of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IndexedFile {
    /// A plain name: nothing of it leaves the folder.
    pub(super) name: String,
    pub(super) bytes: u64,
    /// CRC-32C of the whole file.
    pub(super) crc: u32,
}

impl BackupIndex {
    /// Takes a folder, which must be absent or empty, for one backup; answers the file to publish its index in.
    ///
    /// # Errors
    /// `NotEmpty`; `HalfBackedUp`; any I/O error.
    pub(super) fn begin(fs: &dyn FileSystem, dir: &Path) -> Result<Arc<dyn File>> {
        check_empty(fs, dir)?;
        let aside = dir.join(ASIDE);
        let file = match fs.create_new(&aside) {
            Err(source) if source.kind() == ErrorKind::AlreadyExists => {
                return Err(Error::HalfBackedUp { dir: dir.to_path_buf() });
            }
            made => made.map_err(Error::io(IoOp::Create, &aside))?,
        };
        // A whole backup may have been written since the look.
        let names = fs.list(dir).map_err(Error::io(IoOp::List, dir))?;
        if names != [ASIDE] {
            BackupIndex::give_up(fs, dir, &[]);
            return Err(Error::NotEmpty { dir: dir.to_path_buf() });
        }
        Ok(file)
    }

    /// Gives back a folder that was taken, without the files that were `made` in it; what else is in it stays.
    pub(super) fn give_up(fs: &dyn FileSystem, dir: &Path, made: &[String]) {
        // Without it, it is a backup by now, or another folder has its name, such as the store's own.
        if !fs.list(dir).is_ok_and(|names| names.iter().any(|name| name == ASIDE)) {
            return;
        }
        let remove = |name: &String| match fs.remove(&dir.join(name)) {
            Err(source) => source.kind() == ErrorKind::NotFound,
            Ok(()) => true,
        };
        // All of them, also behind one that stays: space is given back.
        let removed: Vec<bool> = made.iter().map(remove).collect();
        // Last: where one stays, the folder says that it is no backup, and none goes into it.
        if !removed.contains(&false) {
            drop(fs.remove(&dir.join(ASIDE)));
        }
    }

    /// Publishes it in the file by which the folder was taken: from then on the folder is a backup.
    pub(super) fn publish(&self, fs: &dyn FileSystem, file: &dyn File, dir: &Path) -> Result<()> {
        let (aside, target) = (dir.join(ASIDE), dir.join(INDEX));
        // The names of the other files first: no index may name what a power loss could take away.
        fs.sync_dir(dir).map_err(Error::io(IoOp::SyncDir, dir))?;
        file.write_at(0, self.encode().as_bytes()).map_err(Error::io(IoOp::Write, &aside))?;
        publish(fs, file, &aside, &target)
    }

    /// Reads the index of a folder.
    ///
    /// # Errors
    /// `NoBackup`; `Version`; `Corrupt` with the place that does not read.
    pub(super) fn read(fs: &dyn FileSystem, dir: &Path) -> Result<BackupIndex> {
        let path = dir.join(INDEX);
        let file = match fs.open(&path) {
            Err(source) if source.kind() == ErrorKind::NotFound => {
                return Err(Error::NoBackup { dir: dir.to_path_buf() });
            }
            opened => opened.map_err(Error::io(IoOp::Open, &path))?,
        };
        let len = file.len().map_err(Error::io(IoOp::Len, &path))?;
        let corrupt = |offset: usize, what, expected, found| Error::Corrupt {
            file: path.clone(),
            offset: offset as u64,
            what,
            expected,
            found,
        };
        if len > INDEX_BYTES_MAX {
            return Err(corrupt(0, "length of a backup's index", INDEX_BYTES_MAX, len));
        }
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
        file.read_exact_at(0, &mut bytes).map_err(Error::io(IoOp::Read, &path))?;
        let text = std::str::from_utf8(&bytes).map_err(|error| corrupt(error.valid_up_to(), "text", 1, 0))?;
        // The sum first: nothing is believed before it.
        let end = text.rfind("end ").filter(|at| *at == 0 || text.as_bytes().get(at - 1) == Some(&b'\n'));
        let end = end.ok_or_else(|| corrupt(bytes.len(), "last line of a backup's index", 1, 0))?;
        let (covered, last) = text.split_at_checked(end).unwrap_or_default();
        let told = last.strip_suffix('\n').and_then(|last| u32::from_str_radix(last.split(' ').nth(2)?, 16).ok());
        let expected = crc32c::crc32c(covered.as_bytes());
        if told != Some(expected) {
            let found = told.unwrap_or(0).into();
            return Err(corrupt(end, "checksum of a backup's index", expected.into(), found));
        }
        let version = covered.lines().next().and_then(|line| line.strip_prefix(KIND)?.parse().ok());
        if let Some(found) = version.filter(|version| *version > VERSION) {
            return Err(Error::Version { file: path, found, supported: VERSION });
        }
        let index = BackupIndex::decode(covered).ok_or_else(|| corrupt(0, "layout of a backup's index", 1, 0))?;
        let count = last.split(' ').nth(1).and_then(|count| count.parse().ok()).unwrap_or(0_u64);
        if index.files.len() as u64 == count {
            Ok(index)
        } else {
            Err(corrupt(end, "number of files in a backup's index", index.files.len() as u64, count))
        }
    }

    /// Bytes of all files, as it tells: what they are is seen later.
    pub(super) fn bytes_total(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.bytes))
    }

    pub(super) fn encode(&self) -> String {
        let mut lines = vec![
            format!("{KIND}{VERSION}"),
            format!("created {}", self.created_ms),
            format!("sequence {}", self.sequence),
        ];
        lines.extend(self.files.iter().map(|file| format!("file {} {} {:08x}", file.name, file.bytes, file.crc)));
        let mut text = lines.join("\n");
        text.push('\n');
        let crc = crc32c::crc32c(text.as_bytes());
        format!("{text}end {} {crc:08x}\n", self.files.len())
    }

    fn decode(text: &str) -> Option<BackupIndex> {
        let mut lines = text.lines();
        (lines.next()?.strip_prefix(KIND)? == VERSION.to_string()).then_some(())?;
        let created_ms = lines.next()?.strip_prefix("created ")?.parse().ok()?;
        let sequence = lines.next()?.strip_prefix("sequence ")?.parse().ok()?;
        let file = |line: &str| {
            let mut words = line.strip_prefix("file ")?.split(' ');
            let name = words.next().filter(|name| is_plain(name))?.to_owned();
            let bytes = words.next()?.parse().ok()?;
            let crc = u32::from_str_radix(words.next()?, 16).ok()?;
            words.next().is_none().then_some(IndexedFile { name, bytes, crc })
        };
        Some(BackupIndex { created_ms, sequence, files: lines.map(file).collect::<Option<_>>()? })
    }
}

/// Makes a folder if need be, and refuses one that holds something.
pub(super) fn check_empty(fs: &dyn FileSystem, dir: &Path) -> Result<()> {
    fs.create_dir_all(dir).map_err(Error::io(IoOp::Create, dir))?;
    let names = fs.list(dir).map_err(Error::io(IoOp::List, dir))?;
    if names.iter().any(|name| name == ASIDE) {
        return Err(Error::HalfBackedUp { dir: dir.to_path_buf() });
    }
    if names.is_empty() { Ok(()) } else { Err(Error::NotEmpty { dir: dir.to_path_buf() }) }
}

/// Whether a name stays within its folder.
fn is_plain(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::io::{OsFs, SimFs};

    fn index() -> BackupIndex {
        let file = |name: &str, bytes, crc| IndexedFile { name: name.into(), bytes, crc };
        let files = vec![file("sst-0000000000000001.sst", 7703, 0xdead_beef), file("MANIFEST", 99, 1)];
        BackupIndex { created_ms: 1_700_000_000_000, sequence: 42, files }
    }

    fn read(text: &[u8]) -> Result<BackupIndex> {
        let fs = SimFs::new(1);
        let file: Arc<dyn File> = fs.create(&Path::new("/b").join(INDEX)).unwrap();
        file.write_at(0, text).unwrap();
        BackupIndex::read(&fs, Path::new("/b"))
    }

    #[test]
    fn an_index_comes_back_and_every_flipped_bit_is_noticed() {
        let text = index().encode();
        assert_eq!(read(text.as_bytes()).unwrap(), index());
        for at in 0..text.len() {
            for bit in 0..8 {
                let mut bytes = text.clone().into_bytes();
                bytes[at] ^= 1 << bit;
                // A hexadecimal digit may be written in two ways.
                assert!(read(&bytes).is_err() || read(&bytes).unwrap() == index(), "byte {at}, bit {bit}");
            }
            assert!(read(&text.as_bytes()[..at]).is_err(), "cut at {at}");
        }
    }

    /// That of a later program is not damaged.
    #[test]
    fn an_index_of_a_later_version_is_refused_by_its_number() {
        let text = index().encode().replace("backup 1", "backup 2");
        assert!(matches!(read(text.as_bytes()), Err(Error::Corrupt { .. })), "the sum goes first");
        let (covered, _) = text.split_at(text.rfind("end ").unwrap());
        let text = format!("{covered}end 2 {:08x}\n", crc32c::crc32c(covered.as_bytes()));
        let told = read(text.as_bytes()).unwrap_err();
        assert!(matches!(told, Error::Version { found: 2, supported: 1, .. }), "{told}");
    }

    #[test]
    fn names_that_leave_the_folder_are_refused() {
        for name in ["../x", "/etc/passwd", ".x", "", "a/b", "a\\b"] {
            let mut index = index();
            index.files[0].name = name.into();
            assert!(read(index.encode().as_bytes()).is_err(), "{name:?}");
        }
    }

    /// By one backup, until that is done or gives up.
    #[test]
    fn a_folder_is_taken_once() {
        let (fs, dir) = (SimFs::new(1), Path::new("/b"));
        let is_taken = || matches!(BackupIndex::begin(&fs, dir), Err(Error::HalfBackedUp { .. }));
        drop(BackupIndex::begin(&fs, dir).unwrap());
        assert!(is_taken());
        BackupIndex::give_up(&fs, dir, &[]);
        let file = BackupIndex::begin(&fs, dir).unwrap();
        assert!(is_taken());
        index().publish(&fs, &*file, dir).unwrap();
        BackupIndex::give_up(&fs, dir, &[INDEX.to_owned()]);
        assert!(matches!(BackupIndex::begin(&fs, dir), Err(Error::NotEmpty { .. })));
        assert_eq!(BackupIndex::read(&fs, dir).unwrap(), index());
    }

    /// Also where several look at it at once, of whatever process.
    #[test]
    fn a_folder_is_taken_by_one_of_many() {
        for _ in 0..200 {
            let (dir, start) = (tempfile::tempdir().unwrap(), std::sync::Barrier::new(2));
            let begin = || {
                start.wait();
                BackupIndex::begin(&OsFs, dir.path()).is_ok()
            };
            let both = std::thread::scope(|scope| {
                let other = scope.spawn(begin);
                (begin(), other.join().unwrap())
            });
            assert!(both.0 != both.1, "{both:?}");
        }
    }

    /// It is told before any of them is looked at.
    #[test]
    fn lengths_of_files_are_not_believed() {
        let fs = SimFs::new(1);
        let mut index = index();
        index.files[0].bytes = u64::MAX;
        let file = BackupIndex::begin(&fs, Path::new("/b")).unwrap();
        index.publish(&fs, &*file, Path::new("/b")).unwrap();
        let restored = crate::restore(&fs, Path::new("/b"), Path::new("/r"), &mut |_| {});
        assert!(matches!(restored, Err(Error::Missing { bytes: u64::MAX, .. })), "{restored:?}");
    }
}
