//! A panel's latency while nothing else goes on, and while points pour in as fast as the server takes them: the panel asks for the
//! most a minute of five metrics over eight hosts and an hour, at a rate, its latency counted from when it was due. The points'
//! clock runs far faster than the wall's, so that full hours are crossed, and rows are folded, all the time.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::load::Door;
use crate::peer::{Kind, Peer};
use crate::questions;
use crate::report::spread;
use crate::server::Server;

/// How long, and how often.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Seconds of points pouring in.
    #[arg(long, default_value_t = 1800)]
    seconds: u64,
    /// Seconds that the panel is asked for before.
    #[arg(long, default_value_t = 60)]
    quiet_seconds: u64,
    /// Panels a second.
    #[arg(long, default_value_t = 10)]
    panels: u64,
    /// Points a request.
    #[arg(long, default_value_t = 500)]
    batch: u64,
}

const HOSTS: u64 = 1000;
const HOUR_S: u64 = 3_600;
/// The points that the panel shows: two hours of TSBS's hosts.
const START_S: u64 = 1_700_000_000 / HOUR_S * HOUR_S;
const SHOWN_S: u64 = 2 * HOUR_S;
/// More seconds of points than any server takes in a run.
const POURED_S: u64 = 10_000 * HOUR_S;

/// What a server showed.
struct Shown {
    quiet: [f64; 3],
    poured: [f64; 3],
    puts: Value,
    cpu_a_million: f64,
    peak_mib: f64,
}

/// Each server in turn.
pub(crate) fn run(all: &crate::Args, args: &Args) -> Result<()> {
    println!(
        "| server | panel quiet, p50 / p99 / max ms | panel under load | k points/s | CPU s a million | puts p50 / p99 / p99.9 / max ms | peak MiB |"
    );
    println!("|---|---|---|---|---|---|---|");
    for peer in all.peers().iter().filter(|(kind, _)| questions::port(*kind).is_some()) {
        let shown = one(all, args, peer).with_context(|| peer.0.to_string())?;
        let [a, b, c] = shown.quiet;
        let [d, e, f] = shown.poured;
        let line = &shown.puts["lines"][0];
        let ms = |name: &str| line["latency"][name].as_f64().unwrap_or(f64::NAN);
        println!(
            "| {} | {a:.2} / {b:.2} / {c:.2} | {d:.2} / {e:.2} / {f:.2} | {:.0} | {:.2} | {:.2} / {:.2} / {:.2} / {:.2} | {:.0} |",
            peer.0,
            line["per_second"].as_f64().unwrap_or(f64::NAN) / 1e3,
            shown.cpu_a_million,
            ms("p50_ms"),
            ms("p99_ms"),
            ms("p999_ms"),
            ms("max_ms"),
            shown.peak_mib
        );
    }
    Ok(())
}

fn one(all: &crate::Args, args: &Args, (kind, program): &Peer) -> Result<Shown> {
    let server = Server::start(*kind, program, &all.dir)?;
    let report = all.dir.join("soak.json");
    let first = ingest(all, (*kind, args.batch), &[("--start", START_S), ("--span", SHOWN_S)], &report)?.wait()?;
    ensure!(first.success(), "the panel's points were not stored");
    let quiet = panels(args, *kind, Duration::from_secs(args.quiet_seconds))?;
    let before = server.cpu_seconds()?;
    let then = [("--start", START_S + SHOWN_S), ("--span", POURED_S), ("--seconds", args.seconds)];
    let mut pouring = ingest(all, (*kind, args.batch), &then, &report)?;
    let poured = panels(args, *kind, Duration::from_secs(args.seconds))?;
    ensure!(pouring.wait()?.success(), "points were refused; see {}", report.display());
    let puts: Value = serde_json::from_slice(&std::fs::read(&report)?)?;
    let points = puts["lines"][0]["done"].as_f64().context("no count of points")?;
    let cpu_a_million = (server.cpu_seconds()? - before) * 1e6 / points;
    let peak_mib = server.peak_mib()?;
    server.stop()?;
    Ok(Shown { quiet, poured, puts, cpu_a_million, peak_mib })
}

fn ingest(all: &crate::Args, (kind, batch): (Kind, u64), flags: &[(&str, u64)], report: &Path) -> Result<Child> {
    let (put, _) = kind.door(Door::Json).context("no such door")?;
    let mut command = Command::new(&all.basalt);
    command.args(["bench", "ingest", "--url", &format!("http://127.0.0.1:{put}"), "--hosts", &HOSTS.to_string()]);
    command.args(["--batch", &batch.to_string(), "--connections", &all.connections.to_string(), "--json"]).arg(report);
    for (flag, value) in flags {
        command.args([*flag, &value.to_string()]);
    }
    Ok(command.stdout(Stdio::null()).spawn()?)
}

/// Asks for the panel at the rate for a while: median, 99th of a hundred, and maximum in milliseconds.
fn panels(args: &Args, kind: Kind, during: Duration) -> Result<[f64; 3]> {
    let every = Duration::from_secs(1) / u32::try_from(args.panels.max(1))?;
    let begun = Instant::now();
    let mut took = Vec::new();
    let panel = questions::Panel::new(HOSTS, START_S, SHOWN_S);
    for number in 0.. {
        let due = begun + every * number;
        if due.duration_since(begun) >= during {
            break;
        }
        while let Some(wait) = due.checked_duration_since(Instant::now()) {
            std::thread::sleep(wait);
        }
        panel.ask(kind, u64::from(number))?;
        took.push(due.elapsed().as_secs_f64() * 1e3);
    }
    took.sort_by(f64::total_cmp);
    let at = |share: f64| took[((took.len() - 1) as f64 * share).round() as usize];
    let [_, _, max] = spread(took.iter().copied());
    Ok([at(0.5), at(0.99), max])
}
