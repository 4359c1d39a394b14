//! `basalt import`: OpenTSDB's text files into a server or a folder.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;

use super::interrupt::interruptible;
use super::{ToolSources, print};
use crate::exit::{Exit, Failure};
use crate::import::{self, Folder, Job, Remote, Target};

/// Where lines go unless told otherwise.
const URL_DEFAULT: &str = "http://127.0.0.1:4242";

/// `basalt import`.
#[derive(Debug, Args)]
#[command(after_help = "\
A line is `metric time value tag=value …`, as OpenTSDB's import reads and `scan --import` writes it;
a word `put` before it is taken too. A line that begins with `#` and is no point is a comment. Files
may be gzipped, whatever their names; `-` is standard input. A block of lines counts as done when it
is durable in a folder, or when a server answers `/api/put?details` for each point: durable unless
its `store.durability` is `os` or `async`. After a power loss there, import without the file of
--resume: points that are there already may come again.

Examples:
  basalt import dump.gz
  basalt import part-*.gz --resume import.state        run again, goes on where it was
  basalt import dump.gz --url http://db:4242 --rate 50000
  basalt import dump.gz --data-dir /var/lib/basalt     without a server; the folder must be free
  basalt import dump.gz --store hbase                  into tables in HBase, without a server

Exit codes: 0 all stored (or skipped), 1 bad lines, or the server is not there or is none, 4 folder
in use, 75 the disk is full, or the server was away or could not store for a minute, or gave no
answer for two, or a signal (SIGINT, SIGTERM) ended it: what is stored is told, the rest may be sent
later.")]
pub(super) struct Import {
    /// Files to read, in this order
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Server to send to
    #[arg(long, value_name = "URL", default_value = URL_DEFAULT, conflicts_with_all = ["data_dir", "store"])]
    url: String,
    #[command(flatten)]
    sources: ToolSources,
    /// Into a folder or HBase: make metrics that are new, whatever the configuration says; a server goes by its own
    #[arg(long, hide = true)]
    auto_metric: bool,
    /// Remember progress in FILE, and skip what it says is done; refused where a file begins otherwise than it did, or for
    /// another target
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Most points a second [default: as many as are taken]
    #[arg(long, value_name = "POINTS")]
    rate: Option<u64>,
    /// Go on after lines that are refused; they are counted and the first are shown
    #[arg(long)]
    skip_errors: bool,
}

impl Import {
    pub(super) fn run(self) -> Result<(), Failure> {
        let ends = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ends);
        let at_once = "interrupted twice: run the same again; with --resume it goes on behind what FILE says";
        interruptible(&ends, at_once, || self.work(seen))
    }

    fn work(self, ends: Arc<AtomicBool>) -> Result<(), Failure> {
        // Before a server is looked for, or a folder made. Not opened: what a pipe holds can be had once only.
        for path in self.paths.iter().filter(|path| path.as_os_str() != "-") {
            let fail = |cause: String| Failure::new(Exit::Failure, format!("cannot read {}: {cause}", path.display()));
            if std::fs::metadata(path).map_err(|cause| fail(cause.to_string()))?.is_dir() {
                return Err(fail("it is a folder".to_owned()));
            }
        }
        let target: Box<dyn Target> = if self.sources.sources.data_dir.is_some() || self.sources.place.store.is_some() {
            let mut config = self.sources.load()?;
            config.schema.auto_create_metrics |= self.auto_metric;
            Box::new(Folder::open(config)?)
        } else {
            if self.sources.table.is_some() || self.sources.uidtable.is_some() {
                let line = "--table and --uidtable need --data-dir or --store: a server has tables of its own";
                return Err(Failure::new(Exit::Usage, line));
            }
            if self.sources.zkquorum.is_some() || self.sources.zkbasedir.is_some() {
                let line = "--zkquorum and --zkbasedir need --store hbase: without it lines go to the server of --url, and to no cluster";
                return Err(Failure::new(Exit::Usage, line));
            }
            if self.sources.sources.config.is_some() {
                let line = "--config needs --data-dir or --store: without them lines go to the server of --url, which has settings of its own";
                return Err(Failure::new(Exit::Usage, line));
            }
            Box::new(Remote::connect(&self.url)?)
        };
        let job = Job { paths: self.paths, resume: self.resume, rate: self.rate, skip_errors: self.skip_errors, ends };
        let sum = import::run(&job, &*target)?;
        print(&format!(
            "{} points stored, {} refused, {} lines done before, {:.1} s, {:.0} points/s\n",
            sum.stored,
            sum.refused,
            sum.skipped,
            sum.took.as_secs_f64(),
            sum.rate()
        ))
    }
}
