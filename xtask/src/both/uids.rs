//! New names that both daemons meet at the same moment.
//!
//! First two daemons of Basalt, then OpenTSDB's and Basalt's. Every thread of both sides writes a point of each shared metric,
//! with a tag key and a tag value of the same number, all in the same order, and now and then a point whose names are its own.
//! Each point has a second of its own by its thread: were a name given two UIDs, some would not be found.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Barrier;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use super::daemon::{Daemon, pause};
use super::{Asked, Pair};
use crate::differential::draw::Draw;
use crate::golden::client::{Client, Request};

/// The first second of the points.
const START_S: u64 = 1_700_000_000;
/// How often a point that was refused is sent again: OpenTSDB gives a name up when others were faster too often, and a daemon
/// that has just started may not reach its regions yet. The pause before that is so much longer each time.
const ATTEMPTS_MAX: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);
/// Shared names between two meetings of all threads.
const STRIDE: u64 = 10;
/// Of a hundred shared names, after so many each thread brings in one of its own.
const OWN_PERCENT: u64 = 20;
const KINDS: [&str; 3] = ["metrics", "tagk", "tagv"];

/// What a thread came to.
#[derive(Debug, Default)]
struct Wrote {
    /// Names of its own.
    own: Vec<u64>,
    refused: BTreeMap<String, u64>,
}

/// Has two daemons of Basalt write, which leave nothing that `uid fsck` finds; then OpenTSDB and Basalt.
pub(super) fn run(asked: &Asked, pair: &mut Pair<'_>) -> Result<()> {
    let other = Daemon::beside(&asked.program()?, pair.profile)?;
    let mut draw = Draw::new(asked.seed);
    let mut wanted = BTreeSet::new();
    let (ours, real) = (("Basalt", pair.ours.address), ("OpenTSDB", pair.real));
    for (tag, sides) in [("b", [ours, ("Basalt too", other.address)]), ("o", [real, ours])] {
        let wrote = Meeting { tag, asked, sides }.write(&mut draw)?;
        wanted.extend(wrote);
        let given_up = check_table(pair, &wanted)?;
        for (side, address) in sides {
            for name in 0..asked.names {
                let (found, count) = (seconds(address, &format!("{tag}s{name}"))?, asked.threads * 2);
                ensure!(
                    found == (0..count).collect(),
                    "{side} finds points {found:?} of shared name {name}, not {count}"
                );
            }
        }
        let numbers = pair.fsck()?;
        let found = pair.tool(&["uid", "--verbose", "fsck"])?;
        let errors: Vec<&String> = found.iter().filter(|line| line.starts_with("Inconsistent")).collect();
        let is_sound = found.iter().any(|line| line == "No errors found.");
        ensure!(is_sound == errors.is_empty(), "uid fsck: {found:#?}");
        // OpenTSDB leaves the name of a UID that it drew in vain, and its own `uid fsck` finds it.
        ensure!(errors.len() == given_up, "uid fsck found more than {given_up} UIDs given up: {errors:#?}");
        ensure!(tag == "o" || given_up == 0, "Basalt left UIDs that it gave up: {errors:#?}");
        println!(
            "both uids, {}, seed {}, {} and {}: {} names by {} threads a side, none with two UIDs, no UID of two names; \
             {given_up} given up and left; {} rows, found by both; fsck: 0 errors",
            pair.profile,
            asked.seed,
            sides[0].0,
            sides[1].0,
            wanted.len(),
            asked.threads,
            super::number(&numbers, "Rows Processed")?,
        );
    }
    Ok(())
}

/// Two daemons and those who write to them.
struct Meeting<'a> {
    /// What its names begin with.
    tag: &'a str,
    asked: &'a Asked,
    sides: [(&'a str, SocketAddr); 2],
}

impl Meeting<'_> {
    /// Writes, and gives all names that were.
    fn write(&self, draw: &mut Draw) -> Result<BTreeSet<String>> {
        let threads_count = self.asked.threads * 2;
        let barrier = Barrier::new(usize::try_from(threads_count)?);
        let wrote: Vec<(&str, Wrote)> = std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for thread in 0..threads_count {
                let (side, address) = self.sides[usize::from(thread % 2 == 1)];
                let (draw, barrier) = (draw.fork(), &barrier);
                threads.push((side, scope.spawn(move || self.write_one(address, thread, draw, barrier))));
            }
            let joined = threads.into_iter().map(|(side, thread)| match thread.join() {
                Ok(wrote) => Ok((side, wrote.with_context(|| format!("a thread of {side}"))?)),
                Err(_) => bail!("a thread of {side} panicked"),
            });
            joined.collect::<Result<Vec<_>>>()
        })?;
        let mut refusals: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for (side, thread) in &wrote {
            for (why, count) in &thread.refused {
                *refusals.entry((side, why)).or_default() += count;
            }
        }
        for ((side, why), count) in &refusals {
            println!("     {side} refused for a time, {count} times: {why}");
        }
        let mut wanted: BTreeSet<String> =
            (0..self.asked.names).flat_map(|name| names(&format!("{}s{name}", self.tag))).collect();
        for (thread, (_, of)) in wrote.iter().enumerate() {
            wanted.extend(of.own.iter().flat_map(|name| names(&format!("{}o{thread}-{name}", self.tag))));
        }
        Ok(wanted)
    }

    fn write_one(&self, address: SocketAddr, thread: u64, mut draw: Draw, barrier: &Barrier) -> Result<Wrote> {
        let mut client = Client::new(address);
        let mut wrote = Wrote::default();
        let mut failed = Ok(());
        for name in 0..self.asked.names {
            if name % STRIDE == 0 {
                barrier.wait();
            }
            // One who failed still comes to each meeting: the others would wait for ever.
            if failed.is_err() {
                continue;
            }
            failed = put(&mut client, &format!("{}s{name}", self.tag), thread, &mut wrote);
            if failed.is_ok() && draw.chance(OWN_PERCENT) {
                failed = put(&mut client, &format!("{}o{thread}-{name}", self.tag), thread, &mut wrote);
                wrote.own.push(name);
            }
        }
        failed.map(|()| wrote)
    }
}

/// The three names of a point.
fn names(of: &str) -> [String; 3] {
    [format!("metrics m.{of}"), format!("tagk k.{of}"), format!("tagv v.{of}")]
}

fn put(client: &mut Client, name: &str, thread: u64, wrote: &mut Wrote) -> Result<()> {
    let (metric, key, value) = (format!("m.{name}"), format!("k.{name}"), format!("v.{name}"));
    let point = json!({"metric": metric, "timestamp": START_S + thread, "value": thread, "tags": {key: value}});
    let mut last = String::new();
    for attempt in 0..ATTEMPTS_MAX {
        pause(PAUSE * attempt);
        let body = Some(point.to_string().into_bytes());
        let request = Request { method: "POST", target: "/api/put?sync&details", body, ..Request::default() };
        let answer = client.send(&request)?;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        let report: Value = serde_json::from_str(&text).unwrap_or_default();
        if answer.status == 200 && report.get("success").and_then(Value::as_u64) == Some(1) {
            return Ok(());
        }
        let why = report.pointer("/errors/0/error").and_then(Value::as_str).unwrap_or(&text);
        let why: String = why.chars().filter(|letter| !letter.is_ascii_digit()).take(80).collect();
        *wrote.refused.entry(why).or_default() += 1;
        last = text;
    }
    bail!("{name} was refused {ATTEMPTS_MAX} times: {last}")
}

/// Each name of the table to one UID and back; all that were wanted are there. Says how many UIDs have a name that does
/// not know them: of two who give a name a UID at once, the slower one's is lost, in OpenTSDB as here.
fn check_table(pair: &mut Pair<'_>, wanted: &BTreeSet<String>) -> Result<usize> {
    let table = pair.table("-uid");
    let (mut forward, mut backward) = (BTreeMap::new(), BTreeMap::new());
    for line in pair.oracle.tables(&format!("dump {table}"))? {
        let words: Vec<&str> = line.split(' ').collect();
        let &[row, family, qualifier, _, value] = words.as_slice() else { bail!("not a cell: {line}") };
        let qualifier = text(qualifier)?;
        let Some(kind) = KINDS.iter().find(|kind| **kind == qualifier) else { bail!("a cell of no kind: {line}") };
        let known = match (family, row) {
            // How many UIDs there are.
            ("id", "00") => None,
            ("id", name) => forward.insert(format!("{kind} {}", text(name)?), (*kind, value.to_owned())),
            ("name", uid) => {
                backward.insert((*kind, uid.to_owned()), format!("{kind} {}", text(value)?)).map(|_| ("", line.clone()))
            }
            _ => bail!("a cell of no family: {line}"),
        };
        ensure!(known.is_none(), "twice: {line}");
    }
    let mut owners: BTreeMap<&(&str, String), &String> = BTreeMap::new();
    for (name, uid) in &forward {
        if let Some(other) = owners.insert(uid, name) {
            bail!("{uid:?} is the UID of {other} and of {name}");
        }
        ensure!(backward.get(uid) == Some(name), "{name} has {uid:?}, which is named {:?}", backward.get(uid));
    }
    let there: BTreeSet<String> = forward.keys().cloned().collect();
    ensure!(
        &there == wanted,
        "the names are others: {:?}",
        there.symmetric_difference(wanted).take(5).collect::<Vec<_>>()
    );
    Ok(backward.len() - forward.len())
}

/// The threads whose points of a shared name a daemon finds, by their seconds.
fn seconds(address: SocketAddr, name: &str) -> Result<BTreeSet<u64>> {
    let (start, end) = (START_S - 10, START_S + 1000);
    let target = format!("/api/query?start={start}&end={end}&m=sum:m.{name}%7Bk.{name}=v.{name}%7D");
    let answer = Client::new(address).send(&Request { method: "GET", target: &target, ..Request::default() })?;
    let text = String::from_utf8_lossy(&answer.body);
    ensure!(answer.status == 200, "GET {target}: {} {text}", answer.status);
    let told: Value = serde_json::from_str(&text)?;
    let dps = told.pointer("/0/dps").and_then(Value::as_object).cloned().unwrap_or_default();
    let seconds: Option<BTreeSet<u64>> = dps
        .iter()
        .map(|(second, value)| Some(second.parse::<u64>().ok()? - START_S).filter(|at| value.as_u64() == Some(*at)))
        .collect();
    seconds.with_context(|| format!("a point with another's value: {text}"))
}

fn text(hex: &str) -> Result<String> {
    let digits = |at: usize| hex.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
    let bytes: Option<Vec<u8>> = (0..hex.len()).step_by(2).map(digits).collect();
    Ok(String::from_utf8(bytes.context("not hexadecimal")?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_is_read_in_pairs() {
        assert_eq!(text("6d2e7331").unwrap(), "m.s1");
        assert!(text("0g").is_err());
        assert!(text("0").is_err());
    }
}
