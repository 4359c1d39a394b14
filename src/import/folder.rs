//! A data folder without a server: the same ingest, in this process.
//!
//! Blocks are written to the log without waiting for the disk, and the log is synced when progress is remembered: that is
//! all that an import must keep, since it can be run again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use basalt_ingest::{Door, PointError, Problem, ProblemClass, RawPoint};
use tokio::runtime::Runtime;

use super::block::{self, Block};
use super::turns::Turns;
use super::{Stored, Target, is_for_later};
use crate::app::App;
use crate::config::{Config, Durability};
use crate::exit::{Exit, Failure};

/// How long points that find no room are offered again.
const PATIENCE: Duration = Duration::from_mins(1);
/// The pause between two offers.
const PAUSE: Duration = Duration::from_millis(20);

/// An opened folder.
pub(crate) struct Folder {
    runtime: Runtime,
    app: Arc<App>,
    turns: Turns,
}

impl Folder {
    /// Opens the folder that `config` names.
    ///
    /// # Errors
    ///
    /// Exit code 4 when a server holds it; the store's own.
    pub(crate) fn open(mut config: Config) -> Result<Self, Failure> {
        config.store.durability = Durability::Async;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|cause| Failure::new(Exit::Failure, format!("cannot start threads: {cause}")))?;
        let app = Arc::new(runtime.block_on(App::open(config))?);
        Ok(Self { runtime, app, turns: Turns::new() })
    }

    /// Hands points in; all of them are refused where there is no room for any.
    fn offer(&self, points: &[RawPoint<'_>]) -> Offered {
        match self.app.ingest.submit(points, Door::Import) {
            Ok(submission) => Offered::Under(submission),
            Err(cause) => {
                let problem = Problem::Throttled { text: cause.to_string().into() };
                let of = |index| PointError { index, problem: problem.clone() };
                Offered::Refused((0..points.len()).map(of).collect())
            }
        }
    }
}

enum Offered {
    Under(basalt_ingest::Submission),
    Refused(Vec<PointError>),
}

impl Offered {
    /// Waits for what is wrong with the points.
    fn errors(self) -> Vec<PointError> {
        match self {
            Self::Under(submission) => submission.wait().errors,
            Self::Refused(errors) => errors,
        }
    }
}

impl Target for Folder {
    fn store(&self, block: &Block) -> Result<Stored, Failure> {
        let text = block.text();
        let (mut points, problems) = block::read(&text);
        for problem in &problems {
            self.app.ingest.reject_line(Door::Import, problem);
        }
        let lines = points.len() + problems.len();
        let mut refused: Vec<String> = problems.iter().map(|problem| problem.telnet_text("put")).collect();
        let turn = self.turns.take(block.ticket).ok_or_else(super::stopped)?;
        let mut offered = self.offer(&points);
        // Only what finds no room keeps the others waiting.
        let mut turn = Some(turn);
        let until = Instant::now() + PATIENCE;
        loop {
            if let Offered::Under(_) = offered
                && let Some(turn) = turn.take()
            {
                turn.pass();
            }
            let mut again = Vec::new();
            for error in offered.errors() {
                match (error.problem.class(), points.get(error.index)) {
                    (ProblemClass::Throttled, Some(point)) if Instant::now() < until => again.push(*point),
                    _ if is_for_later(&error.problem) => {
                        let line = format!("the folder cannot be stored to now: {}", error.problem.telnet_text("put"));
                        return Err(Failure::new(Exit::TryLater, line));
                    }
                    _ => refused.push(error.problem.telnet_text("put")),
                }
            }
            if again.is_empty() {
                return Ok(Stored { points: (lines - refused.len()) as u64, refused });
            }
            points = again;
            let pause = Instant::now() + PAUSE;
            while let Some(left) = pause.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
                std::thread::park_timeout(left);
            }
            offered = self.offer(&points);
        }
    }

    fn sync(&self) -> Result<(), Failure> {
        self.app.sync()
    }

    fn finish(&mut self) -> Result<(), Failure> {
        self.runtime.block_on(self.app.close())
    }
}
