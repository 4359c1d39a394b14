//! `basalt tsd`: the server by the flags that start scripts of OpenTSDB's give it. Each stands for a key of
//! `opentsdb.conf`, and wins over the file.

use clap::Args;

use super::{Sources, serve};
use crate::config::{Config, Layers, PLACES, Value as _};
use crate::exit::Failure;

/// `basalt tsd`.
#[derive(Debug, Args)]
#[command(after_help = "\
Each flag sets the key of opentsdb.conf that it sets in OpenTSDB; those that steer nothing here are
named in the log at start. Without --bind the server listens on this machine only, and without
--config it takes the file that OpenTSDB takes: opentsdb.conf here, in /etc, /etc/opentsdb or
/opt/opentsdb. --read-only, --disable-ui and --disable-api count as given whatever their value is.

Examples:
  basalt tsd --port=4242 --auto-metric
  basalt tsd --config=/etc/opentsdb/opentsdb.conf --read-only=true
  basalt tsd --bind=0.0.0.0 --insecure            open to the network, no password

Exit codes: those of `basalt serve`.")]
pub(super) struct Tsd {
    #[command(flatten)]
    sources: Sources,
    #[command(flatten)]
    words: Words,
    /// Listen on an address that other machines reach although anybody may then read and write
    #[arg(long)]
    insecure: bool,
}

/// OpenTSDB's own flags, values as it reads them.
#[derive(Debug, Args)]
struct Words {
    /// Port of HTTP and telnet [default: 4242]
    #[arg(long, value_name = "NUM")]
    port: Option<String>,
    /// Address to listen on [default: 127.0.0.1]
    #[arg(long, value_name = "ADDR")]
    bind: Option<String>,
    /// Threads that serve connections; 0: one a core [default: 0]
    #[arg(long, value_name = "NUM")]
    worker_threads: Option<String>,
    /// Connections that may wait to be accepted [default: 1024]
    #[arg(long, value_name = "NUM")]
    backlog: Option<String>,
    /// Connections at once; 0: as many as the system gives [default: 1024]
    #[arg(long, value_name = "NUM")]
    max_connections: Option<String>,
    /// Take no points
    #[arg(long, value_name = "true|false", num_args = 0..=1, default_missing_value = "true")]
    read_only: Option<String>,
    /// Serve no page
    #[arg(long, value_name = "true|false", num_args = 0..=1, default_missing_value = "true")]
    disable_ui: Option<String>,
    /// Answer no /api/
    #[arg(long, value_name = "true|false", num_args = 0..=1, default_missing_value = "true")]
    disable_api: Option<String>,
    /// Give the port as a tag with the server's own figures
    #[arg(long)]
    statswport: bool,
    /// Make metrics that are not there
    #[arg(long)]
    auto_metric: bool,
    /// Table of the points [default: tsdb]
    #[arg(long, value_name = "TABLE")]
    table: Option<String>,
    /// Table of the names [default: tsdb-uid]
    #[arg(long, value_name = "TABLE")]
    uidtable: Option<String>,
    /// Has no effect: pages are built in
    #[arg(long, value_name = "PATH")]
    staticroot: Option<String>,
    /// Has no effect: graphs are kept in no file
    #[arg(long, value_name = "PATH")]
    cachedir: Option<String>,
    /// Has no effect: connections never block a thread
    #[arg(long, value_name = "true|false")]
    async_io: Option<String>,
    /// Has no effect: points are stored at once and wait for no timer
    #[arg(long, value_name = "MSEC")]
    flush_interval: Option<String>,
    /// The quorum that finds the cluster, where the tables are in HBase (`BASALT_STORE__KIND=hbase`)
    #[arg(long, value_name = "SPEC")]
    zkquorum: Option<String>,
    /// The quorum's node below which HBase keeps its own
    #[arg(long, value_name = "PATH")]
    zkbasedir: Option<String>,
    /// Log more
    #[arg(long, short)]
    verbose: bool,
}

impl Tsd {
    pub(super) fn run(self) -> Result<(), Failure> {
        serve::run(Config::load(&self.layers().search(&PLACES))?)
    }

    fn layers(&self) -> Layers {
        let mut layers = self.sources.layers();
        if self.insecure {
            layers.flags.push(("--insecure", "server.insecure", "true".to_owned()));
        }
        if self.words.verbose {
            layers.flags.push(("--verbose", "log.level", "debug".to_owned()));
        }
        layers.opentsdb_flags = self.words.keys();
        layers.warnings = self.words.warnings();
        layers
    }
}

impl Words {
    /// Flag, key and value of each that was given.
    fn keys(&self) -> Vec<(&'static str, &'static str, String)> {
        let given = [
            ("--port", "tsd.network.port", &self.port),
            ("--bind", "tsd.network.bind", &self.bind),
            ("--worker-threads", "tsd.network.worker_threads", &self.worker_threads),
            ("--backlog", "tsd.network.backlog", &self.backlog),
            ("--max-connections", "tsd.core.connections.limit", &self.max_connections),
            ("--table", "tsd.storage.hbase.data_table", &self.table),
            ("--uidtable", "tsd.storage.hbase.uid_table", &self.uidtable),
            ("--staticroot", "tsd.http.staticroot", &self.staticroot),
            ("--cachedir", "tsd.http.cachedir", &self.cachedir),
            ("--async-io", "tsd.network.async_io", &self.async_io),
            ("--flush-interval", "tsd.storage.flush_interval", &self.flush_interval),
            ("--zkquorum", "tsd.storage.hbase.zk_quorum", &self.zkquorum),
            ("--zkbasedir", "tsd.storage.hbase.zk_basedir", &self.zkbasedir),
        ];
        let switched = [
            ("--read-only", "tsd.mode", "ro", self.read_only.is_some()),
            ("--disable-ui", "tsd.core.enable_ui", "false", self.disable_ui.is_some()),
            ("--disable-api", "tsd.core.enable_api", "false", self.disable_api.is_some()),
            ("--statswport", "tsd.core.stats_with_port", "true", self.statswport),
            ("--auto-metric", "tsd.core.auto_create_metrics", "true", self.auto_metric),
        ];
        let given = given.into_iter().filter_map(|(flag, key, value)| Some((flag, key, value.clone()?)));
        let switched = switched.into_iter().filter(|(.., on)| *on);
        given.chain(switched.map(|(flag, key, value, _)| (flag, key, value.to_owned()))).collect()
    }

    /// OpenTSDB asks for a value of these and does not look at it: whoever wrote `false` is told so.
    fn warnings(&self) -> Vec<String> {
        let valued = [
            ("--read-only", &self.read_only),
            ("--disable-ui", &self.disable_ui),
            ("--disable-api", &self.disable_api),
        ];
        let given = valued.into_iter().filter_map(|(flag, value)| Some((flag, value.as_ref()?)));
        let unheard = given.filter(|(_, value)| !bool::read(value).unwrap_or(false));
        let told = |(flag, value)| {
            format!("flag {flag} counts as given: its value `{value}` is not looked at, as by OpenTSDB")
        };
        unheard.map(told).collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser};

    use super::*;
    use crate::config::Mode;
    use crate::config::keys::Key;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        tsd: Tsd,
    }

    fn loaded(line: &str) -> Result<Config, Failure> {
        let line = Line::try_parse_from(line.split(' ')).unwrap();
        Config::load(&Layers { env: Vec::new(), ..line.tsd.layers() })
    }

    /// C-TSD: the help says of a number what its setting says.
    #[test]
    fn c_tsd_no_bound_of_connections_is_the_systems() {
        let help = Line::command().render_long_help().to_string();
        assert!(help.contains("0: as many as the system gives"), "{help}");
        let key = Key::named("server.max_connections").unwrap();
        assert!(key.about.contains("0 is as many as the system gives"), "{}", key.about);
    }

    /// C-TSD: every flag of OpenTSDB's is taken, and does what its key does.
    #[test]
    fn c_tsd_every_flag_does_what_its_key_does() {
        let config = loaded(
            "tsd --port=4243 --bind=127.0.0.2 --worker-threads 3 --backlog 9 --max-connections 7 --read-only \
             --disable-ui --disable-api --statswport --auto-metric --table=t --uidtable=u --staticroot=/s --cachedir=/c \
             --async-io true --flush-interval 1000 --zkquorum=zk --zkbasedir=/hbase --verbose",
        );
        let config = config.unwrap();
        assert_eq!(config.server.listen.to_string(), "127.0.0.2:4243");
        assert_eq!((config.server.worker_threads, config.server.backlog, config.server.max_connections), (3, 9, 7));
        assert!(!config.http.enable_ui && !config.http.enable_api && config.server.stats_with_port);
        assert_eq!((config.schema.data_table.as_str(), config.schema.uid_table.as_str()), ("t", "u"));
        let shown: Vec<_> = config.entries().filter(|(key, ..)| key.name == "server.mode").collect();
        assert_eq!((shown[0].1.as_str(), shown[0].2), ("ro", "flag --read-only"));
        // What steers nothing says so, by the flag that was typed.
        assert!(config.notes().iter().any(|note| note.starts_with("flag --cachedir:")), "{:?}", config.notes());
        assert_eq!(config.warnings(), [""; 0]);
    }

    /// C-TSD: with the value that OpenTSDB asks for, in both ways to write it, and without.
    #[test]
    fn c_tsd_a_switch_may_have_a_value_which_steers_nothing() {
        for line in
            ["--read-only true --disable-ui true --disable-api=yes --port 1", "--read-only --disable-ui --disable-api"]
        {
            let config = loaded(&format!("tsd {line}")).unwrap();
            assert_eq!(
                (config.server.mode, config.http.enable_ui, config.http.enable_api),
                (Mode::ReadOnly, false, false),
                "{line}"
            );
            assert_eq!(config.warnings(), [""; 0], "{line}");
        }
        let config = loaded("tsd --read-only=false").unwrap();
        assert_eq!((config.server.mode, config.http.enable_ui), (Mode::ReadOnly, true));
        let told = "flag --read-only counts as given: its value `false` is not looked at, as by OpenTSDB";
        assert_eq!(config.warnings(), [told]);
    }

    /// C-TSD: the first file that is there, also one that cannot be read, unless one is named.
    #[test]
    fn c_tsd_the_file_that_opentsdb_finds_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let places = [at("none.conf"), at("folder.conf"), at("a.conf"), at("b.conf")];
        let places: Vec<&str> = places.iter().map(String::as_str).collect();
        let load = |line: &str| {
            let layers = Line::try_parse_from(line.split(' ')).unwrap().tsd.layers();
            Config::load(&Layers { env: Vec::new(), ..layers }.search(&places))
        };
        std::fs::create_dir(places[1]).unwrap();
        assert_eq!(load("tsd").unwrap().warnings(), [""; 0]);
        std::fs::write(places[3], "tsd.mode = ro\n").unwrap();
        let config = load("tsd --port=1").unwrap();
        assert_eq!((config.server.mode, config.server.listen.port()), (Mode::ReadOnly, 1));
        assert_eq!(config.warnings(), [format!("settings are read from {}, as no --config names a file", places[3])]);
        std::fs::write(places[2], "tsd.mode = wo\n").unwrap();
        assert_eq!(load("tsd").unwrap().server.mode, Mode::WriteOnly);
        let named = load(&format!("tsd --config {}", places[3])).unwrap();
        assert_eq!((named.server.mode, named.warnings().len()), (Mode::ReadOnly, 0));
        std::os::unix::fs::symlink("loop.conf", at("loop.conf")).unwrap();
        let refused = Layers::default().search(&[&at("loop.conf"), places[3]]);
        assert!(Config::load(&refused).unwrap_err().line.starts_with("cannot read"));
    }

    #[test]
    fn c_tsd_a_flag_without_sense_is_named() {
        assert_eq!(
            loaded("tsd --port=many").unwrap_err().to_string(),
            "key `tsd.network.port` in flag --port: `many` is not a whole number from 0 to 65535"
        );
    }

    #[test]
    fn c_tsd_a_flag_wins_over_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("opentsdb.conf");
        std::fs::write(&file, "tsd.network.port = 5000\ntsd.mode = wo\n").unwrap();
        let config = loaded(&format!("tsd --config={} --port=6000", file.display())).unwrap();
        assert_eq!(config.server.listen.port(), 6000);
    }
}
