//! TSBS's questions about the set of [`super::data`], in OpenTSDB's terms.
//!
//! Hosts and windows are drawn from the seed, the same for every server. A question by values (`high-cpu`) has no words in
//! OpenTSDB's API: its points are asked for, and whoever asks has to look. *Source*: TSBS,
//! `pkg/data/usecases/devops`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use basalt_engine::io::{Rng as _, SplitMix};
use serde_json::{Value, json};

use super::data::{METRICS, Workload, draws};
use super::link::Link;
use super::recorder::Recorder;
use super::{Run, Watch};
use crate::exit::Failure;
use crate::peer;

/// How long a server may take for one answer.
const PATIENCE: Duration = Duration::from_mins(10);
const MINUTE_S: u64 = 60;
const HOUR_S: u64 = 3_600;

/// A kind of question.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    shape: Shape,
    /// Whether an answer needs so much that few are asked for.
    pub(crate) is_heavy: bool,
}

#[derive(Clone, Copy, Debug)]
enum Shape {
    /// The most in each step over some hosts: metrics, hosts (0: all), seconds, seconds of a step.
    Most(usize, u64, u64, u64),
    /// The average of each hour for each host: metrics.
    ByHost(usize),
    /// Every point of one metric: hosts (0: all).
    Points(u64),
    /// The newest point of every series.
    Last,
}

/// Every kind, in the order of `performance.md`'s table.
pub(crate) const KINDS: [Kind; 12] = [
    light("single-groupby-1-1-1", Shape::Most(1, 1, HOUR_S, MINUTE_S)),
    light("single-groupby-1-8-1", Shape::Most(1, 8, HOUR_S, MINUTE_S)),
    light("single-groupby-5-8-1", Shape::Most(5, 8, HOUR_S, MINUTE_S)),
    light("single-groupby-1-1-12", Shape::Most(1, 1, 12 * HOUR_S, MINUTE_S)),
    heavy("double-groupby-1", Shape::ByHost(1)),
    heavy("double-groupby-all", Shape::ByHost(METRICS.len())),
    light("cpu-max-all-1", Shape::Most(METRICS.len(), 1, 8 * HOUR_S, HOUR_S)),
    light("cpu-max-all-8", Shape::Most(METRICS.len(), 8, 8 * HOUR_S, HOUR_S)),
    light("high-cpu-1", Shape::Points(1)),
    heavy("high-cpu-all", Shape::Points(0)),
    heavy("lastpoint", Shape::Last),
    light("groupby-orderby-limit", Shape::Most(1, 0, 5 * MINUTE_S, MINUTE_S)),
];

const fn light(name: &'static str, shape: Shape) -> Kind {
    Kind { name, shape, is_heavy: false }
}

const fn heavy(name: &'static str, shape: Shape) -> Kind {
    Kind { name, shape, is_heavy: true }
}

/// A request: its path and its body.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Question {
    pub(crate) path: &'static str,
    pub(crate) body: Value,
}

impl Kind {
    /// The question that `random` draws, at the second `now_s`.
    pub(crate) fn question(&self, workload: &Workload, now_s: u64, random: &mut SplitMix) -> Question {
        let query = |seconds: u64, random: &mut SplitMix, queries: Vec<Value>| {
            let seconds = seconds.min(workload.span_s);
            let start = workload.start_s + random.below(workload.span_s - seconds + 1);
            Question { path: "/api/query", body: json!({"start": start, "end": start + seconds, "queries": queries}) }
        };
        match self.shape {
            Shape::Most(metrics, hosts, seconds, step) => {
                let filters = hosts_filter(workload, hosts, random);
                let of = |metric: &&str| json!({"metric": metric, "aggregator": "max", "downsample": format!("{step}s-max"), "filters": filters});
                let queries = METRICS.iter().take(metrics).map(of).collect();
                query(seconds, random, queries)
            }
            Shape::ByHost(metrics) => {
                let each = json!([{"type": "wildcard", "tagk": "hostname", "filter": "*", "groupBy": true}]);
                let of = |metric: &&str| json!({"metric": metric, "aggregator": "avg", "downsample": "1h-avg", "filters": each});
                query(workload.span_s, random, METRICS.iter().take(metrics).map(of).collect())
            }
            Shape::Points(hosts) => {
                let filters = hosts_filter(workload, hosts, random);
                let points = json!({"metric": METRICS[0], "aggregator": "none", "filters": filters});
                query(12 * HOUR_S, random, vec![points])
            }
            Shape::Last => {
                let queries: Vec<Value> = METRICS.iter().map(|metric| json!({"metric": metric})).collect();
                // From now back to the set's first row.
                let hours = now_s.saturating_sub(workload.start_s) / HOUR_S + 1;
                let body = json!({"resolveNames": true, "backScan": hours, "queries": queries});
                Question { path: "/api/query/last", body }
            }
        }
    }
}

/// Some hosts, none of them grouped by; all for 0.
fn hosts_filter(workload: &Workload, count: u64, random: &mut SplitMix) -> Value {
    if count == 0 {
        return json!([]);
    }
    let count = count.min(workload.hosts);
    let first = random.below(workload.hosts);
    // Apart from each other, so that they lie in many buckets.
    let apart = (workload.hosts / count).max(1);
    let names: Vec<String> = (0..count).map(|n| Workload::host((first + n * apart) % workload.hosts)).collect();
    json!([{"type": "literal_or", "tagk": "hostname", "filter": names.join("|"), "groupBy": false}])
}

/// What to ask, and how.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) address: String,
    pub(crate) connections: u64,
    /// Questions of a kind; a tenth of it, at least one, for those that need much.
    pub(crate) count: u64,
    pub(crate) workload: Workload,
    /// The second that it is now.
    pub(crate) now_s: u64,
}

impl Plan {
    /// How many questions of this kind are asked.
    pub(crate) fn count_of(&self, kind: &Kind) -> u64 {
        if kind.is_heavy { (self.count / 10).max(1) } else { self.count }
    }
}

/// Asks all questions of a kind, or until its watch ends it.
///
/// # Errors
///
/// A connection that cannot be had at the start. Questions that are refused or lost are counted, and so are connections that
/// give up.
pub(crate) fn run(plan: &Plan, kind: &Kind, watch: &Watch) -> Result<Run, Failure> {
    let count = plan.count_of(kind);
    let next = AtomicU64::new(0);
    let ready = |_| Link::connect(&plan.address, PATIENCE);
    super::run(plan.connections, ready, |_, begun, mut link| {
        let mut recorder = Recorder::default();
        while !link.is_gone() {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count || watch.ends() {
                return recorder;
            }
            let question = kind.question(&plan.workload, plan.now_s, &mut draws(plan.workload.seed, number));
            let body = question.body.to_string();
            let head = peer::post_head(&plan.address, question.path, "", body.len());
            let asked = Instant::now();
            recorder.sent_bytes += body.len() as u64;
            match link.ask(head.as_bytes(), body.as_bytes()) {
                Ok(answer) => {
                    recorder.answered(begun.elapsed(), asked.elapsed(), 1);
                    recorder.answer_bytes += answer.body_bytes;
                    recorder.empty += u64::from(answer.body.trim_ascii() == b"[]");
                }
                Err(why) => {
                    recorder.refused(asked.elapsed(), why);
                    link.rest();
                }
            }
            watch.done.fetch_add(1, Ordering::Relaxed);
        }
        recorder.gave_up += 1;
        recorder
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload() -> Workload {
        Workload {
            seed: 1,
            hosts: 100,
            start_s: 1_700_000_000,
            step_s: 10,
            span_s: 12 * HOUR_S,
            late_percent: 0,
            decimals: 0,
        }
    }

    fn of(name: &str, seed: u64) -> Question {
        let kind = KINDS.iter().find(|kind| kind.name == name).unwrap();
        kind.question(&workload(), 1_700_100_000, &mut draws(seed, 0))
    }

    #[test]
    fn questions_have_the_metrics_hosts_and_hours_of_their_names() {
        for (name, metrics, hosts, seconds) in [
            ("single-groupby-1-1-1", 1, 1, HOUR_S),
            ("single-groupby-5-8-1", 5, 8, HOUR_S),
            ("single-groupby-1-1-12", 1, 1, 12 * HOUR_S),
            ("cpu-max-all-8", 10, 8, 8 * HOUR_S),
        ] {
            let question = of(name, 3);
            assert_eq!(question.path, "/api/query");
            let queries = question.body["queries"].as_array().unwrap();
            assert_eq!(queries.len(), metrics, "{name}");
            let names = queries[0]["filters"][0]["filter"].as_str().unwrap();
            let distinct: std::collections::BTreeSet<&str> = names.split('|').collect();
            assert_eq!(distinct.len(), hosts, "{name}: {names}");
            let (start, end) = (question.body["start"].as_u64().unwrap(), question.body["end"].as_u64().unwrap());
            assert_eq!(end - start, seconds, "{name}");
            assert!(start >= 1_700_000_000 && end <= 1_700_000_000 + 12 * HOUR_S, "{name}");
        }
        assert_eq!(of("double-groupby-all", 1).body["queries"].as_array().unwrap().len(), 10);
        assert_eq!(of("lastpoint", 1).path, "/api/query/last");
    }

    #[test]
    fn a_seed_draws_the_same_questions_again_and_another_seed_others() {
        for kind in &KINDS {
            assert_eq!(of(kind.name, 5), of(kind.name, 5), "{}", kind.name);
        }
        assert_ne!(of("single-groupby-1-1-1", 5), of("single-groupby-1-1-1", 6));
    }

    #[test]
    fn a_set_shorter_than_the_window_is_asked_for_whole() {
        let short = Workload { span_s: 600, hosts: 2, ..workload() };
        for kind in &KINDS {
            let question = kind.question(&short, 1_700_100_000, &mut draws(1, 1));
            if question.path == "/api/query" {
                assert!(question.body["end"].as_u64().unwrap() <= 1_700_000_600, "{}", kind.name);
            }
        }
    }
}
