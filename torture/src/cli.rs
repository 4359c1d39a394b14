//! The command line.

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::verdict::Verdicts;
use crate::{countdown, flip, sim, trunc};

/// Takes Basalt through crashes, faults and damage, and holds it to a ledger.
#[derive(Debug, Parser)]
#[command(
    name = "basalt-torture",
    version,
    after_help = "\
The last line is `N passed, N failed, N skipped`. A failure prints the command that replays it.

Examples:
  basalt-torture all --short               every row, a few of each: what the gate runs
  basalt-torture sim --histories 100000
  basalt-torture kill9 --cycles 1000 --seed 7 --basalt target/release/basalt"
)]
struct Cli {
    #[command(subcommand)]
    row: Row,
    /// Where chance begins
    #[arg(long, global = true, default_value_t = 1)]
    seed: u64,
}

#[derive(Debug, Args)]
struct All {
    /// A few of each, for the gate
    #[arg(long)]
    short: bool,
}

#[derive(Debug, Subcommand)]
enum Row {
    /// Every row with its full count
    All(All),
    /// Seeded histories on disks that a power loss may leave
    Sim {
        #[arg(long, default_value_t = 100_000)]
        histories: u64,
    },
    /// Every call to the disk fails in its turn
    Countdown {
        #[arg(long, default_value_t = 10)]
        histories: u64,
        /// Fail one call in so many
        #[arg(long, default_value_t = 1)]
        every: u64,
    },
    /// A log cut at every byte
    Trunc {
        /// Cut at one byte in so many
        #[arg(long, default_value_t = 1)]
        every: usize,
    },
    /// Live bytes of every kind of file are damaged
    Flip {
        #[arg(long, default_value_t = 100_000)]
        flips: u64,
    },
}

impl Row {
    /// The row and what follows its name on the command line.
    fn run(&self, seed: u64, verdicts: &mut Verdicts) {
        match self {
            Row::All(All { short }) => Row::all(*short).iter().for_each(|row| row.run(seed, verdicts)),
            Row::Sim { histories } => {
                let again = format!("sim --histories {histories} --seed {seed}");
                verdicts.row("sim", &again, || sim::run(seed, *histories));
            }
            Row::Countdown { histories, every } => {
                let again = format!("countdown --histories {histories} --every {every} --seed {seed}");
                verdicts.row("countdown", &again, || countdown::run(seed, *histories, *every));
            }
            Row::Trunc { every } => {
                verdicts.row("trunc", &format!("trunc --every {every}"), || trunc::run(*every));
            }
            Row::Flip { flips } => {
                let again = format!("flip --flips {flips} --seed {seed}");
                verdicts.row("flip", &again, || flip::run(seed, *flips));
            }
        }
    }

    fn all(short: bool) -> Vec<Row> {
        if short {
            return vec![
                Row::Sim { histories: 100 },
                Row::Countdown { histories: 1, every: 250 },
                Row::Trunc { every: 500 },
                Row::Flip { flips: 500 },
            ];
        }
        vec![
            Row::Sim { histories: 100_000 },
            Row::Countdown { histories: 10, every: 1 },
            Row::Trunc { every: 1 },
            Row::Flip { flips: 100_000 },
        ]
    }
}

/// Runs what the command line asks for.
pub(crate) fn run() -> ExitCode {
    let cli = Cli::parse();
    let mut verdicts = Verdicts::default();
    cli.row.run(cli.seed, &mut verdicts);
    if verdicts.close() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
