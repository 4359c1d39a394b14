//! What a run saw: how long answers took, how much was done when, and what went wrong.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// The longest time that is told apart: a day.
const LATENCY_US_MAX: u64 = 86_400_000_000;
/// Seconds whose work is told one by one: those of the first day. What is done later is in the sums alone.
pub(crate) const SECONDS_MAX: usize = 86_400;

/// One connection's numbers, or those of several.
#[derive(Clone, Debug)]
pub(crate) struct Recorder {
    /// Microseconds from when a request was due to its whole answer, a refusal too, or to its loss; at three digits.
    latency: Histogram<u64>,
    /// What was done in each second from the run's begin, at most [`SECONDS_MAX`].
    seconds: Vec<u64>,
    pub(crate) done: u64,
    pub(crate) requests: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) answer_bytes: u64,
    pub(crate) failed: u64,
    /// Points that a server said to have refused, one by one; they are not among those done.
    pub(crate) refused_points: u64,
    /// Connections that ended before their work: requests in a row were lost, or refused by answers that close.
    pub(crate) gave_up: u64,
    /// Answers that had nothing in them.
    pub(crate) empty: u64,
    /// Requests that were due and not sent when the run ended.
    pub(crate) unsent: u64,
    /// What was said of the first request that failed.
    pub(crate) first_failure: Option<String>,
}

impl Default for Recorder {
    #[expect(clippy::expect_used, reason = "constant bounds: 1 ≤ low, 2·low ≤ high, digits ≤ 5")]
    fn default() -> Self {
        Self {
            latency: Histogram::new_with_bounds(1, LATENCY_US_MAX, 3).expect("BUG: constant bounds"),
            seconds: Vec::new(),
            done: 0,
            requests: 0,
            sent_bytes: 0,
            answer_bytes: 0,
            failed: 0,
            refused_points: 0,
            gave_up: 0,
            empty: 0,
            unsent: 0,
            first_failure: None,
        }
    }
}

impl Recorder {
    /// A request that did `done` and was answered `at` into the run, `took` after it was due.
    pub(crate) fn answered(&mut self, at: Duration, took: Duration, done: u64) {
        self.took(took);
        let second = self.reach(at);
        if let Some(count) = self.seconds.get_mut(second) {
            *count += done;
        }
        self.done += done;
        self.requests += 1;
    }

    /// The second of a moment of the run, with all before it; there is none behind the first day.
    pub(crate) fn reach(&mut self, at: Duration) -> usize {
        let second = usize::try_from(at.as_secs()).unwrap_or(usize::MAX);
        let reached = second.saturating_add(1).min(SECONDS_MAX);
        if self.seconds.len() < reached {
            self.seconds.resize(reached, 0);
        }
        second
    }

    /// A request that was lost, or answered with what is no success, `took` after it was due.
    pub(crate) fn refused(&mut self, took: Duration, why: String) {
        self.took(took);
        self.requests += 1;
        self.failed += 1;
        self.first_failure.get_or_insert(why);
    }

    /// Points that the server says not to have taken, which were held to be done; of the newest seconds, as nobody says when it was.
    pub(crate) fn undone(&mut self, points: u64, why: String) {
        self.refused_points += points;
        self.first_failure.get_or_insert(why);
        self.done = self.done.saturating_sub(points);
        let mut left = points;
        for second in self.seconds.iter_mut().rev() {
            let off = left.min(*second);
            (*second, left) = (*second - off, left - off);
        }
    }

    /// A request that was due, and had waited so long when the run ended.
    pub(crate) fn unsent(&mut self, waited: Duration) {
        self.took(waited);
        self.unsent += 1;
    }

    fn took(&mut self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(LATENCY_US_MAX);
        self.latency.saturating_record(us.clamp(1, LATENCY_US_MAX));
    }

    /// Adds another connection's numbers.
    fn add(&mut self, other: &Self) {
        // Both have the same bounds.
        self.latency.add(&other.latency).unwrap_or_default();
        if self.seconds.len() < other.seconds.len() {
            self.seconds.resize(other.seconds.len(), 0);
        }
        for (sum, more) in self.seconds.iter_mut().zip(&other.seconds) {
            *sum += more;
        }
        self.done += other.done;
        self.requests += other.requests;
        self.sent_bytes += other.sent_bytes;
        self.answer_bytes += other.answer_bytes;
        self.failed += other.failed;
        self.refused_points += other.refused_points;
        self.gave_up += other.gave_up;
        self.empty += other.empty;
        self.unsent += other.unsent;
        self.first_failure = self.first_failure.take().or_else(|| other.first_failure.clone());
    }

    /// The numbers of all connections.
    pub(crate) fn sum(each: &[Self]) -> Self {
        let mut all = Self::default();
        for recorder in each {
            all.add(recorder);
        }
        all
    }

    /// What was done in each second.
    pub(crate) fn seconds(&self) -> &[u64] {
        &self.seconds
    }

    /// The usual quantiles.
    pub(crate) fn latency(&self) -> Latency {
        let ms = |us: u64| Duration::from_micros(us).as_secs_f64() * 1e3;
        let quantile = |quantile: f64| ms(self.latency.value_at_quantile(quantile));
        let least = if self.latency.is_empty() { 0 } else { self.latency.min() };
        Latency {
            min_ms: ms(least),
            p50_ms: quantile(0.5),
            p90_ms: quantile(0.9),
            p99_ms: quantile(0.99),
            p999_ms: quantile(0.999),
            max_ms: ms(self.latency.max()),
        }
    }

    /// Latency in milliseconds by the share of requests at most so slow, for a curve.
    pub(crate) fn curve(&self) -> Vec<(f64, f64)> {
        if self.latency.is_empty() {
            return Vec::new();
        }
        let steps = self.latency.iter_quantiles(2);
        steps
            .map(|step| {
                (step.quantile_iterated_to(), Duration::from_micros(step.value_iterated_to()).as_secs_f64() * 1e3)
            })
            .collect()
    }
}

/// Times of requests.
#[derive(Clone, Copy, Debug, Serialize)]
#[expect(clippy::struct_field_names, reason = "the names are the report's, where the unit must stand")]
pub(crate) struct Latency {
    pub(crate) min_ms: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p90_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) p999_ms: f64,
    pub(crate) max_ms: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_add_up() {
        let (mut one, mut two) = (Recorder::default(), Recorder::default());
        for ms in 1..=100 {
            one.answered(Duration::from_millis(ms * 10), Duration::from_millis(ms), 5);
        }
        two.answered(Duration::from_secs(2), Duration::from_millis(500), 7);
        two.refused(Duration::from_millis(600), "500 no".to_owned());
        two.gave_up += 1;
        two.empty += 1;
        two.unsent(Duration::from_millis(200));
        one.add(&two);
        assert_eq!((one.done, one.requests, one.failed, one.gave_up), (507, 102, 1, 1));
        assert_eq!((one.empty, one.unsent), (1, 1));
        assert_eq!(one.seconds(), [495, 5, 7]);
        assert_eq!(one.first_failure.as_deref(), Some("500 no"));
        let latency = one.latency();
        assert!((latency.p50_ms - 52.0).abs() < 0.2 && (latency.max_ms - 600.0).abs() < 1.0, "{latency:?}");
        assert!(one.curve().is_sorted_by(|a, b| a.1 <= b.1));
    }

    #[test]
    fn points_that_are_refused_later_are_not_done() {
        let mut seen = Recorder::default();
        seen.answered(Duration::ZERO, Duration::from_millis(1), 10);
        seen.answered(Duration::from_secs(1), Duration::from_millis(1), 10);
        seen.undone(12, "put: no".to_owned());
        assert_eq!((seen.seconds(), seen.done, seen.refused_points), (&[8, 0][..], 8, 12));
        assert_eq!((seen.requests, seen.failed, seen.first_failure.as_deref()), (2, 0, Some("put: no")));
    }

    #[test]
    fn long_runs_and_waits_are_told_as_they_were() {
        let mut seen = Recorder::default();
        seen.answered(Duration::from_secs(5), Duration::from_hours(23), 1);
        seen.answered(Duration::from_hours(25), Duration::from_millis(1), 7);
        seen.reach(Duration::from_hours(26));
        assert!((seen.latency().max_ms / 3.6e6 - 23.0).abs() < 0.1, "{:?}", seen.latency());
        assert_eq!((seen.seconds().len(), seen.seconds().iter().sum(), seen.done), (SECONDS_MAX, 1_u64, 8));
    }

    #[test]
    fn nothing_is_nothing() {
        let none = Recorder::default();
        assert!(none.curve().is_empty());
        assert!(none.latency().max_ms < 1e-9);
    }
}
