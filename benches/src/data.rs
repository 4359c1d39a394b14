//! The work: TSBS's `cpu-only` remade. 400 hosts of 10 metrics are 4,000 series of 8 tags; each takes a step of -1, 0 or +1 every 10
//! seconds between 0 and 100. Bodies are made before anything is timed.

use std::fmt::Write;

use crate::load::{Bodies, CONNECTIONS};

const HOSTS: usize = 400;
const METRICS: [&str; 10] =
    ["user", "system", "idle", "nice", "iowait", "irq", "softirq", "steal", "guest", "guest_nice"];
const SERIES: usize = HOSTS * METRICS.len();
const START_S: u64 = 1_700_000_000;
const STEP_S: u64 = 10;

/// One point of every series, before those that are timed.
pub(crate) fn first_points() -> Bodies {
    build(START_S - STEP_S, SERIES, 500)
}

/// `points` points in bodies of `batch`, dealt to the connections by host.
pub(crate) fn bodies(points: usize, batch: usize) -> Bodies {
    build(START_S, points, batch)
}

fn build(start_s: u64, points: usize, batch: usize) -> Bodies {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut values = vec![50_i64; SERIES];
    let tags: Vec<String> = (0..HOSTS).map(tags).collect();
    let mut bodies = Bodies { points: 0, of: vec![Vec::new(); CONNECTIONS] };
    let mut open: Vec<(String, usize)> = vec![(String::new(), 0); CONNECTIONS];
    'all: for step in 0.. {
        for series in 0..SERIES {
            if bodies.points == points {
                break 'all;
            }
            let host = series / METRICS.len();
            let value = &mut values[series];
            *value = (*value + random.below(3) as i64 - 1).clamp(0, 100);
            let connection = host % CONNECTIONS;
            let (text, held) = &mut open[connection];
            text.push(if *held == 0 { '[' } else { ',' });
            let (metric, at) = (METRICS[series % METRICS.len()], start_s + step * STEP_S);
            write!(
                text,
                r#"{{"metric":"cpu.usage_{metric}","timestamp":{at},"value":{value},"tags":{{{}}}}}"#,
                tags[host]
            )
            .expect("a string takes all");
            *held += 1;
            bodies.points += 1;
            if *held == batch {
                close(&mut bodies.of[connection], text, held);
            }
        }
    }
    for (connection, (text, held)) in open.iter_mut().enumerate().filter(|(_, (_, held))| *held > 0) {
        close(&mut bodies.of[connection], text, held);
    }
    bodies
}

fn close(into: &mut Vec<Vec<u8>>, text: &mut String, held: &mut usize) {
    text.push(']');
    into.push(std::mem::take(text).into_bytes());
    *held = 0;
}

fn tags(host: usize) -> String {
    let (region, rack, service) = (host % 9, host % 97, host % 19);
    format!(
        r#""hostname":"host_{host}","region":"eu-west-{region}","datacenter":"eu-west-{region}a","rack":"{rack}","os":"Ubuntu16.10","arch":"x64","team":"SF","service":"{service}""#
    )
}

/// SplitMix64: the same walk in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}
