//! The records of decisions: each has a status and stands in the list, and 0001 names the crates that the workspace has.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};

const FOLDER: &str = "docs/decisions/";
const LIST: &str = "docs/decisions/README.md";
const CRATES: &str = "docs/decisions/0001-dependencies.md";

/// What a status begins with.
const STATES: &[&str] = &["accepted", "superseded by ", "superseded in part by "];

/// Lists records that are wrong or missing in the list, and crates that are in one place only.
pub(super) fn check(root: &Path, files: &[String]) -> Result<Vec<String>> {
    let read = |path: &str| std::fs::read_to_string(root.join(path)).with_context(|| path.to_owned());
    let list = read(LIST)?;
    let mut broken = Vec::new();
    let mut records = BTreeSet::new();
    for path in files.iter().filter(|path| path.starts_with(FOLDER) && *path != LIST) {
        let name = path.trim_start_matches(FOLDER);
        records.insert(name);
        broken.extend(fault(name, &read(path)?, &list).map(|what| format!("{path}: {what}")));
    }
    let listed = list.lines().filter_map(|line| line.split_once("](")?.1.split_once(')'));
    let gone = listed.map(|(name, _)| name).filter(|name| !records.contains(name));
    broken.extend(gone.map(|name| format!("{LIST}: there is no {name}")));
    broken.extend(crates(&read("Cargo.toml")?, &read(CRATES)?));
    Ok(broken)
}

/// What is wrong with a record.
fn fault(name: &str, text: &str, list: &str) -> Option<String> {
    let mut lines = text.lines();
    let number = name.split('-').next().unwrap_or_default();
    let title = lines.next()?.strip_prefix("# ").and_then(|line| line.strip_prefix(number)).map(str::trim);
    let Some(title) = title else { return Some(format!("begins with no `# {number} TITLE`")) };
    let status = lines.nth(1).and_then(|line| line.strip_prefix("Status: "));
    let Some(status) = status.filter(|status| STATES.iter().any(|state| status.starts_with(state))) else {
        return Some(format!("has no `Status:` on its third line that is one of: {}", STATES.join(", ")));
    };
    let row = format!("| [{number}]({name}) | {title} | {status} |");
    let is_listed = list.lines().any(|line| line == row);
    (!is_listed).then(|| format!("{LIST} has no line: {row}"))
}

/// Crates of the workspace that the record does not name, and crates of its table that are none.
fn crates(manifest: &str, record: &str) -> Vec<String> {
    let section = manifest.lines().skip_while(|line| *line != "[workspace.dependencies]").skip(1);
    let section = section.take_while(|line| !line.starts_with('['));
    let built: BTreeSet<&str> = section
        .filter(|line| !line.contains("path = "))
        .filter_map(|line| line.split_once(" = "))
        .map(|(name, _)| name)
        .collect();
    let named: BTreeSet<&str> = record.split('`').skip(1).step_by(2).collect();
    let cells = record.lines().filter(|line| line.starts_with("| ")).filter_map(|line| line.split(" | ").nth(1));
    let tabled: BTreeSet<&str> = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    let missing = built.difference(&named).map(|name| format!("{CRATES}: does not say what {name} is for"));
    let of_crates = tabled
        .difference(&built)
        .filter(|name| name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c)));
    missing.chain(of_crates.map(|name| format!("{CRATES}: {name} is no dependency"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_without_a_status_or_a_line_in_the_list_is_told() {
        let list = "| [0001](0001-a.md) | A thing | accepted |\n";
        let told = |name: &str, text: &str| fault(name, text, list);
        assert_eq!(told("0001-a.md", "# 0001 A thing\n\nStatus: accepted\n"), None);
        assert!(told("0001-a.md", "# 0001 A thing\n\n**Context.**\n").unwrap().contains("Status:"));
        assert!(told("0001-a.md", "# 0002 A thing\n\nStatus: accepted\n").unwrap().contains("# 0001"));
        assert!(told("0001-a.md", "# 0001 Another\n\nStatus: accepted\n").unwrap().contains("no line"));
        assert!(told("0001-a.md", "# 0001 A thing\n\nStatus: superseded by 0002\n").unwrap().contains("no line"));
    }

    #[test]
    fn crates_and_their_record_go_together() {
        let manifest = "[workspace.dependencies]\nours = { path = \"x\" }\na = \"1\"\nb = { version = \"2\" }\n\n[profile.dev]\nc = 1\n";
        assert!(crates(manifest, "`a` is given.\n| for | crate | why |\n| x | `b`, its part | `d` |\n").is_empty());
        let told = crates(manifest, "| x | `a`, `gone` | `d` |\n");
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].contains("what b is for") && told[1].contains("gone is no"), "{told:?}");
    }
}
