//! The page for operators names numbers that the daemon tells.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};

const PAGE: &str = "docs/operations.md";

/// What the names begin with.
const PREFIX: &str = "basalt_";

/// What the lines of a histogram have behind its name.
const PARTS: &[&str] = &["_bucket", "_sum", "_count"];

/// Lists names that no source of the program has.
pub(super) fn check(root: &Path, files: &[String]) -> Result<Vec<String>> {
    let page = std::fs::read_to_string(root.join(PAGE)).context(PAGE)?;
    let sources = files.iter().filter(|file| file.starts_with("src/"));
    let known: Vec<String> = sources.filter_map(|file| std::fs::read_to_string(root.join(file)).ok()).collect();
    Ok(faults(&page, &known.iter().flat_map(|text| names(text)).collect()))
}

fn faults(page: &str, known: &BTreeSet<&str>) -> Vec<String> {
    let named: BTreeSet<&str> = names(page).collect();
    let is_part = |name: &str| {
        let mut families = PARTS.iter().filter_map(|part| name.strip_suffix(part));
        families.any(|family| known.contains(family))
    };
    let unknown = named.difference(known).filter(|name| !is_part(name));
    unknown.map(|name| format!("{PAGE}: {name} is no number of the daemon's")).collect()
}

fn names(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with(PREFIX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_nobody_tells_is_told() {
        let known = BTreeSet::from(["basalt_files"]);
        assert!(faults("`rate(basalt_files[5m])` of basalt, basalt_files_bucket", &known).is_empty());
        assert_eq!(faults("basalt_file", &known), ["docs/operations.md: basalt_file is no number of the daemon's"]);
    }
}
