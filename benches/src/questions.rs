//! TSBS's twelve questions, each asked of every server in turn about the same hosts and windows: latency as the client sees it, and
//! the server's CPU. Points come from `basalt bench ingest`, are merged on both sides, and are asked for without caches of answers.
//!
//! Not quite alike: a range of PromQL begins its steps where the window begins, OpenTSDB's where the clock does. `high-cpu` asks
//! VictoriaMetrics for points over 90 alone, which OpenTSDB has no words for: Basalt answers with every point. `lastpoint` asks Basalt
//! for the newest point of each series, and VictoriaMetrics for each series' last of twelve hours.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use ureq::Agent;

use crate::data::METRICS;
use crate::disk;
use crate::load::Door;
use crate::peer::{BASALT, BEFORE, Kind, Peer, VICTORIA_METRICS};
use crate::server::Server;

const MINUTE_S: u64 = 60;
const HOUR_S: u64 = 3_600;
/// The most bytes of one answer that are read.
const ANSWER_BYTES_MAX: u64 = 1 << 30;

/// The set, and how much is asked.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Hosts, of ten metrics each.
    #[arg(long, default_value_t = 1000)]
    hosts: u64,
    /// Hours of points, ten seconds apart.
    #[arg(long, default_value_t = 12)]
    hours: u64,
    /// Questions of a kind and round; a tenth of it for those that read everything.
    #[arg(long, default_value_t = 50)]
    count: u64,
    /// Kinds, comma between them; all unless told.
    #[arg(long, value_delimiter = ',')]
    kinds: Vec<String>,
    /// Ask the folders that the last run loaded.
    #[arg(long)]
    loaded: bool,
}

/// A kind of question. *Source*: TSBS, `pkg/data/usecases/devops`.
#[derive(Debug, Clone, Copy)]
struct Question {
    name: &'static str,
    shape: Shape,
    is_heavy: bool,
}

#[derive(Debug, Clone, Copy)]
enum Shape {
    /// The most in each step over some hosts: metrics, hosts (0: all), seconds, seconds of a step.
    Most(usize, u64, u64, u64),
    /// The average of each hour for each host: metrics.
    ByHost(usize),
    /// Points of one metric: hosts (0: all).
    Points(u64),
    /// The newest point of every series.
    Last,
}

const fn light(name: &'static str, shape: Shape) -> Question {
    Question { name, shape, is_heavy: false }
}

const fn heavy(name: &'static str, shape: Shape) -> Question {
    Question { name, shape, is_heavy: true }
}

const QUESTIONS: [Question; 12] = [
    light("single-groupby-1-1-1", Shape::Most(1, 1, HOUR_S, MINUTE_S)),
    light("single-groupby-1-8-1", Shape::Most(1, 8, HOUR_S, MINUTE_S)),
    light("single-groupby-5-8-1", Shape::Most(5, 8, HOUR_S, MINUTE_S)),
    light("single-groupby-1-1-12", Shape::Most(1, 1, 12 * HOUR_S, MINUTE_S)),
    heavy("double-groupby-1", Shape::ByHost(1)),
    heavy("double-groupby-all", Shape::ByHost(METRICS.len())),
    light("cpu-max-all-1", Shape::Most(METRICS.len(), 1, 8 * HOUR_S, HOUR_S)),
    light("cpu-max-all-8", Shape::Most(METRICS.len(), 8, 8 * HOUR_S, HOUR_S)),
    light("high-cpu-1", Shape::Points(1)),
    heavy("high-cpu-all", Shape::Points(0)),
    heavy("lastpoint", Shape::Last),
    light("groupby-orderby-limit", Shape::Most(1, 0, 5 * MINUTE_S, MINUTE_S)),
];

/// One question as drawn.
#[derive(Debug)]
struct Drawn {
    shape: Shape,
    hosts: Vec<String>,
    start_s: u64,
    end_s: u64,
    hours_back: u64,
}

impl Drawn {
    fn metrics(&self) -> Vec<String> {
        let count = match self.shape {
            Shape::Most(metrics, ..) | Shape::ByHost(metrics) => metrics,
            Shape::Points(_) => 1,
            Shape::Last => METRICS.len(),
        };
        METRICS.iter().take(count).map(|metric| format!("cpu.usage_{metric}")).collect()
    }

    /// For OpenTSDB's API: path and body.
    fn opentsdb(&self) -> (&'static str, Value) {
        let filters = match self.shape {
            Shape::ByHost(_) => json!([{"type": "wildcard", "tagk": "hostname", "filter": "*", "groupBy": true}]),
            _ if self.hosts.is_empty() => json!([]),
            _ => {
                json!([{"type": "literal_or", "tagk": "hostname", "filter": self.hosts.join("|"), "groupBy": false}])
            }
        };
        let of = |metric: String| match self.shape {
            Shape::Most(_, _, _, step) => {
                json!({"metric": metric, "aggregator": "max", "downsample": format!("{step}s-max"), "filters": filters})
            }
            Shape::ByHost(_) => {
                json!({"metric": metric, "aggregator": "avg", "downsample": "1h-avg", "filters": filters})
            }
            Shape::Points(_) => json!({"metric": metric, "aggregator": "none", "filters": filters}),
            Shape::Last => json!({"metric": metric}),
        };
        let queries: Vec<Value> = self.metrics().into_iter().map(of).collect();
        if matches!(self.shape, Shape::Last) {
            return ("/api/query/last", json!({"resolveNames": true, "backScan": self.hours_back, "queries": queries}));
        }
        ("/api/query", json!({"start": self.start_s, "end": self.end_s, "queries": queries}))
    }

    /// For Prometheus' API: path and form.
    fn promql(&self) -> (&'static str, Vec<(&'static str, String)>) {
        let metrics = self.metrics().join("|");
        let hosts = match self.hosts.as_slice() {
            [] => String::new(),
            hosts => format!(r#",hostname=~"{}""#, hosts.join("|")),
        };
        let of = format!(r#"{{__name__=~"{metrics}"{hosts}}}"#);
        let (query, step) = match self.shape {
            Shape::Most(_, _, _, step) => (format!("max(max_over_time({of}[{step}s])) by (__name__)"), step),
            Shape::ByHost(_) => (format!("avg(avg_over_time({of}[1h])) by (__name__, hostname)"), HOUR_S),
            Shape::Points(_) => (format!("{of} > 90"), 10),
            Shape::Last => {
                let query = format!("last_over_time({of}[12h])");
                return ("/api/v1/query", vec![("query", query), ("time", self.end_s.to_string())]);
            }
        };
        let range = [("start", self.start_s), ("end", self.end_s), ("step", step)];
        let form = range.map(|(key, value)| (key, value.to_string())).into_iter().chain([("query", query)]);
        ("/api/v1/query_range", form.collect())
    }
}

/// A panel of a dashboard, `single-groupby-5-8-1`, asked for again and again over one connection.
pub(crate) struct Panel {
    agent: Agent,
    of: Args,
    start_s: u64,
}

impl Panel {
    /// Over hours of so many hosts.
    pub(crate) fn new(hosts: u64, start_s: u64, span_s: u64) -> Self {
        let of = Args { hosts, hours: span_s / HOUR_S, count: 0, kinds: Vec::new(), loaded: true };
        Self { agent: Agent::new_with_defaults(), of, start_s }
    }

    /// Asks and reads the whole answer.
    pub(crate) fn ask(&self, kind: Kind, number: u64) -> Result<()> {
        let drawn = draw(&self.of, Shape::Most(5, 8, HOUR_S, MINUTE_S), self.start_s, number);
        asked(&self.agent, kind, &drawn, &mut Vec::new())
    }
}

/// What was seen of a kind of question at a server.
#[derive(Debug, Default)]
struct Seen {
    took: Vec<Duration>,
    cpu_seconds: f64,
    bytes: usize,
}

impl Seen {
    /// The quantile in milliseconds.
    fn ms(&self, quantile: f64) -> f64 {
        let mut sorted = self.took.clone();
        sorted.sort();
        sorted[((sorted.len() - 1) as f64 * quantile).round() as usize].as_secs_f64() * 1e3
    }
}

/// Loads, merges, asks, tells.
pub(crate) fn run(all: &crate::Args, args: &Args) -> Result<()> {
    let peers: Vec<Peer> = all.peers().into_iter().filter(|(kind, _)| port(*kind).is_some()).collect();
    std::fs::create_dir_all(&all.dir)?;
    let begun_at = all.dir.join("questions-begin");
    if !args.loaded {
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let start_s = now_s - now_s % HOUR_S - args.hours * HOUR_S;
        std::fs::write(&begun_at, start_s.to_string())?;
        for peer in &peers {
            load(all, args, peer, start_s)?;
        }
    }
    let start_s: u64 = std::fs::read_to_string(&begun_at).context("nothing was loaded")?.trim().parse()?;
    let servers: Vec<(Kind, Server)> = peers
        .iter()
        .map(|(kind, program)| Ok((*kind, Server::again(*kind, program, &all.dir)?)))
        .collect::<Result<_>>()?;
    let mut seen: BTreeMap<(usize, Kind), Seen> = BTreeMap::new();
    for round in 0..all.rounds as u64 {
        for (number, question) in QUESTIONS.iter().enumerate() {
            if !args.kinds.is_empty() && !args.kinds.iter().any(|kind| kind == question.name) {
                continue;
            }
            for (kind, server) in &servers {
                let seen = seen.entry((number, *kind)).or_default();
                ask(args, (question, round, start_s), (*kind, server), seen)
                    .with_context(|| format!("{}, {kind}", question.name))?;
            }
        }
        eprintln!("round {} of {}", round + 1, all.rounds);
    }
    table(&peers, &seen);
    for (_, server) in servers {
        server.stop()?;
    }
    Ok(())
}

/// Stores the points by `basalt bench ingest`, has them merged, and tells their bytes.
fn load(all: &crate::Args, args: &Args, (kind, program): &Peer, start_s: u64) -> Result<()> {
    let server = Server::start(*kind, program, &all.dir)?;
    let (put, _) = kind.door(Door::Json).context("no such door")?;
    let status = Command::new(&all.basalt)
        .args(["bench", "ingest", "--batch", "5000"])
        .arg("--url")
        .arg(format!("http://127.0.0.1:{put}"))
        .args(["--hosts", &args.hosts.to_string(), "--start", &start_s.to_string()])
        .args(["--span", &(args.hours * HOUR_S).to_string()])
        .status()?;
    ensure!(status.success(), "the points of {kind} were not stored");
    let (bytes, beforehand) = disk::compacted(*kind, program, server)?;
    let points = args.hosts * METRICS.len() as u64 * args.hours * HOUR_S / 10;
    println!(
        "{kind}: {:.3} bytes a point on disk after compaction, {points} points, and {} MiB made beforehand",
        bytes as f64 / points as f64,
        beforehand >> 20
    );
    Ok(())
}

/// Asks a round's questions of a kind, and one before them, which does not count.
fn ask(
    args: &Args,
    (question, round, start_s): (&Question, u64, u64),
    (kind, server): (Kind, &Server),
    seen: &mut Seen,
) -> Result<()> {
    let count = if question.is_heavy { (args.count / 10).max(1) } else { args.count };
    let agent: Agent = Agent::config_builder().timeout_global(Some(Duration::from_secs(300))).build().into();
    // Kept from one question to the next, so that the client's memory costs it nothing.
    let mut answer = Vec::new();
    asked(&agent, kind, &draw(args, question.shape, start_s, u64::MAX), &mut answer)?;
    let before = server.cpu_seconds()?;
    for number in 0..count {
        let drawn = draw(args, question.shape, start_s, round * count + number);
        let begun = Instant::now();
        asked(&agent, kind, &drawn, &mut answer)?;
        seen.took.push(begun.elapsed());
        seen.bytes = answer.len();
    }
    seen.cpu_seconds += server.cpu_seconds()? - before;
    Ok(())
}

/// Asks; what `answer` held gives way to the answer.
fn asked(agent: &Agent, kind: Kind, drawn: &Drawn, answer: &mut Vec<u8>) -> Result<()> {
    let at = |path: &str| format!("http://127.0.0.1:{}{path}", port(kind).unwrap_or_default());
    let mut response = if kind.is_basalt() {
        let (path, body) = drawn.opentsdb();
        agent.post(at(path)).content_type("application/json").send(body.to_string())
    } else {
        let (path, form) = drawn.promql();
        agent.post(at(path)).send_form(form)
    }
    .with_context(|| format!("{drawn:?}"))?;
    answer.clear();
    response.body_mut().with_config().limit(ANSWER_BYTES_MAX).reader().read_to_end(answer)?;
    // "[]", or a vector without an entry.
    ensure!(answer.len() > 150 || matches!(drawn.shape, Shape::Points(_)), "an empty answer: {drawn:?}");
    Ok(())
}

/// Hosts and window by the number of the question, the same for every server.
fn draw(args: &Args, shape: Shape, start_s: u64, number: u64) -> Drawn {
    let mut random = crate::data::Random::new(number);
    let span_s = args.hours * HOUR_S;
    let (hosts, seconds) = match shape {
        Shape::Most(_, hosts, seconds, _) => (hosts, seconds.min(span_s)),
        Shape::Points(hosts) => (hosts, span_s),
        Shape::ByHost(_) | Shape::Last => (0, span_s),
    };
    let hosts = hosts.min(args.hosts);
    let first = random.below(args.hosts);
    let apart = args.hosts.checked_div(hosts).unwrap_or(1);
    let start_s = start_s + random.below(span_s - seconds + 1);
    let name = |n: u64| format!("host_{}", (first + n * apart) % args.hosts);
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    let hours_back = now_s.saturating_sub(start_s) / HOUR_S + 1;
    Drawn { shape, hosts: (0..hosts).map(name).collect(), start_s, end_s: start_s + seconds, hours_back }
}

pub(crate) const fn port(kind: Kind) -> Option<u16> {
    match kind {
        Kind::Basalt => Some(BASALT),
        Kind::Before => Some(BEFORE),
        Kind::VictoriaMetrics => Some(VICTORIA_METRICS),
        _ => None,
    }
}

/// Latencies, CPU and bytes of an answer, and how many times as fast as VictoriaMetrics Basalt is.
fn table(peers: &[Peer], seen: &BTreeMap<(usize, Kind), Seen>) {
    println!(
        "| question | server | p50 / p99 ms | CPU ms a question | KiB an answer | times as fast as VictoriaMetrics, by CPU |"
    );
    println!("|---|---|---|---|---|---|");
    let mut ratios: BTreeMap<Kind, Vec<f64>> = BTreeMap::new();
    for (number, question) in QUESTIONS.iter().enumerate() {
        for (kind, _) in peers {
            let Some(of) = seen.get(&(number, *kind)) else { continue };
            let cpu = |of: &Seen| of.cpu_seconds * 1e3 / of.took.len() as f64;
            let mut beside = String::new();
            if let Some(its) = seen.get(&(number, Kind::VictoriaMetrics)).filter(|_| kind.is_basalt()) {
                let times = its.ms(0.5) / of.ms(0.5);
                ratios.entry(*kind).or_default().push(times);
                beside = format!("{times:.2}, {:.2}", cpu(its) / cpu(of).max(0.001));
            }
            println!(
                "| {} | {kind} | {:.2} / {:.2} | {:.2} | {} | {beside} |",
                question.name,
                of.ms(0.5),
                of.ms(0.99),
                cpu(of),
                of.bytes >> 10
            );
        }
    }
    for (kind, ratios) in ratios {
        let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
        println!("{kind}: geometric mean {mean:.2} times as fast");
    }
}
