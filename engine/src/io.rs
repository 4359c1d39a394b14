//! The only door to files, clock and chance.
//!
//! Every byte the engine reads or writes goes through [`FileSystem`] and
//! [`File`], every moment through [`Clock`](basalt_store::Clock), every draw through [`Rng`].
//! [`OsFs`] is the one place that calls the operating system; `SimFs` (feature
//! `sim`) replays, from a seed, any disk that a power loss may legally leave.
//! The seam cannot be added later, which is why it came first.
//!
//! Invariants:
//! - A file counts as present only after [`publish()`]: written aside, synced,
//!   renamed, folder synced. Nothing else is renamed but an old segment of the
//!   log that is used again, which goes aside first.
//! - A failed sync is final (see [`crate::Error::is_sync_failure`]): the kernel
//!   may have marked the pages clean, so a second sync would succeed over lost
//!   data. Nothing in the crate retries one.
//! - All methods take `&self`: a file is written at offsets that its owner keeps.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

mod clock;
mod dry;
mod op;
mod os;
mod publish;
mod rng;
#[cfg(any(test, feature = "sim"))]
mod sim;

pub use clock::SystemClock;
pub(crate) use dry::DryFs;
pub use op::IoOp;
pub use os::OsFs;
pub use publish::publish;
pub use rng::{Rng, SplitMix};
#[cfg(any(test, feature = "sim"))]
pub use sim::{Fault, FaultKind, FaultSpan, LossMode, SimFs};

/// One open file, read and written at offsets.
///
/// Shared by reference between threads. Two writers of one byte range are a bug
/// of the caller; readers of ranges already written are always fine.
pub trait File: Send + Sync + fmt::Debug {
    /// Reads up to `buf.len()` bytes at `offset`; 0 means the end of the file.
    ///
    /// # Errors
    /// What the operating system says.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize>;

    /// Writes all of `bytes` at `offset`, growing the file as needed.
    ///
    /// After an error any part of the range may have been written.
    ///
    /// # Errors
    /// What the operating system says; `StorageFull` when the disk is full.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Has bytes that were written set out for the disk, without waiting for them: a [`File::sync_data`] that comes later has
    /// less to wait for. It promises nothing, and a file that cannot does nothing.
    fn start_sync(&self, _offset: u64, _len: u64) {}

    /// Forces the file's bytes and its length to disk (`fdatasync`).
    ///
    /// # Errors
    /// Any error is final: the caller must not sync this file again.
    fn sync_data(&self) -> io::Result<()>;

    /// Cuts the file at `len`, or grows it with zeros.
    ///
    /// # Errors
    /// What the operating system says.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// The file's length in bytes.
    ///
    /// # Errors
    /// What the operating system says.
    fn len(&self) -> io::Result<u64>;

    /// Whether the file holds no byte.
    ///
    /// # Errors
    /// As [`File::len`].
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Fills `buf` from `offset`.
    ///
    /// # Errors
    /// `UnexpectedEof` when the file ends first.
    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let mut filled = 0;
        while let Some(rest) = buf.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.read_at(offset + filled as u64, rest)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => filled += read,
            }
        }
        Ok(())
    }

    /// Reserves real space for the first `len` bytes by writing zeros, so that
    /// later writes below `len` neither meet a full disk nor change metadata.
    ///
    /// Cost: `len` bytes of sequential writing. Not synced.
    ///
    /// # Errors
    /// As [`File::write_at`].
    fn preallocate(&self, len: u64) -> io::Result<()> {
        let zeros = vec![0_u8; PREALLOCATE_CHUNK_BYTES];
        let mut offset = self.len()?;
        while offset < len {
            let left = usize::try_from(len - offset).unwrap_or(usize::MAX);
            let chunk = zeros.get(..left.min(zeros.len())).unwrap_or(&zeros);
            self.write_at(offset, chunk)?;
            offset += chunk.len() as u64;
        }
        Ok(())
    }
}

/// Zeros are written in pieces of this size while a file is preallocated.
const PREALLOCATE_CHUNK_BYTES: usize = 256 * 1024;

/// Held as long as the process owns the data folder; dropping it releases.
pub trait FileLock: Send + Sync + fmt::Debug {}

/// The folder-level operations the engine needs, and no more.
///
/// Names are durable only after [`FileSystem::sync_dir`] of their folder.
pub trait FileSystem: Send + Sync + fmt::Debug {
    /// Makes a folder and its parents, for the user alone; fine when it is there already, which stays as it is.
    ///
    /// # Errors
    /// What the operating system says.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;

    /// Makes an empty file, open for reading and writing.
    ///
    /// A file of that name is emptied, under all its names: what is created so is an aside. Where another name of the file may be one
    /// of the store, see [`FileSystem::create_new`].
    ///
    /// # Errors
    /// What the operating system says.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>>;

    /// Makes an empty file where there is none of that name, open for reading and writing. Of several who try, one succeeds.
    ///
    /// # Errors
    /// `AlreadyExists`, and the file is as it was; what the operating system says.
    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn File>>;

    /// Opens an existing file for reading.
    ///
    /// # Errors
    /// `NotFound`, or what the operating system says.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>>;

    /// Opens an existing file for reading and writing.
    ///
    /// # Errors
    /// `NotFound`, or what the operating system says.
    fn open_rw(&self, path: &Path) -> io::Result<Arc<dyn File>>;

    /// Gives `from` the name `to`, replacing what `to` named. A file that is to be there for good is given its name by [`publish()`].
    ///
    /// # Errors
    /// What the operating system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Gives a file another name beside the one it has, on the same disk.
    ///
    /// # Errors
    /// `AlreadyExists` where `to` is a file already; what the operating system says, as `CrossesDevices` where a copy is needed.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Deletes a name.
    ///
    /// # Errors
    /// `NotFound`, or what the operating system says.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// The names of the files in a folder, sorted; folders are left out.
    ///
    /// # Errors
    /// What the operating system says.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// Forces a folder's names to disk.
    ///
    /// # Errors
    /// Any error is final, as with [`File::sync_data`].
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Takes the exclusive lock on `path`, which is made if absent, for the user alone.
    ///
    /// # Errors
    /// `WouldBlock` when another process (or another engine) holds it.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn FileLock>>;

    /// Whether a folder that is locked here is still what its name means: what is written to one that was moved, removed or hidden by
    /// a disk that was mounted over it, no next start finds. The operations above that change names ask this themselves, as a file of
    /// that name may be another store's by then.
    ///
    /// # Errors
    /// That it is not.
    fn check_locked(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }
}
