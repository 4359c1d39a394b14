//! A few of every row, as the gate runs them; `make torture` runs the full counts.

#![expect(clippy::disallowed_types, reason = "what is run is a program")]

use std::process::Command;

#[test]
fn a_few_of_every_row_pass() {
    let output = Command::new(env!("CARGO_BIN_EXE_basalt-torture")).args(["all", "--short"]).output();
    let output = output.unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    println!("{told}{}", String::from_utf8_lossy(&output.stderr));
    let is_gate = std::env::var_os("CI").is_some();
    assert!(!is_gate || !told.contains("no `basalt`"), "the gate builds the daemon before any test");
    let last = told.trim_end().lines().last().unwrap_or_default();
    assert!(output.status.success() && last.contains(" 0 failed"), "{told}");
}
