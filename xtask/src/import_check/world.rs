//! The points of a made dump: those of `benches/`, 400 hosts of 10 metrics with 8 tags, one every 10 seconds. A value is
//! a function of its place, so that any order can be written and every sum is known.

use std::fmt::Write as _;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use anyhow::Result;

const HOSTS: u64 = 400;
const SERIES: u64 = HOSTS * METRICS.len() as u64;
/// A whole hour.
pub(super) const START_S: u64 = 1_699_999_200;
const STEP_S: u64 = 10;
const HOUR_STEPS: u64 = 3_600 / STEP_S;

/// The metrics' last words.
pub(super) const METRICS: [&str; 10] =
    ["user", "system", "idle", "nice", "iowait", "irq", "softirq", "steal", "guest", "guest_nice"];

/// The first so many points in order of time.
#[derive(Debug, Clone, Copy)]
pub(super) struct World {
    pub(super) points: u64,
}

impl World {
    /// Writes them as OpenTSDB's dump has them: by metric, hour, series.
    pub(super) fn write_dump(self, file: &Path) -> Result<()> {
        let mut out = BufWriter::with_capacity(1 << 20, std::fs::File::create(file)?);
        let tags: Vec<String> = (0..HOSTS).map(|host| tags(host, ["", "=", " "])).collect();
        let mut text = String::new();
        for (metric, name) in (0..).zip(METRICS) {
            let hours = 0..self.steps().div_ceil(HOUR_STEPS);
            for (hour, (host, tags)) in hours.flat_map(|hour| (0..).zip(&tags).map(move |of_host| (hour, of_host))) {
                let steps = hour * HOUR_STEPS..(hour + 1) * HOUR_STEPS;
                for (step, value) in steps.filter_map(|step| self.value(step, host, metric)) {
                    writeln!(text, "cpu.usage_{name} {} {value} {tags}", START_S + step * STEP_S)?;
                }
                out.write_all(text.as_bytes())?;
                text.clear();
            }
        }
        Ok(out.into_inner()?.sync_all()?)
    }

    /// Requests to `/api/put` in order of time, dealt to `connections` by host, of `batch` points each.
    pub(super) fn requests(self, connections: usize, batch: usize) -> Result<Vec<Vec<Vec<u8>>>> {
        let tags: Vec<String> = (0..HOSTS).map(|host| tags(host, ["\"", "\":\"", "\","])).collect();
        let mut all: Vec<Requests> = (0..connections).map(|_| Requests::default()).collect();
        let places = (0..self.steps()).flat_map(|step| (0..).zip(&tags).map(move |of_host| (step, of_host)));
        for (step, (host, tags)) in places {
            let to = &mut all[usize::try_from(host)? % connections];
            for (metric, name) in (0..).zip(METRICS) {
                let Some((step, value)) = self.value(step, host, metric) else { continue };
                let second = START_S + step * STEP_S;
                write!(to.next(batch), r#"{{"metric":"cpu.usage_{name}","timestamp":{second},"value":{value},"#)?;
                write!(to.text, r#""tags":{{{tags}}}}}"#)?;
            }
        }
        Ok(all.into_iter().map(Requests::finish).collect())
    }

    /// How many points a metric has, and what their values come to.
    pub(super) fn of_metric(self, metric: u64) -> (u64, u64) {
        let of_host = |host| (0..self.steps()).filter_map(move |step| self.value(step, host, metric));
        (0..HOSTS).flat_map(of_host).fold((0, 0), |(count, sum), (_, value)| (count + 1, sum + value))
    }

    /// The second after the last one.
    pub(super) fn end_s(self) -> u64 {
        START_S + self.steps() * STEP_S
    }

    fn steps(self) -> u64 {
        self.points.div_ceil(SERIES)
    }

    /// A step and its value, from 0 to 100; none behind the last point.
    fn value(self, step: u64, host: u64, metric: u64) -> Option<(u64, u64)> {
        let place = step * SERIES + host * METRICS.len() as u64 + metric;
        let mixed = place.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (place < self.points).then_some((step, (mixed ^ (mixed >> 32)) % 101))
    }
}

/// The requests of a connection, the last of them not yet full.
#[derive(Debug, Default)]
struct Requests {
    full: Vec<Vec<u8>>,
    text: String,
    held: usize,
}

impl Requests {
    /// Where the next point is written.
    fn next(&mut self, batch: usize) -> &mut String {
        if self.held == batch {
            self.close();
        }
        self.text.push(if self.held == 0 { '[' } else { ',' });
        self.held += 1;
        &mut self.text
    }

    fn close(&mut self) {
        let head = "POST /api/put HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ";
        self.full.push(format!("{head}{}\r\n\r\n{}]", self.text.len() + 1, self.text).into_bytes());
        self.text.clear();
        self.held = 0;
    }

    fn finish(mut self) -> Vec<Vec<u8>> {
        if self.held > 0 {
            self.close();
        }
        self.full
    }
}

/// Tags of a host; `marks` stand before a key, between key and value, and behind a value.
fn tags(host: u64, [before, between, behind]: [&str; 3]) -> String {
    let (region, rack, service) = (host % 9, host % 97, host % 19);
    let tags = [
        ("hostname", format!("host_{host}")),
        ("region", format!("eu-west-{region}")),
        ("datacenter", format!("eu-west-{region}a")),
        ("rack", rack.to_string()),
        ("os", "Ubuntu16.10".to_owned()),
        ("arch", "x64".to_owned()),
        ("team", "SF".to_owned()),
        ("service", service.to_string()),
    ];
    let text = tags.map(|(key, value)| format!("{before}{key}{between}{value}{behind}")).concat();
    text.trim_end_matches([',', ' ']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_and_puts_have_the_same_points() {
        let world = World { points: 9_001 };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("dump");
        world.write_dump(&file).unwrap();
        let lines = std::fs::read_to_string(&file).unwrap();
        let mut sum = 0;
        let mut dumped: Vec<String> = lines
            .lines()
            .map(|line| {
                let words: Vec<&str> = line.split([' ', '=']).collect();
                sum += words[2].parse::<u64>().unwrap();
                format!("{} {} {} {}", words[0], words[1], words[2], words[4])
            })
            .collect();
        let mut put = Vec::new();
        for request in world.requests(4, 50).unwrap().concat() {
            let body = request.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
            let points: Vec<serde_json::Value> = serde_json::from_slice(&request[body..]).unwrap();
            assert!(points.len() <= 50);
            put.extend(points.iter().map(|point| {
                let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
                let (metric, host) = (text(&point["metric"]), text(&point["tags"]["hostname"]));
                format!("{metric} {} {} {host}", point["timestamp"], point["value"])
            }));
        }
        dumped.sort();
        put.sort();
        assert_eq!(dumped.len(), 9_001);
        assert!(dumped == put);
        let told =
            (0..10).map(|metric| world.of_metric(metric)).fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
        assert_eq!(told, (9_001, sum));
    }
}
