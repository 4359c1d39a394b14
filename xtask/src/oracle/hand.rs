//! A hand on the oracle's tables: one JVM that `Hb.java` runs in, asked a line at a time.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

use super::script;

/// The process; it ends with this.
#[derive(Debug)]
pub(crate) struct Hand {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Hand {
    /// Starts it. HBase must run by the first question.
    pub(crate) fn start() -> Result<Self> {
        let loops = ["hb".to_owned(), "loop".to_owned()];
        let mut child = script(&loops).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().context("no pipe to the table tool")?;
        let output = BufReader::new(child.stdout.take().context("no pipe from the table tool")?);
        Ok(Self { child, input, output })
    }

    /// One command of `Hb.java`, and the lines that it prints.
    pub(crate) fn ask(&mut self, command: &str) -> Result<Vec<String>> {
        writeln!(self.input, "{command}")?;
        self.input.flush()?;
        let mut told = Vec::new();
        loop {
            let mut line = String::new();
            ensure!(self.output.read_line(&mut line)? > 0, "{command}: the table tool ended");
            match line.trim_end() {
                "ok" => return Ok(told),
                line if line.starts_with("failed ") => bail!("{command}: {line}"),
                line => told.push(line.to_owned()),
            }
        }
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        // Nothing is left to tell at this point if it is gone already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
