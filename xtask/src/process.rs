//! Other programs, run to their end.

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
