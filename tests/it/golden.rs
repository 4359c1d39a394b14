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

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use answer::Recording;
use basalt_hbase::{HBaseOptions, HBaseStore};
use basalt_store::Store as _;
use scenario::Scenario;

use crate::daemon::Daemon;

/// Characters of an expected or got body in a failure's report.
const BODY_CHARS_MAX: usize = 600;

#[test]
fn memory_store_answers_as_opentsdb_did() {
    replay_all("memory");
}

#[test]
fn embedded_store_answers_as_opentsdb_did() {
    replay_all("embedded");
}

/// Over the HBase whose masters `GOLDEN_HBASE` names, such as `cargo xtask oracle up` starts: it must hold no table, since
/// each scenario begins with none and leaves none. `make lab` and CI without one pass over it.
#[test]
fn hbase_answers_as_opentsdb_did() {
    let Ok(masters) = std::env::var("GOLDEN_HBASE") else {
        println!("skipped: GOLDEN_HBASE names no masters of an HBase");
        return;
    };
    let options = HBaseOptions::of_masters(masters.split(',').map(str::to_owned));
    let cluster = HBaseStore::open(options).unwrap();
    let tables = cluster.list_tables().unwrap();
    assert!(tables.is_empty(), "the HBase at {masters} holds {tables:?}: give one without tables");
    replay_all(&format!("hbase at {masters}"));
}

/// A scenario's tables, dropped at its end however it ends.
struct Tables(Option<HBaseStore>);

impl Drop for Tables {
    fn drop(&mut self) {
        let Some(cluster) = &self.0 else { return };
        for table in cluster.list_tables().unwrap_or_default() {
            // A panic's way out: what stays is told by the next run.
            drop(cluster.drop_table(&table));
        }
    }
}

/// Every scenario on a daemon of its own; all differences are told at the end, not the first alone.
fn replay_all(store: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let wanted = std::env::var("GOLDEN").unwrap_or_default();
    let (mut exchanges_count, mut differ_count, mut report) = (0, 0, String::new());
    for name in scenario::names(&folder.join("scenarios")).unwrap() {
        if !wanted.is_empty() && !wanted.split(',').any(|word| word == name) {
            continue;
        }
        let scenario = Scenario::read(&folder.join(format!("scenarios/{name}.json"))).unwrap();
        let recording = Recording::read(&folder.join(format!("answers/{name}.json"))).unwrap();
        exchanges_count += scenario.exchanges_count();
        differ_count += replay(store, &name, &scenario, &recording, &mut report);
    }
    assert!(exchanges_count > 0, "no scenario is called {wanted:?}");
    assert!(differ_count == 0, "{store}: {differ_count} of {exchanges_count} exchanges differ{report}");
}

/// Plays one scenario and adds what differs to `report`; returns how many exchanges did.
fn replay(store: &str, name: &str, scenario: &Scenario, recording: &Recording, report: &mut String) -> usize {
    let expected = &recording.exchanges;
    assert_eq!(expected.len(), scenario.exchanges_count(), "{name}: record it again ({})", recording.command);
    let folder = tempfile::tempdir().unwrap();
    let mut settings = profile::settings(&scenario.profile);
    let masters = store.strip_prefix("hbase at ");
    if let Some(masters) = masters {
        settings = format!("[hbase]\nmasters = '{masters}'\n{settings}");
    }
    // Dropped after the daemon.
    let masters = masters.map(|masters| masters.split(',').map(str::to_owned));
    let _tables = Tables(masters.map(|masters| HBaseStore::open(HBaseOptions::of_masters(masters)).unwrap()));
    let kind = store.split(' ').next().unwrap_or(store);
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
        let (expected, got) = (&expected[index], &answers[index]);
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
