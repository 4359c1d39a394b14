//! The crate graph of `cargo metadata` is the one that ARCHITECTURE.md draws.
//!
//! The drawing is the fenced block that begins with the line `crate -> uses`; each line below it is
//! `name -> name name`, of our own crates and their ordinary dependencies only.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

type Graph = BTreeMap<String, BTreeSet<String>>;

/// Lists every edge that is in one graph and not in the other.
pub(super) fn check(root: &Path) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(root.join("ARCHITECTURE.md")).context("ARCHITECTURE.md cannot be read")?;
    let drawn = parse(&text);
    ensure!(!drawn.is_empty(), "ARCHITECTURE.md has no block that begins with `crate -> uses`");
    Ok(differences(&drawn, &built(root)?))
}

fn parse(text: &str) -> Graph {
    text.lines()
        .skip_while(|line| *line != "crate -> uses")
        .skip(1)
        .take_while(|line| !line.starts_with("```"))
        .filter_map(|line| line.split_once("->"))
        .map(|(name, uses)| (name.trim().to_owned(), uses.split_whitespace().map(str::to_owned).collect()))
        .collect()
}

fn built(root: &Path) -> Result<Graph> {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root)
        .output()
        .context("cannot run cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let name = |value: &Value| value["name"].as_str().unwrap_or_default().to_owned();
    let ours: BTreeSet<String> = packages.iter().map(name).collect();
    Ok(packages
        .iter()
        .map(|package| {
            let uses = package["dependencies"].as_array().into_iter().flatten();
            let uses = uses.filter(|d| d["kind"].is_null()).map(name).filter(|d| ours.contains(d));
            (short(&name(package)), uses.map(|d| short(&d)).collect())
        })
        .collect())
}

/// `basalt-store` is drawn as `store`, the program as `src`.
fn short(package: &str) -> String {
    match package.strip_prefix("basalt-") {
        Some("tsdb") => "src".to_owned(),
        Some(library) => library.to_owned(),
        None => package.to_owned(),
    }
}

fn differences(drawn: &Graph, built: &Graph) -> Vec<String> {
    let edges = |graph: &Graph| -> BTreeSet<(String, String)> {
        let pairs = graph.iter().flat_map(|(from, uses)| uses.iter().map(|to| (from.clone(), to.clone())));
        pairs.chain(graph.keys().map(|name| (name.clone(), String::new()))).collect()
    };
    let (drawn, built) = (edges(drawn), edges(built));
    let line = |(from, to): &(String, String), text: &str| format!("ARCHITECTURE.md: {from} -> {to} {text}");
    let missing = built.difference(&drawn).map(|edge| line(edge, "is built but not drawn"));
    let extra = drawn.difference(&built).map(|edge| line(edge, "is drawn but not built"));
    missing.chain(extra).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_too_many_is_told() {
        let drawn = parse("```text\ncrate -> uses\nstore ->\nschema -> store\n```\nafter -> that\n");
        let built = parse("crate -> uses\nstore -> schema\nschema -> store\n");
        assert!(differences(&drawn, &drawn).is_empty());
        assert_eq!(differences(&drawn, &built), ["ARCHITECTURE.md: store -> schema is built but not drawn"]);
    }
}
