//! What rewriting did, counted.

use std::sync::atomic::{AtomicU64, Ordering};

/// What was done so far, and what waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RewriteCounts {
    /// Rows that wait.
    pub queue_rows: u64,
    /// Those of them that are due already, and those that are being rewritten.
    pub due_rows: u64,
    /// Rows that found the queue full; they stay in single cells until they are written to again.
    pub refused_rows: u64,
    /// Rows read.
    pub rows_read: u64,
    /// Rows of which a folded cell was put, or was there already.
    pub rows_rewritten: u64,
    /// Folded cells put.
    pub cells_written: u64,
    /// Cells deleted.
    pub cells_deleted: u64,
    /// Points left out that had the instant and bytes of another.
    pub duplicates_identical: u64,
    /// Points left out that had the instant of another, and a value of their own.
    pub duplicates_variant: u64,
    /// Rows whose cells do not hold what their qualifiers say; they are left as they are.
    pub damaged_rows: u64,
    /// Rows whose folded cell an old tombstone hides; their parts are not deleted.
    pub hidden_rows: u64,
    /// Reads that failed.
    pub read_errors: u64,
    /// Folded cells that could not be put, or batches of them.
    pub put_errors: u64,
    /// Rows whose parts could not be deleted, or batches of them.
    pub delete_errors: u64,
}

/// A number. Orderings are relaxed: numbers are shown, and at most the size of a batch depends on one.
#[derive(Debug, Default)]
pub(super) struct Add(AtomicU64);

impl Add {
    pub(super) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(super) fn sub(&self, less: u64) {
        self.0.fetch_sub(less, Ordering::Relaxed);
    }

    pub(super) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) refused: Add,
    pub(super) rows_read: Add,
    pub(super) rows_rewritten: Add,
    pub(super) cells_written: Add,
    pub(super) cells_deleted: Add,
    pub(super) identical: Add,
    pub(super) variant: Add,
    pub(super) damaged: Add,
    pub(super) hidden: Add,
    pub(super) read_errors: Add,
    pub(super) put_errors: Add,
    pub(super) delete_errors: Add,
    /// Rows that are being rewritten.
    pub(super) in_hand: Add,
    /// Bytes of a row of the last batch, on average.
    pub(super) row_bytes: Add,
}

impl Counts {
    pub(super) fn told(&self, queue_rows: u64, due_rows: u64) -> RewriteCounts {
        RewriteCounts {
            queue_rows,
            due_rows,
            refused_rows: self.refused.get(),
            rows_read: self.rows_read.get(),
            rows_rewritten: self.rows_rewritten.get(),
            cells_written: self.cells_written.get(),
            cells_deleted: self.cells_deleted.get(),
            duplicates_identical: self.identical.get(),
            duplicates_variant: self.variant.get(),
            damaged_rows: self.damaged.get(),
            hidden_rows: self.hidden.get(),
            read_errors: self.read_errors.get(),
            put_errors: self.put_errors.get(),
            delete_errors: self.delete_errors.get(),
        }
    }
}
