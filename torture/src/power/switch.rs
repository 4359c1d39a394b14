//! The one call that no library has: a file system's own switch.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::Path;

/// `_IOR('X', 125, __u32)`: XFS's and ext4's alike.
const SHUTDOWN: libc::c_ulong = 0x8004_587d;
/// Without a flush of the journal: what was not synced is gone.
const NO_LOG_FLUSH: u32 = 2;

/// Switches the file system mounted at `at` off: every later call on it fails.
#[expect(unsafe_code, reason = "an ioctl that no library wraps")]
pub(super) fn off(at: &Path) -> std::io::Result<()> {
    let mount = File::open(at)?;
    let how: u32 = NO_LOG_FLUSH;
    // SAFETY: the descriptor is open until `mount` is dropped, and the call reads four bytes at the pointer, which are
    // those of `how`.
    let answer = unsafe { libc::ioctl(mount.as_raw_fd(), SHUTDOWN, &raw const how) };
    if answer == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}
