//! Whether `docs/data-model.md` tells of every rule, each with tests that there are: the table cannot rot unseen.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};

const TABLE: &str = "docs/data-model.md";

/// The checklist's rows that are behaviour of the store, the lost lists, and what is only pointed to.
const CODES: &[(&str, &[u32])] = &[
    ("S-MAP", &[1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16, 17, 18]),
    ("S-NAME", &[1, 2, 3]),
    ("S-ACID", &[1, 2]),
    ("S-NS", &[1, 2, 3, 4, 5, 6]),
    ("S-GET", &[1, 2, 3, 4, 5]),
    ("S-PUT", &[1, 2, 3, 4]),
    ("S-SCAN", &[1, 2, 3, 4, 5, 6, 7, 8, 10, 11]),
    ("S-DEL", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
    ("S-VERS", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
    ("S-TTL", &[1, 2, 3, 4]),
    ("S-KEEP", &[1, 2, 3]),
    ("S-TYPE", &[1]),
    ("S-CNT", &[1, 2, 3]),
    ("S-CONS", &[1]),
    ("S-ADMIN", &[1, 2, 3, 5]),
    ("S-CF", &[2, 7]),
    ("S-SIZE", &[1, 2]),
    ("S-KEY", &[2, 4]),
    ("S-SPLIT", &[1, 7, 8]),
    ("S-IDX", &[6]),
    ("S-TSDB", &[1, 3, 4, 5]),
    ("S-LIST", &[7]),
    ("S-PERF", &[1, 2, 3, 4, 5, 6]),
    ("R", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
    ("U", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
];

/// Notes by which a row may go without a test.
const EXCUSES: &[&str] = &["not supported", "nothing to hold a store to"];

/// Checks the table against the codes and the sources.
pub(super) fn check(root: &Path, files: &[String]) -> Result<Vec<String>> {
    let table = std::fs::read_to_string(root.join(TABLE)).context(TABLE)?;
    let mut functions = BTreeSet::new();
    for file in files.iter().filter(|file| Path::new(file).extension().is_some_and(|end| end == "rs")) {
        let Ok(text) = std::fs::read_to_string(root.join(file)) else { continue };
        functions.extend(text.lines().filter_map(function_of).map(str::to_owned));
    }
    Ok(faults(&table, &|name| functions.contains(name)))
}

/// The name of the function that a line begins, if it does.
fn function_of(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let rest = line.strip_prefix("pub ").unwrap_or(line).strip_prefix("fn ")?;
    rest.split_once('(').map(|(name, _)| name)
}

fn faults(table: &str, is_there: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut faults = Vec::new();
    let mut told: Vec<&str> = Vec::new();
    for line in table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| code |")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [code, _, tests, _, note] = cells[..] else {
            faults.push(format!("{TABLE}: five columns are needed: {line}"));
            continue;
        };
        told.push(code);
        let tests: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        for gone in tests.iter().filter(|name| !is_there(name)) {
            faults.push(format!("{TABLE}: {code} names the test {gone}, which there is not"));
        }
        if tests.is_empty() && !EXCUSES.iter().any(|excuse| note.contains(excuse)) {
            faults.push(format!("{TABLE}: {code} has no test, and its note does not say why"));
        }
    }
    for (family, numbers) in CODES {
        for code in numbers.iter().map(|number| format!("{family}-{number}")) {
            match told.iter().filter(|told| **told == code).count() {
                1 => {}
                count => faults.push(format!("{TABLE}: {code} is there {count} times")),
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_without_its_test_is_told() {
        let told = |row: &str| faults(row, &|name| name == "there").first().cloned().unwrap_or_default();
        assert!(told("| S-MAP-1 | w | `gone` | not asked | |").contains("gone"));
        assert!(told("| S-MAP-1 | w | — | not asked | |").contains("no test"));
        assert!(told("| S-MAP-1 | w | `there` |").contains("five columns"));
        let others = told("| S-MAP-1 | w | `there` | not asked | |");
        assert!(others.contains("S-MAP-3 is there 0 times"), "{others}");
        assert!(told("| S-MAP-1 | w | — | not asked | not supported: no |").contains("S-MAP-3"));
    }

    #[test]
    fn functions_are_found_by_their_lines() {
        assert_eq!(function_of("    pub fn s_map_1(x: u8)"), Some("s_map_1"));
        assert_eq!(function_of("let fn_ = 1;"), None);
    }
}
