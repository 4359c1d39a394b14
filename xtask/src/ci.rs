//! The gate. Each step prints its name, runs as a child, and ends the gate when it fails; the tests are counted
//! over all binaries, and the count is the last line.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::tidy;

/// What a run of `cargo test` came to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    passed: u64,
    failed: u64,
    ignored: u64,
}

/// Runs every step in turn.
pub(crate) fn run() -> Result<()> {
    step("fmt", &["fmt", "--all", "--check"], &[])?;
    step("clippy", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"], &[])?;
    step("doc", &["doc", "--workspace", "--no-deps"], &[("RUSTDOCFLAGS", "-D warnings")])?;
    tidy::run(false)?;
    let (count, ok) = tests()?;
    println!("{} passed, {} failed, {} skipped", count.passed, count.failed, count.ignored);
    ensure!(ok && count.failed == 0, "tests failed");
    Ok(())
}

fn step(name: &str, args: &[&str], env: &[(&str, &str)]) -> Result<()> {
    println!("== {name}");
    let begun = Instant::now();
    let status = Command::new(cargo())
        .args(args)
        .envs(env.iter().copied())
        .status()
        .with_context(|| format!("cannot start cargo for {name}"))?;
    ensure!(status.success(), "{name} failed: cargo {}", args.join(" "));
    println!("== {name} took {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// Runs all tests, passing their output through, and adds up the closing line of each binary.
fn tests() -> Result<(Count, bool)> {
    println!("== test");
    let begun = Instant::now();
    let mut child = Command::new(cargo())
        .args(["test", "--workspace", "--no-fail-fast"])
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start cargo test")?;
    let output = child.stdout.take().context("cargo test has no output")?;
    let mut count = Count::default();
    for line in BufReader::new(output).lines() {
        let line = line?;
        println!("{line}");
        count.add(&line);
    }
    let ok = child.wait()?.success();
    println!("== test took {:.0} s", begun.elapsed().as_secs_f64());
    Ok((count, ok))
}

impl Count {
    /// Adds a line such as `test result: ok. 10 passed; 0 failed; 1 ignored; …`; other lines add nothing.
    fn add(&mut self, line: &str) {
        let Some((_, result)) = line.split_once("test result:") else { return };
        let figure = |word: &str| -> u64 {
            let words: Vec<&str> = result.split([' ', ';', '.']).filter(|w| !w.is_empty()).collect();
            words.windows(2).find(|w| w.last() == Some(&word)).and_then(|w| w.first()?.parse().ok()).unwrap_or(0)
        };
        self.passed += figure("passed");
        self.failed += figure("failed");
        self.ignored += figure("ignored");
    }
}

fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".into())
}

#[cfg(test)]
mod tests {
    use super::Count;

    #[test]
    fn closing_lines_add_up() {
        let mut count = Count::default();
        count.add("test result: ok. 10 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s");
        count.add("test tests::it ... ok");
        count.add("test result: FAILED. 2 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out");
        assert_eq!(count, Count { passed: 12, failed: 3, ignored: 1 });
    }
}
