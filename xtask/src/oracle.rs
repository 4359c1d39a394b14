//! `cargo xtask oracle`: a real OpenTSDB on a real HBase, on loopback, to ask what the answer should be.
//!
//! The work is `tests/oracle/oracle.sh`'s; here are the defaults that keep it away from a Basalt on 4242 and from
//! anything outside a temporary folder, and the one clear line where Java or Maven is missing.

pub(crate) mod hand;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// Port of the `plain` profile's daemon; the other profiles follow it in the order `tests/oracle/README.md` gives.
const TSD_PORT_DEFAULT: &str = "14242";

/// Runs one oracle command.
pub(crate) fn run(args: &[String]) -> Result<()> {
    if let Some(tool) = missing_tool() {
        println!("oracle: skipped, `{tool}` is not installed (needed: java, javac and mvn; Java 17)");
        return Ok(());
    }
    let status = script(args).status().context("cannot start tests/oracle/oracle.sh")?;
    ensure!(status.success(), "oracle {}: {status}", args.join(" "));
    Ok(())
}

/// The oracle's script with `args`, its variables set where the caller's environment leaves them unset.
pub(crate) fn script(args: &[String]) -> Command {
    let mut command = Command::new(crate::workspace().join("tests/oracle/oracle.sh"));
    command.args(args).env("ORACLE_TSD_PORT", tsd_port()).env("ORACLE_DIR", folder());
    command
}

/// Where everything that the oracle makes lies.
pub(crate) fn folder() -> PathBuf {
    std::env::var_os("ORACLE_DIR").map_or_else(|| std::env::temp_dir().join("basalt-oracle"), PathBuf::from)
}

/// The first of the needed programs that is not on the `PATH`.
pub(crate) fn missing_tool() -> Option<&'static str> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = |tool: &&str| std::env::split_paths(&path).any(|folder| folder.join(tool).is_file());
    ["java", "javac", "mvn"].into_iter().find(|tool| !there(tool))
}

/// Port of the first profile's daemon.
pub(crate) fn port() -> Result<u16> {
    Ok(tsd_port().parse()?)
}

/// Where `ZooKeeper` is.
pub(crate) fn zookeeper() -> String {
    format!("127.0.0.1:{}", std::env::var("ORACLE_ZK_PORT").unwrap_or_else(|_| "12181".to_owned()))
}

fn tsd_port() -> String {
    std::env::var("ORACLE_TSD_PORT").unwrap_or_else(|_| TSD_PORT_DEFAULT.to_owned())
}
