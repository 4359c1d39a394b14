//! Text files into a target, block by block: read, store, remember, report.
//!
//! A block is stored as a whole before the next is read, and remembered only when every line of it is
//! stored or may be skipped, so that whatever ends an import, running it again loses no line; at most
//! one block is sent twice, which is harmless since a point written twice is one point.

mod folder;
mod remote;
mod resume;
mod source;

use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::exit::{Exit, Failure};

pub(crate) use folder::Folder;
pub(crate) use remote::Remote;
use resume::Resume;
use source::Source;

/// Lines of one block.
const BLOCK_LINES: usize = 5_000;
/// Refused lines that are shown when they are skipped.
const SHOWN_MAX: u64 = 10;

/// Where points go.
pub(crate) trait Target {
    /// Stores a block of `put` lines, each with its line end; returns when it is durable, with one
    /// text for each line that was refused.
    ///
    /// # Errors
    ///
    /// The block may be stored or not: the server is gone, or asks to come back later (75).
    fn store(&mut self, lines: &[Vec<u8>]) -> Result<Vec<String>, Failure>;

    /// Lets go of the target.
    ///
    /// # Errors
    ///
    /// What was stored could not be closed cleanly.
    fn finish(&mut self) -> Result<(), Failure>;
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

/// Does the job.
///
/// # Errors
///
/// Unreadable files, refused lines unless they are skipped, and the target's own; progress is
/// remembered in all cases.
pub(crate) fn run(job: &Job, target: &mut dyn Target) -> Result<Sum, Failure> {
    let mut resume = Resume::load(job.resume.as_deref())?;
    let mut sum = Sum::default();
    let began = Instant::now();
    for path in &job.paths {
        let mut source = Source::open(path)?;
        let done = resume.done(path);
        sum.skipped += source.skip(done)?;
        let bar = ProgressBar::new(source.bytes_all()).with_style(style()).with_message(path.display().to_string());
        loop {
            let block = source.block(BLOCK_LINES)?;
            if block.is_empty() {
                break;
            }
            let refused = target.store(&block)?;
            account(job, &mut sum, block.len() as u64, &refused, &bar)?;
            // Last: what ended the import above is mended, and then the block is sent again.
            resume.advance(path, source.lines())?;
            bar.set_position(source.bytes_read());
            hold_back(job.rate, &sum, began);
        }
        bar.finish();
    }
    sum.took = began.elapsed();
    Ok(sum)
}

/// The first of a block's error lines that says the line was good and could not be stored now.
///
/// Such a line must not count as refused: it would be skipped for good.
fn not_now(said: &[String]) -> Option<&str> {
    const PREFIXES: [&str; 3] = ["put: Please throttle", "put: HBase error", "put: Request timed out"];
    let later = |line: &&String| PREFIXES.iter().any(|prefix| line.starts_with(prefix));
    said.iter().find(later).map(String::as_str)
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} eta {eta}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}

fn account(job: &Job, sum: &mut Sum, lines: u64, refused: &[String], bar: &ProgressBar) -> Result<(), Failure> {
    let before = sum.refused;
    sum.refused += refused.len() as u64;
    sum.stored += lines.saturating_sub(refused.len() as u64);
    if let Some(first) = refused.first().filter(|_| !job.skip_errors) {
        let line = format!("{} lines refused, the first: {first}; mend them or add --skip-errors", refused.len());
        return Err(Failure::new(Exit::Failure, line));
    }
    for (place, text) in (before..).zip(refused) {
        if place < SHOWN_MAX {
            // Not the bar's own printing: that is silent where there is no terminal.
            bar.suspend(|| writeln!(std::io::stderr(), "{text}").unwrap_or_default());
        }
    }
    Ok(())
}

/// Waits until the points stored so far are no more than `rate` allows.
fn hold_back(rate: Option<u64>, sum: &Sum, began: Instant) {
    let Some(rate) = rate.filter(|rate| *rate > 0) else { return };
    let due = Duration::from_millis(sum.stored.saturating_mul(1_000) / rate);
    while let Some(wait) = due.checked_sub(began.elapsed()).filter(|wait| !wait.is_zero()) {
        std::thread::park_timeout(wait);
    }
}

#[cfg(test)]
mod tests {
    use basalt_ingest::Problem;
    use basalt_store::ErrorKind;

    use super::*;

    /// Refuses every line that has an `x`.
    struct Picky {
        stored: Vec<String>,
    }

    impl Target for Picky {
        fn store(&mut self, lines: &[Vec<u8>]) -> Result<Vec<String>, Failure> {
            let lines = lines.iter().map(|line| String::from_utf8(line.clone()).unwrap());
            let (bad, good): (Vec<_>, Vec<_>) = lines.partition(|line| line.contains('x'));
            self.stored.extend(good);
            Ok(bad)
        }

        fn finish(&mut self) -> Result<(), Failure> {
            Ok(())
        }
    }

    /// "Mend them" must be possible: what was refused is sent again.
    #[test]
    fn a_block_with_a_refused_line_is_not_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let (path, state) = (folder.path().join("points"), folder.path().join("state"));
        let mut job = Job { paths: vec![path.clone()], resume: Some(state), rate: None, skip_errors: false };
        let mut target = Picky { stored: Vec::new() };
        std::fs::write(&path, "a 1 1 h=a\nb 1 x h=a\n").unwrap();
        assert!(run(&job, &mut target).is_err());
        std::fs::write(&path, "a 1 1 h=a\nb 1 2 h=a\nc 1 x h=a\n").unwrap();
        job.skip_errors = true;
        let sum = run(&job, &mut target).unwrap();
        assert_eq!((sum.stored, sum.refused, sum.skipped), (2, 1, 0));
        assert!(target.stored.contains(&"put b 1 2 h=a\n".to_owned()), "{:?}", target.stored);
        assert_eq!(run(&job, &mut target).unwrap().skipped, 3, "what may be skipped is done");
    }

    #[test]
    fn lines_that_could_not_be_stored_now_are_told_from_bad_ones() {
        let storage = |kind| Problem::Storage { kind, text: "x".into() };
        for problem in [storage(ErrorKind::ReadOnly), storage(ErrorKind::Unavailable), Problem::TimedOut] {
            let said = ["put: illegal argument: x".to_owned(), problem.telnet_text("put")];
            assert_eq!(not_now(&said), said.last().map(String::as_str));
        }
        assert!(not_now(&[Problem::Throttled { text: "x".into() }.telnet_text("put")]).is_some());
        assert!(not_now(&[Problem::EmptyMetric.telnet_text("put")]).is_none());
    }
}
