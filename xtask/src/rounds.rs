//! `cargo xtask rounds`: Basalt over a real HBase of two region servers, under load, while things go wrong.
//!
//! ```text
//!  writers ─ put ─► basalt serve ─► region server A (with master and ZooKeeper), region server B
//!     │                  ▲ kill -9        ▲ kill -9, freeze, regions moved and split
//!  ledger ◄── 204       faults ───────────┘
//!     └── after each round: everything acknowledged is read back
//! ```
//!
//! The ledger lies outside of all that is killed. A round draws one to three faults from the seed; its first goes through
//! all kinds in turn. While it lasts one more connection asks for points and holds each answer to what was acknowledged
//! before it asked. Then the load must flow again by itself.

mod cluster;
mod fault;
mod ledger;
mod load;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::both::daemon::{self, Daemon};
use crate::differential::draw::Draw;
use crate::import_check::basalt;
use crate::oracle;
use cluster::Cluster;
use fault::Kind;
use ledger::Ledger;
use load::Load;

const USAGE: &str = "\
usage: cargo xtask rounds [--count N] [--seed S] [--writers N] [--rate N] [--freeze-ms N] [--fault KIND]... [--port P]
                          [--basalt FILE]

  --count      rounds (20)
  --seed       what everything is drawn from (1)
  --writers    connections that put (32)
  --rate       points a second that all of them put, at most (3000)
  --freeze-ms  how long a process stands still (30000)
  --fault      the kinds to draw from, of kill-daemon, kill-hbase, kill-server, freeze-hbase, freeze-server, move and
               split (all)
  --port       where Basalt listens (the oracle's first port and 50)
  --basalt     the binary to run; built optimised from this tree unless named";

/// The most memory that the daemon may hold at any moment.
const DAEMON_BYTES_MAX: u64 = 256 << 20;
/// How long after the last fault every writer must have had a put acknowledged.
const RECOVERY_MAX: Duration = Duration::from_secs(90);
/// How long a hasty daemon tries.
const HASTY: Duration = Duration::from_secs(10);
/// Load without a fault, before the first and between two.
const CALM: Duration = Duration::from_secs(2);

/// What was asked for.
#[derive(Debug, Clone)]
struct Asked {
    count: u64,
    seed: u64,
    writers: usize,
    rate: u64,
    freeze: Duration,
    kinds: Vec<Kind>,
    port: u16,
    basalt: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let asked = asked(args)?;
    if let Some(tool) = oracle::missing_tool() {
        println!("rounds: skipped, `{tool}` is not installed (needed: java, javac and mvn; Java 17)");
        return Ok(());
    }
    let program = asked.basalt.clone().map_or_else(basalt::build, Ok)?;
    let cluster = Cluster::fresh()?;
    let ledger = Ledger::new(asked.seed, asked.writers);
    let began = Instant::now();
    let mut rig =
        Rig { draw: Draw::new(asked.seed), asked, program, cluster, daemon: None, peak_bytes: 0, all: BTreeMap::new() };
    for number in 0..rig.asked.count {
        rig.round(number, &ledger)?;
    }
    let (acknowledged, unknown) = ledger.counts();
    println!(
        "rounds: {} with seed {} in {} s; {acknowledged} points acknowledged, 0 lost; {unknown} unknown, 0 wrong; \
         {} MB the most that the daemon held",
        rig.asked.count,
        rig.asked.seed,
        began.elapsed().as_secs(),
        rig.peak_bytes >> 20
    );
    for (answer, count) in &rig.all {
        println!("     {count:7} {answer}");
    }
    Ok(())
}

fn asked(args: &[String]) -> Result<Asked> {
    let freeze = Duration::from_secs(30);
    let mut asked =
        Asked { count: 20, seed: 1, writers: 32, rate: 3000, freeze, kinds: Vec::new(), port: 0, basalt: None };
    let mut words = args.iter();
    while let Some(name) = words.next() {
        let value = words.next().with_context(|| format!("{name} needs a value\n{USAGE}"))?;
        match name.as_str() {
            "--count" => asked.count = value.parse()?,
            "--seed" => asked.seed = value.parse()?,
            "--writers" => asked.writers = value.parse::<usize>()?.max(1),
            "--rate" => asked.rate = value.parse::<u64>()?.max(1),
            "--freeze-ms" => asked.freeze = Duration::from_millis(value.parse()?),
            "--fault" => asked.kinds.push(Kind::named(value).context(USAGE)?),
            "--port" => asked.port = value.parse()?,
            "--basalt" => asked.basalt = Some(value.into()),
            _ => bail!("{USAGE}"),
        }
    }
    if asked.kinds.is_empty() {
        asked.kinds = Kind::ALL.to_vec();
    }
    if asked.port == 0 {
        asked.port = oracle::port()? + 50;
    }
    Ok(asked)
}

/// Everything that a round needs.
struct Rig {
    asked: Asked,
    draw: Draw,
    program: PathBuf,
    cluster: Cluster,
    daemon: Option<Daemon>,
    /// The most that any of the daemons held.
    peak_bytes: u64,
    /// All answers to puts, by what they say.
    all: BTreeMap<String, u64>,
}

impl Rig {
    fn round(&mut self, number: u64, ledger: &Ledger) -> Result<()> {
        let mut draw = self.draw.fork();
        let place = usize::try_from(number)?;
        let mut kinds = vec![self.asked.kinds[place % self.asked.kinds.len()]];
        while kinds.len() < 3 && draw.chance(40) {
            kinds.push(*draw.pick(&self.asked.kinds));
        }
        // Half of them wait for less than a freeze lasts, so that the end of a put is not known.
        self.start_daemon(place % 2 == 1)?;
        let began = Instant::now();
        let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
        println!("     round {number}: {}", names.join(", "));
        let address = self.daemon.as_ref().context("no daemon")?.address;
        let load = Load { address, ledger, rate: self.asked.rate, seed: self.asked.seed ^ number };
        let told = load.during(|| {
            for kind in &kinds {
                daemon::pause(CALM);
                self.fault(*kind, &mut draw).with_context(|| kind.name())?;
            }
            let healed = Instant::now();
            while !ledger.all_acknowledged_since(healed) {
                ensure!(
                    healed.elapsed() < RECOVERY_MAX,
                    "puts are not acknowledged {RECOVERY_MAX:?} after the last fault"
                );
                daemon::pause(Duration::from_millis(50));
            }
            Ok(healed.elapsed())
        })?;
        let has_kill = kinds.contains(&Kind::KillDaemon);
        let outlasts = kinds.contains(&Kind::FreezeHBase) && self.asked.freeze > HASTY + CALM && place % 2 == 1;
        let is_unknown = told.answers.keys().any(|answer| load::is_unknown(answer));
        ensure!(
            is_unknown || has_kill || !outlasts,
            "no put was answered as unknown, and HBase stood still for longer"
        );
        for (answer, count) in told.answers {
            let is_excused = has_kill && answer.starts_with("no answer");
            ensure!(answer == load::STORED || load::is_told(&answer) || is_excused, "a put was answered: {answer}");
            *self.all.entry(answer).or_default() += count;
        }
        let daemon = self.daemon.as_mut().context("no daemon")?;
        ensure!(daemon.is_alive(), "the daemon ended by itself");
        self.peak_bytes = self.peak_bytes.max(daemon.peak_bytes()?);
        ensure!(self.peak_bytes <= DAEMON_BYTES_MAX, "the daemon held {} MB", self.peak_bytes >> 20);
        let read = ledger.verify(address).with_context(|| format!("after round {number}"))?;
        println!(
            "       {} s, flowing again after {:.1} s; {} answers of {} during it were whole; {read} points read back; \
             {} regions; the daemon held {} MB",
            began.elapsed().as_secs(),
            told.value.as_secs_f64(),
            told.whole,
            told.asked,
            self.cluster.regions()?.len(),
            self.peak_bytes >> 20
        );
        Ok(())
    }

    /// A new daemon, where the last one had other patience or there is none.
    fn start_daemon(&mut self, is_hasty: bool) -> Result<()> {
        self.daemon = None;
        self.daemon = Some(self.cluster.serve(&self.program, self.asked.port, is_hasty)?);
        Ok(())
    }

    fn fault(&mut self, kind: Kind, draw: &mut Draw) -> Result<()> {
        match kind {
            Kind::KillDaemon => {
                let daemon = self.daemon.as_mut().context("no daemon")?;
                self.peak_bytes = self.peak_bytes.max(daemon.peak_bytes()?);
                daemon.kill()?;
                self.start_daemon(draw.chance(50))
            }
            kind => self.cluster.fault(kind, draw, self.asked.freeze),
        }
    }
}
