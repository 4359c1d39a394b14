//! Points a second and CPU seconds a million points, by `basalt bench ingest` against either.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::usage::Usage;
use super::{Field, Options, Peer, median, spread};
use crate::both::daemon::{Daemon, REWRITES, wait_rewritten};
use crate::import_check::basalt;

/// The first second of all points: a whole hour.
pub(super) const START_S: u64 = 1_699_999_200;
/// Seconds between the points of a series.
const STEP_S: u64 = 10;

/// What the turns of one server came to.
#[derive(Debug, Default)]
struct Turns {
    /// Thousands of points a second.
    rate: Vec<f64>,
    /// CPU seconds a million points of the daemon, and of HBase with it.
    daemon: Vec<f64>,
    both: Vec<f64>,
}

/// Puts, and tells what it came to as a table.
pub(super) fn run(field: &mut Field<'_>, options: &Options) -> Result<String> {
    let mut all: BTreeMap<(usize, Peer), Turns> = BTreeMap::new();
    // Java compiles what is run often: both servers and HBase run once before they are timed.
    for peer in Peer::in_turn(0) {
        turn(field, options, peer, options.connections.first().copied().unwrap_or(4), &mut Turns::default())?;
    }
    for round in 0..options.rounds {
        for (place, &connections) in options.connections.iter().enumerate() {
            for peer in Peer::in_turn(round) {
                let turns = all.entry((place, peer)).or_default();
                turn(field, options, peer, connections, turns)?;
                let last = |of: &[f64]| of.last().copied().unwrap_or_default();
                println!(
                    "round {round}: {connections} connections, {}: {:.0} k points/s, {:.2} CPU s a million, {:.2} with HBase",
                    peer.name(),
                    last(&turns.rate),
                    last(&turns.daemon),
                    last(&turns.both),
                );
            }
        }
    }
    Ok(table(options, &all))
}

/// Puts the points into empty tables by OpenTSDB: a cell each.
pub(super) fn singly(field: &mut Field<'_>, options: &Options) -> Result<()> {
    turn(field, options, Peer::OpenTsdb, 1, &mut Turns::default())
}

/// Puts the points into empty tables by a Basalt that rewrites each row to one cell, and has HBase forget the others.
pub(super) fn rewritten(field: &mut Field<'_>, options: &Options) -> Result<()> {
    field.empty()?;
    let log = field.folder.join("rewrites.log");
    let server = Daemon::start(field.program, &field.config, 0, REWRITES, &log)?;
    load(field, options, (server.address, STEP_S, 1))?;
    load(field, options, (server.address, options.span, 1))?;
    wait_rewritten(server.address)?;
    field.compact()
}

fn turn(field: &mut Field<'_>, options: &Options, peer: Peer, connections: u64, turns: &mut Turns) -> Result<()> {
    field.empty()?;
    let server = (peer == Peer::Basalt).then(|| field.basalt()).transpose()?;
    let address = server.as_ref().map_or(field.real_address, |server| server.address);
    // One point a series, so that all names are known. OpenTSDB gives up a point here and there where several connections bring it
    // the same new name, hence one, and a second time.
    let names = (address, STEP_S, 1);
    load(field, options, names).or_else(|_| load(field, options, names))?;
    let used = || -> Result<[Usage; 2]> {
        let daemon = server.as_ref().map_or_else(|| Field::usage_of("tsd-plain"), |server| Usage::of(server.pid()))?;
        Ok([daemon, Field::usage_of("hbase")?])
    };
    let before = used()?;
    let (points, seconds) = load(field, options, (address, options.span, connections))?;
    let [daemon, hbase] = used()?;
    let (daemon, hbase) = (daemon.since(before[0]), hbase.since(before[1]));
    turns.rate.push(points / seconds / 1e3);
    turns.daemon.push(daemon / points * 1e6);
    turns.both.push((daemon + hbase) / points * 1e6);
    server.map_or(Ok(()), basalt::Server::stop)
}

/// Puts the points of so many seconds; how many it were, and how long it took.
fn load(field: &Field<'_>, options: &Options, to: (SocketAddr, u64, u64)) -> Result<(f64, f64)> {
    let (address, span, connections) = to;
    let report = field.folder.join("put.json");
    let words = [
        ("--url", format!("http://{address}")),
        ("--hosts", options.hosts.to_string()),
        ("--start", START_S.to_string()),
        ("--step", STEP_S.to_string()),
        ("--span", span.to_string()),
        ("--connections", connections.to_string()),
        ("--batch", options.batch.to_string()),
        ("--parameters", "sync".to_owned()),
        ("--json", basalt::word(&report)?.to_owned()),
    ];
    let words: Vec<&str> = words.iter().flat_map(|(flag, value)| [*flag, value.as_str()]).collect();
    let ran = basalt::tool(field.program, &[&["bench", "ingest"], words.as_slice()].concat())?;
    ensure!(ran.code == Some(0), "basalt bench ingest: {} {}", ran.out, ran.err);
    let report: Value = serde_json::from_slice(&std::fs::read(&report)?)?;
    let figure = |name: &str| report.pointer(&format!("/lines/0/{name}")).and_then(Value::as_f64);
    let points = figure("done").context("no count of points")?;
    Ok((points, figure("seconds").context("no time")?))
}

fn table(options: &Options, all: &BTreeMap<(usize, Peer), Turns>) -> String {
    let mut text = format!(
        "| `/api/put`, {} points a request | server | k points/s, min / median / max | CPU s a million points, daemon | with HBase | rate | daemon's CPU | with HBase |\n|---|---|---|---|---|---|---|---|\n",
        options.batch
    );
    for ((place, peer), turns) in all {
        let connections = options.connections.get(*place).copied().unwrap_or_default();
        let of = |figures: fn(&Turns) -> &Vec<f64>| {
            let real = all.get(&(*place, Peer::OpenTsdb)).map_or(0.0, |turns| median(figures(turns)));
            format!("{:.2}", median(figures(turns)) / real)
        };
        writeln!(
            text,
            "| {connections} connections | {} | {} | {} | {} | {} | {} | {} |",
            peer.name(),
            spread(&turns.rate, 1),
            spread(&turns.daemon, 2),
            spread(&turns.both, 2),
            of(|turns| &turns.rate),
            of(|turns| &turns.daemon),
            of(|turns| &turns.both),
        )
        .unwrap_or_default();
    }
    text
}
