//! The schema advisor: a table's design in, advice out, before there is any data.
//!
//! ```text
//! Design ─ key fields, families, accesses, a sample of rows ──► advise ──► what each access takes
//!                                                                     └──► findings: level, rule, what to do
//! ```
//!
//! Rules are those of the checklist that `docs/data-model.md` goes by. Nothing is read or written here, and nothing is
//! measured: what is not said of a design is not judged.

mod access;
mod design;
mod family;
mod key;
mod questions;
mod sample;
mod splits;

use std::fmt;

pub use self::access::{Answer, Path};
pub use self::design::{Access, Design, FamilyPlan, KeyField, Kind};
pub use self::questions::{QUESTIONS, create_line, spec};
pub use self::sample::KeyBytes;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The design cannot do what it is asked to, or loses what the store is good at.
    Error,
    /// It works, and will be regretted.
    Warning,
    /// Worth knowing.
    Note,
}

impl fmt::Display for Level {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        })
    }
}

/// One thing to know about a design.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How much it matters.
    pub level: Level,
    /// The rule's code, such as `S-HOT-1`.
    pub code: &'static str,
    /// What is so.
    pub says: String,
    /// What to do about it.
    pub advice: String,
}

/// What a design is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// What each access takes, in the order of the design.
    pub answers: Vec<Answer>,
    /// The sample's keys in bytes; none without a sample.
    pub key_bytes: Option<KeyBytes>,
    /// Errors first, then warnings, then notes.
    pub findings: Vec<Finding>,
}

impl Advice {
    /// Whether a finding is an error.
    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(|finding| finding.level == Level::Error)
    }
}

/// Judges a design.
///
/// *Cost*: some work for each pair of a field and an access, of a row and a field, of a split and a byte of its key.
pub fn advise(design: &Design) -> Advice {
    let mut findings = Findings::default();
    let answers: Vec<Answer> = design.accesses.iter().map(|asked| access::answer(design, asked)).collect();
    key::judge(design, &mut findings);
    access::judge(design, &answers, &mut findings);
    let key_bytes = sample::judge(design, &mut findings);
    splits::judge(design, &mut findings);
    family::judge(design, &mut findings);
    let mut findings = findings.0;
    findings.sort_by_key(|finding| finding.level);
    Advice { answers, key_bytes, findings }
}

/// What was found so far.
#[derive(Debug, Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn error(&mut self, code: &'static str, says: String, advice: impl Into<String>) {
        self.0.push(Finding { level: Level::Error, code, says, advice: advice.into() });
    }

    fn warning(&mut self, code: &'static str, says: String, advice: impl Into<String>) {
        self.0.push(Finding { level: Level::Warning, code, says, advice: advice.into() });
    }

    fn note(&mut self, code: &'static str, says: String, advice: impl Into<String>) {
        self.0.push(Finding { level: Level::Note, code, says, advice: advice.into() });
    }
}

#[cfg(test)]
mod tests;
