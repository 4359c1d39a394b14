//! Text files into a target, block by block: read, store, remember, report.
//!
//! ```text
//! file ─ blocks of whole lines ─► threads: parse, wait for a turn, store ─► outcomes in order ─► sync ─► remembered
//! ```
//!
//! Blocks reach the target in their order, a few of them under way at once. Lines count as done when they and all before
//! them are durable, at the latest when the target is closed, so that whatever ends an import, running it again loses no
//! line; what is sent twice is harmless, since a point written twice is one point. Where a block cannot be stored now, it
//! is sent again, and with it all that went out behind it.

mod block;
mod folder;
mod job;
mod progress;
mod remote;
mod resume;
mod source;
mod target;
mod turns;

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Instant;

use crate::exit::Failure;
use crate::threads;

use block::Block;
pub(crate) use folder::Folder;
pub(crate) use job::{Job, Sum};
use progress::Progress;
pub(crate) use remote::Remote;
use source::Source;
pub(crate) use target::Target;
use target::{Stored, Unstored, stopped};

/// Threads that parse and store blocks: more than cores, as some of them wait for the target.
const WORKERS: usize = 4;
/// Blocks read and not yet stored.
const BLOCKS_MAX: u64 = 8;

/// Does the job, and lets go of the target whatever became of it.
///
/// # Errors
///
/// Unreadable files, refused lines unless they are skipped, and the target's own; progress is
/// remembered in all cases.
pub(crate) fn run(job: &Job, target: &dyn Target) -> Result<Sum, Failure> {
    let mut progress = match Progress::begin(job, target) {
        Ok(progress) => progress,
        Err(failure) => return target.finish().and(Err(failure)),
    };
    let done = read_all(job, target, &mut progress);
    // What is stored is done, whatever ended the import.
    let remembered = progress.checkpoint(target);
    target.finish()?;
    // A log that had no room is made up for by the end.
    let remembered = remembered.or_else(|_| progress.remember());
    done.map_err(|failure| progress.ended(failure, remembered.is_ok())).and(remembered)?;
    Ok(progress.sum())
}

/// Has all files stored by threads of their own.
fn read_all(job: &Job, target: &dyn Target, progress: &mut Progress<'_>) -> Result<(), Failure> {
    std::thread::scope(|scope| {
        let (blocks, work) = sync_channel::<Block>(WORKERS);
        let (said, heard) = sync_channel::<Outcome>(WORKERS);
        let work = Arc::new(Mutex::new(work));
        let start = |_| {
            let (work, said) = (Arc::clone(&work), said.clone());
            Builder::new().spawn_scoped(scope, move || store_all(target, &work, &said)).map(drop)
        };
        let started = (0..WORKERS).try_for_each(start);
        drop((work, said));
        started.map_err(|cause| threads::too_few(&cause.to_string()))?;
        let mut road = Road { blocks, heard, sent: 0, next: 0, early: BTreeMap::new(), round: 0, failing_since: None };
        job.paths.iter().try_for_each(|path| road.file(path, target, progress))
    })
}

/// One thread's work: blocks until there are none, or nobody listens.
fn store_all(target: &dyn Target, work: &Mutex<Receiver<Block>>, said: &SyncSender<Outcome>) {
    loop {
        // Held while waiting: whoever has it gets the next block, the others wait for it instead.
        let next = work.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(block) = next else { return };
        let stored = target.store(&block);
        if said.send(Outcome { block, stored }).is_err() {
            return;
        }
    }
}

/// The way of blocks to the threads and of outcomes back.
struct Road {
    /// Bound: [`WORKERS`] blocks; full, the reader waits.
    blocks: SyncSender<Block>,
    /// Bound: [`WORKERS`] outcomes; full, the threads wait.
    heard: Receiver<Outcome>,
    sent: u64,
    /// The block that is accounted next.
    next: u64,
    /// Outcomes that came before their turn; at most as many as blocks are under way.
    early: BTreeMap<u64, Outcome>,
    /// How often blocks were sent again.
    round: u64,
    /// When the next block failed for the first time.
    failing_since: Option<Instant>,
}

/// What became of a block.
#[derive(Debug)]
struct Outcome {
    block: Block,
    stored: Result<Stored, Unstored>,
}

impl Road {
    fn file(
        &mut self,
        path: &std::path::Path,
        target: &dyn Target,
        progress: &mut Progress<'_>,
    ) -> Result<(), Failure> {
        let mut source = Source::open(path)?;
        progress.open(path, &mut source)?;
        loop {
            let lines_before = source.lines();
            let Some((text, lines_end)) = source.block()? else { break };
            while self.sent - self.next >= BLOCKS_MAX {
                self.take(target, progress)?;
            }
            // A last line without an end may be half of one: it is a point now, and read again when the file has grown.
            let lines_end = lines_end - u64::from(!text.ends_with(b"\n"));
            self.send(Block { ticket: 0, round: 0, text, lines_before, lines_end, bytes_end: source.bytes_read() })?;
        }
        while self.next < self.sent {
            self.take(target, progress)?;
        }
        progress.close(target)
    }

    /// Sends a block on its way, as the last of all.
    fn send(&mut self, block: Block) -> Result<(), Failure> {
        self.blocks.send(Block { ticket: self.sent, round: self.round, ..block }).map_err(|_| stopped())?;
        self.sent += 1;
        Ok(())
    }

    /// Waits for an outcome, and accounts what is in its turn.
    fn take(&mut self, target: &dyn Target, progress: &mut Progress<'_>) -> Result<(), Failure> {
        self.hear()?;
        while let Some(Outcome { block, stored }) = self.early.remove(&self.next) {
            match stored {
                Err(Unstored::Later(failure)) => self.again(block, failure, target, progress)?,
                Err(Unstored::Over(failure)) => return Err(failure),
                Ok(stored) => {
                    progress.account(&block, stored)?;
                    (self.next, self.failing_since) = (self.next + 1, None);
                }
            }
        }
        progress.show(target)
    }

    fn hear(&mut self) -> Result<(), Failure> {
        let outcome = self.heard.recv().map_err(|_| stopped())?;
        self.early.insert(outcome.block.ticket, outcome);
        Ok(())
    }

    /// Sends a block that cannot be stored now again, and those behind it: of two points at one instant the later line wins,
    /// so it must be the last that is stored. Nothing is on its way by then, which could come after its second coming.
    fn again(
        &mut self,
        block: Block,
        failure: Failure,
        target: &dyn Target,
        progress: &Progress<'_>,
    ) -> Result<(), Failure> {
        let ((patience, pause), now) = (target.patience(), target.now());
        let is_first = self.failing_since.is_none();
        if now.duration_since(*self.failing_since.get_or_insert(now)) >= patience {
            return Err(failure);
        }
        if is_first {
            progress.tell(&format!("{}; it is sent again", failure.line));
        }
        while self.next + 1 + (self.early.len() as u64) < self.sent {
            self.hear()?;
        }
        let mut blocks = vec![block];
        for Outcome { block, stored } in std::mem::take(&mut self.early).into_values() {
            blocks.push(block);
            if let Err(Unstored::Over(failure)) = stored {
                return Err(failure);
            }
        }
        threads::pause(pause);
        (self.next, self.round) = (self.sent, self.round + 1);
        blocks.into_iter().try_for_each(|block| self.send(block))
    }
}

#[cfg(test)]
mod tests;
