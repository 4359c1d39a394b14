//! Those who put while faults happen, and one who asks.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::Value;

use super::ledger::{BATCH, Ledger};
use crate::both::daemon::pause;
use crate::differential::draw::Draw;
use crate::golden::client::{Client, Request, Response};

/// What an acknowledged put is counted as.
pub(super) const STORED: &str = "204";
/// Longest that an answer is waited for: longer than the daemon waits for HBase.
const ANSWER_MAX: Duration = Duration::from_secs(90);
/// Of a hundred puts that were not acknowledged, so many are sent again.
const AGAIN_PERCENT: u64 = 70;
/// The pause before that, and between two questions.
const PAUSE: Duration = Duration::from_millis(100);
/// Batches that a question is about.
const ASKED_MAX: u64 = 100;

/// Who puts where.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load<'a> {
    pub(super) address: SocketAddr,
    pub(super) ledger: &'a Ledger,
    /// Points a second.
    pub(super) rate: u64,
    pub(super) seed: u64,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Told<T> {
    /// Of what went on meanwhile.
    pub(super) value: T,
    /// How puts were answered.
    pub(super) answers: BTreeMap<String, u64>,
    /// Questions asked meanwhile, and those that were answered; what they were answered was right.
    pub(super) asked: u64,
    pub(super) whole: u64,
}

/// Whether an answer to a put says, as it must, that the same put may be sent again later, and why: nobody knows whether it was
/// done, nothing could be reached, or the daemon has begun and still looks for the cluster.
pub(super) fn is_told(answer: &str) -> bool {
    let is_reason =
        |why: &str| why.contains("Storage exception") || why.starts_with("Waiting for HBase") || is_unknown(why);
    answer.strip_prefix("503, later: ").is_some_and(is_reason)
}

/// Whether it says that nobody knows whether the put was done.
pub(super) fn is_unknown(answer: &str) -> bool {
    answer.contains("unknown")
}

impl Load<'_> {
    /// Puts while this goes on, and until it ends.
    pub(super) fn during<T>(&self, go: impl FnOnce() -> Result<T>) -> Result<Told<T>> {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let stop = &stop;
            let mut draw = Draw::new(self.seed);
            let writers: Vec<_> = (0..self.ledger.writers())
                .map(|writer| (writer, draw.fork()))
                .map(|(writer, draw)| scope.spawn(move || self.write(writer, draw, stop)))
                .collect();
            let asking = draw.fork();
            let reader = scope.spawn(move || self.read(asking, stop));
            let value = go();
            // Relaxed: nothing is handed over by it, the threads are joined.
            stop.store(true, Ordering::Relaxed);
            let mut answers: BTreeMap<String, u64> = BTreeMap::new();
            for thread in writers {
                let Ok(told) = thread.join() else { bail!("a writer panicked") };
                for (answer, count) in told? {
                    *answers.entry(answer).or_default() += count;
                }
            }
            let Ok(read) = reader.join() else { bail!("the reader panicked") };
            let (asked, whole) = read?;
            Ok(Told { value: value?, answers, asked, whole })
        })
    }

    fn write(&self, writer: usize, mut draw: Draw, stop: &AtomicBool) -> Result<BTreeMap<String, u64>> {
        let mut client = Client::patient(self.address, ANSWER_MAX);
        let mut answers: BTreeMap<String, u64> = BTreeMap::new();
        let pace = Duration::from_secs(1).mul_f64(pace(self.ledger.writers(), self.rate));
        while !stop.load(Ordering::Relaxed) {
            let batch = self.ledger.begin(writer)?;
            loop {
                let begun = Instant::now();
                let body = Some(self.ledger.body(writer, batch));
                let answer = client.send(&Request { method: "POST", target: "/api/put", body, ..Request::default() });
                let answer = answer.map_or_else(|error| format!("no answer: {error:#}"), |answer| words(&answer));
                let is_stored = answer == STORED;
                *answers.entry(answer).or_default() += 1;
                if is_stored {
                    self.ledger.acknowledge(writer, batch, begun)?;
                    pause(pace.saturating_sub(begun.elapsed()));
                    break;
                }
                pause(PAUSE);
                if stop.load(Ordering::Relaxed) || !draw.chance(AGAIN_PERCENT) {
                    break;
                }
            }
        }
        Ok(answers)
    }

    /// Asks for the newest points of one writer after the other: how often, and how often there was an answer.
    fn read(&self, mut draw: Draw, stop: &AtomicBool) -> Result<(u64, u64)> {
        let mut client = Client::patient(self.address, ANSWER_MAX);
        let (mut asked, mut whole) = (0, 0);
        while !stop.load(Ordering::Relaxed) {
            let writer = draw.index(self.ledger.writers());
            let newest = self.ledger.begun(writer)?;
            let answer = self.ledger.look(&mut client, writer, newest.saturating_sub(ASKED_MAX)..newest)?;
            (asked, whole) = (asked + 1, whole + u64::from(answer.is_some()));
            pause(PAUSE);
        }
        Ok((asked, whole))
    }
}

/// Seconds between two batches of a writer.
#[expect(clippy::cast_precision_loss, reason = "a pause, of three digits")]
fn pace(writers: usize, rate: u64) -> f64 {
    (writers as u64 * BATCH) as f64 / rate as f64
}

/// An answer in words that like ones share: status, and what it says without numbers.
fn words(answer: &Response) -> String {
    let text = String::from_utf8_lossy(&answer.body);
    let told: Value = serde_json::from_str(&text).unwrap_or_default();
    let of = |pointer: &str| told.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let said =
        if told.is_null() { text.into_owned() } else { format!("{} {}", of("/error/message"), of("/error/details")) };
    let said: String = said.chars().filter(|letter| !letter.is_ascii_digit()).take(300).collect();
    let later = if answer.header("retry-after").is_some() { ", later" } else { "" };
    if said.trim().is_empty() {
        answer.status.to_string()
    } else {
        format!("{}{later}: {}", answer.status, said.trim())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_put_that_is_not_stored_says_when_to_ask_again_and_why() {
        let check = |answer: &str, expected: bool| assert_eq!(is_told(answer), expected, "{answer}");
        check("503, later: Storage exception the cluster's server s: it was closed", true);
        check("503, later: Waiting for HBase The HBase cluster has not answered yet; ask again in a while", true);
        check("503, later: the outcome is unknown", true);
        check("503: Waiting for HBase", false);
        check("503, later: Full", false);
        check("500, later: Storage exception", false);
    }
}
