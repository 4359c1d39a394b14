//! Basalt's engine beside RocksDB and fjall on the same cells: interleaved rounds, each engine in a process of its own, alone
//! on the machine while it is measured. README.md has the command, the settings and the last table.

mod basalt;
mod cells;
mod fjall;
mod measure;
mod process;
mod report;
mod rocks;
mod subject;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::{Parser, ValueEnum};

use crate::report::Table;

/// An engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Kind {
    Basalt,
    Rocksdb,
    Fjall,
}

/// How much each engine gets.
#[derive(Debug, Parser)]
struct Args {
    /// Rounds, the engines in turn.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Cells of a load.
    #[arg(long, default_value_t = 10_000_000)]
    cells: u64,
    /// Cells of the load whose every batch is synced.
    #[arg(long, default_value_t = 500_000)]
    durable_cells: u64,
    /// Cells of a row.
    #[arg(long, default_value_t = 1)]
    columns: u64,
    /// Cells of a batch.
    #[arg(long, default_value_t = 1000)]
    batch: u64,
    /// Gets of each kind.
    #[arg(long, default_value_t = 200_000)]
    gets: u64,
    /// Short scans, of 100 cells each.
    #[arg(long, default_value_t = 20_000)]
    short_scans: u64,
    /// Which engines.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Kind::Basalt, Kind::Rocksdb, Kind::Fjall])]
    engines: Vec<Kind>,
    /// Where the data lies; emptied for each run.
    #[arg(long, default_value = "/tmp/basalt-store-bench")]
    dir: PathBuf,
    /// Runs one engine in this process and prints its figures.
    #[arg(long, hide = true)]
    one: Option<Kind>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    if let Some(kind) = args.one {
        for figure in measure::run(kind, &args)? {
            println!("{figure}");
        }
        return Ok(());
    }
    let mut table = Table::default();
    for round in 0..args.rounds {
        for turn in 0..args.engines.len() {
            // Nobody is always first.
            let kind = args.engines[(round + turn) % args.engines.len()];
            eprintln!("round {} of {}: {kind:?}", round + 1, args.rounds);
            let told = alone(kind).with_context(|| format!("{kind:?}"))?;
            eprint!("{told}");
            table.add(kind, &told)?;
        }
    }
    print!("{table}");
    Ok(())
}

/// Runs one engine in a process of its own with the arguments of this one.
fn alone(kind: Kind) -> Result<String> {
    let name = kind.to_possible_value().context("a name")?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(std::env::args_os().skip(1)).args(["--one", name.get_name()]);
    let output = command.stderr(std::process::Stdio::inherit()).output()?;
    ensure!(output.status.success(), "it ended with {}", output.status);
    Ok(String::from_utf8(output.stdout)?)
}
