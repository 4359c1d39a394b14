//! Whether `docs/data-model.md` tells of every rule, each with tests that there are and with what a real HBase said to
//! them (`tests/golden/hbase-verdicts.txt`): the table cannot rot unseen.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};

const TABLE: &str = "docs/data-model.md";
const VERDICTS: &str = "tests/golden/hbase-verdicts.txt";

/// A rule's verdict and, where HBase does not pass it, the reason.
type Verdicts<'a> = BTreeMap<&'a str, (&'a str, &'a str)>;

/// The checklist's rows that are behaviour of the store or advice that is given, the lost lists, what is only pointed to, and contradictions.
const CODES: &[(&str, &[u32])] = &[
    ("S-MAP", &[1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16, 17, 18]),
    ("S-NAME", &[1, 2, 3]),
    ("S-ACID", &[1, 2]),
    ("S-NS", &[1, 2, 3, 4, 5, 6]),
    ("S-GET", &[1, 2, 3, 4, 5]),
    ("S-PUT", &[1, 2, 3, 4, 5]),
    ("S-SCAN", &[1, 2, 3, 4, 5, 6, 7, 8, 10, 11]),
    ("S-DEL", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
    ("S-VERS", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
    ("S-TTL", &[1, 2, 3, 4]),
    ("S-KEEP", &[1, 2, 3]),
    ("S-TYPE", &[1, 2]),
    ("S-CNT", &[1, 2, 3]),
    ("S-CONS", &[1]),
    ("S-ADMIN", &[1, 2, 3, 5]),
    ("S-CF", &[1, 2, 3, 4, 5, 6, 7]),
    ("S-HOT", &[1, 3, 6, 7, 8, 9, 10, 11, 12]),
    ("S-SIZE", &[1, 2, 3, 4, 7]),
    ("S-KEY", &[1, 2, 4, 5, 7, 8, 9, 11, 12]),
    ("S-REV", &[4]),
    ("S-SPLIT", &[1, 3, 4, 5, 7, 8]),
    ("S-IDX", &[6]),
    ("S-LOG", &[2, 3, 4]),
    ("S-TSDB", &[1, 3, 4, 5]),
    ("S-TALL", &[1, 2, 5]),
    ("S-LIST", &[7]),
    ("S-TWIT", &[1]),
    ("S-PERF", &[1, 2, 3, 4, 5, 6]),
    ("R", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
    ("U", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
    (
        "D",
        &[
            1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29,
            30, 31, 32, 33, 34, 35, 36, 37,
        ],
    ),
];

/// Notes by which a row may go without a test.
const EXCUSES: &[&str] = &["not supported", "nothing to hold a store to"];

/// Writes what HBase said into the table.
pub(super) fn bless(root: &Path) -> Result<()> {
    let (table, verdicts) = read(root)?;
    let verdicts = parsed(&verdicts);
    let lines = table.lines().map(|line| match cells_of(line) {
        Some([code, says, tests, _, note]) => {
            format!("| {code} | {says} | {tests} | {} | {note} |\n", told(tests, &verdicts))
        }
        None => format!("{line}\n"),
    });
    let blessed: String = lines.collect();
    if blessed != table {
        std::fs::write(root.join(TABLE), blessed).context(TABLE)?;
    }
    Ok(())
}

fn read(root: &Path) -> Result<(String, String)> {
    let read = |path: &'static str| std::fs::read_to_string(root.join(path)).context(path);
    Ok((read(TABLE)?, read(VERDICTS)?))
}

fn parsed(verdicts: &str) -> Verdicts<'_> {
    let lines = verdicts.lines().filter_map(|line| line.split_once('\t'));
    lines.map(|(rule, rest)| (rule, rest.split_once('\t').unwrap_or((rest, "")))).collect()
}

/// A line of the table as its five cells.
fn cells_of(line: &str) -> Option<[&str; 5]> {
    if !line.starts_with("| ") || line.starts_with("| code |") {
        return None;
    }
    let cells: Vec<&str> = line.strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim).collect();
    cells.try_into().ok()
}

/// The names of a cell of tests.
fn names(tests: &str) -> impl Iterator<Item = &str> {
    tests.split('`').skip(1).step_by(2)
}

/// What HBase said to those of the tests that were asked of it.
fn told(tests: &str, verdicts: &Verdicts<'_>) -> String {
    let asked: Vec<_> = names(tests).filter_map(|name| verdicts.get(name).map(|verdict| (name, *verdict))).collect();
    let others: Vec<_> = asked.iter().filter(|(_, (word, _))| *word != "passes").collect();
    let reasons: Vec<_> = others
        .iter()
        .map(
            |(name, (word, why))| {
                if asked.len() == 1 { format!("{word}: {why}") } else { format!("`{name}` {word}: {why}") }
            },
        )
        .collect();
    match (asked.len(), others.len()) {
        (0, _) => "not asked".to_owned(),
        (_, 0) => "passes".to_owned(),
        (all, other) if all == other => reasons.join("; "),
        _ => format!("passes, but {}", reasons.join("; ")),
    }
}

/// Checks the table against the codes, the verdicts and the sources.
pub(super) fn check(root: &Path, files: &[String]) -> Result<Vec<String>> {
    let (table, verdicts) = read(root)?;
    let mut functions = BTreeSet::new();
    for file in files.iter().filter(|file| Path::new(file).extension().is_some_and(|end| end == "rs")) {
        let Ok(text) = std::fs::read_to_string(root.join(file)) else { continue };
        functions.extend(text.lines().filter_map(function_of).map(str::to_owned));
    }
    Ok(faults(&table, &parsed(&verdicts), &|name| functions.contains(name)))
}

/// The name of the function that a line begins, if it does.
fn function_of(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let rest = line.strip_prefix("pub ").unwrap_or(line).strip_prefix("fn ")?;
    rest.split_once('(').map(|(name, _)| name)
}

fn faults(table: &str, verdicts: &Verdicts<'_>, is_there: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut faults = Vec::new();
    let mut codes: Vec<&str> = Vec::new();
    for line in table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| code |")) {
        let Some([code, _, tests, hbase, note]) = cells_of(line) else {
            faults.push(format!("{TABLE}: five columns are needed: {line}"));
            continue;
        };
        codes.push(code);
        let wanted = told(tests, verdicts);
        if hbase != wanted {
            faults.push(format!("{TABLE}: {code}: HBase's recorded verdict is {wanted:?}; take it in by tidy --bless"));
        }
        let tests: Vec<&str> = names(tests).collect();
        for gone in tests.iter().filter(|name| !is_there(name)) {
            faults.push(format!("{TABLE}: {code} names the test {gone}, which there is not"));
        }
        if tests.is_empty() && !EXCUSES.iter().any(|excuse| note.contains(excuse)) {
            faults.push(format!("{TABLE}: {code} has no test, and its note does not say why"));
        }
    }
    for (family, numbers) in CODES {
        for code in numbers.iter().map(|number| format!("{family}-{number}")) {
            match codes.iter().filter(|told| **told == code).count() {
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
        let verdicts = parsed("# x\nthere\tdiffers\tfor a reason");
        let told = |row: &str| faults(row, &verdicts, &|name| name == "there").first().cloned().unwrap_or_default();
        assert!(told("| S-MAP-1 | w | `gone` | not asked | |").contains("gone"));
        assert!(told("| S-MAP-1 | w | — | not asked | |").contains("no test"));
        assert!(told("| S-MAP-1 | w | `there` |").contains("five columns"));
        assert!(told("| S-MAP-1 | w | `there` | passes | |").contains("differs: for a reason"));
        let others = told("| S-MAP-1 | w | `there` | differs: for a reason | |");
        assert!(others.contains("S-MAP-3 is there 0 times"), "{others}");
        assert!(told("| S-MAP-1 | w | — | not asked | not supported: no |").contains("S-MAP-3"));
    }

    #[test]
    fn a_row_tells_what_hbase_said_to_each_of_its_tests() {
        let verdicts = parsed("a\tpasses\nb\tno answer\twhy");
        let told = |tests: &str| told(tests, &verdicts);
        assert_eq!([told("—"), told("`none`"), told("`a`, `none`")], ["not asked", "not asked", "passes"]);
        assert_eq!([told("`a`, `b`"), told("`b`")], ["passes, but `b` no answer: why", "no answer: why"]);
    }

    #[test]
    fn functions_are_found_by_their_lines() {
        assert_eq!(function_of("    pub fn s_map_1(x: u8)"), Some("s_map_1"));
        assert_eq!(function_of("let fn_ = 1;"), None);
    }
}
