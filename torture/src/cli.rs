//! The command line.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::daemon::Program;
use crate::verdict::Verdicts;
use crate::{atomic, backup, clock, countdown, flip, fsync, full, kill9, power, sim, trunc};

/// Takes Basalt through crashes, faults and damage, and holds it to a ledger.
#[derive(Debug, Parser)]
#[command(
    name = "basalt-torture",
    version,
    after_help = "\
The last line is `N passed, N failed, N skipped`. A failure prints the command that replays it.

Examples:
  basalt-torture all --short               every row, a few of each: what the gate runs
  basalt-torture sim --histories 100000
  basalt-torture kill9 --cycles 1000 --seed 7 --basalt target/release/basalt"
)]
struct Cli {
    #[command(subcommand)]
    row: Row,
    /// Where chance begins
    #[arg(long, global = true, default_value_t = 1)]
    seed: u64,
    /// The daemon [default: `basalt` beside this program]
    #[arg(long, global = true, value_name = "PATH")]
    basalt: Option<PathBuf>,
    /// Times that are promises on an idle machine are bounds against hanging only
    #[arg(long, global = true)]
    patient: bool,
}

/// What is asked of time, and where chance begins.
#[derive(Debug, Clone)]
pub(crate) struct Bounds {
    pub(crate) seed: u64,
    /// A daemon whose disk failed.
    pub(crate) ends_within: Duration,
    /// From a failed sync until no thread of a daemon can be without knowing it.
    pub(crate) settles_within: Duration,
    /// After there is room again.
    pub(crate) resumes_within: Duration,
}

#[derive(Debug, Subcommand)]
enum Row {
    /// Every row with its full count
    All {
        /// A few of each, for the gate; patient
        #[arg(long)]
        short: bool,
    },
    /// The daemon is killed under load
    Kill9 {
        #[arg(long, default_value_t = 1000)]
        cycles: u64,
    },
    /// The file system under the daemon is switched off (takes root)
    Power {
        /// ext4 or xfs
        #[arg(long, default_value = "ext4")]
        fs: String,
        #[arg(long, default_value_t = 100)]
        cycles: u64,
    },
    /// Seeded histories on disks that a power loss may leave
    Sim {
        #[arg(long, default_value_t = 100_000)]
        histories: u64,
    },
    /// Every call to the disk fails in its turn
    Countdown {
        #[arg(long, default_value_t = 2)]
        histories: u64,
        /// Fail one call in so many
        #[arg(long, default_value_t = 1)]
        every: u64,
    },
    /// A log cut at every byte
    Trunc {
        /// Cut at one byte in so many
        #[arg(long, default_value_t = 1)]
        every: usize,
    },
    /// Live bytes of every kind of file are damaged
    Flip {
        #[arg(long, default_value_t = 100_000)]
        flips: u64,
    },
    /// Syncs of the daemon fail
    Fsync {
        #[arg(long, default_value_t = 20)]
        runs: u64,
    },
    /// Syncs fail in the kernel: ext4 on an image without room (takes root)
    Thin {
        #[arg(long, default_value_t = 10)]
        runs: u64,
    },
    /// Writes of the daemon fail
    IoError {
        #[arg(long, default_value_t = 20)]
        runs: u64,
    },
    /// The disk is full, by a neighbour and by ourselves (takes root)
    Full {
        #[arg(long, default_value_t = 10)]
        rounds: u64,
    },
    /// Rows, check-and-put and counters under kills
    Atomic {
        #[arg(long, default_value_t = 200)]
        kills: u64,
    },
    /// The wall clock jumps
    Clock {
        #[arg(long, default_value_t = 100)]
        runs: u64,
    },
    /// Backups of a busy daemon are restored
    Backup {
        #[arg(long, default_value_t = 50)]
        rounds: u64,
    },
    #[command(hide = true)]
    AtomicChild { dir: PathBuf, life: u64 },
}

impl Row {
    /// Its name with what follows it on the command line.
    fn words(&self) -> String {
        match self {
            Row::All { short } => format!("all{}", if *short { " --short" } else { "" }),
            Row::Kill9 { cycles } => format!("kill9 --cycles {cycles}"),
            Row::Power { fs, cycles } => format!("power --fs {fs} --cycles {cycles}"),
            Row::Sim { histories } => format!("sim --histories {histories}"),
            Row::Countdown { histories, every } => format!("countdown --histories {histories} --every {every}"),
            Row::Trunc { every } => format!("trunc --every {every}"),
            Row::Flip { flips } => format!("flip --flips {flips}"),
            Row::Fsync { runs } => format!("fsync --runs {runs}"),
            Row::Thin { runs } => format!("thin --runs {runs}"),
            Row::IoError { runs } => format!("io-error --runs {runs}"),
            Row::Full { rounds } => format!("full --rounds {rounds}"),
            Row::Atomic { kills } => format!("atomic --kills {kills}"),
            Row::Clock { runs } => format!("clock --runs {runs}"),
            Row::Backup { rounds } => format!("backup --rounds {rounds}"),
            Row::AtomicChild { .. } => String::new(),
        }
    }

    fn run(&self, program: Option<&std::path::Path>, bounds: &Bounds) -> Result<String> {
        let find = || Program::find(program);
        match self {
            Row::Kill9 { cycles } => kill9::run(&find()?, bounds, *cycles),
            Row::Power { fs, cycles } => power::run(&find()?, bounds, fs, *cycles),
            Row::Sim { histories } => sim::run(bounds.seed, *histories),
            Row::Countdown { histories, every } => countdown::run(bounds.seed, *histories, *every),
            Row::Trunc { every } => trunc::run(*every),
            Row::Flip { flips } => flip::run(bounds.seed, *flips),
            Row::Fsync { runs } => fsync::syncs(&mut find()?, bounds, *runs),
            Row::Thin { runs } => fsync::thin(&find()?, bounds, *runs),
            Row::IoError { runs } => fsync::writes(&mut find()?, bounds, *runs),
            Row::Full { rounds } => full::run(&find()?, bounds, *rounds),
            Row::Atomic { kills } => atomic::run(bounds.seed, *kills),
            Row::Clock { runs } => clock::run(&mut find()?, bounds, *runs),
            Row::Backup { rounds } => backup::run(&find()?, bounds, *rounds),
            Row::All { .. } => Ok(String::new()),
            Row::AtomicChild { dir, life } => atomic::child(dir, *life).map(|()| String::new()),
        }
    }

    fn all(short: bool) -> Vec<Row> {
        // The full count, or the few that the gate has time for.
        let of = |full: u64, few: u64| if short { few } else { full };
        let power = |fs: &str| Row::Power { fs: fs.to_owned(), cycles: of(100, 1) };
        vec![
            Row::Kill9 { cycles: of(1000, 6) },
            power("ext4"),
            power("xfs"),
            Row::Sim { histories: of(100_000, 100) },
            Row::Countdown { histories: of(2, 1), every: of(1, 500) },
            Row::Trunc { every: if short { 500 } else { 1 } },
            Row::Flip { flips: of(100_000, 500) },
            Row::Fsync { runs: of(100, 2) },
            Row::Thin { runs: of(10, 1) },
            Row::IoError { runs: of(100, 2) },
            Row::Full { rounds: of(20, 2) },
            Row::Atomic { kills: of(200, 2) },
            Row::Clock { runs: of(100, 2) },
            Row::Backup { rounds: of(50, 1) },
        ]
    }
}

/// Runs what the command line asks for.
pub(crate) fn run() -> ExitCode {
    let cli = Cli::parse();
    if let Row::AtomicChild { .. } = cli.row {
        // It ends by being killed; an error is told to whoever reads on.
        let Err(error) = cli.row.run(None, &Bounds::new(cli.seed, true)) else { return ExitCode::SUCCESS };
        eprintln!("{error:#}");
        return ExitCode::FAILURE;
    }
    let (rows, is_short) = match cli.row {
        Row::All { short } => (Row::all(short), short),
        row => (vec![row], false),
    };
    let bounds = Bounds::new(cli.seed, cli.patient || is_short);
    let mut verdicts = Verdicts::default();
    for row in rows {
        let words = row.words();
        let again = format!("{words} --seed {}", cli.seed);
        let name = words.split(" --cycles").next().unwrap_or_default();
        verdicts.row(name, &again, || row.run(cli.basalt.as_deref(), &bounds));
    }
    if verdicts.close() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Bounds {
    /// The promises, or, for a machine that has other things to do, what keeps a row from hanging.
    fn new(seed: u64, is_patient: bool) -> Bounds {
        let (ends, settles, resumes) = if is_patient { (30_000, 30_000, 60_000) } else { (1_000, 50, 5_000) };
        let [ends_within, settles_within, resumes_within] = [ends, settles, resumes].map(Duration::from_millis);
        Bounds { seed, ends_within, settles_within, resumes_within }
    }
}
