//! `cargo xtask both`: OpenTSDB's own daemon and Basalt on the same tables of a real HBase, at once.
//!
//! Basalt reads the very configuration file of the daemon that it stands beside. `uids`: both give UIDs to the same new
//! names at the same time; then no UID has two names and no name two UIDs, and each finds what the other wrote.
//! `points`: Basalt puts so many points; then OpenTSDB's own `fsck` finds nothing to mend, and counts them all. What both
//! answer to the same questions is `cargo xtask differential --store hbase`. `gate`: a small part of all three.

pub(crate) mod daemon;
pub(crate) mod gate;
mod points;
mod uids;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use crate::golden::record::Oracle;
use crate::import_check::basalt;
use crate::oracle;
use daemon::Daemon;

/// How often `fsck` is run at most, and the pause between.
const FSCK_TRIES: u32 = 5;
const FSCK_PAUSE: Duration = Duration::from_secs(2);
const USAGE: &str = "\
usage: cargo xtask both uids [--names N] [--threads N] | points [--count N] | gate
                        [--profile NAME]... [--seed S] [--basalt FILE]

  --names    new names of each kind that both are given (1000)
  --threads  that write to each of the two daemons (8)
  --count    points (1000000)
  --profile  the oracle's profiles, in turn (plain, appends and salted)
  --seed     what everything is drawn from (1)
  --basalt   the binary to run; built optimised from this tree unless named";

/// What was asked for.
#[derive(Debug)]
struct Asked {
    names: u64,
    threads: u64,
    count: u64,
    profiles: Vec<String>,
    seed: u64,
    basalt: Option<PathBuf>,
}

impl Asked {
    fn program(&self) -> Result<PathBuf> {
        self.basalt.clone().map_or_else(basalt::build, Ok)
    }
}

/// Runs the command.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let (what, rest) = args.split_first().context(USAGE)?;
    ensure!(["uids", "points", "gate"].contains(&what.as_str()), USAGE);
    let asked = asked(rest)?;
    if let Some(tool) = oracle::missing_tool() {
        println!("both: skipped, `{tool}` is not installed (the oracle needs java, javac and mvn)");
        return Ok(());
    }
    let program = asked.program()?;
    if what == "gate" {
        let count = gate::run(&program)?;
        println!("{count}");
        ensure!(count.failed == 0, "{} failed", count.failed);
        return Ok(());
    }
    for profile in &asked.profiles {
        let mut oracle = Oracle::start(std::iter::once(profile.as_str()))?;
        let real = oracle.fresh(profile)?;
        let ours = Daemon::beside(&program, profile)?;
        let mut pair = Pair { profile, oracle, real, ours };
        match what.as_str() {
            "uids" => uids::run(&asked, &mut pair)?,
            "points" => points::run(&asked, &mut pair)?,
            _ => bail!("{USAGE}"),
        }
    }
    Ok(())
}

fn asked(args: &[String]) -> Result<Asked> {
    let mut asked = Asked { names: 1000, threads: 8, count: 1_000_000, profiles: Vec::new(), seed: 1, basalt: None };
    let mut words = args.iter();
    while let Some(name) = words.next() {
        let value = words.next().with_context(|| format!("{name} needs a value\n{USAGE}"))?;
        match name.as_str() {
            "--names" => asked.names = value.parse()?,
            "--threads" => asked.threads = value.parse()?,
            "--count" => asked.count = value.parse()?,
            "--profile" => asked.profiles.push(value.clone()),
            "--seed" => asked.seed = value.parse()?,
            "--basalt" => asked.basalt = Some(value.into()),
            _ => bail!("{USAGE}"),
        }
    }
    if asked.profiles.is_empty() {
        asked.profiles = ["plain", "appends", "salted"].map(str::to_owned).to_vec();
    }
    Ok(asked)
}

/// Both daemons, and a hand on their tables.
struct Pair<'a> {
    profile: &'a str,
    oracle: Oracle,
    real: std::net::SocketAddr,
    ours: Daemon,
}

impl Pair<'_> {
    /// One of OpenTSDB's own tools on the tables: what it said of itself, a line each, without the words before.
    fn tool(&self, words: &[&str]) -> Result<Vec<String>> {
        let (tool, rest) = words.split_first().context("no tool")?;
        // What it counts as errors is its exit code, so that is not looked at.
        let args: Vec<String> = [tool, self.profile].iter().chain(rest.iter()).map(|&word| word.to_owned()).collect();
        let output = oracle::script(&args).output()?;
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        let said = text.lines().filter_map(|line| {
            let (_, said) = line.split_once("Fsck: ").or_else(|| line.split_once("UidManager: "))?;
            Some(said.to_owned())
        });
        let said: Vec<String> = said.collect();
        ensure!(!said.is_empty(), "{}: {}\n{text}", words.join(" "), output.status);
        Ok(said)
    }

    /// OpenTSDB's `fsck` over the whole data table: its numbers, by their names. Any error that it counts is one. With more
    /// than one thread it reads the rows of few metrics several times, and counts them so.
    ///
    /// A row that a daemon compacts meanwhile has its points twice for a moment: errors are looked for anew before they count.
    fn fsck(&self) -> Result<Vec<(String, u64)>> {
        for _ in 1..FSCK_TRIES {
            match self.fsck_once() {
                Ok(numbers) => return Ok(numbers),
                Err(errors) => {
                    println!("     fsck is run again: {}", errors.to_string().lines().next().unwrap_or_default());
                }
            }
            daemon::pause(FSCK_PAUSE);
        }
        self.fsck_once()
    }

    fn fsck_once(&self) -> Result<Vec<(String, u64)>> {
        let said = self.tool(&["fsck", "--full-scan", "--threads=1"])?;
        let numbers: Vec<(String, u64)> = said
            .iter()
            .filter_map(|line| {
                let (name, number) = line.split_once(':')?;
                Some((name.trim().to_owned(), number.trim().parse().ok()?))
            })
            .collect();
        ensure!(number(&numbers, "Total Errors")? == 0, "fsck found errors:\n{}", said.join("\n"));
        Ok(numbers)
    }

    /// The table's name, by the end that follows its prefix.
    fn table(&self, end: &str) -> String {
        match self.profile {
            "plain" => format!("tsdb{end}"),
            profile => format!("{profile}-tsdb{end}"),
        }
    }
}

fn number(numbers: &[(String, u64)], name: &str) -> Result<u64> {
    let found = numbers.iter().find(|(of, _)| of == name).map(|(_, number)| *number);
    found.with_context(|| format!("fsck tells no `{name}`: {numbers:?}"))
}
