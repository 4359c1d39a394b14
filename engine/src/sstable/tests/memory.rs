//! A file in memory that counts its reads.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::io::File;

#[derive(Debug, Default)]
pub(super) struct MemoryFile {
    bytes: Mutex<Vec<u8>>,
    reads: AtomicU64,
}

impl MemoryFile {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self { bytes: Mutex::new(bytes.to_vec()), reads: AtomicU64::new(0) }
    }

    pub(super) fn contents(&self) -> Vec<u8> {
        self.bytes.lock().unwrap().clone()
    }

    pub(super) fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }
}

impl File for MemoryFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let bytes = self.bytes.lock().unwrap();
        let from = bytes.get(usize::try_from(offset).unwrap()..).unwrap_or_default();
        let length = from.len().min(buf.len());
        buf[..length].copy_from_slice(&from[..length]);
        Ok(length)
    }

    fn write_at(&self, offset: u64, new: &[u8]) -> io::Result<()> {
        let mut bytes = self.bytes.lock().unwrap();
        let start = usize::try_from(offset).unwrap();
        let end = start + new.len();
        let length = bytes.len().max(end);
        bytes.resize(length, 0);
        bytes[start..end].copy_from_slice(new);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.bytes.lock().unwrap().resize(usize::try_from(len).unwrap(), 0);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().unwrap().len() as u64)
    }
}
