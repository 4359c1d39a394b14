//! What the gate asks of a real HBase: one is started, asked for a few minutes, and ended.
//!
//! ```text
//! every rule of the suite that HBase answers ─ 200 random histories ─ the golden replays by the daemon, by the clock on the wall
//! ```

use std::time::Instant;

use anyhow::Result;
use basalt_store::conformance::history::Led;

use super::driver::fresh_folder;
use super::fixture::{HBaseFixture, Reopening};
use super::{histories, suite};
use crate::ci::{self, Count};
use crate::oracle;

/// Random histories; `make truth` runs ten times as many. Their steps.
const HISTORIES: usize = 200;
const STEPS: usize = 200;
/// What they are drawn from.
const SEED: u64 = 1;

/// Runs all of it, of the rules those that are named or all, and counts; one line and one skipped test where Java is missing.
pub(crate) fn run(rules: &[String]) -> Result<Count> {
    println!("== hbase");
    if let Some(tool) = oracle::missing_tool() {
        println!(
            "skipped: everything over a real HBase, as `{tool}` is not installed (needed: java, javac and mvn; Java 17)"
        );
        return Ok(Count { ignored: 1, ..Count::default() });
    }
    let begun = Instant::now();
    // Of its own, so that two gates on one machine do not meet.
    let name = format!("gate-{}", std::process::id());
    let mut hbase = HBaseFixture::start(&name, Reopening::Regions)?;
    let told = ask(&mut hbase, rules);
    // It must be gone before its folder is.
    drop(hbase);
    std::fs::remove_dir_all(fresh_folder(&name)?)?;
    println!("== hbase took {:.0} s", begun.elapsed().as_secs_f64());
    told
}

fn ask(hbase: &mut HBaseFixture, names: &[String]) -> Result<Count> {
    let mut count = Count::default();
    let asked = suite::Asked { names: names.to_vec(), answered: true, ..suite::Asked::default() };
    let rules = suite::on(hbase, &asked)?;
    for rule in suite::unanswered().iter().filter(|_| names.is_empty()) {
        println!("skipped: {rule}, as HBase gives no answer to it, which takes a minute to know");
        count.ignored += 1;
    }
    count.passed += rules.expected as u64;
    count.add(Count::of_failures(rules.unexpected as u64, "rules of the store, asked of HBase"));
    hbase.empty()?;
    let asked = histories::Asked { seed: SEED, count: HISTORIES, operations: STEPS, restarts: 0 };
    let mut found = Led::default();
    histories::on(hbase, &asked, &mut found)?;
    let wrong = found.differences.len() + found.unanswered.len();
    count.add(Count::of_failures(wrong as u64, "histories of the store, asked of HBase"));
    count.passed += HISTORIES.saturating_sub(wrong) as u64;
    hbase.empty()?;
    let masters = hbase.by_the_wall()?;
    // The whole workspace, as other features would be other binaries.
    count.add(ci::tests_of(&["--workspace", "--test", "it", "golden::hbase"], &[("GOLDEN_HBASE", &masters)])?);
    Ok(count)
}
