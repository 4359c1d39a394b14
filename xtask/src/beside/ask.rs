//! Range queries over the same rows: how long each takes, what it costs, and that the answers are alike.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Instant;

use anyhow::{Result, ensure};

use super::put::START_S;
use super::usage::Usage;
use super::{Field, Options, Peer, median, spread};
use crate::golden::answer::Answer;
use crate::golden::client::{Client, Request};
use crate::golden::compare;
use crate::golden::record;
use crate::golden::scenario::Step;

/// Each with its name, over all points.
const QUESTIONS: [(&str, &str); 5] = [
    ("single series", "sum:cpu.usage_user{hostname=host_7}"),
    ("group by", "sum:cpu.usage_system{region=*}"),
    ("downsample", "avg:5m-avg:cpu.usage_user"),
    ("rate", "sum:rate:cpu.usage_idle{hostname=host_1|host_2|host_3|host_4|host_5|host_6|host_7|host_8}"),
    ("wide", "none:cpu.usage_nice"),
];

/// What one server took for one question.
#[derive(Debug, Default)]
struct Turns {
    /// Milliseconds of each time it was asked.
    took: Vec<f64>,
    /// Milliseconds of CPU each, on average of each turn: the daemon's, and HBase's with it.
    daemon: Vec<f64>,
    both: Vec<f64>,
}

/// Asks, and tells what it came to as a table.
pub(super) fn run(field: &Field<'_>, options: &Options) -> Result<String> {
    record::forget_names(field.real_address)?;
    let server = field.basalt()?;
    let mut all: Vec<[Turns; 2]> = QUESTIONS.iter().map(|_| Default::default()).collect();
    for (name, question) in QUESTIONS {
        let step = step(options, question);
        alike(name, &step, [server.address, field.real_address])?;
        // A turn of each that is not told: until Java has compiled what they run, in HBase as in OpenTSDB, the first one pays.
        for address in [server.address, field.real_address] {
            let mut client = Client::new(address);
            for _ in 0..options.asked {
                ask(&mut client, &step)?;
            }
        }
    }
    for round in 0..options.rounds {
        for (turns, (_, question)) in all.iter_mut().zip(QUESTIONS) {
            let step = step(options, question);
            for peer in Peer::in_turn(round) {
                let [ours, theirs] = turns;
                let used = || -> Result<[Usage; 2]> {
                    let daemon = match peer {
                        Peer::Basalt => Usage::of(server.pid())?,
                        Peer::OpenTsdb => Field::usage_of("tsd-plain")?,
                    };
                    Ok([daemon, Field::usage_of("hbase")?])
                };
                let (address, turns) = match peer {
                    Peer::Basalt => (server.address, ours),
                    Peer::OpenTsdb => (field.real_address, theirs),
                };
                let before = used()?;
                let mut client = Client::new(address);
                for _ in 0..options.asked {
                    let began = Instant::now();
                    ask(&mut client, &step)?;
                    turns.took.push(began.elapsed().as_secs_f64() * 1e3);
                }
                let [daemon, hbase] = used()?;
                let (daemon, hbase) = (daemon.since(before[0]), hbase.since(before[1]));
                let each = |seconds: f64| seconds * 1e3 / f64::from(u32::try_from(options.asked).unwrap_or(u32::MAX));
                turns.daemon.push(each(daemon));
                turns.both.push(each(daemon + hbase));
            }
        }
    }
    server.stop()?;
    Ok(table(options, &all))
}

fn step(options: &Options, question: &str) -> Step {
    let end = START_S + options.span;
    let escaped = question.replace('{', "%7B").replace('}', "%7D").replace('|', "%7C");
    let http = Some(format!("GET /api/query?start={START_S}&end={end}&m={escaped}"));
    Step { http, unordered: true, ..Step::default() }
}

fn ask(client: &mut Client, step: &Step) -> Result<Vec<u8>> {
    let (method, target) = step.request_line("").unwrap_or_default();
    let response = client.send(&Request { method: &method, target: &target, ..Request::default() })?;
    ensure!(response.status == 200, "{target}: {}", response.status);
    Ok(response.body)
}

/// Checks that both give the same answer, and that it holds something.
fn alike(name: &str, step: &Step, addresses: [SocketAddr; 2]) -> Result<()> {
    let answer = |address| -> Result<Answer> {
        let (method, target) = step.request_line("").unwrap_or_default();
        let response =
            Client::new(address).send(&Request { method: &method, target: &target, ..Request::default() })?;
        Ok(Answer::http(name.to_owned(), &response))
    };
    let [ours, theirs] = addresses.map(answer);
    let (ours, theirs) = (ours?, theirs?);
    let differs = compare::differences(step, &theirs, &ours);
    ensure!(differs.is_empty(), "{name}: expected is OpenTSDB's\n  {}", differs.join("\n  "));
    ensure!(theirs.status == Some(200) && theirs.body().len() > 100, "{name}: {}", theirs.body());
    println!("{name}: the same answer, {} bytes", theirs.body().len());
    Ok(())
}

fn table(options: &Options, all: &[[Turns; 2]]) -> String {
    let mut text = format!(
        "| question over {} s of {} series each | server | ms, min / median / max | CPU ms, daemon | with HBase | time | daemon's CPU | with HBase |\n|---|---|---|---|---|---|---|---|\n",
        options.span, options.hosts
    );
    for ((name, _), turns) in QUESTIONS.iter().zip(all) {
        for (peer, own) in [Peer::Basalt, Peer::OpenTsdb].into_iter().zip(turns) {
            let of = |figures: fn(&Turns) -> &Vec<f64>| {
                format!("{:.2}", median(figures(own)) / median(figures(&turns[1])).max(1e-3))
            };
            writeln!(
                text,
                "| {name} | {} | {} | {} | {} | {} | {} | {} |",
                peer.name(),
                spread(&own.took, 1),
                spread(&own.daemon, 1),
                spread(&own.both, 1),
                of(|turns| &turns.took),
                of(|turns| &turns.daemon),
                of(|turns| &turns.both),
            )
            .unwrap_or_default();
        }
    }
    text
}
