//! The two ways to write much (rule S-PUT-2), for programs over any store: a buffer that is sent when it is full, and a batch of
//! operations of any kind with an answer to each, as HBase's clients have. Of ours `schema/` deletes by the buffer; the batch only the
//! conformance suite has.

use std::sync::Arc;

use bytes::Bytes;

use crate::{
    Append, Applied, CheckAndMutate, Get, Increment, MutationBatch, Result, RowBatch, RowBuilder, Store, TableName,
};

/// One of a batch of operations.
#[derive(Debug, Clone)]
pub enum Operation {
    /// Puts and deletes.
    Mutate(MutationBatch),
    /// A get.
    Get(Get),
    /// An addition to a counter.
    Increment(Increment),
    /// An append.
    Append(Append),
    /// Changes on a condition.
    CheckAndMutate(CheckAndMutate),
}

/// The answer to one of a batch of operations.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// To [`Operation::Mutate`].
    Applied(Applied),
    /// To [`Operation::Get`].
    Rows(RowBatch),
    /// To [`Operation::Increment`].
    Counter(i64),
    /// To [`Operation::Append`].
    Value(Bytes),
    /// To [`Operation::CheckAndMutate`].
    Checked(bool),
}

/// Runs operations one after the other, each seeing those before it; one outcome an operation, in their order. One that
/// fails stops none behind it.
pub fn run_operations(store: &dyn Store, table: &TableName, operations: Vec<Operation>) -> Vec<Result<Outcome>> {
    let run = |operation| match operation {
        Operation::Mutate(batch) => store.apply(table, batch).wait().map(Outcome::Applied),
        Operation::Get(get) => store.get(table, get).wait().map(Outcome::Rows),
        Operation::Increment(increment) => store.increment(table, increment).wait().map(Outcome::Counter),
        Operation::Append(append) => store.append(table, append).wait().map(Outcome::Value),
        Operation::CheckAndMutate(check) => store.check_and_mutate(table, check).wait().map(Outcome::Checked),
    };
    operations.into_iter().map(run).collect()
}

/// Collects changes of a table's rows and sends them when they are many. What was not flushed when it is dropped was
/// never written: [`WriteBuffer::close`] flushes and tells how it went.
#[derive(Debug)]
pub struct WriteBuffer {
    store: Arc<dyn Store>,
    table: TableName,
    batch: MutationBatch,
    bytes_max: usize,
}

impl WriteBuffer {
    /// A buffer that is sent when it holds more than `bytes_max`; the batch, which is empty, says how durably.
    pub fn new(store: Arc<dyn Store>, table: TableName, batch: MutationBatch, bytes_max: usize) -> Self {
        Self { store, table, batch, bytes_max }
    }

    /// Begins a row, and sends what is there first when it is full.
    ///
    /// # Errors
    /// As [`MutationBatch::row`] and [`WriteBuffer::flush`].
    pub fn row(&mut self, key: &[u8]) -> Result<RowBuilder<'_>> {
        if self.batch.data_bytes() > self.bytes_max {
            self.flush()?;
        }
        self.batch.row(key)
    }

    /// Sends what is there, and returns when it is stored.
    ///
    /// # Errors
    /// As [`Store::apply`]; the first row that was refused, the others then being stored.
    pub fn flush(&mut self) -> Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let empty = MutationBatch::new(self.batch.durability());
        let applied = self.store.apply(&self.table, std::mem::replace(&mut self.batch, empty)).wait()?;
        applied.all_stored()
    }

    /// Sends the rest.
    ///
    /// # Errors
    /// As [`WriteBuffer::flush`].
    pub fn close(mut self) -> Result<()> {
        self.flush()
    }
}
