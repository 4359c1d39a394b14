//! Where a put's time goes in the server itself: each sample of a profile is put to one stage, so that the stages add up.
//!
//! ```sh
//! RUSTFLAGS='-C force-frame-pointers=yes' cargo build --release --bin basalt
//! target/release/basalt serve &
//! perf record -e cpu-clock -F 1999 -g -p $! -o puts.data -- target/release/basalt bench ingest --hosts 1000 --span 2000 --connections 4
//! cd benches && perf script -i ../puts.data -F comm,period,ip,sym | cargo run --release --example stages -- 2000000
//! ```
//!
//! A stage is told by the innermost function on a sample's stack that a rule knows: the system call, or a function of ours. CPU
//! seconds a million points are the samples' own; `perf` makes them more than they are without it.

use std::collections::HashMap;
use std::io::BufRead;

use anyhow::{Context, bail};

/// What a function's name holds, and the stage it is of; the first that fits counts.
const RULES: &[(&str, &str)] = &[
    ("asm_exc_page_fault", "page faults, most of them the memtable's growth"),
    ("__x64_sys_recvfrom", "socket: receive"),
    ("__x64_sys_read", "socket: receive"),
    ("__x64_sys_sendto", "socket: answer, which wakes the client"),
    ("__x64_sys_write", "socket: answer, which wakes the client"),
    ("__x64_sys_pwrite64", "log: write"),
    ("__x64_sys_sync_file_range", "log: `fdatasync`"),
    ("__x64_sys_fdatasync", "log: `fdatasync`"),
    ("__x64_sys_futex", WAITING),
    ("__x64_sys_epoll", WAITING),
    ("__x64_sys_poll", WAITING),
    ("simdutf8", READING),
    ("basalt_ingest::put_body", READING),
    ("basalt_ingest::scanner", READING),
    ("basalt_ingest::series_cache", READING),
    ("basalt_ingest", "checks, rows, batch"),
    ("basalt_schema", "checks, rows, batch"),
    ("basalt_store::mutation", "checks, rows, batch"),
    ("basalt_engine::mutation", RECORD),
    ("basalt_engine::record", RECORD),
    ("basalt_engine::write::encode", RECORD),
    ("basalt_engine::write::inline::InlineChange::of", RECORD),
    ("crc32c", RECORD),
    ("basalt_engine::memtable", "memtable"),
    ("basalt_engine::wal", "log: order, publication, answers"),
    ("basalt_engine", "change: resolve, regions, locks"),
    ("basalt::", HTTP),
    ("tokio::", HTTP),
    ("hyper", HTTP),
];
const READING: &str = "read body, look up";
const RECORD: &str = "record, its CRC";
const WAITING: &str = "waking and waiting: futexes, epoll, switches";
const HTTP: &str = "HTTP, tokio";
const REST: &str = "the rest";

/// A sample that is being read.
#[derive(Default)]
struct Sample {
    nanos: f64,
    stage: Option<&'static str>,
}

fn main() -> anyhow::Result<()> {
    let points: f64 = std::env::args().nth(1).context("say how many points were put")?.parse()?;
    let mut nanos = HashMap::<_, f64>::new();
    let mut sample = Sample::default();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        if line.starts_with([' ', '\t']) {
            // An address, then the function.
            let name = line.split_whitespace().nth(1).unwrap_or_default();
            let rule = RULES.iter().find(|(part, _)| name.contains(part));
            sample.stage = sample.stage.or(rule.map(|(_, stage)| *stage));
        } else if let Some(period) = line.split_whitespace().nth_back(0) {
            sample = Sample {
                nanos: period.trim_end_matches(':').parse().context("no period: `-F comm,period,ip,sym`")?,
                ..Sample::default()
            };
        } else {
            let Sample { nanos: more, stage } = std::mem::take(&mut sample);
            *nanos.entry(stage.unwrap_or(REST)).or_default() += more;
        }
    }
    let all: f64 = nanos.values().sum();
    if all == 0.0 {
        bail!("no samples: pipe `perf script -F comm,period,ip,sym` into it");
    }
    let mut stages: Vec<_> = nanos.into_iter().collect();
    stages.sort_by(|a, b| b.1.total_cmp(&a.1));
    println!("| stage | CPU s a million points | share |\n|---|---|---|");
    for (stage, nanos) in stages {
        // Nanoseconds a point are seconds a million of points, a thousandth of them.
        println!("| {stage} | {:.3} | {:.1} % |", nanos / points / 1e3, 100.0 * nanos / all);
    }
    println!("| all | {:.3} | |", all / points / 1e3);
    Ok(())
}
