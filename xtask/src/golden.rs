//! `cargo xtask golden`: records what the real OpenTSDB answers, and checks that it answers so again.
//!
//! Scenarios lie in `tests/golden/scenarios/`, answers in `tests/golden/answers/`; `tests/it/golden.rs` replays both
//! against Basalt with the very modules that record (`scenario`, `client`, `play`, `answer`, `compare`).

pub(crate) mod answer;
pub(crate) mod client;
pub(crate) mod compare;
mod file;
pub(crate) mod play;
pub(crate) mod profile;
pub(crate) mod record;
pub(crate) mod scenario;

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Result, bail, ensure};

use crate::oracle;
use answer::Recording;
use record::Oracle;
use scenario::Scenario;

/// Runs one golden command.
pub(crate) fn run(args: &[String]) -> Result<()> {
    match args.split_first().map(|(command, rest)| (command.as_str(), rest)) {
        Some(("list", _)) => list(),
        Some(("record", names)) => with_oracle(names, record_one),
        Some(("check", names)) => with_oracle(names, check_one),
        _ => bail!("usage: cargo xtask golden record [NAME...] | check [NAME...] | list"),
    }
}

fn folder(name: &str) -> PathBuf {
    crate::workspace().join("tests/golden").join(name)
}

fn read(name: &str) -> Result<Scenario> {
    Scenario::read(&folder("scenarios").join(format!("{name}.json")))
}

/// Each scenario with its count of exchanges, then each checklist code with its count, then each profile.
fn list() -> Result<()> {
    let mut codes: BTreeMap<String, usize> = BTreeMap::new();
    let mut profiles: BTreeMap<String, usize> = BTreeMap::new();
    let (mut scenarios_count, mut exchanges_count) = (0, 0);
    for name in scenario::names(&folder("scenarios"))? {
        let scenario = read(&name)?;
        println!("{name:24} {:3} {:8} {}", scenario.exchanges_count(), scenario.profile, scenario.about);
        scenarios_count += 1;
        exchanges_count += scenario.exchanges_count();
        *profiles.entry(scenario.profile.clone()).or_default() += scenario.exchanges_count();
        for code in scenario.exchanges().flat_map(|step| &step.codes) {
            *codes.entry(code.clone()).or_default() += 1;
        }
    }
    for (code, count) in &codes {
        println!("{code} {count}");
    }
    let profiles: Vec<String> = profiles.iter().map(|(profile, count)| format!("{profile} {count}")).collect();
    println!("exchanges a profile: {}", profiles.join(", "));
    println!("{scenarios_count} scenarios, {exchanges_count} exchanges, {} codes", codes.len());
    Ok(())
}

/// Starts the oracle with every profile the scenarios name, and does `each` of them in turn.
fn with_oracle(names: &[String], each: fn(&mut Oracle, &str, &Scenario) -> Result<bool>) -> Result<()> {
    if let Some(tool) = oracle::missing_tool() {
        println!("golden: skipped, `{tool}` is not installed (the oracle needs java, javac and mvn)");
        return Ok(());
    }
    let names = if names.is_empty() { scenario::names(&folder("scenarios"))? } else { names.to_vec() };
    let scenarios: Vec<_> = names.iter().map(|name| read(name)).collect::<Result<_>>()?;
    let mut oracle = Oracle::start(scenarios.iter().map(|scenario| scenario.profile.as_str()))?;
    let mut all_good = true;
    for (name, scenario) in names.iter().zip(&scenarios) {
        all_good &= each(&mut oracle, name, scenario)?;
    }
    ensure!(all_good, "OpenTSDB answers otherwise than recorded");
    Ok(())
}

fn record_one(oracle: &mut Oracle, name: &str, scenario: &Scenario) -> Result<bool> {
    let exchanges = oracle.play(scenario)?;
    let count = exchanges.len();
    let server = Oracle::describe(&scenario.profile)?;
    let recording = Recording { server, command: format!("cargo xtask golden record {name}"), exchanges };
    std::fs::create_dir_all(folder("answers"))?;
    std::fs::write(folder("answers").join(format!("{name}.json")), file::text(&recording))?;
    println!("{name}: {count} recorded");
    Ok(true)
}

fn check_one(oracle: &mut Oracle, name: &str, scenario: &Scenario) -> Result<bool> {
    let recording = Recording::read(&folder("answers").join(format!("{name}.json")))?;
    ensure!(recording.exchanges.len() == scenario.exchanges_count(), "{name}: record it again");
    let mut all_good = true;
    let answers = oracle.play(scenario)?;
    for ((step, expected), got) in scenario.exchanges().zip(&recording.exchanges).zip(&answers) {
        ensure!(expected.request == got.request, "{name}: record it again: {}", got.request);
        let found = compare::differences(step, expected, got);
        if !found.is_empty() {
            all_good = false;
            println!("{name}: {}\n  {}", got.request, found.join("\n  "));
        }
    }
    println!("{name}: {} {}", answers.len(), if all_good { "the same" } else { "DIFFER" });
    Ok(all_good)
}
