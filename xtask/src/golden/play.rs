//! Plays a scenario against a server, whichever it is, and returns what it answered.
//!
//! The same code records from OpenTSDB and replays against Basalt, so the two are asked alike. Names get their UIDs
//! in one order on both: a name that a point brings in beside another new one of its kind goes ahead in a point of
//! its own, and points of a new series are sent alone. OpenTSDB assigns the UIDs of one point in no order.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};

use super::answer::Answer;
use super::client::{Client, Request};
use super::scenario::{Scenario, Step};

/// The metric of points that only bring a name in.
const NAMES_METRIC: &str = "golden.names";
/// Its points' time: long before any scenario's.
const NAMES_SECOND: u64 = 1_000_000_000;
/// Points of known series that go in one call.
const BATCH_POINTS_MAX: usize = 50;
/// Between a write and what comes after it.
const APART: Duration = Duration::from_millis(2);

/// Plays every step in order. `settle` is called after what a server may acknowledge before it can be read back.
///
/// # Errors
/// When the server cannot be spoken to, or refuses a seed.
pub(crate) fn play(scenario: &Scenario, address: SocketAddr, settle: &dyn Fn()) -> anyhow::Result<Vec<Answer>> {
    let mut player = Player::new(address, settle);
    let mut answers = Vec::with_capacity(scenario.exchanges_count());
    for step in &scenario.steps {
        let line = step.describe(&scenario.range);
        if step.seed.is_empty() {
            answers.push(player.exchange(step, &scenario.range).with_context(|| line)?);
        } else {
            player.seed(&step.seed).context("a seed")?;
        }
    }
    Ok(answers)
}

/// One who asks one server, over one connection, and knows the names it has brought in.
pub(crate) struct Player<'a> {
    client: Client,
    /// `metric`, ` tagk` and `=tagv` seen in seeds so far, and whole series.
    names: HashSet<String>,
    settle: &'a dyn Fn(),
}

impl<'a> Player<'a> {
    /// `settle` is called after what a server may acknowledge before it can be read back.
    pub(crate) fn new(address: SocketAddr, settle: &'a dyn Fn()) -> Self {
        Self { client: Client::new(address), names: HashSet::new(), settle }
    }

    /// Asks one step that is no seed.
    ///
    /// # Errors
    /// When the server cannot be spoken to.
    pub(crate) fn exchange(&mut self, step: &Step, range: &str) -> anyhow::Result<Answer> {
        let request_line = step.request_line(range);
        let Some((method, target)) = request_line else {
            ensure!(!step.telnet.is_empty(), "a step that asks nothing");
            let text = self.client.telnet(&step.telnet_bytes(), || (self.settle)())?;
            part_writes();
            return Ok(Answer::telnet(step.describe(range), text));
        };
        let request = Request {
            method: &method,
            target: &target,
            headers: &step.headers,
            body: step.body_bytes(),
            gzip: step.gzip,
            chunked: step.chunked,
        };
        let response = self.client.send(&request)?;
        if is_put_without_sync(&target) {
            (self.settle)();
        }
        if method != "GET" {
            part_writes();
        }
        Ok(Answer::http(step.describe(range), &response))
    }

    /// Puts points, in calls that leave no order of UIDs or of duplicates to chance.
    ///
    /// # Errors
    /// When a point is refused, or the server cannot be spoken to.
    pub(crate) fn seed(&mut self, lines: &[String]) -> anyhow::Result<()> {
        let mut batch = Vec::new();
        let mut seconds = HashSet::new();
        for line in lines {
            let point = Point::parse(line).with_context(|| line.clone())?;
            let is_new = self.names.insert(point.series());
            let repeats = !seconds.insert((point.series(), point.second()));
            if is_new || repeats || batch.len() == BATCH_POINTS_MAX {
                self.put(&mut batch)?;
                seconds.clear();
                seconds.insert((point.series(), point.second()));
            }
            if is_new {
                self.introduce(&point)?;
            }
            batch.push(point.json());
        }
        self.put(&mut batch)
    }

    /// Sends the tags of a new series ahead, one a point, where more than one name of a kind is new.
    fn introduce(&mut self, point: &Point<'_>) -> anyhow::Result<()> {
        let new_pairs = point.tags.iter().filter(|(key, value)| {
            let new_key = !self.names.contains(&format!(" {key}"));
            new_key || !self.names.contains(&format!("={value}"))
        });
        let new_pairs: Vec<_> = new_pairs.copied().collect();
        for (key, value) in &new_pairs {
            self.names.insert(format!(" {key}"));
            self.names.insert(format!("={value}"));
        }
        if new_pairs.len() < 2 {
            return Ok(());
        }
        for (key, value) in new_pairs {
            let tags = json!({ key: value });
            let point = json!({"metric": NAMES_METRIC, "timestamp": NAMES_SECOND, "value": 1, "tags": tags});
            self.put(&mut vec![point])?;
        }
        Ok(())
    }

    fn put(&mut self, batch: &mut Vec<Value>) -> anyhow::Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        let count = batch.len();
        let body = Value::Array(std::mem::take(batch)).to_string().into_bytes();
        let request =
            Request { method: "POST", target: "/api/put?sync&details", body: Some(body), ..Request::default() };
        let response = self.client.send(&request)?;
        let text = String::from_utf8_lossy(&response.body);
        let report: Value = serde_json::from_slice(&response.body).unwrap_or_default();
        let stored = report.get("success").and_then(Value::as_u64) == u64::try_from(count).ok();
        ensure!(response.status == 200 && stored, "{count} points: {} {text}", response.status);
        part_writes();
        Ok(())
    }
}

/// `sync_timeout` alone is no `sync`; `/API/put/` is a put.
fn is_put_without_sync(target: &str) -> bool {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let syncs = query.split('&').any(|part| part == "sync" || part.starts_with("sync="));
    path.to_ascii_lowercase().contains("/put") && !syncs
}

/// Waits until the next write is of another millisecond: by it HBase tells which of two cells is newer.
#[expect(clippy::disallowed_methods, reason = "the time itself is waited for")]
fn part_writes() {
    std::thread::sleep(APART);
}

/// A seed's line, taken apart.
struct Point<'a> {
    metric: &'a str,
    timestamp: u64,
    value: &'a str,
    tags: Vec<(&'a str, &'a str)>,
}

impl<'a> Point<'a> {
    fn parse(line: &'a str) -> anyhow::Result<Self> {
        let mut words = line.split(' ');
        let (Some(metric), Some(timestamp), Some(value)) = (words.next(), words.next(), words.next()) else {
            anyhow::bail!("fewer than three words");
        };
        let tags: Option<Vec<_>> = words.map(|word| word.split_once('=')).collect();
        let tags = tags.context("a tag without `=`")?;
        Ok(Self { metric, timestamp: timestamp.parse()?, value, tags })
    }

    fn series(&self) -> String {
        let mut tags = self.tags.clone();
        tags.sort_unstable();
        format!("{} {tags:?}", self.metric)
    }

    fn second(&self) -> u64 {
        if self.timestamp >> 32 == 0 { self.timestamp } else { self.timestamp / 1000 }
    }

    fn json(&self) -> Value {
        let tags: serde_json::Map<_, _> =
            self.tags.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
        json!({"metric": self.metric, "timestamp": self.timestamp, "value": self.value, "tags": tags})
    }
}
