//! The numbers of `/metrics` and the tables of them on the page for operators: each of the one is in the other, and what a
//! page says elsewhere of a number names one that there is.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};

use super::text;

/// Where the tables are.
const PAGE: &str = "docs/operations.md";

/// What heads a table of numbers.
const HEAD: &str = "| name | type | meaning |";

const TYPES: &[&str] = &["counter", "gauge", "histogram"];

/// What our numbers begin with, and those that go by the names of Prometheus' own clients.
const PREFIXES: &[&str] = &[OURS, "process_"];
const OURS: &str = "basalt_";

/// What the lines of a histogram have behind its name.
const PARTS: &[&str] = &["_bucket", "_sum", "_count"];

/// A row of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Row<'a> {
    name: &'a str,
    kind: &'a str,
    meaning: &'a str,
}

/// Lists numbers that the program tells and no table has, rows of numbers that no source has, and words that look like a
/// number and are none.
pub(super) fn check(root: &Path, files: &[String]) -> Result<Vec<String>> {
    let read = |file: &String| std::fs::read_to_string(root.join(file)).with_context(|| file.clone());
    let is_a = |file: &String, end: &str| Path::new(file).extension().is_some_and(|e| e == end);
    let is_source = |file: &&String| file.starts_with("src/") && is_a(file, "rs") && !text::is_test(file);
    let sources: Vec<String> = files.iter().filter(is_source).map(read).collect::<Result<_>>()?;
    let crates: BTreeSet<String> =
        files.iter().filter_map(|file| Some(format!("{OURS}{}", file.strip_suffix("/Cargo.toml")?))).collect();
    let told = sources.iter().flat_map(|source| told(text::production(source)));
    let told: BTreeSet<&str> = told.filter(|name| !crates.contains(*name)).collect();
    let page = read(&PAGE.to_owned())?;
    let rows = rows(&page);
    let mut broken = faults(&rows, &told);
    for file in files.iter().filter(|file| is_a(file, "md")) {
        let page = read(file)?;
        let unknown = names(&page).filter(|name| !crates.contains(*name) && !is_known(name, &rows));
        broken.extend(unknown.map(|name| format!("{file}: {name} is no number of the daemon's")));
    }
    Ok(broken)
}

/// Where the tables and what is told differ.
fn faults(rows: &[Row<'_>], told: &BTreeSet<&str>) -> Vec<String> {
    let named: BTreeSet<&str> = rows.iter().map(|row| row.name).collect();
    let mut faults: Vec<String> =
        told.difference(&named).map(|name| format!("{PAGE}: no table has {name}, which /metrics tells")).collect();
    faults.extend(named.difference(told).map(|name| format!("{PAGE}: no source of the program tells {name}")));
    let doubled = (1..).zip(rows).filter(|(next, row)| rows.iter().skip(*next).any(|other| other.name == row.name));
    faults.extend(doubled.map(|(_, row)| format!("{PAGE}: {} has two rows", row.name)));
    let bare = rows.iter().filter(|row| !TYPES.contains(&row.kind) || row.meaning.is_empty());
    faults.extend(bare.map(|row| format!("{PAGE}: {} has no type of {TYPES:?}, or no meaning", row.name)));
    faults
}

/// Whether a word is a number, a line of a histogram, or by an `_` at its end what several begin with.
fn is_known(word: &str, rows: &[Row<'_>]) -> bool {
    rows.iter().any(|row| {
        let part = word.strip_prefix(row.name);
        part == Some("")
            || row.kind == "histogram" && part.is_some_and(|part| PARTS.contains(&part))
            || word.ends_with('_') && row.name.starts_with(word)
    })
}

/// The rows of the tables.
fn rows(page: &str) -> Vec<Row<'_>> {
    let mut is_inside = false;
    let lines = page.lines().filter(|line| {
        let is_row = is_inside && line.starts_with("| `");
        is_inside = line.starts_with('|') && (is_inside || *line == HEAD);
        is_row
    });
    let cells = |line| {
        let mut cells = str::split(line, '|').map(str::trim).skip(1);
        Some(Row { name: cells.next()?.trim_matches('`'), kind: cells.next()?, meaning: cells.next()? })
    };
    lines.filter_map(cells).collect()
}

/// The numbers that a source tells: literals that are a name and nothing else.
fn told(code: &str) -> impl Iterator<Item = &str> {
    let named = code.split('"').filter(|text| PREFIXES.iter().any(|prefix| text.starts_with(prefix)));
    named.filter(|text| text.bytes().all(|letter| letter.is_ascii_alphanumeric() || letter == b'_'))
}

/// Words that look like a number of ours.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with(OURS))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLES: &str = "| when | means |\n|---|---|\n| `basalt_other` above 1 | much |\n\n\
        | name | type | meaning |\n|---|---|---|\n| `basalt_files` | gauge | SSTables |\n\
        | `basalt_put_seconds` | histogram | puts |\n\n| `basalt_behind` | gauge | it |\n";

    #[test]
    fn a_number_is_told_and_in_a_table_or_neither() {
        let rows = rows(TABLES);
        let names: Vec<&str> = rows.iter().map(|row| row.name).collect();
        assert_eq!(names, ["basalt_files", "basalt_put_seconds"]);
        let check = |told: &[&str], expected: &[&str]| {
            let faults = faults(&rows, &told.iter().copied().collect());
            let faults: Vec<_> =
                faults.iter().map(|fault| fault.strip_prefix("docs/operations.md: ").unwrap()).collect();
            assert_eq!(faults, expected);
        };
        check(&["basalt_files", "basalt_put_seconds"], &[]);
        check(&["basalt_files"], &["no source of the program tells basalt_put_seconds"]);
        check(
            &["basalt_files", "basalt_put_seconds", "basalt_wal_bytes"],
            &["no table has basalt_wal_bytes, which /metrics tells"],
        );
    }

    #[test]
    fn a_row_stands_once_and_has_a_type_and_a_meaning() {
        let told = BTreeSet::from(["basalt_files"]);
        let check = |lines: &str, count| {
            let page = format!("{HEAD}\n|---|---|---|\n{lines}");
            assert_eq!(faults(&rows(&page), &told).len(), count, "{lines}");
        };
        check("| `basalt_files` | gauge | SSTables |\n", 0);
        check("| `basalt_files` | gauge | SSTables |\n| `basalt_files` | gauge | files |\n", 1);
        check("| `basalt_files` | summary | SSTables |\n", 1);
        check("| `basalt_files` | gauge | |\n", 1);
    }

    #[test]
    fn a_word_that_looks_like_a_number_is_one() {
        let rows = rows(TABLES);
        let check = |text: &str, unknown: &[&str]| {
            let found: Vec<&str> = names(text).filter(|name| !is_known(name, &rows)).collect();
            assert_eq!(found, unknown, "{text}");
        };
        check("`rate(basalt_files[5m])` of basalt, `basalt_put_seconds_bucket{le=\"1\"}`, `basalt_put_*`", &[]);
        check(
            "`basalt_file`, `basalt_files_count`, `basalt_wal_*`",
            &["basalt_file", "basalt_files_count", "basalt_wal_"],
        );
    }

    #[test]
    fn what_a_source_tells_is_a_literal_of_its_own() {
        let source =
            r#"head("basalt_files", "gauge", "SSTables."); line("process_x_total {}"); use basalt_store::Cell;"#;
        assert_eq!(told(source).collect::<Vec<_>>(), ["basalt_files"]);
    }
}
