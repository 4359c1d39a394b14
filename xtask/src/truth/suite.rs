//! The conformance suite asked of HBase: one verdict a rule.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use basalt_store::conformance::{Rule, rules};

use super::fixture::{HBaseFixture, Reopening};
use super::known::KNOWN;
use crate::oracle;

/// What HBase says of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Passes,
    /// What differed first.
    Differs(String),
}

/// Runs the rules whose names hold one of `names`, or all; with `record` writes the verdicts down.
pub(super) fn run(names: &[String], record: bool) -> Result<()> {
    let fixture = HBaseFixture::start("suite", Reopening::Regions)?;
    let version = fixture.version.clone();
    println!("the conformance suite against HBase {version}");
    let begun = Instant::now();
    let asked = rules().into_iter().filter(|(rule, _)| names.is_empty() || names.iter().any(|n| *rule == n.as_str()));
    let verdicts = judge(fixture, asked)?;
    let unexpected = verdicts.iter().filter(|(rule, verdict)| !is_known(rule, verdict)).count();
    let count = |wanted: fn(&Verdict) -> bool| verdicts.values().filter(|verdict| wanted(verdict)).count();
    let told = format!(
        "{} rules: {} pass, {} differ",
        verdicts.len(),
        count(|v| *v == Verdict::Passes),
        count(|v| matches!(v, Verdict::Differs(_)))
    );
    println!("{told}; {unexpected} unexpected; {:.0} s", begun.elapsed().as_secs_f64());
    if record {
        std::fs::write(path(), file(&version, &verdicts)).context("cannot write the verdicts")?;
        println!("recorded in {}", path().display());
    }
    ensure!(unexpected == 0, "{unexpected} verdicts are not those of xtask/src/truth/known.rs");
    Ok(())
}

fn judge(
    mut fixture: HBaseFixture,
    rules: impl Iterator<Item = (&'static str, Rule)>,
) -> Result<BTreeMap<&'static str, Verdict>> {
    let said = Arc::new(Mutex::new(String::new()));
    let hook = take_hook();
    let listener = Arc::clone(&said);
    set_hook(Box::new(move |panic| {
        let mut said = listener.lock().unwrap_or_else(PoisonError::into_inner);
        // The first of several threads knows why.
        if said.is_empty() {
            let at = panic.location().map(|at| format!("{}:{}", at.file(), at.line())).unwrap_or_default();
            let words = words_of(panic.payload()).split_whitespace().collect::<Vec<_>>().join(" ");
            let _infallible = write!(said, "{at}: {words}");
        }
    }));
    let mut verdicts = BTreeMap::new();
    for (name, rule) in rules {
        fixture.empty()?;
        said.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let begun = Instant::now();
        let held = catch_unwind(AssertUnwindSafe(|| rule(&mut fixture))).is_ok();
        let said = said.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let verdict = if held { Verdict::Passes } else { Verdict::Differs(said.chars().take(700).collect()) };
        let mark = if is_known(name, &verdict) { "" } else { "UNEXPECTED " };
        println!("{mark}{name}: {verdict:?} ({:.1} s)", begun.elapsed().as_secs_f64());
        verdicts.insert(name, verdict);
    }
    set_hook(hook);
    Ok(verdicts)
}

/// What a panic says.
fn words_of(payload: &(dyn std::any::Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or_default()
}

fn known(rule: &str) -> Option<&'static str> {
    KNOWN.iter().find(|(name, _)| *name == rule).map(|(_, why)| *why)
}

fn is_known(rule: &str, verdict: &Verdict) -> bool {
    matches!((verdict, known(rule)), (Verdict::Passes, None) | (Verdict::Differs(_), Some(_)))
}

/// Where the verdicts are kept.
pub(super) fn path() -> PathBuf {
    oracle::workspace().join("tests/golden/hbase-verdicts.txt")
}

/// The file anew: verdicts on the rules that were asked, and the lines of the others as they were.
fn file(version: &str, verdicts: &BTreeMap<&str, Verdict>) -> String {
    let before = std::fs::read_to_string(path()).unwrap_or_default();
    let kept = before.lines().filter_map(|line| line.split_once('\t'));
    let mut lines: BTreeMap<&str, String> = kept.map(|(rule, rest)| (rule, rest.to_owned())).collect();
    let names: Vec<&str> = rules().into_iter().map(|(name, _)| name).collect();
    lines.retain(|rule, _| names.contains(rule));
    for (rule, verdict) in verdicts {
        lines.insert(rule, line(rule, verdict));
    }
    let mut text = format!(
        "# What HBase {version} says of each rule of basalt_store::conformance. Recorded by\n\
         # `cargo xtask truth suite --record`, not edited by hand; the reasons are those of xtask/src/truth/known.rs.\n"
    );
    for (rule, line) in lines {
        writeln!(text, "{rule}\t{line}").unwrap_or_default();
    }
    text
}

/// A verdict and its reason.
fn line(rule: &str, verdict: &Verdict) -> String {
    let word = match verdict {
        Verdict::Passes => "passes",
        Verdict::Differs(_) => "differs",
    };
    match known(rule) {
        Some(why) => format!("{word}\t{why}"),
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_of_hbase_is_known_of_rules_that_are() {
        let names: Vec<_> = rules().into_iter().map(|(name, _)| name).collect();
        for (name, _) in KNOWN {
            assert!(names.contains(name), "{name} is no rule any more");
        }
    }
}
