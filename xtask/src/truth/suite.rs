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

/// What HBase says of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Passes,
    /// What differed first.
    Differs(String),
    /// It let a question go unanswered, as the rule then said.
    IsSilent(String),
}

/// Which rules are asked, and what becomes of the verdicts.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// Their names; none for all.
    pub(super) names: Vec<String>,
    /// Writes each verdict down as soon as it is known.
    pub(super) record: bool,
    /// Only rules without a recorded verdict: goes on where a run was ended.
    pub(super) missing: bool,
    /// Without rules that HBase let unanswered when they were recorded: to know it takes a minute.
    pub(super) answered: bool,
}

/// The rules that HBase let unanswered when they were recorded.
pub(super) fn unanswered() -> Vec<String> {
    let recorded = std::fs::read_to_string(path()).unwrap_or_default();
    let verdicts = recorded.lines().filter_map(|line| line.split_once('\t'));
    verdicts.filter(|(_, verdict)| verdict.starts_with(NO_ANSWER)).map(|(rule, _)| rule.to_owned()).collect()
}

/// The recorded verdict on such a rule.
const NO_ANSWER: &str = "no answer";

impl Asked {
    fn rules(&self) -> impl Iterator<Item = (&'static str, Rule)> {
        let before = std::fs::read_to_string(path()).unwrap_or_default();
        let left_out = if self.answered { unanswered() } else { Vec::new() };
        let is_asked = move |rule: &str| {
            !left_out.iter().any(|name| name == rule)
                && (self.names.is_empty() || self.names.iter().any(|name| *rule == *name.as_str()))
                && !(self.missing && before.lines().any(|line| line.split('\t').next() == Some(rule)))
        };
        rules().into_iter().filter(move |(rule, _)| is_asked(rule))
    }
}

/// Runs the rules that are asked for.
pub(super) fn run(asked: &Asked) -> Result<()> {
    let mut fixture = HBaseFixture::start("suite", Reopening::Regions)?;
    println!("the conformance suite against HBase {}", fixture.version);
    let unexpected = on(&mut fixture, asked)?.unexpected;
    ensure!(unexpected == 0, "{unexpected} verdicts are not those of xtask/src/truth/known.rs");
    Ok(())
}

/// How many rules came out as is known of HBase, and how many did not.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tally {
    pub(super) expected: usize,
    pub(super) unexpected: usize,
}

/// Asks an HBase that runs.
pub(super) fn on(fixture: &mut HBaseFixture, asked: &Asked) -> Result<Tally> {
    let begun = Instant::now();
    let verdicts = judge(fixture, asked)?;
    let unexpected = verdicts.iter().filter(|(rule, verdict)| !is_known(rule, verdict)).count();
    let count = |wanted: fn(&Verdict) -> bool| verdicts.values().filter(|verdict| wanted(verdict)).count();
    let told = format!(
        "{} rules: {} pass, {} differ, {} unanswered",
        verdicts.len(),
        count(|v| *v == Verdict::Passes),
        count(|v| matches!(v, Verdict::Differs(_))),
        count(|v| matches!(v, Verdict::IsSilent(_))),
    );
    println!("{told}; {unexpected} unexpected; {:.0} s", begun.elapsed().as_secs_f64());
    Ok(Tally { expected: verdicts.len() - unexpected, unexpected })
}

fn judge(fixture: &mut HBaseFixture, asked: &Asked) -> Result<BTreeMap<&'static str, Verdict>> {
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
    for (name, rule) in asked.rules() {
        if fixture.empty().is_err() {
            fixture.renew()?;
        }
        said.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let begun = Instant::now();
        let held = catch_unwind(AssertUnwindSafe(|| rule(&mut *fixture))).is_ok();
        let said: String = said.lock().unwrap_or_else(PoisonError::into_inner).chars().take(700).collect();
        let verdict = match held {
            _ if fixture.is_stuck() => Verdict::IsSilent(said),
            true => Verdict::Passes,
            false => Verdict::Differs(said),
        };
        let mark = if is_known(name, &verdict) { "" } else { "UNEXPECTED " };
        println!("{mark}{name}: {verdict:?} ({:.1} s)", begun.elapsed().as_secs_f64());
        if asked.record {
            std::fs::write(path(), file(&fixture.version, name, &verdict)).context("cannot write the verdict")?;
        }
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
    matches!((verdict, known(rule)), (Verdict::Passes, None) | (Verdict::Differs(_) | Verdict::IsSilent(_), Some(_)))
}

/// Where the verdicts are kept.
pub(super) fn path() -> PathBuf {
    crate::workspace().join("tests/golden/hbase-verdicts.txt")
}

/// The file anew: the verdict on one rule, and the lines of the others as they were.
fn file(version: &str, rule: &str, verdict: &Verdict) -> String {
    let before = std::fs::read_to_string(path()).unwrap_or_default();
    let kept = before.lines().filter_map(|line| line.split_once('\t'));
    let mut lines: BTreeMap<&str, String> =
        kept.map(|(rule, rest)| (rule, rest.split('\t').next().unwrap_or_default().to_owned())).collect();
    let names: Vec<&str> = rules().into_iter().map(|(name, _)| name).collect();
    lines.retain(|rule, _| names.contains(rule));
    let word = match verdict {
        Verdict::Passes => "passes",
        Verdict::Differs(_) => "differs",
        Verdict::IsSilent(_) => NO_ANSWER,
    };
    lines.insert(rule, word.to_owned());
    let mut text = format!(
        "# What HBase {version} says of each rule of basalt_store::conformance. Recorded by\n\
         # `cargo xtask truth suite --record`, not edited by hand; the reasons are those of xtask/src/truth/known.rs.\n"
    );
    for (rule, word) in lines {
        let why = known(rule).map(|why| format!("\t{why}")).unwrap_or_default();
        writeln!(text, "{rule}\t{word}{why}").unwrap_or_default();
    }
    text
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

    #[test]
    fn each_rule_has_a_recorded_verdict_and_each_difference_its_reason() {
        let recorded = std::fs::read_to_string(path()).unwrap();
        for (rule, _) in rules() {
            let line = recorded.lines().find_map(|line| line.strip_prefix(rule)?.strip_prefix('\t'));
            let line = line
                .unwrap_or_else(|| panic!("{rule}: no verdict of HBase's; cargo xtask truth suite --record {rule}"));
            let (word, why) = line.split_once('\t').unwrap_or((line, ""));
            assert_eq!(word == "passes", known(rule).is_none(), "{rule}: {word}");
            assert_eq!(why, known(rule).unwrap_or_default(), "{rule}");
        }
    }
}
