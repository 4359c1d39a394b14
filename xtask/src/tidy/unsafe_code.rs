//! The files that hold `unsafe` are those that rule 44 of CONTRIBUTING.md names.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};

const FILE: &str = "CONTRIBUTING.md";

/// The line of the rule.
const RULE: &str = "44. ";

/// What lets `unsafe` into a function; the lint is denied everywhere else. Split so that this file is none of them.
const PERMISSION: &str = concat!("expect(unsafe", "_code");

/// Lists files that are in one of the two and not in the other.
pub(super) fn check(root: &Path, files: &[String]) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(root.join(FILE)).context(FILE)?;
    let sources = files.iter().filter(|file| Path::new(file).extension().is_some_and(|end| end == "rs"));
    let has = |file: &&String| std::fs::read_to_string(root.join(file)).is_ok_and(|text| text.contains(PERMISSION));
    Ok(faults(&text, &sources.filter(has).map(String::as_str).collect()))
}

fn faults(text: &str, found: &BTreeSet<&str>) -> Vec<String> {
    let rule = text.lines().find(|line| line.starts_with(RULE)).unwrap_or_default();
    let words = rule.split('`').skip(1).step_by(2);
    let named: BTreeSet<&str> =
        words.filter(|word| Path::new(word).extension().is_some_and(|end| end == "rs")).collect();
    let missing =
        found.difference(&named).map(|file| format!("{file}: has `unsafe`, and rule 44 of {FILE} does not name it"));
    let extra = named.difference(found).map(|file| format!("{FILE}: rule 44 names {file}, which has no `unsafe`"));
    missing.chain(extra).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_stands_where_the_rule_says() {
        let text = "43. `z.rs`.\n44. Only in `a.rs` and `b.rs`, never `allow`.\n";
        assert!(faults(text, &BTreeSet::from(["a.rs", "b.rs"])).is_empty());
        let told = faults(text, &BTreeSet::from(["a.rs", "c.rs"]));
        assert_eq!(told.len(), 2);
        assert!(told.iter().all(|line| line.contains("c.rs: has") || line.contains("names b.rs")), "{told:?}");
    }
}
