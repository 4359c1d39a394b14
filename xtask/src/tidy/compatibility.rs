//! Rules on `docs/compatibility.md`: every code of OpenTSDB's features once, and behind every claim a test that is there.
//!
//! The document is the list of codes itself; a code that got lost shows in the count.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

const DOCUMENT: &str = "docs/compatibility.md";

/// Features of OpenTSDB 2.4, each with a code of its own.
const CODES_COUNT: usize = 202;

/// What a row may say.
const STATES: &[&str] = &["same", "saner", "not"];

/// A line of the tables.
#[derive(Debug)]
struct Row<'a> {
    code: &'a str,
    /// One of [`STATES`].
    state: &'static str,
    /// What follows the state's word: how it differs, or why it is left out.
    reason: &'a str,
    /// `golden:NAME` or `path::test`.
    shown_by: Vec<&'a str>,
}

/// Checks the document and prints how many rows each state has.
pub(super) fn check(root: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(root.join(DOCUMENT)).context(DOCUMENT)?;
    let mut broken = Vec::new();
    let mut rows: BTreeMap<&str, Row<'_>> = BTreeMap::new();
    for line in text.lines().filter(|line| is_row(line)) {
        match row(line) {
            Ok(row) => {
                broken.extend(claim(&row));
                if let Some(twice) = rows.insert(row.code, row) {
                    broken.push(format!("{} stands twice", twice.code));
                }
            }
            Err(wrong) => broken.push(wrong),
        }
    }
    if rows.len() != CODES_COUNT {
        broken.push(format!("{} codes, of {CODES_COUNT}", rows.len()));
    }
    let mut files = BTreeMap::new();
    for row in rows.values() {
        for test in &row.shown_by {
            if !shows(root, row.code, test, &mut files) {
                broken.push(format!("{}: no such test: {test}", row.code));
            }
        }
    }
    let count = |state: &str| rows.values().filter(|row| row.state == state).count();
    let counts: Vec<String> = STATES.iter().map(|state| format!("{state} {}", count(state))).collect();
    println!("compatibility: {}", counts.join(", "));
    Ok(broken.into_iter().map(|what| format!("{DOCUMENT}: {what}")).collect())
}

/// A row of a table begins with a code: capitals and a dash.
fn is_row(line: &str) -> bool {
    let code = line.strip_prefix("| ").and_then(|rest| rest.split(' ').next()).unwrap_or_default();
    code.contains('-')
        && code.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-')
        && code.starts_with(|c: char| c.is_ascii_uppercase())
}

fn row(line: &str) -> Result<Row<'_>, String> {
    let cells: Vec<&str> = line.trim_matches('|').split(" |").map(str::trim).collect();
    let [code, _feature, state_cell, tests] = cells.as_slice() else {
        return Err(format!("not four cells: {line}"));
    };
    let state = STATES
        .iter()
        .find(|state| state_cell.strip_prefix(**state).is_some_and(|rest| rest.is_empty() || rest.starts_with(':')));
    let Some(state) = state else { return Err(format!("{code}: no such state: {state_cell}")) };
    let reason = state_cell.strip_prefix(state).unwrap_or_default().trim_start_matches(':').trim();
    let shown_by = tests.split('`').skip(1).step_by(2).collect();
    Ok(Row { code, state, reason, shown_by })
}

/// What a state owes its reader: a claim its test, a difference its switch, an absence its reason.
fn claim(row: &Row<'_>) -> Vec<String> {
    let code = row.code;
    let mut broken = Vec::new();
    if matches!(row.state, "same" | "saner") && row.shown_by.is_empty() {
        broken.push(format!("{code} is claimed and shown by no test"));
    }
    if row.state == "same" && !row.reason.is_empty() {
        broken.push(format!("{code} is the same and says how not"));
    }
    if row.state == "saner" && !(row.reason.contains('`') || row.reason.contains("No switch: ")) {
        broken.push(format!("{code} names no switch"));
    }
    if row.state == "not" && row.reason.is_empty() {
        broken.push(format!("{code} is left out for no reason"));
    }
    broken
}

/// Whether the scenario has an exchange with the code, or the file a test of that name.
fn shows(root: &Path, code: &str, test: &str, files: &mut BTreeMap<String, String>) -> bool {
    let (path, needle) = match (test.strip_prefix("golden:"), test.split_once("::")) {
        (Some(name), _) => (format!("tests/golden/scenarios/{name}.json"), None),
        (None, Some((path, name))) => (path.to_owned(), Some(format!("fn {name}("))),
        (None, None) => return false,
    };
    let content =
        files.entry(path).or_insert_with_key(|path| std::fs::read_to_string(root.join(path)).unwrap_or_default());
    match needle {
        Some(needle) => content.contains(&needle),
        None => has_code(content, code),
    }
}

fn has_code(scenario: &str, code: &str) -> bool {
    let scenario: Value = serde_json::from_str(scenario).unwrap_or_default();
    let steps = scenario.get("steps").and_then(Value::as_array);
    let mut codes = steps.into_iter().flatten().filter_map(|step| step.get("codes")?.as_array()).flatten();
    codes.any(|known| known == code)
}

#[cfg(test)]
mod tests {
    use super::{claim, has_code, is_row, row};

    #[test]
    fn a_row_owes_a_test_a_switch_or_a_reason() {
        let check = |line: &str, count: usize| {
            assert!(is_row(line), "{line}");
            let broken = row(line).map_or_else(|wrong| vec![wrong], |row| claim(&row));
            assert_eq!(broken.len(), count, "{line}: {broken:?}");
        };
        check("| Q-MS | ms | same | `golden:rate` |", 0);
        check("| Q-MS | ms | same |  |", 1);
        check("| Q-MS | ms | same: but | `golden:rate` |", 1);
        check("| Q-MS | ms | saner: other (`compat.strict`) | `a.rs::b` |", 0);
        check("| Q-MS | ms | saner: other | `a.rs::b` |", 1);
        check("| Q-MS | ms | not: Java |  |", 0);
        check("| Q-MS | ms | not |  |", 1);
        check("| Q-MS | ms | nearly | `a.rs::b` |", 1);
        check("| Q-MS | ms | same |", 1);
    }

    #[test]
    fn a_scenario_shows_the_codes_of_its_steps() {
        let scenario = r#"{"steps": [{"seed": []}, {"codes": ["Q-MS"]}]}"#;
        assert!(has_code(scenario, "Q-MS"));
        assert!(!has_code(scenario, "Q-M"));
    }
}
