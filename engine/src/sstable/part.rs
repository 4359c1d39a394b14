//! How much of a file lies in a range of rows, and where it may be parted. No I/O: the block index knows.

use crate::key_range::KeyRange;

use super::Sstable;

impl Sstable {
    /// Bytes of the blocks that may hold rows of a range.
    pub(crate) fn bytes_within(&self, range: &KeyRange) -> u64 {
        self.blocks_within(range).map(|block| u64::from(self.index.entry(block).frame_bytes)).sum()
    }

    /// The rows that blocks begin with, of those that may hold rows of a range, each with its block's bytes.
    ///
    /// The first one may lie before the range.
    pub(crate) fn borders_within<'a>(&'a self, range: &'a KeyRange) -> impl Iterator<Item = (&'a [u8], u64)> {
        self.blocks_within(range)
            .map(|block| (self.index.first_row(block), u64::from(self.index.entry(block).frame_bytes)))
    }

    fn blocks_within<'a>(&'a self, range: &'a KeyRange) -> impl Iterator<Item = usize> + 'a {
        // In reverse the index finds the last block that begins at or before a row.
        let first = self.index.find(&range.start, &[]);
        (first..self.index.len())
            .skip_while(|block| self.index.last_row(*block) < &range.start[..])
            .take_while(|block| range.is_before_end(self.index.first_row(*block)))
    }
}
