//! What became of each row, and the last line.

use std::fmt;
use std::time::{Duration, Instant};

/// A row that cannot be run here, as an error that is none.
#[derive(Debug)]
pub(crate) struct Skip(pub(crate) String);

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Skip {}

/// Ends a row that needs what this machine lacks.
pub(crate) fn skip<T>(reason: impl Into<String>) -> anyhow::Result<T> {
    Err(Skip(reason.into()).into())
}

/// How often a row says how far it is.
const TOLD_EVERY: Duration = Duration::from_secs(5);

/// The rounds of a row, from 0 on. Now and then it says on stderr how far they are, as most rows take minutes.
pub(crate) fn rounds(row: &'static str, count: u64) -> impl Iterator<Item = u64> {
    let begun = Instant::now();
    let mut told = begun;
    (0..count).inspect(move |round| {
        if told.elapsed() >= TOLD_EVERY {
            told = Instant::now();
            eprintln!("{row}: {round} of {count} after {} s", begun.elapsed().as_secs());
        }
    })
}

/// Counts the rows that were run.
#[derive(Debug, Default)]
pub(crate) struct Verdicts {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl Verdicts {
    /// Runs a row and says what became of it; `again` is the command line that replays it.
    pub(crate) fn row(&mut self, name: &str, again: &str, run: impl FnOnce() -> anyhow::Result<String>) {
        let begun = Instant::now();
        let told = run();
        let seconds = begun.elapsed().as_secs_f64();
        match told {
            Ok(figures) => {
                self.passed += 1;
                println!("passed: {name}: {figures} ({seconds:.1} s)");
            }
            Err(error) if error.is::<Skip>() => {
                self.skipped += 1;
                println!("skipped: {name}: {error}");
            }
            Err(error) => {
                self.failed += 1;
                println!("failed: {name}: {error:#} ({seconds:.1} s)\nagain: basalt-torture {again}");
            }
        }
    }

    /// Prints the last line; answers whether nothing failed.
    pub(crate) fn close(&self) -> bool {
        println!("{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped);
        self.failed == 0
    }
}
