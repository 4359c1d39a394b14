//! Rules on names, sizes and words of the tracked files.

use std::path::Path;

use anyhow::{Context, Result};

/// Lines of code a file may have, its tests apart.
const CODE_LINES_MAX: usize = 500;

/// Lines ARCHITECTURE.md may have.
const ARCHITECTURE_LINES_MAX: usize = 300;

/// File names that say nothing about what is inside.
const VAGUE_NAMES: &[&str] = &["mod", "utils", "util", "common", "helpers", "internal", "misc", "manager"];

/// Columns a line of a comment may have; rustfmt holds code alone to its width.
const COMMENT_COLUMNS_MAX: usize = 160;

/// Words that speak of what no reader has. Split so that this file does not name what it looks for.
const FOREIGN_WORDS: &[&str] = &[concat!("Score", "card"), concat!("score", "card")];

/// Codec modules of `schema/`: bytes in, types out.
const PURE_MODULES: &[&str] = &[
    "annotation",
    "append",
    "base_time",
    "cell",
    "compacted",
    "fold",
    "hex",
    "histogram",
    "inline",
    "meta_json",
    "names",
    "point",
    "point_time",
    "qualifier",
    "remainder",
    "rollup",
    "row",
    "row_fsck",
    "row_key",
    "salt",
    "tsb1",
    "tsuid",
    "uid",
    "value",
];

/// Words that a pure module has no use for.
const IMPURE_WORDS: &[&str] = &["dyn Store", "Clock", "Mutex", "RwLock", "std::fs", "std::net"];

/// Checks every tracked file.
pub(super) fn check(root: &Path, files: &[String]) -> Result<Vec<String>> {
    let mut broken = gone(files);
    for file in files {
        let path = Path::new(file);
        let has_end = |end: &str| path.extension().is_some_and(|e| e == end);
        let is_rust = has_end("rs");
        if !is_rust && !has_end("md") {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(root.join(path)) else { continue };
        let mut told = words(&text);
        if is_rust {
            let stem = path.file_stem().and_then(|s| s.to_str()).context("a file has no name")?;
            told.extend(rust(file, stem, &text));
        } else if file == "ARCHITECTURE.md" && text.lines().count() > ARCHITECTURE_LINES_MAX {
            told.push(format!("over {ARCHITECTURE_LINES_MAX} lines"));
        }
        broken.extend(told.into_iter().map(|what| format!("{file}: {what}")));
    }
    Ok(broken)
}

/// Pure modules that are named above and not there.
fn gone(files: &[String]) -> Vec<String> {
    let is_there = |module: &&&str| files.iter().any(|file| *file == format!("schema/src/{module}.rs"));
    let gone = PURE_MODULES.iter().filter(|module| !is_there(module));
    gone.map(|module| format!("schema/src/{module}.rs: tidy names it as a codec, and it is not there")).collect()
}

fn words(text: &str) -> Vec<String> {
    let found = FOREIGN_WORDS.iter().filter(|word| text.contains(**word));
    found.map(|word| format!("has `{word}`, of a document that is not here")).collect()
}

fn rust(file: &str, stem: &str, text: &str) -> Vec<String> {
    let mut broken = Vec::new();
    if VAGUE_NAMES.contains(&stem) {
        broken.push("a file is named for what it is, not where it did not fit".into());
    }
    if !text.starts_with("//!") && !text.starts_with("#!") && stem != "tests" {
        broken.push("begins with no `//!` that says what it is".into());
    }
    let code = production(text);
    let lines = code.lines().filter(|line| is_code(line)).count();
    if lines > CODE_LINES_MAX && !is_test(file) {
        broken.push(format!("{lines} lines of code, over {CODE_LINES_MAX}"));
    }
    // Split so that this file does not name what it looks for.
    for word in [concat!("doc(", "hidden)"), concat!("TO", "DO"), concat!("FIX", "ME")] {
        if text.contains(word) {
            broken.push(format!("has `{word}`"));
        }
    }
    let wide = text.lines().enumerate().filter(|(_, line)| is_wide_comment(line));
    broken.extend(wide.map(|(at, _)| format!("line {}: a comment of over {COMMENT_COLUMNS_MAX} columns", at + 1)));
    if is_pure(file) {
        let found = IMPURE_WORDS.iter().filter(|word| code.contains(**word));
        broken.extend(found.map(|word| format!("is a codec and knows `{word}`")));
    }
    broken
}

/// The text above the inline tests.
pub(super) fn production(text: &str) -> &str {
    text.split_once("#[cfg(test)]\nmod tests {").map_or(text, |(code, _)| code)
}

fn is_code(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with("//")
}

fn is_wide_comment(line: &str) -> bool {
    line.trim_start().starts_with("//") && line.chars().count() > COMMENT_COLUMNS_MAX
}

pub(super) fn is_test(file: &str) -> bool {
    file.starts_with("tests/") || file.ends_with("/tests.rs") || file.contains("/tests/")
}

fn is_pure(file: &str) -> bool {
    let module = file.strip_prefix("schema/src/").and_then(|rest| rest.split(['/', '.']).next());
    module.is_some_and(|module| PURE_MODULES.contains(&module)) && !is_test(file)
}

#[cfg(test)]
mod tests {
    use super::{PURE_MODULES, gone, rust, words};

    #[test]
    fn broken_rules_are_told() {
        let check = |file: &str, stem: &str, text: &str, count: usize| {
            assert_eq!(rust(file, stem, text).len(), count, "{file}: {text:.60}");
        };
        check("store/src/cell.rs", "cell", "//! Cells.\n", 0);
        check("store/src/mod.rs", "mod", "//! Cells.\n", 1);
        check("store/src/cell.rs", "cell", "use x;\n", 1);
        check("schema/src/salt.rs", "salt", "//! Salt.\nfn f(s: &dyn Store) {}\n", 1);
        check("store/src/cell.rs", "cell", &("//! Cells.\n".to_owned() + &"x;\n".repeat(501)), 1);
        check("store/src/cell.rs", "cell", &format!("//! {}\n", "x".repeat(157)), 1);
        check("store/src/cell.rs", "cell", &format!("//! {}\n", "x".repeat(156)), 0);
        check("store/src/cell/tests.rs", "tests", &("//! Cells.\n".to_owned() + &"x;\n".repeat(501)), 0);
    }
    #[test]
    fn a_codec_that_is_gone_is_told() {
        let mut files: Vec<String> = PURE_MODULES.iter().map(|module| format!("schema/src/{module}.rs")).collect();
        assert!(gone(&files).is_empty());
        files.pop();
        assert_eq!(gone(&files), ["schema/src/value.rs: tidy names it as a codec, and it is not there"]);
    }

    #[test]
    fn a_document_that_nobody_has_is_not_spoken_of() {
        assert_eq!(words(concat!("Score", "card row 3.")).len(), 1);
        assert!(words("A row.").is_empty());
    }
}
