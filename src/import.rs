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
mod progress;
mod remote;
mod resume;
mod source;
mod turns;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use basalt_ingest::{Problem, ProblemClass};
use basalt_store::ErrorKind;

use crate::exit::{Exit, Failure};
use crate::threads;

use block::Block;
pub(crate) use folder::Folder;
use progress::Progress;
pub(crate) use remote::Remote;
use source::Source;

/// Threads that parse and store blocks: more than cores, as some of them wait for the target.
const WORKERS: usize = 4;
/// Blocks read and not yet stored.
const BLOCKS_MAX: u64 = 8;

/// Where points go.
pub(crate) trait Target: Sync {
    /// What tells it from other targets, for the file that remembers progress.
    fn name(&self) -> String;

    /// Stores a block; blocks are stored in the order of their tickets, which begin at 0 and leave none out.
    ///
    /// # Errors
    ///
    /// The block may be stored or not.
    fn store(&self, block: &Block) -> Result<Stored, Unstored>;

    /// How long from its first failure on a block that cannot be stored now is sent again, and the pause before each time.
    fn patience(&self) -> (Duration, Duration) {
        (Duration::ZERO, Duration::ZERO)
    }

    /// The time that patience goes by.
    fn now(&self) -> Instant {
        Instant::now()
    }

    /// Returns when all that was stored is durable.
    ///
    /// # Errors
    ///
    /// The target's own.
    fn sync(&self) -> Result<(), Failure>;

    /// Lets go of the target, with all that was stored durable.
    ///
    /// # Errors
    ///
    /// What was stored could not be closed cleanly.
    fn finish(&self) -> Result<(), Failure>;
}

/// What became of a block.
#[derive(Debug)]
pub(crate) struct Stored {
    /// Points stored.
    pub(crate) points: u64,
    /// The lines that were refused.
    pub(crate) refused: Vec<Refused>,
}

/// Why a block is not known to be stored.
#[derive(Debug)]
pub(crate) enum Unstored {
    /// The target asks to come back later: the block is sent again.
    Later(Failure),
    /// It is sent no more, and all later blocks fail too.
    Over(Failure),
}

impl Unstored {
    fn later(line: impl Into<String>) -> Self {
        Self::Later(Failure::new(Exit::TryLater, line))
    }
}

impl From<Failure> for Unstored {
    fn from(failure: Failure) -> Self {
        Self::Over(failure)
    }
}

/// A line that is no point, or whose point is not taken.
#[derive(Debug)]
pub(crate) struct Refused {
    /// Which line of the file, from 1; none where the point alone is known.
    pub(crate) line: Option<u64>,
    /// Why.
    pub(crate) text: String,
}

/// What is to be done.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) resume: Option<PathBuf>,
    /// Points a second.
    pub(crate) rate: Option<u64>,
    pub(crate) skip_errors: bool,
}

/// What was done.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    pub(crate) stored: u64,
    pub(crate) refused: u64,
    /// Lines that an earlier run had done.
    pub(crate) skipped: u64,
    pub(crate) took: Duration,
}

impl Sum {
    /// Points stored a second.
    #[expect(clippy::cast_precision_loss, reason = "a figure for people, of three digits")]
    pub(crate) fn rate(&self) -> f64 {
        self.stored as f64 / self.took.as_secs_f64().max(0.001)
    }
}

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

/// What a thread says whose work others have ended; the first failure is the one that is told.
fn stopped() -> Failure {
    Failure::new(Exit::Failure, "the import was stopped")
}

/// Whether a good point could not be stored now. It must not count as refused: it would be skipped for good.
fn is_for_later(problem: &Problem) -> bool {
    match problem {
        Problem::TimedOut => true,
        Problem::Storage { kind, .. } => *kind != ErrorKind::Invalid,
        other => other.class() == ProblemClass::Throttled,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// Refuses every line that has an `x`, and knows in which order blocks came.
    #[derive(Default)]
    struct Picky {
        name: &'static str,
        stored: Mutex<Vec<String>>,
        turns: Option<turns::Turns>,
        /// How often there is no room yet for lines of an `l`.
        later: AtomicU32,
        /// How long it takes to find none.
        failing: Duration,
        now: Mutex<Option<Instant>>,
        /// Makes durable what is stored by its end alone, or not even so.
        is_unsynced: bool,
        is_unfinished: bool,
    }

    fn full(is_so: bool) -> Result<(), Failure> {
        if is_so { Err(Failure::new(Exit::TryLater, "full")) } else { Ok(()) }
    }

    impl Target for Picky {
        fn name(&self) -> String {
            self.name.to_owned()
        }

        fn store(&self, block: &Block) -> Result<Stored, Unstored> {
            let turn = self.turns.as_ref().map(|turns| turns.take(block.ticket).ok_or_else(stopped)).transpose()?;
            let text = block.text();
            let is_later = text.contains('l')
                && self.later.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
            if is_later {
                let passed = self.now() + self.failing;
                *self.now.lock().unwrap() = Some(passed);
                turn.into_iter().for_each(turns::Turn::pass);
                return Err(Unstored::later("no room"));
            }
            let (bad, good): (Vec<_>, Vec<_>) = text.lines().map(str::to_owned).partition(|line| line.contains('x'));
            let points = good.len() as u64;
            self.stored.lock().unwrap().extend(good);
            turn.into_iter().for_each(turns::Turn::pass);
            let refused = bad.into_iter().map(|text| Refused { line: None, text }).collect();
            Ok(Stored { points, refused })
        }

        fn patience(&self) -> (Duration, Duration) {
            (Duration::from_mins(1), Duration::ZERO)
        }

        fn now(&self) -> Instant {
            *self.now.lock().unwrap().get_or_insert_with(Instant::now)
        }

        fn sync(&self) -> Result<(), Failure> {
            full(self.is_unsynced)
        }

        fn finish(&self) -> Result<(), Failure> {
            full(self.is_unfinished)
        }
    }

    /// As on a full disk, where the log has no room and the files of the reserve's have.
    #[test]
    fn what_only_the_end_makes_durable_is_remembered_and_nothing_else() {
        for is_unfinished in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let (path, state) = (folder.path().join("points"), folder.path().join("state"));
            let job = Job { paths: vec![path.clone()], resume: Some(state), rate: None, skip_errors: false };
            std::fs::write(&path, "a 1 1 h=a\nb 1 2 h=a\n").unwrap();
            let failure = run(&job, &Picky { is_unsynced: true, is_unfinished, ..Picky::default() }).unwrap_err();
            let told = "full; 2 points of the lines before are stored: run the same again, it goes on in";
            assert!(failure.exit == Exit::TryLater && failure.line.starts_with(told) != is_unfinished, "{failure}");
            let sum = run(&job, &Picky::default()).unwrap();
            assert_eq!(sum.skipped, if is_unfinished { 0 } else { 2 });
        }
    }

    /// "Mend them" must be possible: what was refused is sent again.
    #[test]
    fn a_block_with_a_refused_line_is_not_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let (path, state) = (folder.path().join("points"), folder.path().join("state"));
        let mut job = Job { paths: vec![path.clone()], resume: Some(state), rate: None, skip_errors: false };
        let target = Picky::default();
        std::fs::write(&path, "a 1 1 h=a\nb 1 x h=a\n").unwrap();
        assert!(run(&job, &target).is_err());
        std::fs::write(&path, "a 1 1 h=a\nb 1 2 h=a\nc 1 x h=a\n").unwrap();
        job.skip_errors = true;
        let sum = run(&job, &target).unwrap();
        assert_eq!((sum.stored, sum.refused, sum.skipped), (2, 1, 0));
        assert!(target.stored.lock().unwrap().contains(&"b 1 2 h=a".to_owned()));
        assert_eq!(run(&job, &target).unwrap().skipped, 3, "what may be skipped is done");
    }

    /// Another file of the name, or another standard input, is not taken for what the state file tells of.
    #[test]
    fn of_another_file_nothing_is_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let (path, state) = (folder.path().join("points"), folder.path().join("state"));
        let job = Job { paths: vec![path.clone()], resume: Some(state.clone()), rate: None, skip_errors: false };
        let target = Picky::default();
        let again = |text: &str| {
            std::fs::write(&path, text).unwrap();
            run(&job, &target).map(|sum| (sum.stored, sum.skipped)).map_err(|failure| failure.line)
        };
        assert_eq!(again("a 1 1 h=a\nb 1 1 h=a\n"), Ok((2, 0)));
        assert_eq!(again("a 1 1 h=a\nb 1 1 h=a\nc 1 1 h=a\n"), Ok((1, 2)), "a file may grow");
        for other in ["d 1 1 h=a\ne 1 1 h=a\nf 1 1 h=a\ng 1 1 h=a\n", "a 1 1 h=a\n", ""] {
            assert!(again(other).unwrap_err().contains("does not begin as it did"), "{other}");
        }
        // As older versions wrote it: lines alone.
        std::fs::write(&state, serde_json::json!({ path.display().to_string(): 2 }).to_string()).unwrap();
        assert_eq!(again("h 1 1 h=a\ni 1 1 h=a\nj 1 1 h=a\n"), Ok((1, 2)));
        assert!(again("k 1 1 h=a\nl 1 1 h=a\nm 1 1 h=a\n").is_err());
    }

    /// What one target has is not skipped for another, which would then lack it and nobody be told.
    #[test]
    fn of_another_target_nothing_is_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let (path, state) = (folder.path().join("points"), folder.path().join("state"));
        std::fs::write(&path, "a 1 1 h=a\nb 1 1 h=a\n").unwrap();
        let job = Job { paths: vec![path.clone()], resume: Some(state.clone()), rate: None, skip_errors: false };
        let skipped = |name| {
            let target = Picky { name, ..Picky::default() };
            run(&job, &target).map(|sum| sum.skipped).map_err(|failure| failure.line)
        };
        assert_eq!(skipped("one:4242"), Ok(0));
        let line = skipped("two:4242").unwrap_err();
        assert!(line.contains("of an import into one:4242") && line.contains("another file for --resume"), "{line}");
        assert_eq!(skipped("one:4242"), Ok(2));
        // Older versions wrote no target; from now on it has one.
        std::fs::write(&state, serde_json::json!({ path.display().to_string(): 1 }).to_string()).unwrap();
        assert_eq!(skipped("two:4242"), Ok(1));
        assert!(skipped("one:4242").is_err());
    }

    /// A file may be imported while it is written: its last line may be half of one, which is as good as another point.
    #[test]
    fn a_last_line_without_an_end_is_read_again_when_the_file_has_grown() {
        let folder = tempfile::tempdir().unwrap();
        let (path, state) = (folder.path().join("points"), folder.path().join("state"));
        let job = Job { paths: vec![path.clone()], resume: Some(state), rate: None, skip_errors: false };
        let target = Picky::default();
        let again = |text: &str| {
            std::fs::write(&path, text).unwrap();
            let sum = run(&job, &target).unwrap();
            (sum.stored, sum.skipped, std::mem::take(&mut *target.stored.lock().unwrap()).join("|"))
        };
        assert_eq!(again("a 1 1 h=a"), (1, 0, "a 1 1 h=a".into()));
        assert_eq!(again("a 1 1 h=ab\nb 1 1"), (2, 0, "a 1 1 h=ab|b 1 1".into()));
        assert_eq!(again("a 1 1 h=ab\nb 1 123 h=a\n"), (1, 1, "b 1 123 h=a".into()));
        assert_eq!(again("a 1 1 h=ab\nb 1 123 h=a\n"), (0, 2, String::new()));
    }

    /// Of two points at one instant the later line wins, so the order is part of what is imported.
    #[test]
    fn lines_of_all_files_reach_the_target_in_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let lines: Vec<String> = (0..200_000).map(|n| format!("m {n} 1 h=a")).collect();
        let paths: Vec<PathBuf> = (0..2).map(|n| folder.path().join(n.to_string())).collect();
        for (path, half) in paths.iter().zip(lines.chunks(100_000)) {
            std::fs::write(path, half.join("\n")).unwrap();
        }
        let target = Picky { turns: Some(turns::Turns::new()), ..Picky::default() };
        let sum = run(&Job { paths, resume: None, rate: None, skip_errors: false }, &target).unwrap();
        assert_eq!(sum.stored, 200_000);
        assert!(*target.stored.lock().unwrap() == lines);
    }

    /// What is behind it may be stored by then, and would be older than what it wins over.
    #[test]
    fn a_block_that_cannot_be_stored_now_is_sent_again_with_all_behind_it() {
        let folder = tempfile::tempdir().unwrap();
        let (path, state) = (folder.path().join("points"), folder.path().join("state"));
        let line = |n: usize| if n == 90_000 { "late 1 1 h=a".to_owned() } else { format!("m {n} 1 h=a") };
        let lines: Vec<String> = (0..200_000).map(line).collect();
        std::fs::write(&path, lines.join("\n") + "\n").unwrap();
        let job = Job { paths: vec![path], resume: Some(state), rate: None, skip_errors: false };
        let target = |later| Picky {
            turns: Some(turns::Turns::new()),
            later: AtomicU32::new(later),
            failing: Duration::from_secs(20),
            ..Picky::default()
        };
        let busy = target(3);
        assert_eq!(run(&job, &busy).unwrap().stored, 200_000, "each line counts once");
        let stored = busy.stored.into_inner().unwrap();
        let late = stored.iter().position(|line| line.starts_with("late")).unwrap();
        let first = lines.iter().position(|line| line == stored.last().unwrap()).unwrap();
        assert_eq!(first, 199_999);
        let behind = &stored[late..];
        assert!(*behind == lines[90_000..], "{} lines from the one that was late", behind.len());

        // It ends in the end, says how far it came, and goes on there.
        std::fs::remove_file(job.resume.as_ref().unwrap()).unwrap();
        let failure = run(&job, &target(4)).unwrap_err();
        assert_eq!(failure.exit, Exit::TryLater);
        let (stored, _) = failure.line.strip_prefix("no room; ").unwrap().split_once(" points").unwrap();
        assert!(failure.line.contains("run the same again, it goes on in"), "{}", failure.line);
        let stored: u64 = stored.parse().unwrap();
        assert!((1..=90_000).contains(&stored));
        let sum = run(&job, &target(0)).unwrap();
        assert_eq!((sum.skipped, sum.stored), (stored, 200_000 - stored));
    }

    /// A server whose machine is away makes each try wait for a connection.
    #[test]
    fn a_block_is_sent_again_for_a_time_however_many_tries_that_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("points");
        std::fs::write(&path, "late 1 1 h=a\n").unwrap();
        let job = Job { paths: vec![path], resume: None, rate: None, skip_errors: false };
        for (failing_secs, failures, is_stored) in [
            (0, 1_000, true),
            (1, 60, true),
            (1, 61, false),
            (20, 3, true),
            (20, 4, false),
            (100, 1, true),
            (100, 2, false),
        ] {
            let (later, failing) = (AtomicU32::new(failures), Duration::from_secs(failing_secs));
            let done = run(&job, &Picky { later, failing, ..Picky::default() });
            assert_eq!(done.map_err(|failure| failure.exit).is_ok(), is_stored, "{failures} of {failing:?}");
        }
    }

    #[test]
    fn points_that_could_not_be_stored_now_are_told_from_bad_ones() {
        let storage = |kind| Problem::Storage { kind, text: "x".into() };
        for problem in [storage(ErrorKind::ReadOnly), storage(ErrorKind::Unavailable), Problem::TimedOut] {
            assert!(is_for_later(&problem));
        }
        assert!(is_for_later(&Problem::Throttled { text: "x".into() }));
        assert!(!is_for_later(&Problem::EmptyMetric) && !is_for_later(&storage(ErrorKind::Invalid)));
    }
}
