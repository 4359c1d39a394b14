//! What the gate asks of both daemons on the same tables: a small part of each rig, on an HBase of its own.
//!
//! ```text
//! UIDs given by both at once ─ OpenTSDB's fsck over points of Basalt's ─ random requests: what either wrote, both answer alike
//! ```

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Result, bail, ensure};

use crate::ci::{Count, LINES_SAID};
use crate::{oracle, process};

/// The rigs, in turn. The data sets of the last one: rollups and histograms that OpenTSDB wrote, points that Basalt did and
/// rewrote.
const RIGS: &[&str] = &[
    "both uids --names 20 --profile plain --seed 1",
    "both points --count 20000 --profile salted --seed 1",
    "differential --store hbase --count 422 --profile rollup --profile plain --seed 15",
];

/// Ports that the daemons of all profiles take, the first one included; then those of HBase.
const TSD_PORTS: u16 = 8;
const HBASE_PORTS: u16 = 4;
/// Where free ports are looked for, below those that a system gives to clients.
const PORTS: std::ops::Range<u16> = 15_000..30_000;

/// Runs all of it with this binary of Basalt, and counts a rig as a test; one line and one skipped test where Java is missing.
pub(crate) fn run(basalt: &Path) -> Result<Count> {
    println!("== both daemons on the same tables");
    if let Some(tool) = oracle::missing_tool() {
        println!("skipped: OpenTSDB and Basalt on the same tables, as `{tool}` is not installed");
        return Ok(Count { ignored: 1, ..Count::default() });
    }
    let begun = Instant::now();
    let folder = oracle::folder().join(format!("both-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    // The jars are those of every other oracle.
    let jars = oracle::folder().join("lib");
    std::fs::create_dir_all(&jars)?;
    std::os::unix::fs::symlink(&jars, folder.join("lib"))?;
    let first = free_ports(TSD_PORTS + HBASE_PORTS)?;
    let hbase = first + TSD_PORTS;
    let variables = [
        ("ORACLE_TSD_PORT", first),
        ("ORACLE_ZK_PORT", hbase),
        ("ORACLE_MASTER_PORT", hbase + 1),
        ("ORACLE_RS_PORT", hbase + 2),
    ];
    let command = |words: &str| -> Result<(bool, Vec<String>)> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(words.split(' ')).env("ORACLE_DIR", &folder);
        command.envs(variables.map(|(name, port)| (name, port.to_string())));
        if !words.starts_with("oracle") {
            command.arg("--basalt").arg(basalt);
        }
        process::tried(&mut command, LINES_SAID)
    };
    let mut count = Count::default();
    for rig in RIGS {
        println!("-- {rig}");
        let (is_ok, said) = command(rig)?;
        count.passed += u64::from(is_ok);
        let mut failed = Count::of_failures(u64::from(!is_ok), rig);
        if !is_ok {
            failed.failures.extend(said);
        }
        count.add(failed);
    }
    ensure!(command("oracle down")?.0, "the oracle does not end");
    std::fs::remove_dir_all(&folder)?;
    println!("== both took {:.0} s", begun.elapsed().as_secs_f64());
    Ok(count)
}

/// The first of so many ports in a row that nobody listens on.
fn free_ports(count: u16) -> Result<u16> {
    let is_free = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
    // Two gates at once begin to look at different places.
    let begin = PORTS.start + u16::try_from(std::process::id() % 1000)? * count;
    let found = (begin..PORTS.end).step_by(count.into()).find(|first| (*first..first + count).all(is_free));
    let Some(first) = found else { bail!("no {count} free ports in a row from {begin} on") };
    Ok(first)
}
