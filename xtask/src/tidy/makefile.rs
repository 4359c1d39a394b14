//! Every target of the Makefile is in `.PHONY`: a folder of a target's name (`torture`, `fuzz`) makes `make` do nothing otherwise.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};

const FILE: &str = "Makefile";

/// Lists targets that are not in `.PHONY`, and names there that are no target.
pub(super) fn check(root: &Path) -> Result<Vec<String>> {
    Ok(faults(&std::fs::read_to_string(root.join(FILE)).context(FILE)?))
}

fn faults(text: &str) -> Vec<String> {
    let (mut targets, mut phony) = (BTreeSet::new(), BTreeSet::new());
    for (names, uses) in text.lines().filter_map(rule) {
        if names == ".PHONY" {
            phony.extend(uses.split_whitespace());
        } else {
            targets.extend(names.split_whitespace());
        }
    }
    let missing = targets.difference(&phony).map(|name| format!("{FILE}: {name} is not in .PHONY"));
    let extra = phony.difference(&targets).map(|name| format!("{FILE}: .PHONY has {name}, which is no target"));
    missing.chain(extra).collect()
}

/// A rule's targets and what they use: a line that begins with a name, and is neither a recipe, a comment nor a variable.
fn rule(line: &str) -> Option<(&str, &str)> {
    let (names, uses) = line.split_once(':')?;
    let is_rule = !names.contains(['=', '#', '?', '\t']) && !uses.starts_with('=');
    is_rule.then_some((names.trim(), uses))
}

#[cfg(test)]
mod tests {
    use super::faults;

    #[test]
    fn a_target_that_a_folder_would_hide_is_told() {
        let text =
            "# make fuzz: all\nCARGO := cargo\nA ?= b:c\n.PHONY: run gone\n\nrun:\n\techo a:b\n\nfuzz:\n\tcd fuzz\n";
        assert_eq!(faults(text), ["Makefile: fuzz is not in .PHONY", "Makefile: .PHONY has gone, which is no target"]);
    }
}
