//! Where the time of a known point goes between the socket and the log, stage by stage on one thread:
//!
//! ```text
//! body ─ read, look up ─► points ─ check, put to rows, make the batch ─► batch ─ record, memtable, log ─► answered
//! ```
//!
//! `cd benches && cargo run --release --example road -- [POINTS A BODY] [BODIES A PUSH] [FOLDER]`. 10,000 series of 8 tags. Nanoseconds
//! a point, the least and the median of all rounds; the log is synced where FOLDER lies, so that one in memory (`/dev/shm`) leaves the
//! disk out.

use std::fmt::Write;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use basalt_engine::{Engine, EngineOptions};
use basalt_ingest::{Door, Ingest, IngestLimits, decode_text};
use basalt_schema::{Schema, SchemaConfig};
use basalt_store::Lane;

/// As in the program.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const HOSTS: usize = 1000;
const METRICS: [&str; 10] =
    ["user", "system", "idle", "nice", "iowait", "irq", "softirq", "steal", "guest", "guest_nice"];
const STEPS: usize = 40;
const START_S: usize = 1_699_999_200;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let batch: usize = args.next().map_or(Ok(500), |text| text.parse()).context("points a body")?;
    let together: usize = args.next().map_or(Ok(1), |text| text.parse()).context("bodies a push")?;
    let dir = args.next().unwrap_or_else(|| "/dev/shm/basalt-road".into());
    match std::fs::remove_dir_all(&dir) {
        Err(cause) if cause.kind() != ErrorKind::NotFound => return Err(cause.into()),
        _ => {}
    }
    let engine = Engine::open(EngineOptions::new(&dir))?;
    let schema = Schema::open(engine.clone(), SchemaConfig::default())?;
    let ingest = Ingest::new(Arc::new(schema), engine.clone(), IngestLimits::default());
    for body in bodies(0, batch) {
        let points = ingest.parse_put(&body)?;
        ensure!(ingest.submit(&points, Door::Http)?.wait().is_all_stored(), "points are refused");
    }
    let mut rounds = [const { Vec::new() }; 3];
    for step in 1..=STEPS {
        let mut took = [Duration::ZERO; 3];
        for bodies in bodies(step, batch).chunks(together.max(1)) {
            let (mut submissions, mut now) = (Vec::with_capacity(bodies.len()), Instant::now());
            let mut took_since = |stage: usize| took[stage] += std::mem::replace(&mut now, Instant::now()).elapsed();
            for body in bodies {
                let text = decode_text(body.as_bytes());
                let points = ingest.parse_put(&text)?;
                took_since(0);
                let held = ingest.submit_held(&points, Door::Http, Lane::default())?;
                submissions.push(held.context("a series is not known")?);
                drop(points);
                took_since(1);
            }
            ingest.push(Lane::default());
            for submission in submissions {
                ensure!(submission.wait().is_all_stored(), "points are refused");
            }
            took_since(2);
        }
        for (rounds, took) in rounds.iter_mut().zip(took) {
            rounds.push(took);
        }
    }
    for (stage, rounds) in ["read, look up", "check, rows, batch", "record, memtable, log"].iter().zip(&mut rounds) {
        rounds.sort_unstable();
        let nanos = |took: Duration| took.as_secs_f64() * 1e9 / (HOSTS * METRICS.len()) as f64;
        println!("{stage:22} {:6.1} ns, median {:6.1}", nanos(rounds[0]), nanos(rounds[STEPS / 2]));
    }
    engine.close()?;
    Ok(std::fs::remove_dir_all(&dir)?)
}

/// The bodies of a point of every series.
fn bodies(step: usize, batch: usize) -> Vec<String> {
    let series: Vec<usize> = (0..HOSTS * METRICS.len()).collect();
    let body = |series: &[usize]| {
        let mut text = String::new();
        for series in series {
            let (host, metric) = (series / METRICS.len(), METRICS[series % METRICS.len()]);
            let (region, rack, service) = (host % 9, host % 97, host % 19);
            let separator = if text.is_empty() { '[' } else { ',' };
            write!(
                text,
                r#"{separator}{{"metric":"cpu.usage_{metric}","timestamp":{},"value":{},"tags":{{"hostname":"host_{host}","region":"eu-west-{region}","datacenter":"eu-west-{region}a","rack":"{rack}","os":"Ubuntu16.10","arch":"x64","team":"SF","service":"{service}"}}}}"#,
                START_S + step * 10,
                (series * 7 + step) % 101,
            )
            .expect("a string takes all");
        }
        text + "]"
    };
    series.chunks(batch).map(body).collect()
}
