//! The differences that are known and meant to stay: `tests/differential/known.json`, a reason each.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use regex::Regex;
use serde::Deserialize;

use super::Case;

/// One rule of the file. Each pattern that is given must be found.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    /// Why the difference stays.
    reason: String,
    /// In the request's line and body.
    request: Option<String>,
    /// In OpenTSDB's status and body.
    real: Option<String>,
    /// In Basalt's status and body.
    ours: Option<String>,
    /// In every line of what differs.
    differs: Option<String>,
}

#[derive(Debug)]
struct Rule {
    name: String,
    request: Option<Regex>,
    real: Option<Regex>,
    ours: Option<Regex>,
    differs: Option<Regex>,
}

/// The file, read.
#[derive(Debug)]
pub(crate) struct Known(Vec<Rule>);

impl Known {
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
        Self::parse(&text).with_context(|| format!("{}", path.display()))
    }

    fn parse(text: &str) -> Result<Self> {
        let written: Vec<Written> = serde_json::from_str(text)?;
        let compiled = |pattern: &Option<String>| pattern.as_deref().map(Regex::new).transpose();
        let rules = written.into_iter().map(|rule| {
            let patterns = [&rule.request, &rule.real, &rule.ours, &rule.differs];
            ensure!(!rule.reason.is_empty() && patterns.iter().any(|p| p.is_some()), "{} says too little", rule.name);
            let [request, real] = [compiled(&rule.request)?, compiled(&rule.real)?];
            let [ours, differs] = [compiled(&rule.ours)?, compiled(&rule.differs)?];
            Ok(Rule { name: rule.name, request, real, ours, differs })
        });
        Ok(Self(rules.collect::<Result<_>>()?))
    }

    /// The name of the first rule that covers the difference.
    pub(crate) fn rule(&self, case: &Case) -> Option<&str> {
        let rule = self.0.iter().find(|rule| rule.covers(case))?;
        Some(&rule.name)
    }
}

impl Rule {
    fn covers(&self, case: &Case) -> bool {
        let found = |pattern: &Option<Regex>, text: &str| pattern.as_ref().is_none_or(|pattern| pattern.is_match(text));
        let told = |status: Option<u16>, body: String| format!("{} {body}", status.unwrap_or_default());
        found(&self.request, &case.request())
            && found(&self.real, &told(case.real.status, case.real.body()))
            && found(&self.ours, &told(case.ours.status, case.ours.body()))
            && case.differs.iter().all(|line| found(&self.differs, line))
    }
}

#[cfg(test)]
mod tests {
    use super::Known;
    use crate::differential::Case;
    use crate::golden::answer::Answer;
    use crate::golden::scenario::Step;

    #[test]
    fn a_rule_covers_what_all_its_patterns_find() {
        let known = r#"[{"name": "n", "reason": "r", "request": "^GET /q", "real": "^500 ", "differs": "^status"}]"#;
        let known = Known::parse(known).unwrap();
        let check = |line: &str, status: u16, differs: &[&str], expected: bool| {
            let mut real = Answer::telnet(String::new(), "x".to_owned());
            real.status = Some(status);
            let step = Step { http: Some(line.to_owned()), ..Step::default() };
            let ours = Answer::telnet(String::new(), "y".to_owned());
            let differs = differs.iter().map(|&line| line.to_owned()).collect();
            let case = Case { step, real, ours, differs };
            assert_eq!(known.rule(&case).is_some(), expected, "{line} {status}");
        };
        check("GET /q", 500, &["status: 1"], true);
        check("GET /x", 500, &["status: 1"], false);
        check("GET /q", 400, &["status: 1"], false);
        check("GET /q", 500, &["status: 1", "/error: 2"], false);
    }

    #[test]
    fn a_rule_without_a_reason_or_a_pattern_is_refused() {
        assert!(Known::parse(r#"[{"name": "n", "reason": "", "request": "x"}]"#).is_err());
        assert!(Known::parse(r#"[{"name": "n", "reason": "r"}]"#).is_err());
    }
}
