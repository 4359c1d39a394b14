//! A scan's answer as it comes: a bounded channel of batches, cancelled by dropping it.

use std::fmt;

use tokio::sync::mpsc;

use crate::{Cost, Error, Result, RowBatch};

/// The batches of one scan, in row order. Dropping it cancels the scan and frees what it held (rule S-SCAN-2).
#[derive(Debug)]
pub struct Scanner {
    source: Source,
    /// Of the batches that were taken.
    cost: Cost,
}

enum Source {
    Channel(mpsc::Receiver<Result<RowBatch>>),
    Lazy(LazyNext),
}

type LazyNext = Box<dyn FnMut() -> Option<Result<RowBatch>> + Send>;

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Channel(receiver) => f.debug_tuple("Channel").field(receiver).finish(),
            Self::Lazy(_) => f.debug_tuple("Lazy").finish_non_exhaustive(),
        }
    }
}

/// Where the store puts a scan's batches. Full, it waits for the reader: a slow reader costs `capacity` batches.
#[derive(Debug, Clone)]
pub struct ScanSender(mpsc::Sender<Result<RowBatch>>);

impl Scanner {
    /// A scanner that holds up to `capacity` batches (at least 1) ahead of its reader.
    pub fn channel(capacity: usize) -> (ScanSender, Self) {
        let (sender, receiver) = mpsc::channel(capacity.max(1));
        (ScanSender(sender), Self { source: Source::Channel(receiver), cost: Cost::default() })
    }

    /// A scanner whose batches are made by the reader's own thread when it asks: for stores that have a batch at hand
    /// without waiting. Not called again after it has said `None`.
    pub fn lazy(next: impl FnMut() -> Option<Result<RowBatch>> + Send + 'static) -> Self {
        Self { source: Source::Lazy(Box::new(next)), cost: Cost::default() }
    }

    /// The next batch that has rows; `None` after the last, or after an error.
    pub async fn next(&mut self) -> Option<Result<RowBatch>> {
        loop {
            let batch = match &mut self.source {
                Source::Channel(receiver) => receiver.recv().await,
                Source::Lazy(next) => lazy_next(next),
            };
            self.count(batch.as_ref());
            if !matches!(&batch, Some(Ok(batch)) if batch.is_empty()) {
                return batch;
            }
        }
    }

    /// [`Scanner::next`], waited for on this thread.
    ///
    /// # Panics
    /// On a thread that runs async tasks.
    pub fn next_wait(&mut self) -> Option<Result<RowBatch>> {
        loop {
            let batch = self.step_wait();
            if !matches!(&batch, Some(Ok(batch)) if batch.is_empty()) {
                return batch;
            }
        }
    }

    /// As [`Scanner::next_wait`], but a batch may have no rows: a scan that passes over many rows that nobody sees, or whose servers
    /// do not answer, gives one now and then, so that its reader can give up.
    ///
    /// # Panics
    /// On a thread that runs async tasks.
    pub fn step_wait(&mut self) -> Option<Result<RowBatch>> {
        let batch = match &mut self.source {
            Source::Channel(receiver) => receiver.blocking_recv(),
            Source::Lazy(next) => lazy_next(next),
        };
        self.count(batch.as_ref());
        batch
    }

    /// What was examined for the batches so far; for the whole scan once [`Scanner::next`] has said `None`.
    pub fn cost(&self) -> Cost {
        self.cost
    }

    /// Counts a batch in. One without rows tells what its making took.
    fn count(&mut self, batch: Option<&Result<RowBatch>>) {
        if let Some(Ok(batch)) = batch {
            self.cost += batch.cost();
        }
    }
}

/// Asks once more, and never again after an end.
fn lazy_next(next: &mut LazyNext) -> Option<Result<RowBatch>> {
    let batch = next();
    if batch.is_none() {
        *next = Box::new(|| None);
    }
    batch
}

impl ScanSender {
    /// Hands over a batch or the error that ends the scan; waits on this thread while the reader is behind.
    ///
    /// # Errors
    /// [`Error::Cancelled`] when the reader is gone: stop scanning.
    ///
    /// # Panics
    /// On a thread that runs async tasks: there, [`ScanSender::send_async`].
    pub fn send(&self, batch: Result<RowBatch>) -> Result<()> {
        self.0.blocking_send(batch).map_err(|_| Error::Cancelled)
    }

    /// [`ScanSender::send`] for async code.
    ///
    /// # Errors
    /// [`Error::Cancelled`] when the reader is gone.
    pub async fn send_async(&self, batch: Result<RowBatch>) -> Result<()> {
        self.0.send(batch).await.map_err(|_| Error::Cancelled)
    }

    /// Hands over a batch without rows where there is room, so that a reader by [`Scanner::step_wait`] looks whether to go on.
    pub fn wake_reader(&self) {
        // Where there is no room it has something to take, and where it is gone nobody is to be woken.
        drop(self.0.try_send(Ok(RowBatch::default())));
    }

    /// Whether the reader is gone.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_closed()
    }
}
