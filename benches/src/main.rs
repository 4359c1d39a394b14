//! Basalt beside VictoriaMetrics on the same work: `/api/put` over 4 connections, interleaved rounds, each server alone on the
//! machine while it is measured. README.md has the command and the last table.

mod data;
mod disk;
mod load;
mod report;
mod server;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Parser;

use crate::report::{Figures, Table};
use crate::server::{Kind, Server};

/// Points each server stores before its folder is measured.
const DISK_POINTS: usize = 4_000_000;

/// How much each side gets, and where its program lies.
#[derive(Debug, Parser)]
struct Args {
    /// The basalt binary, built with --release.
    #[arg(long, default_value = "../target/release/basalt")]
    basalt: PathBuf,
    /// VictoriaMetrics' binary; without it Basalt runs alone.
    #[arg(long)]
    victoria_metrics: Option<PathBuf>,
    /// Rounds of each batch size, the servers in turn.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Points a round.
    #[arg(long, default_value_t = 1_000_000)]
    points: usize,
    /// Points a request, each a row of the table.
    #[arg(long, value_delimiter = ',', default_values_t = [50, 500, 5000])]
    batches: Vec<usize>,
    /// Where the servers keep their data; emptied for each run.
    #[arg(long, default_value = "/tmp/basalt-benches")]
    dir: PathBuf,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let mut peers = vec![(Kind::Basalt, args.basalt.clone())];
    peers.extend(args.victoria_metrics.clone().map(|path| (Kind::VictoriaMetrics, path)));
    let mut table = Table::default();
    for &batch in &args.batches {
        let bodies = data::bodies(args.points, batch);
        for round in 1..=args.rounds {
            for (kind, path) in &peers {
                let figures = run(*kind, path, &args, &bodies).with_context(|| format!("{kind:?}, {batch} a batch"))?;
                eprintln!("{kind:?} batch {batch} round {round}: {figures}");
                table.add(*kind, batch, figures);
            }
        }
    }
    print!("{table}");
    for (kind, path) in &peers {
        let (bytes, beforehand) = disk::bytes_a_point(*kind, path, &args.dir, DISK_POINTS)?;
        println!(
            "{kind}: {bytes:.2} bytes a point on disk after compaction, {DISK_POINTS} points, and {} MiB made beforehand",
            beforehand >> 20
        );
    }
    Ok(())
}

/// One server, started empty, taught the series, then timed.
fn run(kind: Kind, path: &std::path::Path, args: &Args, bodies: &load::Bodies) -> Result<Figures> {
    let server = Server::start(kind, path, &args.dir)?;
    load::send(server.put_port(), &data::first_points())?;
    let before = server.cpu_seconds()?;
    let took = load::send(server.put_port(), bodies)?;
    let figures = Figures {
        points_a_second: bodies.points as f64 / took.as_secs_f64(),
        cpu_a_million: (server.cpu_seconds()? - before) * 1e6 / bodies.points as f64,
        peak_mib: server.peak_mib()?,
    };
    server.stop()?;
    Ok(figures)
}
