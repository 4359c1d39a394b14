//! The HBase of the rounds: the oracle's standalone one and a second region server beside it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::fault::Kind;
use super::ledger::{METRICS, START_S};
use crate::both::daemon::{self, Daemon};
use crate::differential::draw::Draw;
use crate::oracle::{self, hand::Hand};

/// The tables' common name.
const TABLE: &str = "rounds-tsdb";
/// Regions that one fault moves, at most.
const MOVES_MAX: u64 = 4;
/// How often a change of regions is tried: a master that has just begun refuses, a region with a split's halves too.
const ATTEMPTS_MAX: u32 = 30;
const PAUSE: Duration = Duration::from_secs(1);

/// HBase, and a hand on its tables.
#[derive(Debug)]
pub(super) struct Cluster {
    hand: Hand,
    folder: PathBuf,
    ports: [u16; 2],
    split_at: u64,
}

impl Cluster {
    /// Starts both servers where they do not run, with empty tables.
    pub(super) fn fresh() -> Result<Self> {
        script(&["region"])?;
        let mut hand = Hand::start()?;
        hand.ask(&format!("drop {TABLE}"))?;
        hand.ask(&format!("create {TABLE}"))?;
        let folder = oracle::folder().join("rounds");
        std::fs::create_dir_all(&folder)?;
        let port = |name: &str| -> Result<u16> {
            let file = oracle::folder().join(format!("state/{name}.port"));
            Ok(std::fs::read_to_string(&file)?.trim().parse()?)
        };
        Ok(Self { hand, folder, ports: [port("hbase")?, port("region")?], split_at: 0 })
    }

    /// Basalt over it. A hasty one gives up before a freeze is over. Every other one finds the cluster by its servers,
    /// the others by `ZooKeeper`.
    pub(super) fn serve(&mut self, program: &Path, port: u16, is_hasty: bool) -> Result<Daemon> {
        let config = self.folder.join("basalt.toml");
        let found = if is_hasty {
            format!("masters = '127.0.0.1:{},127.0.0.1:{}'", self.ports[0], self.ports[1])
        } else {
            format!("zookeeper_quorum = '{}'", oracle::zookeeper())
        };
        let patience = if is_hasty { "call_timeout_ms = 3000\noperation_timeout_ms = 10000\n" } else { "" };
        let tables: Vec<String> = [("data", ""), ("uid", "-uid"), ("tree", "-tree"), ("meta", "-meta")]
            .map(|(name, end)| format!("{name}_table = '{TABLE}{end}'\n"))
            .to_vec();
        std::fs::write(&config, format!("[hbase]\n{found}\n{patience}[schema]\n{}", tables.concat()))?;
        let settings: [(&str, &str); 0] = [];
        Daemon::start(program, &config, port, &settings, &self.folder.join("basalt.log"))
    }

    /// Does it, and waits until it is over; whether HBase serves again by then is not asked.
    pub(super) fn fault(&mut self, kind: Kind, draw: &mut Draw, freeze: Duration) -> Result<()> {
        match kind {
            Kind::KillDaemon => Ok(()),
            Kind::KillHBase => {
                script(&["signal", "region", "KILL"])?;
                script(&["signal", "hbase", "KILL"])?;
                script(&["region"])
            }
            Kind::KillServer => {
                self.send_regions(draw, self.ports[1])?;
                script(&["signal", "region", "KILL"])?;
                script(&["region"])
            }
            Kind::FreezeHBase => stand_still(&["hbase", "region"], freeze),
            Kind::FreezeServer => {
                self.send_regions(draw, self.ports[1])?;
                stand_still(&["region"], freeze)
            }
            Kind::Move => {
                for _ in 0..draw.between(1, MOVES_MAX) {
                    let to = *draw.pick(&self.ports);
                    self.send_regions(draw, to)?;
                }
                Ok(())
            }
            Kind::Split => self.split(draw),
        }
    }

    /// The data table's regions, a line each.
    pub(super) fn regions(&mut self) -> Result<Vec<String>> {
        self.hand.ask(&format!("regions {TABLE}"))
    }

    /// Sends a region of each of the tables that points need to a server.
    fn send_regions(&mut self, draw: &mut Draw, port: u16) -> Result<()> {
        let data = format!("move {TABLE} {} {port}", draw.below(64));
        self.insist(&data)?;
        if draw.chance(30) {
            self.insist(&format!("move {TABLE}-uid 0 {port}"))?;
        }
        Ok(())
    }

    /// Splits a region at an hour of a metric that none was split at.
    fn split(&mut self, draw: &mut Draw) -> Result<()> {
        self.split_at += 1;
        let metric = draw.between(1, METRICS as u64);
        let hour = START_S / 3600 * 3600 + self.split_at * 3600;
        self.insist(&format!("split {TABLE} {metric:06x}{hour:08x}"))
    }

    fn insist(&mut self, command: &str) -> Result<()> {
        let mut last = Ok(());
        for _ in 0..ATTEMPTS_MAX {
            last = self.hand.ask(command).map(drop);
            if last.is_ok() {
                return Ok(());
            }
            // The halves of a region that was split before give up their parent's files when they are compacted.
            self.hand.ask(&format!("compact {TABLE}")).ok();
            daemon::pause(PAUSE);
        }
        last
    }
}

fn stand_still(names: &[&str], time: Duration) -> Result<()> {
    for name in names {
        script(&["signal", name, "STOP"])?;
    }
    daemon::pause(time);
    let woken: Vec<Result<()>> = names.iter().map(|name| script(&["signal", name, "CONT"])).collect();
    woken.into_iter().collect()
}

fn script(words: &[&str]) -> Result<()> {
    let args: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
    let status = oracle::script(&args).status().context("cannot start tests/oracle/oracle.sh")?;
    ensure!(status.success(), "oracle {}: {status}", words.join(" "));
    Ok(())
}
