//! `basalt bench ingest` and `basalt bench query`.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;
use std::time::Duration;

use clap::{Args, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};

use super::interrupt::interruptible;
use super::print;
use crate::bench::data::Workload;
use crate::bench::ingest::{self, Protocol};
use crate::bench::query::{self, KINDS, Kind};
use crate::bench::report::{Line, Report};
use crate::bench::{Run, Watch, page};
use crate::clock;
use crate::exit::{Exit, Failure};
use crate::{aside, peer};

/// Seconds of a day.
const DAY_S: u64 = 86_400;
/// Connections that write unless told.
const WRITERS: u64 = 4;
/// How often progress is shown.
const SHOW_EVERY: Duration = Duration::from_millis(200);

/// `basalt bench`.
#[derive(Debug, Subcommand)]
pub(super) enum Bench {
    /// Write points, as fast as the server answers or at a rate
    Ingest(Box<Ingest>),
    /// Ask TSBS's questions about points that `ingest` wrote
    Query(Box<Query>),
}

/// What is written or asked about; the same flags for both.
#[derive(Debug, Args)]
struct Set {
    /// The server
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:4242")]
    url: String,
    /// Hosts, of eight tags and ten metrics each
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    hosts: u64,
    /// The first second [default: such that the points end with yesterday, in UTC]
    #[arg(long, value_name = "SECOND")]
    start: Option<u64>,
    /// Seconds between the points of a series
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    step: u64,
    /// Seconds that the points cover
    #[arg(long, value_name = "SECONDS", default_value_t = 3_600, value_parser = clap::value_parser!(u64).range(1..=4_000_000_000))]
    span: u64,
    /// Chooses values, hosts and windows; the same seed is the same work
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Connections at once, a thread each [default: 1 that asks, or 4 that write, each its own hosts, so at most one a host]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=1_024))]
    connections: Option<u64>,
    /// Write the report to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the report to this file as a page with plots
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// `basalt bench ingest`.
#[derive(Debug, Args)]
#[command(after_help = "\
The points are TSBS's `cpu-only` set: integers from 0 to 100 that walk at random. A connection
writes its own hosts in order of time and waits for each answer. At a rate, latency counts from when
a request was due, so that a server that stalls is charged for all that waited, also for what was
due and not sent when --seconds end or a connection gives up. Refused and lost requests have their
latency too. Telnet answers nothing: its latency is the time to write, and the run ends when the
server has closed. Points that its error lines tell of are not counted as done; a server may be set
to send none, or drop some where a request has thousands.

A connection that the server closes is opened anew, but for telnet. A request that is lost on its
way counts as failed; after five in a row that are lost, or refused by an answer that closes the
connection, or one without an answer for two minutes, its connection gives up. The report tells what
was seen. Ctrl-C ends a run as --seconds do, with its report; a second one ends it at once.

Examples:
  basalt bench ingest                                    3.6 million points to 127.0.0.1:4242
  basalt bench ingest --batch 50 --connections 64 --rate 200000 --html report.html
  basalt bench ingest --url http://tsd:4242 --hosts 100 --span 10800 --parameters sync

Exit codes: 0 done, 1 requests failed, points were refused or the server is gone, 2 more connections
than hosts, or --gzip by telnet, 75 no room for a file of the report.")]
pub(super) struct Ingest {
    #[command(flatten)]
    set: Set,
    /// By which door
    #[arg(long, value_enum, default_value_t = Protocol::Json)]
    protocol: Protocol,
    /// Points a request
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    batch: u64,
    /// Points a second of all connections; 0 is as fast as it goes
    #[arg(long, default_value_t = 0)]
    rate: u64,
    /// End after so many seconds, though points are left; 0 writes them all
    #[arg(long, default_value_t = 0)]
    seconds: u64,
    /// Of a hundred points, how many come ten steps late
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=50))]
    late: u64,
    /// Decimal places of the values: Gaussian steps, as TSBS's own; 0 are integers
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=6))]
    decimals: u32,
    /// Send bodies packed; not by telnet
    #[arg(long)]
    gzip: bool,
    /// What stands behind `/api/put?`, such as `sync`
    #[arg(long, value_name = "TEXT", default_value = "")]
    parameters: String,
}

/// `basalt bench query`.
#[derive(Debug, Args)]
#[command(after_help = "\
Give the flags of --hosts, --start, --step and --span that the points were written with: hosts and
windows are drawn from them. `lastpoint` looks back from now to the first row of the set. OpenTSDB
has no question by value; `high-cpu` fetches the points that one would look at. A connection that
the server closes is opened anew. A question that is lost on its way counts as failed; after five in
a row that are lost, or refused by an answer that closes the connection, or one without an answer
for ten minutes, its connection gives up. The report tells what was seen. Ctrl-C ends a run with its
report; a second one ends it at once.

Examples:
  basalt bench query
  basalt bench query --kinds single-groupby-1-1-1,lastpoint --count 1000 --json report.json

Exit codes: 0 done, 1 questions failed, all answers of a kind were empty or the server is gone,
2 a kind that there is not, 75 no room for a file of the report.")]
pub(super) struct Query {
    #[command(flatten)]
    set: Set,
    /// Kinds of questions, comma between them; all unless told
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    kinds: Vec<String>,
    /// Questions of each kind; a tenth of it for those that read everything
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    count: u64,
}

impl Bench {
    pub(super) fn run(self) -> Result<(), Failure> {
        let watch = Arc::new(Watch::default());
        let seen = Arc::clone(&watch);
        let work = move || match self {
            Self::Ingest(ingest) => ingest.run(&seen),
            Self::Query(query) => query.run(&seen),
        };
        interruptible(&watch.ends, "interrupted twice: there is no report", work)
    }
}

impl Set {
    /// The set, at the second `now_s`, which says when yesterday ended.
    fn workload(&self, now_s: u64, late_percent: u64, decimals: u32) -> Workload {
        Workload {
            seed: self.seed,
            hosts: self.hosts,
            start_s: self.start.unwrap_or_else(|| (now_s / DAY_S * DAY_S).saturating_sub(self.span)),
            step_s: self.step,
            span_s: self.span,
            late_percent,
            decimals,
        }
    }

    /// How many connections write.
    ///
    /// # Errors
    ///
    /// More than there are hosts: some would have nothing to write, and a rate is shared out among all.
    fn writers(&self) -> Result<u64, Failure> {
        match self.connections {
            None => Ok(WRITERS.min(self.hosts)),
            Some(count) if count <= self.hosts => Ok(count),
            Some(count) => Err(Failure::new(
                Exit::Usage,
                format!(
                    "a connection writes hosts of its own: {count} --connections need as many --hosts, not {}",
                    self.hosts
                ),
            )),
        }
    }

    /// Opens the report's files before there is a report, so that no run is lost to a wrong path.
    fn open_files(&self) -> Result<(), Failure> {
        let open = |path: &PathBuf| {
            let opened = OpenOptions::new().append(true).create(true).open(path).map(drop);
            opened.map_err(|cause| Failure::new(Exit::Failure, format!("cannot write {}: {cause}", path.display())))
        };
        self.json.iter().chain(&self.html).try_for_each(open)
    }

    /// The report of a run on the set that begins with the second `start`, whatever the clock says since.
    fn report(&self, unit: &'static str, start: u64, lines: Vec<Line>) -> Report {
        let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
        let command = words.collect::<Vec<_>>().join(" ");
        Report { command, url: self.url.clone(), start, unit, lines }
    }

    /// Prints the report and writes its files; requests that failed, and questions that found nothing, end the command.
    fn tell(&self, report: &Report) -> Result<(), Failure> {
        print(&report.table())?;
        if let Some(path) = &self.json {
            let json = serde_json::to_string_pretty(report)
                .map_err(|cause| Failure::new(Exit::Failure, format!("cannot write the report: {cause}")))?;
            aside::keep(path, &(json + "\n"))?;
        }
        if let Some(path) = &self.html {
            aside::keep(path, &page::page(report))?;
        }
        let line = match (report.failed(), report.empty().join(", ")) {
            (Some(failed), _) => failed,
            (None, empty) if empty.is_empty() => return Ok(()),
            (None, empty) => format!(
                "all answers of {empty} were empty: give the --start and --hosts that the points were written with; \
                 the JSON report of an ingest run names its start"
            ),
        };
        Err(Failure::new(Exit::Failure, line))
    }
}

fn now_s() -> u64 {
    clock::now_ms() / 1_000
}

impl Ingest {
    fn run(self, watch: &Watch) -> Result<(), Failure> {
        if self.gzip && self.protocol == Protocol::Telnet {
            return Err(Failure::new(Exit::Usage, "--gzip packs bodies of `--protocol json`; telnet has none"));
        }
        let plan = ingest::Plan {
            address: peer::address(&self.set.url)?,
            protocol: self.protocol,
            gzip: self.gzip,
            parameters: self.parameters.clone(),
            batch: usize::try_from(self.batch).unwrap_or(usize::MAX),
            connections: self.set.writers()?,
            rate: self.rate,
            time_max: (self.seconds > 0).then(|| Duration::from_secs(self.seconds)),
            workload: self.set.workload(now_s(), self.late, self.decimals),
        };
        self.set.open_files()?;
        let name = match self.protocol {
            Protocol::Json => "put",
            Protocol::Telnet => "telnet put",
        };
        let line = measured(name, ("points", plan.workload.points()), watch, || ingest::run(&plan, watch))?;
        self.set.tell(&self.set.report("points", plan.workload.start_s, vec![line]))
    }
}

impl Query {
    fn run(self, watch: &Watch) -> Result<(), Failure> {
        let now_s = now_s();
        let plan = query::Plan {
            address: peer::address(&self.set.url)?,
            connections: self.set.connections.unwrap_or(1),
            count: self.count,
            workload: self.set.workload(now_s, 0, 0),
            now_s,
        };
        let kinds = self.kinds()?;
        self.set.open_files()?;
        let (mut lines, mut ended) = (Vec::new(), Ok(()));
        for kind in &kinds {
            if watch.ends() {
                break;
            }
            match measured(kind.name, ("queries", plan.count_of(kind)), watch, || query::run(&plan, kind, watch)) {
                Ok(line) => lines.push(line),
                // What was measured before the server went is told all the same.
                Err(failure) if !lines.is_empty() => {
                    ended = Err(failure);
                    break;
                }
                Err(failure) => return Err(failure),
            }
        }
        self.set.tell(&self.set.report("queries", plan.workload.start_s, lines)).and(ended)
    }

    fn kinds(&self) -> Result<Vec<Kind>, Failure> {
        if self.kinds.is_empty() {
            return Ok(KINDS.to_vec());
        }
        let named = |name: &String| {
            KINDS.iter().find(|kind| kind.name == name).copied().ok_or_else(|| {
                let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
                Failure::new(Exit::Usage, format!("`{name}` is no kind of question: {}", names.join(", ")))
            })
        };
        self.kinds.iter().map(named).collect()
    }
}

/// Runs one kind of work with its progress on a terminal: of what unit, and how many in all.
fn measured(
    name: &str,
    (unit, whole): (&'static str, u64),
    watch: &Watch,
    work: impl FnOnce() -> Result<Run, Failure>,
) -> Result<Line, Failure> {
    let bar = if io::stderr().is_terminal() { ProgressBar::new(whole) } else { ProgressBar::hidden() };
    let form = "{msg} {wide_bar} {human_pos}/{human_len} {unit}, {per_sec}, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(&form.replace("{unit}", unit)) {
        bar.set_style(style);
    }
    bar.set_message(name.to_owned());
    // Orderings are relaxed: numbers are shown, and the scope's end orders all else.
    let is_over = AtomicBool::new(false);
    watch.done.store(0, Ordering::Relaxed);
    let run = std::thread::scope(|scope| {
        let show = || {
            while !is_over.load(Ordering::Relaxed) {
                bar.set_position(watch.done.load(Ordering::Relaxed));
                std::thread::park_timeout(SHOW_EVERY);
            }
        };
        // Where no thread can be started the work is done all the same.
        let shower = Builder::new().spawn_scoped(scope, show);
        let run = work();
        is_over.store(true, Ordering::Relaxed);
        if let Ok(shower) = shower {
            shower.thread().unpark();
        }
        run
    });
    bar.finish_and_clear();
    Ok(Line::new(name, &run?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set() -> Set {
        Set {
            url: "http://127.0.0.1:1".to_owned(),
            hosts: 8,
            start: None,
            step: 10,
            span: 3_600,
            seed: 1,
            connections: None,
            json: None,
            html: None,
        }
    }

    /// A run over midnight wrote the day before; so did one whose clock was set since.
    #[test]
    fn a_report_names_the_second_that_was_written_from() {
        let workload = set().workload(20_000 * DAY_S - 1, 0, 0);
        assert_eq!(workload.start_s, 19_999 * DAY_S - 3_600);
        assert_eq!(set().report("points", workload.start_s, Vec::new()).start, workload.start_s);
        assert_eq!(Set { start: Some(5), ..set() }.workload(20_000 * DAY_S, 0, 0).start_s, 5);
    }

    #[test]
    fn no_connection_writes_without_a_host() {
        for (connections, hosts, expected) in
            [(None, 8, Some(4)), (None, 1, Some(1)), (Some(8), 8, Some(8)), (Some(9), 8, None)]
        {
            let found = Set { hosts, connections, ..set() }.writers();
            assert_eq!(found.as_ref().ok(), expected.as_ref(), "{connections:?} of {hosts}");
        }
    }
}
