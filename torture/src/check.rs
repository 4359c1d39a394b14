//! Holds what is stored against the ledger.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::daemon::{Daemon, pause};
use crate::ledger::{BATCH, Epoch, Ledger, START_S, json, point};
use crate::load::AFTER_REFUSAL;

/// How often a put is sent again, at most: less time than it takes until somebody looks by himself whether to flush.
const REFUSALS_MAX: usize = 200;

/// Stored points of a metric: (series, time) → value.
type Stored = BTreeMap<(u64, u64), u64>;

/// Every stored point of an epoch against its ledgers: none lost, none wrong, none that nobody sent, no row torn.
pub(crate) fn verify(daemon: &Daemon, epoch: &Epoch) -> Result<()> {
    for (writer, ledger) in epoch.writers() {
        if ledger.sent() > 0 {
            let found = stored(daemon, &epoch.metric(writer))?;
            verify_writer(writer, ledger, &found).with_context(|| format!("{}: {}", epoch.name(), daemon.told()))?;
        }
    }
    Ok(())
}

fn verify_writer(writer: u64, ledger: &Ledger, stored: &Stored) -> Result<()> {
    let acknowledged = ledger.acknowledged();
    let expected: BTreeMap<(u64, u64), (u64, u64)> = (0..ledger.sent())
        .map(|n| (point(writer, n), n))
        .map(|((series, at, value), n)| ((series, at), (value, n)))
        .collect();
    for (place, value) in stored {
        let Some((sent, _)) = expected.get(place) else { bail!("writer {writer}: a phantom at {place:?}") };
        ensure!(sent == value, "writer {writer}: {value} at {place:?}, {sent} was sent");
    }
    // Of what was in flight, how much of each row is there.
    let mut rows: BTreeMap<(u64, u64), (u64, u64)> = BTreeMap::new();
    for (place, (_, n)) in &expected {
        let is_there = stored.contains_key(place);
        ensure!(
            is_there || *n >= acknowledged,
            "writer {writer} lost point {n} of {acknowledged} acknowledged, at {place:?}; {} are there",
            stored.len()
        );
        if *n >= acknowledged {
            let (held, of) = rows.entry((place.0, place.1 / 3600)).or_default();
            *held += u64::from(is_there);
            *of += 1;
        }
    }
    for (row, (held, of)) in rows {
        ensure!(held == 0 || held == of, "writer {writer}: row {row:?} is torn: {held} points of {of}");
    }
    Ok(())
}

/// A moment of an epoch: of each writer's points the first ones, at least `before` of them and at most `after`; of the last
/// request each row wholly or not at all.
pub(crate) fn verify_prefix(daemon: &Daemon, epoch: &Epoch, before: &[u64], after: &[u64]) -> Result<()> {
    for ((writer, _), (before, after)) in epoch.writers().zip(before.iter().zip(after)) {
        let found = stored(daemon, &epoch.metric(writer))?;
        let is_there = |n: &u64| {
            let (series, at, value) = point(writer, *n);
            found.get(&(series, at)) == Some(&value)
        };
        let whole =
            (0..*after).step_by(usize::try_from(BATCH)?).take_while(|from| (*from..from + BATCH).all(|n| is_there(&n)));
        let whole = whole.count() as u64 * BATCH;
        ensure!(whole >= *before, "writer {writer}: {whole} points of {before} acknowledged");
        let moment = Ledger::of(whole, (whole + BATCH).min(*after));
        verify_writer(writer, &moment, &found)?;
    }
    Ok(())
}

/// How many points of a metric there are.
pub(crate) fn count(daemon: &Daemon, metric: &str) -> Result<u64> {
    Ok(stored(daemon, metric)?.len() as u64)
}

fn stored(daemon: &Daemon, metric: &str) -> Result<Stored> {
    let path = format!("/api/query?start=1&end={}&m=none:{metric}{{series=*}}", START_S + 400 * 24 * 3600);
    let answer = daemon.client()?.get(&path)?;
    // A writer whose first request never arrived has no name yet.
    if answer.status == 400 && answer.text().contains("No such name") {
        return Ok(Stored::new());
    }
    ensure!(answer.status == 200, "a query is answered with {}: {:.300}", answer.status, answer.text());
    let answer: Value = serde_json::from_slice(&answer.body)?;
    let mut stored = Stored::new();
    for series in answer.as_array().context("an answer that is no list")? {
        let name = series["tags"]["series"].as_str().unwrap_or_default();
        let number = name.trim_start_matches('s').parse()?;
        for (at, value) in series["dps"].as_object().context("a series without points")? {
            let value = value.as_u64().with_context(|| format!("{value} at {at} of {name}"))?;
            ensure!(stored.insert((number, at.parse()?), value).is_none(), "two points at {at} of {name}");
        }
    }
    Ok(stored)
}

/// Sends again what was in flight, so that every point up to there is known to be stored.
pub(crate) fn settle(daemon: &Daemon, epoch: &Epoch) -> Result<()> {
    let mut client = daemon.client()?;
    for (writer, ledger) in epoch.writers() {
        if let Some(from) = ledger.sent().checked_sub(BATCH) {
            let body = json(&epoch.metric(writer), writer, from);
            let mut answer = client.post("/api/put", &body)?;
            // What the log held may fill the memtables.
            for _ in 0..REFUSALS_MAX {
                if answer.status != 503 {
                    break;
                }
                pause(AFTER_REFUSAL);
                answer = client.post("/api/put", &body)?;
            }
            ensure!(answer.status == 204, "settling: {} {:.200}", answer.status, answer.text());
        }
    }
    epoch.settle();
    Ok(())
}
