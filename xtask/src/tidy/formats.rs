//! A format document and the module that implements it change together: the document holds the module's hash.
//!
//! In a document: `<!-- module engine/src/wal/format.rs sha256 HEX -->`, one line a module. Its version stands in its title, and in the
//! table by which operators tell whether they can go back to an older program.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

const OPEN: &str = "<!-- module ";

/// Where the table of versions is.
const PAGE: &str = "docs/operations.md";

/// Lists the modules that changed without their document, documents that name no module, and those whose version no row of the
/// table has.
pub(super) fn check(root: &Path) -> Result<Vec<String>> {
    let mut broken = Vec::new();
    let page = std::fs::read_to_string(root.join(PAGE)).with_context(|| PAGE.to_owned())?;
    for document in documents(root)? {
        let text = std::fs::read_to_string(&document)?;
        let name = document.strip_prefix(root).unwrap_or(&document).display().to_string();
        if !text.lines().any(|line| line.starts_with(OPEN)) && !name.ends_with("README.md") {
            broken.push(format!("{name}: names no module"));
        }
        let file = document.file_name().unwrap_or_default().to_string_lossy();
        if version(&text).is_some_and(|version| !has_row(&page, &file, version)) {
            broken.push(format!("{PAGE}: no row links to formats/{file} and begins with the version in its title"));
        }
        for line in text.lines().filter(|line| line.starts_with(OPEN)) {
            if retake(root, line)? != line {
                broken.push(format!("{name}: out of step with its module; read both, then `cargo xtask tidy --bless`"));
            }
        }
    }
    Ok(broken)
}

/// Writes the modules' present hashes into the documents.
pub(super) fn bless(root: &Path) -> Result<()> {
    for document in documents(root)? {
        let text = std::fs::read_to_string(&document)?;
        let mut fresh = String::new();
        for line in text.lines() {
            let line = if line.starts_with(OPEN) { retake(root, line)? } else { line.to_owned() };
            writeln!(fresh, "{line}")?;
        }
        std::fs::write(&document, fresh)?;
    }
    Ok(())
}

/// The version in a document's title; that of the tables has none.
fn version(document: &str) -> Option<&str> {
    Some(document.lines().next()?.split_once(", version ")?.1)
}

/// Whether a table has the document's version, alone or before what else is to be said.
fn has_row(page: &str, file: &str, version: &str) -> bool {
    let link = format!("](formats/{file}) | ");
    let told = page.lines().filter(|line| line.starts_with('|')).filter_map(|line| Some(line.split_once(&link)?.1));
    told.map(|told| told.split([' ', ';']).next()).any(|told| told == Some(version))
}

/// The line as it should be now.
fn retake(root: &Path, line: &str) -> Result<String> {
    let module = line.trim_start_matches(OPEN).split_whitespace().next().context("a module line names no file")?;
    let bytes = std::fs::read(root.join(module)).with_context(|| format!("{module}, named in docs/formats"))?;
    let mut hex = String::new();
    for byte in Sha256::digest(&bytes) {
        write!(hex, "{byte:02x}")?;
    }
    Ok(format!("{OPEN}{module} sha256 {hex} -->"))
}

fn documents(root: &Path) -> Result<Vec<PathBuf>> {
    let folder = root.join("docs/formats");
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "md") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_tells_the_version_of_a_title() {
        assert_eq!(version("# SSTable, version 4\n\nversion 3"), Some("4"));
        assert_eq!(version("# The four tables of OpenTSDB 2.4"), None);
        let page = "| [log](formats/wal.md) | 3 | 1 to 3 |\n| [SSTable](formats/sstable.md) | 4; at times 3 | 1 to 4 |";
        assert!(has_row(page, "wal.md", "3") && has_row(page, "sstable.md", "4"));
        for (file, version) in [("wal.md", "4"), ("sstable.md", "3"), ("sstable.md", "44"), ("backup.md", "1")] {
            assert!(!has_row(page, file, version), "{file} {version}");
        }
    }
}
