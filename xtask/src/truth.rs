//! `cargo xtask truth`: three answers, one truth. A real HBase, its regions on a clock of ours, is asked what the
//! conformance suite and random histories ask the memory store and the engine.
//!
//! They go by `basalt-hbase`, as the program does. `tests/oracle/truth` is HBase's side: HBase in a process that takes
//! beside them, by frames over its standard input, what no client can ask for: its clock, its compactions.

mod driver;
mod fixture;
pub(crate) mod gate;
mod histories;
mod known;
mod scripts;
mod store;
mod suite;
mod wire;

use anyhow::{Context as _, Result, bail, ensure};

use crate::oracle;

const USAGE: &str = "\
usage: cargo xtask truth gate [RULE...]
       cargo xtask truth suite [--record] [--missing] [NAME...]
       cargo xtask truth shell [NAME...]
       cargo xtask truth histories [--count N] [--seed N] [--operations N] [--restarts N]
";

/// Runs one of them.
pub(crate) fn run(args: &[String]) -> Result<()> {
    if let Some(tool) = oracle::missing_tool() {
        println!("truth: skipped, `{tool}` is not installed (needed: java, javac and mvn; Java 17)");
        return Ok(());
    }
    match args.split_first().map(|(command, rest)| (command.as_str(), rest)) {
        Some(("gate", rules)) => {
            let count = gate::run(rules)?;
            println!("{count}");
            ensure!(count.failed == 0, "{} failed", count.failed);
            Ok(())
        }
        Some(("suite", rest)) => {
            let mut asked = suite::Asked::default();
            for arg in rest {
                match arg.as_str() {
                    "--record" => asked.record = true,
                    "--missing" => asked.missing = true,
                    flag if flag.starts_with('-') => bail!(USAGE),
                    name => asked.names.push(name.to_owned()),
                }
            }
            suite::run(&asked)
        }
        Some(("shell", names)) => scripts::run(names),
        Some(("histories", rest)) => histories::run(&asked(rest)?),
        _ => bail!(USAGE),
    }
}

fn asked(args: &[String]) -> Result<histories::Asked> {
    let mut asked = histories::Asked { seed: 1, count: 2000, operations: 200, restarts: 5 };
    for pair in args.chunks(2) {
        let [flag, value] = pair else { bail!(USAGE) };
        let number: u64 = value.parse().with_context(|| format!("{flag} {value}"))?;
        let count = usize::try_from(number)?;
        match flag.as_str() {
            "--seed" => asked.seed = number,
            "--count" => asked.count = count,
            "--operations" => asked.operations = count,
            "--restarts" => asked.restarts = count,
            _ => bail!(USAGE),
        }
    }
    Ok(asked)
}
