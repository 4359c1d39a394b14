//! Replays what a real OpenTSDB was asked, and expects what it answered: every scenario of `tests/golden/`, over each
//! store, from empty tables.
//!
//! Asking and comparing are the very modules that recorded (`cargo xtask golden`), so a difference is Basalt's. To
//! replay a few: `GOLDEN=rate,filters cargo test --test it golden`.

#[path = "../../xtask/src/golden/answer.rs"]
mod answer;
#[path = "../../xtask/src/golden/client.rs"]
mod client;
#[path = "../../xtask/src/golden/compare.rs"]
mod compare;
#[path = "../../xtask/src/golden/play.rs"]
mod play;
#[path = "../../xtask/src/golden/profile.rs"]
mod profile;
#[path = "../../xtask/src/golden/scenario.rs"]
mod scenario;

mod cluster;

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use answer::{Answer, Recording};
use basalt_store::Store as _;
use cluster::Cluster;
use scenario::Scenario;

use crate::daemon::Daemon;

/// Characters of an expected or got body in a failure's report.
const BODY_CHARS_MAX: usize = 600;

#[test]
fn memory_store_answers_as_opentsdb_did() {
    replay_all(&Store::Own("memory"), 1);
}

#[test]
fn embedded_store_answers_as_opentsdb_did() {
    replay_all(&Store::Own("embedded"), 1);
}

/// Over the HBase whose masters `GOLDEN_HBASE` names, such as the gate's or `cargo xtask oracle up`'s: it must hold no table, and
/// holds none afterwards. Without it (`cargo test` alone) this passes over.
#[test]
fn hbase_answers_as_opentsdb_did() {
    let Ok(masters) = std::env::var("GOLDEN_HBASE") else {
        println!("skipped: GOLDEN_HBASE names no masters of an HBase");
        return;
    };
    let cluster = Cluster::open(masters);
    let tables = cluster.store.list_tables().unwrap();
    assert!(tables.is_empty(), "the HBase at {} holds {tables:?}: give one without tables", cluster.masters);
    // Most of the time each waits for the cluster.
    replay_all(&Store::Hbase(cluster), SCENARIOS_AT_ONCE);
}

/// Scenarios that are replayed side by side over HBase, each on tables of its own.
const SCENARIOS_AT_ONCE: usize = 4;

/// What the daemon is started on.
enum Store {
    Own(&'static str),
    Hbase(Cluster),
}

/// Every scenario on a daemon of its own, so many at once; all differences are told at the end, not the first alone.
fn replay_all(store: &Store, at_once: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let wanted = std::env::var("GOLDEN").unwrap_or_default();
    let mut names = scenario::names(&folder.join("scenarios")).unwrap();
    names.retain(|name| wanted.is_empty() || wanted.split(',').any(|word| word == name));
    let (next, told) = (AtomicUsize::new(0), Mutex::new((0, 0, String::new())));
    let work = |worker: usize| {
        // A ticket, ordered with nothing.
        while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
            let scenario = Scenario::read(&folder.join(format!("scenarios/{name}.json"))).unwrap();
            let recording = Recording::read(&folder.join(format!("answers/{name}.json"))).unwrap();
            let mut report = String::new();
            let differ = replay((store, worker), name, &scenario, &recording, &mut report);
            let (exchanges_count, differ_count, all) = &mut *told.lock().unwrap();
            *exchanges_count += scenario.exchanges_count();
            *differ_count += differ;
            all.push_str(&report);
        }
    };
    std::thread::scope(|scope| (0..at_once).for_each(|worker| drop(scope.spawn(move || work(worker)))));
    let (exchanges_count, differ_count, report) = told.into_inner().unwrap();
    assert!(exchanges_count > 0, "no scenario is called {wanted:?}");
    assert!(differ_count == 0, "{differ_count} of {exchanges_count} exchanges differ{report}");
}

/// Plays one scenario and adds what differs to `report`; returns how many exchanges did.
fn replay(
    (store, worker): (&Store, usize),
    name: &str,
    scenario: &Scenario,
    recording: &Recording,
    report: &mut String,
) -> usize {
    let expected = &recording.exchanges;
    assert_eq!(expected.len(), scenario.exchanges_count(), "{name}: record it again ({})", recording.command);
    let folder = tempfile::tempdir().unwrap();
    let mut settings = profile::settings(&scenario.profile);
    let prefix = format!("g{worker}-{}-", scenario.profile);
    let kind = match store {
        Store::Own(kind) => kind,
        Store::Hbase(cluster) => {
            settings = cluster.emptied(&prefix, &settings);
            "hbase"
        }
    };
    let daemon = Daemon::start(&folder.path().join("data"), kind, &settings);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, daemon.port()));
    // What Basalt acknowledges can be read back at once, so nothing is waited for.
    let played = play::play(scenario, address, &|| {});
    let answers = match played {
        Ok(answers) => answers,
        Err(error) => {
            writeln!(report, "\n{name}: broken off: {error:#}").unwrap();
            return expected.len();
        }
    };
    let mut differ_count = 0;
    for (index, step) in scenario.exchanges().enumerate() {
        let (expected, got) = (&expected[index], &without(&prefix, &answers[index]));
        assert_eq!(expected.request, got.request, "{name} {index}: record it again ({})", recording.command);
        let found = compare::differences(step, expected, got);
        if found.is_empty() {
            continue;
        }
        differ_count += 1;
        let (request, found) = (&got.request, found.join("\n  "));
        let bodies = [expected, got].map(|answer| answer.body().chars().take(BODY_CHARS_MAX).collect::<String>());
        let [expected, got] = bodies;
        let codes = step.codes.join(" ");
        writeln!(report, "\n{name} {index} ({codes}): {request}\n  {found}\n  expected {expected}\n  got      {got}")
            .unwrap();
    }
    differ_count
}

/// The answer, with the tables it names called as the recorder's were.
fn without(prefix: &str, answer: &Answer) -> Answer {
    let mut answer = answer.clone();
    if let Some(raw) = answer.raw.take_if(|raw| raw.contains(prefix)) {
        answer.json = serde_json::from_str(&raw.replace(prefix, "")).ok();
    }
    answer.text = answer.text.map(|text| text.replace(prefix, ""));
    answer
}
