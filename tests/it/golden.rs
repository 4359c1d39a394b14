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
    let daemon = Daemon::start(&folder.path().join("data"), store, &profile::settings(&scenario.profile));
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
