//! Basalt beside VictoriaMetrics on the same work: `/api/put` or telnet, interleaved rounds, each server alone on the machine while
//! it is measured. README.md has the command and the last table.

mod data;
mod disk;
mod load;
mod report;
mod server;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Parser;

use crate::data::Deal;
use crate::load::Door;
use crate::report::{Figures, Table};
use crate::server::{Kind, Server};

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
    /// How many connections send at once.
    #[arg(long, default_value_t = 4)]
    connections: usize,
    /// By which protocol.
    #[arg(long, value_enum, default_value = "json")]
    door: Door,
    /// Points that are stored before the folder is measured; 0 leaves that out.
    #[arg(long, default_value_t = 4_000_000)]
    disk_points: usize,
    /// An older Basalt, to take turns with this one.
    #[arg(long)]
    before: Option<PathBuf>,
    /// Where the servers keep their data; emptied for each run.
    #[arg(long, default_value = "/tmp/basalt-benches")]
    dir: PathBuf,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let mut peers = vec![(Kind::Basalt, args.basalt.clone())];
    peers.extend(args.before.clone().map(|path| (Kind::Before, path)));
    peers.extend(args.victoria_metrics.clone().map(|path| (Kind::VictoriaMetrics, path)));
    let mut table = Table::default();
    for &batch in &args.batches {
        let deal = Deal { door: args.door, batch, connections: args.connections };
        let bodies = data::bodies(args.points, deal);
        for round in 1..=args.rounds {
            for (kind, path) in &peers {
                let figures =
                    run(*kind, path, (&args, deal), &bodies).with_context(|| format!("{kind:?}, {batch} a batch"))?;
                eprintln!("{kind:?} batch {batch} round {round}: {figures}");
                table.add(*kind, batch, figures);
            }
        }
    }
    print!("{table}");
    for (kind, path) in peers.iter().filter(|_| args.disk_points > 0) {
        let points = args.disk_points;
        let (bytes, beforehand) = disk::bytes_a_point(*kind, path, &args.dir, points)?;
        println!(
            "{kind}: {bytes:.2} bytes a point on disk after compaction, {points} points, and {} MiB made beforehand",
            beforehand >> 20
        );
    }
    Ok(())
}

/// One server, started empty, taught the series, then timed.
fn run(kind: Kind, path: &std::path::Path, (args, deal): (&Args, Deal), bodies: &load::Bodies) -> Result<Figures> {
    let server = Server::start(kind, path, &args.dir)?;
    let port = server.port(deal.door);
    load::send(port, &data::first_points(deal))?;
    let before = server.cpu_seconds()?;
    let took = load::send(port, bodies)?;
    let figures = Figures {
        points_a_second: bodies.points as f64 / took.as_secs_f64(),
        cpu_a_million: (server.cpu_seconds()? - before) * 1e6 / bodies.points as f64,
        peak_mib: server.peak_mib()?,
    };
    server.stop()?;
    Ok(figures)
}
