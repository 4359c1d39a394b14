//! What a run came to, as a table and as JSON.

use std::fmt::Write as _;

use serde::Serialize;

use super::Run;
use super::recorder::Latency;

/// A whole run.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// The command line, so that the run can be repeated.
    pub(crate) command: String,
    /// The server.
    pub(crate) url: String,
    /// The set's first second.
    pub(crate) start: u64,
    /// What a line counts: `points` or `queries`.
    pub(crate) unit: &'static str,
    pub(crate) lines: Vec<Line>,
}

/// One kind of work.
#[derive(Debug, Serialize)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) done: u64,
    pub(crate) requests: u64,
    pub(crate) failed: u64,
    /// Points that telnet's error lines tell of; they are not done, and their requests did not fail.
    pub(crate) refused_points: u64,
    /// Connections that ended before their work: requests in a row were lost, or refused by answers that close.
    pub(crate) gave_up: u64,
    /// Answers that had nothing in them: they took the time of finding nothing.
    pub(crate) empty: u64,
    /// Due and not sent when the run ended; what they had waited by then is among the latencies.
    pub(crate) unsent: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) first_failure: Option<String>,
    pub(crate) seconds: f64,
    pub(crate) per_second: f64,
    pub(crate) sent_bytes: u64,
    pub(crate) answer_bytes: u64,
    /// What the client used of the processor.
    pub(crate) client_cpu_seconds: f64,
    pub(crate) latency: Latency,
    /// What was done in each second of the first day.
    pub(crate) done_each_second: Vec<u64>,
    /// Shares of requests, and the milliseconds that they took at most.
    pub(crate) latency_curve: Vec<(f64, f64)>,
}

impl Line {
    pub(crate) fn new(name: &str, run: &Run) -> Self {
        let (seen, seconds) = (&run.seen, run.took.as_secs_f64());
        #[expect(clippy::cast_precision_loss, reason = "a rate for people; counts stay below 2⁵³")]
        let per_second = seen.done as f64 / seconds.max(1e-9);
        Self {
            name: name.to_owned(),
            done: seen.done,
            requests: seen.requests,
            failed: seen.failed,
            refused_points: seen.refused_points,
            gave_up: seen.gave_up,
            empty: seen.empty,
            unsent: seen.unsent,
            first_failure: seen.first_failure.clone(),
            seconds,
            per_second,
            sent_bytes: seen.sent_bytes,
            answer_bytes: seen.answer_bytes,
            client_cpu_seconds: run.cpu.as_secs_f64(),
            latency: seen.latency(),
            done_each_second: seen.seconds().to_vec(),
            latency_curve: seen.curve(),
        }
    }

    /// Requests that were neither refused nor lost.
    fn answers(&self) -> u64 {
        self.requests - self.failed
    }
}

impl Report {
    /// How many requests were refused or lost and what was said of the first, in one line.
    pub(crate) fn failed(&self) -> Option<String> {
        let sum = |of: fn(&Line) -> u64| self.lines.iter().map(of).sum();
        let what = not_done(sum(|line| line.failed), sum(|line| line.refused_points));
        let first = self.lines.iter().find_map(|line| line.first_failure.as_deref())?;
        Some(format!("{what}, first: {}", first.replace(['\n', '\r'], " ")))
    }

    /// Names of the lines whose every answer was empty: they measured nothing.
    pub(crate) fn empty(&self) -> Vec<&str> {
        let empty = self.lines.iter().filter(|line| line.empty > 0 && line.empty == line.answers());
        empty.map(|line| line.name.as_str()).collect()
    }

    /// The table that people read.
    pub(crate) fn table(&self) -> String {
        let width = self.lines.iter().map(|line| line.name.len()).max().unwrap_or(0).max(8);
        let per = format!("{}/s", self.unit);
        let mut text = format!(
            "{:width$} {:>12} {:>8} {:>12} {:>9} {:>9} {:>9} {:>9} {:>9} {:>10}\n",
            "", self.unit, "seconds", per, "p50 ms", "p90 ms", "p99 ms", "p99.9 ms", "max ms", "client cpu"
        );
        for line in &self.lines {
            let times = &line.latency;
            writeln!(
                text,
                "{:width$} {:>12} {:>8.2} {:>12.0} {:>9.2} {:>9.2} {:>9.2} {:>9.2} {:>9.2} {:>8.2} s",
                line.name,
                line.done,
                line.seconds,
                line.per_second,
                times.p50_ms,
                times.p90_ms,
                times.p99_ms,
                times.p999_ms,
                times.max_ms,
                line.client_cpu_seconds
            )
            .unwrap_or_default();
        }
        for line in self.lines.iter().filter(|line| line.failed > 0) {
            let said = line.first_failure.as_deref().unwrap_or_default();
            writeln!(text, "{}: {} of {} requests failed, first: {said}", line.name, line.failed, line.requests)
                .unwrap_or_default();
        }
        for line in self.lines.iter().filter(|line| line.refused_points > 0) {
            let said = line.first_failure.as_deref().unwrap_or_default();
            writeln!(text, "{}: {} points were refused, first: {said}", line.name, line.refused_points)
                .unwrap_or_default();
        }
        for line in self.lines.iter().filter(|line| line.gave_up > 0) {
            let why = "requests were lost or refused";
            writeln!(text, "{}: {} connections gave up, as {why}", line.name, line.gave_up).unwrap_or_default();
        }
        for line in self.lines.iter().filter(|line| line.empty > 0) {
            writeln!(text, "{}: {} of {} answers were empty", line.name, line.empty, line.answers())
                .unwrap_or_default();
        }
        for line in self.lines.iter().filter(|line| line.unsent > 0) {
            let why = "the rate was not reached; their waits are among the latencies";
            writeln!(text, "{}: {} requests were due and not sent: {why}", line.name, line.unsent).unwrap_or_default();
        }
        text
    }
}

/// How much failed, in words.
fn not_done(failed: u64, refused_points: u64) -> String {
    match (failed, refused_points) {
        (failed, 0) => format!("{failed} requests failed"),
        (0, points) => format!("{points} points were refused"),
        (failed, points) => format!("{failed} requests failed and {points} points were refused"),
    }
}
