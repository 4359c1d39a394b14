//! What a read looked at: the figures by which a schema's promises of cheap reads can be held to.

use std::ops::AddAssign;

/// What was examined for an answer, whether it became part of it or not.
///
/// A store without files answers no blocks. Rules S-MAP-13, -17, S-VERS-2, S-KEY-2, S-SCAN-4.
///
/// ```
/// # use basalt_store::Cost;
/// let mut sum = Cost { rows: 1, cells: 2, ..Cost::default() };
/// sum += Cost { cells: 3, blocks: 1, ..Cost::default() };
/// assert_eq!((sum.rows, sum.cells, sum.blocks), (1, 5, 1));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Rows that had a cell in the families asked for.
    pub rows: u64,
    /// Cells that were judged or stepped over.
    pub cells: u64,
    /// Blocks of files that were opened, from memory or from the file.
    pub blocks: u64,
    /// Those of them that were read from the file.
    pub file_blocks: u64,
    /// Their bytes as stored.
    pub file_bytes: u64,
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.rows += other.rows;
        self.cells += other.cells;
        self.blocks += other.blocks;
        self.file_blocks += other.file_blocks;
        self.file_bytes += other.file_bytes;
    }
}
