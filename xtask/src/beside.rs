//! `cargo xtask beside`: Basalt and OpenTSDB on the tables of one HBase, in turns, asked for the same.
//!
//! ```text
//! round:  tables emptied ─ names brought in ─ put, timed      each server for itself, the first of them in turns
//! then:   put by OpenTSDB ─ tables flushed ─ each question to both, in turns   over the same rows; answers must be alike; the first turn untold
//! then:   put and rewritten by a Basalt ─ compacted ─ the same questions, of rows of one cell each as hours past are
//! ```
//!
//! What is told is a median with the least and the most beside it, by the wall's clock and in CPU seconds: of the daemon, and of
//! the daemon and HBase together. OpenTSDB puts with `sync`, so that both acknowledge what HBase has in its log;
//! neither rewrites rows meanwhile. Only wrong answers end the command with an error.

mod ask;
mod put;
mod usage;

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use basalt_hbase::{HBaseOptions, HBaseStore};
use basalt_store::{Compaction, Store as _};

use crate::golden::client::{Client, Request};
use crate::golden::record::{self, Oracle};
use crate::import_check::basalt::{self, Server};
use crate::oracle;
use usage::Usage;

const USAGE: &str = "\
usage: cargo xtask beside [--rounds N] [--hosts N] [--span SECONDS] [--connections N,...] [--batch N] [--asked N]
                          [--fix-duplicates true|false] [--basalt FILE]

  --rounds       turns of each server (3); one before them is not told, of puts (by one connection count) as of questions
  --hosts        hosts of ten series each (100)
  --span         seconds that their points cover, one every 10 (7200)
  --connections  connections that put, one after the other (4,32); no more than hosts
  --batch        points a request (500)
  --asked        how often each question is asked a turn (10)
  --fix-duplicates  Basalt's setting of that name (true, as the OpenTSDB beside it has it): with it a request's points of
                 a row are one cell
  --basalt       the binary; built from this tree, optimised, unless named";

/// The oracle's profile, and the prefix of its tables.
const PROFILE: &str = "plain";
const PREFIX: &str = "tsdb";
/// Rows are left as they are put.
const DAEMON_EXTRA: &str = "tsd.storage.enable_compaction = false";

/// What is asked for.
#[derive(Debug)]
struct Options {
    rounds: usize,
    hosts: u64,
    span: u64,
    connections: Vec<u64>,
    batch: u64,
    asked: usize,
    fix_duplicates: bool,
    basalt: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let options = options(args)?;
    if let Some(tool) = oracle::missing_tool() {
        println!("beside: skipped, `{tool}` is not installed (the oracle needs java, javac and mvn)");
        return Ok(());
    }
    let program = options.basalt.clone().map_or_else(basalt::build, Ok)?;
    let folder = tempfile::tempdir()?;
    let mut field = Field::start(&program, folder.path(), options.fix_duplicates)?;
    let puts = put::run(&mut field, &options)?;
    put::singly(&mut field, &options)?;
    field.flush()?;
    let asks = ask::run(&field, &options)?;
    put::rewritten(&mut field, &options)?;
    let of_past = ask::run(&field, &options)?;
    print!("\n{puts}\n{asks}\nThe same of rows that are rewritten:\n\n{of_past}");
    Ok(())
}

/// Who is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Peer {
    Basalt,
    OpenTsdb,
}

impl Peer {
    /// Both; who is first changes from round to round.
    fn in_turn(round: usize) -> [Self; 2] {
        if round.is_multiple_of(2) { [Self::Basalt, Self::OpenTsdb] } else { [Self::OpenTsdb, Self::Basalt] }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Basalt => "Basalt",
            Self::OpenTsdb => "OpenTSDB",
        }
    }
}

/// The HBase, the real daemon on it, and where Basalt is started on it.
struct Field<'a> {
    real: Oracle,
    real_address: SocketAddr,
    program: &'a Path,
    folder: &'a Path,
    config: PathBuf,
}

impl<'a> Field<'a> {
    fn start(program: &'a Path, folder: &'a Path, fix_duplicates: bool) -> Result<Self> {
        let real = Oracle::start_with([PROFILE].into_iter(), DAEMON_EXTRA)?;
        let real_address = record::address(PROFILE)?;
        let config =
            Client::new(real_address).send(&Request { method: "GET", target: "/api/config", ..Request::default() })?;
        ensure!(
            leaves_rows(&config.body),
            "the OpenTSDB that runs folds rows meanwhile, and every question then meets what it deleted: end it first (`cargo xtask oracle down`)"
        );
        let config = folder.join("basalt.toml");
        let text = format!(
            "[store]\nkind = \"hbase\"\n[hbase]\nmasters = \"{}\"\n[schema]\nsalt_width = 0\nfix_duplicates = {fix_duplicates}\n[compat]\nstrict = true\n[rewrite]\nenable = false\n",
            master()
        );
        std::fs::write(&config, text)?;
        Ok(Self { real, real_address, program, folder, config })
    }

    /// A Basalt that has asked nothing yet.
    fn basalt(&self) -> Result<Server> {
        Server::start(self.program, &self.folder.join("data"), &self.config)
    }

    /// Empty tables, and an OpenTSDB that knows it.
    fn empty(&mut self) -> Result<()> {
        self.real.tables(&format!("empty {PREFIX}"))?;
        record::forget_names(self.real_address)
    }

    /// Moves what is in memory of HBase's into files.
    fn flush(&mut self) -> Result<()> {
        self.real.tables(&format!("flush {PREFIX} {PREFIX}-uid")).map(drop)
    }

    /// Makes one file of the rows' files, without what was deleted.
    fn compact(&mut self) -> Result<()> {
        self.flush()?;
        let store = HBaseStore::open(HBaseOptions::of_masters([master()]))?;
        Ok(store.compact(&PREFIX.parse()?, Compaction::Major)?)
    }

    /// What OpenTSDB's daemon and HBase used so far.
    fn usage_of(name: &str) -> Result<Usage> {
        let path = oracle::folder().join(format!("state/{name}.pid"));
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let pid = text.split_whitespace().next().and_then(|pid| pid.parse().ok());
        Usage::of(pid.with_context(|| format!("{}: {text}", path.display()))?)
    }
}

/// Where HBase's master is.
fn master() -> String {
    format!("127.0.0.1:{}", std::env::var("ORACLE_MASTER_PORT").unwrap_or_else(|_| "16000".to_owned()))
}

/// Whether a daemon of this `/api/config` leaves rows as they are put; one that ran before keeps the settings it had.
fn leaves_rows(config: &[u8]) -> bool {
    let config: serde_json::Value = serde_json::from_slice(config).unwrap_or_default();
    config.get("tsd.storage.enable_compaction").and_then(serde_json::Value::as_str) == Some("false")
}

/// The least, the middle one and the most.
fn spread(all: &[f64], digits: usize) -> String {
    let mut all = all.to_vec();
    all.sort_by(f64::total_cmp);
    let at = |place: usize| all.get(place).copied().unwrap_or_default();
    let mut text = String::new();
    for (place, index) in [0, all.len() / 2, all.len().saturating_sub(1)].into_iter().enumerate() {
        let between = if place == 0 { "" } else { " / " };
        write!(text, "{between}{:.digits$}", at(index)).unwrap_or_default();
    }
    text
}

fn median(all: &[f64]) -> f64 {
    let mut all = all.to_vec();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or_default()
}

fn options(args: &[String]) -> Result<Options> {
    let mut options = Options {
        rounds: 3,
        hosts: 100,
        span: 7_200,
        connections: vec![4, 32],
        batch: 500,
        asked: 10,
        fix_duplicates: true,
        basalt: None,
    };
    let mut words = args.iter();
    while let Some(name) = words.next() {
        let value = words.next().with_context(|| format!("{name} needs a value\n{USAGE}"))?;
        let number = || value.parse::<u64>().with_context(|| format!("{name} {value}\n{USAGE}"));
        match name.as_str() {
            "--rounds" => options.rounds = usize::try_from(number()?)?,
            "--hosts" => options.hosts = number()?,
            "--span" => options.span = number()?,
            "--connections" => {
                let read: std::result::Result<_, _> = value.split(',').map(str::parse).collect();
                options.connections = read.with_context(|| format!("{name} {value}"))?;
            }
            "--batch" => options.batch = number()?,
            "--asked" => options.asked = usize::try_from(number()?)?,
            "--fix-duplicates" => options.fix_duplicates = value.parse().with_context(|| format!("{name} {value}"))?,
            "--basalt" => options.basalt = Some(value.into()),
            _ => bail!("{USAGE}"),
        }
    }
    ensure!(options.rounds > 0 && options.asked > 0, "nothing to do\n{USAGE}");
    let has_hosts = options.connections.iter().all(|count| *count <= options.hosts);
    ensure!(has_hosts, "a connection puts hosts of its own: --connections need as many --hosts\n{USAGE}");
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_the_least_the_middle_and_the_most() {
        assert_eq!(spread(&[3.0, 1.0, 2.0], 1), "1.0 / 2.0 / 3.0");
        assert_eq!(spread(&[], 0), "0 / 0 / 0");
        assert!((median(&[5.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
    }

    #[test]
    fn a_daemon_that_folds_rows_is_known_by_its_settings() {
        assert!(leaves_rows(br#"{"tsd.storage.enable_compaction":"false"}"#));
        assert!(!leaves_rows(br#"{"tsd.storage.enable_compaction":"true"}"#));
        assert!(!leaves_rows(b"{}"));
    }

    #[test]
    fn flags_are_numbers_and_names() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let options = options(&words("--rounds 1 --connections 1,64 --fix-duplicates false")).unwrap();
        assert_eq!((options.rounds, options.connections, options.fix_duplicates), (1, vec![1, 64], false));
        assert!(super::options(&words("--rounds 0")).is_err());
        assert!(super::options(&words("--rounds")).is_err());
        assert!(super::options(&words("--hosts 20 --connections 4,32")).is_err());
    }
}
