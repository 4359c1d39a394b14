//! Links between the documents lead to files that are there.

use std::path::Path;

use anyhow::Result;

/// Lists links of tracked documents to files that are not there; links elsewhere and within a page are not looked at.
pub(super) fn check(root: &Path, files: &[String]) -> Result<Vec<String>> {
    let mut broken = Vec::new();
    for file in files.iter().filter(|file| Path::new(file).extension().is_some_and(|end| end == "md")) {
        let folder = root.join(file).parent().map_or_else(|| root.to_owned(), Path::to_owned);
        let text = std::fs::read_to_string(root.join(file))?;
        let gone = links(&text).into_iter().filter(|link| !folder.join(link).exists());
        broken.extend(gone.map(|link| format!("{file}: links to {link}, which is not there")));
    }
    Ok(broken)
}

/// What the links of a text name, without places within pages; code is no link.
fn links(text: &str) -> Vec<String> {
    let plain: String = text.split('`').step_by(2).collect();
    let targets = plain.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let paths = targets.map(|(target, _)| target.split('#').next().unwrap_or_default());
    paths.filter(|path| !path.is_empty() && !path.contains("://")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::links;

    #[test]
    fn links_to_files_are_found() {
        let text = "[a](b.md), [`c`](d/e.md#f) and [g](#h), [i](https://j.k/l), `x[0](y)`\n[m](../n)";
        assert_eq!(links(text), ["b.md", "d/e.md", "../n"]);
    }
}
