//! What was sent, and what was acknowledged: kept by the writers, read by whoever asks for points.
//!
//! Every writer has a series of its own; its batches follow each other in time, and a point's value is a function of
//! seed, series and second. So a batch's number says all that was in it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::golden::client::{Client, Request};

/// The first second: a whole hour.
pub(super) const START_S: u64 = 1_600_002_000;
/// Metrics that the series share.
pub(super) const METRICS: usize = 8;
/// Points of a batch.
pub(super) const BATCH: u64 = 50;
/// Longest that an answer is waited for.
const ANSWER_MAX: Duration = Duration::from_secs(150);

/// What is known of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// It was sent, and may be there or not, or in part.
    Unknown,
    /// It is there.
    Acknowledged,
}

/// One writer's.
#[derive(Debug)]
struct Page {
    batches: Vec<Known>,
    /// When the newest batch that is acknowledged was begun.
    begun: Option<Instant>,
}

/// All writers'.
#[derive(Debug)]
pub(super) struct Ledger {
    seed: u64,
    /// Each guards a writer's page; held for a look only.
    pages: Vec<Mutex<Page>>,
}

impl Ledger {
    pub(super) fn new(seed: u64, writers: usize) -> Self {
        let page = || Mutex::new(Page { batches: Vec::new(), begun: None });
        Self { seed, pages: (0..writers).map(|_| page()).collect() }
    }

    pub(super) fn writers(&self) -> usize {
        self.pages.len()
    }

    fn page(&self, writer: usize) -> Result<std::sync::MutexGuard<'_, Page>> {
        let page = self.pages.get(writer).context("no such writer")?;
        Ok(page.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How many batches a writer has begun.
    pub(super) fn begun(&self, writer: usize) -> Result<u64> {
        Ok(self.page(writer)?.batches.len() as u64)
    }

    /// Takes the number of a new batch, of which nothing is known yet.
    pub(super) fn begin(&self, writer: usize) -> Result<u64> {
        let mut page = self.page(writer)?;
        page.batches.push(Known::Unknown);
        Ok(page.batches.len() as u64 - 1)
    }

    /// Notes that a batch is acknowledged which was sent at that moment.
    pub(super) fn acknowledge(&self, writer: usize, batch: u64, begun: Instant) -> Result<()> {
        let mut page = self.page(writer)?;
        *page.batches.get_mut(usize::try_from(batch)?).context("no such batch")? = Known::Acknowledged;
        page.begun = page.begun.max(Some(begun));
        Ok(())
    }

    /// Whether every writer had a batch acknowledged that it sent after that moment.
    pub(super) fn all_acknowledged_since(&self, moment: Instant) -> bool {
        (0..self.pages.len()).all(|writer| self.page(writer).is_ok_and(|page| page.begun.is_some_and(|at| at > moment)))
    }

    /// Points acknowledged, and points of which it is not known.
    pub(super) fn counts(&self) -> (u64, u64) {
        let count = |known: Known| {
            let of =
                |writer| self.page(writer).map_or(0, |page| page.batches.iter().filter(|one| **one == known).count());
            (0..self.pages.len()).map(of).sum::<usize>() as u64 * BATCH
        };
        (count(Known::Acknowledged), count(Known::Unknown))
    }

    /// The body of a put.
    pub(super) fn body(&self, writer: usize, batch: u64) -> Vec<u8> {
        let points: Vec<String> = seconds(batch..batch + 1)
            .map(|second| {
                format!(
                    r#"{{"metric":"rounds.m{}","timestamp":{second},"value":{},"tags":{{"writer":"w{writer}"}}}}"#,
                    writer % METRICS,
                    self.value(writer, second)
                )
            })
            .collect();
        format!("[{}]", points.join(",")).into_bytes()
    }

    /// An integer of any width, negative ones too.
    fn value(&self, writer: usize, second: u64) -> i64 {
        let mut mixed = (self.seed ^ (writer as u64) << 40 ^ second).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        // Within what a double holds exactly.
        (mixed ^ (mixed >> 31)).cast_signed() >> (11 + mixed % 48)
    }

    /// Reads every point of every series back: what was acknowledged is there, whatever is there was sent. Says how many.
    pub(super) fn verify(&self, address: SocketAddr) -> Result<u64> {
        let mut client = Client::patient(address, ANSWER_MAX);
        let mut read = 0;
        for writer in 0..self.pages.len() {
            let batches = self.begun(writer)?;
            read += self.look(&mut client, writer, 0..batches)?.with_context(|| "a question was not answered")?;
        }
        Ok(read)
    }

    /// Asks for some of a writer's batches and holds the answer to what was known before it was asked: how many points it
    /// has, or none where it was refused.
    ///
    /// # Errors
    /// A point is lost, or wrong, or nobody's.
    pub(super) fn look(&self, client: &mut Client, writer: usize, batches: Range<u64>) -> Result<Option<u64>> {
        let known = self.page(writer)?.batches.clone();
        let all = seconds(batches.clone());
        let metric = writer % METRICS;
        let target =
            format!("/api/query?start={}&end={}&m=none:rounds.m{metric}%7Bwriter=w{writer}%7D", all.start, all.end);
        let answer = client.send(&Request { method: "GET", target: &target, ..Request::default() });
        let Some(answer) = answer.ok().filter(|answer| answer.status == 200) else { return Ok(None) };
        let told: Value = serde_json::from_slice(&answer.body)?;
        let dps = told.pointer("/0/dps").and_then(Value::as_object).cloned().unwrap_or_default();
        let mut found = BTreeMap::new();
        for (second, value) in &dps {
            found.insert(second.parse::<u64>()?, value.as_i64().with_context(|| format!("{second}: {value}"))?);
        }
        for batch in batches {
            let is_known = known.get(usize::try_from(batch)?) == Some(&Known::Acknowledged);
            for second in seconds(batch..batch + 1) {
                let (at, wanted) =
                    (format!("writer {writer}, batch {batch}, second {second}"), self.value(writer, second));
                match found.remove(&second) {
                    Some(value) => ensure!(value == wanted, "wrong: {at}: {value}, not {wanted}"),
                    None => ensure!(!is_known, "lost: {at}"),
                }
            }
        }
        // The question's end is a second of the batch behind.
        ensure!(found.keys().all(|second| *second == all.end), "nobody's: {:?}", found.keys().next());
        Ok(Some(dps.len() as u64))
    }
}

fn seconds(batches: Range<u64>) -> Range<u64> {
    START_S + batches.start * BATCH..START_S + batches.end * BATCH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_unknown_until_it_is_acknowledged() {
        let ledger = Ledger::new(1, 2);
        let before = Instant::now();
        let batch = ledger.begin(1).unwrap();
        assert_eq!(ledger.counts(), (0, BATCH));
        ledger.acknowledge(1, batch, Instant::now()).unwrap();
        assert_eq!(ledger.counts(), (BATCH, 0));
        assert!(!ledger.all_acknowledged_since(before), "the other writer has none");
        let batch = ledger.begin(0).unwrap();
        ledger.acknowledge(0, batch, Instant::now()).unwrap();
        assert!(ledger.all_acknowledged_since(before));
        assert!(!ledger.all_acknowledged_since(Instant::now()));
    }

    #[test]
    fn values_are_of_many_widths_and_exact_in_a_double() {
        let ledger = Ledger::new(1, 1);
        let values: Vec<i64> = (0..1000).map(|second| ledger.value(0, second)).collect();
        assert!(values.iter().all(|value| value.unsigned_abs() <= 1 << 53));
        for bits in [8, 16, 32] {
            assert!(values.iter().any(|value| value.unsigned_abs() < 1 << (bits - 1)), "{bits}");
            assert!(values.iter().any(|value| value.unsigned_abs() > 1 << bits), "{bits}");
        }
    }
}
