//! The shell's scripts of `tests/shell` on a real HBase: its cells, printed by our shell, are what stands beside them.
//!
//! `wrong-…` scripts end with an error in both; its words are each store's own.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use basalt_shell::{Failed, Next, Shell, Style};
use basalt_store::conformance::Fixture;
use basalt_store::{Store, Timestamp};

use super::fixture::{HBaseFixture, Reopening};

/// 2023-11-14: what HBase stamps with it is printed as a date of this millennium, which the scripts' outputs leave out.
const NOW: Timestamp = Timestamp(1_700_000_000_000);

/// Runs the scripts whose names hold one of `names`, or all.
pub(super) fn run(names: &[String]) -> Result<()> {
    let fixture = HBaseFixture::start("scripts", Reopening::Regions)?;
    println!("the shell's scripts on HBase {}", fixture.version);
    let (mut same, mut other) = (0_usize, 0_usize);
    for script in scripts()? {
        let name = script.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if !names.is_empty() && !names.iter().any(|wanted| name.contains(wanted.as_str())) {
            continue;
        }
        fixture.empty()?;
        fixture.clock().set(NOW);
        let difference = check(&script, name.starts_with("wrong-"), fixture.store())?;
        println!("{name}: {}", difference.as_deref().unwrap_or("the same"));
        *(if difference.is_none() { &mut same } else { &mut other }) += 1;
    }
    println!("{same} scripts print the same, {other} do not");
    ensure!(other == 0, "{other} scripts print something else on HBase");
    Ok(())
}

fn scripts() -> Result<Vec<PathBuf>> {
    let folder = crate::workspace().join("tests/shell");
    let entries = std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut scripts: Vec<_> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    scripts.retain(|path| path.extension().is_some_and(|end| end == "hbase"));
    scripts.sort();
    Ok(scripts)
}

/// What differs from the output that is kept, if anything does.
fn check(script: &Path, is_wrong: bool, store: Arc<dyn Store>) -> Result<Option<String>> {
    let text = std::fs::read_to_string(script)?;
    let kept = std::fs::read_to_string(script.with_extension("out"))?;
    let mut out = Vec::new();
    let failed = play(&text, &mut Shell::new(store, &mut out, Style::default())).err();
    let printed = without_times(&String::from_utf8_lossy(&out));
    // The last line of a script that fails is the error.
    let kept_lines: Vec<&str> = kept.lines().filter(|line| !(is_wrong && line.starts_with("basalt: "))).collect();
    let printed_lines: Vec<&str> = printed.lines().collect();
    if failed.is_some() != is_wrong {
        return Ok(Some(failed.map_or_else(|| "no error".to_owned(), |error| format!("ended with: {error}"))));
    }
    if kept_lines == printed_lines {
        return Ok(None);
    }
    let mut told = String::new();
    for at in 0..kept_lines.len().max(printed_lines.len()) {
        let (ours, theirs) = (kept_lines.get(at), printed_lines.get(at));
        if ours != theirs {
            write!(told, "\n  line {}\n    ours  {ours:?}\n    HBase {theirs:?}", at + 1)?;
        }
    }
    Ok(Some(told))
}

fn play(text: &str, shell: &mut Shell<'_>) -> Result<(), Failed> {
    for line in text.lines() {
        if shell.feed(line.as_bytes())? == Next::End {
            break;
        }
    }
    shell.end()
}

/// The text with the times that a store gave written as `now`, as `tests/it/shell.rs` does it.
fn without_times(printed: &str) -> String {
    let mut parts = printed.split("timestamp=2");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(", ") {
            Some((_, rest)) => text.extend(["timestamp=now, ", rest]),
            None => text.push_str(part),
        }
    }
    text
}
