//! Points of every form, put by Basalt; OpenTSDB's own `fsck` then reads each cell of them.

use std::net::SocketAddr;
use std::time::Instant;

use anyhow::{Result, bail, ensure};
use serde_json::Value;

use super::{Asked, Pair, number};
use crate::golden::client::{Client, Request};
use crate::import_check::series::{self, Series};

/// Connections that put, and points of one request.
const CONNECTIONS: usize = 4;
const BATCH: usize = 200;

/// Puts the points, has them checked, and has both daemons count them.
pub(super) fn run(asked: &Asked, pair: &mut Pair<'_>) -> Result<()> {
    let all = series::draw(asked.count, asked.seed);
    let began = Instant::now();
    let address = pair.ours.address;
    std::thread::scope(|scope| {
        let put = |of: usize| {
            let mine = all.iter().skip(of).step_by(CONNECTIONS);
            mine.into_iter().try_for_each(|series| put(address, series))
        };
        let threads: Vec<_> = (0..CONNECTIONS).map(|of| scope.spawn(move || put(of))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| bail!("a thread panicked")))
    })?;
    let seconds = began.elapsed().as_secs_f64();
    let numbers = pair.fsck()?;
    let stored: u64 = number(&numbers, "Valid Datapoints")?;
    // It looks into cells that were appended to and counts none of their points.
    ensure!(pair.profile == "appends" || stored == asked.count, "fsck counts {stored} points of {}", asked.count);
    for (who, address) in [("OpenTSDB", pair.real), ("Basalt", pair.ours.address)] {
        for (metric, _) in series::METRICS {
            let wanted: usize = all.iter().filter(|series| series.metric == metric).map(|of| of.points.len()).sum();
            let counted = count(address, metric)?;
            ensure!(counted == wanted as u64, "{who} counts {counted} points of {metric}, not {wanted}");
        }
    }
    println!(
        "both points, {}, seed {}: {} points in {} rows, put in {seconds:.1} s, 0 errors of fsck, counted by both",
        pair.profile,
        asked.seed,
        asked.count,
        number(&numbers, "Rows Processed")?
    );
    Ok(())
}

fn put(address: SocketAddr, series: &Series) -> Result<()> {
    let mut client = Client::new(address);
    for points in series.points.chunks(BATCH) {
        let points: Vec<String> = points.iter().map(|point| series.json(point)).collect();
        let body = Some(format!("[{}]", points.join(",")).into_bytes());
        let answer = client.send(&Request { method: "POST", target: "/api/put", body, ..Request::default() })?;
        ensure!(answer.status == 204, "a put: {} {}", answer.status, String::from_utf8_lossy(&answer.body));
    }
    Ok(())
}

/// The points of a metric over all its time, by a question.
fn count(address: SocketAddr, metric: &str) -> Result<u64> {
    let target = format!("/api/query?start={}&m=sum:0all-count:{metric}", series::START_S);
    let answer = Client::new(address).send(&Request { method: "GET", target: &target, ..Request::default() })?;
    let text = String::from_utf8_lossy(&answer.body);
    ensure!(answer.status == 200, "GET {target}: {} {text}", answer.status);
    let told: Value = serde_json::from_str(&text)?;
    let of_series = |series: &Value| series.get("dps").and_then(Value::as_object).cloned().unwrap_or_default();
    let counts = told.as_array().into_iter().flatten().flat_map(|series| of_series(series).into_iter());
    let sum: f64 = counts.filter_map(|(_, count)| count.as_f64()).sum();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count, and a whole number")]
    Ok(sum as u64)
}
