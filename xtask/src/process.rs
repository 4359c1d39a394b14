//! Other programs, run to their end.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

/// Runs a program that must succeed; what it prints is seen.
pub(crate) fn did(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", command.get_program().display()))?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}

/// The same; answers what it prints.
pub(crate) fn said(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {}", command.get_program().display()))?;
    ensure!(output.status.success(), "{command:?}: {}", output.status);
    Ok(String::from_utf8(output.stdout)?)
}

/// Runs a program that may fail; what it prints is seen. Answers whether it succeeded, and the last so many lines of its standard
/// error. Whoever holds that beyond the program's end is waited for.
pub(crate) fn tried(command: &mut Command, lines: usize) -> Result<(bool, Vec<String>)> {
    let name = command.get_program().display().to_string();
    let mut child = command.stderr(Stdio::piped()).spawn().with_context(|| format!("cannot start {name}"))?;
    let errors = child.stderr.take().context("no standard error")?;
    let mut last = VecDeque::new();
    for line in BufReader::new(errors).split(b'\n') {
        let line = String::from_utf8_lossy(&line?).into_owned();
        eprintln!("{line}");
        last.push_back(line);
        if last.len() > lines {
            last.pop_front();
        }
    }
    Ok((child.wait()?.success(), last.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_of_a_failure_are_kept() {
        let script = "for n in 1 2 3; do echo $n >&2; done; exit 1";
        let tried = tried(Command::new("sh").args(["-c", script]), 2).unwrap();
        assert_eq!(tried, (false, vec!["2".to_owned(), "3".to_owned()]));
    }
}
