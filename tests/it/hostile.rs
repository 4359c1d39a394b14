//! Requests made to hurt: each is refused by the right status, soon, in little memory, and nobody else notices.
//!
//! The figures are printed. `BASALT_HOSTILE_MS` asserts how long one answer may take (the lab's 1,000); without it an
//! answer must come while the client waits, since the gate's machine is shared.

mod attack;
mod bodies;
mod queries;
mod regexes;
mod slow;

use std::path::Path;
use std::time::{Duration, Instant};

use crate::daemon::Daemon;
use attack::Attack;

/// What the daemon may hold more after all attacks than before them.
const GROWTH_KIB_MAX: u64 = 64 << 10;

/// Until then freed memory must have gone back to the system: the allocator keeps it for ten seconds.
const GIVEN_BACK_MAX: Duration = Duration::from_mins(1);

/// A figure of `/proc/PID/status`, in KiB.
fn memory_kib(daemon: &Daemon, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().unwrap()
}

/// A daemon in memory with a metric `m`: series whose tag values try regular expressions' patience, one point each.
fn daemon() -> Daemon {
    let mut command = Daemon::command(Path::new("basalt-data"), "memory");
    // Without a codec nothing reads the bodies of histograms.
    command.env("BASALT_SCHEMA__HISTOGRAMS", r#"{"net.opentsdb.core.SimpleHistogramDecoder": 42}"#);
    let daemon = Daemon::spawn(command);
    let values = ["a".repeat(48) + "-", "x".repeat(200), "0123456789".repeat(9), "ab".repeat(40) + ".", "é".repeat(60)];
    let points: Vec<_> = (0..200)
        .map(|index| {
            let value = values.get(index).cloned().unwrap_or_else(|| format!("{}{index}", "a".repeat(40)));
            serde_json::json!({ "metric": "m", "timestamp": 1_700_000_000, "value": index, "tags": { "h": value } })
        })
        .collect();
    assert_eq!(daemon.post("/api/put", &serde_json::json!(points).to_string()).status, 204);
    daemon
}

/// Makes all attacks and holds each against its statuses, its time and the memory left behind.
fn endure(attacks: impl IntoIterator<Item = Attack>) {
    let daemon = daemon();
    let mut other = daemon.client();
    // What is made once (threads, buffers) is made before the measure.
    for _ in 0..20 {
        assert_eq!(other.get("/api/query?start=1699999999&end=1700000100&m=sum:m").unwrap().status, 200);
    }
    let before = memory_kib(&daemon, "VmRSS");
    let ms_max: Option<u128> = std::env::var("BASALT_HOSTILE_MS").ok().map(|text| text.parse().unwrap());
    let (mut slowest, mut count, mut wrong) = ((0, String::new()), 0, Vec::new());
    for attack in attacks {
        let began = Instant::now();
        let answer = attack.make(&daemon);
        let took = began.elapsed().as_millis();
        if std::env::var_os("BASALT_HOSTILE_TELL").is_some() {
            let (now, peak) = (memory_kib(&daemon, "VmRSS"), memory_kib(&daemon, "VmHWM"));
            println!("{took:6} ms {now:8} KiB, peak {peak:8} KiB: {answer:?} {}", attack.name);
        }
        let answer_status = answer.as_ref().ok().copied();
        match answer {
            Ok(status) if attack.statuses.contains(&status) => {}
            other => wrong.push(format!("{}: {other:?}, not one of {:?}", attack.name, attack.statuses)),
        }
        // What is answered in earnest has the query's own deadline.
        if ms_max.is_some_and(|max| took > max && !matches!(answer_status, Some(200))) {
            wrong.push(format!("{}: {took} ms", attack.name));
        }
        count += 1;
        slowest = slowest.max((took, attack.name));
        assert_eq!(other.get("/healthz").unwrap().status, 200, "another client");
    }
    let peak = memory_kib(&daemon, "VmHWM");
    let after = memory_given_back(&daemon, before + GROWTH_KIB_MAX);
    println!(
        "{count} attacks, slowest {} ms ({}), memory {before} -> {after} KiB, peak {peak} KiB",
        slowest.0, slowest.1
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(after <= before + GROWTH_KIB_MAX, "{before} -> {after} KiB");
    assert_eq!(daemon.terminate().code(), Some(0));
}

/// What it is resident with once that is as little as wanted, or else at the end of the wait.
#[expect(clippy::disallowed_methods, reason = "an allocator tells nobody what it gives back")]
fn memory_given_back(daemon: &Daemon, wanted_kib: u64) -> u64 {
    let began = Instant::now();
    loop {
        let now = memory_kib(daemon, "VmRSS");
        if now <= wanted_kib || began.elapsed() > GIVEN_BACK_MAX {
            return now;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn hostile_bodies_are_refused_soon_and_in_little_memory() {
    endure(bodies::all());
}

#[test]
fn hostile_heads_are_refused_soon_and_in_little_memory() {
    endure(attack::heads());
}

#[test]
fn hostile_queries_are_refused_soon_and_in_little_memory() {
    endure(queries::all());
}

#[test]
fn known_bad_regular_expressions_are_answered_or_refused_soon() {
    endure(regexes::all());
}
