//! Points of every form, put by Basalt, which rewrites their rows; OpenTSDB's own `fsck` then reads each cell of them, and
//! both daemons answer every point as it was sent.
//!
//! Some points come only when the rows that they belong to are rewritten, and some once more with another value.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::daemon::{rewrites, wait_rewritten};
use super::{Asked, Pair, number};
use crate::golden::client::{Client, Request};
use crate::import_check::series::{self, Series};

/// Connections that put, and points of one request.
const CONNECTIONS: usize = 4;
const BATCH: usize = 200;
/// Of the points of a series, each of so many is late; and each of so many is sent wrong before.
const LATE: usize = 50;
const WRONG: usize = 97;
/// Hosts that one question is about: OpenTSDB keeps the whole answer in memory.
const HOSTS: u64 = 10;
/// A question's answer is some megabytes, of which OpenTSDB's daemon here makes one in seconds.
const PATIENCE: Duration = Duration::from_mins(2);

/// When a point is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wave {
    First,
    /// Once the rows of the first are rewritten.
    Second,
}

/// Puts the points, has them checked, and asks both daemons for them.
pub(super) fn run(asked: &Asked, pair: &mut Pair<'_>) -> Result<()> {
    let all = series::draw(asked.count, asked.seed);
    // What was appended stays, and the daemons take either of two values.
    let is_overwriting = pair.profile != "appends";
    let began = Instant::now();
    let address = pair.ours.address;
    for wave in [Wave::First, Wave::Second] {
        std::thread::scope(|scope| {
            let put = |of: usize| {
                let mine = all.iter().skip(of).step_by(CONNECTIONS);
                mine.into_iter().try_for_each(|series| put(address, series, wave, is_overwriting))
            };
            let threads: Vec<_> = (0..CONNECTIONS).map(|of| scope.spawn(move || put(of))).collect();
            threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| bail!("a thread panicked")))
        })?;
        if rewrites(pair.profile) {
            wait_rewritten(address)?;
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    let numbers = pair.fsck()?;
    let stored: u64 = number(&numbers, "Valid Datapoints")?;
    // It looks into cells that were appended to and counts none of their points.
    ensure!(pair.profile == "appends" || stored == asked.count, "fsck counts {stored} points of {}", asked.count);
    // It may count a row less than there are.
    let (rows, cells) = (number(&numbers, "Rows Processed")?, number(&numbers, "Key Values Processed")?);
    ensure!(cells <= rows + 1, "{rows} rows have {cells} cells, so not all are rewritten");
    for (who, address) in [("OpenTSDB", pair.real), ("Basalt", pair.ours.address)] {
        for of_metric in all.chunk_by(|left, right| left.metric == right.metric) {
            for series in of_metric.chunks(usize::try_from(HOSTS)?) {
                compare(address, series).context(who)?;
            }
        }
    }
    println!(
        "both points, {}, seed {}: {} points in {rows} rows of a cell each, put and rewritten in {seconds:.1} s, 0 errors of fsck, all \
         answered as sent by both",
        pair.profile, asked.seed, asked.count
    );
    Ok(())
}

/// Sends what a series has for a wave: in the first one all but the late points, and in the place of some another value.
fn put(address: SocketAddr, series: &Series, wave: Wave, is_overwriting: bool) -> Result<()> {
    let (mut client, mut points) = (Client::new(address), Vec::new());
    for (place, point) in series.points.iter().enumerate() {
        let (is_late, is_wrong) = (place % LATE == LATE - 1, is_overwriting && place % WRONG == WRONG - 1);
        match wave {
            Wave::First if is_late => {}
            Wave::First if is_wrong => points.push(series.json(&(point.0, "-7".to_owned()))),
            Wave::First => points.push(series.json(point)),
            Wave::Second if is_late || is_wrong => points.push(series.json(point)),
            Wave::Second => {}
        }
    }
    for points in points.chunks(BATCH) {
        let body = Some(format!("[{}]", points.join(",")).into_bytes());
        let answer = client.send(&Request { method: "POST", target: "/api/put", body, ..Request::default() })?;
        ensure!(answer.status == 204, "a put: {} {}", answer.status, String::from_utf8_lossy(&answer.body));
    }
    Ok(())
}

/// Asks for all points of some hosts' series of one metric, which must be those that were sent.
fn compare(address: SocketAddr, all: &[Series]) -> Result<()> {
    let Some(first) = all.first() else { return Ok(()) };
    let hosts: Vec<String> = all.iter().map(|series| format!("h{:02}", series.host)).collect();
    let start = series::START_S;
    let target = format!(
        "/api/query?start={start}&ms&arrays&m=none:{}%7Bhost=literal_or({})%7D",
        first.metric,
        hosts.join("%7C")
    );
    let request = Request { method: "GET", target: &target, ..Request::default() };
    let answer = Client::patient(address, PATIENCE).send(&request)?;
    ensure!(answer.status == 200, "GET {target}: {} {}", answer.status, String::from_utf8_lossy(&answer.body));
    let answered: Vec<Value> = serde_json::from_slice(&answer.body)?;
    let of_host = |told: &Value| told.pointer("/tags/host").and_then(Value::as_str).map(str::to_owned);
    let answered: HashMap<String, &Value> = answered.iter().filter_map(|told| Some((of_host(told)?, told))).collect();
    for (series, host) in all.iter().zip(&hosts) {
        let told = answered.get(host).and_then(|told| told.get("dps")?.as_array());
        let told = told.with_context(|| format!("{} has no series of {host}", first.metric))?;
        let points = told.iter().map(|pair| Some((pair.get(0)?.as_u64()?, pair.get(1)?.as_f64()?)));
        let points: Vec<(u64, f64)> = points.collect::<Option<_>>().context("a point is no pair of numbers")?;
        let sent: Vec<(u64, f64)> = series.points.iter().map(in_ms).collect::<Result<_>>()?;
        let differs = sent.iter().zip(&points).find(|(sent, told)| sent != told);
        ensure!(
            sent.len() == points.len() && differs.is_none(),
            "{} of {host}: {} points of {}, the first that differs (sent, told): {differs:?}",
            first.metric,
            points.len(),
            sent.len()
        );
    }
    Ok(())
}

/// A point as it is answered: milliseconds, and the number that its text says.
fn in_ms((time, value): &(u64, String)) -> Result<(u64, f64)> {
    Ok((if *time < 1 << 32 { time * 1000 } else { *time }, value.parse()?))
}
