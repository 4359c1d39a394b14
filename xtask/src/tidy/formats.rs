//! A format document and the module that implements it change together: the document holds the module's hash.
//!
//! In a document: `<!-- module engine/src/wal/format.rs sha256 HEX -->`, one line a module.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

const OPEN: &str = "<!-- module ";

/// Lists the modules that changed without their document, and documents that name no module.
pub(super) fn check(root: &Path) -> Result<Vec<String>> {
    let mut broken = Vec::new();
    for document in documents(root)? {
        let text = std::fs::read_to_string(&document)?;
        let name = document.strip_prefix(root).unwrap_or(&document).display().to_string();
        if !text.lines().any(|line| line.starts_with(OPEN)) && !name.ends_with("README.md") {
            broken.push(format!("{name}: names no module"));
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
