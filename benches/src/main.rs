//! Basalt beside its peers on the same work, interleaved, each server alone at work while it is measured (`questions` keeps the others up and idle). Without a
//! command: points put. `questions`: TSBS's twelve over twelve hours. `soak`: a panel asked for while points pour in. `sets`: bytes a point of
//! metrics of many kinds. README.md has the commands and the last tables.

mod data;
mod disk;
mod load;
mod peer;
mod questions;
mod report;
mod server;
mod sets;
mod soak;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

use crate::data::Deal;
use crate::load::Door;
use crate::peer::{Kind, Peer, Running};
use crate::report::{Figures, Table};
use crate::server::Server;

/// How much each side gets, and where its program lies.
#[derive(Debug, Parser)]
struct Args {
    #[command(subcommand)]
    command: Option<Work>,
    /// The basalt binary, built with --release.
    #[arg(long, global = true, default_value = "../target/release/basalt")]
    basalt: PathBuf,
    /// An older Basalt, to take turns with this one.
    #[arg(long, global = true)]
    before: Option<PathBuf>,
    /// VictoriaMetrics' binary; ratios are to it. Without any peer Basalt runs alone.
    #[arg(long, global = true)]
    victoria_metrics: Option<PathBuf>,
    /// VictoriaMetrics in another version.
    #[arg(long, global = true)]
    victoria_metrics_too: Option<PathBuf>,
    /// `influxd` of InfluxDB 1.
    #[arg(long, global = true)]
    influxdb: Option<PathBuf>,
    /// The folder of QuestDB's jars; needs `java`.
    #[arg(long, global = true)]
    questdb: Option<PathBuf>,
    /// The pids of the oracle's HBase and OpenTSDB, comma between them.
    #[arg(long, global = true)]
    opentsdb: Option<Running>,
    /// Rounds, the servers in turn.
    #[arg(long, global = true, default_value_t = 3)]
    rounds: usize,
    /// Points a round; their bodies, 217 bytes each as JSON, are made beforehand.
    #[arg(long, default_value_t = 10_000_000)]
    points: usize,
    /// Points a request, each a row of the table.
    #[arg(long, value_delimiter = ',', default_values_t = [50, 500, 5000])]
    batches: Vec<usize>,
    /// How many connections send at once.
    #[arg(long, global = true, default_value_t = 4)]
    connections: usize,
    /// By which protocols.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "json")]
    door: Vec<Door>,
    /// Points that are stored before the folder is measured; 0 leaves that out.
    #[arg(long, default_value_t = 4_000_000)]
    disk_points: usize,
    /// Where the servers keep their data; emptied for each run.
    #[arg(long, global = true, default_value = "/tmp/basalt-benches")]
    dir: PathBuf,
}

#[derive(Debug, Subcommand)]
enum Work {
    /// TSBS's twelve questions over hours of points, the servers in turn
    Questions(questions::Args),
    /// A panel's latency, quiet and while points pour in
    Soak(soak::Args),
    /// Bytes a point of metrics of many kinds
    Sets(sets::Args),
}

impl Args {
    /// All who take part, this Basalt first.
    fn peers(&self) -> Vec<Peer> {
        let others = [
            (Kind::Before, &self.before),
            (Kind::VictoriaMetrics, &self.victoria_metrics),
            (Kind::VictoriaMetricsToo, &self.victoria_metrics_too),
            (Kind::InfluxDb, &self.influxdb),
            (Kind::QuestDb, &self.questdb),
        ];
        let mut peers = vec![(Kind::Basalt, self.basalt.clone())];
        peers.extend(others.into_iter().filter_map(|(kind, path)| Some((kind, path.clone()?))));
        peers.extend(self.opentsdb.iter().map(|_| (Kind::OpenTsdb, PathBuf::new())));
        peers
    }
}

fn main() -> Result<()> {
    let args = Args::parse();
    match &args.command {
        Some(Work::Questions(work)) => questions::run(&args, work),
        Some(Work::Soak(work)) => soak::run(&args, work),
        Some(Work::Sets(work)) => sets::run(&args, work),
        None => put(&args),
    }
}

fn put(args: &Args) -> Result<()> {
    let peers = args.peers();
    let mut table = Table::default();
    for &door in &args.door {
        for &batch in &args.batches {
            let deal = Deal { door, batch, connections: args.connections };
            let bodies = data::bodies(args.points, deal);
            for round in 1..=args.rounds {
                for peer in peers.iter().filter(|(kind, _)| kind.door(door).is_some()) {
                    let figures = put_round(peer, (args, deal), &bodies)
                        .with_context(|| format!("{}, {door}, {batch} a batch", peer.0))?;
                    eprintln!("{} {door} {batch} round {round}: {figures}", peer.0);
                    table.add(peer.0, door, batch, figures);
                }
            }
        }
    }
    print!("{table}");
    for (kind, path) in peers.iter().filter(|(kind, _)| kind.is_basalt() || kind.is_victoria_metrics()) {
        if args.disk_points == 0 {
            break;
        }
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
fn put_round((kind, program): &Peer, (args, deal): (&Args, Deal), bodies: &load::Bodies) -> Result<Figures> {
    let server = match &args.opentsdb {
        Some(running) if *kind == Kind::OpenTsdb => Server::running(*kind, running),
        _ => Server::start(*kind, program, &args.dir)?,
    };
    let (port, path) = kind.door(deal.door).context("no such door")?;
    load::send(port, path, &data::first_points(deal))?;
    let share;
    let bodies = match kind.one_in(deal.door) {
        1 => bodies,
        one_in => {
            share = bodies.share(one_in);
            &share
        }
    };
    let before = server.cpu_seconds()?;
    let took = load::send(port, path, bodies)?;
    let figures = Figures {
        points_a_second: bodies.points as f64 / took.as_secs_f64(),
        cpu_a_million: (server.cpu_seconds()? - before) * 1e6 / bodies.points as f64,
        peak_mib: server.peak_mib()?,
    };
    server.stop()?;
    Ok(figures)
}
