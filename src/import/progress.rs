//! How far an import is: outcomes put in order, counted, shown, and remembered when they are durable.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::block::{Block, Refused};
use super::job::{Job, Sum};
use super::resume::Resume;
use super::source::Source;
use super::target::{Stored, Target};
use crate::exit::{Exit, Failure};
use crate::progress::ProgressLog;

/// Refused lines that are shown when they are skipped.
const SHOWN_MAX: u64 = 10;
/// How often progress is made durable and remembered.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(1);
/// How long an import that holds itself back does not hear that it is to end.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// An import under way.
pub(super) struct Progress<'a> {
    job: &'a Job,
    resume: Resume,
    sum: Sum,
    began: Instant,
    checkpointed: Instant,
    path: PathBuf,
    /// The first bytes of the file.
    head: Vec<u8>,
    /// Lines of the file stored and not yet remembered.
    lines: Option<u64>,
    bar: ProgressBar,
    log: ProgressLog,
}

impl<'a> Progress<'a> {
    /// Reads what earlier runs did.
    ///
    /// # Errors
    ///
    /// The file that remembers it cannot be read, or is of another target.
    pub(super) fn begin(job: &'a Job, target: &dyn Target) -> Result<Self, Failure> {
        Ok(Self {
            resume: Resume::load(job.resume.as_deref(), target.name())?,
            job,
            sum: Sum::default(),
            began: Instant::now(),
            checkpointed: Instant::now(),
            path: PathBuf::new(),
            head: Vec::new(),
            lines: None,
            bar: ProgressBar::hidden(),
            log: ProgressLog::new(),
        })
    }

    /// A file begins: passes over the lines that earlier runs did.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is another file than that of earlier runs.
    pub(super) fn open(&mut self, path: &Path, source: &mut Source) -> Result<(), Failure> {
        path.clone_into(&mut self.path);
        source.head()?.clone_into(&mut self.head);
        self.sum.skipped += source.skip(self.resume.done(path, &self.head)?)?;
        let bytes_all = source.bytes_all();
        self.bar = ProgressBar::new(bytes_all).with_style(style()).with_message(path.display().to_string());
        Ok(())
    }

    /// A file is at its end.
    pub(super) fn close(&mut self, target: &dyn Target) -> Result<(), Failure> {
        self.bar.finish();
        self.checkpoint(target)?;
        self.log.tell_now(|| self.line());
        Ok(())
    }

    /// Remembers and tells how far it is, where it is time, and holds the import back as the rate asks.
    ///
    /// # Errors
    ///
    /// The target's; the import is asked to end.
    pub(super) fn show(&mut self, target: &dyn Target) -> Result<(), Failure> {
        if self.checkpointed.elapsed() >= CHECKPOINT_EVERY {
            self.checkpoint(target)?;
        }
        self.log.tell(|| self.line());
        self.hold_back();
        if self.job.ends() { Err(Failure::new(Exit::TryLater, "interrupted")) } else { Ok(()) }
    }

    /// How far the file is.
    fn line(&self) -> String {
        let (path, sum) = (self.path.display(), self.sum());
        let part = self.bar.length().filter(|length| *length > 0);
        let part = part.map_or_else(String::new, |length| format!("{} %, ", self.bar.position() * 100 / length));
        format!("{path}: {part}{} points stored, {:.0} points/s", sum.stored, sum.rate())
    }

    /// Makes durable what is stored, then remembers it; last, so that what ended the import is sent again.
    pub(super) fn checkpoint(&mut self, target: &dyn Target) -> Result<(), Failure> {
        self.checkpointed = Instant::now();
        if self.lines.is_none() {
            return Ok(());
        }
        target.sync()?;
        self.remember()
    }

    /// Remembers what is stored, all of which is durable.
    pub(super) fn remember(&mut self) -> Result<(), Failure> {
        let Some(lines) = self.lines else { return Ok(()) };
        self.resume.advance(&self.path, &self.head, lines)?;
        self.lines = None;
        Ok(())
    }

    /// What was done up to now.
    pub(super) fn sum(&self) -> Sum {
        Sum { took: self.began.elapsed(), ..self.sum }
    }

    /// Counts what became of a block, in the blocks' order.
    ///
    /// # Errors
    ///
    /// Lines were refused, and are not skipped.
    pub(super) fn account(&mut self, block: &Block, Stored { points, refused }: Stored) -> Result<(), Failure> {
        let before = self.sum.refused;
        self.sum.refused += refused.len() as u64;
        self.sum.stored += points;
        let path = self.path.display();
        let tell = |Refused { line, text }: &Refused| match line {
            Some(line) => format!("{path}, line {line}: {text}"),
            None => format!("{path}: {text}"),
        };
        if let Some(first) = refused.first().filter(|_| !self.job.skip_errors) {
            let (count, first) = (refused.len(), tell(first));
            let line = format!("{count} lines refused, the first: {first}; mend them or add --skip-errors");
            return Err(Failure::new(Exit::Failure, line));
        }
        for (place, refused) in (before..).zip(&refused) {
            if place < SHOWN_MAX {
                self.tell(&tell(refused));
            }
        }
        self.lines = Some(block.lines_end);
        self.bar.set_position(block.bytes_end);
        Ok(())
    }

    /// A failure that ends the import before its end, which tells how the rest is done if it may be later.
    pub(super) fn ended(&self, Failure { exit, line }: Failure, is_remembered: bool) -> Failure {
        // Before the first file nothing was stored.
        let is_for_later = exit == Exit::TryLater && !self.path.as_os_str().is_empty();
        Failure {
            exit,
            line: if is_for_later { format!("{line}; {}", self.how_to_go_on(is_remembered)) } else { line },
        }
    }

    /// What was done, and how the rest is.
    fn how_to_go_on(&self, is_remembered: bool) -> String {
        let (stored, path) = (self.sum.stored, self.path.display());
        if stored == 0 {
            return "nothing was stored: run the same again".to_owned();
        }
        let again = match (&self.job.resume, is_remembered) {
            (Some(_), true) => format!("it goes on in {path} behind them"),
            (Some(_), false) => "which stores some of them once more".to_owned(),
            (None, _) => "which stores them once more; with --resume it would go on behind them".to_owned(),
        };
        format!("{stored} points of the lines before are stored: run the same again, {again}")
    }

    /// Tells a line. Not by the bar's own printing: that is silent where there is no terminal.
    pub(super) fn tell(&self, line: &str) {
        self.bar.suspend(|| writeln!(std::io::stderr(), "{line}").unwrap_or_default());
    }

    /// Waits until the points stored so far are no more than the rate allows, or the import is to end.
    fn hold_back(&self) {
        let Some(rate) = self.job.rate.filter(|rate| *rate > 0) else { return };
        let due = Duration::from_millis(self.sum.stored.saturating_mul(1_000) / rate);
        while let Some(wait) = due.checked_sub(self.began.elapsed()).filter(|wait| !wait.is_zero()) {
            if self.job.ends() {
                return;
            }
            std::thread::park_timeout(wait.min(LOOK_EVERY));
        }
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} eta {eta}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
}
