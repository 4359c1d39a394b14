//! Who takes part: which programs there are, how each is started, and through which doors it takes points.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::load::Door;

/// Where a server of ours listens, an older one, and VictoriaMetrics beside its two ports for OpenTSDB's protocols.
pub(crate) const BASALT: u16 = 14300;
pub(crate) const BEFORE: u16 = 14308;
pub(crate) const VICTORIA_METRICS: u16 = 14301;
const VICTORIA_METRICS_PUT: u16 = 14302;
const VICTORIA_METRICS_TELNET: u16 = 14303;
const INFLUXDB: u16 = 14304;
const INFLUXDB_PUT: u16 = 14305;
const INFLUXDB_RPC: u16 = 14306;
const QUESTDB: u16 = 14307;

/// Which server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Basalt,
    /// An older Basalt.
    Before,
    VictoriaMetrics,
    /// Another version of it.
    VictoriaMetricsToo,
    InfluxDb,
    QuestDb,
    /// With its HBase; started by whoever runs this.
    OpenTsdb,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Basalt => "Basalt",
            Self::Before => "Basalt before",
            Self::VictoriaMetrics => "VictoriaMetrics",
            Self::VictoriaMetricsToo => "VictoriaMetrics, other",
            Self::InfluxDb => "InfluxDB",
            Self::QuestDb => "QuestDB",
            Self::OpenTsdb => "OpenTSDB and HBase",
        })
    }
}

impl Kind {
    pub(crate) const fn is_basalt(self) -> bool {
        matches!(self, Self::Basalt | Self::Before)
    }

    pub(crate) const fn is_victoria_metrics(self) -> bool {
        matches!(self, Self::VictoriaMetrics | Self::VictoriaMetricsToo)
    }

    /// The port and path that take points by this protocol, where there is one.
    pub(crate) const fn door(self, door: Door) -> Option<(u16, &'static str)> {
        match (self, door) {
            (Self::Basalt, Door::Json | Door::Telnet) => Some((BASALT, "/api/put")),
            (Self::Before, Door::Json | Door::Telnet) => Some((BEFORE, "/api/put")),
            (Self::VictoriaMetrics | Self::VictoriaMetricsToo, Door::Json) => Some((VICTORIA_METRICS_PUT, "/api/put")),
            (Self::VictoriaMetrics | Self::VictoriaMetricsToo, Door::Telnet) => Some((VICTORIA_METRICS_TELNET, "")),
            (Self::VictoriaMetrics | Self::VictoriaMetricsToo, Door::Line) => {
                Some((VICTORIA_METRICS, "/write?precision=s"))
            }
            (Self::InfluxDb, Door::Json) => Some((INFLUXDB_PUT, "/api/put")),
            (Self::InfluxDb, Door::Telnet) => Some((INFLUXDB_PUT, "")),
            (Self::InfluxDb, Door::Line) => Some((INFLUXDB, "/write?db=bench&precision=s")),
            (Self::QuestDb, Door::Line) => Some((QUESTDB, "/write?precision=s")),
            // The oracle's port; an answer without `sync` comes before HBase has the points.
            (Self::OpenTsdb, Door::Json) => Some((14242, "/api/put?sync")),
            (Self::Basalt | Self::Before, Door::Line)
            | (Self::QuestDb | Self::OpenTsdb, Door::Telnet)
            | (Self::QuestDb, Door::Json)
            | (Self::OpenTsdb, Door::Line) => None,
        }
    }

    /// A port that answers once the server is up.
    pub(crate) const fn port(self) -> u16 {
        match self {
            Self::Basalt => BASALT,
            Self::Before => BEFORE,
            Self::VictoriaMetrics | Self::VictoriaMetricsToo => VICTORIA_METRICS_PUT,
            Self::InfluxDb => INFLUXDB_PUT,
            Self::QuestDb => QUESTDB,
            Self::OpenTsdb => 14242,
        }
    }

    /// One of how many points it gets, since it would take too long for all.
    pub(crate) const fn one_in(self, door: Door) -> usize {
        match (self, door) {
            (Self::OpenTsdb, _) | (Self::InfluxDb, Door::Json | Door::Telnet) => 10,
            _ => 1,
        }
    }

    /// The command that serves `folder/data`.
    pub(crate) fn command(self, program: &Path, folder: &Path) -> Result<Command> {
        let data = folder.join("data");
        let mut command = Command::new(program);
        match self {
            Self::Basalt | Self::Before => {
                command.args(["serve", "--listen"]).arg(local(self.port())).arg("--data-dir").arg(data);
            }
            Self::VictoriaMetrics | Self::VictoriaMetricsToo => {
                command
                    .arg(format!("-storageDataPath={}", data.display()))
                    .arg(format!("-httpListenAddr={}", local(VICTORIA_METRICS)))
                    .arg(format!("-opentsdbHTTPListenAddr={}", local(VICTORIA_METRICS_PUT)))
                    .arg(format!("-opentsdbListenAddr={}", local(VICTORIA_METRICS_TELNET)))
                    .args(["-retentionPeriod=100y", "-search.disableCache", "-search.latencyOffset=0s"]);
            }
            Self::InfluxDb => {
                let config = folder.join("influxdb.conf");
                std::fs::write(&config, influxdb_conf(&data))?;
                command.arg("-config").arg(config);
            }
            Self::QuestDb => {
                std::fs::create_dir_all(data.join("conf"))?;
                std::fs::write(data.join("conf/server.conf"), questdb_conf())?;
                command = Command::new("java");
                command.args(["-Xmx2g", "-p"]).arg(program).args(["-m", "io.questdb/io.questdb.ServerMain", "-d"]);
                command.arg(data);
            }
            Self::OpenTsdb => bail!("OpenTSDB is started by `cargo xtask peers`"),
        }
        Ok(command)
    }
}

fn local(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

fn influxdb_conf(data: &Path) -> String {
    let data = data.display();
    format!(
        r#"reporting-disabled = true
bind-address = "{}"
[meta]
dir = "{data}/meta"
[data]
dir = "{data}/data"
wal-dir = "{data}/wal"
query-log-enabled = false
[http]
bind-address = "{}"
log-enabled = false
[[opentsdb]]
enabled = true
bind-address = "{}"
database = "opentsdb"
"#,
        local(INFLUXDB_RPC),
        local(INFLUXDB),
        local(INFLUXDB_PUT)
    )
}

fn questdb_conf() -> String {
    let http = local(QUESTDB);
    format!(
        "http.bind.to={http}\nhttp.min.enabled=false\npg.enabled=false\nline.tcp.enabled=false\ntelemetry.enabled=false\n"
    )
}

/// A server that others started: its processes.
#[derive(Debug, Clone)]
pub(crate) struct Running(pub(crate) Vec<u32>);

impl std::str::FromStr for Running {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let pids = text.split(',').map(|pid| pid.parse().with_context(|| format!("no pid: {pid}")));
        Ok(Self(pids.collect::<Result<_>>()?))
    }
}

/// One that takes part: what it is, and its program.
pub(crate) type Peer = (Kind, PathBuf);
