//! The command line: what a person types, read and handed on.

mod advise;
mod backup;
mod bench;
mod compact;
mod config;
mod folder;
mod fsck;
mod import;
mod inspect;
mod interrupt;
mod java;
mod migrate;
mod mkmetric;
mod query;
mod rows;
mod scan;
mod search;
mod serve;
mod shell;
mod token;
mod tsd;
mod uid;
mod verify;
mod words;

use std::io::Write as _;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};

use crate::config::{Config, Layers, Log, LogFormat, PLACES, StoreKind, Value as _};
use crate::exit::{Exit, Failure};
use crate::progress::beside;
use crate::version::{SPOKEN, VERSION};
use crate::{heap, log, proc, threads};

/// A time-series database that speaks OpenTSDB.
#[derive(Debug, Parser)]
#[command(name = "basalt", version, max_term_width = HELP_COLUMNS, after_help = AFTER_HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// How wide a help is at most: the texts behind options are broken where they end, and clap breaks what is longer once more.
const HELP_COLUMNS: usize = 100;

const AFTER_HELP: &str = "\
Examples:
  basalt serve                              serve on 127.0.0.1:4242, data in ./basalt-data
  echo 'put sys.load 1356998400 0.5 host=a' | nc -N 127.0.0.1 4242
  curl '127.0.0.1:4242/api/query?start=2013/01/01&m=sum:sys.load'

Exit codes: 0 done, 1 failed (port in use), 2 wrong command line, 3 wrong configuration,
4 data folder in use, 5 damaged data, 74 nothing more can be made durable (a failed disk),
75 try again later (disk full, HBase does not answer, or the server is busy).";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server
    Serve(serve::Serve),
    /// Run the server with the flags of OpenTSDB's `tsdb tsd`
    Tsd(Box<tsd::Tsd>),
    /// Read OpenTSDB text files into a server or a data folder
    Import(import::Import),
    /// Merge the files of a data folder or a running server
    Compact(compact::Compact),
    /// Judge a table's design before there is data in it
    Advise(advise::Advise),
    /// Take a backup of a data folder or a running server
    Backup(backup::Backup),
    /// Bring a backup back into a data folder
    Restore(backup::Restore),
    /// Copy OpenTSDB's tables from one store into another: a data folder, or HBase
    Migrate(migrate::Migrate),
    /// Prove every byte of a data folder
    Verify(verify::Verify),
    /// Tell what is lost of a damaged data folder, and mend it
    Repair(verify::Repair),
    /// Look into the files of a data folder
    Inspect(inspect::Inspect),
    /// Answer a query as lines
    Query(query::QueryTool),
    /// Show, dump or delete rows as they are stored
    Scan(scan::ScanTool),
    /// Check and mend data rows
    Fsck(fsck::FsckTool),
    /// Find series
    Search(search::Search),
    /// Find, assign, rename, delete and check UIDs
    Uid(uid::UidTool),
    /// Give metrics their UIDs
    Mkmetric(mkmetric::Mkmetric),
    /// Read and change tables with the HBase shell's commands
    Shell(shell::ShellCommand),
    /// Write and ask as a benchmark does, of any server that speaks OpenTSDB
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Make a token for somebody who may use the server
    Token(token::Token),
    /// Check or show the configuration
    Config(config::ConfigCommand),
    /// Print the version
    Version,
}

/// The flags that name a configuration; the same for every command that needs one.
#[derive(Debug, Args)]
struct Sources {
    /// TOML file, or an opentsdb.conf as it is (by its ending .conf or .properties)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Folder of the embedded store [default: ./basalt-data]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// error, warn, info, debug, trace, or a filter such as info,hyper=warn [default: info of a server, else warn]
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
}

impl Sources {
    /// The layers these flags stand for, the environment included.
    fn layers(&self) -> Layers {
        let mut flags = Vec::new();
        if let Some(folder) = &self.data_dir {
            flags.push(("--data-dir", "store.data_dir", folder.display().to_string()));
        }
        if let Some(level) = &self.log_level {
            flags.push(("--log-level", "log.level", level.clone()));
        }
        let (env, memory_bytes) = (std::env::vars_os().collect(), proc::memory_bytes_max());
        Layers {
            file: self.config.clone(),
            env,
            flags,
            memory_bytes,
            processors: Some(threads::processors()),
            ..Layers::default()
        }
    }

    fn load(&self) -> Result<Config, Failure> {
        self.begin(&self.layers())
    }

    /// Reads a tool's configuration, and logs from here on as a tool does.
    fn begin(&self, layers: &Layers) -> Result<Config, Failure> {
        let config = Config::load(layers)?;
        heap::fit(config.memory_bytes());
        start_log(self.log_level.as_deref(), &[&config])?;
        Ok(config)
    }
}

/// Starts the log of a tool: warnings, or what `level` asks for; first those of its configurations.
fn start_log(level: Option<&str>, configs: &[&Config]) -> Result<(), Failure> {
    let level = level.unwrap_or("warn").to_owned();
    log::start(&Log { level, format: LogFormat::Text, ..Log::default() })?;
    for warning in configs.iter().flat_map(|config| config.warnings()) {
        tracing::warn!("{warning}");
    }
    Ok(())
}

/// The flag that says where the tables are, of commands that work on a cluster as well.
#[derive(Debug, Args)]
struct StoreFlag {
    /// Where the tables are [default: embedded]
    #[arg(long)]
    store: Option<StoreKind>,
}

impl StoreFlag {
    /// What it stands for among the layers.
    fn layer(&self) -> Option<(&'static str, &'static str, String)> {
        self.store.map(|store| ("--store", "store.kind", store.show()))
    }
}

/// Where settings name a cluster: what it is called in each.
const CLUSTER: [&str; 2] = ["hbase.zookeeper_quorum", "hbase.masters"];

/// Whether a cluster is named that the work is not done on, by settings that do not say where it is done.
fn passes_cluster_over(config: &Config) -> bool {
    !config.is_set("store.kind") && CLUSTER.iter().any(|name| config.is_set(name))
}

/// Warns of a cluster that the settings name and the work is not done on.
fn tell_of_cluster(config: &Config) {
    if !passes_cluster_over(config) {
        return;
    }
    let folder = config.store.data_dir.display();
    for (key, _, origin) in config.entries().filter(|(key, ..)| CLUSTER.contains(&key.name) && config.is_set(key.name))
    {
        let name = key.name;
        tracing::warn!(
            "`{name}` from {origin} has no effect: the tables are in data folder {folder}, and in HBase with --store hbase"
        );
    }
}

/// [`Sources`] of a tool that OpenTSDB has too, and the options that scripts for `tsdb` give.
#[derive(Debug, Args)]
struct ToolSources {
    #[command(flatten)]
    sources: Sources,
    #[command(flatten)]
    place: StoreFlag,
    #[arg(long, hide = true, value_name = "NAME")]
    table: Option<String>,
    #[arg(long, hide = true, value_name = "NAME")]
    uidtable: Option<String>,
    #[arg(long, hide = true, value_name = "SPEC")]
    zkquorum: Option<String>,
    #[arg(long, hide = true, value_name = "PATH")]
    zkbasedir: Option<String>,
    /// Taken and without meaning.
    #[arg(long, short, hide = true)]
    verbose: bool,
}

impl ToolSources {
    /// The settings that OpenTSDB's options stand for.
    fn inherited(&self) -> Vec<(&'static str, &'static str, String)> {
        let given = [
            ("--table", "schema.data_table", &self.table),
            ("--uidtable", "schema.uid_table", &self.uidtable),
            ("--zkquorum", "hbase.zookeeper_quorum", &self.zkquorum),
            ("--zkbasedir", "hbase.zookeeper_root", &self.zkbasedir),
        ];
        given.into_iter().filter_map(|(flag, name, value)| Some((flag, name, value.clone()?))).collect()
    }

    fn load(&self) -> Result<Config, Failure> {
        let mut layers = self.sources.layers().search(&PLACES);
        layers.flags.extend(self.place.layer());
        layers.flags.extend(self.inherited());
        let config = self.sources.begin(&layers)?;
        let is_named = self.zkquorum.is_some() || self.zkbasedir.is_some();
        if is_named && self.sources.data_dir.is_none() && config.store.kind != StoreKind::Hbase {
            let line = "--zkquorum and --zkbasedir need --store hbase: without it the work is done on a data folder";
            return Err(Failure::new(Exit::Usage, line));
        }
        tell_of_cluster(&config);
        Ok(config)
    }
}

/// Runs what the command line asks for.
///
/// # Errors
///
/// The exit code and the line to end with. Clap's own answers (help, usage) end here.
pub(crate) fn run() -> Result<(), Failure> {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // Help and version are no failure; for the rest clap prints the usage and a tip before our line.
        Err(answer) => {
            answer.print().unwrap_or_default();
            return if answer.use_stderr() { Err(Failure::new(Exit::Usage, not_understood(&answer))) } else { Ok(()) };
        }
    };
    match cli.command {
        Command::Serve(serve) => serve.run(),
        Command::Tsd(tsd) => tsd.run(),
        Command::Import(import) => import.run(),
        Command::Compact(compact) => compact.run(),
        Command::Advise(advise) => advise.run(),
        Command::Backup(backup) => backup.run(),
        Command::Restore(restore) => restore.run(),
        Command::Migrate(migrate) => migrate.run(),
        Command::Verify(verify) => verify.run(),
        Command::Repair(repair) => repair.run(),
        Command::Inspect(inspect) => inspect.run(),
        Command::Query(query) => query.run(),
        Command::Scan(scan) => scan.run(),
        Command::Fsck(fsck) => fsck.run(),
        Command::Search(search) => search.run(),
        Command::Uid(uid) => uid.run(),
        Command::Mkmetric(mkmetric) => mkmetric.run(),
        Command::Shell(shell) => shell.run(),
        Command::Bench(bench) => bench.run(),
        Command::Token(token) => token.run(),
        Command::Config(config) => config.run(),
        Command::Version => print(&format!("basalt {VERSION} (speaks OpenTSDB {SPOKEN})\n")),
    }
}

/// What is wrong with a command line, of which clap has said it in several lines.
fn not_understood(answer: &clap::Error) -> String {
    if answer.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "no command is given: one of those above is needed".to_owned();
    }
    let text = answer.to_string();
    let first: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let why = first.join(" ");
    format!("wrong command line: {}", why.strip_prefix("error: ").unwrap_or(&why))
}

/// Writes to standard output at once.
///
/// # Errors
///
/// Exit code 1: nobody listens there any more.
fn print(text: &str) -> Result<(), Failure> {
    try_print(text).map_err(|cause| Failure::output(&cause))
}

/// As [`print()`], for who has more to do.
fn try_print(text: &str) -> std::io::Result<()> {
    beside(|| {
        let mut out = std::io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush())
    })
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory as _, Parser as _};

    #[test]
    fn the_definition_is_sound() {
        super::Cli::command().debug_assert();
    }

    /// Scripts act on them.
    #[test]
    fn each_command_tells_its_exit_codes_and_each_flag_what_it_does() {
        fn check(command: &Command) {
            let name = command.get_name();
            if name != "version" && !command.has_subcommands() {
                let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
                assert!(help.contains("\nExit code"), "{name}");
            }
            for flag in command.get_arguments().filter(|flag| !flag.is_hide_set()) {
                assert!(flag.get_help().is_some(), "{name}: {}", flag.get_id());
            }
            command.get_subcommands().for_each(check);
        }
        let cli = super::Cli::command();
        assert!(cli.get_after_help().is_some_and(|help| help.to_string().contains("\nExit codes: ")));
        check(&cli);
    }

    /// The last line of all says what failed.
    #[test]
    fn what_is_wrong_with_a_command_line_is_said_in_one_line() {
        for (words, expected) in [
            (&["basalt"][..], "no command is given: one of those above is needed"),
            (&["basalt", "config"], "no command is given: one of those above is needed"),
            (&["basalt", "sevre"], "wrong command line: unrecognized subcommand 'sevre'"),
            (&["basalt", "serve", "--lisen", "x"], "wrong command line: unexpected argument '--lisen' found"),
            (
                &["basalt", "migrate"],
                "wrong command line: the following required arguments were not provided: --from <PLACE> --to <PLACE>",
            ),
        ] {
            let answer = super::Cli::try_parse_from(words).unwrap_err();
            assert_eq!(super::not_understood(&answer), expected);
        }
    }

    /// What is longer is broken in the middle of a sentence, and its rest stands alone on a line.
    #[test]
    fn no_line_of_a_help_is_wider_than_helps_are() {
        fn check(command: &Command) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in help.lines() {
                assert!(line.chars().count() <= super::HELP_COLUMNS, "{}: {line}", command.get_name());
            }
            command.get_subcommands().for_each(check);
        }
        check(&super::Cli::command());
    }
}
