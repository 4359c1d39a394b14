//! The rules that no compiler knows (CONTRIBUTING.md, marked ⚙): the crate graph, file names and sizes, words that
//! must not stand in the code, where `unsafe` is, format documents that change together with their module, a test behind
//! every line of docs/compatibility.md and docs/data-model.md, records of decisions and of crates, numbers of `/metrics`
//! and their tables on the page for operators, links between documents, and the Makefile's targets.

mod compatibility;
mod data_model;
mod decisions;
mod formats;
mod graph;
mod links;
mod makefile;
mod metrics;
mod text;
mod unsafe_code;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Checks every rule and lists all that is broken. With `bless`, takes the format modules' hashes into their
/// documents, and HBase's recorded verdicts into the data model's.
pub(crate) fn run(bless: bool) -> Result<()> {
    println!("== tidy");
    let root = crate::workspace();
    if bless {
        formats::bless(&root)?;
        data_model::bless(&root)?;
    }
    let files = tracked(&root)?;
    let mut broken = graph::check(&root)?;
    broken.extend(decisions::check(&root, &files)?);
    broken.extend(links::check(&root, &files)?);
    broken.extend(makefile::check(&root)?);
    broken.extend(metrics::check(&root, &files)?);
    broken.extend(text::check(&root, &files)?);
    broken.extend(unsafe_code::check(&root, &files)?);
    broken.extend(formats::check(&root)?);
    broken.extend(compatibility::check(&root)?);
    broken.extend(data_model::check(&root, &files)?);
    for line in &broken {
        println!("tidy: {line}");
    }
    ensure!(broken.is_empty(), "{} rule(s) broken", broken.len());
    Ok(())
}

/// What git tracks, relative to the root.
fn tracked(root: &Path) -> Result<Vec<String>> {
    let output = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output().context("cannot run git")?;
    ensure!(output.status.success(), "git ls-files failed: is this a clone?");
    let list = String::from_utf8(output.stdout).context("a tracked file's name is not UTF-8")?;
    Ok(list.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect())
}
