//! A disk in memory that remembers what was never synced.
//!
//! [`SimFs`] behaves as a file system does until [`SimFs::power_loss`], which
//! answers another disk: one that the drives and file systems of the world may
//! legally leave behind. Everything is drawn from a seed, so a failure replays.
//!
//! What a loss may do, by [`LossMode`]:
//! - a write not synced is kept, dropped, or torn at 512-byte sectors;
//! - a file that grew without sync keeps its old length, or the new one with
//!   zeros or junk where the bytes did not arrive;
//! - a create, rename or remove whose folder was not synced is kept or undone;
//! - `Ordered` keeps a prefix of all this, `Hostile` any subset.
//!
//! What was synced is always kept. The old disk is dead afterwards: every call
//! on it fails, so threads of the crashed engine cannot touch the new one.
//!
//! Faults ([`Fault`]) fail the n-th call from now, once or from then on, and
//! [`SimFs::set_capacity`] makes the disk full.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{File, FileLock, FileSystem, IoOp, Rng, SplitMix};

mod inode;
mod loss;
#[cfg(test)]
mod tests;

use inode::{FileEdit, Inode};

/// How much of the unsynced state a power loss may reorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossMode {
    /// Unsynced operations of each file and folder survive as a prefix.
    Ordered,
    /// Any subset of them survives, writes torn at any sector.
    Hostile,
}

/// What an injected fault answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// Input/output error.
    Eio,
    /// No space left; changes only, reads and syncs are let through.
    Enospc,
    /// No space left, told by a sync, as thin disks and remote file systems do: a failed sync like any other. Syncs only.
    EnospcOfSync,
    /// Mounted to be read only; every change fails.
    Erofs,
    /// No descriptor left; only what makes or opens a file fails.
    Emfile,
    /// The machine stops: this call and every later one fail until
    /// [`SimFs::power_loss`] makes the next disk.
    Crash,
}

/// Whether a fault passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultSpan {
    /// One call fails.
    Once,
    /// Every call fails from then on, until the fault is cleared.
    FromThenOn,
}

/// A fault to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// How many changing calls (writes, syncs, names) still succeed.
    pub after_calls: u64,
    /// What the failing call answers.
    pub kind: FaultKind,
    /// Once, or from then on.
    pub span: FaultSpan,
}

type InodeId = usize;

/// A change of a folder's names; one call is one change, whole or not at all.
#[derive(Debug, Clone)]
enum NameEdit {
    Link { path: PathBuf, inode: InodeId },
    Move { from: PathBuf, to: PathBuf, inode: InodeId },
    Unlink { path: PathBuf },
}

impl NameEdit {
    fn apply(&self, names: &mut BTreeMap<PathBuf, InodeId>) {
        match self {
            NameEdit::Link { path, inode } => {
                names.insert(path.clone(), *inode);
            }
            NameEdit::Move { from, to, inode } => {
                names.remove(from);
                names.insert(to.clone(), *inode);
            }
            NameEdit::Unlink { path } => {
                names.remove(path);
            }
        }
    }

    fn dir(&self) -> Option<&Path> {
        match self {
            NameEdit::Link { path, .. } | NameEdit::Unlink { path } => path.parent(),
            NameEdit::Move { to, .. } => to.parent(),
        }
    }
}

#[derive(Debug)]
struct Disk {
    inodes: Vec<Inode>,
    /// What a lookup finds now.
    names: BTreeMap<PathBuf, InodeId>,
    /// What a lookup finds after the kindest loss of everything unsynced.
    synced_names: BTreeMap<PathBuf, InodeId>,
    /// From `synced_names` to `names`, in order.
    name_edits: Vec<NameEdit>,
    dirs: BTreeSet<PathBuf>,
    locked: BTreeSet<PathBuf>,
    capacity_bytes: u64,
    fault: Option<Fault>,
    dead: bool,
    calls: u64,
    /// What was set out for the disk.
    set_out: Vec<(InodeId, Range<u64>)>,
    rng: SplitMix,
}

/// The simulated file system. Clones share one disk.
#[derive(Debug, Clone)]
pub struct SimFs {
    /// Guards the whole disk; rank: below every lock of the engine.
    disk: Arc<Mutex<Disk>>,
    meanwhile: Arc<Mutex<Meanwhile>>,
}

/// What is done before the next read, by the thread that reads.
#[derive(Default)]
struct Meanwhile(Option<Box<dyn FnOnce() + Send>>);

impl std::fmt::Debug for Meanwhile {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("Meanwhile").field(&self.0.is_some()).finish()
    }
}

impl SimFs {
    /// An empty disk without bound whose losses and junk are drawn from `seed`.
    pub fn new(seed: u64) -> SimFs {
        SimFs::of(Disk {
            inodes: Vec::new(),
            names: BTreeMap::new(),
            synced_names: BTreeMap::new(),
            name_edits: Vec::new(),
            dirs: BTreeSet::new(),
            locked: BTreeSet::new(),
            capacity_bytes: u64::MAX,
            fault: None,
            dead: false,
            calls: 0,
            set_out: Vec::new(),
            rng: SplitMix::new(seed),
        })
    }

    fn of(disk: Disk) -> SimFs {
        SimFs { disk: Arc::new(Mutex::new(disk)), meanwhile: Arc::default() }
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something once, before the next read of a file.
    pub fn before_read(&self, act: impl FnOnce() + Send + 'static) {
        self.meanwhile.lock().unwrap_or_else(PoisonError::into_inner).0 = Some(Box::new(act));
    }

    /// Bounds the bytes of all files together; a write past it fails with `StorageFull`.
    pub fn set_capacity(&self, bytes: u64) {
        self.disk().capacity_bytes = bytes;
    }

    /// Whether a fault is to come, or goes on.
    pub fn has_fault(&self) -> bool {
        self.disk().fault.is_some()
    }

    /// Sets the next fault, in place of any other; `None` clears.
    pub fn set_fault(&self, fault: Option<Fault>) {
        self.disk().fault = fault;
    }

    /// Whether the power is off: nothing on this disk answers any more.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.disk().dead
    }

    /// How many changing calls were made so far: the steps a crash can fall on.
    pub fn calls(&self) -> u64 {
        self.disk().calls
    }

    /// Which bytes of which files were set out for the disk ([`File::start_sync`]) so far, in order.
    pub fn set_out(&self) -> Vec<(PathBuf, Range<u64>)> {
        let disk = self.disk();
        let name = |inode| disk.names.iter().find(|(_, named)| **named == inode).map(|(path, _)| path.clone());
        disk.set_out.iter().map(|(inode, range)| (name(*inode).unwrap_or_default(), range.clone())).collect()
    }

    /// Bytes in all files that have a name.
    pub fn used_bytes(&self) -> u64 {
        self.disk().used_bytes()
    }

    /// Turns the power off and answers a disk that may be found afterwards.
    ///
    /// This disk is dead from here on; the other has no fault and no lock.
    #[must_use]
    pub fn power_loss(&self, mode: LossMode) -> SimFs {
        let mut disk = self.disk();
        disk.dead = true;
        SimFs::of(loss::survivor(&mut disk, mode))
    }

    /// Stops the process but not the machine (`kill -9`): all that was written
    /// reads as before, what was not synced is still not, and this handle is dead.
    #[must_use]
    pub fn process_kill(&self) -> SimFs {
        let mut disk = self.disk();
        disk.dead = true;
        SimFs::of(loss::copy(&mut disk))
    }

    /// Another disk that reads as this one does now; this one goes on.
    #[must_use]
    pub fn snapshot(&self) -> SimFs {
        SimFs::of(loss::copy(&mut self.disk()))
    }

    /// Flips one bit of a file for good, as a failing drive does.
    ///
    /// # Errors
    /// `NotFound`, or `InvalidInput` when `offset` is past the end.
    pub fn flip_bit(&self, path: &Path, offset: u64, bit: u8) -> io::Result<()> {
        let mut disk = self.disk();
        let id = disk.lookup(path)?;
        disk.inode(id)?.flip_bit(offset, bit)
    }

    /// Has every read of these bytes of a file fail for good, as of a failing drive's sectors.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn make_unreadable(&self, path: &Path, range: Range<u64>) -> io::Result<()> {
        let mut disk = self.disk();
        let id = disk.lookup(path)?;
        disk.inode(id)?.unreadable.push(range);
        Ok(())
    }
}

impl Disk {
    fn lookup(&self, path: &Path) -> io::Result<InodeId> {
        self.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Whether a name means no file yet.
    fn check_free(&self, path: &Path) -> io::Result<()> {
        if self.names.contains_key(path) { Err(io::ErrorKind::AlreadyExists.into()) } else { Ok(()) }
    }

    fn inode(&mut self, id: InodeId) -> io::Result<&mut Inode> {
        self.inodes.get_mut(id).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn used_bytes(&self) -> u64 {
        let ids: BTreeSet<InodeId> = self.names.values().copied().collect();
        ids.iter().filter_map(|id| self.inodes.get(*id)).map(Inode::len).sum()
    }

    fn alive(&self) -> io::Result<()> {
        if self.dead { Err(eio()) } else { Ok(()) }
    }

    /// Counts a changing call and says whether it fails.
    fn step(&mut self, op: IoOp) -> io::Result<()> {
        self.alive()?;
        self.calls += 1;
        let Some(fault) = &mut self.fault else { return Ok(()) };
        if fault.after_calls > 0 {
            fault.after_calls -= 1;
            return Ok(());
        }
        let (kind, span) = (fault.kind, fault.span);
        let takes_space = matches!(op, IoOp::Create | IoOp::Write | IoOp::SetLen | IoOp::Rename);
        let is_sync = matches!(op, IoOp::SyncData | IoOp::SyncDir);
        let is_met = match kind {
            FaultKind::Enospc => takes_space,
            FaultKind::EnospcOfSync => is_sync,
            FaultKind::Emfile => false,
            FaultKind::Eio | FaultKind::Erofs | FaultKind::Crash => true,
        };
        if !is_met {
            return Ok(());
        }
        if span == FaultSpan::Once {
            self.fault = None;
        }
        match kind {
            FaultKind::Enospc | FaultKind::EnospcOfSync => Err(enospc()),
            FaultKind::Emfile => Err(emfile()),
            FaultKind::Eio => Err(eio()),
            FaultKind::Erofs => Err(erofs()),
            FaultKind::Crash => {
                self.dead = true;
                Err(eio())
            }
        }
    }

    /// Says whether a file can be opened.
    fn take_descriptor(&mut self) -> io::Result<()> {
        match self.fault {
            Some(Fault { after_calls: 0, kind: FaultKind::Emfile, span }) => {
                if span == FaultSpan::Once {
                    self.fault = None;
                }
                Err(emfile())
            }
            _ => Ok(()),
        }
    }

    fn edit_names(&mut self, edit: NameEdit) {
        edit.apply(&mut self.names);
        self.name_edits.push(edit);
    }

    fn link_new(&mut self, path: &Path) -> InodeId {
        self.inodes.push(Inode::default());
        let inode = self.inodes.len() - 1;
        self.edit_names(NameEdit::Link { path: path.to_path_buf(), inode });
        inode
    }

    /// Writes `bytes`; on a full disk the part that fits, then the error.
    fn write(&mut self, id: InodeId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let grown = (offset + bytes.len() as u64).saturating_sub(self.inode(id)?.len());
        let free = self.capacity_bytes.saturating_sub(self.used_bytes());
        if grown <= free {
            self.inode(id)?.edit(FileEdit::Write { offset, bytes: bytes.to_vec() });
            return Ok(());
        }
        let lacking = usize::try_from(grown - free).unwrap_or(usize::MAX);
        let fitting = bytes.get(..bytes.len().saturating_sub(lacking)).unwrap_or_default();
        if !fitting.is_empty() {
            self.inode(id)?.edit(FileEdit::Write { offset, bytes: fitting.to_vec() });
        }
        Err(enospc())
    }

    /// After a failed write some of it may have reached the file.
    fn write_partly(&mut self, id: InodeId, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let kept = usize::try_from(self.rng.below(bytes.len() as u64 + 1)).unwrap_or(0);
        if let Some(part) = bytes.get(..kept).filter(|part| !part.is_empty()) {
            self.inode(id)?.edit(FileEdit::Write { offset, bytes: part.to_vec() });
        }
        Ok(())
    }
}

fn eio() -> io::Error {
    io::Error::from_raw_os_error(5)
}

fn enospc() -> io::Error {
    io::Error::from_raw_os_error(28)
}

fn erofs() -> io::Error {
    io::Error::from_raw_os_error(30)
}

fn emfile() -> io::Error {
    io::Error::from_raw_os_error(24)
}

#[derive(Debug)]
struct SimFile {
    fs: SimFs,
    inode: InodeId,
}

impl File for SimFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        let act = self.fs.meanwhile.lock().unwrap_or_else(PoisonError::into_inner).0.take();
        if let Some(act) = act {
            act();
        }
        let mut disk = self.fs.disk();
        disk.alive()?;
        let (inode, end) = (disk.inode(self.inode)?, offset + buf.len() as u64);
        if inode.unreadable.iter().any(|range| offset < range.end && range.start < end) {
            return Err(eio());
        }
        Ok(inode.read(offset, buf))
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut disk = self.fs.disk();
        if let Err(error) = disk.step(IoOp::Write) {
            disk.write_partly(self.inode, offset, bytes)?;
            return Err(error);
        }
        disk.write(self.inode, offset, bytes)
    }

    /// It promises nothing, so it does nothing but be told; what a system makes of no bytes is all of them.
    fn start_sync(&self, offset: u64, len: u64) {
        assert!(len > 0, "BUG: no bytes are set out for the disk");
        self.fs.disk().set_out.push((self.inode, offset..offset + len));
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut disk = self.fs.disk();
        if let Err(error) = disk.step(IoOp::SyncData) {
            // As Linux does: the failed pages count as clean, so that a second
            // sync would succeed over lost data.
            disk.inode(self.inode)?.forget_unsynced();
            return Err(error);
        }
        disk.inode(self.inode)?.sync();
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut disk = self.fs.disk();
        disk.step(IoOp::SetLen)?;
        disk.inode(self.inode)?.edit(FileEdit::SetLen(len));
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        let mut disk = self.fs.disk();
        disk.alive()?;
        Ok(disk.inode(self.inode)?.len())
    }
}

#[derive(Debug)]
struct SimLock {
    fs: SimFs,
    path: PathBuf,
}

impl FileLock for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        self.fs.disk().locked.remove(&self.path);
    }
}

impl FileSystem for SimFs {
    /// Folders are durable at once: the engine makes one, before anything else.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        let mut disk = self.disk();
        disk.step(IoOp::Create)?;
        disk.dirs.insert(dir.to_path_buf());
        Ok(())
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let mut disk = self.disk();
        disk.take_descriptor()?;
        disk.step(IoOp::Create)?;
        let inode = match disk.names.get(path).copied() {
            // It stays one file under all its names.
            Some(inode) => {
                disk.inode(inode)?.edit(FileEdit::SetLen(0));
                inode
            }
            None => disk.link_new(path),
        };
        Ok(Arc::new(SimFile { fs: self.clone(), inode }))
    }

    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let mut disk = self.disk();
        disk.take_descriptor()?;
        disk.step(IoOp::Create)?;
        disk.check_free(path)?;
        let inode = disk.link_new(path);
        Ok(Arc::new(SimFile { fs: self.clone(), inode }))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        let mut disk = self.disk();
        disk.alive()?;
        disk.take_descriptor()?;
        let inode = disk.lookup(path)?;
        Ok(Arc::new(SimFile { fs: self.clone(), inode }))
    }

    fn open_rw(&self, path: &Path) -> io::Result<Arc<dyn File>> {
        if matches!(self.disk().fault, Some(Fault { after_calls: 0, kind: FaultKind::Erofs, .. })) {
            return Err(erofs());
        }
        self.open(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut disk = self.disk();
        disk.step(IoOp::Rename)?;
        let inode = disk.lookup(from)?;
        disk.edit_names(NameEdit::Move { from: from.to_path_buf(), to: to.to_path_buf(), inode });
        Ok(())
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut disk = self.disk();
        disk.step(IoOp::Create)?;
        let inode = disk.lookup(from)?;
        disk.check_free(to)?;
        disk.edit_names(NameEdit::Link { path: to.to_path_buf(), inode });
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.disk();
        disk.step(IoOp::Remove)?;
        disk.lookup(path)?;
        disk.edit_names(NameEdit::Unlink { path: path.to_path_buf() });
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let disk = self.disk();
        disk.alive()?;
        let within = disk.names.keys().filter(|path| path.parent() == Some(dir));
        Ok(within.filter_map(|path| path.file_name()?.to_str().map(String::from)).collect())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut disk = self.disk();
        disk.step(IoOp::SyncDir)?;
        let (synced, open): (Vec<_>, Vec<_>) =
            std::mem::take(&mut disk.name_edits).into_iter().partition(|edit| edit.dir() == Some(dir));
        for edit in &synced {
            edit.apply(&mut disk.synced_names);
        }
        disk.name_edits = open;
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn FileLock>> {
        let mut disk = self.disk();
        disk.step(IoOp::Lock)?;
        if !disk.locked.insert(path.to_path_buf()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(SimLock { fs: self.clone(), path: path.to_path_buf() }))
    }
}
