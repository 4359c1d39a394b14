//! Settings: defaults, then a file, then the environment, then flags; the later wins.
//!
//! A setting is one row of [`keys::KEYS`]: its name `section.key`, what it is for, how it is read
//! and shown. Everything else (TOML, an `opentsdb.conf`, `BASALT_SECTION__KEY`, flags,
//! `basalt config show`) goes through those rows, so no door knows a setting that another lacks.

mod file;
pub(crate) mod keys;
mod opentsdb;
mod value;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::exit::Failure;
use keys::Key;
use value::words;

pub(crate) use opentsdb::as_opentsdb;

/// Request headers that other origins may send, unless told otherwise; OpenTSDB's own list.
const CORS_HEADERS: &str = "Authorization, Content-Type, Accept, Origin, User-Agent, DNT, Cache-Control, \
     X-Mx-ReqToken, Keep-Alive, X-Requested-With, If-Modified-Since";

/// Which store keeps the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum StoreKind {
    /// The store built into this program: durable, in the data folder.
    Embedded,
    /// Nothing on disk: everything is gone at the end. For trying out and for tests.
    Memory,
    /// A real `HBase` cluster.
    #[value(help = "A real HBase cluster (not in this version yet)")]
    Hbase,
}
words!(StoreKind { Embedded = "embedded", Memory = "memory", Hbase = "hbase" });

/// When an acknowledged write is safe; `HBase`'s levels, named by what they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// On the disk itself.
    Fsync,
    /// Handed to the operating system: survives a crash of the program, not of the machine.
    Os,
    /// Written soon after.
    Async,
}
words!(Durability { Fsync = "fsync", Os = "os", Async = "async" });

/// Which endpoints and telnet commands there are; OpenTSDB's `tsd.mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// All.
    ReadWrite,
    /// None that writes.
    ReadOnly,
    /// None that reads points.
    WriteOnly,
}
words!(Mode { ReadWrite = "rw", ReadOnly = "ro", WriteOnly = "wo" });

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// Text on a terminal, JSON otherwise.
    Auto,
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}
words!(LogFormat { Auto = "auto", Text = "text", Json = "json" });

/// The whole configuration. Field names are the names users write: `section.key`.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) server: Server,
    pub(crate) http: Http,
    pub(crate) telnet: Telnet,
    pub(crate) store: Store,
    pub(crate) schema: Schema,
    pub(crate) query: Query,
    pub(crate) compat: Compat,
    pub(crate) log: Log,
    /// Where each setting that is not a default came from, by its name.
    origins: BTreeMap<&'static str, String>,
    /// OpenTSDB's own keys as a properties file gave them, for `/api/config`.
    opentsdb: BTreeMap<String, String>,
    /// What a person should know about the layers read, one line each.
    warnings: Vec<String>,
}

/// `[server]`: the port and its connections.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) listen: SocketAddr,
    pub(crate) insecure: bool,
    pub(crate) mode: Mode,
    pub(crate) max_connections: usize,
    pub(crate) header_timeout_ms: Duration,
    pub(crate) idle_timeout_ms: Duration,
    pub(crate) shutdown_timeout_ms: Duration,
}

/// `[http]`.
#[derive(Clone, Debug)]
pub(crate) struct Http {
    pub(crate) max_body_bytes: usize,
    pub(crate) max_header_bytes: usize,
    pub(crate) enable_api: bool,
    pub(crate) enable_ui: bool,
    pub(crate) cors_domains: String,
    pub(crate) cors_headers: String,
}

/// `[telnet]`.
#[derive(Clone, Debug)]
pub(crate) struct Telnet {
    pub(crate) max_line_bytes: usize,
    pub(crate) idle_timeout_ms: Duration,
    pub(crate) return_errors: bool,
}

/// `[store]`.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    pub(crate) kind: StoreKind,
    pub(crate) data_dir: PathBuf,
    pub(crate) durability: Durability,
    pub(crate) memtable_bytes: u64,
    pub(crate) memtables_bytes: u64,
    pub(crate) wal_segment_bytes: u64,
    pub(crate) wal_bytes_max: u64,
    pub(crate) block_cache_bytes: u64,
    pub(crate) reserve_bytes: u64,
}

/// `[schema]`: OpenTSDB's tables.
#[derive(Clone, Debug)]
pub(crate) struct Schema {
    pub(crate) salt_width: u8,
    pub(crate) salt_buckets: u16,
    pub(crate) uid_width_metric: u8,
    pub(crate) uid_width_tagk: u8,
    pub(crate) uid_width_tagv: u8,
    pub(crate) max_tags: u8,
    pub(crate) auto_create_metrics: bool,
    pub(crate) auto_create_tagks: bool,
    pub(crate) auto_create_tagvs: bool,
    pub(crate) allow_specialchars: String,
}

/// `[query]`.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    pub(crate) timeout_ms: Duration,
    pub(crate) max_concurrent: usize,
    pub(crate) max_waiting: usize,
    pub(crate) max_points: u64,
    pub(crate) max_bytes: u64,
    pub(crate) skip_unresolved_tagvs: bool,
    pub(crate) allow_delete: bool,
    pub(crate) timezone: String,
}

/// `[compat]`.
#[derive(Clone, Debug)]
pub(crate) struct Compat {
    pub(crate) strict: bool,
}

/// `[log]`.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    pub(crate) level: String,
    pub(crate) format: LogFormat,
    pub(crate) slow_query_ms: Duration,
}

impl Default for Config {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        let engine = basalt_engine::Limits::default();
        Self {
            server: Server {
                listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 4242)),
                insecure: false,
                mode: Mode::ReadWrite,
                max_connections: 1_024,
                header_timeout_ms: Duration::from_secs(10),
                idle_timeout_ms: Duration::from_secs(60),
                shutdown_timeout_ms: Duration::from_secs(30),
            },
            http: Http {
                max_body_bytes: 32 << 20,
                max_header_bytes: 64 << 10,
                enable_api: true,
                enable_ui: true,
                cors_domains: String::new(),
                cors_headers: CORS_HEADERS.to_owned(),
            },
            telnet: Telnet { max_line_bytes: 1_024, idle_timeout_ms: Duration::from_secs(900), return_errors: true },
            store: Store {
                kind: StoreKind::Embedded,
                data_dir: PathBuf::from("basalt-data"),
                durability: Durability::Fsync,
                memtable_bytes: engine.memtable_bytes,
                memtables_bytes: engine.memtables_bytes,
                wal_segment_bytes: engine.wal_segment_bytes,
                wal_bytes_max: engine.wal_bytes_max,
                block_cache_bytes: engine.block_cache_bytes,
                reserve_bytes: engine.reserve_bytes,
            },
            schema: Schema {
                salt_width: 1,
                salt_buckets: 16,
                uid_width_metric: 3,
                uid_width_tagk: 3,
                uid_width_tagv: 3,
                max_tags: 8,
                auto_create_metrics: true,
                auto_create_tagks: true,
                auto_create_tagvs: true,
                allow_specialchars: String::new(),
            },
            query: Query {
                timeout_ms: Duration::from_secs(60),
                max_concurrent: cores * 2,
                max_waiting: cores * 16,
                max_points: 200_000_000,
                max_bytes: 4 << 30,
                skip_unresolved_tagvs: false,
                allow_delete: false,
                timezone: "UTC".to_owned(),
            },
            compat: Compat { strict: false },
            log: Log { level: "info".to_owned(), format: LogFormat::Auto, slow_query_ms: Duration::from_secs(1) },
            origins: BTreeMap::new(),
            opentsdb: BTreeMap::new(),
            warnings: Vec::new(),
        }
    }
}

/// What a process was told besides its defaults.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layers {
    /// A TOML file, or OpenTSDB's properties file when its name ends in `.conf` or `.properties`.
    pub(crate) file: Option<PathBuf>,
    /// The environment: names and values.
    pub(crate) env: Vec<(String, String)>,
    /// Flags, as setting name and value; the flag's spelling is `--` and the last word.
    pub(crate) flags: Vec<(&'static str, String)>,
}

impl Config {
    /// Reads all layers in their order.
    ///
    /// # Errors
    ///
    /// One line and exit code 3: a file that cannot be read, a setting that does not exist, a value
    /// that is not one, or settings that contradict each other.
    pub(crate) fn load(layers: &Layers) -> Result<Self, Failure> {
        let mut config = Self::default();
        if let Some(path) = &layers.file {
            config.read_file(path)?;
        }
        config.read_env(&layers.env)?;
        for (name, value) in &layers.flags {
            let flag = format!("flag --{}", name.rsplit('.').next().unwrap_or(name).replace('_', "-"));
            config.set(name, value, &flag)?;
        }
        config.check()?;
        Ok(config)
    }

    fn read_file(&mut self, path: &Path) -> Result<(), Failure> {
        let text = std::fs::read_to_string(path)
            .map_err(|cause| Failure::config(format!("cannot read {}: {cause}", path.display())))?;
        let extension = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
        if matches!(extension, "conf" | "properties") {
            return opentsdb::apply(self, &text, path);
        }
        let shown = path.display().to_string();
        for (name, value) in file::flatten(&text).map_err(|why| Failure::config(format!("{shown}: {why}")))? {
            self.set(&name, &value, &shown)?;
        }
        Ok(())
    }

    /// `BASALT_SERVER__LISTEN=…` sets `server.listen`; a variable of that form that names no
    /// setting is an error, since it is a slip of the pen.
    fn read_env(&mut self, env: &[(String, String)]) -> Result<(), Failure> {
        for (variable, value) in env {
            let Some(rest) = variable.strip_prefix("BASALT_") else { continue };
            let Some((section, key)) = rest.split_once("__") else { continue };
            let name = format!("{}.{}", section.to_ascii_lowercase(), key.to_ascii_lowercase());
            self.set(&name, value, &format!("environment {variable}"))?;
        }
        Ok(())
    }

    /// Sets one setting by its name; `origin` says where the value stood.
    fn set(&mut self, name: &str, value: &str, origin: &str) -> Result<(), Failure> {
        let Some(key) = Key::named(name) else {
            let hint = Key::nearest(name).map_or_else(String::new, |near| format!(", did you mean `{near}`?"));
            return Err(Failure::config(format!("unknown setting `{name}` in {origin}{hint}")));
        };
        (key.set)(self, value).map_err(|expected| {
            Failure::config(format!("setting `{name}` in {origin}: `{value}` is not {expected}"))
        })?;
        self.origins.insert(key.name, origin.to_owned());
        Ok(())
    }

    /// Settings that are each right and together wrong.
    fn check(&self) -> Result<(), Failure> {
        let widths = [self.schema.uid_width_metric, self.schema.uid_width_tagk, self.schema.uid_width_tagv];
        if widths.iter().any(|width| !(1..=8).contains(width)) {
            return Err(Failure::config("settings `schema.uid_width_…` must be from 1 to 8"));
        }
        if self.schema.salt_width > 8 {
            return Err(Failure::config("setting `schema.salt_width` must be from 0 to 8"));
        }
        if self.schema.salt_width > 0 && self.schema.salt_buckets == 0 {
            return Err(Failure::config("setting `schema.salt_buckets` must be at least 1 when rows are salted"));
        }
        let domains: Vec<&str> = self.http.cors_domains.split(',').map(str::trim).collect();
        if domains.contains(&"*") && domains.len() > 1 {
            return Err(Failure::config("setting `http.cors_domains` is either `*` or a list of origins, not both"));
        }
        let is_token = |name: &str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
        };
        if !self.http.cors_headers.split(',').all(|name| is_token(name.trim())) {
            return Err(Failure::config("setting `http.cors_headers` must be a list of header names"));
        }
        if self.query.max_concurrent == 0 || self.server.max_connections == 0 {
            return Err(Failure::config(
                "settings `query.max_concurrent` and `server.max_connections` must be at least 1",
            ));
        }
        Ok(())
    }

    /// Every setting with its value and where it came from (`default` if nowhere), in table order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'static Key, String, &str)> {
        keys::KEYS
            .iter()
            .map(|key| (key, (key.get)(self), self.origins.get(key.name).map_or("default", String::as_str)))
    }

    /// What a person should know about the layers read, one line each; empty when all was plain.
    pub(crate) fn warnings(&self) -> &[String] {
        &self.warnings
    }
}
