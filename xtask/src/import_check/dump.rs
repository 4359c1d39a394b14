//! A real OpenTSDB's own dump into Basalt, and the same questions to both.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::basalt::{self, Server};
use super::series::{self, Form, METRICS, START_S, Series};
use super::{Options, Tally};
use crate::golden::client::{Client, Request};
use crate::golden::compare;
use crate::golden::play::Player;
use crate::golden::profile;
use crate::golden::record::Oracle;
use crate::golden::scenario::Step;
use crate::oracle;

/// The oracle's profile.
const PROFILE: &str = "plain";
/// Rows are folded as by any daemon, only sooner.
const COMPACTING: &str = "tsd.storage.compaction.flush_interval = 1\ntsd.storage.compaction.flush_speed = 7200\n\
                          tsd.storage.compaction.min_flush_threshold = 0";
/// Points of a put.
const BATCH_POINTS: usize = 500;
/// Connections that put.
const CONNECTIONS: usize = 4;
/// How long OpenTSDB may take to compact what it was given.
const COMPACT_MAX: Duration = Duration::from_mins(10);
/// It has done so when its counters have not moved for this long.
const COMPACT_STILL: Duration = Duration::from_secs(5);

/// Loads, dumps, imports and asks.
pub(super) fn run(options: &Options, program: &Path, folder: &Path, tally: &mut Tally) -> Result<()> {
    let all = series::draw(options.points, options.seed);
    let mut real = Oracle::start_with([PROFILE].into_iter(), COMPACTING)?;
    let address = real.fresh(PROFILE)?;
    load(address, &all)?;
    let file = dump(folder, &all, tally)?;
    let config = folder.join("basalt.toml");
    std::fs::write(&config, profile::settings(PROFILE))?;
    let data = folder.join("data");
    import(program, &file, &data, &config, options.points, tally)?;
    let server = Server::start(program, &data, &config)?;
    let mut asker = (Player::new(address, &|| {}), Player::new(server.address, &|| {}));
    for step in questions(last_second(&all)) {
        let (theirs, ours) = (asker.0.exchange(&step, "")?, asker.1.exchange(&step, "")?);
        let differs = compare::differences(&step, &theirs, &ours);
        let is_answer = theirs.status == Some(200) && theirs.json.as_ref().is_some_and(has_points);
        let what = step.http.as_deref().unwrap_or_default();
        tally.check(differs.is_empty() && is_answer, &format!("{what} ({} bytes)", theirs.body().len()));
        for line in differs {
            println!("       {line}");
        }
    }
    drop(asker);
    server.stop()
}

/// Puts all points: each series' first alone and in order, so that names get their UIDs in the order of the dump.
fn load(address: SocketAddr, all: &[Series]) -> Result<()> {
    let began = Instant::now();
    let firsts: Vec<String> = all.iter().filter_map(|one| Some(one.line(one.points.first()?))).collect();
    Player::new(address, &|| {}).seed(&firsts)?;
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CONNECTIONS)
            .map(|_| {
                scope.spawn(|| {
                    let mut client = Client::new(address);
                    // Relaxed: a ticket, ordered with nothing.
                    while let Some(one) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                        one.points
                            .get(1..)
                            .unwrap_or_default()
                            .chunks(BATCH_POINTS)
                            .try_for_each(|points| put(&mut client, one, points))?;
                    }
                    Ok(())
                })
            })
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|_| anyhow::bail!("a thread that puts panicked")))
    })?;
    println!("     loaded in {:.0} s", began.elapsed().as_secs_f64());
    compacted(address)
}

fn put(client: &mut Client, one: &Series, points: &[(u64, String)]) -> Result<()> {
    let puts: Vec<String> = points.iter().map(|point| one.json(point)).collect();
    let body = Some(format!("[{}]", puts.join(",")).into_bytes());
    let response =
        client.send(&Request { method: "POST", target: "/api/put?sync&details", body, ..Request::default() })?;
    let report: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    let stored = report.get("success").and_then(Value::as_u64) == Some(points.len() as u64);
    ensure!(response.status == 200 && stored, "put: {} {report}", response.status);
    Ok(())
}

/// Waits until OpenTSDB has folded its rows, as it does by itself while it runs: the tables then hold what those of
/// a server hold that has run for a while. Its queue is empty before the last of them are written.
fn compacted(address: SocketAddr) -> Result<()> {
    let began = Instant::now();
    let (mut before, mut since) = (Vec::new(), began);
    loop {
        let request = Request { method: "GET", target: "/api/stats", ..Request::default() };
        let stats: Value = serde_json::from_slice(&Client::new(address).send(&request)?.body)?;
        let of = |stat: &Value| {
            let name = stat.get("metric")?.as_str()?.strip_prefix("tsd.compaction.")?;
            Some((name.to_owned(), stat.get("value")?.as_str()?.to_owned()))
        };
        let now: Vec<_> = stats.as_array().into_iter().flatten().filter_map(of).collect();
        let queue = now.iter().find(|(name, _)| name == "queue.size");
        let (_, queue) = queue.context("the daemon does not compact: end it by `cargo xtask oracle down tsd-plain`")?;
        if queue != "0" || now != before {
            since = Instant::now();
        } else if since.elapsed() > COMPACT_STILL {
            println!("     compacted in {:.0} s", began.elapsed().as_secs_f64());
            return Ok(());
        }
        ensure!(began.elapsed() < COMPACT_MAX, "{queue} rows are not compacted after {} s", COMPACT_MAX.as_secs());
        before = now;
        basalt::pause();
    }
}

/// The dump that OpenTSDB's own tool writes.
fn dump(folder: &Path, all: &[Series], tally: &mut Tally) -> Result<PathBuf> {
    let began = Instant::now();
    let (file, log) = (folder.join("dump"), folder.join("dump.log"));
    let mut words: Vec<String> = ["scan", PROFILE, "--import"].map(str::to_owned).into();
    words.extend([START_S, last_second(all) + 3_600].map(|second| second.to_string()));
    words.extend(METRICS.iter().flat_map(|(metric, _)| ["sum".to_owned(), (*metric).to_owned()]));
    let status = oracle::script(&words).stdout(File::create(&file)?).stderr(File::create(&log)?).status()?;
    let lines = BufReader::new(File::open(&file)?).lines().count();
    let points: usize = all.iter().map(|one| one.points.len()).sum();
    let took = began.elapsed().as_secs_f64();
    let what = format!("OpenTSDB's `tsdb scan --import` ends well with {lines} lines of {points} points ({took:.0} s)");
    tally.check(status.success() && lines == points, &what);
    Ok(file)
}

fn import(program: &Path, file: &Path, data: &Path, config: &Path, points: u64, tally: &mut Tally) -> Result<()> {
    let args = ["import", basalt::word(file)?, "--data-dir", basalt::word(data)?, "--config", basalt::word(config)?];
    let ran = basalt::tool(program, &args)?;
    print!("     {}", ran.out);
    let stored = ran.out.starts_with(&format!("{points} points stored, 0 refused"));
    tally.check(ran.code == Some(0) && stored, &format!("the dump's {points} points are imported"));
    let shown = ran.err.lines().last().unwrap_or_default();
    tally.check(shown.contains("100 %"), &format!("progress is shown: {shown}"));
    Ok(())
}

fn last_second(all: &[Series]) -> u64 {
    let seconds = |time: u64| if time < 1 << 32 { time } else { time / 1_000 };
    let last = all.iter().filter_map(|one| one.points.last()).map(|point| seconds(point.0));
    last.max().unwrap_or(START_S)
}

fn has_points(answer: &Value) -> bool {
    let series = answer.as_array();
    series.is_some_and(|all| all.iter().any(|one| one.get("dps").is_some_and(|dps| dps.to_string().len() > 2)))
}

/// What is asked of both: complete hours, and from within the first hour to beyond the last point.
fn questions(last_s: u64) -> Vec<Step> {
    let (whole, edge) = ((START_S + 3_600, START_S + 3 * 3_600 - 1), (START_S + 1_234, last_s + 500));
    let asked = [
        (whole, "avg:1m-avg:", "{dc=*}"),
        (whole, "none:", "{host=h03}"),
        (edge, "sum:1h-sum:", ""),
        (edge, "count:10m-count:", "{dc=1|2}"),
    ];
    let summed = [
        (whole, "sum:", ""),
        (whole, "sum:rate:", "{dc=*}"),
        (edge, "max:30m-last:", "{host=*}"),
        (edge, "zimsum:", ""),
    ];
    // No order of adding gives the same last digit of these: only what adds up no more than one series is asked.
    let single = [
        (whole, "max:", ""),
        (whole, "sum:rate:", "{host=h07}"),
        (edge, "min:", "{dc=*}"),
        (edge, "mimmax:30m-first:", "{host=*}"),
    ];
    let further = [(edge, "sum:", "{host=h0*}"), (whole, "p95:10m-max:", "{dc=*}")];
    let mut steps = Vec::new();
    for (metric, form) in METRICS {
        let sets: [&[_]; 2] = if form == Form::Decimals { [&single, &[]] } else { [&summed, &further] };
        let common: &[_] = if form == Form::Decimals { &asked[1..2] } else { &asked };
        for ((start, end), before, after) in common.iter().chain(sets[0]).chain(sets[1]) {
            let ms = if matches!(form, Form::Millis | Form::Both) { "&ms" } else { "" };
            let target = format!("/api/query?start={start}&end={end}{ms}&m={before}{metric}{after}");
            let http = Some(format!("GET {}", target.replace('{', "%7B").replace('}', "%7D").replace('|', "%7C")));
            steps.push(Step { http, unordered: true, ..Step::default() });
        }
    }
    steps
}
