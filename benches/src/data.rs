//! The work: TSBS's `cpu-only` remade. 1,000 hosts of 10 metrics are 10,000 series of 8 tags; each takes a step of -1, 0 or +1 every
//! 10 seconds between 0 and 100. Bodies are made before anything is timed.

use std::fmt::Write;

use crate::load::{Bodies, Door};

const HOSTS: usize = 1000;
pub(crate) const METRICS: [&str; 10] =
    ["user", "system", "idle", "nice", "iowait", "irq", "softirq", "steal", "guest", "guest_nice"];
const SERIES: usize = HOSTS * METRICS.len();
const START_S: u64 = 1_700_000_000;
const STEP_S: u64 = 10;

/// How points are dealt and written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deal {
    pub(crate) door: Door,
    pub(crate) batch: usize,
    pub(crate) connections: usize,
}

/// One point of every series, before those that are timed.
pub(crate) fn first_points(deal: Deal) -> Bodies {
    build(START_S - STEP_S, SERIES, Deal { batch: 500, ..deal })
}

/// `points` points in bodies of a batch, dealt to the connections by host.
pub(crate) fn bodies(points: usize, deal: Deal) -> Bodies {
    build(START_S, points, deal)
}

fn build(start_s: u64, points: usize, deal: Deal) -> Bodies {
    let Deal { door, batch, connections } = deal;
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut values = vec![50_i64; SERIES];
    let tags: Vec<String> = (0..HOSTS).map(|host| tags(host, door)).collect();
    let mut bodies = Bodies { points: 0, door, of: vec![Vec::new(); connections] };
    let mut open: Vec<(String, usize)> = vec![(String::new(), 0); connections];
    'all: for step in 0.. {
        for series in 0..SERIES {
            if bodies.points == points {
                break 'all;
            }
            let host = series / METRICS.len();
            let value = &mut values[series];
            *value = (*value + random.below(3) as i64 - 1).clamp(0, 100);
            let connection = host % connections;
            let (text, held) = &mut open[connection];
            let (metric, at, tags) = (METRICS[series % METRICS.len()], start_s + step * STEP_S, &tags[host]);
            match door {
                Door::Json => {
                    text.push(if *held == 0 { '[' } else { ',' });
                    write!(
                        text,
                        r#"{{"metric":"cpu.usage_{metric}","timestamp":{at},"value":{value},"tags":{{{tags}}}}}"#
                    )
                }
                Door::Telnet => writeln!(text, "put cpu.usage_{metric} {at} {value} {tags}"),
                Door::Line if series % METRICS.len() == 0 => write!(text, "cpu,{tags} usage_{metric}={value}i"),
                Door::Line if series % METRICS.len() + 1 < METRICS.len() => write!(text, ",usage_{metric}={value}i"),
                Door::Line => writeln!(text, ",usage_{metric}={value}i {at}"),
            }
            .expect("a string takes all");
            *held += 1;
            bodies.points += 1;
            if *held == batch {
                close(&mut bodies.of[connection], text, held, door);
            }
        }
    }
    for (connection, (text, held)) in open.iter_mut().enumerate().filter(|(_, (_, held))| *held > 0) {
        close(&mut bodies.of[connection], text, held, door);
    }
    assert!(door != Door::Line || points % METRICS.len() == 0, "a line holds {} points", METRICS.len());
    bodies
}

fn close(into: &mut Vec<Vec<u8>>, text: &mut String, held: &mut usize, door: Door) {
    if door == Door::Json {
        text.push(']');
    }
    into.push(std::mem::take(text).into_bytes());
    *held = 0;
}

fn tags(host: usize, door: Door) -> String {
    let (region, rack, service) = (host % 9, host % 97, host % 19);
    let tags = [
        ("hostname", format!("host_{host}")),
        ("region", format!("eu-west-{region}")),
        ("datacenter", format!("eu-west-{region}a")),
        ("rack", rack.to_string()),
        ("os", "Ubuntu16.10".into()),
        ("arch", "x64".into()),
        ("team", "SF".into()),
        ("service", service.to_string()),
    ];
    match door {
        Door::Json => tags.map(|(key, value)| format!(r#""{key}":"{value}""#)).join(","),
        Door::Telnet => tags.map(|(key, value)| format!("{key}={value}")).join(" "),
        Door::Line => tags.map(|(key, value)| format!("{key}={value}")).join(","),
    }
}

/// SplitMix64: the same walk in every run.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xd134_2543_de82_ef95))
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}
