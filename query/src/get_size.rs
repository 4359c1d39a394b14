//! How many rows gets ask for, that their answers take about so much memory however large rows are.

use basalt_schema::Schema;
use basalt_store::RowBatch;

/// Rows of one get, at most.
pub(crate) const GET_ROWS: usize = 128;
/// Rows of the first get, as nobody knows yet how large they are: an hour of 100 points a second takes 4 MB.
const GET_ROWS_FIRST: usize = 4;
/// Rows of a get as long as none was found; of the first one too where each is a way across a network.
pub(crate) const GET_ROWS_UNKNOWN: usize = 16;
/// A get asks for at most so many times the rows of the one before, of which few need not be like those that come.
const GET_ROWS_GROWTH: usize = 8;
/// About how much memory the answer to a get takes.
pub(crate) const GET_BYTES: usize = 2 << 20;

/// How many rows the next get of several in turn asks for.
#[derive(Debug)]
pub(crate) struct GetSize {
    rows: usize,
    /// Of the gets before, the largest mean of the rows that were there; 0: none was.
    row_bytes: usize,
}

impl GetSize {
    /// Before the first get of some tables.
    pub(crate) fn new(schema: &Schema) -> Self {
        let rows = if schema.config().is_shared { GET_ROWS_UNKNOWN } else { GET_ROWS_FIRST };
        Self { rows, row_bytes: 0 }
    }

    /// At most so many; one at least.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Of a get that gave these rows.
    pub(crate) fn learn(&mut self, found: &RowBatch) {
        self.row_bytes = self.row_bytes.max(found.memory_bytes().checked_div(found.len()).unwrap_or(0));
        let fitting = GET_BYTES.checked_div(self.row_bytes).unwrap_or(GET_ROWS_UNKNOWN);
        self.rows = fitting.min(self.rows * GET_ROWS_GROWTH).clamp(1, GET_ROWS);
    }
}
