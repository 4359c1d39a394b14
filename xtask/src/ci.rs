//! The gate. Each step prints its name, runs as a child, and ends the gate when it fails; the tests are counted
//! over all binaries and over what a real HBase is asked, and the last lines are what failed and the count.

use std::fmt;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::both;
use crate::import_check::basalt;
use crate::tidy;
use crate::truth::gate;
use crate::workspace;

/// Lines kept of what a failed test or rig said.
pub(crate) const LINES_SAID: usize = 8;
/// Lines kept of all that failed: who reads only a log's end sees them all.
const LINES_FAILED: usize = 40;

/// What tests came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) ignored: u64,
    /// What failed, and the first lines that it said.
    pub(crate) failures: Vec<String>,
    /// Lines still to keep of the test whose words are being read.
    pub(crate) to_keep: usize,
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in self.failures.iter().take(LINES_FAILED) {
            writeln!(f, "{line}")?;
        }
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.ignored)
    }
}

/// Runs every step in turn.
pub(crate) fn run() -> Result<()> {
    step("fmt", &["fmt", "--all", "--check"], &[])?;
    step("clippy", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"], &[])?;
    step("doc", &["doc", "--workspace", "--no-deps"], &[("RUSTDOCFLAGS", "-D warnings")])?;
    // Workspaces of their own: nothing above tells when they no longer fit the crates.
    step("benches", &["check", "--manifest-path", "benches/Cargo.toml", "--all-targets", "--locked"], &[])?;
    step("fuzz", &["check", "--manifest-path", "fuzz/Cargo.toml", "--locked"], &[("RUSTFLAGS", "--cfg fuzzing")])?;
    tidy::run(false)?;
    println!("== test");
    let begun = Instant::now();
    let mut count = tests_of(&["--workspace", "--no-fail-fast"], &[])?;
    println!("== test took {:.0} s", begun.elapsed().as_secs_f64());
    // Whatever it comes to, the last line counts.
    let hbase = gate::run(&[]).unwrap_or_else(|error| {
        println!("over HBase: {error:#}");
        Count::of_failures(1, "everything over HBase")
    });
    count.add(hbase);
    let both = both::gate::run(&basalt::unoptimised()).unwrap_or_else(|error| {
        println!("OpenTSDB and Basalt on the same tables: {error:#}");
        Count::of_failures(1, "everything of both daemons on the same tables")
    });
    count.add(both);
    println!("{count}");
    ensure!(count.failed == 0, "tests failed");
    Ok(())
}

fn step(name: &str, args: &[&str], env: &[(&str, &str)]) -> Result<()> {
    println!("== {name}");
    let begun = Instant::now();
    let status = Command::new(cargo())
        .args(args)
        .envs(env.iter().copied())
        .current_dir(workspace())
        .status()
        .with_context(|| format!("cannot start cargo for {name}"))?;
    ensure!(status.success(), "{name} failed: cargo {}", args.join(" "));
    println!("== {name} took {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// Runs tests, passing their output through, and adds up the closing line of each binary. Ending badly without one
/// that failed, such as not to compile, counts as one.
pub(crate) fn tests_of(args: &[&str], env: &[(&str, &str)]) -> Result<Count> {
    let mut child = Command::new(cargo())
        .arg("test")
        .args(args)
        .envs(env.iter().copied())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start cargo test")?;
    let output = child.stdout.take().context("cargo test has no output")?;
    let mut count = Count::default();
    for line in BufReader::new(output).lines() {
        let line = line?;
        println!("{line}");
        count.read(&line);
    }
    let is_ok = child.wait()?.success();
    if !is_ok && count.failed == 0 {
        count.add(Count::of_failures(1, &format!("cargo test {}", args.join(" "))));
    }
    Ok(count)
}

impl Count {
    /// So many failures of one kind; none leave no word.
    pub(crate) fn of_failures(failed: u64, what: &str) -> Self {
        let failures = if failed == 0 { Vec::new() } else { vec![format!("failed: {what} ({failed})")] };
        Self { failed, failures, ..Self::default() }
    }

    /// Adds a line such as `test result: ok. 10 passed; 0 failed; 1 ignored; …`, and keeps the first lines after one such as
    /// `---- module::test stdout ----`; other lines add nothing.
    fn read(&mut self, line: &str) {
        if line.starts_with("---- ") && line.ends_with(" stdout ----") {
            self.to_keep = 1 + LINES_SAID;
        } else if line.starts_with("failures:") {
            self.to_keep = 0;
        }
        if self.to_keep > 0 && !line.is_empty() {
            self.to_keep -= 1;
            self.failures.push(line.to_owned());
        }
        let Some((_, result)) = line.split_once("test result:") else { return };
        let figure = |word: &str| -> u64 {
            let words: Vec<&str> = result.split([' ', ';', '.']).filter(|w| !w.is_empty()).collect();
            words.windows(2).find(|w| w.last() == Some(&word)).and_then(|w| w.first()?.parse().ok()).unwrap_or(0)
        };
        self.passed += figure("passed");
        self.failed += figure("failed");
        self.ignored += figure("ignored");
    }

    /// Adds what others came to.
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.failures.extend(other.failures);
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
        count.read("test result: ok. 10 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s");
        count.read("test tests::it ... ok");
        count.read("test result: FAILED. 2 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out");
        assert_eq!(count, Count { passed: 12, failed: 3, ignored: 1, ..Count::default() });
    }

    #[test]
    fn what_failed_is_told_before_the_count() {
        let mut count = Count::default();
        for line in [
            "test a::b ... FAILED",
            "",
            "failures:",
            "",
            "---- a::b stdout ----",
            "",
            "thread 'a::b' panicked at x.rs:1:2:",
        ] {
            count.read(line);
        }
        for said in 2..20 {
            count.read(&format!("line {said}"));
        }
        for line in ["", "", "failures:", "    a::b", "", "test result: FAILED. 0 passed; 1 failed; 0 ignored"] {
            count.read(line);
        }
        count.add(Count::of_failures(2, "rules"));
        count.add(Count::of_failures(0, "histories"));
        let told = count.to_string();
        let told: Vec<&str> = told.lines().collect();
        let (first, last) = (told.get(..3).unwrap(), told.get(9..).unwrap());
        assert_eq!(first, ["---- a::b stdout ----", "thread 'a::b' panicked at x.rs:1:2:", "line 2"]);
        assert_eq!(last, ["failed: rules (2)", "0 passed, 3 failed, 0 skipped"]);
    }
}
