//! What is written: TSBS's `cpu-only` set remade. Hosts with eight tags, ten metrics each, a step apart; every value is a
//! bounded random walk of integers from 0 to 100, or of decimals by Gaussian steps.
//!
//! *Source*: TSBS, `pkg/data/usecases/devops`.

use std::fmt::Write as _;

use basalt_engine::io::{Rng as _, SplitMix};

/// The metrics of a host, in TSBS's order.
pub(crate) const METRICS: [&str; 10] = [
    "cpu.usage_user",
    "cpu.usage_system",
    "cpu.usage_idle",
    "cpu.usage_nice",
    "cpu.usage_iowait",
    "cpu.usage_irq",
    "cpu.usage_softirq",
    "cpu.usage_steal",
    "cpu.usage_guest",
    "cpu.usage_guest_nice",
];

const REGIONS: [&str; 5] = ["us-east-1", "us-west-1", "us-west-2", "eu-west-1", "ap-southeast-1"];
const SYSTEMS: [&str; 3] = ["Ubuntu16.10", "Ubuntu16.04LTS", "Ubuntu15.10"];
const TEAMS: [&str; 4] = ["SF", "NYC", "LON", "CHI"];

/// Draws of their own for each pair of numbers, the same for the same pair.
///
/// The generator's own first draw is where a stream begins: beginnings in its steps would make each stream the one before it,
/// a draw later, and a set that any compressor sees through.
pub(crate) fn draws(seed: u64, stream: u64) -> SplitMix {
    SplitMix::new(SplitMix::new(seed ^ stream.wrapping_mul(0x9E37_79B9_7F4A_7C15)).next_u64())
}

/// Steps whose halves change places where points are late.
const LATE_STEPS: u64 = 20;

/// How much of which set.
#[derive(Clone, Debug)]
pub(crate) struct Workload {
    pub(crate) seed: u64,
    pub(crate) hosts: u64,
    /// The first second.
    pub(crate) start_s: u64,
    /// Seconds between points of a series, and of all of it.
    pub(crate) step_s: u64,
    pub(crate) span_s: u64,
    /// Of a hundred points, how many come ten steps late; at most 50.
    pub(crate) late_percent: u64,
    /// Decimal places of values; 0 makes integers.
    pub(crate) decimals: u32,
}

impl Workload {
    /// Points in all.
    pub(crate) fn points(&self) -> u64 {
        self.hosts * METRICS.len() as u64 * self.steps()
    }

    /// How many hosts one of `connections` writes.
    pub(crate) fn hosts_of(&self, connection: u64, connections: u64) -> u64 {
        self.hosts.saturating_sub(connection).div_ceil(connections.max(1))
    }

    /// Points that one of `connections` writes.
    pub(crate) fn points_of(&self, connection: u64, connections: u64) -> u64 {
        self.hosts_of(connection, connections) * METRICS.len() as u64 * self.steps()
    }

    /// The name of a host, as queries ask for it.
    pub(crate) fn host(number: u64) -> String {
        format!("host_{number}")
    }

    /// The hosts that one of `connections` writes, as its own stream of points.
    pub(crate) fn stream(&self, connection: u64, connections: u64) -> Points {
        let hosts = (connection..self.hosts).step_by(usize::try_from(connections).unwrap_or(1).max(1));
        let series = hosts.flat_map(|host| METRICS.iter().map(move |metric| (host, *metric)));
        let series: Vec<Series> = series
            .enumerate()
            .map(|(index, (host, metric))| {
                let count = METRICS.len() as u64;
                let mut series = Series::new(host * count + index as u64 % count, host, metric, self.seed);
                series.value *= 10_u64.pow(self.decimals);
                series
            })
            .collect();
        Points { workload: self.clone(), series, at: 0, step: 0 }
    }

    fn steps(&self) -> u64 {
        self.span_s / self.step_s.max(1)
    }

    /// The step whose point a series sends as its `step`th: another where its points are late here.
    fn sent(&self, series: u64, step: u64) -> u64 {
        let (block, at) = (step / LATE_STEPS, step % LATE_STEPS);
        let is_whole = (block + 1) * LATE_STEPS <= self.steps();
        let is_late = || draws(self.seed ^ series.rotate_left(32), block).below(100) < 2 * self.late_percent;
        if self.late_percent > 0 && is_whole && is_late() {
            block * LATE_STEPS + (at + LATE_STEPS / 2) % LATE_STEPS
        } else {
            step
        }
    }
}

/// A series, its texts ready to be sent.
#[derive(Debug)]
struct Series {
    /// `{"metric":"…","timestamp":` and `,"tags":{…}}`.
    json: (String, String),
    /// `put … ` and ` k=v …\n`.
    line: (String, String),
    id: u64,
    value: u64,
    random: SplitMix,
}

impl Series {
    fn new(id: u64, host: u64, metric: &str, seed: u64) -> Self {
        let mut random = draws(seed, id);
        let of_host = &mut draws(host, 7);
        let pick = |random: &mut SplitMix, of: &[&'static str]| -> &'static str {
            usize::try_from(random.below(of.len() as u64)).ok().and_then(|at| of.get(at)).copied().unwrap_or_default()
        };
        let region = pick(of_host, &REGIONS);
        let tags = [
            ("hostname", Workload::host(host)),
            ("region", region.to_owned()),
            ("datacenter", format!("{region}{}", pick(of_host, &["a", "b", "c"]))),
            ("rack", of_host.below(100).to_string()),
            ("os", pick(of_host, &SYSTEMS).to_owned()),
            ("arch", pick(of_host, &["x64", "x86"]).to_owned()),
            ("team", pick(of_host, &TEAMS).to_owned()),
            ("service", of_host.below(20).to_string()),
        ];
        let (mut json, mut line) = (String::from(",\"tags\":{"), String::new());
        for (index, (name, value)) in tags.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            // Writing to a string cannot fail.
            write!(json, "{comma}\"{name}\":\"{value}\"").unwrap_or_default();
            write!(line, " {name}={value}").unwrap_or_default();
        }
        json.push_str("}}");
        line.push('\n');
        let value = random.below(101);
        Self {
            json: (format!("{{\"metric\":\"{metric}\",\"timestamp\":"), json),
            line: (format!("put {metric} "), line),
            id,
            value,
            random,
        }
    }

    /// The value after one more step of the walk, in units of its last decimal place.
    fn walk(&mut self, decimals: u32) -> u64 {
        if decimals > 0 {
            return self.walk_by_decimals(10_u64.pow(decimals));
        }
        self.value = match self.random.below(3) {
            0 => self.value.saturating_sub(1),
            1 => (self.value + 1).min(100),
            _ => self.value,
        };
        self.value
    }

    /// A step of deviation 1, as TSBS has it, between 0 and 100.
    fn walk_by_decimals(&mut self, unit: u64) -> u64 {
        let up: u64 = (0..GAUSSIAN_DRAWS).map(|_| self.random.below(unit + 1)).sum();
        self.value = (self.value + up).saturating_sub(GAUSSIAN_DRAWS / 2 * unit).min(100 * unit);
        self.value
    }
}

/// Uniform draws that a Gaussian one of deviation 1 is the sum of.
const GAUSSIAN_DRAWS: u64 = 12;

/// How points are written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// An array for `/api/put`.
    Json,
    /// Lines for telnet.
    Lines,
}

/// The points of some hosts in order of time, written into batches.
#[derive(Debug)]
pub(crate) struct Points {
    workload: Workload,
    series: Vec<Series>,
    /// Which series is next.
    at: usize,
    step: u64,
}

impl Points {
    /// Writes up to `count` points into `body`, which is emptied before; says how many there were.
    pub(crate) fn batch(&mut self, form: Form, count: usize, body: &mut Vec<u8>) -> usize {
        body.clear();
        let mut written = 0;
        let mut number = Number::default();
        while written < count && self.step < self.workload.steps() {
            let Some(series) = self.series.get_mut(self.at) else {
                if self.series.is_empty() {
                    break;
                }
                (self.at, self.step) = (0, self.step + 1);
                continue;
            };
            let step = self.workload.sent(series.id, self.step);
            let decimals = self.workload.decimals;
            let (second, value) = (self.workload.start_s + step * self.workload.step_s, series.walk(decimals));
            match form {
                Form::Json => {
                    body.push(if written == 0 { b'[' } else { b',' });
                    body.extend_from_slice(series.json.0.as_bytes());
                    body.extend_from_slice(number.text(second));
                    body.extend_from_slice(b",\"value\":");
                    number.put(value, decimals, body);
                    body.extend_from_slice(series.json.1.as_bytes());
                }
                Form::Lines => {
                    body.extend_from_slice(series.line.0.as_bytes());
                    body.extend_from_slice(number.text(second));
                    body.push(b' ');
                    number.put(value, decimals, body);
                    body.extend_from_slice(series.line.1.as_bytes());
                }
            }
            (self.at, written) = (self.at + 1, written + 1);
        }
        if form == Form::Json && written > 0 {
            body.push(b']');
        }
        written
    }
}

/// Digits without an allocation.
#[derive(Debug, Default)]
struct Number([u8; 20]);

impl Number {
    /// Appends a number of so many decimal places.
    fn put(&mut self, number: u64, decimals: u32, body: &mut Vec<u8>) {
        let unit = 10_u64.pow(decimals);
        body.extend_from_slice(self.text(number / unit));
        if decimals > 0 {
            body.push(b'.');
            let digits = self.text(unit + number % unit);
            body.extend_from_slice(digits.get(1..).unwrap_or_default());
        }
    }

    fn text(&mut self, mut number: u64) -> &[u8] {
        let mut at = self.0.len();
        for (index, digit) in self.0.iter_mut().enumerate().rev() {
            *digit = b'0' + u8::try_from(number % 10).unwrap_or_default();
            (number, at) = (number / 10, index);
            if number == 0 {
                break;
            }
        }
        self.0.get(at..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn small() -> Workload {
        Workload { seed: 1, hosts: 3, start_s: 1_700_000_000, step_s: 10, span_s: 50, late_percent: 0, decimals: 0 }
    }

    /// Metric and host → seconds → value, over all connections.
    fn written(workload: &Workload, connections: u64, batch: usize) -> BTreeMap<(String, String), BTreeMap<u64, u64>> {
        let mut all: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        for connection in 0..connections {
            let (mut points, mut body) = (workload.stream(connection, connections), Vec::new());
            while points.batch(Form::Json, batch, &mut body) > 0 {
                let read: Vec<serde_json::Value> = serde_json::from_slice(&body).unwrap();
                assert!(read.len() <= batch);
                for point in read {
                    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
                    let series = (text(&point["metric"]), text(&point["tags"]["hostname"]));
                    assert_eq!(point["tags"].as_object().unwrap().len(), 8);
                    let (at, value) = (point["timestamp"].as_u64().unwrap(), point["value"].as_u64().unwrap());
                    assert!(value <= 100);
                    all.entry(series).or_default().insert(at, value);
                }
            }
        }
        all
    }

    #[test]
    fn every_series_has_every_step_however_it_is_shared_out() {
        let workload = small();
        let one = written(&workload, 1, 7);
        assert_eq!(one.len(), 30);
        assert_eq!(one.values().map(BTreeMap::len).sum::<usize>() as u64, workload.points());
        let steps: Vec<u64> = (0..5).map(|step| 1_700_000_000 + step * 10).collect();
        assert!(one.values().all(|points| points.keys().copied().eq(steps.iter().copied())));
        assert_eq!(one, written(&workload, 2, 1000), "the same points on two connections");
        assert_ne!(one, written(&Workload { seed: 2, ..small() }, 1, 7));
    }

    #[test]
    fn lines_say_what_the_array_says() {
        let (mut lines, mut body) = (small().stream(0, 1), Vec::new());
        assert_eq!(lines.batch(Form::Lines, 2, &mut body), 2);
        let text = String::from_utf8(body).unwrap();
        assert!(text.starts_with("put cpu.usage_user 1700000000 "), "{text}");
        assert!(text.lines().all(|line| line.split(' ').count() == 12), "{text}");
    }

    #[test]
    fn late_points_are_as_many_as_was_asked_and_within_the_span() {
        let late = Workload { late_percent: 30, span_s: 10_000, hosts: 1, ..small() };
        let (mut points, mut body) = (late.stream(0, 1), Vec::new());
        let (mut behind, mut all) = (0, 0);
        let mut newest = BTreeMap::new();
        let mut seen = std::collections::BTreeSet::new();
        while points.batch(Form::Lines, 100, &mut body) > 0 {
            for line in std::str::from_utf8(&body).unwrap().lines() {
                let words: Vec<&str> = line.split(' ').collect();
                let second: u64 = words[2].parse().unwrap();
                assert!(seen.insert((words[1].to_owned(), second)), "{line} comes twice");
                let newest = newest.entry(words[1].to_owned()).or_insert(0);
                all += 1;
                behind += u64::from(second < *newest);
                *newest = second.max(*newest);
            }
        }
        assert_eq!(all, late.points());
        assert!((all / 4..all * 35 / 100).contains(&behind), "{behind} of {all}");
    }

    #[test]
    fn decimals_keep_their_places_and_their_bounds() {
        let workload = Workload { decimals: 2, ..small() };
        let (mut points, mut body) = (workload.stream(0, 1), Vec::new());
        assert_eq!(points.batch(Form::Lines, 1_000, &mut body), 150);
        for line in String::from_utf8(body).unwrap().lines() {
            let value = line.split(' ').nth(3).unwrap();
            assert!(value.split_once('.').is_some_and(|(_, places)| places.len() == 2), "{line}");
            assert!((0.0..=100.0).contains(&value.parse::<f64>().unwrap()), "{line}");
        }
    }

    #[test]
    fn no_stream_of_draws_is_another_later_on() {
        let of = |stream| {
            std::iter::repeat_with({
                let mut draws = draws(1, stream);
                move || draws.below(3)
            })
        };
        let first: Vec<u64> = of(0).take(200).collect();
        for stream in 1..20 {
            let other: Vec<u64> = of(stream).take(100).collect();
            assert!(first.windows(60).all(|window| window != &other[..60]), "stream {stream}");
        }
    }

    #[test]
    fn digits() {
        let mut number = Number::default();
        for value in [0, 9, 10, 1_700_000_000, u64::MAX] {
            assert_eq!(number.text(value), value.to_string().as_bytes());
        }
    }
}
