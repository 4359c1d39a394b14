//! Bytes a point of metrics of many kinds, index and all, after compaction: made sets, or lines of `put` that a collector sent.
//! A set counts for a server only if what it answers is what was sent, to the last bit and millisecond.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::disk;
use crate::load::{self, Bodies, Door};
use crate::peer::{Kind, Peer, VICTORIA_METRICS};
use crate::server::Server;

/// How much of each set, and which.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Series of each set.
    #[arg(long, default_value_t = 1000)]
    series: u64,
    /// Hours of points, ten seconds apart.
    #[arg(long, default_value_t = 12)]
    hours: u64,
    /// Sets by the first word of their names, comma between them; all unless told.
    #[arg(long, value_delimiter = ',')]
    kinds: Vec<String>,
    /// A file of `put` lines, in place of the made sets.
    #[arg(long)]
    lines: Option<PathBuf>,
}

const START_MS: u64 = 1_700_000_000 / 3_600 * 3_600_000;
const STEP_MS: u64 = 10_000;
const STEPS_AN_HOUR: u64 = 3_600_000 / STEP_MS;
const CONNECTIONS: usize = 4;
/// Bytes of lines that are written at once.
const WRITE_BYTES: usize = 64 << 10;
/// One series of so many is read back.
const READ_ONE_IN: u64 = 97;

/// What a set's values do.
#[derive(Debug, Clone, Copy)]
enum Values {
    /// A walk between 0 and 100, cut to integers or to so many decimals.
    Walk(usize),
    /// A counter whose rate wanders.
    Counter,
    /// A counter of nearly the same rate all the time.
    SteadyCounter,
    /// A room's temperature, one decimal.
    Temperature,
    /// Log-normal and without memory, two decimals.
    Latency,
    /// An integer that changes three times in a thousand, or never.
    State,
    /// Small integers, without memory.
    Events,
    /// A walk of doubles with all their bits.
    Doubles,
    /// Doubles without memory.
    Uniform,
}

/// When a set's points come.
#[derive(Debug, Clone, Copy)]
enum Times {
    Steps,
    /// One in a hundred is missing.
    Gaps,
    /// Each series by its own offset in milliseconds.
    Phase,
    /// Some milliseconds early or late.
    Jitter,
    /// When they will, as often.
    Random,
}

const SETS: [(&str, Values, Times); 13] = [
    ("integers", Values::Walk(0), Times::Steps),
    ("decimals, two", Values::Walk(2), Times::Steps),
    ("counter, noisy", Values::Counter, Times::Steps),
    ("steady counter", Values::SteadyCounter, Times::Steps),
    ("temperature, one decimal", Values::Temperature, Times::Steps),
    ("latency, two decimals", Values::Latency, Times::Steps),
    ("state, rarely changing", Values::State, Times::Steps),
    ("walk of doubles", Values::Doubles, Times::Steps),
    ("uniform doubles", Values::Uniform, Times::Steps),
    ("events, integers", Values::Events, Times::Random),
    ("gaps, temperature", Values::Temperature, Times::Gaps),
    ("phase in ms, temperature", Values::Temperature, Times::Phase),
    ("jitter in ms, temperature", Values::Temperature, Times::Jitter),
];

/// Each set to each server in turn.
pub(crate) fn run(all: &crate::Args, args: &Args) -> Result<()> {
    let peers = all.peers();
    let peers: Vec<_> = peers.iter().filter(|(kind, _)| kind.is_basalt() || kind.is_victoria_metrics()).collect();
    println!("| set | points | server | bytes a point | MB | answered as sent |\n|---|---|---|---|---|---|");
    if let Some(file) = &args.lines {
        let bodies = from_file(file)?;
        for peer in peers {
            tell("lines", &bodies, peer, &all.dir, |_| Ok("not asked"))?;
        }
        return Ok(());
    }
    for set in &SETS {
        let word = set.0.split([' ', ',']).next().unwrap_or_default();
        if !args.kinds.is_empty() && !args.kinds.iter().any(|kind| kind == word) {
            continue;
        }
        let bodies = made(set, args);
        for peer in &peers {
            tell(set.0, &bodies, peer, &all.dir, |kind| read_back(kind, set, args))?;
        }
    }
    Ok(())
}

fn tell(
    name: &str,
    bodies: &Bodies,
    (kind, program): &Peer,
    dir: &Path,
    is_kept: impl FnOnce(Kind) -> Result<&'static str>,
) -> Result<()> {
    let server = Server::start(*kind, program, dir)?;
    let (port, path) = kind.door(Door::Telnet).context("no telnet")?;
    load::send(port, path, bodies).with_context(|| format!("{name} to {kind}"))?;
    if kind.is_victoria_metrics() {
        disk::flush()?;
    }
    let kept = is_kept(*kind)?;
    let (bytes, _) = disk::compacted(*kind, program, server)?;
    let points = bodies.points;
    println!(
        "| {name} | {points} | {kind} | {:.3} | {:.2} | {kept} |",
        bytes as f64 / points as f64,
        bytes as f64 / 1e6
    );
    Ok(())
}

/// All points of a set by when they came, each series over one connection.
fn made(set: &(&str, Values, Times), args: &Args) -> Bodies {
    let (mut of, mut points) = (Vec::new(), 0);
    for connection in 0..CONNECTIONS as u64 {
        let mut lines = Vec::new();
        for series in (connection..args.series).step_by(CONNECTIONS) {
            for (time_ms, value) in drawn(set, series, args) {
                lines.push((time_ms, series, value));
            }
        }
        lines.sort_by_key(|(time_ms, ..)| *time_ms);
        points += lines.len();
        let (mut bodies, mut body) = (Vec::new(), String::new());
        for (time_ms, series, value) in lines {
            let time = if time_ms.is_multiple_of(1000) { time_ms / 1000 } else { time_ms };
            writeln!(body, "put a.set {time} {value} host=host_{series} rack={} zone=z{}", series % 7, series % 4)
                .unwrap_or_default();
            if body.len() > WRITE_BYTES {
                bodies.push(std::mem::take(&mut body).into_bytes());
            }
        }
        bodies.push(body.into_bytes());
        of.push(bodies);
    }
    Bodies { points, door: Door::Telnet, of }
}

/// The lines of a file, over one connection.
fn from_file(file: &Path) -> Result<Bodies> {
    let text = std::fs::read(file).with_context(|| file.display().to_string())?;
    let points = text.split(|&byte| byte == b'\n').filter(|line| line.starts_with(b"put ")).count();
    Ok(Bodies { points, door: Door::Telnet, of: vec![vec![text]] })
}

/// A series' points: milliseconds since 1970, and the value as its text.
fn drawn(&(name, values, times): &(&str, Values, Times), series: u64, args: &Args) -> Vec<(u64, String)> {
    let seed = name.bytes().fold(series + 1, |seed, byte| seed.wrapping_mul(0x100_0000_01B3) ^ u64::from(byte));
    let mut random = Random(seed);
    let mut walk = Walk::new(values, &mut random);
    let (phase, mut event) = (random.below(9_999), 0.0);
    let mut points: Vec<(u64, String)> = Vec::new();
    for step in 0..args.hours * STEPS_AN_HOUR {
        let value = walk.next(&mut random);
        let offset = match times {
            Times::Steps => step * STEP_MS,
            Times::Gaps if random.uniform() < 0.01 => continue,
            Times::Gaps => step * STEP_MS,
            Times::Phase => step * STEP_MS + phase,
            Times::Jitter => (step * STEP_MS + 5_000).saturating_add_signed((random.normal() * 15.0) as i64),
            Times::Random => {
                event += (-random.uniform().max(f64::MIN_POSITIVE).ln() * STEP_MS as f64).max(1.0);
                event as u64
            }
        };
        if points.last().is_none_or(|(last, _)| *last < START_MS + offset) {
            points.push((START_MS + offset, value));
        }
    }
    points
}

/// Where a series' values have come to.
struct Walk {
    values: Values,
    at: f64,
    rate: f64,
    factor: f64,
}

impl Walk {
    fn new(values: Values, random: &mut Random) -> Self {
        let (at, rate) = match values {
            Values::Walk(_) | Values::Doubles => (random.uniform() * 100.0, 0.0),
            Values::Counter => ((random.uniform() * 1e9).floor(), 10_f64.powf(3.0 + 3.0 * random.uniform())),
            Values::SteadyCounter => ((random.uniform() * 1e7).floor(), (1.0 + 30.0 * random.uniform()).floor()),
            Values::Temperature => (20.0, 15.0 + 10.0 * random.uniform()),
            Values::Latency => (0.0, 1.0 + 20.0 * random.uniform()),
            Values::State => ((random.uniform() * 1000.0).floor(), f64::from(u8::from(random.uniform() < 0.5)) * 0.003),
            Values::Events | Values::Uniform => (0.0, 0.0),
        };
        Self { values, at, rate, factor: 1.0 }
    }

    fn next(&mut self, random: &mut Random) -> String {
        match self.values {
            Values::Walk(decimals) => {
                self.at = (self.at + random.normal()).clamp(0.0, 100.0);
                let unit = 10_f64.powi(decimals as i32);
                format!("{:.decimals$}", (self.at * unit).floor() / unit)
            }
            Values::Counter => {
                self.factor = (self.factor + 0.05 * random.normal()).clamp(0.3, 3.0);
                self.at += (self.rate * self.factor * (1.0 + 0.2 * random.normal()).max(0.0)).floor();
                format!("{:.0}", self.at)
            }
            Values::SteadyCounter => {
                let off = if random.uniform() < 0.2 { (random.uniform() * 3.0).floor() - 1.0 } else { 0.0 };
                self.at += self.rate + off;
                format!("{:.0}", self.at)
            }
            Values::Temperature => {
                self.at += 0.01 * (self.rate - self.at) + 0.08 * random.normal();
                format!("{:.1}", self.at + 0.05 * random.normal())
            }
            Values::Latency => format!("{:.2}", self.rate * (0.5 * random.normal()).exp()),
            Values::State => {
                if random.uniform() < self.rate {
                    self.at = (random.uniform() * 1000.0).floor();
                }
                format!("{:.0}", self.at)
            }
            Values::Events => format!("{:.0}", 1.0 - (random.uniform().max(f64::MIN_POSITIVE).ln() * 20.0).ceil()),
            Values::Doubles => {
                self.at += random.normal();
                self.at.to_string()
            }
            Values::Uniform => random.uniform().to_string(),
        }
    }
}

struct Random(u64);

impl Random {
    /// *Source*: Marsaglia, "Xorshift RNGs", 2003; the seed is spread first, as neighbouring ones are alike.
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, bound: u64) -> u64 {
        (self.uniform() * bound as f64) as u64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().max(f64::MIN_POSITIVE).ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// Asks for some series: whether they come back as they were sent.
fn read_back(kind: Kind, set: &(&str, Values, Times), args: &Args) -> Result<&'static str> {
    for series in (0..args.series).step_by(READ_ONE_IN as usize) {
        let mut told = if kind.is_basalt() { from_basalt(kind, series)? } else { from_victoria_metrics(series)? };
        told.sort_by_key(|(time_ms, _)| *time_ms);
        let sent = drawn(set, series, args).into_iter().map(|(time_ms, value)| Ok((time_ms, value.parse()?)));
        let sent: Vec<(u64, f64)> = sent.collect::<Result<_>>()?;
        ensure!(told.len() == sent.len(), "{kind} has {} points of {} of host_{series}", told.len(), sent.len());
        if told != sent {
            return Ok("no");
        }
    }
    Ok("yes")
}

fn from_basalt(kind: Kind, series: u64) -> Result<Vec<(u64, f64)>> {
    let port = kind.port();
    let start = START_MS / 1000;
    let url = format!("http://127.0.0.1:{port}/api/query?start={start}&ms&arrays&m=none:a.set%7Bhost=host_{series}%7D");
    let answer: Value = serde_json::from_str(&ureq::get(url).call()?.body_mut().read_to_string()?)?;
    let points = answer.pointer("/0/dps").and_then(Value::as_array).context("no points")?;
    let pair = |pair: &Value| Some((pair.get(0)?.as_u64()?, pair.get(1)?.as_f64()?));
    points.iter().map(pair).collect::<Option<_>>().context("a point is no pair of numbers")
}

fn from_victoria_metrics(series: u64) -> Result<Vec<(u64, f64)>> {
    let url = format!(
        "http://127.0.0.1:{VICTORIA_METRICS}/api/v1/export?start={}&match%5B%5D=a.set%7Bhost%3D%22host_{series}%22%7D",
        START_MS / 1000
    );
    let mut points = Vec::new();
    for line in ureq::get(url).call()?.body_mut().read_to_string()?.lines() {
        let told: Value = serde_json::from_str(line)?;
        let list = |name: &str| told.get(name).and_then(Value::as_array).with_context(|| format!("no {name}"));
        for (time, value) in list("timestamps")?.iter().zip(list("values")?) {
            points.push((time.as_u64().context("no time")?, value.as_f64().context("no value")?));
        }
    }
    Ok(points)
}
