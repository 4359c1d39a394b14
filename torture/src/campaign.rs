//! Rounds of load, each ended by some disaster and followed by a look at what is there.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use basalt_engine::io::{Rng as _, SplitMix};

use crate::check::{settle, verify};
use crate::daemon::{Daemon, Program, pause};
use crate::ledger::Epoch;
use crate::load::Load;

/// Rounds after which the writers begin new metrics.
const ROUNDS_AN_EPOCH: u64 = 10;

#[derive(Debug)]
pub(crate) struct Campaign<'a> {
    pub(crate) program: &'a Program,
    data: PathBuf,
    present: Epoch,
    past: Vec<Epoch>,
    rounds: u64,
    opened_in: Vec<Duration>,
    pub(crate) rng: SplitMix,
}

impl<'a> Campaign<'a> {
    pub(crate) fn new(program: &'a Program, data: &Path, seed: u64) -> Campaign<'a> {
        Campaign {
            program,
            data: data.to_path_buf(),
            present: Epoch::new("e0"),
            past: Vec::new(),
            rounds: 0,
            opened_in: Vec::new(),
            rng: SplitMix::new(seed),
        }
    }

    /// The present epoch's ledgers.
    pub(crate) fn epoch(&self) -> &Epoch {
        &self.present
    }

    /// Opens the store, holds it against the present epoch and settles what was in flight.
    pub(crate) fn open(&mut self) -> Result<Daemon> {
        let round = self.rounds;
        let opened = self.program.serve(&self.data).and_then(|daemon| {
            verify(&daemon, self.epoch())?;
            settle(&daemon, self.epoch())?;
            Ok(daemon)
        });
        let daemon = opened.with_context(|| format!("after round {round}"))?;
        self.opened_in.push(daemon.opened_in);
        if round > 0 && round.is_multiple_of(ROUNDS_AN_EPOCH) {
            let next = Epoch::new(format!("e{}", round / ROUNDS_AN_EPOCH));
            self.past.push(std::mem::replace(&mut self.present, next));
        }
        self.rounds += 1;
        Ok(daemon)
    }

    /// Writes for some 50 to 500 ms, then lets `disaster` end the daemon, which ends the writers.
    pub(crate) fn load<T>(
        &mut self,
        daemon: &mut Daemon,
        disaster: impl FnOnce(&mut Daemon, &Epoch) -> Result<T>,
    ) -> Result<T> {
        let time = Duration::from_millis(50 + self.rng.below(450));
        let load = Load::new(daemon.port(), self.epoch());
        thread::scope(|scope| {
            let writers = load.start(scope);
            wait(time);
            let came_to = disaster(daemon, self.epoch());
            load.stop.store(true, std::sync::atomic::Ordering::Relaxed);
            Load::join(writers)?;
            came_to
        })
    }

    /// Opens a last time and holds everything against all ledgers; answers the figures.
    pub(crate) fn close(&mut self) -> Result<String> {
        let mut daemon = self.open()?;
        for epoch in &self.past {
            verify(&daemon, epoch)?;
        }
        daemon.kill()?;
        self.opened_in.sort_unstable();
        let p99 = self.opened_in.get(self.opened_in.len() * 99 / 100).copied().unwrap_or_default();
        let acknowledged: u64 = self.past.iter().chain([&self.present]).map(Epoch::acknowledged).sum();
        Ok(format!(
            "{acknowledged} points acknowledged, 0 lost, 0 wrong, 0 phantom, 0 rows torn; reopened within {} ms (p99)",
            p99.as_millis()
        ))
    }
}

/// Lets the time pass.
pub(crate) fn wait(time: Duration) {
    let begun = std::time::Instant::now();
    while let Some(left) = time.checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) {
        pause(left);
    }
}
