//! How many blocks a read opened.

use std::sync::atomic::{AtomicU64, Ordering};

use basalt_store::Cost;

/// Counts the blocks that the cursors of one read open. All relaxed: they are told to the reader's own thread.
#[derive(Debug, Default)]
pub(crate) struct BlockCount {
    opened: AtomicU64,
    read: AtomicU64,
    read_bytes: AtomicU64,
}

impl BlockCount {
    /// Counts a block; `file_bytes` are those it took in the file, if it was read from there.
    pub(crate) fn add(&self, file_bytes: Option<u64>) {
        self.opened.fetch_add(1, Ordering::Relaxed);
        if let Some(bytes) = file_bytes {
            self.read.fetch_add(1, Ordering::Relaxed);
            self.read_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// What was counted since it was asked last.
    pub(crate) fn take(&self) -> Cost {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        Cost {
            blocks: take(&self.opened),
            file_blocks: take(&self.read),
            file_bytes: take(&self.read_bytes),
            ..Cost::default()
        }
    }
}
